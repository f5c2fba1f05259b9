/** What has failed of a group is submitted again, and who waits for it waits for the copies. */
import { list, table } from '../columns.js';
import { NEEDS_LOCK } from '../constants.js';
import { givenFields, jobColumn, readField } from '../job-fields.js';
import type { BlockedJob, NeedTerm } from '../needs.js';
import { commitWith, type Database, LONG_MS, type Transaction, transaction } from '../pool.js';
import { copyOf, type OldJob, type Rerunning, repointed, rerunNote } from '../rerun.js';
import { bytesOf } from '../rules.js';
import { raw, type Sql, sql } from '../sql.js';
import { rows, run } from '../statement.js';
import type { NewJob, Rerun, RerunOutcome } from '../store.js';
import { changeJobs } from './change-jobs.js';
import { reachedFrom, rewriteWaits } from './changes.js';
import { dependents, waitsOf } from './needs.js';
import {
  type Accepted,
  type Around,
  findSubmissions,
  insertAround,
  lockUsers,
  noRoom,
  reserveIds,
  stateOf,
} from './submit.js';

const NOTHING: RerunOutcome = { kind: 'accepted', jobIds: [], repointed: [] };

export function rerun(
  database: Pick<Database, 'pool'>,
  request: Rerun,
  liveJobsMax: number,
): Promise<RerunOutcome> {
  const { userId, limit, now, share } = request;
  return transaction(
    database,
    async (tx): Promise<RerunOutcome> => {
      const user = (await lockUsers(tx, [request])).get(userId);
      if (user === undefined) throw new RangeError(`rerun.userId is ${userId}; accepted: the id of a user`);
      await run(tx, sql`SELECT pg_advisory_xact_lock(${NEEDS_LOCK}::bigint)`);
      await lockJobs(tx, dependentsOfFailed(request));
      const ids = await chosen(tx, request);
      const waiting = await lockWaiting(tx, ids, limit);
      if (ids.length > limit || waiting.length > limit) return { kind: 'too-many', limit };
      if (ids.length === 0) return NOTHING;
      const old = await oldJobs(tx, ids);
      const [[id], jobIds] = (await reserveIds(tx, 1, ids.length)) as [[number], number[]];
      const made = new Map(ids.map((one, i) => [one, jobIds[i] as number]));
      const known = { groupId: id, asOf: jobIds.at(-1) as number, now };
      const latest = new Map([...(await latestCopies(tx, old)), ...made]);
      const jobs = old.map((job) => copyOf(job, { ...known, latest }));
      const payload = { idempotencyKey: null, payloadHash: '', group: null };
      const submission = { ...payload, userId, now, share, jobs, id, jobIds, groupId: id };
      const { live, users } = await findSubmissions(tx, [submission]);
      const full = noRoom(submission, user, { live, ...(users[0] as (typeof users)[0]) }, liveJobsMax);
      if (full !== null) return full;
      const [written] = (await insertAround(tx, [{ ...submission, audit: request.audit }])) as [Around];
      if (written.kind === 'gone') return written;
      const others = await withoutCircles(tx, old, waiting, userId);
      const pointed = await repoint(tx, others, { ...known, latest: made });
      await commitWith(tx, [...pointed, insertCopies({ ...written.submission, rerunOf: ids })]);
      return { kind: 'accepted', jobIds, repointed: others.map((job) => job.id) };
    },
    { timeoutMs: LONG_MS },
  );
}

