import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { TestProject } from 'vitest/node';
import { startEmbeddedPostgres } from '../../src/store/embedded.js';
import { migrate } from '../../src/store/migrate.js';

declare module 'vitest' {
  interface ProvidedContext {
    /** The run's server, or why there is none: only suites that ask for a database fail then. */
    postgres: { adminUrl: string; template: string } | { failed: string };
  }
}

const PREFIX = 'switchyard-test-';
const TEMPLATE = 'template_migrated';

/** One PostgreSQL for the whole run, with a migrated template from which each test file gets its own database. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await removeLeftovers();
  const home = mkdtempSync(join(tmpdir(), PREFIX));
  try {
    const server = await startEmbeddedPostgres({
      home,
      // Nothing here must outlive a power cut. A killed process still loses nothing.
      settings: {
        fsync: 'off',
        full_page_writes: 'off',
        max_connections: '300',
        shared_buffers: '128MB',
      },
    });
    const admin = new pg.Client({ connectionString: server.url });
    await admin.connect();
    await admin.query(`CREATE DATABASE ${TEMPLATE}`);
    await migrate(server.urlOf(TEMPLATE));
    await admin.query(`ALTER DATABASE ${TEMPLATE} ALLOW_CONNECTIONS false`);
    await admin.end();
    project.provide('postgres', { adminUrl: server.url, template: TEMPLATE });
    return async () => {
      await server.stop();
      rmSync(home, { recursive: true, force: true });
    };
  } catch (error) {
    project.provide('postgres', { failed: String(error) });
    return async () => {
      rmSync(home, { recursive: true, force: true });
    };
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
