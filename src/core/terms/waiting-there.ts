/**
 * What waits at a site that schedules itself besides our local queue: jobs that were handed over to its scheduler, and those of others, as
 * its agent has reported them. Policies count it as queued there. Others' jobs are known by their time limits only, and stand for that
 * much work on the site's most powerful machine.
 */
import type { HandedOver, SiteEntry } from '../grid/grid.js';

const NOTHING: HandedOver = Object.freeze({ jobs: 0, work: 0, cpuWork: 0 });

/** Jobs of ours that have been sent to the site and wait: those that may lie there at once are limited. */
export const oursAt = ({ queue, handedOver }: SiteEntry): number => queue.length + handedOver.jobs;

export function waitingThere({ site, resources, handedOver }: SiteEntry): HandedOver {
  const { load } = site;
  if (load == null) return handedOver.jobs === 0 ? NOTHING : handedOver;
  const power = resources.bestBenchmark;
  return {
    jobs: handedOver.jobs + load.waitingJobs,
    work: handedOver.work + load.waitingS * power,
    cpuWork: handedOver.cpuWork + load.waitingCpuS * power,
  };
}
