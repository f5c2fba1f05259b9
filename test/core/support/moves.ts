/** Applying the moves of a plan, as the store does. */
import {
  applyMove,
  DEFAULT_POLICY,
  type DispatchPlan,
  dispatchCycle,
  type Grid,
  type Policy,
  parsePolicy,
} from '../../../src/core/index.js';

export const dianaPolicy = (given: Record<string, unknown> = {}): Policy =>
  parsePolicy({ ...DEFAULT_POLICY, dispatch: { kind: 'diana', ...given } });

export function applyMoves(grid: Grid, { moves }: DispatchPlan, now: number): void {
  for (const move of moves) applyMove(grid, move, now);
}

/** Cycles until one has nothing more to do; what each planned. */
export function settle(grid: Grid, policy: Policy, now: number, maxMoves = 1000): DispatchPlan[] {
  const plans: DispatchPlan[] = [];
  do {
    plans.push(dispatchCycle(grid, { now, policy, policyVersion: 1, maxMoves }));
    applyMoves(grid, plans.at(-1) as DispatchPlan, now);
    if (plans.length > 1000) throw new Error('the cycles go on and on');
  } while (plans.at(-1)?.truncated);
  return plans;
}
