/**
 * Jobs that a site's own scheduler keeps waiting while another site can start them at once: they are asked back. The guard of a run sees to it
 * that it either begins there or comes back (agent/external/script.ts), so nothing is lost by asking too late.
 */
import type { Return } from './agenda.js';
import type { Grid, SiteEntry } from './grid/grid.js';
import type { JobQueue } from './grid/queue.js';
import type { Requirement } from './grid/requirements.js';
import { SitePass } from './local/pass.js';
import { recallsAfterS } from './local/registry.js';
import type { Job } from './model.js';
import { localPolicyOf, type Policy } from './policy.js';
import { ReasonCode } from './reasons.js';
import { EligibleSites } from './resources/eligibility.js';
import { waitingThere } from './terms/waiting-there.js';

/** With more jobs before the root than these its own come first. */
const BEFORE_MAX = 10_000;

/** At most `limit` in all, of each site those first that have waited for longest. To be asked when the root has nothing left to move. */
export function recalls(grid: Grid, policy: Policy, now: number, limit: number): Return[] {
  const holders = grid.sites
    .filter(({ handedOver }) => handedOver.jobs > 0)
    .map((entry) => ({ entry, waiting: longWaiting(grid, entry, policy, now) }))
    .filter(({ waiting }) => waiting.length > 0);
  const rooms = holders.length === 0 ? [] : roomsOf(grid, now);
  const eligible = grid.index(EligibleSites);
  const returns: Return[] = [];
  let left = limit;
  for (const { entry, waiting } of holders) {
    const jobIds: number[] = [];
    for (const job of waiting) {
      if (jobIds.length === left || rooms.length === 0) break;
      const requirement = grid.requirementOf(job);
      const { ineligible } = eligible.of(requirement, job);
      const room = rooms.find(
        (pass) =>
          pass.entry !== entry &&
          ineligible[pass.entry.site.id] === undefined &&
          pass.takeRoom(job, requirement),
      );
      if (room !== undefined) jobIds.push(job.id);
    }
    if (jobIds.length === 0) continue;
    returns.push({ siteId: entry.site.id, reason: ReasonCode.STARTS_ELSEWHERE, jobIds });
    left -= jobIds.length;
  }
  return returns;
}

/** Nobody can be asked where no machine is available: the agent is silent, or its scheduler is. */
function longWaiting(grid: Grid, { site, resources }: SiteEntry, policy: Policy, now: number): Job[] {
  const afterS = recallsAfterS(localPolicyOf(site, policy));
  if (afterS === null || resources.availableCpus === 0) return [];
  return resources.runs
    .filter(({ run }) => run.waits && now - run.start >= afterS)
    .sort((a, b) => a.run.start - b.run.start || a.jobId - b.jobId)
    .map(({ jobId }) => grid.job(jobId) as Job);
}

/** Sites at which nobody waits, and that no job before the root may be for. */
function roomsOf(grid: Grid, now: number): SitePass[] {
  const before = requirementsBefore(grid);
  if (before === null) return [];
  const eligible = grid.index(EligibleSites);
  const isTaken = ({ site }: SiteEntry): boolean =>
    before.some((requirement) => eligible.of(requirement, null).ineligible[site.id] === undefined);
  return grid.sites
    .filter(
      (entry) =>
        entry.site.state === 'UP' &&
        entry.queue.length === 0 &&
        waitingThere(entry, now, null).jobs === 0 &&
        !isTaken(entry),
    )
    .map((entry) => new SitePass(grid, entry).begin(now, Infinity, false));
}

/** What the jobs need that the root or its meta-queues hold; null: they are too many to look at. */
function requirementsBefore({ root, sites }: Grid): Requirement[] | null {
  const queues: JobQueue[] = [root, ...sites.map(({ meta }) => meta)];
  if (queues.reduce((sum, { length }) => sum + length, 0) > BEFORE_MAX) return null;
  const found = new Set<Requirement>();
  for (const queue of queues)
    for (const slot of queue.inOrder('ARRIVAL').window()) found.add(queue.requirements[slot] as Requirement);
  return [...found];
}
