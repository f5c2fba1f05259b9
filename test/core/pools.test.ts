/** Amounts of what is counted for a site or the grid: asked by amount, as licenses are one by one. */
import { describe, expect, it } from 'vitest';
import {
  DEFAULT_POLICY,
  type Held,
  type Job,
  type License,
  type LocalPolicy,
  poolsAskedBy,
  whyWaiting,
} from '../../src/core/index.js';
import { job } from './support/drive.js';
import { apply, EASY, gridOf, plan, policyWith } from './support/grids.js';
import { CHOOSING } from './support/policies.js';

/** As many as a column of the database counts. */
const MOST = 2 ** 31 - 1;
const scratch = (copies: number, siteId: number | null = 1, id = siteId ?? 9): License => ({
  ...{ id, kind: 'scratch-gb', copies, siteId },
});
const queued = (grid: ReturnType<typeof gridOf>, jobs: (Partial<Job> & { id: number })[], siteId = 1) => {
  for (const one of jobs) grid.placeAtSite(job({ submittedAt: one.id, ...one }), siteId);
};
const gb = (amount: number) => ({ resources: { 'scratch-gb': amount } });

describe('an amount of a pool', () => {
  it('adds to the licenses of its kind, in order of kind', () => {
    expect(poolsAskedBy({ licenses: ['b', 'b', 'c'], resources: { c: 5, a: MOST } })).toEqual([
      { kind: 'a', amount: MOST },
      { kind: 'b', amount: 2 },
      { kind: 'c', amount: 6 },
    ]);
  });

  it("is of the site's pool first, then of the grid's, and never more than there is", () => {
    const grid = gridOf([{ id: 1, cpus: 9 }], [scratch(5_000), scratch(MOST - 1, null)]);
    queued(grid, [
      { id: 1, ...gb(6_000) },
      { id: 2, ...gb(MOST - 1_001) },
      { id: 3, estimateS: 50, ...gb(1) },
    ]);
    const { starts } = apply(grid);
    expect(starts.map(({ jobId, pools }) => [jobId, pools])).toEqual([
      [
        1,
        [
          { id: 1, amount: 5_000 },
          { id: 9, amount: 1_000 },
        ],
      ],
      [2, [{ id: 9, amount: MOST - 1_001 }]],
    ]);
    // What one gives back another takes.
    grid.endRun(1);
    expect(apply(grid, 1).starts).toMatchObject([{ jobId: 3, pools: [{ id: 1, amount: 1 }] }]);
  });

  const foreseeing = [
    DEFAULT_POLICY.local,
    { kind: 'easy' },
    { kind: 'conservative', depth: 10 },
    { kind: 'hybrid', reservations: 2 },
  ] as const satisfies LocalPolicy[];
  it.each(foreseeing)('is reserved for the head, and others go beside it by $kind', (local) => {
    const policy = policyWith('NONE', local);
    const grid = gridOf([{ id: 1, cpus: 9 }], [scratch(10)]);
    queued(grid, [
      { id: 1, estimateS: 100, ...gb(6) },
      { id: 2, estimateS: 100, ...gb(8) },
      // Over before the second begins; or it leaves it its amount.
      { id: 3, estimateS: 50, ...gb(4) },
      { id: 4, estimateS: 500, ...gb(2) },
      { id: 5, estimateS: 500 },
    ]);
    const { starts, reservation } = apply(grid, 0, policy);
    expect(starts.map(({ jobId }) => jobId)).toEqual([1, 3, 5]);
    expect(reservation).toMatchObject({ jobId: 2, at: 100, pools: [{ id: 1, amount: 8 }] });
    grid.endRun(3);
    // Now the fourth fits beside both.
    expect(apply(grid, 50, policy).starts.map(({ jobId }) => jobId)).toEqual([4]);
  });

  it('of the grid is left to an older reservation of another site', () => {
    const machines = [1, 2].map((id) => ({ id, siteId: id, cpus: 4 }));
    const grid = gridOf(machines, [scratch(100, null)]);
    queued(grid, [
      { id: 1, estimateS: 100, ...gb(60) },
      { id: 2, estimateS: 100, ...gb(90) },
    ]);
    apply(grid);
    expect(grid.siteEntry(1).reservation).toMatchObject({ jobId: 2, pools: [{ id: 9, amount: 90 }] });
    queued(grid, [{ id: 3, estimateS: 500, ...gb(11) }], 2);
    expect(plan(grid, 0, EASY, 2).starts).toEqual([]);
    queued(grid, [{ id: 4, estimateS: 500, ...gb(10) }], 2);
    expect(plan(grid, 0, EASY, 2).starts.map(({ jobId }) => jobId)).toEqual([4]);
  });

  it('that is not there is named, with what was asked and what there is', () => {
    const grid = gridOf([{ id: 1, cpus: 4 }], [scratch(4)]);
    queued(grid, [
      { id: 1, ...gb(3) },
      { id: 2, ...gb(2) },
      { id: 3, ...gb(5) },
    ]);
    grid.placeAtRoot(job({ id: 4, ...gb(5) }));
    grid.placeAtRoot(job({ id: 5, resources: { tape: 1 } }));
    apply(grid);
    const why = (id: number) => whyWaiting(grid, id, { now: 0, policy: EASY });
    expect(why(2)).toMatchObject({
      code: 'LICENSES_BUSY',
      message: expect.stringContaining('(2 scratch-gb; 1 free)'),
    });
    expect(why(3)).toMatchObject({
      code: 'NO_LICENSE_AT_SITE',
      message: expect.stringContaining('(5 scratch-gb; 4 at one site)'),
    });
    expect(why(4)).toMatchObject({
      code: 'NEVER_FITS_LICENSES',
      message: expect.stringContaining('(5 scratch-gb; 4 at one site)'),
    });
    expect(why(5)).toMatchObject({ message: expect.stringContaining('(1 tape; 0 at one site)') });
  });
});

