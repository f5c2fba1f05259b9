/** What a policy document may say of the grid tree. */
import { z } from 'zod';
import { DEFAULT_TREE_RULES } from '../../grid-tree/index.js';
import { QUEUE_LIMIT } from '../policy.js';

const { butterfly, fallback, loadBalance, movesMax, shares } = DEFAULT_TREE_RULES;

export const schema = z.strictObject({
  kind: z.literal('grid-tree'),
  butterfly: z.boolean().default(butterfly).meta({
    title: 'Butterfly',
    description: 'Jobs of other branches that are better off at a branch that asks go there first.',
  }),
  fallback: z.boolean().default(fallback).meta({
    title: 'Fallback',
    description: 'Jobs that their site cannot run any more go elsewhere, ahead of jobs that came later.',
  }),
  loadBalance: z.boolean().default(loadBalance).meta({
    title: 'Load balance',
    description: 'A branch that asks gets jobs of the branch that has most beyond its share.',
  }),
  movesMax: z.int().min(0).max(1000).default(movesMax).meta({
    title: 'Moves of a job',
    description: 'So often butterfly and load balance move a job at most.',
  }),
  shares: z.enum(['UP', 'DOWN_FIRST']).default(shares).meta({
    title: 'Shares of branches',
    description:
      'How shares of branches that ask at once are rounded. DOWN_FIRST: down, and the first ones get what is left. UP: as in the paper.',
  }),
  asks: z.enum(['FREEST_FIRST', 'IN_ORDER']).default('FREEST_FIRST').meta({
    title: 'Who asks first',
    description:
      'Of sites that want work at once. FREEST_FIRST: the one with the largest share of free CPUs. IN_ORDER: the first registered.',
  }),
  power: z.enum(['CPUS', 'BENCHMARK']).default('CPUS').meta({
    title: 'Power of a branch',
    description: 'What a CPU counts in it. CPUS: 1. BENCHMARK: the benchmark of its machine.',
  }),
  queueLimit: z
    .int()
    .min(0)
    .max(1_000_000)
    .default(1)
    .meta({
      ...QUEUE_LIMIT,
      description:
        'At most so many jobs wait at a site, besides those that can start at once. What is there does not move any more.',
    }),
});
export type Rules = z.infer<typeof schema>;
