/**
 * Brings a database up to date: the migrations of prisma/migrations, then the functions and triggers.
 *
 * Migrations are recorded in `_prisma_migrations` the way Prisma does it, so that `prisma migrate` can be used as well. It is not used
 * here because its engine is a binary that the CLI downloads. Functions are not part of the migrations: they are all replaced
 * whenever their text has changed, so that each has one place where it can be read.
 */
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import gt from 'semver/functions/gt.js';
import { packagePath } from '../platform/paths.js';
import { Connection, limitsOfConnection } from './connection.js';
import { currentFunctions, type Functions } from './functions.js';

/** Held by whoever migrates. Any number that nobody else uses. */
const MIGRATION_LOCK = 7_283_651_904;
const CONNECT_MS = 10_000;
const MIGRATION_STATEMENT_MS = 3_600_000;
/** For another process to have migrated, or for a table that others use. */
const MIGRATION_WAIT_MS = 300_000;
/** The name under which they are told as applied, or missing. */
const FUNCTIONS = 'functions.sql';

/** Runs a statement without parameters and gives its rows. */
export type Query = (sql: string) => Promise<Record<string, unknown>[]>;

interface Migration {
  name: string;
  script: string;
  checksum: string;
}

/** One that the database has, by its books. */
type Applied = Omit<Migration, 'script'>;

/**
 * Applies what is missing. Each migration and its record are one transaction: after an error or a crash nothing of it is left, and those
 * before it stay. (One transaction for all is not possible: PostgreSQL does not allow a new enum value to be used in the transaction that
 * adds it.) Several processes may call it at once: one works, the others wait for it.
 *
 * @returns names of what was applied now, in order; empty when there was nothing to do
 * @throws when a migration fails, or the database has one that this release does not know, or knows with other contents
 */
export async function migrate(
  url: string,
  directory = packagePath('prisma', 'migrations'),
  functions: Functions | null = currentFunctions(),
): Promise<string[]> {
  const migrations = readMigrations(directory);
  const client = new Connection({
    connectionString: url,
    connectionTimeoutMillis: CONNECT_MS,
    application_name: 'switchyard-migrate',
    ...limitsOfConnection({ statementTimeoutMs: MIGRATION_STATEMENT_MS }),
    lock_timeout: MIGRATION_WAIT_MS,
  });
  // A connection that breaks is told by the statement under way.
  client.on('error', () => {});
  try {
    await client.connect();
    const query: Query = async (sql) => (await client.query(sql)).rows;
    await query(`SELECT pg_advisory_lock(${MIGRATION_LOCK})`);
    const done = await appliedMigrations(query);
    refuseUnknown(done, migrations);
    const missing = lackingOf(done, migrations);
    if (missing.length > 0) await query(BOOKS);
    for (const migration of missing) await applyMigration(client, migration);
    const names = missing.map(({ name }) => name);
    if (functions === null || !(await lacks(query, functions))) return names;
    await makeFunctions(client, functions);
    return [...names, FUNCTIONS];
  } catch (error) {
    throw new Error(`migrating the database failed: ${error instanceof Error ? error.message : error}`, {
      cause: error,
    });
  } finally {
    await client.end();
  }
}

/**
 * What this release needs and the database does not have, by name: a service is ready when there is nothing. One that the database has with
 * other contents counts as missing.
 */
export async function pendingMigrations(
  query: Query,
  directory = packagePath('prisma', 'migrations'),
): Promise<string[]> {
  const done = await appliedMigrations(query);
  const missing = lackingOf(done, readMigrations(directory)).map(({ name }) => name);
  return (await lacks(query, currentFunctions())) ? [...missing, FUNCTIONS] : missing;
}

/** The table as Prisma makes it. */
const BOOKS = `
CREATE TABLE IF NOT EXISTS _prisma_migrations (
  id varchar(36) PRIMARY KEY NOT NULL,
  checksum varchar(64) NOT NULL,
  finished_at timestamptz,
  migration_name varchar(255) NOT NULL,
  logs text,
  rolled_back_at timestamptz,
  started_at timestamptz NOT NULL DEFAULT now(),
  applied_steps_count integer NOT NULL DEFAULT 0
)`;

