/** What is old goes, a bounded number of rows at a time. */
import { MARGINS_KEPT, TOTALS_KEPT, TRAFFIC_KEPT_S } from '../constants.js';
import { oldMails } from '../mails.js';
import { raw, type Sql, sql } from '../sql.js';
import { type Connection, run, value } from '../statement.js';
import type { Pruned, Retention } from '../store.js';

export async function prune(connection: Connection, retention: Retention): Promise<Pruned> {
  const { eventsBefore, unreadBefore, jobsEndedBefore, processesBefore, auditsBefore, limit } = retention;
  await run(connection, sql`DELETE FROM followers WHERE lease_until < to_timestamp(${unreadBefore}::float8)`);
  const isRead = sql`(at < to_timestamp(${unreadBefore}::float8) OR id <= ALL (
    SELECT cursor FROM followers UNION ALL SELECT cursor FROM webhooks WHERE enabled))`;
  const events = await pruneSeries(connection, 'events', eventsBefore, limit, isRead);
  const points = await pruneSeries(connection, 'job_ratios', jobsEndedBefore, limit);
  const jobs = await run(connection, oldJobs(jobsEndedBefore, limit));
  const submissions = await run(connection, oldSubmissions(jobsEndedBefore, limit));
  const groups = await run(connection, emptyGroups(jobsEndedBefore, limit));
  const audits = await run(connection, oldAudits(auditsBefore, limit));
  const keys = await run(connection, deadKeys(auditsBefore, limit));
  const signIns =
    (await run(connection, expired('sessions', limit))) +
    (await run(connection, expired('invitations', limit)));
  const holds = await run(connection, oldHolds(auditsBefore, limit));
  await run(connection, sql`DELETE FROM processes WHERE seen_at < to_timestamp(${processesBefore}::float8)`);
  await run(
    connection,
    sql`DELETE FROM agents a WHERE seen_at < to_timestamp(${auditsBefore}::float8) AND NOT EXISTS (SELECT FROM machines WHERE agent_id = a.id)`,
  );
  await run(
    connection,
    sql`DELETE FROM margins WHERE id <= (SELECT max(id) FROM margins) - ${MARGINS_KEPT}::bigint`,
  );
  await run(connection, oldTotals);
  await run(
    connection,
    sql`DELETE FROM traffic WHERE at <= extract(epoch FROM clock_timestamp()) - ${TRAFFIC_KEPT_S}::integer`,
  );
  await run(
    connection,
    sql`DELETE FROM used_hours WHERE kind = ANY (enum_range(NULL::used_kind)) AND hour < ${jobsEndedBefore}::float8 - 3600`,
  );
  await run(connection, oldMails(sql`clock_timestamp()`));
  await run(
    connection,
    sql`DELETE FROM used_resources WHERE kind = ANY (enum_range(NULL::used_kind)) AND hour < ${jobsEndedBefore}::float8 - 3600`,
  );
  return {
    events,
    jobs,
    more: Math.max(events, jobs, submissions, points, groups, audits, keys, signIns, holds) >= limit,
  };
}

/**
 * Deletes the oldest rows of a series that is read by cursor, and moves its horizon in the same statement: who comes with a cursor
 * below it is told that it is too old. Only a beginning goes, up to the first row that is young: ids are in the order of commits,
 * while `at` may be slightly out of order. `also`: what else must be so. Answers how many.
 */
function pruneSeries(
  connection: Connection,
  table: 'events' | 'job_ratios',
  before: number,
  limit: number,
  also: Sql = sql`true`,
): Promise<number> {
  return value(
    connection,
    sql`
WITH last AS (
  SELECT max(id) AS id FROM (
    SELECT id, bool_and(at < to_timestamp(${before}::float8) AND ${also}) OVER (ORDER BY id) AS old
      FROM (SELECT id, at FROM ${raw(table)} ORDER BY id LIMIT ${limit}) e
  ) o WHERE old
), moved AS (
  UPDATE ${raw(table)}_horizon h SET id = last.id FROM last WHERE last.id > h.id
), gone AS (
  DELETE FROM ${raw(table)} WHERE id <= (SELECT id FROM last) RETURNING 1
)
SELECT count(*) AS v FROM gone`,
  );
}

