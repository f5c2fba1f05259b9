/** What people change of jobs that have not ended. */
import { amendableFields, changeableFields } from '../../core/states.js';
import { type ChangeDecision, decideChange } from '../changes.js';
import { list, table } from '../columns.js';
import { NEEDS_LOCK } from '../constants.js';
import { jobColumn, jobFields, only, readField } from '../job-fields.js';
import { lanesOf } from '../lanes.js';
import { type JobWait, stored, targetsOf } from '../needs.js';
import { commitWith, type Database, LONG_MS, type Transaction, transaction } from '../pool.js';
import { holderOf } from '../rules.js';
import { and, raw, type Sql, sql } from '../sql.js';
import { rows, run, value } from '../statement.js';
import type {
  ChangeableField,
  ChangeableValues,
  ChangeOutcome,
  ChangingJob,
  JobChanges,
  JobSelection,
} from '../store.js';
import { insertAudit } from './audit.js';
import { changeJobs } from './change-jobs.js';
import { selected } from './control.js';
import { insertWaits, keepNeeded, runAgain, waitsOf } from './needs.js';
import { dropPromises } from './starts.js';

type Done = Extract<ChangeDecision, { kind: 'DONE' }> & { id: number; userId: number };

const NOTHING: ChangeOutcome = {
  ...{ changed: [], refused: [], missing: [], tooMany: false, touched: [], gone: [], bytes: null },
};
/** They can make a job take more of its user's share. */
const GROW: readonly ChangeableField[] = ['licenses', 'resources', 'machineConstraint', 'retry'];

export function revise(
  database: Pick<Database, 'pool'>,
  { ids, filter, ownedBy, limit, audit }: JobSelection,
  changes: JobChanges,
): Promise<ChangeOutcome> {
  if (ids !== undefined && ids.length > limit) return Promise.resolve({ ...NOTHING, tooMany: true });
  const needs = changes.wait?.needs !== undefined || changes.values.atOnce !== undefined;
  const grows = needs || GROW.some((field) => field in changes.values);
  return transaction(
    database,
    async (tx): Promise<ChangeOutcome> => {
      if (needs) await run(tx, sql`SELECT pg_advisory_xact_lock(${NEEDS_LOCK}::bigint)`);
      // As a submission does, so that two at once do not exceed the user's share.
      if (grows && ownedBy !== null)
        await run(tx, sql`SELECT FROM users WHERE id = ${ownedBy} FOR NO KEY UPDATE`);
      const found = await lockChanging(tx, selected({ ids, filter, ownedBy }), limit + 1);
      if (found.length > limit) return { ...NOTHING, tooMany: true };
      const { gone, ...asked } = await needed(tx, found, changes);
      if (gone.length > 0) return { ...NOTHING, gone };
      const decisions = found.map((job) => ({ job, decision: decideChange(job, changes, asked) }));
      const done = decisions.flatMap(({ job: { id, userId }, decision }): Done[] =>
        decision.kind === 'DONE' ? [{ id, userId, ...decision }] : [],
      );
      const grown = decisions.reduce(
        (sum, { job, decision }) => sum + (decision.kind === 'DONE' ? decision.bytes - job.bytes : 0),
        0,
      );
      const bytes = grows && ownedBy !== null && grown > 0 ? grown + (await bytesTaken(tx, ownedBy)) : 0;
      if (bytes > (changes.bytesMax ?? Infinity)) return { ...NOTHING, bytes };
      if (done.length > 0) {
        if (audit) await insertAudit(tx, audit(done.map(({ id }) => id)));
        for (const owner of new Set(done.map(({ userId }) => userId)))
          await rewriteWaits(
            tx,
            done.flatMap(({ id, userId, wait }) =>
              wait === null || userId !== owner ? [] : [{ ...wait, id }],
            ),
            owner,
          );
        // What a site has promised a job was for what the job asked then.
        const changed = new Set(done.flatMap(({ id, action }) => (action === 'change' ? [id] : [])));
        const queued = found.filter(({ id, state }) => state === 'DISPATCHED' && changed.has(id));
        await dropPromises(
          tx,
          new Set(queued.map(({ siteId }) => siteId as number)),
          queued.map(({ id }) => id),
        );
        await commitWith(tx, statements(done, changes));
      }
      const there = new Set(found.map(({ id }) => id));
      return {
        ...NOTHING,
        changed: decisions.flatMap(({ job, decision }) => (decision.kind === 'REFUSED' ? [] : [job.id])),
        refused: decisions.flatMap(({ job: { id }, decision }) =>
          decision.kind === 'REFUSED' ? [{ jobId: id, fault: decision.fault }] : [],
        ),
        missing: (ids ?? []).filter((id) => !there.has(id)),
        touched: [
          ...new Set(
            decisions.flatMap(({ job, decision }) =>
              decision.kind === 'DONE' && decision.action === 'change'
                ? [null, holderOf(job.state, job.siteId)]
                : [],
            ),
          ),
        ],
      };
    },
    { timeoutMs: LONG_MS },
  );
}

