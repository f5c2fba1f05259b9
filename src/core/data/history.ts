/**
 * What share of their time applications compute (JBMS's Job Analyzer and Monitor; exact rules: job-ratio.md). History is kept
 * as running averages only.
 */
import type { Job, RunAverages } from '../model.js';

/** The job ratio `CJR : DIJR` as shares that sum to 1. */
export interface JobRatio {
  computation: number;
  dataIntensive: number;
  /** Whose history it comes from: the application's, that of similar ones, or none. */
  source: 'APPLICATION' | 'USER' | 'EVERYBODY' | 'DECLARED' | 'UNKNOWN';
  /** Runs behind it. */
  runs: number;
}

/** The kinds of resource that a job needs, as a key: jobs that need the same are similar. */
export const resourceKinds = ({ licences, os, arch }: Pick<Job, 'licences' | 'os' | 'arch'>): string =>
  JSON.stringify([os, arch, ...licences]);

/** One run as it enters the averages. */
export interface ObservedRun {
  turnaroundS: number;
  ioS: number;
  sitePower: number;
}

/** The averages with one more run: `new = (old·count + value)/(count + 1)`, each value times `sitePower/referencePower`. */
export function averagesWith<T extends Pick<RunAverages, 'count' | 'turnaroundS' | 'executionS' | 'ioS'>>(
  averages: T,
  run: ObservedRun,
  referencePower: number,
): T {
  const f = run.sitePower / referencePower;
  const { count } = averages;
  const mean = (old: number, value: number): number => (old * count + f * value) / (count + 1);
  return {
    ...averages,
    count: count + 1,
    turnaroundS: mean(averages.turnaroundS, run.turnaroundS),
    executionS: mean(averages.executionS, run.turnaroundS - run.ioS),
    ioS: mean(averages.ioS, run.ioS),
  };
}

/** Sums over histories, from which their common averages follow. */
interface Sum {
  runs: number;
  turnaroundS: number;
  executionS: number;
}

export class JobHistory {
  /** Changes whenever a record does. */
  version = 0;
  private readonly records = new Map<string, RunAverages>();
  /** Sums by application, by user and kinds, and by kinds. */
  private readonly applications = new Map<string, Sum>();
  private readonly similar = new Map<string, Sum>();

  /** Adds a record or replaces it by a newer one. */
  set(record: RunAverages): void {
    const key = JSON.stringify([record.application, record.userId, record.kinds]);
    const before = this.records.get(key);
    this.records.set(key, record);
    this.version++;
    for (const [sums, name] of [
      [this.applications, record.application],
      [this.similar, JSON.stringify([record.userId, record.kinds])],
      [this.similar, record.kinds],
    ] as const) {
      const sum = sums.get(name) ?? { runs: 0, turnaroundS: 0, executionS: 0 };
      if (before !== undefined) change(sum, before, -1);
      change(sum, record, 1);
      sums.set(name, sum);
    }
  }

  /**
   * The ratio of a job's application; of one that never ran, that of the same user's runs that needed the same kinds of
   * resource, failing these everybody's, failing these what the submission declares, failing that one half.
   */
  ratioOf(job: Pick<Job, 'application' | 'userId' | 'licences' | 'os' | 'arch' | 'data'>): JobRatio {
    const own = this.applications.get(job.application);
    if (own !== undefined) return ratio(own, 'APPLICATION');
    const kinds = resourceKinds(job);
    const users = this.similar.get(JSON.stringify([job.userId, kinds]));
    if (users !== undefined) return ratio(users, 'USER');
    const everybodys = this.similar.get(kinds);
    if (everybodys !== undefined) return ratio(everybodys, 'EVERYBODY');
    const declared = job.data?.computationShare ?? null;
    const computation = declared ?? 0.5;
    return {
      computation,
      dataIntensive: 1 - computation,
      source: declared === null ? 'UNKNOWN' : 'DECLARED',
      runs: 0,
    };
  }
}

function change(sum: Sum, { count, turnaroundS, executionS }: RunAverages, sign: 1 | -1): void {
  sum.runs += sign * count;
  sum.turnaroundS += sign * count * turnaroundS;
  sum.executionS += sign * count * executionS;
}

/** `CJR = JET/JTT`; runs that took no time are taken for computation. */
function ratio({ runs, turnaroundS, executionS }: Sum, source: JobRatio['source']): JobRatio {
  const computation = turnaroundS > 0 ? Math.min(1, Math.max(0, executionS / turnaroundS)) : 1;
  return { computation, dataIntensive: 1 - computation, source, runs };
}
