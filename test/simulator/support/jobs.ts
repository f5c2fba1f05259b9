/** Jobs and machines for tests. */
import type { Job } from '../../../src/core/index.js';
import type { SimJob } from '../../../src/simulator/workload.js';

/** Jobs in order of submission, which is the order given. */
export function simJobs(
  given: (Partial<Job> & { runS: number; limitS?: number | null; siteId?: number | null })[],
): SimJob[] {
  return given.map(({ runS, limitS = null, siteId = 1, ...job }, i) => ({
    job: {
      id: i + 1,
      userId: 1,
      userClass: 'REGULAR',
      submit: 0,
      estimate: runS,
      benchmark: 1,
      deadline: null,
      tasks: 1,
      cpusPerTask: 1,
      memoryMbPerTask: 0,
      licences: [],
      os: null,
      arch: null,
      boost: 0,
      priority: null,
      runTimeLimit: null,
      ...job,
    },
    sourceId: i + 1,
    runS,
    limitS,
    siteId,
  }));
}
