/**
 * Jobs that need one another, and what each start and end means for the others: who becomes eligible and when, who is canceled or
 * held because its needs cannot hold any more, and so on along the graph. Each term is counted off once, when what it names has
 * decided it, so all events together cost the number of terms; an end that decides for 10 000 jobs looks at these alone.
 */

import { digraph, topologicalOrder } from '../structures/digraph.js';
import { Heap } from '../structures/heap.js';
import { eligibleAt, judge, type Standing } from './judge.js';
import { type Clause, type NeedCondition, needConditions, type OnUnmet } from './model.js';
import { Outcome, type Verdict } from './outcome.js';

export interface NeedTerm {
  /**
   * The jobs that it is about. One array object for all terms on a group or an array of jobs: their outcome is then kept once,
   * however many jobs need it.
   */
  readonly members: readonly number[];
  readonly condition: NeedCondition;
  readonly minDelayS: number;
}

export interface NeedsJob {
  readonly id: number;
  readonly submittedAt: number;
  readonly notBefore: number | null;
  readonly onUnmet: OnUnmet;
  readonly needs: readonly Clause<NeedTerm>[];
}

/** What has become of a job by what it needs. */
export type NeedsChange =
  /** It may start from then on; an instant that was ahead may come sooner, never later. */
  | { id: number; becomes: 'ELIGIBLE'; at: number }
  /** Its needs cannot hold any more, because of a job: it has ended, or waits for its release. */
  | { id: number; becomes: 'CANCELLED'; at: number; because: number }
  | { id: number; becomes: 'HELD'; because: number };

/** As shown at an instant. */
export interface NeedsView {
  /** null: it has started or ended, and is not asked again. */
  needs: Standing['needs'] | null;
  state: 'WAITING' | 'ELIGIBLE' | 'HELD' | 'STARTED' | 'ENDED' | 'CANCELLED';
  eligibleAt: number | null;
  endedAt: number | null;
  because: number | null;
}

interface Node {
  readonly job: NeedsJob;
  readonly clauses: readonly Clause<Term>[];
  /** What it is a member of, as far as somebody needs that. */
  readonly targets: Target[];
  /** The order in which jobs are judged: after all that they need. */
  place: number;
  startedAt: number | null;
  endedAt: number | null;
  ok: boolean;
  canceledFor: number | null;
  held: boolean;
  /** A person has let it go on although its needs do not hold. */
  released: boolean;
  /** The instant last told. */
  eligibleAt: number | null;
  toJudge: boolean;
}

interface Target {
  readonly outcome: Outcome;
  /** By condition, the terms that it has not decided. */
  readonly undecided: Record<NeedCondition, Term[]>;
}

interface Term {
  readonly node: Node;
  readonly clause: OpenClause;
  readonly target: Target;
  readonly condition: NeedCondition;
  readonly minDelayS: number;
}

interface OpenClause {
  readonly any: boolean;
  /** Terms that nothing has decided. */
  undecided: number;
  /** Of ANY: the first instant at which a term holds. */
  holdsFrom: number;
}

export class NeedsGraph {
  private readonly nodes = new Map<number, Node>();
  private readonly byPlace: Node[] = [];
  private readonly groups = new Map<readonly number[], Target>();
  private readonly waiting = new Heap((a, b) => a < b);

  /**
   * Jobs submitted together, which need one another or earlier ones. Throws for a member that is not there and for a circle:
   * `checkNeeds` finds both before. `settle` tells which of them may start.
   */
  add(jobs: readonly NeedsJob[]): void {
    for (const job of jobs) this.nodes.set(job.id, newNode(job));
    for (const place of this.order(jobs)) {
      const node = this.nodes.get((jobs[place] as NeedsJob).id) as Node;
      node.place = this.byPlace.push(node) - 1;
      this.askAgain(node);
    }
    for (const { id } of jobs) this.connect(this.nodes.get(id) as Node);
  }

  /** The first start of the job's processes. */
  started(id: number, at: number): void {
    const node = this.node(id);
    if (node.startedAt !== null || node.endedAt !== null) return;
    node.startedAt = at;
    for (const target of node.targets) {
      target.outcome.start(id, at);
      this.decide(target);
    }
  }

  /** Its end, when no retry follows. */
  ended(id: number, at: number, ok: boolean): void {
    this.end(this.node(id), at, ok);
  }

  /** A person lets a held job go on. */
  release(id: number): void {
    const node = this.node(id);
    node.released = true;
    this.askAgain(node);
  }

  /** What all that was added and reported since the last call means, up to the jobs that are canceled for one another. */
  settle(): NeedsChange[] {
    const changes: NeedsChange[] = [];
    for (let place = this.waiting.pop(); place !== -1; place = this.waiting.pop()) {
      const node = this.byPlace[place] as Node;
      node.toJudge = false;
      if (node.startedAt !== null || node.endedAt !== null) continue;
      const change = this.become(node, judge(judged(node), Infinity));
      if (change !== null) changes.push(change);
    }
    return changes;
  }

  view(id: number, now: number): NeedsView {
    const node = this.node(id);
    const nothing = { needs: null, eligibleAt: null, because: null };
    if (node.canceledFor !== null)
      return {
        ...nothing,
        needs: 'FALSE',
        state: 'CANCELLED',
        endedAt: node.endedAt,
        because: node.canceledFor,
      };
    if (node.endedAt !== null) return { ...nothing, state: 'ENDED', endedAt: node.endedAt };
    if (node.startedAt !== null) return { ...nothing, state: 'STARTED', endedAt: null };
    const { needs, because } = judge(judged(node), now);
    const at = node.held ? null : node.eligibleAt;
    const state = node.held ? 'HELD' : at !== null && at <= now ? 'ELIGIBLE' : 'WAITING';
    return { needs, state, eligibleAt: at, endedAt: null, because };
  }

