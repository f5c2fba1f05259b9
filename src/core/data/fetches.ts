/**
 * What the jobs at sites have to fetch over the network: those that wait there, and those that run and may still be at it. Together
 * with the catalog it says what is queued on a link (diana.md, "data transfer"; terms/transfers.ts).
 */
import type { Grid, GridListener } from '../grid/grid.js';
import type { JobQueue } from '../grid/queue.js';
import type { Job, JobInput, Run } from '../model.js';
import { ExactSum } from '../structures/exact-sum.js';

/** Of the jobs of one queue. */
export interface Waiting {
  /** How many of them read a dataset. */
  readonly datasets: Map<number, number>;
  /** Megabytes that they read from a site. */
  readonly places: Map<number, ExactSum>;
}

/** The inputs of a job that runs, since when. */
export interface Fetching {
  readonly jobId: number;
  readonly start: number;
  readonly inputs: readonly JobInput[];
}

export class Fetches implements GridListener {
  private readonly waiting = new Map<JobQueue, Waiting>();
  /** By site and job. */
  private readonly running = new Map<number, Map<number, Fetching>>();

  constructor(grid: Grid) {
    for (const { queue, meta, resources } of grid.sites) {
      for (const each of [queue, meta])
        for (const slot of each.slots()) this.placed(each.jobs[slot] as Job, null, each);
      for (const { run } of resources.runs) this.started(grid.job(run.jobId) as Job, run);
    }
  }

  /** Null: none of its jobs reads anything. */
  of(queue: JobQueue): Waiting | null {
    return this.waiting.get(queue) ?? null;
  }

  /** Of the runs of a site, in the order in which they began. */
  at(siteId: number): Fetching[] {
    const all = [...(this.running.get(siteId)?.values() ?? [])];
    return all.sort((a, b) => a.start - b.start || a.jobId - b.jobId);
  }

  placed(job: Job, _: unknown, queue: JobQueue): void {
    if (readsNothing(job) || queue.level === 'ROOT') return;
    let waiting = this.waiting.get(queue);
    if (waiting === undefined) {
      waiting = { datasets: new Map(), places: new Map() };
      this.waiting.set(queue, waiting);
    }
    for (const input of job.data?.inputs ?? []) {
      if ('datasetId' in input)
        waiting.datasets.set(input.datasetId, (waiting.datasets.get(input.datasetId) ?? 0) + 1);
      else sumOf(waiting.places, input.siteId).add(input.sizeMb);
    }
  }

  left(job: Job, _: unknown, queue: JobQueue): void {
    const waiting = this.waiting.get(queue);
    if (readsNothing(job) || waiting === undefined) return;
    for (const input of job.data?.inputs ?? []) {
      if ('datasetId' in input) {
        const count = (waiting.datasets.get(input.datasetId) as number) - 1;
        if (count === 0) waiting.datasets.delete(input.datasetId);
        else waiting.datasets.set(input.datasetId, count);
      } else {
        const sum = sumOf(waiting.places, input.siteId);
        sum.remove(input.sizeMb);
        if (sum.count === 0) waiting.places.delete(input.siteId);
      }
    }
    if (waiting.datasets.size + waiting.places.size === 0) this.waiting.delete(queue);
  }

  started(job: Job, { siteId, start }: Run): void {
    if (readsNothing(job)) return;
    let here = this.running.get(siteId);
    if (here === undefined) {
      here = new Map();
      this.running.set(siteId, here);
    }
    here.set(job.id, { jobId: job.id, start, inputs: job.data?.inputs ?? [] });
  }

  ended(job: Job, { siteId }: Run): void {
    const here = this.running.get(siteId);
    if (here?.delete(job.id) && here.size === 0) this.running.delete(siteId);
  }
}

const readsNothing = ({ data }: Job): boolean => data === null || data.inputs.length === 0;

function sumOf(sums: Map<number, ExactSum>, key: number): ExactSum {
  let sum = sums.get(key);
  if (sum === undefined) {
    sum = new ExactSum();
    sums.set(key, sum);
  }
  return sum;
}
