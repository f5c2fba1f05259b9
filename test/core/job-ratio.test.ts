import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Batcher } from '../../src/core/dispatch/job-ratio/batches.js';
import {
  DataCatalog,
  DEFAULT_POLICY,
  type Grid,
  type Job,
  JobHistory,
  jobData,
  type Policy,
  placement,
  whyWaiting,
} from '../../src/core/index.js';
import { totalsOf } from '../support/totals.js';
import { job } from './support/drive.js';
import { dispatch, gridOf, machine } from './support/grids.js';

const policyOf = (queueLimit: number): Policy => ({
  ...DEFAULT_POLICY,
  dispatch: { kind: 'job-ratio', queueLimit },
});

/** Table 1 of the paper: the sites that each of the jobs 1 to 10 is ranked to, best first. */
const TABLE_1 = [
  [1, 5, 4, 2, 3],
  [3, 4, 5, 1, 2],
  [2, 1, 5, 4, 3],
  [5, 3, 1, 2, 4],
  [4, 1, 3, 2, 5],
  [2, 4, 1, 5, 3],
  [3, 1, 5, 4, 2],
  [1, 4, 3, 2, 5],
  [5, 4, 3, 1, 2],
  [2, 1, 4, 3, 5],
];
/** Table 2: the room of the sites 1 to 5, and the batch that each is sent. */
const ROOM = [2, 1, 3, 2, 2];
const TABLE_2 = [[1, 8], [3], [2, 7, 10], [5, 6], [4, 9]];

/** Five like sites, all 1 MB/s from each other, with so much room below the limit. */
function fiveSites(queueLimit: number): Grid {
  const grid = gridOf([1, 2, 3, 4, 5].map((id) => ({ id, siteId: id })));
  for (const from of [1, 2, 3, 4, 5]) {
    for (const to of [1, 2, 3, 4, 5]) {
      const link = { fromSiteId: from, toSiteId: to, bandwidthMbPerS: 1, rttS: 0, loss: 0 };
      if (from !== to) grid.index(DataCatalog).setLink(link);
    }
  }
  let id = 1_000_000;
  ROOM.forEach((room, i) => {
    for (let queued = room; queued < queueLimit; queued++) grid.placeAtSite(job({ id: id++ }), i + 1);
  });
  return grid;
}

describe("the paper's tables", () => {
  it('1 and 2: ranked jobs fall into the batches', () => {
    const batcher = new Batcher([...ROOM]);
    const batches: number[][] = ROOM.map(() => []);
    TABLE_1.forEach((ranked, i) => {
      const site = batcher.siteFor(ranked.map((id) => id - 1));
      batcher.take(site);
      batches[site]?.push(i + 1);
    });
    expect(batches).toEqual(TABLE_2);
    expect(batcher.siteFor([0, 1, 2, 3, 4])).toBe(-1);
  });

  it('1 and 2 through a whole cycle: data lies so that sites rank as in table 1', () => {
    const grid = fiveSites(1000);
    TABLE_1.forEach((ranked, i) => {
      // What is at a site already need not go there: the more of it, the better the site.
      const inputs = ranked.map((siteId, place) => ({ siteId, sizeMb: 100 * (5 - place) }));
      grid.placeAtRoot(job({ id: i + 1, data: jobData({ inputs, computationShare: 0 }) }));
    });
    grid.placeAtRoot(job({ id: 11 }));
    const { moves, waitingByReason } = dispatch(grid, policyOf(1000));
    for (const { jobId, explanation } of moves) {
      const rank = explanation.terms.rank as readonly number[];
      const order = [...explanation.sites].sort((a, b) => (rank[b - 1] ?? 0) - (rank[a - 1] ?? 0));
      expect(order).toEqual(TABLE_1[jobId - 1]);
    }
    const batches = [1, 2, 3, 4, 5].map((site) =>
      moves.filter(({ to }) => to === site).map(({ jobId }) => jobId),
    );
    expect(batches).toEqual(TABLE_2);
    expect(moves.map(({ reason }) => reason)).toEqual([
      'BEST_RANK',
      'BEST_RANK',
      'BEST_RANK',
      'BEST_RANK',
      'BEST_RANK',
      'BEST_RANK_WITH_ROOM',
      'BEST_RANK',
      'BEST_RANK',
      'BEST_RANK',
      'BEST_RANK_WITH_ROOM',
    ]);
    expect(waitingByReason).toEqual({ QUEUES_FULL: 1 });
  });
});

