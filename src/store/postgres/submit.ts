/** Submissions: jobs, their events, the idempotency key and the group, in one transaction; those that wait together share it. */

import type { JobState } from '../../core/states.js';
import { list, table } from '../columns.js';
import { type CopyColumns, withValues } from '../copy.js';
import { type GivenJob, givenFields, isEnum, jobColumn } from '../job-fields.js';
import { waits, withReads } from '../needs.js';
import { commitWithCopy, type Database, LONG_MS, type Transaction, transaction } from '../pool.js';
import { bytesOf, quotaFreesAt, shareOf } from '../rules.js';
import { sql } from '../sql.js';
import { prepared, rows, run, value } from '../statement.js';
import type { NewJob, Share, Submission, SubmitResult } from '../store.js';
import { insertAudits } from './audit.js';
import { insertNeeds } from './needs.js';

/**
 * What becomes of each of the submissions, as if they came one after the other. `skipLocked`: null is said of those whose user is being
 * changed or submits elsewhere, or is not there; otherwise users are waited for.
 */
export function submit(
  database: Pick<Database, 'pool'>,
  submissions: readonly Submission[],
  liveJobsMax: number,
  skipLocked = false,
): Promise<(SubmitResult | null)[]> {
  if (submissions.some(({ jobs }) => jobs.length === 0))
    throw new RangeError('submission.jobs is empty; accepted: at least one job');
  return transaction(
    database,
    async (tx) => {
      const [users, found] = await Promise.all([
        lockUsers(tx, submissions, skipLocked),
        findSubmissions(tx, submissions),
      ]);
      const missing = submissions.find(({ userId }) => !users.has(userId));
      if (missing !== undefined && !skipLocked)
        throw new RangeError(`submission.userId is ${missing.userId}; accepted: the id of a user`);
      const judged = judge(submissions, users, found, liveJobsMax);
      const written = await write(tx, judged);
      return judged.map((one) => resultOf(one, written));
    },
    { timeoutMs: LONG_MS },
  );
}

/** There is room for it; or it says what another one of these has said; or the result is known. */
type Judged = { admitted: Submission } | { repeats: Submission } | { result: SubmitResult | null };

function judge(
  submissions: readonly Submission[],
  users: ReadonlyMap<number, SubmittingUser>,
  found: Found,
  liveJobsMax: number,
): Judged[] {
  const counted = new Map(found.users.map(({ id, ...of }) => [id, of]));
  let { live } = found;
  const admitted: Submission[] = [];
  return submissions.map((submission, i): Judged => {
    const { userId, idempotencyKey, payloadHash, jobs, now } = submission;
    const user = users.get(userId);
    if (user === undefined) return { result: null };
    const known = found.known[i];
    if (known) {
      const [hash, jobIds, groupId] = known;
      if (hash !== payloadHash) return { result: { kind: 'key-reused' } };
      return { result: { kind: 'accepted', jobIds, groupId, repeated: true } };
    }
    const isRepeated = (other: Submission): boolean =>
      other.userId === userId && other.idempotencyKey === idempotencyKey;
    const repeats = idempotencyKey === null ? undefined : admitted.find(isRepeated);
    if (repeats !== undefined)
      return repeats.payloadHash === payloadHash ? { repeats } : { result: { kind: 'key-reused' } };
    const of = counted.get(userId) as Omit<Counted, 'live'>;
    const full = noRoom(submission, user, { ...of, live }, liveJobsMax);
    if (full !== null) return { result: full };
    admitted.push(submission);
    live += jobs.length;
    const more = shareOf(jobs);
    counted.set(userId, {
      recent: [...of.recent, [now, jobs.length] as const].sort(([a], [b]) => a - b),
      used: { jobs: of.used.jobs + more.jobs, bytes: of.used.bytes + more.bytes },
    });
    return { admitted: submission };
  });
}

