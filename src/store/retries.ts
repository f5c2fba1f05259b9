/**
 * What becomes of a job whose run has ended badly (jobs.md, "Retries"), with what the store knows of it and of machines. Pure: both stores
 * find the facts, and carry out what is decided here.
 */
import { labelsOf } from '../core/grid/site-resources.js';
import type { Avoids, Machine, Places, PreemptedFor, PreemptedRun } from '../core/model.js';
import { labelsAskedBy, parseAsked, satisfies } from '../core/resources/constraint.js';
import { decideRetry, NO_RETRIES, type RetryDecision } from '../core/runs/retry.js';
import type { EndCause, JobState } from '../core/states.js';
import type { StoredJob } from './job-fields.js';
import type { RunRow } from './rows.js';
import type { RunReport } from './store.js';
import { placeOf } from './tasks.js';

/** Of a job that says nothing of retries: what the service retries, it retries at once. */
const AT_ONCE = { ...NO_RETRIES, backoffS: 0 };

/** A machine in service. */
export interface RetryMachine {
  machine: Pick<
    Machine,
    'id' | 'cpus' | 'memoryMb' | 'resources' | 'maxTasks' | 'os' | 'architecture' | 'labels'
  >;
  /** Name of its site. */
  site: string;
}

export interface RetryFacts {
  job: Pick<
    StoredJob,
    | 'retry'
    | 'retries'
    | 'restartable'
    | 'tasks'
    | 'cpusPerTask'
    | 'memoryMbPerTask'
    | 'resourcesPerTask'
    | 'os'
    | 'architecture'
    | 'machineConstraint'
    | 'image'
  >;
  /** Some of its processes have begun, or nobody knows. */
  begun: boolean;
  /** Where counted runs of it failed before. */
  before: readonly Places[];
  /** Where this one did. */
  here: Places;
  /** All, where it is asked for (`asksForMachines`). */
  machines: readonly RetryMachine[];
}

/** What was decided about a run that ended badly. */
export interface Retried extends RetryDecision {
  avoids: Avoids | null;
  /** In words; null: nothing that anybody asked for. */
  note: string | null;
}

export type Placed = Pick<RunRow, 'siteId' | 'machineIds' | 'machineTasks' | 'failedTask'>;

/** Where a run failed: on the machine of the task that did, else on all that it had; of a run that others placed, at their site. */
export function placeOfFailure({ siteId, machineIds, machineTasks, failedTask }: Placed): Places {
  if (machineIds.length === 0) return { machines: [], sites: [siteId] };
  const failed = failedTask === null ? undefined : machineIds[placeOf(machineTasks, failedTask)];
  return { machines: failed === undefined ? machineIds : [failed], sites: [] };
}

/** Whether it matters which machines there are: memory grows as far as one has more. */
export const asksForMachines = ({ retry }: Pick<StoredJob, 'retry'>): boolean =>
  (retry?.rules ?? []).some(({ memoryFactor }) => memoryFactor > 1);

export function decideNext(
  { job, begun, before, here, machines }: RetryFacts,
  { cause, exitCode, signal }: Pick<RunReport, 'exitCode' | 'signal'> & { cause: EndCause },
  maxAttempts: number,
): Retried {
  const retried = {
    ...{ retry: job.retry ?? AT_ONCE, maxAttempts, restartable: job.restartable, retries: job.retries },
    memoryMb: job.memoryMbPerTask,
    largestMb: largestMb(job, ableTo(job, machines)),
  };
  const named = decideRetry(retried, { cause, exitCode, signal });
  // jobs.md does not know it: an agent may refuse what an earlier one has begun, so it is as uncertain as a lost run.
  const isLost = cause === 'REFUSED' && named.rule === null;
  const decision = isLost
    ? decideRetry({ ...retried, retry: { ...retried.retry, rules: [] } }, { cause: 'LOST', exitCode, signal })
    : named;
  // A machine that fails after some tasks have begun leaves the run in doubt as a lost one does.
  if (decision.rule === null && cause === 'MACHINE_FAILED' && begun && !job.restartable)
    return noted(
      { ...decision, action: 'FAIL', because: 'NO_RULE', delayS: null, retries: job.retries },
      job,
    );
  const elsewhere = decision.action === 'RETRY_ELSEWHERE';
  return noted(
    decision,
    job,
    elsewhere ? { failed: unionOf(decision.counted ? [...before, here] : before), last: here } : null,
  );
}

