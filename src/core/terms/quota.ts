/**
 * Fairness among users, by quota (Anjum et al., section 7; exact rules: diana.md, "Priority by quota"). For the jobs that one
 * scheduler holds back, in a site's meta-queue or at the root: `n` a user's jobs, `t` a job's processors, `T` processors of all, `q`
 * the user's quota, `Q` the quotas of all users who have jobs there, each once.
 */
import type { Shares } from '../data/shares.js';
import type { Grid, GridListener } from '../grid/grid.js';
import type { JobQueue } from '../grid/queue.js';
import { cpusOf, type Job } from '../model.js';

/** Feedback queues: Q1 is served first. */
export type FeedbackQueue = 1 | 2 | 3 | 4;

/**
 * `N = q·T/(Q·t)`: so many jobs of this size stand for the user's quota. 0 where nobody has a quota. Where only rounding keeps it from a whole or
 * half number it is that one: a queue begins there for some number of jobs, and a user alone, say, has as many as are due, whatever the quota is.
 */
export const thresholdOf = (q: number, Q: number, T: number, t: number): number => {
  if (Q === 0) return 0;
  const threshold = (q * T) / (Q * t);
  const near = Math.round(2 * threshold) / 2;
  return Math.abs(threshold - near) <= 2 * Number.EPSILON * near ? near : threshold;
};

/** `(N − n)/N` if `n ≤ N`, else `(N − n)/n`: −1 to 1. */
export const quotaPriority = (n: number, N: number): number => (n <= N ? (N - n) / N : (N - n) / n);

/** Q1 for [0.5, 1], Q2 for [0, 0.5), Q3 for [−0.5, 0), Q4 for [−1, −0.5). */
export function queueOf(priority: number): FeedbackQueue {
  if (priority >= 0.5) return 1;
  if (priority >= 0) return 2;
  return priority >= -0.5 ? 3 : 4;
}

/** How a meta-queue is ordered, from what is counted there. */
export interface QueueOrder {
  /** −1 to 1. `n`: the user's jobs, `N`: their threshold, `t`: processors of the job. */
  priority(n: number, N: number, t: number): number;
  /** Without boost, priorities have the opposite order of this, whatever `T` and `Q` are; equal ones are equal. */
  demand(n: number, t: number, q: number): number;
  queue(priority: number): FeedbackQueue;
}

/** `QUOTA`: the multilevel feedback queues (section 7). `SJF`: one queue, the fewest processors first (section 8.2). */
export const ORDERS: Readonly<Record<'QUOTA' | 'SJF', QueueOrder>> = {
  QUOTA: { priority: quotaPriority, demand: (n, t, q) => (n * t) / q, queue: queueOf },
  SJF: { priority: (_n, _N, t) => 1 / t, demand: (_n, t) => t, queue: () => 1 },
};

/** A step of 1 in the operator's boost, and in the priorities of local queues, is this part of a quota priority. */
const LEVELS = 2048;

/** A quota priority as a level-1 priority for a local queue: 0 to 4096. */
export const levelOf = (priority: number): number => Math.round((priority + 1) * LEVELS);

/** With the operator's boost, inside the bounds. */
export const boosted = (priority: number, boost: number): number =>
  boost === 0 ? priority : Math.max(-1, Math.min(1, priority + boost / LEVELS));

/** Jobs with one priority: of one user, with as many processors (and as much boost). */
export interface QuotaGroup {
  readonly key: string;
  readonly userId: number;
  readonly processors: number;
  readonly boost: number;
  jobs: number;
}

/** What follows for the jobs of a group from all that are queued. */
export interface Standing {
  readonly group: Pick<QuotaGroup, 'userId' | 'processors' | 'boost'>;
  readonly threshold: number;
  /** By quota alone, or by what else the queue is ordered by. */
  readonly priority: number;
  /** With the boost: what queues are ordered by. */
  readonly order: number;
  /** By `order`. */
  readonly queue: FeedbackQueue;
  readonly userJobs: number;
  readonly quota: number;
}

