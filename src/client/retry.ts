/** How clients try again. */
import { pause, REAL_TIMING, type Timing } from '../platform/timing.js';
import { ServiceError } from './errors.js';

const FIRST_PAUSE_MS = 100;
/** Agents are back soon after the service: nothing starts without them. */
const LAST_PAUSE_MS = 2_000;

/**
 * How long to wait after so many failures, of which `error` is the last: longer each time, and never less than the service
 * asks for. Half of it is random, so that many clients do not come back at once.
 */
export function pauseMs(failures: number, error: unknown, env: Timing = REAL_TIMING): number {
  const growing = Math.min(LAST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.max(0, failures - 1));
  const asked = error instanceof ServiceError ? (error.retryAfterMs ?? 0) : 0;
  return Math.max(growing * (0.5 + env.random() / 2), asked);
}

/**
 * Does something, again and again until it succeeds, with growing pauses.
 *
 * @param action may say that it has made progress: the failures after that are counted anew
 * @param failed told of each failure, how many there were in a row, and the pause to come; throws to give up
 * @returns undefined when `signal` is aborted
 */
export async function untilDone<T>(
  action: (progress: () => void) => Promise<T>,
  signal: AbortSignal,
  failed: (error: unknown, failures: number, waitMs: number) => void,
  env: Timing = REAL_TIMING,
): Promise<T | undefined> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      return await action(() => {
        failures = 0;
      });
    } catch (error) {
      if (signal.aborted) return undefined;
      const waitMs = pauseMs(++failures, error, env);
      failed(error, failures, waitMs);
      await pause(env, waitMs, signal);
    }
  }
  return undefined;
}

/** So many attempts take a few seconds, and longer where the service says when to come again. */
const ATTEMPTS = 8;

/**
 * Asks again where the service may answer the next time (`ServiceError.mayPass`), a few times. Only for what may be asked twice: a query, a submission
 * with an idempotency key, a cancellation.
 *
 * @throws ServiceError the last one; the reason of `signal` if that is aborted
 */
export async function asked<T>(
  ask: () => Promise<T>,
  signal: AbortSignal = new AbortController().signal,
  attempts = ATTEMPTS,
): Promise<T> {
  const answer = await untilDone(
    async () => ({ is: await ask() }),
    signal,
    (error, failures) => {
      if (!(error instanceof ServiceError && error.mayPass) || failures >= attempts) throw error;
    },
  );
  if (!answer) throw signal.reason;
  return answer.is;
}

/** Waits, or less when `signal` is aborted. */
export const sleep = (ms: number, signal?: AbortSignal): Promise<void> => pause(REAL_TIMING, ms, signal);
