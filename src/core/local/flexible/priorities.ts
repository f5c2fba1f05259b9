/**
 * Level-2 priority: the value by which a site orders its queue in LS mode (Pasquali et al., section 4, "Local-Scheduler";
 * exact rules: two-level.md). Aging + Deadline + Licenses + WaitMinimization, recomputed at every event.
 */

/** The administrator's. */
export interface LocalWeights {
  aging: number;
  licenses: number;
  waitMinimization: number;
  deadlineMin: number;
  deadlineMax: number;
  deadlineK: number;
}

/** What the priorities have in common: facts about the queue and the site. */
export interface QueueFacts {
  now: number;
  /** Power of the most powerful of the site's machines that take jobs now. */
  bestBenchmark: number;
  /** The shortest estimate in the queue. */
  shortestEstimate: number;
}

/** The deadline term. `work` is estimate·benchmark; a job without a deadline carries `Infinity`, which is always far away. */
export function deadlineTerm(
  work: number,
  deadline: number,
  facts: QueueFacts,
  weights: LocalWeights,
): number {
  if (deadline === Infinity) return weights.deadlineMin;
  const { deadlineMin, deadlineMax, deadlineK } = weights;
  const next = work / facts.bestBenchmark;
  // Instants are large and what lies between them is small: rounding `now + next` first would lose digits of a deadline that is near.
  const left = deadline - facts.now;
  const late = (1 + deadlineK) * next - left;
  if (late <= 0 || next > left) return deadlineMin;
  // With k = 0 the threshold is the deadline and no job gets here, so the line is never vertical.
  return ((deadlineMax - deadlineMin) / (deadlineK * next)) * late + deadlineMin;
}

/**
 * The licenses term for a job that asks for `kinds`. `ratios` holds the request ratio of every kind asked for in the
 * queue, `nonCritical` how many of them are not above 1.
 */
export function licensesTerm(
  kinds: readonly string[],
  ratios: ReadonlyMap<string, number>,
  nonCritical: number,
  weights: LocalWeights,
): number {
  let easy = 0;
  let critical = 0;
  for (const kind of new Set(kinds)) {
    const ratio = ratios.get(kind) ?? 0;
    if (ratio > 1) critical += ratio;
    else easy += ratio;
  }
  return weights.licenses * (easy + Math.max(1, nonCritical) * critical);
}

/** How many of the ratios are not critical. */
export function countNonCritical(ratios: ReadonlyMap<string, number>): number {
  let count = 0;
  for (const ratio of ratios.values()) if (ratio <= 1) count++;
  return count;
}

export const agingTerm = (submit: number, facts: QueueFacts, weights: LocalWeights): number =>
  weights.aging * (facts.now - submit);

export const waitMinimizationTerm = (estimate: number, facts: QueueFacts, weights: LocalWeights): number =>
  (weights.waitMinimization * facts.shortestEstimate) / estimate;
