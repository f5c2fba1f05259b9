/**
 * What is queued at each site while a DIANA pass goes on, local and meta-queue together: how many jobs and how much work with
 * at least a given priority. Priorities stand still during a pass, so each distinct one is a rank, and a Fenwick tree
 * over ranks answers. As the question is mostly put for all sites, the sites' trees lie side by side.
 */
import { effectivePriority, type SiteEntry } from '../grid.js';
import type { Job } from '../model.js';
import { levelOf, quotaKey, type Standing, type Standings } from '../priority/quota.js';
import type { Requirement } from '../resources/requirements.js';
import { WorkSum } from './load.js';
import { workOf } from './power.js';

export class PassQueues {
  /** Jobs in each site's local queue and in its meta-queue. */
  readonly local: number[];
  readonly meta: number[];
  /** The distinct priorities, ascending. */
  private readonly orders: Float64Array;
  /** For each node of the trees a row, in it a column for each site: see `WorkSum`. */
  private readonly jobs: Float64Array;
  private readonly whole: Float64Array;
  private readonly fraction: Float64Array;
  private readonly columns: number;
  /** Answers, and for which priority the first holds. */
  private readonly counts: Float64Array;
  private countedFrom: number | null = null;
  private readonly works: Float64Array;
  private readonly fractions: Float64Array;

  constructor(
    sites: readonly SiteEntry[],
    private readonly standings: Standings,
  ) {
    const orders = Array.from(standings.groups.values(), ({ order }) => order);
    this.orders = Float64Array.from(new Set(orders)).sort();
    this.local = sites.map(({ queue }) => queue.length);
    this.meta = sites.map(({ meta }) => meta.length);
    this.columns = sites.length;
    this.counts = new Float64Array(sites.length);
    this.works = new Float64Array(sites.length);
    this.fractions = new Float64Array(sites.length);
    const size = this.orders.length * this.columns;
    this.jobs = new Float64Array(size);
    this.whole = new Float64Array(size);
    this.fraction = new Float64Array(size);
    sites.forEach((entry, site) => {
      this.load(site, entry);
    });
  }

  /** By position of the site, jobs with at least the priority, which a group has; valid until it is asked for again. */
  jobsFrom(order: number): Float64Array {
    const { columns, jobs, counts } = this;
    if (this.countedFrom === order) return counts;
    this.countedFrom = order;
    counts.fill(0);
    for (let node = this.rankOf(order) + 1; node <= this.orders.length; node += node & -node) {
      const row = (node - 1) * columns;
      for (let site = 0; site < columns; site++) (counts[site] as number) += jobs[row + site] as number;
    }
    return counts;
  }

  /** By position of the site, the work of these jobs over all their processors; valid until it is asked for again. */
  worksFrom(order: number): Float64Array {
    const { columns, whole, fraction, works, fractions } = this;
    works.fill(0);
    fractions.fill(0);
    for (let node = this.rankOf(order) + 1; node <= this.orders.length; node += node & -node) {
      const row = (node - 1) * columns;
      for (let site = 0; site < columns; site++) {
        (works[site] as number) += whole[row + site] as number;
        (fractions[site] as number) += fraction[row + site] as number;
      }
    }
    for (let site = 0; site < columns; site++)
      works[site] = WorkSum.workOf(works[site] as number, fractions[site] as number);
    return works;
  }

  enterMeta(site: number, job: Job): void {
    (this.meta[site] as number) += 1;
    this.add(site, this.rankOfGroup(quotaKey(job)), sumOf(job));
  }

  leaveMeta(site: number, job: Job): void {
    (this.meta[site] as number) -= 1;
    this.add(site, this.rankOfGroup(quotaKey(job)), sumOf(job), -1);
  }

  /** `priority`: at level 1, without boost. */
  enterLocal(site: number, job: Job, priority: number): void {
    (this.local[site] as number) += 1;
    this.add(site, this.rankOfLevel(effectivePriority({ priority, boost: job.boost })), sumOf(job));
  }

  private load(site: number, { meta, queue }: SiteEntry): void {
    for (const part of meta.parts.values()) this.add(site, this.rankOfGroup(part.key), part.work);
    for (const slot of queue.window()) {
      const { tasks, cpusPerTask } = queue.requirements[slot] as Requirement;
      const sum = new WorkSum();
      sum.add((queue.works[slot] as number) * tasks * cpusPerTask);
      this.add(site, this.rankOfLevel(queue.priorities[slot] as number), sum);
    }
  }

  /** Jobs of no rank are ahead of nobody. */
  private add(site: number, rank: number, { jobs, whole, fraction }: WorkSum, sign: 1 | -1 = 1): void {
    this.countedFrom = null;
    for (let node = rank + 1; node > 0; node -= node & -node) {
      const at = (node - 1) * this.columns + site;
      (this.jobs[at] as number) += sign * jobs;
      (this.whole[at] as number) += sign * whole;
      (this.fraction[at] as number) += sign * fraction;
    }
  }

  /** −1 without a standing: all of the group's jobs have left. */
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

function sumOf(job: Job): WorkSum {
  const sum = new WorkSum();
  sum.add(workOf(job));
  return sum;
}
