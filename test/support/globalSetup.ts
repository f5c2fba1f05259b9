import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdtempSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
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

const TEMPLATE = 'template_migrated';

/**
 * What all files of a run share: the seed of its random cases, a folder for all temporary files, which is removed together with the processes
 * that work there however the run ends, and one PostgreSQL, started when the first file wants a database: most runs while working on something
 * else need none.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  process.env.TEST_SEED ??= String(randomInt(1_000_000));
  console.log(`random cases: TEST_SEED=${process.env.TEST_SEED}`);
  // Short: the path of a socket has at most 107 bytes.
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-'));
  // Servers and jobs of other accounts pass through it.
  chmodSync(folder, 0o755);
  removeWhatIsLeft(folder);
  process.env.TMPDIR = folder;

  let started: Promise<EmbeddedPostgres> | undefined;
  const desk = createServer(async (_, response) => {
    // Files that share a process ask minutes apart: a connection that was kept would be closed just as the next one asks.
    response.setHeader('connection', 'close');
    try {
      started ??= start(join(folder, 'postgres'));
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
  };
}

/** When this process ends, in whatever way: the system closes the pipe. */
function removeWhatIsLeft(folder: string): void {
  const script = fileURLToPath(new URL('leftovers.mjs', import.meta.url));
  const child = spawn(process.execPath, [script, folder], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  child.unref();
  (child.stdin as Socket).unref();
}

async function start(home: string): Promise<EmbeddedPostgres> {
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
