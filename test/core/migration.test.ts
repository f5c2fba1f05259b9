import { describe, expect, it } from 'vitest';
import {
  congestion,
  type Grid,
  type Job,
  jobData,
  Shares,
  Traffic,
  userStandings,
  whyWaiting,
} from '../../src/core/index.js';
import { congestionOf } from '../../src/core/terms/congestion.js';
import { job } from './support/drive.js';
import { dispatch, gridOf, machine } from './support/grids.js';
import { applyMoves, dianaPolicy, settle } from './support/moves.js';

/** Local queues are full, so that nothing but migration happens. */
const policy = dianaPolicy({ queueLimit: 1, holdOffS: 100, congestionWindowS: 60 });

/** Like sites with one job each in a full local queue; the first is congested. */
function congestedGrid(sites = 2): Grid {
  const grid = gridOf(Array.from({ length: sites }, (_, i) => ({ id: i + 1, siteId: i + 1 })));
  for (let site = 1; site <= sites; site++)
    grid.placeAtSite(job({ id: 1000 + site, estimateS: 10, priority: 4096, userId: 99 }), site);
  grid.index(Traffic).of(1).arrived(0, 60);
  return grid;
}

const waiting = (grid: Grid, siteId: number, ...jobs: (Partial<Job> & { id: number })[]): void => {
  for (const each of jobs) grid.placeAtMeta(job({ groupId: each.id, ...each }), siteId);
};
const goes = (grid: Grid, now = 0, given = policy): number[][] =>
  dispatch(grid, given, now).moves.map(({ jobId, from, to }) => [jobId, from as number, to as number]);

describe('congestion', () => {
  it('is arrivals beyond services, of the arrivals, above the threshold; never where nothing arrives', () => {
    expect(congestionOf({ arrival: 4, service: 1 }, 0.5)).toMatchObject({ value: 0.75, congested: true });
    expect(congestionOf({ arrival: 4, service: 2 }, 0.5)).toMatchObject({ value: 0.5, congested: false });
    expect(congestionOf({ arrival: 0, service: 2 }, -5)).toMatchObject({ value: 0, congested: false });
    expect(congestionOf({ arrival: 1, service: 3 }, -5)).toMatchObject({ value: -2, congested: true });
  });

  it('is measured over the window, and shown with the sites', () => {
    const grid = gridOf([
      { id: 1, siteId: 1, benchmark: 3 },
      { id: 2, siteId: 2, available: false },
    ]);
    waiting(grid, 1, { id: 1 });
    grid.index(Traffic).of(1).arrived(100, 30);
    grid.index(Traffic).of(1).served(110, 12);
    const [first, second] = congestion(grid, { policy, now: 120 });
    expect(first).toEqual({
      siteId: 1,
      up: true,
      queued: 0,
      metaQueued: 1,
      arrivalRate: 0.5,
      serviceRate: 0.2,
      congestion: 0.6,
      congested: true,
      power: 12,
    });
    expect(second).toMatchObject({ metaQueued: 0, arrivalRate: 0, congested: false, power: 0 });
    expect(congestion(grid, { policy, now: 400 })[0]).toMatchObject({ arrivalRate: 0, congested: false });
  });
});

