/** What agents, and the service in their place, report of runs. */
import { isLive } from '../../core/states.js';
import { MAX } from '../../platform/limits.js';
import { list, table } from '../columns.js';
import { commitWith, type Database, type Transaction, transaction } from '../pool.js';
import {
  allOf,
  type BatchChanges,
  type EndedJob,
  judgeBatch,
  type LockedJob,
  type NextRun,
  type RunChange,
} from '../report-batch.js';
import {
  asksForMachines,
  messageOfNext,
  type Placed,
  placeOfFailure,
  type RetryFacts,
  type RetryMachine,
} from '../retries.js';
import { type FinalEnd, isMeant, keptPiece, MACHINE_FAILURES_MAX } from '../rules.js';
import type { TakenStep } from '../run-reports.js';
import { empty, type Sql, sql } from '../sql.js';
import { prepared, rows, run } from '../statement.js';
import type { OutputBounds, OutputOutcome, ReportOutcome, RunOutput, RunReport } from '../store.js';
import { ofTask, type RunTasks } from '../tasks.js';
import { siteAgent } from './agents.js';
import { changeJobs } from './change-jobs.js';
import { putTasks, tasksOf, usedByTasks } from './tasks.js';
import { usageFrom, usageItems } from './usage.js';

/** What is reported at once. */
export interface Reported {
  /** null: the service itself reports, for any site. */
  siteId: number | null;
  reports: readonly RunReport[];
  maxAttempts: number;
  /** null: the service, for all of the site. */
  agentId?: number | null;
  /** See `OutputBounds`; left out: no bound. */
  userBytes?: number | undefined;
}

export async function reportRuns(
  database: Pick<Database, 'pool'>,
  reported: Reported,
): Promise<ReportOutcome> {
  if (reported.reports.length === 0) return { results: [], touched: [] };
  const [outcome] = await reportTogether(database, [reported]);
  return outcome as ReportOutcome;
}

/**
 * What becomes of each. `skipLocked`: null is said of those that report of a job that somebody else has locked, or that one before reports
 * of; otherwise jobs are waited for, and only one may report.
 */
export function reportTogether(
  database: Pick<Database, 'pool'>,
  all: readonly Reported[],
  skipLocked = false,
): Promise<(ReportOutcome | null)[]> {
  return transaction(database, async (tx) => {
    const reporterOf = reportersByJob(all);
    const locked = await lockJobs(tx, reporterOf, skipLocked);
    const isTaken = (one: Reported): boolean =>
      one.reports.every(({ jobId }) => reporterOf.get(jobId) === one && locked.jobs.has(jobId));
    const taken = skipLocked ? all.filter(isTaken) : all;
    const reports = taken.flatMap((one) => one.reports);
    const siteOf = await sitesOfReports(tx, reports, locked.jobs);
    const tasks = await tasksOf(tx, reports.filter(ofTask));
    const facts = { ...locked, siteOf, tasks, retryFacts: await retryFacts(tx, reports, locked.jobs, tasks) };
    const judged = new Map(
      taken.map((one) => {
        const { siteId, agentId = null, maxAttempts } = one;
        return [one, judgeBatch(one.reports, { ...facts, siteId, agentId, maxAttempts })];
      }),
    );
    await apply(
      tx,
      allOf([...judged.values()]),
      ({ jobId }) => (locked.jobs.get(jobId) as LockedJob).userId,
      ({ jobId }) => reporterOf.get(jobId)?.userBytes ?? Infinity,
    );
    return all.map((one) => {
      const batch = judged.get(one);
      return batch ? { results: [...batch.results], touched: [...batch.touched] } : null;
    });
  });
}

/** Of several that report of a job, the first. */
function reportersByJob(all: readonly Reported[]): Map<number, Reported> {
  const reporterOf = new Map<number, Reported>();
  for (const one of all)
    for (const { jobId } of one.reports) if (!reporterOf.has(jobId)) reporterOf.set(jobId, one);
  return reporterOf;
}

