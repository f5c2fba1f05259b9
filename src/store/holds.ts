/**
 * Maintenance windows and reservations, as pure functions: the same for every implementation of the store. Rules: resources.md, "Holds in
 * the future". Times are epoch seconds, intervals half-open; `to` null: until it is ended by hand.
 */
import type { PoolAmount, PoolsAsked } from '../core/model.js';
import { chooseMachines } from '../core/resources/choice.js';
import type { Recurrence } from './recurrence.js';

/** By kind of resource as operators name them; CPUs and memory among them. */
export type Amounts = Readonly<Record<string, number>>;

export type HoldKind = 'MAINTENANCE' | 'USER' | 'STANDING';
export type OnConflict = 'REFUSE' | 'AFTER_JOBS' | 'PREEMPT';

export interface HoldTime {
  from: number;
  to: number | null;
}

/** What is held: the whole site with machines that come later, machines of it, or amounts wherever they are found. */
export type HeldOf =
  | { of: 'SITE' }
  /** `amounts` of each; null: whole machines. */
  | { of: 'MACHINES'; machineIds: readonly number[]; amounts: Amounts | null }
  | { of: 'TASKS'; tasks: number; amounts: Amounts };

export interface NewHold {
  kind: HoldKind;
  name: string | null;
  siteId: number;
  userId: number;
  held: HeldOf;
  /** Of pools besides, each kind once: of the site's own first, then of the grid's. */
  shared: readonly PoolsAsked[];
  onConflict: OnConflict;
  reason: string | null;
  /** In order; each begins when the one before has ended. */
  times: readonly HoldTime[];
  /** By which the times were made; null: they are all. */
  recurrence: Recurrence | null;
  /** Nothing of it was running for so long: the rest of a time is given back. Seconds; null: never. */
  idleS: number | null;
  /** Who may run jobs in it besides its user, ascending. */
  userIds: readonly number[];
}

/** As it is stored: null: the whole site. */
export type HeldMachines = readonly { machineId: number; amounts: Amounts | null }[] | null;

/** What is held of pools of the site or the grid besides, each once. */
export type HeldPools = readonly (PoolAmount & { readonly kind: string })[];

/** All that a hold takes. */
export interface HeldThere {
  machines: HeldMachines;
  pools: HeldPools;
}

/** A pool of the site or of the grid. */
export interface HoldablePool {
  id: number;
  kind: string;
  copies: number;
  /** It is the grid's: runs at other sites have some of it, and so have their holds. */
  shared: boolean;
}

/** What a machine has in all. */
export interface HoldableMachine {
  id: number;
  name: string;
  /** Something may be put on it. */
  available: boolean;
  has: Amounts;
}

/** One time of a hold that is there. */
export interface OpenTime extends HoldTime {
  holdId: number;
  kind: HoldKind;
  userId: number;
  machines: HeldMachines;
  /** Of a hold of another site only those of the whole grid. */
  pools: HeldPools;
}

/**
 * What tasks of one part take of a machine. `alone`: nobody else is there, or nobody of another user, whatever they ask for. `keeps`: the
 * machine is kept from other users; left out, as of runs started by earlier releases: as all machines of its run are. `units`: of tasks that
 * ask for devices by what they are, the memory of each device or share of one that they have, MB; left out: its part of the device's.
 */
export interface PartTaken {
  amounts: Amounts;
  alone: boolean;
  keeps?: boolean;
  units?: Readonly<Record<string, number>>;
}

export interface LiveRun {
  jobId: number;
  machineIds: readonly number[];
  /** Aligned with them. */
  machineTasks: readonly number[];
  /** Of each task. */
  amounts: Amounts;
  /** It has its machines to itself. */
  alone: boolean;
  /** What it takes of each machine, where its tasks are not all alike; null: they are. */
  taken: readonly PartTaken[] | null;
  /** When its limit stops it; null: it has none. */
  until: number | null;
  /** The reservation that its job names; null: none. */
  reservationId: number | null;
  /** What it has of pools; of a run at another site only that is known. */
  pools: readonly PoolAmount[];
}

