import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { currentFunctions, functionsOf } from '../../src/store/functions.js';
import { migrate, pendingMigrations } from '../../src/store/migrate.js';
import { withDatabase } from '../support/database.js';
import { schemaDrift } from '../support/drift.js';
import { temporaryDirectory } from '../support/home.js';
import { assigned, newJob, openTestDatabase, postgresWorld, T0, vouch } from './world.js';

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
  const dir = migrations({ '1_table': 'CREATE TABLE t (id int);', '2_function': FUNCTION });
  expect(await pendingMigrations(query, dir)).toEqual(['1_table', '2_function', 'functions.sql']);
  const results = await Promise.all([1, 2, 3].map(() => migrate(url, dir, null)));
  expect(results.flat()).toEqual(['1_table', '2_function']);
  expect(await query('SELECT answer()')).toEqual([{ answer: 42 }]);
  expect(await pendingMigrations(query, dir)).toEqual(['functions.sql']);
});

test('the books are those of `prisma migrate`', async () => {
  const { url, query } = await blankDatabase();
  const names = (await migrate(url)).slice(0, -1);
  const wanted = names.map((name) => {
    const script = readFileSync(packagePath('prisma', 'migrations', name, 'migration.sql'));
    return {
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      checksum: createHash('sha256').update(script).digest('hex'),
      migration_name: name,
      started_at: expect.any(Date),
      finished_at: expect.any(Date),
      applied_steps_count: 1,
      logs: null,
      rolled_back_at: null,
    };
  });
  expect(await query('SELECT * FROM _prisma_migrations ORDER BY migration_name')).toEqual(wanted);
  // One that Prisma has begun and not finished is not passed over.
  await query('UPDATE _prisma_migrations SET finished_at = NULL');
  await expect(migrate(url)).rejects.toThrow(new RegExp(`${names[0]}.*prisma migrate resolve`));
});

test('a failing migration leaves nothing of itself behind and says why; mended, it applies', async () => {
  const { url, query } = await blankDatabase();
  const good = { '1_table': 'CREATE TABLE t (id int);' };
  const bad = migrations({ ...good, '2_bad': 'CREATE TABLE u (id int); SELECT nonsense;' });
  await expect(migrate(url, bad, null)).rejects.toThrow(/2_bad: column "nonsense" does not exist/);
  expect(await query(`SELECT to_regclass('t')::text AS t, to_regclass('u') AS u`)).toEqual([
    { t: 't', u: null },
  ]);
  expect(await pendingMigrations(query, bad)).toEqual(['2_bad', 'functions.sql']);
  const mended = migrations({ ...good, '2_bad': 'CREATE TABLE u (id int);' });
  expect(await migrate(url, mended, null)).toEqual(['2_bad']);
});

test('a new value of an enum can be used by the migration behind the one that adds it', async () => {
  const { url } = await blankDatabase();
  const scripts = {
    '1_type': `CREATE TYPE mood AS ENUM ('FAIR'); CREATE TABLE t (mood mood);`,
    '2_value': `ALTER TYPE mood ADD VALUE 'FOUL';`,
    '3_use': `ALTER TABLE t ADD CHECK (mood <> 'FOUL');`,
  };
  expect(await migrate(url, migrations(scripts), null)).toHaveLength(3);
});

test('a database with a migration that is not known here is refused by name', async () => {
  const { url } = await blankDatabase();
  await migrate(url, migrations({ '1_a': 'SELECT 1;', '2_other': 'SELECT 1;' }), null);
  await expect(migrate(url, migrations({ '1_a': 'SELECT 1;', '3_ours': 'SELECT 1;' }), null)).rejects.toThrow(
    /does not know: 2_other;/,
  );
});

test('a database made by other contents of a migration is refused by its name, and not ready', async () => {
  const { url, query } = await blankDatabase();
  await migrate(url, migrations({ '1_a': 'SELECT 1;', '2_b': 'CREATE TABLE t (id int);' }), null);
  const ours = migrations({ '1_a': 'SELECT 1;', '2_b': 'CREATE TABLE t (id int, missing int);' });
  await expect(migrate(url, ours, null)).rejects.toThrow(
    /different contents of 2_b \(checksum \w+, here \w+\)/,
  );
  expect(await pendingMigrations(query, ours)).toEqual(['2_b', 'functions.sql']);
});

test('functions and triggers are made anew when their text has changed, and only then', async () => {
  const { url, query } = await blankDatabase();
  const dir = migrations({ '1_table': 'CREATE TABLE t (id int);' });
  const text = (answer: number) => `
    CREATE FUNCTION triggers.answer() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.id := ${answer}; RETURN NEW; END $$;
    CREATE TRIGGER answer BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION triggers.answer()`;
  const answer = async () => (await query('INSERT INTO t VALUES (0) RETURNING id'))[0]?.id;
  const made = async () => (await query(`SELECT 'triggers.answer'::regproc::oid AS oid`))[0]?.oid;
  await migrate(url, dir, functionsOf('1.0.0', text(1)));
  expect(await answer()).toBe(1);
  const first = await made();
  await migrate(url, dir, functionsOf('1.0.0', text(1)));
  expect(await made()).toBe(first);
  await migrate(url, dir, functionsOf('1.0.0', text(2)));
  expect(await answer()).toBe(2);
  // Those of a later release stay when an earlier one migrates, and an error leaves those that were there.
  await migrate(url, dir, functionsOf('1.10.0', text(3)));
  await migrate(url, dir, functionsOf('1.9.1', text(4)));
  await expect(migrate(url, dir, functionsOf('1.10.0', 'CREATE nonsense'))).rejects.toThrow(
    /functions.sql: syntax error/,
  );
  expect(await answer()).toBe(3);
});

test('a database is not ready without the functions of its release', async () => {
  const { url, query } = await blankDatabase();
  await migrate(url);
  expect(await pendingMigrations(query)).toEqual([]);
  const { release, sql } = currentFunctions();
  await migrate(url, undefined, functionsOf(release, `${sql}-- an earlier build`));
  expect(await pendingMigrations(query)).toEqual(['functions.sql']);
  await migrate(url);
  expect(await pendingMigrations(query)).toEqual([]);
});

test('runs of the release before get the limit that their agents were told; one entered meanwhile has its own', async () => {
  const database = openTestDatabase(db.url);
  try {
    const world = await postgresWorld(database, db.pool);
    const [user, site] = [await world.addUser('ann'), await world.addSite('here')];
    const machine = await world.addMachine(site, 'm', 8);
    await vouch(world.store, site, [machine], T0);
    await assigned(world, user, site, machine, [newJob(), newJob({ runTimeLimitS: 50 })]);
    const limits = async () => (await world.store.loadGrid(0)).jobs.map(({ run }) => run?.limitS);
    await world.setMaxLimit(site, 300);
    await db.pool.query('UPDATE runs SET limit_s = NULL');
    expect(await limits()).toEqual([null, 50]);
    const path = packagePath('prisma/migrations/20261127069000_limit_of_run/migration.sql');
    const script = readFileSync(path, 'utf8');
    await db.pool.query(script.slice(script.indexOf('UPDATE runs')));
    expect(await limits()).toEqual([300, 50]);
  } finally {
    await database.close();
  }
});
