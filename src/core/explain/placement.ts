/**
 * The dry run: where a job would go if it were dispatched now, with every term of every site, and when the best site
 * would start it. The job need not be in the grid, and the grid stays as it is.
 */
import { beginDispatch } from '../dispatch/cycle.js';
import { amountOf, MEMORY, PLACES, pairsOf } from '../grid/amounts.js';
import type { Grid, SiteEntry } from '../grid/grid.js';
import type { Requirement } from '../grid/requirements.js';
import type { EligibleMachines, PoolState } from '../grid/site-resources.js';
import { fieldsOf } from '../lean-jobs.js';
import { localKindOf } from '../local/registry.js';
import { type DispatchExplanation, type Job, limitAt } from '../model.js';
import { localPolicyOf, type Policy, queueLimitOf } from '../policy.js';
import { ReasonCode, reasonSentence } from '../reasons.js';
import { shownRequest } from '../resources/devices.js';
import { EligibleSites, whyNeverFits, whyPartsNowhere } from '../resources/eligibility.js';
import type { Opening } from '../resources/future.js';
import { allocationsOf, amountsOf } from '../resources/placement.js';
import { Timeline } from '../resources/timeline.js';
import { earliestAnywhere, type PredictedStart, planAhead, sharedLicenses } from './ahead.js';
import { startByWaits } from './external.js';

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
  /** The job as it would come to that site now; null: it would not, or others wait that a policy may send first. */
  arrival: Job | null;
  /** When it starts there, or, while it waits for a site, anywhere. */
  start: PredictedStart | null;
}

export function placement(grid: Grid, job: Job, context: ExplainContext): Placing {
  grid.advance(context.now);
  const reserved = grid.reservedSite(job);
  if (reserved !== null) return inReservation(grid, reserved, job, context);
  const requirement = grid.requirementOf(job);
  const eligibility = grid.index(EligibleSites).of(requirement, job);
  if (eligibility.waiting !== null) {
    const reason = eligibility.waiting;
    const message = reasonSentence(reason, numbersOf(requirement, grid));
    return {
      siteId: null,
      priority: null,
      reason,
      message,
      explanation: null,
      ranking: outOfTheQuestion(eligibility.ineligible),
      arrival: null,
      start: null,
    };
  }
  const { site, priority, reason, explanation } = beginDispatch(grid, context.policy, context.now).choose(
    job,
    eligibility,
  );
  const others = grid.root.length - (grid.placeOf(job.id)?.at === 'ROOT' ? 1 : 0);
  const waits = site === null || (others > 0 && queueLimitOf(context.policy) !== null);
  const arrival = waits ? null : { ...fieldsOf(job), priority, dispatchedAt: context.now };
  return {
    siteId: site?.site.id ?? null,
    priority,
    reason,
    message: reasonSentence(reason),
    explanation,
    ranking: ranking(site?.site.id ?? null, explanation),
    arrival,
    start:
      arrival === null
        ? earliestAnywhere(grid, job, context.now)
        : predictStart(grid, site as SiteEntry, arrival, context),
  };
}

