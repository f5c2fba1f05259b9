/** What an administrator sets of DIANA. */
import { z } from 'zod';

const weight = z.number().min(0).max(1e6);
const share = z.number().min(0).max(1);
const costWeights = z.strictObject({ network: weight, computation: weight, data: weight });

export const schema = z
  .strictObject({
    kind: z.literal('diana'),
    /**
     * `(α, β, γ)` for each kind of job. Defaults otherwise than diana.md's, which follow section 5's order: by `experiments/diana-study.ts` those
     * cost turnaround, for a job that brings its data occupies processors meanwhile, and weights by kind gain nothing.
     */
    weights: z
      .strictObject({ computational: costWeights, dataIntensive: costWeights, both: costWeights })
      .default({
        computational: { network: 1, computation: 1, data: 4 },
        dataIntensive: { network: 1, computation: 1, data: 4 },
        both: { network: 1, computation: 1, data: 4 },
      }),
    /** A job whose share of computation is at least so much is computational, at most so much data intensive. */
    computationalFrom: share.default(0.75),
    dataIntensiveTo: share.default(0.25),
    /** Seconds that a fully busy site costs more than an idle one. */
    loadPenaltyS: z.number().min(0).max(86_400).default(60),
    /** LEAST_COST: a new job goes where it costs least. ORIGIN_FIRST: it stays where it was submitted if it can start there at once. */
    placement: z.enum(['LEAST_COST', 'ORIGIN_FIRST']).default('LEAST_COST'),
    /** What a meta-queue is ordered by: users' quotas, or the fewest processors first. */
    metaOrder: z.enum(['QUOTA', 'SJF']).default('QUOTA'),
    /** Jobs in a site's local queue at most; what goes beyond stays in its meta-queue and can be exported. */
    queueLimit: z.int().min(1).max(1_000_000).default(10),
    /** A site is congested when `(arrival − service)/arrival`, rates over the window, is above the threshold. */
    congestionThreshold: z.number().min(-1e6).max(1).default(0.5),
    congestionWindowS: z.number().min(10).max(3600).default(600),
    /**
     * To which peers a group may go. BOTH_LOWER: where fewer jobs are ahead of it and it costs less than here. NOT_BOTH_HIGHER: to all
     * but those where more jobs are ahead of it and it costs more.
     */
    migration: z
      .strictObject({ rule: z.enum(['BOTH_LOWER', 'NOT_BOTH_HIGHER']).default('BOTH_LOWER') })
      .default({ rule: 'BOTH_LOWER' }),
    /** A migrated job stays where it is for so long. */
    holdOffS: z
      .number()
      .min(1)
      .max(86_400 * 30)
      .default(300),
  })
  .refine((policy) => policy.dataIntensiveTo < policy.computationalFrom, {
    path: ['dataIntensiveTo'],
    error: 'must be below computationalFrom',
  });
export type Rules = z.infer<typeof schema>;