describe('out of a congested site', () => {
  it('a group goes as a whole to where fewer jobs are ahead and it costs less, every term recorded', () => {
    const grid = congestedGrid();
    // The same user: all wait with the same priority.
    waiting(grid, 1, { id: 1, groupId: 5 }, { id: 2, groupId: 5, estimateS: 300 }, { id: 3 }, { id: 4 });
    waiting(grid, 2, { id: 9 });
    const [first, second, third] = dispatch(grid, policy).moves;
    // Ties by the group's id: job 3 alone first; for group 4 both sites are alike then, and group 5 finds fewer here.
    expect(third).toBeUndefined();
    expect([first, second].map((move) => [move?.jobId, move?.to])).toEqual([
      [3, 2],
      [undefined, undefined],
    ]);
    expect(first).toMatchObject({ from: 1, to: 2, queue: 'META', reason: 'EXPORTED' });
    expect(first?.explanation).toEqual({
      sites: [1, 2],
      terms: {
        queueLength: [5, 2],
        jobsAhead: [4, 2],
        total: [(10 + 100 + 300 + 100) / 4 + 100, (10 + 100) / 4 + 100],
        network: [0, 0],
        computation: [(10 + 100 + 300 + 100) / 4 + 100, (10 + 100) / 4 + 100],
        data: [0, 0],
        priority: [0, 0],
      },
      candidates: [2],
      ineligible: {},
      compared: 3,
      level: 2048,
      priorityTerms: { priority: 0, groupJobs: 1, arrivalRate: 1, serviceRate: 0, congestion: 1 },
    });

    waiting(grid, 1, { id: 6 }, { id: 7 }, { id: 8 }, { id: 10 });
    expect(goes(grid)).toEqual([
      [3, 1, 2],
      [4, 1, 2],
      // Five are ahead of group 5 at site 1 (its own two are not), four at site 2; of job 6 five would be there.
      [1, 1, 2],
      [2, 1, 2],
    ]);
  });

  it('what a whole group brings counts: on slow machines it costs more than its jobs would alone', () => {
    const grid = congestedGrid();
    grid.setMachine(machine({ id: 2, siteId: 2, benchmark: 0.6 }));
    grid.placeAtSite(job({ id: 1003, estimateS: 500, priority: 4096, userId: 99 }), 1);
    const group = (jobs: number) => Array.from({ length: jobs }, (_, i) => ({ id: i + 1, groupId: 5 }));
    // Alone: 510/4 + 100 s here, 10/2.4 + 100/0.6 s there. Of twenty the mean waits for 950 s of work more.
    waiting(grid, 1, ...group(20));
    expect(goes(grid)).toEqual([]);
    const few = congestedGrid();
    few.setMachine(machine({ id: 2, siteId: 2, benchmark: 0.6 }));
    few.placeAtSite(job({ id: 1003, estimateS: 500, priority: 4096, userId: 99 }), 1);
    waiting(few, 1, ...group(2));
    expect(goes(few)).toEqual([
      [1, 1, 2],
      [2, 1, 2],
    ]);
  });

  it('at each site a group has the priority that it would have among the jobs there', () => {
    const grid = congestedGrid(3);
    // Here the user has many jobs, so that those of user 2 are ahead. At site 2 only the group would be the user's: it would be ahead of
    // the wider jobs there, while at site 3 it would be with many of its user's.
    for (let id = 1; id <= 8; id++) waiting(grid, 1, { id, groupId: 1 });
    for (let id = 11; id <= 13; id++) waiting(grid, 1, { id, userId: 2, groupId: 2 });
    for (let id = 21; id <= 23; id++) waiting(grid, 2, { id, userId: 2, cpusPerTask: 4, groupId: 3 });
    for (let id = 31; id <= 33; id++) waiting(grid, 3, { id, groupId: 4 });
    const { moves } = dispatch(grid, policy);
    expect(new Set(moves.map(({ jobId, to }) => `${jobId <= 8} ${to}`))).toEqual(new Set(['true 2']));
    // Of 11, 12 + 8 and 3 + 8 processors, among users of equal quotas; at site 3 the user is alone.
    const threshold = 20 / 2;
    expect(moves[0]?.explanation).toMatchObject({
      terms: {
        priority: [(11 / 2 - 8) / 8, (threshold - 8) / threshold, 0],
        jobsAhead: [4, 1, 4],
      },
      priorityTerms: { priority: (threshold - 8) / threshold },
    });
    expect(
      moves.every(({ priority }) => priority === Math.round((1 + (threshold - 8) / threshold) * 2048)),
    ).toBe(true);
  });

  it('nothing goes without congestion, to a peer that is as long, or where only one of the two is better', () => {
    const calm = congestedGrid();
    waiting(calm, 2, { id: 1 }, { id: 2 }, { id: 3 });
    expect(goes(calm)).toEqual([]);

    const alike = congestedGrid();
    waiting(alike, 1, { id: 1 });
    expect(goes(alike)).toEqual([]);

    const dearer = congestedGrid();
    const data = jobData({ inputs: [{ siteId: 1, sizeMb: 1e6 }] });
    waiting(dearer, 1, { id: 1, data }, { id: 2, data });
    expect(goes(dearer)).toEqual([]);

    const cheaper = congestedGrid();
    waiting(cheaper, 1, { id: 1, estimateS: 900 }, { id: 2, estimateS: 900 });
    waiting(cheaper, 2, { id: 3, estimateS: 1 }, { id: 4, estimateS: 1 });
    expect(goes(cheaper)).toEqual([]);
  });

  it('by the words of the paper a group goes unless both are worse there', () => {
    const words = dianaPolicy({
      queueLimit: 1,
      holdOffS: 100,
      congestionWindowS: 60,
      migration: { rule: 'NOT_BOTH_HIGHER' },
    });
    // Fewer jobs are ahead, and it costs more.
    const dearer = congestedGrid();
    const data = jobData({ inputs: [{ siteId: 1, sizeMb: 1e6 }] });
    waiting(dearer, 1, { id: 1, data }, { id: 2, data });
    expect(goes(dearer, 0, words)[0]).toEqual([1, 1, 2]);
    // More are ahead, and it costs more.
    const worse = congestedGrid();
    waiting(worse, 1, { id: 1, data });
    waiting(worse, 2, { id: 3 }, { id: 4 });
    expect(goes(worse, 0, words)).toEqual([]);
  });

  it('every peer that passes is a candidate, not only the one of the shortest queue', () => {
    // Nobody waits at site 2, which is far too slow.
    const grid = gridOf([1, 2, 3].map((id) => ({ id, siteId: id, benchmark: id === 2 ? 0.001 : 100 })));
    for (const site of [1, 2, 3])
      grid.placeAtSite(job({ id: 1000 + site, estimateS: 10, priority: 4096, userId: 99 }), site);
    grid.index(Traffic).of(1).arrived(0, 60);
    waiting(grid, 1, { id: 1 }, { id: 2 }, { id: 3 }, { id: 4 });
    waiting(grid, 3, { id: 9 });
    const [first] = dispatch(grid, policy).moves;
    expect(first?.explanation?.terms.queueLength).toEqual([5, 1, 2]);
    expect(first).toMatchObject({ from: 1, to: 3, reason: 'EXPORTED' });
  });

  it('only groups with jobs in the lowest queue that is not empty go, all of their jobs', () => {
    const grid = congestedGrid();
    grid.index(Shares).set(1, 4);
    grid.index(Shares).set(2, 1);
    // User 1 in Q1 and Q2, user 2 in Q4.
    waiting(grid, 1, { id: 1, groupId: 50 }, { id: 2, groupId: 50, cpusPerTask: 2 }, { id: 3, groupId: 50 });
    waiting(grid, 1, { id: 4, userId: 2, groupId: 60, cpusPerTask: 4 }, { id: 5, userId: 2, groupId: 60 });
    const moves = goes(grid);
    expect(moves).toEqual([
      [4, 1, 2],
      [5, 1, 2],
    ]);
  });

  it.each([
    [12, 3, 1],
    [20, 12, 12],
    [30, 20, 1],
    [20, 10, 4],
  ])(
    'from submission on: of %i jobs over quota and %i within it, in bulks of %i, those within it stay while others wait',
    (over, within, bulk) => {
      const grid = gridOf([
        { id: 1, siteId: 1, cpus: 1 },
        { id: 2, siteId: 2, cpus: 1 },
      ]);
      const two = { id: 2, name: 'two', localPolicy: null };
      grid.setSite({ ...two, state: 'DRAINING' });
      grid.index(Shares).set(1, 1);
      grid.index(Shares).set(2, 1000);
      const rules = dianaPolicy({ queueLimit: 1, congestionThreshold: 0.2, holdOffS: 3600 });
      const last = over + within;
      for (let id = 1; id <= last; id++) {
        const userId = id <= over ? 1 : 2;
        grid.placeAtRoot(
          job({ id, userId, groupId: 1 + Math.ceil(id / bulk) * 2 + userId, submittedAt: id }),
        );
        settle(grid, rules, id);
      }
      expect(userStandings(grid, policy)).toMatchObject([
        { userId: 1, groups: [{ queue: 4 }] },
        { userId: 2, groups: [{ queue: 1 }] },
      ]);
      expect(congestion(grid, { policy: rules, now: last })[0]).toMatchObject({ congested: true });

      grid.setSite({ ...two, state: 'UP' });
      const first = dispatch(grid, rules, last + 1, 1000).moves.filter(({ reason }) => reason === 'EXPORTED');
      expect(first.length).toBeGreaterThan(0);
      for (const { jobId, from, to } of first) expect([jobId <= over, from, to]).toEqual([true, 1, 2]);
    },
  );

  it('the best peer has the shortest queue, then the fewest jobs ahead, then the least cost', () => {
    const grid = congestedGrid(4);
    waiting(grid, 1, { id: 1 }, { id: 2, estimateS: 5000 }, { id: 3 }, { id: 4 });
    // All peers have two jobs. At 2 both are ahead, at 3 and 4 the wider ones are not, and what is ahead is less at 4.
    waiting(grid, 2, { id: 10 });
    waiting(grid, 3, { id: 11, cpusPerTask: 2 });
    waiting(grid, 4, { id: 12, cpusPerTask: 2 });
    grid.placeAtSite(job({ id: 1003, estimateS: 20, priority: 4096, userId: 99 }), 3);
    expect(goes(grid)[0]).toEqual([1, 1, 4]);
    waiting(grid, 4, { id: 13, cpusPerTask: 2 });
    expect(goes(grid)[0]).toEqual([1, 1, 3]);
    // Not all of group 1 could run at site 3, then not at all: it is no peer.
    waiting(grid, 1, { id: 1 }, { id: 5, groupId: 1, os: 'linux' });
    grid.setMachine(machine({ id: 3, siteId: 3, os: 'bsd' }));
    expect(goes(grid)[0]).toEqual([1, 1, 2]);
    grid.setSite({ id: 2, name: 'two', state: 'DRAINING', localPolicy: null });
    expect(goes(grid)[0]).toEqual([1, 1, 4]);
  });

  it('a group stays where it went for the hold-off, as a whole, and then goes on', () => {
    const grid = congestedGrid();
    waiting(grid, 1, { id: 1, migratedAt: -99, groupId: 7 }, { id: 2, groupId: 7 });
    waiting(grid, 1, { id: 3, groupId: 8 }, { id: 4, groupId: 8 }, { id: 5, groupId: 8 });
    expect(goes(grid).map(([id]) => id)).toEqual([3, 4, 5]);
    expect(goes(grid, 1).map(([id]) => id)).toEqual([1, 2]);
  });

  it('counts in one cycle what it has moved: sites even out, and nothing comes back afterwards', () => {
    const grid = congestedGrid();
    grid.index(Traffic).of(2).arrived(0, 60);
    for (let id = 1; id <= 10; id++) waiting(grid, 1, { id });
    const first = dispatch(grid, policy);
    expect(first.moves.map(({ jobId }) => jobId)).toEqual([1, 2, 3, 4, 5]);
    applyMoves(grid, first, 0);
    for (const now of [0, 50, 99, 100, 101, 500, 5000]) {
      for (const site of [1, 2]) grid.index(Traffic).of(site).arrived(now, 60);
      expect(goes(grid, now)).toEqual([]);
    }
  });

  it('a group larger than a plan goes in several, as it would in one', () => {
    const grid = congestedGrid();
    for (let id = 1; id <= 20; id++) waiting(grid, 1, { id, groupId: 1 });
    for (let id = 31; id <= 39; id++) waiting(grid, 1, { id, groupId: 2 });
    const plans = settle(grid, policy, 0, 6);
    // Its part that is there is not ahead of it: ten others here are more than the one there, all the way.
    expect(plans.map(({ moves }) => moves.map(({ jobId }) => jobId))).toEqual([
      [1, 2, 3, 4, 5, 6],
      [7, 8, 9, 10, 11, 12],
      [13, 14, 15, 16, 17, 18],
      [19, 20],
    ]);
  });
});

