/**
 * Time and chance as a process finds them. Whoever takes an `Env` asks neither for a clock nor for a random number elsewhere, so that a
 * simulation can let time pass, stop a process and set its clock.
 */
import { performance } from 'node:perf_hooks';

export interface Env {
  /** The time of day by this machine, ms since 1970: it may be wrong, and may jump. */
  nowMs(): number;
  /** A clock that goes on evenly, whoever sets that of the machine, ms. */
  upMs(): number;
  /** From 0 up to, and without, 1. */
  random(): number;
  /** Runs something in so many ms, at most 2^31 - 1. Answers with what prevents it. */
  after(ms: number, run: () => void): () => void;
  /** Runs something when what runs now has ended. */
  soon(run: () => void): void;
}

export const REAL_ENV: Env = {
  nowMs: () => Date.now(),
  upMs: () => performance.now(),
  random: () => Math.random(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
  soon: (run) => void setImmediate(run),
};

/** Waits, or less when `signal` is aborted. */
export function pause({ after }: Env, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      cancel();
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const cancel = after(ms, done);
    signal?.addEventListener('abort', done);
  });
}
