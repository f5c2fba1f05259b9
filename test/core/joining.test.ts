/** Jobs that keep their machines for their user, under every local policy. */
import { describe, expect, it } from 'vitest';
import { type Grid, type LocalPolicy, siteCycle, whyWaiting } from '../../src/core/index.js';
import { withParts } from '../support/plain-job.js';
import { job } from './support/drive.js';
import { gridOf, policyWith } from './support/grids.js';

const LOCALS: LocalPolicy[] = [
  { kind: 'easy' },
  { kind: 'easy', backfill: 'SHORTEST' },
  policyWith('NONE').local,
  { kind: 'fcfs' },
  { kind: 'sjf', ageBoundS: null },
  { kind: 'first-fit', ageBoundS: 1 },
  { kind: 'first-fit', ageBoundS: null },
  { kind: 'conservative', depth: 100 },
  { kind: 'hybrid', reservations: 2 },
];

/** Ids of the jobs that start, and are running from now on. */
function cycle(grid: Grid, local: LocalPolicy, now: number): number[] {
  const policy = policyWith('NONE', local);
  const plan = siteCycle(grid, 1, { now, policy, policyVersion: 1, maxStarts: 100 });
  for (const { jobId, allocations, pools, plannedDuration } of plan.starts) {
    const plannedEnd = now + plannedDuration;
    grid.startRun({ jobId, siteId: 1, epoch: 1, allocations, pools, start: now, plannedEnd });
  }
  grid.setReservation(1, plan.reservation);
  grid.keepMemory(1, plan.memory);
  return plan.starts.map(({ jobId }) => jobId).sort((a, b) => a - b);
}

describe.each(LOCALS)('under $kind', (local) => {
  it('jobs of its user join it as far as its tasks leave room, and nobody else does', () => {
    const grid = gridOf([{ id: 1, cpus: 8 }]);
    const put = (id: number, userId: number, cpusPerTask: number, exclusive: 'USER' | null = null): void =>
      grid.placeAtSite(job({ id, userId, cpusPerTask, exclusive }), 1);
    put(11, 1, 2, 'USER');
    put(12, 1, 4);
    put(13, 1, 1, 'USER');
    put(14, 1, 1);
    put(15, 2, 1);
    put(16, 1, 1);
    expect(cycle(grid, local, 0)).toEqual([11, 12, 13, 14]);
    expect(cycle(grid, local, 1)).toEqual([]);
    const waiting = whyWaiting(grid, 15, { now: 1, policy: policyWith('NONE', local) });
    expect(waiting?.message).toContain(' 1 are kept for the jobs of one user each.');
    // The last that keeps the machine, not the first, gives it to others.
    grid.endRun(11);
    grid.endRun(14);
    expect(cycle(grid, local, 2)).not.toContain(15);
    grid.endRun(13);
    expect(cycle(grid, local, 3)).toContain(15);
  });

  it('parts of one job share the machine that one of them keeps, whichever comes first, and leave what they do not ask for', () => {
    for (const keeperFirst of [true, false]) {
      const grid = gridOf([{ id: 1, cpus: 8 }]);
      const keeper = { cpusPerTask: 2, exclusive: 'USER' as const };
      const other = { tasks: 2, cpusPerTask: 1 };
      const parts = withParts(keeperFirst ? [keeper, other] : [other, keeper]);
      grid.placeAtSite(job({ id: 1, userId: 1, ...parts }), 1);
      expect(cycle(grid, local, 0)).toEqual([1]);
      const put = (id: number, userId: number, cpusPerTask: number): void =>
        grid.placeAtSite(job({ id, userId, cpusPerTask }), 1);
      put(2, 1, 4);
      put(3, 2, 1);
      expect(cycle(grid, local, 1)).toEqual([2]);
      put(4, 1, 1);
      expect(cycle(grid, local, 2)).toEqual([]);
      grid.endRun(1);
      expect(grid.siteEntry(1).resources.free.room[0]).toBe(4);
      expect(cycle(grid, local, 3)).toEqual([3, 4]);
      // Two keepers beside each other.
      const two = withParts([keeper, keeper]);
      const alone = gridOf([{ id: 1, cpus: 4 }]);
      alone.placeAtSite(job({ id: 1, userId: 1, ...two }), 1);
      expect(cycle(alone, local, 0)).toEqual([1]);
      alone.endRun(1);
      expect(alone.siteEntry(1).resources.free.room).toEqual([4, 1000, 0]);
    }
  });

  it('it starts beside jobs of its user, and not beside others', () => {
    const grid = gridOf([
      { id: 1, cpus: 4 },
      { id: 2, cpus: 4 },
    ]);
    const run = (id: number, userId: number, machineId: number): void =>
      grid.restoreRun(
        {
          ...{ jobId: id, siteId: 1, epoch: 1, pools: [], start: 0, plannedEnd: 100 },
          allocations: [{ machineId, tasks: 1 }],
        },
        job({ id, userId }),
      );
    run(1, 2, 1);
    run(2, 1, 2);
    grid.placeAtSite(job({ id: 3, userId: 1, exclusive: 'USER', cpusPerTask: 3 }), 1);
    grid.placeAtSite(job({ id: 4, userId: 3, exclusive: 'USER' }), 1);
    expect(cycle(grid, local, 0)).toEqual([3]);
    expect(grid.siteEntry(1).resources.runs.find(({ jobId }) => jobId === 3)?.run.allocations).toEqual([
      { machineId: 2, tasks: 1 },
    ]);
    const waiting = whyWaiting(grid, 4, { now: 0, policy: policyWith('NONE', local) });
    expect(waiting).toMatchObject({ code: 'OTHER_USERS_BUSY', numbers: { machines: 2, idleMachines: 0 } });
  });
});

describe.each(LOCALS.filter(({ kind }) => kind !== 'fcfs' && kind !== 'sjf'))('under $kind', (local) => {
  it('who joins delays nothing that is promised', () => {
    if (local.kind === 'first-fit' && local.ageBoundS === null) return;
    for (const [estimateS, joins] of [
      [99, true],
      [100, false],
    ] as const) {
      const grid = gridOf([{ id: 1, cpus: 4 }]);
      grid.placeAtSite(job({ id: 1, userId: 1, exclusive: 'USER' }), 1);
      expect(cycle(grid, local, 0)).toEqual([1]);
      grid.placeAtSite(job({ id: 2, userId: 2, cpusPerTask: 4, estimateS: 10, submittedAt: -10 }), 1);
      grid.placeAtSite(job({ id: 3, userId: 1, estimateS }), 1);
      expect(cycle(grid, local, 1)).toEqual(joins ? [3] : []);
    }
  });
});
