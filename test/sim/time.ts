/** Virtual time, and processes in it that can be paused and killed, with clocks of their own. */
import type { RandomStream } from '../../src/core/index.js';
import type { Env, Files } from '../../src/platform/env.js';

interface Due {
  at: number;
  order: number;
  run: (() => void) | null;
}

/** What is to happen, in order. Two that are due at one instant happen in the order in which they were asked for. */
export class Time {
  /** Ms since 1970. */
  now: number;
  private readonly heap: Due[] = [];
  private order = 0;

  constructor(startMs: number) {
    this.now = startMs;
  }

  /** Answers with what prevents it. */
  after(ms: number, run: () => void): () => void {
    const due: Due = { at: this.now + Math.max(0, ms), order: this.order++, run };
    this.push(due);
    return () => {
      due.run = null;
    };
  }

  /** Lets the next thing happen, and all that follows from it without waiting. false: there is none until `limit`. */
  async step(limit: number): Promise<boolean> {
    let due = this.pop(limit);
    while (due !== null && due.run === null) due = this.pop(limit);
    if (due === null) return false;
    this.now = due.at;
    due.run?.();
    // All promises that are settled have been heard by then: nothing here waits for the real world.
    await new Promise(setImmediate);
    return true;
  }

  private push(due: Due): void {
    const { heap } = this;
    let i = heap.length;
    heap.push(due);
    for (let up = (i - 1) >> 1; i > 0 && before(due, heap[up] as Due); up = (i - 1) >> 1) {
      heap[i] = heap[up] as Due;
      i = up;
    }
    heap[i] = due;
  }

  private pop(limit: number): Due | null {
    const { heap } = this;
    const [top] = heap;
    if (top === undefined || top.at > limit) return null;
    const last = heap.pop() as Due;
    let i = 0;
    for (let down = 1; down < heap.length; down = 2 * i + 1) {
      if (down + 1 < heap.length && before(heap[down + 1] as Due, heap[down] as Due)) down++;
      if (!before(heap[down] as Due, last)) break;
      heap[i] = heap[down] as Due;
      i = down;
    }
    if (heap.length > 0) heap[i] = last;
    return top;
  }
}

const before = (a: Due, b: Due): boolean => a.at < b.at || (a.at === b.at && a.order < b.order);

/** The surroundings of one process. While it is paused nothing of it runs, and its timers are late; when it is killed they are gone. */
export class Process implements Env {
  dead = false;
  readonly files!: Files;
  private pausedUntil = 0;
  /** Timers that were due meanwhile. */
  private readonly held: (() => void)[] = [];
  /** How far its clock is wrong, ms. */
  skewMs = 0;
  /** It is killed in the one of its calls to the disk that is the last of so many. */
  callsLeft = Infinity;
  /** Told when that has happened. */
  onDeath: () => void = () => {};

  constructor(
    private readonly time: Time,
    private readonly stream: RandomStream,
    /** Of its machine; null: it uses none. */
    disk: { of(process: Process): Files } | null = null,
  ) {
    if (disk !== null) this.files = disk.of(this);
  }

  nowMs = (): number => this.time.now + this.skewMs;
  upMs = (): number => this.time.now;
  random = (): number => this.stream.next();

  after = (ms: number, run: () => void): (() => void) => {
    const timer: { run: (() => void) | null } = { run };
    const ring = (): void => {
      if (this.dead) return;
      if (this.paused) this.held.push(ring);
      else this.run(timer.run);
    };
    const cancel = this.time.after(ms, ring);
    return () => {
      timer.run = null;
      cancel();
    };
  };

  soon = (run: () => void): void => void this.after(0, run);

  private run(run: (() => void) | null): void {
    try {
      run?.();
    } catch (error) {
      // It was killed in the middle.
      if (!this.dead) throw error;
    }
  }

  pause(ms: number): void {
    this.pausedUntil = Math.max(this.pausedUntil, this.time.now + ms);
    this.time.after(ms, () => {
      if (!this.paused) this.wakeUp();
    });
  }

  wakeUp(): void {
    this.pausedUntil = 0;
    for (const ring of this.held.splice(0)) this.time.after(0, ring);
  }

  get paused(): boolean {
    return this.pausedUntil > this.time.now;
  }
}
