/** What agents, and the service in their place, report of runs. */
import { isLive } from '../../core/states.js';
import { MAX } from '../../platform/limits.js';
import { list, table } from '../columns.js';
import { commitWith, type Database, type Transaction, transaction } from '../pool.js';
import {
  type JobEnd,
  judgeReport,
  MACHINE_FAILURES_MAX,
  type ReportedJob,
  timesOfReports,
} from '../rules.js';
import { type Sql, sql } from '../sql.js';
import { rows, run } from '../statement.js';
import type { OutputPiece, ReportOutcome, ReportResult, RunReport } from '../store.js';
import { changeJobs } from './change-jobs.js';

/** `siteId` null: the service itself reports, for any site. */
export async function reportRuns(
  database: Pick<Database, 'pool'>,
  siteId: number | null,
  reports: readonly RunReport[],
  maxAttempts: number,
  agentId: number | null = null,
): Promise<ReportOutcome> {
  if (reports.length === 0) return { results: [], touched: [] };
  return transaction(database, async (tx): Promise<ReportOutcome> => {
    const { jobs, siteOf, now } = await lockJobs(tx, reports, agentId);
    const timeOf = timesOfReports(reports, now);
    const results: ReportResult[] = [];
    const touched = new Set<number | null>();
    /** By job: what changes of its live run. */
    const runs = new Map<number, RunChange>();
    const outputs: Output[] = [];
    const started: RunReport[] = [];
    const ended: EndedJob[] = [];
    const requeued: RunReport[] = [];
    const failed: RunReport[] = [];

    for (const told of reports) {
      const job = jobs.get(told.jobId);
      const site = siteOf(told);
      if (job === undefined || site === undefined || (siteId !== null && site !== siteId) || !job.served) {
        results.push('unknown-run');
        continue;
      }
      const judgment = judgeReport(job, told, maxAttempts);
      results.push(judgment.result);
      if (judgment.result !== 'accepted') continue;
      const report = { ...told, at: timeOf(told, job.since) };
      job.since = report.at;
      const change = runs.get(report.jobId) ?? { epoch: report.epoch, startedAt: null, ended: null };
      runs.set(report.jobId, change);
      if (judgment.started) {
        change.startedAt = report.at;
        job.started = true;
        if (job.state === 'ASSIGNED') job.state = 'RUNNING';
        started.push(report);
      }
      if (report.stdout) outputs.push({ report, stream: 'STDOUT', piece: report.stdout });
      if (report.stderr) outputs.push({ report, stream: 'STDERR', piece: report.stderr });
      const { end } = judgment;
      if (end === null) continue;
      change.ended = report;
      job.state = end.state;
      touched.add(site);
      if (report.cause === 'MACHINE_FAILED') {
        failed.push(report);
        touched.add(null);
      }
      if (end.state === 'QUEUED') {
        touched.add(null);
        requeued.push(report);
      } else {
        job.cause = end.cause;
        ended.push({ report, end });
      }
    }

    if (runs.size > 0) await updateRuns(tx, [...runs]);
    if (outputs.length > 0) await upsertOutputs(tx, outputs);
    const changes = [
      ...(started.length > 0 ? [startJobs(started)] : []),
      ...(ended.length > 0 ? [endJobs(ended)] : []),
      ...(requeued.length > 0 ? [requeueJobs(requeued)] : []),
      ...(failed.length > 0 ? [leaveMachines(failed)] : []),
    ];
    if (changes.length > 0) await commitWith(tx, changes);
    return { results, touched: [...touched] };
  });
}

/** `since`: when its latest run was started or, before that, assigned, epoch seconds; null: nobody knows. */
type LockedJob = ReportedJob & {
  since: number | null;
  /** The reporting agent serves a machine of its latest run. */
  served: boolean;
};

interface RunChange {
  epoch: number;
  /** null: as it was. */
  startedAt: number | null;
  /** null: it has not. */
  ended: RunReport | null;
}

interface Output {
  report: RunReport;
  stream: 'STDOUT' | 'STDERR';
  piece: OutputPiece;
}

interface EndedJob {
  report: RunReport;
  end: Exclude<JobEnd, { state: 'QUEUED' }>;
}

/**
 * Locks the jobs of a batch of reports in the order of ids. Whether a run is live is told by its job's row (the latest epoch, and a
 * state with a live run), never by the row of the run: that one is read without a lock, as of the beginning of the statement, and may
 * have ended while we waited. A live run is at the site of its job; where others were is looked up.
 */
