/**
 * One alarm for each site: the next instant at which something is due there that no event announces, because a job was
 * promised a start. They are lost with the process; then the slow timer finds what is due.
 */

import { type Env, REAL_ENV } from '../platform/env.js';

/** A timer that is set for longer would go off at once. */
const LONGEST_MS = 2 ** 31 - 1;

export class Alarms {
  private readonly bySite = new Map<number, { at: number; cancel: () => void }>();

  /** @param now epoch seconds */
  constructor(
    private readonly ring: (siteId: number) => void,
    private readonly now: () => number,
    private readonly env: Env = REAL_ENV,
  ) {}

  /** Instead of what was set for the site before. `at`: epoch seconds; Infinity: never. */
  set(siteId: number, at: number): void {
    const known = this.bySite.get(siteId);
    if (known?.at === at) return;
    known?.cancel();
    this.bySite.delete(siteId);
    if (at === Infinity) return;
    const ring = () => {
      this.bySite.delete(siteId);
      // Not a moment before: then nothing would be due yet.
      if (this.now() < at) this.set(siteId, at);
      else this.ring(siteId);
    };
    const delayMs = Math.max(0, Math.ceil((at - this.now()) * 1000));
    this.bySite.set(siteId, { at, cancel: this.env.after(Math.min(delayMs, LONGEST_MS), ring) });
  }

  close(): void {
    for (const { cancel } of this.bySite.values()) cancel();
    this.bySite.clear();
  }
}
