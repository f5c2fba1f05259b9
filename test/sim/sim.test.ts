/** The whole system in a seeded simulation: `npm run test:sim -- --seeds N [--seed S]` plays more of it. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { mutants } from './mutants.mjs';
import { broken, play, playTwice } from './play.js';
import type { History } from './simulation.js';

const SEED = 1;

test(
  'whatever fails, no promise is broken; and once faults stop, everything ends',
  () => play({ seed: SEED, seeds: 100, shrink: true }),
  600_000,
);

const QUIET = {
  seed: 0,
  dispatch: 'two-level',
  local: 'flexible',
  queue: { lost: 0, doubled: 0, delayed: 0 },
  wires: { cut: 0, lostAnswer: 0, repeated: 0 },
  disks: [1],
  lastMs: 0,
};

/** What was found, each as the shortest history that showed it. */
const found: Record<string, History> = {
  "the database's clock is set back between an assignment and the report of its start": {
    ...QUIET,
    deeds: [
      { afterMs: 0, kind: 'submit', n: 0, ms: 1 },
      { afterMs: 35, kind: 'submit', n: 0, ms: 1 },
      { afterMs: 4, kind: 'database clock', n: 264_297, ms: 419 },
      { afterMs: 0, kind: 'submit', n: 0, ms: 1 },
    ],
  },
  'a promise stays behind a hole of the fastest machine, which is judged by how long the job would take on the slowest':
    {
      ...QUIET,
      seed: 3,
      dispatch: 'diana',
      disks: [0, 1, 2, 3],
      deeds: [
        { afterMs: 148, kind: 'queue away', n: 927935, ms: 226 },
        { afterMs: 10014, kind: 'submit', n: 9467, ms: 5240 },
        { afterMs: 12744, kind: 'submit', n: 607412, ms: 6298 },
        { afterMs: 13567, kind: 'submit', n: 690662, ms: 17507 },
        { afterMs: 13747, kind: 'submit', n: 877980, ms: 7479 },
        { afterMs: 5778, kind: 'machine', n: 235943, ms: 17103 },
        { afterMs: 8165, kind: 'dataset', n: 203619, ms: 74401 },
        { afterMs: 13603, kind: 'cut worker', n: 834013, ms: 47618 },
        { afterMs: 2988, kind: 'submit', n: 500918, ms: 80430 },
        { afterMs: 976, kind: 'submit', n: 57635, ms: 3661 },
        { afterMs: 11146, kind: 'queue away', n: 100907, ms: 18460 },
        { afterMs: 1802, kind: 'pause api', n: 538272, ms: 11223 },
        { afterMs: 2686, kind: 'store away', n: 537700, ms: 635 },
        { afterMs: 13061, kind: 'kill worker', n: 690176, ms: 10029 },
        { afterMs: 14355, kind: 'submit', n: 465742, ms: 64525 },
        { afterMs: 9082, kind: 'cut worker', n: 174383, ms: 1459 },
        { afterMs: 12010, kind: 'policy', n: 309799, ms: 1266 },
        { afterMs: 3073, kind: 'policy', n: 733063, ms: 16037 },
        { afterMs: 3690, kind: 'site', n: 114485, ms: 25224 },
        { afterMs: 3621, kind: 'submit', n: 12350, ms: 3061 },
        { afterMs: 8676, kind: 'link', n: 578542, ms: 714 },
        { afterMs: 6900, kind: 'submit', n: 527577, ms: 17623 },
        { afterMs: 4699, kind: 'submit', n: 321249, ms: 14236 },
        { afterMs: 10564, kind: 'submit', n: 556122, ms: 9355 },
      ],
    },
};

test.each(Object.entries(found))('%s', async (_, history) => {
  expect(await broken(history)).toBeNull();
});

test('the same history again makes the same again', () => playTwice(SEED));

test('each breakage of `npm run test:mutants` is one of the present code', () => {
  for (const { what, also, ...change } of mutants)
    for (const { file, find } of also ? [change, also] : [change])
      expect(readFileSync(packagePath(file), 'utf8'), what).toContain(find);
});
