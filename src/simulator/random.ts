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