describe('why a job of a meta-queue waits', () => {
  it('tells its queue, its priority and what it is made of, the jobs ahead, and how the site is', () => {
    const grid = congestedGrid();
    waiting(grid, 1, { id: 1, submittedAt: 1 }, { id: 2, submittedAt: 2, groupId: 7, migratedAt: -40 });
    waiting(grid, 1, { id: 3, userId: 2, submittedAt: 3 });
    waiting(grid, 2, { id: 4 }, { id: 5, submittedAt: 5 });
    const why = whyWaiting(grid, 2, { now: 0, policy });
    expect(why).toEqual({
      code: 'META_QUEUE',
      message: "In the site's meta-queue, with 2 jobs ahead of it, until the local queue has room.",
      numbers: {
        siteId: 1,
        priority: -0.25,
        threshold: 1.5,
        queue: 3,
        userJobs: 2,
        processors: 1,
        allProcessors: 3,
        quota: 1,
        quotas: 2,
        ahead: 2,
        queued: 1,
        queueLimit: 1,
        metaQueued: 3,
        arrivalRate: 1,
        serviceRate: 0,
        congestion: 1,
        congested: 1,
        heldOffUntil: 60,
      },
      wouldChange: [
        expect.stringContaining('local queue start or are removed'),
        expect.stringContaining('raises its priority'),
        expect.stringContaining('hold-off'),
      ],
    });
    expect(whyWaiting(grid, 1, { now: 0, policy })?.wouldChange[2]).toContain('it migrates there');
    expect(whyWaiting(grid, 4, { now: 0, policy })?.wouldChange).toHaveLength(2);
  });

  it('tells when it goes on, when its site is away, and when another policy takes it back', () => {
    const grid = congestedGrid();
    waiting(grid, 1, { id: 1 }, { id: 2, cpusPerTask: 40 });
    const code = (given = policy, id = 1) => whyWaiting(grid, id, { now: 0, policy: given })?.code;
    expect(code()).toBe('META_QUEUE');
    expect(code(policy, 2)).toBe('NEVER_FITS_CPUS');
    expect(code(dianaPolicy({ queueLimit: 2 }))).toBe('READY');
    expect(code({ ...policy, dispatch: { kind: 'random' } })).toBe('READY');
    grid.setSite({ id: 1, name: 'one', state: 'DOWN', localPolicy: null });
    expect(code()).toBe('SITE_DOWN');
  });
});
