/** Processor sharing in the simulator, and the root's queues over it (hierarchical-clusters.md). */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DEFAULT_POLICY,
  type LocalPolicy,
  type Policy,
  plainJob,
  type QueuesPolicy,
} from '../../src/core/index.js';
import { type EngineOptions, runSimulation, type World } from '../../src/simulator/engine.js';
import { MemorySink } from '../../src/simulator/sink.js';
import { whatIf } from '../../src/simulator/what-if.js';
import type { SimJob } from '../../src/simulator/workload.js';
import { job } from '../core/support/drive.js';
import { machine } from '../core/support/grids.js';
import { recorded } from '../support/recorded.js';
import { cases } from '../support/seed.js';

const FF: LocalPolicy = { kind: 'first-fit', ageBoundS: null };

/** A job of tasks of one CPU that compute for so many seconds each, in sections of one. */
const of = (tasks: number, runS: number, submittedAt = 0, more: Partial<SimJob['job']> = {}) => ({
  tasks,
  runS,
  submittedAt,
  more,
});

const simJobs = (given: readonly ReturnType<typeof of>[]): SimJob[] =>
  given.map(({ tasks, runS, submittedAt, more }, i) => ({
    job: job({ id: i + 1, submittedAt, tasks, estimateS: runS, ...more }),
    sourceId: i + 1,
    runS,
    limitS: null,
    sectionS: 1,
    siteId: null,
  }));

const queues = (given: Partial<QueuesPolicy> = {}, local: LocalPolicy = { kind: 'fcfs' }): Policy => ({
  ...DEFAULT_POLICY,
  local,
  dispatch: { kind: 'queues', order: 'FCFS', queueLimit: 0, ageBoundS: null, ...given },
});

/** Sites of machines that take so many tasks each. */
const worldOf = (sites: readonly (readonly number[])[], maxRunningJobs: number | null = null): World => ({
  sites: sites.map((_, i) => ({
    id: i + 1,
    name: `site-${i + 1}`,
    state: 'UP',
    localPolicy: null,
    maxRunningJobs,
  })),
  machines: sites.flatMap((places, i) =>
    places.map((maxTasks, m) => machine({ id: 10 * i + m + 1, siteId: i + 1, cpus: 1, maxTasks })),
  ),
  licenses: [],
  changes: [],
});

/** When each job starts and ends. */
function run(
  world: World,
  given: readonly ReturnType<typeof of>[],
  policy = queues({ order: 'FF' }),
  options: Partial<EngineOptions> = {},
): { starts: number[]; ends: number[] } {
  const jobs = simJobs(given);
  const times = new MemorySink(jobs.length);
  runSimulation(world, jobs, { policy, eventOrder: 'batch', ...options }, [times]);
  return { starts: [...times.starts], ends: [...times.ends] };
}