/** Runs, outputs and decisions go with them, by a trigger. Those that an unended job needs stay. */
const oldJobs = (before: number, limit: number): Sql => sql`
DELETE FROM jobs WHERE id = ANY (ARRAY(
  SELECT id FROM jobs j WHERE ended_at < to_timestamp(${before}::float8)
     AND NOT EXISTS (SELECT FROM need_edges e JOIN jobs d ON d.id = e.job_id AND d.ended_at IS NULL WHERE e.on_job = j.id)
     AND NOT EXISTS (SELECT FROM need_edges e JOIN jobs d ON d.id = e.job_id AND d.ended_at IS NULL WHERE e.on_group = j.group_id)
     AND NOT EXISTS (SELECT FROM need_edges e JOIN jobs d ON d.id = e.job_id AND d.ended_at IS NULL
                      WHERE e.on_user = j.user_id AND e.on_name = j.group_name)
   ORDER BY ended_at LIMIT ${limit} FOR UPDATE SKIP LOCKED))`;

/** And with them idempotency keys; those whose quota period is over too. */
const oldSubmissions = (before: number, limit: number): Sql => sql`
DELETE FROM submissions WHERE id IN (
  SELECT s.id FROM submissions s JOIN users u ON u.id = s.user_id
   WHERE s.at < to_timestamp(${before}::float8) - make_interval(secs => coalesce(u.submission_period_s, 0)) ORDER BY s.id LIMIT ${limit})`;

/** The oldest, as far as they are old. */
const oldAudits = (before: number, limit: number): Sql => sql`
DELETE FROM audits WHERE at < to_timestamp(${before}::float8) AND id = ANY (ARRAY(SELECT id FROM audits ORDER BY id LIMIT ${limit}))`;

/** Keys that have been good for nothing since then. */
const deadKeys = (before: number, limit: number): Sql => sql`
DELETE FROM api_keys WHERE id = ANY (ARRAY(
  SELECT id FROM api_keys WHERE least(expires_at, revoked_at) < to_timestamp(${before}::float8) ORDER BY id LIMIT ${limit}))`;

/** Sessions and invitations that are good for nothing any more. */
const expired = (table: 'sessions' | 'invitations', limit: number): Sql => sql`
DELETE FROM ${raw(table)} WHERE ctid = ANY (ARRAY(
  SELECT ctid FROM ${raw(table)} WHERE expires_at < now() ORDER BY expires_at LIMIT ${limit} FOR UPDATE SKIP LOCKED))`;

/** Maintenance windows and reservations that ended before. */
const oldHolds = (before: number, limit: number): Sql => sql`
WITH old AS MATERIALIZED (
  SELECT id FROM holds WHERE ended_at < to_timestamp(${before}::float8) ORDER BY id LIMIT ${limit}
), times AS (
  DELETE FROM hold_times WHERE hold_id IN (SELECT id FROM old)
)
DELETE FROM holds WHERE id IN (SELECT id FROM old)`;

/** Groups of which no job is left. */
const emptyGroups = (before: number, limit: number): Sql => sql`
DELETE FROM job_groups WHERE id IN (
  SELECT g.id FROM job_groups g
   WHERE g.created_at < to_timestamp(${before}::float8)
     AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.id BETWEEN g.first_job_id AND g.last_job_id AND j.group_id = g.id)
   ORDER BY g.id LIMIT ${limit})`;

/** Beyond those that are kept, those first that no run has changed for longest. */
const oldTotals = sql`
DELETE FROM run_totals
 WHERE event_id <= (SELECT event_id FROM run_totals ORDER BY event_id DESC OFFSET ${TOTALS_KEPT} LIMIT 1)`;
