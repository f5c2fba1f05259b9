/** When runs that go on have last written their checkpoints. */
import { list, table } from '../columns.js';
import { type Database, transaction } from '../pool.js';
import { isMeant } from '../rules.js';
import { type Sql, sql } from '../sql.js';
import { rows, run } from '../statement.js';
import type { CheckpointReport, RunCheckpoint } from '../store.js';
import { servedBy, writtenUnder } from './reports.js';

/**
 * Keeps the latest of each: what is told twice, or late, changes nothing. Behind the locks of the jobs, like all that is told of runs: one
 * that ends meanwhile has no news any more.
 */
export function noteCheckpoints(
  database: Pick<Database, 'pool'>,
  siteId: number,
  agentId: number,
  reports: readonly CheckpointReport[],
): Promise<void> {
  return transaction(database, async (tx) => {
    const jobIds = [...new Set(reports.map(({ jobId }) => jobId))];
    await rows(
      tx,
      sql`SELECT FROM jobs WHERE id = ANY (${list('bigint', jobIds)}) ORDER BY id FOR NO KEY UPDATE`,
    );
    const asked = reportTable(reports);
    const served = await rows<{ place: number; assignedAt: number; ofTask: boolean }>(
      tx,
      sql`
SELECT t.place::integer, extract(epoch FROM r.assigned_at)::float8 AS "assignedAt", j.tasks > 1 AND j.launch = 'EVERY_TASK' AS "ofTask"
  FROM ${asked} JOIN jobs j ON j.id = t.job_id AND j.epoch = t.epoch JOIN runs r ON r.job_id = j.id AND r.epoch = j.epoch
 WHERE r.site_id = ${siteId} AND r.ended_at IS NULL AND j.checkpoint IS NOT NULL
   AND CASE WHEN t.task IS NULL THEN ${servedBy(sql`${agentId}::integer`, sql`j`)} ELSE ${writtenUnder(agentId)} END`,
    );
    const meant = served.flatMap(({ place, assignedAt, ofTask }) => {
      const report = reports[place - 1] as CheckpointReport;
      return isMeant(report.token, assignedAt) ? [{ ...report, ofTask }] : [];
    });
    const whole = meant.filter(({ task }) => task === null);
    if (whole.length > 0)
      await run(
        tx,
        sql`
UPDATE runs r SET checkpoint_at = greatest(r.checkpoint_at, ${instant(sql`coalesce(r.started_at, r.assigned_at)`)})
  FROM ${reportTable(whole)} WHERE r.job_id = t.job_id AND r.epoch = t.epoch`,
      );
    const tasks = meant.filter(({ task, ofTask }) => task !== null && ofTask);
    if (tasks.length === 0) return;
    // Those that have started, and not ended.
    await run(
      tx,
      sql`
UPDATE tasks k SET checkpoint_at = greatest(k.checkpoint_at, ${instant(sql`k.started_at`)})
  FROM ${reportTable(tasks)} WHERE k.job_id = t.job_id AND k.epoch = t.epoch AND k.index = t.task AND k.started_at IS NOT NULL AND k.ended_at IS NULL`,
    );
    // The next run goes on from where all of them are.
    await run(
      tx,
      sql`
UPDATE runs r SET checkpoint_at = s.at
  FROM (SELECT k.job_id, k.epoch, min(k.checkpoint_at) AS at, count(k.checkpoint_at) AS tasks
          FROM tasks k WHERE (k.job_id, k.epoch) IN (SELECT job_id, epoch FROM ${reportTable(tasks)}) GROUP BY 1, 2) s
  JOIN jobs j ON j.id = s.job_id AND j.tasks = s.tasks WHERE r.job_id = s.job_id AND r.epoch = s.epoch`,
    );
  });
}

/** By the database's clock, and within the run. */
const instant = (since: Sql): Sql =>
  sql`greatest(${since}, clock_timestamp() - make_interval(secs => t.age_s))`;

const reportTable = (reports: readonly CheckpointReport[]): Sql =>
  table('t', reports, {
    job_id: ['bigint', ({ jobId }) => jobId],
    epoch: ['integer', ({ epoch }) => epoch],
    task: ['integer', ({ task }) => task],
    age_s: ['float8', ({ ageS }) => ageS],
  });

/** Of the live runs of a site. */
export const checkpointsAt = (pool: Database['pool'], siteId: number): Promise<RunCheckpoint[]> =>
  rows(
    pool,
    sql`
SELECT r.job_id AS "jobId", r.epoch, extract(epoch FROM r.checkpoint_at)::float8 AS at
  FROM runs r WHERE r.site_id = ${siteId} AND r.ended_at IS NULL AND r.checkpoint_at IS NOT NULL`,
  );
