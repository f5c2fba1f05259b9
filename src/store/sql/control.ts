import { type JobFilter, jobConditions } from '../job-filter.js';
import { and, type Sql, sql } from '../sql.js';

/**
 * Finds and locks the jobs that an action is meant for, in the order of ids.
 * By ids: $1: the ids; $2: only this user's, or null. Ended jobs are among the answers.
 * Answers [[job, state, site], …].
 */
export const lockByIds = `
WITH job AS MATERIALIZED (
  SELECT id, state, site_id FROM jobs WHERE id = ANY ($1::bigint[]) AND user_id = coalesce($2::integer, user_id)
   ORDER BY id FOR NO KEY UPDATE
)
SELECT coalesce(json_agg(json_build_array(id, state, site_id)), '[]')::text AS v FROM job`;

/** By filter; only this user's, or null; one more than allowed. Only jobs that have not ended. Answers the same. */
export const lockByFilter = (filter: JobFilter, ownedBy: number | null, limit: number): Sql => sql`
WITH job AS MATERIALIZED (
  SELECT id, state, site_id FROM jobs j
   WHERE ended_at IS NULL AND ${and(jobConditions(filter))} AND user_id = coalesce(${ownedBy}::integer, user_id)
   ORDER BY id LIMIT ${limit} FOR NO KEY UPDATE
)
SELECT coalesce(json_agg(json_build_array(id, state, site_id)), '[]')::text AS v FROM job`;

/** Without a live run → CANCELLED; with one → CANCELLING. $1: jobs; $2: cause; $3: now. */
export const cancelJobs = `
UPDATE jobs SET seq = seq + 1, stop_cause = $2::end_cause,
    state = CASE WHEN state IN ('ASSIGNED', 'RUNNING') THEN 'CANCELLING' ELSE 'CANCELLED' END::job_state,
    cause = CASE WHEN state IN ('ASSIGNED', 'RUNNING') THEN NULL ELSE $2::end_cause END,
    ended_at = CASE WHEN state IN ('ASSIGNED', 'RUNNING') THEN NULL ELSE to_timestamp($3::float8) END,
    deadline_missed = deadline_missed OR coalesce(to_timestamp($3::float8) > deadline, false)
  WHERE id = ANY ($1::bigint[])`;

/** From a meta-queue it is held as if by the root. $1: jobs. */
export const holdJobs = `
UPDATE jobs SET state = 'HELD', site_id = CASE WHEN state <> 'QUEUED' THEN site_id END, seq = seq + 1 WHERE id = ANY ($1::bigint[])`;

/** To the queue where it was held, or to the root when its site takes nothing now. $1: jobs. */
export const releaseJobs = `
UPDATE jobs j SET seq = j.seq + 1,
    state = CASE WHEN s.id IS NULL THEN 'QUEUED' ELSE 'DISPATCHED' END::job_state,
    site_id = s.id,
    priority = CASE WHEN s.id IS NOT NULL THEN j.priority END,
    dispatched_at = CASE WHEN s.id IS NOT NULL THEN j.dispatched_at END
  FROM jobs held LEFT JOIN sites s ON s.id = held.site_id AND s.state = 'UP' AND s.removed_at IS NULL
 WHERE held.id = ANY ($1::bigint[]) AND j.id = held.id`;

/** Sites of held jobs, locked before the jobs: a release must not put a job in the queue of a site being drained. */
export const shareSites = `SELECT id FROM sites WHERE removed_at IS NULL ORDER BY id FOR SHARE`;

/** $1: jobs; $2: boost. */
export const boostJobs = `UPDATE jobs SET boost = $2, seq = seq + 1 WHERE id = ANY ($1::bigint[])`;
