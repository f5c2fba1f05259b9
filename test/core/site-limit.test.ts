/**
 * A job without a limit of its own has that of its site (jobs.md, "Times of one run"): everything that is planned is as if it had said so
 * itself.
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DEFAULT_POLICY,
  dispatchCycle,
  type Grid,
  imageOf,
  type Job,
  type LocalPolicy,
  type Policy,
  parsePolicy,
  promisesFrom,
  type Run,
  siteCycle,
  startBounds,
  whyWaiting,
} from '../../src/core/index.js';
import { assertUntil, cases } from '../support/seed.js';
import { job } from './support/drive.js';
import { gridOf } from './support/grids.js';
import { CHOOSING } from './support/policies.js';

const limitSites = (grid: Grid, maxLimitS: number | null): void => {
  for (const { site } of [...grid.sites]) grid.setSite({ ...site, maxLimitS });
};
const policyOf = (local: LocalPolicy): Policy => ({ ...DEFAULT_POLICY, local });
const window = (id: number, from: number, to: number, machines = [{ machineId: 1, amounts: null }]) =>
  ({ id, by: 'WINDOW', from, to, ends: 'LIMIT', machines, pools: [] }) as const;
const runOf = (jobId: number, given: Partial<Run> = {}): Run => ({
  ...{ jobId, siteId: 1, epoch: 1, allocations: [{ machineId: 1, tasks: 1 }], pools: [] },
  ...{ start: 0, plannedEnd: 10, ...given },
});

describe.each(CHOOSING)('under $kind a job without a limit', (local) => {
  const why = (maxLimitS: number | null, now: number, given: Partial<Job> = {}) => {
    const grid = gridOf([{ id: 1, cpus: 10 }]);
    limitSites(grid, maxLimitS);
    grid.setHeld(window(1, 1000, 2000));
    grid.placeAtSite(job({ id: 1, estimateS: 10, benchmark: 1, ...given }), 1);
    const starts = siteCycle(grid, 1, {
      now,
      policy: policyOf(local),
      policyVersion: 1,
      maxStarts: 9,
    }).starts;
    const found = whyWaiting(grid, 1, { now, policy: policyOf(local) });
    const { fitsIfLimitS = null, startsAtLatest = null } = (found?.numbers ?? {}) as Record<string, number>;
    return { starts: starts.length, code: found?.code, fitsIfLimitS, startsAtLatest };
  };

  it("starts ahead of a window that the site's limit ends before, and of no other", () => {
    expect(why(600, 400)).toMatchObject({ starts: 1, code: 'READY' });
    expect(why(601, 400)).toEqual({ starts: 0, code: 'RESERVED', fitsIfLimitS: 600, startsAtLatest: 2000 });
    expect(why(null, 400)).toMatchObject({ starts: 0, code: 'RESERVED', fitsIfLimitS: 600 });
  });

  it('starts however long it is expected to take, and never beyond a limit of its own', () => {
    expect(why(600, 400, { estimateS: 3600 })).toMatchObject({ starts: 1 });
    expect(why(600, 400, { runTimeLimitS: 601 })).toMatchObject({ starts: 0, code: 'RESERVED' });
    expect(why(601, 400, { runTimeLimitS: 600 })).toMatchObject({ starts: 1 });
  });

  it('that runs keeps the limit that it was given: who waits for it starts by then at the latest', () => {
    const grid = gridOf([{ id: 1, cpus: 10 }]);
    limitSites(grid, 60);
    grid.restoreRun(runOf(2, { limitS: 60 }), job({ id: 2, cpusPerTask: 8 }));
    grid.placeAtSite(job({ id: 1, cpusPerTask: 4 }), 1);
    const latest = () =>
      startBounds(grid, 1, grid.job(1) as Job, { now: 0, policy: policyOf(local) }, null).startsAtLatest;
    for (const limit of [60, 500, 5, null]) {
      limitSites(grid, limit);
      expect(latest()).toBe(60);
      // When it is late, it is planned to end by it.
      expect(grid.limitOf(2)).toBe(60);
    }
    grid.endRun(2);
    grid.restoreRun(runOf(2, { limitS: null }), job({ id: 2, cpusPerTask: 8 }));
    limitSites(grid, 60);
    expect(latest()).toBeNull();
  });
});

it("plans a late run to end at the limit that it was given, whatever the site's is since", () => {
  const grid = gridOf([{ id: 1, cpus: 10 }]);
  limitSites(grid, 600);
  const late = { plannedEnd: 100, allocations: [{ machineId: 1, tasks: 1 }] };
  grid.restoreRun(runOf(1, { ...late, limitS: 300 }), job({ id: 1 }));
  grid.restoreRun(runOf(2, { ...late, limitS: null }), job({ id: 2 }));
  grid.restoreRun(runOf(3, late), job({ id: 3 }));
  limitSites(grid, 900);
  grid.advance(200);
  const ends = [1, 2, 3].map((id) => grid.placeOf(id));
  expect(ends).toMatchObject([{ plannedEnd: 300 }, { plannedEnd: 100 }, { plannedEnd: 600 }]);
  for (const id of [1, 2, 3]) grid.endRun(id);
  grid.advance(1000);
});

it("is handed over to a site's own scheduler ahead of a window that the site's limit ends before", () => {
  const handedOver = (maxLimitS: number | null, longestS: number | null) => {
    const grid = gridOf([{ id: 1, cpus: 10 }]);
    const load = { waitingJobs: 0, waitingS: 0, waitingCpuS: 0, busy: [], longestS };
    grid.setSite({ ...grid.siteEntry(1).site, maxLimitS, load });
    grid.setHeld({ ...window(1, 1000, 2000), machines: [], siteId: 1 });
    grid.placeAtSite(job({ id: 1 }), 1);
    const policy = policyOf({ kind: 'external', queueLimit: 5, takeBackAfterS: null });
    return siteCycle(grid, 1, { now: 400, policy, policyVersion: 1, maxStarts: 9 }).starts.length;
  };
  expect(handedOver(600, null)).toBe(1);
  expect(handedOver(601, null)).toBe(0);
  // That scheduler's own limit is no reason to keep it away: it gets no more there.
  expect(handedOver(600, 300)).toBe(1);
  expect(handedOver(null, null)).toBe(0);
});

// As if it had said so ------------------------------------------------------------------------------------------------------

const LIMIT = 12;
const given = fc.record({
  local: fc.constantFrom(...CHOOSING),
  machines: fc.array(
    fc.record({ cpus: fc.integer({ min: 1, max: 4 }), benchmark: fc.constantFrom(1, 1, 2) }),
    {
      minLength: 1,
      maxLength: 3,
    },
  ),
  jobs: fc.array(
    fc.record({
      submittedAt: fc.nat(40),
      estimateS: fc.integer({ min: 1, max: 20 }),
      tasks: fc.integer({ min: 1, max: 2 }),
      cpusPerTask: fc.integer({ min: 1, max: 3 }),
      runTimeLimitS: fc.constantFrom(null, null, null, 5, LIMIT),
      /** Of its plan, how long it takes. */
      share: fc.constantFrom(0.5, 1, 1, 1.5),
    }),
    { minLength: 3, maxLength: 14 },
  ),
  windows: fc.array(
    fc.record({
      machine: fc.nat(2),
      from: fc.integer({ min: 1, max: 60 }),
      length: fc.integer({ min: 1, max: 15 }),
    }),
    { minLength: 1, maxLength: 3 },
  ),
});
type Given = typeof given extends fc.Arbitrary<infer G> ? G : never;

