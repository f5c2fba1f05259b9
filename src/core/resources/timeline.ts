/**
 * The future of a site as a walk from one planned end to the next: what is free now, as it is seen by somebody who takes and gives back in
 * mind, and what comes free if runs end as planned. The grid stays as it is, and nothing is built before something is taken: where one
 * question is put in a cycle, as under EASY, that costs a hundredth of making a `Profile` (`npm run bench -- --only profile-walk`).
 *
 * Room is least where something begins. So what is held later is known by what is free at these instants (`Dip`): a job finds its room for
 * as long as it takes if it does when it starts and in each dip until its end. The reservation of EASY is one, a window another.
 */
import { CPUS, copyInto, fitsIn, PLACES, type Room } from '../grid/amounts.js';
import type { Grid, SiteEntry } from '../grid/grid.js';
import type { Requirement } from '../grid/requirements.js';
import {
  alikeIn,
  asksByName,
  type EligibleMachines,
  type Free,
  giveTo,
  type Hold,
  holdsByName,
  keepsMachines,
  type MachineState,
  type Placement,
  type PoolCopies,
  type RunState,
  type SiteResources,
} from '../grid/site-resources.js';
import type { Reservation, Run } from '../model.js';
import { leastIn } from './column.js';
import { DeviceHolds } from './device-holds.js';
import type { Future, Opening } from './future.js';
import { type Besides, type LeastFree, OwnRuns, placeBeside, presently } from './joining.js';
import { Claims, PoolsInMind } from './licenses.js';
import { NO_POOLS, pickPools, place, placeNow } from './placement.js';
import type { Profile } from './profile.js';
import { type DevicesNow, PromisedDevices } from './promised-devices.js';

/** Of a start that nobody has accepted yet. */
const UNDECIDED: Run = Object.freeze({
  jobId: 0,
  siteId: 0,
  epoch: 0,
  allocations: [],
  pools: [],
  start: 0,
  plannedEnd: 0,
});

/** What a job of the class occupies that starts in mind only. */
export const runInMind = (
  each: Requirement,
  { machines, tasks }: Placement,
  licenses: readonly PoolCopies[],
  jobId: number,
  end: number,
): RunState =>
  // In one literal: a simulation makes millions.
  ({ run: UNDECIDED, jobId, end, machines, tasks, each, licenses });

/** What is taken (-1) or given back (1) in mind. */
interface InMind {
  hold: Hold;
  from: number;
  to: number;
  sign: 1 | -1;
  /** It is there (or not) now, whoever is late. */
  present: boolean;
  certain: boolean;
}

/** What is free becomes more (1) or less (-1) by so much at an instant. */
interface Step {
  readonly at: number;
  readonly hold: Hold;
  readonly sign: 1 | -1;
}

/** An instant at which something begins to be held. */
interface Dip {
  at: number;
  /** What is free then. */
  readonly room: Room;
  /** What is not held for certain then; null: nothing begins to be. */
  uncertain: Room | null;
}

/** What a job finds in the dip that is there at `at`, by its estimate until `end` and by its limit until `until`; null: it is not there. */
const roomIn = (dip: Dip, at: number, end: number, until: number): Room | null =>
  dip.at < at ? null : dip.at < end ? dip.room : dip.at < until ? dip.uncertain : null;

const leastOf = (room: Room, other: Room | null): Room =>
  other === null ? room : room.map((amount, i) => Math.min(amount, other[i] as number));

const NO_RUNS: readonly RunState[] = [];
const NO_STEPS: readonly Step[] = [];

