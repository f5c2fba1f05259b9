/**
 * Why a job waits, in a code, a sentence, numbers, and what would have to change. For one job at a time: it looks at the
 * queue as the next cycle would.
 */
import { beginDispatch } from '../dispatch/cycle.js';
import { type Choice, PlanBuilder, type Why } from '../dispatch/policy.js';
import { dispatchKindOf } from '../dispatch/registry.js';
import { amountOf, CPUS, MEMORY, PLACES, pairsOf, type Room } from '../grid/amounts.js';
import type { Grid, SiteEntry } from '../grid/grid.js';
import type { Requirement } from '../grid/requirements.js';
import { alikeIn, type EligibleMachines, type MachineState } from '../grid/site-resources.js';
import { decideIn } from '../local/cycle.js';
import { SitePass } from '../local/pass.js';
import { handOverLimit } from '../local/registry.js';
import { cpusOf, type Job, type PromisedRoom } from '../model.js';
import { localPolicyOf, localSchedulerOf, queueLimitOf } from '../policy.js';
import { ReasonCode, reasonSentence, type WaitingReason } from '../reasons.js';
import { CONTAINERS, TERMINAL } from '../resources/constraint.js';
import {
  EligibleSites,
  isTooLong,
  longestAt,
  unsatisfied,
  whyNeverFits,
  whyNotUp,
} from '../resources/eligibility.js';
import { lackingPart, tasksOn } from '../resources/placement.js';
import {
  type ExplainContext,
  furtherOf,
  numbersOf,
  partNumbers,
  poolNumbers,
  predictStart,
  ranking,
  type SiteRanking,
  spreadNumbers,
} from './placement.js';
import { boundsOf } from './reserved.js';

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
  grid.advance(context.now);
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
      return atSite(grid, grid.entryOf(jobId) as SiteEntry, job, context);
  }
}

/** What is said of a job in state HELD, which no grid holds. */
export const waitingOnHold = (): Waiting => waiting(ReasonCode.HELD, {});

/** What is said of a job in state BLOCKED: it needs others (of how many conditions some are open), or waits for its time. */
export const waitingOnOthers = (needs: number, open: number, seconds: number): Waiting =>
  open > 0
    ? waiting(ReasonCode.NEEDS, { needs, open })
    : waiting(ReasonCode.NOT_BEFORE, { seconds: Math.max(0, Math.round(seconds)) });

/** How far bringing input data to a run is, in MB and seconds. */
export interface StagingProgress {
  totalMb: number;
  movedMb: number;
  predictedS: number;
  measuredS: number;
}

/** What is said of a job that the site's own scheduler has and has not started; `state`: in its words; null: it has said nothing. */
export function waitingAtSite(state: string | null): Waiting {
  const { message, ...why } = waiting(ReasonCode.WAITS_AT_SITE, {});
  return { ...why, message: state === null ? message : `${message} It says: ${state}.` };
}

/** What is said of a job that has machines and has not started: its agent brings it its input data, or (null) is about to start it. */
export function waitingOnAgent(staging: StagingProgress | null): Waiting {
  if (staging === null) return waiting(ReasonCode.STARTING, {});
  const rounded = Object.entries(staging).map(([name, value]) => [name, Math.round(value * 10) / 10]);
  return waiting(ReasonCode.STAGING, Object.fromEntries(rounded));
}

function atRoot(grid: Grid, job: Job, { policy, now }: ExplainContext): Waiting {
  const reserved = grid.reservedSite(job);
  if (reserved !== null) {
    const { id, state } = reserved.site;
    return waiting(whyNotUp(state) ?? ReasonCode.READY, { siteId: id });
  }
  const requirement = grid.requirementOf(job);
  const eligibility = grid.index(EligibleSites).of(requirement, job);
  const numbers = { ...numbersOf(requirement, grid), sites: grid.sites.length };
  if (eligibility.waiting === ReasonCode.LIMIT_TOO_LONG)
    return waiting(ReasonCode.LIMIT_TOO_LONG, limitNumbers(job, grid.sites));
  if (eligibility.waiting !== null) return nowhere(eligibility.waiting, numbers, requirement, grid);
  const pass = beginDispatch(grid, policy, now);
  const kind = dispatchKindOf(policy.dispatch);
  // What goes to a meta-queue goes there at once.
  if (queueLimitOf(policy) === null || (kind.servesMeta && !kind.sitesAsk))
    return waiting(ReasonCode.READY, numbers);
  const plan = new PlanBuilder(Infinity);
  pass.decide(plan);
  if (plan.moves.some((move) => move.jobId === job.id)) return waiting(ReasonCode.READY, numbers);
  // What the jobs ahead of it have taken is noted in the pass.
  const why = pass.whyWaits?.(job) ?? withTerms(pass.choose(job, eligibility));
  return waiting(why.code, { ...numbers, ...why.numbers }, why.changes);
}

