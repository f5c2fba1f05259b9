/**
 * The dry run: where a job would go if it were dispatched now, with every term of every site, and when the best site
 * would start it. The job need not be in the grid, and the grid stays as it is.
 */
import { beginDispatch } from '../dispatch/cycle.js';
import type { Grid, SiteEntry } from '../grid.js';
import { type Claim, Claims, claimOf } from '../local/claims.js';
import { promisedStart } from '../local/conservative.js';
import { earliestStart, pickPools } from '../local/pass.js';
import type { Allocation, DispatchExplanation, Job, Reservation } from '../model.js';
import type { Policy } from '../policy.js';
import { type ReasonCode, reasonSentence } from '../reasons.js';
import { eligibilityOf, whyNeverFits } from '../resources/eligibility.js';
import { allocationsOf, placeNow } from '../resources/placement.js';
import type { Opening } from '../resources/profile.js';
import type { Requirement } from '../resources/requirements.js';
import type { Able } from '../resources/site-resources.js';
import { type Hold, noteLeft } from '../resources/timeline.js';

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
  const eligibility = eligibilityOf(requirement, grid.sites, grid.topology);
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
    start: site === null ? null : predictStart(grid, site, job, context.now),
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
export function predictStart(grid: Grid, entry: SiteEntry, job: Job, now: number): PredictedStart | null {
  const requirement = grid.requirementOf(job);
  const able = entry.resources.able(requirement.signature);
  if (whyNeverFits(requirement, able) !== null) return null;
  const work = job.estimateS * job.benchmark;
  const claims = new Claims(grid, entry.site.id, now);
  if (!entry.resources.foreseeable) return startsNow(entry, requirement, able, work, now, claims);
  const view = {
    grid,
    entry,
    now,
    claims,
  };
  const promised = promisedStart(view, job);
  if (promised !== null) return predicted(entry, work, promised);
  const { reservation } = entry;
  const held = reservation?.jobId === job.id ? reservation : null;
  const claim = reservation === null || held !== null ? null : claimOf(grid, reservation, now);
  let hold: Hold | null = null;
  if (claim !== null && reservation !== null) {
    view.claims.setOwn(claim);
    hold = holdOf(grid, entry, reservation, claim);
    noteLeft(entry.resources, able, now, hold);
  }
  const found = earliestStart(view, requirement, able, work, held, hold);
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
  licenseIds: pools.map((pool) => pool.license.id),
  plannedDuration: work / placement.benchmark,
});

/** Where nobody knows when runs end: now or unknown. */
function startsNow(
  entry: SiteEntry,
  requirement: Requirement,
  able: Able,
  work: number,
  now: number,
  claims: Claims,
): PredictedStart | null {
  const { resources, queue } = entry;
  const placement = resources.full || queue.length > 0 ? null : placeNow(requirement, able);
  if (placement === null) return null;
  const end = now + work / placement.benchmark;
  const pools = pickPools(able, (pool) => claims.allowsNow(pool, end, null));
  return pools && predicted(entry, work, { at: now, placement, pools });
}

/** The room that a reservation takes on machines. */
function holdOf(grid: Grid, entry: SiteEntry, reservation: Reservation, { at, end }: Claim): Hold {
  const reserved = grid.requirementOf(grid.job(reservation.jobId) as Job);
  const machines = reservation.allocations.flatMap(({ machineId, tasks }) => {
    const state = entry.resources.machines.find(({ machine }) => machine.id === machineId);
    if (state === undefined) return [];
    return [
      {
        state,
        cpus: tasks * reserved.cpusPerTask,
        memoryMb: tasks * reserved.memoryMbPerTask,
      },
    ];
  });
  return { at, end, machines };
}
