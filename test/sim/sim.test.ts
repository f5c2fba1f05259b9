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
