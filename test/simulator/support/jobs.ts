/** Jobs and machines for tests. */
import type { Job } from '../../../src/core/index.js';
import type { SimJob } from '../../../src/simulator/workload.js';
import { job as anyJob } from '../../core/support/drive.js';

/** Jobs in order of submission, which is the order given. */
export function simJobs(
  given: (Partial<Job> & { runS: number; limitS?: number | null; siteId?: number | null })[],
): SimJob[] {
  return given.map(({ runS, limitS = null, siteId = 1, ...job }, i) => ({
    job: anyJob({ id: i + 1, estimateS: runS, ...job }),
    sourceId: i + 1,
    runS,
    limitS,
    siteId,
  }));
}
