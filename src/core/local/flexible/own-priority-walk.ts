/**
 * The queue by the site's own priority, which changes with time and with the queue. All priorities are computed, in one
 * sweep over columns, but only as much is sorted as is walked: a heap gives the first, and again the first of those
 * that `keepOnly` left. 100 000 jobs of which few can start cost little more than the sweep.
 */
import type { JobQueue } from '../../grid/queue.js';
import type { Requirement, Signature } from '../../grid/requirements.js';
import type { LsTerms } from '../../model.js';
import { Heap } from '../../structures/heap.js';
import type { Walk } from '../walk.js';
import {
  agingTerm,
  countNonCritical,
  deadlineTerm,
  type LocalWeights,
  licensesTerm,
  type QueueFacts,
  waitMinimizationTerm,
} from './priorities.js';

/** What an own priority depends on besides the job. */
export interface OwnPriorityContext {
  now: number;
  weights: LocalWeights;
  bestBenchmark: number;
  /** The request ratio ρ of each kind that is asked for in the queue. */
  ratios: ReadonlyMap<string, number>;
}

export class OwnPriorityWalk implements Walk {
  readonly order = 'OWN_PRIORITY';
  readonly sorted = null;
  private readonly heap: Heap;
  private readonly keys: Float64Array;
  private readonly facts: QueueFacts;
  private readonly nonCritical: number;

  constructor(
    private readonly queue: JobQueue,
    private readonly context: OwnPriorityContext,
  ) {
    this.nonCritical = countNonCritical(context.ratios);
    const slots = queue.inOrder('ARRIVAL').window().slice();
    this.facts = {
      now: context.now,
      bestBenchmark: context.bestBenchmark,
      shortestEstimate: shortestEstimate(queue, slots),
    };
    this.keys = this.computeKeys(slots);
    const { keys } = this;
    const isBefore = (a: number, b: number): boolean => {
      const difference = (keys[a] as number) - (keys[b] as number);
      return difference > 0 || (difference === 0 && queue.compareArrival(a, b) < 0);
    };
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
    return this.keys[slot] as number;
  }

  termsOf(slot: number): LsTerms {
    const { queue, facts } = this;
    const { weights } = this.context;
    const estimate = queue.estimates[slot] as number;
    const work = queue.works[slot] as number;
    return {
      aging: agingTerm(queue.since(slot), facts, weights),
      deadline: deadlineTerm(work, queue.deadlines[slot] as number, facts, weights),
      licenses: this.licensesOf((queue.requirements[slot] as Requirement).signature),
      waitMinimization: waitMinimizationTerm(estimate, facts, weights),
    };
  }

  private computeKeys(slots: Int32Array): Float64Array {
    const { queue, facts } = this;
    const { weights } = this.context;
    const { estimates, works, deadlines, boosts, requirements } = queue;
    const keys = new Float64Array(queue.ids.length);
    const bySignature = new Map<Signature, number>();
    let last: Signature | null = null;
    let licenses = 0;
    for (let i = 0; i < slots.length; i++) {
      const slot = slots[i] as number;
      const { signature } = requirements[slot] as Requirement;
      if (signature !== last) {
        last = signature;
        const known = bySignature.get(signature);
        licenses = known ?? this.licensesOf(signature);
        if (known === undefined) bySignature.set(signature, licenses);
      }
      keys[slot] =
        agingTerm(queue.since(slot), facts, weights) +
        deadlineTerm(works[slot] as number, deadlines[slot] as number, facts, weights) +
        licenses +
        waitMinimizationTerm(estimates[slot] as number, facts, weights) +
        boosts.at(slot);
    }
    return keys;
  }

  private licensesOf(signature: Signature): number {
    const kinds = signature.pools.map(({ kind }) => kind);
    return licensesTerm(kinds, this.context.ratios, this.nonCritical, this.context.weights);
  }
}

function shortestEstimate({ estimates }: JobQueue, slots: Int32Array): number {
  let shortest = Infinity;
  for (let i = 0; i < slots.length; i++)
    shortest = Math.min(shortest, estimates[slots[i] as number] as number);
  return shortest;
}
