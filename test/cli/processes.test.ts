import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { withDatabase } from '../support/database.js';
import { freePort } from '../support/ports.js';
import { describeWithRedis } from '../support/redis.js';
import { endAll, launch, run, type Service, service, until } from './service.js';

interface Job {
  id: string;
  state: string;
  site: { name: string } | null;
  arguments: string[];
}

/** Two api processes, two workers and an agent. `alone`: also what has nothing to do with what the queue is on. */
function separateProcesses(environment: () => Record<string, string>, alone: boolean): void {
  const home = mkdtempSync(join(tmpdir(), 'switchyard-processes-'));
  const database = withDatabase();
  const services: Service[] = [];
  afterAll(async () => {
    await endAll();
    rmSync(home, { recursive: true, force: true });
  });

  it.runIf(alone)('say what to do about a database without tables, and end', async () => {
    const empty = `empty_${process.pid}`;
    await database.pool.query(`CREATE DATABASE ${empty}`);
    const url = new URL(database.url);
    url.pathname = `/${empty}`;
    const env = { SWITCHYARD_HOME: home, DATABASE_URL: url.href, PORT: '0', ...environment() };
    try {
      for (const command of ['api', 'worker']) {
        const { code, stderr } = await run([command], env);
        expect(code).toBe(1);
        expect(stderr).toContain('run `switchyard migrate`');
      }
    } finally {
      await database.pool.query(`DROP DATABASE ${empty} WITH (FORCE)`);
    }
  });

  it('start after migrate, and run jobs', async () => {
    const env = { SWITCHYARD_HOME: home, DATABASE_URL: database.url, LOG_LEVEL: 'warn', ...environment() };
    const migrated = await run(['migrate', '--json', '--site', 'here'], env);
    const { keyFile, agentKeyFile } = JSON.parse(migrated.stdout);
    expect([keyFile, agentKeyFile].map((file) => statSync(file).mode & 0o777)).toEqual([0o600, 0o600]);
    const again = await run(['migrate', '--json', '--site', 'here'], env);
    expect(JSON.parse(again.stdout)).toEqual({ applied: [], keyFile, agentKeyFile });

    for (let i = 0; i < 2; i++) {
      const port = String(await freePort());
      const process = launch(['api'], { ...env, PORT: port });
      services.push(service(`http://127.0.0.1:${port}/graphql`, { SWITCHYARD_HOME: home }, process));
    }
    const metricsPort = String(await freePort());
    launch(['worker'], { ...env, METRICS_PORT: metricsPort });
    launch(['worker'], env);
    for (const { url } of services) {
      const ready = new URL('/readyz', url);
      await until(
        () =>
          fetch(ready).then(
            (answer) => answer.status,
            () => 0,
          ),
        (status) => status === 200,
      );
    }
    launch(['agent', '--site', 'here'], {
      SWITCHYARD_HOME: home,
      SWITCHYARD_URL: services[0]!.url,
      LOG_LEVEL: 'warn',
    });

    const [one, two] = services;
    const jobs = await one!.json<Job[]>(
      'submit',
      '--array',
      '1-20',
      '--',
      'sh',
      '-c',
      'echo $SWITCHYARD_ARRAY_INDEX',
    );
    expect((await two!.cli('watch', ...jobs.map(({ id }) => id))).code).toBe(0);
    expect((await two!.cli('job', '--stdout', jobs[6]!.id)).stdout).toBe('7\n');
    const metrics = await fetch(`http://127.0.0.1:${metricsPort}/metrics`).then((answer) => answer.text());
    expect(metrics).toContain('switchyard_cycle_seconds_bucket');
    const authorization = `Bearer ${readFileSync(keyFile, 'utf8').trim()}`;
    const read = await fetch(new URL('/metrics', one!.url), { headers: { authorization } }).then((answer) =>
      answer.text(),
    );
    expect(read).toMatch(/^switchyard_events_total [1-9]/m);
  });

  it.runIf(alone)('an agent whose key is refused ends with 4', async () => {
    const outcome = await run(['agent', '--site', 'here'], {
      SWITCHYARD_HOME: join(home, 'stranger'),
      SWITCHYARD_URL: services[0]!.url,
      SWITCHYARD_KEY: 'swy_unknown',
      LOG_LEVEL: 'silent',
    });
    expect(outcome).toMatchObject({ code: 4, stdout: '' });
    expect(outcome.stderr).toMatch(/^error: .*UNAUTHENTICATED/);
  });

  it.runIf(alone)('a replay onto a simulated site ends with every job accounted for', async () => {
    const line = (id: number): string =>
      [id, id * 20, -1, 100 + id, (id % 10) + 1, -1, -1, -1, 300, -1, 1, 1, 1, -1, 1, 1, -1, -1].join(' ');
    const trace = join(home, 'trace.swf');
    const lines = ['; MaxProcs: 8', ...Array.from({ length: 60 }, (_, i) => line(i + 1)), 'not a job'];
    writeFileSync(trace, lines.join('\n'));
    const outcome = await services[0]!.cli(
      'replay',
      trace,
      '--json',
      '--speed',
      '1000',
      '--site',
      'cluster',
      '--simulate',
    );
    expect(outcome.stderr).toContain(
      '1 malformed line skipped, the first is line 62: 3 fields; 18 are required',
    );
    expect(JSON.parse(outcome.stdout)).toMatchObject({
      submitted: 48,
      dropped: { tooWide: 12 },
      ended: { completed: 48, failed: 0, cancelled: 0, unaccounted: 0 },
    });
    expect(outcome.code).toBe(0);
    const sites = (await services[0]!.json<Job[]>('jobs', '--state', 'COMPLETED', '--first', '48')).map(
      (job) => job.site?.name,
    );
    expect(new Set(sites)).toEqual(new Set(['cluster']));
    const keys = await services[0]!.json<{ revokedAt: string | null }[]>('keys', '--user', 'agent-cluster');
    expect(keys).toEqual([expect.objectContaining({ revokedAt: expect.any(String) })]);
  });

  it('stop in order when told to', async () => {
    for (const { process } of services) expect((await process.end('SIGTERM')).code).toBe(0);
    expect(readFileSync(join(home, 'admin.key'), 'utf8')).toMatch(/^swy_/);
  });
}

describe('separate processes over PostgreSQL', () => separateProcesses(() => ({}), true));

describeWithRedis('separate processes over PostgreSQL and Redis', (redis) => {
  separateProcesses(() => ({ REDIS_URL: redis().url }), false);
});
