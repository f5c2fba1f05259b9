/** The groups of jobs submitted together that wait in a meta-queue, for migration.ts. */
import type { Job } from '../../model.js';
import type { Standing } from '../../terms/quota.js';
import type { MetaItem, MetaQueue } from './meta-queues.js';
import type { SiteQueues } from './pass-queues.js';

/** Jobs of meta-queues that a pass is through with, and how many of each site. */
export class PassedJobs {
  private readonly jobs = new Set<number>();
  private readonly counts: number[];

  constructor(sites: number) {
    this.counts = new Array(sites).fill(0);
  }

  add(site: number, job: Job): void {
    this.jobs.add(job.id);
    (this.counts[site] as number) += 1;
  }

  has(job: Job): boolean {
    return this.jobs.has(job.id);
  }

  at(site: number): number {
    return this.counts[site] as number;
  }
}

export interface BundleMember extends MetaItem {
  /** At the site where it is. */
  standing: Standing;
  /** It came within the hold-off, or in this pass. */
  recent: boolean;
}

/** The jobs of one group at one site. */
export interface Bundle {
  groupId: number;
  items: BundleMember[];
  /** How many of them are recent. */
  recent: number;
  /** The lowest priority of these jobs. */
  order: number;
  /** Their lowest feedback queue. */
  queue: number;
}

/** For each of the sites, all jobs that the pass is not through with, by group. */
export function bundlesOf(
  metaQueues: readonly MetaQueue[],
  queues: readonly SiteQueues[],
  passed: PassedJobs,
  isHeldOff: (job: Job) => boolean,
): Map<number, Bundle>[] {
  return metaQueues.map((meta, site) => {
    const bundles = new Map<number, Bundle>();
    // In an order of its own, so that sums over a group do not depend on who came first.
    for (const part of [...meta.parts.values()].sort((a, b) => (a.key < b.key ? -1 : 1))) {
      let standing: Standing | null = null;
      for (let i = 0; i < part.length; i++) {
        const { job, requirement } = part.at(i);
        if (passed.has(job)) continue;
        standing ??= (queues[site] as SiteQueues).standingOf(job);
        addTo(bundles, { job, requirement, standing, recent: isHeldOff(job) });
      }
    }
    return bundles;
  });
}

/** To its group's jobs here. */
export function addTo(bundles: Map<number, Bundle>, item: BundleMember): void {
  const { groupId } = item.job;
  let bundle = bundles.get(groupId);
  if (bundle === undefined) {
    bundle = { groupId, items: [], recent: 0, order: item.standing.order, queue: 0 };
    bundles.set(groupId, bundle);
  }
  bundle.items.push(item);
  bundle.order = Math.min(bundle.order, item.standing.order);
  bundle.queue = Math.max(bundle.queue, item.standing.queue);
  if (item.recent) bundle.recent++;
}

/** Those with jobs in the lowest queue that is not empty and none held off; lowest priority first, ties by group. */
export function candidatesOf(bundles: ReadonlyMap<number, Bundle>): Bundle[] {
  let lowest = 0;
  for (const { queue } of bundles.values()) lowest = Math.max(lowest, queue);
  return [...bundles.values()]
    .filter(({ queue, recent }) => queue === lowest && recent === 0)
    .sort((a, b) => a.order - b.order || a.groupId - b.groupId);
}
