/** What a submission may say that its jobs need (jobs.md, "What a submission may say"). */
import { circles, digraph } from '../structures/digraph.js';
import { type AskedCondition, type Clause, MAX_NEED_DELAY_S, type NeedsLimits } from './model.js';

/** What a term names: one of a submission's own items, a job that exists, or all jobs of a group. */
export type NeedTarget = { readonly ref: string } | { readonly job: string } | { readonly group: string };
export type AskedTerm = NeedTarget & { readonly condition: AskedCondition; readonly minDelayS: number };

/** One job, or an array: a job at each index from first to last. */
export interface NeedsItem {
  readonly ref: string | null;
  readonly array: readonly [first: number, last: number] | null;
  readonly group: string | null;
  readonly needs: readonly Clause<AskedTerm>[];
}

/** What exists already, as far as the submission names it. */
export interface ExistingJobs {
  has(job: string): boolean;
  /** The array indices of the group's members, null for one without; null: there is no such group. */
  indicesOf(group: string): readonly (number | null)[] | null;
}

type AtItem = { item: number };
type AtClause = AtItem & { clause: number };
type AtTerm = AtClause & { term: number };
/** Positions count from 0. */
export type NeedsError =
  | ({ code: 'DUPLICATE_REF' | 'TOO_MANY_NEEDS' } & AtItem)
  | ({ code: 'EMPTY_CLAUSE' } & AtClause)
  | ({ code: 'UNKNOWN_REF' | 'UNKNOWN_JOB' | 'UNKNOWN_GROUP' | 'NOT_AN_ARRAY' | 'BAD_DELAY' } & AtTerm)
  /** The first index that what the term names lacks, and how many there are. */
  | ({ code: 'INDEX_MISSING'; index: number; missing: number } & AtTerm)
  | { code: 'TOO_MANY_JOBS' | 'TOO_MANY_EDGES'; count: number }
  | { code: 'CIRCLE'; items: number[] };

/** All that is wrong, in order; empty: the submission's needs are accepted. Linear in items and terms, but for a logarithm. */
export function checkNeeds(
  items: readonly NeedsItem[],
  existing: ExistingJobs,
  limits: NeedsLimits,
): NeedsError[] {
  const names = new Names(items, existing);
  const errors: NeedsError[] = [];
  const edges = new Edges(items.length);
  let [jobs, asked] = [0, 0];
  items.forEach(({ ref, array, needs }, item) => {
    const size = array === null ? 1 : array[1] - array[0] + 1;
    const terms = needs.reduce((sum, { of }) => sum + of.length, 0);
    jobs += size;
    asked += size * terms;
    if (ref !== null && names.items.get(ref) !== item) errors.push({ code: 'DUPLICATE_REF', item });
    if (terms > limits.needsPerJob) errors.push({ code: 'TOO_MANY_NEEDS', item });
    needs.forEach(({ of }, clause) => {
      if (of.length === 0) errors.push({ code: 'EMPTY_CLAUSE', item, clause });
      of.forEach((named, term) => {
        const wrong = wrongWith(named, array, names);
        if (wrong !== null) errors.push({ ...wrong, item, clause, term });
        edges.add(item, named, names);
      });
    });
  });
  if (jobs > limits.jobs) errors.push({ code: 'TOO_MANY_JOBS', count: jobs });
  if (asked > limits.edges) errors.push({ code: 'TOO_MANY_EDGES', count: asked });
  for (const nodes of edges.circles()) errors.push({ code: 'CIRCLE', items: nodes });
  return errors;
}

type Wrong =
  | { code: 'UNKNOWN_REF' | 'UNKNOWN_JOB' | 'UNKNOWN_GROUP' | 'NOT_AN_ARRAY' | 'BAD_DELAY' }
  | { code: 'INDEX_MISSING'; index: number; missing: number };

function wrongWith(term: AskedTerm, array: NeedsItem['array'], names: Names): Wrong | null {
  const unknown = names.unknown(term);
  if (unknown !== null) return { code: unknown };
  if (term.condition === 'CORRESPONDING') {
    const indices = array === null ? null : names.indicesOf(term);
    if (array === null || indices === null) return { code: 'NOT_AN_ARRAY' };
    const lacking = indices.lacking(array[0], array[1]);
    if (lacking !== null) return { code: 'INDEX_MISSING', ...lacking };
  }
  return term.minDelayS >= 0 && term.minDelayS <= MAX_NEED_DELAY_S ? null : { code: 'BAD_DELAY' };
}

