import pRetry from 'p-retry';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { EventFeed, type FeedBatch, type FeedOptions } from '../../src/store/feed.js';
import type { Database } from '../../src/store/pool.js';
import { Queries } from '../../src/store/queries.js';
import { withDatabase } from '../support/database.js';
import { newJob, openTestDatabase, postgresWorld, submit, type World } from './world.js';

const test = withDatabase();
let database: Database;
let queries: Queries;
let world: World;
let user: number;
const feeds: EventFeed[] = [];
beforeAll(() => {
  database = openTestDatabase(test.url);
  queries = new Queries(database);
});
afterAll(() => database.close());
beforeEach(async () => {
  world = await postgresWorld(database, test.pool);
  user = await world.addUser('ann');
  return async () => {
    await Promise.all(feeds.splice(0).map((feed) => feed.stop()));
  };
});

async function startFeed(options: Partial<FeedOptions> = {}): Promise<EventFeed> {
  // Notifications alone: a poll would hide that they do not come.
  const feed = new EventFeed(queries, { url: test.url, pollMs: 600_000, ...options });
  feeds.push(feed);
  await feed.start();
  return feed;
}

/** What a follower is given until it has seen so many events, or is told to query again. */
async function take(
  feed: EventFeed,
  after: string | null,
  count: number,
): Promise<{ batches: FeedBatch[]; ids: number[] }> {
  const batches: FeedBatch[] = [];
  const ids: number[] = [];
  for await (const batch of feed.follow(after)) {
    batches.push(batch);
    ids.push(...batch.events.map((event) => event.id));
    if (ids.length >= count || batch.resync) break;
  }
  return { batches, ids };
}

const allIds = async () =>
  (await test.pool.query<{ id: string }>('SELECT id FROM events ORDER BY id')).rows.map((row) =>
    Number(row.id),
  );

it('gives what happens to everybody who follows, once and in order, and reads the jobs once', async () => {
  const feed = await startFeed();
  let reads = 0;
  const { jobsByIds } = queries;
  const counted = new EventFeed(
    {
      events: queries.events.bind(queries),
      latestCursor: queries.latestCursor.bind(queries),
      jobsByIds: (ids) => {
        reads++;
        return jobsByIds.call(queries, ids);
      },
    },
    { url: test.url },
  );
  feeds.push(counted);
  await counted.start();
  const before = await allIds();
  const followers = [
    take(feed, null, 3),
    take(feed, null, 3),
    take(counted, null, 3),
    take(counted, null, 3),
  ];
  const ids = await submit(world, user, [newJob(), newJob(), newJob()]);
  const seen = await Promise.all(followers);
  const news = (await allIds()).slice(before.length);
  for (const follower of seen) expect(follower.ids).toEqual(news);
  const jobs = await Promise.all(seen.slice(2).map(({ batches }) => batches[0]!.jobs()));
  expect([...jobs[0]!.keys()]).toEqual(ids);
  expect(jobs[0]!.get(ids[0]!)).toMatchObject({ id: ids[0], state: 'QUEUED', command: 'true' });
  expect(reads).toBe(1);
});

it('goes on from a cursor: in the middle of the ring, behind it, and while it grows', async () => {
  const feed = await startFeed({ batch: 4, ring: 8 });
  await submit(
    world,
    user,
    Array.from({ length: 30 }, () => newJob()),
  );
  const ids = await allIds();
  expect((await take(feed, '0', ids.length)).ids).toEqual(ids);
  for (const from of [1, 13, ids.length - 7, ids.length - 2]) {
    expect((await take(feed, String(ids[from - 1]), ids.length - from)).ids).toEqual(ids.slice(from));
  }
  const growing = take(feed, '0', ids.length + 10);
  for (let i = 0; i < 10; i++) await submit(world, user, [newJob()]);
  expect((await growing).ids).toEqual(await allIds());
});

it('tells a follower whose cursor is older than what is kept, and goes on from now', async () => {
  const feed = await startFeed({ ring: 1, batch: 1 });
  await submit(world, user, [newJob(), newJob(), newJob()]);
  const last = (await allIds()).at(-1)!;
  await take(feed, String(last - 1), 1);
  await test.pool.query('UPDATE events_horizon SET id = $1', [last - 1]);
  await test.pool.query('DELETE FROM events WHERE id < $1', [last]);
  const { batches } = await take(feed, '1', 100);
  expect(batches).toMatchObject([{ resync: true, events: [], cursor: String(last) }]);
  const next = take(feed, batches[0]!.cursor, 1);
  await submit(world, user, [newJob()]);
  expect((await next).ids).toEqual([last + 1]);
});

it('goes on when its connections are cut', async () => {
  const errors: unknown[] = [];
  const feed = await startFeed({ onError: (error) => errors.push(error), pollMs: 50 });
  await test.pool.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'switchyard-%' AND datname = current_database()`,
  );
  const before = (await allIds()).length;
  const following = take(feed, null, 1);
  // The pool may offer more than one of them before it has noticed.
  await pRetry(() => submit(world, user, [newJob()]), { minTimeout: 20 });
  expect((await following).ids).toEqual((await allIds()).slice(before));
  expect(errors.length).toBeGreaterThan(0);
});

it('lets followers go, by signal and at its end', async () => {
  const feed = await startFeed();
  const abort = new AbortController();
  const drain = async (signal?: AbortSignal) => {
    for await (const batch of feed.follow(null, signal)) expect(batch).toBeDefined();
    return 'over';
  };
  const one = drain(abort.signal);
  const other = drain();
  abort.abort();
  expect(await one).toBe('over');
  await feed.stop();
  expect(await other).toBe('over');
  expect(await drain()).toBe('over');
  await expect(feed.start()).rejects.toThrow('the feed is stopped; it can be started only once');
});
