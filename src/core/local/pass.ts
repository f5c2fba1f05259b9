/**
 * One look of a local policy at its site: what starts now, and what is reserved. The policy says in which order jobs are
 * tried and which rule applies to them (`start`, `reserve`, `backfill`); the pass knows machines and licenses.
 *
 * The grid is only read. What a start takes is taken in mind (`free`), so that each sees what the ones before have left.
 */
import type { Room } from '../grid/amounts.js';
import type { Grid, SiteEntry, SiteMemory } from '../grid/grid.js';
import type { Requirement } from '../grid/requirements.js';
import type {
  EligibleMachines,
  MachineState,
  Placement,
  PoolCopies,
  RunState,
  TimedHold,
} from '../grid/site-resources.js';
import {
  cpusOf,
  type Held,
  type Job,
  limitAt,
  type Reservation,
  type Run,
  type Start,
  type StartExplanation,
} from '../model.js';
import { ReasonCode } from '../reasons.js';
import { isTooLong, whyBusy, whyNeverFits } from '../resources/eligibility.js';
import type { Opening } from '../resources/future.js';
import { type Claims, hasCopies } from '../resources/licenses.js';
import { allocationsOf, amountsOf, holdOf } from '../resources/placement.js';
import type { Profile } from '../resources/profile.js';
import { runInMind, Timeline } from '../resources/timeline.js';

/** What became of the job that was tried first. */
export type HeadOutcome = 'STARTED' | 'BLOCKED' | 'CANNOT_RUN';

const NO_STARTS: Start[] = [];

/** Of a job whose machines the site chooses. */
const NO_MACHINES: Omit<Placement, 'benchmark'> = { machines: [], tasks: [], allocations: [] };

/** Of starts that nobody asked to explain. */
const UNEXPLAINED: StartExplanation = Object.freeze({
  queued: 0,
  order: 'ARRIVAL',
  orderValue: 0,
  terms: null,
  reservation: null,
});

/** Numbers noted in a pass, by index of the class of requirements. */
class ClassNotes {
  private values = new Float64Array(64);
  private stamps = new Int32Array(64);
  private stamp = 1;

  /** Forgets all of them. */
  clear(): void {
    this.stamp++;
  }

  /** NaN: nothing is noted. */
  get(index: number): number {
    return this.stamps[index] === this.stamp ? (this.values[index] as number) : Number.NaN;
  }

  set(index: number, value: number): void {
    if (index >= this.values.length) this.grow(index);
    this.values[index] = value;
    this.stamps[index] = this.stamp;
  }

  private grow(index: number): void {
    const size = 2 ** Math.ceil(Math.log2(index + 1));
    const values = new Float64Array(size);
    values.set(this.values);
    this.values = values;
    const stamps = new Int32Array(size);
    stamps.set(this.stamps);
    this.stamps = stamps;
  }
}

/** Room that was made for a job, which has started. */
export interface KeptRoom {
  readonly hold: TimedHold;
  readonly run: RunState;
}

/** A start that is promised for the look only. */
export interface FurtherPromise {
  readonly slot: number;
  readonly opening: Opening;
}

const NONE_KEPT: readonly KeptRoom[] = [];

export class SitePass {
  readonly free: Timeline;
  now = 0;
  /** The driver's world is the grid: what is decided is carried out at once. */
  carriesOut = false;
  /** How many more jobs the site's own scheduler is given; null: it has none. */
  handOvers: number | null = null;
  /** When the whole site is closed, now or later: only that is known of the machines that its own scheduler will choose. */
  private closed: readonly Held[] | null = null;
  /** Whether promises may move up; by what has come free unless said. */
  compress: boolean | undefined;
  /** In the order in which they were decided; `free.begun` has their runs. */
  starts: Start[] = NO_STARTS;
  reservation: Reservation | null = null;
  /** What this look has promised to others besides, if the policy finds that anew in each look. */
  further: FurtherPromise[] = [];
  /** What the next cycle is to find again, and when it must come at the latest. */
  memory: SiteMemory | null = null;
  wakeAt = Infinity;
  /** The policy looked at the first jobs of the queue only: when some of them start, others come into its sight. */
  goesOnBehindStarts = false;
  /** Slots of jobs that others were stopped for: whether they start is decided before the policy is asked. Null: there are none. */
  promised: ReadonlySet<number> | null = null;
  /** Of those that started: their runs, and what was held for them, which is no more. */
  kept: readonly KeptRoom[] = NONE_KEPT;
  /** Of the runs that the site may have at once, those kept for the others. */
  keptRuns = 0;
  private maxStarts = Infinity;
  private mostFreeCpusIfAsked = -1;
  /** `Timeline.returns` when it was noted what does not fit. */
  private notedAt = 0;
  /** By class, where it was asked for: see `bound`. */
  private readonly bounds = new ClassNotes();

