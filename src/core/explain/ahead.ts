/**
 * When a job starts at a site: the site's own cycles, run ahead in a grid of its own with what runs and waits there, as if every run took
 * as long as it is planned and nobody else came. How far is bounded. Where it is not known who comes before the job, and beyond the
 * bound, it is only known before when it cannot start.
 */
import { Grid, type SiteEntry, type SiteMemory } from '../grid/grid.js';
import type { JobQueue } from '../grid/queue.js';
import type { Requirement } from '../grid/requirements.js';
import { siteCycle } from '../local/cycle.js';
import { SitePasses } from '../local/pass.js';
import { handOverLimit, imageOf, promisesFrom } from '../local/registry.js';
import {
  type Allocation,
  asksPools,
  type Held,
  type Job,
  limitAt,
  type PoolAmount,
  type Reservation,
  type Run,
  type Start,
} from '../model.js';
import { localPolicyOf, type Policy } from '../policy.js';
import { whyNeverFits } from '../resources/eligibility.js';
import { Timeline } from '../resources/timeline.js';

export interface PredictedStart {
  siteId: number;
  at: number;
  /** It starts then, if runs take as long as planned and no job comes meanwhile. False: it does not start before. */
  expected: boolean;
  /** Where; none unless it is expected. */
  allocations: readonly Allocation[];
  pools: readonly PoolAmount[];
  plannedDuration: number;
}

/** Jobs that may wait at a site for its plan to be made. */
export const QUEUE_MAX = 5_000;
/** Cycles of a plan, each counted as many times as jobs wait: what a cycle looks at, at the most. */
const LOOKS_MAX = 1_000_000;
/** Beside the queue, what a cycle costs in any case. */
const CYCLE_LOOKS = 100;
export const STARTS_MAX = 10_000;

/**
 * When a job starts at a site in whose local queue it is or would be put now. Null: what is there cannot run it, or nothing that can be
 * foreseen makes room for it.
 */
export function planAhead(
  grid: Grid,
  entry: SiteEntry,
  job: Job,
  { now, policy }: { now: number; policy: Policy },
  looksMax = LOOKS_MAX,
): PredictedStart | null {
  const { site, queue, resources } = entry;
  // Nobody knows when runs end there, or what the site's own scheduler will do.
  if (resources.shared || handOverLimit(localPolicyOf(site, policy)) !== null) return null;
  const known =
    site.state === 'UP' &&
    queue.length <= QUEUE_MAX &&
    !waitsElsewhere(grid, entry, job) &&
    !sharedLicenses(grid, queue, job);
  if (!known) return notBefore(copyOf(entry, grid, job, false), site.id, job, now);
  const ahead = copyOf(entry, grid, job, true);
  const promises = imageOf(entry.memory);
  if (promises !== null)
    ahead.keepMemory(site.id, promisesFrom(ahead, site.id, localPolicyOf(site, policy), promises, now));
  const passes = new SitePasses();
  const started: Start[] = [];
  let at = now;
  const accept = (start: Start): Run => {
    if (start.jobId === job.id) started.push(start);
    const { jobId, siteId, allocations, pools, plannedDuration } = start;
    return { jobId, siteId, allocations, pools, epoch: 0, start: at, plannedEnd: at + plannedDuration };
  };
  const local = ahead.siteEntry(site.id);
  for (let looks = 0; looks <= looksMax; looks += local.queue.length + CYCLE_LOOKS) {
    const plan = siteCycle(ahead, site.id, {
      ...{ now: at, policy, policyVersion: 0, maxStarts: STARTS_MAX, countWaiting: false, explain: false },
      ...{ accept, passes },
    });
    ahead.setReservation(site.id, plan.reservation);
    ahead.keepMemory(site.id, plan.memory);
    const [found] = started;
    if (found !== undefined) {
      const { allocations, pools, plannedDuration } = found;
      return { siteId: site.id, at, expected: true, allocations, pools, plannedDuration };
    }
    if (plan.truncated) continue;
    const wakeAt = plan.wakeAt > at ? plan.wakeAt : Infinity;
    const next = Math.min(local.resources.runs[0]?.end ?? Infinity, wakeAt);
    if (next === Infinity) return null;
    at = Math.max(at, next);
    while (local.resources.runs[0] !== undefined && local.resources.runs[0].end <= at)
      ahead.endRun(local.resources.runs[0].jobId);
  }
  return notBefore(ahead, site.id, job, at);
}

/** Of all sites that could run the job, when the first has room for it beside what runs there. Null: none is known to. */
export function earliestAnywhere(grid: Grid, job: Job, now: number): PredictedStart | null {
  let first: PredictedStart | null = null;
  for (const entry of grid.sites) {
    const found = notBefore(copyOf(entry, grid, job, false), entry.site.id, job, now);
    if (found !== null && (first === null || found.at < first.at)) first = found;
  }
  return first;
}

