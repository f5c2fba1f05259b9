/** What is drawn of histories. */
import * as fc from 'fast-check';
import { DEEDS, DISPATCH_KINDS, type History, LOCAL_KINDS } from './simulation.js';

const chance = fc.constantFrom(0, 0, 0.05, 0.3);
export const histories: fc.Arbitrary<History> = fc.record({
  seed: fc.nat(1_000_000),
  dispatch: fc.constantFrom(...DISPATCH_KINDS),
  local: fc.constantFrom(...LOCAL_KINDS),
  queue: fc.record({ lost: chance, doubled: chance, delayed: chance }),
  wires: fc.record({
    cut: fc.constantFrom(0, 0, 0.02, 0.2),
    lostAnswer: fc.constantFrom(0, 0, 0.02, 0.2),
    repeated: chance,
  }),
  deeds: fc.array(
    fc.record({
      afterMs: fc.nat(15_000),
      kind: fc.constantFrom(...DEEDS),
      n: fc.nat(1_000_000),
      ms: fc.integer({ min: 1, max: 90_000 }),
    }),
    { minLength: 1, maxLength: 30, size: 'max' },
  ),
  lastMs: fc.constantFrom(0, 60_000),
});
