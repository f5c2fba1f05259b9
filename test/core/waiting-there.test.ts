/** What policies and people are told of a site that schedules itself: others' queue there, and how long jobs of ours lately waited. */
import { describe, expect, it } from 'vitest';
import { stranded } from '../../src/core/agenda.js';
import { figuresOf } from '../../src/core/explain/external.js';
import {
  DEFAULT_POLICY,
  type Grid,
  type Job,
  type LocalPolicy,
  type ObservedWait,
  observedWaits,
  type Policy,
  parsePolicy,
  placement,
  type SiteLoad,
  siteCycle,
  whyWaiting,
} from '../../src/core/index.js';
import { isTooLong } from '../../src/core/resources/eligibility.js';
import { observedFor } from '../../src/core/terms/observed-waits.js';
import { shareOfPower, waitingThere } from '../../src/core/terms/waiting-there.js';
import { job } from './support/drive.js';
import { gridOf } from './support/grids.js';
import { settle } from './support/moves.js';

const [SLURM, OWN] = [1, 2];
const EMPTY: SiteLoad = { waitingJobs: 0, waitingS: 0, waitingCpuS: 0, busy: [] };
/** Ten jobs of others with 2 CPUs and an hour's limit. */
const OTHERS: SiteLoad = { ...EMPTY, waitingJobs: 10, waitingS: 36_000, waitingCpuS: 72_000 };
/** `site 1` is Slurm's, on one machine with 8 CPUs of power 2; `site 2` is ours, alike. */
function world(load: SiteLoad): Grid {
  const grid = gridOf([
    { id: 1, siteId: SLURM, cpus: 8, benchmark: 2 },
    { id: 2, siteId: OWN, cpus: 8, benchmark: 2 },
  ]);
  const { site } = grid.siteEntry(SLURM);
  const localPolicy: LocalPolicy = { kind: 'external', queueLimit: 100, takeBackAfterS: 60 };
  grid.setSite({ ...site, load, localPolicy });
  return grid;
}

function handOver(grid: Grid, id: number, given: Partial<Job> = {}): void {
  const run = {
    jobId: id,
    siteId: SLURM,
    epoch: 1,
    allocations: [],
    pools: [],
    start: 0,
    plannedEnd: 100,
  };
  grid.restoreRun({ ...run, waits: true }, job({ id, ...given }));
}

const ranOf = (waitS: number, began = true, cpus = 4, limitS: number | null = 3_600) => ({
  ...{ cpus, limitS, waitS, began },
});
const waitsOf = (waitS: number, more: Partial<ObservedWait> = {}): ObservedWait[] => [
  { cpusMax: 4, limitMaxS: 3_840, runs: 5, waitS, ...more },
];
const TWO_LEVEL = { ...DEFAULT_POLICY.dispatch };
const policyOf = (dispatch: Record<string, unknown>): Policy =>
  parsePolicy({ ...DEFAULT_POLICY, local: { kind: 'easy' }, dispatch });
/** Of the job at both sites. */
function termsOf(grid: Grid, dispatch: Record<string, unknown>, given: Partial<Job> = {}) {
  const { ranking, siteId } = placement(
    grid,
    job({ id: 99, cpusPerTask: 4, runTimeLimitS: 3_600, ...given }),
    {
      ...{ now: 0, policy: policyOf(dispatch) },
    },
  );
  const of = (id: number) => ranking.find((one) => one.siteId === id)!.terms;
  return { slurm: of(SLURM), own: of(OWN), siteId };
}

