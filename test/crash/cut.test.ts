/**
 * One process at a time is cut off from what it talks to, or frozen, for a while: how long the others start nothing. Two APIs behind a
 * balancer, two workers, two agents of one site. `npm run test:faults` prints the table.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openDirectory } from '../../src/store/directory.js';
import { Balancer, type Cut, Way } from '../support/cut.js';
import { PATIENCE_MS, TEST_MS } from '../support/patience.js';
import { freePort } from '../support/ports.js';
import { describeWithRedis, type RedisServer } from '../support/redis.js';
import { ANSWER_MS, Installation } from './installation.js';

const FAULT_MS = 25_000;
/** Between two submissions: a gap is no shorter. */
const EVERY_MS = 250;
/** Between two faults. */
const PAUSE_MS = 5_000;
/** What no fault of one process may take, on a machine that has nothing else to do. */
const GAP_MAX_S = 15;
/** On a busy one all that others do to take over is slower: connections, cycles, statements. It may take so many times a job's usual wait. */
const STEPS = 5;

type Reached = 'PostgreSQL' | 'Redis' | 'agents';

interface World {
  service: Installation;
  balancer: Balancer;
  /** By the name of the process and what it reaches by this way. */
  ways: Map<string, Way>;
}

const APIS = ['api-1', 'api-2'];
const WORKERS = ['worker-1', 'worker-2'];

async function openWorld(redis: RedisServer): Promise<World> {
  const ways = new Map<string, Way>();
  const backends: string[] = [];
  let balancer!: Balancer;
  const service = await Installation.open(redis, {
    async launch(made) {
      for (const name of [...APIS, ...WORKERS]) {
        const toPostgres = await Way.open(made.postgres.url);
        const toRedis = await Way.open(redis.url);
        ways.set(`${name} PostgreSQL`, toPostgres).set(`${name} Redis`, toRedis);
        const settings = {
          ...made.settings,
          DATABASE_URL: toPostgres.urlFor(made.postgres.url),
          REDIS_URL: toRedis.urlFor(redis.url),
        };
        if (WORKERS.includes(name)) made.start(name, ['worker'], settings);
        else {
          const port = await freePort();
          const url = `http://127.0.0.1:${port}`;
          const toApi = await Way.open(url);
          ways.set(`${name} agents`, toApi);
          backends.push(toApi.urlFor(url));
          made.start(name, ['api'], { ...settings, PORT: String(port) });
        }
      }
      const directory = openDirectory(made.database);
      const [site] = await made.rows<{ id: number }>(`SELECT id FROM sites WHERE name = 'real'`);
      const machine = { name: 'm1', cpus: 8, memoryMb: 1_000, benchmark: 100, os: 'real' };
      await directory.registerMachines(
        [{ ...machine, siteId: site!.id, architecture: process.arch, licenseIds: [] }],
        { userId: null, requestId: null },
      );
      balancer = new Balancer(backends);
      await balancer.listen(made.port);
      made.startAgent('agent-1', 'm0');
      made.startAgent('agent-2', 'm1');
    },
  });
  return { service, balancer, ways };
}

interface Fault {
  name: string;
  process: string;
  /** What it does not reach; null: it is frozen. */
  cut: readonly Reached[] | null;
  how?: Cut;
}

const PG = 'PostgreSQL' as const;
const REDIS = 'Redis' as const;
const AGENTS = 'agents' as const;
const OF_WORKER: Reached[][] = [[PG], [REDIS], [PG, REDIS]];
const OF_API: Reached[][] = [...OF_WORKER, [AGENTS], [PG, AGENTS], [REDIS, AGENTS], [PG, REDIS, AGENTS]];
/** `how`: only one way. */
const ONE_WAY = ['to', 'from'].map((how) => ({ cut: [PG], how: how as Cut }));

const faults: Fault[] = [
  ...OF_WORKER.map((cut) => ({ process: 'worker-1', cut })),
  ...ONE_WAY.map((one) => ({ process: 'worker-1', ...one })),
  { process: 'worker-1', cut: null },
  ...OF_API.map((cut) => ({ process: 'api-1', cut })),
  ...ONE_WAY.map((one) => ({ process: 'api-1', ...one })),
  { process: 'api-1', cut: null },
  { process: 'agent-1', cut: null },
].map(({ process, cut, how }: Omit<Fault, 'name'>) => ({
  process,
  cut,
  how: how ?? 'both',
  name:
    cut === null
      ? `${process} frozen`
      : `${process} cut off from ${cut.join(' and ')}${how ? ` (nothing ${how === 'to' ? 'goes there' : 'comes back'})` : ''}`,
}));

