import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { QueuedWork } from '../../src/core/dispatch/two-level/queued-work.js';
import {
  applyMove,
  DEFAULT_POLICY,
  describeDispatch,
  describeStart,
  draw,
  Grid,
  type Job,
  Margins,
  parseLocalPolicy,
  parsePolicy,
  placement,
  RandomStream,
  ReasonCode,
  reasonSentence,
  whyWaiting,
} from '../../src/core/index.js';
import { LicenseRequests } from '../../src/core/resources/license-requests.js';
import { ExactSum } from '../../src/core/structures/exact-sum.js';
import { MAX } from '../../src/platform/limits.js';
import { job } from './support/drive.js';
import { apply, dispatch, EASY, gridOf, machine, plan, policyWith } from './support/grids.js';

const ids = (items: { jobId: number }[]): number[] => items.map(({ jobId }) => jobId);

const threeSites = () =>
  gridOf([
    { id: 1, siteId: 1 },
    { id: 2, siteId: 2 },
    { id: 3, siteId: 3, cpus: 2 },
  ]);

describe('Load and Ordering', () => {
  it('equal sums by counting, exactly, whatever came and went', () => {
    const entry = fc.record({
      priority: fc.nat(300),
      work: fc.double({ min: 1e-12, max: MAX.work, noNaN: true }),
      goes: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(entry), fc.nat(400), (entries, level) => {
        // In the queues of two sites, from the first, kept up as jobs come and go, and from a grid that is asked at the end.
        const queued = (id: number, { priority, work }: (typeof entries)[number]): Job =>
          job({ id, priority, estimateS: work });
        const from = (grid: Grid): [load: number, count: number] => {
          const load = new Float64Array(2);
          const count = new Float64Array(2);
          grid.index(QueuedWork).sums.valuesFrom(level, load);
          grid.index(QueuedWork).sums.countsFrom(level, count);
          expect([load[0], count[0]]).toEqual([0, 0]);
          return [load[1] as number, count[1] as number];
        };
        const grid = threeSites();
        grid.removeMachine(3);
        grid.removeSite(3);
        from(grid);
        entries.forEach((one, i) => {
          grid.placeAtSite(queued(i + 1, one), 2);
        });
        entries.forEach(({ goes }, i) => {
          if (goes) grid.removeJob(i + 1);
        });
        const left = entries.filter(({ goes }) => !goes);
        const other = threeSites();
        other.removeMachine(3);
        other.removeSite(3);
        [...left].reverse().forEach((one, i) => {
          other.placeAtSite(queued(i + 1, one), 2);
        });
        const counted = left.filter(({ priority }) => priority >= level);
        const [load, count] = from(grid);
        expect(count).toBe(counted.length);
        expect([load, count]).toEqual(from(other));
        expect(load > 0).toBe(counted.length > 0);
        const sum = counted.reduce((total, { work }) => total + work, 0);
        expect(Math.abs(load - sum)).toBeLessThanOrEqual(1e-12 * sum);
      }),
    );
  });

  it('stay exact with as many jobs as there may be, of as much work as they may have', () => {
    const sum = new ExactSum();
    const works = [MAX.work, MAX.work / 3, 4096 - 2 ** -21, 0.1];
    for (let i = 0; i < 1_000_000; i++) sum.add(works[i % 4] as number);
    // Beyond 2^53 what is told is rounded; what is left when they have gone is not.
    for (let i = 0; i < 999_996; i++) sum.remove(works[i % 4] as number);
    const afresh = new ExactSum();
    for (const work of works) afresh.add(work);
    expect(sum.value).toBe(afresh.value);
  });

  it('and dispatch are as before when jobs at the largest accepted bounds were queued and cancelled', () => {
    const queued = (grid: Grid): Grid => {
      grid.placeAtSite(job({ id: 1, estimateS: 0.1 }), 1);
      grid.placeAtSite(job({ id: 2, estimateS: MAX.leastSeconds, benchmark: MAX.leastBenchmark }), 2);
      grid.placeAtSite(job({ id: 3, estimateS: 0.3 }), 3);
      return grid;
    };
    const [grid, other] = [queued(threeSites()), queued(threeSites())];
    grid.index(QueuedWork);
    const largest = { benchmark: MAX.benchmark, estimateS: MAX.work / MAX.benchmark };
    const ids = Array.from({ length: 10_000 }, (_, i) => 10 + i);
    for (const id of ids)
      grid.placeAtSite(job({ id, ...largest, estimateS: largest.estimateS / (1 + (id % 7)) }), 2);
    expect(10_000 * MAX.work).toBeGreaterThan(Number.MAX_SAFE_INTEGER);
    for (const id of ids) grid.removeJob(id);
    for (const one of [grid, other])
      for (const id of [20_001, 20_002, 20_003]) one.placeAtRoot(job({ id, estimateS: 0.2 }));
    const { moves } = dispatch(grid);
    expect(moves.map(({ to }) => to)).toEqual([2, 1, 2]);
    expect(moves).toEqual(dispatch(other).moves);
  });
});