describe('rank', () => {
  /** Power 2, 6 and 2; 1 and 3 jobs queued at the first two. */
  const threeSites = (): Grid => {
    const grid = gridOf([
      { id: 1, siteId: 1, cpus: 2 },
      { id: 2, siteId: 2, cpus: 3, benchmark: 2 },
      { id: 3, siteId: 3, cpus: 2 },
    ]);
    [1, 2, 2, 2].forEach((site, i) => {
      grid.placeAtSite(job({ id: 100 + i }), site);
    });
    grid.index(DataCatalog).setDataset({ id: 9, sizeMb: 30, siteIds: [3] });
    grid.index(DataCatalog).setLink({ fromSiteId: 3, toSiteId: 1, bandwidthMbPerS: 3, rttS: 0, loss: 0 });
    grid.index(DataCatalog).setLink({ fromSiteId: 3, toSiteId: 2, bandwidthMbPerS: 1, rttS: 0, loss: 0 });
    return grid;
  };

  it('has the image among the data', () => {
    const grid = threeSites();
    for (const id of [1, 2, 3])
      grid.setMachine(machine({ id, siteId: id, cpus: 2, labels: { containers: 'bubblewrap' } }));
    grid.index(DataCatalog).setImages({ siteId: 1, sizesMb: { tools: 60 } });
    const asks = jobData({ inputs: [{ datasetId: 9 }] });
    grid.placeAtRoot(job({ id: 1, data: asks, image: 'tools' }));
    const [move] = dispatch(grid, policyOf(10)).moves;
    expect(move?.explanation.terms.dataAccessCost).toEqual([10, 30 + 6, 6]);
    expect(move?.explanation.image).toEqual({ sizeMb: 60, siteIds: [1] });
  });

  it('has every term as in equations 5 to 9, recorded', () => {
    const grid = threeSites();
    const asks = jobData({ inputs: [{ datasetId: 9 }], computationShare: 0.25 });
    grid.placeAtRoot(job({ id: 1, data: asks }));
    const [move] = dispatch(grid, policyOf(10)).moves;
    const ppr = [0.2, 0.6, 0.2];
    const dpr = [1 - 10 / 40, 1 - 30 / 40, 1];
    const qr = [1 - 1 / 4, 1 - 3 / 4, 1];
    expect(move).toMatchObject({ to: 3, queue: 'LOCAL', from: null, reason: 'BEST_RANK' });
    expect(move?.explanation).toEqual({
      sites: [1, 2, 3],
      terms: {
        rank: ppr.map((p, i) => p * 0.25 + (dpr[i] as number) * 0.75 + (qr[i] as number)),
        ppr,
        dpr,
        qr,
        dataAccessCost: [10, 30, 0],
        room: [9, 7, 10],
      },
      candidates: [3],
      ineligible: {},
      highestFirst: true,
      compared: 1,
      level: null,
      priorityTerms: { computation: 0.25, dataIntensive: 0.75, runs: 0 },
    });
  });

  it('follows what the runs of an application have shown, and takes a sum of 0 for no share', () => {
    const grid = gridOf([
      { id: 1, siteId: 1, cpus: 2 },
      { id: 2, siteId: 2, cpus: 3 },
    ]);
    const [application, userId, kinds] = ['sieve', 1, ''];
    grid
      .index(JobHistory)
      .set(totalsOf({ application, userId, kinds, count: 3, turnaroundS: 10, executionS: 9, ioS: 1 }));
    const placed = placement(grid, job({ id: 1, application }), { now: 0, policy: policyOf(10) });
    expect(placed.explanation?.priorityTerms).toEqual({
      computation: 0.9,
      dataIntensive: expect.closeTo(0.1),
      runs: 3,
    });
    expect(placed.explanation?.terms).toMatchObject({ dpr: [1, 1], qr: [1, 1], dataAccessCost: [0, 0] });
    expect(placed.ranking.map(({ siteId }) => siteId)).toEqual([2, 1]);
  });

  it('counts what was queued when the round began: one round may fill the best site', () => {
    const grid = gridOf([
      { id: 1, siteId: 1, cpus: 2 },
      { id: 2, siteId: 2, cpus: 3 },
    ]);
    for (const id of [1, 2, 3, 4]) grid.placeAtRoot(job({ id }));
    const { moves } = dispatch(grid, policyOf(3));
    expect(moves.map(({ to }) => to)).toEqual([2, 2, 2, 1]);
    expect(moves.map(({ explanation }) => explanation.terms.room)).toEqual([
      [3, 3],
      [3, 2],
      [3, 1],
      [3, 0],
    ]);
    expect(moves[3]?.reason).toBe('BEST_RANK_WITH_ROOM');
  });

  it('ranks equal sites in site order, also in a dry run', () => {
    const grid = gridOf([
      { id: 1, siteId: 2 },
      { id: 2, siteId: 1 },
    ]);
    const placed = placement(grid, job({ id: 1 }), { now: 0, policy: policyOf(1) });
    expect(placed.ranking.map(({ siteId }) => siteId)).toEqual([1, 2]);
  });
});

