import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/store/embedded.js';
import { migrate } from '../../src/store/migrate.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** Asked with GET it answers with the run's `TestServer` as JSON, starting it when it is the first to ask. */
    postgresDesk: string;
  }
}

/** The run's PostgreSQL, and the migrated database in it that others are copied from. */
export interface TestServer {
  adminUrl: string;
  template: string;
}

const PREFIX = 'switchyard-test-';
const TEMPLATE = 'template_migrated';

/**
 * One PostgreSQL for the whole run, started when the first test file wants a database: most runs while working on
 * something else need none.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  let home = '';
  let started: Promise<EmbeddedPostgres> | undefined;
  const desk = createServer(async (_, response) => {
    // Files that share a process ask minutes apart: a connection that was kept would be closed just as the next one asks.
    response.setHeader('connection', 'close');
    try {
      started ??= start((made) => {
        home = made;
      });
      const answer: TestServer = { adminUrl: (await started).url, template: TEMPLATE };
      response.end(JSON.stringify(answer));
    } catch (error) {
      response.statusCode = 500;
      response.end(String(error));
    }
  }).listen(0, '127.0.0.1');
  await once(desk, 'listening');
  project.provide('postgresDesk', `http://127.0.0.1:${(desk.address() as AddressInfo).port}/`);

  return async () => {
    desk.closeAllConnections();
    desk.close();
    await (await started?.catch(() => undefined))?.stop();
    if (home) rmSync(home, { recursive: true, force: true });
  };
}

async function start(made: (home: string) => void): Promise<EmbeddedPostgres> {
  await removeLeftovers();
  const home = mkdtempSync(join(tmpdir(), PREFIX));
  made(home);
  const server = await startEmbeddedPostgres({
    home,
    // Nothing here must outlive a power cut. A killed process still loses nothing.
    settings: { fsync: 'off', full_page_writes: 'off', max_connections: '300', shared_buffers: '128MB' },
  });
  try {
    const admin = new pg.Client({ connectionString: server.url });
    await admin.connect();
    try {
      await admin.query(`CREATE DATABASE ${TEMPLATE}`);
      await migrate(server.urlOf(TEMPLATE));
      await admin.query(`ALTER DATABASE ${TEMPLATE} ALLOW_CONNECTIONS false`);
    } finally {
      await admin.end();
    }
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** Servers of runs that were killed: nobody else would ever stop them. */
async function removeLeftovers(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    if (!name.startsWith(PREFIX)) continue;
    const home = join(tmpdir(), name);
    // Without a lock it is another run's, just being made.
    if (!existsSync(join(home, 'switchyard.lock'))) continue;
    try {
      await (await startEmbeddedPostgres({ home })).stop();
      rmSync(home, { recursive: true, force: true });
    } catch {
      // In use by another run, or not ours to touch.
    }
  }
}
