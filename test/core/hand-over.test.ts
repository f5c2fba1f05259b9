/** How many jobs a site's own scheduler gets at a time. */
import { expect, it } from 'vitest';
import { DEFAULT_POLICY, type Policy, siteCycle } from '../../src/core/index.js';
import { job } from './support/drive.js';
import { gridOf } from './support/grids.js';

const policy: Policy = {
  ...DEFAULT_POLICY,
  local: { kind: 'external', queueLimit: 4, takeBackAfterS: null },
};

/** How many of ten jobs are handed over, where so many of ours wait there and run there. */
function handedOver(waits: number, runs: number, maxRunningJobs: number | null): number {
  const grid = gridOf([{ id: 1, siteId: 1, cpus: 4 }]);
  const { site } = grid.siteEntry(1);
  grid.setSite({ ...site, maxRunningJobs });
  for (let i = 0; i < waits + runs; i++)
    grid.restoreRun(
      {
        ...{ jobId: 100 + i, siteId: 1, epoch: 1, allocations: [], pools: [] },
        ...{ start: 0, plannedEnd: 100, waits: i < waits },
      },
      job({ id: 100 + i }),
    );
  for (let id = 1; id <= 10; id++) grid.placeAtSite(job({ id }), 1);
  return siteCycle(grid, 1, { now: 10, policy, policyVersion: 1, maxStarts: 100 }).starts.length;
}

it('gets no more than may wait there, however many run', () => {
  expect([handedOver(0, 0, null), handedOver(3, 0, null), handedOver(3, 20, null)]).toEqual([4, 1, 1]);
  expect(handedOver(4, 0, null)).toBe(0);
});

it('gets no more than the site may have in all, waiting and running', () => {
  expect([handedOver(0, 0, 3), handedOver(1, 1, 3), handedOver(2, 1, 3), handedOver(0, 5, 3)]).toEqual([
    3, 1, 0, 0,
  ]);
});
