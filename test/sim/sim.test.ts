/** The whole system in a seeded simulation: `npm run test:sim -- --seeds N [--seed S]` plays more of it. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { cases, SEED } from '../support/seed.js';
import type { History } from './history.js';
import { mutants } from './mutants.mjs';
import { broken, play, playTwice } from './play.js';

test(`whatever fails, no promise is broken; and once faults stop, everything ends (seed ${SEED})`, () =>
  play({ seed: SEED, seeds: cases(100), shrink: true, peers: false }));

// Always the same: `npm run test:sim` plays others.
test('and none across services that are peers', () => play({ seed: 1, seeds: 3, shrink: false }));

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
  'a run is cancelled whose record its agent has lost with the power': {
    ...{ seed: 885513, dispatch: 'job-ratio', local: 'flexible', disks: [1], lastMs: 0 },
    queue: { lost: 0.3, doubled: 0, delayed: 0 },
    wires: { cut: 0.2, lostAnswer: 0.02, repeated: 0.5 },
    deeds: [
      { afterMs: 797, kind: 'submit', n: 314072, ms: 1908 },
      { afterMs: 13156, kind: 'pause api', n: 879999, ms: 1249 },
      { afterMs: 3191, kind: 'cancel', n: 659356, ms: 208 },
      { afterMs: 524, kind: 'pause worker', n: 639264, ms: 40991 },
      { afterMs: 4875, kind: 'power cut', n: 312468, ms: 710 },
      { afterMs: 13207, kind: 'submit', n: 153585, ms: 82 },
      { afterMs: 4327, kind: 'agent clock', n: 804560, ms: 1964 },
      { afterMs: 12932, kind: 'kill worker', n: 983647, ms: 6090 },
      { afterMs: 14101, kind: 'submit', n: 441634, ms: 803 },
      { afterMs: 14931, kind: 'submit', n: 495868, ms: 9787 },
    ],
  },
  'an agent has started again since the backup from which the database is restored': {
    ...QUIET,
    services: 1,
    deeds: [
      { afterMs: 0, kind: 'submit', n: 548_859, ms: 1 },
      { afterMs: 0, kind: 'restore', n: 0, ms: 134 },
      { afterMs: 7, kind: 'kill agent', n: 544_508, ms: 4 },
      { afterMs: 48_024, kind: 'submit', n: 326_371, ms: 1_315 },
    ],
  },
  'a job at a peer is to be stopped, and the peer was restored to before it had it': {
    ...QUIET,
    services: 2,
    forward: 'ALWAYS',
    disks: [0, 1, 2, 3],
    deeds: [
      { afterMs: 5_745, kind: 'submit', n: 399_381, ms: 7_428 },
      { afterMs: 33_681, kind: 'restore', n: 232_816, ms: 15_820 },
      { afterMs: 11_200, kind: 'restore', n: 265_045, ms: 19_280 },
      { afterMs: 24_601, kind: 'submit', n: 561_712, ms: 70_730 },
    ],
  },
  'a run is lost while its job is being cancelled, and its agent comes back': {
    ...QUIET,
    deeds: [
      { afterMs: 0, kind: 'submit', n: 999993, ms: 1 },
      { afterMs: 4276, kind: 'submit', n: 62232, ms: 1 },
      { afterMs: 10148, kind: 'submit', n: 0, ms: 1 },
      { afterMs: 1001, kind: 'submit', n: 0, ms: 1 },
      { afterMs: 11877, kind: 'submit', n: 598600, ms: 9 },
      { afterMs: 4112, kind: 'kill agent', n: 852807, ms: 1551 },
      { afterMs: 8668, kind: 'pause agent', n: 687424, ms: 70393 },
      { afterMs: 179, kind: 'pause agent', n: 999985, ms: 72791 },
      { afterMs: 10501, kind: 'power cut', n: 239194, ms: 13857 },
      { afterMs: 926, kind: 'submit', n: 487163, ms: 1832 },
      { afterMs: 6372, kind: 'machine', n: 268902, ms: 65839 },
      { afterMs: 11931, kind: 'submit', n: 9, ms: 1973 },
      { afterMs: 9804, kind: 'pause agent', n: 827860, ms: 16941 },
      { afterMs: 13, kind: 'submit', n: 856397, ms: 1991 },
      { afterMs: 14991, kind: 'kill agent', n: 999986, ms: 9 },
      { afterMs: 11633, kind: 'pause agent', n: 569722, ms: 80830 },
      { afterMs: 13259, kind: 'submit', n: 6, ms: 89992 },
      { afterMs: 1856, kind: 'submit', n: 666437, ms: 37751 },
    ],
  },
};

test.each(Object.entries(found))('%s', async (_, history) => {
  expect(await broken(history)).toBeNull();
});

test('the same history again makes the same again', () => playTwice(SEED, cases(20)));

test('each breakage of `npm run test:mutants` is one of the present code', () => {
  for (const { what, also, ...change } of mutants)
    for (const { file, find } of also ? [change, also] : [change])
      expect(readFileSync(packagePath(file), 'utf8'), what).toContain(find);
});