/** Writes what a batch changes, and commits: the changes of jobs, with their events, come last. */
async function apply(
  tx: Transaction,
  { runs, tasks, outputs, steps, endedByTasks, started, ending, ended, requeued, failed }: BatchChanges,
  userOf: (piece: RunOutput) => number,
  userBytesOf: (piece: RunOutput) => number,
): Promise<void> {
  if (tasks.length > 0) await putTasks(tx, tasks);
  for (const [jobId, used] of await usedByTasks(tx, endedByTasks))
    Object.assign(runs.get(jobId)?.ended as RunReport, used);
  if (runs.size > 0) await updateRuns(tx, [...runs]);
  if (outputs.length > 0) await insertOutputs(tx, await withinShares(tx, outputs, userOf, userBytesOf));
  if (steps.length > 0) await insertSteps(tx, steps);
  const later = requeued.filter(({ end }) => end.state === 'BLOCKED');
  if (later.length > 0) await waitUntil(tx, later);
  const changes = [
    ...(started.length > 0 ? [startJobs(started)] : []),
    ...(ending.length > 0 ? [endTasks(ending)] : []),
    ...(ended.length > 0 ? [endJobs(ended)] : []),
    ...(requeued.length > 0 ? [requeueJobs(requeued)] : []),
    ...(failed.length > 0 ? [leaveMachines(failed)] : []),
  ];
  if (changes.length > 0) await commitWith(tx, changes);
}

/**
 * Locks the jobs of reports in the order of ids. Whether a run is live is told by its job's row (the latest epoch, and a
 * state with a live run), never by the row of the run: that one is read without a lock, as of the beginning of the statement, and may
 * have ended while we waited.
 */
async function lockJobs(
  tx: Transaction,
  reporterOf: ReadonlyMap<number, Reported>,
  skipLocked: boolean,
): Promise<{ jobs: Map<number, LockedJob & { siteId: number | null }>; now: number }> {
  const asked = table('t', [...reporterOf], {
    id: ['bigint', ([jobId]) => jobId],
    agent_id: ['integer', ([, { agentId }]) => agentId ?? null],
  });
  type LatestRun = [since: number, assignedAt: number, served: boolean, atSite: boolean];
  type Found = Omit<LockedJob, 'since' | 'assignedAt' | 'served' | 'atSite'>;
  const found = await rows<
    Found & { id: number; siteId: number | null; latest: LatestRun | null; now: number }
  >(
    tx,
    prepared(sql`
SELECT jobs.id, user_id AS "userId", state, site_id AS "siteId", epoch, cause, stop_cause AS "stopCause", preempted, started_at IS NOT NULL AS started,
       (SELECT json_build_array(date_part('epoch', coalesce(r.started_at, r.assigned_at)), date_part('epoch', r.assigned_at),
           t.agent_id IS NULL OR ${servedBy(sql`t.agent_id`, sql`jobs`)}, r.placed_by = 'SITE')
          FROM runs r WHERE r.job_id = jobs.id AND r.epoch = jobs.epoch) AS latest,
       date_part('epoch', clock_timestamp()) AS now
  FROM ${asked} JOIN jobs ON jobs.id = t.id ORDER BY jobs.id FOR NO KEY UPDATE OF jobs ${skipLocked ? sql`SKIP LOCKED` : empty}`),
  );
  const jobs = new Map(
    found.map((job) => {
      const agentId = reporterOf.get(job.id)?.agentId ?? null;
      const [since, assignedAt, served, atSite] = job.latest ?? [null, null, agentId === null, false];
      return [job.id, Object.assign(job, { since, assignedAt, served, atSite })];
    }),
  );
  // The latest of them, behind the last lock.
  return { jobs, now: found.at(-1)?.now ?? 0 };
}

/** Where the runs are: a live one is at the site of its job, others are looked up. */
async function sitesOfReports(
  tx: Transaction,
  reports: readonly RunReport[],
  jobs: ReadonlyMap<number, LockedJob & { siteId: number | null }>,
): Promise<(report: RunReport) => number | undefined> {
  const key = ({ jobId, epoch }: Pick<RunReport, 'jobId' | 'epoch'>) => `${jobId}/${epoch}`;
  const siteOfRun = new Map<string, number>();
  for (const [jobId, { state, epoch, siteId }] of jobs)
    if (isLive(state)) siteOfRun.set(key({ jobId, epoch }), siteId as number);
  const others = reports.filter((report) => jobs.has(report.jobId) && !siteOfRun.has(key(report)));
  if (others.length > 0) for (const run of await sitesOfRuns(tx, others)) siteOfRun.set(key(run), run.siteId);
  return (report) => siteOfRun.get(key(report));
}