describe('dispatch', () => {
  it('fills idle sites in site order, then the least loaded, and counts its own moves', () => {
    const grid = threeSites();
    for (const [id, estimate] of [
      [1, 300],
      [2, 100],
      [3, 200],
      [4, 50],
    ] as const)
      grid.placeAtRoot(job({ id, estimateS: estimate }));
    const { moves, policyVersion } = dispatch(grid);
    expect(moves.map(({ jobId, to, reason }) => [jobId, to, reason])).toEqual([
      [1, 1, 'IDLE_SITE'],
      [2, 2, 'IDLE_SITE'],
      [3, 3, 'IDLE_SITE'],
      [4, 2, 'LEAST_LOAD'],
    ]);
    expect(policyVersion).toBe(7);
    expect(moves[3]?.explanation).toMatchObject({
      sites: [1, 2, 3],
      terms: { load: [300, 100, 200], ordering: [1, 1, 1] },
    });
  });

  it('takes equal loads by the number of jobs, then by a draw that depends on seed and job only', () => {
    const grid = gridOf([
      { id: 1, siteId: 1 },
      { id: 2, siteId: 2 },
    ]);
    grid.placeAtSite(job({ id: 1, estimateS: 100, priority: 0 }), 1);
    grid.placeAtSite(job({ id: 2, estimateS: 50, priority: 0 }), 2);
    grid.placeAtSite(job({ id: 3, estimateS: 50, priority: 0 }), 2);
    grid.placeAtRoot(job({ id: 4 }));
    expect(dispatch(grid).moves[0]).toMatchObject({ to: 1, reason: 'LEAST_ORDERING' });

    grid.placeAtSite(job({ id: 2, estimateS: 100, priority: 0 }), 2);
    grid.removeJob(3);
    const drawn = dispatch(grid).moves[0];
    expect(drawn).toMatchObject({ reason: 'RANDOM_TIE_BREAK', explanation: { candidates: [1, 2] } });
    expect(drawn?.to).toBe(1 + Math.floor(draw(DEFAULT_POLICY.seed, 4) * 2));
  });

  it('looks only at work of the job’s priority or above', () => {
    const grid = gridOf([
      { id: 1, siteId: 1 },
      { id: 2, siteId: 2 },
    ]);
    grid.placeAtSite(job({ id: 1, priority: 3, estimateS: 1000 }), 1);
    grid.placeAtSite(job({ id: 2, priority: 12, estimateS: 10 }), 2);
    grid.placeAtRoot(job({ id: 3, userClass: 'GOLD' }));
    grid.placeAtRoot(job({ id: 4, userClass: 'REGULAR' }));
    const { moves } = dispatch(grid);
    // GOLD is 10: nothing at site 1 counts. REGULAR is 0: everything counts.
    expect(moves.map(({ to, priority, reason }) => [to, priority, reason])).toEqual([
      [1, 10, 'IDLE_SITE'],
      [2, 0, 'LEAST_LOAD'],
    ]);
  });

  it('project and service add what the policy lists for them, as terms of their own', () => {
    const grid = gridOf([{ id: 1 }]);
    grid.placeAtRoot(job({ id: 1, userClass: 'SILVER', project: 'climate', application: 'solver' }));
    grid.placeAtRoot(job({ id: 2, userClass: 'SILVER', project: 'constructor', application: 'toString' }));
    grid.placeAtRoot(job({ id: 3, project: null, application: 'climate' }));
    const policy = parsePolicy({
      ...DEFAULT_POLICY,
      dispatch: {
        ...DEFAULT_POLICY.dispatch,
        weights: { deadline: 1, licenses: 1, user: 1, project: 2, service: 0.5 },
        projectDelta: { climate: 8 },
        serviceDelta: { solver: 3 },
      },
    });
    const { moves } = dispatch(grid, policy);
    const terms = { deadline: 0, licenses: 0 };
    expect(moves.map(({ priority, explanation }) => [priority, explanation.priorityTerms])).toEqual([
      // floor(5 + 2·8 + 0.5·3)
      [22, { ...terms, user: 5, project: 8, service: 3 }],
      [5, { ...terms, user: 5, project: 0, service: 0 }],
      [0, { ...terms, user: 0, project: 0, service: 0 }],
    ]);
  });

  it('ignores priorities in mode NONE', () => {
    const grid = gridOf([
      { id: 1, siteId: 1 },
      { id: 2, siteId: 2 },
    ]);
    grid.placeAtSite(job({ id: 1, priority: 3, estimateS: 1000 }), 1);
    grid.placeAtSite(job({ id: 2, priority: 12, estimateS: 10 }), 2);
    grid.placeAtRoot(job({ id: 3, userClass: 'GOLD' }));
    expect(dispatch(grid, policyWith('NONE')).moves[0]).toMatchObject({
      to: 2,
      priority: 0,
      reason: 'LEAST_LOAD',
    });
  });

  it('adds the boost to the level and keeps it out of the priority', () => {
    const grid = gridOf([{ id: 1 }]);
    grid.placeAtRoot(job({ id: 1, boost: 7 }));
    grid.placeAtRoot(job({ id: 2, boost: -7 }));
    expect(dispatch(grid).moves.map(({ priority, explanation }) => [priority, explanation.level])).toEqual([
      [0, 7],
      [0, 0],
    ]);
  });

  it('goes in order of submission, then id, up to its limit', () => {
    const grid = gridOf([{ id: 1 }]);
    for (const [id, submit] of [
      [5, 2],
      [4, 1],
      [3, 1],
    ] as const)
      grid.placeAtRoot(job({ id, submittedAt: submit }));
    const result = dispatch(grid, policyWith('MS'), 0, 2);
    expect(ids(result.moves)).toEqual([3, 4]);
    expect(result).toMatchObject({ truncated: true, waitingByReason: { MOVE_LIMIT: 1 } });
  });

  it('says why jobs stay', () => {
    const pool = { id: 1, kind: 'matlab', copies: 1, siteId: null };
    const grid = gridOf(
      [
        { id: 1, cpus: 4, memoryMb: 100, licenseIds: [2] },
        { id: 2, siteId: 2, cpus: 8, memoryMb: 50, licenseIds: [2] },
      ],
      [pool, { ...pool, id: 2, kind: 'other' }],
    );
    const wishes = [
      { cpusPerTask: 9 },
      { memoryMbPerTask: 101 },
      { cpusPerTask: 8, memoryMbPerTask: 60 },
      { os: 'plan9' },
      { licenses: ['matlab'] },
      { tasks: 13 },
    ];
    for (const [i, wish] of wishes.entries()) grid.placeAtRoot(job({ id: i + 1, ...wish }));
    const reasons = wishes.map((_, i) => whyWaiting(grid, i + 1, { now: 0, policy: DEFAULT_POLICY })?.code);
    expect(reasons).toEqual([
      'NEVER_FITS_CPUS',
      'NEVER_FITS_MEMORY',
      'NEVER_FITS_TOGETHER',
      'NEVER_FITS_PLATFORM',
      'NEVER_FITS_LICENSES',
      'NEVER_FITS_CPUS',
    ]);
    expect(dispatch(grid).waitingByReason).toMatchObject({ NEVER_FITS_CPUS: 2 });
    expect(dispatch(grid).moves).toEqual([]);

    grid.placeAtRoot(job({ id: 10, cpusPerTask: 8 }));
    grid.setSite({ id: 2, name: 'two', state: 'DRAINING', localPolicy: null });
    expect(whyWaiting(grid, 10, { now: 0, policy: DEFAULT_POLICY })?.code).toBe('NO_ELIGIBLE_SITE');
    expect(
      placement(grid, job({ id: 10, cpusPerTask: 8 }), { now: 0, policy: DEFAULT_POLICY }).ranking,
    ).toEqual([
      { siteId: 1, rank: null, terms: {}, ineligible: 'NO_MACHINE_NOW' },
      { siteId: 2, rank: null, terms: {}, ineligible: 'SITE_DRAINING' },
    ]);
    grid.setSite({ id: 1, name: 'one', state: 'DOWN', localPolicy: null });
    expect(dispatch(grid).waitingByReason).toEqual({ NO_SITE_UP: 7 });
  });

  it('keeps the margins of dispatched jobs in order', () => {
    const grid = gridOf([{ id: 1 }]);
    const margins = grid.index(Margins);
    margins.add([5, 6]);
    grid.placeAtSite(job({ id: 1, deadline: 500, priority: 0 }), 1); // loaded: no dispatch
    grid.placeAtRoot(job({ id: 2, submittedAt: 10, deadline: 200 }));
    grid.placeAtRoot(job({ id: 3 }));
    for (const move of dispatch(grid).moves) applyMove(grid, move, 0);
    expect(grid.placeOf(3)).toEqual({ at: 'QUEUE', siteId: 1 });
    expect(margins.last(10)).toEqual([5, 6, 90]);
    expect(margins.last(2)).toEqual([6, 90]);
  });
});