describe('time-shared machines', () => {
  it('share the CPU equally among the tasks that run', () => {
    // Both at half speed until the short one ends at 2; then 2 seconds are left at full speed.
    expect(run(worldOf([[2]]), [of(1, 3), of(1, 1)]).ends).toEqual([4, 2]);
  });

  it('hold the tasks of a job together, section by section', () => {
    // The task beside the sequential job takes twice as long for each section; the other waits for it.
    expect(run(worldOf([[2, 2]]), [of(1, 10), of(2, 2.5)]).ends).toEqual([12.5, 5]);
  });

  it('let nobody use more CPUs than it asks for, and run at their power', () => {
    const world = worldOf([[4]]);
    const four = { ...world, machines: [machine({ id: 1, cpus: 4, benchmark: 2, maxTasks: 4 })] };
    expect(run(four, [of(1, 8)]).ends).toEqual([4]);
    expect(run(four, [of(1, 8), of(1, 8), of(1, 8)]).ends).toEqual([4, 4, 4]);
    // Three tasks have a third of 4 CPUs each: 2/3 of what the wide ones ask for, enough for the narrow one.
    const wide = { cpusPerTask: 2 };
    expect(run(four, [of(1, 4, 0, wide), of(1, 4, 0, wide), of(1, 2)]).ends).toEqual([
      expect.closeTo(7 / 3, 9),
      expect.closeTo(7 / 3, 9),
      1,
    ]);
  });

  it('start over what a lost machine ran, and go on with the others', () => {
    const world = worldOf([[2, 2]]);
    const lost = { ...(world.machines[0] as World['machines'][number]), available: false };
    const changes = [
      { at: 1, machine: lost, losesRuns: true },
      { at: 2, machine: world.machines[0] as World['machines'][number] },
    ];
    // The pair is lost at 1 and starts again at 2, with 4 seconds to go of 5 for the single one that had waited for it.
    const { starts, ends } = run({ ...world, changes }, [of(1, 5), of(2, 3)]);
    expect(starts).toEqual([1, 2]);
    expect(ends[1]).toBe(8);
  });

  it('do all work that there is as fast as CPUs allow: one machine, whatever shares it', () => {
    const any = fc.array(fc.record({ runS: fc.integer({ min: 1, max: 9 }), submittedAt: fc.nat(20) }), {
      minLength: 1,
      maxLength: 12,
    });
    fc.assert(
      fc.property(any, fc.integer({ min: 1, max: 4 }), (given, places) => {
        const jobs = given
          .map(({ runS, submittedAt }) => of(1, runS, submittedAt))
          .sort((a, b) => a.submittedAt - b.submittedAt);
        const { ends } = run(worldOf([[places]]), jobs);
        // The machine is busy as long as there is work: the last end is that of one queue after another.
        let busyUntil = 0;
        for (const { runS, submittedAt } of jobs) busyUntil = Math.max(busyUntil, submittedAt) + runS;
        expect(Math.max(...ends)).toBeCloseTo(busyUntil, 6);
      }),
    );
  });

  it('give each of n tasks an nth, whatever the times of their coming: ends by a second way of counting', () => {
    const any = fc.array(fc.record({ runS: fc.integer({ min: 1, max: 9 }), submittedAt: fc.nat(15) }), {
      minLength: 1,
      maxLength: 8,
    });
    fc.assert(
      fc.property(any, (given) => {
        const jobs = given
          .map(({ runS, submittedAt }) => of(1, runS, submittedAt))
          .sort((a, b) => a.submittedAt - b.submittedAt);
        const { ends } = run(worldOf([[9]]), jobs);
        const left = jobs.map(({ runS }) => runS);
        const step = 1 / 840;
        jobs.forEach(({ submittedAt }, i) => {
          expect(ends[i]).toBeGreaterThanOrEqual(submittedAt + (left[i] as number) - 1e-6);
        });
        for (let at = 0; left.some((rest) => rest > 1e-6); at += step) {
          const here = jobs.flatMap(({ submittedAt }, i) =>
            submittedAt <= at + 1e-9 && (left[i] as number) > 1e-6 ? [i] : [],
          );
          for (const i of here) {
            left[i] = (left[i] as number) - step / here.length;
            if ((left[i] as number) <= 1e-6) expect(Math.abs((ends[i] as number) - at)).toBeLessThan(0.05);
          }
        }
      }),
      { numRuns: cases(40) },
    );
  });
});

describe('a what-if', () => {
  it('counts what jobs compute on shared machines, not how long they are there', () => {
    const { sites, machines } = worldOf([[2]]);
    const nothing = {
      licenses: [],
      schedulers: [],
      datasets: [],
      links: [],
      images: [],
      quotas: [],
      totals: [],
      reported: [],
    };
    const grid = { sites: [...sites], machines: [...machines], ...nothing };
    const past = (id: number) =>
      recorded(plainJob({ id, submittedAt: 0, estimateS: 10, application: 'app' }));
    const window = { trace: null, from: 0, holds: [], acceptDistance: false };
    const pages = [JSON.stringify([1, 2].map((id) => [past(id), [20, 10, 1, 0]]))];
    const policy = queues({ order: 'FF' });
    const { all } = whatIf({ baseline: policy, candidate: policy, ...grid, pages, ...window });
    expect(all.baseline).toMatchObject({ ended: 2, utilization: 1, slowdownMean: 2, waitMeanS: 0 });
  });
});

