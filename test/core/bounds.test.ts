/**
 * With which limit a job would start now, and when it starts at the latest, against trying every limit in the world itself and counting at
 * every instant: over every local policy (resources.md, "Holds in the future").
 */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { boundsOf } from '../../src/core/explain/reserved.js';
import {
  DEFAULT_POLICY,
  type Grid,
  type Held,
  imageOf,
  type Job,
  type LocalPolicy,
  type Policy,
  predictStart,
  type Reservation,
  type Run,
  type Start,
  siteCycle,
  startBounds,
} from '../../src/core/index.js';
import { SitePasses } from '../../src/core/local/pass.js';
import { allocationsOf } from '../../src/core/resources/placement.js';
import { assertUntil, cases, IN_FULL } from '../support/seed.js';
import { job as anyJob } from './support/drive.js';
import { gridOf } from './support/grids.js';
import { CHOOSING } from './support/policies.js';

const SITE = 1;
/** Machines are of power 1 and 2: instants are halves, and on the slower one half of the time counts. */
const STEP = 0.5;
const LIMIT_STEP = 0.25;
/** Nothing begins so much later. */
const FAR = 90;
const whole = (min: number, max: number) => fc.integer({ min, max });

const worlds = fc.record({
  machines: fc.array(fc.record({ cpus: whole(2, 5), benchmark: fc.constantFrom(1, 1, 2) }), {
    minLength: 1,
    maxLength: 2,
  }),
  holds: fc.array(
    fc.record({
      machine: fc.nat(2),
      amounts: fc.constantFrom(null, { cpus: 1 }, { cpus: 2 }),
      from: whole(0, 25),
      length: whole(1, 15),
      ends: fc.constantFrom('LIMIT' as const, 'LIMIT' as const, 'EXPECTATION' as const),
    }),
    { maxLength: 2 },
  ),
  jobs: fc.array(
    fc.record({
      at: fc.constantFrom(0, 0, 0, 2),
      tasks: fc.constantFrom(1, 1, 1, 2),
      cpusPerTask: whole(1, 5),
      estimateS: whole(1, 12),
      more: fc.constantFrom(0, 3, 8, null),
      licensed: fc.constantFrom(false, false, false, true),
    }),
    { minLength: 3, maxLength: 9, size: 'max' },
  ),
  now: whole(0, 4),
  pick: fc.nat(8),
});
type Given = typeof worlds extends fc.Arbitrary<infer T> ? T : never;

const heldOf = ({ machines, holds }: Given): Held[] =>
  holds.map(({ machine, amounts, from, length, ends }, id) => ({
    ...{ id, by: ends === 'LIMIT' ? 'WINDOW' : 'OTHERS', from, to: from + length, ends, pools: [] },
    machines: [{ machineId: (machine % machines.length) + 1, amounts }],
  }));

const jobsOf = ({ jobs }: Given): Job[] =>
  jobs.map(({ at, tasks, cpusPerTask, estimateS, more, licensed }, id) =>
    anyJob({
      ...{ id: id + 1, submittedAt: at, tasks, cpusPerTask, estimateS, benchmark: 1 },
      ...{ licenses: licensed ? ['a'] : [], runTimeLimitS: more === null ? null : estimateS + more },
    }),
  );

/**
 * A site from its beginning until `now`, where it has not looked yet. `holds`: those that there are. `forgetful`: each look promises anew, so
 * that what is promised to others does not depend on what was promised to the job before.
 */
class Played {
  readonly grid: Grid;
  readonly policy: Policy;
  readonly running = new Map<number, Run>();

  constructor(
    given: Given,
    local: LocalPolicy,
    readonly now: number,
    holds = heldOf(given),
    private readonly forgetful = false,
  ) {
    this.policy = { ...DEFAULT_POLICY, local };
    const machines = given.machines.map((machine, i) => ({ ...machine, id: i + 1 }));
    this.grid = gridOf(machines, [{ id: 1, kind: 'a', copies: 1, siteId: null }]);
    if (holds.length > 0) this.grid.setHeld(...holds);
    for (let at = 0; at <= now; at += STEP) {
      for (const [id, { plannedEnd }] of this.running) {
        if (plannedEnd > at) continue;
        this.running.delete(id);
        this.grid.endRun(id);
      }
      for (const one of jobsOf(given)) if (one.submittedAt === at) this.grid.placeAtSite(one, SITE);
      if (at < now) this.look(at);
    }
  }

