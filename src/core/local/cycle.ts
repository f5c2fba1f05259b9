/**
 * A site cycle: which of the jobs in a site's queue start now, where, and what is reserved for the first that cannot.
 * Looks at the grid, leaves it as it is, but for what has come with the time (`Grid.advance`); the driver applies the starts that it accepts with `startRun`, and keeps the
 * reservation and the memory with `setReservation` and `keepMemory`.
 */
import { preemptionUnder } from '../classes.js';
import type { Grid, ReservedEntry, SiteEntry, SiteMemory } from '../grid/grid.js';
import type { Requirement } from '../grid/requirements.js';
import { giveTo, type RunState } from '../grid/site-resources.js';
import type { Preemption, Reservation, Run, Start, StartExplanation } from '../model.js';
import { localPolicyOf, localSchedulerOf, type Policy } from '../policy.js';
import { ReasonCode } from '../reasons.js';
import { whyNotUp } from '../resources/eligibility.js';
import { beneath, copiesBeneath, roomBeneath, takeBeneath, takeCopiesBeneath } from './beneath.js';
import { keptOutside, makeRoom, mayMakeRoom } from './make-room.js';
import { SitePass, type SitePasses } from './pass.js';
import type { LocalScheduler } from './policy.js';
import { poolsOf } from './promises.js';
import { handOverLimit } from './registry.js';
import { type Walk, WalkWithout } from './walk.js';

export interface SiteContext {
  now: number;
  policy: Policy;
  /** Cited by the plan; the core does not look at it. */
  policyVersion: number;
  /** Starts in one plan at most. When the plan is `truncated`, apply it and run the cycle again. */
  maxStarts: number;
  /** Count the waiting jobs by reason; true unless said otherwise. A simulator that wants only starts saves the time. */
  countWaiting?: boolean;
  /** Say of each start why; true unless said otherwise. Without it the explanations say nothing. */
  explain?: boolean;
  /**
   * Whether conservative promises may move up. Unless said, the cycle finds out by itself whether room has come free; a
   * driver says it that takes runs away before their end is to be noticed.
   */
  compress?: boolean;
  /**
   * For a driver whose world is the grid itself: every start is accepted and entered in the grid, as the run that this gives for it.
   * Equal to `startRun` for each start of the plan, without checking and building again what the cycle has just found.
   */
  accept?: (start: Start) => Run;
  /** Of the driver: see there. Unless given, each cycle makes a pass of its own. */
  passes?: SitePasses;
}

export interface SitePlan {
  siteId: number;
  policyVersion: number;
  /** In the order in which they were decided. */
  starts: Start[];
  /** What later starts must not delay; null: nothing waits for room, or the policy does not reserve. */
  reservation: Reservation | null;
  /** To be given to `Grid.keepMemory`, for the next cycle to go on from; of a policy that promises, its promises are in it. */
  memory: SiteMemory | null;
  /** A promise comes due then, or something that is held ends: the cycle should run again, if nothing else makes it run. Infinity: none. */
  wakeAt: number;
  /** Jobs that stay in the queue, counted by reason. */
  waitingByReason: Partial<Record<ReasonCode, number>>;
  /** Jobs for which runs of lower ranks are to be stopped. */
  preemptions: readonly Preemption[];
  /** There was more to look at: apply the plan and run the cycle again. */
  truncated: boolean;
}

export function siteCycle(grid: Grid, siteId: number, context: SiteContext): SitePlan {
  grid.advance(context.now);
  const entry = grid.siteEntry(siteId);
  const { site, queue, inside } = entry;
  const { policyVersion } = context;
  const plan: SitePlan = {
    siteId,
    policyVersion,
    starts: NO_STARTS,
    reservation: null,
    memory: null,
    wakeAt: Infinity,
    waitingByReason: context.countWaiting === false ? NOT_COUNTED : {},
    preemptions: NO_PREEMPTIONS,
    truncated: false,
  };
  /** Inside reservations. */
  const begun: RunState[] = [];
  let queued = queue.length;
  for (let i = 0; i < inside.length; i++) queued += (inside[i] as ReservedEntry).queue.length;
  if (queued === 0) return plan;
  if (site.state !== 'UP') {
    const reason = whyNotUp(site.state) as ReasonCode;
    if (context.countWaiting !== false) plan.waitingByReason[reason] = queued;
    return plan;
  }
  // What a policy promises inside a reservation it promises for the cycle: nobody else could take it. A site that schedules itself knows
  // of no reservations of ours.
  if (inside.length > 0 && handOverLimit(localPolicyOf(site, context.policy)) === null)
    for (const part of inside) {
      if (part.queue.length === 0) continue;
      begun.push(...look(grid, part, context, plan, begun).free.begun);
      // What was promised there is held from now on: the others look once it is.
      if (plan.preemptions.length > 0)
        return { ...plan, truncated: true, reservation: entry.reservation, memory: entry.memory };
    }
  if (queue.length > 0) {
    const { reservation, memory } = look(grid, entry, context, plan, begun);
    plan.reservation = reservation;
    plan.memory = memory;
  }
  if (grid.prefersSwitches)
    for (const one of [entry, ...inside]) plan.wakeAt = Math.min(plan.wakeAt, grid.switchesFrom(one));
  return plan;
}

