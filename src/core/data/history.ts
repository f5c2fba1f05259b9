/**
 * What share of their time applications compute (JBMS's Job Analyzer and Monitor; exact rules: job-ratio.md). History is kept
 * as running averages only.
 */
import type { Job, RunAverages } from '../model.js';
import { ExactSum } from '../structures/exact-sum.js';

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
export const resourceKinds = ({
  licenses,
  os,
  architecture,
}: Pick<Job, 'licenses' | 'os' | 'architecture'>): string => JSON.stringify([os, architecture, ...licenses]);

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

/** What records of one kind come to together. */
class Pool {
  private runs = 0;
  private readonly turnaroundS = new ExactSum();
  private readonly executionS = new ExactSum();
  private known: JobRatio | null = null;

  constructor(private readonly source: JobRatio['source']) {}

  add({ count, turnaroundS, executionS }: RunAverages): void {
    this.known = null;
    this.runs += count;
    this.turnaroundS.add(count * turnaroundS);
    this.executionS.add(count * executionS);
  }

  remove({ count, turnaroundS, executionS }: RunAverages): void {
    this.known = null;
    this.runs -= count;
    this.turnaroundS.remove(count * turnaroundS);
    this.executionS.remove(count * executionS);
  }

  /** `CJR = JET/JTT` of the common averages; runs that took no time are taken for computation. */
  get ratio(): JobRatio {
    this.known ??= this.workOut();
    return this.known;
  }

  private workOut(): JobRatio {
    const turnaroundS = this.turnaroundS.value;
    const computation = turnaroundS > 0 ? Math.min(1, Math.max(0, this.executionS.value / turnaroundS)) : 1;
    return { computation, dataIntensive: 1 - computation, source: this.source, runs: this.runs };
  }
}

export class JobHistory {
  /** Changes whenever a record does. */
  version = 0;
  private readonly records = new Map<string, RunAverages>();
  /** By application, by user and kinds, and by kinds. */
  private readonly applications = new Map<string, Pool>();
  private readonly users = new Map<string, Pool>();
  private readonly everybody = new Map<string, Pool>();

  /** Records. */
  get size(): number {
    return this.records.size;
  }

  /** Adds a record or replaces it by a newer one. */
  set(record: RunAverages): void {
    const { application, userId, kinds } = record;
    const key = JSON.stringify([application, userId, kinds]);
    const before = this.records.get(key);
    this.records.set(key, record);
    this.version++;
    for (const pool of [
      poolOf(this.applications, application, 'APPLICATION'),
      poolOf(this.users, JSON.stringify([userId, kinds]), 'USER'),
      poolOf(this.everybody, kinds, 'EVERYBODY'),
    ]) {
      if (before !== undefined) pool.remove(before);
      pool.add(record);
    }
  }

  /**
   * The ratio of a job's application; of one that never ran, that of the same user's runs that needed the same kinds of
   * resource, failing these everybody's, failing these what the submission declares, failing that one half.
   */
  ratioOf(job: Pick<Job, 'application' | 'userId' | 'licenses' | 'os' | 'architecture' | 'data'>): JobRatio {
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