/** Those that are to be run again themselves, as the table `failed`: of a group with copies of its members. */
const members = ({ userId, target }: Rerun): Sql =>
  'jobs' in target
    ? sql`
failed (id) AS (
  SELECT j.id FROM jobs j WHERE j.id = ANY (${list('bigint', target.jobs)}) AND j.user_id = ${userId} AND j.ended_at IS NOT NULL
     AND NOT EXISTS (SELECT FROM foreign_jobs f WHERE f.job_id = j.id)
)`
    : sql`
base (id) AS (${
        'jobGroup' in target
          ? sql`SELECT j.id FROM job_groups g JOIN jobs j ON j.id BETWEEN g.first_job_id AND g.last_job_id AND j.group_id = g.id
     WHERE g.id = ${target.jobGroup} AND j.user_id = ${userId}`
          : sql`SELECT j.id FROM jobs j WHERE j.group_name = ${target.group} AND j.user_id = ${userId}`
      }), member (id) AS (
  SELECT id FROM base
  UNION
  SELECT k.id FROM member m JOIN jobs k ON k.rerun_of = m.id AND k.user_id = ${userId}
), failed (id) AS (
  SELECT j.id FROM member m JOIN jobs j ON j.id = m.id AND j.ended_at IS NOT NULL AND j.cause NOT IN ('EXITED_ZERO', 'DEPENDENCY_FAILED')
)`;

/**
 * Who could be canceled with them at this moment is locked first: it either is canceled already and is found, or goes on waiting and is
 * pointed to the copies.
 */
const dependentsOfFailed = (request: Rerun): Sql => sql`
WITH RECURSIVE ${members(request)}
SELECT d.job_id FROM (${dependents(sql`ARRAY(SELECT id FROM failed)`)}) d`;

const lockJobs = (tx: Transaction, ids: Sql): Promise<number> =>
  run(
    tx,
    sql`SELECT FROM jobs WHERE id = ANY (ARRAY(${ids})) AND ended_at IS NULL ORDER BY id FOR NO KEY UPDATE`,
  );

/** One more than the limit, where there are more. */
async function chosen(tx: Transaction, request: Rerun): Promise<number[]> {
  const { userId, only, limit } = request;
  const further =
    only === 'FAILED'
      ? sql``
      : sql`
  UNION
  SELECT j.id FROM wanted w JOIN job_needs n ON n.because = w.id
    JOIN jobs j ON j.id = n.job_id AND j.cause = 'DEPENDENCY_FAILED' AND j.user_id = ${userId}`;
  const found = await rows<{ id: number }>(
    tx,
    sql`
WITH RECURSIVE ${members(request)}, wanted (id) AS (
  SELECT id FROM failed ${further}
) SELECT id FROM wanted w WHERE NOT EXISTS (SELECT FROM jobs k WHERE k.rerun_of = w.id) ORDER BY id LIMIT ${limit + 1}`,
  );
  return found.map(({ id }) => id);
}

type Waiting = BlockedJob & { blocked: boolean };

/** Jobs whose needs are still asked, of those that need one of these; one more than the limit, where there are more. */
async function lockWaiting(tx: Transaction, ids: readonly number[], limit: number): Promise<Waiting[]> {
  const found = await rows<{ id: number }>(
    tx,
    sql`
SELECT id FROM jobs WHERE id = ANY (ARRAY(${dependents(list('bigint', ids))}))
   AND state IN ('BLOCKED', 'HELD') AND eligible_at IS NULL AND epoch = 0
 ORDER BY id LIMIT ${limit + 1} FOR NO KEY UPDATE`,
  );
  const waits = await waitsOf(
    tx,
    found.map(({ id }) => id),
  );
  return [...waits.values()];
}

async function oldJobs(tx: Transaction, ids: readonly number[]): Promise<OldJob[]> {
  const fields = Object.keys(givenFields) as (keyof OldJob['given'])[];
  const columns = fields.map((field) => `${readField(field)} AS "${field}"`).join(', ');
  const found = await rows<OldJob['given'] & { id: number }>(
    tx,
    sql`SELECT id, ${raw(columns)} FROM jobs j WHERE id = ANY (${list('bigint', ids)}) ORDER BY id`,
  );
  const waits = await waitsOf(tx, ids);
  return found.map(({ id, ...given }) => ({ id, given, wait: waits.get(id) ?? null }));
}

const termsOf = (jobs: readonly OldJob[]): NeedTerm[] =>
  jobs.flatMap(({ wait }) => (wait?.needs ?? []).flatMap(({ of }) => of));

