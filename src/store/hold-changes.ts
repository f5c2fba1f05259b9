/** What an edit makes of a maintenance window or reservation, as a pure function: the same for every implementation of the store. */

import type { PoolsAsked } from '../core/model.js';
import {
  type Admission,
  admitHold,
  conflictsOf,
  type HeldMachines,
  type HeldOf,
  type HeldPools,
  type HoldFacts,
  type HoldTime,
  isRefused,
  type NewHold,
  type OnConflict,
} from './holds.js';
import { MADE_AHEAD_S, type Recurrence, TimesFault, timesOf } from './recurrence.js';
import type { KeptHold, KeptTime } from './upkeep.js';

/** What is to be different of a hold; what is absent stays. */
export interface HoldChange {
  name?: string | null;
  reason?: string | null;
  onConflict?: OnConflict;
  idleS?: number | null;
  /** Ascending. */
  userIds?: readonly number[];
  held?: HeldOf;
  shared?: readonly PoolsAsked[];
  when?: WhenChange;
}

/** Epoch seconds. Of a hold that recurs, `from` and `to` are those of its first time. */
export interface WhenChange {
  from?: number;
  to?: number | null;
  rrule?: string;
  timeZone?: string;
  except?: readonly number[];
  also?: readonly number[];
}

/** One that has not ended. */
export type ChangingHold = Pick<
  KeptHold,
  'id' | 'kind' | 'onConflict' | 'machines' | 'pools' | 'recurrence' | 'times'
>;

export interface HoldEdit {
  onConflict: OnConflict;
  machines: HeldMachines;
  pools: HeldPools;
  recurrence: Recurrence | null;
  /** From now on, in order; `id` null: a new one. Those that are not among them are no more. */
  times: readonly EditedTime[];
  admission: Admission;
  /** Something is in its way: it stays as it is. */
  refused: boolean;
}

export interface EditedTime extends HoldTime {
  id: number | null;
}

/**
 * What it holds, and when, is admitted as that of a new hold is, beside all others; the runs inside it have a right to be there. An edit of
 * neither these nor what becomes of runs is never in anybody's way. A time that has begun goes on, and its beginning stays.
 *
 * @throws TimesFault
 */
export function editHold(hold: ChangingHold, change: HoldChange, facts: HoldFacts, now: number): HoldEdit {
  const { onConflict = hold.onConflict, when } = change;
  const { times, recurrence } = timesAfter(hold, when, now);
  const asked = { kind: hold.kind, onConflict, times };
  const others = beside(hold.id, facts);
  const admission = admitEdit(hold, asked, change, others, now);
  const refused = isRefused(onConflict, admission);
  const { machines, pools } = admission;
  return { onConflict, machines, pools, recurrence, times, admission, refused };
}

const HOLDS_NOTHING = 'it would hold nothing any more: cancel it, or name machines for it';

function admitEdit(
  hold: ChangingHold,
  asked: Pick<NewHold, 'kind' | 'onConflict' | 'times'>,
  { held, shared, when, onConflict }: HoldChange,
  others: HoldFacts,
  now: number,
): Admission {
  const { machines } = hold;
  // What it keeps of these it holds of the same.
  const keeps = { of: 'MACHINES', machineIds: [], amounts: null } as const;
  const found = admitHold({ ...asked, held: held ?? keeps, shared: shared ?? [] }, others, now);
  if (found.fault !== null) return found;
  const all = {
    machines: held === undefined ? machines : found.machines,
    pools: shared === undefined ? hold.pools : found.pools,
  };
  // Machines it may give up only for others.
  if (shared !== undefined && all.machines?.length === 0 && all.pools.length === 0)
    return { ...found, fault: HOLDS_NOTHING };
  const isSame = [held, shared, when, onConflict].every((value) => value === undefined);
  const conflicts = isSame ? { holds: [], runs: [] } : conflictsOf(asked, all, others, now);
  return { ...all, ...conflicts, fault: null };
}

/** The site as it is without the hold. */
export const beside = (id: number, facts: HoldFacts): HoldFacts => ({
  ...facts,
  open: facts.open.filter(({ holdId }) => holdId !== id),
  runs: facts.runs.filter(({ reservationId }) => reservationId !== id),
});

function timesAfter(
  { times, recurrence }: ChangingHold,
  when: WhenChange | undefined,
  now: number,
): Pick<HoldEdit, 'times' | 'recurrence'> {
  if (when === undefined) return { times, recurrence };
  return recurrence === null
    ? { times: [onceAfter(times[0] as KeptTime, when, now)], recurrence }
    : againAfter(times, recurrence, when, now);
}

function onceAfter(
  time: KeptTime,
  { from, to = time.to, rrule, timeZone, except, also }: WhenChange,
  now: number,
): EditedTime {
  for (const [field, value] of Object.entries({ rrule, timeZone, exceptDates: except, alsoDates: also }))
    if (value !== undefined)
      throw new TimesFault(field, value, 'no value: it does not recur; create another');
  const hasBegun = time.from <= now;
  if (hasBegun && from !== undefined && from !== time.from)
    throw new TimesFault('from', iso(from), 'no other time: it has begun');
  const begins = hasBegun ? time.from : from === undefined ? time.from : Math.max(now, from);
  checkEnd(to, Math.max(begins, now));
  return { id: time.id, from: begins, to };
}

function againAfter(
  times: readonly KeptTime[],
  before: Recurrence,
  { from = before.from, to, except = before.except, also = before.also, ...change }: WhenChange,
  now: number,
): Pick<HoldEdit, 'times' | 'recurrence'> {
  const { rrule = before.rrule, timeZone = before.timeZone } = change;
  if (to === null) throw new TimesFault('to', null, 'a time: recurring holds must have an end');
  if (to !== undefined) checkEnd(to, from);
  const lengthS = to === undefined ? before.lengthS : to - from;
  const recurrence = { rrule, timeZone, from, lengthS, except, also };
  const begun = times.filter((time) => time.from <= now);
  const behind = Math.max(now, ...begun.map((time) => time.to ?? Infinity));
  const made = timesOf(recurrence, now, now + MADE_AHEAD_S).filter((time) => time.from >= behind);
  if (begun.length + made.length === 0)
    throw new TimesFault('rrule', rrule, 'a rule with an occurrence in the next 400 days');
  return { times: [...begun, ...made.map((time) => ({ ...time, id: null }))], recurrence };
}

function checkEnd(to: number | null, after: number): void {
  if (to !== null && to <= after) throw new TimesFault('to', iso(to), `a time after ${iso(after)}`);
}

const iso = (at: number): string => new Date(at * 1000).toISOString();
