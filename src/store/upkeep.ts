/**
 * What time does to the holds of a site, as a pure function: the same for every implementation of the store. Rules: resources.md, "Holds in
 * the future". Times are epoch seconds.
 */
import { type ClassPolicy, classTableOf } from '../core/classes.js';
import type { PreemptedFor } from '../core/model.js';
import {
  type Candidate,
  type Fitting,
  idOf,
  leastLost,
  lostWork,
  type PreemptibleRun,
} from '../core/runs/preemption.js';
import {
  type Amounts,
  admitHold,
  conflictsOf,
  exceeded,
  type HeldMachines,
  type HeldPools,
  type HoldableMachine,
  type HoldablePool,
  type HoldKind,
  type HoldTime,
  type LiveRun,
  leastFree,
  type OnConflict,
  type OpenTime,
  placesIn,
  reaching,
  takenOf,
} from './holds.js';
import { MADE_AHEAD_S, type Recurrence, timesOf } from './recurrence.js';

/** Further times of a rule are made so often, seconds. */
export const MADE_EVERY_S = 86_400;

export interface KeptTime extends HoldTime {
  id: number;
}

/** A hold that has not ended. */
export interface KeptHold {
  id: number;
  kind: HoldKind;
  userId: number;
  machines: HeldMachines;
  pools: HeldPools;
  onConflict: OnConflict;
  idleS: number | null;
  recurrence: Recurrence | null;
  /** When times were made by its rule last. */
  madeAt: number;
  /** Those that are not over, in order. */
  times: readonly KeptTime[];
  /** A job that names it runs. */
  inUse: boolean;
  /** When the last run in it ended; null: none has. */
  usedAt: number | null;
  /** Machines of it that are lost and not replaced, as far as that has been told, ascending. */
  shortOf: readonly number[];
}

/** One in service, or one that is not and is held. */
export interface KeptMachine extends HoldableMachine {
  /** Whatever else has to be the same where it takes the place of another. */
  alike: string;
  /** Nothing will run there before somebody does something. */
  lost: boolean;
}

export interface KeptRun extends LiveRun {
  epoch: number;
  /** Since when it has its machines. */
  since: number;
  /** When it last wrote its checkpoint; null: never. */
  checkpointAt: number | null;
  restartable: boolean;
  /** What its job says of its class. */
  class: string | null;
  preemptionClass: number;
  killGraceS: number;
  /** It has been told to stop. */
  stopping: boolean;
  /** It is at another site: nobody stops it for what is held here. */
  elsewhere: boolean;
}

export interface UpkeepFacts {
  /** By which classes have their ranks. */
  policy: ClassPolicy;
  machines: readonly KeptMachine[];
  pools: readonly HoldablePool[];
  /** Times of holds of other sites that have some of the grid's pools. */
  elsewhere: readonly OpenTime[];
  holds: readonly KeptHold[];
  runs: readonly KeptRun[];
}

/** A run that is in the way of a hold that preempts. */
export interface StoppedRun {
  jobId: number;
  epoch: number;
  holdId: number;
  /** Of its job. */
  class: string | null;
  graceS: number;
  /** Core-seconds. */
  lostWork: number;
  requeue: boolean;
}

export interface Upkeep {
  /** Times that are over, and those given back early among them. */
  over: readonly number[];
  /** Further times, by rule, of those for which it was worked out. */
  made: readonly { holdId: number; times: readonly HoldTime[] }[];
  replaced: readonly { holdId: number; machines: NonNullable<HeldMachines> }[];
  stopped: readonly StoppedRun[];
  /** Those of which something is otherwise: it is told. */
  changed: readonly number[];
  /** Those that have no further time. */
  ended: readonly number[];
  /** Those of which other machines are lost and not replaced than before. */
  short: readonly { holdId: number; machineIds: readonly number[] }[];
  /** What owners of reservations are told. */
  news: readonly HoldNews[];
}

/** `to`: the machine that takes its place. */
export type HoldNews = { readonly holdId: number } & (
  | { readonly what: 'RELEASED' }
  | { readonly what: 'SHORT' | 'BACK'; readonly machine: string }
  | { readonly what: 'REPLACED'; readonly machine: string; readonly to: string }
);

/** What is kept with jobs that are stopped for what is held. */
export const preemptedFor = ({ holdId, graceS, lostWork, requeue }: StoppedRun): PreemptedFor => ({
  ...{ jobId: null, holdId, class: null, preemptionClass: 0, graceS, lostWork, requeue },
});

