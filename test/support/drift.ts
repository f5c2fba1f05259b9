/**
 * What separates a database from prisma/schema.prisma, asked of Prisma's schema engine: as WebAssembly over the driver of the client,
 * because the engine that Prisma's CLI uses is a binary that it downloads.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { PrismaPg } from '@prisma/adapter-pg';
import {
  bindMigrationAwareSqlAdapterFactory,
  ColumnTypeEnum,
  type SqlQuery,
  type SqlQueryable,
} from '@prisma/driver-adapter-utils';
import type { SchemaEngine } from '@prisma/schema-engine-wasm';
import pg from 'pg';
import { packagePath } from '../../src/platform/paths.js';

/**
 * As SQL that would remove the difference; empty when they agree. Partial indexes, checks, functions and triggers are invisible to it.
 */
export async function schemaDrift(url: string): Promise<string> {
  const path = packagePath('prisma', 'schema.prisma');
  const schema = { path, content: readFileSync(path, 'utf8') };
  const pool = new pg.Pool({ connectionString: url, max: 1 });
  const factory = new PrismaPg(pool);
  const adapter = bindMigrationAwareSqlAdapterFactory({
    provider: factory.provider,
    adapterName: factory.adapterName,
    connectToShadowDb: () => factory.connectToShadowDb(),
    async connect() {
      const connected = await factory.connect();
      teachInternalChar(connected);
      return connected;
    },
  });
  const Engine = await loadEngine();
  const panic = new Promise<never>((_, reject) => {
    registry.PRISMA_WASM_PANIC_REGISTRY = { set_message: (message) => reject(new Error(message)) };
  });
  try {
    const compare = async () => {
      const engine = await Engine.new({ datamodels: [['schema.prisma', schema.content]] }, () => {}, adapter);
      return engine.diff({
        from: { tag: 'schemaDatasource', files: [schema], configDir: packagePath('prisma') },
        to: { tag: 'schemaDatamodel', files: [schema] },
        script: true,
        exitCode: null,
        filters: { externalTables: ['public._prisma_migrations'], externalEnums: [] },
      });
    };
    const { stdout } = await Promise.race([compare(), panic]);
    return (stdout ?? '').replace(/^-- This is an empty migration\.\s*$/m, '').trim();
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

/** Once: its two parts know one another for good. The package's own entry imports the .wasm as a module, which Node 20 cannot. */
function loadEngine(): Promise<typeof SchemaEngine> {
  loaded ??= (async () => {
    // A module without types of its own.
    const glue = (await import('@prisma/schema-engine-wasm/schema_engine_bg')) as unknown as Glue;
    const entry = createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm');
    const bytes = readFileSync(join(entry, '..', 'schema_engine_bg.wasm'));
    const { instance } = await WebAssembly.instantiate(bytes, { './schema_engine_bg.js': glue });
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
