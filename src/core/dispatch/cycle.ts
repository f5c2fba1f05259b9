/**
 * A dispatch cycle: where each job that the root, or a meta-queue, holds goes. Looks at the grid, leaves it as it is; the driver
 * applies the moves that it accepts (`applyMove`).
 */
import { Margins, marginOf } from '../data/margins.js';
import { Traffic } from '../data/traffic.js';
import type { Grid, ReservedEntry } from '../grid/grid.js';
import { fieldsOf } from '../lean-jobs.js';
import type { Job, Move } from '../model.js';
import type { Policy } from '../policy.js';
import { ReasonCode } from '../reasons.js';
import { whyNotUp } from '../resources/eligibility.js';
import { type DispatchPass, PlanBuilder } from './policy.js';
import { dispatchKindOf } from './registry.js';

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

/** The pass of the policy that the document names. */
export const beginDispatch = (grid: Grid, { dispatch, seed }: Policy, now: number): DispatchPass =>
  dispatchKindOf(dispatch).begin({ grid, now, seed }, dispatch);

export function dispatchCycle(grid: Grid, context: DispatchContext): DispatchPlan {
  grid.advance(context.now);
  const plan = new PlanBuilder(context.maxMoves);
  moveReserved(grid, plan);
  beginDispatch(grid, context.policy, context.now).decide(plan);
  const { moves, waitingByReason, truncated } = plan;
  return { policyVersion: context.policyVersion, moves, waitingByReason, truncated };
}

/** Jobs that name a reservation go where it is, whatever the policy: nobody else waits for its machines. */
function moveReserved(grid: Grid, plan: PlanBuilder): void {
  const { rootReserved } = grid;
  if (rootReserved.length === 0) return;
  let left = rootReserved.length;
  for (const slot of rootReserved.inOrder('ARRIVAL').window()) {
    if (plan.full) break;
    left--;
    const job = rootReserved.jobs[slot] as Job;
    const { site } = grid.reservedSite(job) as ReservedEntry;
    const down = whyNotUp(site.state);
    if (down !== null) plan.wait(down);
    else plan.move(toReservation(job, site.id));
  }
  plan.cut(left);
}

const toReservation = ({ id, priority }: Job, siteId: number): Move => ({
  ...{ jobId: id, from: null, to: siteId, queue: 'LOCAL', priority: priority ?? 0 },
  reason: ReasonCode.HAS_RESERVATION,
  explanation: {
    ...{ sites: [siteId], terms: {}, candidates: [siteId], ineligible: {} },
    ...{ level: null, priorityTerms: null },
  },
});

/**
 * Carries out a move in the grid, for a driver whose world the grid is: another hears of it from its store. What schedulers want to
 * know of the past is noted where somebody keeps it.
 */
export function applyMove(grid: Grid, move: Move, now: number): void {
  const { from, priority } = move;
  const job = fieldsOf(grid.job(move.jobId) as Job);
  const treeMoves = move.treeMoves ?? job.treeMoves;
  if (move.queue === 'SCHEDULER') {
    grid.placeAtRoot({ ...job, priority: null, dispatchedAt: null, schedulerId: move.to, treeMoves });
    return;
  }
  const { to, queue } = move;
  if (from !== to) grid.knownIndex(Traffic)?.of(to).arrived(now);
  if (queue === 'META') {
    const migratedAt = from === null ? job.migratedAt : now;
    grid.placeAtMeta({ ...job, priority, migratedAt, schedulerId: null, treeMoves }, to);
    return;
  }
  const margin = marginOf(job);
  if (margin !== null) grid.knownIndex(Margins)?.add([margin]);
  grid.placeAtSite({ ...job, priority, dispatchedAt: now, schedulerId: null, treeMoves }, to);
}
