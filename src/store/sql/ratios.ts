/** What runs have shown: averages and the series of job ratios. */
import { ratioPointRow } from './rows.js';

/** What schedulers know of a record; alias v. */
export const averages = `json_build_object('application', v.application, 'userId', v.user_id, 'kinds', v.kinds, 'count', v.count,
  'turnaroundS', v.turnaround_s, 'executionS', v.execution_s, 'ioS', v.io_s)`;

/** `CJR = JET/JTT` of sums; runs that took no time are taken for computation (as the core's JobHistory). */
const computation = (execution: string, turnaround: string): string =>
  `CASE WHEN ${turnaround} > 0 THEN least(1, greatest(0, ${execution} / ${turnaround})) ELSE 1 END`;

const latest = '(SELECT greatest((SELECT max(id) FROM job_ratios), (SELECT id FROM job_ratios_horizon)))';

/** $1: application. Answers [latest point of any series, RatioRow or null], of one instant. */
export const ratio = `
SELECT json_build_array(${latest}, (
  SELECT json_build_object('application', $1::text, 'runs', runs, 'turnaroundS', turnaround_s / runs, 'executionS', execution_s / runs,
    'ioS', io_s / runs, 'computation', ${computation('execution_s', 'turnaround_s')},
    'updatedAt', extract(epoch FROM updated_at)::float8)
  FROM (SELECT sum(count)::float8 AS runs, sum(count * turnaround_s) AS turnaround_s, sum(count * execution_s) AS execution_s,
               sum(count * io_s) AS io_s, max(updated_at) AS updated_at FROM run_averages WHERE application = $1) t
 WHERE runs > 0))::text AS v`;

export const latestPoint = `SELECT ${latest}::text AS v`;

/** $1: behind this point; $2: application or null; $3: how many. Answers null where retention has passed it. */
export const pointsSince = `
SELECT CASE WHEN $1::bigint >= (SELECT id FROM job_ratios_horizon) THEN (
  SELECT coalesce(json_agg(${ratioPointRow} ORDER BY v.id), '[]') FROM (
    SELECT * FROM job_ratios WHERE id > $1::bigint AND ($2::text IS NULL OR application = $2) ORDER BY id LIMIT $3) v) END::text AS v`;

/**
 * Enters runs that ended well in the history of their applications: averages, and a point of the series for each, in the order of jobs.
 * Comes last in its transaction: behind the event lock nobody else writes averages, and points are numbered in the order of
 * commits. Rules: job-ratio.md, "Job Analyzer and Monitor"; the same, one run at a time, as rules.ts (observedRun) and the core
 * (averagesWith, resourceKinds) have them. The mean over a batch is that over its runs one after another.
 * A point is never later than now, whatever the agent's clock says: retention goes by it. $1: jobs.
 */
export const learnFromRuns = `
WITH ended AS MATERIALIZED (
  SELECT j.id, j.application, j.user_id, r.epoch, r.site_id, r.ended_at, r.machine_ids,
         '[' || coalesce(to_json(j.os)::text, 'null') || ',' || coalesce(to_json(j.arch)::text, 'null')
             || CASE WHEN j.licences = '{}' THEN ''
                     ELSE (SELECT string_agg(',' || to_json(kind)::text, '' ORDER BY place) FROM unnest(j.licences) WITH ORDINALITY AS l (kind, place)) END
             || ']' AS kinds,
         w.wall_s, least(w.wall_s, greatest(0, coalesce(r.io_wait_s, w.wall_s - r.cpu_s / (j.tasks * j.cpus_per_task), 0))) AS io_s
    FROM unnest($1::bigint[]) AS t (id) JOIN jobs j USING (id) JOIN runs r ON r.job_id = j.id AND r.epoch = j.epoch,
         LATERAL (SELECT extract(epoch FROM r.ended_at - r.started_at)::float8 AS wall_s) w
   WHERE w.wall_s > 0
), power AS MATERIALIZED (
  SELECT e.id, min(m.benchmark) AS slowest FROM ended e, unnest(e.machine_ids) AS u (machine_id) JOIN machines m ON m.id = u.machine_id
   GROUP BY e.id
), run AS MATERIALIZED (
  SELECT e.*, p.slowest, p.slowest / reference.power AS f
    FROM ended e JOIN power p USING (id),
         (SELECT coalesce((document ->> 'referencePower')::float8, 1) AS power FROM policies ORDER BY version DESC LIMIT 1) reference
), known AS MATERIALIZED (
  SELECT application, sum(count) AS runs, sum(count * turnaround_s) AS turnaround_s, sum(count * execution_s) AS execution_s
    FROM run_averages WHERE application IN (SELECT application FROM run) GROUP BY 1
), averaged AS (
  INSERT INTO run_averages AS a (application, user_id, kinds, count, turnaround_s, execution_s, io_s, event_id, updated_at)
    SELECT application, user_id, kinds, count(*), avg(f * wall_s), avg(f * (wall_s - io_s)), avg(f * io_s),
           (SELECT max(id) FROM events), clock_timestamp()
      FROM run GROUP BY 1, 2, 3
    ON CONFLICT (application, user_id, kinds) DO UPDATE SET count = a.count + excluded.count,
      turnaround_s = (a.turnaround_s * a.count + excluded.turnaround_s * excluded.count) / (a.count + excluded.count),
      execution_s = (a.execution_s * a.count + excluded.execution_s * excluded.count) / (a.count + excluded.count),
      io_s = (a.io_s * a.count + excluded.io_s * excluded.count) / (a.count + excluded.count),
      event_id = excluded.event_id, updated_at = excluded.updated_at
), summed AS (
  SELECT r.*, coalesce(k.runs, 0) + count(*) OVER so_far AS runs,
         coalesce(k.turnaround_s, 0) + sum(r.f * r.wall_s) OVER so_far AS turnaround_sum,
         coalesce(k.execution_s, 0) + sum(r.f * (r.wall_s - r.io_s)) OVER so_far AS execution_sum
    FROM run r LEFT JOIN known k USING (application)
  WINDOW so_far AS (PARTITION BY r.application ORDER BY r.id)
)
INSERT INTO job_ratios (application, at, job_id, epoch, site_id, turnaround_s, io_s, site_power, runs, computation)
  SELECT application, least(ended_at, clock_timestamp()), id, epoch, site_id, wall_s, io_s, slowest, runs, ${computation('execution_sum', 'turnaround_sum')}
    FROM summed ORDER BY id`;