describe('observed waits', () => {
  it('are means by shape, in which later starts count more', () => {
    const [wait, ...others] = observedWaits([ranOf(100), ranOf(200)]);
    // (100 + 0.9 · 200) / 1.9, to two digits.
    expect(wait).toEqual({ cpusMax: 4, limitMaxS: 3_840, runs: 2, waitS: 150 });
    expect(others).toEqual([]);
    const shapes = observedWaits([
      ranOf(1, true, 1, 240),
      ranOf(2, true, 5, 241),
      ranOf(3, true, 9_999, null),
    ]);
    expect(shapes).toEqual([
      { cpusMax: 1, limitMaxS: 240, runs: 1, waitS: 1 },
      { cpusMax: 16, limitMaxS: 960, runs: 1, waitS: 2 },
      { cpusMax: null, limitMaxS: null, runs: 1, waitS: 3 },
    ]);
  });

  it('count what still waits once it has waited for longer, and look at so many', () => {
    const begun = [ranOf(100), ranOf(100)];
    expect(observedWaits([ranOf(90, false), ...begun])).toMatchObject([{ runs: 2, waitS: 100 }]);
    const [stuck] = observedWaits([ranOf(9_000, false), ...begun]);
    expect(stuck).toMatchObject({ runs: 3 });
    expect(stuck!.waitS).toBeGreaterThan(3_000);
    expect(observedWaits([ranOf(50, false)])).toMatchObject([{ runs: 1, waitS: 50 }]);
    const many = Array.from({ length: 500 }, () => ranOf(7));
    expect(observedWaits(many)).toEqual([{ cpusMax: 4, limitMaxS: 3_840, runs: 50, waitS: 7 }]);
  });

  it('stand for the nearest shape where none like it was seen, of two as near for the larger', () => {
    const load: SiteLoad = {
      ...EMPTY,
      waits: [
        ...waitsOf(10, { cpusMax: 1 }),
        ...waitsOf(20, { cpusMax: 16 }),
        ...waitsOf(30, { cpusMax: null, limitMaxS: null }),
      ],
    };
    const of = (cpus: number, runTimeLimitS: number | null) =>
      observedFor({ load }, job({ id: 1, tasks: 1, cpusPerTask: cpus, runTimeLimitS }))?.waitS;
    expect(of(1, 3_600)).toBe(10);
    expect(of(4, 3_600)).toBe(20);
    expect(of(16, 240)).toBe(20);
    expect(of(5_000, null)).toBe(30);
    expect(observedFor({ load: EMPTY }, job({ id: 1 }))).toBeNull();
  });
});

