/** What the forms are made of that create and change maintenance windows and reservations. */
import { NotAccepted, parseAmount, parseNumber } from '../../../../src/words/index';
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
  /** Names; empty: the whole site, or where there is room for the tasks. */
  machines: string;
  /** Instead of machines. */
  tasks: string;
  /** Of each task, or on each machine; all empty: whole machines. Kinds with amounts: `gpu=2, tape=1`. */
  cpus: string;
  memoryMb: string;
  resources: string;
  /** Of licenses and what else is counted for the site or the grid, likewise. */
  shared: string;
  /** Names. */
  users: string;
  /** Minutes without a run after which it is released; empty: never. */
  releaseMin: string;
}

/** What it holds for tasks. */
const TASKS = ['tasks', 'cpus', 'memoryMb', 'resources'] as const;
export type TaskField = (typeof TASKS)[number];
const AMOUNTS = ['machines', ...TASKS] as const;

export const wordsOf = (text: string): string[] => text.split(/[\s,]+/).filter((word) => word !== '');

type Amounts = HoldPartsFragment['shared'];

const amountsText = (amounts: Amounts): string =>
  amounts.map(({ kind, amount }) => `${kind}=${amount}`).join(', ');

/** @throws NotAccepted */
const amountsIn = (field: string, text: string): Amounts =>
  wordsOf(text).map((one) => parseAmount(field, one));

/** @throws NotAccepted */
export const sharedIn = (text: string): Amounts => amountsIn('Licenses and shared resources', text);

/** What is read, or (a text) what of it is not understood. */
export function understood<T extends object>(read: () => T): T | string {
  try {
    return read();
  } catch (error) {
    if (error instanceof Misfit) return error.message;
    if (error instanceof NotAccepted) return `${error.message}.`;
    throw error;
  }
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
    ...amountsOf(hold.machines),
    shared: amountsText(hold.shared),
    users: hold.users.map(({ name }) => name).join(', '),
    releaseMin: hold.releaseIdleS === null ? '' : String(hold.releaseIdleS / 60),
  };
}

/** Empty where machines differ: then it was made for tasks, and says no more how many. */
function amountsOf(machines: HoldPartsFragment['machines']): Pick<Draft, TaskField> {
  const [first, ...others] = machines.map(({ cpus, memoryMb, resources }) => ({
    // Of what it holds nothing of, the amount is 0.
    ...{ tasks: '', cpus: cpus ? String(cpus) : '', memoryMb: memoryMb ? String(memoryMb) : '' },
    resources: amountsText(resources),
  }));
  const alike = others.every((one) => JSON.stringify(one) === JSON.stringify(first));
  return first !== undefined && alike ? first : { tasks: '', cpus: '', memoryMb: '', resources: '' };
}

/** What is to be changed, or (a text) what of it is not understood. */
export function changesOf(
  hold: HoldPartsFragment,
  draft: Draft,
  site: Pick<SitePartsFragment, 'machines' | 'name'>,
): Omit<UpdateHoldInput, 'holdId'> | string {
  const before = draftOf(hold);
  const differs = (field: keyof Draft): boolean => draft[field] !== before[field];
  const from = differs('from') ? new Date(draft.from).getTime() : timeOf(hold).from;
  if (Number.isNaN(from)) return 'From: a date and time.';
  const hours = Number(draft.hours);
  if (draft.hours !== '' && !(hours > 0)) return 'Lasts: hours, more than 0.';
  return understood(() => ({
    ...(differs('from') && { from: new Date(from).toISOString() }),
    ...((differs('from') || differs('hours')) && {
      to: draft.hours === '' ? null : new Date(from + hours * HOUR_MS).toISOString(),
    }),
    ...(differs('name') && { name: draft.name.trim() || null }),
    ...(differs('reason') && { reason: draft.reason.trim() || null }),
    ...(differs('rrule') && { rrule: draft.rrule.trim() }),
    ...(AMOUNTS.some(differs) && heldOf(draft, site)),
    ...(differs('shared') && { shared: sharedIn(draft.shared) }),
    ...(differs('users') && { users: wordsOf(draft.users) }),
    ...(differs('releaseMin') && {
      releaseIdleS:
        draft.releaseMin === ''
          ? null
          : Math.round(60 * parseNumber('Released after', draft.releaseMin, { min: 1 })),
    }),
  }));
}

/** What is written does not fit the site. */
class Misfit extends Error {}

const whole = (field: string, text: string): number | undefined =>
  text === '' ? undefined : parseNumber(field, text, { min: 1, integer: true });

/**
 * What is held for tasks, or on each machine if there are none.
 *
 * @throws NotAccepted
 */
export const tasksIn = ({ tasks, cpus, memoryMb, resources }: Pick<Draft, TaskField>) => ({
  ...{ tasks: whole('Tasks', tasks), cpus: whole('CPUs', cpus), memoryMb: whole('Memory', memoryMb) },
  ...(resources.trim() !== '' && { resources: amountsIn('Other resources', resources) }),
});

/** All of what it is to hold: what is left out is not held any more. */
function heldOf(
  { machines, ...draft }: Draft,
  site: Pick<SitePartsFragment, 'machines' | 'name'>,
): Pick<UpdateHoldInput, 'machineIds' | TaskField> {
  const amounts = tasksIn(draft);
  if (amounts.tasks !== undefined) return amounts;
  const ids = wordsOf(machines).map((name) => {
    const found = site.machines.find((machine) => machine.name === name);
    if (found === undefined) throw new Misfit(`Machines: ${site.name} has no machine ${name}.`);
    return found.id;
  });
  return { machineIds: ids.length === 0 ? null : ids, ...amounts };
}
