/** Jobs whose machines are to be alike, and those that wait for one switch only so long, under every local policy. */
import { describe, expect, it } from 'vitest';
import {
  type Grid,
  type Job,
  type JobPart,
  type LocalPolicy,
  siteCycle,
  whyWaiting,
} from '../../src/core/index.js';
import { withParts } from '../support/plain-job.js';
import { job } from './support/drive.js';
import { dispatch, gridOf, policyWith } from './support/grids.js';

const LOCALS: LocalPolicy[] = [
  { kind: 'easy' },
  policyWith('NONE').local,
  { kind: 'fcfs' },
  { kind: 'sjf', ageBoundS: null },
  { kind: 'first-fit', ageBoundS: null },
  { kind: 'conservative', depth: 100 },
  { kind: 'hybrid', reservations: 2 },
];

/** Two machines on each of two switches, and one that says nothing of it. */
const site = (): Grid =>
  gridOf([
    ...['a', 'a', 'b', 'b'].map((on, i) => ({ id: i + 1, labels: { switch: on, rack: 'r' } })),
    { id: 5, labels: { rack: 'r' } },
  ]);

/** Each on the machine for as long as the test takes. */
function busy(grid: Grid, ...machines: number[]): void {
  for (const machineId of machines)
    grid.restoreRun(
      {
        ...{ jobId: 100 + machineId, siteId: 1, epoch: 1, pools: [], start: 0, plannedEnd: 1000 },
        allocations: [{ machineId, tasks: 1 }],
      },
      job({ id: 100 + machineId, cpusPerTask: 4 }),
    );
}

const wide = (given: Partial<Job>): Job => job({ id: 1, tasks: 2, cpusPerTask: 4, ...given });

function startsOf(grid: Grid, local: LocalPolicy, now: number): { on: number[][]; wakeAt: number } {
  const policy = policyWith('NONE', local);
  const plan = siteCycle(grid, 1, { now, policy, policyVersion: 1, maxStarts: 100 });
  return {
    on: plan.starts.map(({ allocations }) => allocations.map(({ machineId }) => machineId)),
    wakeAt: plan.wakeAt,
  };
}

describe.each(LOCALS)('under $kind', (local) => {
  it('tasks are on machines with the same labels', () => {
    const grid = site();
    busy(grid, 1);
    grid.placeAtSite(wide({ sameSwitch: { maxWaitS: null } }), 1);
    expect(startsOf(grid, local, 0).on).toEqual([[3, 4]]);
    const busier = site();
    busy(busier, 1, 3);
    busier.placeAtSite(wide({ allAlike: ['switch'] }), 1);
    expect(startsOf(busier, local, 0).on).toEqual([]);
    const why = whyWaiting(busier, 1, { now: 0, policy: policyWith('NONE', local) });
    expect(why?.code).toBe('ALL_ALIKE_BUSY');
    busier.placeAtSite(wide({ allAlike: ['rack'] }), 1);
    expect(startsOf(busier, local, 0).on).toEqual([[2, 4]]);
  });

  it('a preference is over so long after the job is eligible, and the site looks again then', () => {
    const grid = site();
    busy(grid, 1, 3);
    grid.placeAtSite(wide({ sameSwitch: { maxWaitS: 60 }, submittedAt: 5, eligibleAt: 10 }), 1);
    const before = startsOf(grid, local, 20);
    expect(before.on).toEqual([]);
    expect(before.wakeAt).toBe(70);
    expect(startsOf(grid, local, 69.9).on).toEqual([]);
    expect(startsOf(grid, local, 70)).toMatchObject({ on: [[2, 4]] });
    expect(grid.switchesFrom(grid.siteEntry(1))).toBe(Infinity);
  });
});