export class Timeline implements Future, Free, DevicesNow {
  room: Room = [];
  tasks: number[] = [];
  /** Runs, those in mind included. */
  running = 0;
  /** Counts what was given back: as long as nothing is, what does not fit goes on not to. */
  returns = 0;
  now = 0;
  readonly site: SiteResources;
  /** So many of them, ascending. What is behind is from earlier looks and filled again, as of `inMind`: a simulation begins millions of times. */
  private readonly dips: Dip[] = [];
  private dipCount = 0;
  private readonly inMind: InMind[] = [];
  private mindCount = 0;
  /** Starts in mind, in the order in which they came to it. */
  begun: RunState[] = [];
  /** Those of `beginElsewhere`. */
  elsewhere: readonly RunState[] = NO_RUNS;
  /** One of them keeps its machines for its user. */
  private keepsInMind = false;
  /** Which devices are taken, in mind or not; null: there are none to be had by name. */
  devices: DeviceHolds | null = null;
  /** Which of them are promised, in mind or by what the site holds; null: none is. */
  private promised: PromisedDevices | null = null;
  /** `devices` are not those of the site. */
  private devicesCopied = false;
  private copied = false;
  /** The copies, made over and over. */
  private readonly own: Free = { room: [], tasks: [] };
  private copiesIfAsked: PoolsInMind | null = null;
  private claimsIfAsked: Claims | null = null;
  /** Classes that did not fit, and what `returns` was then; made when there is one. */
  private refused: Map<Requirement, number> | null = null;
  /** By user, who was asked for; null: none was. */
  private owns: Map<number, OwnRuns> | null = null;
  private ownsAt = 0;
  /** When the last walk found its opening, and what is free then; NaN: none, or that is no longer true. */
  private foundAt = Number.NaN;
  private readonly walked: Room = [];

  /** `shared`: the copies of licenses, with other sites; unless given, its own. */
  constructor(
    private readonly grid: Grid,
    readonly entry: SiteEntry,
    now: number,
    private readonly shared: PoolsInMind | null = null,
  ) {
    this.site = entry.resources;
    this.begin(now);
  }

  /** Nothing is taken in mind any more but what the grid says is held. */
  begin(now: number): void {
    const { free, runs, holds } = this.site;
    this.now = now;
    this.room = free.room;
    this.tasks = free.tasks;
    this.running = runs.length;
    this.returns = 0;
    this.copied = false;
    this.devices = this.site.devices;
    this.devicesCopied = false;
    this.promised = null;
    this.copiesIfAsked = this.shared;
    this.claimsIfAsked = null;
    this.foundAt = Number.NaN;
    this.refused = null;
    this.owns = null;
    this.dipCount = 0;
    this.mindCount = 0;
    if (this.begun.length > 0) this.begun = [];
    this.elsewhere = NO_RUNS;
    this.keepsInMind = false;
    for (let i = 0; i < holds.length; i++) {
      const hold = holds[i] as SiteResources['holds'][number];
      this.take(hold, hold.from, hold.to, hold.certain);
    }
  }

  get copies(): PoolsInMind {
    this.copiesIfAsked ??= new PoolsInMind(this.now);
    return this.copiesIfAsked;
  }

  get claims(): Claims {
    this.claimsIfAsked ??= new Claims(this.grid, this.entry.site.id, this.copies);
    return this.claimsIfAsked;
  }

  /** No further run is allowed, whatever is free. */
  get full(): boolean {
    return this.running >= this.site.maxRuns;
  }

  /** CPUs that a further task could have on the machine: of a time-shared one all, as long as it has a place. */
  cpusOn({ offset, shared }: MachineState): number {
    if (shared && (this.room[offset + PLACES] as number) <= 0) return 0;
    return this.room[offset + CPUS] as number;
  }

  /** The same of the machine with the most of them. */
  get mostCpus(): number {
    let most = 0;
    const { machines } = this.site;
    for (let i = 0; i < machines.length; i++) most = Math.max(most, this.cpusOn(machines[i] as MachineState));
    return most;
  }

  // ---- what is taken and given back ----

