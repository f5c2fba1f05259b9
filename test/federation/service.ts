/**
 * Services that are peers, whole but in the process of the test: API, engine, the loops that ask peers, and an agent that writes each run down
 * when it begins. What needs processes to be killed is in faults.test.ts.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll } from 'vitest';
import { Agent, DataExporter } from '../../src/agent/index.js';
import {
  type Assignment,
  type EndCause,
  type EndedReport,
  type LiveRun,
  nameOf,
  type RunName,
  type RunReport,
  runKey,
  type StartedReport,
  UNMEASURED,
} from '../../src/agent/runner.js';
import { type StageableRunner, StagingRunner } from '../../src/agent/staging/runner.js';
import { Client } from '../../src/client/index.js';
import { schedulerOf } from '../../src/core/scheduler.js';
import { createEngine, type Engine } from '../../src/engine/index.js';
import { Federation, type FederationOptions } from '../../src/federation/index.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { Mirror } from '../../src/store/mirror.js';
import { type TestApi, withApi } from '../api/support/api.js';
import { quietLog } from '../engine/support.js';
import { PATIENCE_MS } from '../support/patience.js';

/** Waits for a condition; then fails with its name. */
export async function until(what: string, condition: () => boolean | Promise<boolean>): Promise<void> {
  for (const giveUp = Date.now() + PATIENCE_MS; !(await condition()); await sleep(50))
    if (Date.now() > giveUp) throw new Error(`waited in vain: ${what}`);
}

/** A run, as the site's agent was told of it. */
export interface Launch {
  site: string;
  /** The job's only argument. */
  number: number;
  /** The files that it found, by the names of its inputs. */
  read: Record<string, string>;
  /** Which task of which part it is, and its CPUs; left out: its job has no parts. */
  part?: string;
}

/** Runs that take no time, or go on until they are told to end or stopped: what has no `simulatedRunS`. Each writes a line. */
class TestRunner implements StageableRunner {
  readonly nowMs = Date.now;
  readonly problem = null;
  readonly hasAccounts = false;
  onReports: (() => void) | null = null;
  private readonly known = new Map<string, Assignment>();
  private readonly live = new Map<string, LiveRun>();
  private pending: RunReport[] = [];
  private seq = 0;

  constructor(
    private readonly site: string,
    private readonly ledger: Launch[],
  ) {}

  start(assignment: Assignment): void {
    const key = runKey(assignment);
    if (this.known.has(key)) return;
    this.known.set(key, assignment);
    const read = (assignment.staged ?? []).map(({ name, path }) => [name, readFileSync(path, 'utf8')]);
    const { part, task, cpusPerTask } = assignment;
    this.ledger.push({
      ...{ site: this.site, number: numberOf(assignment), read: Object.fromEntries(read) },
      ...(part !== undefined && { part: `part ${part}, task ${task}: ${cpusPerTask} CPUs` }),
    });
    this.live.set(key, { ...nameOf(assignment), startedAtMs: Date.now() });
    this.report({ ...nameOf(assignment), phase: 'STARTED' });
    if (assignment.simulatedS !== null) this.end(key, 'EXITED_ZERO');
  }

  /** What goes on ends well. */
  finish(number: number): void {
    for (const key of this.live.keys())
      if (Object.is(numberOf(this.known.get(key) as Assignment), number)) this.end(key, 'EXITED_ZERO');
  }

  knows(run: RunName): boolean {
    return this.known.has(runKey(run));
  }

  fail(run: RunName, cause: EndCause, message: string): void {
    this.report({
      ...nameOf(run),
      phase: 'ENDED',
      cause,
      exitCode: null,
      signal: null,
      message,
      outputs: [],
      ...UNMEASURED,
    });
  }

  resume(assignment: Assignment): void {
    this.start(assignment);
  }

  cancel(run: RunName): void {
    this.end(runKey(run), 'CANCELLED_BY_USER');
  }

  forget(run: RunName): void {
    this.live.delete(runKey(run));
  }

  runs(): LiveRun[] {
    return [...this.live.values()];
  }

  reports(limit: number): RunReport[] {
    return this.pending.slice(0, limit);
  }

  acknowledge(seq: number): void {
    this.pending = this.pending.filter((report) => report.seq > seq);
  }