function sitesOfRuns(
  tx: Transaction,
  reports: readonly RunReport[],
): Promise<{ jobId: number; epoch: number; siteId: number }[]> {
  const pairs = table('t', reports, {
    job_id: ['bigint', (report) => report.jobId],
    epoch: ['integer', (report) => report.epoch],
  });
  return rows(
    tx,
    sql`SELECT job_id AS "jobId", epoch, site_id AS "siteId" FROM ${pairs} JOIN runs r USING (job_id, epoch)`,
  );
}

/** Whether an agent serves a run `r` of a job as a whole: its site's scheduler, all its machines or, of one that is launched once, the first. */
export const servedBy = (
  agentId: Sql,
  job: Sql,
): Sql => sql`CASE WHEN r.placed_by = 'SITE' THEN ${siteAgent(sql`r.site_id`)} = ${agentId} ELSE NOT EXISTS (
  SELECT FROM unnest(CASE WHEN ${job}.launch = 'ONCE' THEN r.machine_ids[1:1] ELSE r.machine_ids END) AS u (id) JOIN machines m USING (id)
   WHERE m.agent_id IS DISTINCT FROM ${agentId}) END`;

/** Whether what `t` tells of a task (such as a piece of its output) of a run `r` of a job `j` is from an agent that serves the machine it is on. */
export const writtenUnder = (agentId: number): Sql => sql`${agentId}::integer = (
  CASE WHEN r.placed_by = 'SITE' THEN ${siteAgent(sql`r.site_id`)} ELSE
    (SELECT agent_id FROM machines WHERE id = triggers.machine_of(r.machine_ids, r.machine_tasks, t.task)) END)`;

/** One update for a run, also when its start and its end arrive together. The trigger gives machines and licenses back. */
function updateRuns(
  tx: Transaction,
  changes: readonly (readonly [jobId: number, RunChange])[],
): Promise<number> {
  const items = table('t', changes, {
    job_id: ['bigint', ([jobId]) => jobId],
    epoch: ['integer', ([, { epoch }]) => epoch],
    started_at: ['float8', ([, { startedAt }]) => startedAt],
    ended_at: ['float8', ([, { ended }]) => ended?.at ?? null],
    exit_code: ['integer', ([, { ended }]) => ended?.exitCode ?? null],
    signal: ['text', ([, { ended }]) => ended?.signal ?? null],
    cause: ['end_cause', ([, { ended }]) => ended?.cause ?? null],
    message: ['text', ([, { ended }]) => ended?.message ?? null],
    retry: ['text', ([, { retry }]) => retry && JSON.stringify(retry)],
    failed_task: ['integer', ([, { failedTask }]) => failedTask],
    ending: ['boolean', ([, { ending }]) => ending],
    ...usageItems<readonly [number, RunChange]>(([, { ended }]) => ended),
  });
  const local = changes.some((change) => change[1].local !== null);
  const localTable = table('l', local ? changes : [], {
    job_id: ['bigint', ([jobId]) => jobId],
    id: ['text', ([, { local }]) => local?.id ?? null],
    state: ['text', ([, { local }]) => local?.state ?? null],
    nodes: ['text', ([, { local }]) => (local?.nodes ? JSON.stringify(local.nodes) : null)],
    image_digest: ['text', ([, { local }]) => local?.imageDigest ?? null],
    directory: ['text', ([, { local }]) => local?.directory ?? null],
  });
  // What nearly no run has costs the others nothing.
  const localFields = local
    ? sql`, local_id = coalesce(l.id, r.local_id), local_state = coalesce(l.state, r.local_state),
    image_digest = coalesce(l.image_digest, r.image_digest), local_directory = coalesce(l.directory, r.local_directory),
    nodes = CASE WHEN l.nodes IS NULL THEN r.nodes ELSE ARRAY(SELECT json_array_elements_text(l.nodes::json)) END`
    : empty;
  return run(
    tx,
    prepared(sql`
UPDATE runs r SET started_at = coalesce(to_timestamp(t.started_at), r.started_at), ended_at = to_timestamp(t.ended_at),
    exit_code = t.exit_code, signal = t.signal, cause = t.cause, message = t.message, ${usageFrom('t')},
    retry = t.retry::jsonb, failed_task = coalesce(t.failed_task, r.failed_task), ending = r.ending OR t.ending ${localFields}
  FROM ${items} ${local ? sql`JOIN ${localTable} ON l.job_id = t.job_id` : empty} WHERE r.job_id = t.job_id AND r.epoch = t.epoch`),
  );
}

