/** A way through a queue by a key, least first, ties by arrival: a heap, so that only as much is sorted as is walked. */
import type { JobQueue } from './queue.js';
import type { Walk } from './walk.js';

export class KeyedWalk implements Walk {
  /** The keys are the walk's own; explanations say ARRIVAL's value, the time of submission. */
  readonly order = 'ARRIVAL';
  private readonly heap: number[] = [];
  private readonly keys: number[] = [];

  /** `rest`: the jobs to walk are those that another walk has left; all of the queue without it. */
  constructor(
    private readonly queue: JobQueue,
    key: (slot: number) => number,
    rest: Walk | null = null,
  ) {
    if (rest === null) this.heap = [...queue.window()];
    else for (let slot = rest.next(); slot !== -1; slot = rest.next()) this.heap.push(slot);
    for (const slot of this.heap) this.keys[slot] = key(slot);
    this.heapify();
  }

  next(): number {
    const { heap } = this;
    const first = heap[0];
    if (first === undefined) return -1;
    const last = heap.pop() as number;
    if (heap.length > 0) {
      heap[0] = last;
      this.sink(0);
    }
    return first;
  }

  skip(): boolean {
    return false;
  }

  keepOnly(test: (slot: number) => boolean): void {
    const kept = this.heap.filter(test);
    this.heap.length = 0;
    for (const slot of kept) this.heap.push(slot);
    this.heapify();
  }

  valueOf(slot: number): number {
    return this.queue.submits[slot] as number;
  }

  termsOf(): null {
    return null;
  }

  private heapify(): void {
    for (let i = (this.heap.length >> 1) - 1; i >= 0; i--) this.sink(i);
  }

  private sink(position: number): void {
    const { heap } = this;
    const slot = heap[position] as number;
    let hole = position;
    for (;;) {
      let child = 2 * hole + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && this.isBefore(heap[child + 1] as number, heap[child] as number)) child++;
      if (!this.isBefore(heap[child] as number, slot)) break;
      heap[hole] = heap[child] as number;
      hole = child;
    }
    heap[hole] = slot;
  }

  private isBefore(a: number, b: number): boolean {
    const difference = (this.keys[a] as number) - (this.keys[b] as number);
    return difference < 0 || (difference === 0 && this.queue.compareArrival(a, b) < 0);
  }
}
