/** Which of the waiting jobs it is that no plan can be made with. */
import type { Grid } from '../core/index.js';

interface Waiting {
  jobId: number;
  place(): void;
}

/**
 * The first of the waiting jobs with which planning throws, where it does not without any of them: null otherwise. Jobs leave the grid
 * and come back on the way; some are missing afterwards.
 *
 * @param plan its answer is not looked at
 */
export function culprit(grid: Grid, plan: () => unknown): { jobId: number; error: unknown } | null {
  const jobs = waitingJobs(grid);
  let there = jobs.length;
  /** What planning throws with so many of the jobs; null: nothing. */
  const failure = (count: number): { error: unknown } | null => {
    while (there > count) grid.removeJob((jobs[--there] as Waiting).jobId);
    while (there < count) (jobs[there++] as Waiting).place();
    try {
      plan();
      return null;
    } catch (error) {
      return { error };
    }
  };
  let found = failure(jobs.length);
  if (found === null || failure(0) !== null) return null;
  let good = 0;
  let bad = jobs.length;
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    const thrown = failure(middle);
    found = thrown ?? found;
    if (thrown) bad = middle;
    else good = middle;
  }
  return { jobId: (jobs[bad - 1] as Waiting).jobId, error: found.error };
}

function waitingJobs(grid: Grid): Waiting[] {
  const found: Waiting[] = [];
  for (const job of grid.root.jobs) {
    if (job) found.push({ jobId: job.id, place: () => grid.placeAtRoot(job) });
  }
  for (const { site, meta, queue, inside } of grid.sites) {
    for (const job of meta.jobs) {
      if (job) found.push({ jobId: job.id, place: () => grid.placeAtMeta(job, site.id) });
    }
    for (const each of [queue, ...inside.map((part) => part.queue)])
      for (const job of each.jobs)
        if (job) found.push({ jobId: job.id, place: () => grid.placeAtSite(job, site.id) });
  }
  return found;
}
