import { describe, expect, it } from 'vitest';
import { QueuedWork } from '../../src/core/dispatch/two-level/queued-work.js';
import {
  DataCatalog,
  type Grid,
  jobData,
  type Move,
  placement,
  Shares,
  UNKNOWN_LINK,
  userStandings,
} from '../../src/core/index.js';
import { queueOf, quotaPriority, thresholdOf } from '../../src/core/terms/quota.js';
import { job } from './support/drive.js';
import { dispatch, gridOf } from './support/grids.js';
import { applyMoves, dianaPolicy, settle } from './support/moves.js';

const brief = (moves: readonly Move[]) =>
  moves.map(({ jobId, from, to, queue, reason }) => [jobId, from, to, queue, reason]);

/** Two like sites of 4 CPUs. */
const twoSites = (): Grid =>
  gridOf([
    { id: 1, siteId: 1 },
    { id: 2, siteId: 2 },
  ]);

describe('priority by quota', () => {
  it('is as in the worked example, among the jobs of one site', () => {
    const grid = twoSites();
    grid.index(Shares).set(1, 1900);
    grid.index(Shares).set(2, 1700);
    grid.placeAtMeta(job({ id: 1, userId: 1 }), 1);
    grid.placeAtMeta(job({ id: 2, userId: 1, cpusPerTask: 5 }), 1);
    grid.placeAtMeta(job({ id: 3, userId: 2 }), 1);
    // Another site has a queue, and priorities, of its own.
    for (const id of [4, 5, 6]) grid.placeAtMeta(job({ id, userId: 2 }), 2);
    const closeTo = (priority: number) => expect.closeTo(priority, 4);
    expect(userStandings(grid, dianaPolicy())).toEqual([
      {
        userId: 1,
        siteId: 1,
        quota: 1900,
        jobs: 2,
        groups: [
          { processors: 1, jobs: 1, threshold: closeTo(3.6944), priority: closeTo(0.4586), queue: 2 },
          { processors: 5, jobs: 1, threshold: closeTo(0.7389), priority: closeTo(-0.6306), queue: 4 },
        ],
      },
      {
        userId: 2,
        siteId: 1,
        quota: 1700,
        jobs: 1,
        groups: [{ processors: 1, jobs: 1, threshold: closeTo(3.3056), priority: closeTo(0.6975), queue: 1 }],
      },
      {
        userId: 2,
        siteId: 2,
        quota: 1700,
        jobs: 3,
        groups: [{ processors: 1, jobs: 3, threshold: 3, priority: 0, queue: 2 }],
      },
    ]);
  });

  it('has its bounds on the right side of the four queues', () => {
    expect([1, 0.5, 0.4999, 0, -0.0001, -0.5, -0.5001, -1].map(queueOf)).toEqual([1, 1, 2, 2, 3, 3, 4, 4]);
    expect([quotaPriority(2, 4), quotaPriority(4, 4), quotaPriority(4, 2)]).toEqual([0.5, 0, -0.5]);
    // Nobody has a quota: everybody is beyond it.
    expect(quotaPriority(1, thresholdOf(0, 0, 5, 1))).toBe(-1);
  });
});

describe('the site of submission', () => {
  const places = (placement: string, cpus: readonly number[]): (number | null)[] => {
    const grid = gridOf([
      { id: 1, siteId: 1, cpus: 4 },
      { id: 2, siteId: 2, cpus: 4, benchmark: 300 },
    ]);
    for (const [i, cpusPerTask] of cpus.entries())
      grid.placeAtRoot(job({ id: i + 1, cpusPerTask, data: jobData({ originSiteId: 1 }) }));
    return dispatch(grid, dianaPolicy({ placement })).moves.map(({ to }) => to);
  };

  it('is left for where a job costs less, or only where it cannot start at once', () => {
    expect(places('LEAST_COST', [1])).toEqual([2]);
    // Two of three CPUs each do not fit beside one another; who comes behind one that waits waits, too.
    expect(places('ORIGIN_FIRST', [3, 1])).toEqual([1, 1]);
    expect(places('ORIGIN_FIRST', [3, 3])).toEqual([1, 2]);
  });
});

