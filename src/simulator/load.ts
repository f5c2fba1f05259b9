/** How much work a workload brings, and another amount of it. */
import { cpusOf } from '../core/index.js';
import type { SimJob } from './workload.js';

/** CPU-seconds of the jobs over what `processors` could do from the first submission to the last. */
export function offeredLoad(jobs: readonly SimJob[], processors: number): number {
  const first = jobs[0];
  const last = jobs[jobs.length - 1];
  if (first === undefined || last === undefined || last.job.submittedAt <= first.job.submittedAt)
    return Number.NaN;
  const work = jobs.reduce((sum, { job, runS, limitS }) => {
    return sum + Math.min(runS, limitS ?? Infinity) * cpusOf(job);
  }, 0);
  return work / (processors * (last.job.submittedAt - first.job.submittedAt));
}

/**
 * The same jobs at another load: the times between submissions are stretched by one factor, which keeps order and bursts.
 * Throws when there are no two submission times.
 */
export function scaleLoad(jobs: readonly SimJob[], processors: number, load: number): SimJob[] {
  const factor = offeredLoad(jobs, processors) / load;
  if (!(factor > 0 && factor < Infinity))
    throw new Error(`load: ${load} cannot be reached by stretching the times`);
  const first = (jobs[0] as SimJob).job.submittedAt;
  return jobs.map((one) => ({
    ...one,
    job: { ...one.job, submittedAt: first + Math.round((one.job.submittedAt - first) * factor) },
  }));
}