describe('what waits there', () => {
  const asked = job({ id: 99, cpusPerTask: 4, runTimeLimitS: 3_600 });
  const at = (grid: Grid, of: Job | null = asked) => waitingThere(grid.siteEntry(SLURM), 0, of);

  it("is others' work by their limits where nothing was observed", () => {
    expect(at(world(OTHERS))).toEqual({ jobs: 10, work: 72_000, cpuWork: 144_000 });
  });

  it('is the wait of jobs like it where that was observed, at least what was handed over, and nothing where nobody waits', () => {
    const grid = world({ ...OTHERS, waits: waitsOf(600) });
    // Two at once for 600 s, and all CPUs, on power 2.
    expect(at(grid)).toEqual({ jobs: 10, work: 2_400, cpuWork: 9_600 });
    expect(at(grid, null)).toEqual({ jobs: 10, work: 72_000, cpuWork: 144_000 });
    handOver(grid, 1, { estimateS: 100_000 });
    expect(at(grid)).toEqual({ jobs: 11, work: 100_000, cpuWork: 100_000 });
    expect(at(world({ ...EMPTY, waits: waitsOf(600) }))).toEqual({ jobs: 0, work: 0, cpuWork: 0 });
  });

  it("counts in two-level's Load and Ordering", () => {
    const dispatch = TWO_LEVEL;
    expect(termsOf(world(OTHERS), dispatch)).toMatchObject({
      ...{ slurm: { load: 72_000, ordering: 10 }, own: { load: 0, ordering: 0 }, siteId: OWN },
    });
    const busy = (waitS: number) => {
      const grid = world({ ...OTHERS, waits: waitsOf(waitS) });
      for (let id = 10; id < 13; id++) grid.placeAtSite(job({ id, estimateS: 1_000 }), OWN);
      return termsOf(grid, dispatch);
    };
    // Our site has 3 000 queued.
    expect(busy(600)).toMatchObject({ slurm: { load: 2_400 }, own: { load: 3_000 }, siteId: SLURM });
    expect(busy(900)).toMatchObject({ slurm: { load: 3_600 }, siteId: OWN });
  });

  it("counts in DIANA's costs, by the job's own limit", () => {
    const dispatch = { kind: 'diana' };
    const bare = termsOf(world(EMPTY), dispatch).slurm.computation!;
    // Over 8 CPUs of power 2.
    expect(termsOf(world(OTHERS), dispatch).slurm.computation).toBeCloseTo(bare + 144_000 / 16);
    const grid = world({ ...OTHERS, waits: [...waitsOf(600), ...waitsOf(7_000, { limitMaxS: null })] });
    expect(termsOf(grid, dispatch).slurm.computation).toBeCloseTo(bare + 600);
    expect(termsOf(grid, dispatch, { runTimeLimitS: null }).slurm.computation).toBeCloseTo(bare + 7_000);
    expect(termsOf(grid, dispatch).own.computation).toBeCloseTo(bare);
  });

  it("counts in the job ratio's rank, by the number of jobs", () => {
    const dispatch = { kind: 'job-ratio' };
    const idle = termsOf(world(EMPTY), dispatch);
    expect(idle.slurm.rank).toBe(idle.own.rank);
    const { slurm, own, siteId } = termsOf(world(OTHERS), dispatch);
    expect(slurm.qr).toBeLessThan(own.qr!);
    expect(slurm.rank).toBeLessThan(own.rank!);
    expect(siteId).toBe(OWN);
  });

  describe('in the grid tree', () => {
    const dispatch = { kind: 'grid-tree', queueLimit: 1 };

    it('makes its power less, by what others leave of it', () => {
      expect(shareOfPower(world(EMPTY).siteEntry(SLURM))).toBe(1);
      // Their limits are an hour; their work takes 72 000 s over 8 CPUs.
      expect(shareOfPower(world(OTHERS).siteEntry(SLURM))).toBeCloseTo(3_600 / (3_600 + 9_000));
      const observed = world({ ...OTHERS, waits: waitsOf(1_200) });
      expect(shareOfPower(observed.siteEntry(SLURM))).toBeCloseTo(0.75);
      expect(termsOf(observed, dispatch)).toMatchObject({
        slurm: { power: 6 },
        own: { power: 8 },
        siteId: OWN,
      });
      const { slurm, own } = termsOf(observed, { ...dispatch, power: 'BENCHMARK' });
      expect([slurm.power, own.power]).toEqual([12, 16]);
    });

    it('asks for work although no CPU is free there, as long as fewer of ours wait than the limit', () => {
      const full = { ...OTHERS, busy: [{ machineId: 1, cpus: 8, memoryMb: 0 }] };
      const grid = world(full);
      grid.setSite({ ...grid.siteEntry(OWN).site, state: 'DOWN' });
      for (const id of [1, 2, 3]) grid.placeAtRoot(job({ id, submittedAt: id }));
      settle(grid, policyOf(dispatch), 0);
      const places = () => [1, 2, 3].map((id) => grid.placeOf(id)!.at);
      expect(places().filter((at) => at === 'QUEUE')).toEqual(['QUEUE']);
      const held = world(full);
      held.setSite({ ...held.siteEntry(OWN).site, state: 'DOWN' });
      handOver(held, 9);
      held.placeAtRoot(job({ id: 1 }));
      settle(held, policyOf(dispatch), 0);
      expect(held.placeOf(1)!.at).not.toBe('QUEUE');
    });
  });
});