function resultOf(judged: Judged, written: ReadonlyMap<Submission, SubmitResult>): SubmitResult | null {
  if ('result' in judged) return judged.result;
  if ('admitted' in judged) return written.get(judged.admitted) as SubmitResult;
  const result = written.get(judged.repeats) as SubmitResult;
  return result.kind === 'accepted' ? { ...result, repeated: true } : result;
}

/** Writes what is admitted, and commits; what each has come to. */
async function write(tx: Transaction, judged: readonly Judged[]): Promise<Map<Submission, SubmitResult>> {
  const admitted = judged.flatMap((one) => ('admitted' in one ? [one.admitted] : []));
  if (admitted.length === 0) return new Map();
  const jobs = admitted.reduce((sum, one) => sum + one.jobs.length, 0);
  const [ids, jobIds] = await reserveIds(tx, admitted.length, jobs);
  let next = 0;
  const accepted = admitted.map((submission, i): Accepted => {
    const { jobs, group = null } = submission;
    const id = ids[i] as number;
    const groupId = jobs.length > 1 || group !== null ? id : null;
    const first = next;
    next += jobs.length;
    return { ...submission, id, groupId, jobIds: jobIds.slice(first, next) };
  });
  const around = await insertAround(tx, accepted);
  const written = around.flatMap((one) => (one.kind === 'written' ? [one.submission] : []));
  if (written.length > 0) await copyJobs(tx, written);
  return new Map(
    around.map((one, i): [Submission, SubmitResult] => {
      const { jobIds, groupId } = accepted[i] as Accepted;
      const result = one.kind === 'gone' ? one : { kind: 'accepted', jobIds, groupId, repeated: false };
      return [admitted[i] as Submission, result as SubmitResult];
    }),
  );
}

/** Why so many jobs are not accepted; null: they are. */
export function noRoom(
  { jobs, share, now }: Pick<Submission, 'jobs' | 'share' | 'now'>,
  { limit, periodS }: SubmittingUser,
  { recent, live, used }: Counted,
  liveJobsMax: number,
): Extract<SubmitResult, { kind: 'quota' | 'full' | 'share' }> | null {
  if (limit !== null && periodS !== null) {
    const within = recent.filter(([at]) => at > now - periodS);
    const submitted = within.reduce((sum, [, count]) => sum + count, 0);
    if (submitted + jobs.length > limit) {
      const freesAt = quotaFreesAt(within, jobs.length, limit, periodS);
      return { kind: 'quota', limit, periodS, used: submitted, asked: jobs.length, freesAt };
    }
  }
  if (live + jobs.length > liveJobsMax) return { kind: 'full', limit: liveJobsMax, live };
  const asked = shareOf(jobs);
  for (const of of ['jobs', 'bytes'] as const) {
    const most = share?.[of] ?? Infinity;
    if (used[of] + asked[of] > most)
      return { kind: 'share', of, limit: most, used: used[of], asked: asked[of] };
  }
  return null;
}

export type Around = { kind: 'gone'; jobs: number[] } | { kind: 'written'; submission: Accepted };

/** All that belongs to accepted submissions but the jobs, which come last (`copyJobs`). */
export async function insertAround(tx: Transaction, submissions: readonly Accepted[]): Promise<Around[]> {
  const around: Around[] = [];
  for (const submission of submissions) {
    const jobs = submission.jobs.map((job) => withReads(job, submission.jobIds));
    const gone = await insertNeeds(tx, { ...submission, jobs });
    around.push(
      gone.length > 0
        ? { kind: 'gone', jobs: gone }
        : { kind: 'written', submission: { ...submission, jobs } },
    );
  }
  const written = around.flatMap((one) => (one.kind === 'written' ? [one.submission] : []));
  await Promise.all([
    insertSubmissions(tx, written),
    ...written.map((one) => one.group && insertGroup(tx, one, one.group)),
    insertAudits(
      tx,
      written.flatMap(({ audit, jobIds }) => audit?.(jobIds) ?? []),
    ),
  ]);
  return around;
}