/** Somebody has stopped the run so that the next begins: that counts for nothing, and the next may be anywhere. */
export const requeued = ({ job: { retries, memoryMbPerTask } }: RetryFacts): Retried => ({
  ...{ rule: null, action: 'RETRY', because: null, counted: false, retries, delayS: 0 },
  ...{ memoryMb: memoryMbPerTask, avoids: null, note: 'requeued' },
});

/** Its run was stopped for another job: it is started again, unless a rule of its retries that names the cause says otherwise. */
export const decidePreempted = (
  facts: RetryFacts,
  end: Pick<RunReport, 'exitCode' | 'signal'>,
  preempted: PreemptedFor,
  maxAttempts: number,
): Retried => stoppedFor(facts, end, sayPreempted(preempted), maxAttempts);

/** The same at a peer, which decides about its runs only: what had begun and may not start again is over. */
export function stoppedThere(
  facts: RetryFacts,
  end: Pick<RunReport, 'exitCode' | 'signal'>,
  started: boolean,
  maxAttempts: number,
): Retried {
  const decided = stoppedFor(facts, end, 'stopped for another job where it ran', maxAttempts);
  return decided.rule === null && started && !facts.job.restartable
    ? { ...decided, action: 'FAIL', because: 'NO_RULE', delayS: null }
    : decided;
}

function stoppedFor(
  facts: RetryFacts,
  end: Pick<RunReport, 'exitCode' | 'signal'>,
  note: string,
  maxAttempts: number,
): Retried {
  const decided = decideNext(facts, { ...end, cause: 'PREEMPTED' }, maxAttempts);
  return decided.rule === null ? { ...decided, note } : decided;
}

export function sayPreempted({ jobId, holdId, class: of, preemptionClass, lostWork }: PreemptedFor): string {
  const which = of == null && preemptionClass === 0 ? '' : ` of class ${of ?? preemptionClass}`;
  return `stopped for ${jobId === null ? `hold_${holdId}` : `job_${jobId}${which}`}; lost ${sayCoreHours(lostWork)}`;
}

export const sayMakesRoom = (victims: readonly PreemptedRun[]): string =>
  victims.length === 0
    ? 'goes ahead because of its class'
    : `${sayJobs(victims)} stopped for it; lost ${sayCoreHours(victims.reduce((sum, { lostWork }) => sum + lostWork, 0))}`;

const sayJobs = (jobs: readonly { jobId: number }[]): string =>
  jobs.length <= JOBS_NAMED
    ? jobs.map(({ jobId }) => `job_${jobId}`).join(', ')
    : `job_${jobs[0]?.jobId} and ${jobs.length - 1} others`;
const JOBS_NAMED = 5;

const sayCoreHours = (coreS: number): string => `${Math.round(coreS / 36) / 100} core-hours`;

/** The note of a job that the site's own scheduler is asked for. */
export const RECALLED = 'recalled from its site: another site can start it now';

/** The site's own scheduler has given it back before it began: that counts for nothing, and the next run is at another site. */
export const givenBack = (facts: RetryFacts): Retried => ({
  ...requeued(facts),
  ...{ avoids: { failed: facts.here, last: facts.here }, note: 'taken back from its site' },
});

const noted = (decision: RetryDecision, job: RetryFacts['job'], avoids: Avoids | null = null): Retried => ({
  ...decision,
  avoids,
  note: sayRetry(decision, job),
});

/** The message of a job that waits for its next run. */
export const messageOfNext = (
  { message, cause }: Pick<RunReport, 'message' | 'cause'>,
  { state, retry }: { state: JobState; retry: Retried },
): string | null => (state === 'HELD' ? `${retry.note}: ${message ?? cause}` : message);

const unionOf = (places: readonly Places[]): Places => ({
  machines: [...new Set(places.flatMap(({ machines }) => machines))].sort((a, b) => a - b),
  sites: [...new Set(places.flatMap(({ sites }) => sites))].sort((a, b) => a - b),
});

