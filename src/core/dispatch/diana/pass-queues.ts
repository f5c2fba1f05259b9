/**
 * What is queued at each site while a DIANA pass goes on, in its meta-queue and its local one, and what further jobs would find
 * there: the priority that they would have among the jobs of that meta-queue, and the jobs and the work with at least that priority.
 *
 * Every site's queues are its own (Anjum et al., section 4; exact rules: diana.md, "Priority by quota"), so one job has a priority at
 * each site.
 */
import type { Shares } from '../../data/shares.js';
import type { SiteEntry } from '../../grid/grid.js';
import type { Requirement } from '../../grid/requirements.js';
import { cpusOf, effectivePriority, type Job } from '../../model.js';
import { ExactSum, ExactSums } from '../../structures/exact-sum.js';
import { countFirst, countUpTo } from '../../structures/search.js';
import { workOf } from '../../terms/power.js';
import {
  boosted,
  levelOf,
  type QueueOrder,
  type QuotaGroup,
  quotaKey,
  type Standing,
  standingOf,
  thresholdOf,
} from '../../terms/quota.js';
import { waitingThere } from '../../terms/waiting-there.js';
import type { MetaQueue } from './meta-queues.js';
import { type Demanding, Ranking } from './ranking.js';

/** Processors and quotas of all who would wait at a site, `T` and `Q`. */
interface Totals {
  readonly processors: number;
  readonly quotas: number;
}

/** What jobs would find at a site. */
export interface Prospect extends Totals {
  /** Of the lowest of them, with all of them there. */
  readonly standing: Standing;
  /** Jobs there, and their work over all processors, with at least that priority. */
  readonly jobsAhead: number;
  readonly workAhead: number;
}

/** Jobs that come to a site. */
export interface Coming {
  readonly byUser: ReadonlyMap<number, number>;
  readonly processors: number;
}

export function comingOf(jobs: readonly Job[]): Coming {
  const byUser = new Map<number, number>();
  let processors = 0;
  for (const job of jobs) {
    byUser.set(job.userId, (byUser.get(job.userId) ?? 0) + 1);
    processors += cpusOf(job);
  }
  return { byUser, processors };
}

const NOBODY = comingOf([]);

/** A job that comes alone. */
export interface Single {
  readonly job: Job;
  readonly processors: number;
  readonly quota: number;
}

/** What it would find at several sites: see `Prospect`. */
export interface Finds {
  readonly order: number[];
  readonly workAhead: number[];
}

/** A user with jobs in the meta-queue. */
interface Owner {
  readonly userId: number;
  readonly quota: number;
  jobs: number;
  readonly groups: Held[];
}

/** The jobs of one quota group in the meta-queue. */
interface Held extends Demanding {
  readonly owner: Owner;
  readonly processors: number;
  readonly boost: number;
}

export class SiteQueues {
  /** Jobs in the local queue and in the meta-queue. */
  local: number;
  meta: number;
  private readonly groups = new Map<string, Held>();
  private readonly owners = new Map<number, Owner>();
  /** The same, by id. */
  private readonly byId: Owner[] = [];
  private processors = 0;
  /** The sum of the users' quotas; null: not known now. */
  private quotas: number | null = null;
  /** Groups without boost: their order stays as it is when others come (terms/quota.ts). */
  private readonly plain: Ranking<Held>;
  private readonly lifted = new Set<Held>();
  /** Levels of the local queue's jobs, from the highest down, with a minus, and their work until there; null: not known now. */
  private ahead: { depths: readonly number[]; works: readonly number[] } | null = null;
  private readonly fed: { level: number; work: number }[] = [];
  /** Of work, while it is added up. */
  private readonly sum = new ExactSums(1);

  constructor(
    private readonly entry: SiteEntry,
    meta: MetaQueue,
    private readonly shares: Pick<Shares, 'of'>,
    private readonly by: QueueOrder,
    private readonly now: number,
  ) {
    this.local = entry.queue.length;
    this.meta = meta.length;
    for (const { key, work } of meta.parts.values()) {
      const group = meta.ledger.groups.get(key) as QuotaGroup;
      this.processors += group.jobs * group.processors;
      this.ownerOf(group.userId).jobs += group.jobs;
      this.hold(key, group, work.copy());
    }
    const groups = [...this.groups.values()];
    for (const held of groups) this.setDemand(held);
    this.plain = new Ranking(groups.filter(({ boost }) => boost === 0));
  }

