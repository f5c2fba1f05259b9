/** Where a root forwards requests (grid-tree.md, "Hybrid"). */
import type { Address } from './messages.js';

export interface Forwarding {
  /** What is left; at 0 it goes nowhere. */
  hops: number;
  /** Sorted. */
  to: Address[];
}

/** To all neighbors that have not seen it, as long as hops are left. */
export function forwardTo(given: {
  self: Address;
  origin: Address;
  hops: number;
  neighbors: readonly Address[];
  visited: readonly Address[];
}): Forwarding {
  const hops = Math.max(0, given.hops - 1);
  const seen = new Set([...given.visited, given.self, given.origin]);
  return { hops, to: hops === 0 ? [] : given.neighbors.filter((one) => !seen.has(one)).sort() };
}
