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

/** Records of one kind and what they come to together. */
class Pool {
  private readonly records: { key: string; record: RunAverages }[] = [];
  private known: JobRatio | null = null;

  constructor(private readonly source: JobRatio['source']) {}

  /** Whether it is one more. */
  set(key: string, record: RunAverages): boolean {
    this.known = null;
    const { records } = this;
    let low = 0;
    for (let high = records.length; low < high; ) {
      const middle = (low + high) >>> 1;
      if ((records[middle] as { key: string }).key < key) low = middle + 1;
      else high = middle;
    }
    const replaces = records[low]?.key === key ? 1 : 0;
    records.splice(low, replaces, { key, record });
    return replaces === 0;
  }

  /** `CJR = JET/JTT` of the common averages; runs that took no time are taken for computation. */
  get ratio(): JobRatio {
    this.known ??= this.workOut();
    return this.known;
  }

  /** Afresh and in order of the keys: what comes out does not depend on which record came when. */
  private workOut(): JobRatio {
    let runs = 0;
    let turnaroundS = 0;
    let executionS = 0;
    for (const { record } of this.records) {
      runs += record.count;
      turnaroundS += record.count * record.turnaroundS;
      executionS += record.count * record.executionS;
    }
    const computation = turnaroundS > 0 ? Math.min(1, Math.max(0, executionS / turnaroundS)) : 1;
    return { computation, dataIntensive: 1 - computation, source: this.source, runs };
  }
}

export class JobHistory {
  /** Changes whenever a record does. */
  version = 0;
  /** Records. */
  size = 0;
  /** By application, by user and kinds, and by kinds. */
  private readonly applications = new Map<string, Pool>();
  private readonly users = new Map<string, Pool>();
  private readonly everybody = new Map<string, Pool>();

  /** Adds a record or replaces it by a newer one. */
  set(record: RunAverages): void {
    const { application, userId, kinds } = record;
    const key = JSON.stringify([application, userId, kinds]);
    this.version++;
    if (poolOf(this.applications, application, 'APPLICATION').set(key, record)) this.size++;
    poolOf(this.users, JSON.stringify([userId, kinds]), 'USER').set(key, record);
    poolOf(this.everybody, kinds, 'EVERYBODY').set(key, record);
  }

  /**
   * The ratio of a job's application; of one that never ran, that of the same user's runs that needed the same kinds of
   * resource, failing these everybody's, failing these what the submission declares, failing that one half.
   */
  ratioOf(job: Pick<Job, 'application' | 'userId' | 'licences' | 'os' | 'arch' | 'data'>): JobRatio {
    const own = this.applications.get(job.application);
    if (own !== undefined) return own.ratio;
    const kinds = resourceKinds(job);
    const similar = this.users.get(JSON.stringify([job.userId, kinds])) ?? this.everybody.get(kinds);
    if (similar !== undefined) return similar.ratio;
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

function poolOf(pools: Map<string, Pool>, name: string, source: JobRatio['source']): Pool {
  let pool = pools.get(name);
  if (pool === undefined) {
    pool = new Pool(source);
    pools.set(name, pool);
  }
  return pool;
}
