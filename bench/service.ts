/**
 * The product as a user starts it, loaded over its own GraphQL API: whole lives of jobs with simulated machines and with
 * real processes, a large submission, a long list. Everything is durable and shares the machine with its load.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { createLogger } from '../src/platform/log.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../src/store/embedded.js';
import { measuredAs } from '../test/support/measured-as.js';
import { type Bench, type Measured, seconds, sideBySide, sized } from './measure.js';
import { overload } from './overload.js';
import { poster } from './poster.js';
import { Profiling, profiledArgs, profiledSettings } from './profiling.js';
import { bareConnections, RawPostgres } from './rawPostgres.js';
import { bareSockets, subscribers } from './subscribers.js';

const REGISTERED_AT_ONCE = 1_000;
const LIVES = sized(20_000, 100);
const BATCH = sized(500, 50);
const WARM_UP = 8 * BATCH;
const PROCESSES = sized(4_000, 20);
const PROCESS_BATCH = sized(250, 10);
const SUBMITTED = sized(10_000, 100);
const CLIENTS = 64;
const SINGLE_MS = sized(5_000, 300);
const LISTED = sized(5_000, 50);
const AUDIENCE = sized(1_000, 5);
/** As `npm start` and the image start it. */
const AS_STARTED = ['--max-semi-space-size=32'];
const MAIN = fileURLToPath(new URL('../src/cli/main.js', import.meta.url));

export const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });

/** `switchyard serve` on a PostgreSQL of its own, and agents. */
export class Service {
  private readonly children: ChildProcess[] = [];
  private constructor(
    private readonly home: string,
    readonly postgres: EmbeddedPostgres,
    readonly url: string,
    private readonly env: NodeJS.ProcessEnv,
  ) {}