/** With what does not fit into the share of its user left out. */
async function withinShares(
  tx: Transaction,
  pieces: readonly RunOutput[],
  userOf: (piece: RunOutput) => number,
  userBytesOf: (piece: RunOutput) => number,
): Promise<RunOutput[]> {
  const users = [...new Set(pieces.map(userOf))];
  const used = new Map(
    (
      await rows<{ userId: number; bytes: number }>(
        tx,
        sql`SELECT user_id AS "userId", bytes FROM user_outputs WHERE user_id = ANY (${list('integer', users)})`,
      )
    ).map(({ userId, bytes }) => [userId, bytes]),
  );
  // Pieces of one stream that are left out fall together.
  const kept = new Map<string, RunOutput>();
  for (const piece of pieces) {
    const user = userOf(piece);
    const taken = used.get(user) ?? 0;
    const rest = keptPiece(piece, userBytesOf(piece) - taken);
    used.set(user, taken + rest.body.length);
    const key = `${rest.jobId}/${rest.epoch}/${rest.task ?? 0}/${rest.stream}/${rest.start}`;
    const same = kept.get(key);
    kept.set(key, {
      ...rest,
      body: same && same.body.length > rest.body.length ? same.body : rest.body,
      bytes: Math.max(rest.bytes, same?.bytes ?? 0),
    });
  }
  return [...kept.values()];
}

const pieceTable = (pieces: readonly RunOutput[]): Sql =>
  table('t', pieces, {
    job_id: ['bigint', ({ jobId }) => jobId],
    epoch: ['integer', ({ epoch }) => epoch],
    task: ['integer', ({ task }) => task ?? 0],
    stream: ['output_stream', ({ stream }) => stream],
    start: ['bigint', ({ start }) => start],
    body: ['text', ({ body }) => body.toString('base64')],
    bytes: ['bigint', ({ bytes }) => bytes],
  });

/** A piece that is there already, in part perhaps, is the same up to its length. */
function insertOutputs(tx: Transaction, pieces: readonly RunOutput[]): Promise<number> {
  return run(
    tx,
    sql`
INSERT INTO outputs AS o (job_id, epoch, task, stream, start, body, bytes)
  SELECT job_id, epoch, task, stream, start, decode(body, 'base64'), bytes FROM ${pieceTable(pieces)}
  ON CONFLICT (job_id, epoch, task, stream, start) DO UPDATE SET bytes = greatest(o.bytes, excluded.bytes),
    body = CASE WHEN length(excluded.body) >= length(o.body) THEN excluded.body ELSE o.body END`,
  );
}

/** Their run has just ended, and does so once. */
function insertSteps(tx: Transaction, steps: readonly TakenStep[]): Promise<number> {
  const items = table('t', steps, {
    job_id: ['bigint', ({ jobId }) => jobId],
    epoch: ['integer', ({ epoch }) => epoch],
    task: ['integer', ({ task }) => task],
    number: ['integer', ({ number }) => number],
    name: ['text', ({ name }) => name],
    tasks: ['integer', ({ tasks }) => tasks],
    machines: ['integer', ({ machines }) => machines],
    cpus: ['integer', ({ cpus }) => cpus],
    started_at: ['float8', ({ startedAt }) => startedAt],
    ended_at: ['float8', ({ endedAt }) => endedAt],
    exit_code: ['integer', ({ exitCode }) => exitCode],
    signal: ['text', ({ signal }) => signal],
  });
  return run(
    tx,
    sql`
INSERT INTO run_steps (job_id, epoch, task, number, name, tasks, machines, cpus, started_at, ended_at, exit_code, signal)
  SELECT job_id, epoch, task, number, name, tasks, machines, cpus, to_timestamp(started_at), to_timestamp(ended_at), exit_code, signal FROM ${items}
  ON CONFLICT DO NOTHING`,
  );
}

