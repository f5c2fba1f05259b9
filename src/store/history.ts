/**
 * What machines and licenses did over time, and who used them: worked out from the jobs and runs that are kept, so that nothing
 * has to be sampled and every point is exact. A run counts from its assignment to its end: as long as it holds what it was given.
 */
import type { Database } from './pool.js';
import { join, raw, type Sql, sql } from './sql.js';
import { rows } from './statement.js';

/** From `from` (included) to `to` (not included), epoch seconds, in `points` intervals of equal length. */
export interface Window {
  from: number;
  to: number;
  points: number;
}

/** Means over one interval. */
export interface LoadRow {
  /** Its beginning, epoch seconds. */
  at: number;
  cpus: number;
  running: number;
  /** Jobs that waited, held ones included; null: of one site it is not kept. */
  waiting: number | null;
}

export interface LicenseUseRow {
  at: number;
  inUse: number;
}

export type UsageKey = 'USER' | 'SITE' | 'APPLICATION';

export interface UsageRow {
  userId: number | null;
  siteId: number | null;
  application: string | null;
  runs: number;
  cpuS: number;
  endedJobs: number;
  failedJobs: number;
  meanWaitS: number | null;
}

const at = (epochS: number): Sql => sql`to_timestamp(${epochS}::float8)`;

/** Most runs are on one machine, and to sum up an array takes longer than the rest. */
const CPUS = sql`r.cpus_per_task * CASE cardinality(r.machine_tasks) WHEN 1 THEN r.machine_tasks[1] ELSE (SELECT sum(v) FROM unnest(r.machine_tasks) v) END`;

/** Jobs and runs that overlap the window. By the jobs, which have an index on their ends. */
const runsWithin = ({ from, to }: Window): Sql => sql`
jobs j JOIN runs r ON r.job_id = j.id
 WHERE (j.ended_at IS NULL OR j.ended_at > ${at(from)}) AND j.submitted_at < ${at(to)}
   AND r.assigned_at < ${at(to)} AND (r.ended_at IS NULL OR r.ended_at > ${at(from)})`;

/**
 * Means of sums over what holds from `s` to `e` (epoch seconds, null: still), each of a weight: one pass, however long things hold.
 * A beginning counts for the rest of its interval and wholly for all later ones; an end takes the same back.
 *
 * @param held selects `s`, `e` and the weights `w1`, `w2`, …
 */
async function means(
  pool: Database['pool'],
  window: Window,
  weights: number,
  held: Sql,
): Promise<number[][]> {
  const { from, to, points } = window;
  const width = (to - from) / points;
  const names = Array.from({ length: weights }, (_, i) => raw(`w${i + 1}`));
  const sums = join(
    names.flatMap((name) => [
      sql`sum(sign * ${name})`,
      sql`sum(sign * ${name} * (b + 1 - x / ${width}::float8))`,
    ]),
    ', ',
  );
  const found = await rows<{ b: number; v: number[] }>(
    pool,
    sql`
SELECT b, ARRAY[${sums}] AS v
  FROM (${held}) held CROSS JOIN LATERAL
       (VALUES (greatest(s - ${from}::float8, 0), 1), (e - ${from}::float8, -1)) step (x, sign) CROSS JOIN LATERAL
       (SELECT least(floor(x / ${width}::float8), ${points - 1})::integer AS b) placed
 WHERE x < ${to - from}::float8 GROUP BY b`,
  );
  const byInterval = new Map(found.map(({ b, v }) => [b, v]));
  const before = names.map(() => 0);
  return Array.from({ length: points }, (_, b) => {
    const v = byInterval.get(b);
    return before.map((level, i) => {
      // What is left of a difference of large sums is no load.
      const mean = Math.max(0, round(level + (v?.[2 * i + 1] ?? 0)));
      before[i] = level + (v?.[2 * i] ?? 0);
      return mean;
    });
  });
}

const round = (value: number): number => Math.round(value * 1e6) / 1e6;
const beginning = ({ from, to, points }: Window, i: number): number => from + ((to - from) * i) / points;

const SECONDS = (column: string): Sql => raw(`extract(epoch FROM ${column})::float8`);

