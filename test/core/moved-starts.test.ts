/** Which promised starts a hold would move, before it is made. */
import { describe, expect, it } from 'vitest';
import { DEFAULT_POLICY, movedStarts, type Policy, siteCycle } from '../../src/core/index.js';
import { job } from './support/drive.js';
import { gridOf } from './support/grids.js';
import { CHOOSING } from './support/policies.js';

/** Under these nothing is promised. */
const UNPROMISING = ['fcfs', 'sjf', 'first-fit'];

describe.each(CHOOSING)('under $kind', (local) => {
  const promises = !UNPROMISING.includes(local.kind);

  it('a window moves the promise that it meets to its end, and no other', () => {
    const policy: Policy = { ...DEFAULT_POLICY, local };
    const grid = gridOf([{ id: 1, cpus: 4 }]);
    const run = { jobId: 1, siteId: 1, epoch: 1, pools: [], start: 0, plannedEnd: 50 };
    const allocations = [{ machineId: 1, tasks: 1 }];
    grid.restoreRun({ ...run, allocations }, job({ id: 1, cpusPerTask: 4, estimateS: 50 }));
    const waits = { cpusPerTask: 4, estimateS: 20, benchmark: 1, runTimeLimitS: 30 };
    grid.placeAtSite(job({ id: 2, ...waits }), 1);
    const plan = siteCycle(grid, 1, { now: 0, policy, policyVersion: 1, maxStarts: 10 });
    grid.setReservation(1, plan.reservation);
    grid.keepMemory(1, plan.memory);
    const moved = (from: number, to: number) => {
      const window = { by: 'WINDOW', ends: 'LIMIT', machines: [], pools: [] } as const;
      return movedStarts(grid, grid.siteEntry(1), [{ id: -1, from, to, siteId: 1, ...window }], {
        now: 0,
        policy,
      });
    };
    expect(moved(60, 500)).toEqual(promises ? [{ jobId: 2, before: 50, after: 500 }] : []);
    expect(moved(80, 500)).toEqual([]);
    // The grid itself is as it was.
    expect([grid.held.size, grid.siteEntry(1).reservation?.at ?? 50]).toEqual([0, 50]);
  });
});