/** The policy's terms of the job, and of the site that it would send it to first: at least one is eligible. */
function withTerms({ reason, explanation }: Choice): Why {
  const { siteId, terms } = ranking(null, explanation)[0] as SiteRanking;
  return {
    code: reason as WaitingReason,
    numbers: { ...explanation.priorityTerms, bestSiteId: siteId, ...terms },
  };
}

function inMeta(grid: Grid, entry: SiteEntry, job: Job, { policy, now }: ExplainContext): Waiting {
  const { site } = entry;
  const numbers: Record<string, number> = { siteId: site.id };
  const down = whyNotUp(site.state);
  if (down !== null) return waiting(down, numbers);
  // Under a policy that does not serve meta-queues the next cycle takes it back to the root.
  if (!dispatchKindOf(policy.dispatch).servesMeta) return waiting(ReasonCode.READY, numbers);
  const requirement = grid.requirementOf(job);
  const eligibility = grid.index(EligibleSites).of(requirement, job);
  if (eligibility.waiting === ReasonCode.LIMIT_TOO_LONG)
    return waiting(ReasonCode.LIMIT_TOO_LONG, { ...numbers, ...limitNumbers(job, grid.sites) });
  if (eligibility.waiting !== null)
    return nowhere(eligibility.waiting, { ...numbers, ...numbersOf(requirement, grid) }, requirement, grid);
  const why = beginDispatch(grid, policy, now).whyInMeta?.(job, entry);
  if (why === undefined) return waiting(ReasonCode.READY, numbers);
  return waiting(why.code, { ...numbers, ...why.numbers }, why.changes);
}

function atSite(grid: Grid, entry: SiteEntry, job: Job, context: ExplainContext): Waiting {
  const { site, queue } = entry;
  const numbers: Record<string, number> = {
    siteId: site.id,
    queued: queue.length,
  };
  const down = whyNotUp(site.state);
  if (down !== null) return waiting(down, numbers);
  const requirement = grid.requirementOf(job);
  const eligible = entry.resources.eligible(requirement.signature);
  Object.assign(numbers, neededBy(requirement, grid));
  const never = whyNeverFits(requirement, eligible);
  if (never !== null) return waiting(never, { ...numbers, ...poolNumbers(requirement, [eligible]) });
  // What is in another site's queue was taken before that was its longest.
  if (entry.resources.ownScheduler && isTooLong(site, job.runTimeLimitS))
    return waiting(ReasonCode.LIMIT_TOO_LONG, { ...numbers, ...limitNumbers(job, [entry]) });
  const start = predictStart(grid, entry, job, context);
  if (start !== null) numbers[start.expected ? 'expectedStart' : 'earliestStart'] = start.at;

  const pass = new SitePass(grid, entry).begin(context.now, Infinity, false);
  decideIn(pass, localSchedulerOf(site, context.policy));
  if (pass.starts.some(({ jobId }) => jobId === job.id)) return waiting(ReasonCode.READY, numbers);
  if (pass.promised?.has(grid.slotOf(job.id))) {
    numbers.promisedAt = (job.promised as PromisedRoom).at;
    return waiting(ReasonCode.ROOM_PROMISED, numbers);
  }
  numbers.ahead = aheadOf(pass, job.id, context);
  const lacking = requirement.parts && lackingPart(requirement.parts, eligible, pass.free.room);
  if (lacking === null) Object.assign(numbers, freeFor(requirement, eligible, pass.free.room, grid));
  else {
    Object.assign(numbers, neededBy(lacking.part, grid), partNumbers({ at: lacking.at, besideOthers: true }));
    Object.assign(numbers, freeFor(lacking.part, lacking.eligible, lacking.room, grid));
  }
  const kept = keptFrom(job.userId, eligible, pass);
  if (kept > 0) numbers.keptMachines = kept;
  if (eligible.shared) {
    numbers.neededTasks = job.tasks;
    numbers.openMachines = eligible.machines.filter((state) => pass.free.cpusOn(state) > 0).length;
  }
  if (pass.handOvers !== null) {
    numbers.handedOver = entry.handedOver.jobs;
    numbers.handOverLimit = handOverLimit(localPolicyOf(site, context.policy)) as number;
  }
  if (site.maxRunningJobs) numbers.maxRunningJobs = site.maxRunningJobs;
  if (eligible.pools.length > 0) {
    const { copies } = pass.free;
    Object.assign(
      numbers,
      poolNumbers(requirement, [eligible], (pool) => copies.free(pool)),
    );
  }
  const { reservation } = pass;
  if (reservation !== null) {
    numbers.reservedJob = reservation.jobId;
    numbers.reservedAt = reservation.at;
  }
  const { latest, reserved } = boundsOf(grid, entry, job, context, start);
  if (latest !== null) numbers.startsAtLatest = latest;
  const more: string[] = [];
  if (reserved !== null && reserved.fitsIfLimitS !== null) {
    numbers.fitsIfLimitS = reserved.fitsIfLimitS;
    more.push(`With a run time limit of at most ${Math.floor(reserved.fitsIfLimitS)} s it could start now.`);
  }
  // Where nothing but promises keeps it, the reason says so.
  if (reserved?.byHold) return waiting(ReasonCode.RESERVED, numbers, more);
  if (reservation?.jobId === job.id)
    more.push(
      'It is at the head of the queue: it starts no later than its reservation, if running jobs end as planned.',
    );
  return waiting(pass.whyWaiting(requirement), numbers, more);
}

