/** What people do to jobs: cancel, hold, release, boost. */
import { type JobAction, type JobState, possible } from '../../core/states.js';
import { table } from '../columns.js';
import { jobConditions } from '../job-filter.js';
import { commitWith, type Database, LONG_MS, type Transaction, transaction } from '../pool.js';
import { holderOf, SIGNALS_KEPT, signalNote } from '../rules.js';
import { and, type Sql, sql } from '../sql.js';
import { rows, run, value } from '../statement.js';
import type { JobSelection, SelectionOutcome, SentSignal } from '../store.js';
import { insertAudit } from './audit.js';
import { changeJobs, inOrder } from './change-jobs.js';
import { releaseUnmet } from './needs.js';

type Db = Pick<Database, 'pool'>;

/** A job as an action finds it. */
export interface FoundJob {
  id: number;
  state: JobState;
  siteId: number | null;
  /** Its run is being stopped so that it is started again, or for another job. */
  requeued: boolean;
}

export const cancel = (
  database: Db,
  selection: JobSelection,
  now: number,
  cause: 'CANCELLED_BY_USER' | 'CANCELLED_BY_OPERATOR' | 'WITHDRAWN',
): Promise<SelectionOutcome> =>
  act(database, selection, ['cancel', 'stop', 'stopForGood'], (jobs) => cancelJobs(jobs, cause, now));

/** Stops live runs; when they have ended, their jobs are queued again. */
export const requeue = (database: Db, selection: JobSelection): Promise<SelectionOutcome> =>
  act(database, selection, ['stop'], (jobs) => [
    changeJobs('stop', ids(jobs), {
      stopCause: sql`'REQUEUED'::end_cause`,
      deadlineMissed: sql`j.deadline_missed`,
    }),
  ]);

/** Their agents find it among the signals of the run, and are told by the event. */
export const signal = (
  database: Db,
  selection: JobSelection,
  sent: Omit<SentSignal, 'number'>,
): Promise<SelectionOutcome> =>
  act(
    database,
    selection,
    ['signal'],
    (jobs) => [changeJobs('signal', ids(jobs), { note: sql`${signalNote(sent)}::text` })],
    { only: (tx, jobs) => sendTo(tx, jobs, sent) },
  );

/** Adds it to the signals of their runs, if an agent of ours carries these out. Answers with those jobs. */
const sendTo = (
  tx: Transaction,
  jobs: readonly FoundJob[],
  { signal: name, to }: Omit<SentSignal, 'number'>,
): Promise<number[]> =>
  value(
    tx,
    sql`
WITH sent AS (
  UPDATE runs r SET signals = jsonb_path_query_array(coalesce(r.signals, '[]') || jsonb_build_object(
      'number', coalesce((r.signals -> -1 ->> 'number')::integer, 0) + 1, 'signal', ${name}::text, 'to', ${to}::text),
    ${`$[last - ${SIGNALS_KEPT - 1} to last]`}::jsonpath)
    FROM jobs j JOIN ${ids(jobs)} ON t.id = j.id
   WHERE r.job_id = j.id AND r.epoch = j.epoch AND r.placed_by = 'SERVICE' AND r.ended_at IS NULL
  RETURNING r.job_id AS id
)
SELECT coalesce(json_agg(id ORDER BY id), '[]') AS v FROM sent`,
  );

/** From a meta-queue it is held as if by the root. */
export const hold = (database: Db, selection: JobSelection): Promise<SelectionOutcome> =>
  act(database, selection, ['hold'], (jobs) => [
    changeJobs('hold', ids(jobs), { siteId: sql`CASE WHEN j.state <> 'QUEUED' THEN j.site_id END` }),
  ]);

/** As held, with the reason. */
export async function setAside(database: Db, jobIds: readonly number[], message: string): Promise<number[]> {
  const selection = { ids: [...jobIds], ownedBy: null, limit: jobIds.length };
  const { changed } = await act(database, selection, ['setAside'], (jobs) => [
    changeJobs('setAside', ids(jobs), {
      siteId: sql`CASE WHEN j.state <> 'QUEUED' THEN j.site_id END`,
      message: sql`${message}::text`,
    }),
  ]);
  return changed;
}

/** To the queue where it was held, or to the root when its site takes nothing now. */
export const release = (database: Db, selection: JobSelection): Promise<SelectionOutcome> =>
  act(database, selection, ['release'], releaseJobs, { before: shareSites });

export const boost = (database: Db, selection: JobSelection, value: number): Promise<SelectionOutcome> =>
  act(database, selection, ['boost'], (jobs) => [
    changeJobs('boost', ids(jobs), { boost: sql`${value}::integer` }),
  ]);

const ids = (jobs: readonly FoundJob[]): Sql => table('t', jobs, { id: ['bigint', ({ id }) => id] });

