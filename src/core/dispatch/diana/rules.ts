/** What an administrator sets of DIANA. */
import { z } from 'zod';
import { QUEUE_LIMIT } from '../policy.js';

const weight = (title: string, description: string) =>
  z.number().min(0).max(1e6).meta({ title, description });
const costWeights = (jobs: string) =>
  z.strictObject({
    network: weight(
      `${jobs}: network`,
      'How much the cost of moving the sandbox counts, for jobs of this kind.',
    ),
    computation: weight(`${jobs}: computation`, 'How much the jobs ahead, the run time and the load count.'),
    data: weight(`${jobs}: data`, 'How much moving inputs and output counts.'),
  });

export const schema = z
  .strictObject({
    kind: z.literal('diana'),
    /**
     * `(α, β, γ)` for each kind of job. Defaults otherwise than diana.md's, which follow section 5's order: by `experiments/diana-study.ts` those
     * cost turnaround, for a job that brings its data occupies processors meanwhile, and weights by kind gain nothing.
     */
    weights: z
      .strictObject({
        computational: costWeights('Computing jobs'),
        dataIntensive: costWeights('Data jobs'),
        both: costWeights('Other jobs'),
      })
      .default({
        computational: { network: 1, computation: 1, data: 4 },
        dataIntensive: { network: 1, computation: 1, data: 4 },
        both: { network: 1, computation: 1, data: 4 },
      }),
    computationalFrom: z.number().positive().max(1).default(0.75).meta({
      title: 'Computing from',
      description: 'A job that computes for at least this fraction of its run time is computational.',
    }),
    dataIntensiveTo: z.number().min(0).lt(1).default(0.25).meta({
      title: 'Data job up to',
      description: 'A job that computes for at most this fraction of its run time is data-intensive.',
    }),
    loadPenaltyS: z.number().min(0).max(86_400).default(60).meta({
      title: 'Cost of a busy site',
      description: 'Extra cost of a fully loaded site over an idle one.',
      unit: 's',
    }),
    placement: z.enum(['LEAST_COST', 'ORIGIN_FIRST']).default('LEAST_COST').meta({
      title: 'New jobs',
      description:
        'LEAST_COST: to the site with the least cost. ORIGIN_FIRST: to the site of submission if they can start there immediately, otherwise elsewhere.',
    }),
    metaOrder: z.enum(['QUOTA', 'SJF']).default('QUOTA').meta({
      title: 'Order of meta-queues',
      description: "QUOTA: by the users' quotas. SJF: fewest processors first.",
    }),
    queueLimit: z.int().min(1).max(1_000_000).default(10).meta(QUEUE_LIMIT),
    congestionThreshold: z.number().min(-1e6).max(1).default(0.5).meta({
      title: 'Congested from',
      description:
        'A site is congested when (arrivals − services) / arrivals is above this. Then groups of jobs may leave it.',
    }),
    congestionWindowS: z.number().min(10).max(3600).default(600).meta({
      title: 'Counted over',
      description: 'Arrivals and services are counted over this time.',
      unit: 's',
    }),
    migration: z
      .strictObject({
        rule: z.enum(['BOTH_LOWER', 'NOT_BOTH_HIGHER']).default('BOTH_LOWER').meta({
          title: 'May leave for',
          description:
            'BOTH_LOWER: sites with fewer jobs ahead and a lower cost. NOT_BOTH_HIGHER: all but those with more jobs ahead and a higher cost. Of these, a group goes to the one with the shortest queue, then the fewest jobs ahead, then the lowest cost.',
        }),
      })
      .default({ rule: 'BOTH_LOWER' }),
    holdOffS: z
      .number()
      .min(1)
      .max(86_400 * 30)
      .default(300)
      .meta({
        title: 'Stays after a move',
        description: 'A job that has moved to another site stays there for this long.',
        unit: 's',
      }),
  })
  .refine((policy) => policy.dataIntensiveTo < policy.computationalFrom, {
    path: ['dataIntensiveTo'],
    error: 'a number below computationalFrom',
  });
export type Rules = z.infer<typeof schema>;
