/**
 * What is queued at each site while a DIANA pass goes on, in its meta-queue and its local one, and what further jobs would find
 * there: the priority that they would have among the jobs of that meta-queue, and the jobs and the work with at least that priority.
 *
 * Every site's queues are its own (Anjum et al., section 4; exact rules: diana.md, "Priority by quota"), so one job has a priority at
 * each site. Answers are kept until something comes to the site or leaves it.
 */
import type { Shares } from '../../data/shares.js';
import type { SiteEntry } from '../../grid/grid.js';
import type { Requirement } from '../../grid/requirements.js';
import { cpusOf, effectivePriority, type Job } from '../../model.js';
import { ExactSum, ExactSums } from '../../structures/exact-sum.js';
import { countFirst } from '../../structures/search.js';
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

/** What jobs would find at a site. */
export interface Prospect {
  /** Of the lowest of them, with all of them there. */
  readonly standing: Standing;
  /** Processors and quotas of all who would wait there, `T` and `Q`. */
  readonly processors: number;
  readonly quotas: number;
  /** Jobs there, and their work over all processors, with at least that priority. */
  readonly jobsAhead: number;
  readonly workAhead: number;
}

/** A user with jobs in the meta-queue. */
interface Owner {
  readonly userId: number;
  readonly quota: number;
  jobs: number;
  readonly groups: Held[];
}

/** The jobs of one quota group in the meta-queue. */
interface Held {
  readonly owner: Owner;
  readonly processors: number;
  readonly boost: number;
  /** Of its jobs, and how many they are. */
  readonly work: ExactSum;
  /** See `QueueOrder`. */
  demand: number;
}

/** The groups without boost, by demand, whose order stays as it is when others come (terms/quota.ts): the demands, and what the first of them add up to, that of none at 0. */
interface Ranking {
  readonly demands: readonly number[];
  readonly jobs: readonly number[];
  readonly work: ExactSums;
}