  constructor(
    readonly grid: Grid,
    readonly entry: SiteEntry,
  ) {
    this.free = new Timeline(grid, entry, 0);
  }

  /** Begins to look, whatever it looked at before. */
  begin(now: number, maxStarts: number, carriesOut: boolean, compress?: boolean): this {
    this.now = now;
    this.maxStarts = maxStarts;
    this.carriesOut = carriesOut;
    this.handOvers = null;
    this.closed = null;
    this.compress = compress;
    this.free.begin(now);
    this.starts = NO_STARTS;
    this.reservation = null;
    if (this.further.length > 0) this.further = [];
    this.memory = null;
    this.wakeAt = Infinity;
    this.goesOnBehindStarts = false;
    this.promised = null;
    this.kept = NONE_KEPT;
    this.keptRuns = 0;
    this.forget();
    return this;
  }

  /** Notes of what does not fit hold as long as nothing is given back. */
  private forget(): void {
    this.notedAt = this.free.returns;
    this.mostFreeCpusIfAsked = -1;
    this.bounds.clear();
  }

  /** CPUs free on the machine with the most of them, when it was asked for first: a quick refusal for whole classes. */
  private get mostFreeCpus(): number {
    if (this.notedAt !== this.free.returns) this.forget();
    if (this.mostFreeCpusIfAsked === -1) this.mostFreeCpusIfAsked = this.free.mostCpus;
    return this.mostFreeCpusIfAsked;
  }

  /** No more starts are wanted. */
  get full(): boolean {
    return this.starts.length >= this.maxStarts;
  }

  /** Whether anything can be reserved: only where it is known when runs end. */
  get canReserve(): boolean {
    return this.entry.resources.foreseeable;
  }

  /** No CPU is free, or no further run allowed: nothing can start. */
  get exhausted(): boolean {
    if (this.free.full) return true;
    const { machines } = this.entry.resources;
    for (let i = 0; i < machines.length; i++) {
      const state = machines[i] as MachineState;
      if (state.machine.available && this.free.cpusOn(state) > 0) return false;
    }
    return !this.free.keeps;
  }

  get claims(): Claims {
    return this.free.claims;
  }

  /**
   * Starts the job if it fits now. CANNOT_RUN: not even with every run over; it waits for a machine or a license to come
   * back, and nobody waits behind it.
   */
  start(slot: number, reason: ReasonCode = ReasonCode.HEAD): HeadOutcome {
    const requirement = this.requirement(slot);
    const eligible = this.eligible(requirement);
    const opening = this.free.full ? null : this.openingNow(slot, requirement, eligible, this.heldBy(slot));
    if (opening !== null) {
      this.enterAt(slot, opening, reason);
      return 'STARTED';
    }
    return whyNeverFits(requirement, eligible) === null ? 'BLOCKED' : 'CANNOT_RUN';
  }

