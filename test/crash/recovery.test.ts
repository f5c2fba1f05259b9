/**
 * How long after a fault jobs start again: one fault of each kind, while a site always has jobs that wait. `npm run test:faults` prints the
 * table; that every fault is recovered from is what is tested.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { PATIENCE_MS } from '../support/patience.js';
import { describeWithRedis, type RedisServer } from '../support/redis.js';
import { fill, makeRoom, mayMount, smallDisk } from '../support/small-disk.js';
import { Installation } from './installation.js';

const DISK_MB = 1_500;
const JOBS = 6_000;
/** Bytes that a process may log meanwhile. */
const LOG_MAX = 2_000_000;

interface Fault {
  name: string;
  /** Does harm; resolves when the parts are up again: Postgres and Redis answer, the API is ready, workers and agents have been started. */
  strike(service: Installation): Promise<void>;
  /** Ends what goes on until then. */
  mend?(service: Installation): Promise<unknown>;
}

const part = (service: Installation, name: string) => service.processes.find((one) => one.name === name)!;

async function kill(service: Installation, ...names: string[]): Promise<void> {
  const killed = names.map((name) => ({ process: part(service, name), starts: part(service, name).starts }));
  for (const { process } of killed) process.kill();
  for (const { process, starts } of killed) while (process.starts === starts) await sleep(20);
  if (names.includes('api')) await service.ready();
}

async function killPostgres(service: Installation): Promise<void> {
  const { pid } = service.postgres;
  process.kill(pid, 'SIGKILL');
  while (service.postgres.pid === pid) await sleep(20);
  await service.rows('SELECT');
}

async function killRedis({ redis }: Installation): Promise<void> {
  await redis?.kill();
  await redis?.restart();
}

/** Tells Redis a setting, which is in force for everybody from now on. */
async function tellRedis(service: Installation, name: string, value: string): Promise<void> {
  const client = new Redis(service.redis!.url);
  await client.config('SET', name, value);
  await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  client.disconnect();
}

async function replicaOf(service: Installation, host: string, port: string): Promise<void> {
  const client = new Redis(service.redis!.url);
  await client.replicaof(host, port);
  client.disconnect();
}

/** As long as it lasts nobody can be woken. */
const redisFaults: Fault[] = [
  {
    name: 'a full Redis',
    strike: (service) => tellRedis(service, 'maxmemory', '1'),
    mend: (service) => tellRedis(service, 'maxmemory', '0'),
  },
  {
    name: 'a Redis that reads only',
    strike: (service) => replicaOf(service, '127.0.0.1', '1'),
    mend: (service) => replicaOf(service, 'NO', 'ONE'),
  },
  {
    name: 'SIGSTOP of Redis',
    strike: async ({ redis }) => void process.kill(redis!.pid, 'SIGSTOP'),
    mend: async ({ redis }) => process.kill(redis!.pid, 'SIGCONT'),
  },
];

const WORKERS = ['worker-1', 'worker-2'];
const faults = (disk: string | null): Fault[] => [
  { name: 'kill -9 of the api', strike: (service) => kill(service, 'api') },
  { name: 'kill -9 of a worker', strike: (service) => kill(service, 'worker-1') },
  { name: 'kill -9 of all workers', strike: (service) => kill(service, ...WORKERS) },
  { name: 'kill -9 of Postgres', strike: killPostgres },
  { name: 'kill -9 of Redis', strike: killRedis },
  ...redisFaults,
  { name: 'kill -9 of the agent', strike: (service) => kill(service, 'agent-real') },
  {
    name: 'kill -9 of everything',
    strike: async (service) => {
      const others = kill(service, 'api', 'agent-real', 'agent-simulated', ...WORKERS);
      await Promise.all([killPostgres(service), killRedis(service), others]);
    },
  },
  // From the stop on: the other worker is up all the time.
  { name: 'SIGSTOP of a worker', strike: async (service) => part(service, 'worker-2').kill('SIGSTOP') },
  {
    name: 'SIGSTOP of the api for 10 s',
    strike: async (service) => {
      part(service, 'worker-2').kill('SIGCONT');
      part(service, 'api').kill('SIGSTOP');
      await sleep(10_000);
      part(service, 'api').kill('SIGCONT');
    },
  },
  {
    name: 'a session that takes the event lock and stops',
    strike: async (service) => {
      const client = await service.database.pool.connect();
      const ended = new Promise((resolve) => client.once('error', resolve));
      await client.query('BEGIN');
      await client.query('SELECT triggers.lock_events()');
      await ended;
      client.release(true);
    },
  },
  ...(disk === null
    ? []
    : [
        {
          name: 'a full disk for 5 s',
          strike: async (service: Installation) => {
            fill(disk);
            await sleep(5_000);
            makeRoom(disk);
            await service.rows('SELECT');
          },
        },
      ]),
];

const suite = (redis: () => RedisServer) =>
  test.runIf(process.env.FAULT_MINUTES)(
    'jobs start again after each kind of fault',
    { timeout: 15 * PATIENCE_MS },
    async () => {
      const disk = mayMount ? smallDisk(DISK_MB) : null;
      const service = await Installation.open(redis(), disk === null ? {} : { dir: join(disk, 'service') });
      const table: string[] = [];
      try {
        await submit(service);
        await started(service, Date.now());
        for (const { name, strike, mend } of faults(disk)) {
          const struck = Date.now();
          await strike(service);
          const up = Date.now();
          const at = await started(service, up);
          await mend?.(service);
          table.push(`| ${name} | ${seconds(up - struck)} | ${seconds(at - up)} |`);
          // What belongs to the fault is over before the next.
          await sleep(6_000);
        }
      } catch (error) {
        throw new Error(`${table.join('\n')}\n${service.logs}`, { cause: error });
      } finally {
        console.log(
          `| fault | parts up after | first command after that |\n|---|---|---|\n${table.join('\n')}`,
        );
        part(service, 'worker-2').kill('SIGCONT');
        await service.close();
      }
      expect(table).toHaveLength(faults(disk).length);
      for (const { name, logged } of service.processes) expect(logged, name).toBeLessThan(LOG_MAX);
    },
  );
describeWithRedis('recovery', suite);

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;

/** When the first command ran at the site after an instant, ms since 1970. */
async function started(service: Installation, afterMs: number): Promise<number> {
  const until = Date.now() + PATIENCE_MS;
  for (;;) {
    const [first] = await service.rows<{ at: number | null }>(
      `SELECT date_part('epoch', min(at)) AS at FROM events WHERE to_state = 'RUNNING' AND at > to_timestamp($1)
          AND site_id = (SELECT id FROM sites WHERE name = 'real')`,
      afterMs / 1000,
    );
    if (first?.at) return first.at * 1000;
    if (Date.now() > until) throw new Error(`nothing has started within ${seconds(PATIENCE_MS)}`);
    await sleep(100);
  }
}

/** More jobs than the site can run meanwhile, a second each. */
async function submit(service: Installation): Promise<void> {
  const jobs = Array.from({ length: JOBS }, () => ({
    command: 'sleep',
    arguments: ['1'],
    os: 'real',
    estimateS: 1,
  }));
  await service.ask('mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }', {
    input: { jobs },
  });
}
