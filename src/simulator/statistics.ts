/** The figures that workload studies report. */

import { cpusOf } from '../core/index.js';
import type { MemorySink } from './sink.js';
import type { Away } from './sites.js';
import type { SimJob } from './workload.js';

/** Of a measure over all jobs. Quantiles are interpolated between ranks, as is usual. */
export interface Distribution {
  mean: number;
  median: number;
  p95: number;
  max: number;
}

/** The measures of some jobs. */
export interface Figures {
  /** Jobs that ended. */
  jobs: number;
  /** CPU-seconds used over CPU-seconds there were in the makespan, those of machines that were gone left out. */
  utilization: number;
  /** Seconds from submission to start. */
  wait: Distribution;
  /** Seconds from submission to end. */
  turnaround: Distribution;
  /** Turnaround over run time: that on CPUs of its own. */
  slowdown: Distribution;
  /** max(1, turnaround / max(run time, τ)) (Feitelson et al.). */
  boundedSlowdown: Distribution;
  /** max(1, turnaround / (processors · max(run time, τ))) (Zotkin and Keleher): waiting counts less for wide jobs. */
  perProcessorSlowdown: Distribution;
  /** Means weighted with the CPU-seconds of the jobs (Grimme et al.), in seconds. */
  areaWeighted: { wait: number; turnaround: number };
}

export interface Summary extends Figures {
  /** Seconds from the first submission to the last end, of the jobs that count. */
  makespan: number;
  /** Jobs that ended in an hour of the makespan. */
  throughputPerHour: number;
  /** Mean number of jobs that wait, of those that count. */
  meanQueued: number;
}

/** τ of the bounded slowdown unless said, in seconds: shorter jobs count as this long. */
export const BOUND_S = 10;

/** Seconds that a job computes. */
export const computingS = ({ runS, limitS }: SimJob): number => Math.min(runS, limitS ?? Infinity);

export interface SummaryOptions {
  /** On time-shared machines, of power 1, jobs take longer than they compute; false unless said. */
  timeShared?: boolean;
  /** τ; `BOUND_S` unless said. */
  tauS?: number;
  /** So many jobs, the first, do not count: what they use of the machines later does. 0 unless said. */
  warmUpJobs?: number;
  /** When machines were gone; never unless said. */
  away?: readonly Away[];
}

/** Sums up the times of jobs on machines. */
export class Statistics {
  private readonly timeShared: boolean;
  private readonly tauS: number;
  private readonly first: number;
  private readonly away: readonly Away[];
  /** The time that counts. */
  private readonly fromS: number;
  private readonly toS: number;

  /** `jobs` by time of submission. */
  constructor(
    private readonly jobs: readonly SimJob[],
    private readonly times: MemorySink,
    { timeShared = false, tauS = BOUND_S, warmUpJobs = 0, away = [] }: SummaryOptions = {},
  ) {
    this.timeShared = timeShared;
    this.tauS = tauS;
    this.away = away;
    this.first = Math.min(warmUpJobs, jobs.length);
    this.fromS = jobs[this.first]?.job.submittedAt ?? 0;
    let toS = this.fromS;
    for (let i = this.first; i < jobs.length; i++) toS = Math.max(toS, this.ended(i) ? this.endOf(i) : toS);
    this.toS = toS;
  }

  /** Of all jobs, on machines of `cpus` CPUs in all. */
  all(cpus: number): Summary {
    const { first, jobs } = this;
    const indices = new Int32Array(jobs.length - first).map((_, i) => first + i);
    const makespan = this.toS - this.fromS;
    const figures = this.figures(indices, cpus);
    const waitedS = figures.wait.mean * figures.jobs;
    return {
      ...figures,
      utilization: this.utilization(cpus),
      makespan,
      throughputPerHour: makespan > 0 ? (3600 * figures.jobs) / makespan : 0,
      meanQueued: makespan > 0 ? waitedS / makespan : 0,
    };
  }