describe('the longest limit of a site', () => {
  const HOUR: SiteLoad = { ...EMPTY, longestS: 3_600 };
  const long = { runTimeLimitS: 3_601 };

  it.each([
    TWO_LEVEL,
    { kind: 'diana' },
    { kind: 'job-ratio' },
    { kind: 'queues', order: 'FCFS', queueLimit: 10 },
    { kind: 'grid-tree' },
    { kind: 'round-robin' },
  ])('keeps longer jobs from it under $kind, and takes those as long', (dispatch) => {
    const grid = world(HOUR);
    const policy = policyOf(dispatch);
    const decided = (given: Partial<Job>) => placement(grid, job({ id: 9, ...given }), { now: 0, policy });
    const { siteId, ranking } = decided(long);
    expect(siteId).toBe(OWN);
    expect(ranking.find((one) => one.siteId === SLURM)).toMatchObject({
      ineligible: 'LIMIT_TOO_LONG',
      rank: null,
    });
    for (const given of [{ runTimeLimitS: 3_600 }, { runTimeLimitS: null }])
      expect(decided(given).ranking.map(({ ineligible }) => ineligible)).toEqual([null, null]);
    for (const id of [1, 2, 3, 4]) grid.placeAtRoot(job({ id, submittedAt: id, ...long }));
    settle(grid, policy, 10);
    for (const id of [1, 2, 3, 4]) expect(grid.placeOf(id)).not.toMatchObject({ siteId: SLURM });
  });

  it.each([
    TWO_LEVEL,
    { kind: 'diana' },
    { kind: 'job-ratio' },
    { kind: 'queues', order: 'FCFS', queueLimit: 10 },
    { kind: 'grid-tree' },
    { kind: 'round-robin' },
  ])('is what its operator has set, too, under $kind', (dispatch) => {
    const grid = world(EMPTY);
    const own = grid.siteEntry(OWN).site;
    grid.setSite({ ...own, maxLimitS: 3_600 });
    const policy = policyOf(dispatch);
    const ineligible = (given: Partial<Job>) =>
      placement(grid, job({ id: 9, ...given }), { now: 0, policy }).ranking.find(
        ({ siteId }) => siteId === OWN,
      )?.ineligible;
    expect(ineligible(long)).toBe('LIMIT_TOO_LONG');
    for (const given of [{ runTimeLimitS: 3_600 }, { runTimeLimitS: null }])
      expect(ineligible(given)).toBeNull();
    for (const id of [1, 2, 3, 4]) grid.placeAtRoot(job({ id, submittedAt: id, ...long }));
    settle(grid, policy, 10);
    for (const id of [1, 2, 3, 4]) expect(grid.placeOf(id)).not.toMatchObject({ siteId: OWN });
    grid.setSite(own);
    expect(ineligible(long)).toBeNull();
    // The shorter of both counts at a site with a scheduler of its own.
    grid.setSite({ ...grid.siteEntry(SLURM).site, load: HOUR, maxLimitS: 1_800 });
    expect(isTooLong(grid.siteEntry(SLURM).site, 1_801)).toBe(true);
    expect(isTooLong(grid.siteEntry(SLURM).site, 1_800)).toBe(false);
  });

  it('does not keep what was taken before it from starting, if no other site can run it', () => {
    const grid = world(EMPTY);
    const policy = policyOf(TWO_LEVEL);
    grid.placeAtSite(job({ id: 1, ...long }), OWN);
    grid.setSite({ ...grid.siteEntry(OWN).site, maxLimitS: 3_600 });
    expect(stranded(grid, 10)).toEqual([{ siteId: OWN, reason: 'LIMIT_TOO_LONG', jobIds: [1] }]);
    grid.setSite({ ...grid.siteEntry(SLURM).site, state: 'DOWN' });
    expect(stranded(grid, 10)).toEqual([]);
    expect(whyWaiting(grid, 1, { now: 0, policy })?.code).not.toBe('LIMIT_TOO_LONG');
    const { starts } = siteCycle(grid, OWN, { now: 0, policy, policyVersion: 1, maxStarts: 10 });
    expect(starts.map(({ jobId }) => jobId)).toEqual([1]);
  });

  it.each([TWO_LEVEL, { kind: 'diana' }, { kind: 'grid-tree' }])(
    'is why they wait where no other site could run them under $kind',
    (dispatch) => {
      const grid = world(HOUR);
      grid.setSite({ ...grid.siteEntry(OWN).site, state: 'DOWN' });
      grid.placeAtRoot(job({ id: 1, ...long }));
      const policy = policyOf(dispatch);
      settle(grid, policy, 0);
      expect(grid.placeOf(1)).toMatchObject({ at: 'ROOT' });
      expect(whyWaiting(grid, 1, { now: 0, policy })).toMatchObject({
        ...{ code: 'LIMIT_TOO_LONG', numbers: { limitS: 3_601, longestS: 3_600 } },
        wouldChange: ['Request a shorter run time limit, or the site allows longer jobs.'],
      });
    },
  );

  it('keeps from its scheduler what waits at the site already, and gives it back where another can run it', () => {
    const grid = world(HOUR);
    const policy = policyOf(TWO_LEVEL);
    grid.placeAtSite(job({ id: 1, ...long }), SLURM);
    grid.placeAtSite(job({ id: 2, runTimeLimitS: 3_600 }), SLURM);
    expect(whyWaiting(grid, 1, { now: 0, policy })?.code).toBe('LIMIT_TOO_LONG');
    const { starts } = siteCycle(grid, SLURM, { now: 0, policy, policyVersion: 1, maxStarts: 10 });
    expect(starts.map(({ jobId }) => jobId)).toEqual([2]);
    expect(stranded(grid, 10)).toEqual([{ siteId: SLURM, reason: 'LIMIT_TOO_LONG', jobIds: [1] }]);
    grid.setSite({ ...grid.siteEntry(OWN).site, state: 'DOWN' });
    expect(stranded(grid, 10)).toEqual([]);
  });

  it('takes jobs of meta-queues elsewhere that it has become too short for', () => {
    const grid = world(EMPTY);
    grid.placeAtMeta(job({ id: 1, ...long }), SLURM);
    grid.placeAtMeta(job({ id: 2 }), SLURM);
    grid.setSite({ ...grid.siteEntry(SLURM).site, load: HOUR });
    settle(grid, policyOf({ kind: 'diana', queueLimit: 1 }), 0);
    expect(grid.placeOf(1)).toMatchObject({ siteId: OWN });
  });
});