const endOf = ({ to }: HoldTime): number => to ?? Infinity;

export function upkeepOf(facts: UpkeepFacts, now: number): Upkeep {
  const over: number[] = [];
  const made: { holdId: number; times: readonly HoldTime[] }[] = [];
  const replaced: Upkeep['replaced'][number][] = [];
  const changed = new Set<number>();
  const ended: number[] = [];
  const news: HoldNews[] = [];
  /** As they are from now on. */
  const open: KeptHold[] = [];
  for (const hold of facts.holds) {
    const left = hold.times.filter((time) => endOf(time) > now && !isUnused(hold, time, now));
    if (left.length < hold.times.length) {
      over.push(...hold.times.filter((time) => !left.includes(time)).map(({ id }) => id));
      changed.add(hold.id);
    }
    if (hold.times.some((time) => endOf(time) > now && isUnused(hold, time, now)))
      news.push({ holdId: hold.id, what: 'RELEASED' });
    open.push({ ...hold, times: left });
  }
  for (const [i, hold] of open.entries()) {
    const more = furtherTimes(hold, { ...facts, holds: open }, now);
    if (more !== null) made.push({ holdId: hold.id, times: more });
    if (more !== null && more.length > 0) {
      changed.add(hold.id);
      open[i] = { ...hold, times: [...hold.times, ...more.map((time) => ({ ...time, id: 0 }))] };
    }
    if (hold.times.length === 0 && (more ?? []).length === 0) ended.push(hold.id);
  }
  for (const [i, hold] of open.entries()) {
    const machines = replacedIn(hold, { ...facts, holds: open }, now);
    if (machines === null) continue;
    replaced.push({ holdId: hold.id, machines });
    changed.add(hold.id);
    news.push(...replacements(hold, machines, facts));
    open[i] = { ...hold, machines };
  }
  const short = open.flatMap((hold) => {
    const machineIds = lackingOf(hold, facts);
    if (String(machineIds) === String(hold.shortOf)) return [];
    news.push(...shortness(hold, machineIds, facts));
    return { holdId: hold.id, machineIds };
  });
  const stopped = stoppedFor(open, facts, now);
  for (const id of ended) changed.delete(id);
  return {
    over,
    made,
    replaced,
    stopped,
    changed: [...changed],
    ended,
    short,
    news,
  };
}

/** Nothing has been running in a reservation for as long as its owner said: the rest of this time is given back. */
function isUnused({ kind, idleS, inUse, usedAt }: KeptHold, { from }: HoldTime, now: number): boolean {
  if (kind === 'MAINTENANCE' || idleS === null || inUse || from > now) return false;
  return Math.max(from, usedAt ?? from) + idleS <= now;
}

/**
 * Times by its rule behind those that there are, where no other hold has the amounts by then; null: it is not the time to look. What a
 * rule says never fails here: it was worked out when the hold was made.
 */
function furtherTimes(hold: KeptHold, facts: UpkeepFacts, now: number): HoldTime[] | null {
  const { recurrence, madeAt, times, id, kind, machines, pools } = hold;
  if (recurrence === null || (now < madeAt + MADE_EVERY_S && times.length > 0)) return null;
  // None begins sooner that was not made, or left out, long ago.
  const behind = Math.max(now, ...times.map(endOf));
  const wanted = timesOf(recurrence, behind, now + MADE_AHEAD_S).filter(({ from }) => from >= behind);
  const open = openTimes(facts, id);
  return wanted.filter((time) => {
    const held = { kind, onConflict: 'AFTER_JOBS' as const, times: [time] };
    const beside = { machines: facts.machines, pools: facts.pools, open, runs: [] };
    return (
      machinesFree(held, machines, beside, now) &&
      conflictsOf(held, { machines: [], pools }, beside, now).holds.length === 0
    );
  });
}

const openTimes = ({ holds, elsewhere }: UpkeepFacts, but: number): OpenTime[] => [
  ...elsewhere,
  ...holds.flatMap(({ id, kind, userId, machines, pools, times }) =>
    id === but
      ? []
      : times.map(({ from, to }) => ({ holdId: id, kind, userId, machines, pools, ...{ from, to } })),
  ),
];

