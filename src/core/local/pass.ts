/**
 * One look of a local policy at its site: what starts now, and what is reserved. The policy says in which order jobs are
 * tried and which rule applies to them (`start`, `reserve`, `backfill`); the pass knows machines and licenses.
 *
 * Starts are entered into the site's resources as they are decided, so that each sees what the ones before have left,
 * and `undo` takes them out again: a cycle leaves the grid as it was.
 */
import type { Grid, SiteEntry } from '../grid.js';
import type { Reservation, Run, Start } from '../model.js';
import { ReasonCode } from '../reasons.js';
import { whyNeverFits } from '../resources/eligibility.js';
import {
  allocationsOf,
  cpusIn,
  memoryMbIn,
  onOne,
  type Placement,
  place,
  placeNow,
  Room,
  roomFor,
} from '../resources/placement.js';
import type { Requirement } from '../resources/requirements.js';
import {
  type Able,
  freeCopies,
  type LicenseState,
  type MachineState,
  occupy,
  type RunState,
  vacate,
} from '../resources/site-resources.js';
import { type Hold, Timeline } from '../resources/timeline.js';
import { Claims } from './claims.js';
import type { Promises } from './conservative.js';
import type { Walk } from './walk.js';

export interface PassStart {
  slot: number;
  run: RunState;
  placement: Placement;
  plannedDuration: number;
  reason: ReasonCode;
}

/** What became of the job that was tried first. */
export type HeadOutcome = 'STARTED' | 'BLOCKED' | 'CANNOT_RUN';

let stamps = 0;
const NO_STARTS: PassStart[] = [];

export class SitePass {
  starts: PassStart[] = NO_STARTS;
  reservation: Reservation | null = null;
  /** What a policy that promises has promised, and when the next of it comes due. */
  promises: Promises | null = null;
  wakeAt = Infinity;
  /** Nothing else can start, and that is for `Settled` to note. */
  settles = false;
  private claimsIfAsked: Claims | null = null;
  private mostFreeCpusIfAsked = -1;
  private readonly stamp = ++stamps;

  constructor(
    readonly grid: Grid,
    readonly entry: SiteEntry,
    readonly now: number,
    private readonly maxStarts: number,
    /** Whether promises may move up; by what has come free unless said. */
    readonly compress?: boolean,
  ) {}

  /** CPUs free on the machine with the most of them, when the pass began: a quick refusal for whole classes. */
  private get mostFreeCpus(): number {
    if (this.mostFreeCpusIfAsked === -1) {
      this.mostFreeCpusIfAsked = 0;
      for (const { freeCpus } of this.entry.resources.machines) {
        if (freeCpus > this.mostFreeCpusIfAsked) this.mostFreeCpusIfAsked = freeCpus;
      }
    }
    return this.mostFreeCpusIfAsked;
  }

