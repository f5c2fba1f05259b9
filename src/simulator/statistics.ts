/** The figures that workload studies report. */
import type { MemorySink } from './sink.js';
import type { SimJob } from './workload.js';

/** Of a measure over all jobs. Quantiles are interpolated between ranks, as is usual. */
export interface Distribution {
  mean: number;
  median: number;
  p95: number;
  max: number;
}

export interface Summary {
  /** Jobs that ended. */
  jobs: number;
  /** Seconds from the first submission to the last end. */
  makespan: number;
  /** CPU-seconds used over CPU-seconds there were in the makespan. */
  utilization: number;
  /** Seconds from submission to start. */
  wait: Distribution;
  /** Seconds from submission to end. */
  turnaround: Distribution;
  /** Turnaround over run time: that on CPUs of its own. */
  slowdown: Distribution;
  /** max(1, turnaround / max(run time, τ)), τ = 10 s (Feitelson et al.). */
  boundedSlowdown: Distribution;
}

/** τ of the bounded slowdown, in seconds: shorter jobs count as so long. */
export const BOUND_S = 10;

/** Seconds that a job computes. */
export const computingS = ({ runS, limitS }: SimJob): number => Math.min(runS, limitS ?? Infinity);

/**
 * Sums up a run on machines of `cpus` CPUs in all, of power 1 where they are `timeShared`: there jobs take longer than they
 * compute.
 */
export function summarize(
  jobs: readonly SimJob[],
  times: MemorySink,
  cpus: number,
  timeShared = false,
): Summary {
  const wait = new Float64Array(jobs.length);
  const turnaround = new Float64Array(wait.length);
  const slowdown = new Float64Array(wait.length);
  const bounded = new Float64Array(wait.length);
  let count = 0;
  let used = 0;
  let firstSubmit = Infinity;
  let lastEnd = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < wait.length; i++) {
    const simJob = jobs[i] as SimJob;
    const { job } = simJob;
    const start = times.starts[i] as number;
    const end = times.ends[i] as number;
    firstSubmit = Math.min(firstSubmit, job.submittedAt);
    if (!(end >= start)) continue;
    const run = timeShared ? computingS(simJob) : end - start;
    wait[count] = start - job.submittedAt;
    turnaround[count] = end - job.submittedAt;
    slowdown[count] = run > 0 ? (end - job.submittedAt) / run : 1;
    bounded[count] = Math.max(1, (end - job.submittedAt) / Math.max(run, BOUND_S));
    used += run * job.cpusPerTask * job.tasks;
    lastEnd = Math.max(lastEnd, end);
    count++;
  }
  const makespan = count === 0 ? 0 : lastEnd - firstSubmit;
  return {
    jobs: count,
    makespan,
    utilization: makespan > 0 && cpus > 0 ? used / (cpus * makespan) : 0,
    wait: distribution(wait.subarray(0, count)),
    turnaround: distribution(turnaround.subarray(0, count)),
    slowdown: distribution(slowdown.subarray(0, count)),
    boundedSlowdown: distribution(bounded.subarray(0, count)),
  };
}

/** Sorts the values in place; zeros when there are none. */
export function distribution(values: Float64Array): Distribution {
  if (values.length === 0) return { mean: 0, median: 0, p95: 0, max: 0 };
  let sum = 0;
  for (const value of values) sum += value;
  values.sort();
  return {
    mean: sum / values.length,
    median: quantile(values, 0.5),
    p95: quantile(values, 0.95),
    max: values[values.length - 1] as number,
  };
}

/** Of ascending values, interpolated between the two ranks around it. */
export function quantile(sorted: Float64Array, q: number): number {
  const at = q * (sorted.length - 1);
  const low = sorted[Math.floor(at)] as number;
  const high = sorted[Math.ceil(at)] as number;
  return low + (high - low) * (at - Math.floor(at));
}
