/**
 * The availability profile of a site with promises in it: what is free on each machine and in each pool at every later
 * instant, if runs end when they are planned to and promised jobs run as promised. A column for each kind of resource of each machine
 * and the copies of each pool. Devices are amounts in it: on which machine a job gets those it asks for is decided when it starts
 * (`Timeline.placedNow`). Who asks for devices by what they are gets an opening no earlier than the site's runs have given back such
 * devices, and beside those that were promised (`PromisedDevices`).
 *
 * It notes since when room has been given back on each machine: a promise that was in its earliest opening before still is, unless
 * room came free ahead of it.
 */
import { type Amounts, eachTakes, pairsOf, type Room } from '../grid/amounts.js';
import type { Requirement } from '../grid/requirements.js';
import {
  askedOn,
  asksByName,
  type EligibleMachines,
  type Hold,
  holdsByName,
  type MachineState,
  type Placement,
  type PoolCopies,
  type PoolState,
  type SiteResources,
  type TasksOnMachines,
  takenOn,
  takings,
  timesTaken,
} from '../grid/site-resources.js';
import { type Column, columnOf, earliestIn, leastCertain, leastIn, nextIn, shift } from './column.js';
import { DeviceHolds } from './device-holds.js';
import type { Future, Opening } from './future.js';
import type { Besides } from './joining.js';
import {
  ANY_SPREAD,
  atMost,
  Filling,
  idleTasksOn,
  NO_POOLS,
  pickPools,
  placeParts,
  placeSpread,
} from './placement.js';
import { type DevicesNow, PromisedDevices } from './promised-devices.js';

/** Where a job has its place now, which counts as free for it. */
export interface OwnPlace {
  hold: Hold;
  at: number;
  end: number;
}

interface MachineColumns {
  /** By kind. */
  readonly columns: readonly Column[];
  /** The earliest instant from which room was given back, and the latest until which; before that, in the round before. */
  given: number;
  givenEnd: number;
  givenBefore: number;
  givenEndBefore: number;
}

export class Profile implements Future {
  private readonly machines: MachineColumns[];
  private readonly pools = new Map<PoolState, Column>();
  private devicesNow: DevicesNow;
  /** The earliest of all instants from which room was given back in this round and the one before. */
  private earliestGiven = Number.NEGATIVE_INFINITY;
  /** Which devices are promised in it; null: its machines have none by name. */
  readonly promised: PromisedDevices | null;

  /** What is free once all runs are over that `take` is not told of. */
  constructor(
    private readonly site: SiteResources,
    /** The first instant that anybody may ask for. */
    private now: number,
  ) {
    this.machines = site.machines.map(({ offered }) => ({
      columns: Array.from({ length: site.kinds }, (_, kind) => columnOf(offered[kind] ?? 0)),
      // Nobody has looked for an opening yet.
      given: Number.NEGATIVE_INFINITY,
      givenEnd: Infinity,
      givenBefore: Infinity,
      givenEndBefore: Number.NEGATIVE_INFINITY,
    }));
    const { devices } = site;
    this.devicesNow = {
      ...{ now, devices },
      get holders() {
        return site.runs.map((run) => [run, run.end] as const);
      },
    };
    this.promised = devices === null ? null : new PromisedDevices(this.devicesNow);
  }

  /** Who has devices, with the starts of a look: until the next. */
  lookBeside(devices: DevicesNow): void {
    this.devicesNow = devices;
    this.promised?.changed(devices);
  }

  /** The job has begun: which devices it has is known from now on (`lookBeside`). */
  begun({ machines, tasks, each }: Hold, at: number): void {
    if (this.promised === null || !holdsByName(each)) return;
    this.promised.remove({ machines, tasks, each }, at);
    this.promised.changed();
  }

  /** With the site's runs and holds. */
  static of(site: SiteResources, now: number): Profile {
    const profile = new Profile(site, now);
    for (const run of site.runs) profile.take(run, now, run.end);
    for (const hold of site.holds) profile.take(hold, hold.from, hold.to, hold.certain);
    return profile;
  }

  /** The copies of a pool, with what is taken of them already. */
  addPool(pool: PoolState, copies: Column): void {
    this.pools.set(pool, copies);
  }

  /** Time has passed: nobody asks for what was. */
  advance(now: number): void {
    this.now = now;
    this.earliestGiven = Infinity;
    for (const each of this.machines) {
      for (const { later, uncertain } of each.columns) {
        later?.forget(now);
        uncertain?.forget(now);
      }
      if (each.givenEnd <= now) each.given = Infinity;
      this.earliestGiven = Math.min(this.earliestGiven, givenSince(each));
    }
  }