  private become(node: Node, standing: Standing): NeedsChange | null {
    const { id, submittedAt, notBefore, onUnmet } = node.job;
    const { falseAt, because } = standing;
    if (falseAt !== null && because !== null && onUnmet !== 'RUN' && !node.released) {
      if (onUnmet === 'HOLD') {
        const first = !node.held;
        node.held = true;
        return first ? { id, becomes: 'HELD', because } : null;
      }
      const at = Math.max(falseAt, submittedAt);
      node.canceledFor = because;
      this.end(node, at, false);
      return { id, becomes: 'CANCELLED', at, because };
    }
    node.held = false;
    const at = eligibleAt(standing, submittedAt, notBefore);
    if (at === node.eligibleAt || at === null) return null;
    node.eligibleAt = at;
    return { id, becomes: 'ELIGIBLE', at };
  }

  private end(node: Node, at: number, ok: boolean): void {
    if (node.endedAt !== null) return;
    node.endedAt = at;
    node.ok = ok;
    for (const target of node.targets) {
      target.outcome.end(node.job.id, at, ok, node.startedAt !== null);
      this.decide(target);
    }
  }

  private node(id: number): Node {
    const node = this.nodes.get(id);
    if (node === undefined) throw new Error(`job ${id} is not in the graph of needs`);
    return node;
  }

  /** The jobs by position, each after those of them that it needs. Groups are nodes of their own, as in `checkNeeds`. */
  private order(jobs: readonly NeedsJob[]): Int32Array {
    const position = new Map(jobs.map(({ id }, i) => [id, i]));
    const groups = new Map<readonly number[], number>();
    const [from, to]: [number[], number[]] = [[], []];
    const edges = (members: readonly number[], node: number): void => {
      for (const member of members) {
        const needed = position.get(member);
        if (needed === undefined) continue;
        from.push(needed);
        to.push(node);
      }
    };
    jobs.forEach(({ needs }, i) => {
      for (const { of } of needs) {
        for (const { members } of of) {
          if (members.length === 1) {
            edges(members, i);
            continue;
          }
          let group = groups.get(members);
          if (group === undefined) {
            group = jobs.length + groups.size;
            groups.set(members, group);
            edges(members, group);
          }
          from.push(group);
          to.push(i);
        }
      }
    });
    const order = topologicalOrder(digraph(jobs.length + groups.size, from, to));
    if (order.length < jobs.length + groups.size)
      throw new Error('the jobs depend on one another in a cycle; accepted: dependencies without cycles');
    return order.filter((node) => node < jobs.length);
  }

  private connect(node: Node): void {
    for (const [i, { expression, of }] of node.job.needs.entries()) {
      const any = expression === 'ANY';
      const clause: OpenClause = { any, undecided: of.length, holdsFrom: Infinity };
      const terms = node.clauses[i]?.of as Term[];
      for (const { members, condition, minDelayS } of of) {
        const target = this.targetOf(members);
        const term = { node, clause, target, condition, minDelayS };
        terms.push(term);
        const verdict = target.outcome.verdict(condition);
        if (verdict === null) target.undecided[condition].push(term);
        else this.count(term, verdict);
      }
    }
  }

  private targetOf(members: readonly number[]): Target {
    const alone = members.length === 1 ? this.node(members[0] as number) : null;
    const known = alone === null ? this.groups.get(members) : alone.targets.find(isOfOne);
    if (known !== undefined) return known;
    const target: Target = {
      outcome: new Outcome(members.length),
      undecided: { START: [], OK: [], NOT_OK: [], ANY: [] },
    };
    for (const id of members) {
      const { startedAt, endedAt, ok, targets } = this.node(id);
      targets.push(target);
      if (startedAt !== null) target.outcome.start(id, startedAt);
      if (endedAt !== null) target.outcome.end(id, endedAt, ok, startedAt !== null);
    }
    if (alone === null) this.groups.set(members, target);
    return target;
  }

  /** Counts off the terms that the last event has decided. */
  private decide({ outcome, undecided }: Target): void {
    for (const condition of needConditions) {
      if (undecided[condition].length === 0) continue;
      const verdict = outcome.verdict(condition);
      if (verdict === null) continue;
      for (const term of undecided[condition]) this.count(term, verdict);
      undecided[condition] = [];
    }
  }

  private count({ node, clause, minDelayS }: Term, verdict: NonNullable<Verdict>): void {
    clause.undecided--;
    const at = verdict.at + minDelayS;
    const sooner = clause.any && verdict.holds && at < clause.holdsFrom;
    if (sooner) clause.holdsFrom = at;
    const unmet = !clause.any && !verdict.holds;
    if (sooner || unmet || (clause.undecided === 0 && clause.holdsFrom === Infinity)) this.askAgain(node);
  }

  private askAgain(node: Node): void {
    if (node.toJudge) return;
    node.toJudge = true;
    this.waiting.push(node.place);
  }
}

const newNode = (job: NeedsJob): Node => ({
  job,
  clauses: job.needs.map(({ expression }) => ({ expression, of: [] })),
  targets: [],
  place: -1,
  startedAt: null,
  endedAt: null,
  ok: false,
  canceledFor: null,
  held: false,
  released: false,
  eligibleAt: null,
  toJudge: false,
});

const isOfOne = ({ outcome }: Target): boolean => outcome.members === 1;

const judged = ({ clauses }: Node) =>
  clauses.map(({ expression, of }) => ({
    expression,
    of: of.map(({ target, condition, minDelayS }) => ({
      verdict: target.outcome.verdict(condition),
      minDelayS,
    })),
  }));