describe('room', () => {
  it('a job that finds none waits, and later ones that find some do not', () => {
    const grid = gridOf([
      { id: 1, siteId: 1, cpus: 8 },
      { id: 2, siteId: 2, cpus: 2 },
    ]);
    grid.placeAtSite(job({ id: 50 }), 1);
    grid.placeAtRoot(job({ id: 1, cpusPerTask: 4 }));
    grid.placeAtRoot(job({ id: 2 }));
    grid.placeAtRoot(job({ id: 3 }));
    const { moves, waitingByReason, truncated } = dispatch(grid, policyOf(1));
    expect(moves.map(({ jobId, to }) => [jobId, to])).toEqual([[2, 2]]);
    expect([waitingByReason, truncated]).toEqual([{ QUEUES_FULL: 2 }, false]);

    const why = (id: number) => whyWaiting(grid, id, { now: 0, policy: policyOf(1) });
    expect(why(2)?.code).toBe('READY');
    // There is room for it, but the job ahead of it takes it.
    expect(why(3)).toMatchObject({
      code: 'QUEUES_FULL',
      message: 'The queue of every site that could run it is full.',
      wouldChange: [expect.stringContaining('queueLimit')],
      // The terms of the job, and of the site that it ranks first.
      numbers: {
        computation: 0.5,
        dataIntensive: 0.5,
        runs: 0,
        bestSiteId: 2,
        // 0.5·0.2 + 0.5·1 + 1, against 0.5·0.8 + 0.5·1 + 0.
        rank: expect.closeTo(1.6, 12),
        ppr: 0.2,
        dpr: 1,
        qr: 1,
        dataAccessCost: 0,
        room: 0,
      },
    });
    const placed = placement(grid, job({ id: 9, cpusPerTask: 4 }), { now: 0, policy: policyOf(1) });
    expect(placed).toMatchObject({ reason: 'QUEUES_FULL', start: { expected: false } });
    expect(placed.ranking).toMatchObject([
      { siteId: 1, rank: 1, terms: { room: 0 } },
      { siteId: 2, rank: null, ineligible: 'NO_MACHINE_NOW' },
    ]);
  });

  it('is never exceeded, is used up while anybody could use it, and jobs go in order of arrival', () => {
    const shape = fc.record({
      submittedAt: fc.nat(5),
      cpusPerTask: fc.integer({ min: 1, max: 4 }),
      at: fc.constantFrom(1, 2, 3),
    });
    fc.assert(
      fc.property(
        fc.array(shape, { maxLength: 40, size: 'max' }),
        fc.array(fc.constantFrom(1, 2, 3), { maxLength: 12 }),
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 1, max: 50 }),
        (shapes, queued, queueLimit, maxMoves) => {
          const grid = gridOf([1, 2, 3].map((id) => ({ id, siteId: id, cpus: id + 1 })));
          queued.forEach((site, i) => {
            grid.placeAtSite(job({ id: 1000 + i }), site);
          });
          const jobs = shapes.map(({ at, ...shape }, i): Job => {
            const inputs = [{ siteId: at, sizeMb: 10 }];
            return job({ id: i + 1, ...shape, data: jobData({ inputs }) });
          });
          for (const each of jobs) grid.placeAtRoot(each);
          const { moves, waitingByReason } = dispatch(grid, policyOf(queueLimit), 0, maxMoves);
          const room = [1, 2, 3].map((id) =>
            Math.max(0, queueLimit - queued.filter((site) => site === id).length),
          );
          const order = [...jobs].sort((a, b) => a.submittedAt - b.submittedAt || a.id - b.id);
          let moved = 0;
          for (const each of order) {
            if (moved === maxMoves) break;
            const could = [1, 2, 3].filter((id) => each.cpusPerTask <= id + 1);
            const to = moves.find(({ jobId }) => jobId === each.id)?.to;
            if (to === undefined || to === null) {
              expect(could.every((id) => room[id - 1] === 0)).toBe(true);
            } else {
              expect(could).toContain(to);
              expect(room[to - 1]).toBeGreaterThan(0);
              (room[to - 1] as number) -= 1;
              moved++;
            }
          }
          const waiting = Object.values(waitingByReason).reduce((sum, count) => sum + count, 0);
          expect(moves.length + waiting).toBe(jobs.length);
        },
      ),
    );
  });
});