/** Whatever else waits takes more room, never less: the job cannot start before there is room beside the runs. */
function notBefore(ahead: Grid, siteId: number, job: Job, now: number): PredictedStart | null {
  const entry = ahead.siteEntry(siteId);
  ahead.setReservation(siteId, null);
  const requirement = ahead.requirementOf(job);
  const eligible = entry.resources.eligible(requirement.signature);
  if (whyNeverFits(requirement, eligible) !== null) return null;
  const nothing = { siteId, expected: false, allocations: [], pools: [], plannedDuration: 0 };
  if (entry.resources.shared) return { ...nothing, at: now };
  const limit = limitAt(job, entry.site);
  const work = entry.resources.plannedWork(job.estimateS * job.benchmark, limit);
  const found = new Timeline(ahead, entry, now).earliestOpening(requirement, eligible, work, limit);
  return found && { ...nothing, at: found.at };
}

/** A promised start that would be another. */
export interface MovedStart {
  jobId: number;
  before: number;
  /** null: nothing is promised to the job any more. */
  after: number | null;
}

/** The starts that the site has promised, in order of their time, as far as its next cycle would promise others if this were held, too. */
export function movedStarts(
  grid: Grid,
  entry: SiteEntry,
  held: readonly Held[],
  { now, policy }: { now: number; policy: Policy },
): MovedStart[] {
  const { site, queue, reservation } = entry;
  const before = promisedBy(entry.memory, reservation);
  if (before.length === 0 || site.state !== 'UP' || queue.length > QUEUE_MAX) return [];
  const ahead = copyOf(entry, grid, null, true);
  const promises = imageOf(entry.memory);
  if (promises !== null)
    ahead.keepMemory(site.id, promisesFrom(ahead, site.id, localPolicyOf(site, policy), promises, now));
  ahead.setHeld(...held);
  const plan = siteCycle(ahead, site.id, {
    ...{ now, policy, policyVersion: 0, maxStarts: STARTS_MAX, countWaiting: false, explain: false },
  });
  const after = new Map(promisedBy(plan.memory, plan.reservation));
  for (const { jobId } of plan.starts) after.set(jobId, now);
  return before
    .map(([jobId, at]) => ({ jobId, before: at, after: after.get(jobId) ?? null }))
    .filter((one) => one.after !== one.before && (one.after === null || one.after > now || one.before > now))
    .sort((a, b) => a.before - b.before || a.jobId - b.jobId);
}

/** Job and time of each start. */
const promisedBy = (memory: SiteMemory | null, reservation: Reservation | null): [number, number][] =>
  (imageOf(memory)?.jobs ?? (reservation === null ? [] : [reservation])).map(({ jobId, at }) => [jobId, at]);

/**
 * The site, or a reservation there as if it were one, in a grid of its own. `whole`: with its queue and what it has reserved and promised,
 * else with its runs only.
 */
export function copyOf(
  { site, resources, queue, reservation, part }: SiteEntry,
  grid: Grid,
  job: Job | null,
  whole: boolean,
): Grid {
  const copy = new Grid(grid.workflows, grid.ranks);
  copy.setSite(site);
  const jobs = job === null ? [] : [job];
  if (whole)
    for (const slot of queue.slots()) if (queue.ids[slot] !== job?.id) jobs.push(queue.jobs[slot] as Job);
  const pools = new Set([
    ...resources.runs.flatMap(({ licenses }) => licenses.map(({ pool }) => pool)),
    ...jobs
      .filter(asksPools)
      .flatMap((one) => resources.eligible(grid.requirementOf(one).signature).pools.flatMap(({ of }) => of)),
  ]);
  for (const { license } of pools) copy.setLicense(license);
  for (const { machine } of resources.machines) copy.setMachine(machine);
  // Beside what is reserved, who runs inside does not matter.
  const held = part === null ? [...grid.held.values()] : part.closed;
  if (held.length > 0) copy.setHeld(...held.map((one) => ({ ...one, reservation: null })));
  for (const { run, jobId } of resources.runs) copy.restoreRun(run, grid.job(jobId) as Job);
  if (!whole) return copy;
  for (const one of jobs) copy.placeAtSite(one, site.id);
  copy.setReservation(site.id, reservation);
  return copy;
}

/** Whether jobs wait before the local queues, the job itself among them, that could come to the site before it starts. */
function waitsElsewhere(grid: Grid, entry: SiteEntry, job: Job): boolean {
  const queues = [grid.root, ...grid.sites.map(({ meta }) => meta)].filter(({ length }) => length > 0);
  if (queues.reduce((sum, { length }) => sum + length, 0) > QUEUE_MAX) return true;
  const fits = (requirement: Requirement): boolean =>
    whyNeverFits(requirement, entry.resources.eligible(requirement.signature)) === null;
  return queues.some((queue) => {
    for (const slot of queue.slots())
      if (queue.ids[slot] !== job.id && fits(queue.requirements[slot] as Requirement)) return true;
    return false;
  });
}

/** Whether other sites may take licenses that the job, or one that waits with it, needs. */
export const sharedLicenses = (grid: Grid, queue: JobQueue, job: Job): boolean =>
  grid.sharesLicenses && grid.sites.length > 1 && (queue.licensed > 0 || asksPools(job));
