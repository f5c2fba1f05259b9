/**
 * Migrations without Prisma's native engine, which npm does not bring and the CLI would download: the same engine as
 * WebAssembly, over the same driver as the client. It keeps the books in `_prisma_migrations`, so that
 * `prisma migrate deploy` may be used as well.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { PrismaPg } from '@prisma/adapter-pg';
import {
  bindMigrationAwareSqlAdapterFactory,
  ColumnTypeEnum,
  type SqlQuery,
  type SqlQueryable,
} from '@prisma/driver-adapter-utils';
import type { MigrationList, SchemaEngine } from '@prisma/schema-engine-wasm';
import pg from 'pg';
import { packagePath } from '../platform/paths.js';

/** Any number: what matters is that all migrators, and nobody else, use it. */
const MIGRATION_LOCK = 7_283_651_904;
/** The engine wants some schema even where it only runs SQL. */
const DATASOURCE = 'datasource db { provider = "postgresql" }';
const NO_FILTER = { externalTables: [], externalEnums: [] };

/**
 * Brings the database up to date: all missing migrations and their entries in one transaction, so that an error or a
 * death on the way leaves nothing behind. (Hence no statement in them that cannot run in a transaction.) Of several who
 * do so at once, one works and the others wait for it.
 *
 * @returns names of the migrations applied now, in order; empty when there was nothing to do
 * @throws when a migration fails, or the database knows a migration that this release does not
 */
export async function migrate(
  url: string,
  directory = packagePath('prisma', 'migrations'),
): Promise<string[]> {
  const migrations = readMigrations(directory);
  return withEngine(url, DATASOURCE, async (engine, query) => {
    await query(`SELECT pg_advisory_xact_lock(${MIGRATION_LOCK})`);
    await refuseNewerDatabase(query, migrations);
    const result = await engine.applyMigrations({
      migrationsList: migrations,
      filters: NO_FILTER,
    });
    return result.appliedMigrationNames;
  });
}

/** Names of migrations that this release has and the database has not: a service is ready when there are none. */
export async function pendingMigrations(
  query: Query,
  directory = packagePath('prisma', 'migrations'),
): Promise<string[]> {
  const applied = await appliedMigrations(query);
  return readMigrations(directory)
    .migrationDirectories.map((migration) => migration.path)
    .filter((name) => !applied.includes(name));
}

/** Runs a statement without parameters and gives its rows; `(sql) => prisma.$queryRawUnsafe(sql)` is one. */
export type Query = (sql: string) => Promise<Record<string, unknown>[]>;

async function appliedMigrations(query: Query): Promise<string[]> {
  const [found] = await query(`SELECT to_regclass('_prisma_migrations') IS NOT NULL AS present`);
  if (!found?.present) return [];
  const rows = await query(
    'SELECT migration_name FROM _prisma_migrations WHERE finished_at IS NOT NULL AND rolled_back_at IS NULL',
  );
  return rows.map((row) => String(row.migration_name));
}

/**
 * What still separates a database from `schema.prisma`, as SQL; empty when they agree. Partial indexes, checks and
 * triggers are invisible to it. For tests, and for writing the next migration.
 */
export async function schemaDrift(
  url: string,
  schemaFile = packagePath('prisma', 'schema.prisma'),
): Promise<string> {
  const schema = {
    path: schemaFile,
    content: readFileSync(schemaFile, 'utf8'),
  };
  return withEngine(url, schema.content, async (engine) => {
    const { stdout } = await engine.diff({
      from: {
        tag: 'schemaDatasource',
        files: [schema],
        configDir: packagePath('prisma'),
      },
      to: { tag: 'schemaDatamodel', files: [schema] },
      script: true,
      exitCode: null,
      filters: { ...NO_FILTER, externalTables: ['public._prisma_migrations'] },
    });
    return (stdout ?? '').replace(/^-- This is an empty migration\.\s*$/m, '').trim();
  });
}

async function refuseNewerDatabase(query: Query, known: MigrationList): Promise<void> {
  const names = known.migrationDirectories.map((migration) => migration.path);
  const newer = (await appliedMigrations(query)).filter((name) => !names.includes(name));
  if (newer.length > 0) {
    throw new Error(
      `the database is of a newer release: it has the migrations ${newer.join(', ')}, unknown to this one`,
    );
  }
}

function readMigrations(directory: string): MigrationList {
  const names = readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && existsSync(join(directory, entry.name, 'migration.sql')))
    .map((entry) => entry.name)
    .sort();
  if (names.length === 0) throw new Error(`no migrations in ${directory}: the installation is incomplete`);
  const lockfile = join(directory, 'migration_lock.toml');
  return {
    baseDir: directory,
    lockfile: {
      path: 'migration_lock.toml',
      content: existsSync(lockfile) ? readFileSync(lockfile, 'utf8') : null,
    },
    shadowDbInitScript: '',
    migrationDirectories: names.map((name) => ({
      path: name,
      migrationFile: {
        path: 'migration.sql',
        content: {
          tag: 'ok',
          value: readFileSync(join(directory, name, 'migration.sql'), 'utf8'),
        },
      },
    })),
  };
}

