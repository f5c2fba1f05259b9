/**
 * Running again what has failed of a group (jobs.md, "Rerun"): copies of jobs that stay as they ended, and others that wait for those from now
 * on. Pure: both stores find the jobs, and carry out what is decided here.
 */
import type { JobInput } from '../core/model.js';
import { noteOf, saidNeeds } from './changes.js';
import type { GivenJob } from './job-fields.js';
import type { JobWait, NeedTerm, RunAgain } from './needs.js';
import type { NewJob } from './store.js';

/** A job as it was submitted, with what it waited for; null: for nothing. */
export interface OldJob {
  id: number;
  given: GivenJob;
  wait: Pick<JobWait, 'needs' | 'onUnmet' | 'notBefore'> | null;
}

/** What is known of a rerun before its copies are made. */
export interface Rerunning {
  /** The latest copy of each job that has one, with those that are to be made. */
  latest: ReadonlyMap<number, number>;
  /** The group of the copies' submission, and its last id. */
  groupId: number;
  asOf: number;
  /** Epoch seconds. */
  now: number;
}

/** The copy of a job, as it is submitted. A deadline that has passed would end it at once, so it has none. */
export function copyOf({ given, wait }: OldJob, rerun: Rerunning): NewJob {
  const { latest, now } = rerun;
  const reads = new Map(
    given.inputs.flatMap(({ from }, place) =>
      from === undefined ? [] : [[place, [{ job: latest.get(from.job) ?? from.job }]] as const],
    ),
  );
  return {
    ...given,
    deadline: given.deadline !== null && given.deadline <= now ? null : given.deadline,
    held: false,
    wait: wait && {
      onUnmet: wait.onUnmet,
      notBefore: wait.notBefore,
      needs: pointed(wait.needs, rerun),
      ...(reads.size > 0 && { reads }),
    },
  };
}

/** What a job that waits needs from now on, what it reads, and what its event says. */
export function repointed(
  { wait, inputs }: { wait: JobWait; inputs: readonly JobInput[] },
  rerun: Rerunning,
): { wait: JobWait; inputs: readonly JobInput[]; note: string } {
  const needs = pointed(wait.needs, rerun);
  return {
    wait: { ...wait, needs, dueAt: null, because: null },
    inputs: inputs.map((input) => {
      const { from } = input;
      return from === undefined
        ? input
        : { ...input, from: { ...from, job: rerun.latest.get(from.job) ?? from.job } };
    }),
    note: noteOf([['needs', saidNeeds(wait.needs), saidNeeds(needs)]]),
  };
}

/** Jobs become their latest copies; of groups, so do the members. */
const pointed = (needs: JobWait['needs'], { latest, groupId, asOf }: Rerunning): JobWait['needs'] =>
  needs.map(({ expression, of }) => ({
    expression,
    of: of.map((term): NeedTerm => {
      if ('job' in term) return { ...term, job: latest.get(term.job) ?? term.job };
      const again: RunAgain = { asOf, groups: [...(term.again?.groups ?? []), groupId] };
      return { ...term, again };
    }),
  }));

/** What the event of a copy's submission says. */
export const rerunNote = (of: number): string => `rerun of job_${of}`;
