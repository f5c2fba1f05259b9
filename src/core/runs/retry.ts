/**
 * What becomes of a job when a run of it has ended badly (jobs.md, "Retries"): started again, perhaps elsewhere, later and with more
 * memory; held for a person; or failed.
 */

export const retryActions = ['RETRY', 'RETRY_ELSEWHERE', 'FAIL', 'HOLD'] as const;
export type RetryAction = (typeof retryActions)[number];

/** It matches an end if one entry of one of its lists does; all null: every end. */
export interface RetryRule {
  readonly causes: readonly string[] | null;
  /** From and to, both included. After signal n a code is 128 + n. */
  readonly exitCodes: readonly { readonly from: number; readonly to: number }[] | null;
  readonly signals: readonly string[] | null;
  readonly action: RetryAction;
  /** Memory of the next run over that of this one, at least 1. */
  readonly memoryFactor: number;
  /** At most so much, MB; null: as much as the largest machine that may run it has. */
  readonly memoryMaxMb: number | null;
}

export interface Retry {
  readonly maxRetries: number;
  /** Seconds from the end of a run to when the next may start: `backoffS` times `factor` for each retry before, at most `maxBackoffS`. */
  readonly backoffS: number;
  readonly factor: number;
  readonly maxBackoffS: number;
  readonly rules: readonly RetryRule[];
}

/** Of a job that says nothing of retries: only what is retried without a rule is. */
export const NO_RETRIES: Retry = { maxRetries: 0, backoffS: 30, factor: 2, maxBackoffS: 3600, rules: [] };
export const RETRY_LIMITS = { retries: 100, factor: 10, rules: 20 } as const;

export interface RunEnd {
  readonly cause: string;
  readonly exitCode: number | null;
  readonly signal: string | null;
}

/** What is known of the job when the run ends. */
export interface RetriedJob {
  readonly retry: Retry;
  /** Of the policy: runs in all of what is retried without a rule. */
  readonly maxAttempts: number;
  readonly restartable: boolean;
  /** Counted retries made before. */
  readonly retries: number;
  /** For each task; 0: nothing was asked. */
  readonly memoryMb: number;
  /** Of the largest machine that may run it. */
  readonly largestMb: number;
}

export interface RetryDecision {
  /** The position of the rule that decided; null: none did. */
  readonly rule: number | null;
  readonly action: RetryAction;
  /** Why it fails; null: it does not. */
  readonly because: 'RULE' | 'NO_RULE' | 'RETRIES_USED' | 'MEMORY_AT_MOST' | null;
  /** The run counts as a failed one: towards the retries, and against its machine. */
  readonly counted: boolean;
  /** Counted retries made, this one included. */
  readonly retries: number;
  /** From the end of the run to when the next may start, seconds; null: there is none. */
  readonly delayS: number | null;
  /** Of the next run; where there is none, of this. */
  readonly memoryMb: number;
}

/** After these there is nothing to retry; no rule may name one. */
export const NEVER_RETRIED: ReadonlySet<string> = new Set([
  'EXITED_ZERO',
  'CANCELLED_BY_USER',
  'CANCELLED_BY_OPERATOR',
  'DEADLINE_PASSED',
  'IDLE_TIMEOUT',
  'NEVER_FITS',
  'DEPENDENCY_FAILED',
  'WITHDRAWN',
]);
/** No fault of the job: retried at once and without limit, unless a rule names the cause. */
const UNCOUNTED: ReadonlySet<string> = new Set(['PREEMPTED', 'DRAINED', 'GIVEN_UP']);
/** What is done about them where no rule matches, up to the policy's `maxAttempts`. The rest fails. */
const WITHOUT_RULE: Readonly<Record<string, RetryAction>> = {
  LOST: 'RETRY',
  STAGING_FAILED: 'RETRY',
  MACHINE_FAILED: 'RETRY_ELSEWHERE',
};
/** After any other cause, codes and signals are only its consequence: 137 after a limit is no lack of memory. */
const OF_THE_PROGRAM: ReadonlySet<string> = new Set(['EXITED_NONZERO', 'SIGNALLED']);
/** What a product may lie above the whole number that it is, MB. */
const ROUNDING = 1e-6;