  /** Whether the job starts now, with this limit. */
  startsWith(job: Job, runTimeLimitS: number | null): boolean {
    this.grid.removeJob(job.id);
    this.grid.placeAtSite({ ...job, runTimeLimitS }, SITE);
    this.look(this.now);
    return this.running.has(job.id);
  }

  private look(at: number): void {
    for (let truncated = true; truncated; ) {
      const plan = siteCycle(this.grid, SITE, {
        ...{ now: at, policy: this.policy, policyVersion: 1, maxStarts: 100 },
      });
      for (const { jobId, allocations, pools, plannedDuration } of plan.starts) {
        const plannedEnd = at + plannedDuration;
        const run = { jobId, siteId: SITE, epoch: 1, allocations, pools, start: at, plannedEnd };
        this.running.set(jobId, run);
        this.grid.startRun(run);
      }
      this.grid.setReservation(SITE, plan.reservation);
      if (!this.forgetful) this.grid.keepMemory(SITE, plan.memory);
      truncated = plan.truncated && plan.starts.length > 0;
    }
  }

  get waiting(): Job[] {
    const { queue } = this.grid.siteEntry(SITE);
    return [...queue.slots()].map((slot) => queue.jobs[slot] as Job).sort((a, b) => a.id - b.id);
  }

  get context() {
    return { now: this.now, policy: this.policy };
  }
}

const picked = ({ waiting }: Played, pick: number): Job | undefined => waiting[pick % waiting.length];

describe.each(CHOOSING)('under $kind', (local) => {
  it('the limit that is named is the longest with which the job starts now', () => {
    const seen = { fits: 0, byHold: 0, byPromise: 0 };
    assertUntil(
      fc.property(worlds, (given) => {
        const { now } = given;
        const asked = new Played(given, local, now);
        const job = picked(asked, given.pick);
        if (job === undefined) return;
        const { runTimeLimitS } = job;
        const tryWith = (limit: number | null, holds?: Held[]): boolean =>
          new Played(given, local, now, holds).startsWith(job, limit);
        const found = boundsOf(asked.grid, asked.grid.siteEntry(SITE), job, asked.context, null).reserved;
        if (tryWith(runTimeLimitS)) {
          expect(found).toBe(null);
          return;
        }
        let longest: number | null = null;
        for (
          let limit = Math.min(runTimeLimitS ?? Infinity, FAR) - LIMIT_STEP;
          limit > 0;
          limit -= LIMIT_STEP
        )
          if (tryWith(limit)) {
            longest = limit;
            break;
          }
        expect(found?.fitsIfLimitS ?? null).toBe(longest);
        if (longest === null) return;
        seen.fits++;
        if (found?.byHold) seen.byHold++;
        else seen.byPromise++;
      }),
      { numRuns: cases(200) },
      () => {
        if (IN_FULL) expect(seen.byHold).toBeGreaterThan(0);
        const promises = !['fcfs', 'sjf', 'first-fit'].includes(local.kind);
        if (IN_FULL && promises) expect(seen.byPromise).toBeGreaterThan(0);
      },
    );
  });

  it('it starts at the latest where its room is free up to every limit', () => {
    let found = 0;
    assertUntil(
      fc.property(worlds, (given) => {
        const { now } = given;
        const asked = new Played(given, local, now, heldOf(given), true);
        const job = picked(asked, given.pick);
        if (job === undefined) return;
        const { latest } = boundsOf(asked.grid, asked.grid.siteEntry(SITE), job, asked.context, null);
        if (new Played(given, local, now, heldOf(given), true).startsWith(job, job.runTimeLimitS)) {
          expect(latest).toBe(now);
          return;
        }
        expect(latest).toBe(counted(given, asked, job, promisedTo(given, local, now, job)));
        if (latest !== null) found++;
      }),
      { numRuns: cases(60) },
      () => {
        if (IN_FULL) expect(found).toBeGreaterThan(5);
      },
    );
  });
});

type Promised = Pick<Reservation, 'jobId' | 'at' | 'allocations' | 'pools'>;