describe('an amount of a pool that a reservation holds', () => {
  const POLICIES = CHOOSING.filter(({ kind }) => kind !== 'first-fit');
  const reserved = (amount: number, siteId = 1): Held => ({
    ...{ id: 7, by: 'RESERVATION', from: 100, to: 200, ends: 'LIMIT', siteId: null },
    machines: [{ machineId: siteId, amounts: { cpus: 2 } }],
    ...{ reservation: { id: 7, siteId }, pools: [{ id: 9, amount }] },
  });
  const limited = (runTimeLimitS: number) => ({ runTimeLimitS, estimateS: runTimeLimitS });
  const startsAt = (grid: ReturnType<typeof gridOf>, now: number, local: LocalPolicy, siteId = 1) =>
    apply(grid, now, policyWith('NONE', local), siteId).starts.map(({ jobId }) => jobId);

  it.each(POLICIES)('is reached into by nobody else, at no site, under %j', (local) => {
    const grid = gridOf(
      [
        { id: 1, cpus: 9 },
        { id: 2, siteId: 2, cpus: 9 },
      ],
      [scratch(10, null)],
    );
    grid.setHeld(reserved(6));
    queued(grid, [{ id: 1, ...limited(50), ...gb(5) }], 2);
    // By its limit it is over when the reservation begins.
    expect(startsAt(grid, 50, local, 2)).toEqual([1]);
    grid.endRun(1);
    queued(grid, [{ id: 2, ...limited(51), ...gb(5) }], 2);
    expect(startsAt(grid, 50, local, 2)).toEqual([]);
    expect(whyWaiting(grid, 2, { now: 50, policy: policyWith('NONE', local) })).not.toBeNull();
    expect(startsAt(grid, 150, local, 2)).toEqual([]);
    grid.removeHeld(7);
    expect(startsAt(grid, 160, local, 2)).toEqual([2]);
  });

  it.each(POLICIES)('is for the jobs inside, which have no more of its kind, under %j', (local) => {
    const grid = gridOf([{ id: 1, cpus: 9 }], [scratch(10, null)]);
    grid.setHeld(reserved(6));
    const inside = { reservationId: 7, ...limited(20) };
    queued(grid, [
      { id: 1, ...inside, ...gb(4) },
      { id: 2, ...inside, ...gb(3) },
      { id: 3, ...limited(20), ...gb(4) },
      { id: 4, ...inside, ...gb(7) },
    ]);
    expect(startsAt(grid, 100, local).sort()).toEqual([1, 3]);
    const why = whyWaiting(grid, 4, { now: 100, policy: policyWith('NONE', local) });
    expect(why?.code).toBe('NO_LICENSE_AT_SITE');
    grid.endRun(1);
    // Whatever is free outside.
    grid.endRun(3);
    expect(startsAt(grid, 110, local)).toEqual([2]);
    grid.endRun(2);
    // When the reservation is over they wait with all others.
    grid.removeHeld(7);
    expect(startsAt(grid, 120, local)).toEqual([4]);
  });

  it.each(POLICIES)('is not there as long as runs from before have it, under %j', (local) => {
    const grid = gridOf([{ id: 1, cpus: 9 }], [scratch(10, null)]);
    queued(grid, [{ id: 1, estimateS: 120, ...gb(6) }]);
    expect(startsAt(grid, 0, local)).toEqual([1]);
    grid.setHeld(reserved(6));
    queued(grid, [{ id: 2, reservationId: 7, ...limited(20), ...gb(5) }]);
    expect(startsAt(grid, 100, local)).toEqual([]);
    grid.endRun(1);
    expect(startsAt(grid, 120, local)).toEqual([2]);
  });
});