/** What the names in terms stand for. */
class Names {
  /** The item that keeps a ref. */
  readonly items = new Map<string, number>();
  /** The submission's own members of groups. */
  readonly members = new Map<string, number[]>();
  private readonly ofGroups = new Map<string, ArrayIndices | null>();

  constructor(
    private readonly all: readonly NeedsItem[],
    private readonly existing: ExistingJobs,
  ) {
    all.forEach(({ ref, group }, item) => {
      if (ref !== null && !this.items.has(ref)) this.items.set(ref, item);
      if (group === null) return;
      const members = this.members.get(group);
      if (members === undefined) this.members.set(group, [item]);
      else members.push(item);
    });
  }

  unknown(term: AskedTerm): 'UNKNOWN_REF' | 'UNKNOWN_JOB' | 'UNKNOWN_GROUP' | null {
    if ('ref' in term) return this.items.has(term.ref) ? null : 'UNKNOWN_REF';
    if ('job' in term) return this.existing.has(term.job) ? null : 'UNKNOWN_JOB';
    if (this.members.has(term.group)) return null;
    return (this.existing.indicesOf(term.group) ?? []).length > 0 ? null : 'UNKNOWN_GROUP';
  }

  /** Of something known; null: not an array. A job that exists is one job, whatever array it was submitted with. */
  indicesOf(term: AskedTerm): ArrayIndices | null {
    if ('job' in term) return null;
    if ('ref' in term) return this.indicesOfItems([this.items.get(term.ref) as number], []);
    let indices = this.ofGroups.get(term.group);
    if (indices === undefined) {
      const existing = this.existing.indicesOf(term.group) ?? [];
      indices = this.indicesOfItems(this.members.get(term.group) ?? [], existing);
      this.ofGroups.set(term.group, indices);
    }
    return indices;
  }

  private indicesOfItems(items: readonly number[], others: readonly (number | null)[]): ArrayIndices | null {
    const ranges: [number, number][] = [];
    for (const item of items) {
      const array = (this.all[item] as NeedsItem).array;
      if (array === null) return null;
      ranges.push([array[0], array[1]]);
    }
    for (const index of others) {
      if (index === null) return null;
      ranges.push([index, index]);
    }
    return new ArrayIndices(ranges);
  }
}

/** A set of array indices as ranges that neither overlap nor touch, with the number of indices before each. */
class ArrayIndices {
  private readonly ranges: { first: number; last: number; before: number }[] = [];

  constructor(ranges: [number, number][]) {
    for (const [first, last] of ranges.sort((a, b) => a[0] - b[0])) {
      const end = this.ranges[this.ranges.length - 1];
      if (end !== undefined && first <= end.last + 1) end.last = Math.max(end.last, last);
      else this.ranges.push({ first, last, before: 0 });
    }
    for (let i = 1; i < this.ranges.length; i++) {
      const { first, last, before } = this.ranges[i - 1] as (typeof this.ranges)[number];
      (this.ranges[i] as { before: number }).before = before + last - first + 1;
    }
  }

  /** What is missing from first to last; null: nothing. */
  lacking(first: number, last: number): { index: number; missing: number } | null {
    const missing = last - first + 1 - (this.below(last + 1) - this.below(first));
    if (missing === 0) return null;
    const at = this.ranges[this.rangesUpTo(first) - 1];
    return { index: at === undefined || at.last < first ? first : at.last + 1, missing };
  }

  /** How many indices there are below this one. */
  private below(index: number): number {
    const at = this.ranges[this.rangesUpTo(index) - 1];
    return at === undefined ? 0 : at.before + Math.min(at.last + 1, index) - at.first;
  }

