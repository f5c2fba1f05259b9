/** The root's cycle: jobs that it holds move to sites, and those in meta-queues between them and on to local queues. */
import { type Agenda, dispatchCycle, given, ROOT, recalls } from '../core/index.js';
import { applyApart, planApart, syncApart } from './apart.js';
import { type Cycle, type CycleTools, recordOutcome } from './cycle.js';
import { recall, takeBack } from './returns.js';

/**
 * Runs until nothing is left to move, or the bound on rounds. Throws what the store throws.
 *
 * @param agenda of this process
 */
export async function runDispatch(cycle: Cycle, tools: CycleTools, agenda: Agenda): Promise<void> {
  const { store, mirror, metrics, limits } = tools;
  let refused = 0;
  for (let round = 0; round < limits.maxRounds; round++) {
    // 1. Take in what was committed until now, the moves of the last round among it.
    await cycle.phase('sync', () => syncApart(tools));
    const { grid, policy } = mirror;

    // 2. Jobs that sites hold in vain come back: then they are the root's like all others.
    const returns = agenda.returnsToRoot(grid, policy.document, limits.maxTakenBack);
    if ((await takeBack(cycle, tools, returns)) > 0) continue;

    // 3. Plan, with what is now in the mirror.
    const now = tools.now();
    const plan = await planApart(cycle, tools, () =>
      dispatchCycle(mirror.grid, {
        now,
        policy: policy.document,
        policyVersion: policy.version,
        maxMoves: limits.maxMoves,
      }),
    );
    // Where nothing is left to move there may be room for what sites' own schedulers keep waiting.
    if (plan.moves.length === 0)
      return recall(cycle, tools, recalls(grid, policy.document, now, limits.maxTakenBack));

    // 4. Apply. What the truth refuses stays where it is.
    const outcome = await cycle.phase('apply', () =>
      applyApart(
        tools,
        plan.moves,
        (moves) => store.applyMoves(moves, cycle.context(policy.version, now)),
        (a, b) => ({
          accepted: [...a.accepted, ...b.accepted],
          refused: [...a.refused, ...b.refused],
        }),
      ),
    );
    recordOutcome('move', metrics, plan.moves, outcome);
    cycle.add('moved', outcome.accepted.length);
    cycle.add('refused', outcome.refused.length);
    refused = outcome.refused.length;

    // 5. Wake the sites that were given jobs. A meta-queue is no business of the site's: it concerns this cycle's next round.
    const accepted = new Set(outcome.accepted);
    const sites = given(plan.moves.filter(({ jobId }) => accepted.has(jobId)));
    if (sites.size > 0) await tools.wake([...sites]);

    if (refused === 0 && !plan.truncated) return;
  }
  // Refused to the last, something keeps changing: pause. Else there is simply more to move.
  if (refused > 0) tools.wakeLater([ROOT], limits.refusedPauseMs);
  else await tools.wake([ROOT]);
}
