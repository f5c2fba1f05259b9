/** Which jobs a site's own scheduler is asked for, as another site can start them now. */
import { describe, expect, it } from 'vitest';
import { DEFAULT_POLICY, type Grid, type LocalPolicy, type Policy, recalls } from '../../src/core/index.js';
import { job } from './support/drive.js';
import { gridOf, machine } from './support/grids.js';

const policy: Policy = { ...DEFAULT_POLICY, local: { kind: 'easy' } };
const [SLURM, OWN] = [1, 2];
const external = (takeBackAfterS: number | null): LocalPolicy => ({
  kind: 'external',
  queueLimit: 100,
  takeBackAfterS,
});

/** The site with a scheduler of its own is full of jobs of others, and has so many of ours with 2 CPUs, handed over at 0, 1, …; the other is idle. */
function world(handedOver: number, takeBackAfterS: number | null = 60): Grid {
  const grid = gridOf([
    { id: 1, siteId: SLURM },
    { id: 2, siteId: OWN },
  ]);
  const { site } = grid.siteEntry(SLURM);
  const busy = [{ machineId: 1, cpus: 4, memoryMb: 0 }];
  grid.setSite({
    ...site,
    localPolicy: external(takeBackAfterS),
    load: { waitingJobs: 0, waitingS: 0, waitingCpuS: 0, busy },
  });
  for (let i = 0; i < handedOver; i++) handOver(grid, 10 + i, i);
  return grid;
}
function handOver(grid: Grid, id: number, start: number, siteId = SLURM, cpusPerTask = 2): void {
  const run = {
    jobId: id,
    siteId,
    epoch: 1,
    allocations: [],
    pools: [],
    start,
    plannedEnd: start + 100,
  };
  grid.restoreRun({ ...run, waits: true }, job({ id, cpusPerTask }));
}
const asked = (grid: Grid, now = 1_000, limit = 100) => recalls(grid, policy, now, limit);

describe('recalls', () => {
  it('asks for as many as can start elsewhere, those first that have waited for longest', () => {
    expect(asked(world(3))).toEqual([{ siteId: SLURM, reason: 'STARTS_ELSEWHERE', jobIds: [10, 11] }]);
    expect(asked(world(3), 1_000, 1)).toMatchObject([{ jobIds: [10] }]);
  });

  it('leaves those that have not waited for long, and all where the policy says so', () => {
    expect(asked(world(2), 60)).toMatchObject([{ jobIds: [10] }]);
    expect(asked(world(2), 59)).toEqual([]);
    expect(asked(world(2, null))).toEqual([]);
  });

  it('leaves what has started, and what fits nowhere else', () => {
    const grid = world(0);
    handOver(grid, 20, 0, SLURM, 5);
    expect(asked(grid)).toEqual([]);
    grid.restoreRun(
      { jobId: 21, siteId: SLURM, epoch: 1, allocations: [], pools: [], start: 0, plannedEnd: 100 },
      job({ id: 21 }),
    );
    expect(asked(grid)).toEqual([]);
  });

  it('leaves room to those who wait there, and at the root', () => {
    const queued = world(1);
    queued.placeAtSite(job({ id: 1 }), OWN);
    expect(asked(queued)).toEqual([]);
    const before = world(1);
    before.placeAtRoot(job({ id: 1 }));
    expect(asked(before)).toEqual([]);
    // A job that can never run keeps nobody waiting.
    const never = world(1);
    never.placeAtRoot(job({ id: 1, cpusPerTask: 64 }));
    expect(asked(never)).toMatchObject([{ jobIds: [10] }]);
  });

  it('goes to another site with a scheduler of its own only where nothing waits and it has room', () => {
    const grid = world(1);
    const own = grid.siteEntry(OWN).site;
    const other = { ...own, localPolicy: external(60) };
    const load = { waitingJobs: 0, waitingS: 0, waitingCpuS: 0, busy: [] };
    grid.setSite({ ...other, load });
    expect(asked(grid)).toMatchObject([{ jobIds: [10] }]);
    grid.setSite({ ...other, load: { ...load, busy: [{ machineId: 2, cpus: 3, memoryMb: 0 }] } });
    expect(asked(grid)).toEqual([]);
    grid.setSite({ ...other, load: { ...load, waitingJobs: 1 } });
    expect(asked(grid)).toEqual([]);
  });

  it('asks nobody where no machine is available', () => {
    const grid = world(1);
    grid.setMachine(machine({ id: 1, siteId: SLURM, available: false }));
    expect(asked(grid)).toEqual([]);
  });
});
