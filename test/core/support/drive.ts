/** The least driver there can be: a site of one machine, jobs at their times, one cycle for each instant. */
import {
  DEFAULT_POLICY,
  Grid,
  type Job,
  type LocalPolicy,
  type Policy,
  plainJob,
  siteCycle,
} from '../../../src/core/index.js';
import type { TraceJob } from './trace.js';

export const job = (given: Partial<Job> & { id: number }): Job =>
  plainJob({
    submittedAt: 0,
    estimateS: 100,
    ...given,
  });

/** Runs the trace through the core; start time by job id. */
export function driveOneMachine(
  trace: readonly TraceJob[],
  cpus: number,
  local: LocalPolicy,
): Map<number, number> {
  const policy: Policy = { ...DEFAULT_POLICY, local };
  const grid = new Grid();
  grid.setSite({ id: 1, name: 'one', state: 'UP', localPolicy: null });
  grid.setMachine({
    id: 1,
    siteId: 1,
    cpus,
    memoryMb: 0,
    benchmark: 1,
    os: '',
    architecture: '',
    licenseIds: [],
    available: true,
  });
  const starts = new Map<number, number>();
  // The file's order is the order among equal times, so positions serve as ids.
  const order = trace
    .map((_, i) => i)
    .sort((a, b) => (trace[a] as TraceJob).submit - (trace[b] as TraceJob).submit || a - b);
  const ends: { at: number; id: number }[] = [];
  let next = 0;
  while (next < order.length || ends.length > 0) {
    const now = Math.min(trace[order[next] as number]?.submit ?? Infinity, ends[0]?.at ?? Infinity);
    for (; ends.length > 0 && (ends[0] as { at: number }).at === now; ends.shift())
      grid.endRun((ends[0] as { id: number }).id);
    for (; next < order.length && (trace[order[next] as number] as TraceJob).submit === now; next++) {
      const id = order[next] as number;
      const { submit, requested, cpus: cpusPerTask } = trace[id] as TraceJob;
      grid.placeAtSite(job({ id, submittedAt: submit, estimateS: requested, cpusPerTask }), 1);
    }
    const plan = siteCycle(grid, 1, {
      now,
      policy,
      policyVersion: 1,
      maxStarts: 1000,
      countWaiting: false,
    });
    for (const { jobId, allocations, plannedDuration } of plan.starts) {
      grid.startRun({
        jobId,
        siteId: 1,
        epoch: 1,
        allocations,
        pools: [],
        start: now,
        plannedEnd: now + plannedDuration,
      });
      const { id, run } = trace[jobId] as TraceJob;
      starts.set(id, now);
      const at = now + run;
      const place = ends.findIndex((end) => end.at > at);
      ends.splice(place === -1 ? ends.length : place, 0, { at, id: jobId });
    }
  }
  return starts;
}