  /** The policy looked at the first jobs of the queue only: when some of them start, others come into its sight. */
  goesOnBehindStarts = false;

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
    if (this.entry.resources.full) return true;
    for (const state of this.entry.resources.machines) {
      if (state.freeCpus > 0 && state.machine.available) return false;
    }
    return true;
  }

  /**
   * Starts the job if it fits now. CANNOT_RUN: not even with every run over; it waits for a machine or a license to come
   * back, and nobody waits behind it.
   */
  start(slot: number, reason: ReasonCode = ReasonCode.HEAD): HeadOutcome {
    const requirement = this.requirement(slot);
    const able = this.able(requirement);
    const placement = this.entry.resources.full ? null : placeNow(requirement, able);
    if (placement !== null) {
      const duration = this.work(slot) / placement.benchmark;
      const pools =
        able.pools.length === 0 ? NO_POOLS : this.poolsNow(able, this.now + duration, this.heldBy(slot));
      if (pools !== null) {
        this.enter(slot, placement, duration, pools, reason);
        return 'STARTED';
      }
    }
    return whyNeverFits(requirement, able) === null ? 'BLOCKED' : 'CANNOT_RUN';
  }

  /** Takes over what the last cycle has settled, if it still holds: the walk goes on behind the jobs that it saw. */
  resume(walk: Walk): boolean {
    const { entry } = this;
    if (!entry.settled.holds(entry, this.now) || !walk.skip(entry.settled.jobs)) return false;
    this.reservation = entry.reservation;
    return true;
  }

  /**
   * Reserves for the job the earliest instant at which it fits, by the planned ends of the runs. The promise keeps its
   * age if the last cycle made one to the same job.
   */
  reserve(slot: number): void {
    const { entry, now } = this;
    const requirement = this.requirement(slot);
    const able = this.able(requirement);
    const held = this.heldBy(slot);
    const work = this.work(slot);
    const found = earliestStart(this, requirement, able, work, held);
    if (found === null) return;
    const { at, placement, pools } = found;
    for (const state of entry.resources.machines) {
      state.leftCpus = state.futureCpus;
      state.leftMemoryMb = state.futureMemoryMb;
    }
    charge(requirement, placement);
    const siteId = entry.site.id;
    const licenseIds = pools.length === 0 ? NO_IDS : pools.map((pool) => pool.license.id);
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
    entry.resources.leftBy = this.reservation;
  }

  /** Whether the job might start beside the reservation: a quick test, true of all that can. */
  mightStart(slot: number): boolean {
    const requirement = this.requirement(slot);
    if (requirement.cpusPerTask > this.mostFreeCpus) return false;
    if (requirement.passStamp !== this.stamp) this.bound(requirement);
    return this.work(slot) <= requirement.workBound;
  }

  /**
   * Starts the job if it fits now and cannot delay the reservation: it ends by then, or it takes only what the reservation
   * leaves free. Decision: "the first eligible machine" is the first on which both hold.
   */
  backfill(slot: number): boolean {
    if (!this.canReserve) return this.start(slot, ReasonCode.FITTED_OUT_OF_TURN) === 'STARTED';
    if (!this.mightStart(slot)) return false;
    const requirement = this.requirement(slot);
    const able = this.able(requirement);
    const started =
      requirement.tasks === 1
        ? this.backfillOne(slot, requirement, able)
        : this.backfillOn(slot, able, place(requirement, able.machines, Room.NOW), false) ||
          this.backfillOn(slot, able, place(requirement, able.machines, Room.BESIDE), true);
    // Room only shrinks: the next job of the class is tested against what is left now.
    this.bound(requirement);
    return started;
  }

  /** Why a waiting job of the class does not start, with what is free after the starts of this pass. */
  whyWaiting(requirement: Requirement): ReasonCode {
    const able = this.able(requirement);
    const never = whyNeverFits(requirement, able);
    if (never !== null) return never;
    if (this.entry.resources.full) return ReasonCode.RUNS_LIMITED;
    if (!able.shared && requirement.cpusPerTask > this.mostFreeCpus) return ReasonCode.CPUS_BUSY;
    const busy = whyBusy(requirement, able);
    if (busy !== null) return busy;
    return this.reservation === null ? ReasonCode.NOT_HEAD : ReasonCode.WOULD_DELAY_RESERVATION;
  }

  /** Whether there is room for a job of the class now, reservations apart. */
  fitsNow(requirement: Requirement): boolean {
    return !this.entry.resources.full && whyBusy(requirement, this.able(requirement)) === null;
  }

  /** Makes the starts runs of the grid: nothing is left to undo. `plans`: what the plan says of each. */
  accept(plans: readonly Start[], runOf: (start: Start) => Run): void {
    for (let i = 0; i < plans.length; i++) {
      this.grid.adoptRun(runOf(plans[i] as Start), (this.starts[i] as PassStart).run);
    }
    this.starts = NO_STARTS;
  }

  /** Takes back every start. */
  undo(): void {
    for (let i = this.starts.length - 1; i >= 0; i--) {
      const { run } = this.starts[i] as PassStart;
      vacate(run);
      this.entry.resources.removeRun(run);
    }
  }

  get claims(): Claims {
    this.claimsIfAsked ??= new Claims(this.grid, this.entry.site.id, this.now);
    return this.claimsIfAsked;
  }

  private backfillOne(slot: number, requirement: Requirement, able: Able): boolean {
    const { machines } = able;
    for (let i = 0; i < machines.length; i++) {
      const state = machines[i] as (typeof machines)[number];
      if (roomFor(requirement, state, Room.NOW) === 0) continue;
      const beside = this.reservation === null || roomFor(requirement, state, Room.BESIDE) > 0;
      if (this.backfillOn(slot, able, onOne(state), beside)) return true;
    }
    return false;
  }

  /** `beside`: the placement leaves the reservation its room however long the job runs. */
  private backfillOn(slot: number, able: Able, placement: Placement | null, beside: boolean): boolean {
    if (placement === null) return false;
    const duration = this.work(slot) / placement.benchmark;
    const end = this.now + duration;
    const before = this.reservation === null || end <= this.reservation.at;
    if (!before && !beside) return false;
    const pools = able.pools.length === 0 ? NO_POOLS : this.poolsNow(able, end, null);
    if (pools === null) return false;
    if (!before) charge(this.requirement(slot), placement);
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
  private poolsNow(able: Able, end: number, holder: Reservation | null): LicenseState[] | null {
    return pickPools(able, (pool) => this.claims.allowsNow(pool, end, holder));
  }

  /**
   * Notes for the class the most work that a job of it may have to start: all, if it fits beside the reservation; what
   * ends by the reservation on the best machine with room; none. Slightly generous, for `backfill` decides exactly.
   */
  private bound(requirement: Requirement): void {
    requirement.passStamp = this.stamp;
    requirement.workBound = -1;
    const able = this.able(requirement);
    for (const pools of able.pools) if (!pools.some((pool) => freeCopies(pool) > 0)) return;
    let benchmark = 0;
    if (requirement.tasks === 1) {
      for (const state of able.machines) {
        if (roomFor(requirement, state, Room.NOW) === 0) continue;
        if (this.reservation === null || roomFor(requirement, state, Room.BESIDE) > 0) {
          requirement.workBound = Infinity;
          return;
        }
        benchmark = Math.max(benchmark, state.machine.benchmark);
      }
    } else {
      const now = place(requirement, able.machines, Room.NOW);
      if (
        now !== null &&
        (this.reservation === null || place(requirement, able.machines, Room.BESIDE) !== null)
      ) {
        requirement.workBound = Infinity;
        return;
      }
      benchmark = now?.benchmark ?? 0;
    }
    if (benchmark > 0 && this.reservation !== null) {
      requirement.workBound = (this.reservation.at - this.now) * benchmark * (1 + 1e-9);
    }
  }

  /** Starts the job there, whether or not the rules of `start` and `backfill` would; the room must be free. */
  enter(
    slot: number,
    placement: Placement,
    duration: number,
    pools: LicenseState[],
    reason: ReasonCode,
  ): void {
    const { queue, resources } = this.entry;
    const requirement = this.requirement(slot);
    const run: RunState = {
      run: resources.undecided,
      jobId: queue.ids[slot] as number,
      end: this.now + duration,
      machines: placement.machines,
      cpus: cpusIn(placement, requirement),
      memoryMb: memoryMbIn(placement, requirement),
      licenses: pools,
    };
    occupy(run);
    resources.addRun(run);
    for (const pool of pools) this.claims.touched(pool);
    const start: PassStart = { slot, run, placement, plannedDuration: duration, reason };
    // Most passes start one job or none, and an array that grows from nothing takes room for 17.
    if (this.starts.length === 0) this.starts = [start];
    else this.starts.push(start);
  }

  /** The stored reservation, if it is this job's. */
  private heldBy(slot: number): Reservation | null {
    const { reservation, queue } = this.entry;
    return reservation !== null && reservation.jobId === queue.ids[slot] ? reservation : null;
  }

  private able(requirement: Requirement): Able {
    return this.entry.resources.able(requirement.signature);
  }

  private requirement(slot: number): Requirement {
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
}

const NO_POOLS: LicenseState[] = [];
const NO_IDS: number[] = [];

/** The first pool that passes the test for each kind, null when there is none for one. */
export function pickPools(able: Able, test: (pool: LicenseState) => boolean): LicenseState[] | null {
  const picked: LicenseState[] = [];
  for (const pools of able.pools) {
    const pool = pools.find(test);
    if (pool === undefined) return null;
    picked.push(pool);
  }
  return picked;
}

/** Which resource the class lacks now, null when it fits. */
export function whyBusy(requirement: Requirement, able: Able): ReasonCode | null {
  const { cpusPerTask, memoryMbPerTask, tasks } = requirement;
  let byCpus = 0;
  let byBoth = 0;
  for (let i = 0; i < able.machines.length && byBoth < tasks; i++) {
    const state = able.machines[i] as MachineState;
    if (state.freeCpus < cpusPerTask) continue;
    byCpus += able.shared ? 1 : Math.floor(state.freeCpus / cpusPerTask);
    if (state.freeMemoryMb >= memoryMbPerTask)
      byBoth += able.shared ? 1 : roomFor(requirement, state, Room.NOW);
  }
  if (byCpus < tasks) return able.shared ? ReasonCode.PLACES_BUSY : ReasonCode.CPUS_BUSY;
  if (byBoth < tasks) return ReasonCode.MEMORY_BUSY;
  return able.pools.every((pools) => pools.some((pool) => freeCopies(pool) > 0))
    ? null
    : ReasonCode.LICENSES_BUSY;
}

/** What the placement takes is no longer left beside the reservation. */
function charge(requirement: Requirement, placement: Placement): void {
  for (let i = 0; i < placement.machines.length; i++) {
    const state = placement.machines[i] as Placement['machines'][number];
    const tasks = placement.tasks[i] as number;
    state.leftCpus -= tasks * requirement.cpusPerTask;
    state.leftMemoryMb -= tasks * requirement.memoryMbPerTask;
  }
}

/** A copy of each kind that can be taken at `at` and kept until `end`; null when one is missing. */
function poolsAt(
  claims: Claims,
  able: Able,
  at: number,
  end: number,
  holder: Reservation | null,
): LicenseState[] | null {
  return pickPools(able, (pool) => claims.allowsAt(pool, at, end, holder));
}

/** Whether one of the machines has room for a task now. */
function fitsOne(requirement: Requirement, machines: readonly MachineState[]): boolean {
  for (let i = 0; i < machines.length; i++) {
    if (roomFor(requirement, machines[i] as MachineState, Room.NOW) > 0) return true;
  }
  return false;
}

/**
 * The earliest instant at which a job fits if runs end as planned, with its placement and pools; null when it fits never.
 * Leaves the timeline's scratch fields at that instant. With a `hold` (what `noteLeft` was told of) the job may not
 * take the held room: before the hold begins it ends by then or fits beside it.
 */
export function earliestStart(
  view: { grid: Grid; entry: SiteEntry; now: number; claims: Claims },
  requirement: Requirement,
  able: Able,
  work: number,
  holder: Reservation | null,
  hold: Hold | null = null,
): { at: number; placement: Placement; pools: LicenseState[] } | null {
  const instants = able.pools.length === 0 ? undefined : view.claims.ends();
  const timeline = new Timeline(view.entry.resources, able, view.now, instants, hold);
  // Several tasks may need what many small releases add up to; one task fits only where a machine got room for it.
  let possible = requirement.tasks > 1 || hold !== null || fitsOne(requirement, able.machines);
  while (timeline.advance()) {
    possible ||= timeline.madeRoomFor(requirement);
    if (!possible) continue;
    const { at } = timeline;
    let placement = place(requirement, able.machines, Room.FUTURE);
    if (placement !== null && hold !== null && at < hold.at && at + work / placement.benchmark > hold.at) {
      placement = place(requirement, able.machines, Room.FUTURE_BESIDE);
    }
    if (placement === null) continue;
    const end = at + work / placement.benchmark;
    const pools = able.pools.length === 0 ? NO_POOLS : poolsAt(view.claims, able, at, end, holder);
    if (pools !== null) return { at, placement, pools };
  }
  return null;
}
