/**
 * What-ifs as the workers that compute them see them. They are rows of Postgres with a lease: a worker says every second or
 * so that it lives, and what a dead one leaves behind is taken up by another. Asking for one, and reading about them, is
 * the directory's and the queries'.
 */
import type { Dataset, Held, License, Link, Machine, RunTotals, Site, TreeScheduler } from '../core/model.js';
import { type Policy, parsePolicy } from '../core/policy.js';
import { MAX } from '../platform/limits.js';
import {
  type DataArray,
  type DirectoryArray,
  dataArray,
  directoryArray,
  epoch,
  type HeldArray,
  heldArray,
  heldFromArray,
  type JobArray,
  jobArray,
  totalsFromTold,
} from './images.js';
import type { Database } from './pool.js';
import { instant } from './read-rows.js';
import { raw, type Sql, sql } from './sql.js';
import { row, rows, run } from './statement.js';

/** What jobs run on and read, and whose they are: as it is now. */
export interface SimulatedWorld {
  sites: Site[];
  /** One counts unless it is drained or down, whether its agent is heard or not. */
  machines: Machine[];
  licenses: License[];
  /** Between the root and sites. */
  schedulers: TreeScheduler[];
  datasets: Dataset[];
  links: Link[];
  /** Of users whose quota is not 1. */
  quotas: { userId: number; share: number }[];
  /** What runs have shown, those of the window among them. */
  totals: RunTotals[];
}

/** One time of a maintenance window or reservation. */
export interface RecordedHold {
  holdId: number;
  siteId: number;
  held: Held;
  /** Since when there is the hold, epoch seconds. */
  madeAt: number;
  /** When the hold ended or was canceled; null: it has not. */
  endedAt: number | null;
}

/** Everything that a simulation is made from. Plain data: it goes to a thread. */
export interface SimulationTask extends SimulatedWorld {
  baseline: Policy;
  candidate: Policy;
  /** Times of holds that were not over when the window began, and later ones, by id; of a trace none. */
  holds: RecordedHold[];
  /**
   * The jobs, by id, as JSON texts of `RecordedJob[]`. Texts, because parsing a hundred thousand jobs is the thread's work, not
   * the live cycles'.
   */
  pages: string[];
  /** The jobs' trace, in place of pages; null: they are the window's. */
  trace: string | null;
  /** When the window begins, epoch seconds: jobs that were submitted before were still there. Null: of a trace. */
  from: number | null;
  /** Compare the policies even if what is simulated of the one in force is far from what happened. */
  acceptDistance: boolean;
}

/** The last run of a job that was not lost or stopped to be started again, up to its end or until now, and how long the job had waited for its machines. */
export type RecordedRun = [seconds: number, plannedS: number, siteId: number, waitedS: number];

/** A job (see images.ts) and that run. Null: it has none yet; NEVER: it ended without one. */
export type RecordedJob = [JobArray, RecordedRun | 'NEVER' | null];

export interface DueSimulation {
  id: number;
  /** How often it was taken up until now. */
  attempts: number;
}

/** A worker's hold on a simulation. */
export interface Claim extends SimulatedWorld {
  id: number;
  baseline: Policy;
  candidate: Policy;
  holds: RecordedHold[];
  /** Of a window, epoch seconds; null: the jobs are the trace's. */
  from: number | null;
  to: number | null;
  trace: string | null;
  acceptDistance: boolean;
}

const PAGE = 5_000;

/** Leases are judged by the database's clock: those of the workers may differ. */
export class Simulations {
  constructor(
    private readonly database: Pick<Database, 'pool' | 'prisma'>,
    /** A worker silent for longer (s) has died. */
    private readonly leaseS = 10,
    /** How often one simulation is taken up. */
    private readonly attemptsMax = 3,
  ) {}