/** Those on which a task of the job has room. */
function ableTo(job: RetryFacts['job'], machines: readonly RetryMachine[]): readonly RetryMachine[] {
  const { os, architecture } = job;
  const labels = labelsAskedBy(job);
  const constraint = labels === null ? null : parseAsked(labels);
  const asked = Object.entries(job.resourcesPerTask ?? {});
  return machines.filter(
    ({ machine, site }) =>
      (os ?? machine.os) === machine.os &&
      (architecture ?? machine.architecture) === machine.architecture &&
      (constraint === null || satisfies(labelsOf(machine, site), constraint)) &&
      machine.cpus >= job.cpusPerTask &&
      machine.memoryMb >= job.memoryMbPerTask &&
      asked.every(([kind, amount]) => (machine.resources?.[kind] ?? 0) >= amount),
  );
}

/**
 * Up to how much memory a task may grow: so much that some site still has room for all tasks at once, for a run that none has room for
 * would be waited for without end. Where no site has room as it is (machines come back), what the largest machine has (jobs.md).
 */
function largestMb(job: RetryFacts['job'], machines: readonly RetryMachine[]): number {
  const largest = Math.max(0, ...machines.map(({ machine }) => machine.memoryMb));
  const sites = new Map<string, RetryMachine[]>();
  for (const one of machines) sites.set(one.site, [...(sites.get(one.site) ?? []), one]);
  const fits = (memoryMb: number): boolean =>
    [...sites.values()].some(
      (site) => site.reduce((sum, { machine }) => sum + tasksOn(machine, job, memoryMb), 0) >= job.tasks,
    );
  let [least, most] = [job.memoryMbPerTask, largest];
  if (least >= most || !fits(least)) return largest;
  // The most with which it fits lies from the one to the other.
  while (least < most) {
    const middle = Math.ceil((least + most) / 2);
    if (fits(middle)) least = middle;
    else most = middle - 1;
  }
  return least;
}

/** Tasks of the job that the machine has room for when it is idle, each with so much memory. */
function tasksOn(
  { cpus, maxTasks, memoryMb: hasMb, resources }: RetryMachine['machine'],
  { cpusPerTask, resourcesPerTask }: RetryFacts['job'],
  memoryMb: number,
): number {
  const amounts = Object.entries(resourcesPerTask ?? {}).map(
    ([kind, asked]) => [resources?.[kind] ?? 0, asked] as const,
  );
  const most = (maxTasks ?? null) === null ? Math.floor(cpus / cpusPerTask) : 1;
  const rooms = [[hasMb, memoryMb] as const, ...amounts].map(([has, asked]) =>
    asked > 0 ? Math.floor(has / asked) : most,
  );
  return Math.min(most, ...rooms);
}

/** What was decided, in words; null: nothing that anybody asked for. */
function sayRetry(
  decision: RetryDecision,
  { retry, memoryMbPerTask: memoryMb }: RetryFacts['job'],
): string | null {
  const { rule, action, because, retries, delayS } = decision;
  const by = rule === null ? 'as for every job' : `by retry rule ${rule + 1}`;
  if (action === 'HOLD') return `held ${by}`;
  if (action === 'FAIL') {
    if (retry === null && because === 'NO_RULE') return null;
    switch (because) {
      case 'RULE':
        return `not retried ${by}`;
      case 'RETRIES_USED':
        return `not retried: all retries are used (${retries})`;
      case 'MEMORY_AT_MOST':
        return `not retried: its memory cannot grow beyond ${memoryMb} MB, as retry rule ${(rule as number) + 1} requires`;
      default:
        return 'not retried: no retry rule matches';
    }
  }
  const which = decision.counted ? `retry ${retries}` : 'retried, not counted,';
  const when = delayS === null || delayS === 0 ? 'at once' : `after ${delayS} s`;
  const where = action === 'RETRY_ELSEWHERE' ? ' elsewhere' : '';
  const more = decision.memoryMb === memoryMb ? '' : ` with ${decision.memoryMb} MB per task`;
  return `${which} ${when}${where}${more}, ${by}`;
}