  take(hold: Hold, at: number, end: number, certain = false): void {
    this.shift(hold, at, end, -1, certain);
    this.promiseDevices(hold, at, end, certain);
  }

  give(hold: Hold, from: number, end: number, certain = false): void {
    if (this.promised !== null && holdsByName(hold.each)) this.promised.remove(hold, from);
    const begin = Math.max(from, this.now);
    if (end <= begin) return;
    this.shift(hold, begin, end, 1, certain);
    this.note(hold, begin, end);
  }

  /** A promise moves up to another place. */
  move(from: OwnPlace, to: OwnPlace): void {
    if (from.hold.machines === to.hold.machines && to.end > from.at && from.hold.licenses.length === 0) {
      // It slides: what it has before and after remains its own.
      this.shift(to.hold, to.at, from.at, -1);
      this.shift(to.hold, to.end, from.end, 1);
      this.note(from.hold, to.end, from.end);
      if (this.promised === null || !holdsByName(to.hold.each)) return;
      this.promised.remove(from.hold, from.at);
      this.promiseDevices(to.hold, to.at, to.end, false);
      return;
    }
    this.give(from.hold, from.at, from.end);
    this.take(to.hold, to.at, to.end);
  }

  /** Room has been given back that no round of promises has looked at. */
  get hasOpened(): boolean {
    return this.earliestGiven !== Infinity;
  }

  /** All promises are looked at again, one after the other: of what is given back from now on the next round has to know. */
  beginRound(): void {
    this.earliestGiven = Infinity;
    for (const each of this.machines) {
      each.givenBefore = each.given;
      each.givenEndBefore = each.givenEnd;
      each.given = Infinity;
      each.givenEnd = Number.NEGATIVE_INFINITY;
      this.earliestGiven = Math.min(this.earliestGiven, each.givenBefore);
    }
  }

  /** All have been looked at. */
  endRound(): void {
    for (const each of this.machines) {
      each.givenBefore = Infinity;
      each.givenEndBefore = Number.NEGATIVE_INFINITY;
    }
  }

  /**
   * Whether an opening may have come up for a job, ahead of where it stands, since one was looked for in the round before. Not to be
   * asked where licenses matter, which other sites give back, too.
   */
  mayHaveOpened({ machines }: EligibleMachines, work: number, { at }: OwnPlace): boolean {
    const slowest = machines[machines.length - 1] as MachineState;
    // On the machine where it stands everything is free from then on; on others a hole that reaches further may have closed.
    return this.earliestGiven < (machines.length === 1 ? at : at + work / slowest.machine.benchmark);
  }

  freeAt(time: number): Room {
    return this.machines.flatMap(({ columns }) => columns.map(({ free, later }) => later?.at(time) ?? free));
  }

  /** The earliest instant, from `from` on, from which the room of the hold is there for so long; null: none. */
  earliestFor(hold: Hold, from: number, length: number, limit = Infinity): number | null {
    let at = Math.max(this.now, from);
    const sums = hold.each.parts === null ? null : inSum(hold);
    for (;;) {
      let next = at;
      if (sums === null) next = this.laterFor(hold, next, length, limit);
      else for (const sum of sums) next = this.laterFor(sum, next, length, limit);
      for (const { pool, copies } of hold.licenses)
        next = earliestIn(this.pool(pool), copies, length, limit, next);
      if (next === Infinity) return null;
      if (next === at) {
        const matters = this.promised?.mattersTo(hold.each) === true;
        if (!matters || this.admits(hold, at, at + length, at + limit, false)) return at;
        next = this.nextChangeOn(hold.machines, at);
        if (next === Infinity) return null;
      }
      at = next;
    }
  }

  /** From where each machine alone may have its room for so long, one asked from where the one before it has come to. */
  private laterFor({ machines, tasks, each }: TasksOnMachines, from: number, length: number, limit: number) {
    let next = from;
    for (let i = 0; i < machines.length; i++) {
      const state = machines[i] as MachineState;
      const { columns } = this.columns(state);
      const taken = takenOn(each, state);
      const times = timesTaken(each, tasks[i] as number);
      for (let k = 0; k < taken.length; k += 2) {
        const amount = times * (taken[k + 1] as number);
        next = earliestIn(columns[taken[k] as number] as Column, amount, length, limit, next);
      }
    }
    return next;
  }

