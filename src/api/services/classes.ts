/** Classes of jobs as users meet them: who may name which, and what that comes to. */
import {
  type ClassUser,
  classTableOf,
  type JobClass,
  type JobClasses,
  mayUse,
  SCAVENGER_RANK,
} from '../../core/classes.js';
import { type Policy, parsePolicy } from '../../core/policy.js';
import type { Queries } from '../../store/queries.js';
import type { NewJob } from '../../store/store.js';
import { notFound } from '../errors.js';
import type { JobClass as ShownClass } from '../generated/types.js';
import { globalId } from '../ids.js';

/** Who submits jobs, as `submitterOf` says. */
export interface Submitter {
  readonly userId: number;
  /** An operator. */
  readonly mayRaise: boolean;
}

/** The classes of the policy in force, for somebody who submits jobs. */
export interface UsableClasses {
  readonly all: JobClasses;
  /** Names of those that the user may use, in their order. */
  readonly usable: readonly string[];
  /** What is accepted instead of a class. */
  words(name: string): string;
}

async function classUserOf(queries: Pick<Queries, 'usersByIds'>, submitter: Submitter): Promise<ClassUser> {
  const [user] = await queries.usersByIds([submitter.userId]);
  if (!user) throw notFound('user', globalId('user', submitter.userId));
  return { name: user.name, userClass: user.class, isOperator: submitter.mayRaise };
}

/** All of the policy in force. */
export async function classesInForce(queries: Pick<Queries, 'policy'>): Promise<JobClasses> {
  const inForce = await queries.policy();
  return (inForce === null ? undefined : (parsePolicy(inForce.document) as Policy).classes) ?? {};
}

export async function usableClasses(
  queries: Pick<Queries, 'policy' | 'usersByIds'>,
  submitter: Submitter,
): Promise<UsableClasses> {
  const [all, user] = await Promise.all([classesInForce(queries), classUserOf(queries, submitter)]);
  const names = Object.keys(all).sort();
  const usable = names.filter((name) => mayUse(all[name] as JobClass, user));
  const words = (name: string): string => {
    if (names.length === 0) return 'no value: the policy has no classes of jobs';
    const may = usable.length === 0 ? 'no value: you may use none' : usable.join(', ');
    const asked = Object.hasOwn(all, name) ? all[name] : undefined;
    return asked === undefined ? may : `${may} (${name} is for ${whoMay(asked)})`;
  };
  return { all, usable, words };
}

/** Names of users are not everybody's to know. */
const whoMay = ({ users, userClasses = [] }: JobClass): string =>
  [
    ...(userClasses.length > 0 ? [`${userClasses.join(' and ')} users`] : []),
    ...(users === undefined ? [] : ['certain users']),
    'operators',
  ].join(', ');

/**
 * Says of jobs that are about to be submitted whether they are charged, which checks of single jobs leave open (`newJob`). It is no part of what a repeated submission is compared by, for the
 * policy may be another one by then.
 */
export function withCharges(jobs: NewJob[], classes: UsableClasses | null): NewJob[] {
  if (classes !== null)
    for (const job of jobs) if (job.class !== null) job.charged = classes.all[job.class]?.charged ?? true;
  return jobs;
}

/** The policy's classes as they act, by name. */
export async function shownClasses(
  queries: Pick<Queries, 'usersByIds' | 'jobsByClass'>,
  submitter: Submitter,
  policy: Policy,
): Promise<ShownClass[]> {
  if (policy.classes === undefined) return [];
  const user = await classUserOf(queries, submitter);
  const owner = user.isOperator ? null : submitter.userId;
  const counts = new Map((await queries.jobsByClass(owner)).map((one) => [one.class, one]));
  const table = classTableOf(policy);
  return Object.entries(policy.classes)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, one]) => {
      const { rank, exemptS, graceS, requeue, charged } = table.of({ class: name, preemptionClass: 0 });
      const { waiting = 0, running = 0 } = counts.get(name) ?? {};
      return {
        ...{ name, rank, exemptS, graceS, charged, isScavenger: rank === SCAVENGER_RANK },
        ...{ mayUse: mayUse(one, user), userClasses: one.userClasses ?? null },
        users: user.isOperator ? (one.users ?? null) : null,
        onPreemption: requeue ? 'REQUEUE' : 'CANCEL',
        ...{ waitingJobs: waiting, runningJobs: running },
      };
    });
}