describe('site cycle', () => {
  it('starts heads while they fit, reserves, and backfills before and beside the reservation', () => {
    const grid = gridOf([{ id: 1, cpus: 10 }]);
    const shapes = [
      [1, 6, 100],
      [2, 8, 50],
      [3, 2, 100],
      [4, 2, 101],
      [5, 1, 500],
      [6, 1, 100],
    ] as const;
    for (const [id, cpusPerTask, estimate] of shapes)
      grid.placeAtSite(job({ id, submittedAt: id, cpusPerTask, estimateS: estimate }), 1);
    const made = plan(grid);
    // 1 starts; 2 waits until 100 and leaves 2 CPUs then; 3 ends by 100; 4 does not, and takes one of... both that are left.
    expect(made.starts.map(({ jobId, reason }) => [jobId, reason])).toEqual([
      [1, 'HEAD'],
      [3, 'BACKFILLED_BEFORE_RESERVATION'],
      [4, 'BACKFILLED_BESIDE_RESERVATION'],
    ]);
    expect(made.reservation).toMatchObject({
      jobId: 2,
      at: 100,
      allocations: [{ machineId: 1, tasks: 1 }],
      madeAt: 0,
    });
    expect(made.waitingByReason).toEqual({ CPUS_BUSY: 3 });
    expect(made.starts.map(({ reason }) => describeStart(reason))).toEqual([
      'Head of the queue, resources free.',
      'Backfilled; according to its estimate it ends before the reserved start of a job ahead of it.',
      'Backfilled; it uses no resources reserved for a job ahead of it.',
    ]);
  });

  it('starts nothing that would delay the reservation', () => {
    const grid = gridOf([{ id: 1, cpus: 10 }]);
    for (const [id, cpusPerTask, estimate] of [
      [1, 6, 100],
      [2, 10, 50],
      [3, 4, 101],
    ] as const) {
      grid.placeAtSite(job({ id, submittedAt: id, cpusPerTask, estimateS: estimate }), 1);
    }
    const made = apply(grid);
    expect(ids(made.starts)).toEqual([1]);
    expect(made.waitingByReason).toEqual({ CPUS_BUSY: 1, WOULD_DELAY_RESERVATION: 1 });
    expect(whyWaiting(grid, 3, { now: 0, policy: EASY })).toMatchObject({
      code: 'WOULD_DELAY_RESERVATION',
      message: 'It would fit now, but would delay the reserved start of a job ahead of it.',
      numbers: { ahead: 1, freeCpus: 4, reservedJob: 2, reservedAt: 100, expectedStart: 150 },
    });
    expect(whyWaiting(grid, 2, { now: 0, policy: EASY })).toMatchObject({
      code: 'CPUS_BUSY',
      message: 'Needs 10 CPUs on one machine; at most 4 are free on any one (4 in total).',
      numbers: { ahead: 0, expectedStart: 100 },
    });
    expect(whyWaiting(grid, 1, { now: 0, policy: EASY })).toBeNull();
    // The promise keeps its age.
    expect(plan(grid, 20).reservation).toMatchObject({ jobId: 2, at: 100, madeAt: 0 });
    // Job 1 is late: it counts as ending now.
    expect(plan(grid, 130).reservation).toMatchObject({ jobId: 2, at: 130 });
    expect(plan(grid, 130).starts).toEqual([]);
  });

  it('counts every release of the very instant', () => {
    const grid = gridOf([{ id: 1, cpus: 10 }]);
    for (const [id, cpusPerTask] of [
      [1, 3],
      [2, 3],
      [3, 3],
      [4, 6],
    ] as const) {
      grid.placeAtSite(job({ id, submittedAt: id, cpusPerTask, estimateS: 100 }), 1);
    }
    grid.placeAtSite(job({ id: 5, submittedAt: 5, estimateS: 1000 }), 1);
    // All three end at 100: the head takes 6 of 10, and 4 are left for job 5.
    expect(plan(grid).starts.map(({ jobId, reason }) => [jobId, reason])[3]).toEqual([
      5,
      'BACKFILLED_BESIDE_RESERVATION',
    ]);
  });

  it('takes the first eligible machine of the highest power, ties by id, and plans by its power', () => {
    const grid = gridOf([
      { id: 1, benchmark: 1, cpus: 8 },
      { id: 2, benchmark: 4, cpus: 2 },
      { id: 3, benchmark: 2 },
      { id: 4, benchmark: 2 },
    ]);
    for (const [id, cpusPerTask] of [
      [1, 2],
      [2, 2],
      [3, 3],
      [4, 4],
      [5, 5],
    ] as const) {
      grid.placeAtSite(job({ id, submittedAt: id, cpusPerTask, estimateS: 100, benchmark: 2 }), 1);
    }
    expect(
      plan(grid).starts.map(({ allocations, plannedDuration }) => [
        allocations[0]?.machineId,
        plannedDuration,
      ]),
    ).toEqual([
      [2, 50],
      [3, 100],
      [4, 100],
      [1, 200],
    ]);
  });

  it('spans machines with several tasks, one task never', () => {
    const grid = gridOf([{ id: 1, benchmark: 2 }, { id: 2 }, { id: 3, available: false }]);
    grid.placeAtSite(job({ id: 1, tasks: 3, cpusPerTask: 2, memoryMbPerTask: 400 }), 1);
    grid.placeAtSite(job({ id: 2, cpusPerTask: 6 }), 1);
    const made = plan(grid);
    expect(made.starts).toMatchObject([
      {
        jobId: 1,
        allocations: [
          { machineId: 1, tasks: 2 },
          { machineId: 2, tasks: 1 },
        ],
        plannedDuration: 100,
      },
    ]);
    // Nobody waits behind a job that no available machine could run.
    expect(made).toMatchObject({ reservation: null, waitingByReason: { NO_MACHINE_NOW: 1 } });
  });

  it('uses the site’s own licenses first, then the grid’s', () => {
    const licenses = [
      { id: 1, kind: 'x', copies: 1, siteId: null },
      { id: 2, kind: 'x', copies: 1, siteId: 1 },
    ];
    const grid = gridOf([{ id: 1, licenseIds: [1, 2] }], licenses);
    for (const id of [1, 2, 3]) grid.placeAtSite(job({ id, submittedAt: id, licenses: ['x'] }), 1);
    const made = apply(grid);
    expect(made.starts.map(({ pools }) => pools)).toEqual([[{ id: 2, amount: 1 }], [{ id: 1, amount: 1 }]]);
    expect(made).toMatchObject({
      reservation: { jobId: 3, at: 100, pools: [{ id: 2, amount: 1 }] },
      waitingByReason: { LICENSES_BUSY: 1 },
    });
  });

  it('keeps a grid-wide license for the older reservation of another site', () => {
    const pool = { id: 1, kind: 'x', copies: 1, siteId: null };
    const grid = gridOf(
      [
        { id: 1, licenseIds: [1] },
        { id: 2, siteId: 2, licenseIds: [1] },
      ],
      [pool],
    );
    grid.placeAtSite(job({ id: 1, cpusPerTask: 4, estimateS: 50 }), 1);
    apply(grid);
    grid.placeAtSite(job({ id: 2, licenses: ['x'], estimateS: 100 }), 1);
    expect(apply(grid, 1).reservation).toMatchObject({ jobId: 2, at: 50, pools: [{ id: 1, amount: 1 }] });
    grid.placeAtSite(job({ id: 3, licenses: ['x'], estimateS: 48 }), 2);
    grid.placeAtSite(job({ id: 4, licenses: ['x'], estimateS: 49 }), 2);
    // At 2 it would end at 50: job 3 may run. Then nothing is left for job 4 before 150.
    const made = apply(grid, 2, EASY, 2);
    expect(made.starts).toMatchObject([{ jobId: 3, reason: 'HEAD' }]);
    expect(made.reservation).toMatchObject({ jobId: 4, at: 150 });
    expect(plan(grid, 3, EASY, 2).starts).toEqual([]);
    // Without job 3, job 4 would delay the reservation at 50 by a second, so it waits all the same.
    grid.endRun(3);
    expect(plan(grid, 2, EASY, 2)).toMatchObject({ starts: [], reservation: { jobId: 4, at: 150 } });
  });

  it('leaves the copy that its own reservation will need beside that of another site', () => {
    const pool = { id: 1, kind: 'x', copies: 2, siteId: null };
    const sites = [
      { id: 1, licenseIds: [1] },
      { id: 2, siteId: 2, licenseIds: [1] },
    ];
    const grid = gridOf(sites, [pool]);
    for (const siteId of [1, 2]) {
      grid.placeAtSite(job({ id: siteId, cpusPerTask: 3, estimateS: 50 * siteId }), siteId);
      apply(grid, 0, EASY, siteId);
    }
    grid.placeAtSite(job({ id: 3, submittedAt: 1, cpusPerTask: 2, licenses: ['x'], estimateS: 500 }), 1);
    expect(apply(grid, 1).reservation).toMatchObject({ jobId: 3, at: 50 });
    grid.placeAtSite(job({ id: 4, submittedAt: 1, cpusPerTask: 2, licenses: ['x'] }), 2);
    grid.placeAtSite(job({ id: 5, submittedAt: 2, licenses: ['x'], estimateS: 500 }), 2);
    grid.placeAtSite(job({ id: 6, submittedAt: 3, licenses: ['x'], estimateS: 48 }), 2);
    const made = plan(grid, 2, EASY, 2);
    expect(made.reservation).toMatchObject({ jobId: 4, at: 100, pools: [{ id: 1, amount: 1 }] });
    expect(ids(made.starts)).toEqual([6]);
  });

  it('orders by level-1 priority with the boost in MS, by arrival otherwise, ties by id', () => {
    const grid = gridOf([{ id: 1, cpus: 1 }]);
    grid.placeAtSite(job({ id: 1, submittedAt: 1, priority: 2 }), 1);
    grid.placeAtSite(job({ id: 2, submittedAt: 1, priority: 5 }), 1);
    grid.placeAtSite(job({ id: 3, submittedAt: 0, priority: 2 }), 1);
    expect(ids(plan(grid, 0, policyWith('MS')).starts)).toEqual([2]);
    expect(ids(plan(grid, 0, policyWith('NONE')).starts)).toEqual([3]);
    grid.placeAtSite(job({ id: 1, submittedAt: 1, priority: 2, boost: 4 }), 1);
    expect(ids(plan(grid, 0, policyWith('MS')).starts)).toEqual([1]);
    grid.placeAtSite(job({ id: 3, submittedAt: 1, priority: 2 }), 1);
    expect(ids(plan(grid, 0, policyWith('NONE')).starts)).toEqual([1]);
  });

  it('counts the demand for licenses where the pool is shared: of a grid-wide one over all sites', () => {
    const grid = gridOf(
      [
        { id: 1, siteId: 1, cpus: 1 },
        { id: 2, siteId: 2, cpus: 1 },
      ],
      [
        { id: 1, kind: 'shared', copies: 2, siteId: null },
        { id: 2, kind: 'own', copies: 2, siteId: 1 },
        { id: 3, kind: 'own', copies: 2, siteId: 2 },
        { id: 4, kind: 'both', copies: 1, siteId: null },
        { id: 5, kind: 'both', copies: 3, siteId: 2 },
      ],
    );
    const ratios = (siteId: number) =>
      Object.fromEntries(grid.index(LicenseRequests).ratiosOf(grid.siteEntry(siteId).queue));
    grid.placeAtSite(job({ id: 1, licenses: ['both', 'own', 'shared'] }), 1);
    expect(ratios(1)).toEqual({ shared: 1 / 2, own: 1 / 2, both: 1 / 4 });
    for (let id = 2; id <= 4; id++) grid.placeAtSite(job({ id, licenses: ['both', 'own', 'shared'] }), 2);
    expect(ratios(1)).toEqual({ shared: 4 / 2, own: 1 / 2, both: 4 / 4 });
    expect(ratios(2)).toEqual({ shared: 4 / 2, own: 3 / 2, both: 4 / 4 });
    grid.removeJob(4);
    expect(ratios(1)).toEqual({ shared: 3 / 2, own: 1 / 2, both: 3 / 4 });
  });

  it('judges a deadline by the most powerful of the machines that take jobs now', () => {
    const grid = gridOf([
      { id: 1, benchmark: 2 },
      { id: 2, benchmark: 8, available: false },
    ]);
    const best = () => grid.siteEntry(1).resources.bestBenchmark;
    expect(best()).toBe(2);
    grid.setMachine(machine({ id: 1, benchmark: 2, available: false }));
    expect(best()).toBe(8);
  });

  it('runs any license of the site and of the grid on any machine that is not restricted', () => {
    const grid = gridOf(
      [
        { id: 1, siteId: 1, cpus: 1 },
        { id: 2, siteId: 1, cpus: 1, licenseIds: [2] },
      ],
      [
        { id: 1, kind: 'a', copies: 5, siteId: null },
        { id: 2, kind: 'b', copies: 5, siteId: 1 },
      ],
    );
    const able = (kind: string) =>
      grid
        .siteEntry(1)
        .resources.eligible(grid.requirementOf(job({ id: 1, licenses: [kind] })).signature)
        .machines.map(({ machine: { id } }) => id);
    expect([able('a'), able('b')]).toEqual([[1], [1, 2]]);
  });

  it('orders by its own priority in LS, boost added, and says the terms', () => {
    const grid = gridOf([{ id: 1, cpus: 1, benchmark: 2 }]);
    grid.placeAtSite(job({ id: 1, submittedAt: 0, estimateS: 200 }), 1);
    grid.placeAtSite(job({ id: 2, submittedAt: 20, estimateS: 100 }), 1);
    const first = plan(grid, 100, policyWith('LS')).starts[0];
    // 0.01·80 + 0.1 + 1·100/100 against 0.01·100 + 0.1 + 1·100/200.
    expect(first).toMatchObject({ jobId: 2, plannedDuration: 50, explanation: { order: 'OWN_PRIORITY' } });
    expect(first?.explanation.terms).toEqual({
      aging: 0.0008,
      deadline: 0.1,
      licenses: 0,
      waitMinimization: 1,
    });
    grid.placeAtSite(job({ id: 1, submittedAt: 0, estimateS: 200, boost: 1 }), 1);
    expect(ids(plan(grid, 100, policyWith('LS')).starts)).toEqual([1]);
  });

  it('takes equal own priorities by arrival, then id', () => {
    const grid = gridOf([{ id: 1, cpus: 6 }]);
    for (const id of [5, 2, 6, 1, 4, 3]) grid.placeAtSite(job({ id }), 1);
    expect(ids(plan(grid, 100, policyWith('LS')).starts)).toEqual([1, 2, 3, 4, 5, 6]);
  });

  it('starts nothing at a draining or down site, and no more than it may', () => {
    const grid = gridOf([{ id: 1 }]);
    for (const id of [1, 2, 3]) grid.placeAtSite(job({ id }), 1);
    expect(plan(grid, 0, EASY, 1, 2)).toMatchObject({ truncated: true, waitingByReason: { READY: 1 } });
    grid.setSite({ id: 1, name: '', state: 'DRAINING', localPolicy: null });
    expect(plan(grid)).toMatchObject({ starts: [], waitingByReason: { SITE_DRAINING: 3 } });
    grid.setSite({ id: 1, name: '', state: 'DOWN', localPolicy: null });
    expect(plan(grid)).toMatchObject({ starts: [], waitingByReason: { SITE_DOWN: 3 } });
  });

  it('follows the site’s own local policy', () => {
    const grid = gridOf([{ id: 1, cpus: 2 }]);
    for (const [id, cpusPerTask] of [
      [1, 1],
      [2, 2],
      [3, 1],
    ] as const)
      grid.placeAtSite(job({ id, submittedAt: id, cpusPerTask }), 1);
    expect(ids(plan(grid).starts)).toEqual([1, 3]);
    grid.setSite({ id: 1, name: '', state: 'UP', localPolicy: { kind: 'fcfs' } });
    expect(plan(grid)).toMatchObject({
      starts: [{ jobId: 1 }],
      reservation: null,
      waitingByReason: { CPUS_BUSY: 1, JOBS_AHEAD: 1 },
    });
  });
});

