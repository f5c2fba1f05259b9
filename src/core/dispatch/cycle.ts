/**
 * A dispatch cycle: where each job that the root, or under DIANA a meta-queue, holds goes. Looks at the grid, leaves it as
 * it was; the driver applies the moves that it accepts with `placeAtSite` and `placeAtMeta`.
 */
import type { Grid, SiteEntry } from '../grid.js';
import type { Move } from '../model.js';
import type { Policy } from '../policy.js';
import type { ReasonCode } from '../reasons.js';
import { mostFlops, random, roundRobin } from './baselines.js';
import { DianaDispatch } from './diana.js';
import { JobRatioDispatch } from './job-ratio.js';
import { type DispatchPass, type DispatchPolicy, PlanBuilder } from './policy.js';
import { QueuesDispatch } from './queues.js';
import { TwoLevelDispatch } from './two-level.js';

export interface DispatchContext {
  now: number;
  policy: Policy;
  /** Cited by the plan; the core does not look at it. */
  policyVersion: number;
  /** Moves in one plan at most. When the plan is `truncated`, apply it and run the cycle again. */
  maxMoves: number;
}

export interface DispatchPlan {
  policyVersion: number;
  moves: Move[];
  /** Jobs that stay at the root and in meta-queues, counted by reason. */
  waitingByReason: Partial<Record<ReasonCode, number>>;
  truncated: boolean;
}

const policies: Record<Policy['dispatch']['kind'], DispatchPolicy> = {
  'two-level': (grid, policy) => new TwoLevelDispatch(grid, policy),
  'job-ratio': (grid, policy) => new JobRatioDispatch(grid, policy),
  queues: (grid, policy, now) => new QueuesDispatch(grid, policy, now),
  diana: (grid, policy, now) => new DianaDispatch(grid, policy, now),
  'round-robin': roundRobin,
  random,
  'most-flops': mostFlops,
};

/** The pass of the policy that the document names. */
export function beginDispatch(grid: Grid, policy: Policy, now: number): DispatchPass {
  return policies[policy.dispatch.kind](grid, policy, now);
}

export function dispatchCycle(grid: Grid, context: DispatchContext): DispatchPlan {
  const plan = new PlanBuilder(context.maxMoves);
  const pass = beginDispatch(grid, context.policy, context.now);
  try {
    pass.decide(plan);
  } finally {
    pass.undo();
  }
  const { moves, waitingByReason, truncated } = plan;
  return { policyVersion: context.policyVersion, moves, waitingByReason, truncated };
}

/**
 * Whether the root, when the site has acted, should look again: it has jobs that the site might get, and the site's queue has
 * room. `queueLimit`: as `queueLimitOf` tells; null: the root never waits for room. `started`: jobs that it has started and that
 * are still in the grid's queue.
 */
export function rootHasMoreFor(
  grid: Grid,
  { queue, meta }: SiteEntry,
  queueLimit: number | null,
  started: number,
): boolean {
  if (queueLimit === null || grid.root.length + meta.length === 0) return false;
  return started > 0 || queue.length < Math.max(1, queueLimit);
}