/** How many jobs it may submit within how many seconds; null: there is no such limit. */
interface SubmittingUser {
  limit: number | null;
  periodS: number | null;
}

/**
 * Takes the users' rows first, so that a quota cannot be exceeded by two submissions at once, and an idempotency key is
 * looked for where its first use has either committed or not begun. Who is not there is left out.
 */
export async function lockUsers(
  tx: Transaction,
  of: readonly Pick<Submission, 'userId'>[],
  skipLocked = false,
): Promise<Map<number, SubmittingUser>> {
  const ids = list('integer', [...new Set(of.map(({ userId }) => userId))]);
  const locked = await rows<SubmittingUser & { id: number }>(
    tx,
    sql`
SELECT id, submission_limit AS limit, submission_period_s AS "periodS" FROM users WHERE id = ANY (${ids})
 ORDER BY id FOR NO KEY UPDATE ${skipLocked ? sql`SKIP LOCKED` : sql``}`,
  );
  return new Map(locked.map((user) => [user.id, user]));
}

/** What limits are for. */
interface Counted {
  /** Of the user's submissions when, epoch seconds, and of how many jobs; within the period of its quota, in the order of time. */
  recent: readonly (readonly [at: number, jobs: number])[];
  /** Jobs of all that have not ended. */
  live: number;
  /** By the user's jobs that have not ended. */
  used: Share;
}

interface Found {
  /** For each of the submissions what its key is known for. */
  known: ([hash: string, jobIds: number[], groupId: number | null] | null)[];
  live: number;
  users: ({ id: number } & Pick<Counted, 'recent' | 'used'>)[];
}

/** A statement of its own after the lock: it must see what was committed while we waited for it. */
export function findSubmissions(
  tx: Transaction,
  submissions: readonly Pick<Submission, 'userId' | 'idempotencyKey' | 'now'>[],
): Promise<Found> {
  const asked = table('t', submissions, {
    user_id: ['integer', ({ userId }) => userId],
    key: ['text', ({ idempotencyKey }) => idempotencyKey],
    at: ['float8', ({ now }) => now],
  });
  const statement = sql`
WITH asked AS MATERIALIZED (SELECT * FROM ${asked})
SELECT json_build_object(
  'known', (SELECT json_agg((SELECT json_build_array(payload_hash, job_ids,
                                CASE WHEN job_count > 1 OR EXISTS (SELECT 1 FROM job_groups g WHERE g.id = s.id) THEN s.id END)
                               FROM submissions s WHERE s.user_id = t.user_id AND s.idempotency_key = t.key) ORDER BY place) FROM asked t),
  'live', (SELECT coalesce(sum(jobs), 0) FROM job_counts),
  'users', (SELECT coalesce(json_agg(json_build_object('id', u.id,
      'recent', (SELECT coalesce(json_agg(json_build_array(date_part('epoch', s.at), job_count) ORDER BY s.at, s.id), '[]')
                   FROM submissions s
                  WHERE s.user_id = u.id AND s.at > to_timestamp(t.at) - make_interval(secs => u.submission_period_s)),
      'used', (SELECT json_build_object('jobs', coalesce(sum(jobs), 0), 'bytes', coalesce(sum(bytes), 0))
                 FROM user_jobs WHERE user_id = u.id))), '[]')
    FROM (SELECT user_id, min(at) AS at FROM asked GROUP BY user_id) t JOIN users u ON u.id = t.user_id)) AS v`;
  return value(tx, prepared(statement));
}

/** Ids for submissions, and ids for their jobs, in ascending order. Those of others may lie between. */
export async function reserveIds(
  tx: Transaction,
  submissions: number,
  jobs: number,
): Promise<[submissions: number[], jobIds: number[]]> {
  return value(
    tx,
    sql`
SELECT json_build_array((SELECT json_agg(nextval('submissions_id_seq')) FROM generate_series(1, ${submissions}::integer)),
  (SELECT json_agg(nextval('jobs_id_seq')) FROM generate_series(1, ${jobs}::integer))) AS v`,
  );
}