/** Everything that a site decides over time, and now and then what it says; whether jobs say their limits themselves, or the site does. */
function told({ local, machines, jobs, windows }: Given, says: 'JOBS' | 'SITE', seen: Seen): unknown[] {
  const grid = gridOf(machines.map((one, i) => ({ id: i + 1, ...one })));
  if (says === 'SITE') limitSites(grid, LIMIT);
  windows.forEach(({ machine, from, length }, i) => {
    const machineId = (machine % machines.length) + 1;
    grid.setHeld(window(i + 1, from, from + length, [{ machineId, amounts: null }]));
  });
  const policy = policyOf(local);
  const waiting = new Set<number>();
  const ends = new Map<number, number>();
  const all: unknown[] = [];
  for (let now = 0; now < 60; now++) {
    for (const [id, end] of ends)
      if (end <= now) {
        grid.endRun(id);
        ends.delete(id);
      }
    jobs.forEach(({ share: _, ...one }, i) => {
      if (one.submittedAt !== now) return;
      const own = one.runTimeLimitS ?? (says === 'JOBS' ? LIMIT : null);
      grid.placeAtSite(job({ id: i + 1, benchmark: 1, ...one, runTimeLimitS: own }), 1);
      waiting.add(i + 1);
    });
    const plan = siteCycle(grid, 1, { now, policy, policyVersion: 1, maxStarts: 100 });
    const promises = imageOf(plan.memory);
    const { starts, reservation, wakeAt } = plan;
    all.push({ now, starts, reservation, wakeAt, promises });
    for (const { jobId, allocations, pools, plannedDuration } of starts) {
      const plannedEnd = now + plannedDuration;
      const limitS = grid.limitOf(jobId);
      if (grid.job(jobId)?.runTimeLimitS === null && [...grid.held.values()].some(({ from }) => from > now))
        seen.ahead++;
      grid.startRun({ jobId, siteId: 1, epoch: 1, allocations, pools, start: now, plannedEnd, limitS });
      waiting.delete(jobId);
      ends.set(jobId, now + Math.min(limitS, plannedDuration * (jobs[jobId - 1]?.share as number)));
    }
    grid.setReservation(1, reservation);
    // As the service keeps them.
    grid.keepMemory(1, promises && promisesFrom(grid, 1, local, promises, now));
    if (now % 13 !== 5) continue;
    for (const id of waiting) {
      const why = whyWaiting(grid, id, { now, policy });
      if (why?.code === 'RESERVED') seen.reserved++;
      all.push(why);
    }
    const next = job({ id: 100, cpusPerTask: 2, runTimeLimitS: says === 'JOBS' ? LIMIT : null });
    all.push(startBounds(grid, 1, next, { now, policy }, null));
  }
  return all;
}
const nothingSeen = () => ({ ahead: 0, reserved: 0 });
type Seen = ReturnType<typeof nothingSeen>;