  /**
   * Those that wait for a worker, oldest first: new ones, and those whose worker has been silent. One that was taken up too often (it
   * may be what ends the workers) fails.
   */
  due(): Promise<DueSimulation[]> {
    return rows(
      this.database.pool,
      sql`
WITH hopeless AS (
  UPDATE simulations SET state = 'FAILED', ended_at = clock_timestamp(), message = 'its workers died ' || attempts || ' times', trace = NULL
   WHERE ${this.abandoned()} AND attempts >= ${this.attemptsMax}
)
SELECT id, attempts FROM simulations
 WHERE state = 'QUEUED' OR (${this.abandoned()} AND attempts < ${this.attemptsMax}) ORDER BY id`,
    );
  }

  /** Makes one this worker's; null when it is another's by now, or has ended. */
  async claim(id: number, worker: string): Promise<Claim | null> {
    const claimed = await row<{
      baseline: unknown;
      candidate: unknown;
      from: number | null;
      to: number | null;
      trace: string | null;
      acceptDistance: boolean;
      directory: DirectoryArray;
      data: DataArray;
      holds: RecordedHoldArray[];
    }>(
      this.database.pool,
      sql`
WITH mine AS (
  UPDATE simulations SET state = 'RUNNING', worker = ${worker}, worker_seen_at = clock_timestamp(), attempts = attempts + 1, progress = 0
   WHERE id = ${id} AND attempts < ${this.attemptsMax} AND (state = 'QUEUED' OR ${this.abandoned()})
  RETURNING policy_version, candidate, from_at, to_at, trace, accept_distance
)
SELECT p.document AS baseline, m.candidate, extract(epoch FROM m.from_at)::float8 AS from, extract(epoch FROM m.to_at)::float8 AS to, m.trace, m.accept_distance AS "acceptDistance",
       ${raw(directoryArray("state = 'UP'"))} AS directory, ${raw(dataArray)} AS data,
       ${recordedHolds} AS holds
  FROM mine m JOIN policies p ON p.version = m.policy_version`,
    );
    if (claimed === null) return null;
    const { baseline, candidate, from, to, trace, acceptDistance } = claimed;
    const [, sites, machines, licenses, schedulers] = claimed.directory;
    const [datasets, links, quotas, told] = claimed.data;
    const totals = totalsFromTold(told);
    const world = { sites, machines, licenses, schedulers, datasets, links, quotas, totals };
    return {
      id,
      baseline: parsePolicy(baseline),
      candidate: parsePolicy(candidate),
      from,
      to,
      trace,
      acceptDistance,
      holds: claimed.holds.map(holdFromArray),
      ...world,
    };
  }

  /** Reads the window. Throws when there are more jobs in it than may be simulated. */
  async task({ id: _, to, ...rest }: Claim): Promise<SimulationTask> {
    const pages: string[] = [];
    const { from } = rest;
    if (from === null || to === null) return { ...rest, pages };
    let count = 0;
    let after = 0;
    for (;;) {
      const page = await row<PageOfWindow>(this.database.pool, windowOfJobs(from, to, after));
      if (!page?.last) break;
      pages.push(page.texts);
      count += page.jobs;
      // All of them are in memory at once.
      if (count > MAX.simulatedJobs)
        throw new Error(
          `more than ${MAX.simulatedJobs} jobs were submitted within the window, or were waiting or running when it began`,
        );
      if (page.jobs < PAGE) break;
      after = page.last;
    }
    return { ...rest, pages };
  }

  /** Says that the worker lives, and how far it is. False: it is not this worker's any more (cancelled, or given to another). */
  async touch(id: number, worker: string, progress: number): Promise<boolean> {
    const touched = await run(
      this.database.pool,
      sql`
UPDATE simulations SET worker_seen_at = clock_timestamp(), progress = greatest(progress, ${progress}::float8) WHERE ${mine(id, worker)}`,
    );
    return touched > 0;
  }

  /** Ends it as DONE. What has been taken away meanwhile stays as it is. */
  async done(id: number, worker: string, result: unknown): Promise<void> {
    await run(
      this.database.pool,
      sql`
UPDATE simulations SET state = 'DONE', result = ${JSON.stringify(result)}::jsonb, progress = 1, ended_at = clock_timestamp(), trace = NULL
 WHERE ${mine(id, worker)}`,
    );
  }

