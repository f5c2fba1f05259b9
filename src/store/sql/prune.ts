/**
 * Deletes the oldest events and moves the horizon in the same statement: who comes with a cursor below it is told that it is too
 * old. $1: before (s); $2: how many. Only a beginning of the log goes, up to the first event that is young: ids are in the
 * order of commits, while `at` may be slightly out of order. Answers how many.
 */
export const pruneEvents = `
WITH last AS (
  SELECT max(id) AS id FROM (
    SELECT id, bool_and(at < to_timestamp($1::float8)) OVER (ORDER BY id) AS old FROM (SELECT id, at FROM events ORDER BY id LIMIT $2) e
  ) o WHERE old
), moved AS (
  UPDATE events_horizon h SET id = last.id FROM last WHERE last.id > h.id
), gone AS (
  DELETE FROM events WHERE id <= (SELECT id FROM last) RETURNING 1
)
SELECT count(*)::text AS v FROM gone`;

/**
 * Jobs that ended long ago. Runs and outputs go with them (ON DELETE CASCADE), and their decisions. $1: before (s); $2: how many.
 * Answers how many.
 */
export const pruneJobs = `
WITH old AS MATERIALIZED (
  SELECT id FROM jobs WHERE ended_at < to_timestamp($1::float8) ORDER BY ended_at LIMIT $2 FOR UPDATE SKIP LOCKED
), decided AS (
  DELETE FROM decisions d USING old WHERE d.job_id = old.id
), gone AS (
  DELETE FROM jobs j USING old WHERE j.id = old.id RETURNING 1
)
SELECT count(*)::text AS v FROM gone`;

/** Submissions, and with them idempotency keys, whose quota period is over too. $1: before (s); $2: how many. */
export const pruneSubmissions = `
DELETE FROM submissions WHERE id IN (
  SELECT s.id FROM submissions s JOIN users u ON u.id = s.user_id
   WHERE s.at < to_timestamp($1::float8) - make_interval(secs => coalesce(u.submission_period_s, 0)) ORDER BY s.id LIMIT $2)`;

/** $1: not seen since (s). */
export const pruneProcesses = 'DELETE FROM processes WHERE seen_at < to_timestamp($1::float8)';

/** $1: how many to keep. */
export const pruneMargins = 'DELETE FROM margins WHERE id <= (SELECT max(id) FROM margins) - $1::bigint';

/**
 * The oldest points of job ratios, as events: only a beginning of the series goes, and the horizon with it. $1: before (s); $2: how
 * many. Answers how many.
 */
export const pruneRatios = `
WITH last AS (
  SELECT max(id) AS id FROM (
    SELECT id, bool_and(at < to_timestamp($1::float8)) OVER (ORDER BY id) AS old FROM (SELECT id, at FROM job_ratios ORDER BY id LIMIT $2) p
  ) o WHERE old
), moved AS (
  UPDATE job_ratios_horizon h SET id = last.id FROM last WHERE last.id > h.id
), gone AS (
  DELETE FROM job_ratios WHERE id <= (SELECT id FROM last) RETURNING 1
)
SELECT count(*)::text AS v FROM gone`;

/** Groups of which no job is left. $1: made before (s); $2: how many. */
export const pruneGroups = `
DELETE FROM job_groups WHERE id IN (
  SELECT g.id FROM job_groups g
   WHERE g.created_at < to_timestamp($1::float8)
     AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id BETWEEN g.first_job_id AND g.last_job_id AND j.group_id = g.id)
   ORDER BY g.id LIMIT $2)`;

/** Averages beyond so many, those first that no run has changed for longest. $1: how many to keep. */
export const pruneAverages =
  'DELETE FROM run_averages WHERE event_id <= (SELECT event_id FROM run_averages ORDER BY event_id DESC OFFSET $1 LIMIT 1)';

/** Older than rates are asked for. */
export const pruneTraffic = 'DELETE FROM traffic WHERE at <= extract(epoch FROM clock_timestamp()) - 3600';
