/**
 * The jobs that one scheduler holds, in columns. A job has a *slot* for as long as it is here. The queue keeps itself in every order
 * that somebody has asked for: an order is made at the first question, and from then on getting in costs a binary search and a move of
 * memory, at either end next to nothing, where queues mostly grow and shrink.
 */
import { NO_RANKS, yieldsBy } from '../classes.js';
import { asksPools, type Job } from '../model.js';
import type { Requirement } from './requirements.js';

/**
 * Of two jobs whose operator's boosts differ, the higher boost goes first, in every order but PRIORITY, where it is part of the
 * priority. Then ARRIVAL: at a site by when they came there (hierarchical-clusters.md), elsewhere and among those by (submit, id). PRIORITY: level-1 priority with boost, highest first. SHORTEST: least work (a task's, on
 * power 1) first; with NARROWEST fewest tasks before that, with WIDEST most. Ties by arrival.
 */
export type QueueOrder = 'ARRIVAL' | 'PRIORITY' | 'SHORTEST' | 'NARROWEST' | 'WIDEST';

/** Whose queue it is: the root's, that of a site's scheduler before its local one (its jobs can go to another site), or the local one. */
export type Level = 'ROOT' | 'META' | 'LOCAL';

/** Who came first, in all queues of a grid. By ranks a job of a workflow counts from when that was submitted (jobs.md, "Ranks of a workflow"). */
export class Arrival {
  constructor(
    readonly byRank = false,
    /** Of the policy's classes of jobs. */
    readonly ranks = NO_RANKS,
  ) {}

  /** The rank of the job's class: whose runs may be stopped for it. */
  classRank({ class: name, preemptionClass }: Job): number {
    return name === null ? preemptionClass : (this.ranks[name] ?? preemptionClass);
  }

  /** Below 0 when `a` goes first; never 0 for two jobs: ids differ. */
  compare(a: Job, b: Job): number {
    return (this.byRank && this.compareRanks(a, b)) || a.submittedAt - b.submittedAt || a.id - b.id;
  }

  /** The same by ranks; 0: neither by these. */
  compareRanks(a: Job, b: Job): number {
    return this.since(a) - this.since(b) || this.turn(a) - this.turn(b);
  }

  /** The instant from which the job counts. */
  since({ workflow, submittedAt }: Job): number {
    return this.byRank ? (workflow?.since ?? submittedAt) : submittedAt;
  }

  /** Of jobs that count from one instant the least goes first: who is of no workflow, then one workflow after the other, by their places. */
  turn({ workflow, groupId }: Job): number {
    return this.byRank && workflow !== null ? groupId * PLACES + workflow.place : 0;
  }
}

const COLUMNS = ['ids', 'submits', 'arrivals', 'works'] as const;

function widened(column: Float64Array<ArrayBuffer>, size: number): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(size);
  larger.set(column);
  return larger;
}

/** A column in which most jobs have the same: it takes no memory before the first job that has something else. */
class RareColumn {
  private values: Float64Array<ArrayBuffer> | null = null;

  constructor(private readonly usual: number) {}

  at(slot: number): number {
    return this.values === null ? this.usual : (this.values[slot] as number);
  }

  /** `size`: how many slots there are by now. */
  set(slot: number, value: number, size: number): void {
    if (this.values === null) {
      if (value === this.usual) return;
      this.values = new Float64Array(size).fill(this.usual);
    } else if (slot >= this.values.length) {
      this.values = widened(this.values, size);
    }
    this.values[slot] = value;
  }
}

/** A column that few policies look at: made at the first question, and kept up to date from then on. */
class AskedColumn {
  private made: Float64Array<ArrayBuffer> | null = null;

  constructor(private readonly fieldOf: (job: Job) => number) {}

  values(queue: JobQueue): Float64Array {
    if (this.made === null) {
      this.made = new Float64Array(queue.ids.length);
      for (const slot of queue.slots()) this.made[slot] = this.fieldOf(queue.jobs[slot] as Job);
    }
    return this.made;
  }

  /** `size`: how many slots there are by now. */
  set(slot: number, job: Job, size: number): void {
    if (this.made === null) return;
    if (slot >= this.made.length) this.made = widened(this.made, size);
    this.made[slot] = this.fieldOf(job);
  }
}

/** A workflow has fewer. */
const PLACES = 2 ** 17;

