/**
 * Load[P] and Ordering[P] of all sites (Pasquali et al., section 4): the work and the number of the jobs in their local queues with
 * priority ≥ P, kept up job by job: a dispatch never scans a queue.
 */
import type { Grid, GridListener } from '../../grid/grid.js';
import type { JobQueue } from '../../grid/queue.js';
import { effectivePriority, type Job } from '../../model.js';
import { RankedSums } from '../../structures/ranked-sums.js';

export class QueuedWork implements GridListener {
  /** By position of the site and level of priority. */
  sums = new RankedSums(0);
  private readonly positions = new Map<JobQueue, number>();

  constructor(private readonly grid: Grid) {
    this.sitesChanged();
  }

  placed(job: Job, _: unknown, queue: JobQueue): void {
    this.change(job, queue, 1);
  }

  left(job: Job, _: unknown, queue: JobQueue): void {
    this.change(job, queue, -1);
  }

  sitesChanged(): void {
    const { sites } = this.grid;
    this.sums = new RankedSums(sites.length);
    this.positions.clear();
    sites.forEach(({ queue }, site) => {
      this.positions.set(queue, site);
      for (const slot of queue.slots()) this.change(queue.jobs[slot] as Job, queue, 1);
    });
  }

  private change(job: Job, queue: JobQueue, sign: 1 | -1): void {
    if (queue.level !== 'LOCAL') return;
    const site = this.positions.get(queue) as number;
    this.sums.add(site, effectivePriority(job), job.estimateS * job.benchmark, sign);
  }
}
