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
  const next = work / facts.bestBenchmark;
  const end = facts.now + next;
  const threshold = deadline - weights.deadlineK * next;
  if (end <= threshold || end > deadline || deadline === Infinity) return weights.deadlineMin;
  // With k = 0 the threshold is the deadline and no job gets here, so the line is never vertical.
  const slope = (weights.deadlineMax - weights.deadlineMin) / (deadline - threshold);
  return slope * (end - threshold) + weights.deadlineMin;
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
  for (const kind of kinds) {
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
