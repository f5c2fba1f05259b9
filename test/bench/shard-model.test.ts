/** The model behind docs/shards.md: its queues wait as theory says, and what must not change the numbers does not. */
import { expect, it } from 'vitest';
import { COSTS } from '../../bench/shardCosts.js';
import { Clock, Server, simulateShards } from '../../bench/shardModel.js';
import { RandomStream } from '../../src/core/random.js';

/** Mean wait before the service, where tasks of equal length come at random. */
function meanWaitS(load: number, serviceS: number, tasks: number): number {
  const clock = new Clock();
  const server = new Server(clock);
  const random = new RandomStream(1, 'arrivals');
  let waited = 0;
  let left = tasks;
  const arrive = (): void => {
    const at = clock.now;
    server.do(serviceS, () => {
      waited += clock.now - at - serviceS;
    });
    if (--left > 0) clock.after(random.exponential(serviceS / load), arrive);
  };
  arrive();
  clock.runUntil((tasks * serviceS * 2) / load);
  return waited / tasks;
}

it.each([0.3, 0.6, 0.8])('a server with a load of %d waits as M/D/1 does', (load) => {
  const serviceS = 0.002;
  const expected = (load * serviceS) / (2 * (1 - load));
  expect(meanWaitS(load, serviceS, 200_000) / expected).toBeCloseTo(1, 1);
});

/** A tenth of the grid, so that it takes little time. */
const small = { sites: 1_000, jobsPerS: 1_000, seconds: 6, warmUpS: 2 };

it('is the same for the same seed, and another for another', () => {
  const [one, again, other] = [1, 1, 2].map((seed) => simulateShards({ ...small, shards: 4, seed }));
  expect(again).toEqual(one);
  expect(other).not.toEqual(one);
});

it('starts what is submitted while nothing is full, and no more', () => {
  const outcome = simulateShards({ ...small, shards: 16 });
  expect(outcome.fallsBehind).toBe(false);
  expect(outcome.started).toBeLessThanOrEqual(outcome.submitted);
  expect(outcome.submitted - outcome.started).toBeLessThan(small.jobsPerS);
  // Nothing starts before its way has been gone: four commits with a flush each (submitted, moved, handed over, moved), and the start's.
  expect(outcome.p50S).toBeGreaterThan(5 * COSTS.flushS + 3 * COSTS.wakeS);
});

it('falls behind where the planner has more sites than it can weigh', () => {
  const outcome = simulateShards({ ...small, sites: 10_000, shards: 1 });
  expect(outcome).toMatchObject({ fallsBehind: true, rootPlanner: 1 });
  const { jobS, jobAndChildS } = COSTS.plan;
  expect(outcome.startedPerS).toBeLessThan(1 / (jobS + jobAndChildS * 10_000));
});

it('spares the root what goes to a shard at once', () => {
  const all = simulateShards({ ...small, shards: 16 });
  const tenth = simulateShards({ ...small, shards: 16, throughRoot: 0.1 });
  expect(tenth.rootLock).toBeLessThan(0.3 * all.rootLock);
});

it('is helped by gathered starts where a flush takes long', () => {
  const slow = { ...small, shards: 1, sites: 500, costs: { ...COSTS, flushS: 0.005 } };
  expect(simulateShards({ ...slow, gathersStarts: false }).fallsBehind).toBe(true);
  expect(simulateShards(slow).fallsBehind).toBe(false);
});