  /** The run begins. As `take`, but made for millions. */
  start(run: RunState): void {
    const { dips, dipCount } = this;
    const end = this.endOf(run);
    this.copy();
    giveTo(this.room, run, -1);
    for (let i = 0; i < dipCount; i++) {
      const { at, room } = dips[i] as Dip;
      if (at < end) giveTo(room, run, -1);
    }
    // Most have one or none, and an array that grows from nothing takes room for 17.
    if (this.begun.length === 0) this.begun = [run];
    else this.begun.push(run);
    if (keepsMachines(run.each)) this.keepsInMind = true;
    if (holdsByName(run.each)) {
      this.ownDevices()?.take(run, alikeIn(run));
      this.promised?.changed();
    }
    this.foundAt = Number.NaN;
    this.owns = null;
    if (run.licenses.length > 0) this.takeCopies(run, this.now, run.end, 1, true, false);
    this.count(run, 1);
  }

  /** A run begins on machines that are not the site's own, with copies of licenses that others may have, too. */
  beginElsewhere(run: RunState): void {
    this.elsewhere = [...this.elsewhere, run];
    this.takeCopies(run, this.now, run.end, 1, true, false);
  }

  /** A run, live or in mind, is stopped. */
  stop(run: RunState): void {
    // A late one holds its room now, though by plan it does no more.
    this.shift(run, this.now, Math.max(this.now, this.endOf(run)), 1, true, false);
    if (holdsByName(run.each)) {
      this.ownDevices()?.give(run);
      this.promised?.changed();
    }
    this.count(run, -1);
  }

  /** It is promised, from now on or later: late runs may still hold the room. */
  promise(hold: Hold, from: number, to: number): void {
    this.shift(hold, from, to, -1, false, false);
  }

  take(hold: Hold, from: number, to: number, certain = false): void {
    if (to > this.now) this.shift(hold, from, to, -1, from <= this.now, certain);
  }

  give(hold: Hold, from: number, to: number, certain = false): void {
    if (to > this.now) this.shift(hold, from, to, 1, from <= this.now, certain);
  }

  /** Goes on beside a promise that stands. */
  resume(at: number, room: Room): void {
    this.insertDip(0, at, room);
  }

  /** What is free at the first instant at which something begins to be held, until the next look; null: nothing is. */
  get beside(): Room | null {
    return this.dipCount === 0 ? null : (this.dips[0] as Dip).room;
  }

  /** Devices are promised by what they are: there is more to it than the room at its instant. */
  get promisesDevices(): boolean {
    return this.promised?.someByName === true;
  }

  get holders(): readonly (readonly [holder: object, until: number])[] {
    const holders: [object, number][] = [];
    for (const run of [...this.ending, ...this.begun])
      if (holdsByName(run.each)) holders.push([run, this.givenBackAt(run)]);
    return holders;
  }

  // ---- questions ----

  openingNow(
    requirement: Requirement,
    eligible: EligibleMachines,
    work: number,
    limit = Infinity,
    holder: Reservation | null = null,
  ): Opening | null {
    const devices = this.devicesFor(requirement);
    return this.openingAt(this.now, this.room, devices, true, requirement, eligible, work, limit, holder);
  }

  /** `holder`: what is reserved for the job, which older claims on licenses bind only. */
  earliestOpening(
    requirement: Requirement,
    eligible: EligibleMachines,
    work: number,
    limit = Infinity,
    holder: Reservation | null = null,
  ): Opening | null {
    const { pools } = eligible;
    this.foundAt = Number.NaN;
    const room = copyInto(this.walked, this.room);
    const runs = this.ending;
    const steps = this.steps();
    // Who asks for devices by what they are waits until runs give back such devices, whatever is free of the kind.
    const beside = this.promisedTo(requirement, false) !== null;
    const walked =
      !beside && this.devices !== null && asksByName(requirement) ? new DeviceHolds(this.devices) : null;
    const devices = beside ? this.devices : walked;
    let run = 0;
    let step = 0;
    // Several tasks may need what many small releases add up to; one task fits only where a machine got room for it.
    let possible = requirement.many || steps.length > 0 || place(requirement, eligible, room) !== null;
    for (let at = this.now; at !== Infinity; ) {
      for (; run < runs.length && (runs[run] as RunState).end <= at; run++) {
        const ended = runs[run] as RunState;
        giveTo(room, ended, 1);
        walked?.give(ended);
        possible ||= fitsOnOneOf(ended.machines, requirement, room);
      }
      for (; step < steps.length && (steps[step] as Step).at <= at; step++) {
        const { hold, sign } = steps[step] as Step;
        giveTo(room, hold, sign);
        if (sign > 0) walked?.give(hold);
      }
      const opening = possible
        ? this.openingAt(at, room, devices, false, requirement, eligible, work, limit, holder)
        : null;
      if (opening !== null) {
        this.foundAt = at;
        return opening;
      }
      let next = run < runs.length ? (runs[run] as RunState).end : Infinity;
      if (step < steps.length) next = Math.min(next, (steps[step] as Step).at);
      if (pools.length > 0) next = Math.min(next, this.claims.nextChange(pools, at, holder));
      at = next;
    }
    return null;
  }