/** A site as an admission finds it, with what others have of the pools of the grid. */
export interface HoldFacts {
  machines: readonly HoldableMachine[];
  pools: readonly HoldablePool[];
  open: readonly OpenTime[];
  runs: readonly LiveRun[];
}

/** A machine that maintenance windows hold whole: now, or from when on first. */
export interface ClosedMachine {
  machineId: number;
  from: number;
}

/** What becomes of a hold that somebody wants. */
export interface Admission {
  machines: HeldMachines;
  pools: HeldPools;
  /** Holds with which it would share amounts. */
  holds: readonly number[];
  /** Runs that may still be there when it begins. */
  runs: readonly number[];
  /** Why it can not be at all; null: it can, conflicts apart. */
  fault: string | null;
}

const endOf = ({ to }: HoldTime): number => to ?? Infinity;
export const overlap = (a: HoldTime, b: HoldTime): boolean => a.from < endOf(b) && b.from < endOf(a);

/**
 * Pools as machines that have one thing: what goes for amounts of machines goes for those of pools. Ids of machines are above 0, of these
 * below.
 */
export const placesIn = ({
  machines,
  pools,
}: {
  readonly machines: readonly HoldableMachine[];
  readonly pools: readonly HoldablePool[];
}): readonly HoldableMachine[] =>
  pools.length === 0
    ? machines
    : [
        ...machines,
        ...pools.map(({ id, kind, copies }) => ({
          ...{ id: -id, name: kind, available: false, has: { [kind]: copies } },
        })),
      ];

/** The amount of the pool, as one of the machine that stands for it. */
const ofPool = (pools: readonly PoolAmount[], { id, name }: Pick<HoldableMachine, 'id' | 'name'>) => {
  const amount = pools.find((one) => one.id === -id)?.amount;
  return amount === undefined ? null : { [name]: amount };
};

/** What a hold takes of the machine; null: nothing. */
export function takenOf({ machines, pools }: HeldThere, machine: HoldableMachine): Amounts | null {
  const { id, has } = machine;
  if (id < 0) return ofPool(pools, machine);
  if (machines === null) return has;
  const part = partsOf(machines).get(id);
  return part === undefined ? null : (part.amounts ?? has);
}

/** By machine: asked for each machine and each time of each hold. */
const partsOf = (machines: NonNullable<HeldMachines>): ReadonlyMap<number, (typeof machines)[number]> => {
  let parts = knownParts.get(machines);
  if (parts === undefined) {
    parts = new Map(machines.map((part) => [part.machineId, part]));
    knownParts.set(machines, parts);
  }
  return parts;
};
const knownParts = new WeakMap<object, Map<number, NonNullable<HeldMachines>[number]>>();

/** The first kind of which more is taken than there is, by all of these together; null: there is enough. */
export function exceeded(has: Amounts, taken: readonly Amounts[]): string | null {
  const kinds = new Set(taken.flatMap((one) => Object.keys(one)));
  for (const kind of kinds)
    if (taken.reduce((sum, one) => sum + (one[kind] ?? 0), 0) > (has[kind] ?? 0)) return kind;
  return null;
}

const times = (amounts: Amounts, count: number): Amounts =>
  Object.fromEntries(Object.entries(amounts).map(([kind, amount]) => [kind, amount * count]));

/** What live runs that may reach beyond the instant have of the machine, by run. */
export function reaching(
  runs: readonly LiveRun[],
  machine: Pick<HoldableMachine, 'id' | 'has' | 'name'>,
  at: number,
): { jobId: number; taken: Amounts }[] {
  const { id, has } = machine;
  return runs.flatMap((run) => {
    const { jobId, machineIds, machineTasks, amounts, alone, until } = run;
    if (id < 0) {
      const taken = (until ?? Infinity) <= at ? null : ofPool(run.pools, machine);
      return taken === null ? [] : [{ jobId, taken }];
    }
    const place = machineIds.indexOf(id);
    if (place === -1 || (until ?? Infinity) <= at) return [];
    if (alone) return [{ jobId, taken: has }];
    const parts = run.taken?.filter((_, i) => machineIds[i] === id) ?? null;
    if (parts === null) return [{ jobId, taken: times(amounts, machineTasks[place] as number) }];
    const taken = parts.some((part) => part.alone) ? has : sumOf(parts.map((part) => part.amounts));
    return [{ jobId, taken }];
  });
}

