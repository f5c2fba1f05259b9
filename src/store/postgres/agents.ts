/** What agents are told; and that there is an API for them to talk to. */

import { cpusOf } from '../../core/model.js';
import { liveStates, waitingStates } from '../../core/states.js';
import { observedWaits, type WaitOfRun } from '../../core/terms/observed-waits.js';
import { MAX } from '../../platform/limits.js';
import { table } from '../columns.js';
import { WAITS_SEEN_MAX, WAITS_SEEN_S } from '../constants.js';
import { latestCursor, limitOfRun } from '../images.js';
import { assignedFields, readField } from '../job-fields.js';
import { type Database, transaction } from '../pool.js';
import { type Reading, rowsOf } from '../read-rows.js';
import type { JobRow } from '../rows.js';
import { tokenOf } from '../rules.js';
import { empty, labels, raw, type Sql, sql } from '../sql.js';
import { type Connection, prepared, rows, run, value } from '../statement.js';
import {
  type Assignment,
  type AssignmentBatch,
  type Cursor,
  type ListPlace,
  PRESENCE_GAP_S,
  type ReportedImage,
  type ReportedLoad,
  type SentSignal,
} from '../store.js';

/** Events that one request for assignments looks through. */
const WINDOW = 10_000;
/** What a machine of a run takes in a message. */
const MACHINE_BYTES = 128;
/** And a task of it that has been reported. */
const TASK_BYTES = 16;

// Assignments ---------------------------------------------------------------------------------------------------------------

export async function assignments(
  connection: Connection,
  siteId: number,
  after: Cursor | ListPlace | null,
  limit: number,
  bytesMax: number,
  agentId: number | null,
): Promise<AssignmentBatch> {
  const place = typeof after === 'string' ? null : after;
  const of: Part = { siteId, agentId, limit, bytesMax };
  if (typeof after === 'string') {
    const news = await newAssignments(connection, of, after);
    if (news !== null) return { next: news[0], list: null, assignments: assignmentsOf(news) };
  }
  const [listed, last] = await listAssignments(connection, of, place?.jobId ?? 0);
  const assignments = assignmentsOf(listed);
  // What happens while the list is read is told after it: from where its first part was read.
  const cursor = place?.cursor ?? listed[0];
  const next = last ? cursor : { cursor, jobId: assignments.at(-1)!.jobId };
  return { next, list: { first: place === null, last }, assignments };
}

/** Of which runs, and how many at once. */
interface Part {
  siteId: number;
  /** null: of all agents of the site. */
  agentId: number | null;
  limit: number;
  bytesMax: number;
}

/** Needs runs as r and jobs as j. Of a run that is launched once, the agent of the first machine is told; of one that is a single task, too. */
const ofAgent = ({ agentId, siteId }: Part): Sql =>
  agentId === null
    ? empty
    : sql`AND CASE WHEN r.placed_by = 'SITE' THEN ${siteAgent(sql`${siteId}::integer`)} = ${agentId}::integer
        ELSE CASE WHEN j.launch = 'ONCE' THEN r.machine_ids[1:1] ELSE r.machine_ids END
          && ARRAY(SELECT id FROM machines WHERE agent_id = ${agentId}::integer) END`;

/** The agent that hands jobs over to the site's own scheduler: one, whoever else has machines there. Null: nobody does. */
export const siteAgent = (siteId: Sql): Sql =>
  sql`(SELECT m.agent_id FROM machines m WHERE m.site_id = ${siteId} AND m.removed_at IS NULL AND m.agent_id IS NOT NULL ORDER BY m.id LIMIT 1)`;

/** What is read of a live run's job. */
const jobFields = [
  ...(['id', 'userId', 'epoch', 'state'] as const),
  ...(['benchmark', 'simulatedRunS', 'simulatedIoS', 'inputs', 'outputs', 'parts'] as const),
  ...assignedFields,
];
type ReadJob = Pick<JobRow, (typeof jobFields)[number]>;
const jobReading = Object.fromEntries(
  jobFields.map((field) => [field, readField(field)]),
) as Reading<ReadJob>;

