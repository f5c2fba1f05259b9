/** Nobody waits for a process that was stopped: limits of connections, and the watchdog behind them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openWaker } from '../../src/engine/index.js';
import { createLogger } from '../../src/platform/log.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { packagePath } from '../../src/platform/paths.js';
import { SESSION_SETTINGS } from '../../src/store/connection.js';
import { EventFeed } from '../../src/store/feed.js';
import { migrate } from '../../src/store/migrate.js';
import type { Database } from '../../src/store/pool.js';
import { Queries } from '../../src/store/queries.js';
import { Watchdog } from '../../src/store/watchdog.js';
import { withDatabase } from '../support/database.js';
import { watchedWay } from '../support/proxy.js';
import { newJob, openTestDatabase, postgresWorld, submit, type World } from './world.js';

const test = withDatabase();
let database: Database;
let world: World;
let user: number;
const children: ChildProcess[] = [];
beforeAll(async () => {
  database = openTestDatabase(test.url);
  world = await postgresWorld(database, test.pool);
  user = await world.addUser('ann');
});
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL');
  await database.close();
});

/** A process of the product's code that holds the event lock in a transaction, and is stopped there. */
async function stoppedHolder(before = ''): Promise<ChildProcess> {
  const script = `
    import { Lifeline } from ${JSON.stringify(packagePath('dist', 'store', 'lifeline.js'))};
    import { openDatabase, transaction } from ${JSON.stringify(packagePath('dist', 'store', 'pool.js'))};
    const database = openDatabase({ url: process.env.URL, poolSize: 1, connectTimeoutMs: 5000, statementTimeoutMs: 30000,
      applicationName: 'switchyard stopped' });
    await transaction(database, async (tx) => {
      ${before}
      await tx.query('SELECT triggers.lock_events()');
      console.log('held');
      await new Promise((resolve) => setTimeout(resolve, 600_000));
    }, { timeoutMs: 600_000 });`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    env: { ...process.env, URL: test.url },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  await once(child.stdout as NodeJS.ReadableStream, 'data');
  child.kill('SIGSTOP');
  return child;
}

it('a process that is stopped with the event lock in its hands does not stop the others', async () => {
  await stoppedHolder();
  const [id] = await submit(world, user, [newJob()]);
  expect(id).toBeGreaterThan(0);
});

it.each([
  ['whose limits were dropped', `await tx.query('SET idle_in_transaction_session_timeout = 0');`],
  [
    'in the middle of a copy, which no limit ends',
    `await tx.query('LOCK TABLE users');
     const { from } = await import('pg-copy-streams');
     const lifeline = new Lifeline({ url: process.env.URL, onAway() {}, onBack() {} });
     await lifeline.start();
     tx.pipeline = false;
     const stream = tx.query(from('COPY users (name) FROM STDIN'));
     stream.write('somebody\\n', () => console.log('held'));
     await new Promise(() => {});`,
  ],
])('the watchdog ends a session %s', async (_, before) => {
  await stoppedHolder(before);
  const ended: string[] = [];
  const watchdog = new Watchdog({
    url: test.url,
    everyMs: 100,
    stuckAfterMs: 500,
    onEnded: ({ name }) => ended.push(name),
    onError: (error) => {
      throw error;
    },
  });
  watchdog.start();
  const [id] = await submit(world, user, [newJob()]);
  await watchdog.stop();
  expect(id).toBeGreaterThan(0);
  expect(ended).toEqual([expect.stringMatching(/^switchyard stopped @/)]);
});

it('every connection of ours asks for what it needs, whoever made it', async () => {
  const way = await watchedWay(test.url);
  const through = openTestDatabase(way.url);
  const log = createLogger({ level: 'silent', process: 'test' });
  const waker = openWaker({
    connection: { kind: 'postgres', url: way.url },
    log,
    metrics: createMetrics(),
  });
  const feed = new EventFeed(new Queries(through), { url: way.url });
  await migrate(way.url);
  await feed.start();
  await waker.wake(['root']);
  await waker.flushed();
  await through.prisma.user.count();
  await waker.close();
  await feed.stop();
  await through.close();
  await way.close();
  const names = ['switchyard-migrate', 'switchyard-feed', 'switchyard-queue', 'switchyard-test'];
  const made = way.begun.map(({ application_name: name }) => name?.split(' @')[0]);
  expect(made).toEqual(expect.arrayContaining(names));
  for (const begun of way.begun) {
    expect(begun, begun.application_name).toMatchObject({
      statement_timeout: expect.stringMatching(/^\d+$/),
      lock_timeout: expect.stringMatching(/^[1-9]\d*$/),
      idle_in_transaction_session_timeout: expect.stringMatching(/^[1-9]\d*$/),
    });
    // BullMQ makes the connection on which it listens itself: it does nothing else.
    if (begun.jit === undefined) expect(begun.application_name).toBe('switchyard-queue');
    else expect(begun).toMatchObject(SESSION_SETTINGS);
  }
});

it('a connection on which a write was refused for reading only is not used again', async () => {
  const one = openTestDatabase(test.url, 1);
  const pid = async () => (await one.pool.query('SELECT pg_backend_pid() AS pid')).rows[0].pid;
  const before = await pid();
  await expect(one.pool.query('BEGIN READ ONLY; CREATE TABLE replica (); COMMIT')).rejects.toMatchObject({
    code: '25006',
  });
  expect(await pid()).not.toBe(before);
  await one.close();
});