describe('placement', () => {
  it('ranks all sites and predicts the start at the best, after the reservation where it could delay it', () => {
    const grid = gridOf([
      { id: 1, cpus: 4 },
      { id: 2, siteId: 2, cpus: 1 },
      { id: 3, siteId: 3 },
    ]);
    grid.placeAtSite(job({ id: 1, cpusPerTask: 3, estimateS: 100, priority: 0 }), 1);
    grid.placeAtSite(job({ id: 2, cpusPerTask: 4, estimateS: 10, priority: 0 }), 1);
    apply(grid);
    grid.placeAtSite(job({ id: 3, estimateS: 500, priority: 0 }), 3);
    const context = { now: 0, policy: EASY };
    const short = placement(grid, job({ id: 9, cpusPerTask: 1, estimateS: 100, os: 'linux' }), context);
    expect(short.ranking.map(({ siteId, rank, terms }) => [siteId, rank, terms.load])).toEqual([
      [2, 1, 0],
      [1, 2, 10],
      [3, 3, 500],
    ]);
    expect(short).toMatchObject({ reason: 'IDLE_SITE', start: { siteId: 2, at: 0 } });
    grid.setSite({ id: 2, name: '', state: 'DOWN', localPolicy: null });
    const before = placement(grid, job({ id: 9, estimateS: 100 }), context);
    expect(before).toMatchObject({ reason: 'LEAST_LOAD', start: { siteId: 1, at: 0, plannedDuration: 100 } });
    expect(placement(grid, job({ id: 9, estimateS: 101 }), context).start).toMatchObject({
      siteId: 1,
      at: 110,
    });
    expect(before.explanation && describeDispatch(before.reason, before.explanation).sites).toEqual([
      { siteId: 1, terms: { load: 10, ordering: 1 }, candidate: true, ineligible: null },
      { siteId: 3, terms: { load: 500, ordering: 1 }, candidate: false, ineligible: null },
      { siteId: 2, terms: {}, candidate: false, ineligible: 'SITE_DOWN' },
    ]);
  });
});

