/** Workloads that are generated instead of recorded. */
import { plainJob, RandomStream } from '../core/index.js';
import { lublinJobs } from './lublin.js';
import { giveEstimates, MAX_ESTIMATE_S } from './user-estimates.js';
import { inOrder, type SimJob } from './workload.js';

export const models = ['lublin', 'lublin-tsafrir', 'poisson'] as const;
export type Model = (typeof models)[number];

/** What to generate; the same gives the same jobs. */
export interface Generate {
  model: Model;
  jobs: number;
  seed: number;
  /** Of `lublin-tsafrir`: the longest estimate that users may give, s; 48 h unless given. */
  maxEstimateS?: number;
}

/** Of `poissonJobs`, in seconds. */
const MEAN_RUN_S = 3600;

/** Draws jobs for machines of so many processors in all. */
export function generatedJobs({ model, jobs, seed, maxEstimateS }: Generate, processors: number): SimJob[] {
  if (model === 'poisson') return poissonJobs(seed, jobs, processors);
  const drawn = lublinJobs(seed, jobs, processors);
  if (model === 'lublin-tsafrir') giveEstimates(drawn, seed, maxEstimateS ?? MAX_ESTIMATE_S.usual);
  return drawn;
}

/**
 * Jobs of one processor whose run times, and the times between whose submissions, are exponential: what queueing theory knows
 * the waits of. The mean run time is an hour, the load 1; the run time is the estimate. All are for site 1.
 */
export function poissonJobs(seed: number, count: number, processors: number): SimJob[] {
  const runs = new RandomStream(seed, 'poisson-runs');
  const gaps = new RandomStream(seed, 'poisson-gaps');
  let submittedAt = 0;
  const jobs = Array.from({ length: count }, (_, i): SimJob => {
    submittedAt += gaps.exponential(MEAN_RUN_S / processors);
    const runS = Math.max(Number.MIN_VALUE, runs.exponential(MEAN_RUN_S));
    const id = i + 1;
    const job = plainJob({ id, submittedAt: Math.round(submittedAt), estimateS: runS });
    return { job, sourceId: id, runS, limitS: runS, siteId: 1 };
  });
  return inOrder(jobs);
}