  openingNow(
    requirement: Requirement,
    eligible: EligibleMachines,
    work: number,
    limit = Infinity,
  ): Opening | null {
    const { now } = this;
    const until = now + limit;
    if (requirement.many || this.promisesTo(requirement))
      return this.manyAt(now, requirement, eligible, work, limit);
    for (const state of eligible.machines) {
      const end = now + work / state.machine.benchmark;
      if (this.tasksOn(state, requirement.task, now, end, until) === 0) continue;
      const pools = this.poolsFrom(eligible, now, end, until);
      if (pools !== null) return { at: now, end, placement: state.alone, pools };
    }
    return null;
  }

  /**
   * Ahead of `before`. A job of several tasks asks for its room as long as it would take on the fastest machine, and again for as long as
   * on the slowest of those that it would get, until these are as fast.
   */
  earliestOpening(
    requirement: Requirement,
    eligible: EligibleMachines,
    work: number,
    limit = Infinity,
    before = Infinity,
  ): Opening | null {
    return requirement.many || this.promisesTo(requirement)
      ? this.earliestMany(requirement, eligible, work, limit, before)
      : this.earliestOne(requirement, eligible, work, limit, before, null);
  }

  /** The same for a job that has a place already, ahead of which it is to be. */
  earlier(
    requirement: Requirement,
    eligible: EligibleMachines,
    work: number,
    limit: number,
    own: OwnPlace,
  ): Opening | null {
    if (!requirement.many && eligible.pools.length === 0 && !this.promisesTo(requirement))
      return this.earliestOne(requirement, eligible, work, limit, own.at, own);
    return this.without(own, () => this.earliestOpening(requirement, eligible, work, limit, own.at));
  }

  /** `own`: only machines are asked on which room has been given back, and where it stands. */
  private earliestOne(
    { task }: Requirement,
    eligible: EligibleMachines,
    work: number,
    limit: number,
    before: number,
    own: OwnPlace | null,
  ): Opening | null {
    let at = before;
    let best: MachineState | null = null;
    let pools: PoolCopies[] = NO_POOLS;
    for (let i = 0; i < eligible.machines.length; i++) {
      const state = eligible.machines[i] as MachineState;
      const columns = this.columns(state);
      const length = work / state.machine.benchmark;
      const until = own !== null && own.hold.machines[0] === state ? own.at : Infinity;
      if (own !== null && givenSince(columns) >= Math.min(at + length, until)) continue;
      // What opens reaches into what was given back.
      const last = own === null ? at : Math.min(at, givenUntil(columns));
      for (let from = this.now; from < last; ) {
        const found = earliestOfAll(columns.columns, task, length, limit, from, last, until);
        if (found >= last) break;
        const picked = this.poolsFrom(eligible, found, found + length, found + limit);
        if (picked !== null) {
          at = found;
          best = state;
          pools = picked;
          break;
        }
        from = this.nextCopies(eligible, found, length, limit);
      }
    }
    return best === null
      ? null
      : { at, end: at + work / best.machine.benchmark, placement: best.alone, pools };
  }

  /** The copies of each kind from `from` until `to`, and until `until` beside what is held for certain. */
  private poolsFrom(
    eligible: EligibleMachines,
    from: number,
    to: number,
    until: number,
  ): PoolCopies[] | null {
    if (eligible.pools.length === 0) return NO_POOLS;
    return pickPools(eligible, (pool) => leastIn(this.pool(pool), from, to, until));
  }

  /**
   * The next instant at which each kind may have its copies for so long, as far as each alone is concerned; where they may come from
   * several pools, the next at which one of these changes.
   */
  private nextCopies(eligible: EligibleMachines, from: number, length: number, limit: number): number {
    let next = from;
    for (const { of, copies } of eligible.pools) {
      let earliest = Infinity;
      for (const pool of of) {
        const column = this.pool(pool);
        earliest = Math.min(earliest, earliestIn(column, copies, length, limit, from));
        if (copies > 1 && of.length > 1) earliest = Math.min(earliest, nextIn(column, from));
      }
      next = Math.max(next, earliest);
    }
    return next;
  }

  private earliestMany(
    requirement: Requirement,
    eligible: EligibleMachines,
    work: number,
    limit: number,
    before: number,
  ): Opening | null {
    for (let at = this.now; at < before; at = this.nextChange(eligible, at)) {
      const found = this.manyAt(at, requirement, eligible, work, limit);
      if (found !== null) return found;
    }
    return null;
  }

