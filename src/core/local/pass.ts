/**
 * One look of a local policy at its site: what starts now, and what is reserved. The policy says in which order jobs are
 * tried and which rule applies to them (`start`, `reserve`, `backfill`); the pass knows machines and licenses.
 *
 * The grid is only read. What a start takes is taken in mind (`free`), so that each sees what the ones before have left.
 */
import { addTo, type Room } from '../grid/amounts.js';
import type { Grid, SiteEntry, SiteMemory } from '../grid/grid.js';
import type { Requirement } from '../grid/requirements.js';
import type {
  EligibleMachines,
  LicenseState,
  MachineState,
  Placement,
  RunState,
} from '../grid/site-resources.js';
import type { Reservation, Run, Start } from '../model.js';
import { ReasonCode } from '../reasons.js';
import { whyBusy, whyNeverFits } from '../resources/eligibility.js';
import { FreeResources, hasCopies, runInMind } from '../resources/free.js';
import { allocationsOf, idsOf, oneFits, pickPools, place, placeNow } from '../resources/placement.js';
import { Timeline } from '../resources/timeline.js';
import { Claims } from './claims.js';

export interface PassStart {
  slot: number;
  run: RunState;
  placement: Placement;
  plannedDuration: number;
  reason: ReasonCode;
}

/** What became of the job that was tried first. */
export type HeadOutcome = 'STARTED' | 'BLOCKED' | 'CANNOT_RUN';

const NO_STARTS: PassStart[] = [];

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

export class SitePass {
  readonly free: FreeResources;
  now = 0;
  /** The driver's world is the grid: what is decided is carried out at once. */
  carriesOut = false;
  /** Whether promises may move up; by what has come free unless said. */
  compress: boolean | undefined;
  starts: PassStart[] = NO_STARTS;
  reservation: Reservation | null = null;
  /** The room at the instant of the reservation that this pass made, or goes on with, less what it takes and later starts have taken. */
  beside: Room | null = null;
  /** What the next cycle is to find again, and when it must come at the latest. */
  memory: SiteMemory | null = null;
  wakeAt = Infinity;
  /** The policy looked at the first jobs of the queue only: when some of them start, others come into its sight. */
  goesOnBehindStarts = false;
  private maxStarts = Infinity;
  private claimsIfAsked: Claims | null = null;
  private mostFreeCpusIfAsked = -1;
  /** By class, where it was asked for: see `bound`. */
  private readonly bounds = new ClassNotes();

  constructor(
    readonly grid: Grid,
    readonly entry: SiteEntry,
  ) {
    this.free = new FreeResources(entry.resources);
  }

  /** Begins to look, whatever it looked at before. */
  begin(now: number, maxStarts: number, carriesOut: boolean, compress?: boolean): this {
    this.now = now;
    this.maxStarts = maxStarts;
    this.carriesOut = carriesOut;
    this.compress = compress;
    this.free.begin();
    this.starts = NO_STARTS;
    this.reservation = null;
    this.beside = null;
    this.memory = null;
    this.wakeAt = Infinity;
    this.goesOnBehindStarts = false;
    this.claimsIfAsked = null;
    this.mostFreeCpusIfAsked = -1;
    this.bounds.clear();
    return this;
  }

  /** CPUs free on the machine with the most of them, when the pass began: a quick refusal for whole classes. */
  private get mostFreeCpus(): number {
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
    return true;
  }

  get claims(): Claims {
    this.claimsIfAsked ??= new Claims(this.grid, this.entry.site.id, this.now, this.free.copies);
    return this.claimsIfAsked;
  }

  /**
   * Starts the job if it fits now. CANNOT_RUN: not even with every run over; it waits for a machine or a license to come
   * back, and nobody waits behind it.
   */
  start(slot: number, reason: ReasonCode = ReasonCode.HEAD): HeadOutcome {
    const requirement = this.requirement(slot);
    const eligible = this.eligible(requirement);
    const placement = this.free.full ? null : placeNow(requirement, eligible, this.free);
    if (placement !== null) {
      const duration = this.work(slot) / placement.benchmark;
      const pools = this.poolsNow(eligible, this.now + duration, this.heldBy(slot));
      if (pools !== null) {
        this.enter(slot, placement, duration, pools, reason);
        return 'STARTED';
      }
    }
    return whyNeverFits(requirement, eligible) === null ? 'BLOCKED' : 'CANNOT_RUN';
  }