function sumOf(all: readonly Amounts[]): Amounts {
  const sum: Record<string, number> = {};
  for (const amounts of all)
    for (const [kind, amount] of Object.entries(amounts)) sum[kind] = (sum[kind] ?? 0) + amount;
  return sum;
}

/** Instants at which most is held within the time: its beginning, and those of the others. */
const instantsOf = (time: HoldTime, others: readonly HoldTime[]): number[] => [
  time.from,
  ...others.map(({ from }) => from).filter((from) => from > time.from && from < endOf(time)),
];

/** What others hold of the machine at the instant: those that the kind may not share amounts with. */
const othersAt = (open: readonly OpenTime[], kind: HoldKind, machine: HoldableMachine, at: number) =>
  open.flatMap((other) => {
    if (kind === 'MAINTENANCE' && other.kind !== 'MAINTENANCE') return [];
    if (at < other.from || at >= endOf(other)) return [];
    const taken = takenOf(other, machine);
    return taken === null ? [] : [{ holdId: other.holdId, taken }];
  });

/** Whether what is in its way keeps a hold from being made, or changed. */
export const isRefused = (
  onConflict: OnConflict,
  { holds, runs }: Pick<Admission, 'holds' | 'runs'>,
): boolean => holds.length > 0 || (onConflict === 'REFUSE' && runs.length > 0);

/** Finds the machines of a hold, and what is in its way. `now`: nothing before it matters. */
export function admitHold(
  hold: Pick<NewHold, 'kind' | 'held' | 'shared' | 'onConflict' | 'times'>,
  facts: HoldFacts,
  now: number,
): Admission {
  const open = facts.open.filter((other) => hold.times.some((time) => overlap(time, other)));
  const here = { ...facts, open };
  const machines = machinesOf(hold, here);
  const pools = poolsOf(hold, hold.shared, here);
  if ('fault' in machines || 'fault' in pools) {
    const fault = 'fault' in machines ? machines.fault : (pools as { fault: string }).fault;
    return { machines: null, pools: [], holds: [], runs: [], fault };
  }
  const held = { ...machines, ...pools };
  return { ...held, ...conflictsOf(hold, held, here, now), fault: null };
}

/** Of the site's own pool of each kind, then of the grid's, as far as there is some; what lacks is where there would be enough without others. */
export function poolsOf(
  { kind: by, onConflict, times: when }: Pick<NewHold, 'kind' | 'onConflict' | 'times'>,
  shared: readonly PoolsAsked[],
  { pools, open, runs }: HoldFacts,
): { pools: HeldPools } | { fault: string } {
  const held = new Map<number, HeldPools[number]>();
  for (const { kind, amount } of shared) {
    const those = pools
      .filter((pool) => pool.kind === kind)
      .sort((a, b) => Number(a.shared) - Number(b.shared) || a.id - b.id);
    const all = those.reduce((sum, { copies }) => sum + copies, 0);
    if (all < amount) return { fault: `the site and the grid have ${all} ${kind}; ${amount} are requested` };
    let left = amount;
    const take = (id: number, most: number): void => {
      const taken = Math.max(0, Math.min(left, most));
      left -= taken;
      if (taken > 0) held.set(id, { id, kind, amount: (held.get(id)?.amount ?? 0) + taken });
    };
    const beside = { open, runs: onConflict === 'REFUSE' ? runs : [] };
    for (const place of placesIn({ machines: [], pools: those }))
      take(-place.id, leastFree(place, { kind: by, times: when }, beside)[kind] as number);
    for (const { id, copies } of those) take(id, copies - (held.get(id)?.amount ?? 0));
  }
  return { pools: [...held.values()].sort((a, b) => a.id - b.id) };
}

