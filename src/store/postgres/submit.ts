/** Submissions: jobs, their events, the idempotency key and the group, in one transaction. */

import type { JobState } from '../../core/states.js';
import { list } from '../columns.js';
import { type CopyColumns, withValues } from '../copy.js';
import { type GivenJob, givenFields, isEnum, jobColumn } from '../job-fields.js';
import { waits, withReads } from '../needs.js';
import { commitWithCopy, type Database, LONG_MS, type Transaction, transaction } from '../pool.js';
import { bytesOf, quotaFreesAt, shareOf } from '../rules.js';
import { sql } from '../sql.js';
import { row, run, value } from '../statement.js';
import type { NewJob, Share, Submission, SubmitResult } from '../store.js';
import { insertAudit } from './audit.js';
import { insertNeeds } from './needs.js';

export function submit(
  database: Pick<Database, 'pool'>,
  submission: Submission,
  liveJobsMax: number,
): Promise<SubmitResult> {
  const { userId, payloadHash, jobs, group = null } = submission;
  if (jobs.length === 0) throw new RangeError('submission.jobs is empty; accepted: at least one job');
  return transaction(
    database,
    async (tx): Promise<SubmitResult> => {
      const [user, found] = await Promise.all([lockUser(tx, userId), findSubmissions(tx, submission)]);
      if (user === null) throw new RangeError(`submission.userId is ${userId}; accepted: the id of a user`);
      const [known] = found;
      if (known !== null) {
        const [hash, jobIds, groupId] = known;
        return hash === payloadHash
          ? { kind: 'accepted', jobIds, groupId, repeated: true }
          : { kind: 'key-reused' };
      }
      const full = noRoom(submission, user, found, liveJobsMax);
      if (full !== null) return full;
      const [id, jobIds] = await reserveIds(tx, jobs.length);
      const groupId = jobs.length > 1 || group !== null ? id : null;
      const accepted = { ...submission, id, jobIds, groupId };
      const written = await insertAround(tx, accepted);
      if (written.kind === 'gone') return written;
      await copyJobs(tx, written.submission);
      return { kind: 'accepted', jobIds, groupId, repeated: false };
    },
    { timeoutMs: LONG_MS },
  );
}

/** Why so many jobs are not accepted; null: they are. */
export function noRoom(
  { jobs, share }: Pick<Submission, 'jobs' | 'share'>,
  { limit, periodS }: SubmittingUser,
  [, recent, live, used]: Found,
  liveJobsMax: number,
): Extract<SubmitResult, { kind: 'quota' | 'full' | 'share' }> | null {
  if (limit !== null && periodS !== null) {
    const within = recent.reduce((sum, [, count]) => sum + count, 0);
    if (within + jobs.length > limit) {
      const freesAt = quotaFreesAt(recent, jobs.length, limit, periodS);
      return { kind: 'quota', limit, periodS, used: within, asked: jobs.length, freesAt };
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

/** All that belongs to an accepted submission but the jobs, which come last (`copyJobs`). */
export async function insertAround<S extends Accepted>(
  tx: Transaction,
  submission: S,
): Promise<{ kind: 'gone'; jobs: number[] } | { kind: 'written'; submission: S }> {
  const { jobIds, group = null, audit } = submission;
  const accepted = { ...submission, jobs: submission.jobs.map((job) => withReads(job, jobIds)) };
  const gone = await insertNeeds(tx, accepted);
  if (gone.length > 0) return { kind: 'gone', jobs: gone };
  await insertSubmission(tx, accepted);
  if (group !== null) await insertGroup(tx, accepted, group);
  if (audit) await insertAudit(tx, audit(jobIds));
  return { kind: 'written', submission: accepted };
}

/** How many jobs it may submit within how many seconds; null: there is no such limit. */
interface SubmittingUser {
  limit: number | null;
  periodS: number | null;
}

/**
 * Takes the user's row first, so that a quota cannot be exceeded by two submissions at once, and an idempotency key is
 * looked for where its first use has either committed or not begun. null: there is no such user.
 */
export function lockUser(tx: Transaction, userId: number): Promise<SubmittingUser | null> {
  return row(
    tx,
    sql`SELECT submission_limit AS limit, submission_period_s AS "periodS" FROM users WHERE id = ${userId} FOR NO KEY UPDATE`,
  );
}

type Known = [hash: string, jobIds: number[], groupId: number | null];
type Found = [Known | null, withinPeriod: [at: number, jobs: number][], notEnded: number, ofUser: Share];

/** A statement of its own after the lock: it must see what was committed while we waited for it. */
export function findSubmissions(
  tx: Transaction,
  { userId, idempotencyKey, now }: Pick<Submission, 'userId' | 'idempotencyKey' | 'now'>,
): Promise<Found> {
  return value(
    tx,
    sql`
SELECT json_build_array(
  (SELECT json_build_array(payload_hash, job_ids,
            CASE WHEN job_count > 1 OR EXISTS (SELECT 1 FROM job_groups g WHERE g.id = s.id) THEN s.id END)
     FROM submissions s WHERE user_id = ${userId} AND idempotency_key = ${idempotencyKey}::text),
  (SELECT coalesce(json_agg(json_build_array(date_part('epoch', at), job_count) ORDER BY at, id), '[]')
     FROM submissions
    WHERE user_id = ${userId} AND at > to_timestamp(${now}::float8)
      - make_interval(secs => (SELECT submission_period_s FROM users WHERE id = ${userId}))),
  (SELECT coalesce(sum(jobs), 0) FROM job_counts),
  (SELECT json_build_object('jobs', coalesce(sum(jobs), 0), 'bytes', coalesce(sum(bytes), 0)) FROM user_jobs WHERE user_id = ${userId})) AS v`,
  );
}

/** An id for the submission, and ids for its jobs, in ascending order. Those of others may lie between. */
export async function reserveIds(
  tx: Transaction,
  jobs: number,
): Promise<[submission: number, jobIds: number[]]> {
  return value(
    tx,
    sql`
SELECT json_build_array(nextval('submissions_id_seq'),
  (SELECT json_agg(nextval('jobs_id_seq')) FROM generate_series(1, ${jobs}::integer))) AS v`,
  );
}

export interface Accepted extends Submission {
  id: number;
  /** Aligned with the jobs. */
  jobIds: readonly number[];
  /** null: it is a single job. */
  groupId: number | null;
}

/**
 * Copied, not inserted: 10 000 jobs from objects to rows in 80 ms instead of 130, and however many they are, they are copied in parts, so
 * that nobody else waits for all of them; and still by one statement, with the commit behind it: its trigger takes the event lock.
 */
function copyJobs(tx: Transaction, { jobs, jobIds, userId, groupId, now }: Accepted): Promise<void> {
  const columns: CopyColumns<number> = {
    id: ['bigint', (i) => jobIds[i]],
    user_id: ['integer', () => userId],
    group_id: ['bigint', () => groupId],
    submitted_at: ['timestamptz', () => now],
    bytes: ['integer', (i) => bytesOf(jobs[i] as NewJob)],
    state: ['text', (i) => stateOf(jobs[i] as NewJob, now)],
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

function insertSubmission(
  tx: Transaction,
  { id, userId, idempotencyKey, payloadHash, jobIds, now }: Accepted,
): Promise<number> {
  return run(
    tx,
    sql`
INSERT INTO submissions (id, user_id, idempotency_key, payload_hash, job_ids, job_count, at)
  VALUES (${id}, ${userId}, ${idempotencyKey}, ${payloadHash}, ${list('bigint', jobIds)}, ${jobIds.length},
    to_timestamp(${now}::float8))`,
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
