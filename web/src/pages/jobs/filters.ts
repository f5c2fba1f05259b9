/** Filters, order and columns of the list of jobs, as they are in the address. */

import type { JobState } from '../../api/states.gql';
import { END_CAUSES, JOB_STATES, LIVE_STATES, PENDING_STATES } from '../../api/states.gql';
import type { JobFilter, JobOrder } from '../../parts/job-rows.gql';
import type { Search } from '../../ui/address';

/** States as people ask for them. */
export const STATE_SETS = [
  { value: '', label: 'All', states: null },
  { value: PENDING_STATES.join(','), label: 'Waiting', states: PENDING_STATES },
  { value: 'others', label: 'Waiting for other jobs', states: null },
  { value: LIVE_STATES.join(','), label: 'Running', states: LIVE_STATES },
  { value: 'HELD', label: 'Held', states: ['HELD'] },
  { value: 'COMPLETED', label: 'Completed', states: ['COMPLETED'] },
  { value: 'FAILED', label: 'Failed', states: ['FAILED'] },
  { value: 'CANCELLED', label: 'Cancelled', states: ['CANCELLED'] },
] as const;

/** Names in the address, and what each narrows. */
export const FILTER_FIELDS = [
  'states',
  'site',
  'user',
  'application',
  'project',
  'groupName',
  'class',
  'license',
  'cause',
  'group',
  'submittedAfter',
  'submittedBefore',
  'endedAfter',
  'endedBefore',
] as const;

const AGO = /^(\d+)(m|h|d)$/;
const UNIT_MS = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `2h` as the instant two hours ago, to the minute; else the instant itself. */
export function instantOf(text: string, now = Date.now()): string | null {
  const ago = AGO.exec(text);
  if (ago) {
    const at = now - Number(ago[1]) * UNIT_MS[ago[2] as keyof typeof UNIT_MS];
    return new Date(Math.floor(at / 60_000) * 60_000).toISOString();
  }
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : new Date(at).toISOString();
}

export function filterOf(search: Search): JobFilter {
  const filter: JobFilter = {};
  const states = (search.states ?? '')
    .split(',')
    .filter((state): state is JobState => JOB_STATES.includes(state as JobState));
  if (states.length > 0) filter.states = states;
  if (search.states === 'others') filter.waitsForOthers = true;
  for (const field of ['application', 'project', 'groupName', 'class', 'license'] as const) {
    const value = search[field];
    if (value) filter[field] = value;
  }
  const cause = END_CAUSES.find((known) => known === search.cause);
  if (cause) filter.cause = cause;
  if (search.site) filter.siteId = search.site;
  if (search.user) filter.userId = search.user;
  if (search.group) filter.jobGroupId = search.group;
  for (const field of ['submittedAfter', 'submittedBefore', 'endedAfter', 'endedBefore'] as const) {
    const at = search[field] && instantOf(search[field]);
    if (at) filter[field] = at;
  }
  return filter;
}

export const ORDERS: readonly { value: string; label: string; order: JobOrder }[] = [
  { value: '', label: 'Newest first', order: { field: 'SUBMITTED_AT', direction: 'DESC' } },
  { value: 'oldest', label: 'Oldest first', order: { field: 'SUBMITTED_AT', direction: 'ASC' } },
  { value: 'ended', label: 'Last ended first', order: { field: 'ENDED_AT', direction: 'DESC' } },
  { value: 'deadline', label: 'Next deadline first', order: { field: 'DEADLINE', direction: 'ASC' } },
];

export const orderOf = (search: Search): JobOrder =>
  (ORDERS.find(({ value }) => value === (search.order ?? '')) ?? ORDERS[0]!).order;