describe('of a job of several parts', () => {
  const parts = (...given: Partial<JobPart>[]): Partial<Job> => withParts(given);
  const two = { tasks: 2, cpusPerTask: 4 };

  it('each part has one switch of its own, and may wait for it for a time of its own', () => {
    const local = { kind: 'easy' } as const;
    const grid = site();
    busy(grid, 1, 3);
    // Nothing is free but 2 and 4, on different switches.
    const waits = { submittedAt: 5, eligibleAt: 10 };
    grid.placeAtSite(wide({ ...waits, ...parts({ ...two, sameSwitch: { maxWaitS: 60 } }, {}) }), 1);
    expect(startsOf(grid, local, 20)).toMatchObject({ on: [], wakeAt: 70 });
    expect(whyWaiting(grid, 1, { now: 20, policy: policyWith('NONE', local) })).toMatchObject({
      code: 'ALL_ALIKE_BUSY',
      numbers: { part: 0 },
    });
    expect(startsOf(grid, local, 69.9).on).toEqual([]);
    expect(startsOf(grid, local, 70).on).toEqual([[2, 4, 5]]);
    const free = site();
    const each = parts({ ...two, sameSwitch: { maxWaitS: null } }, { ...two, sameSwitch: { maxWaitS: 60 } });
    free.placeAtSite(wide({ ...waits, ...each }), 1);
    const [on] = startsOf(free, local, 20).on as [number[]];
    expect([on.slice(0, 2), on.slice(2)].map((of) => [...of].sort()).sort()).toEqual([
      [1, 2],
      [3, 4],
    ]);
  });

  it('the instants at which parts take machines on any switches are those at which the site looks', () => {
    const grid = site();
    busy(grid, 1, 2, 3, 4);
    const given = parts(
      { sameSwitch: { maxWaitS: 30 } },
      { sameSwitch: { maxWaitS: null } },
      { sameSwitch: { maxWaitS: 60 } },
    );
    grid.placeAtSite(wide({ submittedAt: 0, ...given }), 1);
    const entry = grid.siteEntry(1);
    for (const [now, next] of [
      [10, 30],
      [30, 60],
      [59, 60],
      [60, Infinity],
    ] as const) {
      grid.advance(now);
      expect(grid.switchesFrom(entry)).toBe(next);
      expect(grid.prefersSwitches).toBe(next < Infinity);
    }
  });
});

it('where no machines are alike a job that requires it goes nowhere, and one that prefers it waits as long as it would', () => {
  const grid = gridOf([{ id: 1 }, { id: 2, labels: { switch: 'a' } }]);
  grid.placeAtRoot(wide({ sameSwitch: { maxWaitS: null } }));
  grid.placeAtRoot(wide({ id: 2, sameSwitch: { maxWaitS: 60 } }));
  const policy = policyWith('MS');
  expect(dispatch(grid, policy, 0).moves).toEqual([]);
  for (const id of [1, 2])
    expect(whyWaiting(grid, id, { now: 0, policy })?.code).toBe('NEVER_FITS_ALL_ALIKE');
  expect(dispatch(grid, policy, 60).moves.map(({ jobId }) => jobId)).toEqual([2]);
});

it('on machines that are shared in time, too', () => {
  const grid = gridOf([
    ...['a', 'b', 'b'].map((on, i) => ({ id: i + 1, maxTasks: 2, labels: { switch: on } })),
  ]);
  grid.placeAtSite(wide({ sameSwitch: { maxWaitS: null } }), 1);
  expect(startsOf(grid, { kind: 'fcfs' }, 0).on).toEqual([[2, 3]]);
});

it('a site with its own scheduler gets jobs for one switch, of which that is told, and none for other labels', () => {
  const grid = gridOf([{ id: 1 }, { id: 2 }]);
  const load = { waitingJobs: 0, waitingS: 0, waitingCpuS: 0, busy: [] };
  grid.setSite({ id: 1, name: 'alps', state: 'UP', localPolicy: { kind: 'external' }, load });
  grid.placeAtRoot(wide({ sameSwitch: { maxWaitS: null } }));
  grid.placeAtRoot(wide({ id: 2, allAlike: ['rack'] }));
  expect(dispatch(grid, policyWith('MS'), 0).moves.map(({ jobId }) => jobId)).toEqual([1]);
});