async function appliedMigrations(query: Query): Promise<Applied[]> {
  const [books] = await query(`SELECT to_regclass('_prisma_migrations') IS NOT NULL AS present`);
  if (!books?.present) return [];
  const rows = await query(
    'SELECT migration_name, checksum, finished_at FROM _prisma_migrations WHERE rolled_back_at IS NULL ORDER BY started_at',
  );
  const broken = rows.find((row) => row.finished_at === null);
  if (broken)
    throw new Error(
      `\`prisma migrate\` has started ${broken.migration_name} but not finished it; repair this with \`prisma migrate resolve\``,
    );
  return rows.map((row) => ({ name: String(row.migration_name), checksum: String(row.checksum) }));
}

const lackingOf = (done: readonly Applied[], migrations: readonly Migration[]): Migration[] =>
  migrations.filter(
    ({ name, checksum }) => !done.some((other) => other.name === name && other.checksum === checksum),
  );

/** Upgrading is promised from what a release or a landed state has made, and nothing else: whoever guesses loses data. */
function refuseUnknown(done: readonly Applied[], migrations: readonly Migration[]): void {
  const unknown = done.filter(({ name }) => !migrations.some((known) => known.name === name));
  if (unknown.length > 0)
    throw new Error(
      `the database has migrations that this release does not know: ${unknown.map(({ name }) => name).join(', ')}; ` +
        'it was created by a later release or another branch: use that release, or restore a backup made with this one',
    );
  const short = (checksum: string): string => checksum.slice(0, 12);
  const changed = lackingOf(done, migrations).flatMap(({ name, checksum }) => {
    const other = done.find((applied) => applied.name === name);
    return other ? [`${name} (checksum ${short(other.checksum)}, here ${short(checksum)})`] : [];
  });
  if (changed.length > 0)
    throw new Error(
      `the database was created with different contents of ${changed.join(', ')}: this release does not know its tables and cannot upgrade them`,
    );
}

async function applyMigration(client: pg.Client, { name, script, checksum }: Migration): Promise<void> {
  await inOneTransaction(client, async () => {
    await client.query(script).catch((error: Error) => {
      throw new Error(`${name}: ${error.message}`, { cause: error });
    });
    await client.query(
      `INSERT INTO _prisma_migrations (id, checksum, migration_name, started_at, finished_at, applied_steps_count)
         VALUES ($1, $2, $3, now(), clock_timestamp(), 1)`,
      [randomUUID(), checksum, name],
    );
  });
}

async function makeFunctions(client: pg.Client, { release, sql, checksum }: Functions): Promise<void> {
  await inOneTransaction(client, async () => {
    await client.query('DROP SCHEMA IF EXISTS triggers CASCADE');
    await client.query('CREATE SCHEMA triggers');
    await client.query(sql).catch((error: Error) => {
      throw new Error(`${FUNCTIONS}: ${error.message}`, { cause: error });
    });
    await client.query(`COMMENT ON SCHEMA triggers IS '${release} ${checksum}'`);
  });
}

/** Whether a database has to get these functions. Those of a later release are good for the releases before it too. */
async function lacks(query: Query, { release, checksum }: Functions): Promise<boolean> {
  const [row] = await query(
    `SELECT obj_description(oid, 'pg_namespace') AS made FROM pg_namespace WHERE nspname = 'triggers'`,
  );
  if (!row?.made) return true;
  const [madeBy, made] = String(row.made).split(' ') as [string, string];
  return made !== checksum && !gt(madeBy, release);
}

async function inOneTransaction(client: pg.Client, work: () => Promise<void>): Promise<void> {
  await client.query('BEGIN');
  try {
    await work();
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  }
}

function readMigrations(directory: string): Migration[] {
  const names = readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(directory, entry.name, 'migration.sql')))
    .map((entry) => entry.name)
    .sort();
  if (names.length === 0) throw new Error(`no migrations in ${directory}: the installation is incomplete`);
  return names.map((name) => {
    const script = readFileSync(join(directory, name, 'migration.sql'), 'utf8');
    return { name, script, checksum: createHash('sha256').update(script).digest('hex') };
  });
}