/** In the order of ids; without what they wait for. */
async function lockChanging(
  tx: Transaction,
  conditions: readonly Sql[],
  limit: number,
): Promise<ChangingJob[]> {
  const read = [
    ...changeableFields,
    'id',
    'userId',
    'state',
    'siteId',
    'epoch',
    'bytes',
    'inputs',
    'outputs',
    'parts',
  ] as const;
  const columns = read.map((field) => `${readField(field)} AS "${field}"`).join(', ');
  return rows(
    tx,
    sql`
SELECT ${raw(columns)}, EXISTS (SELECT FROM foreign_jobs f WHERE f.job_id = j.id) AS foreign, NULL AS wait
  FROM jobs j WHERE ${and(conditions)} ORDER BY id LIMIT ${limit} FOR NO KEY UPDATE OF j`,
  );
}

/** Reads what the jobs wait for, if that is changed; what they are to need is kept from being deleted. */
async function needed(
  tx: Transaction,
  jobs: ChangingJob[],
  { wait, userId, values: { atOnce } }: JobChanges,
): Promise<Parameters<typeof decideChange>[2] & { gone: number[] }> {
  const none = { until: 0, circular: new Set<number>(), gone: [] };
  if (wait === null && atOnce === undefined) return none;
  const waits = await waitsOf(
    tx,
    jobs.map(({ id }) => id),
  );
  for (const job of jobs) job.wait = waits.get(job.id) ?? null;
  if (atOnce !== undefined) {
    const lanes = lanesOf(jobs, atOnce ?? 0);
    return { ...none, lanes, circular: await reached(tx, lanes.others, lanes.userId, jobs) };
  }
  if (wait?.needs === undefined || wait.needs.length === 0) return none;
  const until = await value<number>(tx, sql`SELECT coalesce(max(id), 0) AS v FROM jobs`);
  const named = [...targetsOf(stored(wait.needs, [until])).values()];
  const againOf = await runAgain(tx, named, userId);
  const needs = stored(wait.needs, [until], againOf);
  const gone = await keepNeeded(tx, [...targetsOf(needs).values()], userId);
  return { until, againOf, circular: await reached(tx, needs, userId, jobs), gone };
}

async function reached(
  tx: Transaction,
  needs: JobWait['needs'],
  userId: number,
  jobs: readonly ChangingJob[],
): Promise<Set<number>> {
  const ids = jobs.map(({ id }) => id);
  const found = await rows<{ id: number }>(tx, reachedFrom(needs, userId, ids));
  return new Set(found.map(({ id }) => id));
}

/** The members of what a term names, as `m`. */
const members = (term: Sql, userId: Sql): Sql => sql`(
    SELECT (${term} ->> 'job')::bigint AS id WHERE ${term} ? 'job'
    UNION ALL
    SELECT k.id FROM job_groups g JOIN jobs k ON k.id BETWEEN g.first_job_id AND g.last_job_id AND k.group_id = g.id
     WHERE g.id = (${term} ->> 'jobGroup')::bigint
    UNION ALL
    SELECT k.id FROM jobs k WHERE k.group_name = ${term} ->> 'group' AND k.user_id = ${userId} AND k.id <= (${term} ->> 'until')::bigint
    UNION ALL
    SELECT k.id FROM jobs k WHERE k.rerun_of IS NOT NULL AND k.group_id = ANY (ARRAY(SELECT jsonb_array_elements_text(${term} #> '{again,groups}')::bigint))) m`;

