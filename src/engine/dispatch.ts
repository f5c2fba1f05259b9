/** The root's cycle: jobs that the root holds move to sites, and under DIANA between their meta-queues and on to their local queues. */
import { dispatchCycle, ReasonCode, type SiteEntry } from '../core/index.js';
import { applyApart } from './apart.js';
import { type Cycle, type CycleTools, recordOutcome } from './cycle.js';

/** Runs until nothing is left to move, or the bound on rounds. Throws what the store throws. */
export async function runDispatch(cycle: Cycle, tools: CycleTools): Promise<void> {
  const { store, mirror, metrics, limits } = tools;
  let refused = 0;
  for (let round = 0; round < limits.maxRounds; round++) {
    // 1. Take in what was committed until now, the moves of the last round among it.
    await cycle.phase('sync', () => mirror.sync());

    // 2. Meta-queues that nobody serves now are emptied: then their jobs are the root's like all others.
    if ((await takeBack(cycle, tools)) > 0) continue;

    // 3. Plan, with what is now in the mirror.
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
    const given = new Set<number>();
    for (const move of plan.moves) if (move.queue === 'LOCAL' && accepted.has(move.jobId)) given.add(move.to);
    if (given.size > 0) await tools.wake([...given]);

    if (refused === 0 && !plan.truncated) return;
  }
  // Refused to the last, something keeps changing: pause. Else there is simply more to move.
  if (refused > 0) tools.wakeLater(['root'], limits.refusedPauseMs);
  else await tools.wake(['root']);
}

/** Takes back what waits in the meta-queues of sites that are not up, or in any under a policy that has none. How many jobs. */
async function takeBack(cycle: Cycle, tools: CycleTools): Promise<number> {
  const { store, limits } = tools;
  const { grid, policy } = tools.mirror;
  const context = cycle.context(policy.version, tools.now());
  const served = policy.document.dispatch.kind === 'diana';
  let taken = 0;
  for (const { site, meta } of grid.sites) {
    if (meta.length === 0 || (served && site.state === 'UP')) continue;
    const limit = limits.maxTakenBack - taken;
    if (limit === 0) break;
    const back = await cycle.phase('take-back', () =>
      site.state === 'UP'
        ? store.returnJobs(site.id, firstOf(meta, limit), ReasonCode.NO_META_QUEUES, context)
        : store.takeBack(site.id, context, limit),
    );
    taken += back.length;
  }
  cycle.add('takenBack', taken);
  return taken;
}

/** Jobs of a meta-queue, at most so many. */
function firstOf(meta: SiteEntry['meta'], limit: number): number[] {
  const ids: number[] = [];
  for (const { job } of meta.items()) {
    if (ids.length === limit) break;
    ids.push(job.id);
  }
  return ids;
}
