/**
 * What-ifs as the workers that compute them see them. They are rows of Postgres with a lease: a worker says every second or
 * so that it lives, and what a dead one leaves behind is taken up by another. Asking for one, and reading about them, is
 * the directory's and the queries'.
 */
import {
  cpusOf,
  type Dataset,
  type Held,
  type Job,
  type License,
  type Link,
  type Machine,
  type RunTotals,
  type Site,
  type SiteImages,
  type TreeScheduler,
} from '../core/model.js';
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
  limitOfRun,
  totalsFromTold,
} from './images.js';
import type { Database } from './pool.js';
import { instant } from './read-rows.js';
import { raw, type Sql, sql } from './sql.js';
import { row, rows, run } from './statement.js';

/** What jobs run on and read, and whose they are: as it is now. */
export interface SimulatedWorld {
  /** Of those that schedule themselves, what is busy with jobs of others. */
  sites: Site[];
  /** One counts unless it is drained or down, whether its agent is heard or not. */
  machines: Machine[];
  licenses: License[];
  /** Between the root and sites. */
  schedulers: TreeScheduler[];
  datasets: Dataset[];
  links: Link[];
  images: SiteImages[];
  /** Of users whose quota is not 1. */
  quotas: { userId: number; share: number }[];
  /** What runs have shown, those of the window among them. */
  totals: RunTotals[];
  /** Of sites whose agents have reported the load of their own schedulers (`Site.load`), how old that is. */
  reported: ReportedLoad[];
}