/** Those of the jobs that are needed already, directly or not, by what these needs name: they would need themselves. */
export const reachedFrom = (needs: object, userId: number, jobs: readonly number[]): Sql => sql`
WITH RECURSIVE reached (id) AS (
  SELECT m.id FROM jsonb_path_query(${JSON.stringify(needs)}::jsonb, '$[*].of[*]') AS t (term), LATERAL ${members(sql`t.term`, sql`${userId}::integer`)}
  UNION
  SELECT m.id FROM reached r
    JOIN jobs j ON j.id = r.id AND j.state IN ('BLOCKED', 'HELD') AND j.eligible_at IS NULL
    JOIN job_needs n ON n.job_id = j.id,
    LATERAL jsonb_path_query(n.needs, '$[*].of[*]') AS t (term), LATERAL ${members(sql`t.term`, sql`j.user_id`)}
) SELECT id FROM reached WHERE id = ANY (${list('bigint', jobs)})`;

const bytesTaken = (tx: Transaction, userId: number): Promise<number> =>
  value(tx, sql`SELECT coalesce(sum(bytes), 0) AS v FROM user_jobs WHERE user_id = ${userId}`);

/** `userId`: whose group names they mean. */
export async function rewriteWaits(
  tx: Transaction,
  waiting: readonly (JobWait & { id: number })[],
  userId: number,
): Promise<void> {
  if (waiting.length === 0) return;
  const which = list(
    'bigint',
    waiting.map(({ id }) => id),
  );
  await run(tx, sql`DELETE FROM job_needs WHERE job_id = ANY (${which})`);
  await run(tx, sql`DELETE FROM need_edges WHERE job_id = ANY (${which})`);
  await insertWaits(tx, waiting, userId);
}

function statements(done: readonly Done[], { values }: JobChanges): Sql[] {
  const record = sql`jsonb_populate_record(NULL::jobs, ${JSON.stringify(recordOf(values))}::jsonb)`;
  const given = (field: ChangeableField): Sql => {
    const column = raw(jobColumn[field]);
    return field in values ? sql`(SELECT v.${column} FROM ${record} v)` : sql`j.${column}`;
  };
  const items = (of: readonly Done[]): Sql =>
    table('t', of, {
      id: ['bigint', ({ id }) => id],
      state: ['job_state', ({ state }) => state],
      note: ['text', ({ note }) => note],
      bytes: ['integer', ({ bytes }) => bytes],
      memory: ['integer', ({ values }) => values.memoryMbPerTask ?? null],
      amounts: [
        'text',
        ({ values }) =>
          values.resourcesPerTask === undefined ? null : JSON.stringify(values.resourcesPerTask),
      ],
      waits: ['boolean', ({ wait }) => wait !== null],
    });
  const settings = Object.fromEntries(changeableFields.map((field) => [field, given(field)])) as Record<
    ChangeableField,
    Sql
  >;
  const of = (action: Done['action']): Done[] => done.filter((one) => one.action === action);
  const [amended, changed] = [of('amend'), of('change')];
  const amending = only(settings, amendableFields);
  const told = { note: sql`t.note`, bytes: sql`t.bytes` };
  return [
    ...(amended.length > 0 ? [changeJobs('amend', items(amended), { ...amending, ...told })] : []),
    ...(changed.length > 0
      ? [
          changeJobs(
            'change',
            items(changed),
            {
              ...settings,
              ...told,
              // By CPUs of each job, it may.
              memoryMbPerTask: sql`coalesce(t.memory, j.memory_mb_per_task)`,
              // Whether it is none or null depends on what else a job has.
              resourcesPerTask: sql`CASE WHEN t.amounts IS NULL THEN j.resources_per_task ELSE nullif(t.amounts::jsonb, 'null') END`,
              // It said why its needs could not hold, and how late it is: neither need be so any more.
              message: sql`CASE WHEN t.waits THEN NULL ELSE j.message END`,
              eligibleAt: sql`CASE WHEN t.waits AND t.state <> 'QUEUED' AND j.epoch = 0 THEN NULL ELSE j.eligible_at END`,
              deadlineMissed: 'deadline' in values ? sql`false` : sql`j.deadline_missed`,
            },
            sql`t.state`,
          ),
        ]
      : []),
  ];
}

/** As a row of the table, in JSON. */
const recordOf = (values: Partial<ChangeableValues>): Record<string, unknown> =>
  Object.fromEntries(
    (Object.entries(values) as [ChangeableField, unknown][]).map(([field, given]) => [
      jobColumn[field],
      jobFields[field].type === 'timestamptz' && given !== null ? new Date((given as number) * 1000) : given,
    ]),
  );
