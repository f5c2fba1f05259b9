/** Runs that take longer than planned: until when what they have is planned for (resources.md, "Holds in the future"). */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_POLICY, type Grid, type Job, type Policy, siteCycle } from '../../src/core/index.js';
import { job } from './support/drive.js';
import { gridOf } from './support/grids.js';
import { CHOOSING } from './support/policies.js';

const PROMISING = CHOOSING.filter(({ kind }) => !['fcfs', 'sjf', 'first-fit'].includes(kind));

/** One run that was to end at 50; what waits behind it needs all, and a short job fits beside it. */
function late(runTimeLimitS: number | null, given: Partial<Job> = {}): Grid {
  const grid = gridOf([{ id: 1, cpus: 4 }]);
  const run = { jobId: 1, siteId: 1, epoch: 1, pools: [], start: 0, plannedEnd: 50 };
  const allocations = [{ machineId: 1, tasks: 1 }];
  grid.restoreRun(
    { ...run, allocations },
    job({ id: 1, cpusPerTask: 3, estimateS: 50, runTimeLimitS, ...given }),
  );
  grid.placeAtSite(job({ id: 2, cpusPerTask: 4, estimateS: 20, benchmark: 1 }), 1);
  grid.placeAtSite(job({ id: 3, cpusPerTask: 1, estimateS: 80, benchmark: 1, submittedAt: 1 }), 1);
  return grid;
}

describe.each(PROMISING)('under $kind', (local) => {
  const policy: Policy = { ...DEFAULT_POLICY, local };
  const look = (grid: Grid, now: number) => {
    const plan = siteCycle(grid, 1, { now, policy, policyVersion: 1, maxStarts: 10 });
    return { at: plan.reservation?.at ?? null, starts: plan.starts.map(({ jobId }) => jobId) };
  };

  it('a run that is a little late counts as ending now, later at its limit, then after its grace', () => {
    expect(look(late(200), 60)).toEqual({ at: 60, starts: [] });
    expect(look(late(200), 109)).toEqual({ at: 109, starts: [] });
    // The short one is over by then, and delays nobody.
    expect(look(late(200), 110)).toEqual({ at: 200, starts: [3] });
    expect(look(late(200), 130)).toEqual({ at: 200, starts: [] });
    expect(look(late(200), 400)).toEqual({ at: 430, starts: [] });
    // Its own.
    expect(look(late(200, { killGraceS: 300 }), 400)).toEqual({ at: 700, starts: [3] });
    expect(look(late(200, { killGraceS: 300 }), 130)).toEqual({ at: 200, starts: [] });
    expect(look(late(200, { killGraceS: 0 }), 400)).toEqual(look(late(null), 400));
  });

  it('without a limit it counts as ending now, however late it is', () => {
    expect(look(late(null), 5000)).toEqual({ at: 5000, starts: [] });
  });

  it('whoever has looked before, the plan is the same; and one that is stopped ends when it is killed', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 600 }), { minLength: 1, maxLength: 6 }), (times) => {
        const looks = [...times].sort((a, b) => a - b);
        const grid = late(200);
        for (const now of looks) grid.advance(now);
        const now = (looks.at(-1) as number) + 1;
        expect(look(grid, now)).toEqual(look(late(200), now));
      }),
    );
    const stopped = late(200);
    stopped.stopRun(1, 49);
    expect(look(stopped, 150)).toEqual({ at: 150, starts: [] });
  });
});
