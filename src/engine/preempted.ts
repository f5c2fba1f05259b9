/** Counts runs that were stopped for others, and the work that they lost. */
import { NO_CLASS, type Policy } from '../core/index.js';
import type { CycleTools } from './cycle.js';

/** Classes of jobs that the policy does not have any more count as none: labels are those of classes that there are. */
export function countPreempted(
  { preemptedRuns, lostCoreSeconds }: Pick<CycleTools['metrics'], 'preemptedRuns' | 'lostCoreSeconds'>,
  { classes = {} }: Pick<Policy, 'classes'>,
  what: 'job' | 'hold',
  stopped: readonly { class: string | null; lostWork: number }[],
): void {
  for (const { class: name, lostWork } of stopped) {
    const labels = { class: name !== null && Object.hasOwn(classes, name) ? name : NO_CLASS, for: what };
    preemptedRuns.inc(labels);
    lostCoreSeconds.inc(labels, lostWork);
  }
}