/** Adds to the plan what starts at the site, or inside one of its reservations. `begun`: what the plan has started inside others. */
function look(
  grid: Grid,
  entry: SiteEntry,
  context: SiteContext,
  plan: SitePlan,
  begun: readonly RunState[],
): SitePass {
  const { now, compress, passes, accept } = context;
  const { site, queue, resources } = entry;
  const pass = passes?.of(grid, entry) ?? new SitePass(grid, entry);
  pass.begin(now, context.maxStarts - plan.starts.length, accept !== undefined, compress);
  // Those inside reservations, which the grid does not know yet.
  if (accept === undefined) {
    pass.free.running += plan.starts.length;
    for (const run of begun) if (run.licenses.length > 0) pass.free.beginElsewhere(run);
  }
  const scheduler = localSchedulerOf(site, context.policy);
  const walk = decideIn(pass, scheduler);
  if (entry.part !== null) leaveOutUnready(pass, grid.siteEntry(site.id), accept ? NO_STARTS : plan.starts);
  const { starts } = pass;
  const classes = preemptionUnder(context.policy);
  if (classes !== null && mayMakeRoom(grid, entry))
    plan.preemptions = plan.preemptions.concat(makeRoom(pass, classes));
  plan.wakeAt = Math.min(plan.wakeAt, pass.wakeAt);
  // Something held may be free again then, also a copy that another site holds.
  if (grid.holdsAny)
    for (const { holds } of [resources, ...poolsOf(entry)])
      for (const { to } of holds) if (to > now) plan.wakeAt = Math.min(plan.wakeAt, to);
  const behindStarts = pass.goesOnBehindStarts || pass.free.returns > 0;
  const mayGoOn = pass.full || (behindStarts && starts.length > 0);
  plan.truncated ||= mayGoOn && starts.length < queue.length;
  plan.starts = plan.starts.length === 0 ? starts : [...plan.starts, ...starts];
  if (context.explain !== false)
    for (const start of starts) start.explanation = explanationOf(pass, walk, start);
  if (context.countWaiting !== false)
    for (const [reason, jobs] of Object.entries(countWaiting(pass)) as [ReasonCode, number][])
      plan.waitingByReason[reason] = (plan.waitingByReason[reason] ?? 0) + jobs;
  if (accept !== undefined) pass.accept(accept);
  return pass;
}

/** Has the policy decide about all but the jobs for which others were stopped: these come first. Gives the order of the queue. */
export function decideIn(pass: SitePass, scheduler: LocalScheduler): Walk {
  pass.startPromised();
  const walk = scheduler.walk(pass);
  scheduler.decide(pass, pass.promised === null ? walk : new WalkWithout(walk, pass.promised));
  return walk;
}

/**
 * Runs that began before the reservation may still be on its machines, and the site may have as many runs as it may: starts for which there
 * is no room beneath wait for an end. `others`: starts inside other reservations that are not in the grid yet.
 */
function leaveOutUnready(pass: SitePass, { resources, inside }: SiteEntry, others: readonly Start[]): void {
  if (pass.starts.length === 0) return;
  const room = roomBeneath(resources, inside);
  const copies = copiesBeneath(pass.grid);
  const kept = resources.maxRuns === Infinity ? 0 : keptOutside(resources, pass.now);
  let runs = resources.maxRuns - resources.runs.length - others.length - kept;
  pass.keepStarts((run) => {
    if (runs < 1 || !takeBeneath((pass.entry as ReservedEntry).part, run, room)) return false;
    if (!takeCopiesBeneath(run, copies)) {
      giveTo(room, beneath((pass.entry as ReservedEntry).part, run), 1);
      return false;
    }
    runs--;
    return true;
  });
}

/** Shared, for plans that nobody counts for. */
const NOT_COUNTED: Partial<Record<ReasonCode, number>> = Object.freeze({});
const NO_PREEMPTIONS: readonly Preemption[] = [];
const NO_STARTS: Start[] = [];

function explanationOf(pass: SitePass, walk: Walk, { jobId, reason }: Start): StartExplanation {
  const { grid, entry, reservation } = pass;
  const slot = grid.slotOf(jobId);
  return {
    queued: entry.queue.length,
    order: walk.order,
    orderValue: walk.valueOf(slot),
    terms: walk.termsOf(slot),
    reservation:
      reason === ReasonCode.HEAD || reservation === null
        ? null
        : { jobId: reservation.jobId, at: reservation.at },
  };
}

/** Counts by class of requirements: a reason is found once per class, whatever the length of the queue. */
function countWaiting(pass: SitePass): Partial<Record<ReasonCode, number>> {
  const { requirements } = pass.entry.queue;
  const classes: Requirement[] = [];
  /** By index of the class. */
  const waiting: number[] = [];
  for (const requirement of requirements) {
    if (requirement === undefined) continue;
    const known = waiting[requirement.index];
    if (known === undefined) classes.push(requirement);
    waiting[requirement.index] = (known ?? 0) + 1;
  }
  for (const { jobId } of pass.starts) {
    const { index } = pass.requirement(pass.grid.slotOf(jobId));
    waiting[index] = (waiting[index] as number) - 1;
  }
  const counts: Partial<Record<ReasonCode, number>> = {};
  for (const requirement of classes) {
    const jobs = waiting[requirement.index] as number;
    if (jobs === 0) continue;
    const reason = pass.full && pass.fitsNow(requirement) ? ReasonCode.READY : pass.whyWaiting(requirement);
    counts[reason] = (counts[reason] ?? 0) + jobs;
  }
  return counts;
}
