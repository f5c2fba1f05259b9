/** Whether two policies differ over repetitions, or chance alone may have made what is seen. */
import { RandomStream } from '../core/index.js';
import { quantile, type Summary } from './statistics.js';

/** Of the differences of pairs: two runs of the same workload and seed. */
export interface Significance {
  /** The mean of the differences, and the middle 95 % of what its resamples make. */
  difference: number;
  low: number;
  high: number;
  /** How likely so large a mean is where there is no difference; by the bootstrap, two-sided. */
  p: number;
  /** The same for all comparisons together, by the method of Holm (1979). */
  pHolm: number;
}

/** Each p is known to a hundredth of itself where it matters, at 0.01 to 0.05. */
const RESAMPLES = 10_000;

/**
 * The paired bootstrap (Efron and Tibshirani 1993, section 16.4): pairs are drawn again, with replacement, from the differences as they are for the
 * interval, and moved to a mean of 0 for p. The same differences give the same numbers. Null of fewer than two pairs.
 */
export function bootstrap(differences: readonly number[]): Omit<Significance, 'pHolm'> | null {
  const n = differences.length;
  if (n < 2) return null;
  const difference = differences.reduce((sum, one) => sum + one, 0) / n;
  const random = new RandomStream(n, 'bootstrap');
  const means = new Float64Array(RESAMPLES);
  let asFar = 0;
  // What rounding makes of equal sums must not count as less.
  const far = Math.abs(difference) * (1 - 1e-12);
  for (let i = 0; i < RESAMPLES; i++) {
    let sum = 0;
    for (let j = 0; j < n; j++) sum += differences[random.integer(0, n - 1)] as number;
    const mean = sum / n;
    means[i] = mean;
    if (Math.abs(mean - difference) >= far) asFar++;
  }
  means.sort();
  const p = (asFar + 1) / (RESAMPLES + 1);
  return { difference, low: quantile(means, 0.025), high: quantile(means, 0.975), p };
}

/** Makes each p larger by how many comparisons there are, so that 5 % is the odds of a single false finding in all of them. In their order. */
export function holm(ps: readonly number[]): number[] {
  const ascending = ps.map((p, i) => ({ p, i })).sort((a, b) => a.p - b.p);
  const corrected = new Array<number>(ps.length);
  let most = 0;
  for (const [rank, { p, i }] of ascending.entries()) {
    most = Math.max(most, Math.min(1, p * (ps.length - rank)));
    corrected[i] = most;
  }
  return corrected;
}

const MEASURES = {
  utilization: ({ utilization }: Summary) => utilization,
  wait: ({ wait }: Summary) => wait.mean,
  turnaround: ({ turnaround }: Summary) => turnaround.mean,
  slowdown: ({ slowdown }: Summary) => slowdown.mean,
  boundedSlowdown: ({ boundedSlowdown }: Summary) => boundedSlowdown.mean,
};
type Measure = keyof typeof MEASURES;

/**
 * Of each measure, for runs and those of the first policy on the same workloads, pair by pair. Corrected over all comparisons of a measure; null of
 * the first itself, and of single runs.
 */
export function significanceOf(
  compared: readonly { runs: readonly Summary[]; first: readonly Summary[] }[],
): Record<Measure, Significance | null>[] {
  const byMeasure = Object.entries(MEASURES).map(([name, of]) => {
    const found = compared.map(({ runs, first }) =>
      runs === first ? null : bootstrap(runs.map((run, i) => of(run) - of(first[i] as Summary))),
    );
    const corrected = holm(found.flatMap((one) => (one === null ? [] : [one.p])));
    return [name, found.map((one) => one && { ...one, pHolm: corrected.shift() as number })] as const;
  });
  return compared.map((_, i) => {
    const own = byMeasure.map(([name, found]) => [name, found[i] ?? null]);
    return Object.fromEntries(own) as Record<Measure, Significance | null>;
  });
}