  /**
   * Reserves for the job the earliest instant at which it fits, by the planned ends of the runs. The promise keeps its
   * age if the last cycle made one to the same job.
   */
  reserve(slot: number): void {
    const { entry, now, free } = this;
    const requirement = this.requirement(slot);
    const held = this.heldBy(slot);
    const eligible = this.eligible(requirement);
    const found = free.earliestOpening(requirement, eligible, this.work(slot), this.limit(slot), held);
    if (found === null) return;
    const { at, end, placement, pools } = found;
    free.promise(holdOf(requirement, placement, pools), at, end);
    this.reservation = {
      siteId: entry.site.id,
      jobId: entry.queue.ids[slot] as number,
      at,
      allocations: allocationsOf(placement),
      pools: amountsOf(pools),
      madeAt: held?.madeAt ?? now,
    };
  }

  /**
   * Gives the job to the site's own scheduler, if the site could ever run it, copies of its licenses are free, and a run that begins now
   * reaches into no window by its limit.
   */
  handOver(slot: number): boolean {
    const requirement = this.requirement(slot);
    const eligible = this.eligible(requirement);
    if (this.free.full || whyNeverFits(requirement, eligible) !== null) return false;
    if (isTooLong(this.entry.site, (this.entry.queue.jobs[slot] as Job).runTimeLimitS)) return false;
    const until = this.now + this.entry.queue.limit(slot);
    if (this.closedTimes.some(({ from }) => from < until)) return false;
    const placement = { ...NO_MACHINES, benchmark: this.entry.resources.bestBenchmark };
    const duration = this.work(slot) / placement.benchmark;
    const end = this.now + duration;
    const pools = this.free.poolsFrom(this.now, end, true, eligible, end, null);
    if (pools === null) return false;
    this.enter(slot, placement, duration, pools, ReasonCode.HANDED_OVER);
    this.handOvers = (this.handOvers as number) - 1;
    return true;
  }

  private get closedTimes(): readonly Held[] {
    const { grid, entry, now } = this;
    this.closed ??= [...grid.held.values()].filter(
      ({ by, ends, siteId, to }) =>
        by === 'WINDOW' && ends === 'LIMIT' && siteId === entry.site.id && to > now,
    );
    return this.closed;
  }

  /** Takes room for a job of another scheduler's queue, if it fits now. */
  takeRoom(job: Job, requirement: Requirement): boolean {
    const eligible = this.eligible(requirement);
    const limit = limitAt(job, this.entry.site);
    const work = this.entry.resources.plannedWork(job.estimateS * job.benchmark, limit);
    const opening = this.free.full ? null : this.free.openingNow(requirement, eligible, work, limit);
    if (opening === null) return false;
    const { placement, pools } = opening;
    this.free.start(runInMind(requirement, placement, pools, job.id, this.now + work / placement.benchmark));
    return true;
  }

  /** Goes on beside a reservation that stands. `beside`: the room at its instant, less what it takes. */
  resume(reservation: Reservation, beside: Room): void {
    this.reservation = reservation;
    this.free.resume(reservation.at, beside);
  }

  /** Whether the job might start beside the reservation: a quick test, true of all that can. */
  mightStart(slot: number): boolean {
    if (this.promised?.has(slot)) return false;
    const requirement = this.requirement(slot);
    if (this.free.mayJoin(requirement, this.userOf(slot))) return true;
    if (requirement.cpusPerTask > this.mostFreeCpus) return false;
    const known = this.bounds.get(requirement.index);
    return this.work(slot) <= (Number.isNaN(known) ? this.bound(requirement) : known);
  }

  /**
   * Starts the job if it fits now and cannot delay the reservation: it ends by then, or it takes only what the reservation
   * leaves free. Decision: "the first eligible machine" is the first on which both hold.
   */
  backfill(slot: number): boolean {
    if (!this.canReserve) return this.start(slot, ReasonCode.FITTED_OUT_OF_TURN) === 'STARTED';
    if (!this.mightStart(slot)) return false;
    const requirement = this.requirement(slot);
    const eligible = this.eligible(requirement);
    const opening = this.openingNow(slot, requirement, eligible, null);
    if (opening !== null) this.enterAt(slot, opening, this.reasonOutOfTurn(opening));
    // The next job of the class is tested against what is left now.
    this.bound(requirement);
    return opening !== null;
  }

