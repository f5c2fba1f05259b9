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
 * Answers [[hash, job ids] of the key or null, [[at, jobs], …] within the period, jobs that have not ended].
 */
export const findSubmissions = `
SELECT json_build_array(
  (SELECT json_build_array(payload_hash, job_ids) FROM submissions WHERE user_id = $1 AND idempotency_key = $2::text),
  (SELECT coalesce(json_agg(json_build_array(extract(epoch FROM at)::float8, job_count) ORDER BY at, id), '[]')
     FROM submissions WHERE user_id = $1 AND at > to_timestamp($3::float8) - make_interval(secs => $4::float8)),
  (SELECT coalesce(sum(jobs), 0) FROM job_counts))::text AS v`;

/**
 * All jobs of a submission by one statement. Ids follow the order given (WITH ORDINALITY … ORDER BY), and the answer is in
 * their order. Lists and JSON come as text and are cast row by row. Columns that all jobs share are still columns: a
 * constant costs as much.
 */
export const insertJobs = `
WITH inserted AS (
  INSERT INTO jobs (user_id, name, application, group_name, array_index, command, args, env, working_directory, tasks,
      cpus_per_task, memory_mb_per_task, licences, os, arch, estimate_s, benchmark, run_time_limit_s, deadline, input_mb,
      output_mb, restartable, simulated_run_s, boost, state, submitted_at)
    SELECT $1::integer, name, application, group_name, array_index, command, args::text[], env::jsonb, working_directory, tasks,
           cpus_per_task, memory_mb_per_task, licences::text[], os, arch, estimate_s, benchmark, run_time_limit_s,
           to_timestamp(deadline), input_mb, output_mb, restartable, simulated_run_s, boost,
           CASE WHEN held THEN 'HELD' ELSE 'QUEUED' END::job_state, to_timestamp($2::float8)
      FROM unnest($3::text[], $4::text[], $5::text[], $6::integer[], $7::text[], $8::text[], $9::text[], $10::text[],
                  $11::integer[], $12::integer[], $13::integer[], $14::text[], $15::text[], $16::text[], $17::float8[],
                  $18::float8[], $19::float8[], $20::float8[], $21::float8[], $22::float8[], $23::boolean[], $24::float8[],
                  $25::integer[], $26::boolean[]) WITH ORDINALITY
        AS t (name, application, group_name, array_index, command, args, env, working_directory,
              tasks, cpus_per_task, memory_mb_per_task, licences, os, arch, estimate_s,
              benchmark, run_time_limit_s, deadline, input_mb, output_mb, restartable, simulated_run_s,
              boost, held, place)
     ORDER BY place
  RETURNING id
)
SELECT json_agg(id ORDER BY id)::text AS v FROM inserted`;

/** $1: user; $2: key; $3: hash; $4: job ids; $5: at. */
export const insertSubmission = `
INSERT INTO submissions (user_id, idempotency_key, payload_hash, job_ids, job_count, at)
  VALUES ($1, $2, $3, $4::bigint[], cardinality($4::bigint[]), to_timestamp($5::float8))`;