export class JobQueue {
  readonly jobs: (Job | undefined)[] = [];
  readonly requirements: (Requirement | undefined)[] = [];
  ids = new Float64Array(16);
  submits = new Float64Array(16);
  /** When they came to this queue, where it is a local one that something holds jobs back from; else when they were submitted. */
  arrivals = new Float64Array(16);
  /** estimate·benchmark: the planned duration on a machine of power 1. */
  works = new Float64Array(16);
  /** The jobs' own limits; Infinity: none. */
  private readonly limits = new RareColumn(Infinity);
  /** The limit of those that have none of their own: the site's, of a local queue; Infinity: none. */
  siteLimitS = Infinity;
  readonly boosts = new RareColumn(0);
  private readonly askedEstimates = new AskedColumn((job) => job.estimateS);
  private readonly askedDeadlines = new AskedColumn((job) => job.deadline ?? Infinity);
  priorities = new Int32Array(16);
  length = 0;
  /** How many of the jobs ask for something of pools. */
  licensed = 0;
  /** And how many are to keep their machines for their user. */
  keeping = 0;
  /** How many are scavengers', and so behind all others (`inItsPlace`). */
  yielding = 0;
  /** Slots of jobs of ranks above 0, for which others may be stopped. */
  readonly preempting = new Set<number>();
  private readonly orders: SortedSlots[] = [];
  private readonly unused: number[] = [];

  /** `parent`: the scheduler above in the tree; null for the root, which has no site. */
  constructor(
    readonly level: Level,
    readonly siteId: number | null,
    readonly parent: JobQueue | null,
    readonly arrival = new Arrival(),
  ) {}

  /** The queue in an order. The same object for as long as the queue lives. */
  inOrder(order: QueueOrder): SortedSlots {
    for (let i = 0; i < this.orders.length; i++) {
      const known = this.orders[i] as SortedSlots;
      if (known.order === order) return known;
    }
    const made = new SortedSlots(this, order);
    this.orders.push(made);
    return made;
  }

  get estimates(): Float64Array {
    return this.askedEstimates.values(this);
  }

  /** Infinity for none. */
  get deadlines(): Float64Array {
    return this.askedDeadlines.values(this);
  }

  /** The slots of all jobs, in no particular order. */
  *slots(): Generator<number> {
    for (let slot = 0; slot < this.jobs.length; slot++) if (this.jobs[slot] !== undefined) yield slot;
  }

  add(job: Job, requirement: Requirement, priority: number): number {
    const slot = this.unused.length > 0 ? (this.unused.pop() as number) : this.jobs.length;
    if (slot >= this.ids.length) this.growColumns();
    this.jobs[slot] = job;
    this.requirements[slot] = requirement;
    this.ids[slot] = job.id;
    this.submits[slot] = job.submittedAt;
    this.arrivals[slot] = this.level === 'LOCAL' ? (job.dispatchedAt ?? job.submittedAt) : job.submittedAt;
    this.works[slot] = job.estimateS * job.benchmark;
    const size = this.ids.length;
    this.limits.set(slot, job.runTimeLimitS ?? Infinity, size);
    this.boosts.set(slot, job.boost, size);
    this.askedEstimates.set(slot, job, size);
    this.askedDeadlines.set(slot, job, size);
    this.priorities[slot] = priority;
    this.length++;
    if (asksPools(job)) this.licensed++;
    if (requirement.onlyUser !== null) this.keeping++;
    if (this.arrival.classRank(job) > 0) this.preempting.add(slot);
    if (yieldsBy(job.boost)) this.yielding++;
    for (let i = 0; i < this.orders.length; i++) (this.orders[i] as SortedSlots).insert(slot);
    return slot;
  }

  remove(slot: number): void {
    for (let i = 0; i < this.orders.length; i++) (this.orders[i] as SortedSlots).remove(slot);
    this.length--;
    const job = this.jobs[slot] as Job;
    if (asksPools(job)) this.licensed--;
    if (this.requirements[slot]?.onlyUser != null) this.keeping--;
    this.preempting.delete(slot);
    if (yieldsBy(job.boost)) this.yielding--;
    this.jobs[slot] = undefined;
    this.requirements[slot] = undefined;
    this.unused.push(slot);
  }

  /** Seconds after which the job's run is stopped, as `limitAt`; Infinity: never. */
  limit(slot: number): number {
    const own = this.limits.at(slot);
    return own < Infinity ? own : this.siteLimitS;
  }

  /** Below 0 when slot `a` came first; never 0 for two jobs: ids differ. */
  compareArrival(a: number, b: number): number {
    return (
      (this.arrival.byRank && this.arrival.compareRanks(this.jobs[a] as Job, this.jobs[b] as Job)) ||
      (this.arrivals[a] as number) - (this.arrivals[b] as number) ||
      (this.submits[a] as number) - (this.submits[b] as number) ||
      (this.ids[a] as number) - (this.ids[b] as number)
    );
  }

  /** The instant from which a job's waiting counts. */
  since(slot: number): number {
    return this.arrival.byRank ? this.arrival.since(this.jobs[slot] as Job) : (this.submits[slot] as number);
  }