  /** Whether only the class decides if a job starts now. What is held later lets only those start that end in time. */
  dependsOnClass({ signature }: Requirement): boolean {
    if (this.dipCount > 0) return false;
    return signature.pools.length === 0 || (this.claims.others.length === 0 && !this.grid.holdsPools);
  }

  /** No job of the class fits now, until something is given back. */
  refuse(requirement: Requirement): void {
    this.refused ??= new Map();
    this.refused.set(requirement, this.returnsFor(requirement));
  }

  hasRefused(requirement: Requirement): boolean {
    return this.refused !== null && this.refused.get(requirement) === this.returnsFor(requirement);
  }

  freeAt(time: number): Room {
    const room = this.room.slice();
    for (const run of this.ending) {
      if (run.end > time) break;
      giveTo(room, run, 1);
    }
    for (const { at, hold, sign } of this.steps()) if (at <= time) giveTo(room, hold, sign);
    return room;
  }

  /**
   * The most work that a job of the class may have to start now: what ends before the first dip in which it does not fit, on the best
   * machine with room. Slightly generous, for `openingNow` decides exactly.
   */
  mostWork(requirement: Requirement, eligible: EligibleMachines): number {
    const { machines } = eligible;
    const { room, dips, dipCount } = this;
    // Amounts do not say which machines its parts leave to each other.
    if (requirement.parts !== null && this.devicesFor(requirement) !== null) return Infinity;
    let most = -1;
    if (!requirement.many) {
      for (let i = 0; i < machines.length; i++) {
        const { offset, machine } = machines[i] as MachineState;
        if (!fitsIn(requirement.task, 1, room, offset)) continue;
        let first = 0;
        while (first < dipCount && fitsIn(requirement.task, 1, (dips[first] as Dip).room, offset)) first++;
        if (first === dipCount) return Infinity;
        most = Math.max(most, ((dips[first] as Dip).at - this.now) * machine.benchmark);
      }
    } else {
      const placement = place(requirement, eligible, room);
      if (placement === null) return -1;
      let first = 0;
      while (first < dipCount && place(requirement, eligible, room, this.least(first + 1)) !== null) first++;
      if (first === dipCount) return Infinity;
      most = ((dips[first] as Dip).at - this.now) * placement.benchmark;
    }
    return most * (1 + 1e-9);
  }

  /** Some run keeps its machines for its user. */
  get keeps(): boolean {
    return this.site.keeping > 0 || this.keepsInMind;
  }

  /** Whether a job of the class might start now beside runs of its user where others may not: a quick test, true of all that can. */
  mayJoin(requirement: Requirement, userId: number): boolean {
    // What is beneath a reservation is compared by whoever carries starts out.
    if (
      this.entry.part !== null ||
      requirement.parts !== null ||
      (requirement.onlyUser === null && !this.keeps)
    )
      return false;
    const own = this.ownRuns(userId);
    return (own.keeping || requirement.onlyUser !== null) && !own.refused.has(requirement);
  }

