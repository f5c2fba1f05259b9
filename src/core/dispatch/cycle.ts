/**
 * A dispatch cycle: where each job that the root holds goes, in order of submission, then id. Looks at the grid, leaves
 * it as it was; the driver applies the moves that it accepts with `placeAtSite`.
 */
import type { Grid } from '../grid.js';
import type { Job, Move } from '../model.js';
import type { Policy } from '../policy.js';
import { ReasonCode } from '../reasons.js';
import { eligibilityOf } from '../resources/eligibility.js';
import type { Requirement } from '../resources/requirements.js';
import type { DispatchPass, DispatchPolicy } from './policy.js';
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
  /** Jobs that stay at the root, counted by reason. */
  waitingByReason: Partial<Record<ReasonCode, number>>;
  truncated: boolean;
}

const policies: Record<Policy['dispatch']['kind'], DispatchPolicy> = {
  'two-level': (grid, policy) => new TwoLevelDispatch(grid, policy),
};

/** The pass of the policy that the document names. */
export function beginDispatch(grid: Grid, policy: Policy, now: number): DispatchPass {
  return policies[policy.dispatch.kind](grid, policy, now);
}

export function dispatchCycle(grid: Grid, context: DispatchContext): DispatchPlan {
  const { root } = grid;
  const plan: DispatchPlan = {
    policyVersion: context.policyVersion,
    moves: [],
    waitingByReason: {},
    truncated: false,
  };
  const pass = beginDispatch(grid, context.policy, context.now);
  try {
    for (let i = 0; i < root.length; i++) {
      if (plan.moves.length >= context.maxMoves) {
        plan.waitingByReason[ReasonCode.MOVE_LIMIT] = root.length - i;
        plan.truncated = true;
        break;
      }
      const slot = root.at(i);
      const job = root.jobs[slot] as Job;
      const eligibility = eligibilityOf(root.requirements[slot] as Requirement, grid.sites, grid.topology);
      if (eligibility.waiting !== null) {
        plan.waitingByReason[eligibility.waiting] = (plan.waitingByReason[eligibility.waiting] ?? 0) + 1;
        continue;
      }
      const choice = pass.choose(job, eligibility);
      pass.moved(job, choice);
      plan.moves.push({
        jobId: job.id,
        from: null,
        to: choice.site.site.id,
        priority: choice.priority,
        reason: choice.reason,
        explanation: choice.explanation,
      });
    }
  } finally {
    pass.undo();
  }
  return plan;
}
