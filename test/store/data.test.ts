/** Data, links, what runs have shown, and groups, as the API writes and reads them. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { JobHistory } from '../../src/core/data/history.js';
import { RandomStream } from '../../src/core/random.js';
import { nearest, unitsOf } from '../../src/core/structures/units.js';
import { MEASUREMENTS_KEPT } from '../../src/store/constants.js';
import { type Actor, type Change, type Directory, openDirectory } from '../../src/store/directory.js';
import { Mirror } from '../../src/store/mirror.js';
import type { Database } from '../../src/store/pool.js';
import { Queries } from '../../src/store/queries.js';
import { withDatabase } from '../support/database.js';
import {
  assigned,
  ended,
  newJob,
  openTestDatabase,
  postgresWorld,
  report,
  submit,
  T0,
  vouch,
  type World,
} from './world.js';

const test = withDatabase();
const actor: Actor = { userId: null, requestId: 'request-1' };
let database: Database;
let directory: Directory;
let queries: Queries;
let world: World;
let here: number;
let there: number;
beforeAll(() => {
  database = openTestDatabase(test.url);
  directory = openDirectory(database);
  queries = new Queries(database);
});
afterAll(() => database.close());
beforeEach(async () => {
  world = await postgresWorld(database, test.pool);
  here = await world.addSite('here');
  there = await world.addSite('there');
});

const done = async <T>(change: Promise<Change<T>>): Promise<T> => {
  const result = await change;
  if (result.kind === 'refused') throw new Error(result.message);
  return result.value;
};
const refusal = async (change: Promise<Change<unknown>>): Promise<string> => {
  const result = await change;
  return result.kind === 'refused' ? `${result.code}: ${result.message}` : 'done';
};
const audited = async () =>
  (await queries.audits(null, 100)).map(({ action, target }) => `${action} ${target}`).reverse();
const dataEvents = async () => {
  const events = await queries.events('0', null, 1000);
  if (events === 'too-old') throw new Error('the events are gone');
  return events.filter(({ kind }) => kind === 'DATA').map(({ entityId, siteId }) => [entityId, siteId]);
};

describe('datasets', () => {
  it('are made, changed, copied and removed, and each change is news and on record', async () => {
    const made = await done(
      directory.createDataset({ name: 'set', sizeMb: 2.5, siteIds: [there, here] }, actor),
    );
    expect(made).toMatchObject({ name: 'set', sizeMb: 2.5, siteIds: [here, there], removedAt: null });
    expect(await done(directory.updateDataset(made.id, { sizeMb: 3 }, actor))).toMatchObject({
      name: 'set',
      sizeMb: 3,
    });
    expect(await done(directory.updateDataset(made.id, { name: 'Set' }, actor))).toMatchObject({
      name: 'Set',
      sizeMb: 3,
    });
    const before = (await dataEvents()).length;
    await done(directory.setReplicas(made.id, { add: [here], remove: [] }, actor));
    await done(directory.updateDataset(made.id, { sizeMb: 3 }, actor));
    // Neither changed anything.
    expect(await dataEvents()).toHaveLength(before);
    expect(await done(directory.setReplicas(made.id, { remove: [here] }, actor))).toMatchObject({
      siteIds: [there],
    });
    expect(await dataEvents()).toHaveLength(before + 1);
    expect(await queries.datasetByName('Set')).toMatchObject({ id: made.id });
    expect(await done(directory.removeDataset(made.id, T0, actor))).toMatchObject({
      removedAt: T0,
      siteIds: [],
    });
    expect(await queries.datasetByName('Set')).toBeNull();
    expect(await queries.datasetsByIds([made.id])).toMatchObject([{ id: made.id, removedAt: T0 }]);
    expect((await dataEvents()).every(([id, siteId]) => id === made.id && siteId === null)).toBe(true);
    const set = `dataset_${made.id}`;
    expect((await audited()).filter((entry) => entry.endsWith(set))).toEqual([
      `createDataset ${set}`,
      `updateDataset ${set}`,
      `updateDataset ${set}`,
      `setReplicas ${set}`,
      `updateDataset ${set}`,
      `setReplicas ${set}`,
      `removeDataset ${set}`,
    ]);
  });

  it('have unique names while they are there, and copies at sites in service only', async () => {
    const one = await done(directory.createDataset({ name: 'a', sizeMb: 1, siteIds: [] }, actor));
    const two = await done(directory.createDataset({ name: 'b', sizeMb: 1, siteIds: [] }, actor));
    expect(await refusal(directory.createDataset({ name: 'a', sizeMb: 2, siteIds: [] }, actor))).toBe(
      'CONFLICT: there is already a dataset named a',
    );
    expect(await refusal(directory.updateDataset(two.id, { name: 'a' }, actor))).toBe(
      'CONFLICT: there is already a dataset named a',
    );
    expect(await refusal(directory.createDataset({ name: 'c', sizeMb: 1, siteIds: [99] }, actor))).toBe(
      'NOT_FOUND: there is no site 99 in service',
    );
    expect(await refusal(directory.setReplicas(one.id, { add: [here], remove: [here] }, actor))).toMatch(
      /^CONFLICT: site \d+ is in both add and remove/,
    );
    expect(await refusal(directory.setReplicas(99, { add: [here] }, actor))).toBe(
      'NOT_FOUND: there is no dataset 99',
    );
    await done(directory.removeDataset(one.id, T0, actor));
    expect(await refusal(directory.updateDataset(one.id, { sizeMb: 1 }, actor))).toMatch(
      /^NOT_FOUND: dataset \d+ is no longer in service/,
    );
    await done(directory.createDataset({ name: 'a', sizeMb: 2, siteIds: [] }, actor));
  });

  it('are imported by name, all or none, in one go', async () => {
    const known = await done(directory.createDataset({ name: 'n5', sizeMb: 1, siteIds: [here] }, actor));
    const list = Array.from({ length: 2_000 }, (_, i) => ({
      name: `n${i}`,
      sizeMb: i,
      siteIds: i % 2 ? [there] : [],
    }));
    const first = await done(directory.importDatasets(list, actor));
    expect(first).toMatchObject({ created: 1_999, updated: 1 });
    expect(first.datasetIds[5]).toBe(known.id);
    const rows = await queries.datasetsByIds(first.datasetIds);
    expect(rows).toHaveLength(2_000);
    const byId = new Map(rows.map((row) => [row.id, row]));
    expect(first.datasetIds.map((id) => byId.get(id)!.name)).toEqual(list.map(({ name }) => name));
    expect(byId.get(known.id)).toMatchObject({ sizeMb: 5, siteIds: [here, there] });
    const news = (await dataEvents()).length;
    expect(await done(directory.importDatasets(list, actor))).toMatchObject({ created: 0, updated: 2_000 });
    expect(await dataEvents()).toHaveLength(news);
    const bad = [
      { name: 'new', sizeMb: 1, siteIds: [] },
      { name: 'n1', sizeMb: 9, siteIds: [99] },
    ];
    expect(await refusal(directory.importDatasets(bad, actor))).toBe(
      'NOT_FOUND: there is no site 99 in service',
    );
    expect(await queries.datasetByName('new')).toBeNull();
    const twice = [list[0]!, list[0]!];
    expect(await refusal(directory.importDatasets(twice, actor))).toBe('CONFLICT: dataset n0 is given twice');
    expect(() => directory.importDatasets(new Array(10_001).fill(list[0]), actor)).toThrow(
      /datasets has 10001 entries; accepted: up to 10000/,
    );
  });

  it('are listed by name, a page at a time', async () => {
    for (const name of ['b', 'B', 'a%', 'ab', 'é'])
      await done(directory.createDataset({ name, sizeMb: 1, siteIds: [] }, actor));
    const names = async (containing: string | null, after = '', limit = 10) =>
      (await queries.datasets(containing, after, limit)).map(({ name }) => name);
    expect(await names(null)).toEqual(['B', 'a%', 'ab', 'b', 'é']);
    expect(await names(null, 'a%', 2)).toEqual(['ab', 'b']);
    expect(await names('%')).toEqual(['a%']);
    expect(await names('b')).toEqual(['ab', 'b']);
  });
});

describe('links', () => {
  const link = (fromSiteId: number, toSiteId: number, bandwidthMbPerS = 10) => ({
    fromSiteId,
    toSiteId,
    bandwidthMbPerS,
    rttS: 0.25,
    loss: 0,
  });

  it('are set and removed between two sites in service', async () => {
    const set = await done(directory.setLinks([link(there, here, 5), link(here, there, 6)], T0, actor));
    expect(set).toMatchObject([
      {
        fromSiteId: there,
        toSiteId: here,
        bandwidthMbPerS: 5,
        rttS: 0.25,
        loss: 0,
        measuredAt: T0,
        source: 'ADMIN',
      },
      { fromSiteId: here, toSiteId: there, bandwidthMbPerS: 6 },
    ]);
    await done(directory.setLinks([link(here, there, 7)], T0 + 1, actor));
    expect(await queries.links({}, null, 10)).toMatchObject([
      { bandwidthMbPerS: 7, measuredAt: T0 + 1 },
      { bandwidthMbPerS: 5 },
    ]);
    expect(await queries.links({ toSiteId: here }, null, 10)).toMatchObject([{ fromSiteId: there }]);
    expect(await queries.links({}, { fromSiteId: here, toSiteId: there }, 10)).toMatchObject([
      { fromSiteId: there },
    ]);
    expect(await queries.links({}, null, 1)).toHaveLength(1);
    expect(await dataEvents()).toEqual([
      [here, there],
      [there, here],
      [here, there],
    ]);
    expect(await done(directory.removeLink(here, there, actor))).toMatchObject({ bandwidthMbPerS: 7 });
    expect(await refusal(directory.removeLink(here, there, actor))).toBe(
      `NOT_FOUND: there is no link from site ${here} to site ${there}`,
    );
    expect(await refusal(directory.setLinks([link(here, here)], T0, actor))).toMatch(
      /^CONFLICT: a link connects two different sites/,
    );
    expect(await refusal(directory.setLinks([link(here, there), link(here, there)], T0, actor))).toMatch(
      /^CONFLICT: the link from site .* is given twice/,
    );
    expect(await refusal(directory.setLinks([link(here, 99)], T0, actor))).toBe(
      'NOT_FOUND: there is no site 99 in service',
    );
    expect(await audited()).toContain(`removeLink link_${here}_${there}`);
  });

  it('are as measured of late: the mean of five, and a hundred are kept', async () => {
    await done(directory.setLinks([link(there, here, 500)], T0, actor));
    const measure = (i: number) =>
      done(
        directory.reportLinks(
          here,
          [{ fromSiteId: there, bandwidthMbPerS: i, rttS: i / 1000, loss: 0.5 }],
          T0 + i,
        ),
      );
    expect(await measure(1)).toMatchObject([
      {
        fromSiteId: there,
        toSiteId: here,
        bandwidthMbPerS: 1,
        loss: 0.5,
        source: 'AGENT',
        measuredAt: T0 + 1,
      },
    ]);
    expect(await measure(2)).toMatchObject([{ bandwidthMbPerS: 1.5 }]);
    for (let i = 3; i <= MEASUREMENTS_KEPT + 7; i++) await measure(i);
    const [measured] = await queries.links({}, null, 10);
    expect(measured!.bandwidthMbPerS).toBeCloseTo(105, 9);
    expect(measured!.rttS).toBeCloseTo(0.105, 9);
    const history = await queries.linkHistory(there, here, 1_000);
    expect(history.map(({ at }) => at - T0)).toEqual(
      Array.from({ length: MEASUREMENTS_KEPT }, (_, i) => MEASUREMENTS_KEPT + 7 - i),
    );
    expect(await queries.linkHistory(there, here, 2)).toHaveLength(2);
    expect(await audited()).not.toContain('reportLinks links');
    expect(
      await refusal(
        directory.reportLinks(here, [{ fromSiteId: here, bandwidthMbPerS: 1, rttS: 0, loss: 0 }], T0),
      ),
    ).toMatch(/^CONFLICT/);
    await done(directory.removeLink(there, here, actor));
    expect(await queries.linkHistory(there, here, 10)).toEqual([]);
  });

  it('go with their site, and so do its copies', async () => {
    const set = await done(directory.createDataset({ name: 'a', sizeMb: 1, siteIds: [here, there] }, actor));
    await done(directory.setLinks([link(there, here), link(here, there)], T0, actor));
    await done(directory.reportLinks(here, [link(there, here)], T0));
    await world.setSiteState(there, 'DRAINING');
    const { cursor } = await world.store.loadGrid(0);
    await done(directory.removeSite(there, T0, actor));
    const { datasets, links } = await world.store.loadGrid(0);
    expect(datasets).toMatchObject([{ id: set.id, siteIds: [here] }]);
    expect(links).toEqual([]);
    expect(await queries.linkHistory(there, here, 10)).toEqual([]);
    expect(await world.store.changesSince(cursor, 100)).toMatchObject({
      datasets: [{ id: set.id, dataset: { siteIds: [here] } }],
      links: [{ link: null }, { link: null }],
    });
  });

  it('a site with jobs in its meta-queue does not leave', async () => {
    const user = await world.addUser('ann');
    const [job] = await submit(world, user, [newJob()]);
    const explanation = {
      sites: [],
      terms: {},
      candidates: [],
      ineligible: {},
      level: null,
      priorityTerms: null,
    };
    const move = {
      jobId: job!,
      from: null,
      to: there,
      queue: 'META',
      priority: 0,
      reason: 'LEAST_COST',
      explanation,
    } as const;
    await world.store.applyMoves([move], { policyVersion: 1, cycle: 'c', now: T0 });
    expect(await queries.siteStats([there])).toMatchObject([{ metaQueued: 1, queued: 0 }]);
    await world.setSiteState(there, 'DRAINING');
    expect(await refusal(directory.removeSite(there, T0, actor))).toBe(
      'CONFLICT: site there still has 1 jobs: wait until it is drained',
    );
  });
});

describe('what runs have shown', () => {
  let user: number;
  let machine: number;
  beforeEach(async () => {
    user = await world.addUser('ann');
    machine = await world.addMachine(here, 'm1', 64);
    await vouch(world.store, here, [machine], T0);
  });
  /** Runs of 10 s, this much of each input and output. */
  const runs = async (application: string, ioS: number[], by = user) => {
    const ids = await assigned(
      world,
      by,
      here,
      machine,
      ioS.map(() => newJob({ application })),
    );
    const reports = ids.flatMap((id, i) => [report(id, 1), ended(id, 1, { ioWaitS: ioS[i]! })]);
    await world.store.reportRuns(here, reports, 3);
    return ids;
  };

  it('is summed up over all users and kinds of resource', async () => {
    expect(await queries.ratio('app')).toEqual({ cursor: 0, ratio: null });
    await runs('app', [1, 3]);
    await runs('app', [8], await world.addUser('bob'));
    await runs('other', [0]);
    const { cursor, ratio } = await queries.ratio('app');
    expect(cursor).toBe(4);
    expect(ratio).toMatchObject({
      application: 'app',
      runs: 3,
      turnaroundS: 2000,
      executionS: 1600,
      ioS: 400,
    });
    expect(ratio!.computation).toBeCloseTo(0.8, 12);
    expect((await queries.ratioPoints('app', null, null, 10, false)).at(-1)!.computation).toBeCloseTo(
      0.8,
      12,
    );
  });

  it('is a series that is read in pages from both ends, and followed by cursor', async () => {
    await runs('a', [1, 2]);
    await runs('b', [3]);
    await runs('a', [4, 5]);
    const ids = async (...page: Parameters<Queries['ratioPoints']>) =>
      (await queries.ratioPoints(...page)).map(({ id }) => id);
    expect(await ids('a', null, null, 3, false)).toEqual([1, 2, 4]);
    expect(await ids('a', null, 4, 3, false)).toEqual([5]);
    expect(await ids('a', null, null, 3, true)).toEqual([2, 4, 5]);
    expect(await ids('a', null, 4, 3, true)).toEqual([1, 2]);
    expect(await queries.latestRatioPoint()).toBe(5);
    const since = async (application: string | null, after: number, limit = 10) => {
      const points = await queries.ratioPointsSince(application, after, limit);
      return points === 'too-old' ? points : points.map(({ id }) => id);
    };
    expect(await since(null, 2)).toEqual([3, 4, 5]);
    expect(await since('a', 2)).toEqual([4, 5]);
    expect(await since(null, 0, 2)).toEqual([1, 2]);
    expect(await since(null, 5)).toEqual([]);
  });

  it('is forgotten with jobs as old: points by their end, averages when there are too many', async () => {
    await runs('a', [1, 2]);
    await runs('b', [3]);
    const soon = Date.now() / 1000 + 60;
    const prune = (jobsEndedBefore: number, limit = 100) =>
      world.store.prune({
        eventsBefore: 0,
        unreadBefore: 0,
        jobsEndedBefore,
        processesBefore: 0,
        auditsBefore: 0,
        limit,
      });
    await prune(T0);
    expect(await queries.ratioPointsSince(null, 0, 10)).toHaveLength(3);
    expect(await prune(soon, 2)).toMatchObject({ more: true });
    expect(await queries.ratioPointsSince(null, 1, 10)).toBe('too-old');
    expect(await queries.ratioPointsSince(null, 2, 10)).toMatchObject([{ application: 'b' }]);
    while ((await prune(soon, 2)).more);
    expect(await queries.latestRatioPoint()).toBe(3);
    // What is averaged stays: it has no age of its own.
    expect((await queries.ratio('a')).ratio).toMatchObject({ runs: 2 });
    await test.pool.query(
      `INSERT INTO run_totals SELECT 'x' || i, ${user}, '', 1, 1, 1, 0, i - 200000, now() FROM generate_series(1, 100000) i`,
    );
    const mirror = new Mirror(world.store, { newTotals: 1 });
    await mirror.sync();
    await prune(T0);
    const { rows } = await test.pool.query(
      `SELECT count(*)::int AS n, bool_or(application = 'a') AS a, bool_or(application = 'x1') AS x FROM run_totals`,
    );
    expect(rows).toEqual([{ n: 100_000, a: true, x: false }]);

    // A mirror hears of what is new, and from time to time of all that is left.
    const sizes: number[] = [];
    for (const application of ['c', 'd', 'c', 'e']) {
      await runs(application, [1]);
      await mirror.sync();
      sizes.push(mirror.grid.index(JobHistory).size);
    }
    expect(sizes).toEqual([100_003, 100_004, 100_002, 100_003]);
  });

  it('does not believe an agent whose clock is ahead', async () => {
    const [id] = await assigned(world, user, here, machine, [newJob()]);
    await test.pool.query(
      `UPDATE runs SET assigned_at = assigned_at - interval '1 hour' WHERE ended_at IS NULL`,
    );
    const future = Date.now() / 1000 + 1e6;
    await world.store.reportRuns(
      here,
      [report(id!, 1, { at: future }), ended(id!, 1, { at: future + 5 })],
      3,
    );
    const [point] = await queries.ratioPoints('app', null, null, 1, false);
    // It took its machines an hour before T0 by our clock.
    expect(point!.turnaroundS).toBeLessThan(Date.now() / 1000 - T0 + 3601);
    expect(point!.at).toBeLessThan(future);
  });

  it('traffic older than an hour is forgotten', async () => {
    await runs('a', [1]);
    await test.pool.query(
      `INSERT INTO traffic VALUES (${here}, extract(epoch FROM now())::bigint - 3605, 1, 1)`,
    );
    const { traffic } = await world.store.loadGrid(0);
    await world.store.prune({
      eventsBefore: 0,
      unreadBefore: 0,
      jobsEndedBefore: 0,
      processesBefore: 0,
      auditsBefore: 0,
      limit: 10,
    });
    expect((await world.store.loadGrid(0)).traffic).toEqual(traffic);
    expect((await test.pool.query('SELECT * FROM traffic')).rows).toHaveLength(traffic.length);
  });

  it('knows in which batch a job went to its site', async () => {
    const explanation = {
      sites: [],
      terms: {},
      candidates: [],
      ineligible: {},
      level: null,
      priorityTerms: null,
    };
    const [a, b] = await submit(world, user, [newJob(), newJob()]);
    const dispatch = (jobId: number, policyVersion: number, cycle: string) =>
      world.store.applyMoves(
        [{ jobId, from: null, to: here, queue: 'LOCAL', priority: 0, reason: 'BEST_RANK', explanation }],
        { policyVersion, cycle, now: T0 },
      );
    await dispatch(a!, 1, 'one');
    await world.newPolicy({ dispatch: { kind: 'job-ratio', queueLimit: 5 } });
    await dispatch(b!, 2, 'two');
    expect(await queries.batchesOfJobs([a!, b!, 99])).toEqual([{ jobId: b, batch: 'two' }]);
  });
});