describe('Grid', () => {
  it('throws on calls that cannot be right', () => {
    const pool = { id: 1, kind: 'x', copies: 1, siteId: 1 };
    const grid = gridOf(
      [
        { id: 1, licenseIds: [1] },
        { id: 2, siteId: 2 },
      ],
      [pool],
    );
    grid.placeAtSite(job({ id: 1, licenses: ['x'] }), 1);
    const run = {
      jobId: 1,
      siteId: 1,
      epoch: 1,
      allocations: [{ machineId: 1, tasks: 1 }],
      pools: [{ id: 1, amount: 1 }],
      start: 0,
      plannedEnd: 9,
    };
    expect(() => grid.startRun({ ...run, siteId: 2 })).toThrow('job 1 is not in the queue of site 2');
    expect(() => grid.startRun({ ...run, allocations: [{ machineId: 2, tasks: 1 }] })).toThrow(
      'machine 2 is not at site 1',
    );
    expect(() => grid.startRun({ ...run, allocations: [{ machineId: 1, tasks: 5 }] })).toThrow(
      'machine 1 has no room for job 1',
    );
    expect(() => grid.startRun({ ...run, jobId: 8 })).toThrow('job 8 is not in the grid');
    grid.startRun(run);
    expect(grid.placeOf(1)).toEqual({ at: 'RUNNING', siteId: 1, plannedEnd: 9 });
    expect(() => grid.startRun(run)).toThrow('job 1 has a live run');
    expect(() => grid.placeAtRoot(job({ id: 1 }))).toThrow('job 1 has a live run');
    expect(() => grid.removeJob(1)).toThrow('job 1 has a live run');
    expect(() => grid.removeMachine(1)).toThrow('machine 1 has live runs');
    expect(() => grid.removeLicense(1)).toThrow('license 1 is held by live runs');
    grid.placeAtSite(job({ id: 2, licenses: ['x'] }), 1);
    expect(() => grid.startRun({ ...run, jobId: 2 })).toThrow('license 1 has too few free copies for job 2');
    expect(() => grid.removeSite(1)).toThrow('site 1 still has machines');
    grid.endRun(1);
    expect(() => grid.endRun(1)).toThrow('job 1 has no live run');
    expect(() => grid.placeAtSite(job({ id: 3 }), 7)).toThrow('site 7 is not in the grid');
    expect(() => grid.placeAtRoot(job({ id: 3, estimateS: 0 }))).toThrow(
      'job.estimateS is 0; accepted: a finite number above 0',
    );
    expect(() => grid.setMachine(machine({ id: 1, cpus: 0.5 }))).toThrow(
      'machine.cpus is 0.5; accepted: a whole number from 1',
    );
  });

  it('a refused call changes nothing', () => {
    const grid = gridOf([{ id: 1 }]);
    grid.placeAtSite(job({ id: 1 }), 1);
    const before = plan(grid);
    expect(() => grid.placeAtSite(job({ id: 1, tasks: 0 }), 1)).toThrow();
    expect(() => grid.placeAtSite(job({ id: 1 }), 5)).toThrow();
    expect(plan(grid)).toEqual(before);
  });

  it('lets go of empty sites', () => {
    const grid = gridOf([{ id: 1 }]);
    grid.removeMachine(1);
    grid.removeSite(1);
    expect(grid.sites).toEqual([]);
    expect(new Grid().sites).toEqual([]);
  });
});

