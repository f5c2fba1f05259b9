/**
 * Yesterday's database is restored while the agent lives on. What the agent still has of the days that were lost is not taken for the jobs
 * that get the same numbers now.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { expect, test } from 'vitest';
import { until } from '../engine/support.js';
import { checkPromises } from '../support/promises.js';
import { Installation, type Supervised } from './installation.js';

const LIVING = `state IN ('ASSIGNED', 'RUNNING')`;

/** Of the agent: the name of its process, and what becomes of it while the database is restored. */
const fates: [string, (agent: Supervised) => void][] = [
  ['goes on', (agent) => agent.kill('SIGCONT')],
  ['is killed and started again', (agent) => agent.kill('SIGKILL')],
];

test.each(fates)(
  'a database is restored, and the agent %s: new jobs run once, for themselves',
  async (_, wake) => {
    const folder = mkdtempSync(join(tmpdir(), 'switchyard-restored-'));
    const start = (service: Installation, url: string): void => {
      const settings = { ...service.settings, DATABASE_URL: url };
      service.start('api', ['api'], settings);
      service.start('worker', ['worker'], settings);
    };
    const service = await Installation.open(null, {
      launch(service) {
        start(service, service.postgres.url);
        service.startAgent('agent', 'm0');
      },
    });
    const agent = service.processes.at(-1) as Supervised;
    const restored = new URL(service.postgres.url);
    restored.pathname = '/restored';
    const pool = new pg.Pool({ connectionString: restored.href });
    pool.on('error', () => {});

    /** Each writes down that it begins, waits until it may go on, leaves a file of its name, and writes down that it ends. */
    const submit = async (...names: string[]): Promise<string[]> => {
      const jobs = names.map((name) => ({
        command: 'sh',
        arguments: [
          '-c',
          `echo "${name} begins" >> "$FOLDER/ledger"; until [ -e "$FOLDER/${name}" ]; do sleep 0.1; done; echo "${name}" > out; echo "${name} ends" >> "$FOLDER/ledger"`,
        ],
        environment: [{ name: 'FOLDER', value: folder }],
        outputs: name.endsWith('kept') ? [{ path: 'out' }] : [],
        os: 'real',
        estimateS: 1,
      }));
      const { submitJobs } = await service.ask<{ submitJobs: { jobIds: string[] } }>(
        'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }',
        { input: { jobs } },
      );
      return submitJobs.jobIds;
    };
    const goOn = (...names: string[]): void => {
      for (const name of names) writeFileSync(join(folder, name), '');
    };
    const ledger = (): string[] =>
      existsSync(join(folder, 'ledger'))
        ? readFileSync(join(folder, 'ledger'), 'utf8').trim().split('\n')
        : [];
    const written = (...lines: string[]) =>
      until(lines.join(', '), async () => lines.every((line) => ledger().includes(line)));
    const stop = async (): Promise<void> => {
      for (const process of service.processes.filter((one) => one !== agent)) await process.stop();
    };

    try {
      const [before] = await submit('before');
      await written('before begins');
      await stop();
      // Nobody may be connected to what is copied.
      const admin = new pg.Client({
        connectionString: Object.assign(new URL(restored), { pathname: '/postgres' }).href,
      });
      await admin.connect();
      await until('the backup is made', async () => {
        const name = new URL(service.postgres.url).pathname.slice(1);
        await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [
          name,
        ]);
        return admin.query(`CREATE DATABASE restored TEMPLATE "${name}"`).then(
          () => true,
          () => false,
        );
      });
      await admin.end();

      // The days that will be lost.
      start(service, service.postgres.url);
      await service.ready();
      const names = ['running', 'ended', 'ending, kept', 'kept'];
      const lost = await submit(...names.map((name) => `lost: ${name}`));
      await written(...names.map((name) => `lost: ${name} begins`));
      goOn('lost: kept');
      await until(
        'a file of the lost days is kept',
        async () => (await service.rows('SELECT id FROM files WHERE kept_at IS NOT NULL')).length === 1,
      );
      await stop();
      goOn('lost: ended', 'lost: ending, kept');
      await written('lost: ended ends', 'lost: ending, kept ends');

      // Another day begins: the same numbers, on the same machine, before the agent has heard of it.
      agent.kill('SIGSTOP');
      start(service, restored.href);
      await service.ready();
      const jobs = await submit(...names.map((name) => `new.: ${name}`));
      expect(jobs).toEqual(lost);
      const rows = async (where: string) =>
        (await pool.query(`SELECT id FROM jobs WHERE ${where} ORDER BY id`)).rows.map(
          ({ id }) => `job_${id}`,
        );
      await until('the new jobs are assigned', async () => (await rows(LIVING)).length === jobs.length + 1);
      wake(agent);

      await written(...names.map((name) => `new.: ${name} begins`));
      expect(await rows(LIVING)).toEqual([before, ...jobs]);
      goOn('before', ...names.map((name) => `new.: ${name}`));
      await until(
        'all have ended',
        async () => (await rows(`state = 'COMPLETED'`)).length === jobs.length + 1,
      );
      const one = (name: string): string[] => [`${name} begins`, `${name} ends`];
      expect(ledger().sort()).toEqual(
        [
          ...one('before'),
          ...names.flatMap((name) => [
            ...one(`new.: ${name}`),
            ...(name === 'running' ? [] : one(`lost: ${name}`)),
          ]),
          // It was stopped.
          'lost: running begins',
        ].sort(),
      );
      for (const [i, job] of jobs.entries()) {
        if (!names[i]?.endsWith('kept')) continue;
        const file = await fetch(new URL(`/jobs/${job}/files/out`, service.url), {
          headers: { authorization: `Bearer ${service.key}` },
        });
        expect(await file.text()).toBe(`new.: ${names[i]}\n`);
      }
      goOn('lost: running');
      expect(await checkPromises(pool)).toEqual([]);
    } catch (error) {
      throw new Error(`${ledger().join('\n')}\n${service.logs}`, { cause: error });
    } finally {
      await pool.end();
      await service.close();
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