/** The standings of all groups of one scheduler, and what they share. */
export interface Standings {
  /** By key of the group. */
  readonly groups: ReadonlyMap<string, Standing & { readonly group: QuotaGroup }>;
  readonly processors: number;
  readonly quotas: number;
}

/** How a group stands among all: `userJobs` is `n`, `processors` `T`, `quota` `q`, `quotas` `Q`. */
export function standingOf<G extends Standing['group']>(
  group: G,
  all: { userJobs: number; quota: number; processors: number; quotas: number },
  by: QueueOrder,
): Standing & { readonly group: G } {
  const { userJobs, quota } = all;
  const threshold = thresholdOf(quota, all.quotas, all.processors, group.processors);
  const priority = by.priority(userJobs, threshold, group.processors);
  const order = boosted(priority, group.boost);
  return { group, threshold, priority, order, queue: by.queue(order), userJobs, quota };
}

type Counted = Pick<Job, 'userId' | 'tasks' | 'cpusPerTask' | 'parts' | 'boost'>;

export const quotaKey = (job: Counted): string => `${job.userId} ${cpusOf(job)} ${job.boost}`;

/**
 * How many jobs of which users and sizes are held back. A job that comes or goes changes two counts and a sum;
 * everyone's new priority costs the number of groups, never that of jobs.
 */
export class QuotaLedger {
  readonly groups = new Map<string, QuotaGroup>();
  /** Jobs by user. */
  private readonly users = new Map<number, number>();
  private processors = 0;

  add(job: Counted): QuotaGroup {
    return this.count(job, 1);
  }

  remove(job: Counted): void {
    this.count(job, -1);
  }

  /** Everyone's priority now. */
  standings(shares: Pick<Shares, 'of'>, by: QueueOrder = ORDERS.QUOTA): Standings {
    // In an order of its own, so that the sum does not depend on who came first.
    let sum = 0;
    for (const user of [...this.users.keys()].sort((a, b) => a - b)) sum += shares.of(user);
    const { processors } = this;
    const groups = new Map<string, Standing & { group: QuotaGroup }>();
    for (const group of this.groups.values()) {
      const quota = shares.of(group.userId);
      const userJobs = this.users.get(group.userId) as number;
      groups.set(group.key, standingOf(group, { userJobs, quota, processors, quotas: sum }, by));
    }
    return { groups, processors, quotas: sum };
  }

  private count(job: Counted, jobs: 1 | -1): QuotaGroup {
    const { userId, boost } = job;
    const processors = cpusOf(job);
    const key = quotaKey(job);
    let group = this.groups.get(key);
    if (group === undefined) {
      group = { key, userId, processors, boost, jobs: 0 };
      this.groups.set(key, group);
    }
    group.jobs += jobs;
    if (group.jobs === 0) this.groups.delete(key);
    const ofUser = (this.users.get(userId) ?? 0) + jobs;
    if (ofUser === 0) this.users.delete(userId);
    else this.users.set(userId, ofUser);
    this.processors += jobs * processors;
    return group;
  }
}

/** Of the jobs that the root holds, as an index of a grid. */
export class RootLedger extends QuotaLedger implements GridListener {
  constructor({ root }: Grid) {
    super();
    for (const slot of root.slots()) this.add(root.jobs[slot] as Job);
  }

  placed(job: Job, _: unknown, { level }: JobQueue): void {
    if (level === 'ROOT') this.add(job);
  }

  left(job: Job, _: unknown, { level }: JobQueue): void {
    if (level === 'ROOT') this.remove(job);
  }
}

/** What makes up a priority by quota: `Pr`, `N`, the feedback queue, `n`, `t`, `T`, `q` and `Q`. */
export const quotaTerms = (
  { priority, threshold, queue, userJobs, group, quota }: Standing,
  { processors, quotas }: Pick<Standings, 'processors' | 'quotas'>,
): Record<string, number> => ({
  priority,
  threshold,
  queue,
  userJobs,
  processors: group.processors,
  allProcessors: processors,
  quota,
  quotas,
});
