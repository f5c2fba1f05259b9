/**
 * A queue of wake-ups with the rules of the real one (at most one cycle of a scheduler runs, and one waits), which loses, doubles and
 * delays them, forgets them all, and cannot be reached.
 */
import { type RandomStream, ROOT, type Scheduler } from '../../src/core/index.js';
import { type CycleTask, LEASE_MS, type OwnQueue } from '../../src/engine/queue.js';
import type { Process, Time } from './time.js';

export interface QueueFaults {
  /** How likely each is. */
  lost: number;
  doubled: number;
  delayed: number;
}

interface Slot {
  task: CycleTask;
  waiting: boolean;
  /** Whose cycle runs; null: none does. */
  active: object | null;
  again: boolean;
}

interface Worker {
  process: Process;
  perform: (task: CycleTask, waitedMs: number) => Promise<void>;
}

const LATE_MS = 8_000;
const SWEEP = 'sweep';

export class SimulatedQueue {
  down = false;
  private readonly slots = new Map<Scheduler | typeof SWEEP, Slot>();
  private workers: Worker[] = [];
  private sweepEveryMs: number | null = null;
  private generation = 0;

  constructor(
    private readonly time: Time,
    private readonly random: RandomStream,
    public faults: QueueFaults,
  ) {}

  /** As a process sees it. */
  of(process: Process): OwnQueue {
    const reached = <T>(work: () => T): Promise<T> =>
      new Promise((resolve, reject) => {
        process.after(this.random.integer(1, 4), () => {
          if (this.down) reject(new Error('the queue is away'));
          else resolve(work());
        });
      });
    return {
      kind: 'own',
      openSender: () => ({
        send: (schedulers) =>
          reached(() => {
            for (const scheduler of schedulers) this.ask(scheduler);
          }),
        repeatSweep: (everyMs) => reached(() => this.repeatSweep(everyMs)),
        depth: () => reached(() => ({ waiting: this.slots.size, active: 0, delayed: 0 })),
        close: async () => {},
      }),
      openReceiver: (perform) => {
        const worker = { process, perform };
        return {
          run: () => {
            this.workers.push(worker);
            return new Promise(() => {});
          },
          close: async () => {
            this.workers = this.workers.filter((other) => other !== worker);
          },
        };
      },
    };
  }

  /** Everything in it is gone, and what it should repeat. */
  empty(): void {
    this.slots.clear();
    this.sweepEveryMs = null;
    this.generation++;
  }

  private ask(scheduler: Scheduler): void {
    const { lost, doubled } = this.faults;
    if (this.random.next() < lost) return;
    const task: CycleTask = scheduler === ROOT ? { kind: 'dispatch' } : { kind: 'site', siteId: scheduler };
    this.put(scheduler, task);
    if (this.random.next() < doubled)
      this.time.after(this.delayMs(), () => this.hand({ ...this.slot(scheduler, task), active: null }));
  }

  private repeatSweep(everyMs: number): void {
    if (this.sweepEveryMs !== null) return;
    this.sweepEveryMs = everyMs;
    const { generation } = this;
    const tick = (): void => {
      if (generation !== this.generation) return;
      this.put(SWEEP, { kind: 'sweep' });
      this.time.after(everyMs, tick);
    };
    tick();
  }

  private slot(id: Scheduler | typeof SWEEP, task: CycleTask): Slot {
    const slot = this.slots.get(id) ?? { task, waiting: false, active: null, again: false };
    this.slots.set(id, slot);
    return slot;
  }

  private put(id: Scheduler | typeof SWEEP, task: CycleTask): void {
    const slot = this.slot(id, task);
    if (slot.active !== null) slot.again = true;
    else if (!slot.waiting) {
      slot.waiting = true;
      this.deliver(id, slot);
    }
  }

  private deliver(id: Scheduler | typeof SWEEP, slot: Slot): void {
    this.time.after(this.delayMs(), () => {
      if (this.slots.get(id) !== slot) return;
      if (this.down || !this.hand(slot)) this.time.after(500, () => this.deliver(id, slot));
    });
  }

  /** To a worker that lives; whose lease runs out while it has not answered loses the task to another. false: there is none. */
  private hand(slot: Slot): boolean {
    this.workers = this.workers.filter(({ process }) => !process.dead);
    if (this.workers.length === 0) return false;
    const { process, perform } = this.workers[this.random.integer(0, this.workers.length - 1)] as Worker;
    const lease = {};
    slot.waiting = false;
    slot.active = lease;
    const over = (again: boolean): void => {
      if (slot.active !== lease) return;
      slot.active = null;
      if (!again && !slot.again) return;
      slot.again = false;
      slot.waiting = true;
      const id = slot.task.kind === 'site' ? slot.task.siteId : slot.task.kind === 'sweep' ? SWEEP : ROOT;
      if (this.slots.get(id) === slot) this.deliver(id, slot);
    };
    process.soon(() => void perform(slot.task, 0).then(() => over(false)));
    // A worker that runs renews its lease; one that is dead or stands still does not.
    const renew = (): void => {
      if (slot.active !== lease) return;
      if (process.dead || process.paused) over(true);
      else this.time.after(LEASE_MS, renew);
    };
    this.time.after(LEASE_MS, renew);
    return true;
  }

  private delayMs(): number {
    return this.random.next() < this.faults.delayed
      ? this.random.integer(100, LATE_MS)
      : this.random.integer(1, 5);
  }
}