describeWithRedis('one process cut off or frozen', (redis) => {
  const table: string[] = [];
  let world: World | undefined;
  let stream: { stop(): Promise<void> } | undefined;
  beforeAll(async () => {
    if (!process.env.FAULT_MINUTES) return;
    world = await openWorld(redis());
    stream = submitOn(world.service);
    await startsAfter(world.service, Date.now());
  }, TEST_MS);
  afterAll(async () => {
    if (!process.env.FAULT_MINUTES) return;
    console.log(
      `| one process, for ${FAULT_MS / 1000} s | longest time without a start | a job's wait just before |\n|---|---|---|\n${table.join('\n')}`,
    );
    await stream?.stop();
    await world?.balancer.close();
    await world?.service.close();
    for (const way of world?.ways.values() ?? []) way.close();
  }, TEST_MS);

  test.runIf(process.env.FAULT_MINUTES).each(faults)('$name', { timeout: 2 * TEST_MS }, async (fault) => {
    const { service } = world!;
    const before = Date.now();
    // What belongs to the fault before is over.
    await sleep(PAUSE_MS);
    const usual = await usualWait(service, before);
    const from = Date.now();
    strike(world!, fault, true);
    const seen = await sleep(FAULT_MS)
      .then(() => longestGap(service, from))
      .finally(() => strike(world!, fault, false));
    await startsAfter(service, Date.now());
    const gap = Math.max(seen, await longestGap(service, from));
    table.push(`| ${fault.name} | ${gap.toFixed(1)} s | ${usual.toFixed(1)} s |`);
    console.log(table.at(-1));
    expect(gap, service.logs).toBeLessThan(GAP_MAX_S + STEPS * usual);
  });
});

function strike({ service, ways }: World, { process, cut, how }: Fault, begins: boolean): void {
  if (cut === null)
    service.processes.find(({ name }) => name === process)?.kill(begins ? 'SIGSTOP' : 'SIGCONT');
  else for (const reached of cut) ways.get(`${process} ${reached}`)?.cut(begins ? (how ?? 'both') : null);
}

/** A job now and then, whoever answers; each is over at once. */
function submitOn(service: Installation): { stop(): Promise<void> } {
  const job = { command: 'true', os: 'real', estimateS: 1 };
  const query = 'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }';
  const asked = new Set<Promise<unknown>>();
  const timer = setInterval(() => {
    const one = service.ask(query, { input: { jobs: [job] } }, ANSWER_MS).catch(() => {});
    asked.add(one.finally(() => asked.delete(one)));
  }, EVERY_MS);
  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(asked);
    },
  };
}

const STARTS = `
  SELECT date_part('epoch', at) * 1000 AS at FROM events WHERE to_state = 'RUNNING' AND at > to_timestamp($1 / 1000.0) ORDER BY at`;

/** Seconds, from an instant until now. */
async function longestGap(service: Installation, fromMs: number): Promise<number> {
  const starts = await service.rows<{ at: number }>(STARTS, fromMs);
  const instants = [fromMs, ...starts.map(({ at }) => at), Date.now()];
  return Math.max(...instants.slice(1).map((at, i) => at - instants[i]!)) / 1000;
}

const WAIT = `
  SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY date_part('epoch', coalesce(e.at, now()) - j.submitted_at)) AS s
    FROM jobs j LEFT JOIN events e ON e.kind = 'JOB_STATE' AND e.entity_id = j.id AND e.to_state = 'RUNNING'
   WHERE j.submitted_at > to_timestamp($1 / 1000.0)`;

/** Seconds from submission to start, the median of the jobs submitted since an instant. */
async function usualWait(service: Installation, fromMs: number): Promise<number> {
  await startsAfter(service, fromMs);
  const [wait] = await service.rows<{ s: number | null }>(WAIT, fromMs);
  return wait?.s ?? 0;
}

async function startsAfter(service: Installation, fromMs: number): Promise<void> {
  for (const until = Date.now() + PATIENCE_MS; (await service.rows(STARTS, fromMs)).length === 0; ) {
    if (Date.now() > until) throw new Error(`nothing has started\n${service.logs}`);
    await sleep(200);
  }
}
