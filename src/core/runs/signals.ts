/**
 * The signals that a run gets, and how it ends (jobs.md, "Times of one run"): a warning before its limit, SIGTERM at the limit or when it
 * is stopped, SIGKILL after a grace.
 */

export interface RunTimes {
  /** When its processes started. */
  readonly startedAt: number;
  /** null: none. */
  readonly runTimeLimitS: number | null;
  /** How long before the limit it is warned; 0 or null: never. */
  readonly warnS: number | null;
  readonly warnSignal: string;
  /** From SIGTERM to SIGKILL at the limit. */
  readonly killGraceS: number;
}

/** That it is stopped before it ends by itself. */
export interface RunStop {
  readonly at: number;
  readonly graceS: number;
  readonly cause: 'PREEMPTED' | 'REQUEUED' | 'CANCELLED_BY_USER' | 'CANCELLED_BY_OPERATOR';
}

/** What a program would do. */
export interface RunProgram {
  /** By itself it ends after so long, with this code. */
  readonly runS: number;
  readonly exitCode: number;
  /** After the warning, and after the first SIGTERM; null: it goes on. */
  readonly onWarn: Answer | null;
  readonly onTerm: Answer | null;
}

/** It ends so much later, with the code or, null, by the signal. */
export interface Answer {
  readonly afterS: number;
  readonly exitCode: number | null;
}

export interface SignalledRun {
  readonly signals: { at: number; signal: string }[];
  readonly endedAt: number;
  readonly state: 'COMPLETED' | 'FAILED' | 'CANCELLED' | 'QUEUED';
  readonly cause: RunStop['cause'] | 'RUN_TIME_LIMIT' | 'EXITED_ZERO' | 'EXITED_NONZERO' | 'SIGNALLED';
  readonly exitCode: number | null;
  readonly signal: string | null;
}

/** When the run is warned, asked to end and killed if it goes on, and why; Infinity: never. */
export interface SignalTimes {
  readonly warnAt: number;
  readonly termAt: number;
  readonly killAt: number;
  readonly cause: RunStop['cause'] | 'RUN_TIME_LIMIT' | null;
}

export function signalTimes(times: RunTimes, stops: readonly RunStop[]): SignalTimes {
  const { startedAt, runTimeLimitS, warnS, killGraceS } = times;
  const limitAt = startedAt + (runTimeLimitS ?? Infinity);
  let begin: { at: number; cause: SignalTimes['cause'] } = {
    at: limitAt,
    cause: runTimeLimitS === null ? null : 'RUN_TIME_LIMIT',
  };
  let killAt = limitAt + killGraceS;
  for (const { at, graceS, cause } of stops) {
    if (at < begin.at) begin = { at, cause };
    killAt = Math.min(killAt, at + graceS);
  }
  const warns = runTimeLimitS !== null && warnS !== null && warnS > 0;
  const warnAt = warns ? Math.max(startedAt, limitAt - warnS) : Infinity;
  return {
    warnAt: warnAt < begin.at ? warnAt : Infinity,
    // Without a grace it is killed at once.
    termAt: begin.at < killAt ? begin.at : Infinity,
    killAt,
    cause: begin.cause,
  };
}

/** Throws for a time that is not finite or below 0. */
export function signalledRun(times: RunTimes, stops: readonly RunStop[], program: RunProgram): SignalledRun {
  checkTimes(times, stops, program);
  const { warnAt, termAt, killAt, cause } = signalTimes(times, stops);
  const signals: SignalledRun['signals'] = [];
  let end: Pick<SignalledRun, 'endedAt' | 'exitCode' | 'signal'> = {
    endedAt: times.startedAt + program.runS,
    exitCode: program.exitCode,
    signal: null,
  };
  /** A program that ends at the instant of a signal gets none; of ends at one instant the one that was under way first counts. */
  const send = (at: number, signal: string, answer: Answer | null): void => {
    if (at >= end.endedAt) return;
    signals.push({ at, signal });
    if (answer === null || at + answer.afterS >= end.endedAt) return;
    const { exitCode } = answer;
    end = { endedAt: at + answer.afterS, exitCode, signal: exitCode === null ? signal : null };
  };
  send(warnAt, times.warnSignal, program.onWarn);
  const warned = signals.length;
  send(termAt, 'SIGTERM', program.onTerm);
  send(killAt, 'SIGKILL', { afterS: 0, exitCode: null });
  return { signals, ...end, ...outcomeOf(end, signals.length > warned ? cause : null) };
}

/** `stopped`: what SIGTERM or SIGKILL was sent for; it is the cause whatever the code, because many programs answer SIGTERM with 0. */
function outcomeOf(
  { exitCode }: { exitCode: number | null },
  stopped: SignalTimes['cause'],
): Pick<SignalledRun, 'state' | 'cause'> {
  switch (stopped) {
    case 'RUN_TIME_LIMIT':
      return { state: 'FAILED', cause: stopped };
    case 'PREEMPTED':
    case 'REQUEUED':
      return { state: 'QUEUED', cause: stopped };
    case 'CANCELLED_BY_USER':
    case 'CANCELLED_BY_OPERATOR':
      return { state: 'CANCELLED', cause: stopped };
    case null:
      if (exitCode === 0) return { state: 'COMPLETED', cause: 'EXITED_ZERO' };
      return { state: 'FAILED', cause: exitCode === null ? 'SIGNALLED' : 'EXITED_NONZERO' };
  }
}

function checkTimes(times: RunTimes, stops: readonly RunStop[], { runS, onWarn, onTerm }: RunProgram): void {
  const all: [string, number | null][] = [
    ['startedAt', times.startedAt],
    ['runTimeLimitS', times.runTimeLimitS],
    ['warnS', times.warnS],
    ['killGraceS', times.killGraceS],
    ['program.runS', runS],
    ['program.onWarn.afterS', onWarn?.afterS ?? null],
    ['program.onTerm.afterS', onTerm?.afterS ?? null],
    ...stops.flatMap(({ at, graceS }): [string, number][] => [
      ['stop.at', at],
      ['stop.graceS', graceS],
    ]),
  ];
  for (const [name, value] of all) {
    if (value === null || (Number.isFinite(value) && value >= 0)) continue;
    throw new RangeError(`${name} is ${value}; accepted: finite seconds, 0 or more`);
  }
}