describe('meta-queues in the order of processors', () => {
  it('serve the narrowest first, whoever has which quota', () => {
    const first = (metaOrder: string): (number | undefined)[] => {
      const grid = gridOf([{ id: 1, siteId: 1, cpus: 40 }]);
      grid.index(Shares).set(1, 1000);
      [35, 26, 17].forEach((cpusPerTask, i) => {
        grid.placeAtMeta(job({ id: i + 1, userId: 1, cpusPerTask }), 1);
      });
      grid.placeAtMeta(job({ id: 4, userId: 2, cpusPerTask: 8 }), 1);
      return dispatch(grid, dianaPolicy({ metaOrder, queueLimit: 4 })).moves.map(({ jobId }) => jobId);
    };
    expect(first('QUOTA')).toEqual([3, 2, 1, 4]);
    expect(first('SJF')).toEqual([4, 3, 2, 1]);
  });
});

describe('an image', () => {
  const sites = () =>
    gridOf([1, 2].map((id) => ({ id, siteId: id, labels: { containers: 'bubblewrap' }, benchmark: 3 - id })));
  const decided = (grid: Grid, image: string | null) => {
    grid.placeAtRoot(job({ id: 1, image, estimateS: 10 }));
    const [move] = dispatch(grid, dianaPolicy()).moves;
    return { to: move?.to, data: move?.explanation.terms.data, image: move?.explanation.image };
  };

  it('counts as data where it does not lie: the site that has it is nearer, though it is slower', () => {
    const grid = sites();
    grid.index(DataCatalog).setImages({ siteId: 2, sizesMb: { 'debian:12': 500 } });
    expect(decided(grid, 'debian:12')).toEqual({
      to: 2,
      data: [500 / UNKNOWN_LINK.bandwidthMbPerS, 0],
      image: { sizeMb: 500, siteIds: [2] },
    });
  });

  it('counts as nothing while it lies nowhere, and when it has gone', () => {
    const grid = sites();
    const unknown = { to: 1, data: [0, 0], image: null };
    expect(decided(grid, 'debian:12')).toEqual(unknown);
    grid.index(DataCatalog).setImages({ siteId: 2, sizesMb: { 'debian:12': 500, other: 5 } });
    expect(decided(grid, 'debian:12')).toMatchObject({ to: 2 });
    grid.index(DataCatalog).setImages({ siteId: 2, sizesMb: { other: 5 } });
    expect(decided(grid, 'debian:12')).toEqual(unknown);
    expect(decided(grid, null)).toEqual({ ...unknown, image: undefined });
  });

  it('is as large as at the site where it takes the most', () => {
    const catalog = sites().index(DataCatalog);
    catalog.setImages({ siteId: 3, sizesMb: { a: 40 } });
    catalog.setImages({ siteId: 2, sizesMb: { a: 60 } });
    expect(catalog.image('a')).toEqual({ sizeMb: 60, siteIds: [2, 3] });
    expect([1, 2, 3].map((siteId) => catalog.accessS({ data: null, image: 'a' }, siteId))).toEqual([6, 0, 0]);
  });
});

