/**
 * A global scheduler over sites with queues of their own (Santoso et al., section 2; exact rules: hierarchical-clusters.md),
 * on time-shared nodes.
 */
import type { TimeSharedJob, TimeSharedNodes, TimeSharedShape } from './time-shared.js';

/** FCFS: the head waits until it fits. SJF: so does the shortest. FF: the first in order of arrival that fits goes. */
export type QueuePolicy = 'FCFS' | 'SJF' | 'FF';
/** S-SJF, L-SJF: a queue for each number of tasks, SJF inside, served from the fewest tasks up or from the most down. */
export type GlobalPolicy = QueuePolicy | 'S-SJF' | 'L-SJF';

export interface HierarchyPolicy {
  global: GlobalPolicy;
  local: QueuePolicy;
  /** Jobs that a site's queue holds at most; 0: a job leaves the global queue only to start. */
  queueMax: number;
}

/** Jobs in the order in which a policy looks at them. */
class PolicyQueue {
  readonly jobs: TimeSharedJob[] = [];

  constructor(private readonly policy: QueuePolicy) {}

  push(job: TimeSharedJob): void {
    const { jobs } = this;
    let low = jobs.length;
    if (this.policy === 'SJF') {
      let high = jobs.length;
      low = 0;
      while (low < high) {
        const middle = (low + high) >>> 1;
        const other = jobs[middle] as TimeSharedJob;
        if (other.cpu < job.cpu || (other.cpu === job.cpu && other.id < job.id)) low = middle + 1;
        else high = middle;
      }
    }
    jobs.splice(low, 0, job);
  }

  /** Takes out the job that goes now, null when none does. `fits`: by number of tasks. */
  take(fits: (tasks: number) => boolean): TimeSharedJob | null {
    const { jobs } = this;
    const tries = this.policy === 'FF' ? jobs.length : Math.min(1, jobs.length);
    const refused = new Set<number>();
    for (let i = 0; i < tries; i++) {
      const job = jobs[i] as TimeSharedJob;
      if (refused.has(job.tasks)) continue;
      if (fits(job.tasks)) return jobs.splice(i, 1)[0] as TimeSharedJob;
      refused.add(job.tasks);
    }
    return null;
  }
}

export class Hierarchy {
  private readonly queues: PolicyQueue[];
  private readonly queueOf: (job: TimeSharedJob) => PolicyQueue;
  private readonly local: PolicyQueue[];

  constructor(
    private readonly nodes: TimeSharedNodes,
    private readonly shape: TimeSharedShape,
    private readonly policy: HierarchyPolicy,
  ) {
    const { global } = policy;
    if (global === 'S-SJF' || global === 'L-SJF') {
      const byTasks = Array.from({ length: shape.nodesPerSite }, () => new PolicyQueue('SJF'));
      this.queues = global === 'S-SJF' ? byTasks : [...byTasks].reverse();
      this.queueOf = ({ tasks }) => byTasks[tasks - 1] as PolicyQueue;
    } else {
      const only = new PolicyQueue(global);
      this.queues = [only];
      this.queueOf = () => only;
    }
    this.local = Array.from({ length: shape.sites }, () => new PolicyQueue(policy.local));
  }

  arrived(job: TimeSharedJob, now: number): void {
    this.queueOf(job).push(job);
    this.dispatch(now);
  }

  /** A job has ended at a site. Without queues at the sites the global scheduler acts at arrivals only. */
  ended(site: number, now: number): void {
    if (this.policy.queueMax === 0) return;
    this.startAt(site, now);
    this.dispatch(now);
  }

  /** Dispatches as often as it can; it starts over with the first queue after each job. */
  private dispatch(now: number): void {
    for (let i = 0; i < this.queues.length; ) {
      const job = (this.queues[i] as PolicyQueue).take((tasks) => this.siteFor(tasks) !== -1);
      if (job === null) {
        i++;
        continue;
      }
      this.place(job, this.siteFor(job.tasks), now);
      i = 0;
    }
  }

  private place(job: TimeSharedJob, site: number, now: number): void {
    if (this.policy.queueMax === 0) {
      this.nodes.start(job, site, now);
      return;
    }
    (this.local[site] as PolicyQueue).push(job);
    this.startAt(site, now);
  }

  private startAt(site: number, now: number): void {
    const queue = this.local[site] as PolicyQueue;
    for (;;) {
      const job = queue.take((tasks) => this.nodes.fits(site, tasks));
      if (job === null) return;
      this.nodes.start(job, site, now);
    }
  }

  /**
   * Where a job of so many tasks goes, -1: nowhere now. A site that can start it at once, the one with the fewest jobs;
   * else the one with the shortest queue that is not full, then the fewest jobs; then the first.
   */
  private siteFor(tasks: number): number {
    let best = -1;
    let bestKey = Infinity;
    for (let site = 0; site < this.shape.sites; site++) {
      const queued = (this.local[site] as PolicyQueue).jobs.length;
      const running = this.nodes.running[site] as number;
      const starts = queued === 0 && this.nodes.fits(site, tasks);
      if (!starts && queued >= this.policy.queueMax) continue;
      const key = (starts ? 0 : 1 + queued) * (this.shape.jobsPerSite + 1) + running;
      if (key < bestKey) {
        best = site;
        bestKey = key;
      }
    }
    return best;
  }
}