it("is planned, told and explained as with the site's limit for its own, by every local policy", () => {
  const seen = nothingSeen();
  const property = fc.property(given, (world) => {
    expect(told(world, 'SITE', seen)).toEqual(told(world, 'JOBS', nothingSeen()));
  });
  assertUntil(property, { numRuns: cases(200) }, () => {
    expect(seen.ahead).toBeGreaterThan(0);
    expect(seen.reserved).toBeGreaterThan(0);
  });
});

it.each(['two-level', 'queues', 'job-ratio', 'diana', 'grid-tree', 'most-flops'])(
  "is sent where a job with the site's limit is: %s",
  (kind) => {
    const dispatch = {
      ...(kind === DEFAULT_POLICY.dispatch.kind ? DEFAULT_POLICY.dispatch : { kind }),
      ...(['queues', 'job-ratio', 'diana', 'grid-tree'].includes(kind) && { queueLimit: 5 }),
      ...(kind === 'queues' && { order: 'FCFS' }),
    };
    const policy = parsePolicy({ ...DEFAULT_POLICY, dispatch });
    const sent = (maxLimitS: number | null, runTimeLimitS: number | null) => {
      const grid = gridOf([
        { id: 1, siteId: 1, cpus: 64 },
        { id: 2, siteId: 2, cpus: 8 },
      ]);
      limitSites(grid, maxLimitS);
      grid.setHeld({ ...window(1, 150, 5000), machines: [], siteId: 1 });
      grid.placeAtRoot(job({ id: 1, estimateS: 10, benchmark: 1, runTimeLimitS }));
      const { moves } = dispatchCycle(grid, { now: 100, policy, policyVersion: 1, maxMoves: 10 });
      return moves.map(({ to }) => to);
    };
    for (const limit of [50, 51]) expect(sent(limit, null)).toEqual(sent(null, limit));
  },
);
