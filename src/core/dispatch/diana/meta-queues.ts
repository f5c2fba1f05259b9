/**
 * The meta-queues of all sites (Anjum et al., sections 4 and 7): jobs that wait before a local queue and can still go to
 * another site. Each site's is kept by quota group, in order of arrival inside, so that finding the next job costs the
 * number of groups, whatever the number of jobs.
 */
import type { Grid, GridListener } from '../../grid/grid.js';
import type { Arrival, JobQueue } from '../../grid/queue.js';
import type { Requirement } from '../../grid/requirements.js';
import type { Job } from '../../model.js';
import { ExactSum } from '../../structures/exact-sum.js';
import { countFirst } from '../../structures/search.js';
import { workOf } from '../../terms/power.js';
import { QuotaLedger, quotaKey, type Standing, type Standings } from '../../terms/quota.js';

export interface MetaItem {
  readonly job: Job;
  readonly requirement: Requirement;
}

/** The jobs of one quota group at one site, in order of arrival. */
export class MetaPart {
  readonly work = new ExactSum();
  private readonly items: MetaItem[] = [];
  /** Items before it have left: the head goes without moving the others. */
  private first = 0;

  constructor(
    readonly key: string,
    private readonly arrival: Arrival,
  ) {}

  get length(): number {
    return this.items.length - this.first;
  }

  at(position: number): MetaItem {
    return this.items[this.first + position] as MetaItem;
  }

  /** How many jobs are ahead of this one, which need not be here. */
  positionOf(job: Job): number {
    return countFirst(this.length, (i) => this.arrival.compare(this.at(i).job, job) < 0);
  }

  add(item: MetaItem): void {
    const last = this.items.at(-1);
    if (last === undefined || this.arrival.compare(last.job, item.job) < 0) this.items.push(item);
    else this.items.splice(this.first + this.positionOf(item.job), 0, item);
    this.work.add(workOf(item.job));
  }

  remove(job: Job): void {
    const position = this.first + this.positionOf(job);
    this.work.remove(workOf(job));
    if (position > this.first) {
      this.items.splice(position, 1);
      return;
    }
    this.first++;
    if (this.first * 2 > this.items.length) {
      this.items.splice(0, this.first);
      this.first = 0;
    }
  }
}

export class MetaQueue {
  length = 0;
  /** Users and sizes of its jobs: priorities are among them. */
  readonly ledger = new QuotaLedger();
  /** By key of the quota group. */
  readonly parts = new Map<string, MetaPart>();
  /** How many jobs have which requirements. */
  readonly classes = new Map<Requirement, number>();

  constructor(private readonly arrival: Arrival) {}

  add(item: MetaItem): void {
    const key = quotaKey(item.job);
    let part = this.parts.get(key);
    if (part === undefined) {
      part = new MetaPart(key, this.arrival);
      this.parts.set(key, part);
    }
    part.add(item);
    this.ledger.add(item.job);
    this.classes.set(item.requirement, (this.classes.get(item.requirement) ?? 0) + 1);
    this.length++;
  }

  remove({ job, requirement }: MetaItem): void {
    const key = quotaKey(job);
    const part = this.parts.get(key) as MetaPart;
    part.remove(job);
    this.ledger.remove(job);
    if (part.length === 0) this.parts.delete(key);
    const alike = (this.classes.get(requirement) as number) - 1;
    if (alike === 0) this.classes.delete(requirement);
    else this.classes.set(requirement, alike);
    this.length--;
  }

  /** All jobs, one group after another. */
  *items(): Generator<MetaItem> {
    for (const part of this.parts.values()) for (let i = 0; i < part.length; i++) yield part.at(i);
  }

  /** All jobs as they are served: Q1 to Q4, inside by priority, then by arrival. */
  *inOrder(standings: Standings): Generator<MetaItem> {
    const ordered = [...this.parts.values()].map((part) => ({
      part,
      // Queues are ranges of the order, so the order alone puts them one after another.
      order: (standings.groups.get(part.key) as Standing).order,
      next: 0,
    }));
    ordered.sort((a, b) => b.order - a.order);
    for (let start = 0; start < ordered.length; ) {
      let end = start + 1;
      while (end < ordered.length && ordered[end]?.order === ordered[start]?.order) end++;
      const tied = ordered.slice(start, end);
      for (;;) {
        let first: (typeof tied)[number] | null = null;
        for (const each of tied) {
          if (each.next === each.part.length) continue;
          if (
            first === null ||
            this.arrival.compare(each.part.at(each.next).job, first.part.at(first.next).job) < 0
          )
            first = each;
        }
        if (first === null) break;
        yield first.part.at(first.next++);
      }
      start = end;
    }
  }

  /** How many jobs are served before this one. */
  aheadOf(job: Job, standings: Standings): number {
    const order = (standings.groups.get(quotaKey(job)) as Standing).order;
    let ahead = 0;
    for (const part of this.parts.values()) {
      const other = (standings.groups.get(part.key) as Standing).order;
      if (other > order) ahead += part.length;
      else if (other === order) ahead += part.positionOf(job);
    }
    return ahead;
  }
}

/** The meta-queues of all sites, as an index of a grid. */
export class MetaQueues implements GridListener {
  private readonly byQueue = new Map<JobQueue, MetaQueue>();

  constructor(private readonly grid: Grid) {
    for (const { meta } of grid.sites)
      for (const slot of meta.slots())
        this.placed(meta.jobs[slot] as Job, meta.requirements[slot] as Requirement, meta);
  }

  /** Of the site whose meta-queue this is. */
  of(meta: JobQueue): MetaQueue {
    let queue = this.byQueue.get(meta);
    if (queue === undefined) {
      queue = new MetaQueue(this.grid.arrival);
      this.byQueue.set(meta, queue);
    }
    return queue;
  }

  placed(job: Job, requirement: Requirement, meta: JobQueue): void {
    if (meta.level === 'META') this.of(meta).add({ job, requirement });
  }

  left(job: Job, requirement: Requirement, meta: JobQueue): void {
    if (meta.level === 'META') this.of(meta).remove({ job, requirement });
  }
}
