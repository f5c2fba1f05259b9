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
import { effectivePriority, type Job } from '../../model.js';
import { processorsOf, workOf } from '../../terms/power.js';
import {
  boosted,
  levelOf,
  type QuotaGroup,
  quotaKey,
  quotaPriority,
  type Standing,
  standingOf,
  thresholdOf,
} from '../../terms/quota.js';
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

/** The jobs of one quota group in the meta-queue. */
interface Held {
  readonly userId: number;
  readonly processors: number;
  readonly boost: number;
  jobs: number;
  work: number;
}

export class SiteQueues {
  /** Jobs in the local queue and in the meta-queue. */
  local: number;
  meta: number;
  private readonly groups = new Map<string, Held>();
  private readonly users = new Map<number, number>();
  private processors = 0;
  /** The sum of the users' quotas; null: not known now. */
  private quotas: number | null = null;
  /** Levels of the local queue's jobs, from the highest down, and their work until there; null: not known now. */
  private ahead: { levels: readonly number[]; works: readonly number[] } | null = null;
  private readonly fed: { level: number; work: number }[] = [];
  private readonly known = new Map<string, Prospect>();

  constructor(
    private readonly entry: SiteEntry,
    meta: MetaQueue,
    private readonly shares: Pick<Shares, 'of'>,
  ) {
    this.local = entry.queue.length;
    this.meta = meta.length;
    // In an order of its own, so that sums do not depend on who came first.
    for (const { key, work } of [...meta.parts.values()].sort((a, b) => (a.key < b.key ? -1 : 1))) {
      const { userId, processors, boost, jobs } = meta.ledger.groups.get(key) as QuotaGroup;
      this.groups.set(key, { userId, processors, boost, jobs, work: work.value });
      this.users.set(userId, (this.users.get(userId) ?? 0) + jobs);
      this.processors += jobs * processors;
    }
  }

  /** What a job that is not in the meta-queue would find. */
  prospectOf(job: Job): Prospect {
    const key = quotaKey(job);
    let prospect = this.known.get(key);
    if (prospect === undefined) {
      prospect = this.prospect([job], [job]);
      this.known.set(key, prospect);
    }
    return prospect;
  }

  /** What `jobs` would find with `more`, those of them that are not in the meta-queue. The others are among those ahead. */
  prospect(jobs: readonly Job[], more: readonly Job[]): Prospect {
    const { standings, jobsOf, processors, quotas } = this.standingsWith(jobs, more);
    const standing = standings.reduce((lowest, each) => (each.order < lowest.order ? each : lowest));
    const { order } = standing;
    let { jobs: jobsAhead, work: workAhead } = this.localAhead(levelOf(order));
    for (const { userId, processors: width, boost, jobs: held, work } of this.groups.values()) {
      const threshold = thresholdOf(this.shares.of(userId), quotas, processors, width);
      if (held === 0 || boosted(quotaPriority(jobsOf(userId), threshold), boost) < order) continue;
      jobsAhead += held;
      workAhead += work;
    }
    return { standing, processors, quotas, jobsAhead, workAhead };
  }

  /** How each of `jobs` would stand with `more`, and what these add up to with all that is there. */
  standingsWith(
    jobs: readonly Job[],
    more: readonly Job[],
  ): Pick<Prospect, 'processors' | 'quotas'> & {
    standings: readonly Standing[];
    jobsOf(userId: number): number;
  } {
    const added = new Map<number, number>();
    let { processors } = this;
    let quotas = this.sumOfQuotas();
    for (const job of more) {
      added.set(job.userId, (added.get(job.userId) ?? 0) + 1);
      processors += processorsOf(job);
    }
    for (const userId of added.keys()) if (!this.users.has(userId)) quotas += this.shares.of(userId);
    const jobsOf = (userId: number): number => (this.users.get(userId) ?? 0) + (added.get(userId) ?? 0);
    const standings = jobs.map((job) => {
      const { userId, boost } = job;
      const all = { userJobs: jobsOf(userId), quota: this.shares.of(userId), processors, quotas };
      return standingOf({ userId, processors: processorsOf(job), boost }, all);
    });
    return { standings, jobsOf, processors, quotas };
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
    const { userId, boost } = job;
    const processors = processorsOf(job);
    let held = this.groups.get(key);
    if (held === undefined) {
      held = { userId, processors, boost, jobs: 0, work: 0 };
      this.groups.set(key, held);
    }
    held.jobs += sign;
    held.work = held.jobs === 0 ? 0 : held.work + sign * workOf(job);
    const ofUser = (this.users.get(userId) ?? 0) + sign;
    if (ofUser === 0) this.users.delete(userId);
    else this.users.set(userId, ofUser);
    if (ofUser === 0 || (ofUser === 1 && sign === 1)) this.quotas = null;
    this.processors += sign * processors;
    this.meta += sign;
    this.known.clear();
  }

  private sumOfQuotas(): number {
    if (this.quotas === null) {
      this.quotas = 0;
      for (const userId of [...this.users.keys()].sort((a, b) => a - b))
        this.quotas += this.shares.of(userId);
    }
    return this.quotas;
  }

  /** Of the local queue: the jobs with at least the level. */
  private localAhead(level: number): { jobs: number; work: number } {
    this.ahead ??= this.sortLocal();
    const { levels, works } = this.ahead;
    let low = 0;
    let high = levels.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((levels[middle] as number) >= level) low = middle + 1;
      else high = middle;
    }
    return { jobs: low, work: low === 0 ? 0 : (works[low - 1] as number) };
  }

  private sortLocal(): { levels: number[]; works: number[] } {
    const { queue } = this.entry;
    const jobs = [...this.fed];
    for (const slot of queue.slots()) {
      const { tasks, cpusPerTask } = queue.requirements[slot] as Requirement;
      const work = (queue.works[slot] as number) * tasks * cpusPerTask;
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
