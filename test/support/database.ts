import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { afterAll, beforeAll, inject } from 'vitest';
import type { TestServer } from './globalSetup.js';

export interface TestDatabase {
  /** Connection string of a migrated, empty database of this test file's own. Valid in hooks and tests, not while collecting. */
  readonly url: string;
  /** For looking behind the scenes. */
  readonly pool: pg.Pool;
  /** One more migrated, empty database; dropped with the first. */
  another(): Promise<{ url: string }>;
}

/** Gives the surrounding `describe` (or file) a migrated database, dropped afterwards. Call it while collecting. */
export function withDatabase(): TestDatabase {
  const names: string[] = [];
  let server: TestServer | undefined;
  let url = '';
  let pool: pg.Pool | undefined;

  async function create(): Promise<string> {
    server ??= await askForServer();
    const name = `test_${randomBytes(8).toString('hex')}`;
    await asAdmin(server.adminUrl, `CREATE DATABASE ${name} TEMPLATE ${server.template} STRATEGY FILE_COPY`);
    names.push(name);
    const made = new URL(server.adminUrl);
    made.pathname = `/${name}`;
    return made.href;
  }

  beforeAll(async () => {
    url = await create();
    pool = new pg.Pool({ connectionString: url, max: 4 });
    pool.on('error', () => {});
    // One that is being closed has left the pool, and the database may be dropped before the server has read of it.
    pool.on('connect', (client) => client.on('error', () => {}));
  });
  afterAll(async () => {
    await pool?.end();
    if (!server) return;
    for (const name of names) await asAdmin(server.adminUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  });

  return {
    get url() {
      if (!url) throw new Error('the database exists only in hooks and tests');
      return url;
    },
    get pool() {
      if (!pool) throw new Error('the database exists only in hooks and tests');
      return pool;
    },
    another: async () => ({ url: await create() }),
  };
}

async function askForServer(): Promise<TestServer> {
  const response = await fetch(inject('postgresDesk'));
  if (!response.ok) throw new Error(`there is no test database: ${await response.text()}`);
  return (await response.json()) as TestServer;
}

async function asAdmin(adminUrl: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: adminUrl });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}