/** The job's limit, and the longest that any of the sites allows that bounds them. */
const limitNumbers = (job: Job, sites: readonly Pick<SiteEntry, 'site'>[]): Record<string, number> => ({
  limitS: job.runTimeLimitS as number,
  longestS: Math.max(...sites.map(({ site }) => longestAt(site)).filter((bound) => bound < Infinity)),
});

/** What the tasks of a class need, all together. */
function neededBy(requirement: Requirement, grid: Grid): Record<string, number> {
  const { tasks, task, parts } = requirement;
  const memory = (of: Requirement): number => amountOf(of.task, MEMORY) * of.tasks;
  return {
    ...furtherOf(requirement, grid),
    ...spreadNumbers(requirement),
    ...{ tasks, neededCpus: cpusOf(requirement) },
    neededMemoryMb: parts === null ? amountOf(task, MEMORY) * tasks : sumOf(parts.map(memory)),
  };
}

/** What is free in the room of the machines that could run the class. */
function freeFor(
  requirement: Requirement,
  { machines }: EligibleMachines,
  room: Room,
  { kinds }: Grid,
): Record<string, number> {
  const freeOn = ({ offset }: MachineState, kind: number): number =>
    Math.max(0, room[offset + kind] as number);
  const freeOf = (kind: number): number => sumOf(machines.map((state) => freeOn(state, kind)));
  // Of a time-shared machine all, as long as it has a place.
  const freeCpus = machines.map((state) =>
    state.shared && freeOn(state, PLACES) === 0 ? 0 : freeOn(state, CPUS),
  );
  const numbers: Record<string, number> = {
    freeCpus: sumOf(freeCpus),
    mostFreeCpus: Math.max(0, ...freeCpus),
    freeMemoryMb: freeOf(MEMORY),
  };
  if (requirement.whole) {
    numbers.machines = machines.length;
    numbers.idleMachines = machines.filter((state) => tasksOn(requirement, state, room) > 0).length;
  }
  for (const [kind] of pairsOf(requirement.task))
    if (kind > PLACES) numbers[`${kinds.name(kind)}Free`] = freeOf(kind);
  return numbers;
}

/** How many of the machines are kept for users other than this one. */
function keptFrom(userId: number, { machines }: EligibleMachines, { free }: SitePass): number {
  if (!free.keeps) return 0;
  const kept = new Set(
    [...free.site.runs, ...free.begun]
      .flatMap(alikeIn)
      .filter(({ each }) => each.onlyUser !== null && each.onlyUser !== userId)
      .flatMap((run) => run.machines),
  );
  return machines.filter((state) => kept.has(state)).length;
}

/** No site is eligible; where that is because of labels, what of the constraint holds nowhere. */
function nowhere(
  code: WaitingReason,
  numbers: Record<string, number>,
  requirement: Requirement,
  grid: Grid,
): Waiting {
  const { message, ...why } = waiting(code, numbers);
  const of = requirement.parts?.[numbers.part ?? -1] ?? requirement;
  const part = code === ReasonCode.NEVER_FITS_CONSTRAINT ? unsatisfied(of, grid.sites) : null;
  if (part === CONTAINERS)
    return {
      ...why,
      message: `${message} The job runs in an image, and no machine of that kind has an agent that runs images.`,
    };
  if (part === TERMINAL)
    return {
      ...why,
      message: `${message} The job has a terminal, and no machine of that kind has an agent that allows terminals.`,
    };
  return { ...why, message: part === null ? message : `${message} The part that fails: ${part}` };
}

const sumOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/** How many jobs the site's policy tries before this one. */
function aheadOf(pass: SitePass, jobId: number, { policy }: ExplainContext): number {
  const { site, queue } = pass.entry;
  const walk = localSchedulerOf(site, policy).walk(pass);
  let ahead = 0;
  for (let slot = walk.next(); slot !== -1 && queue.ids[slot] !== jobId; slot = walk.next()) ahead++;
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
  NEVER_FITS_CPUS: 'Request fewer CPUs, or add a larger machine.',
  NEVER_FITS_MEMORY: 'Request less memory, or add a machine with more memory.',
  NEVER_FITS_RESOURCES: 'Request less of it, or add a machine with more.',
  NEVER_FITS_LICENSES:
    'Request other licenses or smaller amounts, or add some, and machines that can use them.',
  NEVER_FITS_PLATFORM: 'Request another operating system or architecture, or add such a machine.',
  NEVER_FITS_CONSTRAINT: 'Change the constraint, or label machines so that one satisfies it.',
  NEVER_FITS_TASKS_PER_MACHINE:
    'Allow more or fewer tasks per machine, or add machines that can hold the required number.',
  NEVER_FITS_ALL_ALIKE: 'Do without, or label machines that are alike.',
  NEVER_FITS_TOGETHER:
    'Request less of one resource, or add a machine or license so that one site has everything.',
  QUEUES_FULL: "Queued jobs at the sites start or are removed, or the policy's queueLimit is raised.",
  NO_SITE_HAS_ROOM: 'A running job ends and makes room for it, or a job leaves a full queue.',
  BEHIND_HEAD:
    'The job ahead of it is dispatched or removed, or this one has waited longer than the age bound.',
  NO_BRANCH_ASKS: 'Machines that could run it become free, or jobs ahead of it start or are removed.',
  META_QUEUE: "Jobs in the site's local queue start or are removed, or the policy's queueLimit is raised.",
  SITE_DOWN: 'The site comes up, or the job is returned to the global queue.',
  SITE_DRAINING: 'The site stops draining, or the job is returned to the global queue.',
  NO_MACHINE_NOW:
    'A machine that could run it becomes available, or the job is returned to the global queue.',
  SITE_TAKES_NO_PARTS: 'Another site gets machines for all of its parts.',
  SITE_TAKES_NO_DEVICES:
    'Request whole devices by kind and model, without memory, or another site gets such devices.',
  LIMIT_TOO_LONG: 'Request a shorter run time limit, or the site allows longer jobs.',
  NO_LICENSE_AT_SITE: 'More of it is added for the site or the grid.',
  SITE_QUEUE_FULL: 'Running jobs end, or queued jobs there start or are removed.',
  CPUS_BUSY: 'Running jobs end and free CPUs.',
  MEMORY_BUSY: 'Running jobs end and free memory on one machine.',
  RESOURCES_BUSY: 'Running jobs end and free the resources it requests on one machine.',
  MACHINES_BUSY: 'All jobs on one of the machines that could run it end.',
  OTHER_USERS_BUSY: "Other users' jobs on one of the machines that could run it end.",
  TASKS_PER_MACHINE_BUSY: 'Running jobs end and free room for the required number of tasks on one machine.',
  ALL_ALIKE_BUSY: 'Running jobs end and free room for all of its tasks on machines that are alike.',
  LICENSES_BUSY: 'A job that uses it ends, or more of it is added.',
  MAX_TASKS_REACHED: "Running jobs end, or a machine's maxTasks is raised.",
  MAX_RUNNING_JOBS_REACHED: "A running job ends, or the site's maxRunningJobs is raised.",
  JOBS_AHEAD: 'The jobs ahead of it start or are removed, or its priority is raised.',
  WOULD_DELAY_RESERVATION:
    'The job with the reservation starts, or this one gets a shorter estimate or a higher priority.',
  SITE_SCHEDULER_FULL:
    "The site's own scheduler starts one of Switchyard's jobs there, the queueLimit of the site's policy is raised, or another site has room.",
  MOVE_LIMIT: 'Nothing is needed: the next scheduling cycle continues with it.',
  READY: 'Nothing is needed: the next scheduling cycle continues with it.',
  STAGING: 'The rest of its input data arrives.',
  STARTING: 'The agent of its machine starts it.',
  WAITS_AT_SITE: "The site's own scheduler starts it.",
  HELD: 'Release the job.',
  NEEDS: 'The jobs that it depends on start or end.',
  NOT_BEFORE: 'Time passes.',
  ROOM_PROMISED: 'The jobs being stopped for it end.',
  RESERVED: 'The maintenance window or reservation ends or is canceled.',
};