/** Reservations over which the maintenance of these machines lies, with the beginning of what they share first. */
export function overlaidBy(
  { kind, times: when, ...held }: HeldThere & { kind: HoldKind; times: readonly HoldTime[] },
  facts: Pick<HoldFacts, 'machines' | 'pools' | 'open'>,
): { holdId: number; from: number }[] {
  if (kind !== 'MAINTENANCE') return [];
  const closed = placesIn(facts).filter((place) => takenOf(held, place) !== null);
  const first = new Map<number, number>();
  for (const other of facts.open) {
    if (other.kind === 'MAINTENANCE') continue;
    const shared = when.filter((time) => overlap(time, other));
    if (shared.length === 0 || closed.every((place) => takenOf(other, place) === null)) continue;
    const from = Math.min(...shared.map((time) => Math.max(time.from, other.from)));
    first.set(other.holdId, Math.min(first.get(other.holdId) ?? Infinity, from));
  }
  return [...first].map(([holdId, from]) => ({ holdId, from }));
}

/** What is in the way of holding this. */
export function conflictsOf(
  hold: Pick<NewHold, 'kind' | 'times'>,
  held: HeldThere,
  facts: HoldFacts,
  now: number,
): Pick<Admission, 'holds' | 'runs'> {
  const holds = new Set<number>();
  const runs = new Set<number>();
  const beside = hold.times.map((time) => facts.open.filter((other) => overlap(time, other)));
  for (const machine of placesIn(facts)) {
    const own = takenOf(held, machine);
    if (own === null) continue;
    for (const [i, time] of hold.times.entries()) {
      const from = Math.max(time.from, now);
      const here = beside[i] as OpenTime[];
      if (here.length > 0)
        for (const at of instantsOf({ ...time, from }, here)) {
          const others = othersAt(here, hold.kind, machine, at);
          if (others.length > 0 && exceeded(machine.has, [own, ...others.map(({ taken }) => taken)]) !== null)
            for (const { holdId } of others) holds.add(holdId);
        }
      const there = reaching(facts.runs, machine, from);
      if (there.length > 0 && exceeded(machine.has, [own, ...there.map(({ taken }) => taken)]) !== null)
        for (const { jobId } of there) runs.add(jobId);
    }
  }
  const ascending = (ids: Set<number>): number[] => [...ids].sort((a, b) => a - b);
  return { holds: ascending(holds), runs: ascending(runs) };
}

function machinesOf(
  { kind, held, onConflict, times: when }: Pick<NewHold, 'kind' | 'held' | 'onConflict' | 'times'>,
  { machines, open, runs }: HoldFacts,
): { machines: HeldMachines } | { fault: string } {
  if (held.of === 'SITE') return { machines: null };
  if (held.of === 'MACHINES') {
    for (const id of held.machineIds) {
      const machine = machines.find((one) => one.id === id);
      if (machine === undefined) return { fault: `machine ${id} is not in service at the site` };
      const lacking = held.amounts && exceeded(machine.has, [held.amounts]);
      if (lacking !== null)
        return {
          fault: `machine ${machine.name} has ${machine.has[lacking] ?? 0} ${lacking}; ${held.amounts?.[lacking]} are requested`,
        };
    }
    return { machines: held.machineIds.map((machineId) => ({ machineId, amounts: held.amounts })) };
  }
  const { tasks, amounts } = held;
  const candidates = machines
    .filter(({ available }) => available)
    .map((machine) => {
      const least = leastFree(
        machine,
        { kind, times: when },
        { open, runs: onConflict === 'REFUSE' ? runs : [] },
      );
      const fits = Object.entries(amounts).filter(([, amount]) => amount > 0);
      const most = Math.min(
        tasks,
        ...fits.map(([of, amount]) => Math.floor(Math.max(0, least[of] ?? 0) / amount)),
      );
      const key = (count: number) => [(least.cpus ?? 0) - count * (amounts.cpus ?? 0), machine.id];
      return { id: String(machine.id), most, key };
    });
  const chosen = chooseMachines(candidates, tasks, 1);
  if (chosen === null) {
    const found = candidates.reduce((sum, { most }) => sum + most, 0);
    return { fault: `the site has room for ${found} of ${tasks} tasks during the whole time` };
  }
  return {
    machines: chosen
      .map(({ candidate, tasks: count }) => ({
        machineId: Number(candidate.id),
        amounts: times(amounts, count),
      }))
      .sort((a, b) => a.machineId - b.machineId),
  };
}

