/**
 * What waits at a site besides our local queue: policies count it as queued there. Where the site schedules itself: jobs that were handed
 * over to its scheduler, and those of others, as its agent has reported them. And a window that has all of the site now, as a job would
 * that takes as long.
 *
 * Others' jobs are known by their time limits only, and stand for that much work on the site's most powerful machine, until there is
 * something better: how long jobs of the shape in question lately waited there (observed-waits.ts). Then, as long as anybody waits there,
 * that wait stands for all that waits, as jobs like this one would that keep the site busy for as long; it is never less than the work
 * that was handed over, which may have come since. Where nobody waits it does not count: who finds an empty queue starts.
 */
import type { HandedOver, SiteEntry } from '../grid/grid.js';
import { cpusOf, type Job } from '../model.js';
import { observedFor, observedMeanS } from './observed-waits.js';

const NOTHING: HandedOver = Object.freeze({ jobs: 0, work: 0, cpuWork: 0 });

/** Jobs of ours that have been sent to the site and wait: those that may lie there at once are limited. */
export const oursAt = ({ queue, handedOver }: SiteEntry): number => queue.length + handedOver.jobs;

/** `job`: for whom; null: for nobody in particular, and what was observed does not count. */
export function waitingThere(entry: SiteEntry, now: number, job: Job | null): HandedOver {
  const { site, resources, handedOver } = entry;
  const { load } = site;
  const closedS = resources.holds.length === 0 ? 0 : Math.min(CLOSED_MAX_S, resources.closedUntil(now) - now);
  if (load == null && closedS === 0) return handedOver.jobs === 0 ? NOTHING : handedOver;
  const power = resources.bestBenchmark;
  const cpus = resources.availableCpus;
  const closed = closedS > 0 ? 1 : 0;
  const waitS = job && observedWaitS(entry, job);
  if (job === null || waitS === null) {
    return {
      jobs: handedOver.jobs + closed + (load?.waitingJobs ?? 0),
      work: handedOver.work + ((load?.waitingS ?? 0) + closedS) * power,
      cpuWork: handedOver.cpuWork + ((load?.waitingCpuS ?? 0) + closedS * cpus) * power,
    };
  }
  const atOnce = Math.max(1, Math.floor(cpus / cpusOf(job)));
  return {
    jobs: handedOver.jobs + closed + (load?.waitingJobs ?? 0),
    work: Math.max(handedOver.work, waitS * atOnce * power) + closedS * power,
    cpuWork: Math.max(handedOver.cpuWork, waitS * cpus * power) + closedS * cpus * power,
  };
}

/** How long the job is expected to wait in the site's own scheduler, by what was observed; null: that is not known. */
export function observedWaitS({ site, handedOver }: SiteEntry, job: Job): number | null {
  const { load } = site;
  if (load == null) return null;
  const observed = observedFor(site, job);
  if (observed === null) return null;
  return load.waitingJobs + handedOver.jobs === 0 ? 0 : observed.waitS;
}

/**
 * Of the power of a site that schedules itself, the part that is left to jobs of ours beside others that wait there, 0 to 1: a job as long
 * as theirs runs for that part of the time that it is there, waiting or running. The wait is the observed one, else others' work over the
 * site's CPUs.
 */
export function shareOfPower({ site: { load }, resources }: SiteEntry): number {
  if (load == null || load.waitingJobs === 0 || load.waitingS === 0) return 1;
  const lengthS = load.waitingS / load.waitingJobs;
  const waitS = observedMeanS(load) ?? load.waitingCpuS / Math.max(1, resources.availableCpus);
  return lengthS / (lengthS + waitS);
}

/** A window without an end counts as one of so long: sums stay numbers. */
const CLOSED_MAX_S = 400 * 86_400;
