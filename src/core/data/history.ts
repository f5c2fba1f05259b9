/**
 * What share of their time applications compute (JBMS's Job Analyzer and Monitor; exact rules: job-ratio.md). History is kept
 * as running averages only: as counts and exact sums, which make them.
 */
import type { Job, RunTotals } from '../model.js';
import { nearest, unitsOf } from '../structures/units.js';

/** The job ratio `CJR : DIJR` as shares that sum to 1, but for rounding. */
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

/** One run as it enters the totals. */
export interface ObservedRun {
  turnaroundS: number;
  ioS: number;
  sitePower: number;
}

/** The totals before the first run. */
export const noRuns = (of: Pick<RunTotals, 'application' | 'userId' | 'kinds'>): RunTotals => ({
  ...of,
  count: 0,
  turnaround: 0n,
  execution: 0n,
  io: 0n,
});

/** The totals with one more run, each value times `sitePower/referencePower`. */
export function totalsWith(totals: RunTotals, run: ObservedRun, referencePower: number): RunTotals {
  const f = run.sitePower / referencePower;
  return {
    ...totals,
    count: totals.count + 1,
    turnaround: totals.turnaround + unitsOf(f * run.turnaroundS),
    execution: totals.execution + unitsOf(f * (run.turnaroundS - run.ioS)),
    io: totals.io + unitsOf(f * run.ioS),
  };
}

/** The averages of `count` runs; with more and more runs these are `new = (old·count + value)/(count + 1)`. */
export const averagesOf = ({
  count,
  turnaround,
  execution,
  io,
}: Omit<RunTotals, 'application' | 'userId' | 'kinds'>) => ({
  turnaroundS: nearest(turnaround) / count,
  executionS: nearest(execution) / count,
  ioS: nearest(io) / count,
});

/** `CJR = JET/JTT` of the averages, which are over as many runs; runs that took no time are taken for computation. */
export function computationOf({
  turnaround,
  execution,
}: Pick<RunTotals, 'turnaround' | 'execution'>): number {
  return turnaround > 0n ? Math.min(1, Math.max(0, nearest(execution) / nearest(turnaround))) : 1;
}

/** What records of one kind come to together. */
class Pool {
  private runs = 0;
  private turnaround = 0n;
  private execution = 0n;
  private io = 0n;
  private known: JobRatio | null = null;

  constructor(private readonly source: JobRatio['source']) {}

  add({ count, turnaround, execution, io }: RunTotals): void {
    this.known = null;
    this.runs += count;
    this.turnaround += turnaround;
    this.execution += execution;
    this.io += io;
  }

  remove({ count, turnaround, execution, io }: RunTotals): void {
    this.known = null;
    this.runs -= count;
    this.turnaround -= turnaround;
    this.execution -= execution;
    this.io -= io;
  }

  get ratio(): JobRatio {
    this.known ??= this.workOut();
    return this.known;
  }

  private workOut(): JobRatio {
    const { turnaround, execution } = this;
    const computation = computationOf({ turnaround, execution });
    // Not what is left of 1: that would be hardly anything of a small share.
    const dataIntensive = turnaround > 0n ? Math.min(1, nearest(this.io) / nearest(turnaround)) : 0;
    return { computation, dataIntensive, source: this.source, runs: this.runs };
  }
}

export class JobHistory {
  /** Changes whenever a record does. */
  version = 0;
  private readonly records = new Map<string, RunTotals>();
  /** By application, by user and kinds, and by kinds. */
  private readonly applications = new Map<string, Pool>();
  private readonly users = new Map<string, Pool>();
  private readonly everybody = new Map<string, Pool>();

  /** Records. */
  get size(): number {
    return this.records.size;
  }

  /** Adds a record or replaces it by a newer one. */
  set(record: RunTotals): void {
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
