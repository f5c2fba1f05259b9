/**
 * Locks the jobs of a batch of reports in the order of ids. Whether a run is live is told by its job's row (the latest epoch,
 * and a state with a live run), never by the row of the run: that one is read without a lock, as of the beginning of the
 * statement, and may have ended while we waited.
 * $1: distinct jobs; $2, $3: the (job, epoch) pairs reported.
 * Answers [[[job, state, epoch, cause, restartable, stop cause, started], …], [[job, epoch, site], …]].
 */
export const lockReports = `
WITH job AS MATERIALIZED (
  SELECT id, state, epoch, cause, restartable, stop_cause, started_at IS NOT NULL AS started FROM jobs
   WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE
)
SELECT json_build_array(
  (SELECT coalesce(json_agg(json_build_array(id, state, epoch, cause, restartable, stop_cause, started)), '[]') FROM job),
  (SELECT coalesce(json_agg(json_build_array(r.job_id, r.epoch, r.site_id)), '[]')
     FROM unnest($2::bigint[], $3::integer[]) AS t (job_id, epoch) JOIN runs r USING (job_id, epoch)))::text AS v`;

/**
 * One update for a run, also when its start and its end arrive together. The trigger gives machines and licenses back.
 * $1: jobs; $2: epochs; $3: started at, null: as it was; $4: ended at, null: it has not; $5: exit codes; $6: signals; $7: causes;
 * $8: messages; $9: CPU seconds; $10: I/O wait seconds.
 */
export const updateRuns = `
UPDATE runs r SET started_at = coalesce(to_timestamp(t.started_at), r.started_at), ended_at = to_timestamp(t.ended_at),
    exit_code = t.exit_code, signal = t.signal, cause = t.cause::end_cause, message = t.message, cpu_s = t.cpu_s, io_wait_s = t.io_wait_s
  FROM unnest($1::bigint[], $2::integer[], $3::float8[], $4::float8[], $5::integer[], $6::text[], $7::text[], $8::text[], $9::float8[],
              $10::float8[]) AS t (job_id, epoch, started_at, ended_at, exit_code, signal, cause, message, cpu_s, io_wait_s)
 WHERE r.job_id = t.job_id AND r.epoch = t.epoch`;

/** $1: jobs; $2: epochs; $3: streams; $4: bodies; $5: bytes; $6: truncated. */
export const upsertOutputs = `
INSERT INTO outputs (job_id, epoch, stream, body, bytes, truncated)
  SELECT job_id, epoch, stream::output_stream, body, bytes, truncated
    FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::text[], $5::bigint[], $6::boolean[])
      AS t (job_id, epoch, stream, body, bytes, truncated)
  ON CONFLICT (job_id, epoch, stream) DO UPDATE SET body = excluded.body, bytes = excluded.bytes, truncated = excluded.truncated`;

/** ASSIGNED → RUNNING; a job that is to be stopped stays CANCELLING. $1: jobs; $2: started at. */
export const startJobs = `
UPDATE jobs j SET state = CASE j.state WHEN 'ASSIGNED' THEN 'RUNNING' ELSE j.state END, started_at = to_timestamp(t.at), seq = j.seq + 1
  FROM unnest($1::bigint[], $2::float8[]) AS t (id, at) WHERE j.id = t.id`;

/** To a last state. $1: jobs; $2: states; $3: causes; $4: ended at; $5: exit codes; $6: messages. */
export const endJobs = `
UPDATE jobs j SET state = t.state::job_state, cause = t.cause::end_cause, ended_at = to_timestamp(t.at), exit_code = t.exit_code,
    message = t.message, deadline_missed = j.deadline_missed OR coalesce(to_timestamp(t.at) > j.deadline, false), seq = j.seq + 1
  FROM unnest($1::bigint[], $2::text[], $3::text[], $4::float8[], $5::integer[], $6::text[]) AS t (id, state, cause, at, exit_code, message)
 WHERE j.id = t.id`;

/** Back to the root, to be started again. $1: jobs; $2: messages. */
export const requeueJobs = `
UPDATE jobs j SET state = 'QUEUED', site_id = NULL, priority = NULL, dispatched_at = NULL, started_at = NULL, message = t.message,
    seq = j.seq + 1
  FROM unnest($1::bigint[], $2::text[]) AS t (id, message) WHERE j.id = t.id`;