/** Small pieces are put together up to this size: a job that writes a line a second makes no row for each. */
const ROW_BYTES = 16_384;

/** Keeps what runs write while they go on. */
export async function reportOutput(
  database: Pick<Database, 'pool'>,
  siteId: number,
  pieces: readonly RunOutput[],
  { keepBytes, userBytes }: OutputBounds,
  agentId: number | null,
): Promise<OutputOutcome[]> {
  if (pieces.length === 0) return [];
  return transaction(database, async (tx) => {
    const asked = table('t', pieces, {
      job_id: ['bigint', ({ jobId }) => jobId],
      epoch: ['integer', ({ epoch }) => epoch],
      task: ['integer', ({ task }) => task ?? 0],
    });
    const held = agentId === null ? empty : sql`AND ${writtenUnder(agentId)}`;
    const served = await rows<{
      place: number;
      live: boolean;
      assignedAt: number;
      jobId: number;
      userId: number;
    }>(
      tx,
      sql`
SELECT place::integer, r.ended_at IS NULL AS live, date_part('epoch', r.assigned_at) AS "assignedAt", r.job_id AS "jobId", j.user_id AS "userId"
  FROM ${asked} JOIN runs r USING (job_id, epoch) JOIN jobs j ON j.id = r.job_id WHERE r.site_id = ${siteId} ${held}`,
    );
    const runs = served.filter(({ place, assignedAt }) => isMeant(pieces[place - 1]?.token, assignedAt));
    const live = new Map(runs.map((run) => [run.place - 1, run.live]));
    const users = new Map(runs.map(({ jobId, userId }) => [jobId, userId]));
    const told = pieces.filter((_, i) => live.get(i));
    if (told.length > 0) {
      const kept = await withinShares(
        tx,
        told,
        ({ jobId }) => users.get(jobId) as number,
        () => userBytes,
      );
      const appended = await rows<{ place: number }>(
        tx,
        sql`
UPDATE outputs o SET body = o.body || decode(t.body, 'base64'), bytes = greatest(o.bytes, t.bytes)
  FROM ${pieceTable(kept)} WHERE (o.job_id, o.epoch, o.task, o.stream) = (t.job_id, t.epoch, t.task, t.stream)
   AND o.start + length(o.body) = t.start AND length(o.body) + length(t.body) * 3 / 4 <= ${ROW_BYTES}
  RETURNING t.place::integer`,
      );
      const places = new Set(appended.map(({ place }) => place - 1));
      const others = kept.filter((_, i) => !places.has(i));
      if (others.length > 0) await insertOutputs(tx, others);
      const long = kept.filter(({ bytes }) => bytes > keepBytes);
      if (long.length > 0) await cutOutputs(tx, long, keepBytes);
    }
    const received = await receivedOf(tx, pieces);
    return pieces.map((_, i): OutputOutcome => {
      const result = live.get(i) ? 'accepted' : live.has(i) ? 'stale-epoch' : 'unknown-run';
      return { result, received: live.get(i) ? (received.get(i) ?? null) : null };
    });
  });
}

/** By place of those that are empty: up to which byte their streams are kept. */
async function receivedOf(tx: Transaction, pieces: readonly RunOutput[]): Promise<Map<number, number>> {
  const asked = pieces.flatMap((piece, i) => (piece.body.length === 0 ? [{ ...piece, i }] : []));
  if (asked.length === 0) return new Map();
  const items = table('t', asked, {
    i: ['integer', ({ i }) => i],
    job_id: ['bigint', ({ jobId }) => jobId],
    epoch: ['integer', ({ epoch }) => epoch],
    task: ['integer', ({ task }) => task ?? 0],
    stream: ['output_stream', ({ stream }) => stream],
  });
  const found = await rows<{ i: number; received: number }>(
    tx,
    sql`
SELECT i, max(o.start + length(o.body))::float8 AS received FROM ${items} JOIN outputs o USING (job_id, epoch, task, stream) GROUP BY i`,
  );
  return new Map(found.map(({ i, received }) => [i, received]));
}

