/**
 * What waits at a site besides our local queue: policies count it as queued there. Where the site schedules itself: jobs that were handed
 * over to its scheduler, and those of others, as its agent has reported them. Others' jobs are known by their time limits only, and stand
 * for that much work on the site's most powerful machine. And a window that has all of the site now, as a job would that takes as long.
 */
import type { HandedOver, SiteEntry } from '../grid/grid.js';

const NOTHING: HandedOver = Object.freeze({ jobs: 0, work: 0, cpuWork: 0 });

/** Jobs of ours that have been sent to the site and wait: those that may lie there at once are limited. */
export const oursAt = ({ queue, handedOver }: SiteEntry): number => queue.length + handedOver.jobs;

export function waitingThere({ site, resources, handedOver }: SiteEntry, now: number): HandedOver {
  const { load } = site;
  const closedS = resources.holds.length === 0 ? 0 : Math.min(CLOSED_MAX_S, resources.closedUntil(now) - now);
  if (load == null && closedS === 0) return handedOver.jobs === 0 ? NOTHING : handedOver;
  const power = resources.bestBenchmark;
  const closed = { jobs: closedS > 0 ? 1 : 0, cpuS: closedS * resources.availableCpus };
  return {
    jobs: handedOver.jobs + closed.jobs + (load?.waitingJobs ?? 0),
    work: handedOver.work + ((load?.waitingS ?? 0) + closedS) * power,
    cpuWork: handedOver.cpuWork + ((load?.waitingCpuS ?? 0) + closed.cpuS) * power,
  };
}

/** A window without an end counts as one of so long: sums stay numbers. */
const CLOSED_MAX_S = 400 * 86_400;
