/**
 * Which machines a job's tasks go on (resources.md, "Which machines"): as few as can be, so that whole machines stay whole. And what jobs
 * ask of these machines together, not of each alone ("How much fits, and what lacks", steps 7 and 8).
 */
import type { Labels } from './constraint.js';

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

/** How tasks are spread over machines. */
export interface Spread {
  /** On each machine that has any; `max` null: as many as fit. */
  readonly tasksPerMachine: { readonly min: number; readonly max: number | null };
  /** Labels of which all machines have the same values. */
  readonly allAlike: readonly string[];
}

/** A machine on which tasks may be put. `most` is narrowed to what may be there. */
export interface SpreadCandidate extends Candidate {
  most: number;
  readonly labels: Labels;
}

/** Leaves on each machine the tasks that may be there, and tells why they are too few for all; null: they are not. */
export function narrowToSpread(
  candidates: readonly SpreadCandidate[],
  tasks: number,
  { tasksPerMachine: { min, max }, allAlike }: Spread,
): 'tasksPerMachine' | 'allAlike' | null {
  for (const candidate of candidates) {
    candidate.most = Math.min(candidate.most, max ?? Infinity);
    if (candidate.most < min) candidate.most = 0;
  }
  if (!suffice(candidates, tasks, min)) return 'tasksPerMachine';
  if (allAlike.length === 0) return null;
  return classesOf(candidates, allAlike).some((one) => suffice(one, tasks, min)) ? null : 'allAlike';
}

/** Whether they have room for all tasks, with at least `min` on each machine that has any. */
function suffice(candidates: readonly Candidate[], tasks: number, min: number): boolean {
  const needed = fewestMachines(candidates, tasks);
  return needed !== null && needed * min <= tasks;
}

/** Machines whose values of the labels are the same; one that lacks a label is in none. */
function classesOf<C extends SpreadCandidate>(candidates: readonly C[], allAlike: readonly string[]): C[][] {
  const classes = new Map<string, C[]>();
  for (const candidate of candidates) {
    const { labels } = candidate;
    if (!allAlike.every((label) => Object.hasOwn(labels, label))) continue;
    const values = JSON.stringify(allAlike.map((label) => labels[label]));
    const known = classes.get(values);
    if (known === undefined) classes.set(values, [candidate]);
    else known.push(candidate);
  }
  return [...classes.values()];
}

/**
 * Of machines as `narrowToSpread` has left them, those that the tasks go on; of classes of machines that are alike the one with the fewest,
 * then the least sums of their keys, then the first ids. Null: there is no room for all.
 */
export function chooseSpread<C extends SpreadCandidate>(
  candidates: readonly C[],
  tasks: number,
  { tasksPerMachine: { min }, allAlike }: Spread,
): Choice<C>[] | null {
  if (allAlike.length === 0) return chooseMachines(candidates, tasks, min);
  let best: { chosen: Choice<C>[]; key: (number | string)[] } | null = null;
  for (const one of classesOf(candidates, allAlike)) {
    const chosen = suffice(one, tasks, min) ? chooseMachines(one, tasks, min) : null;
    if (chosen === null) continue;
    const sums: number[] = [];
    for (const { candidate, tasks: gets } of chosen)
      for (const [i, value] of (candidate.key(gets) ?? []).entries()) sums[i] = (sums[i] ?? 0) + value;
    const key = [chosen.length, ...sums, ...chosen.map(({ candidate }) => candidate.id).sort()];
    if (best === null || compareKeys(key, best.key) < 0) best = { chosen, key };
  }
  return best?.chosen ?? null;
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
function compareKeys(a: readonly (number | string)[], b: readonly (number | string)[]): number {
  for (let i = 0; i < a.length; i++) {
    const [x, y] = [a[i] as number | string, b[i] as number | string];
    if (x !== y) return x < y ? -1 : 1;
  }
  return 0;
}
