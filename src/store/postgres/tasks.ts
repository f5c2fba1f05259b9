/** Tasks of runs, as their agents report them one by one; behind the locks of their jobs. */
import { table } from '../columns.js';
import type { Transaction } from '../pool.js';
import { empty, type Sql, sql } from '../sql.js';
import { rows, run } from '../statement.js';
import type { RunReport } from '../store.js';
import { type KnownTask, RunTasks, type TaskReport, type TasksOfRun } from '../tasks.js';
import { usageFrom, usageItems, usageList, usageOfTasks } from './usage.js';

type Machines = TasksOfRun['machines'];

/** What is known of the runs whose tasks these reports are about, by job; only of runs whose tasks are started one by one. */
export async function tasksOf(
  tx: Transaction,
  reports: readonly TaskReport[],
): Promise<Map<number, RunTasks>> {
  if (reports.length === 0) return new Map();
  const asked = table('t', reports, {
    job_id: ['bigint', ({ jobId }) => jobId],
    epoch: ['integer', ({ epoch }) => epoch],
    index: ['integer', ({ task }) => task],
  });
  const runs = await rows<
    Omit<TasksOfRun, 'machines'> & { jobId: number; machines: [string, number, number | null][] }
  >(
    tx,
    sql`
SELECT r.job_id AS "jobId", j.on_task_failure AS "onTaskFailure", extract(epoch FROM r.assigned_at)::float8 AS "assignedAt", r.ending,
       s.ended, s.ended_at AS "endedAt", s.begun,
       (SELECT json_agg(json_build_array(m.name, u.tasks, m.agent_id) ORDER BY u.place)
          FROM unnest(r.machine_ids, r.machine_tasks) WITH ORDINALITY AS u (id, tasks, place) JOIN machines m USING (id)) AS machines,
       (SELECT json_build_object('task', f.index, 'cause', f.cause, 'exitCode', f.exit_code, 'signal', f.signal, 'message', f.message)
          FROM tasks f WHERE f.job_id = r.job_id AND f.epoch = r.epoch AND f.index = r.failed_task) AS failure
  FROM runs r JOIN jobs j ON j.id = r.job_id AND j.epoch = r.epoch,
       LATERAL (SELECT count(ended_at)::integer AS ended, extract(epoch FROM max(ended_at))::float8 AS ended_at,
                       coalesce(bool_or(started_at IS NOT NULL OR exit_code IS NOT NULL OR signal IS NOT NULL OR cause = 'LOST'), false) AS begun
                  FROM tasks WHERE job_id = r.job_id AND epoch = r.epoch) s
 WHERE (r.job_id, r.epoch) IN (SELECT job_id, epoch FROM ${asked}) AND j.tasks > 1 AND j.launch = 'EVERY_TASK' AND r.machine_ids <> '{}'`,
  );
  const known = await rows<{ jobId: number; index: number; startedAt: number | null; ended: boolean }>(
    tx,
    sql`
SELECT DISTINCT k.job_id AS "jobId", k.index, extract(epoch FROM k.started_at)::float8 AS "startedAt", k.ended_at IS NOT NULL AS ended
  FROM ${asked} JOIN tasks k USING (job_id, epoch, index) JOIN jobs j ON j.id = k.job_id AND j.epoch = k.epoch`,
  );
  const byJob = new Map<number, (readonly [number, KnownTask])[]>(runs.map(({ jobId }) => [jobId, []]));
  for (const { jobId, index, ...task } of known) byJob.get(jobId)?.push([index, task]);
  return new Map(
    runs.map(({ jobId, machines, ...of }) => [
      jobId,
      new RunTasks(
        {
          ...of,
          machines: machines.map(([name, tasks, agentId]): Machines[number] => ({ name, tasks, agentId })),
        },
        byJob.get(jobId) ?? [],
      ),
    ]),
  );
}

