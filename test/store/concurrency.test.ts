/** What must hold when many connections work at once. The order of events is left to chance: each test checks the outcome. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { Margins } from '../../src/core/data/margins.js';
import { openDirectory } from '../../src/store/directory.js';
import { Mirror } from '../../src/store/mirror.js';
import type { Database } from '../../src/store/pool.js';
import { Queries } from '../../src/store/queries.js';
import type { Store } from '../../src/store/store.js';
import { withDatabase } from '../support/database.js';
import {
  assigned,
  context,
  dispatched,
  ended,
  metaMove,
  metaQueued,
  move,
  newJob,
  openTestDatabase,
  postgresWorld,
  report,
  start,
  submit,
  T0,
  vouch,
  type World,
} from './world.js';

const test = withDatabase();
let database: Database;
let world: World;
let store: Store;
let user: number;
let site: number;
let machines: number[];
beforeAll(() => {
  database = openTestDatabase(test.url, 16);
});
afterAll(async () => {
  await database.close();
  // Not one: everybody takes locks in the same order. (Deadlocks would be retried, and so be seen nowhere else.)
  const { rows } = await test.pool.query(
    `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`,
  );
  expect(rows).toEqual([{ deadlocks: '0' }]);
});
beforeEach(async () => {
  world = await postgresWorld(database, test.pool);
  store = world.store;
  user = await world.addUser('ann');
  site = await world.addSite('here');
  machines = [];
  for (let i = 0; i < 4; i++) machines.push(await world.addMachine(site, `m${i}`, 8));
  await vouch(store, site, machines, T0);
});

const times = <T>(count: number, make: (i: number) => T): T[] =>
  Array.from({ length: count }, (_, i) => make(i));

it('plans for the same machines never over-commit them, and take all there is', async () => {
  const pool = await world.addLicense('cad', 10, null);
  const ids = await dispatched(
    world,
    user,
    site,
    times(60, () => newJob({ licenses: ['cad'] })),
  );
  // Twelve plans of five, each with the machines in another order.
  const outcomes = await Promise.all(
    times(12, (i) =>
      store.applyStarts(
        site,
        ids.slice(i * 5, i * 5 + 5).map((id, n) => start(id, site, { [machines[(i + n) % 4]!]: 1 }, [pool])),
        null,
        context(),
      ),
    ),
  );
  expect(outcomes.flatMap((outcome) => outcome.accepted)).toHaveLength(10);
  expect(await world.breaches()).toEqual([]);
});

it('plans for one time-shared machine never put more tasks on it than it takes', async () => {
  const shared = await world.addMachine(site, 'shared', 1, 1000, [], 7);
  await vouch(store, site, [shared], T0);
  const ids = await dispatched(
    world,
    user,
    site,
    times(24, () => newJob()),
  );
  const outcomes = await Promise.all(
    ids.map((id) => store.applyStarts(site, [start(id, site, { [shared]: 1 })], null, context())),
  );
  expect(outcomes.flatMap((outcome) => outcome.accepted)).toHaveLength(7);
  expect(await world.breaches()).toEqual([]);
});

it('a site never runs more jobs than it may, whoever plans, while others come to it', async () => {
  const few = await world.addSite('few', 5);
  const machine = await world.addMachine(few, 'm', 64);
  await vouch(store, few, [machine], T0);
  const ids = await dispatched(
    world,
    user,
    few,
    times(24, () => newJob()),
  );
  const more = await submit(
    world,
    user,
    times(10, () => newJob()),
  );
  const outcomes = await Promise.all([
    ...ids.map((id) => store.applyStarts(few, [start(id, few, { [machine]: 1 })], null, context())),
    ...more.map((id) => store.applyMoves([move(id, few)], context())),
  ]);
  expect(outcomes.slice(0, ids.length).flatMap((outcome) => outcome.accepted)).toHaveLength(5);
  expect(outcomes.slice(ids.length).flatMap((outcome) => outcome.accepted)).toHaveLength(10);
  const { rows } = await test.pool.query(
    'SELECT count(*)::int AS live FROM runs WHERE site_id = $1 AND ended_at IS NULL',
    [few],
  );
  expect(rows).toEqual([{ live: 5 }]);
  expect(await world.breaches()).toEqual([]);
});

it('runs that end at once are all in the history, once each, and its points are seen in the order of their ids', async () => {
  const applications = ['a', 'b', 'c'];
  const ids = await assigned(
    world,
    user,
    site,
    machines[0]!,
    times(8, (i) => newJob({ application: applications[i % 3]! })),
  );
  for (const [n, machineId] of machines.slice(1).entries())
    ids.push(
      ...(await assigned(
        world,
        user,
        site,
        machineId,
        times(8, (i) => newJob({ application: applications[(i + n) % 3]! })),
      )),
    );
  const queries = new Queries(database);
  const seen: number[] = [];
  let reported = false;
  const follow = async () => {
    for (let last = false; !last; ) {
      last = reported;
      const points = await queries.ratioPointsSince(null, seen.at(-1) ?? 0, 100);
      if (points === 'too-old') throw new Error('the points are gone');
      seen.push(...points.map(({ id }) => id));
    }
  };
  const following = follow();
  // Each twice, for the first answer may have been lost.
  await Promise.all(
    [...ids, ...ids].map((id) =>
      store.reportRuns(site, [report(id, 1), ended(id, 1, { ioWaitS: id % 10 })], 3),
    ),
  );
  reported = true;
  await following;
  expect(seen).toHaveLength(ids.length);
  const { totals } = await store.loadGrid(0);
  expect(totals.reduce((sum, { count }) => sum + count, 0)).toBe(ids.length);
  expect(await world.breaches()).toEqual([]);
});

it('jobs in meta-queues go one way only, whoever moves, cancels, holds or takes them back', async () => {
  const other = await world.addSite('there');
  const ids = await metaQueued(
    world,
    user,
    site,
    times(40, () => newJob()),
  );
  const some = (i: number) => ids.filter((id) => id % 4 !== i);
  await Promise.all([
    store.applyMoves(
      some(0).map((id) => metaMove(id, other, site)),
      context(),
    ),
    store.applyMoves(
      some(1)
        .reverse()
        .map((id) => move(id, site, site)),
      context(),
    ),
    store.applyMoves(
      some(2).map((id) => move(id, other, site)),
      context(),
    ),
    store.returnJobs(site, some(3), 'NO_META_QUEUES', context()),
    store.hold({ ids: some(1), ownedBy: null, limit: 100 }),
    store.cancel({ filter: { siteId: site }, ownedBy: null, limit: 100 }, T0, 'CANCELLED_BY_USER'),
    world.setSiteState(other, 'DRAINING').then(() => store.takeBack(other, context(), 100)),
  ]);
  expect(await world.breaches()).toEqual([]);
});

it('data of one name is imported once, and a site does not leave while it gets some', async () => {
  const directory = openDirectory(database);
  const actor = { userId: null, requestId: null };
  const other = await world.addSite('there');
  await world.setSiteState(other, 'DRAINING');
  const list = times(200, (i) => ({ name: `n${i}`, sizeMb: i, siteIds: [i % 2 === 0 ? site : other] }));
  const outcomes = await Promise.all([
    ...times(4, (i) => directory.importDatasets(i % 2 === 0 ? list : [...list].reverse(), actor)),
    directory.removeSite(other, T0, actor),
    ...times(4, () =>
      directory.reportLinks(site, [{ fromSiteId: other, bandwidthMbPerS: 1, rttS: 0, loss: 0 }], T0),
    ),
  ]);
  expect(outcomes.every(({ kind }) => kind === 'done' || kind === 'refused')).toBe(true);
  const { datasets, links, sites } = await store.loadGrid(0);
  expect(sites.map(({ id }) => id)).toEqual([site]);
  expect(new Set(datasets.map(({ id }) => id)).size).toBe(datasets.length);
  expect(datasets.length === 0 || datasets.length === 200).toBe(true);
  expect(datasets.every(({ siteIds }) => !siteIds.includes(other))).toBe(true);
  expect(links).toEqual([]);
});

it('the same plan twice at once is carried out once', async () => {
  const ids = await dispatched(
    world,
    user,
    site,
    times(20, () => newJob()),
  );
  const starts = ids.map((id, n) => start(id, site, { [machines[n % 4]!]: 1 }));
  const outcomes = await Promise.all(times(4, () => store.applyStarts(site, starts, null, context())));
  expect(outcomes.map((outcome) => outcome.accepted.length).sort()).toEqual([0, 0, 0, 20]);
  expect(await world.breaches()).toEqual([]);
});

it('the same reports at once are accepted once', async () => {
  const ids = await assigned(
    world,
    user,
    site,
    machines[0]!,
    times(8, () => newJob()),
  );
  const reports = ids.flatMap((id) => [report(id, 1), ended(id, 1)]);
  const outcomes = await Promise.all(
    times(4, (i) =>
      store.reportRuns(site, i % 2 ? reports : [...reports].sort((a, b) => b.jobId - a.jobId), 3),
    ),
  );
  const accepted = outcomes.flatMap((outcome) => outcome.results).filter((result) => result === 'accepted');
  expect(accepted).toHaveLength(16);
  expect(await world.breaches()).toEqual([]);
});

it('a key is used once, and a quota is kept, however many ask at once', async () => {
  const jobs = times(3, () => newJob());
  const keyed = await Promise.all(
    times(10, () => store.submit({ userId: user, idempotencyKey: 'k', payloadHash: 'h', jobs, now: T0 })),
  );
  expect(keyed.filter((result) => result.kind === 'accepted' && !result.repeated)).toHaveLength(1);
  expect(new Set(keyed.map((result) => result.kind === 'accepted' && result.jobIds.join())).size).toBe(1);
  const limited = await world.addUser('bob', 'REGULAR', { limit: 10, periodS: 60 });
  const sent = await Promise.all(
    times(10, () => store.submit({ userId: limited, idempotencyKey: null, payloadHash: '', jobs, now: T0 })),
  );
  expect(sent.filter((result) => result.kind === 'accepted')).toHaveLength(3);
  expect(await world.breaches()).toEqual([]);
});

it('nothing goes to a site, or starts there, after the event of its draining', async () => {
  const queued = await submit(
    world,
    user,
    times(60, () => newJob()),
  );
  const waiting = await dispatched(
    world,
    user,
    site,
    times(20, () => newJob()),
  );
  await Promise.all([
    ...times(12, (i) =>
      store.applyMoves(
        queued.slice(i * 5, i * 5 + 5).map((id) => move(id, site)),
        context(),
      ),
    ),
    ...times(10, (i) =>
      store.applyStarts(
        site,
        waiting.slice(i * 2, i * 2 + 2).map((id) => start(id, site, { [machines[i % 4]!]: 1 })),
        null,
        context(),
      ),
    ),
    world.setSiteState(site, 'DRAINING'),
  ]);
  const { rows } = await test.pool.query(
    `SELECT * FROM events WHERE site_id = $1 AND to_state IN ('DISPATCHED', 'ASSIGNED')
        AND id > (SELECT max(id) FROM events WHERE kind = 'SITE')`,
    [site],
  );
  expect(rows).toEqual([]);
  await store.takeBack(site, context(), 1000);
  expect((await store.loadGrid(0)).jobs.filter(({ state }) => state === 'DISPATCHED')).toEqual([]);
  expect(await world.breaches()).toEqual([]);
});

it('readers by cursor see every event once and in order, while many write; a mirror stays in step', async () => {
  let writing = true;
  const ids = times(40, () => 0);
  const seen: number[] = [];
  const read = async () => {
    let cursor = '0';
    for (;;) {
      const last = !writing;
      const { rows } = await test.pool.query<{ id: string }>(
        'SELECT id FROM events WHERE id > $1 ORDER BY id LIMIT 50',
        [cursor],
      );
      for (const { id } of rows) seen.push(Number(id));
      cursor = rows.at(-1)?.id ?? cursor;
      if (last && rows.length === 0) return;
    }
  };
  const mirror = new Mirror(store, { batch: 20 });
  const follow = async () => {
    for (let last = false; ; last = !writing) {
      await mirror.sync();
      if (last) return;
    }
  };
  const write = async (writer: number) => {
    for (let round = 0; round < 5; round++) {
      const jobs = await submit(
        world,
        user,
        times(6, () => newJob({ deadline: T0 + 900 })),
      );
      ids.push(...jobs);
      await store.applyMoves(
        jobs.map((id) => move(id, site)),
        context(),
      );
      await store.cancel({ ids: [jobs[0]!], ownedBy: null, limit: 10 }, T0, 'CANCELLED_BY_USER');
      const starts = jobs.map((id, n) => start(id, site, { [machines[(writer + n) % 4]!]: 1 }));
      const { accepted } = await store.applyStarts(site, starts, null, context());
      await vouch(store, site, [...machines].reverse(), T0 + round);
      await store.reportRuns(
        site,
        accepted.flatMap((id) => [report(id, 1), ended(id, 1, { cause: id % 3 ? 'EXITED_ZERO' : 'LOST' })]),
        3,
      );
      if (writer === 0) await world.setMachineState(machines[round % 4]!, round % 2 ? 'UP' : 'DRAINING');
    }
  };
  const readers = [read(), follow()];
  await Promise.all(times(6, write));
  writing = false;
  await Promise.all(readers);
  const { rows } = await test.pool.query<{ id: string }>('SELECT id FROM events ORDER BY id');
  expect(seen).toEqual(rows.map((row) => Number(row.id)));
  expect(await world.breaches()).toEqual([]);

  const fresh = new Mirror(store);
  await fresh.sync();
  const places = (of: Mirror) => ids.map((id) => of.grid.placeOf(id));
  expect(places(mirror)).toEqual(places(fresh));
  expect(mirror.grid.index(Margins).last(1000)).toEqual(fresh.grid.index(Margins).last(1000));
});

it('sweeps, heartbeats, actions and reports together break nothing', async () => {
  const ids = await dispatched(
    world,
    user,
    site,
    times(30, () => newJob({ deadline: T0 + 30, runTimeLimitS: 5 })),
  );
  await store.applyStarts(
    site,
    ids.map((id, n) => start(id, site, { [machines[n % 4]!]: 1 })),
    null,
    context(),
  );
  const rules = {
    now: T0 + 100,
    silentAfterS: 10,
    lostAfterS: 20,
    runTimeGraceS: 1,
    onDeadlinePassed: 'CANCEL',
    maxAttempts: 3,
    limit: 100,
  } as const;
  await store.processSeen('api', 'api', T0 + 75);
  await store.processSeen('api', 'api', T0 + 100);
  await Promise.all([
    ...times(4, () => store.sweep(rules)),
    ...times(4, (i) => vouch(store, site, i % 2 ? machines : [...machines].reverse(), T0 + 100)),
    ...times(6, (i) =>
      store.reportRuns(
        site,
        ids.slice(i * 5, i * 5 + 5).map((id) => report(id, 1)),
        3,
      ),
    ),
    ...times(6, (i) =>
      store.reportRuns(
        site,
        ids
          .slice(i * 5, i * 5 + 5)
          .reverse()
          .map((id) => ended(id, 1)),
        3,
      ),
    ),
    store.cancel({ filter: { siteId: site }, ownedBy: null, limit: 100 }, T0 + 100, 'CANCELLED_BY_OPERATOR'),
    store.reprioritize({ filter: {}, ownedBy: null, limit: 100 }, 7),
  ]);
  expect(await world.breaches()).toEqual([]);
});
