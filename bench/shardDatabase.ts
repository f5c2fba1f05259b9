/** The product's database on a server of its own, seen through one connection that notes for how long it has the event lock. */
import type pg from 'pg';
import { createLogger } from '../src/platform/log.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../src/store/embedded.js';
import type { Database } from '../src/store/pool.js';
import { PostgresStore } from '../src/store/postgres.js';
import type { RunReport } from '../src/store/store.js';
import { PLAIN_JOB } from '../test/support/plain-job.js';
import { newDatabase, openBench } from './database.js';
import { median, seconds } from './measure.js';

/** No site is to be what limits. */
const CPUS = 1_000_000;
/** As the product's, and it notes when the lock was asked for and when it was given, once for each transaction. */
const NOTING = `
CREATE OR REPLACE FUNCTION triggers.lock_events() RETURNS void LANGUAGE plpgsql AS $$
DECLARE asked timestamptz := clock_timestamp();
BEGIN
  PERFORM pg_advisory_xact_lock(triggers.event_lock());
  IF current_setting('bench.transaction', true) IS DISTINCT FROM pg_current_xact_id()::text THEN
    PERFORM set_config('bench.transaction', pg_current_xact_id()::text, false),
      set_config('bench.locked_at', clock_timestamp()::text, false),
      set_config('bench.waited_s', (coalesce(nullif(current_setting('bench.waited_s', true), ''), '0')::float8
        + extract(epoch FROM clock_timestamp() - asked))::text, false);
  END IF;
END $$`;
/** Since the last transaction got the event lock, which it has given back by now. */
export const HELD = `SELECT extract(epoch FROM clock_timestamp() - current_setting('bench.locked_at')::timestamptz)::float8 AS v`;

/** Two-phase commit is off by default. */
export const startServer = (home: string): Promise<EmbeddedPostgres> =>
  startEmbeddedPostgres({
    home,
    log: createLogger({ level: 'warn', process: 'bench' }),
    settings: { max_prepared_transactions: '16' },
  });

const OPTIONS = { poolSize: 1, statementTimeoutMs: 120_000 };

const now = (): number => Date.now() / 1000;
const context = () => ({ policyVersion: 1, cycle: 'bench', now: now() });
const explanation = { sites: [], terms: {}, candidates: [], ineligible: {}, level: 0, priorityTerms: null };
const started = { queued: 1, order: 'ARRIVAL', orderValue: 0, terms: null, reservation: null } as const;

/** Prepares a database of the server with so many sites, each with one large machine and a user; answers its address. */
export async function prepareDatabase(
  server: EmbeddedPostgres,
  name: string,
  sites: number,
): Promise<string> {
  const { url, database } = await newDatabase(server, name, OPTIONS);
  await database.pool.query(NOTING);
  await database.pool.query(
    `INSERT INTO users (name) SELECT 'user-' || i FROM generate_series(1, ${sites}) i`,
  );
  await database.pool.query(
    `INSERT INTO sites (name) SELECT 'site-' || i FROM generate_series(1, ${sites}) i`,
  );
  await database.pool.query(
    `INSERT INTO machines (site_id, name, cpus, memory_mb, benchmark, os, architecture, silent)
     SELECT id, 'm', ${CPUS}, 1000000, 100, 'linux', 'x64', false FROM sites`,
  );
  await database.close();
  return url;
}

/** The steps of lives at one site, over one connection. */
export class Driver {
  private readonly database: Database;
  private readonly store: PostgresStore;

  constructor(
    url: string,
    readonly siteId: number,
  ) {
    this.database = openBench(url, OPTIONS);
    this.store = new PostgresStore(this.database);
  }

  async submit(count: number): Promise<number[]> {
    const jobs = Array.from({ length: count }, () => ({ ...PLAIN_JOB }));
    // Each site has a user of its own, behind the one that every database begins with.
    const submission = { userId: this.siteId + 1, idempotencyKey: null, payloadHash: '', jobs, now: now() };
    const result = await this.store.submit(submission);
    if (result.kind !== 'accepted') throw new Error(`the submission was not accepted: ${result.kind}`);
    return result.jobIds;
  }

  async move(jobIds: readonly number[]): Promise<void> {
    const about = { from: null, to: this.siteId, queue: 'LOCAL', priority: 1, explanation } as const;
    const moves = jobIds.map((jobId) => ({ ...about, jobId, reason: 'IDLE_SITE' as const }));
    all(jobIds, (await this.store.applyMoves(moves, context())).accepted);
  }

  async start(jobIds: readonly number[]): Promise<void> {
    const starts = jobIds.map((jobId) => ({
      ...{ jobId, siteId: this.siteId, allocations: [{ machineId: this.siteId, tasks: 1 }], pools: [] },
      ...{ plannedDuration: 100, reason: 'HEAD' as const, explanation: started },
    }));
    all(jobIds, (await this.store.applyStarts(this.siteId, starts, null, context())).accepted);
  }

  async report(jobIds: readonly number[], phase: 'STARTED' | 'ENDED'): Promise<void> {
    const end =
      phase === 'ENDED' ? ({ exitCode: 0, cause: 'EXITED_ZERO' } as const) : { exitCode: null, cause: null };
    const nothing = { message: null, cpuS: null, ioWaitS: null, signal: null };
    const reports = jobIds.map(
      (jobId): RunReport => ({ jobId, epoch: 1, phase, at: now(), ...nothing, ...end }),
    );
    const { results } = await this.store.reportRuns(this.siteId, reports, 3);
    all(
      jobIds,
      results.filter((result) => result === 'accepted'),
    );
  }

  async live(count: number): Promise<void> {
    const jobIds = await this.submit(count);
    await this.move(jobIds);
    await this.start(jobIds);
    await this.report(jobIds, 'STARTED');
    await this.report(jobIds, 'ENDED');
  }

  /** How long the step had the event lock, without the way there and back of the question. */
  async heldS(step: () => Promise<unknown>): Promise<number> {
    await step();
    const held = await this.value(HELD);
    const ways: number[] = [];
    for (let i = 0; i < 5; i++) ways.push(await seconds(() => this.value('SELECT 1 AS v')));
    return Math.max(0, held - median(ways));
  }

  /** How long it has waited for the event lock until now. */
  waitedS(): Promise<number> {
    return this.value(
      `SELECT coalesce(nullif(current_setting('bench.waited_s', true), ''), '0')::float8 AS v`,
    );
  }

  async value(statement: string): Promise<number> {
    return ((await this.database.pool.query(statement)).rows[0] as { v: number }).v;
  }

  /** Its only connection, until it is released. */
  connect(): Promise<pg.PoolClient> {
    return this.database.pool.connect();
  }

  close(): Promise<void> {
    return this.database.close();
  }
}

function all(asked: readonly unknown[], done: readonly unknown[]): void {
  if (done.length !== asked.length) throw new Error(`${done.length} of ${asked.length} were done`);
}
