/** The root's cycle: jobs that the root holds move to sites. */
import { dispatchCycle } from '../core/index.js';
import { type Cycle, type CycleTools, recordOutcome } from './cycle.js';

/** Runs until nothing is left to move, or the bound on rounds. Throws what the store throws. */
export async function runDispatch(cycle: Cycle, tools: CycleTools): Promise<void> {
  const { store, mirror, metrics, limits } = tools;
  let refused = 0;
  for (let round = 0; round < limits.maxRounds; round++) {
    // 1. Take in what was committed until now, the moves of the last round among it.
    await cycle.phase('sync', () => mirror.sync());

    // 2. Plan, with what is now in the mirror.
    const now = tools.now();
    const { grid, policy } = mirror;
    const plan = cycle.plan(() =>
      dispatchCycle(grid, {
        now,
        policy: policy.document,
        policyVersion: policy.version,
        maxMoves: limits.maxMoves,
      }),
    );
    if (plan.moves.length === 0) return;

    // 3. Apply. What the truth refuses stays where it is.
    const outcome = await cycle.phase('apply', () =>
      store.applyMoves(plan.moves, cycle.context(policy.version, now)),
    );
    recordOutcome('move', metrics, plan.moves, outcome);
    cycle.add('moved', outcome.accepted.length);
    cycle.add('refused', outcome.refused.length);
    refused = outcome.refused.length;

    // 4. Wake the sites that were given jobs.
    const accepted = new Set(outcome.accepted);
    const given = new Set<number>();
    for (const move of plan.moves) if (accepted.has(move.jobId)) given.add(move.to);
    if (given.size > 0) await tools.wake([...given]);

    if (refused === 0 && !plan.truncated) return;
  }
  // Refused to the last, something keeps changing: pause. Else there is simply more to move.
  if (refused > 0) tools.wakeLater(['root'], limits.refusedPauseMs);
  else await tools.wake(['root']);
}
