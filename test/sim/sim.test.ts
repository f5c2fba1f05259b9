/**
 * The whole system in a seeded simulation. `npm run test:sim -- --seeds N [--seed S]` plays N histories, from seed S on; what it finds is
 * shown as the shortest history that still breaks the promise.
 */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { histories } from './histories.js';
import { type History, Simulation } from './simulation.js';

const seeds = Number(process.env.SIM_SEEDS ?? 100);
const seed = Number(process.env.SIM_SEED ?? 1);

test(
  'whatever fails, no promise is broken; and once faults stop, everything ends',
  async () => {
    await fc.assert(
      fc.asyncProperty(histories, async (history) => {
        expect(await new Simulation(history).run()).toBeNull();
      }),
      { seed, numRuns: seeds, endOnFailure: process.env.SIM_SHRINK === 'no' },
    );
  },
  24 * 3_600_000,
);

const QUIET = {
  seed: 0,
  dispatch: 'two-level',
  local: 'flexible',
  queue: { lost: 0, doubled: 0, delayed: 0 },
  wires: { cut: 0, lostAnswer: 0, repeated: 0 },
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
  expect(await new Simulation(history).run()).toBeNull();
});

test('the same history again makes the same again', async () => {
  for (const history of fc.sample(histories, { seed, numRuns: 3 })) {
    const [one, other] = [new Simulation(history), new Simulation(history)];
    await one.run();
    await other.run();
    expect(other.store.events).toEqual(one.store.events);
    expect(other.time.now).toBe(one.time.now);
  }
});