  freshOutput(): [] {
    return [];
  }

  delivered(): void {}

  close(): void {}

  private end(key: string, cause: EndCause): void {
    const run = this.live.get(key);
    if (run === undefined) return;
    this.live.delete(key);
    const text = `out of ${numberOf(this.known.get(key) as Assignment)}\n`;
    const outputs = [{ stream: 'STDOUT', start: 0, text, bytes: text.length }] as const;
    const exitCode = cause === 'EXITED_ZERO' ? 0 : null;
    const end = { cause, exitCode, signal: null, message: null, outputs, ...UNMEASURED };
    this.report({ ...nameOf(run), phase: 'ENDED', ...end });
  }

  private report(report: Omit<StartedReport, 'seq' | 'atMs'> | Omit<EndedReport, 'seq' | 'atMs'>): void {
    this.pending.push({ ...report, seq: ++this.seq, atMs: Date.now() } as RunReport);
    this.onReports?.();
  }
}

const numberOf = ({ arguments: words }: Assignment): number => Number(words[0]);

/** Whom a service exchanges jobs with, as an administrator sees it. */
export interface Peer {
  site: { id: string };
  name: string;
  isolated: boolean;
  failure: string | null;
  foreignJobs: number;
  offeredJobs: number;
  claimedJobs: number;
}

export class PeerService {
  engine!: Engine;
  site = '';
  /** Its site's data are below this directory. */
  data = '';
  private agent!: Agent;
  runner!: TestRunner;
  private federation!: Federation;

  constructor(
    readonly name: string,
    readonly api: TestApi,
    readonly ledger: Launch[],
    private readonly options: Partial<FederationOptions>,
  ) {}

  /** Its site has a machine of 4 CPUs with the operating system that is called as the service. */
  async start(): Promise<void> {
    const { name, api } = this;
    // The databases are copies of one.
    await api.db.pool.query('UPDATE service SET id = $1', [name]);
    const {
      createSite: { site },
    } = await this.must<{ createSite: { site: { id: string } } }>(
      'mutation ($input: CreateSiteInput!) { createSite(input: $input) { site { id } } }',
      { input: { name: `site-${name}` } },
    );
    this.site = site.id;
    const machine = {
      siteId: site.id,
      name: 'm',
      cpus: 4,
      memoryMb: 4_000,
      benchmark: 100,
      os: name,
      architecture: 'x64',
    };
    await this.must(
      'mutation ($input: CreateMachineInput!) { createMachine(input: $input) { machine { id } } }',
      {
        input: machine,
      },
    );
    const { store, queries } = api.parts;
    this.engine = createEngine({
      store,
      mirror: new Mirror(store),
      queueConnection: { kind: 'postgres', url: api.db.url },
      log: quietLog,
      metrics: createMetrics(),
      config: { sweepEveryMs: 500 },
    });
    api.onWake = (schedulers) => void this.engine.wake(schedulers);
    await this.engine.start();
    const { key } = await api.user('AGENT', `agent-${name}`, site.id);
    this.runner = new TestRunner(`site-${name}`, this.ledger);
    this.data = mkdtempSync(join(tmpdir(), 'switchyard-data-'));
    const runner = new StagingRunner(this.runner, this.data, {
      ...{ site: `site-${name}`, maxBytes: 1e8, command: null, rateMbPerS: null, attempts: 1 },
      // Files come from servers of the tests, on this host.
      addresses: ['127.0.0.1'],
    });
    const roots = { allowed: [this.data], closed: [], open: [] };
    const exporter = new DataExporter({ client: new Client({ url: api.url, key }), roots });
    this.agent = new Agent({
      ...{ url: api.url, key, site: `site-${name}`, runner, staging: runner, log: quietLog },
      ...{ exporter, exportsLookMs: 100 },
      ...{ identity: name, host: name, machines: null, heartbeatMs: 1_000 },
    });
    this.agent.start();
    this.federation = new Federation({
      copies: store.copies,
      filesOfRuns: (runs) => queries.filesOfRuns(runs),
      blobs: api.parts.fileStore.blobs,
      share: { jobs: 1_000, bytes: 1e9 },
      wake: (touched) => void this.engine.wake(touched.map(schedulerOf)),
      now: () => Date.now() / 1000,
      log: quietLog,
      idleMs: 50,
      ...this.options,
    });
    this.federation.start();
  }