  static async start(): Promise<Service> {
    const home = mkdtempSync(join(tmpdir(), 'switchyard-bench-'));
    const postgres = await startEmbeddedPostgres({
      home,
      log: createLogger({ level: 'warn', process: 'bench' }),
      settings: profiledSettings(),
    });
    const port = await freePort();
    const env = {
      ...process.env,
      SWITCHYARD_HOME: join(home, 'serve'),
      DATABASE_URL: postgres.url,
      PORT: String(port),
      LOG_LEVEL: 'warn',
      LIMIT_REQUESTS_PER_SECOND: '100000',
      LIMIT_COST_PER_MINUTE: '1000000000',
    };
    const service = new Service(home, postgres, `http://127.0.0.1:${port}/graphql`, env);
    service.run(['serve'], env);
    for (let tries = 0; ; tries++) {
      const ready = await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => null);
      if (ready?.ok) return service;
      if (tries > 600) throw new Error('the service was not ready within a minute');
      await sleep(100);
    }
  }

  /** What the service's own process has resident, MiB. */
  get residentMib(): number {
    const { stdout } = spawnSync('ps', ['-o', 'rss=', '-p', String(this.children[0]?.pid)], {
      encoding: 'utf8',
    });
    return Number(stdout) / 1024;
  }

  /** Profiles so many lives (`--profile`); the answer writes the page when the processes have ended. Null: nobody asked. */
  async profile(lives: number, run: () => Promise<unknown>): Promise<(() => void) | null> {
    const ours = this.children.map(({ pid, spawnargs }) => ({
      name: spawnargs[spawnargs.indexOf(MAIN) + 1] ?? '',
      pid: pid ?? 0,
    }));
    const postgres = { name: 'postgres', pid: this.postgres.pid };
    const profiling = await Profiling.begin(this.postgres.url, [...ours, postgres]);
    if (profiling === null) return null;
    await run();
    return profiling.end(lives);
  }

  private run(args: string[], env: NodeJS.ProcessEnv): void {
    this.children.push(
      spawn(process.execPath, [...AS_STARTED, ...profiledArgs(`${args[0]}`), MAIN, ...args], {
        env,
        stdio: ['ignore', 'ignore', 'inherit'],
      }),
    );
  }

  get authorization(): string {
    return `Bearer ${readFileSync(join(this.home, 'serve', 'admin.key'), 'utf8').trim()}`;
  }

  async query<T>(query: string, variables: object = {}): Promise<T> {
    const response = await fetch(this.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: this.authorization,
      },
      body: JSON.stringify({ query, variables }),
    });
    const { data, errors } = (await response.json()) as {
      data: T;
      errors?: { message: string }[];
    };
    if (errors) throw new Error(errors.map((error) => error.message).join('; '));
    return data;
  }

  /** A site with machines enough not to be what limits; answers a key for its agents. */
  async registerSite(name: string, machines: number, cpus: number): Promise<string> {
    const { createSite } = await this.query<{ createSite: { site: { id: string } } }>(
      'mutation ($name: String!) { createSite(input: { name: $name }) { site { id } } }',
      { name },
    );
    const siteId = createSite.site.id;
    for (let from = 0; from < machines; from += REGISTERED_AT_ONCE) {
      await this.query(
        'mutation ($machines: [CreateMachineInput!]!) { createMachines(input: { machines: $machines }) { machines { id } } }',
        {
          machines: Array.from({ length: Math.min(REGISTERED_AT_ONCE, machines - from) }, (_, index) => ({
            siteId,
            name: `m${from + index}`,
            cpus,
            memoryMb: 1_000,
            os: name,
          })),
        },
      );
    }
    const { createUser } = await this.query<{ createUser: { user: { id: string } } }>(
      'mutation ($name: String!) { createUser(input: { name: $name, role: AGENT }) { user { id } } }',
      { name: `agent-${name}` },
    );
    const { createApiKey } = await this.query<{
      createApiKey: { secret: string };
    }>('mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret } }', {
      input: { userId: createUser.user.id, siteId, name: 'bench' },
    });
    return createApiKey.secret;
  }

  /** The same, with an agent. */
  async addSite(name: string, machines: number, cpus: number, agentArgs: string[]): Promise<void> {
    const key = await this.registerSite(name, machines, cpus);
    this.run(['agent', '--site', name, ...agentArgs], {
      ...this.env,
      // What isolation costs is measured apart (isolation.ts).
      SWITCHYARD_ISOLATION: 'none',
      AGENT_CGROUPS: 'false',
      // With real processes: as many at a time as the machine is said to have CPUs, whatever the host has.
      AGENT_MACHINES: Array.from({ length: machines }, (_, index) => `m${index}`).join(','),
      NODE_OPTIONS: `--import=${measuredAs(name, cpus * machines)}`,
      SWITCHYARD_URL: this.url,
      SWITCHYARD_KEY: key,
      SWITCHYARD_HOME: join(this.home, name),
    });
    for (;;) {
      const { sites } = await this.query<{
        sites: { nodes: { name: string; agentSeenAt: string | null }[] };
      }>('{ sites(first: 100) { nodes { name agentSeenAt } } }');
      if (sites.nodes.some((site) => site.name === name && site.agentSeenAt)) return;
      await sleep(50);
    }
  }

  async submit(count: number, job: object): Promise<void> {
    await this.query(
      'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds errors { message } } }',
      {
        // Some jobs are to wait: nothing that is registered can run them.
        input: { jobs: Array.from({ length: count }, () => job), allowUnfit: true },
      },
    );
  }

  async live(): Promise<number> {
    const { jobCount } = await this.query<{ jobCount: number }>(
      '{ jobCount(filter: { states: [QUEUED, DISPATCHED, ASSIGNED, RUNNING, CANCELLING] }) }',
    );
    return jobCount;
  }

  /** Submits `count` jobs in requests of `batch`, never more than `window` not ended, until all have ended. Jobs per second. */
  async lives(count: number, batch: number, window: number, job: object): Promise<number> {
    const elapsed = await seconds(async () => {
      let submitted = 0;
      for (let live = 0; submitted < count || live > 0; live = await this.live()) {
        for (; submitted < count && live + batch <= window; submitted += batch, live += batch)
          await this.submit(batch, job);
        await sleep(20);
      }
    });
    return count / elapsed;
  }

  async stop(): Promise<void> {
    for (const child of this.children.reverse()) {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await Promise.race([ended, sleep(15_000).then(() => child.kill('SIGKILL'))]);
    }
    await this.postgres.stop();
    rmSync(this.home, { recursive: true, force: true });
  }
}

/** Bare fork, exec and wait: a shell that runs `true` again and again. Processes per second. */
async function forkAndExec(count: number): Promise<number> {
  const program = spawnSync('sh', ['-c', 'command -v /bin/true || command -v /usr/bin/true'], {
    encoding: 'utf8',
  }).stdout.trim();
  const loop = `i=0; while [ $i -lt ${count} ]; do ${program}; i=$((i+1)); done`;
  return count / (await seconds(() => spawnSync('sh', ['-c', loop])));
}

/** How often in a second so many clients have something done, each one thing after another. */
async function perSecond(once: () => Promise<unknown>): Promise<number> {
  const until = performance.now() + SINGLE_MS;
  let done = 0;
  const elapsed = await seconds(() =>
    Promise.all(
      Array.from({ length: CLIENTS }, async () => {
        for (; performance.now() < until; done++) await once();
      }),
    ),
  );
  return done / elapsed;
}

const NAMES = [
  'lives',
  'process-lives',
  'submit-10000',
  'submit-single',
  'list-5000',
  'subscribers-1000',
  'overload',
] as const;

