import { setTimeout as sleep } from 'node:timers/promises';
import type { EngineLog } from '../../src/engine/index.js';

/** Says nothing: what the tests break on purpose is no news. */
export const quietLog: EngineLog = { debug() {}, info() {}, warn() {}, error() {} };

/** Waits for a condition, for at most a minute; then fails with its name. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  seconds = 60,
): Promise<void> {
  const giveUp = Date.now() + seconds * 1000;
  while (!(await condition())) {
    if (Date.now() > giveUp) throw new Error(`waited ${seconds} s in vain until ${what}`);
    await sleep(50);
  }
}
