/**
 * What is queued at each site while a DIANA pass goes on, local and meta-queue together: how many jobs and how much work with
 * at least a given priority. Priorities stand still during a pass, so each distinct one is a rank, and a Fenwick tree
 * over ranks answers for a site.
 */
import { effectivePriority, type SiteEntry } from '../grid.js';
import type { Job } from '../model.js';
import { levelOf, quotaKey, type Standing, type Standings } from '../priority/quota.js';
import type { Requirement } from '../resources/requirements.js';
import { PriorityLoad } from './load.js';
import { workOf } from './power.js';

export class PassQueues {
  /** Jobs in each site's local queue and in its meta-queue. */
  readonly local: number[];
  readonly meta: number[];
  /** The distinct priorities, ascending. */
  private readonly orders: Float64Array;
  private readonly loads: PriorityLoad[];

  constructor(
    sites: readonly SiteEntry[],
    private readonly standings: Standings,
  ) {
    this.orders = Float64Array.from(
      new Set(Array.from(standings.groups.values(), ({ order }) => order)),
    ).sort();
    this.local = sites.map(({ queue }) => queue.length);
    this.meta = sites.map(({ meta }) => meta.length);
    this.loads = sites.map((entry) => this.loadOf(entry));
  }

  /** Jobs at the site with at least the priority, which a group has. */
  jobsFrom(site: number, order: number): number {
    return (this.loads[site] as PriorityLoad).countFrom(this.rankOf(order));
  }

  /** At each of these sites, the work of such jobs over all their processors. */
  worksFrom(sites: readonly number[], order: number): number[] {
    const rank = this.rankOf(order);
    const works: number[] = new Array(sites.length);
    for (let i = 0; i < sites.length; i++)
      works[i] = (this.loads[sites[i] as number] as PriorityLoad).loadFrom(rank);
    return works;
  }

  enterMeta(site: number, job: Job): void {
    (this.meta[site] as number) += 1;
    const standing = this.standings.groups.get(quotaKey(job)) as Standing;
    this.loads[site]?.add(this.rankOf(standing.order), workOf(job));
  }

  leaveMeta(site: number, job: Job): void {
    (this.meta[site] as number) -= 1;
    const standing = this.standings.groups.get(quotaKey(job));
    if (standing !== undefined) this.loads[site]?.remove(this.rankOf(standing.order), workOf(job));
  }

  /** `priority`: at level 1, without boost. */
  enterLocal(site: number, job: Job, priority: number): void {
    (this.local[site] as number) += 1;
    const level = effectivePriority({ priority, boost: job.boost });
    this.addLocal(this.loads[site] as PriorityLoad, level, workOf(job));
  }

  private loadOf({ meta, queue }: SiteEntry): PriorityLoad {
    const load = new PriorityLoad();
    for (const part of meta.parts.values()) {
      const standing = this.standings.groups.get(part.key);
      // Without a standing all of its jobs have left.
      if (standing !== undefined) load.addAll(this.rankOf(standing.order), part.work);
    }
    for (const slot of queue.window()) {
      const { tasks, cpusPerTask } = queue.requirements[slot] as Requirement;
      const work = (queue.works[slot] as number) * tasks * cpusPerTask;
      this.addLocal(load, queue.priorities[slot] as number, work);
    }
    return load;
  }

  /** Counts for every priority whose level is not above the job's. */
  private addLocal(load: PriorityLoad, level: number, work: number): void {
    let low = 0;
    let high = this.orders.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (levelOf(this.orders[middle] as number) <= level) low = middle + 1;
      else high = middle;
    }
    if (low > 0) load.add(low - 1, work);
  }

  private rankOf(order: number): number {
    let low = 0;
    let high = this.orders.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.orders[middle] as number) < order) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
