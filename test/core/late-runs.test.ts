/** Runs that are in the way of a window or reservation that has begun. */
import { expect, test } from 'vitest';
import { type Held, lateRuns, type SiteEntry } from '../../src/core/index.js';
import { job } from './support/drive.js';
import { gridOf } from './support/grids.js';

const window = (
  id: number,
  machineId: number,
  from: number,
  to: number,
  given: Partial<Held> = {},
): Held => ({
  ...{ id, by: 'WINDOW', from, to, ends: 'LIMIT', pools: [], machines: [{ machineId, amounts: null }] },
  ...given,
});

test('are those on machines that lack what is held, from its beginning to its end', () => {
  const grid = gridOf([1, 2, 3].map((id) => ({ id, cpus: 4 })));
  for (const [id, machineIds] of [
    [1, [1]],
    [2, [2, 3]],
  ] as const) {
    const one = job({ id, tasks: machineIds.length, cpusPerTask: 2 });
    const allocations = machineIds.map((machineId) => ({ machineId, tasks: 1 }));
    const run = { jobId: id, siteId: 1, epoch: 1, allocations, pools: [], start: 0, plannedEnd: 1000 };
    grid.restoreRun(run, one);
  }
  const late = (now: number) =>
    lateRuns((grid.sites[0] as SiteEntry).resources, now).map(({ jobId }) => jobId);
  expect(late(150)).toEqual([]);
  grid.setHeld(window(1, 1, 100, 200));
  expect([late(99), late(100), late(199), late(200)]).toEqual([[], [1], [1], []]);
  // Of an amount, only what is not there beside the runs.
  const two = (cpus: number) => [{ machineId: 3, amounts: { cpus } }];
  grid.setHeld(window(2, 3, 100, 200, { machines: two(2), by: 'RESERVATION' }));
  expect(late(150)).toEqual([1]);
  grid.setHeld(window(2, 3, 100, 200, { machines: two(3), by: 'RESERVATION' }));
  expect(late(150)).toEqual([1, 2]);
  // What others have taken is no edge.
  grid.setHeld(window(2, 3, 100, 200, { machines: two(3), by: 'OTHERS', ends: 'EXPECTATION' }));
  expect(late(150)).toEqual([1]);
});