  /**
   * By what `keyOf` says of the jobs that count and ended; null: it is in no group. In ascending order of the keys. `isSite`: keys are
   * those of sites, and only their own machines can be gone.
   */
  by(
    keyOf: (index: number) => number | null,
    cpusOf: (key: number) => number,
    isSite = false,
  ): [key: number, Figures][] {
    const groups = new Map<number, number[]>();
    for (let i = this.first; i < this.jobs.length; i++) {
      const key = this.ended(i) ? keyOf(i) : null;
      if (key === null) continue;
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [i]);
      else group.push(i);
    }
    return [...groups]
      .sort(([a], [b]) => a - b)
      .map(([key, indices]) => [key, this.figures(indices, cpusOf(key), isSite ? key : null)]);
  }

  private figures(indices: ArrayLike<number>, cpus: number, siteId: number | null = null): Figures {
    const { jobs, times, tauS } = this;
    const [wait, turnaround, slowdown, bounded, perProcessor] = Array.from(
      { length: 5 },
      () => new Float64Array(indices.length),
    ) as [Float64Array, Float64Array, Float64Array, Float64Array, Float64Array];
    let [count, used, usedInTime, waited, turned] = [0, 0, 0, 0, 0];
    for (let at = 0; at < indices.length; at++) {
      const i = indices[at] as number;
      if (!this.ended(i)) continue;
      const simJob = jobs[i] as SimJob;
      const { job } = simJob;
      const start = times.starts[i] as number;
      const end = times.ends[i] as number;
      const run = this.timeShared ? computingS(simJob) : end - start + this.keptS(i);
      const cpusOfJob = cpusOf(job);
      const whole = end - job.submittedAt;
      const long = Math.max(run, tauS);
      wait[count] = start - job.submittedAt;
      turnaround[count] = whole;
      slowdown[count] = run > 0 ? whole / run : 1;
      bounded[count] = Math.max(1, whole / long);
      perProcessor[count] = Math.max(1, whole / (long * cpusOfJob));
      const area = run * cpusOfJob;
      used += area;
      usedInTime += this.usedS(i);
      waited += area * (start - job.submittedAt);
      turned += area * whole;
      count++;
    }
    const capacity = this.capacity(cpus, siteId);
    return {
      jobs: count,
      utilization: capacity > 0 ? usedInTime / capacity : 0,
      wait: distribution(wait.subarray(0, count)),
      turnaround: distribution(turnaround.subarray(0, count)),
      slowdown: distribution(slowdown.subarray(0, count)),
      boundedSlowdown: distribution(bounded.subarray(0, count)),
      perProcessorSlowdown: distribution(perProcessor.subarray(0, count)),
      areaWeighted: { wait: used > 0 ? waited / used : 0, turnaround: used > 0 ? turned / used : 0 },
    };
  }

  /** Of all jobs, those of the warm-up too, in the time that counts. */
  private utilization(cpus: number): number {
    let used = 0;
    for (let i = 0; i < this.jobs.length; i++) if (this.ended(i)) used += this.usedS(i);
    const capacity = this.capacity(cpus, null);
    return capacity > 0 ? used / capacity : 0;
  }

  /** CPU-seconds that there were in the time that counts; null: at all sites. */
  private capacity(cpus: number, siteId: number | null): number {
    let capacity = cpus * (this.toS - this.fromS);
    for (const one of this.away) {
      if (siteId !== null && one.siteId !== siteId) continue;
      const within = Math.min(one.toS, this.toS) - Math.max(one.fromS, this.fromS);
      capacity -= one.cpus * Math.max(0, within);
    }
    return capacity;
  }

  /** CPU-seconds that a job used in the time that counts. */
  private usedS(index: number): number {
    const simJob = this.jobs[index] as SimJob;
    const start = this.times.starts[index] as number;
    const end = this.endOf(index);
    const within = Math.max(0, Math.min(end, this.toS) - Math.max(start, this.fromS));
    const cpus = cpusOf(simJob.job);
    if (within === 0) return 0;
    return this.timeShared
      ? (cpus * computingS(simJob) * within) / (end - start)
      : cpus * (within + this.keptS(index));
  }

  private keptS(index: number): number {
    const { keptS } = this.times;
    return keptS.size === 0 ? 0 : (keptS.get(index) ?? 0);
  }

  private endOf(index: number): number {
    return this.times.ends[index] as number;
  }

  private ended(index: number): boolean {
    return this.endOf(index) >= (this.times.starts[index] as number);
  }
}

/** Sums up all jobs; see {@link Statistics}. */
export const summarize = (
  jobs: readonly SimJob[],
  times: MemorySink,
  cpus: number,
  options: SummaryOptions = {},
): Summary => new Statistics(jobs, times, options).all(cpus);

/** A mean over repetitions, with its 95 % confidence interval: mean ± half (Student's t); half is null with one value. */
export interface Interval {
  mean: number;
  half: number | null;
}

export function intervalOf(values: readonly number[]): Interval {
  const n = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / n;
  if (n < 2) return { mean, half: null };
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1);
  return { mean, half: studentT(n - 1) * Math.sqrt(variance / n) };
}

/** What repetitions are compared by. */
export interface Means {
  utilization: Interval;
  wait: Interval;
  turnaround: Interval;
  slowdown: Interval;
  boundedSlowdown: Interval;
}

/** The means of runs; with `before`, of their differences to those, run by run. */
export function intervalsOf(runs: readonly Summary[], before?: readonly Summary[]): Means {
  const of = (value: (summary: Summary) => number): Interval =>
    intervalOf(runs.map((run, i) => value(run) - (before ? value(before[i] as Summary) : 0)));
  return {
    utilization: of(({ utilization }) => utilization),
    wait: of(({ wait }) => wait.mean),
    turnaround: of(({ turnaround }) => turnaround.mean),
    slowdown: of(({ slowdown }) => slowdown.mean),
    boundedSlowdown: of(({ boundedSlowdown }) => boundedSlowdown.mean),
  };
}

/** Of 1 to 30 degrees of freedom: the 97.5 % quantile of Student's distribution. */
const T_975 = [
  12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.306, 2.2622, 2.2281, 2.201, 2.1788, 2.1604,
  2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.093, 2.086, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555,
  2.0518, 2.0484, 2.0452, 2.0423,
];

/** Beyond the table by the expansion of Cornish and Fisher, which is right to 0.0001 there. */
function studentT(degrees: number): number {
  const z = 1.959964;
  return (
    T_975[degrees - 1] ??
    z + (z ** 3 + z) / (4 * degrees) + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / (96 * degrees ** 2)
  );
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
