/**
 * At most so many of some jobs run at once: they are in so many lanes, in each of which a job waits for the one before it. Pure, for both stores.
 */
import type { NeedCondition } from '../core/needs/model.js';
import { isWaiting, possible } from '../core/states.js';
import { MAX } from '../platform/limits.js';
import type { JobWait, NeedTerm } from './needs.js';
import type { ChangeFault, ChangingJob } from './store.js';

export interface Lanes {
  /** Of the jobs that wait: all that each needs from now on. */
  needs: ReadonlyMap<number, JobWait['needs']>;
  /** What they need besides. If one of the jobs is among that, there may be no order in which to run them. */
  others: JobWait['needs'];
  /** Whose they are. */
  userId: number;
}

/**
 * @param jobs by id, with what they wait for
 * @param atOnce 0: as many as can
 */
export function lanesOf(jobs: readonly ChangingJob[], atOnce: number): Lanes {
  const live = jobs.filter(({ state }) => possible('amend', state));
  const ids = new Set(live.map(({ id }) => id));
  const count = atOnce === 0 ? live.length : Math.min(atOnce, live.length);
  // In each lane, those that have to end before the next begins.
  const lanes = Array.from({ length: count }, (): number[] => []);
  // What has begun, or is not ours to say, cannot be told to wait.
  const hasBegun = ({ state, epoch, foreign }: ChangingJob): boolean =>
    !isWaiting(state) || epoch > 0 || foreign;
  const begun = live.filter(hasBegun);
  for (const [place, { id }] of begun.entries()) lanes[place % count]!.push(id);
  const others = new Map(
    live
      .filter((job) => !hasBegun(job))
      .map(({ id, wait }) => [id, (wait?.needs ?? []).filter((clause) => !isLane(clause, ids))]),
  );
  const needs = new Map<number, JobWait['needs']>();
  for (const [id, besides] of others) {
    const place = (begun.length + needs.size) % count;
    const of = lanes[place]!.map((job): NeedTerm => ({ job, condition: ENDED, minDelayS: 0 }));
    needs.set(id, of.length === 0 ? besides : [...besides, { expression: 'ALL', of }]);
    lanes[place] = [id];
  }
  return { needs, others: [...others.values()].flat(), userId: jobs[0]?.userId ?? 0 };
}

const ENDED: NeedCondition = 'ANY';

/** Whether it says no more than that some of these jobs end first. */
const isLane = ({ of }: JobWait['needs'][number], ids: ReadonlySet<number>): boolean =>
  of.every((term) => 'job' in term && ids.has(term.job) && term.condition === ENDED && term.minDelayS === 0);

/** `isOrdered`: none of the jobs needs another one besides. */
export function laneFault(
  { id, userId }: ChangingJob,
  { needs, userId: owner }: Lanes,
  isOrdered: boolean,
): ChangeFault | null {
  const refuse = (why: string): ChangeFault => ({
    ...{ field: 'atOnce', code: 'BAD_USER_INPUT', message: `atOnce: ${why}` },
  });
  if (userId !== owner)
    return refuse(`job_${id} is another user's than the first; accepted: jobs of one user`);
  if (!isOrdered) return refuse('some of these jobs need others of them; accepted: jobs that do not');
  const terms = (needs.get(id) ?? []).reduce((sum, { of }) => sum + of.length, 0);
  return terms > MAX.jobNeeds
    ? refuse(
        `job_${id} would have to wait for too many that run; accepted: dependencies with up to ${MAX.jobNeeds} terms`,
      )
    : null;
}
