/**
 * Filters on jobs: one description, compiled to conditions in SQL for lists and actions, and to predicates for subscriptions. A new
 * filter is one member of `JobFilter` and its entry in `conditions`.
 */
import { NO_CLASS } from '../core/classes.js';
import { type EndCause, isLive, isTerminal, type JobState } from '../core/states.js';
import { list } from './columns.js';
import type { EventRow, JobRow } from './rows.js';
import { type Sql, sql } from './sql.js';

/** All that is given must hold. Times are epoch seconds, "from" included, "before" not. */
export interface JobFilter {
  ids?: readonly number[];
  states?: readonly JobState[];
  /** Held by (its queue or its meta-queue), or ended at. */
  siteId?: number;
  userId?: number;
  application?: string;
  project?: string;
  groupName?: string;
  /** Of jobs; `NO_CLASS`: those without one. */
  class?: string;
  /** A kind of license, or of anything else that is counted in pools, that it asks for. */
  license?: string;
  /** Of its end, or of that of its last run. */
  cause?: EndCause;
  /** Of a group made from a template. */
  groupId?: number;
  /** BLOCKED before its first run, and not for a time alone. */
  waitsForOthers?: boolean;
  submittedFrom?: number;
  submittedBefore?: number;
  endedFrom?: number;
  endedBefore?: number;
}

/** What the conditions ask of a job. */
type FilteredJob = Pick<
  JobRow,
  | 'id'
  | 'state'
  | 'siteId'
  | 'userId'
  | 'application'
  | 'project'
  | 'groupName'
  | 'class'
  | 'licenses'
  | 'cause'
  | 'resources'
  | 'groupId'
  | 'submittedAt'
  | 'endedAt'
  | 'epoch'
  | 'eligibleAt'
  | 'needsOthers'
>;
/** Whether a job matches, as it was after the event, where one is given: the row may be ahead of it. */
export type JobPredicate = (job: FilteredJob, event?: EventRow) => boolean;
/** Whether an event may be of a job that matches: false only where the event alone tells that it is not. */
export type EventPredicate = (event: EventRow) => boolean;

interface Condition<T> {
  /** On a row `j` of jobs. */
  sql(value: T): Sql;
  job(value: T): JobPredicate;
  /** Where the event alone can tell. */
  event?(value: T): EventPredicate;
}

