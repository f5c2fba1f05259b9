/** Ways through a queue, best job first. A walk is made for one cycle. */
import type { JobQueue, SortedSlots } from '../grid/queue.js';
import type { LsTerms, StartExplanation } from '../model.js';
import { Heap } from '../structures/heap.js';

export interface Walk {
  readonly order: StartExplanation['order'];
  /** The slot of the next job, -1 after the last. */
  next(): number;
  /** The sorted queue that is walked, if it is one. */
  readonly sorted: SortedSlots | null;
  /** Leaves out the first jobs of a sorted queue, before any was taken. */
  skip(jobs: number): void;
  /** Says that only jobs that pass the test matter from here on: a walk may leave the others out. */
  keepOnly(test: (slot: number) => boolean): void;
  /** The value that ordered the job, for explanations. */
  valueOf(slot: number): number;
  termsOf(slot: number): LsTerms | null;
}

/** The queue in an order that it keeps itself: nothing to compute. */
export class SortedWalk implements Walk {
  readonly order: 'PRIORITY' | 'ARRIVAL' | 'RANK';
  readonly sorted: SortedSlots;
  private position = 0;

  constructor(
    private readonly queue: JobQueue,
    order: 'PRIORITY' | 'ARRIVAL',
  ) {
    this.order = order === 'ARRIVAL' && queue.arrival.byRank ? 'RANK' : order;
    this.sorted = queue.inOrder(order);
  }

  next(): number {
    return this.position < this.sorted.length ? this.sorted.at(this.position++) : -1;
  }

  skip(jobs: number): void {
    this.position = jobs;
  }

  /** Whoever walks tests each job anyway, and skipping here would cost as much. */
  keepOnly(): void {}

  valueOf(slot: number): number {
    if (this.order === 'RANK') return this.queue.jobs[slot]?.workflow?.rankS ?? 0;
    return (this.order === 'ARRIVAL' ? this.queue.submits[slot] : this.queue.priorities[slot]) as number;
  }

  termsOf(): null {
    return null;
  }
}

/** Another walk without some jobs. */
export class WalkWithout implements Walk {
  readonly order: Walk['order'];
  readonly sorted: SortedSlots | null;

  constructor(
    private readonly walk: Walk,
    private readonly out: ReadonlySet<number>,
  ) {
    this.order = walk.order;
    this.sorted = walk.sorted;
  }

  next(): number {
    let slot = this.walk.next();
    while (this.out.has(slot)) slot = this.walk.next();
    return slot;
  }

  skip(jobs: number): void {
    this.walk.skip(jobs);
  }

  keepOnly(test: (slot: number) => boolean): void {
    this.walk.keepOnly(test);
  }

  valueOf(slot: number): number {
    return this.walk.valueOf(slot);
  }

  termsOf(slot: number): LsTerms | null {
    return this.walk.termsOf(slot);
  }
}

/** By the operator's boost, then a key, least first, ties by arrival: a heap, so that only as much is sorted as is walked. */
export class KeyedWalk implements Walk {
  /** The keys are the walk's own; explanations say ARRIVAL's value, the time of submission. */
  readonly order = 'ARRIVAL';
  readonly sorted = null;
  private readonly heap: Heap;

  constructor(
    private readonly queue: JobQueue,
    slots: Int32Array<ArrayBuffer>,
    keys: Float64Array,
  ) {
    const isBefore = (a: number, b: number): boolean =>
      (queue.compareBoosts(a, b) || (keys[a] as number) - (keys[b] as number) || queue.compareArrival(a, b)) <
      0;
    this.heap = new Heap(isBefore, slots, slots.length);
  }

  next(): number {
    return this.heap.pop();
  }

  skip(): void {}

  keepOnly(test: (slot: number) => boolean): void {
    this.heap.keep(test);
  }

  valueOf(slot: number): number {
    return this.queue.submits[slot] as number;
  }

  termsOf(): null {
    return null;
  }
}
