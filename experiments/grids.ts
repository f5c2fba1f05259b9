/** What the experiments with data share: grids of a few sites, links between them, jobs, and the times that come out. */
import {
  DEFAULT_POLICY,
  type Job,
  type Link,
  type LocalPolicy,
  type Policy,
  parsePolicy,
  plainJob,
  type RandomStream,
  type Run,
} from '../src/core/index.js';
import type { World } from '../src/simulator/engine.js';
import type { Sink } from '../src/simulator/sink.js';
import type { SimJob } from '../src/simulator/workload.js';
import { meanAndError } from './santoso.js';

/** Megabytes a second in a megabit a second. */
export const MBIT = 1 / 8;

/** A site of equal nodes. */
export interface SiteShape {
  nodes: number;
  cpusPerNode: number;
  /** Of a node: its benchmark. */
  power: number;
}

/** The sites, numbered from 1, with a machine for each node. */
export function gridOf(shapes: readonly SiteShape[]): World {
  return {
    sites: shapes.map((_, i) => ({ id: i + 1, name: `site-${i + 1}`, state: 'UP', localPolicy: null })),
    machines: shapes.flatMap(({ nodes, cpusPerNode, power }, i) =>
      Array.from({ length: nodes }, (_, node) => ({
        id: (i + 1) * 1000 + node,
        siteId: i + 1,
        cpus: cpusPerNode,
        memoryMb: 0,
        benchmark: power,
        os: '',
        architecture: '',
        licenseIds: [],
        available: true,
      })),
    ),
    licenses: [],
    changes: [],
  };
}

/** A link from every site to every other, as `draw` says. */
export function linksBetween(sites: number, draw: () => Omit<Link, 'fromSiteId' | 'toSiteId'>): Link[] {
  const ids = Array.from({ length: sites }, (_, i) => i + 1);
  return ids.flatMap((fromSiteId) =>
    ids
      .filter((toSiteId) => toSiteId !== fromSiteId)
      .map((toSiteId) => ({ fromSiteId, toSiteId, ...draw() })),
  );
}

/** Uniform in the logarithm. */
export const logUniform = (random: RandomStream, low: number, high: number): number =>
  low * (high / low) ** random.next();

/** A job of the root; `ioS` as in `SimJob`. Its estimate is right. Ids go by the order of submission, from 1. */
export function rootJob(
  id: number,
  { runS, ioS = 0, ...given }: Partial<Job> & { runS: number; ioS?: number },
): SimJob {
  return {
    job: plainJob({
      id,
      submittedAt: 0,
      estimateS: runS + ioS,
      groupId: 1,
      ...given,
    }),
    sourceId: id,
    runS,
    ioS,
    limitS: null,
    siteId: null,
  };
}

/** The default document with this dispatch policy, as a document gives it: what is left out has its default. */
export function documentWith(
  dispatch: { kind: string; [field: string]: unknown },
  local: LocalPolicy,
): Policy {
  return parsePolicy({ ...DEFAULT_POLICY, dispatch, local });
}

/** Of one simulation, in seconds; means are over the jobs. */
export interface Times {
  /** From submission to start: in whatever queues. */
  queueS: number;
  /** From start to end: bringing data, computing, returning data. */
  executionS: number;
  /** From submission to end. */
  turnaroundS: number;
  /** From the first submission to the last end. */
  makespanS: number;
}

/** Adds up the times of jobs that run once each. */
export class TimesSink implements Sink {
  private ran = 0;
  private queueS = 0;
  private executionS = 0;
  private lastEnd = 0;

  constructor(private readonly jobs: readonly SimJob[]) {}

  ended({ job }: SimJob, _index: number, { start }: Run, at: number): void {
    this.ran++;
    this.queueS += start - job.submittedAt;
    this.executionS += at - start;
    this.lastEnd = at;
  }

  /** Throws when a job has not run. */
  times(): Times {
    const { jobs, ran } = this;
    if (ran < jobs.length) throw new Error(`${jobs.length - ran} of ${jobs.length} jobs did not run`);
    const queueS = this.queueS / ran;
    const executionS = this.executionS / ran;
    const makespanS = this.lastEnd - (jobs[0] as SimJob).job.submittedAt;
    return { queueS, executionS, turnaroundS: queueS + executionS, makespanS };
  }
}

/** How a measure of one policy compares with another's over the same runs. */
export interface Contrast {
  /** Mean of the differences, run by run: below 0 the first is less. */
  difference: number;
  error: number;
}

export function contrast(ours: readonly number[], theirs: readonly number[]): Contrast {
  const { mean, error } = meanAndError(ours.map((value, i) => value - (theirs[i] as number)));
  return { difference: mean, error };
}

/** Less by more than two standard errors of the difference. */
export const isLess = ({ difference, error }: Contrast): boolean => difference < -2 * error;