describe('policy document', () => {
  it('accepts the default', () => {
    expect(parsePolicy(structuredClone(DEFAULT_POLICY))).toEqual(DEFAULT_POLICY);
  });

  it('takes documents of the release before, where workflows stood in the dispatch and local policies', () => {
    const { dispatch, local } = DEFAULT_POLICY;
    const before = { ...DEFAULT_POLICY, dispatch: { ...dispatch, workflows: 'ARRIVAL' } };
    expect(parsePolicy(before)).toEqual({ ...DEFAULT_POLICY, workflows: 'ARRIVAL' });
    expect(parsePolicy({ ...before, local: { ...local, workflows: 'RANK' } })).toEqual({
      ...DEFAULT_POLICY,
      workflows: 'RANK',
    });
    expect(() => parsePolicy({ ...DEFAULT_POLICY, local: { ...local, workflows: 'FIRST' } })).toThrow(
      /workflows/,
    );
  });

  it.each([
    [
      'dispatch.maxDelta',
      { dispatch: { ...DEFAULT_POLICY.dispatch, maxDelta: 0 } },
      /^dispatch\.maxDelta: 0 is not accepted; accepted: .*1/,
    ],
    [
      'dispatch.weights',
      { dispatch: { ...DEFAULT_POLICY.dispatch, weights: { deadline: 1e5, licenses: 0, user: 0 } } },
      /4096/,
    ],
    [
      'dispatch.projectDelta.climate',
      { dispatch: { ...DEFAULT_POLICY.dispatch, projectDelta: { climate: 11 } } },
      /^dispatch\.projectDelta\.climate: 11 is not accepted; accepted: must not be above maxDelta \(10\)/,
    ],
    [
      'dispatch.kind',
      { dispatch: { kind: 'magic' } },
      /^dispatch\.kind: "magic" is not accepted; accepted: .*two-level/,
    ],
    [
      'local.weights.deadlineMin',
      {
        local: {
          ...DEFAULT_POLICY.local,
          weights: { ...(DEFAULT_POLICY.local as never as { weights: object }).weights, deadlineMin: 9 },
        },
      },
      /^local\.weights\.deadlineMin: 9 is not accepted; accepted: must not be above deadlineMax/,
    ],
    ['seed', { seed: -1 }, /^seed: -1 is not accepted; accepted: .*0/],
    ['unknown', { unknown: 1 }, /unknown/],
  ])('names path, value and what is accepted: %s', (_, change, message) => {
    expect(() => parsePolicy({ ...DEFAULT_POLICY, ...change })).toThrow(message);
  });

  it('checks a local policy alone', () => {
    expect(parseLocalPolicy({ kind: 'easy' })).toEqual({ kind: 'easy' });
    expect(() => parseLocalPolicy({ kind: 'easy', depth: 2 })).toThrow(/depth/);
  });
});