describe('where a new job goes', () => {
  it('costs are seconds of network, computation and data, each term recorded', () => {
    const grid = gridOf([
      { id: 1, siteId: 1, cpus: 4, benchmark: 2 },
      { id: 2, siteId: 2, cpus: 8 },
      { id: 3, siteId: 3, cpus: 1 },
    ]);
    const links = [
      [1, 2, 5],
      [2, 1, 4],
      [3, 1, 2],
      [3, 2, 10],
    ] as const;
    for (const [fromSiteId, toSiteId, bandwidthMbPerS] of links)
      grid.index(DataCatalog).setLink({ fromSiteId, toSiteId, bandwidthMbPerS, rttS: 0.5, loss: 0.5 });
    grid.index(DataCatalog).setDataset({ id: 7, sizeMb: 60, siteIds: [2, 3] });
    // Two CPUs of site 2 are busy; one job waits in a local queue and one in a meta-queue, both of one user.
    grid.placeAtSite(job({ id: 11, cpusPerTask: 2, estimateS: 1000 }), 2);
    grid.startRun({
      jobId: 11,
      siteId: 2,
      epoch: 1,
      allocations: [{ machineId: 2, tasks: 1 }],
      pools: [],
      start: 0,
      plannedEnd: 1000,
    });
    grid.placeAtSite(job({ id: 12, cpusPerTask: 4, estimateS: 20, priority: 4096 }), 1);
    grid.placeAtMeta(job({ id: 13, userId: 3, estimateS: 50, benchmark: 3 }), 2);
    // One that is below every priority here is ahead of nobody.
    grid.placeAtSite(job({ id: 14, estimateS: 500, priority: 0 }), 2);
    const data = jobData({
      originSiteId: 1,
      sandboxMb: 10,
      inputs: [{ datasetId: 7 }, { siteId: 1, sizeMb: 5 }],
      outputMb: 8,
      computationShare: 0.8,
    });
    grid.placeAtRoot(job({ id: 1, cpusPerTask: 2, estimateS: 30, benchmark: 4, data }));
    const weights = {
      computational: { network: 2, computation: 3, data: 5 },
      dataIntensive: { network: 1, computation: 1, data: 1 },
      both: { network: 1, computation: 1, data: 1 },
    };
    const [move] = dispatch(grid, dianaPolicy({ weights, loadPenaltyS: 100, queueLimit: 1 })).moves;
    const { sites, terms, ineligible, level, candidates, priorityTerms } = move?.explanation ?? {};
    expect(sites).toEqual([1, 2]);
    expect(ineligible).toEqual({ 3: 'NO_MACHINE_NOW' });
    // It would be alone in the meta-queue of site 1. At site 2, of quotas 1 and 1 and processors 1 and 2: N = 3/4 < n = 1, so -0.25;
    // the one-processor job there has 0.3333.
    expect(priorityTerms).toEqual({
      priority: 0,
      threshold: 1,
      queue: 2,
      userJobs: 1,
      processors: 2,
      allProcessors: 2,
      quota: 1,
      quotas: 1,
      computation: 0.8,
      dataIntensive: expect.closeTo(0.2),
      runs: 0,
    });
    expect([move?.priority, level]).toEqual([2048, 2048]);
    // The sandbox: (0.5 + 10/5)/(1 - 0.5). Ahead: 20 s on 4 CPUs of power 2 · 4, and 50 s of power 3 over 8.
    // The run: 120/2 and 120/1; the load: 2 of 8 CPUs. Data: from 2 to 1 and 0; 0 and 5/5; back 0 and 8/4.
    const network = [0, 5];
    const computation = [80 / 8 + 60 + 0, 150 / 8 + 120 + 25];
    const moved = [60 / 4 + 0 + 0, 0 + 1 + 2];
    expect(terms).toEqual({
      total: [0, 1].map(
        (i) => 2 * (network[i] as number) + 3 * (computation[i] as number) + 5 * (moved[i] as number),
      ),
      elsewhere: [0, 1],
      network,
      computation,
      data: moved,
      priority: [0, -0.25],
    });
    expect(candidates).toEqual([1]);
    expect(move).toMatchObject({ from: null, to: 1, queue: 'META', reason: 'LEAST_COST' });
  });

  it('weighs the terms by the kind of job', () => {
    const weights = {
      computational: { network: 0, computation: 1, data: 0 },
      dataIntensive: { network: 0, computation: 0, data: 1 },
      both: { network: 1, computation: 0, data: 0 },
    };
    // Site 1 has the data, site 2 is fast, and the submitting site 3 is near to itself only.
    const grid = gridOf([
      { id: 1, siteId: 1 },
      { id: 2, siteId: 2, benchmark: 10 },
      { id: 3, siteId: 3 },
    ]);
    const of = (computationShare: number) =>
      placement(
        grid,
        job({
          id: 1,
          data: jobData({
            originSiteId: 3,
            sandboxMb: 1,
            inputs: [{ siteId: 1, sizeMb: 1 }],
            computationShare,
          }),
        }),
        { now: 0, policy: dianaPolicy({ weights, computationalFrom: 0.7, dataIntensiveTo: 0.3 }) },
      ).ranking[0]?.siteId;
    expect([of(1), of(0.7), of(0.69), of(0.31), of(0.3), of(0)]).toEqual([2, 2, 3, 3, 1, 1]);
  });

  it('counts what it has placed itself, job after job', () => {
    const grid = twoSites();
    for (const id of [1, 2, 3, 4]) grid.placeAtRoot(job({ id, userId: id }));
    const { moves, truncated } = dispatch(grid, dianaPolicy());
    expect(moves.map(({ to }) => to)).toEqual([1, 2, 1, 2]);
    expect(moves.map(({ explanation }) => explanation.priorityTerms?.allProcessors)).toEqual([1, 1, 2, 2]);
    expect(truncated).toBe(true);
  });

  it('its priority at a site is that among the jobs of that site', () => {
    const grid = twoSites();
    // User 1 is far beyond the quota at site 1, not at site 2; both sites have as much work, of others.
    for (let id = 1; id <= 8; id++) grid.placeAtMeta(job({ id, userId: 1, estimateS: 1 }), 1);
    for (const [id, siteId] of [
      [11, 1],
      [12, 2],
    ] as const) {
      grid.placeAtMeta(job({ id, userId: 2, cpusPerTask: 2, estimateS: 300 }), siteId);
      // The local queue is full.
      grid.placeAtSite(job({ id: 100 + id, priority: 0 }), siteId);
    }
    grid.placeAtRoot(job({ id: 20, userId: 1 }));
    const [move] = dispatch(grid, dianaPolicy({ queueLimit: 1 })).moves.filter(({ jobId }) => jobId === 20);
    // At 1: N = (8 + 2 + 1)/2 of n = 9, and the other's 11/4 of 1. At 2: N = 3/2 of n = 1, the other's 3/4.
    expect(move?.explanation.terms).toMatchObject({
      priority: [(11 / 2 - 9) / 9, expect.closeTo(1 / 3)],
      computation: [(8 + 600) / 4 + 100, 100],
    });
    expect(move?.to).toBe(2);
  });

  it('ties go to the site of submission, which is asked first', () => {
    const grid = twoSites();
    grid.placeAtRoot(job({ id: 1, data: jobData({ originSiteId: 2 }) }));
    grid.placeAtRoot(job({ id: 2, userId: 2, data: jobData({ originSiteId: 2 }) }));
    const links = { bandwidthMbPerS: 1e9, rttS: 0, loss: 0 };
    grid.index(DataCatalog).setLink({ fromSiteId: 2, toSiteId: 1, ...links });
    expect(dispatch(grid, dianaPolicy()).moves.map(({ jobId, to }) => [jobId, to])).toEqual([
      [1, 2],
      // There it would have to wait.
      [2, 1],
    ]);
  });

  it('transfers that are queued on a link come first', () => {
    const grid = gridOf([
      { id: 1, siteId: 1 },
      { id: 2, siteId: 2 },
      { id: 3, siteId: 3 },
    ]);
    for (const [fromSiteId, toSiteId] of [
      [3, 1],
      [3, 2],
    ] as const)
      grid.index(DataCatalog).setLink({ fromSiteId, toSiteId, bandwidthMbPerS: 10, rttS: 0, loss: 0 });
    grid.index(DataCatalog).setDataset({ id: 7, sizeMb: 100, siteIds: [3] });
    const reads = jobData({ inputs: [{ datasetId: 7 }, { siteId: 3, sizeMb: 50 }] });
    const runs = (id: number, start: number) => {
      grid.placeAtSite(job({ id, estimateS: 1, priority: 0, data: reads }), 2);
      const allocations = [{ machineId: 2, tasks: 1 }];
      grid.startRun({ jobId: id, siteId: 2, epoch: 1, allocations, pools: [], start, plannedEnd: 99 });
    };
    // 150 MB wait for site 1, which take 15 s, and so do the inputs of two runs at site 2.
    grid.placeAtMeta(job({ id: 11, estimateS: 1, data: reads, boost: -4096 }), 1);
    runs(12, -20);
    runs(13, -5);
    grid.placeAtRoot(job({ id: 20, data: reads }));
    const policy = dianaPolicy({ queueLimit: 1, loadPenaltyS: 0 });
    const data = (): readonly number[] =>
      dispatch(grid, policy).moves.find(({ jobId }) => jobId === 20)?.explanation.terms.data ?? [];
    // Link to site 2: the first had it from -20 to -5, the second has it until 10.
    expect(data()).toEqual([15 + 15, 10 + 15, 0]);
    grid.endRun(12);
    grid.endRun(13);
    expect(data()).toEqual([15 + 15, 15, 0]);
    // What the pass places itself is queued too.
    grid.setSite({ id: 3, name: 'three', state: 'DRAINING', localPolicy: null });
    grid.placeAtRoot(job({ id: 21, userId: 2, data: reads, submittedAt: 1 }));
    const last = dispatch(grid, policy).moves.find(({ jobId }) => jobId === 21)?.explanation.terms.data;
    expect(last).toEqual([15 + 15, 15 + 15]);
  });

  it('by default data weighs four times its seconds, for all kinds', () => {
    const { dispatch: rules } = dianaPolicy();
    expect(rules).toMatchObject({
      weights: {
        computational: { network: 1, computation: 1, data: 4 },
        dataIntensive: { network: 1, computation: 1, data: 4 },
        both: { network: 1, computation: 1, data: 4 },
      },
    });
  });

  it('counts only work of its priority or above', () => {
    const grid = twoSites();
    // A burst at site 1: its user is far beyond the quota, a new user's job does not wait for it.
    for (let id = 1; id <= 10; id++) grid.placeAtMeta(job({ id, userId: 1 }), 1);
    grid.placeAtMeta(job({ id: 20, userId: 2, estimateS: 10 }), 2);
    grid.placeAtRoot(job({ id: 30, userId: 3, estimateS: 10 }));
    grid.placeAtRoot(job({ id: 31, userId: 1, estimateS: 10 }));
    const { moves } = dispatch(grid, dianaPolicy({ queueLimit: 1 }));
    const placed = moves.filter(({ queue }) => queue === 'META');
    expect(placed.map(({ jobId, to }) => [jobId, to])).toEqual([
      [30, 1],
      [31, 2],
    ]);
  });

  it('a dry run of a job that waits in a meta-queue does not count it twice', () => {
    const grid = twoSites();
    const waiting = job({ id: 1, estimateS: 400 });
    grid.placeAtMeta(waiting, 1);
    grid.placeAtMeta(job({ id: 2, userId: 2 }), 2);
    const placed = placement(grid, waiting, { now: 0, policy: dianaPolicy() });
    expect(placed.explanation?.priorityTerms).toMatchObject({ userJobs: 1, allProcessors: 1 });
    expect(placed.explanation?.terms.computation).toEqual([400, 425]);
    expect(placed.ranking.map(({ siteId }) => siteId)).toEqual([1, 2]);
  });
});

