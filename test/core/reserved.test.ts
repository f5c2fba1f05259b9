/** Why a job waits for what is held later, and with which limit it would not (resources.md, "Holds in the future": examples). */
import { describe, expect, it } from 'vitest';
import {
  DEFAULT_POLICY,
  dispatchCycle,
  type Grid,
  type Job,
  type LocalPolicy,
  type Policy,
  parsePolicy,
  whyWaiting,
} from '../../src/core/index.js';
import { job } from './support/drive.js';
import { gridOf } from './support/grids.js';
import { CHOOSING } from './support/policies.js';

/** A machine of 10 CPUs, of which so many are held. */
function held(cpus: number | null, from: number, to: number): Grid {
  const grid = gridOf([{ id: 1, cpus: 10 }]);
  const machines = [{ machineId: 1, amounts: cpus === null ? null : { cpus } }];
  grid.setHeld({ id: 1, by: 'WINDOW', from, to, ends: 'LIMIT', machines, pools: [] });
  return grid;
}
const why = (grid: Grid, given: Partial<Job>, now: number, local: LocalPolicy) => {
  grid.placeAtSite(job({ id: 1, estimateS: 10, benchmark: 1, ...given }), 1);
  const policy: Policy = { ...DEFAULT_POLICY, local };
  const found = whyWaiting(grid, 1, { now, policy });
  const numbers: Record<string, number> = found?.numbers ?? {};
  const { fitsIfLimitS = null, startsAtLatest = null } = numbers;
  return { code: found?.code, fitsIfLimitS, latest: startsAtLatest };
};

describe.each(CHOOSING)('under $kind a job waits', (local) => {
  it('for amounts that are held before its limit is over', () => {
    const wide = { cpusPerTask: 8, runTimeLimitS: 120 };
    expect(why(held(4, 100, 200), wide, 0, local)).toEqual({
      code: 'RESERVED',
      fitsIfLimitS: 100,
      latest: 200,
    });
    expect(why(held(4, 100, 200), { cpusPerTask: 6, runTimeLimitS: 300 }, 0, local).code).toBe('READY');
  });
  it('for a window, whatever its estimate says', () => {
    expect(why(held(null, 1000, 2000), { runTimeLimitS: 700 }, 400, local)).toEqual({
      ...{ code: 'RESERVED', fitsIfLimitS: 600, latest: 2000 },
    });
    expect(why(held(null, 1000, 2000), { runTimeLimitS: null }, 400, local)).toMatchObject({
      ...{ code: 'RESERVED', fitsIfLimitS: 600 },
    });
    expect(why(held(null, 1000, 2000), { runTimeLimitS: 600 }, 400, local).code).toBe('READY');
  });
  it('and starts if its limit lets it, however long it is expected to take', () => {
    const short = { runTimeLimitS: 300, estimateS: 3600 };
    expect(why(held(null, 1000, 2000), short, 400, local).code).toBe('READY');
    const long = { runTimeLimitS: 700, estimateS: 3600 };
    expect(why(held(null, 1000, 2000), long, 400, local)).toMatchObject({
      code: 'RESERVED',
      fitsIfLimitS: 600,
    });
  });
  it('inside it', () => {
    expect(why(held(null, 0, 50), { runTimeLimitS: 20 }, 10, local)).toEqual({
      ...{ code: 'RESERVED', fitsIfLimitS: null, latest: 50 },
    });
  });
  it('for a run, and no limit would help', () => {
    const grid = held(4, 100, 200);
    grid.restoreRun(
      {
        jobId: 2,
        siteId: 1,
        epoch: 1,
        allocations: [{ machineId: 1, tasks: 1 }],
        pools: [],
        start: 0,
        plannedEnd: 20,
      },
      job({ id: 2, cpusPerTask: 8, runTimeLimitS: 60 }),
    );
    expect(why(grid, { cpusPerTask: 4, runTimeLimitS: 30 }, 0, local)).toEqual({
      ...{ code: 'CPUS_BUSY', fitsIfLimitS: null, latest: 60 },
    });
  });
});

describe('a site that a window has whole', () => {
  const kinds = ['two-level', 'queues', 'job-ratio', 'diana', 'grid-tree', 'most-flops'];

  it.each(kinds)('is not taken for a free one: %s', (kind) => {
    const dispatch = {
      ...(kind === DEFAULT_POLICY.dispatch.kind ? DEFAULT_POLICY.dispatch : { kind }),
      ...(['queues', 'job-ratio', 'diana', 'grid-tree'].includes(kind) && { queueLimit: 5 }),
      ...(kind === 'queues' && { order: 'FCFS' }),
    };
    const policy = parsePolicy({ ...DEFAULT_POLICY, dispatch });
    const sent = (from: number, to: number): (number | null)[] => {
      const grid = gridOf([
        { id: 1, siteId: 1, cpus: 64 },
        { id: 2, siteId: 2, cpus: 8 },
      ]);
      const window = { by: 'WINDOW', ends: 'LIMIT', machines: [], pools: [] } as const;
      grid.setHeld({ id: 1, from, to, siteId: 1, ...window });
      grid.placeAtRoot(job({ id: 1, estimateS: 10, benchmark: 1, runTimeLimitS: 20 }));
      const { moves } = dispatchCycle(grid, { now: 100, policy, policyVersion: 1, maxMoves: 10 });
      return moves.map(({ to }) => to);
    };
    expect(sent(50, 5000)).toEqual([2]);
    expect(sent(50, 90)).toEqual([1]);
  });
});