  /**
   * The job's opening now beside runs of its user, on machines that these keep from others, or that it is to keep itself. `profile`: of
   * what is promised to others, if that is not in mind here; jobs with licenses then have none.
   */
  joiningNow(
    userId: number,
    requirement: Requirement,
    eligible: EligibleMachines,
    work: number,
    limit = Infinity,
    holder: Reservation | null = null,
    profile: Profile | null = null,
  ): Opening | null {
    if (this.full || !this.mayJoin(requirement, userId)) return null;
    if (profile !== null && eligible.pools.length > 0) return null;
    const { now } = this;
    const own = this.ownRuns(userId);
    const until = now + limit;
    const devices = this.devicesFor(requirement);
    const promised = devices === null ? null : this.promisedTo(requirement, true, profile);
    if (placeBeside(own, requirement, eligible, presently(this.room), null) === null) {
      own.refused.add(requirement);
      return null;
    }
    let slowest = eligible.machines[0]?.machine.benchmark ?? 1;
    for (;;) {
      const end = eligible.shared ? until : now + work / slowest;
      const least: LeastFree = (state, kind, besides) =>
        Math.min(
          this.leastBeside(state, kind, end, until, besides),
          profile?.leastBeside(state, kind, { from: now, to: end, until }, besides) ?? Infinity,
        );
      const there =
        promised === null ? devices : promised.view({ of: requirement, at: now, end, until, present: true });
      const placement = placeBeside(own, requirement, eligible, least, there);
      if (placement === null) return null;
      if (eligible.shared || placement.benchmark >= slowest)
        return this.opening(now, true, eligible, placement, work, until, holder);
      slowest = placement.benchmark;
    }
  }

  /**
   * Where a job that starts now gets its devices, beside what is promised in the profile. Null: it gets them nowhere, or any place that the
   * profile has found is as good.
   */
  placedNow(
    requirement: Requirement,
    eligible: EligibleMachines,
    work: number,
    limit: number,
    profile: Profile,
  ): Placement | null {
    const devices = this.devicesFor(requirement);
    if (devices === null) return null;
    const { now, room } = this;
    const { machines } = eligible;
    const until = now + limit;
    const promised = this.promisedTo(requirement, true, profile);
    let slowest = machines[0]?.machine.benchmark ?? 1;
    for (;;) {
      const end = now + work / slowest;
      const beside = profile.leastRoom(machines, now, end, until);
      const there =
        promised === null ? devices : promised.view({ of: requirement, at: now, end, until, present: true });
      const placement = place(requirement, eligible, room, beside, there);
      if (placement === null || placement.benchmark >= slowest) return placement;
      slowest = placement.benchmark;
    }
  }

  /** Whether it is only devices of what the tasks ask for that are not free now: amounts do not say so. */
  lacksDevices(requirement: Requirement, eligible: EligibleMachines): boolean {
    const devices = this.devicesFor(requirement);
    return (
      devices !== null && asksByName(requirement) && placeNow(requirement, eligible, this, devices) === null
    );
  }

  // ---- inside ----

  private ownDevices(): DeviceHolds | null {
    if (this.devices === null || this.devicesCopied) return this.devices;
    this.devicesCopied = true;
    this.devices = new DeviceHolds(this.devices);
    return this.devices;
  }

  /** null: it does not matter to jobs of the class which devices are free. */
  private devicesFor(requirement: Requirement): DeviceHolds | null {
    return this.devices !== null && this.site.looksAtDevices(requirement) ? this.devices : null;
  }

  /**
   * The promises of devices that matter to where a job of the class goes: of the profile, if there is one. Null: none does. Who starts beside
   * what is promised in mind by amounts leaves it these.
   */
  private promisedTo(
    requirement: Requirement,
    present: boolean,
    profile: Profile | null = null,
  ): PromisedDevices | null {
    const promised = profile === null ? this.promised : profile.promised;
    if (promised === null || this.devices === null) return null;
    const matters = present && profile === null ? promised.someByName : promised.mattersTo(requirement);
    return matters && this.site.looksAtDevices(requirement) ? promised : null;
  }