/** What the policy promises to others now; those that start now among it. */
function promisedTo(given: Given, local: LocalPolicy, now: number, { id }: Job): Promised[] {
  const { grid, policy } = new Played(given, local, now, heldOf(given), true);
  const entry = grid.siteEntry(SITE);
  if (entry.reservation?.jobId === id) grid.setReservation(SITE, null);
  const passes = new SitePasses();
  const started: Promised[] = [];
  const accept = ({ jobId, siteId, allocations, pools, plannedDuration }: Start): Run => {
    started.push({ jobId, at: now, allocations, pools });
    return {
      ...{ jobId, siteId, allocations, pools, epoch: 1, start: now, plannedEnd: now + plannedDuration },
    };
  };
  for (;;) {
    const plan = siteCycle(grid, SITE, { now, policy, policyVersion: 1, maxStarts: 100, passes, accept });
    grid.setReservation(SITE, plan.reservation);
    grid.keepMemory(SITE, plan.memory);
    if (plan.truncated && plan.starts.length > 0) continue;
    const kept = imageOf(plan.memory)?.jobs ?? (plan.reservation === null ? [] : [plan.reservation]);
    const further = passes.of(grid, entry).further.map(({ slot, opening: { at, placement, pools } }) => ({
      ...{ jobId: entry.queue.ids[slot] as number, at, allocations: allocationsOf(placement) },
      pools: pools.map(({ pool }) => ({ id: pool.license.id, amount: 1 })),
    }));
    return [...started, ...[...kept, ...further].filter(({ jobId }) => jobId !== id)];
  }
}

/** By trying every instant. */
function counted(given: Given, { grid, now, running }: Played, job: Job, promised: readonly Promised[]) {
  const limitOf = (id: number): number => grid.job(id)?.runTimeLimitS ?? Infinity;
  const taken = [
    ...[...running.values()].map((run) => ({
      ...{ jobId: run.jobId, from: now, to: Math.max(run.start + limitOf(run.jobId), run.plannedEnd, now) },
      ...{ allocations: run.allocations, pools: run.pools },
    })),
    ...promised.map((one) => ({
      ...{ jobId: one.jobId, from: Math.max(one.at, now), to: Math.max(one.at, now) + limitOf(one.jobId) },
      ...{ allocations: one.allocations, pools: one.pools },
    })),
  ];
  const holds = heldOf(given);
  const cpusOf = (id: number): number => (grid.job(id) as Job).cpusPerTask;
  const freeAt = (machineId: number, at: number): number => {
    let free = given.machines[machineId - 1]?.cpus as number;
    for (const { from, to, machines } of holds)
      if (from <= at && at < to)
        for (const one of machines)
          if (one.machineId === machineId) free -= one.amounts === null ? Infinity : (one.amounts.cpus ?? 0);
    for (const { jobId, from, to, allocations } of taken)
      if (from <= at && at < to)
        for (const one of allocations) if (one.machineId === machineId) free -= one.tasks * cpusOf(jobId);
    return Math.max(0, free);
  };
  const copiesAt = (at: number): number =>
    1 - taken.filter(({ from, to, pools }) => from <= at && at < to && pools.length > 0).length;
  const edges = [...holds, ...taken].flatMap(({ from, to }) => [from, to]).filter((at) => at < Infinity);
  const limit = job.runTimeLimitS ?? Infinity;
  for (let at = now; at < 400; at += STEP) {
    const instants = [at, ...edges.filter((edge) => edge > at && edge < at + limit)];
    const tasks = given.machines.reduce((sum, _, i) => {
      const least = Math.min(...instants.map((instant) => freeAt(i + 1, instant)));
      return sum + Math.floor(least / job.cpusPerTask);
    }, 0);
    const copies = Math.min(...instants.map(copiesAt));
    if (tasks >= job.tasks && (job.licenses.length === 0 || copies >= 1)) return at;
  }
  return null;
}