  /**
   * Reserves for the job the earliest instant at which it fits, by the planned ends of the runs. The promise keeps its
   * age if the last cycle made one to the same job.
   */
  reserve(slot: number): void {
    const { entry, now } = this;
    const requirement = this.requirement(slot);
    const held = this.heldBy(slot);
    const work = this.work(slot);
    const found = earliestStart(this, requirement, this.eligible(requirement), work, held);
    if (found === null) return;
    const { at, placement, pools, room } = found;
    this.beside = room;
    this.charge(requirement, placement);
    const siteId = entry.site.id;
    const licenseIds = idsOf(pools);
    const madeAt = held?.madeAt ?? now;
    if (licenseIds.length > 0) {
      this.claims.setOwn({
        siteId,
        madeAt,
        at,
        end: at + work / placement.benchmark,
        licenseIds,
      });
    }
    const jobId = entry.queue.ids[slot] as number;
    this.reservation = {
      siteId,
      jobId,
      at,
      allocations: allocationsOf(placement),
      licenseIds,
      madeAt,
    };
  }

  /** Goes on beside a reservation that stands. */
  resume(reservation: Reservation, beside: Room): void {
    this.reservation = reservation;
    this.beside = this.carriesOut ? beside : beside.slice();
  }

  /** Whether the job might start beside the reservation: a quick test, true of all that can. */
  mightStart(slot: number): boolean {
    const requirement = this.requirement(slot);
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
    const { machines } = eligible;
    const started =
      requirement.tasks === 1
        ? this.backfillOne(slot, requirement, eligible)
        : this.backfillOn(slot, eligible, place(requirement, machines, this.free.room), false) ||
          this.backfillOn(slot, eligible, place(requirement, machines, this.free.room, this.beside), true);
    // Room only shrinks: the next job of the class is tested against what is left now.
    this.bound(requirement);
    return started;
  }

  /** Why a waiting job of the class does not start, with what is free after the starts of this pass. */
  whyWaiting(requirement: Requirement): ReasonCode {
    const eligible = this.eligible(requirement);
    const never = whyNeverFits(requirement, eligible);
    if (never !== null) return never;
    if (this.free.full) return ReasonCode.MAX_RUNNING_JOBS_REACHED;
    if (!eligible.shared && requirement.cpusPerTask > this.mostFreeCpus) return ReasonCode.CPUS_BUSY;
    const busy = whyBusy(requirement, eligible, this.free);
    if (busy !== null) return busy;
    return this.reservation === null ? ReasonCode.JOBS_AHEAD : ReasonCode.WOULD_DELAY_RESERVATION;
  }

  /** Whether there is room for a job of the class now, reservations apart. */
  fitsNow(requirement: Requirement): boolean {
    return !this.free.full && whyBusy(requirement, this.eligible(requirement), this.free) === null;
  }

  /** Makes the starts runs of the grid. `plans`: what the plan says of each. */
  accept(plans: readonly Start[], runOf: (start: Start) => Run): void {
    for (let i = 0; i < plans.length; i++)
      this.grid.adoptRun(runOf(plans[i] as Start), (this.starts[i] as PassStart).run);
  }

  /** Starts the job there, whether or not the rules of `start` and `backfill` would; the room must be free. */
  enter(
    slot: number,
    placement: Placement,
    duration: number,
    pools: readonly LicenseState[],
    reason: ReasonCode,
  ): void {
    const jobId = this.entry.queue.ids[slot] as number;
    const run = runInMind(this.requirement(slot), placement, pools, jobId, this.now + duration);
    this.free.take(run);
    const start: PassStart = { slot, run, placement, plannedDuration: duration, reason };
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
    return this.entry.queue.works[slot] as number;
  }

  /** CPUs of all its tasks. */
  cpus(slot: number): number {
    const { tasks, cpusPerTask } = this.requirement(slot);
    return tasks * cpusPerTask;
  }

  private backfillOne(slot: number, requirement: Requirement, eligible: EligibleMachines): boolean {
    const { machines } = eligible;
    for (let i = 0; i < machines.length; i++) {
      const state = machines[i] as MachineState;
      if (!oneFits(requirement, state, this.free.room, null)) continue;
      const beside = oneFits(requirement, state, this.free.room, this.beside);
      if (this.backfillOn(slot, eligible, state.alone, beside)) return true;
    }
    return false;
  }

  /** `beside`: the placement leaves the reservation its room however long the job runs. */
  private backfillOn(
    slot: number,
    eligible: EligibleMachines,
    placement: Placement | null,
    beside: boolean,
  ): boolean {
    if (placement === null) return false;
    const duration = this.work(slot) / placement.benchmark;
    const end = this.now + duration;
    const before = this.reservation === null || end <= this.reservation.at;
    if (!before && !beside) return false;
    const pools = this.poolsNow(eligible, end, null);
    if (pools === null) return false;
    if (!before) this.charge(this.requirement(slot), placement);
    const reason =
      this.reservation === null
        ? ReasonCode.FITTED_OUT_OF_TURN
        : before
          ? ReasonCode.BACKFILLED_BEFORE_RESERVATION
          : ReasonCode.BACKFILLED_BESIDE_RESERVATION;
    this.enter(slot, placement, duration, pools, reason);
    return true;
  }

