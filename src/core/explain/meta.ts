/**
 * DIANA's meta-queues for those who ask (diana.md): what users' quotas make of their jobs, how the peers are, and what a
 * single job's place is made of.
 */
import { quotaTerms } from '../dispatch/diana.js';
import { congestionAt } from '../dispatch/migration.js';
import { powerOf } from '../dispatch/power.js';
import type { Grid, SiteEntry } from '../grid.js';
import type { Job } from '../model.js';
import { type DianaPolicy, dispatchPolicySchema, type Policy } from '../policy.js';
import { type FeedbackQueue, queueOf, quotaKey, type Standing } from '../priority/quota.js';

/** What a user has in the meta-queues. */
export interface UserStanding {
  userId: number;
  quota: number;
  /** The user's jobs in all meta-queues, `n`. */
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

/** A site as its peers see it. */
export interface PeerStatus {
  siteId: number;
  up: boolean;
  /** Jobs in its local queue and in its meta-queue. */
  queued: number;
  metaQueued: number;
  /** Jobs a second over the policy's window. */
  arrivalRate: number;
  serviceRate: number;
  /** `(arrival − service)/arrival`, and whether it is above the policy's threshold; under other policies never. */
  congestion: number;
  congested: boolean;
  /** Σ CPUs·benchmark of its available machines. */
  power: number;
}

/** Of every user who has jobs in meta-queues, by user id. Costs the number of groups. */
export function userStandings(grid: Grid): UserStanding[] {
  const byUser = new Map<number, UserStanding>();
  for (const { group, threshold, priority, userJobs, quota } of standingsOf(grid)) {
    const { userId, processors, jobs } = group;
    const user = byUser.get(userId) ?? { userId, quota, jobs: userJobs, groups: [] };
    byUser.set(userId, user);
    const alike = user.groups.find((each) => each.processors === processors);
    if (alike !== undefined) alike.jobs += jobs;
    else user.groups.push({ processors, jobs, threshold, priority, queue: queueOf(priority) });
  }
  const users = [...byUser.values()].sort((a, b) => a.userId - b.userId);
  for (const { groups } of users) groups.sort((a, b) => a.processors - b.processors);
  return users;
}

const standingsOf = (grid: Grid): Standing[] => [...grid.ledger.standings(grid.quotas).groups.values()];

/** All sites in stable order. */
export function peers(grid: Grid, { policy, now }: { policy: Policy; now: number }): PeerStatus[] {
  const { dispatch } = policy;
  const rules = dispatch.kind === 'diana' ? dispatch : DEFAULT_RULES;
  return grid.sites.map((entry) => {
    const { arrival, service, value, congested } = congestionAt(entry, rules, now);
    return {
      siteId: entry.site.id,
      up: entry.site.state === 'UP',
      queued: entry.queue.length,
      metaQueued: entry.meta.length,
      arrivalRate: arrival,
      serviceRate: service,
      congestion: value,
      congested: congested && dispatch.kind === 'diana',
      power: powerOf(entry.resources.machines.filter(({ machine }) => machine.available)),
    };
  });
}

const DEFAULT_RULES = dispatchPolicySchema.parse({ kind: 'diana' }) as DianaPolicy;

/** What keeps a job in a meta-queue, in numbers. */
export function metaNumbers(
  grid: Grid,
  job: Job,
  siteId: number,
  rules: DianaPolicy,
  now: number,
): Record<string, number> {
  const entry: SiteEntry = grid.siteEntry(siteId);
  const standings = grid.ledger.standings(grid.quotas);
  const { arrival, service, value, congested } = congestionAt(entry, rules, now);
  const heldOff = job.migratedAt !== null && now - job.migratedAt < rules.holdOffS;
  return {
    ...quotaTerms(standings.groups.get(quotaKey(job)) as Standing, standings),
    ahead: entry.meta.aheadOf(job, standings),
    queued: entry.queue.length,
    queueLimit: rules.queueLimit,
    metaQueued: entry.meta.length,
    arrivalRate: arrival,
    serviceRate: service,
    congestion: value,
    congested: congested ? 1 : 0,
    ...(heldOff ? { heldOffUntil: (job.migratedAt as number) + rules.holdOffS } : {}),
  };
}

/** What else could bring it on. */
export function metaChanges(numbers: Record<string, number>): string[] {
  const changes: string[] = [];
  if ((numbers.userJobs as number) > 1)
    changes.push(
      "Other jobs of its user leave the meta-queues, or the user's quota is raised, which raises its priority.",
    );
  if (numbers.heldOffUntil !== undefined)
    changes.push('The hold-off after its migration ends: then it may migrate again.');
  else if (numbers.congested === 1)
    changes.push('Another site has fewer jobs ahead of it and costs less: then it migrates there.');
  return changes;
}
