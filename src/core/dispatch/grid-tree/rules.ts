/** What a policy document may say of the grid tree. */
import { z } from 'zod';
import { DEFAULT_TREE_RULES } from '../../grid-tree/index.js';

const { butterfly, fallback, loadBalance, movesMax, shares } = DEFAULT_TREE_RULES;

export const schema = z.strictObject({
  kind: z.literal('grid-tree'),
  butterfly: z.boolean().default(butterfly),
  fallback: z.boolean().default(fallback),
  loadBalance: z.boolean().default(loadBalance),
  /** So often butterfly and load-balance move a job at most. */
  movesMax: z.int().min(0).max(1000).default(movesMax),
  /** How shares of branches that ask at once are rounded: see `TreeRules`. */
  shares: z.enum(['UP', 'DOWN_FIRST']).default(shares),
  /** Of leaves that want work in the same pass: the one with the larger share of its CPUs free asks first, or the first in the order of sites. */
  asks: z.enum(['FREEST_FIRST', 'IN_ORDER']).default('FREEST_FIRST'),
  /** What a CPU counts in the power of a branch: 1, or the benchmark of its machine. */
  power: z.enum(['CPUS', 'BENCHMARK']).default('CPUS'),
  /** Jobs that wait in a site's local queue at most, beside those that can start at once: what is there does not move any more. */
  queueLimit: z.int().min(0).max(1_000_000).default(1),
});
export type Rules = z.infer<typeof schema>;
