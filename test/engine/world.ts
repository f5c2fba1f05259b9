/** A small grid on a real Postgres, with engines and agents that live in the test. */
import { setTimeout as sleep } from 'node:timers/promises';
import { DEFAULT_POLICY, type Policy } from '../../src/core/index.js';
import { ROOT, schedulerOf } from '../../src/core/scheduler.js';
import { createEngine, type Engine, type EngineConfig, type Wake } from '../../src/engine/index.js';
import type { QueueConnection } from '../../src/engine/queue.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { type Change, type Directory, openDirectory } from '../../src/store/directory.js';
import { Mirror } from '../../src/store/mirror.js';
import { type Database, openDatabase } from '../../src/store/pool.js';
import { PostgresStore } from '../../src/store/postgres.js';
import type { Cursor, NewJob, RunReport } from '../../src/store/store.js';
import { ended, newJob, report, vouch } from '../store/world.js';
import { quietLog } from './support.js';

const SERVICE = { userId: null, requestId: null };
const HEARTBEAT_MS = 300;

export interface SiteShape {
  name: string;
  machines: {
    cpus: number;
    memoryMb?: number;
    benchmark?: number;
    licenses?: string[];
    maxTasks?: number;
  }[];
  maxRunningJobs?: number;
}

export class World {
  readonly store: PostgresStore;
  readonly directory: Directory;
  readonly siteIds = new Map<string, number>();
  readonly machineIds = new Map<string, number[]>();
  userId = 0;
  private readonly closers: (() => Promise<void>)[] = [];

  private constructor(
    readonly url: string,
    readonly database: Database,
  ) {
    this.store = new PostgresStore(database);
    this.directory = openDirectory(database);
  }

  static async open(
    url: string,
    shape: { sites: SiteShape[]; gridLicenses?: { kind: string; copies: number }[]; policy?: Policy },
  ): Promise<World> {
    const world = new World(url, open(url, 'world'));
    const { directory } = world;
    world.userId = (await directory.bootstrap()).adminId;
    if (shape.policy !== undefined) await world.setPolicy(1, shape.policy);
    const licenseIds = new Map<string, number>();
    for (const { kind, copies } of shape.gridLicenses ?? []) {
      licenseIds.set(kind, done(await directory.registerLicense({ kind, copies, siteId: null }, SERVICE)).id);
    }
    for (const { name, machines, maxRunningJobs = null } of shape.sites) {
      const site = { name, latitude: null, longitude: null, localPolicy: null, maxRunningJobs };
      const { id: siteId } = done(await directory.registerSite(site, SERVICE));
      const made = done(
        await directory.registerMachines(
          machines.map(({ cpus, memoryMb = 1000, benchmark = 100, licenses = [], maxTasks = null }, i) => ({
            siteId,
            name: `m${i}`,
            cpus,
            memoryMb,
            benchmark,
            os: 'linux',
            architecture: 'x64',
            maxTasks,
            licenseIds: licenses.map((kind) => licenseIds.get(kind) as number),
          })),
          SERVICE,
        ),
      );
      world.siteIds.set(name, siteId);
      world.machineIds.set(
        name,
        made.map(({ id }) => id),
      );
    }
    return world;
  }

  siteId(name: string): number {
    return this.siteIds.get(name) as number;
  }

  /** Puts `document` in force as the version after this one. */
  async setPolicy(expectedVersion: number, document: Policy): Promise<void> {
    done(await this.directory.addPolicy({ document, expectedVersion, reason: 'test' }, SERVICE));
  }

  /** As a process of its own would have it: own pool, mirror and queue. */
  async engine(queueConnection: QueueConnection, config: Partial<EngineConfig> = {}): Promise<Engine> {
    const database = open(this.url, 'engine');
    const store = new PostgresStore(database);
    const mirror = new Mirror(store);
    const engine = createEngine({
      store,
      mirror,
      queueConnection,
      log: quietLog,
      metrics: createMetrics(),
      config: { sweepEveryMs: 200, ...config },
    });
    await engine.start();
    this.closers.push(async () => {
      await engine.stop();
      await database.close();
    });
    return engine;
  }

  /** Serves sites as their agents and the API together would, until closed or stopped. */
  agent(siteName: string, wake: Wake, options: { runMs?: number; pollMs?: number } = {}): InlineAgent {
    const agent = new InlineAgent(this, siteName, wake, options.runMs ?? 0, options.pollMs ?? 100);
    this.closers.push(() => agent.stop());
    return agent;
  }

