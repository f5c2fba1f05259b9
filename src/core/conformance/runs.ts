/** The rules of jobs.md on how runs end. */
import { type Amounts, type PreemptibleRun, preemptionFor } from '../runs/preemption.js';
import { decideRetry, type Retry, type RetryDecision, type RunEnd, retryMachines } from '../runs/retry.js';
import { type RunProgram, type RunStop, type RunTimes, signalledRun } from '../runs/signals.js';
import type { Rules } from './rule.js';

interface RetryInput {
  retry: Retry;
  maxAttempts: number;
  restartable: boolean;
  memoryMb: number;
  largestMb: number;
  machines: string[];
  ends: (RunEnd & { machine: string })[];
}

/** Besides these the program, under a name that the core may not use: elsewhere it is Node's. */
type SignalsInput = RunTimes & { stop: RunStop | readonly RunStop[] | null };

interface PreemptInput {
  now: number;
  graceS: number;
  exemptS: number;
  winnerClass: number;
  winnerStartsAt: number | null;
  request: { tasks: number; perTask: Amounts };
  machines: { id: string; free: Amounts }[];
  candidates: PreemptibleRun[];
}

export const runRules: Rules = {
  retry: ({ ends, machines, ...job }: RetryInput) => {
    const failedOn = new Set<string>();
    const steps: object[] = [];
    let [retries, memoryMb, action] = [0, job.memoryMb, 'RETRY' as RetryDecision['action']];
    for (const end of ends) {
      if (action === 'FAIL' || action === 'HOLD') break;
      const { counted, ...step } = decideRetry({ ...job, retries, memoryMb }, end);
      if (counted) failedOn.add(end.machine);
      ({ retries, memoryMb, action } = step);
      const next = step.delayS === null ? null : retryMachines(action, machines, failedOn, end.machine);
      steps.push({ ...step, machines: next });
    }
    return steps;
  },

  limit_signals: ({
    startedAt,
    runTimeLimitS,
    warnS,
    warnSignal,
    killGraceS,
    stop,
    ...rest
  }: SignalsInput) => {
    const [program] = Object.values(rest) as [RunProgram];
    const times = { startedAt, runTimeLimitS, warnS, warnSignal, killGraceS };
    return signalledRun(times, stop === null ? [] : [stop].flat(), program);
  },

  preempt_victims: ({ winnerClass, winnerStartsAt, request, machines, candidates, ...times }: PreemptInput) =>
    preemptionFor({ class: winnerClass, startsAt: winnerStartsAt, ...request }, machines, candidates, times),
};