  /** When a run gives its devices back: at its end, or sooner in mind. */
  private givenBackAt(run: RunState): number {
    let at = this.endOf(run);
    for (let i = 0; i < this.mindCount; i++) {
      const { hold, from, sign } = this.inMind[i] as InMind;
      if (sign > 0 && hold === run) at = Math.min(at, from);
    }
    return at;
  }

  private ownRuns(userId: number): OwnRuns {
    if (this.owns === null || this.ownsAt !== this.returns) {
      this.owns = new Map();
      this.ownsAt = this.returns;
    }
    let own = this.owns.get(userId);
    if (own === undefined) {
      const isOwn = ({ jobId }: RunState): boolean => this.grid.job(jobId)?.userId === userId;
      own = new OwnRuns([...this.site.runs.filter(isOwn), ...this.begun.filter(isOwn)]);
      this.owns.set(userId, own);
    }
    return own;
  }

  /** The least that is free of a kind from now until `end`, and until `until` beside what is held for certain. */
  private leastBeside(
    state: MachineState,
    kind: number,
    end: number,
    until: number,
    besides: readonly Besides[],
  ): number {
    const { offset } = state;
    const { dips, dipCount, room, now } = this;
    // Who is late is there.
    let least = presently(room)(state, kind, besides);
    for (let i = 0; i < dipCount; i++) {
      const dip = dips[i] as Dip;
      const then = roomIn(dip, now, end, until);
      if (then === null) continue;
      let free = then[offset + kind] as number;
      if (then === dip.room) for (const one of besides) if (this.endOf(one) > dip.at) free += one.amount;
      least = Math.min(least, free);
    }
    return least;
  }

  /** Where runs share CPUs nobody knows when they end. */
  private endOf({ end }: Pick<RunState, 'end'>): number {
    return this.site.shared ? Infinity : end;
  }

  /** Live runs in the order in which they end. */
  private get ending(): readonly RunState[] {
    return this.site.shared ? NO_RUNS : this.site.runs;
  }

  /** What changes behind now of what is in mind, in order of time. */
  private steps(): readonly Step[] {
    const { begun, inMind, mindCount } = this;
    if (begun.length === 0 && mindCount === 0) return NO_STEPS;
    const steps: Step[] = [];
    for (const run of begun) steps.push({ at: this.endOf(run), hold: run, sign: 1 });
    for (let i = 0; i < mindCount; i++) {
      const { hold, from, to, sign, present } = inMind[i] as InMind;
      if (!present) steps.push({ at: from, hold, sign });
      if (to !== Infinity) steps.push({ at: to, hold, sign: sign < 0 ? 1 : -1 });
    }
    return steps.length === 1 ? steps : steps.sort((a, b) => a.at - b.at);
  }

  /**
   * `room`: at that instant. `devices`: which are taken then; null: it does not matter, or is not known. `present`: now; late runs hold
   * licenses as they hold room.
   */
  private openingAt(
    at: number,
    room: Room,
    devices: DeviceHolds | null,
    present: boolean,
    requirement: Requirement,
    eligible: EligibleMachines,
    work: number,
    limit: number,
    holder: Reservation | null,
  ): Opening | null {
    const { machines } = eligible;
    const until = at + limit;
    if (requirement.many || eligible.shared || devices !== null) {
      const placement = this.placeMany(at, room, present, requirement, eligible, work, until, devices);
      return placement && this.opening(at, present, eligible, placement, work, until, holder);
    }
    const { task } = requirement;
    for (let i = 0; i < machines.length; i++) {
      const state = machines[i] as MachineState;
      if (!fitsIn(task, 1, room, state.offset)) continue;
      if (!this.lasts(requirement, state, at, at + work / state.machine.benchmark, until)) continue;
      const opening = this.opening(at, present, eligible, state.alone, work, until, holder);
      if (opening !== null) return opening;
    }
    return null;
  }