/** What changes of tasks: of each its start, its end or both. */
export function putTasks(tx: Transaction, reports: readonly TaskReport[]): Promise<number> {
  const changes = new Map<string, { start: TaskReport | null; end: TaskReport | null }>();
  for (const report of reports) {
    const key = `${report.jobId}/${report.task}`;
    const change = changes.get(key) ?? { start: null, end: null };
    changes.set(key, change);
    change[report.phase === 'STARTED' ? 'start' : 'end'] = report;
  }
  const one = ({ start, end }: { start: TaskReport | null; end: TaskReport | null }) =>
    (end ?? start) as TaskReport;
  const items = table('t', [...changes.values()], {
    job_id: ['bigint', (change) => one(change).jobId],
    epoch: ['integer', (change) => one(change).epoch],
    index: ['integer', (change) => one(change).task],
    started_at: ['float8', ({ start }) => start?.at ?? null],
    ended_at: ['float8', ({ end }) => end?.at ?? null],
    exit_code: ['integer', ({ end }) => end?.exitCode ?? null],
    signal: ['text', ({ end }) => end?.signal ?? null],
    cause: ['end_cause', ({ end }) => end?.cause ?? null],
    message: ['text', ({ end }) => end?.message ?? null],
    ...usageItems<{ end: TaskReport | null }>(({ end }) => end),
  });
  return run(
    tx,
    sql`
INSERT INTO tasks AS k (job_id, epoch, index, started_at, ended_at, exit_code, signal, cause, message, ${usageList()})
  SELECT job_id, epoch, index, to_timestamp(started_at), to_timestamp(ended_at), exit_code, signal, cause, message, ${usageList()} FROM ${items}
  ON CONFLICT (job_id, epoch, index) DO UPDATE SET started_at = coalesce(k.started_at, excluded.started_at), ended_at = excluded.ended_at,
    exit_code = excluded.exit_code, signal = excluded.signal, cause = excluded.cause, message = excluded.message, ${usageFrom('excluded')}`,
  );
}

/** What all tasks of a run have used; what was not measured of one of them is not known of the run. */
export async function usedByTasks(
  tx: Transaction,
  ended: readonly RunReport[],
): Promise<Map<number, Pick<RunReport, 'cpuS' | 'ioWaitS' | 'usage'>>> {
  if (ended.length === 0) return new Map();
  const asked = table('t', ended, {
    job_id: ['bigint', ({ jobId }) => jobId],
    epoch: ['integer', ({ epoch }) => epoch],
  });
  type Used = { jobId: number; cpuS: number | null; ioWaitS: number | null } & NonNullable<
    RunReport['usage']
  >;
  const found = await rows<Used>(
    tx,
    sql`
SELECT job_id AS "jobId",
       ${usageOfTasks}
  FROM ${asked} JOIN tasks USING (job_id, epoch) GROUP BY job_id`,
  );
  return new Map(found.map(({ jobId, cpuS, ioWaitS, ...usage }) => [jobId, { cpuS, ioWaitS, usage }]));
}

/** A run that is lost with a machine; with `task`, only that part of it. */
export interface LostRun {
  jobId: number;
  epoch: number;
  task: number | null;
  machine: string;
}

/**
 * Live runs on machines that are `gone` (id, site_id, name): whole runs where all their machines are or they are one command, else their
 * tasks there that have not ended. The others are told to end then, so that nothing is started again beside them.
 */
export const lostWith = (limit: number, more: Sql = empty): Sql => sql`
SELECT DISTINCT ON (r.job_id, p.task) r.job_id AS "jobId", r.epoch, p.task, gone.name AS machine ${more}
  FROM runs r JOIN jobs j ON j.id = r.job_id,
       unnest(r.machine_ids, r.machine_tasks) WITH ORDINALITY AS u (id, tasks, place) JOIN gone ON gone.id = u.id,
       LATERAL (
         SELECT NULL::integer AS task WHERE j.tasks = 1 OR j.launch = 'ONCE' OR r.machine_ids <@ ARRAY(SELECT id FROM gone)
         UNION ALL
         SELECT task FROM (SELECT coalesce(sum(before), 0)::integer AS first FROM unnest(r.machine_tasks[1:u.place - 1]) AS b (before)) f,
                generate_series(f.first, f.first + u.tasks - 1) AS task
          WHERE j.tasks > 1 AND j.launch = 'EVERY_TASK' AND NOT r.machine_ids <@ ARRAY(SELECT id FROM gone)
            AND NOT EXISTS (SELECT FROM tasks k WHERE (k.job_id, k.epoch, k.index) = (r.job_id, r.epoch, task) AND k.ended_at IS NOT NULL)
       ) p
 WHERE r.ended_at IS NULL AND r.site_id = ANY (ARRAY(SELECT site_id FROM gone))
 ORDER BY r.job_id, p.task LIMIT ${limit}`;