  /** A free copy for each kind that can be kept until `end`; null when one is missing. */
  private poolsNow(
    eligible: EligibleMachines,
    end: number,
    holder: Reservation | null,
  ): LicenseState[] | null {
    if (eligible.pools.length === 0) return NO_POOLS;
    return pickPools(eligible, (pool) => this.claims.allowsNow(pool, end, holder));
  }

  /**
   * Notes for the class the most work that a job of it may have to start: all, if it fits beside the reservation; what
   * ends by the reservation on the best machine with room; none. Slightly generous, for `backfill` decides exactly.
   */
  private bound(requirement: Requirement): number {
    const most = this.mostWork(requirement);
    this.bounds.set(requirement.index, most);
    return most;
  }

  private mostWork(requirement: Requirement): number {
    const { free, beside, reservation } = this;
    const eligible = this.eligible(requirement);
    if (!hasCopies(eligible, free)) return -1;
    let benchmark = 0;
    if (requirement.tasks === 1) {
      const { machines } = eligible;
      for (let i = 0; i < machines.length; i++) {
        const state = machines[i] as MachineState;
        if (!oneFits(requirement, state, free.room, null)) continue;
        if (oneFits(requirement, state, free.room, beside)) return Infinity;
        benchmark = Math.max(benchmark, state.machine.benchmark);
      }
    } else {
      const now = place(requirement, eligible.machines, free.room);
      if (now !== null && place(requirement, eligible.machines, free.room, beside) !== null) return Infinity;
      benchmark = now?.benchmark ?? 0;
    }
    if (benchmark === 0 || reservation === null) return -1;
    return (reservation.at - this.now) * benchmark * (1 + 1e-9);
  }

  /** What the placement takes is no longer left beside the reservation. */
  private charge({ task }: Requirement, { machines, tasks }: Placement): void {
    const { beside } = this;
    if (beside === null) return;
    for (let i = 0; i < machines.length; i++)
      addTo(task, -(tasks[i] as number), beside, (machines[i] as MachineState).offset);
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

  of(grid: Grid, entry: SiteEntry): SitePass {
    let pass = this.byEntry.get(entry);
    if (pass === undefined) {
      pass = new SitePass(grid, entry);
      this.byEntry.set(entry, pass);
    }
    return pass;
  }
}

/** A site and what is taken of it in mind. */
export type SiteView = Pick<SitePass, 'grid' | 'entry' | 'now' | 'free' | 'claims'> & {
  readonly starts: readonly { run: RunState }[];
};

interface EarliestStart {
  at: number;
  placement: Placement;
  pools: LicenseState[];
  /** On the machines at that instant. */
  room: Room;
}

/** The earliest instant at which a job fits if runs end as planned; null when it fits never. */
export function earliestStart(
  view: SiteView,
  requirement: Requirement,
  eligible: EligibleMachines,
  work: number,
  holder: Reservation | null,
): EarliestStart | null {
  const { free, entry } = view;
  const licensed = eligible.pools.length > 0;
  const others = runsInMind(view, eligible);
  const instants = licensed ? view.claims.ends() : undefined;
  const timeline = new Timeline(entry.resources, free, eligible, view.now, others, instants);
  const { machines } = eligible;
  // Several tasks may need what many small releases add up to; one task fits only where a machine got room for it.
  let possible = requirement.tasks > 1 || place(requirement, machines, free.room) !== null;
  while (timeline.advance()) {
    possible ||= timeline.madeRoomFor(requirement);
    if (!possible) continue;
    const { at } = timeline;
    const placement = place(requirement, machines, timeline.room);
    if (placement === null) continue;
    const end = at + work / placement.benchmark;
    const pools = licensed
      ? pickPools(eligible, (pool) => view.claims.allowsAt(pool, timeline, end, holder))
      : NO_POOLS;
    if (pools !== null) return { at, placement, pools, room: timeline.room };
  }
  return null;
}

const NO_RUNS: readonly RunState[] = [];
/** Shared by all that need no license: never written to. */
const NO_POOLS: LicenseState[] = [];

/** Starts of the pass, and where licenses are in question their holders at other sites, by planned end. */
function runsInMind({ entry, starts }: SiteView, { pools }: EligibleMachines): readonly RunState[] {
  if (starts.length === 0 && pools.length === 0) return NO_RUNS;
  const runs = starts.map(({ run }) => run);
  if (pools.length > 0) {
    const shared = pools.flat().filter(({ license }) => license.siteId === null);
    const holders = new Set(shared.flatMap((pool) => pool.holders));
    for (const run of holders) if (run.run.siteId !== entry.site.id) runs.push({ ...run, machines: [] });
  }
  return runs.sort((a, b) => a.end - b.end || a.jobId - b.jobId);
}