/** Of what these needed. */
async function latestCopies(tx: Transaction, jobs: readonly OldJob[]): Promise<Map<number, number>> {
  const needed = termsOf(jobs).flatMap((term) => ('job' in term ? [term.job] : []));
  if (needed.length === 0) return new Map();
  const found = await rows<{ of: number; id: number }>(
    tx,
    sql`
WITH RECURSIVE copy (of, id) AS (
  SELECT rerun_of, id FROM jobs WHERE rerun_of = ANY (${list('bigint', needed)})
  UNION ALL
  SELECT c.of, k.id FROM copy c JOIN jobs k ON k.rerun_of = c.id
) SELECT of, max(id) AS id FROM copy GROUP BY of`,
  );
  return new Map(found.map(({ of, id }) => [of, id]));
}

/** Those that the copies do not wait for themselves. */
async function withoutCircles(
  tx: Transaction,
  old: readonly OldJob[],
  waiting: readonly Waiting[],
  userId: number,
): Promise<Waiting[]> {
  const of = termsOf(old);
  if (of.length === 0 || waiting.length === 0) return [...waiting];
  const ids = waiting.map(({ id }) => id);
  const reached = await rows<{ id: number }>(tx, reachedFrom([{ expression: 'ALL', of }], userId, ids));
  const circular = new Set(reached.map(({ id }) => id));
  return waiting.filter(({ id }) => !circular.has(id));
}

async function repoint(tx: Transaction, jobs: readonly Waiting[], rerunning: Rerunning): Promise<Sql[]> {
  if (jobs.length === 0) return [];
  const changed = jobs.map((job) => ({ ...job, ...repointed({ wait: job, inputs: job.inputs }, rerunning) }));
  for (const userId of new Set(jobs.map((job) => job.userId))) {
    const own = changed.filter((job) => job.userId === userId);
    await rewriteWaits(
      tx,
      own.map(({ id, wait }) => ({ ...wait, id })),
      userId,
    );
  }
  const items = table('t', changed, {
    id: ['bigint', ({ id }) => id],
    note: ['text', ({ note }) => note],
    inputs: ['text', ({ inputs }) => (inputs.length === 0 ? null : JSON.stringify(inputs))],
    // Held because its needs could not hold any more, not by a person.
    asked: ['boolean', ({ because }) => because !== null],
  });
  const settings = {
    inputs: sql`t.inputs::jsonb`,
    message: sql`CASE WHEN t.asked THEN NULL ELSE j.message END`,
    note: sql`t.note`,
  };
  const state = sql`CASE WHEN t.asked THEN 'BLOCKED' ELSE j.state END::job_state`;
  return [changeJobs('repoint', items, settings, state)];
}

/** Made of the old rows, so that all is said in one go with the COMMIT. */
function insertCopies({
  jobs,
  jobIds,
  groupId,
  rerunOf,
  now,
}: Accepted & { rerunOf: readonly number[] }): Sql {
  const items = table('t', [...jobs.keys()], {
    id: ['bigint', (i) => jobIds[i] as number],
    of: ['bigint', (i) => rerunOf[i] as number],
    state: ['job_state', (i) => stateOf(jobs[i] as NewJob, now)],
    bytes: ['integer', (i) => bytesOf(jobs[i] as NewJob)],
    note: ['text', (i) => rerunNote(rerunOf[i] as number)],
    deadline: ['float8', (i) => jobs[i]?.deadline ?? null],
    inputs: ['text', (i) => (jobs[i]?.inputs.length ? JSON.stringify(jobs[i]?.inputs) : null)],
  });
  const fields = Object.keys(givenFields) as (keyof OldJob['given'])[];
  const kept = fields
    .filter((field) => field !== 'deadline' && field !== 'inputs')
    .map((field) => jobColumn[field]);
  return sql`
INSERT INTO jobs (id, user_id, group_id, submitted_at, state, bytes, rerun_of, note, deadline, inputs, workflow, ${raw(kept.join(', '))})
SELECT t.id, j.user_id, ${groupId}::bigint, to_timestamp(${now}::float8), t.state, t.bytes, t.of, t.note, to_timestamp(t.deadline), t.inputs::jsonb, j.workflow,
       ${raw(kept.map((column) => `j.${column}`).join(', '))}
  FROM ${items} JOIN jobs j ON j.id = t.of ORDER BY t.place`;
}