  async submit(jobs: Partial<NewJob>[]): Promise<number[]> {
    const result = await this.store.submit({
      userId: this.userId,
      idempotencyKey: null,
      payloadHash: 'x',
      jobs: jobs.map((job) => newJob({ estimateS: 10, ...job })),
      now: Date.now() / 1000,
    });
    if (result.kind !== 'accepted') throw new Error(`the submission was refused: ${result.kind}`);
    return result.jobIds;
  }

  async states(): Promise<Record<string, number>> {
    const { rows } = await this.database.pool.query('SELECT state, count(*)::int AS n FROM jobs GROUP BY 1');
    return Object.fromEntries(rows.map(({ state, n }) => [state, n]));
  }

  /** Jobs that have not ended. */
  async live(): Promise<number> {
    const { rows } = await this.database.pool.query(
      'SELECT count(*)::int AS n FROM jobs WHERE ended_at IS NULL',
    );
    return rows[0].n;
  }

  async close(): Promise<void> {
    for (const close of this.closers.splice(0).reverse()) await close();
    await this.database.close();
  }
}

/** An agent without a network: learns assignments from the store and reports to it. */
export class InlineAgent {
  /** By job id, how often it was told to run. */
  readonly launched = new Map<number, number>();
  private stopped = false;
  private readonly running: Promise<void>;

  constructor(
    private readonly world: World,
    private readonly siteName: string,
    private readonly wake: Wake,
    private readonly runMs: number,
    private readonly pollMs: number,
  ) {
    this.running = this.run();
  }

  /** From one moment to the next it says nothing more, as if its machine were gone. */
  async stop(): Promise<void> {
    this.stopped = true;
    await this.running;
  }

  private async run(): Promise<void> {
    const { store } = this.world;
    const siteId = this.world.siteId(this.siteName);
    const machines = this.world.machineIds.get(this.siteName) as number[];
    const ends: { atMs: number; report: RunReport }[] = [];
    let cursor: string | null = null;
    let heartbeatAt = 0;
    while (!this.stopped) {
      const nowMs = Date.now();
      if (nowMs - heartbeatAt > HEARTBEAT_MS) {
        heartbeatAt = nowMs;
        const revived = await vouch(store, siteId, machines, nowMs / 1000);
        await store.processSeen('test-api', 'api', nowMs / 1000);
        if (revived.length > 0) await this.wake([ROOT, siteId]);
      }
      const batch = await store.assignments(siteId, cursor, 10_000, 2 ** 40);
      cursor = batch.next as Cursor;
      const reports: RunReport[] = [];
      const at = nowMs / 1000;
      for (const { jobId, epoch, state } of batch.assignments) {
        if (state === 'ASSIGNED') {
          this.launched.set(jobId, (this.launched.get(jobId) ?? 0) + 1);
          reports.push(report(jobId, epoch, { at }));
          ends.push({
            atMs: nowMs + this.runMs,
            report: ended(jobId, epoch, { at: at + this.runMs / 1000 }),
          });
        } else if (state === 'CANCELLING') {
          const stopped = { at, exitCode: null, cause: 'SIGNALLED', signal: 'SIGTERM' } as const;
          ends.push({ atMs: nowMs, report: ended(jobId, epoch, stopped) });
        }
      }
      ends.sort((a, b) => a.atMs - b.atMs);
      while (ends.length > 0 && (ends[0] as { atMs: number }).atMs <= nowMs) {
        reports.push((ends.shift() as { report: RunReport }).report);
      }
      if (reports.length > 0) {
        const { touched } = await store.reportRuns(siteId, reports, 3);
        await this.wake(touched.map(schedulerOf));
      } else await sleep(this.pollMs);
    }
  }
}

/** The default policy with other timers; the slow timer off unless asked for, so that only wake-ups move things. */
export function testPolicy(
  change: {
    timers?: Partial<Policy['timers']>;
    dispatch?: Partial<Policy['dispatch']>;
    local?: Policy['local'];
  } = {},
): Policy {
  return {
    ...DEFAULT_POLICY,
    dispatch: { ...DEFAULT_POLICY.dispatch, ...change.dispatch } as Policy['dispatch'],
    local: change.local ?? DEFAULT_POLICY.local,
    timers: { ...DEFAULT_POLICY.timers, cycleS: 86_400, ...change.timers },
  };
}

function open(url: string, applicationName: string): Database {
  return openDatabase({
    url,
    poolSize: 6,
    connectTimeoutMs: 10_000,
    statementTimeoutMs: 30_000,
    applicationName,
  });
}

function done<T>(change: Change<T>): T {
  if (change.kind === 'refused') throw new Error(change.message);
  return change.value;
}
