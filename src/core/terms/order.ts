/**
 * In which order the root's jobs are looked at: by the operator's boost; under a policy that goes by quotas by the users' feedback
 * queues, Q1 to Q4; then as the policy says.
 */
import { z } from 'zod';
import { Shares } from '../data/shares.js';
import type { Grid } from '../grid/grid.js';
import type { QueueOrder } from '../grid/queue.js';
import type { Requirement } from '../grid/requirements.js';
import type { Job } from '../model.js';
import { type Eligibility, EligibleSites } from '../resources/eligibility.js';
import { queueOf, quotaKey, RootLedger, type Standings } from './quota.js';

export const fairness = z.enum(['NONE', 'QUOTA']).optional().meta({
  title: 'Fairness',
  description:
    "NONE: jobs are served in the policy's order, regardless of the user. QUOTA: the feedback queues of users' quotas come first.",
});
export type Fairness = z.infer<typeof fairness>;

/** What users' quotas make of the root's jobs; null: the policy does not go by them. */
const rootStandings = (grid: Grid, by: Fairness): Standings | null =>
  by === 'QUOTA' ? grid.index(RootLedger).standings(grid.index(Shares)) : null;

/** The same, as a policy tells it (`DispatchKind.standings`). */
export function standingsAtRoot(
  grid: Grid,
  { fairness }: { fairness?: Fairness },
): { siteId: null; standings: Standings }[] {
  const standings = rootStandings(grid, fairness);
  return standings === null ? [] : [{ siteId: null, standings }];
}

/** The slots of the root's jobs. */
export function rootOrder(grid: Grid, order: QueueOrder, by: Fairness): ArrayLike<number> {
  const { root } = grid;
  const slots = root.inOrder(order).window();
  const standings = rootStandings(grid, by);
  if (standings === null) return slots;
  const queues = new Int8Array(root.jobs.length);
  for (const slot of slots) {
    const standing = standings.groups.get(quotaKey(root.jobs[slot] as Job));
    queues[slot] = queueOf(standing?.priority ?? 0);
  }
  // Sorting is stable: in one feedback queue the order stays.
  return slots
    .slice()
    .sort((a, b) => root.compareBoosts(a, b) || (queues[a] as number) - (queues[b] as number));
}

/** The part of a plan that jobs are noted in which are not moved. */
interface Waits {
  readonly full: boolean;
  wait(reason: NonNullable<Eligibility['waiting']>): void;
  cut(jobs: number): void;
}

/**
 * The root's jobs that some site can take, one after another until there is no more room; the others are noted in the plan.
 */
export function forEachAtRoot(
  grid: Grid,
  plan: Waits,
  { fairness: by }: { fairness?: Fairness },
  visit: (job: Job, eligibility: Eligibility, requirement: Requirement) => void,
  full: () => boolean = () => plan.full,
): void {
  const { root } = grid;
  const eligible = grid.index(EligibleSites);
  const slots = rootOrder(grid, 'ARRIVAL', by);
  for (let i = 0; i < slots.length; i++) {
    if (full()) {
      plan.cut(slots.length - i);
      return;
    }
    const slot = slots[i] as number;
    const requirement = root.requirements[slot] as Requirement;
    const job = root.jobs[slot] as Job;
    const eligibility = eligible.of(requirement, job);
    if (eligibility.waiting !== null) plan.wait(eligibility.waiting);
    else visit(job, eligibility, requirement);
  }
}
