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
import pg from 'pg';
import { packagePath } from '../platform/paths.js';
import { currentFunctions, type Functions } from './functions.js';
import { limitsOfConnection } from './pool.js';

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
}

/**
 * Applies what is missing. Each migration and its record are one transaction: after an error or a crash nothing of it is left, and those
 * before it stay. (One transaction for all is not possible: PostgreSQL does not allow a new enum value to be used in the transaction that
 * adds it.) Several processes may call it at once: one works, the others wait for it.
 *
 * @returns names of what was applied now, in order; empty when there was nothing to do
 * @throws when a migration fails, or the database knows one that this release does not
 */
export async function migrate(
  url: string,
  directory = packagePath('prisma', 'migrations'),
  functions: Functions | null = currentFunctions(),
): Promise<string[]> {
  const migrations = readMigrations(directory);
  const client = new pg.Client({
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
    refuseNewer(done, migrations);
    const missing = migrations.filter(({ name }) => !done.includes(name));
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

/** What this release needs and the database has not, by name: a service is ready when there is nothing. */
export async function pendingMigrations(
  query: Query,
  directory = packagePath('prisma', 'migrations'),
): Promise<string[]> {
  const done = await appliedMigrations(query);
  const missing = readMigrations(directory)
    .map(({ name }) => name)
    .filter((name) => !done.includes(name));
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

async function appliedMigrations(query: Query): Promise<string[]> {
  const [books] = await query(`SELECT to_regclass('_prisma_migrations') IS NOT NULL AS present`);
  if (!books?.present) return [];
  const rows = await query(
    'SELECT migration_name, finished_at FROM _prisma_migrations WHERE rolled_back_at IS NULL ORDER BY started_at',
  );
  const broken = rows.find((row) => row.finished_at === null);
  if (broken)
    throw new Error(
      `\`prisma migrate\` has begun ${broken.migration_name} and not finished it; put that right with \`prisma migrate resolve\``,
    );
  return rows.map((row) => String(row.migration_name));
}

function refuseNewer(done: readonly string[], known: readonly Migration[]): void {
  const newer = done.filter((name) => !known.some((migration) => migration.name === name));
  if (newer.length > 0)
    throw new Error(
      `the database is of a newer release: it has the migrations ${newer.join(', ')}, unknown to this one`,
    );
}

async function applyMigration(client: pg.Client, { name, script }: Migration): Promise<void> {
  await inOneTransaction(client, async () => {
    await client.query(script).catch((error: Error) => {
      throw new Error(`${name}: ${error.message}`, { cause: error });
    });
    await client.query(
      `INSERT INTO _prisma_migrations (id, checksum, migration_name, started_at, finished_at, applied_steps_count)
         VALUES ($1, $2, $3, now(), clock_timestamp(), 1)`,
      [randomUUID(), checksumOf(script), name],
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
  return made !== checksum && !isLater(madeBy, release);
}

function isLater(release: string, other: string): boolean {
  const [a, b] = [release, other].map((text) => text.split('.').map(Number.parseFloat)) as [
    number[],
    number[],
  ];
  const at = a.findIndex((part, i) => part !== b[i]);
  return at >= 0 && (a[at] as number) > (b[at] ?? 0);
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

const checksumOf = (script: string): string => createHash('sha256').update(script).digest('hex');

function readMigrations(directory: string): Migration[] {
  const names = readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(directory, entry.name, 'migration.sql')))
    .map((entry) => entry.name)
    .sort();
  if (names.length === 0) throw new Error(`no migrations in ${directory}: the installation is incomplete`);
  return names.map((name) => ({
    name,
    script: readFileSync(join(directory, name, 'migration.sql'), 'utf8'),
  }));
}
