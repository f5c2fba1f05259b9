/**
 * What is queued at each site while a DIANA pass goes on, local and meta-queue together: how many jobs and how much work with
 * at least a given priority. Priorities stand still during a pass, so each distinct one is a rank, and a Fenwick tree
 * over ranks answers. As the question is mostly put for all sites, the sites' trees lie side by side.
 */
import type { SiteEntry } from '../../grid/grid.js';
import type { Requirement } from '../../grid/requirements.js';
import { effectivePriority, type Job } from '../../model.js';
import { RankedSums } from '../../structures/ranked-sums.js';
import { workOf } from '../../terms/power.js';
import { levelOf, quotaKey, type Standing, type Standings } from '../../terms/quota.js';
import type { MetaQueue } from './meta-queues.js';

export class PassQueues {
  /** Jobs in each site's local queue and in its meta-queue. */
  readonly local: number[];
  readonly meta: number[];
  /** The distinct priorities, ascending. */
  private readonly orders: Float64Array;
  private readonly sums: RankedSums;
  /** Answers, and for which priority the first holds. */
  private readonly counts: Float64Array;
  private countedFrom: number | null = null;
  private readonly works: Float64Array;

  /** `metaQueues`: by position of the site. */
  constructor(
    sites: readonly SiteEntry[],
    metaQueues: readonly MetaQueue[],
    private readonly standings: Standings,
  ) {
    const orders = Array.from(standings.groups.values(), ({ order }) => order);
    this.orders = Float64Array.from(new Set(orders)).sort();
    this.local = sites.map(({ queue }) => queue.length);
    this.meta = metaQueues.map(({ length }) => length);
    this.counts = new Float64Array(sites.length);
    this.works = new Float64Array(sites.length);
    this.sums = new RankedSums(sites.length, Math.max(1, this.orders.length));
    sites.forEach((entry, site) => {
      this.load(site, entry, metaQueues[site] as MetaQueue);
    });
  }

  /** By position of the site, jobs with at least the priority, which a group has; valid until it is asked for again. */
  jobsFrom(order: number): Float64Array {
    if (this.countedFrom !== order) this.sums.countsFrom(this.rankOf(order), this.counts);
    this.countedFrom = order;
    return this.counts;
  }

  /** By position of the site, the work of these jobs over all their processors; valid until it is asked for again. */
  worksFrom(order: number): Float64Array {
    this.sums.valuesFrom(this.rankOf(order), this.works);
    return this.works;
  }

  enterMeta(site: number, job: Job): void {
    (this.meta[site] as number) += 1;
    this.add(site, this.rankOfGroup(quotaKey(job)), workOf(job), 1);
  }

  leaveMeta(site: number, job: Job): void {
    (this.meta[site] as number) -= 1;
    this.add(site, this.rankOfGroup(quotaKey(job)), workOf(job), -1);
  }

  /** `priority`: at level 1, without boost. */
  enterLocal(site: number, job: Job, priority: number): void {
    (this.local[site] as number) += 1;
    this.add(site, this.rankOfLevel(effectivePriority({ priority, boost: job.boost })), workOf(job), 1);
  }

  private load(site: number, { queue }: SiteEntry, meta: MetaQueue): void {
    for (const part of meta.parts.values()) this.sums.addSum(site, this.rankOfGroup(part.key), part.work, 1);
    for (const slot of queue.slots()) {
      const { tasks, cpusPerTask } = queue.requirements[slot] as Requirement;
      const work = (queue.works[slot] as number) * tasks * cpusPerTask;
      this.add(site, this.rankOfLevel(queue.priorities[slot] as number), work, 1);
    }
  }

  private add(site: number, rank: number, work: number, sign: 1 | -1): void {
    this.countedFrom = null;
    this.sums.add(site, rank, work, sign);
  }

  /** −1 without a standing: all of the group's jobs have left; they are ahead of nobody. */
  private rankOfGroup(key: string): number {
    const standing: Standing | undefined = this.standings.groups.get(key);
    return standing === undefined ? -1 : this.rankOf(standing.order);
  }

  /** The highest rank whose level is not above the job's; −1: none. */
  private rankOfLevel(level: number): number {
    return this.count((order) => levelOf(order) <= level) - 1;
  }

  private rankOf(order: number): number {
    return this.count((other) => other < order);
  }

  /** How many of the priorities, from the lowest, satisfy a condition that no higher one does once one does not. */
  private count(satisfies: (order: number) => boolean): number {
    let low = 0;
    let high = this.orders.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (satisfies(this.orders[middle] as number)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