export class SiteQueues {
  /** Jobs in the local queue and in the meta-queue. */
  local: number;
  meta: number;
  private readonly groups = new Map<string, Held>();
  private readonly owners = new Map<number, Owner>();
  private processors = 0;
  /** The sum of the users' quotas; null: not known now. */
  private quotas: number | null = null;
  /** Groups without boost, by demand where `ranking` is known, nearly so where it is not. */
  private readonly plain: Held[] = [];
  private ranking: Ranking | null = null;
  private readonly lifted = new Set<Held>();
  /** Levels of the local queue's jobs, from the highest down, and their work until there; null: not known now. */
  private ahead: { levels: readonly number[]; works: readonly number[] } | null = null;
  private readonly fed: { level: number; work: number }[] = [];
  private readonly known = new Map<string, Prospect>();

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
      this.hold(key, group, work.copy());
    }
  }

  /** What a job that is not in the meta-queue would find; `key`: of its quota group. */
  prospectOf(job: Job, key: string): Prospect {
    // Waits were observed by time limit, too.
    const of = this.entry.site.load?.waits === undefined ? key : `${key} ${job.runTimeLimitS}`;
    let prospect = this.known.get(of);
    if (prospect === undefined) {
      prospect = this.prospect([job], [job]);
      this.known.set(of, prospect);
    }
    return prospect;
  }

  /** What `jobs` would find with `more`, those of them that are not in the meta-queue. The others are among those ahead. */
  prospect(jobs: readonly Job[], more: readonly Job[]): Prospect {
    const { standings, added, processors, quotas } = this.standingsWith(jobs, more);
    const standing = standings.reduce((lowest, each) => (each.order < lowest.order ? each : lowest));
    const { group, order, userJobs, quota } = standing;
    const local = this.localAhead(levelOf(order), jobs[0] as Job);
    let jobsAhead = local.jobs;
    // Most jobs find just the first of the ranking ahead, whose sum is known.
    let first: { work: ExactSums; before: number } | null = null;
    let others: ExactSums | null = null;
    const count = ({ work }: Held, sign: 1 | -1): void => {
      jobsAhead += sign * work.count;
      others ??= new ExactSums(1);
      others.addSums(0, work.sums, 0, 1, sign);
    };
    const isAhead = ({ owner, processors: width, boost }: Held): boolean => {
      const n = owner.jobs + (added.get(owner.userId) ?? 0);
      const threshold = thresholdOf(owner.quota, quotas, processors, width);
      return boosted(this.by.priority(n, threshold, width), boost) >= order;
    };
    for (const held of this.lifted) if (isAhead(held)) count(held, 1);
    if (group.boost === 0) {
      const demand = this.by.demand(userJobs, group.processors, quota);
      const { demands, jobs: inFirst, work } = this.ranked();
      const before = countFirst(demands.length, (i) => (demands[i] as number) <= demand);
      jobsAhead += inFirst[before] as number;
      first = { work, before };
      // The users of those who come have more jobs than they are ranked by.
      for (const [userId, jobsMore] of added) {
        const owner = this.owners.get(userId);
        for (const held of owner?.groups ?? []) {
          if (held.boost !== 0 || held.demand > demand) continue;
          const then = this.by.demand(
            (owner as Owner).jobs + jobsMore,
            held.processors,
            (owner as Owner).quota,
          );
          if (then > demand) count(held, -1);
        }
      }
    } else for (const held of this.plain) if (isAhead(held)) count(held, 1);
    const workAhead = local.work + workOfBoth(first, others);
    return { standing, processors, quotas, jobsAhead, workAhead };
  }

  /** How each of `jobs` would stand with `more`, and what these add up to with all that is there. */
  standingsWith(
    jobs: readonly Job[],
    more: readonly Job[],
  ): Pick<Prospect, 'processors' | 'quotas'> & {
    standings: readonly Standing[];
    /** Jobs that come, by user. */
    added: ReadonlyMap<number, number>;
  } {
    const added = new Map<number, number>();
    let { processors } = this;
    let quotas = this.sumOfQuotas();
    for (const job of more) {
      added.set(job.userId, (added.get(job.userId) ?? 0) + 1);
      processors += cpusOf(job);
    }
    for (const userId of added.keys()) if (!this.owners.has(userId)) quotas += this.shares.of(userId);
    const standings = jobs.map((job) => {
      const { userId, boost } = job;
      const userJobs = (this.owners.get(userId)?.jobs ?? 0) + (added.get(userId) ?? 0);
      const all = { userJobs, quota: this.shares.of(userId), processors, quotas };
      return standingOf({ userId, processors: cpusOf(job), boost }, all, this.by);
    });
    return { standings, added, processors, quotas };
  }

  /** How a job of the meta-queue stands there now. */
  standingOf(job: Job): Standing {
    return this.standingsWith([job], []).standings[0] as Standing;
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
    this.known.clear();
  }

  private count(job: Job, sign: 1 | -1): void {
    const key = quotaKey(job);
    const processors = cpusOf(job);
    const group = { userId: job.userId, processors, boost: job.boost };
    const held = this.groups.get(key) ?? this.hold(key, group, new ExactSum());
    const { owner, work } = held;
    if (sign === 1) work.add(workOf(job));
    else work.remove(workOf(job));
    owner.jobs += sign;
    for (const each of owner.groups) each.demand = this.by.demand(owner.jobs, each.processors, owner.quota);
    if (work.count === 0) this.drop(key, held);
    this.processors += sign * processors;
    this.meta += sign;
    this.ranking = null;
    this.known.clear();
  }

  /** A group comes that was not there; `work` becomes its own. */
  private hold(key: string, group: Standing['group'], work: ExactSum): Held {
    const { userId, processors, boost } = group;
    let owner = this.owners.get(userId);
    if (owner === undefined) {
      owner = { userId, quota: this.shares.of(userId), jobs: 0, groups: [] };
      this.owners.set(userId, owner);
      this.quotas = null;
    }
    owner.jobs += work.count;
    const held = { owner, processors, boost, work, demand: 0 };
    this.groups.set(key, held);
    owner.groups.push(held);
    for (const each of owner.groups) each.demand = this.by.demand(owner.jobs, each.processors, owner.quota);
    if (boost === 0) this.plain.push(held);
    else this.lifted.add(held);
    return held;
  }

  /** It has no jobs left. */
  private drop(key: string, held: Held): void {
    const { owner } = held;
    this.groups.delete(key);
    owner.groups.splice(owner.groups.indexOf(held), 1);
    if (held.boost === 0) this.plain.splice(this.plain.indexOf(held), 1);
    else this.lifted.delete(held);
    if (owner.groups.length > 0) return;
    this.owners.delete(owner.userId);
    this.quotas = null;
  }

  private ranked(): Ranking {
    if (this.ranking === null) {
      this.plain.sort((a, b) => a.demand - b.demand);
      const jobs = [0];
      for (const [i, { work }] of this.plain.entries()) jobs.push((jobs[i] as number) + work.count);
      const work = ExactSums.ofFirst(this.plain.map((held) => held.work));
      this.ranking = { demands: this.plain.map(({ demand }) => demand), jobs, work };
    }
    return this.ranking;
  }

  private sumOfQuotas(): number {
    if (this.quotas === null) {
      this.quotas = 0;
      // In an order of its own, so that the sum does not depend on who came first.
      const owners = [...this.owners.values()].sort((a, b) => a.userId - b.userId);
      for (const { quota } of owners) this.quotas += quota;
    }
    return this.quotas;
  }

  /** Of the local queue: the jobs with at least the level. What waits with the site's own scheduler is as `job` finds it. */
  private localAhead(level: number, job: Job): { jobs: number; work: number } {
    this.ahead ??= this.sortLocal();
    const { levels, works } = this.ahead;
    const jobs = countFirst(levels.length, (i) => (levels[i] as number) >= level);
    // With the site's own scheduler nobody goes before it.
    const there = waitingThere(this.entry, this.now, job);
    return { jobs: there.jobs + jobs, work: there.cpuWork + (jobs === 0 ? 0 : (works[jobs - 1] as number)) };
  }

  private sortLocal(): { levels: number[]; works: number[] } {
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
    return { levels: jobs.map(({ level }) => level), works };
  }
}

/** Of the first so many of a ranking, and of others. */
function workOfBoth(first: { work: ExactSums; before: number } | null, others: ExactSums | null): number {
  if (others === null) return first === null ? 0 : first.work.valueOf(first.before);
  if (first !== null) others.addSums(0, first.work, first.before, 1);
  return others.valueOf(0);
}
