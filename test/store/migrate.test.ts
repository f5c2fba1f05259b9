import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DEFAULT_POLICY } from '../../src/core/policy.js';
import { packagePath } from '../../src/platform/paths.js';
import { migrate, pendingMigrations, schemaDrift } from '../../src/store/migrate.js';
import { openDatabase } from '../../src/store/pool.js';
import { PostgresStore } from '../../src/store/postgres.js';
import { withDatabase } from '../support/database.js';
import { temporaryDirectory } from '../support/home.js';

const db = withDatabase();

const FUNCTION = `CREATE FUNCTION answer() RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM 1; RETURN 42; END; $$;`;

/** A directory of migrations with these names and scripts. */
function migrations(scripts: Record<string, string>): string {
  const dir = temporaryDirectory();
  for (const [name, sql] of Object.entries(scripts)) {
    mkdirSync(join(dir, name));
    writeFileSync(join(dir, name, 'migration.sql'), sql);
  }
  writeFileSync(join(dir, 'migration_lock.toml'), 'provider = "postgresql"\n');
  return dir;
}

/** Takes the entries of our own migrations away, so that the made-up ones are not older than the database. */
async function blankDatabase(): Promise<{
  url: string;
  query: (sql: string) => Promise<Record<string, unknown>[]>;
}> {
  const { url } = await db.another();
  const name = new URL(url).pathname.slice(1);
  await db.pool.query(`DROP DATABASE ${name} WITH (FORCE)`);
  await db.pool.query(`CREATE DATABASE ${name}`);
  const { default: pg } = await import('pg');
  const query = async (sql: string) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query(sql)).rows;
    } finally {
      await client.end();
    }
  };
  return { url, query };
}

test('schema.prisma and the migrations agree', async () => {
  expect(await schemaDrift(db.url)).toBe('');
});

test('a database with jobs of an earlier release goes on working, and so does that release on it', async () => {
  const { url, query } = await blankDatabase();
  const older = temporaryDirectory();
  const own = packagePath('prisma', 'migrations');
  for (const name of ['20261120000000_init', '20261121000000_simulations'])
    cpSync(join(own, name), join(older, name), { recursive: true });
  expect(await migrate(url, older)).toHaveLength(2);
  await query(`
    INSERT INTO users (name) VALUES ('ann');
    INSERT INTO policies (version, document, reason) VALUES (1, '${JSON.stringify(DEFAULT_POLICY)}', 'test');
    INSERT INTO sites (name) VALUES ('here');
    INSERT INTO machines (site_id, name, cpus, memory_mb, benchmark, os, architecture) VALUES (1, 'm1', 9, 100, 100, 'linux', 'x64');
    INSERT INTO jobs (user_id, application, command, estimate_s, benchmark, state, submitted_at)
      SELECT 1, 'app', 'true', 1, 1, 'QUEUED', now() FROM generate_series(1, 3);
    UPDATE jobs SET state = 'DISPATCHED', site_id = 1, seq = seq + 1 WHERE id < 3;
    UPDATE jobs SET state = 'QUEUED', site_id = NULL, seq = seq + 1 WHERE id = 2`);
  const [{ cursor }] = (await query('SELECT max(id)::text AS cursor FROM events')) as [{ cursor: string }];
  await migrate(url);
  const database = openDatabase({
    url,
    poolSize: 2,
    connectTimeoutMs: 10_000,
    statementTimeoutMs: 60_000,
    applicationName: 'switchyard-test',
  });
  try {
    const { jobs } = await new PostgresStore(database.prisma).loadGrid(0);
    expect(jobs.map(({ job, state, siteId }) => [job.groupId, job.data, state, siteId])).toEqual([
      [-1, null, 'DISPATCHED', 1],
      [-2, null, 'QUEUED', null],
      [-3, null, 'QUEUED', null],
    ]);
    // Statements of the earlier release.
    await query(`
      INSERT INTO jobs (user_id, application, command, estimate_s, benchmark, state, submitted_at) VALUES (1, 'app', 'true', 1, 1, 'QUEUED', now());
      UPDATE jobs SET state = 'DISPATCHED', site_id = 1, seq = seq + 1 WHERE id = 4`);
    const changes = await new PostgresStore(database.prisma).changesSince(cursor, 100);
    expect(changes).toMatchObject({
      jobs: [{ id: 4, position: { state: 'DISPATCHED', siteId: 1 } }],
      traffic: [{ siteId: 1, arrivals: 1, services: 0 }],
    });
  } finally {
    await database.close();
  }
});

test('drift is noticed', async () => {
  const { url } = await db.another();
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('CREATE TABLE stray (id int PRIMARY KEY)');
  await client.end();
  expect(await schemaDrift(url)).toContain('DROP TABLE "stray"');
});

test('of several migrators at once exactly one applies, and bodies with semicolons run', async () => {
  const { url, query } = await blankDatabase();
  const dir = migrations({
    '1_table': 'CREATE TABLE t (id int);',
    '2_function': FUNCTION,
  });
  expect(await pendingMigrations(query, dir)).toEqual(['1_table', '2_function']);
  const results = await Promise.all([1, 2, 3].map(() => migrate(url, dir)));
  expect(results.flat()).toEqual(['1_table', '2_function']);
  expect(await query('SELECT answer()')).toEqual([{ answer: 42 }]);
  expect(await pendingMigrations(query, dir)).toEqual([]);
});

test('a failing migration leaves nothing behind and says why; mended, it applies', async () => {
  const { url, query } = await blankDatabase();
  const good = { '1_table': 'CREATE TABLE t (id int);' };
  await expect(
    migrate(
      url,
      migrations({
        ...good,
        '2_bad': 'CREATE TABLE u (id int); SELECT nonsense;',
      }),
    ),
  ).rejects.toThrow(/column "nonsense" does not exist/);
  expect(await query(`SELECT to_regclass('t') AS t, to_regclass('_prisma_migrations') AS m`)).toEqual([
    { t: null, m: null },
  ]);
  expect(await migrate(url, migrations({ ...good, '2_bad': 'CREATE TABLE u (id int);' }))).toEqual([
    '1_table',
    '2_bad',
  ]);
});

test('a database of a newer release is refused by name', async () => {
  const { url } = await blankDatabase();
  await migrate(url, migrations({ '1_a': 'SELECT 1;', '2_newer': 'SELECT 1;' }));
  await expect(migrate(url, migrations({ '1_a': 'SELECT 1;' }))).rejects.toThrow(/newer release.*2_newer/);
});
