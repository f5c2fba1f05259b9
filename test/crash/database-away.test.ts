/** Processes whose database is away when they start, cut off later, or only slow: they wait, say so, and tell whether they can work. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { openDirectory } from '../../src/store/directory.js';
import { endAll, launch, until } from '../cli/service.js';
import { openTestDatabase } from '../store/world.js';
import { Way } from '../support/cut.js';
import { withDatabase } from '../support/database.js';
import { freePort } from '../support/ports.js';

const database = withDatabase();
const home = mkdtempSync(join(tmpdir(), 'switchyard-away-'));
let way: Way | null = null;
afterAll(async () => {
  way?.cut(null);
  await endAll();
  way?.close();
  rmSync(home, { recursive: true, force: true });
});

const asked = (url: string): Promise<string> =>
  fetch(url).then(
    async (answer) => `${answer.status} ${await answer.text()}`,
    () => 'nothing',
  );

it.runIf(process.env.FAULT_MINUTES)(
  'they wait for it, and are ready as long as it answers',
  async () => {
    const made = openTestDatabase(database.url);
    await openDirectory(made).bootstrap();
    await made.close();
    const [port, apiPort, metricsPort] = [await freePort(), await freePort(), await freePort()];
    const url = new URL(database.url);
    url.port = String(port);
    const env = { SWITCHYARD_HOME: home, DATABASE_URL: url.href, LOG_LEVEL: 'warn' };
    const worker = launch(['worker'], { ...env, METRICS_PORT: String(metricsPort) });
    const api = launch(['api'], { ...env, PORT: String(apiPort) });
    const readyz = `http://127.0.0.1:${metricsPort}/readyz`;
    const apiReadyz = `http://127.0.0.1:${apiPort}/readyz`;

    await until(
      () => asked(readyz),
      (answer) => /^503 the database cannot be reached: /.test(answer),
    );
    for (const process of [worker, api])
      await until(
        async () => process.output.stderr,
        (text) => text.includes('waits for the database'),
      );
    expect(await asked(`http://127.0.0.1:${metricsPort}/healthz`)).toBe('200 alive\n');

    way = await Way.open(database.url, port);
    for (const one of [readyz, apiReadyz])
      await until(
        () => asked(one),
        (answer) => answer === '200 ready\n',
      );

    // Whoever looked at a table would now wait.
    const holder = await database.pool.connect();
    await holder.query('BEGIN; LOCK TABLE policies, users, _prisma_migrations');
    for (let i = 0; i < 20; i++) expect(await asked(apiReadyz)).toBe('200 ready\n');
    await holder.query('ROLLBACK');
    holder.release();

    way.cut('from');
    for (const [one, answer] of [
      [readyz, '503 the database cannot be reached: no response within 3 s\n'],
      [apiReadyz, '503 not ready\n'],
    ] as const)
      await until(
        () => asked(one),
        (told) => told === answer,
      );
    way.cut(null);
    for (const one of [readyz, apiReadyz])
      await until(
        () => asked(one),
        (answer) => answer === '200 ready\n',
      );
    expect(worker.output.stderr).toContain(
      'the database cannot be reached: requests are rejected and no cycles',
    );
    expect(worker.output.stderr).toContain('the database is reachable again');
  },
  300_000,
);