  /** Below 0 when slot `a` has the higher boost. */
  compareBoosts(a: number, b: number): number {
    return this.boosts.at(b) - this.boosts.at(a);
  }

  /** Whether it is a scavenger's. */
  yields(slot: number): boolean {
    return this.yielding > 0 && yieldsBy(this.boosts.at(slot));
  }

  /** Below 0 when slot `b` is a scavenger's and `a` is not. */
  compareYields(a: number, b: number): number {
    return this.yielding === 0 ? 0 : Number(this.yields(a)) - Number(this.yields(b));
  }

  private growColumns(): void {
    const size = this.ids.length * 2;
    for (const name of COLUMNS) this[name] = widened(this[name], size);
    const larger = new Int32Array(size);
    larger.set(this.priorities);
    this.priorities = larger;
  }
}

/** So many slots are few. */
const SHORT = 100;

/** The slots of a queue in one order: a window of an array. */
export class SortedSlots {
  /** Counts every change but jobs coming in behind all others. */
  changes = 0;
  private slots: Int32Array;
  private first = 0;
  private end: number;

  constructor(
    private readonly queue: JobQueue,
    readonly order: QueueOrder,
  ) {
    const slots = Int32Array.from(queue.slots()).sort((a, b) => this.compare(a, b));
    this.slots = new Int32Array(Math.max(16, 2 ** Math.ceil(Math.log2(slots.length + 1))));
    this.slots.set(slots);
    this.end = slots.length;
  }

  get length(): number {
    return this.end - this.first;
  }

  at(position: number): number {
    return this.slots[this.first + position] as number;
  }

  /** All of them; valid until the next change. */
  window(): Int32Array {
    return this.slots.subarray(this.first, this.end);
  }

  /** Below 0 when slot `a` goes first. */
  compare(a: number, b: number): number {
    return this.compareKeys(a, b) || this.queue.compareArrival(a, b);
  }

  insert(slot: number): void {
    if (this.end === this.slots.length) this.makeRoom();
    let position = this.end;
    if (position > this.first && this.compare(this.slots[position - 1] as number, slot) > 0)
      position = this.positionOf(slot);
    if (position < this.end) {
      this.changes++;
      this.move(position, this.end, 1);
    }
    this.slots[position] = slot;
    this.end++;
  }

  /** The slot's columns must still be as they were. */
  remove(slot: number): void {
    this.changes++;
    const position = this.end - this.first <= SHORT ? this.scan(slot) : this.positionOf(slot);
    if (position - this.first < this.end - position) {
      this.move(this.first, position, 1);
      this.first++;
    } else {
      this.move(position + 1, this.end, -1);
      this.end--;
    }
    if (this.first === this.end) this.first = this.end = 0;
  }

  private compareKeys(a: number, b: number): number {
    const { queue, order } = this;
    if (order === 'PRIORITY')
      return queue.compareYields(a, b) || (queue.priorities[b] as number) - (queue.priorities[a] as number);
    const boost = queue.compareBoosts(a, b);
    if (boost !== 0 || order === 'ARRIVAL') return boost;
    const wider =
      order === 'SHORTEST'
        ? 0
        : (queue.requirements[a] as Requirement).tasks - (queue.requirements[b] as Requirement).tasks;
    if (wider !== 0) return order === 'NARROWEST' ? wider : -wider;
    return (queue.works[a] as number) - (queue.works[b] as number);
  }

  /** Where the slot is, one after another: among few that is quicker than to compare. */
  private scan(slot: number): number {
    let position = this.first;
    while (this.slots[position] !== slot) position++;
    return position;
  }

  /** Where the slot is, or would go. */
  private positionOf(slot: number): number {
    let low = this.first;
    let high = this.end;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.compare(this.slots[middle] as number, slot) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Moves a part of the window by one place. A short one by hand: the call would cost as much as a hundred moves. */
  private move(from: number, to: number, by: 1 | -1): void {
    const { slots } = this;
    if (to - from > SHORT) slots.copyWithin(from + by, from, to);
    else if (by === 1) for (let i = to; i > from; i--) slots[i] = slots[i - 1] as number;
    else for (let i = from; i < to; i++) slots[i - 1] = slots[i] as number;
  }

  /** Room at the tail: the gap that starts left at the head, or twice the memory. */
  private makeRoom(): void {
    if (this.first * 2 >= this.slots.length) {
      this.slots.copyWithin(0, this.first, this.end);
    } else {
      const larger = new Int32Array(this.slots.length * 2);
      larger.set(this.window());
      this.slots = larger;
    }
    this.end -= this.first;
    this.first = 0;
  }
}
