/** Machines that several jobs share in time, and sites with a limit of running jobs (hierarchical-clusters.md). */
import { describe, expect, it } from 'vitest';
import { type Grid, type LocalPolicy, placement, whyWaiting } from '../../src/core/index.js';
import { job } from './support/drive.js';
import { apply, gridOf, machine, plan, policyWith } from './support/grids.js';

const FCFS = policyWith('NONE', { kind: 'fcfs' });
const FIRST_FIT = policyWith('NONE', { kind: 'first-fit', ageBoundS: 100 });

/** One site of machines of one CPU that take so many tasks each. */
const shared = (maxTasks: readonly number[], maxRunningJobs: number | null = null): Grid => {
  const grid = gridOf(maxTasks.map((places, i) => ({ id: i + 1, cpus: 1, maxTasks: places })));
  grid.setSite({ id: 1, name: 'one', state: 'UP', localPolicy: null, maxRunningJobs });
  return grid;
};

/** Machines that each start took, by job. */
const started = (grid: Grid, now = 0, policy = FCFS): [number, number[]][] =>
  apply(grid, now, policy).starts.map(({ jobId, allocations }) => [
    jobId,
    allocations.map(({ machineId }) => machineId),
  ]);

describe('placement', () => {
  it('deals tasks out to different machines, from the one with the fewest on, round, past the full ones', () => {
    const grid = shared([2, 1, 2, 2]);
    [1, 2, 3, 2].forEach((tasks, i) => {
      grid.placeAtSite(job({ id: i + 1, tasks, submittedAt: i }), 1);
    });
    expect(started(grid)).toEqual([
      [1, [1]],
      [2, [2, 3]],
      // From the empty fourth on: the second is full.
      [3, [4, 1, 3]],
    ]);
    expect(whyWaiting(grid, 4, { now: 0, policy: FCFS })).toMatchObject({
      code: 'MAX_TASKS_REACHED',
      message: 'Too few time-shared machines accept another task: it needs 2, 1 do.',
    });
    grid.endRun(1);
    expect(started(grid)).toEqual([[4, [1, 4]]]);
  });

  it('takes the machine with the largest capacity for a further task first', () => {
    const grid = gridOf([
      { id: 1, cpus: 1, benchmark: 1, maxTasks: 9 },
      { id: 2, cpus: 1, benchmark: 4, maxTasks: 9 },
      { id: 3, cpus: 6, benchmark: 1, maxTasks: 9 },
    ]);
    for (let id = 1; id <= 4; id++) grid.placeAtSite(job({ id, submittedAt: id }), 1);
    grid.placeAtSite(job({ id: 5, submittedAt: 5, tasks: 2 }), 1);
    // One more task would get 6, 4 and 1; then 3, 4 and 1; then 3, 2, 1 and 2, 2, 1: the more powerful machine goes first.
    expect(started(grid)).toEqual([
      [1, [3]],
      [2, [2]],
      [3, [3]],
      [4, [2]],
      [5, [3, 2]],
    ]);
  });

  it('takes memory, and no CPUs', () => {
    const grid = gridOf([{ id: 1, cpus: 2, memoryMb: 100, maxTasks: 9 }]);
    for (let id = 1; id <= 4; id++)
      grid.placeAtSite(job({ id, cpusPerTask: 2, memoryMbPerTask: 30, estimateS: 10 }), 1);
    expect(started(grid)).toHaveLength(3);
    expect(whyWaiting(grid, 4, { now: 0, policy: FCFS })).toMatchObject({ code: 'MEMORY_BUSY' });
  });

  it('never takes a job of more tasks than machines, or of tasks wider than a machine', () => {
    const grid = shared([9, 9]);
    grid.placeAtRoot(job({ id: 1, tasks: 3 }));
    grid.placeAtRoot(job({ id: 2, cpusPerTask: 2 }));
    const context = { now: 0, policy: FCFS };
    expect(whyWaiting(grid, 1, context)).toMatchObject({ code: 'NEVER_FITS_CPUS' });
    expect(whyWaiting(grid, 2, context)).toMatchObject({ code: 'NEVER_FITS_CPUS' });
  });
});