  /** Ends it as FAILED. */
  async failed(id: number, worker: string, message: string): Promise<void> {
    await run(
      this.database.pool,
      sql`UPDATE simulations SET state = 'FAILED', message = ${message}, ended_at = clock_timestamp(), trace = NULL WHERE ${mine(id, worker)}`,
    );
  }

  /** Gives it back: the worker stops in order, and that attempt does not count. */
  async release(id: number, worker: string): Promise<void> {
    await run(
      this.database.pool,
      sql`
UPDATE simulations SET state = 'QUEUED', worker = NULL, worker_seen_at = NULL, attempts = attempts - 1 WHERE ${mine(id, worker)}`,
    );
  }

  /** Forgets those that ended before (epoch seconds). */
  async prune(before: number): Promise<void> {
    await this.database.prisma.simulation.deleteMany({ where: { endedAt: { lt: instant(before) } } });
  }

  private abandoned(): Sql {
    return sql`(state = 'RUNNING' AND worker_seen_at < clock_timestamp() - make_interval(secs => ${this.leaseS}::float8))`;
  }
}

const mine = (id: number, worker: string): Sql =>
  sql`id = ${id} AND worker = ${worker} AND state = 'RUNNING'`;

type RecordedHoldArray = [...HeldArray, madeAt: number, endedAt: number | null];

/** Of a window `m`: those that began and were given back end when they were. */
const recordedHolds: Sql = sql`
  (SELECT coalesce(json_agg(${raw(heldArray)}::jsonb || jsonb_build_array(${raw(epoch('h.created_at'))}, ${raw(epoch('h.ended_at'))}) ORDER BY t.id), '[]')
     FROM holds h JOIN hold_times t ON t.hold_id = h.id JOIN sites s ON s.id = h.site_id AND s.removed_at IS NULL
    WHERE m.from_at IS NOT NULL AND (h.ended_at IS NULL OR h.ended_at > m.from_at) AND (t.to_at IS NULL OR t.to_at > m.from_at))`;

function holdFromArray(array: RecordedHoldArray): RecordedHold {
  const [id, siteId, kind, machines, from, to, holdId, madeAt, endedAt] = array;
  const held = heldFromArray([id, siteId, kind, machines, from, to, holdId]);
  return { holdId, siteId, held, madeAt, endedAt };
}

interface PageOfWindow {
  texts: string;
  jobs: number;
  last: number | null;
}

/**
 * A page of the jobs that were submitted within a window, or before and still there when it began, behind a job, by id, each with its last
 * run. As text: the thread parses it.
 */
const windowOfJobs = (from: number, to: number, after: number): Sql => sql`
SELECT coalesce(json_agg(json_build_array(${raw(jobArray)},
    CASE WHEN r.site_id IS NOT NULL THEN json_build_array(
      CASE WHEN r.ended_at IS NULL THEN greatest(extract(epoch FROM clock_timestamp() - r.started_at)::float8, r.planned_s)
           ELSE extract(epoch FROM r.ended_at - r.started_at)::float8 END,
      r.planned_s, r.site_id, greatest(0, extract(epoch FROM r.assigned_at - j.submitted_at)::float8))
         WHEN j.ended_at IS NOT NULL THEN '"NEVER"'::json END) ORDER BY j.id), '[]')::text AS texts,
    count(*)::integer AS jobs, max(j.id) AS last
  FROM (SELECT * FROM jobs
         WHERE submitted_at < to_timestamp(${to}::float8) AND id > ${after}::bigint
           AND (submitted_at >= to_timestamp(${from}::float8) OR ended_at IS NULL OR ended_at > to_timestamp(${from}::float8))
         ORDER BY id LIMIT ${PAGE}) j
  JOIN users u ON u.id = j.user_id
  LEFT JOIN LATERAL (
    SELECT assigned_at, started_at, ended_at, planned_s, site_id FROM runs
     WHERE job_id = j.id AND started_at IS NOT NULL AND (cause IS NULL OR cause NOT IN ('LOST', 'PREEMPTED', 'REQUEUED'))
     ORDER BY epoch DESC LIMIT 1) r ON true`;