const conditions: { readonly [K in keyof JobFilter]-?: Condition<NonNullable<JobFilter[K]>> } = {
  ids: {
    sql: (ids) => sql`j.id = ANY (${list('bigint', ids)})`,
    job: (ids) => oneOf(ids, (job) => job.id),
    event: (ids) => oneOf(ids, (event) => event.entityId),
  },
  states: {
    sql: (states) => sql`j.state = ANY (${list('job_state', states)})${implied(states)}`,
    job(states) {
      const wanted = new Set(states);
      return (job, event) => wanted.has(event?.toState ?? job.state);
    },
    event(states) {
      const wanted = new Set(states);
      return ({ toState }) => toState === null || wanted.has(toState);
    },
  },
  siteId: {
    sql: (siteId) => sql`j.site_id = ${siteId}::integer`,
    job: (siteId) => (job, event) => (event?.siteId ?? job.siteId) === siteId,
  },
  userId: {
    sql: (userId) => sql`j.user_id = ${userId}::integer`,
    job: (userId) => (job) => job.userId === userId,
    event: (userId) => (event) => event.userId === userId,
  },
  application: {
    sql: (application) => sql`j.application = ${application}::text`,
    job: (application) => (job) => job.application === application,
  },
  project: {
    sql: (project) => sql`j.project = ${project}::text`,
    job: (project) => (job) => job.project === project,
  },
  groupName: {
    sql: (groupName) => sql`j.group_name = ${groupName}::text`,
    job: (groupName) => (job) => job.groupName === groupName,
  },
  class: {
    sql: (name) => (name === NO_CLASS ? sql`j.class IS NULL` : sql`j.class = ${name}::text`),
    job: (name) => (job) => (job.class ?? NO_CLASS) === name,
  },
  license: {
    // The second says what follows from the first, in the words of a partial index.
    sql: (license) =>
      sql`(j.licenses @> ARRAY[${license}::text] AND j.licenses <> '{}' OR j.resources IS NOT NULL AND j.resources ? ${license}::text)`,
    job: (license) => (job) => job.licenses.includes(license) || Object.hasOwn(job.resources ?? {}, license),
  },
  cause: {
    sql: (cause) => sql`j.cause = ${cause}::end_cause`,
    job: (cause) => (job) => job.cause === cause,
  },
  groupId: {
    // There is no index on group_id: the group knows the range of its jobs.
    sql: (groupId) => sql`j.group_id = ${groupId}::bigint
      AND j.id BETWEEN (SELECT first_job_id FROM job_groups WHERE id = ${groupId}::bigint)
                   AND (SELECT last_job_id FROM job_groups WHERE id = ${groupId}::bigint)`,
    job: (groupId) => (job) => job.groupId === groupId,
  },
  waitsForOthers: {
    sql(wanted) {
      const waits = sql`j.state = 'BLOCKED' AND j.ended_at IS NULL AND j.epoch = 0 AND j.eligible_at IS NULL
        AND EXISTS (SELECT FROM need_edges e WHERE e.job_id = j.id)`;
      return wanted ? waits : sql`NOT (${waits})`;
    },
    job: (wanted) => (job, event) => {
      const { toState, epoch } = event ?? { toState: null, epoch: null };
      const isBlocked = (toState ?? job.state) === 'BLOCKED' && (epoch ?? job.epoch) === 0;
      // Of the time of an event it is not known since when the job might have started.
      const isAsked = event !== undefined || job.eligibleAt === null;
      return (isBlocked && isAsked && job.needsOthers) === wanted;
    },
    event:
      (wanted) =>
      ({ toState }) =>
        !wanted || toState === null || toState === 'BLOCKED',
  },
  submittedFrom: {
    sql: (from) => sql`j.submitted_at >= to_timestamp(${from}::float8)`,
    job: (from) => (job) => job.submittedAt >= from,
  },
  submittedBefore: {
    sql: (before) => sql`j.submitted_at < to_timestamp(${before}::float8)`,
    job: (before) => (job) => job.submittedAt < before,
  },
  endedFrom: {
    sql: (from) => sql`j.ended_at >= to_timestamp(${from}::float8)`,
    job: (from) => (job) => job.endedAt !== null && job.endedAt >= from,
  },
  endedBefore: {
    sql: (before) => sql`j.ended_at < to_timestamp(${before}::float8)`,
    job: (before) => (job) => job.endedAt !== null && job.endedAt < before,
  },
};

/** Conditions on rows `j` of jobs, to be joined by AND. */
export const jobConditions = (filter: JobFilter): Sql[] =>
  compiled(filter, (condition, value) => condition.sql(value));

export function jobPredicate(filter: JobFilter): JobPredicate {
  const all = compiled(filter, (condition, value) => condition.job(value));
  return (job, event) => all.every((holds) => holds(job, event));
}

export function eventPredicate(filter: JobFilter): EventPredicate {
  const all = compiled(filter, (condition, value) => condition.event?.(value));
  return (event) => all.every((holds) => holds(event));
}

function compiled<R>(
  filter: JobFilter,
  compile: (condition: Condition<unknown>, value: unknown) => R | undefined,
): R[] {
  return (Object.keys(conditions) as (keyof JobFilter)[]).flatMap((key) => {
    if (filter[key] === undefined) return [];
    const made = compile(conditions[key] as Condition<unknown>, filter[key]);
    return made === undefined ? [] : [made];
  });
}

function oneOf<T>(ids: readonly number[], idOf: (item: T) => number): (item: T) => boolean {
  const wanted = new Set(ids);
  return (item) => wanted.has(idOf(item));
}

/** What follows from the states, said in the words of the partial indexes: the planner cannot know it. */
function implied(states: readonly JobState[]): Sql {
  const all = (holds: (state: JobState) => boolean) => states.length > 0 && states.every(holds);
  // As an array: there are no more of them than CPUs, and no plan can be wrong about it.
  if (all(isLive))
    return sql` AND j.ended_at IS NULL AND j.id = ANY (ARRAY(SELECT job_id FROM runs WHERE ended_at IS NULL))`;
  if (states.every((state) => !isTerminal(state))) return sql` AND j.ended_at IS NULL`;
  if (!all(isTerminal)) return sql``;
  return all((state) => state !== 'COMPLETED')
    ? sql` AND j.ended_at IS NOT NULL AND j.cause <> 'EXITED_ZERO'`
    : sql` AND j.ended_at IS NOT NULL`;
}
