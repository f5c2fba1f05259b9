/** Which jobs of a trace can be scheduled on a machine of so many processors, and what is left out. */
import type { SwfJob } from './swf.js';

/** A job of a trace as far as scheduling needs it, in seconds of the trace. */
export interface CleanJob {
  id: number;
  submit: number;
  run: number;
  /** The user's estimate, and the limit at which the job was killed. */
  requested: number;
  processors: number;
  /** -1: unknown. */
  executable: number;
}

export interface CleanOptions {
  /** Of the machine: wider jobs are left out. */
  processors: number;
  /** Jobs without a requested time are left out, or their run time stands in. */
  missingEstimate: 'DROP' | 'RUN';
  /** So many jobs at the most; Infinity for all. */
  limit: number;
}

export interface CleanTrace {
  jobs: CleanJob[];
  /** How many were left out, by reason. */
  dropped: Record<string, number>;
  /** How many had run longer than they asked for and are cut there. */
  cut: number;
}

/**
 * Leaves out, in the order that users of the archive have settled on: jobs of unknown width or wider than the machine,
 * without run time, without requested time, submitted before the trace begins. A job that ran longer than it had asked for
 * is cut there: it was killed at its limit.
 */
export function cleanTrace(jobs: readonly SwfJob[], options: CleanOptions): CleanTrace {
  const result: CleanTrace = { jobs: [], dropped: {}, cut: 0 };
  for (const job of jobs) {
    if (result.jobs.length >= options.limit) break;
    const processors = job.requestedProcessors > 0 ? job.requestedProcessors : job.allocatedProcessors;
    const requested =
      job.requestedTime <= 0 && options.missingEstimate === 'RUN' ? job.run : job.requestedTime;
    const fault = faultOf(job, processors, requested, options.processors);
    if (fault !== null) {
      result.dropped[fault] = (result.dropped[fault] ?? 0) + 1;
      continue;
    }
    if (job.run > requested) result.cut++;
    const { id, submit, executable } = job;
    result.jobs.push({ id, submit, run: Math.min(job.run, requested), requested, processors, executable });
  }
  return result;
}

function faultOf(job: SwfJob, processors: number, requested: number, available: number): string | null {
  if (processors <= 0) return 'of unknown width';
  if (processors > available) return 'wider than the machine';
  if (job.run <= 0) return 'without run time';
  if (requested <= 0) return 'without requested time';
  if (job.submit < 0) return 'submitted before the beginning';
  return null;
}