  /** A job holds all its machines until it ends on the slowest of them. */
  private placeMany(
    at: number,
    room: Room,
    present: boolean,
    requirement: Requirement,
    eligible: EligibleMachines,
    work: number,
    until: number,
    devices: DeviceHolds | null,
  ): Placement | null {
    const { machines, shared } = eligible;
    const promised = devices === null ? null : this.promisedTo(requirement, present);
    let slowest = machines[0]?.machine.benchmark ?? 1;
    for (;;) {
      // Tasks that share CPUs take nobody knows how long, but no longer than their limit.
      const end = shared ? until : at + work / slowest;
      const beside = this.leastBetween(at, end, until);
      const there = promised === null ? devices : promised.view({ of: requirement, at, end, until, present });
      const placement = shared
        ? placeNow(requirement, eligible, { room: leastOf(room, beside), tasks: this.tasks }, there)
        : place(requirement, eligible, room, beside, there);
      if (placement === null || shared || this.dipCount === 0 || placement.benchmark >= slowest)
        return placement;
      slowest = placement.benchmark;
    }
  }

  private opening(
    at: number,
    present: boolean,
    eligible: EligibleMachines,
    placement: Placement,
    work: number,
    until: number,
    holder: Reservation | null,
  ): Opening | null {
    const end = at + work / placement.benchmark;
    if (eligible.pools.length === 0) return { at, end, placement, pools: NO_POOLS };
    const pools = this.poolsFrom(at, end, present, eligible, until, holder);
    return pools && { at, end, placement, pools };
  }

  /**
   * Pools of each kind with the copies from `at` until `end`, and until `until` beside what is held for certain; null: one has none.
   * `present`: late runs hold theirs. (Not in `opening`, which most jobs come through without licenses: what a closure keeps is made room
   * for at every call.)
   */
  poolsFrom(
    at: number,
    end: number,
    present: boolean,
    eligible: EligibleMachines,
    until: number,
    holder: Reservation | null,
  ): PoolCopies[] | null {
    return pickPools(eligible, (pool) => {
      const now = present ? this.copies.free(pool) : Infinity;
      if (now < 1 || (present && this.claims.onlyGrows(pool))) return now;
      return Math.min(now, leastIn(this.claims.column(pool, holder), at, end, until));
    });
  }

  /** Whether the machine has room for a task in each dip from `at` until `end`, and until `until` beside what is held for certain. */
  private lasts(
    { task }: Requirement,
    { offset }: MachineState,
    at: number,
    end: number,
    until: number,
  ): boolean {
    const { dips, dipCount } = this;
    for (let i = 0; i < dipCount; i++) {
      const dip = dips[i] as Dip;
      const room = roomIn(dip, at, end, until);
      if (room !== null && !fitsIn(task, 1, room, offset)) return false;
    }
    return true;
  }

  /** The least that is free in the same dips; null: there are none. */
  private leastBetween(at: number, end: number, until: number): Room | null {
    let least: Room | null = null;
    for (let i = 0; i < this.dipCount; i++) {
      const room = roomIn(this.dips[i] as Dip, at, end, until);
      if (room !== null) least = least === null ? room : leastOf(least, room);
    }
    return least;
  }

  /** The same of the first so many. */
  private least(count: number): Room | null {
    let least: Room | null = null;
    for (let i = 0; i < count; i++) least = leastOf((this.dips[i] as Dip).room, least);
    return least;
  }

  /** What is free becomes less (more) from `from` until `to`. `present`: also what is there now, whoever is late. */
  private shift(
    hold: Hold,
    from: number,
    to: number,
    sign: 1 | -1,
    present: boolean,
    certain: boolean,
  ): void {
    const edge = sign < 0 ? from : to;
    if ((sign > 0 || !present) && edge !== Infinity) this.dipAt(edge, certain);
    this.foundAt = Number.NaN;
    if (present) {
      this.copy();
      giveTo(this.room, hold, sign);
    }
    const { dips, dipCount } = this;
    for (let i = 0; i < dipCount; i++) {
      const dip = dips[i] as Dip;
      if (dip.at < from || dip.at >= to) continue;
      giveTo(dip.room, hold, sign);
      if (certain && dip.uncertain !== null) giveTo(dip.uncertain, hold, sign);
    }
    this.note(hold, from, to, sign, present, certain);
    if (this.devices !== null && holdsByName(hold.each)) this.promiseDevices(hold, from, to, sign, certain);
    if (sign > 0) this.returns++;
    if (hold.licenses.length > 0) this.takeCopies(hold, from, to, sign < 0 ? 1 : -1, present, certain);
  }