type LiveRun = [
  job: unknown[],
  plannedS: number,
  assignedAt: number,
  machineIds: number[],
  machineTasks: number[],
  ending: boolean,
  recalled: boolean,
  known: [task: number, ended: boolean][] | null,
  foreignInputs: Assignment['foreignInputs'],
  siteAgentId: number | null,
  devices: string[][] | null,
  stopGraceS: number | null,
  signals: SentSignal[] | null,
  limitS: number | null,
];
type ReadMachine = [id: number, name: string, benchmark: number, agentId: number | null, host: string];
type Live = [Cursor, LiveRun[], ReadMachine[]];

/** A LiveRun; needs runs as r and jobs as j. */
const liveRun = sql`${raw(
  `json_build_array(json_build_array(${Object.values(jobReading).join(', ')}), r.planned_s, date_part('epoch', r.assigned_at), r.machine_ids, r.machine_tasks, r.ending, r.recalled,
  CASE WHEN j.tasks > 1 THEN (SELECT json_agg(json_build_array(index, ended_at IS NOT NULL)) FROM tasks WHERE job_id = r.job_id AND epoch = r.epoch) END,
  CASE WHEN j.state = 'ASSIGNED' THEN (SELECT json_build_object('siteId', site_id, 'inputs', inputs) FROM foreign_jobs WHERE job_id = r.job_id AND inputs IS NOT NULL) END,`,
)} CASE WHEN r.placed_by = 'SITE' THEN ${siteAgent(sql`r.site_id`)} END, r.devices,
  CASE WHEN j.state = 'CANCELLING' THEN (j.preempted ->> 'graceS')::float8 END, r.signals, ${raw(limitOfRun)})`;
/** What a peer offered is not run before the peer has granted it; needs runs as r. */
const granted = sql`NOT EXISTS (SELECT 1 FROM foreign_jobs f WHERE f.job_id = r.job_id AND f.epoch IS NULL)`;
/** From `live`: its runs, and their machines, each once. */
const runsAndMachines = sql`
  (SELECT coalesce(json_agg(run ORDER BY place), '[]') FROM live),
  (SELECT coalesce(json_agg(json_build_array(m.id, name, benchmark, agent_id, coalesce(a.host, name))), '[]')
     FROM machines m LEFT JOIN agents a ON a.id = m.agent_id WHERE m.id IN (SELECT unnest(machine_ids) FROM live))`;

function assignmentsOf([, runs, machines]: Live): Assignment[] {
  const known = new Map(machines.map((machine) => [machine[0], machine]));
  const jobs = rowsOf(
    jobReading,
    runs.map(([job]) => job),
  );
  return runs.map((run, i) => assignment(jobs[i] as ReadJob, run, known));
}

function assignment(
  job: ReadJob,
  [
    ,
    plannedS,
    assignedAt,
    machineIds,
    machineTasks,
    ending,
    recalled,
    tasks,
    foreignInputs,
    siteAgentId,
    devices,
    stopGraceS,
    signals,
    runTimeLimitS,
  ]: LiveRun,
  known: ReadonlyMap<number, ReadMachine>,
): Assignment {
  const { id: jobId, state, benchmark, simulatedRunS, simulatedIoS, parts: jobParts } = job;
  const machines = machineIds.map((machineId, i) => {
    const [, name, power, agentId, host] = known.get(machineId) as ReadMachine;
    const here = { tasks: machineTasks[i] as number, devices: devices?.[i] ?? [] };
    return { machineId, name, host, ...here, benchmark: power, agentId };
  });
  // On the slowest of the run's machines, which all of its tasks wait for. Of machines that the site chooses nobody knows.
  const slowest = machines.length === 0 ? benchmark : Math.min(...machines.map(({ benchmark: of }) => of));
  const here = (seconds: number | null) => (seconds === null ? null : (seconds * benchmark) / slowest);
  // Nobody else has the job: added to, it need not be copied, which for so many fields is what takes the time.
  return Object.assign(job, {
    jobId,
    jobParts,
    token: tokenOf(assignedAt),
    state: state as Assignment['state'],
    machines,
    ending,
    recalled,
    stopGraceS,
    signals: signals ?? [],
    runTimeLimitS,
    known: tasks ?? [],
    siteAgentId,
    plannedS,
    simulatedS: here(simulatedRunS),
    simulatedIoS: here(simulatedIoS),
    foreignInputs,
  });
}

/** Bytes of a run before it in the order of `place`; needs runs as r and jobs as j. */
const bytesBefore = (place: string): Sql =>
  raw(
    `coalesce(sum(j.bytes + ${MACHINE_BYTES} * cardinality(r.machine_ids) + CASE WHEN j.tasks > 1 THEN
         ${TASK_BYTES} * (SELECT count(*) FROM tasks k WHERE k.job_id = r.job_id AND k.epoch = r.epoch) ELSE 0 END)
       OVER (ORDER BY ${place} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)`,
  );

/** Live runs of a site behind a job, in the order of jobs; and whether these are the last. */
function listAssignments(connection: Connection, part: Part, behind: number): Promise<[Live, last: boolean]> {
  const { siteId, limit, bytesMax } = part;
  return value(
    connection,
    prepared(sql`
WITH found AS MATERIALIZED (
  SELECT r.job_id AS place, ${bytesBefore('r.job_id')} AS before
    FROM runs r JOIN jobs j ON j.id = r.job_id
   WHERE r.site_id = ${siteId} AND r.ended_at IS NULL AND r.job_id > ${behind} AND ${granted} ${ofAgent(part)} ORDER BY r.job_id LIMIT ${limit + 1}
), part AS MATERIALIZED (
  SELECT place FROM found WHERE before < ${bytesMax} ORDER BY place LIMIT ${limit}
), live AS MATERIALIZED (
  SELECT p.place, r.machine_ids, ${liveRun} AS run
    FROM part p JOIN runs r ON r.job_id = p.place AND r.ended_at IS NULL JOIN jobs j ON j.id = p.place
)
SELECT json_build_array(json_build_array(${raw(latestCursor)}::text, ${runsAndMachines}),
  (SELECT count(*) FROM found) = (SELECT count(*) FROM part)) AS v`),
  );
}

/**
 * What a site's agent has to know behind a cursor: runs assigned, runs to be stopped; as they are now, and only if they
 * are still live. The window is bounded by events looked at, by events of this site, and by the bytes of their runs. null: retention has
 * passed the cursor, or there are no such events yet, as where the database was restored from a backup.
 */
function newAssignments(connection: Connection, part: Part, after: Cursor): Promise<Live | null> {
  const { siteId, limit, bytesMax } = part;
  return value(
    connection,
    prepared(sql`
WITH recent AS MATERIALIZED (
  SELECT id, entity_id, epoch, from_state, to_state, from_site_id, site_id, cause FROM events WHERE id > (SELECT ${after}::bigint) ORDER BY id LIMIT ${raw(String(WINDOW))}
), news AS MATERIALIZED (
  SELECT id, entity_id FROM recent WHERE site_id = ${siteId} AND (to_state IN ('ASSIGNED', 'CANCELLING') OR from_state = to_state AND to_state = 'RUNNING') ORDER BY id LIMIT ${limit}
), found AS MATERIALIZED (
  SELECT n.place, r.job_id, r.epoch, ${bytesBefore('n.place')} AS before
    FROM (SELECT entity_id, max(id) AS place FROM news GROUP BY entity_id) n
    JOIN jobs j ON j.id = n.entity_id AND j.state IN ${labels(liveStates)}
    JOIN runs r ON r.job_id = j.id AND r.epoch = j.epoch AND r.site_id = ${siteId} AND ${granted} ${ofAgent(part)}
), live AS MATERIALIZED (
  SELECT f.place, r.machine_ids, ${liveRun} AS run
    FROM found f JOIN jobs j ON j.id = f.job_id JOIN runs r ON r.job_id = f.job_id AND r.epoch = f.epoch
   WHERE f.before < ${bytesMax}
)
SELECT CASE WHEN ${after}::bigint BETWEEN (SELECT id FROM events_horizon) AND ${raw(latestCursor)} AND NOT EXISTS (
  SELECT 1 FROM recent e
   WHERE (site_id = ${siteId} OR from_site_id = ${siteId}) AND from_state IN ${labels(liveStates)} AND (cause = 'LOST' OR to_state IN ${labels(waitingStates)}
     OR from_state = 'CANCELLING' AND EXISTS (SELECT 1 FROM runs r WHERE r.job_id = e.entity_id AND r.epoch = e.epoch AND r.cause = 'LOST'))
) THEN json_build_array(
  coalesce(CASE WHEN EXISTS (SELECT 1 FROM found WHERE before >= ${bytesMax}) THEN (SELECT max(place) FROM live)
                WHEN (SELECT count(*) FROM news) < ${limit} THEN (SELECT max(id) FROM recent) ELSE (SELECT max(id) FROM news) END,
           ${after}::bigint)::text,
  ${runsAndMachines}) END AS v`),
  );
}

// Load -----------------------------------------------------------------------------------------------------------------------

/** Schedulers are told of it where it has changed: the trigger leaves out when it was said. */
export async function reportLoad(
  connection: Connection,
  siteId: number,
  agentId: number,
  { busy, details, licenses, ...waiting }: ReportedLoad,
  now: number,
): Promise<boolean> {
  const items = table('t', busy, {
    name: ['text', ({ machine }) => machine],
    cpus: ['integer', ({ cpus }) => cpus],
    memory_mb: ['integer', ({ memoryMb }) => memoryMb],
  });
  const waits = observedWaits(await waitsOfRuns(connection, siteId, now));
  const written = await run(
    connection,
    sql`
UPDATE sites s SET load_at = to_timestamp(${now}::float8), load_details = ${JSON.stringify(details)}::jsonb, load = ${JSON.stringify({ ...waiting, waits })}::jsonb || jsonb_build_object('busy',
    (SELECT coalesce(jsonb_agg(jsonb_build_object('machineId', m.id, 'cpus', t.cpus, 'memoryMb', t.memory_mb) ORDER BY m.id), '[]')
       FROM ${items} JOIN machines m ON m.name = t.name AND m.site_id = s.id AND m.removed_at IS NULL))
 WHERE s.id = ${siteId}::integer AND s.removed_at IS NULL AND ${siteAgent(sql`s.id`)} = ${agentId}::integer`,
  );
  if (written > 0 && licenses !== null) await setLicenses(connection, siteId, licenses);
  return written > 0;
}

/**
 * Pools of the site that its own scheduler counts, as it says. Of one that an operator has registered there nothing changes. Never less than runs
 * hold; one that is not told any more has nothing free.
 */
async function setLicenses(
  connection: Connection,
  siteId: number,
  licenses: NonNullable<ReportedLoad['licenses']>,
): Promise<void> {
  const told = table('t', licenses, {
    kind: ['text', ({ kind }) => kind],
    copies: ['integer', ({ copies }) => copies],
  });
  await run(
    connection,
    sql`
WITH told AS (SELECT kind, copies FROM ${told}), changed AS (
  UPDATE licenses l SET copies = greatest(l.in_use, coalesce(t.copies, 0))
    FROM (SELECT id, kind FROM licenses WHERE site_id = ${siteId}::integer AND reported AND removed_at IS NULL ORDER BY id FOR NO KEY UPDATE) mine
    LEFT JOIN told t USING (kind)
   WHERE l.id = mine.id AND l.copies <> greatest(l.in_use, coalesce(t.copies, 0)))
INSERT INTO licenses (kind, copies, site_id, reported)
SELECT kind, copies, ${siteId}::integer, true FROM told t
 WHERE NOT EXISTS (SELECT 1 FROM licenses WHERE site_id = ${siteId}::integer AND kind = t.kind AND removed_at IS NULL) ORDER BY kind
ON CONFLICT DO NOTHING`,
  );
}

/**
 * Runs that the site's own scheduler has or had: those that wait there, and those that began lately, the latest first. Runs that began lately
 * live, or have ended since: no index is on when a run starts, for then each start of any run would be a new entry in all of them.
 */
async function waitsOfRuns(connection: Connection, siteId: number, now: number): Promise<WaitOfRun[]> {
  const asked = sql`j.tasks, j.cpus_per_task AS "cpusPerTask", j.parts, ${raw(limitOfRun)} AS "limitS"`;
  const ofSite = sql`r.site_id = ${siteId}::integer AND r.placed_by = 'SITE'`;
  const most = sql`LIMIT ${WAITS_SEEN_MAX}::integer`;
  const lately = sql`to_timestamp(${now - WAITS_SEEN_S}::float8)`;
  const found = await rows<Omit<WaitOfRun, 'cpus'> & Parameters<typeof cpusOf>[0]>(
    connection,
    sql`
(SELECT ${asked}, ${now}::float8 - date_part('epoch', r.assigned_at) AS "waitS", false AS began
   FROM runs r JOIN jobs j ON j.id = r.job_id
  WHERE ${ofSite} AND r.ended_at IS NULL AND r.started_at IS NULL ORDER BY r.assigned_at, r.job_id ${most})
UNION ALL
(SELECT ${asked}, date_part('epoch', r.started_at - r.assigned_at), true
   FROM (
     (SELECT r.* FROM runs r WHERE ${ofSite} AND r.ended_at IS NULL AND r.started_at > ${lately} ORDER BY r.started_at DESC ${most})
     UNION ALL
     (SELECT r.* FROM runs r WHERE ${ofSite} AND r.ended_at > ${lately} AND r.started_at > ${lately} ORDER BY r.ended_at DESC ${most})) r
   JOIN jobs j ON j.id = r.job_id ORDER BY r.started_at DESC, r.job_id DESC ${most})`,
  );
  return found.map(({ limitS, waitS, began, ...job }) => ({ cpus: cpusOf(job), limitS, waitS, began }));
}

// Images ---------------------------------------------------------------------------------------------------------------------

/** Schedulers are told where something has changed (`triggers.agent_images_changed`). Reports of one agent are taken one after the other. */
export const reportImages = (
  database: Pick<Database, 'pool'>,
  siteId: number,
  agentId: number,
  images: readonly ReportedImage[],
): Promise<{ serves: boolean; changed: boolean }> =>
  transaction(database, async (tx) => {
    const serves = await value<boolean>(
      tx,
      sql`
SELECT EXISTS (SELECT FROM (SELECT id FROM agents WHERE id = ${agentId}::integer AND site_id = ${siteId}::integer FOR NO KEY UPDATE) a)
   AND EXISTS (SELECT FROM machines WHERE agent_id = ${agentId}::integer AND removed_at IS NULL) AS v`,
    );
    const told = table('t', serves ? images : [], {
      name: ['text', ({ name }) => name],
      digest: ['text', ({ digest }) => digest],
      size_mb: ['float8', ({ sizeMb }) => sizeMb],
    });
    const gone = await run(
      tx,
      sql`DELETE FROM agent_images WHERE agent_id = ${agentId}::integer AND name NOT IN (SELECT name FROM ${told})`,
    );
    const put = await run(
      tx,
      sql`
INSERT INTO agent_images AS i (agent_id, site_id, name, digest, size_mb)
SELECT ${agentId}::integer, ${siteId}::integer, name, digest, size_mb FROM ${told}
 WHERE EXISTS (SELECT FROM agent_images WHERE agent_id = ${agentId}::integer AND name = t.name)
    OR (SELECT count(*) FROM agent_images WHERE site_id = ${siteId}::integer) < ${MAX.siteImages}::integer
 ORDER BY name
ON CONFLICT (agent_id, name) DO UPDATE SET digest = excluded.digest, size_mb = excluded.size_mb
 WHERE (i.digest, i.size_mb) IS DISTINCT FROM (excluded.digest, excluded.size_mb)`,
    );
    return { serves, changed: gone + put > 0 };
  });

// Presence --------------------------------------------------------------------------------------------------------------------

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
SELECT date_part('epoch', min(since)) AS v FROM processes
 WHERE kind = 'api' AND seen_at >= to_timestamp(${now}::float8) - make_interval(secs => ${PRESENCE_GAP_S}::float8)`,
  );
}

/** Of agents as a: not heard from for so long, since there was an API to talk to. */
export const unheard = (present: number, now: number, forS: number): Sql =>
  sql`greatest(a.seen_at, to_timestamp(${present}::float8)) < to_timestamp(${now}::float8) - make_interval(secs => ${forS}::float8)`;
