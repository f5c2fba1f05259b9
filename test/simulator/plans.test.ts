/** What `npm run test:plans` compares the plans of two commits with (test/plans/) finds a difference, and nothing where there is none. */
import { expect, test } from 'vitest';
import { dispatchKinds } from '../../src/core/dispatch/registry.js';
import { DEFAULT_POLICY, parsePolicy, plainJob } from '../../src/core/index.js';
import { localKinds } from '../../src/core/local/registry.js';
import { runSimulation } from '../../src/simulator/engine.js';
import { compare, type Door } from '../plans/play.js';
import { cases, SEED } from '../support/seed.js';

const door: Door = { DEFAULT_POLICY, parsePolicy, plainJob, dispatchKinds, localKinds, runSimulation };

test('a commit makes the same plans as itself, under all policies', () => {
  const { broken, grids, kinds, lines } = compare(door, door, cases(400), SEED);
  expect(broken).toBeNull();
  expect([...kinds.keys()].sort()).toEqual(
    [...dispatchKinds, ...localKinds]
      .map(({ schema }) => schema.shape.kind.value as string)
      .filter((kind) => kind !== 'external')
      .sort(),
  );
  // A plan of a few jobs has dozens of lines, so what is compared is not what nothing happened in.
  expect(lines).toBeGreaterThan(10 * grids);
});

test('a job that starts at another time, or elsewhere, is a difference', () => {
  const late: Door = {
    ...door,
    plainJob: (given) => door.plainJob({ ...given, estimateS: given.estimateS + (given.id === 2 ? 1 : 0) }),
  };
  const { broken } = compare(door, late, 100, SEED, true);
  expect(broken?.difference).toMatch(/^- .*\n\+ .*/m);
});