/** Gives up what lies behind the head and before the tail. */
function cutOutputs(tx: Transaction, pieces: readonly RunOutput[], keepBytes: number): Promise<number> {
  const half = Math.floor(keepBytes / 2);
  return run(
    tx,
    sql`
DELETE FROM outputs o USING ${pieceTable(pieces.map((piece) => ({ ...piece, body: Buffer.alloc(0) })))}
 WHERE (o.job_id, o.epoch, o.task, o.stream) = (t.job_id, t.epoch, t.task, t.stream)
   AND o.start >= ${half} AND o.start + length(o.body) <= t.bytes - ${half}`,
  );
}

/** A job that is to be stopped stays CANCELLING. */
function startJobs(started: readonly RunReport[]): Sql {
  const items = table('t', started, { id: ['bigint', ({ jobId }) => jobId], at: ['float8', ({ at }) => at] });
  return changeJobs('reportStart', items, { startedAt: sql`to_timestamp(t.at)` });
}

function endJobs(ended: readonly EndedJob<FinalEnd>[]): Sql {
  const items = table('t', ended, {
    id: ['bigint', ({ report }) => report.jobId],
    state: ['job_state', ({ end }) => end.state],
    cause: ['end_cause', ({ end }) => end.cause],
    at: ['float8', ({ report }) => report.at],
    exit_code: ['integer', ({ report }) => report.exitCode],
    message: ['text', ({ report }) => report.message],
    note: ['text', ({ end }) => end.retry?.note ?? null],
  });
  const settings = {
    cause: sql`t.cause`,
    endedAt: sql`to_timestamp(t.at)`,
    exitCode: sql`t.exit_code`,
    message: sql`t.message`,
    note: sql`t.note`,
    deadlineMissed: sql`j.deadline_missed OR coalesce(to_timestamp(t.at) > j.deadline, false)`,
  };
  return changeJobs('reportEnd', items, settings, sql`t.state`);
}

/** Their agents are told of it by the event. */
const endTasks = (reports: readonly RunReport[]): Sql =>
  changeJobs('endTasks', table('t', reports, { id: ['bigint', ({ jobId }) => jobId] }), {});

/** To be started again: at the root, or later. */
function requeueJobs(requeued: readonly EndedJob<NextRun>[]): Sql {
  const items = table('t', requeued, {
    id: ['bigint', ({ report }) => report.jobId],
    state: ['job_state', ({ end }) => end.state],
    message: ['text', ({ report, end }) => messageOfNext(report, end)],
    note: ['text', ({ end }) => end.retry.note],
    retries: ['integer', ({ end }) => end.retry.retries],
    memory_mb: ['integer', ({ end }) => end.retry.memoryMb],
    avoids: ['text', ({ end }) => end.retry.avoids && JSON.stringify(end.retry.avoids)],
  });
  const settings = {
    message: sql`t.message`,
    note: sql`t.note`,
    retries: sql`t.retries`,
    memoryMbPerTask: sql`t.memory_mb`,
    avoids: sql`t.avoids::jsonb`,
  };
  return changeJobs('requeue', items, settings, sql`t.state`);
}

/** What the follower of needs reads of jobs that wait for a time. Of what they needed before nothing changes. */
function waitUntil(tx: Transaction, later: readonly EndedJob<NextRun>[]): Promise<number> {
  const items = table('t', later, {
    id: ['bigint', ({ report }) => report.jobId],
    at: ['float8', ({ report, end }) => report.at + (end.retry.delayS as number)],
  });
  return run(
    tx,
    sql`
INSERT INTO job_needs (job_id, needs, on_unmet, not_before, due_at)
  SELECT id, '[]', 'RUN', to_timestamp(at), to_timestamp(at) FROM ${items}
  ON CONFLICT (job_id) DO UPDATE SET not_before = excluded.not_before, due_at = excluded.due_at, open = true`,
  );
}

