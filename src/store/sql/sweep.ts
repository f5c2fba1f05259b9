/**
 * Since when there has been an API to talk to: the earliest beginning of an API process that is there now. null: there is none, and
 * nobody's silence means anything. $1: now; $2: a process not seen for so long (s) is not there.
 */
export const presentSince = `
SELECT extract(epoch FROM min(since))::text AS v FROM processes
 WHERE kind = 'api' AND seen_at >= to_timestamp($1::float8) - make_interval(secs => $2::float8)`;

/**
 * Locks machines that have just become silent, in the order of ids. $1: now; $2: present since; $3: silent after (s); $4: how many.
 * Answers [[machine, site], …].
 */
export const lockSilent = `
WITH machine AS MATERIALIZED (
  SELECT id, site_id FROM machines
   WHERE removed_at IS NULL AND NOT silent
     AND greatest(heartbeat_at, to_timestamp($2::float8)) < to_timestamp($1::float8) - make_interval(secs => $3::float8)
   ORDER BY id LIMIT $4 FOR NO KEY UPDATE
)
SELECT coalesce(json_agg(json_build_array(id, site_id)), '[]')::text AS v FROM machine`;

/**
 * Live runs on a machine that has been silent for too long. $1: now; $2: present since; $3: lost after (s); $4: how many.
 * Answers [[job, epoch, site, machine's name], …].
 */
export const findLost = `
WITH dead AS MATERIALIZED (
  SELECT id, site_id, name FROM machines
   WHERE removed_at IS NULL AND silent
     AND greatest(heartbeat_at, to_timestamp($2::float8)) < to_timestamp($1::float8) - make_interval(secs => $3::float8)
)
SELECT coalesce(json_agg(json_build_array(job_id, epoch, site_id, name)), '[]')::text AS v FROM (
  SELECT DISTINCT ON (r.job_id) r.job_id, r.epoch, r.site_id, dead.name
    FROM runs r, unnest(r.machine_ids) AS u (id) JOIN dead ON dead.id = u.id
   WHERE r.ended_at IS NULL AND r.site_id = ANY (ARRAY(SELECT site_id FROM dead))
   ORDER BY r.job_id LIMIT $4) t`;

/**
 * Runs that exceed their limit by more than the grace. $1: now; $2: grace (s); $3: how many.
 * Answers [[job, epoch, site, limit], …].
 */
export const findOverLimit = `
SELECT coalesce(json_agg(json_build_array(job_id, epoch, site_id, run_time_limit_s)), '[]')::text AS v FROM (
  SELECT r.job_id, r.epoch, r.site_id, j.run_time_limit_s
    FROM runs r JOIN jobs j ON j.id = r.job_id
   WHERE r.ended_at IS NULL AND r.started_at IS NOT NULL
     AND r.started_at < to_timestamp($1::float8) - make_interval(secs => j.run_time_limit_s + $2::float8)
   ORDER BY r.job_id LIMIT $3) t`;

/**
 * Locks jobs whose deadline has passed, in the order of ids. $1: now; $2: how many. Answers [[job, state, site], …].
 *
 * An array, not a join: right after a large submission the planner still believes that hardly any job is live, and then joined
 * 5 000 ids with 100 000 jobs pair by pair (44 s).
 */
export const lockDeadlines = `
WITH job AS MATERIALIZED (
  SELECT id, state, site_id FROM jobs
   WHERE id = ANY (ARRAY(SELECT id FROM jobs WHERE deadline < to_timestamp($1::float8) AND ended_at IS NULL AND NOT deadline_missed
                          ORDER BY deadline LIMIT $2))
     AND ended_at IS NULL AND NOT deadline_missed
   ORDER BY id FOR NO KEY UPDATE
)
SELECT coalesce(json_agg(json_build_array(id, state, site_id)), '[]')::text AS v FROM job`;

/** $1: jobs. */
export const markMissed = `UPDATE jobs SET deadline_missed = true, seq = seq + 1 WHERE id = ANY ($1::bigint[])`;
