/**
 * Why a job waits, in a code, a sentence, numbers, and what would have to change. For one job at a time: it looks at the
 * queue as the next cycle would.
 */
import { beginDispatch } from '../dispatch/cycle.js';
import { type Choice, PlanBuilder } from '../dispatch/policy.js';
import type { Grid, SiteEntry } from '../grid.js';
import { SitePass } from '../local/pass.js';
import { localScheduler } from '../local/policies.js';
import type { Job } from '../model.js';
import { ReasonCode, reasonSentence, type WaitingReason } from '../reasons.js';
import { eligibilityOf, whyNeverFits } from '../resources/eligibility.js';
import { freeCopies } from '../resources/site-resources.js';
import { metaChanges, metaNumbers } from './meta.js';
import { type ExplainContext, numbersOf, predictStart, ranking, type SiteRanking } from './placement.js';

export interface Waiting {
  code: ReasonCode;
  message: string;
  numbers: Record<string, number>;
  wouldChange: string[];
}

/**
 * Why a queued job of the grid waits; null for one that runs. Throws for a job that the grid does not hold (a held one:
 * `waitingOnHold`).
 */
export function whyWaiting(grid: Grid, jobId: number, context: ExplainContext): Waiting | null {
  const place = grid.placeOf(jobId);
  const job = grid.job(jobId);
  if (place === null || job === null) throw new Error(`job ${jobId} is not in the grid`);
  switch (place.at) {
    case 'RUNNING':
      return null;
    case 'ROOT':
      return atRoot(grid, job, context);
    case 'META':
      return inMeta(grid, grid.siteEntry(place.siteId), job, context);
    case 'QUEUE':
      return atSite(grid, grid.siteEntry(place.siteId), job, context);
  }
}

/** What is said of a job in state HELD, which no grid holds. */
export const waitingOnHold = (): Waiting => waiting(ReasonCode.HELD, {});

function atRoot(grid: Grid, job: Job, { policy, now }: ExplainContext): Waiting {
  const requirement = grid.requirementOf(job);
  const eligibility = eligibilityOf(requirement, grid.sites, grid.topology);
  const numbers = { ...numbersOf(requirement), sites: grid.sites.length };
  if (eligibility.waiting !== null) return waiting(eligibility.waiting, numbers);
  const pass = beginDispatch(grid, policy, now);
  if (pass.holds !== true) return waiting(ReasonCode.READY, numbers);
  const plan = new PlanBuilder(Infinity);
  try {
    pass.decide(plan);
    if (plan.moves.some((move) => move.jobId === job.id)) return waiting(ReasonCode.READY, numbers);
    // What the jobs ahead of it have taken is noted in the pass.
    const why = pass.whyWaits?.(job) ?? withTerms(pass.choose(job, eligibility));
    return waiting(why.code, { ...numbers, ...why.numbers });
  } finally {
    pass.undo();
  }
}

/** The policy's terms of the job, and of the site that it would send it to first: at least one is eligible. */
function withTerms({ reason, explanation }: Choice): { code: ReasonCode; numbers: Record<string, number> } {
  const { siteId, terms } = ranking(null, explanation)[0] as SiteRanking;
  return { code: reason, numbers: { ...explanation.priorityTerms, bestSiteId: siteId, ...terms } };
}

function inMeta(grid: Grid, { site }: SiteEntry, job: Job, { policy, now }: ExplainContext): Waiting {
  const numbers: Record<string, number> = { siteId: site.id };
  if (site.state !== 'UP') {
    return waiting(site.state === 'DOWN' ? ReasonCode.SITE_DOWN : ReasonCode.SITE_DRAINING, numbers);
  }
  // Under another policy the next cycle takes it back to the root.
  if (policy.dispatch.kind !== 'diana') return waiting(ReasonCode.READY, numbers);
  const requirement = grid.requirementOf(job);
  const eligibility = eligibilityOf(requirement, grid.sites, grid.topology);
  if (eligibility.waiting !== null)
    return waiting(eligibility.waiting, { ...numbers, ...numbersOf(requirement) });
  Object.assign(numbers, metaNumbers(grid, job, site.id, policy.dispatch, now));
  const { ahead, queued, queueLimit } = numbers as { ahead: number; queued: number; queueLimit: number };
  const strays = eligibility.ineligible[site.id] !== undefined;
  return strays || ahead < queueLimit - queued
    ? waiting(ReasonCode.READY, numbers)
    : waiting(ReasonCode.META_QUEUE, numbers, metaChanges(numbers));
}

