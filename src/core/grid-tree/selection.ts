/**
 * Which requests a branch gets that asks (grid-tree.md, "Resource selection"). The cost follows groups of like requests, not
 * requests.
 */
import { before, type Entry, inOrder, type MoveReason, type TreeRules } from './messages.js';

/** `B_share`: what is due to a branch of `waiting` requests. 0 without power. */
export function shareOf(power: number, totalPower: number, waiting: number): number {
  // Multiplied first: a quotient like 1/3 times 3 must not be rounded up to 2.
  return totalPower > 0 ? Math.ceil((power * waiting) / totalPower) : 0;
}

/** Requests at one place, by groups, each in order of service. */
export class Place {
  readonly groups = new Map<string, Entry[]>();
  size = 0;

  add(entry: Entry): void {
    this.size++;
    const group = this.groups.get(entry.group);
    if (group === undefined) this.groups.set(entry.group, [entry]);
    else group.splice(position(group, entry), 0, entry);
  }

  /** It must be there. */
  delete(entry: Entry): void {
    this.size--;
    const group = this.groups.get(entry.group) as Entry[];
    if (group.length === 1) this.groups.delete(entry.group);
    else group.splice(position(group, entry), 1);
  }

  *entries(): Iterable<Entry> {
    for (const group of this.groups.values()) yield* group;
  }

  clear(): void {
    this.groups.clear();
    this.size = 0;
  }
}

/** Where it is, or belongs: the number of those before it. */
export function position(sorted: readonly Entry[], entry: Entry): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (before(sorted[middle] as Entry, entry)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** How good a branch is for a request: more conditions, then less distance. */
export interface Gain {
  conditions: number;
  distanceKm: number;
}

const isBetter = (a: Gain, b: Gain): boolean =>
  a.conditions > b.conditions || (a.conditions === b.conditions && a.distanceKm < b.distanceKm);

/** A branch, as selection sees it. */
export interface Taker {
  readonly place: Place;
  readonly power: number;
  /** Requests on their way to it, beside those at its place. */
  readonly coming: number;
  /** Whether the class of the group is in its bag. */
  fits(sample: Entry): boolean;
  gain(sample: Entry): Gain;
}

export interface Collected<T extends Taker> {
  entry: Entry;
  /** null: nobody's until now. */
  from: T | null;
  how: MoveReason;
}

/**
 * What to give to the branch that asked, in order of service; what comes from other branches is to be taken back first.
 * `waiting`: requests in the subtree that have not started.
 */
export function collect<T extends Taker>(
  asked: T,
  takers: readonly T[],
  unassigned: Place,
  waiting: number,
  rules: TreeRules,
): Collected<T>[] {
  let total = 0;
  for (const taker of takers) total += taker.power;
  const lacks = shareOf(asked.power, total, waiting) - asked.place.size - asked.coming;
  if (lacks <= 0) return [];
  const block: Collected<T>[] = [];
  const movable = (entry: Entry): boolean => entry.moves < rules.movesMax;
  const others = takers.filter((taker) => taker !== asked && taker.place.size > 0);

  if (rules.butterfly) {
    const found: Collected<T>[] = [];
    for (const from of others) {
      for (const group of from.place.groups.values()) {
        const sample = group[0] as Entry;
        if (!asked.fits(sample) || !isBetter(asked.gain(sample), from.gain(sample))) continue;
        for (const entry of firstOf(group, lacks, movable)) found.push({ entry, from, how: 'BUTTERFLY' });
      }
    }
    block.push(...found.sort(byService).slice(0, lacks));
  }

  if (block.length < lacks) {
    const found: Collected<T>[] = [];
    for (const group of unassigned.groups.values()) {
      if (!asked.fits(group[0] as Entry)) continue;
      for (const entry of firstOf(group, lacks, () => true))
        found.push({ entry, from: null, how: 'UNASSIGNED' });
    }
    block.push(...found.sort(byService).slice(0, lacks - block.length));
  }

  if (rules.loadBalance && block.length < lacks) {
    const taken = new Set(block.map(({ entry }) => entry));
    const surplus = others.map(
      (from) =>
        from.place.size +
        from.coming -
        block.filter((item) => item.from === from).length -
        shareOf(from.power, total, waiting),
    );
    while (block.length < lacks) {
      const most = Math.max(0, ...surplus);
      if (most === 0) break;
      const i = surplus.indexOf(most);
      const from = others[i] as T;
      const entry = lastOf(
        from.place,
        (one) => asked.fits(one),
        (one) => movable(one) && !taken.has(one),
      );
      if (entry === null) surplus[i] = 0;
      else {
        taken.add(entry);
        block.push({ entry, from, how: 'LOAD_BALANCE' });
        surplus[i] = most - 1;
      }
    }
  }
  return block.sort(byService);
}

const byService = (a: { entry: Entry }, b: { entry: Entry }): number => inOrder(a.entry, b.entry);

function firstOf(group: readonly Entry[], count: number, may: (entry: Entry) => boolean): Entry[] {
  const found: Entry[] = [];
  for (let i = 0; i < group.length && found.length < count; i++) {
    const entry = group[i] as Entry;
    if (may(entry)) found.push(entry);
  }
  return found;
}

/** The last in order of service of those that `may`, in groups that `fits`; null: there is none. */
export function lastOf(
  place: Place,
  fits: (sample: Entry) => boolean,
  may: (entry: Entry) => boolean,
): Entry | null {
  let last: Entry | null = null;
  for (const group of place.groups.values()) {
    if (!fits(group[0] as Entry)) continue;
    for (let i = group.length - 1; i >= 0; i--) {
      const entry = group[i] as Entry;
      if (last !== null && before(entry, last)) break;
      if (may(entry)) {
        last = entry;
        break;
      }
    }
  }
  return last;
}