  /** Why a waiting job of the class does not start, with what is free after the starts of this pass. */
  whyWaiting(requirement: Requirement): ReasonCode {
    const eligible = this.eligible(requirement);
    const never = whyNeverFits(requirement, eligible);
    if (never !== null) return never;
    if (this.free.full) return ReasonCode.MAX_RUNNING_JOBS_REACHED;
    if (this.handOvers !== null) {
      if (!hasCopies(eligible, this.free)) return ReasonCode.LICENSES_BUSY;
      const isHeldBack = this.handOvers > 0 && !this.full && this.closedTimes.length > 0;
      return isHeldBack ? ReasonCode.RESERVED : ReasonCode.SITE_SCHEDULER_FULL;
    }
    if (!eligible.shared && requirement.cpusPerTask > this.mostFreeCpus) return ReasonCode.CPUS_BUSY;
    const busy = whyBusy(requirement, eligible, this.free);
    if (busy !== null) return busy;
    return this.reservation === null ? ReasonCode.JOBS_AHEAD : ReasonCode.WOULD_DELAY_RESERVATION;
  }

  /**
   * Starts the jobs for which others were stopped, as far as their room is free, whatever the policy's order is; the policy then finds
   * the room of the others held. In the order in which they were promised it.
   */
  startPromised(): void {
    const { resources } = this.entry;
    if (resources.holds.length === 0) return;
    const held = resources.holds
      .filter(({ jobId, to }) => jobId !== undefined && to > this.now)
      .sort((a, b) => a.from - b.from || (a.jobId as number) - (b.jobId as number));
    if (held.length === 0) return;
    const slots = new Set<number>();
    this.promised = slots;
    for (const hold of held) {
      const slot = this.grid.slotOf(hold.jobId as number);
      slots.add(slot);
      const requirement = this.requirement(slot);
      const eligible = this.eligible(requirement);
      const { from, to, certain, copies = [] } = hold;
      const all = { ...hold, licenses: copies };
      this.free.give(all, from, to, certain);
      const opening =
        this.full || this.free.full
          ? null
          : this.free.openingNow(requirement, eligible, this.work(slot), this.limit(slot));
      if (opening === null) this.free.take(all, from, to, certain);
      else {
        this.enterAt(slot, opening, ReasonCode.ROOM_MADE);
        this.kept = [...this.kept, { hold: all, run: this.free.begun.at(-1) as RunState }];
      }
    }
    this.keepRuns(slots.size - this.kept.length);
  }

  /** Each run that is being stopped leaves one more for those who wait for their room; further ones are kept for them. */
  private keepRuns(promised: number): void {
    const { runs, maxRuns } = this.entry.resources;
    if (maxRuns === Infinity) return;
    const stopping = runs.reduce((sum, { run }) => (run.stopsAt === undefined ? sum : sum + 1), 0);
    this.keptRuns = Math.max(0, promised - stopping);
    this.free.running += this.keptRuns;
  }

  /** Whether there is room for a job of the class now, reservations apart. */
  fitsNow(requirement: Requirement): boolean {
    return !this.free.full && whyBusy(requirement, this.eligible(requirement), this.free) === null;
  }

  /** Leaves out those that are not ready, in mind already: they go on waiting. */
  keepStarts(isReady: (run: RunState) => boolean): void {
    const { free, starts } = this;
    const ready = free.begun.map(isReady);
    this.starts = starts.filter((_, i) => ready[i]);
    free.begun = free.begun.filter((_, i) => ready[i]);
  }

  /** Makes the starts runs of the grid. */
  accept(runOf: (start: Start) => Run): void {
    const { starts } = this;
    const { begun } = this.free;
    for (let i = 0; i < starts.length; i++)
      this.grid.adoptRun(runOf(starts[i] as Start), begun[i] as RunState);
  }

