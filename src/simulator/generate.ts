/** Workloads that are generated instead of recorded. */
import { plainJob, RandomStream } from '../core/index.js';
import { lublinJobs } from './lublin.js';
import { inOrder, type SimJob } from './workload.js';

export const models = ['lublin', 'poisson'] as const;
export type Model = (typeof models)[number];

/** What to generate; the same gives the same jobs. */
export interface Generate {
  model: Model;
  jobs: number;
  seed: number;
}

/** Of `poissonJobs`, in seconds. */
const MEAN_RUN_S = 3600;

/** Draws jobs for machines of so many processors in all. */
export function generatedJobs({ model, jobs, seed }: Generate, processors: number): SimJob[] {
  return model === 'lublin' ? lublinJobs(seed, jobs, processors) : poissonJobs(seed, jobs, processors);
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
