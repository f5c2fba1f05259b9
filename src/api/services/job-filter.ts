/** `JobFilter` as clients give it, checked for lists, actions and subscriptions alike. */
import { MAX } from '../../platform/limits.js';
import type { JobFilter as StoredFilter } from '../../store/job-filter.js';
import type { Viewer } from '../auth.js';
import { atMost, text } from '../check.js';
import type { JobFilter } from '../generated/types.js';
import { globalId, type IdType, localId } from '../ids.js';
import { ownerOnly } from './access.js';

/** The conditions that are given. `field`: where they stand, for the message of BAD_USER_INPUT or LIMIT_EXCEEDED. */
export function jobFilter(field: string, given: JobFilter | null): StoredFilter {
  const id = (name: 'siteId' | 'userId' | 'jobGroupId', type: IdType): number | undefined =>
    mapped(given?.[name], (value) => localId(type, value, `${field}.${name}`));
  const name = (of: 'application' | 'project' | 'groupName' | 'license'): string | undefined =>
    mapped(given?.[of], (value) => text(`${field}.${of}`, value, MAX.nameChars));
  const time = (
    of: 'submittedAfter' | 'submittedBefore' | 'endedAfter' | 'endedBefore',
  ): number | undefined => mapped(given?.[of], (date) => date.getTime() / 1000);
  const conditions = {
    ids: mapped(given?.ids, (ids) =>
      atMost(`${field}.ids`, ids, MAX.filterIds).map((one) => localId('job', one, `${field}.ids`)),
    ),
    states: mapped(given?.states, (states) => [...new Set(states)]),
    siteId: id('siteId', 'site'),
    userId: id('userId', 'user'),
    application: name('application'),
    project: name('project'),
    groupName: name('groupName'),
    class: mapped(given?.class, (value) => text(`${field}.class`, value, MAX.classNameChars)),
    license: name('license'),
    cause: given?.cause ?? undefined,
    groupId: id('jobGroupId', 'group'),
    waitsForOthers: given?.waitsForOthers ?? undefined,
    submittedFrom: time('submittedAfter'),
    submittedBefore: time('submittedBefore'),
    endedFrom: time('endedAfter'),
    endedBefore: time('endedBefore'),
  };
  return Object.fromEntries(Object.entries(conditions).filter(([, value]) => value !== undefined));
}

/** The same of jobs that the viewer may see; null: nothing can match. Cursors and ids of others' jobs are harmless: the owner is always a condition too. */
export function visibleFilter(viewer: Viewer, given: JobFilter | null): StoredFilter | null {
  const owner = ownerOnly(viewer);
  const stored = jobFilter('filter', given);
  if (owner === null) return stored;
  return stored.userId !== undefined && stored.userId !== owner ? null : { ...stored, userId: owner };
}

/** A stored filter as clients are shown it: each condition, null where it is not given. */
export function conditionsOf(filter: StoredFilter) {
  const id = (type: IdType, value: number | undefined) => mapped(value, (one) => globalId(type, one)) ?? null;
  const time = (value: number | undefined) => mapped(value, (at) => new Date(at * 1000)) ?? null;
  const text = (value: string | undefined) => value ?? null;
  return {
    ids: mapped(filter.ids, (ids) => ids.map((one) => globalId('job', one))) ?? null,
    states: filter.states ? [...filter.states] : null,
    siteId: id('site', filter.siteId),
    userId: id('user', filter.userId),
    application: text(filter.application),
    project: text(filter.project),
    groupName: text(filter.groupName),
    class: text(filter.class),
    license: text(filter.license),
    cause: filter.cause ?? null,
    jobGroupId: id('group', filter.groupId),
    waitsForOthers: filter.waitsForOthers ?? null,
    submittedAfter: time(filter.submittedFrom),
    submittedBefore: time(filter.submittedBefore),
    endedAfter: time(filter.endedFrom),
    endedBefore: time(filter.endedBefore),
  } satisfies Record<keyof JobFilter, unknown>;
}

/** The same in the form of `JobFilter`: what is given. */
export const shownFilter = (filter: StoredFilter): Record<string, unknown> =>
  Object.fromEntries(Object.entries(conditionsOf(filter)).filter(([, value]) => value !== null));

const mapped = <T, R>(value: T | null | undefined, map: (value: T) => R): R | undefined =>
  value === null || value === undefined ? undefined : map(value);