/** What decides about runs that have ended badly, by job: nearly none have, and the others cost nothing. */
async function retryFacts(
  tx: Transaction,
  reports: readonly RunReport[],
  jobs: ReadonlyMap<number, LockedJob>,
  tasks: ReadonlyMap<number, RunTasks>,
): Promise<(jobId: number, failedTask: number | null, begun: boolean) => RetryFacts> {
  const failed = new Set(
    reports.flatMap(({ jobId, phase, cause }) =>
      phase === 'ENDED' && jobs.has(jobId) && (cause !== 'EXITED_ZERO' || tasks.get(jobId)?.of.failure)
        ? [jobId]
        : [],
    ),
  );
  type Failed = RetryFacts['job'] & { id: number; runs: ({ live: boolean } & Placed)[] };
  const found =
    failed.size === 0
      ? []
      : await rows<Failed>(
          tx,
          sql`
SELECT id, retry, retries, restartable, tasks, cpus_per_task AS "cpusPerTask", memory_mb_per_task AS "memoryMbPerTask",
       resources_per_task AS "resourcesPerTask", os, architecture, machine_constraint AS "machineConstraint", image,
       (SELECT coalesce(json_agg(json_build_object('live', r.epoch = j.epoch, 'siteId', r.site_id, 'machineIds', r.machine_ids,
                 'machineTasks', r.machine_tasks, 'failedTask', r.failed_task)), '[]')
          FROM runs r WHERE r.job_id = j.id AND (r.epoch = j.epoch OR (r.retry -> 'counted')::boolean)) AS runs
  FROM jobs j WHERE id = ANY (${list('bigint', [...failed])})`,
        );
  const byJob = new Map(found.map((job) => [job.id, job]));
  const machines = found.some(asksForMachines)
    ? await rows<RetryMachine['machine'] & { site: string }>(
        tx,
        sql`
SELECT m.id, m.cpus, m.memory_mb AS "memoryMb", m.resources, m.max_tasks AS "maxTasks", m.os, m.architecture, coalesce(m.measured -> 'labels', '{}') || m.labels AS labels, m.devices, s.name AS site
  FROM machines m JOIN sites s ON s.id = m.site_id WHERE m.removed_at IS NULL AND s.removed_at IS NULL`,
      )
    : [];
  const inService = machines.map(({ site, ...machine }) => ({ machine, site }));
  return (jobId, failedTask, begun) => {
    const job = byJob.get(jobId) as Failed;
    const live = job.runs.find((one) => one.live) as Placed;
    const before = job.runs.filter((one) => !one.live).map(placeOfFailure);
    const here = placeOfFailure({ ...live, failedTask: failedTask ?? live.failedTask });
    return { job, begun, before, here, machines: inService };
  };
}

/**
 * Machines that could not launch a run get no more until their agents say that they can, or if this keeps happening until an operator
 * sets their state. They are locked: the runs have just ended.
 */
function leaveMachines(failed: readonly RunReport[]): Sql {
  const items = table('t', failed, {
    job_id: ['bigint', ({ jobId }) => jobId],
    epoch: ['integer', ({ epoch }) => epoch],
    message: ['text', ({ message }) => message],
  });
  const drained = sql`m.state = 'UP' AND m.launch_failures >= ${MACHINE_FAILURES_MAX}`;
  return sql`
UPDATE machines m SET problem = f.why, state = CASE WHEN ${drained} THEN 'DRAINING' ELSE m.state END,
    reason = CASE WHEN ${drained} THEN m.launch_failures || ' launches in a row have failed; ' || f.why ELSE m.reason END
  FROM (SELECT DISTINCT ON (id) triggers.machine_of(r.machine_ids, r.machine_tasks, r.failed_task) AS id, left('the last launch failed: ' || coalesce(t.message, ''), ${MAX.reasonChars}::integer) AS why
          FROM ${items} JOIN runs r USING (job_id, epoch) ORDER BY 1, job_id DESC) f
 WHERE m.id = f.id AND m.removed_at IS NULL`;
}
