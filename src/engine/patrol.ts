/**
 * Looks by itself at what the queue should have brought, should it not: a wake-up was lost, is held by a worker that hangs or is cut
 * off, or the queue takes nothing. Every worker does so every few seconds with what has changed since it last looked; at once, and every
 * second, while the queue is in trouble. Workers that meet refuse each other's plans, so this costs no more than the cycles themselves.
 */
import { ROOT, type Scheduler, waiting } from '../core/index.js';
import { type Env, pause } from '../platform/env.js';
import type { GridMirror, Reachable } from './ports.js';
import type { CycleTask } from './queue.js';

export interface PatrolPace {
  everyMs: number;
  /** While the queue is in trouble. */
  hurriedMs: number;
  /** An error of the queue counts for so long. */
  troubleMs: number;
}

export class Patrol {
  /** What each scheduler had before it when it was last looked at here. */
  private readonly looked = new Map<Scheduler, string>();
  private troubledUntilMs = 0;
  private hurry = new AbortController();
  private walking: Promise<void> | null = null;
  private readonly stopping = new AbortController();

  constructor(
    private readonly mirror: GridMirror,
    /** Answers whether the cycle came to its end. */
    private readonly perform: (task: CycleTask) => Promise<boolean>,
    private readonly reach: Reachable,
    private readonly env: Env,
    private readonly pace: PatrolPace,
  ) {}

  start(): void {
    this.walking = this.walk();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    this.hurry.abort();
    await this.walking;
  }

  /** The queue is in trouble. */
  trouble(forMs = this.pace.troubleMs): void {
    const calm = !this.isTroubled;
    this.troubledUntilMs = Math.max(this.troubledUntilMs, this.env.upMs() + forMs);
    if (calm) this.hurry.abort();
  }

  /** A cycle of the scheduler begins. */
  looks(scheduler: Scheduler): void {
    this.looked.set(scheduler, this.mirror.cursor);
  }

  private get isTroubled(): boolean {
    return this.env.upMs() < this.troubledUntilMs;
  }

  private async walk(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      await this.reach.when('reached', signal);
      if (!signal.aborted) await this.round();
      this.hurry = new AbortController();
      const { hurriedMs, everyMs } = this.pace;
      if (!signal.aborted) await pause(this.env, this.isTroubled ? hurriedMs : everyMs, this.hurry.signal);
    }
  }

  /** Ends with the first cycle that fails: what hinders it hinders the others. */
  private async round(): Promise<void> {
    const { mirror, stopping } = this;
    // It takes in what has changed.
    if (!(await this.perform({ kind: 'sweep' }))) return;
    if (this.isDue(ROOT) && !(await this.perform({ kind: 'dispatch' }))) return;
    for (const scheduler of waiting(mirror.grid)) {
      if (scheduler === ROOT || !this.isDue(scheduler) || stopping.signal.aborted) continue;
      if (!(await this.perform({ kind: 'site', siteId: scheduler }))) return;
    }
  }

  private isDue(scheduler: Scheduler): boolean {
    return this.isTroubled || this.looked.get(scheduler) !== this.mirror.cursor;
  }
}