/** Locks what is selected and changes those of it in whose state one of the actions is possible. */
async function act(
  database: Db,
  { ids, filter, ownedBy, limit, audit }: JobSelection,
  actions: readonly JobAction[],
  change: (jobs: readonly FoundJob[]) => Sql[],
  {
    before,
    only,
  }: {
    before?: (tx: Transaction) => Promise<unknown>;
    /** Of those in whose state it is possible, with which it is. */
    only?: (tx: Transaction, jobs: readonly FoundJob[]) => Promise<readonly number[]>;
  } = {},
): Promise<SelectionOutcome> {
  const tooMany = { changed: [], unchanged: [], tooMany: true, touched: [] };
  if (ids !== undefined && ids.length > limit) return tooMany;
  const can = ({ state, requeued }: FoundJob): boolean =>
    actions.some((action) => possible(action, state) && (action !== 'stopForGood' || requeued));
  return transaction(
    database,
    async (tx): Promise<SelectionOutcome> => {
      await before?.(tx);
      const found = await lockJobs(tx, selected({ ids, filter, ownedBy }), limit + 1);
      if (found.length > limit) return tooMany;
      const possibly = found.filter(can);
      const did = new Set(only ? await only(tx, possibly) : possibly.map(({ id }) => id));
      const changed = possibly.filter(({ id }) => did.has(id));
      if (changed.length > 0) {
        if (audit) await insertAudit(tx, audit(changed.map(({ id }) => id)));
        await commitWith(tx, change(changed));
      }
      const known = new Map(found.map(({ id, state }) => [id, state]));
      return {
        changed: changed.map(({ id }) => id),
        unchanged: [...new Set(ids ?? known.keys())]
          .map((jobId) => ({ jobId, state: known.get(jobId) ?? null }))
          .filter(({ jobId }) => !did.has(jobId)),
        tooMany: false,
        touched: [...new Set(changed.map(({ state, siteId }) => holderOf(state, siteId)))],
      };
    },
    { timeoutMs: LONG_MS },
  );
}

/** What the jobs of a selection have in common. Ended ones are found by their ids only. */
export const selected = ({
  ids,
  filter = {},
  ownedBy,
}: Pick<JobSelection, 'ids' | 'filter' | 'ownedBy'>): Sql[] => [
  ...(ids === undefined ? [sql`j.ended_at IS NULL`, ...jobConditions(filter)] : jobConditions({ ids })),
  ...(ownedBy === null ? [] : [sql`j.user_id = ${ownedBy}::integer`]),
];

/** Of jobs. */
export const isRequeued = sql`state = 'CANCELLING' AND coalesce(stop_cause IN ('REQUEUED', 'PREEMPTED'), false)`;

/** In the order of ids. */
const lockJobs = (tx: Transaction, conditions: readonly Sql[], limit: number): Promise<FoundJob[]> =>
  rows(
    tx,
    sql`SELECT id, state, site_id AS "siteId", ${isRequeued} AS requeued FROM jobs j WHERE ${and(conditions)} ORDER BY id LIMIT ${limit} FOR NO KEY UPDATE`,
  );

/** Without a live run it has ended; with one it is asked to stop. */
export function cancelJobs(
  jobs: readonly FoundJob[],
  cause: 'CANCELLED_BY_USER' | 'CANCELLED_BY_OPERATOR' | 'DEADLINE_PASSED' | 'IDLE_TIMEOUT' | 'WITHDRAWN',
  now: number,
): Sql[] {
  const why = sql`${cause}::end_cause`;
  const at = sql`to_timestamp(${now}::float8)`;
  const deadlineMissed = sql`j.deadline_missed OR coalesce(${at} > j.deadline, false)`;
  const waiting = jobs.filter(({ state }) => possible('cancel', state));
  const live = jobs.filter(({ state }) => possible('stop', state));
  const stopping = jobs.filter(({ requeued }) => requeued);
  const ended = { stopCause: why, cause: why, endedAt: inOrder(now), deadlineMissed };
  return [
    ...(waiting.length > 0 ? [changeJobs('cancel', ids(waiting), ended)] : []),
    ...(live.length > 0 ? [changeJobs('stop', ids(live), { stopCause: why, deadlineMissed })] : []),
    ...(stopping.length > 0
      ? [changeJobs('stopForGood', ids(stopping), { stopCause: why, deadlineMissed })]
      : []),
  ];
}

/** Locked before the jobs: a release must not put a job in the queue of a site that is being drained. */
const shareSites = (tx: Transaction): Promise<number> =>
  run(tx, sql`SELECT id FROM sites WHERE removed_at IS NULL ORDER BY id FOR SHARE`);

function releaseJobs(jobs: readonly FoundJob[]): Sql[] {
  const held = sql`(
    SELECT held.id, s.id AS site_id, n.job_id IS NOT NULL AND (held.eligible_at IS NULL OR n.not_before > clock_timestamp()) AS blocked FROM ${ids(jobs)} JOIN jobs held USING (id)
      LEFT JOIN sites s ON s.id = held.site_id AND s.state = 'UP' AND s.removed_at IS NULL
      LEFT JOIN job_needs n ON n.job_id = held.id) AS t`;
  const settings = {
    siteId: sql`t.site_id`,
    priority: sql`CASE WHEN t.site_id IS NOT NULL THEN j.priority END`,
    dispatchedAt: sql`CASE WHEN t.site_id IS NOT NULL THEN j.dispatched_at END`,
  };
  const state = sql`CASE WHEN t.blocked THEN 'BLOCKED' WHEN t.site_id IS NULL THEN 'QUEUED' ELSE 'DISPATCHED' END::job_state`;
  return [releaseUnmet(ids(jobs)), changeJobs('release', held, settings, state)];
}