async function lockJobs(
  tx: Transaction,
  reports: readonly RunReport[],
  agentId: number | null,
): Promise<{ jobs: Map<number, LockedJob>; siteOf(report: RunReport): number | undefined; now: number }> {
  const jobIds = [...new Set(reports.map((report) => report.jobId))];
  const served =
    agentId === null
      ? sql`true`
      : sql`EXISTS (SELECT FROM runs r JOIN machines m ON m.id = r.machine_ids[1] AND m.agent_id = ${agentId}::integer
         WHERE r.job_id = jobs.id AND r.epoch = jobs.epoch)`;
  const found = await rows<LockedJob & { id: number; siteId: number | null; now: number }>(
    tx,
    sql`
SELECT id, state, site_id AS "siteId", epoch, cause, restartable, stop_cause AS "stopCause", started_at IS NOT NULL AS started,
       (SELECT extract(epoch FROM coalesce(started_at, assigned_at))::float8 FROM runs r
         WHERE r.job_id = jobs.id AND r.epoch = jobs.epoch) AS since,
       ${served} AS served,
       extract(epoch FROM clock_timestamp())::float8 AS now
  FROM jobs WHERE id = ANY (${list('bigint', jobIds)}) ORDER BY id FOR NO KEY UPDATE`,
  );
  const jobs = new Map(found.map((job) => [job.id, job]));
  const key = ({ jobId, epoch }: Pick<RunReport, 'jobId' | 'epoch'>) => `${jobId}/${epoch}`;
  const siteOfRun = new Map(
    found
      .filter(({ state }) => isLive(state))
      .map(({ id, epoch, siteId }) => [key({ jobId: id, epoch }), siteId as number]),
  );
  const others = reports.filter((report) => jobs.has(report.jobId) && !siteOfRun.has(key(report)));
  if (others.length > 0) {
    for (const run of await sitesOfRuns(tx, others)) siteOfRun.set(key(run), run.siteId);
  }
  // The latest of them, behind the last lock.
  const now = found.at(-1)?.now ?? 0;
  return { jobs, siteOf: (report) => siteOfRun.get(key(report)), now };
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
    cpu_s: ['float8', ([, { ended }]) => ended?.cpuS ?? null],
    io_wait_s: ['float8', ([, { ended }]) => ended?.ioWaitS ?? null],
  });
  return run(
    tx,
    sql`
UPDATE runs r SET started_at = coalesce(to_timestamp(t.started_at), r.started_at), ended_at = to_timestamp(t.ended_at),
    exit_code = t.exit_code, signal = t.signal, cause = t.cause, message = t.message, cpu_s = t.cpu_s, io_wait_s = t.io_wait_s
  FROM ${items} WHERE r.job_id = t.job_id AND r.epoch = t.epoch`,
  );
}

function upsertOutputs(tx: Transaction, outputs: readonly Output[]): Promise<number> {
  const items = table('t', outputs, {
    job_id: ['bigint', ({ report }) => report.jobId],
    epoch: ['integer', ({ report }) => report.epoch],
    stream: ['output_stream', ({ stream }) => stream],
    body: ['text', ({ piece }) => piece.body],
    bytes: ['bigint', ({ piece }) => piece.bytes],
    truncated: ['boolean', ({ piece }) => piece.truncated],
  });
  return run(
    tx,
    sql`
INSERT INTO outputs (job_id, epoch, stream, body, bytes, truncated)
  SELECT job_id, epoch, stream, body, bytes, truncated FROM ${items}
  ON CONFLICT (job_id, epoch, stream) DO UPDATE SET body = excluded.body, bytes = excluded.bytes, truncated = excluded.truncated`,
  );
}

/** A job that is to be stopped stays CANCELLING. */
function startJobs(started: readonly RunReport[]): Sql {
  const items = table('t', started, { id: ['bigint', ({ jobId }) => jobId], at: ['float8', ({ at }) => at] });
  return changeJobs('reportStart', items, { startedAt: sql`to_timestamp(t.at)` });
}

function endJobs(ended: readonly EndedJob[]): Sql {
  const items = table('t', ended, {
    id: ['bigint', ({ report }) => report.jobId],
    state: ['job_state', ({ end }) => end.state],
    cause: ['end_cause', ({ end }) => end.cause],
    at: ['float8', ({ report }) => report.at],
    exit_code: ['integer', ({ report }) => report.exitCode],
    message: ['text', ({ report }) => report.message],
  });
  const settings = {
    cause: sql`t.cause`,
    endedAt: sql`to_timestamp(t.at)`,
    exitCode: sql`t.exit_code`,
    message: sql`t.message`,
    deadlineMissed: sql`j.deadline_missed OR coalesce(to_timestamp(t.at) > j.deadline, false)`,
  };
  return changeJobs('reportEnd', items, settings, sql`t.state`);
}

/** Back to the root, to be started again. */
function requeueJobs(reports: readonly RunReport[]): Sql {
  const items = table('t', reports, {
    id: ['bigint', ({ jobId }) => jobId],
    message: ['text', ({ message }) => message],
  });
  return changeJobs('requeue', items, { message: sql`t.message` });
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
  FROM (SELECT DISTINCT ON (r.machine_ids[1]) r.machine_ids[1] AS id, left('the last launch failed: ' || coalesce(t.message, ''), ${MAX.reasonChars}::integer) AS why
          FROM ${items} JOIN runs r USING (job_id, epoch) ORDER BY 1, job_id DESC) f
 WHERE m.id = f.id AND m.removed_at IS NULL`;
}
