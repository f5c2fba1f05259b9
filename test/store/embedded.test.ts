import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/store/embedded.js';
import { temporaryDirectory } from '../support/home.js';

const settings = { shared_buffers: '16MB', max_connections: '20' };

/** Starts a server that is stopped when the test is finished, in any case. */
async function start(home: string, more: Record<string, string> = {}): Promise<EmbeddedPostgres> {
  const server = await startEmbeddedPostgres({ home, settings: { ...settings, ...more } });
  onTestFinished(() => server.stop());
  return server;
}

const made = join(mkdtempSync(join(tmpdir(), 'switchyard-tmp-')), 'home');
afterAll(() => rmSync(join(made, '..'), { recursive: true, force: true }));

/** A home of which the first start is over: a copy of one that is made once, which takes seconds. */
async function usedHome(): Promise<string> {
  if (!existsSync(made)) await (await startEmbeddedPostgres({ home: made, settings })).stop();
  const home = temporaryDirectory();
  execFileSync('cp', ['-a', `${made}/.`, home]);
  return home;
}

async function query(server: { url: string }, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: server.url, connectionTimeoutMillis: 5_000 });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** A process of its own (from the build) that starts the server of this home and is then killed, as by kill -9. */
async function startAndDie(home: string): Promise<{ url: string; pid: number }> {
  const module = packagePath('dist', 'store', 'embedded.js');
  const script = `
    const { startEmbeddedPostgres } = await import(${JSON.stringify(module)});
    const server = await startEmbeddedPostgres(${JSON.stringify({ home, settings })});
    console.log(JSON.stringify({ url: server.url, pid: server.pid }));
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const gone = once(child, 'exit');
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  child.kill('SIGKILL');
  await gone;
  return JSON.parse(line.toString());
}

test('a new home: durable, closed to others, and the data stays over a restart on the same port', async () => {
  const home = temporaryDirectory();
  // Open to everybody, so that as root the server's account gets there without help; the other tests need that help.
  chmodSync(home, 0o755);
  const first = await start(home);
  const [row] = await query(
    first,
    `SELECT current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS commit,
            current_setting('listen_addresses') AS addresses, current_database() AS database`,
  );
  expect(row).toEqual({ fsync: 'on', commit: 'on', addresses: '127.0.0.1', database: 'switchyard' });
  expect(statSync(join(home, 'postgres.password')).mode & 0o077).toBe(0);
  expect(statSync(join(home, 'postgres')).mode & 0o077).toBe(0);
  await expect(query({ url: first.url.replace(/:[0-9a-f]+@/, ':wrong@') }, 'SELECT 1')).rejects.toThrow(
    /password/,
  );

  await query(first, 'CREATE TABLE kept AS SELECT 42 AS answer');
  await first.stop();
  const second = await start(home);
  expect(second.url).toBe(first.url);
  expect(await query(second, 'SELECT * FROM kept')).toEqual([{ answer: 42 }]);
});

test('a second start on the same home is refused, naming the running process', async () => {
  const home = await usedHome();
  await start(home);
  await expect(startEmbeddedPostgres({ home, settings })).rejects.toThrow(
    `in use by the running process ${process.pid}`,
  );
});

test('our process killed: the next takes the running server over, with everything committed', async () => {
  const home = await usedHome();
  const left = await startAndDie(home);
  await query(left, 'CREATE TABLE kept AS SELECT 42 AS answer');
  const next = await start(home);
  expect(next.pid).toBe(left.pid);
  expect(await query(next, 'SELECT * FROM kept')).toEqual([{ answer: 42 }]);
  await next.stop();
  await expect(query(left, 'SELECT 1')).rejects.toThrow();
});

test('our process killed, and the settings changed: the server is started anew', async () => {
  const home = await usedHome();
  const left = await startAndDie(home);
  const next = await start(home, { work_mem: '5MB' });
  expect(next.pid).not.toBe(left.pid);
  expect(await query(next, 'SHOW work_mem')).toEqual([{ work_mem: '5MB' }]);
});

test('both killed: the stale pid file does no harm, and nothing committed is lost', async () => {
  const home = await usedHome();
  const left = await startAndDie(home);
  await query(left, 'CREATE TABLE kept AS SELECT 42 AS answer');
  process.kill(left.pid, 'SIGKILL');
  const next = await start(home);
  expect(await query(next, 'SELECT * FROM kept')).toEqual([{ answer: 42 }]);
});

test('a pid file whose number went to some other program does no harm, to neither', async () => {
  const home = await usedHome();
  const server = await start(home);
  await server.stop();
  const stranger = spawn('sleep', ['600']);
  onTestFinished(() => void stranger.kill('SIGKILL'));
  const port = new URL(server.url).port;
  const content = [
    stranger.pid,
    join(home, 'postgres', 'data'),
    1,
    port,
    '',
    '127.0.0.1',
    '',
    'ready   ',
    '',
  ].join('\n');
  writeFileSync(join(home, 'postgres', 'data', 'postmaster.pid'), content);
  expect(await query(await start(home), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  expect(stranger.exitCode ?? stranger.signalCode).toBeNull();
});

test('the server killed while we run is started again on the same port', async () => {
  const home = await usedHome();
  const server = await start(home);
  await query(server, 'CREATE TABLE kept AS SELECT 42 AS answer');
  // As BullMQ makes that of its ids: the first number is taken where the sequence is made.
  await query(server, "BEGIN; CREATE SEQUENCE ids; SELECT nextval('ids'); COMMIT");
  await query(server, "SELECT nextval('ids') FROM generate_series(1, 5)");
  const before = server.pid;
  process.kill(before, 'SIGKILL');
  await expect.poll(() => server.pid).not.toBe(before);
  await expect.poll(() => query(server, 'SELECT * FROM kept').catch(() => null)).toEqual([{ answer: 42 }]);
  const [next] = await query(server, "SELECT nextval('ids') AS id");
  expect(Number(next?.id)).toBeGreaterThan(6);
});

test('a first start that was interrupted is made good', async () => {
  const home = temporaryDirectory();
  mkdirSync(join(home, 'postgres', 'data.new', 'base'), { recursive: true });
  expect(await query(await start(home), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});

test('a home below a directory closed to others works too', async () => {
  const closed = temporaryDirectory();
  chmodSync(closed, 0o700);
  expect(await query(await start(join(closed, 'home')), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});

test('what cannot work is said plainly', async () => {
  const home = await usedHome();
  const server = await start(home);
  await server.stop();
  const version = join(home, 'postgres', 'data', 'PG_VERSION');
  const written = readFileSync(version);
  writeFileSync(version, '9\n');
  await expect(startEmbeddedPostgres({ home, settings })).rejects.toThrow(/written by PostgreSQL 9/);
  writeFileSync(version, written);
  await expect(startEmbeddedPostgres({ home, settings: { work_mem: 'plenty' } })).rejects.toThrow(/work_mem/);
  // A failed start leaves the home free.
  expect(await query(await start(home), 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
});