describe('from the meta-queue to the local queue', () => {
  it('goes Q1 to Q4, inside by priority, then by arrival, while the local queue has room', () => {
    const grid = twoSites();
    for (const [userId, share] of [
      [1, 10],
      [2, 5],
      [3, 1],
    ] as const)
      grid.index(Shares).set(userId, share);
    const waiting = [
      [1, 3, 1, 0],
      [2, 3, 1, 1],
      [3, 2, 4, 2],
      [4, 2, 1, 3],
      [5, 1, 2, 4],
      [6, 1, 1, 6],
      [7, 1, 1, 5],
    ] as const;
    for (const [id, userId, cpusPerTask, submit] of waiting)
      grid.placeAtMeta(job({ id, userId, cpusPerTask, submittedAt: submit }), 1);
    const queues = userStandings(grid, dianaPolicy()).map(({ groups }) => groups.map(({ queue }) => queue));
    expect(queues).toEqual([[1, 2], [2, 4], [4]]);
    const { moves, waitingByReason, truncated } = dispatch(grid, dianaPolicy({ queueLimit: 4 }), 10);
    expect(brief(moves)).toEqual([
      [7, 1, 1, 'LOCAL', 'NEXT_IN_META_QUEUE'],
      [6, 1, 1, 'LOCAL', 'NEXT_IN_META_QUEUE'],
      [4, 1, 1, 'LOCAL', 'NEXT_IN_META_QUEUE'],
      [5, 1, 1, 'LOCAL', 'NEXT_IN_META_QUEUE'],
    ]);
    expect([waitingByReason, truncated]).toEqual([{ META_QUEUE: 3 }, false]);
    expect(moves[1]?.explanation).toMatchObject({
      sites: [1],
      terms: { queued: [1], room: [3] },
      candidates: [1],
      priorityTerms: { userJobs: 3, processors: 1, allProcessors: 11, quota: 10, quotas: 16, queue: 1 },
    });
  });

  it('takes its place there by the same priority, and a boost raises both', () => {
    const grid = twoSites();
    grid.placeAtMeta(job({ id: 1, submittedAt: 1 }), 1);
    grid.placeAtMeta(job({ id: 2, submittedAt: 2 }), 1);
    grid.placeAtMeta(job({ id: 3, submittedAt: 3, boost: 1 }), 1);
    const { moves } = dispatch(grid, dianaPolicy());
    // One user, three like jobs: N = n, priority 0, in the middle of 0 to 4096.
    expect(moves.map(({ jobId, priority }) => [jobId, priority])).toEqual([
      [3, 2048],
      [1, 2048],
      [2, 2048],
    ]);
    expect(moves[0]?.explanation.level).toBe(2049);
    applyMoves(grid, { moves } as never, 0);
    const counts = new Float64Array(2);
    grid.index(QueuedWork).sums.countsFrom(2049, counts);
    expect([...counts]).toEqual([1, 0]);
  });

  it('a new job is placed, and fed by the next cycle, for which the plan asks', () => {
    const grid = twoSites();
    for (const id of [1, 2, 3]) grid.placeAtRoot(job({ id }));
    const plans = settle(grid, dianaPolicy({ queueLimit: 1 }), 0);
    expect(plans.map(({ moves }) => brief(moves))).toEqual([
      [
        [1, null, 1, 'META', 'LEAST_COST'],
        [2, null, 2, 'META', 'LEAST_COST'],
        [3, null, 1, 'META', 'LEAST_COST'],
      ],
      [
        [1, 1, 1, 'LOCAL', 'NEXT_IN_META_QUEUE'],
        [2, 2, 2, 'LOCAL', 'NEXT_IN_META_QUEUE'],
      ],
    ]);
    expect(grid.placeOf(3)).toEqual({ at: 'META', siteId: 1 });
  });

  it('new jobs do not keep it from feeding', () => {
    const grid = twoSites();
    grid.placeAtMeta(job({ id: 1, submittedAt: 1 }), 1);
    grid.placeAtRoot(job({ id: 2, submittedAt: 2, userId: 2 }));
    expect(brief(dispatch(grid, dianaPolicy()).moves)).toEqual([
      [1, 1, 1, 'LOCAL', 'NEXT_IN_META_QUEUE'],
      [2, null, 2, 'META', 'LEAST_COST'],
    ]);
  });

  it('keeps to its limit of moves and asks to go on', () => {
    const grid = twoSites();
    for (const id of [1, 2, 3]) grid.placeAtMeta(job({ id, submittedAt: id }), 1);
    for (const id of [4, 5]) grid.placeAtRoot(job({ id, submittedAt: id }));
    const first = dispatch(grid, dianaPolicy(), 0, 2);
    expect(first.moves.map(({ jobId }) => jobId)).toEqual([1, 2]);
    expect(first).toMatchObject({ truncated: true, waitingByReason: { MOVE_LIMIT: 2, META_QUEUE: 1 } });
    applyMoves(grid, first, 0);
    expect(settle(grid, dianaPolicy(), 0, 2).flatMap(({ moves }) => moves)).toHaveLength(5);
  });
});

