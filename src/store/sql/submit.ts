/**
 * Takes the user's row first, so that a quota cannot be exceeded by two submissions at once, and an idempotency key is
 * looked for where its first use has either committed or not begun.
 * $1: user. Answers [limit, period] or null when there is no such user.
 */
export const lockUser = `
SELECT json_build_array(submission_limit, submission_period_s)::text AS v FROM users WHERE id = $1 FOR NO KEY UPDATE`;

/**
 * A statement of its own after the lock: it must see what was committed while we waited for it.
 * $1: user; $2: key or null; $3: now; $4: period (s) or null without a quota.
 * Answers [[hash, job ids, group or null] of the key or null, [[at, jobs], …] within the period, jobs that have not ended].
 */
export const findSubmissions = `
SELECT json_build_array(
  (SELECT json_build_array(payload_hash, job_ids,
            CASE WHEN job_count > 1 OR EXISTS (SELECT 1 FROM job_groups g WHERE g.id = s.id) THEN s.id END) FROM submissions s WHERE user_id = $1 AND idempotency_key = $2::text),
  (SELECT coalesce(json_agg(json_build_array(extract(epoch FROM at)::float8, job_count) ORDER BY at, id), '[]')
     FROM submissions WHERE user_id = $1 AND at > to_timestamp($3::float8) - make_interval(secs => $4::float8)),
  (SELECT coalesce(sum(jobs), 0) FROM job_counts))::text AS v`;

/** What is sent of each job, as which type: lists and JSON as text, cast row by row. */
const columns = {
  name: 'text',
  application: 'text',
  group_name: 'text',
  array_index: 'integer',
  command: 'text',
  arguments: 'text',
  environment: 'text',
  working_directory: 'text',
  tasks: 'integer',
  cpus_per_task: 'integer',
  memory_mb_per_task: 'integer',
  licenses: 'text',
  os: 'text',
  architecture: 'text',
  estimate_s: 'float8',
  benchmark: 'float8',
  run_time_limit_s: 'float8',
  deadline: 'float8',
  sandbox_mb: 'float8',
  output_mb: 'float8',
  restartable: 'boolean',
  simulated_run_s: 'float8',
  boost: 'integer',
  held: 'boolean',
  inputs: 'text',
  origin_site_id: 'integer',
  computation_share: 'float8',
  simulated_io_s: 'float8',
};
const names = Object.keys(columns).join(', ');
/** Jobs as columns, from a parameter on. A column that no job has is passed as null, and filled with nulls. */
const given = (from: number): string =>
  `unnest(${Object.values(columns)
    .map((type, i) => `$${from + i}::${type}[]`)
    .join(', ')}) WITH ORDINALITY AS t (${names}, place)`;

const insertFrom = (jobs: string): string => `
WITH submission AS MATERIALIZED (
  SELECT nextval(pg_get_serial_sequence('submissions', 'id')) AS id
), inserted AS (
  INSERT INTO jobs (user_id, name, application, group_name, array_index, command, arguments, environment, working_directory, tasks,
      cpus_per_task, memory_mb_per_task, licenses, os, architecture, estimate_s, benchmark, run_time_limit_s, deadline, sandbox_mb,
      output_mb, restartable, simulated_run_s, boost, state, submitted_at, group_id, inputs, origin_site_id, computation_share, simulated_io_s)
    SELECT $1::integer, name, application, group_name, array_index, command, arguments::text[], environment::jsonb, working_directory, tasks,
           cpus_per_task, memory_mb_per_task, licenses::text[], os, architecture, estimate_s, benchmark, run_time_limit_s,
           to_timestamp(deadline), sandbox_mb, output_mb, restartable, simulated_run_s, boost,
           CASE WHEN held THEN 'HELD' ELSE 'QUEUED' END::job_state, to_timestamp($2::float8), CASE WHEN $3::boolean THEN (SELECT id FROM submission) END,
           inputs::jsonb, origin_site_id, computation_share, simulated_io_s
      FROM ${jobs}
     ORDER BY place
  RETURNING id
)
SELECT json_build_array((SELECT id FROM submission), (SELECT json_agg(id ORDER BY id) FROM inserted))::text AS v`;

/**
 * All jobs of a submission by one statement. Ids follow the order given (WITH ORDINALITY … ORDER BY), and the answer is in their
 * order. Columns that all jobs share are still columns: a constant costs as much.
 * $1: user; $2: now; $3: the jobs are a group; from $4 on: columns. Answers [an id for the submission, job ids].
 */
export const insertJobs = insertFrom(given(4));

/**
 * A very large submission comes in parts, so that nobody has to work on all of it at once, but is still inserted by one statement: whoever
 * inserts jobs holds the event lock from then on.
 */
export const makeStage = `
CREATE TEMPORARY TABLE submitted_jobs (${Object.entries(columns)
  .map(([name, type]) => `${name} ${type}`)
  .join(', ')}, place bigint) ON COMMIT DROP`;

/** $1: jobs before this part; from $2 on: columns. */
export const stageJobs = `INSERT INTO submitted_jobs SELECT ${names}, $1::bigint + place FROM ${given(2)}`;

/** $1: user; $2: now; $3: the jobs are a group. Answers as insertJobs. */
export const insertStagedJobs = insertFrom('submitted_jobs');

/** $1: id; $2: user; $3: key; $4: hash; $5: job ids; $6: at. */
export const insertSubmission = `
INSERT INTO submissions (id, user_id, idempotency_key, payload_hash, job_ids, job_count, at)
  VALUES ($1::bigint, $2, $3, $4, $5::bigint[], cardinality($5::bigint[]), to_timestamp($6::float8))`;

/** $1: id of the submission; $2: user; $3: name; $4: template; $5: size; $6, $7: its first and its last job; $8: now. */
export const insertGroup = `
INSERT INTO job_groups (id, user_id, name, template, size, first_job_id, last_job_id, created_at)
  VALUES ($1::bigint, $2, $3, $4::jsonb, $5, $6::bigint, $7::bigint, to_timestamp($8::float8))`;
