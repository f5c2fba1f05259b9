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
