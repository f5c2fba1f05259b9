/**
 * The dry run: where a job would go if it were dispatched now, with every term of every site, and when the best site
 * would start it. The job need not be in the grid, and the grid stays as it is.
 */
import { beginDispatch } from '../dispatch/cycle.js';
import type { Grid, SiteEntry } from '../grid/grid.js';
import type { Requirement } from '../grid/requirements.js';
import type { EligibleMachines } from '../grid/site-resources.js';
import { Claims, claimOf } from '../local/claims.js';
import { earliestStart, type SiteView } from '../local/pass.js';
import { localKindOf } from '../local/registry.js';
import type { Allocation, DispatchExplanation, Job, Reservation } from '../model.js';
import { localPolicyOf, type Policy } from '../policy.js';
import { type ReasonCode, reasonSentence } from '../reasons.js';
import { EligibleSites, whyNeverFits } from '../resources/eligibility.js';
import { FreeResources, LicenseCopies } from '../resources/free.js';
import { allocationsOf, type FreeCapacity, idsOf, pickPools, placeNow } from '../resources/placement.js';
import type { Opening } from '../resources/profile.js';
import { type Booking, Timeline } from '../resources/timeline.js';

export interface ExplainContext {
  now: number;
  policy: Policy;
}

export interface SiteRanking {
  siteId: number;
  /** From 1, the site that would be chosen; null for sites that are not eligible. */
  rank: number | null;
  terms: Record<string, number>;
  ineligible: ReasonCode | null;
}

export interface PredictedStart {
  siteId: number;
  at: number;
  allocations: Allocation[];
  licenseIds: number[];
  plannedDuration: number;
}

export interface Placing {
  /** Where it would go now; null: nowhere, it would wait. */
  siteId: number | null;
  /** Level-1 priority without boost; null when no site is eligible. */
  priority: number | null;
  /** Why the first site of the ranking, or why none. */
  reason: ReasonCode;
  message: string;
  explanation: DispatchExplanation | null;
  /** All sites: the eligible ones best first, then the others in site order. */
  ranking: SiteRanking[];
  /**
   * At the best site, from the runs that are live and what stands reserved or promised; other jobs queued there are not
   * counted.
   */
  start: PredictedStart | null;
}

export function placement(grid: Grid, job: Job, context: ExplainContext): Placing {
  const requirement = grid.requirementOf(job);
  const eligibility = grid.index(EligibleSites).of(requirement);
  if (eligibility.waiting !== null) {
    const reason = eligibility.waiting;
    const message = reasonSentence(reason, numbersOf(requirement));
    return {
      siteId: null,
      priority: null,
      reason,
      message,
      explanation: null,
      ranking: outOfTheQuestion(eligibility.ineligible),
      start: null,
    };
  }
  const { site, priority, reason, explanation } = beginDispatch(grid, context.policy, context.now).choose(
    job,
    eligibility,
  );
  return {
    siteId: site?.site.id ?? null,
    priority,
    reason,
    message: reasonSentence(reason),
    explanation,
    ranking: ranking(site?.site.id ?? null, explanation),
    start: site === null ? null : predictStart(grid, site, job, context),
  };
}

/** All sites of a decision: the eligible ones best first, beginning with the one that was chosen, then the others in site order. */
export const ranking = (chosen: number | null, explanation: DispatchExplanation): SiteRanking[] => [
  ...rank(chosen, explanation),
  ...outOfTheQuestion(explanation.ineligible),
];

const outOfTheQuestion = (ineligible: Readonly<Record<number, ReasonCode>>): SiteRanking[] =>
  Object.entries(ineligible).map(([siteId, why]) => ({
    siteId: Number(siteId),
    rank: null,
    terms: {},
    ineligible: why,
  }));

/** The numbers of a class for sentences. */
export const numbersOf = ({ tasks, cpusPerTask, memoryMbPerTask }: Requirement): Record<string, number> => ({
  tasks,
  cpusPerTask,
  memoryMbPerTask,
});