describe('groups', () => {
  it('are known by their jobs, listed and counted, and leave with the last of them', async () => {
    const user = await world.addUser('ann');
    const bob = await world.addUser('bob');
    const group = async (userId: number, count: number, now: number) => {
      const jobs = Array.from({ length: count }, () => newJob());
      const made = { name: 'scan', template: { command: 'true', list: [1] } };
      const result = await world.store.submit({
        userId,
        idempotencyKey: null,
        payloadHash: '',
        jobs,
        group: made,
        now,
      });
      if (result.kind !== 'accepted') throw new Error(result.kind);
      return { id: result.groupId!, jobIds: result.jobIds };
    };
    const one = await group(user, 3, T0);
    const [loose] = await submit(world, user, [newJob(), newJob()]);
    const two = await group(bob, 1, T0 + 1);
    expect(await queries.group(one.id)).toEqual({
      id: one.id,
      userId: user,
      name: 'scan',
      template: { command: 'true', list: [1] },
      size: 3,
      createdAt: T0,
      idleTimeoutS: null,
      idleAt: null,
    });
    expect(await queries.group(99)).toBeNull();
    const listed = async (...page: Parameters<Queries['groups']>) =>
      (await queries.groups(...page)).map(({ id }) => id);
    expect(await listed(null, null, 10)).toEqual([two.id, one.id]);
    expect(await listed(null, two.id, 10)).toEqual([one.id]);
    expect(await listed(bob, null, 10)).toEqual([two.id]);
    expect(await listed(null, null, 1)).toEqual([two.id]);
    await world.store.cancel({ ids: [one.jobIds[0]!], ownedBy: null, limit: 1 }, T0, 'CANCELLED_BY_USER');
    const counts = await queries.groupCounts([one.id, two.id, 99]);
    expect(counts.sort((a, b) => a.groupId - b.groupId || a.state.localeCompare(b.state))).toEqual([
      { groupId: one.id, state: 'CANCELLED', jobs: 1 },
      { groupId: one.id, state: 'QUEUED', jobs: 2 },
      { groupId: two.id, state: 'QUEUED', jobs: 1 },
    ]);
    const page = { order: 'SUBMITTED', direction: 'ASC', backward: false, from: null, limit: 10 } as const;
    expect((await queries.jobs({ groupId: one.id, states: ['QUEUED'] }, page)).map(({ id }) => id)).toEqual(
      one.jobIds.slice(1),
    );
    expect(await queries.jobs({ groupId: 99 }, page)).toEqual([]);
    expect(await queries.jobsByIds([loose!])).toMatchObject([{ groupId: expect.any(Number) }]);

    const prune = () =>
      world.store.prune({
        eventsBefore: 0,
        unreadBefore: 0,
        jobsEndedBefore: T0 + 100,
        processesBefore: 0,
        auditsBefore: 0,
        limit: 100,
      });
    await prune();
    expect(await listed(null, null, 10)).toEqual([two.id, one.id]);
    await world.store.cancel(
      { filter: { groupId: one.id }, ownedBy: null, limit: 10 },
      T0,
      'CANCELLED_BY_USER',
    );
    await prune();
    await prune();
    expect(await listed(null, null, 10)).toEqual([two.id]);
  });
});

describe('whole units of seconds', () => {
  it('are in the database what they are in the core, and come to the same sums and ratios', async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const random = new RandomStream(seed, 'units');
    const values = [0, 1e-300, 2 ** -147, 2 ** -140, 1 / 3, 1, 2 ** 53 - 1, 1e12, 1e27];
    while (values.length < 2000) values.push((1 + random.next()) * 2 ** random.integer(-60, 80));
    const { rows } = await test.pool.query(
      `SELECT u::text, u::float8 * 2::float8 ^ -200 AS back, sum(u) OVER (ORDER BY place)::float8 / sum(u) OVER ()::float8 AS part
         FROM unnest($1::float8[]) WITH ORDINALITY AS v (x, place), LATERAL (SELECT triggers.units(x) AS u) t ORDER BY place`,
      [values],
    );
    const all = values.reduce((sum, value) => sum + unitsOf(value), 0n);
    let sum = 0n;
    const expected = values.map((value) => {
      sum += unitsOf(value);
      return { u: String(unitsOf(value)), back: nearest(unitsOf(value)), part: nearest(sum) / nearest(all) };
    });
    expect(rows, `seed ${seed}`).toEqual(expected);
  });
});