/** Load of a site, or of the whole grid (null). */
export async function loadHistory(
  pool: Database['pool'],
  window: Window,
  siteId: number | null,
): Promise<LoadRow[]> {
  const site = siteId === null ? sql`true` : sql`r.site_id = ${siteId}`;
  const running = means(
    pool,
    window,
    2,
    sql`SELECT ${SECONDS('r.assigned_at')} AS s, ${SECONDS('r.ended_at')} AS e, (${CPUS})::float8 AS w1, 1::float8 AS w2 FROM ${runsWithin(window)} AND ${site}`,
  );
  // A job that has not ended runs or waits.
  const alive =
    siteId === null
      ? means(
          pool,
          window,
          1,
          sql`
SELECT ${SECONDS('submitted_at')} AS s, ${SECONDS('ended_at')} AS e, 1::float8 AS w1 FROM jobs
 WHERE (ended_at IS NULL OR ended_at > ${at(window.from)}) AND submitted_at < ${at(window.to)}`,
        )
      : null;
  const [ran, lived] = await Promise.all([running, alive]);
  return ran.map(([cpus, jobs], i) => ({
    at: beginning(window, i),
    cpus: cpus!,
    running: jobs!,
    waiting: lived && Math.max(0, round(lived[i]![0]! - jobs!)),
  }));
}

/** Copies of a kind of license in use, over all its pools. */
export async function licenseHistory(
  pool: Database['pool'],
  window: Window,
  kind: string,
): Promise<LicenseUseRow[]> {
  const found = await means(
    pool,
    window,
    1,
    sql`
SELECT ${SECONDS('r.assigned_at')} AS s, ${SECONDS('r.ended_at')} AS e, 1::float8 AS w1 FROM ${runsWithin(window)}
   AND r.license_ids && (SELECT coalesce(array_agg(id), '{}') FROM licenses WHERE kind = ${kind})`,
  );
  return found.map(([inUse], i) => ({ at: beginning(window, i), inUse: inUse! }));
}

/**
 * Who, what or where used how much, most CPU time first. CPU time is what was allocated within the window; jobs are those that ended
 * within it.
 *
 * @param owner only this user's jobs; null: everybody's
 */
export function usage(
  pool: Database['pool'],
  window: Omit<Window, 'points'>,
  { by, owner, now, limit }: { by: UsageKey; owner: number | null; now: number; limit: number },
): Promise<UsageRow[]> {
  const [ofRun, ofJob] = {
    USER: ['j.user_id', 'j.user_id'],
    SITE: ['r.site_id', 'j.site_id'],
    APPLICATION: ['j.application', 'j.application'],
  }[by].map((column) => raw(column)) as [Sql, Sql];
  const { from, to } = window;
  const own = owner === null ? sql`true` : sql`j.user_id = ${owner}`;
  const column = (name: UsageKey, type: string): Sql => (by === name ? sql`key` : raw(`NULL::${type}`));
  return rows(
    pool,
    sql`
WITH used AS (
  SELECT ${ofRun} AS key, count(*) AS runs,
         sum(${CPUS} * extract(epoch FROM least(coalesce(r.ended_at, ${at(now)}), ${at(to)}) - greatest(r.assigned_at, ${at(from)}))) AS cpu
    FROM ${runsWithin({ from, to, points: 1 })} AND ${own} GROUP BY 1),
ended AS (
  SELECT ${ofJob} AS key, count(*) AS jobs, count(*) FILTER (WHERE j.state = 'FAILED') AS failed,
         avg(extract(epoch FROM j.started_at - j.submitted_at)) AS wait
    FROM jobs j WHERE j.ended_at >= ${at(from)} AND j.ended_at < ${at(to)} AND ${own} AND ${ofJob} IS NOT NULL GROUP BY 1)
SELECT ${column('USER', 'integer')} AS "userId", ${column('SITE', 'integer')} AS "siteId", ${column('APPLICATION', 'text')} AS application,
       coalesce(runs, 0) AS runs, greatest(coalesce(cpu, 0), 0)::float8 AS "cpuS",
       coalesce(jobs, 0) AS "endedJobs", coalesce(failed, 0) AS "failedJobs", wait::float8 AS "meanWaitS"
  FROM used FULL JOIN ended USING (key) ORDER BY "cpuS" DESC, key LIMIT ${limit}`,
  );
}