  async stop(): Promise<void> {
    await this.federation?.stop();
    await this.agent?.stop();
    await this.engine?.stop();
    if (this.data !== '') rmSync(this.data, { recursive: true });
  }

  must<T = Record<string, never>>(document: string, variables: object = {}, key?: string): Promise<T> {
    return this.api.must<T>(document, variables, key);
  }

  /** Jobs that are known by their numbers. */
  async submit(numbers: readonly number[], more: object = {}, key?: string): Promise<string[]> {
    const jobs = numbers.map((number) => ({
      command: 'run',
      arguments: [String(number)],
      estimateS: 1,
      simulatedRunS: 0,
      ...more,
    }));
    const { submitJobs } = await this.must<{
      submitJobs: { jobIds: string[]; errors: { message: string }[] };
    }>(
      'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds errors { message } } }',
      { input: { jobs, idempotencyKey: numbers.join(), allowUnfit: true } },
      key,
    );
    if (submitJobs.errors.length > 0) throw new Error(submitJobs.errors[0]?.message);
    return submitJobs.jobIds;
  }

  async change(mutation: 'cancelJobs' | 'holdJobs' | 'releaseJobs', ids: readonly string[]): Promise<void> {
    await this.must(`mutation ($s: JobSelection!) { ${mutation}(input: { selection: $s }) { jobIds } }`, {
      s: { ids },
    });
  }

  /** State, cause and site of these jobs of its own, in their order. */
  async jobs(
    ids: readonly string[],
  ): Promise<{ state: string; cause: string | null; site: string | null }[]> {
    const { rows } = await this.api.db.pool.query(
      `SELECT 'job_' || j.id AS id, j.state, j.cause, s.name AS site FROM jobs j LEFT JOIN sites s ON s.id = j.site_id`,
    );
    const byId = new Map(rows.map(({ id, ...job }) => [id, job]));
    return ids.map((id) => byId.get(id));
  }

  async states(ids: readonly string[]): Promise<string[]> {
    return (await this.jobs(ids)).map(({ state }) => state);
  }

  async until(what: string, ids: readonly string[], state: string): Promise<void> {
    await until(`${what} (${this.name})`, async () => (await this.states(ids)).every((is) => is === state));
  }

  /** What is here of a peer's jobs, by the owner's numbers, in the order in which they came. */
  async copies(): Promise<
    {
      id: string;
      job: string;
      state: string;
      cause: string | null;
      boost: number;
      user: string;
      granted: boolean;
      told: number;
    }[]
  > {
    const { rows } = await this.api.db.pool.query(
      `SELECT 'job_' || j.id AS id, 'job_' || f.owner_job_id AS job, j.state, j.cause, j.boost, u.name AS user, f.epoch IS NOT NULL AS granted, f.told
         FROM foreign_jobs f JOIN jobs j ON j.id = f.job_id JOIN users u ON u.id = j.user_id ORDER BY j.id`,
    );
    return rows;
  }

  async copiesOf(jobs: readonly string[]) {
    return (await this.copies()).filter(({ job }) => jobs.includes(job));
  }

  /** Registers a peer, or changes it; answers with the key that is made for it. */
  async federate(input: object): Promise<string | null> {
    const data = await this.must<{ setPeer: { secret: string | null } }>(
      'mutation ($input: SetPeerInput!) { setPeer(input: $input) { secret } }',
      { input },
    );
    return data.setPeer.secret;
  }

  async peer(name: string): Promise<Peer> {
    const { federationPeers } = await this.must<{ federationPeers: Peer[] }>(
      '{ federationPeers { site { id } name isolated failure foreignJobs offeredJobs claimedJobs } }',
    );
    return federationPeers.find((one) => one.name === name) as Peer;
  }
}

/** Gives the surrounding file a service of this name. Call it while collecting. */
export function withService(
  name: string,
  ledger: Launch[],
  options: Partial<FederationOptions> = {},
): PeerService {
  const service = new PeerService(name, withApi(), ledger, options);
  beforeAll(() => service.start());
  afterAll(() => service.stop());
  return service;
}
