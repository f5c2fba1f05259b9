/** What users' quotas make of the jobs that the policy holds back, and the congestion of sites: for those who ask. */
import { Traffic } from '../data/traffic.js';
import { dispatchKindOf } from '../dispatch/registry.js';
import type { Grid } from '../grid/grid.js';
import type { Policy } from '../policy.js';
import { congestionOf } from '../terms/congestion.js';
import { powerOf } from '../terms/power.js';
import { type FeedbackQueue, queueOf } from '../terms/quota.js';

/** What a user has waiting at one scheduler. */
export interface UserStanding {
  userId: number;
  /** The site in whose meta-queue the jobs are; null: at the root. */
  siteId: number | null;
  quota: number;
  /** The user's jobs there, `n`. */
  jobs: number;
  /** By number of processors, fewest first. */
  groups: {
    processors: number;
    jobs: number;
    /** `N`, `Pr` and the feedback queue, without operators' boosts. */
    threshold: number;
    priority: number;
    queue: FeedbackQueue;
  }[];
}

/** A site as the schedulers of the others see it. */
export interface CongestionStatus {
  siteId: number;
  up: boolean;
  /** Jobs in its local queue and in its meta-queue. */
  queued: number;
  metaQueued: number;
  /** Jobs a second over the policy's window. */
  arrivalRate: number;
  serviceRate: number;
  /** `(arrival − service)/arrival`, and whether it is above the policy's threshold; under policies without one never. */
  congestion: number;
  congested: boolean;
  /** Σ CPUs·benchmark of its available machines. */
  power: number;
}

/**
 * Of every user who has jobs waiting, for each scheduler that holds some of them: by user id, then in the stable site order; nobody
 * under a policy that does not go by quotas. Costs the number of groups.
 */
export function userStandings(grid: Grid, { dispatch }: Pick<Policy, 'dispatch'>): UserStanding[] {
  const all: UserStanding[] = [];
  for (const { siteId, standings } of dispatchKindOf(dispatch).standings?.(grid, dispatch) ?? []) {
    const byUser = new Map<number, UserStanding>();
    for (const { group, threshold, priority, userJobs, quota } of standings.groups.values()) {
      const { userId, processors, jobs } = group;
      const user = byUser.get(userId) ?? { userId, siteId, quota, jobs: userJobs, groups: [] };
      byUser.set(userId, user);
      const alike = user.groups.find((each) => each.processors === processors);
      if (alike !== undefined) alike.jobs += jobs;
      else user.groups.push({ processors, jobs, threshold, priority, queue: queueOf(priority) });
    }
    for (const user of byUser.values()) {
      user.groups.sort((a, b) => a.processors - b.processors);
      all.push(user);
    }
  }
  return all.sort((a, b) => a.userId - b.userId);
}

/** The window where the policy has none. */
const NO_CONGESTION = { windowS: 600, threshold: Infinity };

/** All sites in stable order. */
export function congestion(
  grid: Grid,
  { policy: { dispatch }, now }: { policy: Policy; now: number },
): CongestionStatus[] {
  const { windowS, threshold } = dispatchKindOf(dispatch).congestion?.(dispatch) ?? NO_CONGESTION;
  const traffic = grid.index(Traffic);
  return grid.sites.map(({ site, queue, meta, resources }) => {
    const { arrival, service, value, congested } = congestionOf(
      traffic.of(site.id).rates(now, windowS),
      threshold,
    );
    return {
      siteId: site.id,
      up: site.state === 'UP',
      queued: queue.length,
      metaQueued: meta.length,
      arrivalRate: arrival,
      serviceRate: service,
      congestion: value,
      congested,
      power: powerOf(resources.machines.filter(({ machine }) => machine.available)),
    };
  });
}