  /** What `jobs` would find with `coming`, those of them that are not in the meta-queue. The others are among those ahead. */
  prospect(jobs: readonly Job[], coming: Coming): Prospect {
    const all = this.totalsWith(coming);
    let standing = this.standing(jobs[0] as Job, coming, all);
    for (let i = 1; i < jobs.length; i++) {
      const other = this.standing(jobs[i] as Job, coming, all);
      if (other.order < standing.order) standing = other;
    }
    const inMeta = this.aheadOf(standing, coming, all);
    const inLocal = this.localJobs(standing.order);
    // With the site's own scheduler nobody goes before what waits there.
    const there = waitingThere(this.entry, this.now, jobs[0] as Job);
    return {
      standing,
      ...all,
      jobsAhead: there.jobs + inLocal + inMeta.jobs,
      workAhead: there.cpuWork + this.localWork(inLocal) + inMeta.work,
    };
  }

  /**
   * The order and the work ahead that `prospect` has for a job that comes alone: each site is asked for them for each new job. So they
   * are put into columns, and no objects are made.
   */
  findsAlone({ job, processors, quota }: Single, finds: Finds, at: number): void {
    const { userId, boost } = job;
    const { by } = this;
    const owner = this.owners.get(userId);
    const userJobs = owner === undefined ? 1 : owner.jobs + 1;
    const quotas = owner === undefined ? this.sumOfQuotas() + quota : this.sumOfQuotas();
    const threshold = thresholdOf(quota, quotas, this.processors + processors, processors);
    const order = boosted(by.priority(userJobs, threshold, processors), boost);
    finds.order[at] = order;
    if (boost !== 0 || this.lifted.size > 0) {
      finds.workAhead[at] = this.prospect([job], comingOf([job])).workAhead;
      return;
    }
    const demand = by.demand(userJobs, processors, quota);
    let less: ExactSums | null = null;
    if (owner !== undefined)
      for (const held of owner.groups) {
        // Groups of no more processors never demand more.
        if (held.processors <= processors || held.demand > demand) continue;
        if (by.demand(userJobs, held.processors, quota) <= demand) continue;
        less ??= this.nothing();
        less.addSums(0, held.work.sums, 0, 1, -1);
      }
    const inLocal = waitingThere(this.entry, this.now, job).cpuWork + this.localWork(this.localJobs(order));
    finds.workAhead[at] = inLocal + this.plain.workOf(this.plain.firstTo(demand), less);
  }

  /** How each of `jobs` would stand with `coming`. */
  standingsWith(jobs: readonly Job[], coming: Coming): Standing[] {
    const all = this.totalsWith(coming);
    return jobs.map((job) => this.standing(job, coming, all));
  }

  /** How a job of the meta-queue stands there now. */
  standingOf(job: Job): Standing {
    return this.standing(job, NOBODY, this.totalsWith(NOBODY));
  }

  enterMeta(job: Job): void {
    this.count(job, 1);
  }

  leaveMeta(job: Job): void {
    this.count(job, -1);
  }

  /** `priority`: at level 1, without boost. */
  enterLocal(job: Job, priority: number): void {
    this.local++;
    this.fed.push({ level: effectivePriority({ priority, boost: job.boost }), work: workOf(job) });
    this.ahead = null;
  }

  /** What is there comes to with `coming`. */
  private totalsWith({ byUser, processors }: Coming): Totals {
    let quotas = this.sumOfQuotas();
    for (const userId of byUser.keys()) if (!this.owners.has(userId)) quotas += this.shares.of(userId);
    return { processors: this.processors + processors, quotas };
  }

  private standing(job: Job, { byUser }: Coming, { processors, quotas }: Totals): Standing {
    const { userId, boost } = job;
    const userJobs = (this.owners.get(userId)?.jobs ?? 0) + (byUser.get(userId) ?? 0);
    const all = { userJobs, quota: this.shares.of(userId), processors, quotas };
    return standingOf({ userId, processors: cpusOf(job), boost }, all, this.by);
  }