function atSite(grid: Grid, entry: SiteEntry, job: Job, context: ExplainContext): Waiting {
  const { site, queue } = entry;
  const numbers: Record<string, number> = {
    siteId: site.id,
    queued: queue.length,
  };
  if (site.state !== 'UP') {
    const code = site.state === 'DOWN' ? ReasonCode.SITE_DOWN : ReasonCode.SITE_DRAINING;
    return waiting(code, numbers);
  }
  const requirement = grid.requirementOf(job);
  const able = entry.resources.able(requirement.signature);
  numbers.tasks = requirement.tasks;
  numbers.neededCpus = requirement.cpusPerTask * requirement.tasks;
  numbers.neededMemoryMb = requirement.memoryMbPerTask * requirement.tasks;
  const never = whyNeverFits(requirement, able);
  if (never !== null) return waiting(never, numbers);

  const pass = new SitePass(grid, entry, context.now, Infinity);
  try {
    const scheduler = localScheduler(site.localPolicy ?? context.policy.local, context.policy);
    scheduler.decide(pass, scheduler.walk(pass));
    if (pass.starts.some((start) => start.run.jobId === job.id)) {
      return waiting(ReasonCode.READY, numbers);
    }
    numbers.ahead = aheadOf(pass, job.id, context);
    numbers.freeCpus = able.machines.reduce((sum, state) => sum + Math.max(0, state.freeCpus), 0);
    numbers.mostFreeCpus = able.machines.reduce((most, state) => Math.max(most, state.freeCpus), 0);
    if (able.shared) {
      numbers.neededTasks = job.tasks;
      numbers.openMachines = able.machines.reduce((open, state) => open + (state.freeCpus > 0 ? 1 : 0), 0);
    }
    if (site.maxRunningJobs) numbers.maxRunningJobs = site.maxRunningJobs;
    numbers.freeMemoryMb = able.machines.reduce((sum, state) => sum + Math.max(0, state.freeMemoryMb), 0);
    if (able.pools.length > 0) {
      numbers.freeLicenses = Math.min(
        ...able.pools.map((pools) => pools.reduce((sum, pool) => sum + freeCopies(pool), 0)),
      );
    }
    const { reservation } = pass;
    if (reservation !== null) {
      numbers.reservedJob = reservation.jobId;
      numbers.reservedAt = reservation.at;
    }
    const code = pass.whyWaiting(requirement);
    if (reservation?.jobId === job.id) {
      const first =
        'It is at the head of the queue: it starts at its reservation at the latest, if running jobs end as planned.';
      return waiting(code, numbers, [first]);
    }
    return waiting(code, numbers);
  } finally {
    pass.undo();
    const start = predictStart(grid, entry, job, context.now);
    if (start !== null) numbers.earliestStart = start.at;
  }
}

/** How many jobs the site's policy tries before this one. */
function aheadOf(pass: SitePass, jobId: number, { policy }: ExplainContext): number {
  const walk = localScheduler(pass.entry.site.localPolicy ?? policy.local, policy).walk(pass);
  let ahead = 0;
  for (let slot = walk.next(); slot !== -1 && pass.entry.queue.ids[slot] !== jobId; slot = walk.next())
    ahead++;
  return ahead;
}

function waiting(code: ReasonCode, numbers: Record<string, number>, more: string[] = []): Waiting {
  const wouldChange = [changeFor(code as WaitingReason), ...more];
  return { code, message: reasonSentence(code, numbers), numbers, wouldChange };
}

/** What would have to happen for a job that waits for this reason. */
export const changeFor = (code: WaitingReason): string => changes[code];

const changes: Record<WaitingReason, string> = {
  NO_SITE_UP: 'A site comes up.',
  NO_ELIGIBLE_SITE: 'A site that can run it comes up, stops draining, or gets its machines back.',
  NEVER_FITS_CPUS: 'Ask for fewer CPUs, or add a larger machine.',
  NEVER_FITS_MEMORY: 'Ask for less memory, or add a machine with more memory.',
  NEVER_FITS_LICENSES: 'Ask for other licenses, or add licenses and the machines that can use them.',
  NEVER_FITS_PLATFORM: 'Ask for another operating system or architecture, or add such a machine.',
  NEVER_FITS_TOGETHER:
    'Ask for less of one resource, or add a machine or license so that one site has everything.',
  QUEUES_FULL: "Queued jobs at the sites start or are removed, or the policy's queueLimit is raised.",
  NO_SITE_HAS_ROOM: 'A running job ends and makes room for it, or a job leaves a full queue.',
  BEHIND_HEAD:
    'The job ahead of it is dispatched or removed, or this one has waited longer than the age bound.',
  META_QUEUE: "Jobs in the site's local queue start or are removed, or the policy's queueLimit is raised.",
  SITE_DOWN: 'The site comes up, or the job is returned to the global queue.',
  SITE_DRAINING: 'The site stops draining, or the job is returned to the global queue.',
  NO_MACHINE_NOW:
    'A machine that could run it becomes available, or the job is returned to the global queue.',
  NO_LICENSE_HERE: 'A license of this kind is added for the site or the grid.',
  NO_ROOM_HERE: 'Running jobs end, or queued jobs there start or are removed.',
  CPUS_BUSY: 'Running jobs end and free CPUs.',
  MEMORY_BUSY: 'Running jobs end and free memory on one machine.',
  LICENSES_BUSY: 'A job that uses such a license ends, or licenses are added.',
  PLACES_BUSY: "Running jobs end, or a machine's maxTasks is raised.",
  RUNS_LIMITED: "A running job ends, or the site's maxRunningJobs is raised.",
  NOT_HEAD: 'The jobs ahead of it start or are removed, or its priority is raised.',
  WOULD_DELAY_RESERVATION:
    'The job with the reservation starts, or this one gets a shorter estimate or a higher priority.',
  MOVE_LIMIT: 'Nothing is needed: the next scheduling cycle continues with it.',
  READY: 'Nothing is needed: the next scheduling cycle continues with it.',
  HELD: 'Release the job.',
};