/** Whether no other hold, and no run that may go on until then, has what is held of the machines. */
function machinesFree(
  hold: { kind: HoldKind; onConflict: OnConflict; times: readonly HoldTime[] },
  machines: HeldMachines,
  facts: Parameters<typeof admitHold>[1],
  now: number,
): boolean {
  const parts =
    machines === null
      ? [{ of: 'SITE' as const }]
      : machines.map(({ machineId, amounts }) => ({
          ...{ of: 'MACHINES' as const, machineIds: [machineId], amounts },
        }));
  return parts.every((held) => {
    const { holds, runs, fault } = admitHold({ ...hold, held, shared: [] }, facts, now);
    return fault === null && holds.length + runs.length === 0;
  });
}

/** Its machines, where one that is lost is replaced by an equal one that is free in all of its times; null: none is. */
function replacedIn(hold: KeptHold, facts: UpkeepFacts, now: number): NonNullable<HeldMachines> | null {
  const { kind, machines, times, id } = hold;
  if (kind === 'MAINTENANCE' || machines === null || times.length === 0) return null;
  const byId = new Map(facts.machines.map((machine) => [machine.id, machine]));
  let result: NonNullable<HeldMachines> | null = null;
  const of = { kind, onConflict: 'REFUSE' as const, times };
  const { pools, runs } = facts;
  const beside = { machines: facts.machines, pools, open: openTimes(facts, id), runs };
  for (const part of machines) {
    const machine = byId.get(part.machineId);
    if (machine === undefined || !machine.lost) continue;
    const held: NonNullable<HeldMachines> = result ?? machines;
    const taken = new Set(held.map(({ machineId }) => machineId));
    const found = facts.machines
      .filter((one) => one.available && one.alike === machine.alike && !taken.has(one.id))
      .map((one) => ({ id: one.id, left: leastFree(one, of, beside).cpus ?? 0 }))
      .sort((a, b) => a.left - b.left || a.id - b.id)
      .find((one) => machinesFree(of, [{ ...part, machineId: one.id }], beside, now));
    if (found === undefined) continue;
    result = held.map((one) => (one === part ? { ...part, machineId: found.id } : one));
  }
  return result && [...result].sort((a, b) => a.machineId - b.machineId);
}

const nameOf = (id: number, { machines }: Pick<UpkeepFacts, 'machines'>): string =>
  machines.find((machine) => machine.id === id)?.name ?? `machine_${id}`;

/** What was replaced by what, in order. */
function replacements(
  { id: holdId, machines: before }: KeptHold,
  after: NonNullable<HeldMachines>,
  facts: UpkeepFacts,
): HoldNews[] {
  const ids = (held: HeldMachines): number[] => (held ?? []).map(({ machineId }) => machineId);
  const gone = ids(before).filter((id) => !ids(after).includes(id));
  const come = ids(after).filter((id) => !ids(before).includes(id));
  return gone.map((id, i) => ({
    ...{ holdId, what: 'REPLACED', machine: nameOf(id, facts), to: nameOf(come[i] as number, facts) },
  }));
}

/** Its machines that are lost, ascending. */
function lackingOf({ kind, machines, times }: KeptHold, facts: UpkeepFacts): number[] {
  if (kind === 'MAINTENANCE' || machines === null || times.length === 0) return [];
  const lost = new Set(facts.machines.filter((machine) => machine.lost).map(({ id }) => id));
  return machines
    .map(({ machineId }) => machineId)
    .filter((id) => lost.has(id))
    .sort((a, b) => a - b);
}

/** Of one that was replaced nobody is told that it is back. */
function shortness(
  { id: holdId, machines, shortOf }: KeptHold,
  lacking: readonly number[],
  facts: UpkeepFacts,
): HoldNews[] {
  const held = new Set((machines ?? []).map(({ machineId }) => machineId));
  const told = (what: 'SHORT' | 'BACK', ids: readonly number[]) =>
    ids.map((id) => ({ holdId, what, machine: nameOf(id, facts) }));
  return [
    ...told(
      'SHORT',
      lacking.filter((id) => !shortOf.includes(id)),
    ),
    ...told(
      'BACK',
      shortOf.filter((id) => held.has(id) && !lacking.includes(id)),
    ),
  ];
}

/** A hold, as far as it matters to runs in its way; its times are those that are not over, in order. */
export type HoldInTheWay = Pick<KeptHold, 'id' | 'kind' | 'machines' | 'pools' | 'onConflict'> & {
  readonly times: readonly HoldTime[];
};

