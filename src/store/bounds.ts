/**
 * The ranges of a job's numbers: what the API accepts, what the CHECKs of the table say, and what every implementation of the store
 * refuses. A test compares the three. No sum, product or time of numbers within them leaves the range in which it is exact.
 */
import { MAX } from '../platform/limits.js';
import { type GivenJob, jobColumn } from './job-fields.js';

type NumberField = { [K in keyof GivenJob]: GivenJob[K] extends number | null ? K : never }[keyof GivenJob];
type Range = readonly [min: number, max: number];

export const fieldBounds = {
  arrayIndex: [0, MAX.integer],
  tasks: [1, MAX.tasks],
  cpusPerTask: [1, MAX.tasks],
  memoryMbPerTask: [0, MAX.integer],
  estimateS: [MAX.leastSeconds, MAX.seconds],
  benchmark: [MAX.leastBenchmark, MAX.benchmark],
  runTimeLimitS: [MAX.leastSeconds, MAX.seconds],
  warnS: [0, MAX.seconds],
  killGraceS: [0, MAX.killGraceS],
  sandboxMb: [0, MAX.sizeMb],
  outputMb: [0, MAX.sizeMb],
  computationShare: [0, 1],
  simulatedRunS: [0, MAX.seconds],
  simulatedIoS: [0, MAX.seconds],
  boost: [-MAX.boost, MAX.boost],
} as const satisfies Partial<Record<NumberField, Range>>;

const ranges = Object.entries(fieldBounds) as [keyof typeof fieldBounds, Range][];

/** The column of the first number that is out of its range, or `work` for a product that is; null: all are good. */
export function outOfBounds(job: GivenJob): string | null {
  for (const [field, [min, max]] of ranges) {
    const value = job[field];
    if (value !== null && !(value >= min && value <= max)) return jobColumn[field];
  }
  const cpus = job.tasks * job.cpusPerTask;
  return cpus <= MAX.jobCpus && job.estimateS * job.benchmark * cpus <= MAX.work ? null : 'work';
}

/** Jobs that have not ended, and what they take. */
export interface Share {
  jobs: number;
  bytes: number;
}
