/**
 * Ways through a queue, best job first. A walk is made for one cycle.
 */
import type { LsTerms } from '../model.js';
import type { LocalWeights } from '../policy.js';
import {
  agingTerm,
  countNonCritical,
  deadlineTerm,
  licensesTerm,
  type QueueFacts,
  requestRatio,
  waitMinimizationTerm,
} from '../priority/ls-priorities.js';
import type { Requirement, Signature } from '../resources/requirements.js';
import type { JobQueue, QueueOrder } from './queue.js';

export interface Walk {
  readonly order: 'PRIORITY' | 'OWN_PRIORITY' | 'ARRIVAL';
  /** The slot of the next job, -1 after the last. */
  next(): number;
  /** Leaves out the first jobs, before any was taken; false: in this order they may be others than they were. */
  skip(jobs: number): boolean;
  /** Says that only jobs that pass the test matter from here on: a walk may leave the others out. */
  keepOnly(test: (slot: number) => boolean): void;
  /** The value that ordered the job, for explanations. */
  valueOf(slot: number): number;
  termsOf(slot: number): LsTerms | null;
}

/** The queue in an order that it keeps itself: nothing to compute. */
export class SortedWalk implements Walk {
  private position = 0;

  constructor(
    private readonly queue: JobQueue,
    readonly order: QueueOrder,
  ) {
    queue.orderBy(order);
  }

  next(): number {
    return this.position < this.queue.length ? this.queue.at(this.position++) : -1;
  }

  skip(jobs: number): boolean {
    this.position = jobs;
    return true;
  }

  /** Whoever walks tests each job anyway, and skipping here would cost as much. */
  keepOnly(): void {}

  valueOf(slot: number): number {
    return (this.order === 'ARRIVAL' ? this.queue.submits[slot] : this.queue.priorities[slot]) as number;
  }

  termsOf(): null {
    return null;
  }
}

/** What an own priority depends on besides the job. */
export interface OwnPriorityContext {
  now: number;
  weights: LocalWeights;
  bestBenchmark: number;
  /** Jobs in the queue that ask for each kind. */
  requests: ReadonlyMap<string, number>;
  /** Copies of a kind that may be active at this site at once. */
  copiesOf(kind: string): number;
}

/**
 * The queue by the site's own priority, which changes with time and with the queue. All priorities are computed, in one
 * sweep over columns, but only as much is sorted as is walked: a heap gives the first, and again the first of those
 * that `keepOnly` left. 100 000 jobs of which few can start cost little more than the sweep.
 */
export class OwnPriorityWalk implements Walk {
  readonly order = 'OWN_PRIORITY';
  private readonly heap: Int32Array;
  private readonly keys: Float64Array;
  private readonly facts: QueueFacts;
  private readonly ratios = new Map<string, number>();
  private readonly nonCritical: number;
  private size: number;

  constructor(
    private readonly queue: JobQueue,
    private readonly context: OwnPriorityContext,
  ) {
    for (const [kind, requests] of context.requests)
      this.ratios.set(kind, requestRatio(requests, context.copiesOf(kind)));
    this.nonCritical = countNonCritical(this.ratios);
    this.heap = queue.window().slice();
    this.size = this.heap.length;
    this.facts = {
      now: context.now,
      bestBenchmark: context.bestBenchmark,
      shortestEstimate: this.shortestEstimate(),
    };
    this.keys = this.computeKeys();
    this.heapify();
  }

  next(): number {
    if (this.size === 0) return -1;
    const slot = this.heap[0] as number;
    this.heap[0] = this.heap[--this.size] as number;
    this.sink(0);
    return slot;
  }

  skip(): boolean {
    return false;
  }

  keepOnly(test: (slot: number) => boolean): void {
    let kept = 0;
    for (let i = 0; i < this.size; i++) {
      const slot = this.heap[i] as number;
      if (test(slot)) this.heap[kept++] = slot;
    }
    this.size = kept;
    this.heapify();
  }

  valueOf(slot: number): number {
    return this.keys[slot] as number;
  }

  termsOf(slot: number): LsTerms {
    const { queue, facts } = this;
    const { weights } = this.context;
    const estimate = queue.estimates[slot] as number;
    const work = queue.works[slot] as number;
    return {
      aging: agingTerm(queue.submits[slot] as number, facts, weights),
      deadline: deadlineTerm(work, queue.deadlines[slot] as number, facts, weights),
      licenses: this.licensesOf((queue.requirements[slot] as Requirement).signature),
      waitMinimization: waitMinimizationTerm(estimate, facts, weights),
    };
  }

  private shortestEstimate(): number {
    const { estimates } = this.queue;
    let shortest = Infinity;
    for (let i = 0; i < this.heap.length; i++) {
      const estimate = estimates[this.heap[i] as number] as number;
      if (estimate < shortest) shortest = estimate;
    }
    return shortest;
  }

  private computeKeys(): Float64Array {
    const { queue, facts } = this;
    const { weights } = this.context;
    const { submits, estimates, works, deadlines, boosts, requirements } = queue;
    const keys = new Float64Array(submits.length);
    const bySignature = new Map<Signature, number>();
    let last: Signature | null = null;
    let licenses = 0;
    for (let i = 0; i < this.heap.length; i++) {
      const slot = this.heap[i] as number;
      const { signature } = requirements[slot] as Requirement;
      if (signature !== last) {
        last = signature;
        const known = bySignature.get(signature);
        licenses = known ?? this.licensesOf(signature);
        if (known === undefined) bySignature.set(signature, licenses);
      }
      keys[slot] =
        agingTerm(submits[slot] as number, facts, weights) +
        deadlineTerm(works[slot] as number, deadlines[slot] as number, facts, weights) +
        licenses +
        waitMinimizationTerm(estimates[slot] as number, facts, weights) +
        (boosts[slot] as number);
    }
    return keys;
  }

  private licensesOf(signature: Signature): number {
    return licensesTerm(signature.licenses, this.ratios, this.nonCritical, this.context.weights);
  }

  private heapify(): void {
    for (let i = (this.size >> 1) - 1; i >= 0; i--) this.sink(i);
  }

  private sink(position: number): void {
    const { heap, size } = this;
    const slot = heap[position] as number;
    let hole = position;
    for (;;) {
      let child = 2 * hole + 1;
      if (child >= size) break;
      if (child + 1 < size && this.isBefore(heap[child + 1] as number, heap[child] as number)) child++;
      if (!this.isBefore(heap[child] as number, slot)) break;
      heap[hole] = heap[child] as number;
      hole = child;
    }
    heap[hole] = slot;
  }

  private isBefore(a: number, b: number): boolean {
    const difference = (this.keys[a] as number) - (this.keys[b] as number);
    return difference > 0 || (difference === 0 && this.queue.compareArrival(a, b) < 0);
  }
}
