/** `JobFilter` as clients give it, checked once for lists, actions and subscriptions. */
import { MAX } from '../../platform/limits.js';
import type { JobFilter as StoredFilter } from '../../store/queries.js';
import type { EventRow, JobRow } from '../../store/rows.js';
import { atMost, text } from '../check.js';
import type { JobFilter } from '../generated/resolvers-types.js';
import { type IdType, localId } from '../ids.js';

/** The conditions that are given. `field`: where they stand, for the message of BAD_USER_INPUT or LIMIT_EXCEEDED. */
export function jobFilter(field: string, given: JobFilter | null): StoredFilter {
  const id = (name: 'site' | 'user' | 'group', type: IdType): number | undefined =>
    mapped(given?.[name], (value) => localId(type, value, `${field}.${name}`));
  const name = (of: 'application' | 'groupName'): string | undefined =>
    mapped(given?.[of], (value) => text(`${field}.${of}`, value, MAX.nameChars));
  const time = (
    of: 'submittedAfter' | 'submittedBefore' | 'endedAfter' | 'endedBefore',
  ): number | undefined => mapped(given?.[of], (date) => date.getTime() / 1000);
  const conditions = {
    ids: mapped(given?.ids, (ids) =>
      atMost(`${field}.ids`, ids, MAX.filterIds).map((one) => localId('job', one, `${field}.ids`)),
    ),
    states: mapped(given?.states, (states) => [...new Set(states)]),
    siteId: id('site', 'site'),
    userId: id('user', 'user'),
    application: name('application'),
    groupName: name('groupName'),
    groupId: id('group', 'group'),
    submittedFrom: time('submittedAfter'),
    submittedBefore: time('submittedBefore'),
    endedFrom: time('endedAfter'),
    endedBefore: time('endedBefore'),
  };
  return Object.fromEntries(Object.entries(conditions).filter(([, value]) => value !== undefined));
}

const mapped = <T, R>(value: T | null | undefined, map: (value: T) => R): R | undefined =>
  value === null || value === undefined ? undefined : map(value);

export interface Matcher {
  /** What the event alone can say. */
  ofEvent(event: EventRow): boolean;
  ofJob(event: EventRow, job: JobRow): boolean;
}

/**
 * Whether an event and its job match. States are those that the event led to: the row is as it is now, and a short job may
 * have ended by the time its start is read. `owner`: only this user's jobs; null: everybody's.
 */
export function matcherOf(filter: StoredFilter, owner: number | null): Matcher {
  const { userId, siteId, application, groupName, groupId } = filter;
  const ids = filter.ids && new Set(filter.ids);
  const states = filter.states && new Set<string>(filter.states);
  const submitted = range(filter.submittedFrom, filter.submittedBefore);
  const ended = range(filter.endedFrom, filter.endedBefore);
  return {
    ofEvent: (event) =>
      (owner === null || event.userId === owner) &&
      (userId === undefined || event.userId === userId) &&
      (ids === undefined || ids.has(event.entityId)) &&
      (states === undefined || event.toState === null || states.has(event.toState)),
    ofJob: (event, job) =>
      (states === undefined || states.has(event.toState ?? job.state)) &&
      (siteId === undefined || (event.siteId ?? job.siteId) === siteId) &&
      (application === undefined || job.application === application) &&
      (groupName === undefined || job.groupName === groupName) &&
      (groupId === undefined || job.groupId === groupId) &&
      (submitted === null || submitted(job.submittedAt)) &&
      (ended === null || (job.endedAt !== null && ended(job.endedAt))),
  };
}

/** Null: any time will do. */
function range(from: number | undefined, before: number | undefined): ((at: number) => boolean) | null {
  if (from === undefined && before === undefined) return null;
  return (at) => at >= (from ?? Number.NEGATIVE_INFINITY) && at < (before ?? Number.POSITIVE_INFINITY);
}
