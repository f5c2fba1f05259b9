/** Followers of the event feed, several of them on one database: killed, frozen and failing. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { Follower } from '../../src/engine/follower.js';
import { ALWAYS_REACHED } from '../../src/engine/ports.js';
import { REAL_ENV } from '../../src/platform/env.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { EventBell } from '../../src/store/bell.js';
import type { Database } from '../../src/store/pool.js';
import { PostgresStore } from '../../src/store/postgres.js';
import type { FollowerTurn } from '../../src/store/store.js';
import { newJob, openTestDatabase, postgresWorld, submit, type World } from '../store/world.js';
import { withDatabase } from '../support/database.js';
import { quietLog, until } from './support.js';

const test = withDatabase();
let database: Database;
let world: World;
let user: number;
const processes: Process[] = [];
beforeAll(() => {
  database = openTestDatabase(test.url);
});
afterAll(() => database.close());
beforeEach(async () => {
  world = await postgresWorld(database, test.pool);
  user = await world.addUser('ann');
});
afterEach(async () => {
  for (const one of processes.splice(0)) await one.stop();
});

/** What a process has dealt with, and how to break it. */
class Process {
  readonly seen: number[] = [];
  startedOver = 0;
  failsNext = false;
  readonly metrics = createMetrics();
  private thaw: (() => void) | null = null;
  private frozen: Promise<void> = Promise.resolve();
  private readonly bell = new EventBell({ url: test.url });
  private readonly follower: Follower;

  constructor(holder: string, pollMs: number) {
    const store = new PostgresStore(database);
    this.follower = new Follower(
      {
        name: 'test',
        take: async (events) => {
          await this.frozen;
          if (this.failsNext) {
            this.failsNext = false;
            throw new Error('broken on purpose');
          }
          this.seen.push(...events.map(({ id }) => id));
        },
        startOver: async () => {
          this.startedOver++;
        },
      },
      {
        store: { follow: (turn: FollowerTurn) => store.follow({ ...turn, leaseS: 1 }) },
        ...{ holder, log: quietLog, metrics: this.metrics, reach: ALWAYS_REACHED, env: REAL_ENV },
        now: () => Date.now() / 1000,
        news: this.bell.listen,
        pace: { batch: 7, gapMs: 5, pollMs },
      },
    );
    processes.push(this);
  }

  async start(): Promise<void> {
    await this.bell.start();
    this.follower.start();
  }

  /** It stays in the middle of whatever it is doing, and is not heard of. */
  freeze(): void {
    this.frozen = new Promise((resolve) => {
      this.thaw = resolve;
    });
  }

  melt(): void {
    this.thaw?.();
    this.thaw = null;
  }

  async stop(): Promise<void> {
    this.melt();
    await this.follower.stop();
    await this.bell.stop();
  }
}

const events = async (): Promise<number[]> =>
  (await test.pool.query('SELECT id::integer AS id FROM events ORDER BY id')).rows.map(({ id }) => id);
const work = async (jobs: number): Promise<void> => {
  for (let i = 0; i < jobs; i++) await submit(world, user, [newJob(), newJob()]);
};

it('every event is dealt with in order, by one process at a time, whichever is frozen or fails', async () => {
  const all = [new Process('a', 100), new Process('b', 100), new Process('c', 100)];
  const row = async (): Promise<{ holder: string; cursor: number }> =>
    (await test.pool.query('SELECT holder, cursor::integer AS cursor FROM followers')).rows[0];
  const seen = () => [...new Set(all.flatMap((one) => one.seen))].sort((x, y) => x - y);
  const everythingSeen = () => until('all is seen', async () => seen().at(-1) === (await events()).at(-1));
  for (const one of all) await one.start();
  await until('one begins', () => all.some(({ startedOver }) => startedOver > 0));
  await until('it goes on', async () => (await row()).cursor > 0);
  const begin = (await row()).cursor;
  await work(10);
  await everythingSeen();

  for (const one of all) one.failsNext = true;
  await work(5);
  await everythingSeen();
  const metrics = await Promise.all(all.map((one) => one.metrics.expose()));
  expect(metrics.map(({ body }) => body).join()).toContain(
    'switchyard_follower_failures_total{follower="test"} 1',
  );

  const { holder } = await row();
  const frozen = all['abc'.indexOf(holder)] as Process;
  for (const one of all) one.failsNext = false;
  frozen.freeze();
  await work(10);
  await everythingSeen();
  const before = await row();
  expect(before.holder).not.toBe(holder);
  frozen.melt();
  await work(5);
  await everythingSeen();
  expect((await row()).cursor).toBeGreaterThanOrEqual(before.cursor);
  expect(seen()).toEqual((await events()).filter((id) => id > begin));
});

it('is woken by the commit, and starts over where retention has passed it', async () => {
  const a = new Process('a', 600_000);
  await a.start();
  await until('a begins', () => a.startedOver === 1);
  await work(1);
  await until('a has seen it', async () => a.seen.at(-1) === (await events()).at(-1));
  await a.stop();
  await work(3);
  const forgotten = { eventsBefore: Date.now() / 1000 + 60, unreadBefore: Date.now() / 1000 + 60 };
  await test.pool.query("UPDATE followers SET lease_until = now() + interval '1 hour', holder = 'b'");
  await world.store.prune({
    ...forgotten,
    jobsEndedBefore: 0,
    processesBefore: 0,
    auditsBefore: 0,
    limit: 99,
  });
  const b = new Process('b', 600_000);
  await b.start();
  await until('b starts over', () => b.startedOver === 1);
  await work(1);
  await until('b goes on', async () => b.seen.at(-1) === (await events()).at(-1));
  expect(b.seen).toEqual(await events());
});
