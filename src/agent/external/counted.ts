/** What the site's scheduler has been asked by the agent: its administrators, and ours, want to know. */
import { type LocalScheduler, RefusedError } from './scheduler.js';

export interface CallCounts {
  /** Questions and requests since the agent began. One may take several calls of the scheduler's own programs. */
  made: number;
  /** Of these, such that it did not answer; what it refused is an answer. */
  failed: number;
}

const VERBS = ['submit', 'find', 'list', 'cancel', 'capacity', 'use'] as const;

/** The same scheduler, whose verbs are counted. */
export function counted(scheduler: LocalScheduler, calls: CallCounts): LocalScheduler {
  const same: LocalScheduler = Object.create(scheduler);
  const counting =
    <A extends unknown[], R>(verb: (...given: A) => Promise<R>) =>
    async (...given: A): Promise<R> => {
      calls.made++;
      try {
        return await verb.apply(scheduler, given);
      } catch (error) {
        if (!(error instanceof RefusedError)) calls.failed++;
        throw error;
      }
    };
  for (const verb of VERBS)
    if (scheduler[verb] !== undefined) Object.assign(same, { [verb]: counting(scheduler[verb] as never) });
  return same;
}