  private manyAt(
    at: number,
    requirement: Requirement,
    eligible: EligibleMachines,
    work: number,
    limit: number,
  ): Opening | null {
    const { machines } = eligible;
    const until = at + limit;
    // As long as on the fastest; where slower ones are needed, as long as on the slowest of those.
    let slowest = machines[0]?.machine.benchmark ?? 1;
    for (;;) {
      const end = at + work / slowest;
      const placement = this.placeMany(requirement, eligible, at, end, until);
      if (placement === null) return null;
      if (placement.benchmark >= slowest) {
        const pools = this.poolsFrom(eligible, at, end, until);
        return pools && { at, end, placement, pools };
      }
      slowest = placement.benchmark;
    }
  }

  private placeMany(
    requirement: Requirement,
    eligible: EligibleMachines,
    at: number,
    end: number,
    until: number,
  ): Placement | null {
    const { tasks, spread, whole, parts } = requirement;
    const { machines } = eligible;
    const devices = this.devicesAt(at, end, until, requirement);
    if (parts !== null)
      return placeParts(parts, eligible, this.leastRoom(machines, at, end, until), null, devices);
    const most = (state: MachineState): number => {
      if (!whole) {
        const asked = askedOn(requirement, state);
        return atMost(requirement, state, this.tasksOn(state, asked, at, end, until));
      }
      return this.tasksOn(state, state.whole, at, end, until) > 0 ? idleTasksOn(requirement, state) : 0;
    };
    if (spread !== null || devices !== null)
      return placeSpread(
        requirement,
        spread ?? ANY_SPREAD,
        machines,
        most,
        (state, kind) => this.least(state, kind, at, end, until),
        devices,
      );
    const filling = new Filling(tasks);
    for (let i = 0; i < machines.length && filling.left > 0; i++) {
      const state = machines[i] as MachineState;
      filling.put(state, most(state));
    }
    return filling.placement;
  }

  /** Which devices a job finds taken that is there from `at` until `end`; null: it does not matter. */
  private devicesAt(at: number, end: number, until: number, requirement: Requirement): DeviceHolds | null {
    if (this.promised !== null && this.promisesTo(requirement))
      return this.promised.view({ of: requirement, at, end, until, present: false });
    if (!asksByName(requirement)) return null;
    const devices = new DeviceHolds(this.devicesNow.devices);
    for (const [holder, until] of this.devicesNow.holders) if (until <= at) devices.give(holder);
    return devices;
  }

  /** Whether it matters to where a job of the class goes which devices are promised. */
  promisesTo(requirement: Requirement): boolean {
    return this.promised?.mattersTo(requirement) === true && this.site.looksAtDevices(requirement);
  }

  /** Whether the tasks get their devices there, beside those that are promised. `present`: now, when runs that are late have theirs still. */
  admits(hold: Hold, at: number, end: number, until: number, present: boolean): boolean {
    return this.promised?.admits(hold, { of: hold.each, at, end, until, present }) ?? false;
  }

  private promiseDevices(hold: Hold, at: number, end: number, certain: boolean): void {
    // Which devices a run has is known.
    if (this.promised !== null && holdsByName(hold.each) && !('run' in hold))
      this.promised.add(hold, at, end, certain);
  }

  private nextChange(eligible: EligibleMachines, time: number): number {
    let next = this.nextChangeOn(eligible.machines, time);
    for (const { of } of eligible.pools)
      for (const pool of of) next = Math.min(next, nextIn(this.pool(pool), time));
    return next;
  }

  private nextChangeOn(machines: readonly MachineState[], time: number): number {
    let next = Infinity;
    for (const state of machines)
      for (const column of this.columns(state).columns) next = Math.min(next, nextIn(column, time));
    return next;
  }

  /** The least that is free on the machines, as `least`. */
  leastRoom(machines: readonly MachineState[], from: number, to: number, until: number): Room {
    const room: Room = [];
    for (const state of machines)
      for (const [kind, column] of this.columns(state).columns.entries())
        room[state.offset + kind] = leastIn(column, from, to, until);
    return room;
  }

  /** The least that is free of a kind from `from` until `to`, and until `until` beside what is held for certain. */
  least(state: MachineState, kind: number, from: number, to: number, until: number): number {
    return leastIn(this.columns(state).columns[kind] as Column, from, to, until);
  }

  /** The same, with what counts as free besides until runs end. */
  leastBeside(
    state: MachineState,
    kind: number,
    { from, to, until }: { from: number; to: number; until: number },
    besides: readonly Besides[],
  ): number {
    const column = this.columns(state).columns[kind] as Column;
    const ends = [...new Set(besides.map(({ end }) => end).filter((end) => end > from && end < to))];
    let least = leastCertain(column, from, until);
    let begin = from;
    for (const end of [...ends.sort((a, b) => a - b), to]) {
      let free = leastIn(column, begin, end, end);
      for (const one of besides) if (one.end > begin) free += one.amount;
      least = Math.min(least, free);
      begin = end;
    }
    return least;
  }

