/** Runs that are in the way of what is held: they should have ended, or been stopped, when it began. */
import { holdsIn, type MachineState, type RunState, type SiteResources } from '../grid/site-resources.js';

/** Live runs on machines where a window or reservation that has begun lacks what it holds. Runs of jobs inside a reservation are its own. */
export function lateRuns({ holds, runs, free }: SiteResources, now: number): RunState[] {
  const short = new Set<MachineState>();
  for (const { machines, tasks, each, from, to, certain, jobId } of holds) {
    // What is promised to a job, or taken by others, is no edge that runs must respect.
    if (!certain || jobId !== undefined || from > now || to <= now) continue;
    machines.forEach((machine, i) => {
      const one = { machines: [machine], tasks: [tasks[i] as number], each };
      if (!holdsIn(one, free.room)) short.add(machine);
    });
  }
  return short.size === 0
    ? []
    : runs.filter(({ machines }) => machines.some((machine) => short.has(machine)));
}
