/**
 * The service as it runs in earnest: a Postgres, perhaps a Redis, api, workers and agents as processes of their own, each
 * of which may be killed at any moment and is started again, as a container's supervisor would.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DEFAULT_POLICY } from '../../src/core/index.js';
import { packagePath } from '../../src/platform/paths.js';
import { type Change, type Directory, openDirectory } from '../../src/store/directory.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../src/store/embedded.js';
import { migrate } from '../../src/store/migrate.js';
import { type Database, openDatabase } from '../../src/store/pool.js';
import { until } from '../engine/support.js';
import { measuredAs } from '../support/measured-as.js';
import { PATIENCE_MS } from '../support/patience.js';
import { freePort } from '../support/ports.js';
import type { RedisServer } from '../support/redis.js';

const PROGRAM = packagePath('bin', 'switchyard.js');
const SERVICE = { userId: null, requestId: null };
/** Of one process's log, for the message of a failure. */
const LOG_KEPT = 4_000;
/** What is not answered for so long is asked again. */
export const ANSWER_MS = 10_000;

/** A process that is started again whenever it ends, until stopped. */
export class Supervised {
  starts = 0;
  log = '';
  /** Of its log in all, bytes. */
  logged = 0;
  private child: ChildProcess | null = null;
  private stopping = false;
  private readonly running: Promise<void>;

  constructor(
    readonly name: string,
    private readonly args: readonly string[],
    private readonly env: Record<string, string>,
  ) {
    this.running = this.run();
  }

  kill(signal: NodeJS.Signals = 'SIGKILL'): void {
    this.child?.kill(signal);
  }

  /** An orderly end. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.child?.kill('SIGTERM');
    await this.running;
  }

  private async run(): Promise<void> {
    while (!this.stopping) {
      this.starts++;
      // Jobs write into the files of the test.
      const base = {
        PATH: process.env.PATH ?? '',
        HOME: process.env.HOME ?? '',
        SWITCHYARD_ISOLATION: 'none',
      };
      const env = { ...base, ...this.env };
      const child = spawn(process.execPath, [PROGRAM, ...this.args], { env, stdio: 'pipe' });
      this.child = child;
      for (const stream of [child.stdout, child.stderr]) {
        stream?.setEncoding('utf8').on('data', (text: string) => {
          this.logged += text.length;
          this.log = (this.log + text).slice(-LOG_KEPT);
        });
      }
      await new Promise((resolve) => child.once('close', resolve));
      if (!this.stopping) await sleep(200);
    }
  }
}

export interface InstallationOptions {
  /** All that is written. */
  dir?: string;
  /** The database. */
  home?: string;
  /** Starts the processes. */
  launch?: (installation: Installation) => void | Promise<void>;
}

export class Installation {
  readonly ledger: string;
  readonly processes: Supervised[] = [];
  keys = { admin: '', real: '', simulated: '' };

  private constructor(
    private readonly dir: string,
    readonly postgres: EmbeddedPostgres,
    readonly database: Database,
    readonly redis: RedisServer | null,
    readonly port: number,
  ) {
    this.ledger = join(dir, 'ledger');
  }

  /**
   * Two sites: `real` runs processes of this machine, `simulated` passes time. Two workers and one api, unless told otherwise. The API is
   * ready; if that fails, nothing is left behind.
   */
  static async open(
    redis: RedisServer | null,
    {
      dir = mkdtempSync(join(tmpdir(), 'switchyard-crash-')),
      home = join(dir, 'postgres'),
      launch = launchOne,
    }: InstallationOptions = {},
  ): Promise<Installation> {
    // Durability is what is tested: a killed server loses nothing even so, and the disk is spared.
    mkdirSync(dir, { recursive: true });
    const postgres = await startEmbeddedPostgres({ home, settings: { fsync: 'off' } });
    const database = openDatabase({
      url: postgres.url,
      poolSize: 4,
      connectTimeoutMs: 10_000,
      statementTimeoutMs: 30_000,
      applicationName: 'crash test',
    });
    const installation = new Installation(dir, postgres, database, redis, await freePort());
    try {
      await migrate(postgres.url);
      installation.keys = await install(openDirectory(database));
      await launch(installation);
      await installation.ready();
      return installation;
    } catch (error) {
      await installation.close();
      throw new Error(`the service does not come up\n${installation.logs}`, { cause: error });
    }
  }

