/** Time and chance as a client needs them, in Node or in a browser: the part of `Env` that is not Node's. */

export interface Timing {
  /** From 0 up to, and without, 1. */
  random(): number;
  /** Runs something in so many ms, at most 2^31 - 1. Answers with what prevents it. */
  after(ms: number, run: () => void): () => void;
}

export const REAL_TIMING: Timing = {
  random: () => Math.random(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

/** Waits, or less when `signal` is aborted. */
export function pause({ after }: Timing, ms: number, signal?: AbortSignal): Promise<void> {
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