export interface ReportedLoad {
  siteId: number;
  /** When it was reported, epoch seconds, and for how long then. */
  at: number;
  ageS: number;
  /** For how long its agent has said nothing. */
  silentS: number;
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
  /** Runs in its way are stopped. */
  preempts: boolean;
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

/**
 * The last run of a job that was not lost or stopped to be started again, up to its end or until now, and how long the job had waited for its
 * machines; at a site that schedules itself, until it began. With the limit that the run had; null: none.
 */
export type RecordedRun = [
  seconds: number,
  plannedS: number,
  siteId: number,
  waitedS: number,
  limitS: number | null,
];

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
      reported: ReportedLoad[];
      ours: RunThere[];
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
       ${recordedHolds} AS holds, ${reportedLoads} AS reported, ${runsThere} AS ours
  FROM mine m JOIN policies p ON p.version = m.policy_version`,
    );
    if (claimed === null) return null;
    const { baseline, candidate, from, to, trace, acceptDistance, reported } = claimed;
    const [, there, machines, licenses, schedulers] = claimed.directory;
    const sites = there.map((site) => ({ ...site, load: withoutOurs(site.load ?? null, claimed.ours) }));
    const [datasets, links, quotas, told, , , images] = claimed.data;
    const totals = totalsFromTold(told);
    const data = { datasets, links, images, quotas, totals };
    const world = { sites, machines, licenses, schedulers, ...data, reported };
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

type RecordedHoldArray = [...HeldArray, madeAt: number, endedAt: number | null, preempts: boolean];

/** Of a window `m`: those that began and were given back end when they were. */
const recordedHolds: Sql = sql`
  (SELECT coalesce(json_agg(${raw(heldArray)}::jsonb || jsonb_build_array(${raw(epoch('h.created_at'))}, ${raw(epoch('h.ended_at'))}, h.on_conflict = 'PREEMPT') ORDER BY t.id), '[]')
     FROM holds h JOIN hold_times t ON t.hold_id = h.id JOIN sites s ON s.id = h.site_id AND s.removed_at IS NULL
    WHERE m.from_at IS NOT NULL AND (h.ended_at IS NULL OR h.ended_at > m.from_at) AND (t.to_at IS NULL OR t.to_at > m.from_at))`;

/** By the database's clock, like leases. */
const reportedLoads: Sql = sql`
  (SELECT coalesce(json_agg(json_build_object('siteId', id, 'at', ${raw(epoch('load_at'))}, 'ageS', greatest(0, ${raw(epoch('clock_timestamp()'))} - ${raw(epoch('load_at'))}),
            'silentS', ${raw(epoch('clock_timestamp()'))} - coalesce(${raw(epoch('agent_seen_at'))}, 0)) ORDER BY id), '[]')
     FROM sites WHERE removed_at IS NULL AND load_at IS NOT NULL AND load IS NOT NULL)`;

/** A run of ours that a site's own scheduler has begun, and the machines that it is on. */
interface RunThere extends Pick<Job, 'tasks' | 'cpusPerTask' | 'memoryMbPerTask' | 'parts'> {
  machineIds: number[];
}

const runsThere: Sql = sql`
  (SELECT coalesce(json_agg(json_build_object('machineIds', n.ids, 'tasks', j.tasks, 'cpusPerTask', j.cpus_per_task, 'memoryMbPerTask', j.memory_mb_per_task, 'parts', j.parts)), '[]')
     FROM runs r JOIN jobs j ON j.id = r.job_id CROSS JOIN LATERAL (
       SELECT array_agg(m.id) AS ids FROM machines m WHERE m.site_id = r.site_id AND m.name = ANY (r.nodes) AND m.removed_at IS NULL) n
    WHERE r.placed_by = 'SITE' AND r.ended_at IS NULL AND r.started_at IS NOT NULL AND n.ids IS NOT NULL)`;

/**
 * What is busy, as agents report it, is so with jobs of all users: those of ours run in the simulation again. Nobody tells how many tasks are on
 * which of their machines: on each the same.
 */
function withoutOurs(load: Site['load'], ours: readonly RunThere[]): Site['load'] {
  if (load == null) return null;
  const taken = new Map<number, { cpus: number; memoryMb: number }>();
  for (const run of ours) {
    const share = 1 / run.machineIds.length;
    for (const machineId of run.machineIds) {
      const { cpus, memoryMb } = taken.get(machineId) ?? { cpus: 0, memoryMb: 0 };
      const memory = memoryMb + run.tasks * run.memoryMbPerTask * share;
      taken.set(machineId, { cpus: cpus + cpusOf(run) * share, memoryMb: memory });
    }
  }
  const left = (all: number, own = 0): number => Math.max(0, Math.ceil(all - own));
  return {
    ...load,
    busy: load.busy.map(({ machineId, cpus, memoryMb }) => {
      const own = taken.get(machineId);
      return { machineId, cpus: left(cpus, own?.cpus), memoryMb: left(memoryMb, own?.memoryMb) };
    }),
  };
}

function holdFromArray(array: RecordedHoldArray): RecordedHold {
  const [id, siteId, kind, machines, from, to, holdId, pools, madeAt, endedAt, preempts] = array;
  const held = heldFromArray([id, siteId, kind, machines, from, to, holdId, pools]);
  return { holdId, siteId, held, madeAt, endedAt, preempts };
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
      r.planned_s, r.site_id, greatest(0, extract(epoch FROM CASE r.placed_by WHEN 'SITE' THEN r.started_at ELSE r.assigned_at END - j.submitted_at)::float8), ${raw(limitOfRun)})
         WHEN j.ended_at IS NOT NULL THEN '"NEVER"'::json END) ORDER BY j.id), '[]')::text AS texts,
    count(*)::integer AS jobs, max(j.id) AS last
  FROM (SELECT * FROM jobs
         WHERE submitted_at < to_timestamp(${to}::float8) AND id > ${after}::bigint
           AND (submitted_at >= to_timestamp(${from}::float8) OR ended_at IS NULL OR ended_at > to_timestamp(${from}::float8))
         ORDER BY id LIMIT ${PAGE}) j
  JOIN users u ON u.id = j.user_id
  LEFT JOIN LATERAL (
    SELECT assigned_at, started_at, ended_at, planned_s, site_id, placed_by, limit_s FROM runs
     WHERE job_id = j.id AND started_at IS NOT NULL AND (cause IS NULL OR cause NOT IN ('LOST', 'PREEMPTED', 'REQUEUED'))
     ORDER BY epoch DESC LIMIT 1) r ON true`;