describe('the root over sites with queues', () => {
  const four = [of(1, 5), of(2, 9), of(2, 3), of(1, 4)];
  const orderOf = (global: QueuesPolicy['order'], local: LocalPolicy, queueLimit: number): number[] => {
    const policy = queues({ order: global, queueLimit }, local);
    const { starts } = run(worldOf([[1, 1]], 3), four, policy, { movesAtOnce: 1 });
    return [0, 1, 2, 3]
      .sort((a, b) => (starts[a] as number) - (starts[b] as number) || a - b)
      .map((i) => i + 1);
  };

  it('serves in the order of each policy', () => {
    expect(orderOf('FCFS', { kind: 'fcfs' }, 9)).toEqual([1, 2, 3, 4]);
    expect(orderOf('FCFS', { kind: 'sjf', ageBoundS: null }, 9)).toEqual([1, 3, 4, 2]);
    expect(orderOf('FCFS', FF, 9)).toEqual([1, 4, 2, 3]);
    expect(orderOf('S-SJF', { kind: 'fcfs' }, 0)).toEqual([1, 4, 3, 2]);
    expect(orderOf('L-SJF', { kind: 'fcfs' }, 0)).toEqual([3, 2, 1, 4]);
  });

  it('can be told to look at arrivals only', () => {
    const once = run(worldOf([[1, 1]]), four, queues({ order: 'FF' }), { dispatchAtArrivalsOnly: true });
    expect(once.starts.filter((at) => !Number.isNaN(at))).toEqual([0, 0]);
    const always = run(worldOf([[1, 1]]), four, queues({ order: 'FF' }));
    expect(always.starts.some(Number.isNaN)).toBe(false);
  });

  it('ends the starvation of a wide job by the age bound, and without it does not', () => {
    // One of two machines is always taken, by singles that come every second and stay for two.
    const singles = Array.from({ length: 400 }, (_, i) => of(1, 2, i));
    const jobs = [...singles.slice(0, 1), of(2, 5, 0.5), ...singles.slice(1)];
    for (const order of ['SJF', 'S-SJF', 'FF'] as const) {
      const startOf = (ageBoundS: number | null): number =>
        run(worldOf([[1, 1]]), jobs, queues({ order, ageBoundS })).starts[1] as number;
      expect(startOf(null)).toBeGreaterThan(399);
      const bounded = startOf(50);
      expect(bounded).toBeGreaterThan(50);
      expect(bounded).toBeLessThan(60);
    }
  });

  it('First Fit leaves no place idle that a waiting job fits, whatever else waits', () => {
    const anyJob = fc.record({
      tasks: fc.integer({ min: 1, max: 3 }),
      runS: fc.integer({ min: 1, max: 9 }),
      submittedAt: fc.nat(12),
    });
    const given = fc.record({
      sites: fc.array(fc.array(fc.integer({ min: 1, max: 2 }), { minLength: 1, maxLength: 3 }), {
        minLength: 1,
        maxLength: 3,
      }),
      maxRunningJobs: fc.constantFrom(null, 2),
      jobs: fc.array(anyJob, { minLength: 1, maxLength: 20 }),
    });
    fc.assert(
      fc.property(given, ({ sites, maxRunningJobs, jobs }) => {
        const list = [...jobs]
          .sort((a, b) => a.submittedAt - b.submittedAt)
          .map((one) => of(one.tasks, one.runS, one.submittedAt));
        const world = worldOf(sites, maxRunningJobs);
        const policy = queues({ order: 'FF' });
        const placed: { from: number; to: number; machineIds: number[]; siteId: number }[] = [];
        const simulated = simJobs(list);
        const started = new Array<number>(list.length).fill(Infinity);
        runSimulation(world, simulated, { policy, eventOrder: 'batch' }, [
          {
            ended: (_job, index, { allocations, siteId, start }, to) => {
              started[index] = start;
              placed.push({
                from: start,
                to,
                machineIds: allocations.map(({ machineId }) => machineId),
                siteId,
              });
            },
          },
        ]);
        for (const at of new Set(placed.flatMap(({ from, to }) => [from, to]))) {
          const live = placed.filter(({ from, to }) => from <= at && at < to);
          const open = world.sites.map(({ id }) => {
            const here = live.filter(({ siteId }) => siteId === id);
            const tasksOn = (machineId: number) =>
              here.filter(({ machineIds }) => machineIds.includes(machineId)).length;
            for (const { id: machineId, siteId, maxTasks } of world.machines)
              if (siteId === id) expect(tasksOn(machineId)).toBeLessThanOrEqual(maxTasks as number);
            expect(here.length).toBeLessThanOrEqual(maxRunningJobs ?? Infinity);
            if (here.length >= (maxRunningJobs ?? Infinity)) return 0;
            return world.machines.filter((m) => m.siteId === id && tasksOn(m.id) < (m.maxTasks as number))
              .length;
          });
          list.forEach(({ tasks, submittedAt }, i) => {
            if (submittedAt <= at && (started[i] as number) > at)
              expect(Math.max(...open)).toBeLessThan(tasks);
          });
        }
      }),
      { numRuns: cases(300) },
    );
  });
});