  /** Of the meta-queue, what is not behind one who stands like this with `coming`. */
  private aheadOf(
    { group, order, userJobs, quota }: Standing,
    { byUser }: Coming,
    { processors, quotas }: Totals,
  ): { jobs: number; work: number } {
    const { plain, by } = this;
    let jobs = 0;
    const others = this.nothing();
    const count = ({ work }: Held, sign: 1 | -1): void => {
      jobs += sign * work.count;
      others.addSums(0, work.sums, 0, 1, sign);
    };
    const isAhead = ({ owner, processors: width, boost }: Held): boolean => {
      const n = owner.jobs + (byUser.get(owner.userId) ?? 0);
      const threshold = thresholdOf(owner.quota, quotas, processors, width);
      return boosted(by.priority(n, threshold, width), boost) >= order;
    };
    for (const held of this.lifted) if (isAhead(held)) count(held, 1);
    if (group.boost !== 0) {
      for (const held of plain.groups) if (isAhead(held)) count(held, 1);
      return { jobs, work: others.valueOf(0) };
    }
    const demand = by.demand(userJobs, group.processors, quota);
    const first = plain.firstTo(demand);
    // The users of those who come have more jobs than they are ranked by.
    for (const [userId, jobsMore] of byUser) {
      const owner = this.owners.get(userId);
      for (const held of owner?.groups ?? []) {
        if (held.boost !== 0 || held.demand > demand) continue;
        const then = by.demand((owner as Owner).jobs + jobsMore, held.processors, (owner as Owner).quota);
        if (then > demand) count(held, -1);
      }
    }
    return { jobs: jobs + plain.jobsOf(first), work: plain.workOf(first, others) };
  }

  /** Of the local queue: the jobs with at least the level, and their work. */
  private localJobs(order: number): number {
    this.ahead ??= this.sortLocal();
    return countUpTo(this.ahead.depths, -levelOf(order));
  }

  private localWork(jobs: number): number {
    return jobs === 0 ? 0 : (this.ahead?.works[jobs - 1] as number);
  }

  /** A sum of nothing yet; valid until it is asked for again. */
  private nothing(): ExactSums {
    this.sum.clear();
    return this.sum;
  }

  private count(job: Job, sign: 1 | -1): void {
    const key = quotaKey(job);
    const processors = cpusOf(job);
    const owner = this.ownerOf(job.userId);
    for (const each of owner.groups) if (each.boost === 0) this.plain.remove(each);
    const group = { userId: job.userId, processors, boost: job.boost };
    const held = this.groups.get(key) ?? this.hold(key, group, new ExactSum());
    if (sign === 1) held.work.add(workOf(job));
    else held.work.remove(workOf(job));
    owner.jobs += sign;
    if (held.work.count === 0) this.drop(key, held);
    for (const each of owner.groups) {
      this.setDemand(each);
      if (each.boost === 0) this.plain.add(each);
    }
    this.processors += sign * processors;
    this.meta += sign;
  }

  private ownerOf(userId: number): Owner {
    let owner = this.owners.get(userId);
    if (owner === undefined) {
      owner = { userId, quota: this.shares.of(userId), jobs: 0, groups: [] };
      this.owners.set(userId, owner);
      this.byId.splice(this.placeOf(userId), 0, owner);
      this.quotas = null;
    }
    return owner;
  }

  /** A group comes that was not there; `work` becomes its own. */
  private hold(key: string, { userId, processors, boost }: Standing['group'], work: ExactSum): Held {
    const owner = this.ownerOf(userId);
    const held = { owner, processors, boost, work, demand: 0 };
    this.groups.set(key, held);
    owner.groups.push(held);
    if (boost !== 0) this.lifted.add(held);
    return held;
  }

  /** It has no jobs left. */
  private drop(key: string, held: Held): void {
    const { owner } = held;
    this.groups.delete(key);
    owner.groups.splice(owner.groups.indexOf(held), 1);
    this.lifted.delete(held);
    if (owner.groups.length > 0) return;
    this.owners.delete(owner.userId);
    this.byId.splice(this.placeOf(owner.userId), 1);
    this.quotas = null;
  }

  private setDemand(held: Held): void {
    const { owner, processors } = held;
    held.demand = this.by.demand(owner.jobs, processors, owner.quota);
  }

  /** Of the user among the owners, by id. */
  private placeOf(userId: number): number {
    return countFirst(this.byId.length, (i) => (this.byId[i] as Owner).userId < userId);
  }

  private sumOfQuotas(): number {
    if (this.quotas === null) {
      this.quotas = 0;
      // In an order of its own, so that the sum does not depend on who came first.
      for (const { quota } of this.byId) this.quotas += quota;
    }
    return this.quotas;
  }

  private sortLocal(): { depths: number[]; works: number[] } {
    const { queue } = this.entry;
    const jobs = [...this.fed];
    for (const slot of queue.slots()) {
      const work = (queue.works[slot] as number) * cpusOf(queue.requirements[slot] as Requirement);
      jobs.push({ level: queue.priorities[slot] as number, work });
    }
    jobs.sort((a, b) => b.level - a.level || a.work - b.work);
    let sum = 0;
    const works = jobs.map(({ work }) => {
      sum += work;
      return sum;
    });
    return { depths: jobs.map(({ level }) => -level), works };
  }
}
