import { setTimeout as sleep } from 'node:timers/promises';
import type { EngineLog } from '../../src/engine/index.js';
import { PATIENCE_MS } from '../support/patience.js';

/** Says nothing: what the tests break on purpose is no news. */
export const quietLog: EngineLog = { debug() {}, info() {}, warn() {}, error() {} };

/** Waits for a condition; when it hangs, fails with its name. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  patienceMs = PATIENCE_MS,
): Promise<void> {
  const giveUp = Date.now() + patienceMs;
  while (!(await condition())) {
    if (Date.now() > giveUp) throw new Error(`waited in vain until ${what}`);
    await sleep(50);
  }
}