/** What is at the site of such holds. */
export type FactsOfStops = Pick<UpkeepFacts, 'policy' | 'runs' | 'pools'> & {
  readonly machines: readonly HoldableMachine[];
};

/** The runs that are to be stopped now for holds that preempt, by job: the same live and simulated. */
export function stoppedFor(
  holds: readonly HoldInTheWay[],
  facts: FactsOfStops,
  now: number,
): readonly StoppedRun[] {
  const stopped: StoppedRun[] = [];
  for (const hold of holds)
    stopped.push(...runsInTheWay(hold, facts, now, new Set(stopped.map(({ jobId }) => jobId))));
  return stopped.sort((a, b) => a.jobId - b.jobId);
}

/** When the run would be stopped for a time that begins at `from`. */
export const stopsAhead = ({ killGraceS }: Pick<KeptRun, 'killGraceS'>, from: number): number =>
  from - killGraceS;

/**
 * Runs that would still be there when a time of it begins, and are to be stopped now: by the rule of jobs.md, "Preemption", whatever their
 * exemption, so that the least work is lost, and nothing is stopped where the rest would be in the way all the same.
 *
 * Decision: each is stopped ahead of the time by its own grace, and what is lost is what it has done by then. So the choice is the same at
 * each look, whenever one comes. Decision: those that must go whoever else does are no choice, and machines with no other run in common are
 * judged apart, because room on one does not replace room on another; so the choice is exact where 12 runs, not 12 at the whole site, are
 * candidates for the same room.
 */
function runsInTheWay(
  hold: HoldInTheWay,
  { runs, policy, ...facts }: FactsOfStops,
  now: number,
  stopped: ReadonlySet<number>,
): StoppedRun[] {
  const [next] = hold.times;
  if (hold.onConflict !== 'PREEMPT' || next === undefined) return [];
  const stopAt = (run: KeptRun): number => Math.max(now, stopsAhead(run, next.from));
  if (!runs.some((run) => stopAt(run) <= now)) return [];
  const staying = runs.filter(
    ({ jobId, reservationId, stopping }) => !stopping && !stopped.has(jobId) && reservationId !== hold.id,
  );
  const places = placesIn(facts);
  const machineById = new Map(places.map((place) => [place.id, place]));
  const candidates = new Map<number, Candidate>();
  const runOf = new Map<string, KeptRun>();
  for (const run of staying) {
    if (!isVictim(run, hold)) continue;
    const candidate = candidateOf(run, classTableOf(policy).of(run).rank, machineById, stopAt(run));
    candidates.set(run.jobId, candidate);
    runOf.set(candidate.run.id, run);
  }
  const short: ShortOf[] = [];
  for (const machine of places) {
    const own = takenOf(hold, machine);
    if (own === null) continue;
    const there = reaching(staying, machine, Math.max(now, next.from));
    const lacks = shortOf(machine, own, there, candidates);
    if (lacks !== null) short.push(lacks);
  }
  const victims = new Set(short.flatMap(sureOn));
  for (const joined of inCommon(short.flatMap((one) => without(one, victims))))
    for (const one of leastLost([...new Set(joined.flatMap(({ on }) => on))], roomOn(joined)) ?? [])
      victims.add(one);
  return [...victims].flatMap(({ run, lost }) => {
    const kept = runOf.get(run.id) as KeptRun;
    if (stopAt(kept) > now) return [];
    const { jobId, epoch, killGraceS: graceS, restartable: requeue } = kept;
    return { jobId, epoch, holdId: hold.id, class: kept.class, graceS, lostWork: lost, requeue };
  });
}

const isVictim = ({ restartable, reservationId, elsewhere }: KeptRun, { kind }: HoldInTheWay): boolean =>
  !elsewhere && (kind === 'MAINTENANCE' || (restartable && reservationId === null));

/** `at`: when it would be stopped. */
function candidateOf(
  run: KeptRun,
  rank: number,
  machineById: ReadonlyMap<number, HoldableMachine>,
  at: number,
): Candidate {
  const { since: startedAt, restartable, checkpointAt, until, machineIds, pools } = run;
  const holds = [...new Set([...machineIds, ...pools.map(({ id }) => -id)])].flatMap((id) => {
    const machine = machineById.get(id);
    if (machine === undefined) return [];
    return reaching([{ ...run, until: null }], machine, at).map(({ taken }) => ({
      ...{ machine: idOf(id), amounts: taken },
    }));
  });
  const preemptible: PreemptibleRun = {
    ...{ id: idOf(run.jobId), class: rank, restartable, startedAt, checkpointAt, holds },
    limitEndsAt: until,
  };
  return { run: preemptible, lost: lostWork(preemptible, at) };
}

