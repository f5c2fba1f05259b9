/** What the forms are made of that create and change maintenance windows and reservations. */
import type { HoldPartsFragment, SitePartsFragment, UpdateHoldInput } from './sites.gql';

export const CONFLICTS = [
  { value: 'REFUSE', label: 'Report the conflict' },
  { value: 'AFTER_JOBS', label: 'Let them finish' },
  { value: 'PREEMPT', label: 'Stop them in time' },
] as const;
export type Conflict = (typeof CONFLICTS)[number]['value'];

/** As the field of a local time takes it. */
export const localTime = (at: number): string => {
  const date = new Date(at);
  return new Date(at - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
};
export const HOUR_MS = 3_600_000;

/** As a hold that is there is written in its form. */
export interface Draft {
  from: string;
  /** Empty: until it is canceled. */
  hours: string;
  name: string;
  reason: string;
  rrule: string;
  /** Names; empty: the whole site. */
  machines: string;
}

/** Of one that recurs, the first time by its rule. */
export function timeOf({ recurrence, times }: HoldPartsFragment): { from: number; hours: string } {
  if (recurrence !== null)
    return { from: Date.parse(recurrence.from), hours: String(recurrence.lengthS / 3600) };
  const [time] = times;
  const from = Date.parse(time?.from ?? '');
  return { from, hours: time?.to ? String((Date.parse(time.to) - from) / HOUR_MS) : '' };
}

export function draftOf(hold: HoldPartsFragment): Draft {
  const { from, hours } = timeOf(hold);
  return {
    ...{ from: localTime(from), hours, name: hold.name ?? '', reason: hold.reason ?? '' },
    rrule: hold.recurrence?.rrule ?? '',
    machines: hold.machines.map(({ machine }) => machine.name).join(', '),
  };
}

/** What is to be changed, or (a text) what of it is not understood. */
export function changesOf(
  hold: HoldPartsFragment,
  draft: Draft,
  site: Pick<SitePartsFragment, 'machines' | 'name'>,
): Omit<UpdateHoldInput, 'hold'> | string {
  const before = draftOf(hold);
  const differs = (field: keyof Draft): boolean => draft[field] !== before[field];
  const from = differs('from') ? new Date(draft.from).getTime() : timeOf(hold).from;
  if (Number.isNaN(from)) return 'From: a date and time.';
  const hours = Number(draft.hours);
  if (draft.hours !== '' && !(hours > 0)) return 'Lasts: hours, more than 0.';
  const names = draft.machines.split(/[\s,]+/).filter((name) => name !== '');
  const machines = names.map((name) => site.machines.find((machine) => machine.name === name));
  const unknown = names.find((_, i) => machines[i] === undefined);
  if (unknown !== undefined) return `Machines: ${site.name} has no machine ${unknown}.`;
  return {
    ...(differs('from') && { from: new Date(from).toISOString() }),
    ...((differs('from') || differs('hours')) && {
      to: draft.hours === '' ? null : new Date(from + hours * HOUR_MS).toISOString(),
    }),
    ...(differs('name') && { name: draft.name.trim() || null }),
    ...(differs('reason') && { reason: draft.reason.trim() || null }),
    ...(differs('rrule') && { rrule: draft.rrule.trim() }),
    ...(differs('machines') && {
      machines: names.length === 0 ? null : machines.flatMap((machine) => machine?.id ?? []),
    }),
  };
}
