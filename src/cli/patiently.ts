/** Starting while the database is away: whoever needs it waits for it, and says so. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Part } from '../platform/lifecycle.js';
import type { Logger } from '../platform/log.js';
import { isUnavailable } from '../store/unavailable.js';

const PAUSE_MS = 1_000;

/** Does the work again and again while the database is away. Throws what else goes wrong, and what did last when the signal is aborted. */
export async function whenDatabaseIsThere(
  what: string,
  work: () => void | Promise<void>,
  log: Logger,
  signal?: AbortSignal,
): Promise<void> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isUnavailable(error) || signal?.aborted) throw error;
      log.warn({ err: error }, `${what} waits for the database`);
      await sleep(PAUSE_MS, undefined, signal && { signal }).catch(() => {});
    }
  }
}

/** The same part; `start` must leave nothing behind when it fails. */
export const patiently = (part: Part, log: Logger): Part => ({
  ...part,
  start: (signal) => whenDatabaseIsThere(part.name, () => part.start?.(signal), log, signal),
});
