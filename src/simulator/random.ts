/** Distributions that the published workload models draw from. */
import type { RandomStream } from '../core/index.js';

/**
 * Two-stage hyper-exponential with balanced means (hierarchical-clusters.md): with probability p exponential of mean
 * mean/(2p), else of mean mean/(2(1-p)). Needs deviation ≥ mean, both > 0.
 */
export function hyperExponential(random: RandomStream, mean: number, deviation: number): number {
  const z = (deviation / mean) ** 2;
  const p = (1 - Math.sqrt((z - 1) / (z + 1))) / 2;
  return random.exponential(random.next() < p ? mean / (2 * p) : mean / (2 * (1 - p)));
}

/** Standard normal, by the polar method. */
export function normal(random: RandomStream): number {
  for (;;) {
    const u = random.uniform(-1, 1);
    const v = random.uniform(-1, 1);
    const s = u * u + v * v;
    if (s > 0 && s < 1) return u * Math.sqrt((-2 * Math.log(s)) / s);
  }
}

/** Gamma of this shape and scale, both > 0 (Marsaglia and Tsang 2000). */
export function gamma(random: RandomStream, shape: number, scale: number): number {
  if (shape < 1) return gamma(random, shape + 1, scale) * (1 - random.next()) ** (1 / shape);
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (;;) {
    const x = normal(random);
    const v = (1 + c * x) ** 3;
    if (v > 0 && Math.log(1 - random.next()) < 0.5 * x * x + d - d * v + d * Math.log(v))
      return scale * d * v;
  }
}
