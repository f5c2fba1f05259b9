/**
 * Locks the sites (so that none can be drained meanwhile) and the jobs in the order of ids, and answers only what does not
 * fit: ten thousand moves that all fit cost one short answer.
 * $1: sites; $2: jobs; $3: where the plan saw each (null: the root; else in the site's meta-queue), aligned with $2.
 * Answers [ids of sites that are UP, [[which item, the job's state or null, its site], …] where the job is elsewhere].
 */
export const lockMoves = `
WITH site AS MATERIALIZED (
  SELECT id FROM sites WHERE id = ANY ($1::integer[]) AND state = 'UP' AND removed_at IS NULL ORDER BY id FOR SHARE
), job AS MATERIALIZED (
  SELECT id, state, site_id FROM jobs WHERE id = ANY ($2::bigint[]) ORDER BY id FOR NO KEY UPDATE
)
SELECT json_build_array(
  (SELECT coalesce(json_agg(id), '[]') FROM site),
  (SELECT coalesce(json_agg(json_build_array(m.place - 1, job.state, job.site_id)), '[]')
     FROM unnest($2::bigint[], $3::integer[]) WITH ORDINALITY AS m (id, from_site, place) LEFT JOIN job USING (id)
    WHERE job.state IS DISTINCT FROM 'QUEUED' OR job.site_id IS DISTINCT FROM m.from_site))::text AS v`;

/**
 * Writes decisions, and the margins of jobs that go to local queues. Neither table has triggers or foreign keys: cheap, and no
 * lock is waited for. The margins go in the order of job ids, in which the events will tell of the jobs.
 * $1: now; $2: policy version; $3: cycle; $4: jobs; $5: from; $6: to; $7: reasons; $8: details, a line each:
 * ten megabytes of JSON are spared the quoting and reading of an array; $9: to local queues, else to meta-queues.
 */
export const insertDispatchDecisions = `
WITH decided AS (
  INSERT INTO decisions (job_id, at, kind, reason, policy_version, cycle, from_site_id, site_id, detail)
    SELECT job_id, to_timestamp($1::float8), 'DISPATCH', reason, $2::integer, $3, from_site, to_site, detail
      FROM ROWS FROM (unnest($4::bigint[]), unnest($5::integer[]), unnest($6::integer[]), unnest($7::text[]), string_to_table($8, E'\\n'))
        AS t (job_id, from_site, to_site, reason, detail)
)
INSERT INTO margins (margin_s)
  SELECT extract(epoch FROM j.deadline)::float8 - j.estimate_s - extract(epoch FROM j.submitted_at)::float8
    FROM unnest($4::bigint[]) AS t (job_id) JOIN jobs j ON j.id = t.job_id
   WHERE $9::boolean AND j.deadline IS NOT NULL ORDER BY j.id`;

/** To local queues. $1: now; $2: jobs; $3: sites; $4: priorities. */
export const moveJobs = `
UPDATE jobs j SET state = 'DISPATCHED', site_id = t.site_id, priority = t.priority, dispatched_at = to_timestamp($1::float8), seq = j.seq + 1
  FROM unnest($2::bigint[], $3::integer[], $4::integer[]) AS t (id, site_id, priority) WHERE j.id = t.id`;

/** To meta-queues. $1: now; $2: jobs; $3: sites. */
export const moveJobsToMeta = `
UPDATE jobs j SET migrated_at = CASE WHEN j.site_id IS NULL THEN j.migrated_at ELSE to_timestamp($1::float8) END, site_id = t.site_id,
    seq = j.seq + 1
  FROM unnest($2::bigint[], $3::integer[]) AS t (id, site_id) WHERE j.id = t.id`;

/**
 * $1: site; $2: how many. Locks jobs in the queues of a site that is not UP, in the order of ids.
 * Answers [the site's state, null when it is gone or UP; job ids].
 */
export const lockTakeBack = `
WITH site AS MATERIALIZED (
  SELECT CASE WHEN removed_at IS NULL THEN state ELSE 'DOWN' END AS state FROM sites
   WHERE id = $1::integer AND (state <> 'UP' OR removed_at IS NOT NULL) FOR SHARE
), job AS MATERIALIZED (
  SELECT id FROM jobs WHERE ended_at IS NULL AND state IN ('QUEUED', 'DISPATCHED') AND site_id = $1::integer AND EXISTS (SELECT 1 FROM site)
   ORDER BY id LIMIT $2 FOR NO KEY UPDATE
)
SELECT json_build_array((SELECT state FROM site), (SELECT coalesce(json_agg(id ORDER BY id), '[]') FROM job))::text AS v`;

/** $1: site; $2: jobs. Locks those of them that are in the queues of the site, in the order of ids. Answers with their ids. */
export const lockReturn = `
WITH job AS MATERIALIZED (
  SELECT id FROM jobs WHERE id = ANY ($2::bigint[]) AND state IN ('QUEUED', 'DISPATCHED') AND site_id = $1::integer
   ORDER BY id FOR NO KEY UPDATE
)
SELECT coalesce(json_agg(id ORDER BY id), '[]')::text AS v FROM job`;

/** $1: now; $2: policy version; $3: cycle; $4: jobs; $5: the site; $6: reason. */
export const insertTakeBackDecisions = `
INSERT INTO decisions (job_id, at, kind, reason, policy_version, cycle, from_site_id, detail)
  SELECT id, to_timestamp($1::float8), 'TAKE_BACK', $6, $2::integer, $3, $5::integer, '{}' FROM unnest($4::bigint[]) AS t (id)`;

/** $1: jobs. */
export const takeBackJobs = `
UPDATE jobs SET state = 'QUEUED', site_id = NULL, priority = NULL, dispatched_at = NULL, seq = seq + 1 WHERE id = ANY ($1::bigint[])`;