export function decideRetry(job: RetriedJob, end: RunEnd): RetryDecision {
  const { retry, retries, memoryMb } = job;
  const counted = !UNCOUNTED.has(end.cause);
  const found = NEVER_RETRIED.has(end.cause) ? -1 : retry.rules.findIndex((rule) => matches(rule, end));
  const rule = found === -1 ? null : found;
  const action = rule === null ? withoutRule(job, end) : (retry.rules[rule] as RetryRule).action;
  const stays = { rule, counted, retries, memoryMb, delayS: null, because: null };
  const fail = (because: NonNullable<RetryDecision['because']>): RetryDecision => ({
    ...stays,
    action: 'FAIL',
    because,
  });
  if (action === 'FAIL') return fail(rule === null ? 'NO_RULE' : 'RULE');
  if (action === 'HOLD') return { ...stays, action, counted: false };
  if (!counted) return { ...stays, action, delayS: 0 };
  const most = rule === null ? Math.max(retry.maxRetries, job.maxAttempts - 1) : retry.maxRetries;
  if (retries >= most) return fail('RETRIES_USED');
  const grown = rule === null ? memoryMb : grownMb(retry.rules[rule] as RetryRule, job);
  if (grown === null) return fail('MEMORY_AT_MOST');
  const delayS = Math.min(retry.maxBackoffS, retry.backoffS * retry.factor ** retries);
  return { ...stays, action, retries: retries + 1, delayS, memoryMb: grown };
}

function withoutRule({ restartable }: RetriedJob, { cause }: RunEnd): RetryAction {
  if (UNCOUNTED.has(cause)) return 'RETRY';
  return cause === 'LOST' && !restartable ? 'FAIL' : (WITHOUT_RULE[cause] ?? 'FAIL');
}

function matches({ causes, exitCodes, signals }: RetryRule, { cause, exitCode, signal }: RunEnd): boolean {
  if (causes?.includes(cause)) return true;
  if (UNCOUNTED.has(cause)) return false;
  if (causes === null && exitCodes === null && signals === null) return true;
  if (!OF_THE_PROGRAM.has(cause)) return false;
  const name = cause === 'SIGNALLED' ? signal : null;
  const number = name === null ? undefined : SIGNAL_NUMBERS[name];
  const code = cause === 'EXITED_NONZERO' ? exitCode : number === undefined ? exitCode : 128 + number;
  if (name !== null && signals?.includes(name)) return true;
  return code !== null && (exitCodes ?? []).some(({ from, to }) => from <= code && code <= to);
}

/** Memory of the next run; null: it cannot grow, and the run would end the same. */
function grownMb(
  { memoryFactor, memoryMaxMb }: RetryRule,
  { memoryMb, largestMb }: RetriedJob,
): number | null {
  if (memoryMb === 0 || memoryFactor === 1) return memoryMb;
  const most = Math.min(memoryMaxMb ?? Infinity, largestMb);
  const grown = Math.min(most, Math.ceil(memoryMb * memoryFactor - ROUNDING));
  return grown > memoryMb ? grown : null;
}

/**
 * The machines of the next run, of those that may run the job: after RETRY_ELSEWHERE not where a counted run of it has failed; if none
 * is left, any but the last.
 */
export function retryMachines<Machine>(
  action: RetryAction,
  machines: readonly Machine[],
  failedOn: ReadonlySet<Machine>,
  last: Machine,
): readonly Machine[] {
  if (action !== 'RETRY_ELSEWHERE') return machines;
  const untried = machines.filter((machine) => !failedOn.has(machine));
  if (untried.length > 0) return untried;
  const others = machines.filter((machine) => machine !== last);
  return others.length > 0 ? others : machines;
}

/** Of Linux, on all architectures that machines here have. */
export const SIGNAL_NUMBERS: Readonly<Record<string, number>> = {
  ...{ SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGILL: 4, SIGTRAP: 5, SIGABRT: 6, SIGIOT: 6, SIGBUS: 7 },
  ...{ SIGFPE: 8, SIGKILL: 9, SIGUSR1: 10, SIGSEGV: 11, SIGUSR2: 12, SIGPIPE: 13, SIGALRM: 14 },
  ...{ SIGTERM: 15, SIGSTKFLT: 16, SIGCHLD: 17, SIGCONT: 18, SIGSTOP: 19, SIGTSTP: 20, SIGTTIN: 21 },
  ...{ SIGTTOU: 22, SIGURG: 23, SIGXCPU: 24, SIGXFSZ: 25, SIGVTALRM: 26, SIGPROF: 27, SIGWINCH: 28 },
  ...{ SIGIO: 29, SIGPOLL: 29, SIGPWR: 30, SIGSYS: 31 },
};
