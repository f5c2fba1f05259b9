/**
 * Locks the site (nobody drains it meanwhile) and the jobs in the order of ids. A site with a limit of running jobs is locked
 * against other starts too, so that what is counted behind the lock stays true.
 * $1: site; $2: jobs. Answers [the site is UP, [[job, state, site, epoch, tasks, CPUs per task, memory per task, license kinds], …]].
 */
export const lockStarts = `
WITH limited AS MATERIALIZED (
  SELECT id FROM sites WHERE id = $1::integer AND max_running_jobs IS NOT NULL FOR NO KEY UPDATE
), site AS MATERIALIZED (
  SELECT state FROM sites WHERE id = $1::integer AND removed_at IS NULL AND (SELECT count(*) FROM limited) >= 0 FOR SHARE
), job AS MATERIALIZED (
  SELECT id, state, site_id, epoch, tasks, cpus_per_task, memory_mb_per_task, licenses FROM jobs
   WHERE id = ANY ($2::bigint[]) ORDER BY id FOR NO KEY UPDATE
)
SELECT json_build_array(
  coalesce((SELECT state = 'UP' FROM site), false),
  (SELECT coalesce(json_agg(json_build_array(id, state, site_id, epoch, tasks, cpus_per_task, memory_mb_per_task, licenses)), '[]') FROM job))::text AS v`;

/**
 * Locks machines, then licenses, each in the order of ids, and tells what is free of them. Behind the jobs' locks.
 * $1: site; $2: machines; $3: licenses. What is not usable by the site is not in the answer.
 * Answers [[[machine, free CPUs, free memory, free places or null where it has none], …], [[license, kind, free copies], …], the
 * site's reservation or null, whether it has promised, how many more jobs it may run or null].
 */
export const lockResources = `
WITH machine AS MATERIALIZED (
  SELECT id, state, silent, cpus, cpus_used, memory_mb, memory_used_mb, max_tasks, tasks_used FROM machines
   WHERE id = ANY ($2::integer[]) AND site_id = $1::integer AND removed_at IS NULL ORDER BY id FOR NO KEY UPDATE
), license AS MATERIALIZED (
  SELECT id, kind, copies, in_use FROM licenses
   WHERE id = ANY ($3::integer[]) AND coalesce(site_id, $1::integer) = $1::integer AND removed_at IS NULL ORDER BY id FOR NO KEY UPDATE
)
SELECT json_build_array(
  (SELECT coalesce(json_agg(json_build_array(id, cpus - cpus_used, memory_mb - memory_used_mb, max_tasks - tasks_used)), '[]')
     FROM machine WHERE state = 'UP' AND NOT silent),
  (SELECT coalesce(json_agg(json_build_array(id, kind, copies - in_use)), '[]') FROM license),
  (SELECT json_build_array(site_id, job_id, extract(epoch FROM at)::float8, machine_ids, machine_tasks, license_ids,
      extract(epoch FROM made_at)::float8) FROM reservations WHERE site_id = $1::integer),
  EXISTS (SELECT 1 FROM promises WHERE site_id = $1::integer AND body IS NOT NULL),
  (SELECT max_running_jobs - (SELECT count(*) FROM runs WHERE site_id = $1::integer AND ended_at IS NULL)
     FROM sites WHERE id = $1::integer AND max_running_jobs IS NOT NULL))::text AS v`;

/**
 * Writes runs and the decisions that made them; the trigger on runs takes machines and licenses. One statement, for the
 * round trip: decisions have neither triggers nor foreign keys.
 * $1: site; $2: now; $3: policy version; $4: cycle; then aligned: $5: jobs; $6: epochs; $7: machines; $8: tasks on each;
 * $9: CPUs per task; $10: memory per task; $11: licenses; $12: planned seconds; $13: reasons; $14: details, a line each.
 */
export const insertRuns = `
WITH decided AS (
  INSERT INTO decisions (job_id, at, kind, reason, policy_version, cycle, from_site_id, site_id, detail)
    SELECT job_id, to_timestamp($2::float8), 'START', reason, $3::integer, $4, $1::integer, $1::integer, detail
      FROM ROWS FROM (unnest($5::bigint[]), unnest($13::text[]), string_to_table($14, E'\\n')) AS t (job_id, reason, detail)
)
INSERT INTO runs (job_id, epoch, site_id, machine_ids, machine_tasks, cpus_per_task, memory_mb_per_task, license_ids,
    policy_version, assigned_at, planned_s)
  SELECT job_id, epoch, $1::integer, machine_ids::integer[], machine_tasks::integer[], cpus_per_task, memory_mb_per_task,
         license_ids::integer[], $3::integer, to_timestamp($2::float8), planned_s
    FROM unnest($5::bigint[], $6::integer[], $7::text[], $8::text[], $9::integer[], $10::integer[], $11::text[], $12::float8[])
      AS t (job_id, epoch, machine_ids, machine_tasks, cpus_per_task, memory_mb_per_task, license_ids, planned_s)
   ORDER BY job_id`;

/** $1: jobs; $2: their new epochs. */
export const assignJobs = `
UPDATE jobs j SET state = 'ASSIGNED', epoch = t.epoch, started_at = NULL, exit_code = NULL, message = NULL, seq = j.seq + 1
  FROM unnest($1::bigint[], $2::integer[]) AS t (id, epoch) WHERE j.id = t.id`;

/** $1: site; $2: job; $3: at; $4: machines; $5: tasks; $6: licenses; $7: made at. */
export const putReservation = `
INSERT INTO reservations (site_id, job_id, at, machine_ids, machine_tasks, license_ids, made_at)
  VALUES ($1, $2, to_timestamp($3::float8), $4::integer[], $5::integer[], $6::integer[], to_timestamp($7::float8))
  ON CONFLICT (site_id) DO UPDATE SET job_id = excluded.job_id, at = excluded.at, machine_ids = excluded.machine_ids,
    machine_tasks = excluded.machine_tasks, license_ids = excluded.license_ids, made_at = excluded.made_at`;

/** $1: site. */
export const dropReservation = 'DELETE FROM reservations WHERE site_id = $1';

/** $1: site. Answers [revision, promises or null]; nothing where none were ever made. */
export const loadPromises = `SELECT json_build_array(revision, body)::text AS v FROM promises WHERE site_id = $1`;

/**
 * Behind the locks of machines and licenses. $1: site; $2: the revision that the plan was made on; $3: promises or null. Touches
 * no row when they are others by now.
 */
export const keepPromises = `
INSERT INTO promises (site_id, revision, body) VALUES ($1, $2::bigint + 1, $3::json)
  ON CONFLICT (site_id) DO UPDATE SET revision = excluded.revision, body = excluded.body WHERE promises.revision = $2::bigint`;

/** Of a policy that is in force no more. $1: site. */
export const dropPromises =
  'UPDATE promises SET revision = revision + 1, body = NULL WHERE site_id = $1 AND body IS NOT NULL';