export const serviceBench: Bench = {
  names: NAMES,
  async run(only) {
    const results: Measured[] = [];
    const service = await Service.start();
    const raw = await RawPostgres.open(service.postgres.url);
    let written: (() => void) | null = null;
    try {
      if (only('lives')) {
        await service.addSite('simulated', 50, 64, ['--simulate', '--speed', '1000000']);
        const job = {
          command: 'simulated',
          os: 'simulated',
          estimateS: 60,
        };
        await service.lives(WARM_UP, BATCH, WARM_UP, job);
        const lives = () => service.lives(LIVES, BATCH, 6_000, job);
        written = await service.profile(LIVES, lives);
        results.push(
          await sideBySide(
            {
              name: 'lives',
              unit: 'jobs/s',
              aim: { ratio: 0.5 },
              what: 'lives of jobs, submitted to ended, simulated machines; against raw Postgres statements of the same rows',
            },
            3,
            lives,
            async () =>
              LIVES /
              (await seconds(async () => {
                for (let done = 0; done < LIVES; done += BATCH) await raw.lives(BATCH);
              })),
          ),
        );
      }
      if (only('process-lives')) {
        await service.addSite('processes', 1, 256, []);
        const job = { command: 'true', os: 'processes', estimateS: 1 };
        await service.lives(2 * PROCESS_BATCH, PROCESS_BATCH, 2 * PROCESS_BATCH, job);
        const lives = () => service.lives(PROCESSES, PROCESS_BATCH, 2_000, job);
        written ??= await service.profile(PROCESSES, lives);
        results.push(
          await sideBySide(
            {
              name: 'process-lives',
              unit: 'jobs/s',
              aim: { ratio: 0.5 },
              what: 'the same with a real process for each job (`true`); against bare fork and exec',
            },
            3,
            lives,
            () => forkAndExec(PROCESSES),
          ),
        );
      }
      if (only('submit-10000')) {
        const job = { command: 'true', os: 'nowhere', estimateS: 60 };
        results.push(
          await sideBySide(
            {
              name: 'submit-10000',
              unit: 's',
              aim: { ratio: 2 },
              what: '10 000 jobs in one `submitJobs`; against raw Postgres statements of the same rows',
            },
            5,
            async () => {
              const elapsed = await seconds(() => service.submit(SUBMITTED, job));
              await service.query(
                'mutation { cancelJobs(input: { selection: { filter: { states: [QUEUED] } } }) { jobIds } }',
              );
              return elapsed;
            },
            () => seconds(() => raw.submit(SUBMITTED)),
          ),
        );
      }
      if (only('submit-single')) {
        const post = poster<{ errors?: { message: string }[] }>(service);
        const body = JSON.stringify({
          query:
            'mutation { submitJobs(input: { allowUnfit: true, jobs: [{ command: "true", os: "nowhere", held: true }] }) { jobIds errors { message } } }',
        });
        const bare = await bareConnections(service.postgres.url, CLIENTS);
        const submit = () =>
          perSecond(async () => {
            const { errors } = await post(body);
            if (errors) throw new Error(errors[0]?.message);
          });
        await submit();
        results.push(
          await sideBySide(
            {
              name: 'submit-single',
              unit: 'jobs/s',
              aim: { ratio: 0.5 },
              what: `${CLIENTS} clients submit one job after another over GraphQL, each acknowledged when it is durable; against bare inserts of the same rows by as many connections, as durable`,
            },
            3,
            submit,
            () => perSecond(bare.insert),
          ),
        );
        await bare.close();
      }
      if (only('list-5000')) {
        await service.submit(LISTED, {
          command: 'true',
          os: 'nowhere',
          held: true,
        });
        const list =
          'query { jobs(first: 5000) { nodes { id state name application command submittedAt site { id name } user { id name } } } }';
        results.push(
          await sideBySide(
            {
              name: 'list-5000',
              unit: 's',
              aim: null,
              what: 'a page of 5 000 jobs over GraphQL with site and user; against one raw SELECT of the rows',
            },
            9,
            () => seconds(() => service.query(list)),
            () => seconds(() => raw.list(LISTED)),
          ),
        );
      }
      if (only('subscribers-1000')) {
        const audience = await subscribers(AUDIENCE, service.url, service.authorization);
        const bare = await bareSockets(AUDIENCE);
        results.push(
          await sideBySide(
            {
              name: 'subscribers-1000',
              unit: 's',
              aim: { ratio: 2 },
              what: 'an event reaches 1 000 subscribers, 99th percentile, from the event to the client; against a bare WebSocket server sending to as many',
            },
            3,
            () => audience.p99(20, () => service.submit(1, { command: 'true', held: true })),
            () => bare.audience.p99(20, bare.make),
          ),
        );
        audience.close();
        bare.audience.close();
        await bare.close();
      }
      if (only('overload')) results.push(await overload(service));
      return results;
    } finally {
      await raw.close();
      await service.stop();
      written?.();
    }
  },
};