  /** Starts the job there, whether or not the rules of `start` and `backfill` would; the room must be free. */
  enter(
    slot: number,
    placement: Placement,
    duration: number,
    pools: readonly PoolCopies[],
    reason: ReasonCode,
  ): void {
    const jobId = this.entry.queue.ids[slot] as number;
    this.free.start(runInMind(this.requirement(slot), placement, pools, jobId, this.now + duration));
    const start: Start = {
      jobId,
      siteId: this.entry.site.id,
      allocations: allocationsOf(placement),
      pools: amountsOf(pools),
      plannedDuration: duration,
      reason,
      explanation: UNEXPLAINED,
    };
    // Most passes start one job or none, and an array that grows from nothing takes room for 17.
    if (this.starts.length === 0) this.starts = [start];
    else this.starts.push(start);
  }

  eligible(requirement: Requirement): EligibleMachines {
    return this.entry.resources.eligible(requirement.signature);
  }

  requirement(slot: number): Requirement {
    return this.entry.queue.requirements[slot] as Requirement;
  }

  /** Planned duration on a machine of power 1. */
  work(slot: number): number {
    const { queue, resources } = this.entry;
    return resources.plannedWork(queue.works[slot] as number, queue.limit(slot));
  }

  /** Seconds after which its run is stopped; Infinity: never, or nothing is held that limits matter for. */
  limit(slot: number): number {
    const { resources, queue } = this.entry;
    const matters = resources.holds.length > 0 || (queue.licensed > 0 && this.grid.holdsPools);
    return matters ? queue.limit(slot) : Infinity;
  }

  /** CPUs of all its tasks. */
  cpus(slot: number): number {
    return cpusOf(this.requirement(slot));
  }

  private userOf(slot: number): number {
    return (this.entry.queue.jobs[slot] as Job).userId;
  }

  /** Where it starts now beside runs of its user (`Timeline.joiningNow`), and beside what is promised in the profile; null: nowhere. */
  joiningNow(slot: number, profile: Profile | null, holder: Reservation | null = null): Opening | null {
    const requirement = this.requirement(slot);
    const eligible = this.eligible(requirement);
    const [work, limit] = [this.work(slot), this.limit(slot)];
    return this.free.joiningNow(this.userOf(slot), requirement, eligible, work, limit, holder, profile);
  }

  private openingNow(
    slot: number,
    requirement: Requirement,
    eligible: EligibleMachines,
    holder: Reservation | null,
  ): Opening | null {
    const [work, limit] = [this.work(slot), this.limit(slot)];
    const opening = this.free.openingNow(requirement, eligible, work, limit, holder);
    return opening ?? this.joiningNow(slot, null, holder);
  }

  private enterAt(slot: number, { placement, pools }: Opening, reason: ReasonCode): void {
    this.enter(slot, placement, this.work(slot) / placement.benchmark, pools, reason);
  }

  private reasonOutOfTurn({ end }: Opening): ReasonCode {
    if (this.reservation === null) return ReasonCode.FITTED_OUT_OF_TURN;
    return end <= this.reservation.at
      ? ReasonCode.BACKFILLED_BEFORE_RESERVATION
      : ReasonCode.BACKFILLED_BESIDE_RESERVATION;
  }

  /** Notes for the class the most work that a job of it may have to start. */
  private bound(requirement: Requirement): number {
    const eligible = this.eligible(requirement);
    const most = hasCopies(eligible, this.free) ? this.free.mostWork(requirement, eligible) : -1;
    this.bounds.set(requirement.index, most);
    return most;
  }

  /** The stored reservation, if it is this job's. */
  private heldBy(slot: number): Reservation | null {
    const { reservation, queue } = this.entry;
    return reservation !== null && reservation.jobId === queue.ids[slot] ? reservation : null;
  }
}

/** One pass for each site, for a driver with so many cycles that making one for each would cost too much: none outlives its cycle. */
export class SitePasses {
  private readonly byEntry = new Map<SiteEntry, SitePass>();
  /** The one that was asked for last: mostly it is asked for again. */
  private last: SitePass | null = null;

  of(grid: Grid, entry: SiteEntry): SitePass {
    if (this.last?.entry === entry) return this.last;
    let pass = this.byEntry.get(entry);
    if (pass === undefined) {
      pass = new SitePass(grid, entry);
      this.byEntry.set(entry, pass);
    }
    this.last = pass;
    return pass;
  }
}
