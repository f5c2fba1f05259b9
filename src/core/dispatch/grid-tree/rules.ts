/** What a policy document may say of the grid tree. */
import { z } from 'zod';
import { DEFAULT_TREE_RULES } from '../../grid-tree/index.js';
import { QUEUE_LIMIT } from '../policy.js';

const { butterfly, fallback, loadBalance, movesMax, shares } = DEFAULT_TREE_RULES;

export const schema = z.strictObject({
  kind: z.literal('grid-tree'),
  butterfly: z.boolean().default(butterfly).meta({
    title: 'Butterfly',
    description: 'A branch that requests work first gets jobs of other branches that fit it better.',
  }),
  fallback: z.boolean().default(fallback).meta({
    title: 'Fallback',
    description: 'Jobs that their site can no longer run go elsewhere, ahead of later jobs.',
  }),
  loadBalance: z.boolean().default(loadBalance).meta({
    title: 'Load balance',
    description: 'A branch that requests work gets jobs of the branch that exceeds its portion the most.',
  }),
  movesMax: z.int().min(0).max(1000).default(movesMax).meta({
    title: 'Moves of a job',
    description: 'How many times butterfly and load balancing may move a job.',
  }),
  shares: z.enum(['UP', 'DOWN_FIRST']).default(shares).meta({
    title: 'Portions of branches',
    description:
      'How the portions of branches that request work at the same time are rounded. DOWN_FIRST: down, and the first branches get the remainder. UP: as in the paper.',
  }),
  asks: z.enum(['FREEST_FIRST', 'IN_ORDER']).default('FREEST_FIRST').meta({
    title: 'Which site is served first',
    description:
      'Which of several sites that request work at the same time is served first. FREEST_FIRST: the one with the largest fraction of free CPUs. IN_ORDER: the first registered.',
  }),
  power: z.enum(['CPUS', 'BENCHMARK']).default('CPUS').meta({
    title: 'Power of a branch',
    description: 'How a CPU counts. CPUS: as 1. BENCHMARK: as the benchmark of its machine.',
  }),
  queueLimit: z
    .int()
    .min(0)
    .max(1_000_000)
    .default(1)
    .meta({
      ...QUEUE_LIMIT,
      description:
        'Maximum number of jobs waiting at a site, besides those that can start immediately. Jobs there no longer move to other sites.',
    }),
});
export type Rules = z.infer<typeof schema>;
