/** What a database that cannot take a write for now means: the client is to try again, and nothing has to be started anew. */
import { once } from 'node:events';
import { chownSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ServerClock } from '../../src/store/clock.js';
import type { Database } from '../../src/store/pool.js';
import { PostgresStore } from '../../src/store/postgres.js';
import { isUnavailable } from '../../src/store/unavailable.js';
import { withDatabase } from '../support/database.js';
import { fill, makeRoom, mayMount, smallDisk } from '../support/small-disk.js';
import { newJob, openTestDatabase, postgresWorld, submit, type World } from './world.js';

const test = withDatabase();
let database: Database;
let world: World;
let user: number;
beforeAll(async () => {
  database = openTestDatabase(test.url);
  world = await postgresWorld(database, test.pool);
  user = await world.addUser('ann');
});
afterAll(() => database.close());

const jobCount = async () => Number((await test.pool.query('SELECT count(*) FROM jobs')).rows[0].count);

it.skipIf(!mayMount)('its disk is full, then there is room again', async () => {
  const dir = smallDisk(4);
  const { rows } = await test.pool.query('SHOW data_directory');
  const { uid, gid } = statSync(rows[0].data_directory);
  const space = join(dir, 'space');
  mkdirSync(space, { mode: 0o700 });
  chownSync(space, uid, gid);
  await test.pool.query(`CREATE TABLESPACE small_disk LOCATION '${space}'`);
  await test.pool.query('ALTER TABLE jobs SET TABLESPACE small_disk');
  fill(dir);
  const jobs = Array.from({ length: 500 }, () => newJob());
  const before = await jobCount();
  const refused = await submit(world, user, jobs).catch((error: unknown) => error);
  expect(refused).toMatchObject({ code: '53100' });
  expect(isUnavailable(refused)).toBe(true);
  expect(await jobCount()).toBe(before);
  makeRoom(dir);
  expect(await submit(world, user, jobs)).toHaveLength(500);
  await test.pool.query('ALTER TABLE jobs SET TABLESPACE pg_default');
  await test.pool.query('DROP TABLESPACE small_disk');
});

it('it has become a replica, then another takes writes', async () => {
  const name = new URL(test.url).pathname.slice(1);
  // For connections that begin from now on, as those that a failover leads to the wrong server.
  await test.pool.query(`ALTER DATABASE ${name} SET default_transaction_read_only = on`);
  const late = openTestDatabase(test.url, 1);
  const onReplica = { ...world, store: new PostgresStore(late) };
  const refused = await submit(onReplica, user, [newJob()]).catch((error: unknown) => error);
  expect(isUnavailable(refused)).toBe(true);
  await test.pool.query(`ALTER DATABASE ${name} RESET default_transaction_read_only`);
  expect(await submit(onReplica, user, [newJob()])).toHaveLength(1);
  await late.close();
});

it.each([
  ['a statement that is cancelled', 'SELECT pg_cancel_backend(pg_backend_pid())'],
  ['one that takes too long', 'SET LOCAL statement_timeout = 20; SELECT pg_sleep(10)'],
  ['no lock in time', 'SET LOCAL lock_timeout = 20; LOCK TABLE users'],
  ['too long a pause in a transaction', 'SET LOCAL idle_in_transaction_session_timeout = 20'],
])('%s is no failure of the service', async (_, sql) => {
  const holder = await test.pool.connect();
  await holder.query('BEGIN; LOCK TABLE users');
  const client = await test.pool.connect();
  // Of the last one, which the database tells when it closes the connection.
  const closed = once(client, 'error');
  client.on('error', () => {});
  const failed = await client
    .query(`BEGIN; ${sql}`)
    .then(() => closed)
    .then(() => client.query('SELECT 1'))
    .catch((error: unknown) => error);
  client.release(true);
  await holder.query('ROLLBACK');
  holder.release();
  expect(isUnavailable(failed)).toBe(true);
});

it('all processes go by its clock, however wrong their own is', async () => {
  const real = Date.now;
  const clock = new ServerClock(database.pool);
  try {
    Date.now = () => real() + 86_400_000;
    const { now } = new ServerClock(database.pool);
    expect(now()).toBeGreaterThan(real() / 1000 + 86_000);
    await clock.start();
    Date.now = () => real() - 86_400_000;
    const { rows } = await test.pool.query('SELECT extract(epoch FROM clock_timestamp())::float8 AS now');
    expect(Math.abs(clock.now() - rows[0].now)).toBeLessThan(60);
  } finally {
    Date.now = real;
    clock.stop();
  }
});
