/** Plays histories: what the tests, `npm run test:sim` and `npm run test:mutants` (scripts/sim.mjs) have in common. */
import { deepStrictEqual } from 'node:assert';
import * as fc from 'fast-check';
import { DEEDS, type Deed, DISPATCH_KINDS, type History, LOCAL_KINDS, Simulation } from './simulation.js';

const chance = fc.constantFrom(0, 0, 0.05, 0.3);
const duration = fc.oneof(fc.nat(2_000), fc.nat(20_000), fc.nat(90_000)).map((ms) => ms + 1);

/**
 * Each history has some kinds of deeds only (swarm testing: Groce et al., ISSTA 2012): what needs the same few again and again is met
 * more often in this way than where all are drawn. Every other deed is a submission.
 */
export const histories: fc.Arbitrary<History> = fc
  .record({
    seed: fc.nat(1_000_000),
    dispatch: fc.constantFrom(...DISPATCH_KINDS),
    local: fc.constantFrom(...LOCAL_KINDS),
    queue: fc.record({ lost: chance, doubled: chance, delayed: chance }),
    wires: fc.record({
      cut: fc.constantFrom(0, 0, 0.02, 0.2),
      lostAnswer: fc.constantFrom(0, 0, 0.02, 0.2),
      repeated: chance,
    }),
    disks: fc.constantFrom([1], [0, 1, 2, 3]),
    kinds: fc.subarray([...DEEDS], { minLength: 1 }),
    deeds: fc.array(
      fc.record({
        afterMs: fc.nat(15_000),
        kind: fc.nat(1_000_000),
        n: fc.nat(1_000_000),
        ms: duration,
      }),
      { minLength: 1, maxLength: 30, size: 'max' },
    ),
    lastMs: fc.constantFrom(0, 60_000),
  })
  .map(({ kinds, deeds, ...rest }) => {
    const kindOf = (n: number): Deed['kind'] =>
      n % 2 === 0 ? 'submit' : (kinds[(n >> 1) % kinds.length] as Deed['kind']);
    return { ...rest, deeds: deeds.map((deed) => ({ ...deed, kind: kindOf(deed.kind) })) };
  });

/** What shrinks further takes too long, ms. */
const SHRINK_MS = 120_000;

/** What of the promises a history breaks; null: nothing. */
export const broken = (history: History): Promise<string | null> => new Simulation(history).run();

/** Plays so many histories. Throws what the first of them breaks, with the shortest history that still breaks it. */
export async function play({
  seed,
  seeds,
  shrink,
}: {
  seed: number;
  seeds: number;
  shrink: boolean;
}): Promise<void> {
  const whole = fc.asyncProperty(histories, async (history) => {
    const what = await broken(history);
    if (what !== null) throw new Error(what);
  });
  const { failed, counterexamplePath } = await fc.check(whole, { seed, numRuns: seeds, endOnFailure: true });
  if (!failed) return;
  const again = { seed, path: counterexamplePath ?? '', numRuns: 1 };
  if (!shrink) await fc.assert(whole, { ...again, endOnFailure: true });
  await fc.assert(whole, { ...again, interruptAfterTimeLimit: SHRINK_MS, markInterruptAsFailure: true });
}

/** Plays some histories twice. Throws when that makes a difference. */
export async function playTwice(seed: number): Promise<void> {
  for (const history of fc.sample(histories, { seed, numRuns: 3 })) {
    const [one, other] = [new Simulation(history), new Simulation(history)];
    await one.run();
    await other.run();
    deepStrictEqual(other.store.events, one.store.events, 'the same history makes the same events');
    deepStrictEqual(other.time.now, one.time.now, 'the same history takes the same time');
  }
}