export interface Accepted extends Submission {
  id: number;
  /** Aligned with the jobs. */
  jobIds: number[];
  /** null: it is a single job. */
  groupId: number | null;
}

/**
 * Copied, not inserted: 10 000 jobs from objects to rows in 80 ms instead of 130, and however many they are, they are copied in parts, so
 * that nobody else waits for all of them; and still by one statement, with the commit behind it: its trigger takes the event lock.
 */
function copyJobs(tx: Transaction, submissions: readonly Accepted[]): Promise<void> {
  const jobs = submissions.flatMap((one) => one.jobs);
  const jobIds = submissions.flatMap((one) => one.jobIds);
  const of = submissions.flatMap((one) => one.jobs.map(() => one));
  const columns: CopyColumns<number> = {
    id: ['bigint', (i) => jobIds[i]],
    user_id: ['integer', (i) => of[i]?.userId],
    group_id: ['bigint', (i) => of[i]?.groupId],
    submitted_at: ['timestamptz', (i) => of[i]?.now],
    bytes: ['integer', (i) => bytesOf(jobs[i] as NewJob)],
    state: ['text', (i) => stateOf(jobs[i] as NewJob, (of[i] as Accepted).now)],
    workflow: ['jsonb', (i) => jobs[i]?.workflow ?? null],
    ...givenColumns((i) => jobs[i] as NewJob),
  };
  const places = [...jobs.keys()];
  return commitWithCopy(tx, 'jobs', withValues(columns, places), places);
}

export const stateOf = ({ held, wait }: NewJob, now: number): JobState =>
  held ? 'HELD' : waits(wait, now) ? 'BLOCKED' : 'QUEUED';

/** What a job says of itself. */
export const givenColumns = <T>(jobOf: (item: T) => NewJob): CopyColumns<T> =>
  Object.fromEntries(
    Object.entries(givenFields).map(([name, { type, sparse }]) => {
      const field = name as keyof GivenJob;
      const read = (item: T): unknown => jobOf(item)[field];
      const given =
        field === 'licenses'
          ? (item: T) => [...jobOf(item).licenses].sort()
          : sparse
            ? (item: T) => ((jobOf(item)[field] as readonly unknown[]).length === 0 ? null : read(item))
            : read;
      return [jobColumn[field], [isEnum(type) ? 'text' : type, given]];
    }),
  );

async function insertSubmissions(tx: Transaction, submissions: readonly Accepted[]): Promise<void> {
  if (submissions.length === 0) return;
  const items = table('t', submissions, {
    id: ['bigint', ({ id }) => id],
    user_id: ['integer', ({ userId }) => userId],
    key: ['text', ({ idempotencyKey }) => idempotencyKey],
    hash: ['text', ({ payloadHash }) => payloadHash],
    job_ids: ['bigint[]', ({ jobIds }) => jobIds],
    at: ['float8', ({ now }) => now],
  });
  await run(
    tx,
    sql`
INSERT INTO submissions (id, user_id, idempotency_key, payload_hash, job_ids, job_count, at)
SELECT id, user_id, key, hash, job_ids, cardinality(job_ids), to_timestamp(at) FROM ${items}`,
  );
}

function insertGroup(
  tx: Transaction,
  { id, userId, jobIds, now }: Accepted,
  { name, template, idleTimeoutS = null }: NonNullable<Submission['group']>,
): Promise<number> {
  const document = template === null ? null : JSON.stringify(template);
  return run(
    tx,
    sql`
INSERT INTO job_groups (id, user_id, name, template, size, first_job_id, last_job_id, created_at, idle_timeout_s, idle_at)
  VALUES (${id}, ${userId}, ${name}, ${document}::jsonb, ${jobIds.length}, ${jobIds[0]}, ${jobIds.at(-1)},
    to_timestamp(${now}::float8), ${idleTimeoutS}::float8, to_timestamp(${now}::float8 + ${idleTimeoutS}::float8))`,
  );
}
