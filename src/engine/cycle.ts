/**
 * What every cycle is made of: a name, timed phases, and a bounded number of rounds.
 *
 * A round takes in what has changed, asks the core for a plan, and has the store apply it; the store re-checks each item
 * against the truth and refuses what no longer fits. So nothing depends on cycles being alone: BullMQ's deduplication keeps
 * two workers from running one scheduler at once, and where it fails to (a worker whose thread stood still for so long
 * that its lock was given away) the second plan is refused item by item. A lock in Postgres on top would cost a round trip
 * and a connection per cycle to prevent what does no harm; there is none.
 *
 * Cycles run on the main thread. Their synchronous part is the core's plan: at most `maxMoves` moves or `maxStarts` starts,
 * some tens of milliseconds, against a lock of BullMQ's of 3 s that is renewed every 1.5 s. Everything else waits for
 * Postgres and lets other work in between.
 */
import { performance } from 'node:perf_hooks';
import type { Scheduler } from '../core/index.js';
import type { PlanContext, Store } from '../store/store.js';
import {
  type CycleKind,
  type EngineLog,
  type EngineMetrics,
  type GridMirror,
  SCHEDULER_LABEL,
  type Wake,
} from './ports.js';

export interface CycleLimits {
  /** Moves in one plan at most. */
  maxMoves: number;
  /** Starts in one plan at most. */
  maxStarts: number;
  /** Jobs taken back from a site at a time. */
  maxTakenBack: number;
  /** Rounds in one cycle at most; then it lets others at the worker and wakes itself. */
  maxRounds: number;
  /** Pause before a cycle comes back to items that the truth refused to the last, ms. */
  refusedPauseMs: number;
}

export const DEFAULT_CYCLE_LIMITS: CycleLimits = {
  maxMoves: 5_000,
  maxStarts: 2_000,
  maxTakenBack: 5_000,
  maxRounds: 4,
  refusedPauseMs: 500,
};

export interface CycleTools {
  store: Store;
  mirror: GridMirror;
  wake: Wake;
  wakeLater(schedulers: readonly Scheduler[], delayMs: number): void;
  /** Wakes the site at an instant (epoch seconds), and not when it was to be woken until now. Infinity: not at all. */
  wakeAt(siteId: number, at: number): void;
  log: EngineLog;
  metrics: EngineMetrics;
  limits: CycleLimits;
  /** Epoch seconds. */
  now(): number;
  /** A name for a cycle that no other process gives, short: it is stored with every decision. */
  nameCycle(kind: CycleKind): string;
}

/** One cycle under way: measures its phases and sums up what it did. */
export class Cycle {
  readonly id: string;
  private readonly begun = performance.now();
  private readonly phases: Record<string, number> = {};
  private readonly sums: Record<string, number> = {};

  constructor(
    private readonly kind: CycleKind,
    private readonly tools: Pick<CycleTools, 'log' | 'metrics' | 'nameCycle'>,
    private readonly fields: object = {},
  ) {
    this.id = tools.nameCycle(kind);
  }

  /** Measures a phase that waits for the store. */
  async phase<T>(name: string, work: () => Promise<T>): Promise<T> {
    const start = performance.now();
    try {
      return await work();
    } finally {
      this.measure(name, start);
    }
  }

  /** Measures the planning, which does not wait: what it looks at cannot change underneath. */
  plan<T>(work: () => T): T {
    const start = performance.now();
    try {
      return work();
    } finally {
      this.measure('plan', start);
    }
  }

  private measure(name: string, start: number): void {
    const seconds = (performance.now() - start) / 1000;
    this.phases[name] = (this.phases[name] ?? 0) + seconds;
    this.tools.metrics.cycleSeconds.observe({ scheduler: SCHEDULER_LABEL[this.kind], phase: name }, seconds);
  }

  /** Adds to a number of the cycle's log line. */
  add(name: string, count: number): void {
    if (count !== 0) this.sums[name] = (this.sums[name] ?? 0) + count;
  }

  /** The context under which the store applies this cycle's plan. */
  context(policyVersion: number, now: number): PlanContext {
    return { policyVersion, cycle: this.id, now };
  }

  /** Records that the cycle came to its end. */
  done(): void {
    const seconds = this.record(Object.keys(this.sums).length > 0 ? 'changed' : 'idle');
    const phaseMs = Object.fromEntries(
      Object.entries(this.phases).map(([name, s]) => [name, milliseconds(s)]),
    );
    const line = { cycle: this.id, ...this.fields, ...this.sums, ms: milliseconds(seconds), phaseMs };
    this.tools.log.debug(line, `${this.kind} cycle`);
  }

  /** Records that it did not. */
  failed(error: unknown): void {
    this.record('failed');
    this.tools.log.error(
      { cycle: this.id, ...this.fields, ...this.sums, err: error },
      `${this.kind} cycle failed`,
    );
  }

  private record(outcome: 'changed' | 'idle' | 'failed'): number {
    const seconds = (performance.now() - this.begun) / 1000;
    const scheduler = SCHEDULER_LABEL[this.kind];
    this.tools.metrics.cycleSeconds.observe({ scheduler, phase: 'total' }, seconds);
    this.tools.metrics.cycles.inc({ scheduler, outcome });
    return seconds;
  }
}

const milliseconds = (seconds: number): number => Math.round(seconds * 1e4) / 10;

/** Counts the items of a plan that were carried out, by reason, and those that were refused. */
export function recordOutcome(
  kind: 'move' | 'start',
  metrics: EngineMetrics,
  items: readonly { jobId: number; reason: string }[],
  outcome: { accepted: readonly number[]; refused: readonly unknown[] },
): void {
  const accepted = new Set(outcome.accepted);
  const byReason = new Map<string, number>();
  for (const { jobId, reason } of items) {
    if (accepted.has(jobId)) byReason.set(reason, (byReason.get(reason) ?? 0) + 1);
  }
  for (const [reason, count] of byReason) metrics.decisions.inc({ kind, reason }, count);
  if (outcome.refused.length > 0) metrics.refusals.inc({ kind }, outcome.refused.length);
}