describe('randomness', () => {
  it('draws the same for the same seed and key, evenly', () => {
    const draws = Array.from({ length: 10_000 }, (_, key) => draw(42, key));
    expect(draws[17]).toBe(draw(42, 17));
    const tenths = Array.from({ length: 10 }, (_, i) => draws.filter((d) => Math.floor(d * 10) === i).length);
    for (const count of tenths) expect(Math.abs(count - 1000)).toBeLessThan(150);
  });

  it('keeps named streams apart', () => {
    const first = new RandomStream(1, 'arrivals');
    const again = new RandomStream(1, 'arrivals');
    const other = new RandomStream(1, 'sizes');
    const numbers = Array.from({ length: 5 }, () => first.next());
    expect(Array.from({ length: 5 }, () => again.next())).toEqual(numbers);
    expect(Array.from({ length: 5 }, () => other.next())).not.toEqual(numbers);
    const mean = Array.from({ length: 20_000 }, () => first.exponential(3)).reduce((a, b) => a + b) / 20_000;
    expect(Math.abs(mean - 3)).toBeLessThan(0.15);
  });
});

describe('reasons', () => {
  it('have a sentence each, numbers filled in', () => {
    for (const code of Object.values(ReasonCode)) expect(reasonSentence(code)).toMatch(/\.$/);
    const numbers = { neededCpus: 8, mostFreeCpus: 4, freeCpus: 13 };
    expect(reasonSentence('CPUS_BUSY', { ...numbers, tasks: 1 })).toBe(
      'Needs 8 CPUs on one machine; at most 4 are free on any one (13 in total).',
    );
    expect(reasonSentence('CPUS_BUSY', { ...numbers, tasks: 2 })).toBe(
      'Needs 8 CPUs for 2 tasks; at most 4 are free on one machine (13 in total).',
    );
  });
});