  private promiseDevices(hold: Hold, from: number, to: number, sign: 1 | -1, certain: boolean): void {
    if (sign < 0) {
      this.promised ??= new PromisedDevices(this);
      this.promised.add(hold, from, to, certain);
    } else if (this.promised?.remove(hold, from) === false) this.promised.changed();
  }

  private note(hold: Hold, from: number, to: number, sign: 1 | -1, present: boolean, certain: boolean): void {
    const { inMind, mindCount } = this;
    this.mindCount++;
    if (mindCount === inMind.length) {
      inMind.push({ hold, from, to, sign, present, certain });
      return;
    }
    const noted = inMind[mindCount] as InMind;
    noted.hold = hold;
    noted.from = from;
    noted.to = to;
    noted.sign = sign;
    noted.present = present;
    noted.certain = certain;
  }

  private takeCopies(
    { licenses }: Hold,
    from: number,
    to: number,
    sign: 1 | -1,
    present: boolean,
    certain: boolean,
  ): void {
    this.copies.take(licenses, sign, { from, to, present, certain });
  }

  private dipAt(at: number, certain: boolean): void {
    const { dips } = this;
    let i = this.dipCount;
    while (i > 0 && (dips[i - 1] as Dip).at > at) i--;
    if (i === 0 || (dips[i - 1] as Dip).at !== at) {
      this.insertDip(i, at, this.foundAt === at ? this.walked : this.freeAt(at));
      i++;
    }
    if (certain) (dips[i - 1] as Dip).uncertain ??= this.uncertainAt(at);
  }

  /** `room`: what is free then; it is copied. */
  private insertDip(position: number, at: number, room: Room): void {
    const { dips } = this;
    const dip = dips[this.dipCount] ?? { at, room: [], uncertain: null };
    for (let i = this.dipCount++; i > position; i--) dips[i] = dips[i - 1] as Dip;
    dips[position] = dip;
    dip.at = at;
    dip.uncertain = null;
    copyInto(dip.room, room);
  }

  private uncertainAt(time: number): Room {
    const { machines, kinds } = this.site;
    const room = machines.flatMap(({ offered }) =>
      Array.from({ length: kinds }, (_, kind) => offered[kind] ?? 0),
    );
    for (let i = 0; i < this.mindCount; i++) {
      const { hold, from, to, sign, certain } = this.inMind[i] as InMind;
      if (certain && from <= time && time < to) giveTo(room, hold, sign);
    }
    return room;
  }

  /** Copies of licenses may be given back at other sites. */
  private returnsFor({ signature }: Requirement): number {
    return signature.pools.length === 0 ? this.returns : this.returns + this.copies.returns;
  }

  private count({ machines }: RunState, sign: 1 | -1): void {
    this.running += sign;
    // Where machines are not shared nobody asks how many tasks they have.
    if (!this.site.shared) return;
    for (const { position } of machines) this.tasks[position] = (this.tasks[position] as number) + sign;
  }

  private copy(): void {
    if (this.copied) return;
    this.copied = true;
    const { own } = this;
    this.room = copyInto(own.room, this.room);
    if (this.site.shared) this.tasks = copyInto(own.tasks, this.tasks);
  }
}

/** Whether one of the machines, eligible or not, has room for a task of the class. */
function fitsOnOneOf(machines: readonly MachineState[], { task }: Requirement, room: Room): boolean {
  for (let i = 0; i < machines.length; i++)
    if (fitsIn(task, 1, room, (machines[i] as MachineState).offset)) return true;
  return false;
}
