/**
 * The queued jobs of one scheduler, in columns, kept in order. A job has a *slot* for as long as it is here; `order` is
 * a window of slots in the order that was asked for last. Getting in costs a binary search and a move of memory, and at
 * either end next to nothing: queues mostly grow at the tail and shrink at the head.
 */
import type { Job } from '../model.js';
import type { Requirement } from '../resources/requirements.js';

/** ARRIVAL: (submit, id). PRIORITY: level-1 priority with boost, highest first, then arrival. */
export type QueueOrder = 'ARRIVAL' | 'PRIORITY';

/** Least work (a task's, on power 1) first, then arrival; with NARROWEST fewest tasks before that, with WIDEST most. */
export type SizeOrder = 'SHORTEST' | 'NARROWEST' | 'WIDEST';

export class JobQueue {
  readonly jobs: (Job | undefined)[] = [];
  readonly requirements: (Requirement | undefined)[] = [];
  ids = new Float64Array(16);
  submits = new Float64Array(16);
  /** estimate·benchmark: the planned duration on a machine of power 1. */
  works = new Float64Array(16);
  estimates = new Float64Array(16);
  /** Infinity for none. */
  deadlines = new Float64Array(16);
  boosts = new Float64Array(16);
  priorities = new Int32Array(16);
  /** Counts every change but jobs coming in behind all others. */
  changes = 0;
  private slots = new Int32Array(16);
  private first = 0;
  private end = 0;
  private readonly unused: number[] = [];
  private by: QueueOrder | SizeOrder = 'ARRIVAL';

  get length(): number {
    return this.end - this.first;
  }

  /** The slot at a position of the current order. */
  at(position: number): number {
    return this.slots[this.first + position] as number;
  }

  /** The slots in the current order; valid until the next change. */
  window(): Int32Array {
    return this.slots.subarray(this.first, this.end);
  }

  /** Sorts the queue, if it is not in this order already; it is kept in it from then on. */
  orderBy(order: QueueOrder | SizeOrder): void {
    if (this.by === order) return;
    this.by = order;
    this.changes++;
    this.window().sort((a, b) => this.compare(a, b));
  }

  add(job: Job, requirement: Requirement, priority: number): number {
    const slot = this.unused.pop() ?? this.jobs.length;
    if (slot >= this.ids.length) this.growColumns();
    this.jobs[slot] = job;
    this.requirements[slot] = requirement;
    this.ids[slot] = job.id;
    this.submits[slot] = job.submittedAt;
    this.works[slot] = job.estimateS * job.benchmark;
    this.estimates[slot] = job.estimateS;
    this.deadlines[slot] = job.deadline ?? Infinity;
    this.boosts[slot] = job.boost;
    this.priorities[slot] = priority;
    this.insert(slot);
    return slot;
  }

  remove(slot: number): void {
    this.changes++;
    const position = this.positionOf(slot);
    if (position - this.first < this.end - position) {
      this.move(this.first, position, 1);
      this.first++;
    } else {
      this.move(position + 1, this.end, -1);
      this.end--;
    }
    if (this.first === this.end) this.first = this.end = 0;
    this.jobs[slot] = undefined;
    this.requirements[slot] = undefined;
    this.unused.push(slot);
  }

  /** Below 0 when slot `a` goes first. Never 0 for two jobs: ids differ. */
  compare(a: number, b: number): number {
    return (this.by === 'ARRIVAL' ? 0 : this.compareKeys(a, b)) || this.compareArrival(a, b);
  }

  compareArrival(a: number, b: number): number {
    return (
      (this.submits[a] as number) - (this.submits[b] as number) ||
      (this.ids[a] as number) - (this.ids[b] as number)
    );
  }

  private compareKeys(a: number, b: number): number {
    if (this.by === 'PRIORITY') return (this.priorities[b] as number) - (this.priorities[a] as number);
    const wider =
      this.by === 'SHORTEST'
        ? 0
        : (this.requirements[a] as Requirement).tasks - (this.requirements[b] as Requirement).tasks;
    if (wider !== 0) return this.by === 'NARROWEST' ? wider : -wider;
    return (this.works[a] as number) - (this.works[b] as number);
  }

  private insert(slot: number): void {
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
    if (to - from > 100) slots.copyWithin(from + by, from, to);
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

  private growColumns(): void {
    const size = this.ids.length * 2;
    for (const name of ['ids', 'submits', 'works', 'estimates', 'deadlines', 'boosts'] as const) {
      const larger = new Float64Array(size);
      larger.set(this[name]);
      this[name] = larger;
    }
    const larger = new Int32Array(size);
    larger.set(this.priorities);
    this.priorities = larger;
  }
}
