/** Which machines a job's tasks go on (resources.md, "Which machines"): as few as can be, so that whole machines stay whole. */

export interface Candidate {
  readonly id: string;
  /** Tasks that it has room for. */
  readonly most: number;
  /** What is compared among machines that do equally, least first, with so many tasks on it; null: it cannot take just so many. */
  key(tasks: number): readonly number[] | null;
}

export interface Choice<C extends Candidate> {
  readonly candidate: C;
  readonly tasks: number;
}

/** How many machines the tasks need at least, the largest first; null: all of them have too little room. */
export function fewestMachines(candidates: readonly Candidate[], tasks: number): number | null {
  const largest = candidates.map(({ most }) => most).sort((a, b) => b - a);
  let needed = 0;
  for (let left = tasks; left > 0; left -= largest[needed++] as number) {
    if (needed === largest.length) return null;
  }
  return needed;
}

/**
 * While tasks are left: of the machines that take them all, or else of those that take the most, the one of the least key. It gets as
 * many as it takes, but leaves `min` for each of the machines still to come. Null: there is no room for all.
 */
export function chooseMachines<C extends Candidate>(
  candidates: readonly C[],
  tasks: number,
  min: number,
): Choice<C>[] | null {
  const fewest = fewestMachines(candidates, tasks);
  if (fewest === null) return null;
  const open = new Set(candidates);
  const chosen: Choice<C>[] = [];
  let left = tasks;
  for (let needed = fewest; left > 0; needed--) {
    const behind = Math.max(0, needed - 1) * min;
    let best: (Choice<C> & { key: readonly number[] }) | null = null;
    for (const candidate of open) {
      const takes = Math.min(candidate.most, left);
      const bestTakes = best === null ? 0 : Math.min(best.candidate.most, left);
      if (takes === 0 || takes < bestTakes) continue;
      const gets = Math.min(candidate.most, left - behind);
      const key = candidate.key(gets);
      if (key === null) continue;
      const tied = best !== null && takes === bestTakes;
      if (tied && best !== null && !isBefore(key, candidate.id, best.key, best.candidate.id)) continue;
      best = { candidate, tasks: gets, key };
    }
    if (best === null) return null;
    open.delete(best.candidate);
    chosen.push({ candidate: best.candidate, tasks: best.tasks });
    left -= best.tasks;
  }
  return chosen;
}

function isBefore(a: readonly number[], aId: string, b: readonly number[], bId: string): boolean {
  const order = compareKeys(a, b);
  return order === 0 ? aId < bId : order < 0;
}

/** Of keys that are equally long: the first difference decides. */
export function compareKeys(a: readonly (number | string)[], b: readonly (number | string)[]): number {
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i] as number | string, b[i] as number | string];
    if (x !== y) return x < y ? -1 : 1;
  }
  return 0;
}