  /** What `search` finds as if the place were free. */
  without<T>(place: OwnPlace | undefined, search: () => T): T {
    if (place === undefined) return search();
    const { hold, at, end } = place;
    const devices = this.promised !== null && holdsByName(hold.each) ? this.promised : null;
    this.shift(hold, at, end, 1);
    devices?.remove(hold, at);
    const found = search();
    this.shift(hold, at, end, -1);
    devices?.add(hold, at, end);
    return found;
  }

  /** How many tasks find their room from `from` until `to`, and until `until` beside what is held for certain. */
  tasksOn(state: MachineState, asked: Amounts, from: number, to: number, until: number): number {
    const { columns } = this.columns(state);
    let tasks = Infinity;
    for (let k = 0; k < asked.length && tasks > 0; k += 2) {
      const least = leastIn(columns[asked[k] as number] as Column, from, to, until);
      tasks = Math.min(tasks, Math.floor(Math.max(0, least) / (asked[k + 1] as number)));
    }
    return tasks;
  }

  private shift(hold: Hold, from: number, to: number, sign: 1 | -1, certain = false): void {
    const { each, licenses } = hold;
    if (each.parts === null) this.shiftAlike(hold, from, to, sign, certain);
    else for (const part of takings(hold)) this.shiftAlike(part, from, to, sign, certain);
    for (const { pool, copies } of licenses) {
      const column = this.pools.get(pool);
      if (column !== undefined) shift(column, from, to, sign * copies, certain);
    }
  }

  private shiftAlike(
    { machines, tasks, each }: TasksOnMachines,
    from: number,
    to: number,
    sign: 1 | -1,
    certain: boolean,
  ): void {
    for (let i = 0; i < machines.length; i++) {
      const state = machines[i] as MachineState;
      const taken = takenOn(each, state);
      const { columns } = this.columns(state);
      const times = sign * timesTaken(each, tasks[i] as number);
      for (let k = 0; k < taken.length; k += 2)
        shift(columns[taken[k] as number] as Column, from, to, times * (taken[k + 1] as number), certain);
    }
  }

  private note({ machines }: Hold, from: number, end: number): void {
    if (from < this.earliestGiven) this.earliestGiven = from;
    for (let i = 0; i < machines.length; i++) {
      const columns = this.columns(machines[i] as MachineState);
      if (from < columns.given) columns.given = from;
      if (end > columns.givenEnd) columns.givenEnd = end;
    }
  }

  private columns({ position }: MachineState): MachineColumns {
    return this.machines[position] as MachineColumns;
  }

  private pool(pool: PoolState): Column {
    return this.pools.get(pool) as Column;
  }
}

const givenSince = ({ given, givenBefore }: MachineColumns): number => Math.min(given, givenBefore);

const givenUntil = ({ givenEnd, givenEndBefore }: MachineColumns): number =>
  Math.max(givenEnd, givenEndBefore);

/** A hold as one of each machine, of all that its parts take there. */
function inSum(hold: Hold): TasksOnMachines[] {
  const sums = new Map<MachineState, Map<number, number>>();
  for (const { machines, tasks, each } of takings(hold))
    for (const [i, state] of machines.entries()) {
      const sum = sums.get(state) ?? new Map<number, number>();
      sums.set(state, sum);
      const times = timesTaken(each, tasks[i] as number);
      for (const [kind, amount] of pairsOf(takenOn(each, state)))
        sum.set(kind, (sum.get(kind) ?? 0) + times * amount);
    }
  return [...sums].map(([state, sum]) => ({
    machines: [state],
    tasks: [1],
    each: eachTakes([...sum].flat()),
  }));
}

/**
 * When all are there at once: each in turn is asked for its earliest instant from where the ones before it have come to, until all
 * agree on one.
 */
function earliestOfAll(
  columns: readonly Column[],
  asked: Amounts,
  length: number,
  limit: number,
  from: number,
  before: number,
  until: number,
): number {
  let at = from;
  // How many in a row have agreed on `at`.
  for (let agreed = 0, k = 0; agreed * 2 < asked.length; k = k + 2 === asked.length ? 0 : k + 2) {
    const column = columns[asked[k] as number] as Column;
    const found = earliestIn(column, asked[k + 1] as number, length, limit, at, before, until);
    if (found >= before) return found;
    agreed = found === at ? agreed + 1 : 1;
    at = found;
  }
  return at;
}
