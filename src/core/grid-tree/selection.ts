/**
 * Which requests a branch gets that asks (grid-tree.md, "Resource selection"). The cost follows groups of like requests, not
 * requests.
 */
import { Heap } from '../structures/heap.js';
import { before, type Entry, inOrder, type MoveReason, type TreeRules } from './messages.js';

export type Rounding = (share: number) => number;

/** `B_share`: what is due to a branch of `waiting` requests. 0 without power. */
export function shareOf(
  power: number,
  totalPower: number,
  waiting: number,
  round: Rounding = Math.ceil,
): number {
  // Multiplied first: a quotient like 1/3 times 3 must not be rounded up to 2.
  return totalPower > 0 ? round((power * waiting) / totalPower) : 0;
}

/** Of branches together. */
export function powerOf(takers: readonly { power: number }[]): number {
  let power = 0;
  for (const taker of takers) power += taker.power;
  return power;
}

/** For `lastOf`. */
const ANY_CLASS = { fits: () => true };

/** Requests at one place, by group, or where it is `plain` by class, of which groups are parts; each in order of service. */
export class Place {
  /** Not by class and in it by group: most classes have one group, often of one job, and a map of its own costs more than the rest. */
  readonly groups = new Map<string, Entry[]>();
  size = 0;
  /** How many of them are better off at one branch than at another, as far as `gain` tells. */
  choosy = 0;
  /** undefined: not known. */
  private knownLast: Entry | null | undefined = null;

  constructor(private readonly plain = false) {}

  /** In order of service; null: there is none. */
  get last(): Entry | null {
    if (this.knownLast === undefined) this.knownLast = lastOf(this, ANY_CLASS);
    return this.knownLast;
  }

  add(entry: Entry): void {
    this.size++;
    if (isChoosy(entry)) this.choosy++;
    const { knownLast } = this;
    if (knownLast === null || (knownLast !== undefined && before(knownLast, entry))) this.knownLast = entry;
    const name = this.groupOf(entry);
    const group = this.groups.get(name);
    if (group === undefined) this.groups.set(name, [entry]);
    else if (before(group.at(-1) as Entry, entry)) group.push(entry);
    else group.splice(position(group, entry), 0, entry);
  }

  /** It must be there. */
  delete(entry: Entry): void {
    this.size--;
    if (isChoosy(entry)) this.choosy--;
    if (entry.key === this.knownLast?.key) this.knownLast = undefined;
    const name = this.groupOf(entry);
    const group = this.groups.get(name) as Entry[];
    if (group.length > 1) {
      if (group[0]?.key === entry.key) group.shift();
      else group.splice(position(group, entry), 1);
      return;
    }
    this.groups.delete(name);
  }

  /** Groups of the classes that the taker can run. */
  *groupsFor(taker: Pick<Taker, 'fits'>): Iterable<readonly Entry[]> {
    for (const group of this.groups.values())
      if (taker.fits((group[0] as Entry).requirement.key)) yield group;
  }

  *entries(): Iterable<Entry> {
    for (const group of this.groups.values()) yield* group;
  }

  clear(): void {
    this.groups.clear();
    this.size = 0;
    this.choosy = 0;
    this.knownLast = null;
  }

  private groupOf(entry: Entry): string {
    return this.plain ? entry.requirement.key : entry.group;
  }
}

/** What likes nothing and comes from nowhere is as well off here as there. */
export const isChoosy = ({ preferences, origin }: Entry): boolean =>
  preferences.length > 0 || origin !== null;

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
  /** Whether the class is in its bag. */
  fits(requirementKey: string): boolean;
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
 * `waiting`: requests in the subtree that have not started. `round`: to how much of its share the branch is served.
 */
export function collect<T extends Taker>(
  asked: T,
  takers: readonly T[],
  unassigned: Place,
  waiting: number,
  rules: Omit<TreeRules, 'shares'>,
  round: Rounding = Math.ceil,
): Collected<T>[] {
  const total = powerOf(takers);
  const lacks = shareOf(asked.power, total, waiting, round) - asked.place.size - asked.coming;
  if (lacks <= 0) return [];
  const block: Collected<T>[] = [];
  const movable = (entry: Entry): boolean => entry.moves < rules.movesMax;
  const others = takers.filter((taker) => taker !== asked && taker.place.size > 0);

  if (rules.butterfly) {
    const better: Group<T>[] = [];
    for (const from of others) {
      if (from.place.choosy === 0) continue;
      for (const entries of from.place.groupsFor(asked)) {
        const sample = entries[0] as Entry;
        if (isBetter(asked.gain(sample), from.gain(sample))) better.push({ entries, from });
      }
    }
    takeFirst(better, lacks, 'BUTTERFLY', movable, block);
  }

  if (block.length < lacks) {
    const nobodys = Array.from(unassigned.groupsFor(asked), (entries) => ({ entries, from: null }));
    takeFirst(nobodys, lacks, 'UNASSIGNED', () => true, block);
  }

  if (rules.loadBalance && block.length < lacks && others.length > 0) {
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
      const entry = lastOf(from.place, asked, (one) => movable(one) && !taken.has(one));
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

interface Group<T> {
  /** In order of service. */
  entries: readonly Entry[];
  from: T | null;
}

/** Puts the first of all groups, in order of service, into the block until it has `most`. */
function takeFirst<T extends Taker>(
  groups: readonly Group<T>[],
  most: number,
  how: MoveReason,
  may: (entry: Entry) => boolean,
  block: Collected<T>[],
): void {
  if (groups.length === 0) return;
  if (most - block.length === 1) {
    const first = firstOf(groups, may);
    if (first !== null) block.push({ ...first, how });
    return;
  }
  const at = new Int32Array(groups.length);
  const next = (i: number): Entry | undefined => groups[i]?.entries[at[i] as number];
  /** From there on; false: there is none. */
  const find = (i: number): boolean => {
    for (let entry = next(i); entry !== undefined; entry = next(i)) {
      if (may(entry)) return true;
      (at[i] as number)++;
    }
    return false;
  };
  const open = Int32Array.from(groups.keys()).filter(find);
  const firsts = new Heap((a, b) => before(next(a) as Entry, next(b) as Entry), open, open.length);
  while (block.length < most && firsts.length > 0) {
    const i = firsts.pop();
    block.push({ entry: next(i) as Entry, from: (groups[i] as Group<T>).from, how });
    (at[i] as number)++;
    if (find(i)) firsts.push(i);
  }
}

/** The first of all groups, in order of service; null: there is none. */
function firstOf<T>(
  groups: readonly Group<T>[],
  may: (entry: Entry) => boolean,
): { entry: Entry; from: T | null } | null {
  let first: { entry: Entry; from: T | null } | null = null;
  for (const { entries, from } of groups) {
    for (const entry of entries) {
      if (first !== null && before(first.entry, entry)) break;
      if (!may(entry)) continue;
      first = { entry, from };
      break;
    }
  }
  return first;
}

/** The last in order of service of those that the taker can run and that `may`; null: there is none. */
export function lastOf(
  place: Place,
  taker: Pick<Taker, 'fits'>,
  may: (entry: Entry) => boolean = () => true,
): Entry | null {
  let last: Entry | null = null;
  for (const group of place.groupsFor(taker)) {
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