  /** The API answers that it is ready. */
  async ready(): Promise<void> {
    const signal = () => AbortSignal.timeout(ANSWER_MS);
    await until('the API is ready', async () =>
      fetch(new URL('/readyz', this.url), { signal: signal() }).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
  }

  /** Of the GraphQL endpoint. */
  get url(): string {
    return `http://127.0.0.1:${this.port}/graphql`;
  }

  /** The administrator's. */
  get key(): string {
    return this.keys.admin;
  }

  /** What can be killed, by name. */
  get victims(): Map<string, () => void | Promise<void>> {
    const victims = new Map<string, () => void | Promise<void>>();
    for (const process of this.processes) victims.set(process.name, () => process.kill());
    // The embedded server's keeper starts it again.
    victims.set('postgres', () => void process.kill(this.postgres.pid, 'SIGKILL'));
    const { redis } = this;
    if (redis !== null) {
      victims.set('redis', async () => {
        await redis.kill();
        await sleep(1_500);
        await redis.restart();
      });
    }
    return victims;
  }

  /** One GraphQL request with the administrator's key. Throws when there is no good answer in time. */
  async ask<T>(query: string, variables: object, withinMs = PATIENCE_MS): Promise<T> {
    const response = await fetch(this.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${this.keys.admin}` },
      body: JSON.stringify({ query, variables }),
      signal: AbortSignal.timeout(withinMs),
    });
    const answer = (await response.json()) as { data?: T; errors?: { message: string }[] };
    if (answer.errors !== undefined || answer.data === undefined)
      throw new Error(JSON.stringify(answer.errors));
    return answer.data;
  }

  /** Rows of the truth, asked again while the server is away. */
  async rows<T>(sql: string, ...parameters: unknown[]): Promise<T[]> {
    for (const giveUp = Date.now() + PATIENCE_MS; ; ) {
      try {
        return (await this.database.pool.query(sql, parameters)).rows as T[];
      } catch (error) {
        if (Date.now() > giveUp) throw error;
        await sleep(100);
      }
    }
  }

  /** Registers a site; `localPolicy` as GraphQL. Answers with the key of an agent of it. */
  async addSite(name: string, localPolicy: string): Promise<{ id: string; key: string }> {
    const {
      site,
      user: { user },
    } = await this.ask<{ site: { site: { id: string } }; user: { user: { id: string } } }>(
      `mutation { site: createSite(input: { name: "${name}", localPolicy: ${localPolicy} }) { site { id } }
        user: createUser(input: { name: "agent-${name}", role: AGENT }) { user { id } } }`,
      {},
    );
    const { createApiKey } = await this.ask<{ createApiKey: { secret: string } }>(
      'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret } }',
      { input: { userId: user.id, name, siteId: site.site.id } },
    );
    return { id: site.site.id, key: createApiKey.secret };
  }

  /** Has jobs dispatched by another policy from now on. */
  async dispatchBy(dispatch: object): Promise<void> {
    const { policy } = await this.ask<{ policy: { version: number; document: object } }>(
      'query { policy { version document } }',
      {},
    );
    await this.ask(
      'mutation ($input: UpdatePolicyInput!) { updatePolicy(input: $input) { policy { version } } }',
      {
        input: {
          ...{ expectedVersion: policy.version, reason: 'another policy' },
          document: { ...policy.document, dispatch },
        },
      },
    );
  }

  /** What real processes wrote: `job epoch` a line, once for each launch. */
  launches(): string[] {
    return readFileSync(this.ledger, 'utf8').split('\n').filter(Boolean);
  }

  /** How often each process was started. */
  get starts(): ReadonlyMap<string, number> {
    return new Map(this.processes.map(({ name, starts }) => [name, starts]));
  }

  /** The ends of all logs. */
  get logs(): string {
    return this.processes
      .map(({ name, starts, log }) => `== ${name}, started ${starts} times\n${log}`)
      .join('\n');
  }

  async close(): Promise<void> {
    await Promise.all(this.processes.map((process) => process.stop()));
    await this.database.close();
    await this.postgres.stop();
    rmSync(this.dir, { recursive: true, force: true });
  }

  /** What every process of the service is told. */
  get settings(): Record<string, string> {
    return {
      DATABASE_URL: this.postgres.url,
      ...(this.redis && { REDIS_URL: this.redis.url }),
      LOG_LEVEL: 'warn',
      HOST: '127.0.0.1',
      PORT: String(this.port),
    };
  }

  start(name: string, args: readonly string[], env: Record<string, string>): void {
    const home = join(this.dir, name);
    mkdirSync(home, { recursive: true });
    this.processes.push(new Supervised(name, args, { SWITCHYARD_HOME: home, ...env }));
  }

  /** An agent of the site `real`. */
  startAgent(name: string, machine: string): void {
    this.start(name, ['agent', '--site', 'real'], {
      SWITCHYARD_URL: this.url,
      SWITCHYARD_KEY: this.keys.real,
      LOG_LEVEL: 'warn',
      AGENT_MACHINES: machine,
      NODE_OPTIONS: `--import=${measuredAs('real')}`,
    });
  }
}

function launchOne(service: Installation): void {
  service.start('api', ['api'], service.settings);
  service.start('worker-1', ['worker'], service.settings);
  service.start('worker-2', ['worker'], service.settings);
  service.startAgent('agent-real', 'm0');
  service.start('agent-simulated', ['agent', '--site', 'simulated', '--simulate', '--speed', '100'], {
    SWITCHYARD_URL: service.url,
    SWITCHYARD_KEY: service.keys.simulated,
    LOG_LEVEL: 'warn',
  });
}

/** The sites, their agents' keys and the administrator's; wake-ups that are lost cost two seconds at the most. */
async function install(directory: Directory): Promise<{ admin: string; real: string; simulated: string }> {
  const { adminId } = await directory.bootstrap();
  const document = { ...DEFAULT_POLICY, timers: { ...DEFAULT_POLICY.timers, cycleS: 2 } };
  done(await directory.addPolicy({ document, expectedVersion: 1, reason: 'crash test' }, SERVICE));
  const keyOf = async (userId: number, siteId: number | null) =>
    done(await directory.createApiKey({ userId, name: 'crash test', siteId, expiresAt: null }, SERVICE))
      .secret;
  const siteWith = async (name: string, machines: number, os: string) => {
    const { id: siteId } = done(
      await directory.registerSite({ name, latitude: null, longitude: null, localPolicy: null }, SERVICE),
    );
    const shape = {
      siteId,
      cpus: 8,
      memoryMb: 1_000,
      benchmark: 100,
      os,
      architecture: process.arch,
      licenseIds: [],
    };
    done(
      await directory.registerMachines(
        Array.from({ length: machines }, (_, i) => ({ ...shape, name: `m${i}` })),
        SERVICE,
      ),
    );
    const user = { name: `agent-${name}`, class: 'REGULAR' as const, role: 'AGENT' as const, quotaShare: 1 };
    return keyOf(done(await directory.registerUser(user, SERVICE)).id, siteId);
  };
  return {
    admin: await keyOf(adminId, null),
    real: await siteWith('real', 1, 'real'),
    simulated: await siteWith('simulated', 4, 'simulated'),
  };
}

function done<T>(change: Change<T>): T {
  if (change.kind === 'refused') throw new Error(change.message);
  return change.value;
}
