/** What agents are told, and that they are there. */
import { liveStates } from '../../core/states.js';
import { list } from '../columns.js';
import { latestCursor } from '../images.js';
import { type Database, type Transaction, transaction } from '../pool.js';
import { labels, raw, sql } from '../sql.js';
import { type Connection, run, value } from '../statement.js';
import { type Assignment, type AssignmentBatch, type Cursor, PRESENCE_GAP_S } from '../store.js';

/** Events that one request for assignments looks through. */
const WINDOW = 10_000;

// Assignments ---------------------------------------------------------------------------------------------------------------

/**
 * A live run as its agent must know it; needs runs as r, jobs as j, and `slowest` as s. simulatedS: on the slowest of the run's
 * machines, which all of its tasks wait for.
 */
const assignment = `json_build_object('jobId', j.id, 'epoch', r.epoch, 'state', j.state, 'command', j.command, 'arguments', j.arguments,
    'environment', j.environment, 'workingDirectory', j.working_directory, 'tasks', j.tasks, 'cpusPerTask', j.cpus_per_task,
    'memoryMbPerTask', j.memory_mb_per_task, 'licenses', j.licenses, 'runTimeLimitS', j.run_time_limit_s, 'arrayIndex', j.array_index,
    'application', j.application, 'plannedS', r.planned_s, 'simulatedS', j.simulated_run_s * j.benchmark / s.power,
    'simulatedIoS', j.simulated_io_s * j.benchmark / s.power,
    'machines', (SELECT json_agg(json_build_object('machineId', m.id, 'name', m.name, 'tasks', u.tasks, 'benchmark', m.benchmark) ORDER BY u.place)
       FROM unnest(r.machine_ids, r.machine_tasks) WITH ORDINALITY AS u (id, tasks, place) JOIN machines m ON m.id = u.id))`;
const slowest =
  'CROSS JOIN LATERAL (SELECT min(m.benchmark) AS power FROM machines m WHERE m.id = ANY (r.machine_ids)) s';

export async function assignments(
  connection: Connection,
  siteId: number,
  after: Cursor | null,
  limit: number,
): Promise<AssignmentBatch> {
  const news = after === null ? null : await newAssignments(connection, siteId, after, limit);
  if (news !== null) return { cursor: news[0], complete: false, assignments: news[1] };
  const [cursor, all] = await allAssignments(connection, siteId);
  return { cursor, complete: true, assignments: all };
}

/** All live runs of a site, in the order of jobs. */
function allAssignments(connection: Connection, siteId: number): Promise<[Cursor, Assignment[]]> {
  return value(
    connection,
    sql`
SELECT json_build_array(${raw(latestCursor)}::text,
  (SELECT coalesce(json_agg(${raw(assignment)} ORDER BY r.job_id), '[]')
     FROM runs r JOIN jobs j ON j.id = r.job_id ${raw(slowest)} WHERE r.site_id = ${siteId} AND r.ended_at IS NULL)) AS v`,
  );
}

/**
 * What a site's agent has to know behind a cursor: runs assigned, runs to be stopped; as they are now, and only if they
 * are still live. The window is bounded twice: by events looked at, and by events of this site. null: retention has passed the cursor.
 */
function newAssignments(
  connection: Connection,
  siteId: number,
  after: Cursor,
  limit: number,
): Promise<[Cursor, Assignment[]] | null> {
  return value(
    connection,
    sql`
WITH recent AS MATERIALIZED (
  SELECT id, entity_id, to_state, site_id FROM events WHERE id > ${after}::bigint ORDER BY id LIMIT ${WINDOW}
), news AS MATERIALIZED (
  SELECT id, entity_id FROM recent WHERE site_id = ${siteId} AND to_state IN ('ASSIGNED', 'CANCELLING') ORDER BY id LIMIT ${limit}
)
SELECT CASE WHEN ${after}::bigint >= (SELECT id FROM events_horizon) THEN json_build_array(
  coalesce(CASE WHEN (SELECT count(*) FROM news) < ${limit} THEN (SELECT max(id) FROM recent) ELSE (SELECT max(id) FROM news) END,
           ${after}::bigint)::text,
  (SELECT coalesce(json_agg(${raw(assignment)} ORDER BY n.id), '[]')
     FROM (SELECT entity_id, max(id) AS id FROM news GROUP BY entity_id) n
     JOIN jobs j ON j.id = n.entity_id AND j.state IN ${labels(liveStates)}
     JOIN runs r ON r.job_id = j.id AND r.epoch = j.epoch AND r.site_id = ${siteId}
     ${raw(slowest)})) END AS v`,
  );
}

// Presence --------------------------------------------------------------------------------------------------------------------

export function heartbeat(
  database: Pick<Database, 'pool'>,
  siteId: number,
  machineIds: readonly number[],
  now: number,
): Promise<number[]> {
  return transaction(database, async (tx) => {
    await run(
      tx,
      sql`UPDATE sites SET agent_seen_at = to_timestamp(${now}::float8) WHERE id = ${siteId} AND removed_at IS NULL`,
    );
    if (machineIds.length === 0) return [];
    const back = await seeMachines(tx, siteId, machineIds, now);
    if (back.length > 0) await setSilent(tx, back, false);
    return back;
  });
}

/**
 * Locks the machines in the order of ids (a multi-row UPDATE locks in the order of its plan), and updates their heartbeats: a column
 * that neither an index nor a trigger watches. Answers those that were silent.
 */
function seeMachines(
  tx: Transaction,
  siteId: number,
  machineIds: readonly number[],
  now: number,
): Promise<number[]> {
  return value(
    tx,
    sql`
WITH seen AS MATERIALIZED (
  SELECT id, silent FROM machines
   WHERE site_id = ${siteId} AND id = ANY (${list('integer', machineIds)}) AND removed_at IS NULL ORDER BY id FOR NO KEY UPDATE
), beaten AS (
  UPDATE machines m SET heartbeat_at = greatest(m.heartbeat_at, to_timestamp(${now}::float8)) FROM seen WHERE m.id = seen.id
)
SELECT coalesce(json_agg(id), '[]') AS v FROM seen WHERE silent`,
  );
}

/** Writes an event for each. */
export const setSilent = (tx: Transaction, machineIds: readonly number[], silent: boolean): Promise<number> =>
  run(tx, sql`UPDATE machines SET silent = ${silent} WHERE id = ANY (${list('integer', machineIds)})`);

/** After a gap a process counts as new. */
export async function processSeen(
  connection: Connection,
  id: string,
  kind: 'api' | 'worker',
  now: number,
): Promise<void> {
  const seen = sql`to_timestamp(${now}::float8)`;
  await run(
    connection,
    sql`
INSERT INTO processes AS p (id, kind, since, seen_at) VALUES (${id}, ${kind}, ${seen}, ${seen})
  ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, seen_at = excluded.seen_at,
    since = CASE WHEN p.seen_at < excluded.seen_at - make_interval(secs => ${PRESENCE_GAP_S}::float8) THEN excluded.since ELSE p.since END`,
  );
}

/**
 * Since when there has been an API to talk to: the earliest beginning of an API process that is there now. null: there is none, and
 * nobody's silence means anything.
 */
export function presentSince(connection: Connection, now: number): Promise<number | null> {
  return value(
    connection,
    sql`
SELECT extract(epoch FROM min(since))::float8 AS v FROM processes
 WHERE kind = 'api' AND seen_at >= to_timestamp(${now}::float8) - make_interval(secs => ${PRESENCE_GAP_S}::float8)`,
  );
}
