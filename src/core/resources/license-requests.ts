/** How much the jobs of each local queue, and of all of them, ask for of each kind that is counted in pools. */
import type { Grid, GridListener } from '../grid/grid.js';
import type { JobQueue } from '../grid/queue.js';
import { asksPools, type Job, poolsAskedBy } from '../model.js';

/** Requests for a kind over the copies that may be active; a kind with no copies counts as one copy. */
export const requestRatio = (requests: number, copies: number): number => requests / Math.max(1, copies);

export class LicenseRequests implements GridListener {
  private readonly byQueue = new Map<JobQueue, Map<string, number>>();
  private readonly all = new Map<string, number>();

  constructor(private readonly grid: Grid) {
    for (const { queue } of grid.sites)
      for (const slot of queue.slots()) this.count(queue.jobs[slot] as Job, queue, 1);
  }

  /** By kind; a kind that nobody asks for is not in it. */
  of(queue: JobQueue): ReadonlyMap<string, number> {
    return this.byQueue.get(queue) ?? NONE;
  }

  /**
   * ρ of each kind that is asked for in the queue (two-level.md, "Level 2"): requests over copies, both where the copies are shared. Of
   * a kind with a pool of the whole grid: the jobs of all sites over all copies there are; of another: those of this site over its own
   * copies.
   */
  ratiosOf(queue: JobQueue): Map<string, number> {
    const ratios = new Map<string, number>();
    for (const [kind, here] of this.of(queue)) {
      const pools = this.grid.licensePools(kind);
      const shared = pools.some(({ license }) => license.siteId === null);
      const requests = shared ? (this.all.get(kind) as number) : here;
      let copies = 0;
      for (const { license } of pools)
        if (shared || license.siteId === queue.siteId) copies += license.copies;
      ratios.set(kind, requestRatio(requests, copies));
    }
    return ratios;
  }

  placed(job: Job, _: unknown, queue: JobQueue): void {
    this.count(job, queue, 1);
  }

  left(job: Job, _: unknown, queue: JobQueue): void {
    this.count(job, queue, -1);
  }

  private count(job: Job, queue: JobQueue, jobs: 1 | -1): void {
    if (!asksPools(job) || queue.level !== 'LOCAL') return;
    let requests = this.byQueue.get(queue);
    if (requests === undefined) {
      requests = new Map();
      this.byQueue.set(queue, requests);
    }
    for (const { kind, amount } of poolsAskedBy(job)) {
      const count = (requests.get(kind) ?? 0) + jobs * amount;
      if (count > 0) requests.set(kind, count);
      else requests.delete(kind);
      const everywhere = (this.all.get(kind) ?? 0) + jobs * amount;
      if (everywhere > 0) this.all.set(kind, everywhere);
      else this.all.delete(kind);
    }
    if (requests.size === 0) this.byQueue.delete(queue);
  }
}

const NONE: ReadonlyMap<string, number> = new Map();
