import { dataJson, directoryWhere, jobArray } from './grid.js';

/*
 * Leases are judged by the database's clock: those of the workers may differ.
 */

/**
 * What waits for a worker: new ones, and those whose worker has been silent. One that was taken up too often (it may be what
 * ends the workers) fails. $1: silence allowed (s); $2: attempts. Answers [[id, attempts until now], …], oldest first.
 */
export const dueSimulations = `
WITH hopeless AS (
  UPDATE simulations SET state = 'FAILED', ended_at = clock_timestamp(), message = 'its workers died ' || attempts || ' times'
   WHERE state = 'RUNNING' AND worker_seen_at < clock_timestamp() - make_interval(secs => $1::float8) AND attempts >= $2
)
SELECT coalesce(json_agg(json_build_array(id, attempts) ORDER BY id), '[]')::text AS v FROM simulations
 WHERE state = 'QUEUED' OR (state = 'RUNNING' AND worker_seen_at < clock_timestamp() - make_interval(secs => $1::float8) AND attempts < $2)`;

/**
 * Makes a due one this worker's. $1: id; $2: worker; $3: silence allowed (s); $4: attempts. Answers
 * [policy in force at the time of asking, candidate, from (s), to (s), directory as it is now, data as it is now]; nothing when it
 * is not due any more.
 */
export const claimSimulation = `
WITH mine AS (
  UPDATE simulations SET state = 'RUNNING', worker = $2, worker_seen_at = clock_timestamp(), attempts = attempts + 1, progress = 0
   WHERE id = $1 AND attempts < $4
     AND (state = 'QUEUED' OR (state = 'RUNNING' AND worker_seen_at < clock_timestamp() - make_interval(secs => $3::float8)))
  RETURNING policy_version, candidate, from_at, to_at
)
SELECT json_build_array(p.document, m.candidate, extract(epoch FROM m.from_at)::float8, extract(epoch FROM m.to_at)::float8,
    ${directoryWhere("state = 'UP'")}, ${dataJson})::text AS v
  FROM mine m JOIN policies p ON p.version = m.policy_version`;

/** A sign of life. $1: id; $2: worker; $3: progress. Touches no row when it is not this worker's any more. */
export const touchSimulation = `
UPDATE simulations SET worker_seen_at = clock_timestamp(), progress = greatest(progress, $3::float8)
 WHERE id = $1 AND worker = $2 AND state = 'RUNNING'`;

/** $1: id; $2: worker; $3: result, or null; $4: message of a failure, or null. */
export const finishSimulation = `
UPDATE simulations SET state = CASE WHEN $3::jsonb IS NULL THEN 'FAILED' ELSE 'DONE' END::simulation_state, result = $3::jsonb, message = $4::text,
       progress = CASE WHEN $3::jsonb IS NULL THEN progress ELSE 1 END, ended_at = clock_timestamp()
 WHERE id = $1 AND worker = $2 AND state = 'RUNNING'`;

/** Given back by a worker that stops in order: that attempt does not count. $1: id; $2: worker. */
export const releaseSimulation = `
UPDATE simulations SET state = 'QUEUED', worker = NULL, worker_seen_at = NULL, attempts = attempts - 1
 WHERE id = $1 AND worker = $2 AND state = 'RUNNING'`;

/** $1: ended before (s). */
export const pruneSimulations = 'DELETE FROM simulations WHERE ended_at < to_timestamp($1::float8)';

/**
 * A page of the jobs submitted within a window, by id, with the last run of each that came to an end of its own: its seconds,
 * the seconds that were planned for it, and its site.
 *
 * $1: from (s); $2: to (s); $3: behind this id; $4: how many. Answers [[job, run or null], …], how many, and the last id.
 */
export const windowOfJobs = `
SELECT coalesce(json_agg(json_build_array(${jobArray},
    CASE WHEN r.site_id IS NOT NULL THEN
      json_build_array(extract(epoch FROM r.ended_at - r.started_at)::float8, r.planned_s, r.site_id) END) ORDER BY j.id), '[]')::text AS v,
    count(*)::integer AS jobs, max(j.id)::float8 AS last
  FROM (SELECT * FROM jobs WHERE submitted_at >= to_timestamp($1::float8) AND submitted_at < to_timestamp($2::float8) AND id > $3::bigint
         ORDER BY id LIMIT $4) j
  JOIN users u ON u.id = j.user_id
  LEFT JOIN LATERAL (
    SELECT started_at, ended_at, planned_s, site_id FROM runs
     WHERE job_id = j.id AND started_at IS NOT NULL AND ended_at IS NOT NULL AND cause <> 'LOST' ORDER BY epoch DESC LIMIT 1) r ON true`;