/** Policies do not choose for a job that names a reservation. */
function inReservation(grid: Grid, entry: SiteEntry, job: Job, context: ExplainContext): Placing {
  const arrival = { ...fieldsOf(job), dispatchedAt: context.now };
  const reason = ReasonCode.HAS_RESERVATION;
  return {
    siteId: entry.site.id,
    priority: job.priority,
    ...{ reason, message: reasonSentence(reason), explanation: null, ranking: [], arrival },
    start: predictStart(grid, entry, arrival, context),
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
export const numbersOf = (of: Requirement, grid: Grid): Record<string, number> => {
  const nowhere = of.parts && whyPartsNowhere(of, of.parts, grid.sites)?.part;
  return nowhere
    ? { ...numbersOfTasks(nowhere.of, grid), ...partNumbers(nowhere) }
    : numbersOfTasks(of, grid);
};

/** Which part of a job it is, and how many before it count with it. */
export const partNumbers = ({ at, besideOthers }: { at: number; besideOthers: boolean }) => ({
  part: at,
  partsBefore: besideOthers ? at : 0,
});

const numbersOfTasks = (of: Requirement, grid: Grid): Record<string, number> => ({
  tasks: of.tasks,
  cpusPerTask: of.cpusPerTask,
  memoryMbPerTask: amountOf(of.task, MEMORY),
  ...furtherOf(of, grid),
  ...poolNumbers(
    of,
    grid.sites.map(({ resources }) => resources.everEligible(of.signature)),
  ),
  ...spreadNumbers(of),
});

/** What it takes of pools, and the most that one of the sites has; `free`: as these say, what is free. */
export const poolNumbers = (
  { signature: { pools } }: Requirement,
  sites: readonly Pick<EligibleMachines, 'pools'>[],
  free?: (pool: PoolState) => number,
): Record<string, number> =>
  Object.fromEntries(
    pools.flatMap(({ kind, amount }, i) => {
      const atSite = sites.map((site) =>
        (site.pools[i]?.of ?? []).reduce(
          (sum, pool) => sum + Math.max(0, free?.(pool) ?? pool.license.copies),
          0,
        ),
      );
      return [
        [`${kind}ForJob`, amount],
        [`${kind}${free === undefined ? 'AtSite' : 'Free'}`, Math.max(0, ...atSite)],
      ];
    }),
  );

/** How many tasks may be on a machine; nothing, if any number. */
export const spreadNumbers = ({ spread }: Requirement): Record<string, number> =>
  spread === null
    ? {}
    : {
        minPerMachine: spread.tasksPerMachine.min,
        ...(spread.tasksPerMachine.max === null ? {} : { maxPerMachine: spread.tasksPerMachine.max }),
      };

/** What a task takes of kinds that an operator has named, and of devices that it asks for by what they are. */
export const furtherOf = ({ task, devices }: Requirement, { kinds }: Grid): Record<string, number> => {
  const further: Record<string, number> = {};
  for (const [kind, amount] of pairsOf(task))
    if (kind > PLACES) further[`${kinds.name(kind)}PerTask`] = amount;
  for (const request of devices?.requests ?? []) {
    const name = `${shownRequest(request)}PerTask`;
    further[name] = (further[name] ?? 0) + request.count;
  }
  return further;
};

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
 * When the job, which is in the site's local queue or would come to its end now, starts there. Null: the site's available machines cannot
 * run it at all, or it cannot be foreseen.
 */
export function predictStart(
  grid: Grid,
  entry: SiteEntry,
  job: Job,
  context: ExplainContext,
): PredictedStart | null {
  const { now, policy } = context;
  const requirement = grid.requirementOf(job);
  const eligible = entry.resources.eligible(requirement.signature);
  if (whyNeverFits(requirement, eligible) !== null) return null;
  if (entry.resources.ownScheduler) return startByWaits(entry, job, now);
  const free = new Timeline(grid, entry, now);
  if (entry.resources.shared)
    return startsNow(free, requirement, eligible, job) ?? planAhead(grid, entry, job, context);
  // A promise moves where other sites take, or give back, copies that it or one before it needs.
  const promised = sharedLicenses(grid, entry.queue, job) ? null : promisedStart(grid, free, job, policy);
  return promised ?? planAhead(grid, entry, job, context);
}

/** Where the site keeps promises: the job's own, or what the next cycle would promise to it behind all others. */
function promisedStart(grid: Grid, free: Timeline, job: Job, policy: Policy): PredictedStart | null {
  const { site } = free.entry;
  const promised = localKindOf(localPolicyOf(site, policy)).startOf?.(grid, free, job) ?? null;
  return site.state === 'UP' && promised !== null ? predicted(free.entry, workOf(job), promised) : null;
}

const workOf = ({ estimateS, benchmark }: Job): number => estimateS * benchmark;

const predicted = (
  { site }: SiteEntry,
  work: number,
  { at, placement, pools }: Pick<Opening, 'at' | 'placement' | 'pools'>,
): PredictedStart => ({
  siteId: site.id,
  at,
  expected: true,
  allocations: allocationsOf(placement),
  pools: amountsOf(pools),
  plannedDuration: work / placement.benchmark,
});

/** Where nobody knows when runs end: now or unknown. */
function startsNow(
  free: Timeline,
  requirement: Requirement,
  eligible: EligibleMachines,
  job: Job,
): PredictedStart | null {
  if (free.full || free.entry.queue.length > 0) return null;
  const limit = limitAt(job, free.entry.site);
  const work = free.site.plannedWork(workOf(job), limit);
  const opening = free.openingNow(requirement, eligible, work, limit);
  return opening && predicted(free.entry, work, opening);
}
