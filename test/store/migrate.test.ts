import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { migrate, pendingMigrations, schemaDrift } from '../../src/store/migrate.js';
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
