/**
 * What machines and licenses did over time, and who used them: worked out from the jobs and runs that are kept, so that nothing
 * has to be sampled and every point is exact. A run counts from its assignment to its end: as long as it holds what it was given.
 * Up to a day is read from the jobs and runs themselves. Beyond, in whole hours, what has ended is read from the sums that the database
 * keeps of it (`used_hours`, `used_resources`), so that no window takes long.
 */
import type { Database } from './pool.js';
import { empty, join, raw, type Sql, sql } from './sql.js';
import { rows } from './statement.js';

/** From `from` (included) to `to` (not included), epoch seconds, in `points` intervals of equal length. */
export interface Window {
  from: number;
  to: number;
  points: number;
}

const HOUR_S = 3_600;
const EXACT_MAX_S = 86_400;

const isLong = ({ from, to }: Pick<Window, 'from' | 'to'>): boolean => to - from > EXACT_MAX_S;
const floorHour = (at: number): number => Math.floor(at / HOUR_S) * HOUR_S;

/** A long window begins with an hour, and so do its intervals: it has no more of them than were asked for. */
function settled(window: Window): Window {
  if (!isLong(window)) return window;
  const from = floorHour(window.from);
  const hours = Math.ceil((window.to - from) / HOUR_S);
  const width = Math.ceil(hours / window.points);
  const points = Math.ceil(hours / width);
  return { from, to: from + points * width * HOUR_S, points };
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

export interface InUseRow {
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
  /** Of it what is charged: without jobs of classes that are not, and without work that was lost to preemption. */
  chargedCpuS: number;
  endedJobs: number;
  failedJobs: number;
  meanWaitS: number | null;
  /** In order of kind; none of which nothing was had. */
  resources: UsedResource[];
}

/** What runs lost that were stopped for other jobs, or for holds. */
export interface LostWorkRow {
  siteId: number;
  class: string | null;
  preemptionClass: number;
  runs: number;
  cpuS: number;
}

/** What was had of a kind of resource. */
export interface UsedResource {
  /** Of a license with `license:` before it. */
  resource: string;
  /** Amount × time, seconds. */
  amountS: number;
}

const at = (epochS: number): Sql => sql`to_timestamp(${epochS}::float8)`;

/** Jobs as j; null: everybody's. */
const ownedBy = (owner: number | null): Sql => (owner === null ? sql`true` : sql`j.user_id = ${owner}`);

/** Most runs are on one machine, and to sum up an array takes longer than the rest. */
const CPUS = sql`CASE WHEN r.whole_cpus IS NOT NULL THEN (SELECT sum(v) FROM unnest(r.whole_cpus) v)
  ELSE r.cpus_per_task * CASE cardinality(r.machine_tasks) WHEN 1 THEN r.machine_tasks[1] ELSE (SELECT sum(v) FROM unnest(r.machine_tasks) v) END END`;

/** Epoch seconds. `extract` would make a `numeric` of them first, which takes longer than everything else here. */
const seconds = (time: Sql): Sql => sql`date_part('epoch', ${time})`;
const ASSIGNED = seconds(raw('r.assigned_at'));
const ENDED = seconds(raw('r.ended_at'));

/**
 * Runs that held machines in the window: an index (BRIN) tells in which parts of the table they may be. In a long one: those that have not
 * ended.
 */
const runsWithin = (window: Pick<Window, 'from' | 'to'>): Sql =>
  isLong(window)
    ? sql`r.assigned_at < ${at(window.to)} AND r.ended_at IS NULL`
    : sql`r.assigned_at < ${at(window.to)} AND (r.ended_at IS NULL OR r.ended_at > ${at(window.from)})`;

/**
 * Means of sums over what holds from `s` to `e` (epoch seconds, null: still), each of a weight: one pass, however long things hold.
 * What begins in the same interval and ends in the same is added up by the database, so that few rows are left to go through. A
 * beginning counts for the rest of its interval and wholly for all later ones; an end takes the same back.
 *
 * @param held selects `s`, `e` and the weights `w1`, `w2`, …
 * @param kept which hours of a long window have what is not held any more, and which of their columns the weights are: for each the one of
 *   what holds on after the hour, and the one of what that comes to in the hour itself
 */
async function means(
  pool: Database['pool'],
  window: Window,
  weights: number,
  held: Sql,
  kept: {
    table: 'used_hours' | 'used_resources';
    hours: Sql;
    columns: readonly (typeof KEPT)[keyof typeof KEPT][];
  },
): Promise<number[][]> {
  const { from, to, points } = window;
  const width = (to - from) / points;
  const names = Array.from({ length: weights }, (_, i) => raw(`w${i + 1}`));
  const sums = join(
    names.flatMap((name) => [
      sql`sum(${name})`,
      sql`sum(${name} * (b1 + 1 - x1))`,
      sql`sum(${name} * (b2 + 1 - x2))`,
    ]),
    ', ',
  );
  // x: in intervals from the beginning of the window; b: which one. What goes on beyond the window ends in none.
  // Of an hour it is known how many more hold after it than before. Of what has ended nothing holds after the last one.
  const hours = sql`
UNION ALL
SELECT least((hour - ${from}::bigint) / ${width}::bigint, ${points})::integer AS b1, NULL, ARRAY[${join(
    kept.columns.flatMap((columns) => {
      const [net, rest] = columns.map((column) => raw(column)) as [Sql, Sql];
      return [
        sql`sum(${net})`,
        sql`sum(${rest} + ${net} * (${width}::bigint - (hour - ${from}::bigint) % ${width}::bigint - ${HOUR_S})) / ${width}::float8`,
      ];
    }),
    ', ',
  )}]::float8[]
  FROM ${raw(kept.table)} WHERE ${kept.hours} AND hour >= ${from}::bigint GROUP BY 1`;
  const found = await rows<{ b1: number; b2: number | null; v: number[] }>(
    pool,
    sql`
SELECT b1, b2, ARRAY[${sums}] AS v
  FROM (SELECT *, least(floor(x1), ${points - 1})::integer AS b1, least(floor(x2), ${points})::integer AS b2
          FROM (SELECT *, greatest(s - ${from}::float8, 0) / ${width}::float8 AS x1,
                       coalesce((e - ${from}::float8) / ${width}::float8, ${points}) AS x2
                  FROM (${held}) held) placed) counted
 GROUP BY b1, b2${isLong(window) ? hours : empty}`,
  );
  const steps = names.map(() => Array.from({ length: points + 1 }, () => ({ whole: 0, part: 0 })));
  for (const { b1, b2, v } of found) {
    steps.forEach((step, i) => {
      if (b2 === null) {
        const [net, rest] = v.slice(2 * i, 2 * i + 2) as [number, number];
        step[0]!.whole -= net;
        step[0]!.part -= net;
        step[b1]!.whole += net;
        step[b1]!.part += rest;
        return;
      }
      const [sum, begun, ended] = v.slice(3 * i, 3 * i + 3) as [number, number, number];
      step[b1]!.whole += sum;
      step[b1]!.part += begun;
      step[b2]!.whole -= sum;
      step[b2]!.part -= ended;
    });
  }
  const before = names.map(() => 0);
  return Array.from({ length: points }, (_, b) =>
    before.map((level, i) => {
      const { whole, part } = steps[i]![b]!;
      before[i] = level + whole;
      // What is left of a difference of large sums is no load.
      return Math.max(0, round(level + part));
    }),
  );
}

const round = (value: number): number => Math.round(value * 1e6) / 1e6;
const beginning = ({ from, to, points }: Window, i: number): number => from + ((to - from) * i) / points;

/** Columns of the tables of hours. */
const KEPT = { run: ['runs', 'run_s'], cpu: ['cpus', 'cpu_s'], held: ['held', 'held_s'] } as const;

/** Load of a site, or of the whole grid (null). */
export async function loadHistory(
  pool: Database['pool'],
  asked: Window,
  siteId: number | null,
): Promise<LoadRow[]> {
  const window = settled(asked);
  const site = ranAt(siteId);
  const running = means(
    pool,
    window,
    2,
    sql`
SELECT ${ASSIGNED} AS s, ${ENDED} AS e, (${CPUS})::float8 AS w1, 1::float8 AS w2
  FROM runs r WHERE ${runsWithin(window)} AND ${site}`,
    {
      table: 'used_hours',
      hours: hoursAt(siteId),
      columns: [KEPT.cpu, KEPT.run],
    },
  );
  // A job that has not ended runs or waits. Of those that have, the index on their ends says all that is asked here.
  const alive =
    siteId === null
      ? means(
          pool,
          window,
          1,
          isLong(window)
            ? sql`SELECT ${window.from}::float8 AS s, NULL::float8 AS e, coalesce(sum(jobs), 0)::float8 AS w1 FROM job_counts`
            : sql`
SELECT ${seconds(raw('submitted_at'))} AS s, ${seconds(raw('ended_at'))} AS e, 1::float8 AS w1 FROM jobs
 WHERE ended_at > ${at(window.from)} AND submitted_at < ${at(window.to)}
UNION ALL
SELECT ${seconds(raw('submitted_at'))}, NULL, 1 FROM jobs WHERE ended_at IS NULL AND submitted_at < ${at(window.to)}`,
          { table: 'used_hours', hours: sql`kind = 'JOBS'`, columns: [KEPT.run] },
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
  asked: Window,
  kind: string,
): Promise<InUseRow[]> {
  const window = settled(asked);
  const found = await means(
    pool,
    window,
    1,
    sql`
SELECT ${ASSIGNED} AS s, ${ENDED} AS e, (SELECT sum(coalesce(amount, 1)) FROM unnest(r.license_ids, r.license_amounts) AS u (id, amount) WHERE id = ANY (k.ids))::float8 AS w1
  FROM runs r, (SELECT coalesce(array_agg(id), '{}') AS ids FROM licenses WHERE kind = ${kind}) k
 WHERE ${runsWithin(window)} AND r.license_ids && k.ids`,
    {
      table: 'used_hours',
      hours: sql`kind = 'LICENSE' AND key IN (SELECT id::text FROM licenses WHERE kind = ${kind})`,
      columns: [KEPT.run],
    },
  );
  return inUseOf(found, window);
}

/** A kind of machines' resources other than CPUs and memory, such as devices, at a site or in the whole grid (null). */
export async function resourceHistory(
  pool: Database['pool'],
  asked: Window,
  kind: string,
  siteId: number | null,
): Promise<InUseRow[]> {
  const window = settled(asked);
  const found = await means(
    pool,
    window,
    1,
    sql`
SELECT ${ASSIGNED} AS s, ${ENDED} AS e, h.amount::float8 AS w1
  FROM runs r, triggers.had(r.resources_per_task, r.taken, r.machine_tasks, '{}', '{}') h
 WHERE ${runsWithin(window)} AND ${ranAt(siteId)} AND ${HAD_UNITS} AND h.resource = ${kind}`,
    {
      table: 'used_resources',
      // Licenses are kept beside them.
      hours: sql`${hoursAt(siteId)} AND resource = ${kind} AND NOT starts_with(resource, 'license:')`,
      columns: [KEPT.held],
    },
  );
  return inUseOf(found, window);
}

const inUseOf = (found: readonly number[][], window: Window): InUseRow[] =>
  found.map(([inUse], i) => ({ at: beginning(window, i), inUse: inUse! }));

/** What tasks ask of machines besides CPUs and memory, or what was chosen for them by name. */
const HAD_UNITS = raw('(r.resources_per_task IS NOT NULL OR r.taken IS NOT NULL)');

/** The runs of a site, or of the whole grid (null). */
const ranAt = (siteId: number | null): Sql => (siteId === null ? sql`true` : sql`r.site_id = ${siteId}`);

/** The hours of a site, or of the whole grid (null). */
const hoursAt = (siteId: number | null): Sql =>
  sql`kind = 'SITE' AND ${siteId === null ? sql`true` : sql`key = ${String(siteId)}`}`;

/**
 * Who, what or where used how much, most CPU time first. CPU time is what was allocated within the window; jobs are those that ended
 * within it.
 *
 * @param owner only this user's jobs; null: everybody's
 */
export function usage(
  pool: Database['pool'],
  asked: Omit<Window, 'points'>,
  { by, owner, now, limit }: { by: UsageKey; owner: number | null; now: number; limit: number },
): Promise<UsageRow[]> {
  const [ofRun, ofJob, kind, ofHour] = {
    USER: ['j.user_id', 'j.user_id', "'APPLICATION'", 'user_id'],
    SITE: ['r.site_id', 'j.site_id', "'SITE'", 'key::integer'],
    APPLICATION: ['j.application', 'j.application', "'APPLICATION'", 'key'],
  }[by].map((column) => raw(column)) as [Sql, Sql, Sql, Sql];
  const long = isLong(asked);
  const { from, to } = long ? { from: floorHour(asked.from), to: -floorHour(-asked.to) } : asked;
  const own = ownedBy(owner);
  const column = (name: UsageKey, type: string): Sql => (by === name ? sql`key` : raw(`NULL::${type}`));
  const lasted = sql`(least(coalesce(${ENDED}, ${now}::float8), ${to}::float8) - greatest(${ASSIGNED}, ${from}::float8))`;
  const ofRuns = sql`
  SELECT ${ofRun} AS key, count(*) AS runs, sum(${CPUS} * ${lasted}) AS cpu
    FROM runs r JOIN jobs j ON j.id = r.job_id WHERE ${runsWithin({ from, to })} AND ${own} GROUP BY 1`;
  // Few runs, found by indexes of their own however long the window is: what was lost, and all of jobs that are not charged.
  const uncharged = (runs: Sql, since: Sql) => sql`
  SELECT ${ofRun} AS key, ${CPUS} * greatest(0, least(coalesce(${ENDED}, ${now}::float8), ${to}::float8) - greatest(${since}, ${from}::float8)) AS cpu
    FROM jobs j JOIN runs r ON r.job_id = j.id WHERE ${runs} AND r.assigned_at < ${at(to)} AND ${own}`;
  const free = sql`
  ${uncharged(
    sql`r.cause = 'PREEMPTED' AND j.charged AND r.ended_at > ${at(from)}`,
    seconds(raw('greatest(coalesce(r.started_at, r.ended_at), r.checkpoint_at)')),
  )}
  UNION ALL ${uncharged(sql`NOT j.charged`, ASSIGNED)}`;
  const endedJobs = sql`
  SELECT ${ofJob} AS key, count(*) AS jobs, count(*) FILTER (WHERE j.state = 'FAILED') AS failed,
         avg(${seconds(raw('j.started_at - j.submitted_at'))}) AS wait
    FROM jobs j WHERE j.ended_at >= ${at(from)} AND j.ended_at < ${at(to)} AND ${own} AND ${ofJob} IS NOT NULL GROUP BY 1`;
  // What held at the beginning of the window ended in it or behind it; what holds after an hour holds in the rest of the window too.
  const sums = long
    ? sql`
hours AS (
  SELECT ${ofHour} AS key, hour < ${to}::bigint AS is_in, ${to}::bigint - hour - ${HOUR_S} AS rest_s,
         runs, cpus, cpu_s, begun, ended_jobs, failed_jobs, started_jobs, wait_s
    FROM used_hours j WHERE kind = ${kind} AND hour >= ${from}::bigint AND ${own}),
used AS (
  SELECT key, sum(runs) AS runs, sum(cpu) AS cpu FROM (
    SELECT key, CASE WHEN is_in THEN begun ELSE 0 END - runs AS runs,
           CASE WHEN is_in THEN cpu_s + cpus * rest_s ELSE 0 END - cpus * ${to - from}::float8 AS cpu FROM hours
    UNION ALL (${ofRuns})) parts GROUP BY 1 HAVING sum(runs) > 0),
ended AS (
  SELECT key, sum(ended_jobs) AS jobs, sum(failed_jobs) AS failed, sum(wait_s) / nullif(sum(started_jobs), 0) AS wait
    FROM hours WHERE is_in GROUP BY 1 HAVING sum(ended_jobs) > 0)`
    : sql`used AS (${ofRuns}), ended AS (${endedJobs})`;
  const resources = sql`
SELECT ${ofRun} AS key, resource, amount * ${lasted} AS amount_s
  FROM runs r JOIN jobs j ON j.id = r.job_id, triggers.had(r.resources_per_task, r.taken, r.machine_tasks, r.license_ids, r.license_amounts)
 WHERE ${runsWithin({ from, to })} AND ${own} AND (${HAD_UNITS} OR r.license_ids <> '{}')${
   long
     ? sql`
UNION ALL
SELECT ${ofHour}, resource, CASE WHEN hour < ${to}::bigint THEN held_s + held * (${to}::bigint - hour - ${HOUR_S}) ELSE 0 END - held * ${to - from}::float8
  FROM used_resources j WHERE kind = ${kind} AND hour >= ${from}::bigint AND ${own}`
     : empty
 }`;
  return rows(
    pool,
    sql`
WITH ${sums}, free AS (SELECT key, sum(cpu) AS cpu FROM (${free}) parts GROUP BY 1), had AS (SELECT key, resource, sum(amount_s) AS amount_s FROM (${resources}) parts GROUP BY 1, 2 HAVING sum(amount_s) > 1e-6)
SELECT ${column('USER', 'integer')} AS "userId", ${column('SITE', 'integer')} AS "siteId", ${column('APPLICATION', 'text')} AS application,
       coalesce(runs, 0)::float8 AS runs, greatest(coalesce(used.cpu, 0), 0)::float8 AS "cpuS",
       greatest(coalesce(used.cpu, 0) - coalesce(free.cpu, 0), 0)::float8 AS "chargedCpuS",
       coalesce(jobs, 0)::float8 AS "endedJobs", coalesce(failed, 0)::float8 AS "failedJobs", wait::float8 AS "meanWaitS",
       coalesce((SELECT json_agg(json_build_object('resource', resource, 'amountS', amount_s) ORDER BY resource) FROM had h
                  WHERE h.key = coalesce(used.key, ended.key)), '[]') AS resources
  FROM used FULL JOIN ended USING (key) LEFT JOIN free USING (key) ORDER BY "cpuS" DESC, key LIMIT ${limit}`,
  );
}

/**
 * What was lost by runs that ended within the window because they were stopped for others or for holds (jobs.md, "Preemption", rule 2), by site and class,
 * most first.
 *
 * @param owner only this user's jobs; null: everybody's
 */
export const lostWork = (
  pool: Database['pool'],
  { from, to }: Pick<Window, 'from' | 'to'>,
  owner: number | null,
): Promise<LostWorkRow[]> =>
  rows(
    pool,
    sql`
SELECT r.site_id AS "siteId", j.class, j.preemption_class AS "preemptionClass", count(*)::float8 AS runs,
       sum(${CPUS} * greatest(0, ${ENDED} - ${seconds(raw('greatest(coalesce(r.started_at, r.ended_at), r.checkpoint_at)'))}))::float8 AS "cpuS"
  FROM runs r JOIN jobs j ON j.id = r.job_id
 WHERE r.cause = 'PREEMPTED' AND r.ended_at >= ${at(from)} AND r.ended_at < ${at(to)} AND ${ownedBy(owner)}
 GROUP BY 1, 2, 3 ORDER BY "cpuS" DESC, 1, 2, 3`,
  );