describe('a limit of running jobs', () => {
  it('holds whatever is free', () => {
    const grid = shared([4, 4], 2);
    for (let id = 1; id <= 3; id++) grid.placeAtSite(job({ id, submittedAt: id }), 1);
    expect(started(grid)).toHaveLength(2);
    expect(whyWaiting(grid, 3, { now: 0, policy: FCFS })).toMatchObject({
      code: 'MAX_RUNNING_JOBS_REACHED',
      message: 'The site already runs 2 jobs, its limit.',
    });
    const run = { jobId: 3, siteId: 1, epoch: 1, allocations: [{ machineId: 1, tasks: 1 }], pools: [] };
    expect(() => grid.startRun({ ...run, start: 0, plannedEnd: 1 })).toThrow('as many jobs as it may');
    grid.endRun(1);
    expect(started(grid)).toEqual([[3, [1]]]);
  });
});

describe('local policies where nobody knows when runs end', () => {
  const crowded = (): Grid => {
    const grid = shared([1, 1]);
    grid.placeAtSite(job({ id: 9, submittedAt: 0 }), 1);
    started(grid);
    grid.placeAtSite(job({ id: 1, tasks: 2, submittedAt: 1 }), 1);
    grid.placeAtSite(job({ id: 2, submittedAt: 2, estimateS: 5 }), 1);
    return grid;
  };

  it.each<LocalPolicy>([
    { kind: 'fcfs' },
    { kind: 'easy' },
    { kind: 'conservative', depth: 10 },
    { kind: 'hybrid', reservations: 2 },
  ])('$kind serves the head only, and reserves nothing', (local) => {
    const made = plan(crowded(), 2, policyWith('NONE', local));
    expect(made).toMatchObject({ starts: [], reservation: null, memory: null });
  });

  it('First Fit goes past what does not fit, until that has waited too long', () => {
    expect(started(crowded(), 101, FIRST_FIT)).toEqual([[2, [2]]]);
    expect(started(crowded(), 102, FIRST_FIT)).toEqual([]);
  });

  it('a dry run knows of a start now, and else of none', () => {
    const grid = shared([1, 1]);
    const context = { now: 7, policy: FCFS };
    expect(placement(grid, job({ id: 9, tasks: 2, estimateS: 30 }), context).start).toMatchObject({
      at: 7,
      plannedDuration: 30,
      allocations: [
        { machineId: 1, tasks: 1 },
        { machineId: 2, tasks: 1 },
      ],
    });
    expect(placement(crowded(), job({ id: 10, tasks: 2 }), context).start).toBeNull();
  });
});

describe('Grid', () => {
  it('knows a machine again that is shared otherwise from now on, with what runs there', () => {
    const grid = shared([3]);
    for (let id = 1; id <= 3; id++) grid.placeAtSite(job({ id, submittedAt: id }), 1);
    expect(started(grid)).toHaveLength(3);
    for (let id = 4; id <= 5; id++) grid.placeAtSite(job({ id, submittedAt: id }), 1);
    expect(() => grid.removeMachine(1)).toThrow('machine 1 has live runs');
    grid.setMachine(machine({ id: 1, cpus: 1 }));
    grid.endRun(1);
    grid.endRun(2);
    expect(started(grid)).toEqual([]);
    grid.endRun(3);
    expect(started(grid)).toEqual([[4, [1]]]);
    grid.setMachine(machine({ id: 1, cpus: 1, maxTasks: 2 }));
    expect(started(grid)).toEqual([[5, [1]]]);
    expect(() => grid.setMachine(machine({ id: 3, maxTasks: 0 }))).toThrow('machine.maxTasks is 0');
  });
});