/** A machine of which runs have more than the hold leaves. */
interface ShortOf {
  machine: string;
  /** By kind, how much has to come free. */
  lacks: Amounts;
  /** Those that may be stopped. */
  on: readonly Candidate[];
}

/** Null: nothing lacks, or it would lack whoever is stopped. */
function shortOf(
  machine: HoldableMachine,
  own: Amounts,
  there: readonly { jobId: number; taken: Amounts }[],
  candidates: ReadonlyMap<number, Candidate>,
): ShortOf | null {
  const all = [own, ...there.map(({ taken }) => taken)];
  if (exceeded(machine.has, all) === null) return null;
  const victims = there.filter(({ jobId }) => candidates.has(jobId));
  const others = there.filter(({ jobId }) => !candidates.has(jobId));
  if (exceeded(machine.has, [own, ...others.map(({ taken }) => taken)]) !== null) return null;
  const lacks: Record<string, number> = {};
  for (const kind of new Set(all.flatMap((amounts) => Object.keys(amounts)))) {
    const lacking = all.reduce((sum, amounts) => sum + (amounts[kind] ?? 0), -(machine.has[kind] ?? 0));
    if (lacking > 0) lacks[kind] = lacking;
  }
  const on = victims.map(({ jobId }) => candidates.get(jobId) as Candidate);
  return { machine: idOf(machine.id), lacks, on };
}

const takenBy = ({ run }: Candidate, on: string, kind: string): number =>
  run.holds.reduce((sum, { machine, amounts }) => sum + (machine === on ? (amounts[kind] ?? 0) : 0), 0);

/** Those without whose stop there is too little, whoever else is stopped. */
const sureOn = ({ machine, lacks, on }: ShortOf): Candidate[] =>
  on.filter((one) =>
    Object.entries(lacks).some(
      ([kind, amount]) =>
        on.reduce((sum, other) => sum + (other === one ? 0 : takenBy(other, machine, kind)), 0) < amount,
    ),
  );

/** What still lacks when these are gone; none: nothing. */
function without({ machine, lacks, on }: ShortOf, gone: ReadonlySet<Candidate>): ShortOf[] {
  const going = on.filter((one) => gone.has(one));
  const left = Object.entries(lacks)
    .map(([kind, amount]) => {
      const freed = going.reduce((sum, one) => sum + takenBy(one, machine, kind), 0);
      return [kind, amount - freed] as const;
    })
    .filter(([, amount]) => amount > 0);
  if (left.length === 0) return [];
  return [{ machine, lacks: Object.fromEntries(left), on: on.filter((one) => !gone.has(one)) }];
}

/** In groups that have no run in common. */
function inCommon(short: readonly ShortOf[]): ShortOf[][] {
  const groupOf = new Map<Candidate, ShortOf[]>();
  const groups = new Set<ShortOf[]>();
  for (const one of short) {
    const group = [one];
    for (const candidate of one.on) {
      const other = groupOf.get(candidate);
      if (other === undefined || !groups.delete(other)) continue;
      group.push(...other);
    }
    groups.add(group);
    for (const { on } of group) for (const candidate of on) groupOf.set(candidate, group);
  }
  return [...groups];
}

/** Room on all of these machines. */
function roomOn(short: readonly ShortOf[]): Fitting {
  const lacks = new Map(short.map((one) => [one.machine, one.lacks]));
  return {
    fits(gone) {
      const freed = new Map<string, Amounts[]>();
      for (const { run } of gone)
        for (const { machine, amounts } of run.holds) {
          if (!lacks.has(machine)) continue;
          const known = freed.get(machine);
          if (known === undefined) freed.set(machine, [amounts]);
          else known.push(amounts);
        }
      for (const [machine, amounts] of lacks)
        for (const [kind, lacking] of Object.entries(amounts)) {
          const freedOf = (freed.get(machine) ?? []).reduce((sum, one) => sum + (one[kind] ?? 0), 0);
          if (freedOf < lacking) return false;
        }
      return true;
    },
  };
}