describe('what is said', () => {
  const context = { now: 50, policy: policyOf(TWO_LEVEL) };

  it('tells the figures, their age, and that they are outdated', () => {
    const grid = world({ ...OTHERS, waits: waitsOf(900), busy: [{ machineId: 1, cpus: 5, memoryMb: 0 }] });
    handOver(grid, 1, { cpusPerTask: 4, runTimeLimitS: 3_600 });
    const entry = grid.siteEntry(SLURM);
    const fresh = figuresOf(entry, grid.job(1)!, { ageS: 12.3, isStale: false });
    expect(fresh.message).toBe(
      'The scheduler of site site 1, as of 12 s ago: 10 other jobs waiting (20 CPU-hours by their limits), 1 job of ours waiting, 5 of 8 CPUs in use. Jobs of this size lately waited 15 min there (mean of 5).',
    );
    expect(fresh.numbers).toEqual({
      ...{ loadAgeS: 12, othersWaiting: 10, othersWaitingCpuS: 72_000, oursWaiting: 1 },
      ...{ busyCpus: 5, siteCpus: 8, observedWaitS: 900, observedRuns: 5 },
    });
    const stale = figuresOf(entry, grid.job(1)!, { ageS: 7_300, isStale: true });
    expect(stale.message).toMatch(
      /as of 2 h ago: .*These figures are outdated: the agent of the site is silent\.$/,
    );
    expect(
      figuresOf(world(OTHERS).siteEntry(SLURM), job({ id: 1 }), { ageS: 0, isStale: false }).message,
    ).toMatch(/No job of ours has lately started there\.$/);
  });

  it('expects a start there after the observed wait, and at once where nobody waits', () => {
    const only = (load: SiteLoad) => {
      const grid = world(load);
      grid.setSite({ ...grid.siteEntry(OWN).site, state: 'DOWN' });
      return placement(grid, job({ id: 9 }), context).start;
    };
    expect(only({ ...OTHERS, waits: waitsOf(900) })).toMatchObject({
      siteId: SLURM,
      at: 950,
      expected: true,
    });
    expect(only({ ...EMPTY, waits: waitsOf(900) })).toMatchObject({ at: 50, expected: true });
    expect(only(OTHERS)).toBeNull();
    const queued = world({ ...OTHERS, waits: waitsOf(900) });
    queued.placeAtSite(job({ id: 9 }), SLURM);
    expect(whyWaiting(queued, 9, context)?.numbers).toMatchObject({ earliestStart: 950 });
  });
});