  /** How many ranges begin at the index or before. */
  private rangesUpTo(index: number): number {
    let [low, high] = [0, this.ranges.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.ranges[middle] as { first: number }).first <= index) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/**
 * Who needs whom within the submission. A group is a node between those that name it and its members, so that many items that need
 * a large group cost their sum and not their product; what reaches what stays the same.
 */
class Edges {
  private readonly from: number[] = [];
  private readonly to: number[] = [];
  private readonly groups = new Map<string, number>();

  constructor(private readonly items: number) {}

  add(item: number, term: AskedTerm, names: Names): void {
    if ('job' in term) return;
    const target = 'ref' in term ? names.items.get(term.ref) : this.group(term.group, names);
    if (target !== undefined) this.edge(item, target);
  }

  private group(name: string, names: Names): number | undefined {
    const members = names.members.get(name);
    let node = this.groups.get(name);
    if (members === undefined || node !== undefined) return node;
    node = this.items + this.groups.size;
    this.groups.set(name, node);
    for (const member of members) this.edge(node, member);
    return node;
  }

  private edge(from: number, to: number): void {
    this.from.push(from);
    this.to.push(to);
  }

  /** The items of each circle. */
  circles(): number[][] {
    const graph = digraph(this.items + this.groups.size, this.from, this.to);
    return circles(graph).map((nodes) => nodes.filter((node) => node < this.items));
  }
}

/** The error in words: where, what is there, what is accepted. `at`: the path of the list of items in the request. */
export function sayNeedsError(
  error: NeedsError,
  items: readonly NeedsItem[],
  limits: NeedsLimits,
  at = 'jobs',
): string {
  const named = (item: number): string => {
    const ref = items[item]?.ref ?? null;
    return ref === null ? `${at}.${item}` : `${at}.${item} (ref ${JSON.stringify(ref)})`;
  };
  switch (error.code) {
    case 'TOO_MANY_JOBS':
      return `${at} are ${error.count} jobs; accepted: at most ${limits.jobs} in a submission`;
    case 'TOO_MANY_EDGES':
      return `${at} have ${error.count} dependencies (terms × the size of their array); accepted: at most ${limits.edges} in a submission`;
    case 'CIRCLE': {
      const shown = error.items.slice(0, SHOWN).map(named).join(', ');
      const more = error.items.length > SHOWN ? ` and ${error.items.length - SHOWN} more` : '';
      return error.items.length === 1
        ? `${shown} depends on itself; accepted: dependencies without cycles`
        : `${shown}${more} depend on one another in a cycle; accepted: dependencies without cycles`;
    }
    case 'DUPLICATE_REF':
      return `${named(error.item)} has the same ref as an earlier job; accepted: refs that are unique in the submission`;
    case 'TOO_MANY_NEEDS':
      return `${named(error.item)} has too many dependency terms; accepted: at most ${limits.needsPerJob}`;
    case 'EMPTY_CLAUSE':
      return `${named(error.item)}: needs.${error.clause} has no terms; accepted: at least one`;
  }
  const term = items[error.item]?.needs[error.clause]?.of[error.term] as AskedTerm;
  const named_ = `${named(error.item)}: needs.${error.clause}.of.${error.term}`;
  const target =
    'ref' in term ? `ref ${term.ref}` : 'job' in term ? `job ${term.job}` : `group ${term.group}`;
  switch (error.code) {
    case 'UNKNOWN_REF':
      return `${named_} names ${target}, which is not a ref in the submission; accepted: refs of the submission`;
    case 'UNKNOWN_JOB':
      return `${named_} names ${target}, which does not exist; accepted: IDs of existing jobs`;
    case 'UNKNOWN_GROUP':
      return `${named_} names ${target}, which has no members; accepted: groups with members`;
    case 'NOT_AN_ARRAY':
      return `${named_} is CORRESPONDING on ${target}; accepted only from an array to an array, or to a group whose members all have an index`;
    case 'INDEX_MISSING':
      return `${named_} is CORRESPONDING on ${target}, which does not have index ${error.index} (${error.missing} missing in total); accepted: arrays with every index of the job's own`;
    case 'BAD_DELAY':
      return `${named_}.minDelayS is ${term.minDelayS}; accepted: 0 to ${MAX_NEED_DELAY_S} seconds`;
  }
}
/** Members of a circle that its error names. */
const SHOWN = 20;