describe('a job', () => {
  it('of which nothing is held has bounds as well', () => {
    const grid = gridOf([{ id: 1, cpus: 4 }]);
    const run = { jobId: 1, siteId: 1, epoch: 1, pools: [], start: 0, plannedEnd: 50 };
    const busy = anyJob({ id: 1, cpusPerTask: 3, estimateS: 50, runTimeLimitS: 60 });
    grid.restoreRun({ ...run, allocations: [{ machineId: 1, tasks: 1 }] }, busy);
    const first = anyJob({ id: 2, cpusPerTask: 4, estimateS: 20, benchmark: 1, runTimeLimitS: 30 });
    const behind = anyJob({ id: 3, estimateS: 70, benchmark: 1, runTimeLimitS: 80 });
    for (const one of [first, behind]) grid.placeAtSite(one, 1);
    const context = { now: 10, policy: { ...DEFAULT_POLICY, local: { kind: 'easy' } } as Policy };
    expect(startBounds(grid, 1, first, context, null)).toEqual({ startsAtLatest: 60, fitsIfLimitS: null });
    expect(startBounds(grid, 1, behind, context, null)).toEqual({ startsAtLatest: 80, fitsIfLimitS: 40 });
  });

  it.each([{ kind: 'easy' }, { kind: 'flexible' }] as LocalPolicy[])(
    'has no latest start before jobs to which nothing is promised have gone ahead of it (%o)',
    (local) => {
      const grid = gridOf([{ id: 1, cpus: 4 }]);
      const jobs = [1, 2, 3, 4, 5].map((id) =>
        anyJob({ id, cpusPerTask: 4, estimateS: 20, benchmark: 1, runTimeLimitS: 20 }),
      );
      for (const one of jobs) grid.placeAtSite(one, 1);
      const context = { now: 10, policy: { ...DEFAULT_POLICY, local } as Policy };
      const latest = jobs.map((one) => {
        const start = predictStart(grid, grid.siteEntry(1), one, context);
        return startBounds(grid, 1, one, context, start).startsAtLatest;
      });
      // The first starts now, the second has a promise, and the third starts at the earliest when that one ends.
      expect(latest).toEqual([10, 30, 50, null, null]);
    },
  );

  it('in a reservation has those of the reservation', () => {
    const grid = gridOf([{ id: 1, cpus: 4 }]);
    const reservation = { id: 9, siteId: 1 };
    const of = { by: 'RESERVATION', ends: 'LIMIT', pools: [], reservation } as const;
    grid.setHeld({ ...of, id: 1, from: 0, to: 100, machines: [{ machineId: 1, amounts: null }] });
    const inside = { reservationId: 9, cpusPerTask: 4, estimateS: 10, benchmark: 1 };
    const busy = anyJob({ ...inside, id: 1, runTimeLimitS: 30 });
    const run = { jobId: 1, siteId: 1, epoch: 1, pools: [], start: 5, plannedEnd: 15 };
    grid.restoreRun({ ...run, allocations: [{ machineId: 1, tasks: 1 }] }, busy);
    const waits = anyJob({ ...inside, id: 2, runTimeLimitS: 60 });
    grid.placeAtSite(waits, 1);
    const context = { now: 10, policy: { ...DEFAULT_POLICY, local: { kind: 'easy' } } as Policy };
    expect(startBounds(grid, 1, waits, context, null)).toEqual({ startsAtLatest: 35, fitsIfLimitS: null });
    const long = anyJob({ ...inside, id: 3, runTimeLimitS: 70 });
    expect(startBounds(grid, 1, long, context, null).startsAtLatest).toBe(null);
  });

  it('with a license waits for those of other sites, too, up to their limits', () => {
    const grid = gridOf(
      [
        { id: 1, cpus: 4, siteId: 1 },
        { id: 2, cpus: 4, siteId: 2 },
      ],
      [{ id: 5, kind: 'a', copies: 1, siteId: null }],
    );
    const elsewhere = anyJob({ id: 1, licenses: ['a'], estimateS: 20, runTimeLimitS: 45 });
    const allocations = [{ machineId: 2, tasks: 1 }];
    grid.restoreRun(
      {
        ...{ jobId: 1, siteId: 2, epoch: 1, pools: [{ id: 5, amount: 1 }], start: 0, plannedEnd: 20 },
        allocations,
      },
      elsewhere,
    );
    const waits = anyJob({ id: 2, licenses: ['a'], estimateS: 10, benchmark: 1, runTimeLimitS: 20 });
    grid.placeAtSite(waits, 1);
    const context = { now: 10, policy: { ...DEFAULT_POLICY, local: { kind: 'easy' } } as Policy };
    expect(startBounds(grid, 1, waits, context, null)).toEqual({ startsAtLatest: 45, fitsIfLimitS: null });
  });
});
