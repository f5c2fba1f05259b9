/** How many jobs of each local queue ask for each kind of license. */
import type { Grid, GridListener } from '../grid/grid.js';
import type { JobQueue } from '../grid/queue.js';
import type { Job } from '../model.js';

export class LicenseRequests implements GridListener {
  private readonly byQueue = new Map<JobQueue, Map<string, number>>();

  constructor(grid: Grid) {
    for (const { queue } of grid.sites)
      for (const slot of queue.slots()) this.count(queue.jobs[slot] as Job, queue, 1);
  }

  /** By kind; a kind that nobody asks for is not in it. */
  of(queue: JobQueue): ReadonlyMap<string, number> {
    return this.byQueue.get(queue) ?? NONE;
  }

  placed(job: Job, _: unknown, queue: JobQueue): void {
    this.count(job, queue, 1);
  }

  left(job: Job, _: unknown, queue: JobQueue): void {
    this.count(job, queue, -1);
  }

  private count({ licenses }: Job, queue: JobQueue, jobs: 1 | -1): void {
    if (licenses.length === 0 || queue.level !== 'LOCAL') return;
    let requests = this.byQueue.get(queue);
    if (requests === undefined) {
      requests = new Map();
      this.byQueue.set(queue, requests);
    }
    for (const kind of licenses) {
      const count = (requests.get(kind) ?? 0) + jobs;
      if (count > 0) requests.set(kind, count);
      else requests.delete(kind);
    }
    if (requests.size === 0) this.byQueue.delete(queue);
  }
}

const NONE: ReadonlyMap<string, number> = new Map();