/** The least that is free of the machine in all these times. */
export function leastFree(
  machine: HoldableMachine,
  { kind, times: when }: Pick<NewHold, 'kind' | 'times'>,
  { open, runs }: Pick<HoldFacts, 'open' | 'runs'>,
): Record<string, number> {
  const least: Record<string, number> = { ...machine.has };
  for (const time of when) {
    const here = open.filter((other) => overlap(time, other));
    const running = reaching(runs, machine, time.from);
    for (const at of instantsOf(time, here)) {
      const taken = [...othersAt(here, kind, machine, at), ...running].map((one) => one.taken);
      for (const of of Object.keys(least)) {
        const left = taken.reduce((rest, one) => rest - (one[of] ?? 0), machine.has[of] as number);
        least[of] = Math.min(least[of] as number, left);
      }
    }
  }
  return least;
}

/** CPU-hours that the user has reserved and not had yet. */
export function reservedCpuHours({ open, machines }: HoldFacts, userId: number, now: number): number {
  return open
    .filter((one) => one.userId === userId && one.kind !== 'MAINTENANCE')
    .reduce((sum, one) => sum + cpuHours(one.machines, [one], machines, now), 0);
}

export function cpuHours(
  held: HeldMachines,
  when: readonly HoldTime[],
  machines: readonly HoldableMachine[],
  now: number,
): number {
  const there = { machines: held, pools: [] };
  const cpus = machines.reduce((sum, machine) => sum + (takenOf(there, machine)?.cpus ?? 0), 0);
  const seconds = when.reduce((sum, time) => sum + Math.max(0, endOf(time) - Math.max(now, time.from)), 0);
  return cpus === 0 ? 0 : (cpus * seconds) / 3600;
}

// Starts --------------------------------------------------------------------------------------------------------------

/** What is held of a machine, or (null) of all of the site, for a time. */
export interface HeldPart extends HoldTime {
  holdId: number;
  kind: HoldKind;
  machineId: number | null;
  /** null: the whole machine. */
  amounts: Amounts | null;
}

/** What a live run inside a reservation has of a machine. */
export interface TakenInside {
  holdId: number;
  machineId: number;
  amounts: Amounts;
}

/** What tasks have. */
export const amountsOf = times;

/** So much more of each kind that is there. */
export const addAmounts = (to: Amounts, more: readonly Amounts[]): Amounts =>
  Object.fromEntries(
    Object.entries(to).map(([kind, amount]) => [
      kind,
      more.reduce((sum, one) => sum + (one[kind] ?? 0), amount),
    ]),
  );

/**
 * Why the job cannot begin now on the machine inside its reservation, with a run that ends after `limitS` at the latest; null: it can.
 * `parts`: of the reservation on the machine; `taken`: of them, by runs inside.
 */
export function whyNotInside(
  parts: readonly HeldPart[],
  machine: { id: number; has: Amounts; name?: string },
  taken: readonly Amounts[],
  asked: Amounts,
  now: number,
  limitS: number,
): string | null {
  const part = parts.find((one) => one.from <= now && now + limitS <= endOf(one));
  if (part === undefined)
    return `${saidOf(machine)} is not reserved for as long as the job may run, ${limitS === Infinity ? 'any time' : `${limitS} s`}`;
  const lacking = exceeded(part.amounts ?? machine.has, [asked, ...taken]);
  return lacking === null ? null : `${saidOf(machine)} has no ${lacking} left in the reservation`;
}

/**
 * Why a job cannot go to the site's own scheduler now, with a run that ends after `limitS` at the latest: a maintenance window of the whole
 * site is in its way, whatever machines it would get. Null: none is.
 */
