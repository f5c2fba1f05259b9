/**
 * How far the event loop is behind. A process that has more to do than it can gets slower for everybody, agents included, and at
 * last fails; one that refuses what is new in time stays as fast as it can be.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** How often the delay is looked at, and how finely it is measured. */
const PERIOD_MS = 500;
const RESOLUTION_MS = 20;

export interface Lag {
  /** Whether new requests of people are better refused now. */
  readonly tooMuch: boolean;
  close(): void;
}

/**
 * Watches the event loop. It lags too much from when its mean delay over half a second was above `maxMs` twice in a row, so not after a
 * single long computation, until it is below half of that.
 */
export function watchLag(maxMs: number, onChange: (tooMuch: boolean, delayMs: number) => void): Lag {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  let above = 0;
  let tooMuch = false;
  let lookedAt = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    // Without a single measurement in between, the look itself was late.
    const delayMs = Math.max(
      0,
      Number.isNaN(histogram.mean) ? now - lookedAt - PERIOD_MS : histogram.mean / 1e6 - RESOLUTION_MS,
    );
    lookedAt = now;
    histogram.reset();
    above = delayMs > maxMs ? above + 1 : 0;
    const is = tooMuch ? delayMs > maxMs / 2 : above >= 2;
    if (is === tooMuch) return;
    tooMuch = is;
    onChange(is, delayMs);
  }, PERIOD_MS);
  timer.unref();
  return {
    get tooMuch() {
      return tooMuch;
    },
    close() {
      clearInterval(timer);
      histogram.disable();
    },
  };
}
