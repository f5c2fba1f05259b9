/**
 * Where the results of a simulation go. The engine tells a sink of each start and each end when they happen, in order;
 * a sink writes, counts or keeps.
 */
import { cpusOf, type Move, type Run, type SitePlan } from '../core/index.js';
import type { SimJob } from './workload.js';

/** How a run ended. Behind LOST its job starts over, behind PREEMPTED too, unless it was to end then (`preemption.cancelBelow`). */
export type RunEnd = 'COMPLETED' | 'KILLED_AT_LIMIT' | 'LOST' | 'PREEMPTED';

export const isFinal = (how: RunEnd): boolean => how === 'COMPLETED' || how === 'KILLED_AT_LIMIT';

export interface Sink {
  /** The root, or a meta-queue, has given a job away. */
  moved?(move: Move, at: number): void;
  /** `index` is the job's position in the workload. */
  started?(job: SimJob, index: number, run: Run): void;
  /** A site's scheduler has planned; told before its starts. */
  planned?(plan: SitePlan, at: number): void;
  ended?(job: SimJob, index: number, run: Run, at: number, how: RunEnd): void;
}

/** Keeps when each job started and ended for good: NaN for one that never did. */
export class MemorySink implements Sink {
  readonly starts: Float64Array;
  readonly ends: Float64Array;
  /** By job: seconds of runs before its last that it need not compute again (`SimJob.checkpointS`). */
  readonly keptS = new Map<number, number>();

  /** `jobs`: how many the workload has. */
  constructor(jobs: number) {
    this.starts = new Float64Array(jobs).fill(Number.NaN);
    this.ends = new Float64Array(jobs).fill(Number.NaN);
  }

  started(_job: SimJob, index: number, run: Run): void {
    this.starts[index] = run.start;
  }

  ended(_job: SimJob, index: number, { start, checkpointAt }: Run, at: number, how: RunEnd): void {
    this.ends[index] = isFinal(how) ? at : Number.NaN;
    if (isFinal(how) || checkpointAt === undefined) return;
    this.keptS.set(index, (this.keptS.get(index) ?? 0) + checkpointAt - start);
  }
}

/** Keeps where each job ran, too, and how its last run ended. */
export class ResultSink extends MemorySink {
  /** 0: nowhere. */
  readonly siteIds: Int32Array;
  /** 1: at its limit. */
  readonly killed: Uint8Array;
  /** Runs that were lost with their machines; their jobs started over. */
  lost = 0;
  /** Runs that were stopped for jobs of higher classes, or for what was held. */
  preempted = 0;
  /** CPU-seconds of lost and stopped runs since their start, or their last checkpoint. */
  lostCpuS = 0;

  constructor(jobs: number) {
    super(jobs);
    this.siteIds = new Int32Array(jobs);
    this.killed = new Uint8Array(jobs);
  }

  override started(job: SimJob, index: number, run: Run): void {
    super.started(job, index, run);
    this.siteIds[index] = run.siteId;
  }

  override ended(job: SimJob, index: number, run: Run, at: number, how: RunEnd): void {
    super.ended(job, index, run, at, how);
    this.killed[index] = how === 'KILLED_AT_LIMIT' ? 1 : 0;
    if (how === 'LOST') this.lost++;
    if (how === 'PREEMPTED') this.preempted++;
    if (isFinal(how)) return;
    this.lostCpuS += cpusOf(job.job) * (at - (run.checkpointAt ?? run.start));
  }
}