export function whyClosed(held: readonly HeldPart[], now: number, limitS: number): string | null {
  const run = { from: now, to: limitS === Infinity ? null : now + limitS };
  const closed = held.find(
    (part) => part.kind === 'MAINTENANCE' && part.machineId === null && overlap(part, run),
  );
  return closed === undefined ? null : `the site is closed ${reachOf(closed.from, now, limitS)}`;
}

/** Of one that stands for a pool its kind. */
const saidOf = ({ id, name }: { id: number; name?: string }): string =>
  id < 0 ? (name as string) : `machine ${id}`;

const reachOf = (from: number, now: number, limitS: number): string =>
  `${from <= now ? 'now' : `in ${Math.round(from - now)} s`}, and the job may run for ${limitS === Infinity ? 'any time' : `${limitS} s`}`;

/**
 * Why a task cannot be put on the machine now, with a run that ends after `limitS` at the latest; null: nothing that is held is in its way.
 * `free`: of the machine now, holds apart.
 */
export function whyHeld(
  held: readonly HeldPart[],
  machine: { id: number; has: Amounts; free: Amounts; name?: string },
  asked: Amounts,
  now: number,
  limitS: number,
): string | null {
  const run = { from: now, to: limitS === Infinity ? null : now + limitS };
  const parts = held.filter(
    (part) => (part.machineId === null || part.machineId === machine.id) && overlap(part, run),
  );
  for (const at of instantsOf(run, parts)) {
    const there = parts.filter((part) => part.from <= at && at < endOf(part));
    if (there.length === 0) continue;
    const taken = there.map(({ amounts }) => amounts ?? machine.has);
    if (exceeded(at === now ? machine.free : machine.has, [asked, ...taken]) === null) continue;
    return `${saidOf(machine)} is held ${reachOf(at, now, limitS)}`;
  }
  return null;
}

/** What is held of a pool for a time. */
export interface HeldPoolPart extends HoldTime, PoolAmount {
  holdId: number;
  kind: HoldKind;
}

/** What runs inside a reservation have of a pool. */
export interface PoolTakenInside extends PoolAmount {
  holdId: number;
}

/**
 * Why a job cannot have the amount of the pool now, with a run that ends after `limitS` at the latest; null: nothing that is held is in its
 * way. Inside a reservation that holds some of the pool it has that, and nothing else. `free`: now, holds apart; `copies`: in all.
 */
export function whyPoolHeld(
  held: readonly HeldPoolPart[],
  inside: readonly PoolTakenInside[],
  pool: { readonly id: number; readonly kind: string; readonly copies: number; readonly free: number },
  { amount, reservation }: { readonly amount: number; readonly reservation: number | null },
  now: number,
  limitS: number,
): string | null {
  const { id, kind } = pool;
  const here = held.filter((part) => part.id === id);
  const own = here.filter(({ holdId }) => holdId === reservation);
  const has = { [kind]: pool.copies };
  const taken = (of: readonly PoolTakenInside[]): Amounts[] =>
    of.filter((one) => one.id === id).map((one) => ({ [kind]: one.amount }));
  const machine = { id: -id, name: kind, has };
  const asParts = (parts: readonly HeldPoolPart[]): HeldPart[] =>
    parts.map(({ holdId, kind: by, amount: copies, from, to }) => ({
      ...{ holdId, kind: by, machineId: -id, amounts: { [kind]: copies }, from, to },
    }));
  const asked = { [kind]: amount };
  if (own.length > 0) {
    const others = inside.filter(({ holdId }) => holdId === reservation);
    return whyNotInside(asParts(own), machine, taken(others), asked, now, limitS);
  }
  const open = new Set(here.filter(({ from }) => from <= now).map(({ holdId }) => holdId));
  const back = taken(inside.filter(({ holdId }) => open.has(holdId)));
  return whyHeld(
    asParts(here),
    { ...machine, free: addAmounts({ [kind]: pool.free }, back) },
    asked,
    now,
    limitS,
  );
}
