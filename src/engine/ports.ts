/** What the engine needs of the other rooms, as small as it is: the composition root hands in the real things. */
import { type Grid, ROOT, type Scheduler } from '../core/index.js';
import type { Metrics } from '../platform/metrics.js';
import type { Cursor, Policy } from '../store/store.js';

/**
 * Notes that these schedulers have something to look at. Resolves as soon as that is noted in this process; it never
 * fails, because what the caller has committed is safe and the slow timer finds it even if every wake-up is lost.
 */
export type Wake = (schedulers: readonly Scheduler[]) => Promise<void>;

/** The scheduler's picture of Postgres (store/mirror.ts). */
export interface GridMirror {
  /** Takes in what was committed before the call. */
  sync(): Promise<void>;
  /** Takes in when the runs of a site have last written their checkpoints. */
  syncCheckpoints(siteId: number): Promise<void>;
  /** Loads everything again. */
  reload(): Promise<void>;
  /** Jobs that the grid cannot hold, and why: those not yet taken from here. */
  takeLeftOut(): ReadonlyMap<number, unknown>;
  readonly grid: Grid;
  readonly policy: Policy;
  /** What was committed up to here is taken in. */
  readonly cursor: Cursor;
}

/** Whether this process reaches Postgres (store/lifeline.ts). */
export interface Reachable {
  /** Resolves when it does, or does not, or the signal is aborted. */
  when(is: 'reached' | 'away', signal: AbortSignal): Promise<void>;
}

/** Where nobody looks: it does. */
export const ALWAYS_REACHED: Reachable = {
  when: (is, signal) =>
    is === 'reached'
      ? Promise.resolve()
      : new Promise((resolve) => signal.addEventListener('abort', () => resolve())),
};

export interface EngineLog {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export type CycleKind = 'dispatch' | 'site' | 'sweep';

/** What the engine measures. */
export type EngineMetrics = Pick<
  Metrics,
  | 'cycleSeconds'
  | 'cycles'
  | 'wakeSeconds'
  | 'wakeFailures'
  | 'decisions'
  | 'refusals'
  | 'setAside'
  | 'queueDepth'
  | 'pools'
  | 'poolWaiting'
  | 'lateRuns'
  | 'preemptedRuns'
  | 'lostCoreSeconds'
  | 'followerLagSeconds'
  | 'followerEvents'
  | 'followerFailures'
  | 'jobs'
  | 'resources'
>;

/** How a cycle is called in the metrics. */
export const SCHEDULER_LABEL: Readonly<Record<CycleKind, string>> = {
  dispatch: ROOT,
  site: 'site',
  sweep: 'sweep',
};