/** The chosen site, then the others by their terms in the order in which the policy compares them, then by id. */
function rank(
  chosen: number | null,
  { sites, terms, highestFirst, compared }: DispatchExplanation,
): SiteRanking[] {
  const names = Object.keys(terms);
  const decisive = names.slice(0, compared);
  const rows = sites.map((siteId, i) => ({
    siteId,
    rank: 0,
    terms: Object.fromEntries(names.map((name) => [name, (terms[name] as readonly number[])[i] as number])),
    ineligible: null,
  }));
  rows.sort((a, b) => {
    if (a.siteId === chosen || b.siteId === chosen) return a.siteId === chosen ? -1 : 1;
    for (const name of decisive) {
      const difference = (a.terms[name] as number) - (b.terms[name] as number);
      if (difference !== 0) return highestFirst ? -difference : difference;
    }
    return a.siteId - b.siteId;
  });
  return rows.map((row, i) => ({ ...row, rank: i + 1 }));
}

/**
 * The earliest start of the job at the site by its profile. Where the site keeps promises, it is the job's own, or what the
 * next cycle would promise to it behind all others; else the site's reservation is respected: the job waits for it to end
 * where it could delay it. Null when the site's available machines cannot run it at all, or when it cannot be foreseen.
 */
export function predictStart(
  grid: Grid,
  entry: SiteEntry,
  job: Job,
  { now, policy }: ExplainContext,
): PredictedStart | null {
  const requirement = grid.requirementOf(job);
  const eligible = entry.resources.eligible(requirement.signature);
  if (whyNeverFits(requirement, eligible) !== null) return null;
  const work = job.estimateS * job.benchmark;
  const copies = new LicenseCopies();
  const free = new FreeResources(entry.resources, copies);
  const claims = new Claims(grid, entry.site.id, now, copies);
  const view: SiteView = { grid, entry, now, free, claims, starts: [] };
  if (!entry.resources.foreseeable) return startsNow(view, requirement, eligible, work);
  const promised = localKindOf(localPolicyOf(entry.site, policy)).startOf?.(view, job) ?? null;
  if (promised !== null) return predicted(entry, work, promised);
  const { reservation } = entry;
  const held = reservation?.jobId === job.id ? reservation : null;
  const claim = reservation === null || held !== null ? null : claimOf(grid, reservation, now);
  let booking: Booking | null = null;
  let beside: FreeCapacity | null = null;
  if (claim !== null && reservation !== null) {
    claims.setOwn(claim);
    booking = { at: claim.at, end: claim.end, hold: holdOfReservation(grid, entry, reservation) };
    beside = roomBeside(view, eligible, booking);
  }
  const found = earliestStart(view, requirement, eligible, work, held, booking, beside);
  return found === null ? null : predicted(entry, work, found);
}

const predicted = (
  { site }: SiteEntry,
  work: number,
  { at, placement, pools }: Pick<Opening, 'at' | 'placement' | 'pools'>,
): PredictedStart => ({
  siteId: site.id,
  at,
  allocations: allocationsOf(placement),
  licenseIds: idsOf(pools),
  plannedDuration: work / placement.benchmark,
});

/** Where nobody knows when runs end: now or unknown. */
function startsNow(
  { entry, free, claims, now }: SiteView,
  requirement: Requirement,
  eligible: EligibleMachines,
  work: number,
): PredictedStart | null {
  const placement = free.full || entry.queue.length > 0 ? null : placeNow(requirement, eligible, free);
  if (placement === null) return null;
  const end = now + work / placement.benchmark;
  const pools = pickPools(eligible, (pool) => claims.allowsNow(pool, end, null));
  return pools && predicted(entry, work, { at: now, placement, pools });
}

/** What a reservation takes on machines. */
function holdOfReservation(grid: Grid, entry: SiteEntry, reservation: Reservation): Booking['hold'] {
  const { cpusPerTask, memoryMbPerTask } = grid.requirementOf(grid.job(reservation.jobId) as Job);
  const found = reservation.allocations.flatMap(({ machineId, tasks }) => {
    const state = entry.resources.machines.find(({ machine }) => machine.id === machineId);
    return state === undefined ? [] : [{ state, tasks }];
  });
  return {
    machines: found.map(({ state }) => state),
    cpus: found.map(({ tasks }) => tasks * cpusPerTask),
    memoryMb: found.map(({ tasks }) => tasks * memoryMbPerTask),
  };
}

/** What a booking leaves free at its beginning. */
function roomBeside(
  { entry, free, now }: SiteView,
  eligible: EligibleMachines,
  booking: Booking,
): FreeCapacity {
  const timeline = new Timeline(entry.resources, free, eligible, now, [], [], booking);
  while (timeline.advance() && timeline.at < booking.at);
  return timeline;
}