describe('a site that can run a job no more', () => {
  it('gives it up: it goes where a new one would', () => {
    const grid = gridOf([
      { id: 1, siteId: 1, cpus: 8 },
      { id: 2, siteId: 2, cpus: 2 },
      { id: 3, siteId: 3, cpus: 8 },
    ]);
    grid.placeAtMeta(job({ id: 1, cpusPerTask: 4 }), 2);
    grid.placeAtMeta(job({ id: 2, cpusPerTask: 9 }), 2);
    grid.placeAtMeta(job({ id: 3 }), 2);
    grid.placeAtSite(job({ id: 4, priority: 4096 }), 1);
    const plan = dispatch(grid, dianaPolicy());
    expect(brief(plan.moves)).toEqual([
      [3, 2, 2, 'LOCAL', 'NEXT_IN_META_QUEUE'],
      [1, 2, 3, 'META', 'LEAST_COST_ELSEWHERE'],
    ]);
    expect(plan.waitingByReason).toEqual({ NEVER_FITS_CPUS: 1 });
  });

  it('one that is not up is neither fed nor left to others here: its jobs are taken back by the driver', () => {
    const grid = twoSites();
    grid.placeAtMeta(job({ id: 1 }), 1);
    grid.setSite({ id: 1, name: 'one', state: 'DRAINING', localPolicy: null });
    expect(dispatch(grid, dianaPolicy())).toMatchObject({
      moves: [],
      truncated: false,
      waitingByReason: { SITE_DRAINING: 1 },
    });
  });
});