/** Gives the engine one connection, all in one transaction: committed when `use` succeeds, else undone. */
async function withEngine<T>(
  url: string,
  schema: string,
  use: (engine: SchemaEngine, query: Query) => Promise<T>,
): Promise<T> {
  const pool = new pg.Pool({
    connectionString: url,
    max: 1,
    idleTimeoutMillis: 0,
    connectionTimeoutMillis: 10_000,
    application_name: 'switchyard-migrate',
    onConnect: async (client) => {
      connections++;
      await client.query('BEGIN');
    },
  });
  let connections = 0;
  pool.on('error', () => {});
  let scriptError: unknown;
  const factory = new PrismaPg(pool);
  const adapter = bindMigrationAwareSqlAdapterFactory({
    provider: factory.provider,
    adapterName: factory.adapterName,
    connectToShadowDb: () => factory.connectToShadowDb(),
    async connect() {
      const connected = await factory.connect();
      // The adapter's own splits the script at every semicolon, also those within the bodies of functions.
      connected.executeScript = async (script) => {
        await pool.query(script).catch((error) => {
          scriptError ??= error;
          throw error;
        });
      };
      teachInternalChar(connected);
      return connected;
    },
  });
  const Engine = await loadEngine();
  const panic = new Promise<never>((_, reject) => {
    registry.PRISMA_WASM_PANIC_REGISTRY = {
      set_message: (message) => reject(new Error(message)),
    };
  });
  const query: Query = async (sql) => (await pool.query(sql)).rows;
  try {
    const engine = await Promise.race([
      Engine.new({ datamodels: [['schema.prisma', schema]] }, () => {}, adapter),
      panic,
    ]);
    const result = await Promise.race([use(engine, query), panic]);
    if (connections > 1) throw new Error('the connection to the database was lost');
    await pool.query('COMMIT');
    return result;
  } catch (error) {
    const cause = scriptError ?? error;
    throw new Error(`migrating the database failed: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    });
  } finally {
    await pool.end();
  }
}

/**
 * The engine reads Postgres's catalog, where kinds are of the internal type "char", which the adapter does not know:
 * such columns pass it as text and get their right label afterwards. Nor does the engine know the constraints of the kind
 * "not null" that PostgreSQL 18 lists: they are left out.
 */
function teachInternalChar(adapter: SqlQueryable): void {
  const OID_CHAR = 18;
  const OID_VARCHAR = 1043;
  const inner = adapter as SqlQueryable & {
    performIO(query: SqlQuery): Promise<pg.QueryArrayResult>;
  };
  const performIO = inner.performIO.bind(adapter);
  const queryRaw = adapter.queryRaw.bind(adapter);
  // The engine has one statement under way at a time.
  let charColumns: string[] = [];
  inner.performIO = async (query) => {
    const result = await performIO(query);
    const fields = result.fields.filter((field) => field.dataTypeID === OID_CHAR);
    charColumns = fields.map((field) => field.name);
    for (const field of fields) field.dataTypeID = OID_VARCHAR;
    return result;
  };
  adapter.queryRaw = async (query) => {
    const sql = query.sql.replace("contype NOT IN ('p', 'u', 'f')", "contype NOT IN ('p', 'u', 'f', 'n')");
    const result = await queryRaw({ ...query, sql });
    for (const name of charColumns)
      result.columnTypes[result.columnNames.indexOf(name)] = ColumnTypeEnum.Character;
    return result;
  };
}

/** Where the engine, by a fixed name, leaves the message of a panic before it stops for ever without settling its promise. */
const registry = globalThis as typeof globalThis & {
  PRISMA_WASM_PANIC_REGISTRY?: { set_message(message: string): void };
};

let loaded: Promise<typeof SchemaEngine> | undefined;

/** The package's own entry imports the .wasm as a module, which Node 20 cannot: its two parts are joined here. */
function loadEngine(): Promise<typeof SchemaEngine> {
  loaded ??= (async () => {
    const glue = (await import('@prisma/schema-engine-wasm/schema_engine_bg')) as unknown as Glue;
    const entry = createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm');
    const bytes = readFileSync(join(entry, '..', 'schema_engine_bg.wasm'));
    const { instance } = await WebAssembly.instantiate(bytes, {
      './schema_engine_bg.js': glue,
    });
    glue.__wbg_set_wasm(instance.exports);
    instance.exports.__wbindgen_start();
    return glue.SchemaEngine;
  })();
  return loaded;
}

interface Glue {
  __wbg_set_wasm(exports: object): void;
  SchemaEngine: typeof SchemaEngine;
}

/** As much of the global as is used: its types come only with those of browsers. */
declare const WebAssembly: {
  instantiate(
    bytes: Uint8Array,
    imports: Record<string, object>,
  ): Promise<{ instance: { exports: { __wbindgen_start(): void } } }>;
};
