/** How a run ended: what is known of it, and what that means. */
import { constants } from 'node:os';
import type { EndCause, Measured } from '../runner.js';
import { saidByRuntime } from './image-runtimes.js';
import type { Isolation } from './isolation.js';
import { bytesOf } from './measure.js';
import type { End } from './reports.js';
import { type ProcessRun, upMs } from './run.js';
import { LANE_NAME } from './script.js';
import type { EndRecord } from './slot.js';

/** What is known of a run whose lane has written down how its command ended. */
export interface Ended {
  /** As a shell tells it: 128 + n after signal n. */
  code: number;
  /** When that was written down. */
  atMs: number;
  /** The same on the clock of durations. */
  atUpMs: number;
  /** Why its program was not started; null: it was. */
  unstarted: string | null;
  /** The kernel has ended it because it needed more memory than this, MB; null: it has not. */
  outOfMemoryMb: number | null;
  /** It took as long as it may. */
  outlasted: boolean;
  measured: Measured;
}

/** Why the agent asked a run to end; `message`: what its owner is told. */
export interface Reason {
  cause: EndCause;
  message: string | null;
}

/** With when it did, on the clock of durations. */
export type Asked = Reason & { askedAtMs: number };

/** The times of files are those of the last tick of the kernel's clock. */
const CLOCK_TICK_MS = 10;

const SIGNAL_NAMES = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));
/** What programs that launch others say is said with their name. */
const LAUNCHERS = ['bwrap: ', 'setpriv: '];

/** How a run ended that the agent has asked to end, for that reason, or not. */
export function endOf(ended: Ended, asked: Asked | null): End {
  const { code, atUpMs, unstarted, outOfMemoryMb, outlasted, measured } = ended;
  const signal = code > 128 ? (SIGNAL_NAMES.get(code - 128) ?? null) : null;
  const end = { exitCode: code, signal, message: null, ...measured };
  // Never the machine's fault: the words may be the job's, and would take machines from others.
  if (unstarted !== null) return { ...end, cause: 'LAUNCH_FAILED', exitCode: null, message: unstarted };
  if (outOfMemoryMb !== null) {
    const message = `it needed more than the ${outOfMemoryMb} MB that it requested`;
    return { ...end, cause: 'MEMORY_LIMIT', message };
  }
  // Whatever the code, because many programs answer SIGTERM with 0; but one that was over before ended by itself.
  const well = asked?.message === null && code === 0 && atUpMs < asked.askedAtMs - CLOCK_TICK_MS;
  if (asked && !well) return { ...end, ...reasonOf(asked) };
  // An agent before this one has asked it to end.
  if (signal !== null && outlasted) return { ...end, cause: 'RUN_TIME_LIMIT' };
  return { ...end, cause: code === 0 ? 'EXITED_ZERO' : signal ? 'SIGNALLED' : 'EXITED_NONZERO' };
}

/** How a run ended whose lane has died. */
export function lostEnd(message: string, asked: Reason | null, measured: Measured): End {
  return { cause: asked?.cause ?? 'LOST', message: asked?.message ?? message, ...measured };
}

/**
 * How a run ended, with what keeping its outputs has come to.
 *
 * @param problem what could not be kept; null: nothing
 * @param stays whether what there is stays at the site
 */
export function keptEnd(
  end: End,
  problem: string | null,
  seconds: number,
  asked: Reason | null,
  stays: boolean,
): End {
  const ioWaitS = end.ioWaitS === null || end.ioWaitS === undefined ? null : end.ioWaitS + seconds;
  const waited = { ...end, ioWaitS };
  if (problem === null) return waited;
  const well = end.cause === 'EXITED_ZERO';
  if (asked && well)
    return { ...waited, cause: asked.cause, message: 'canceled while its outputs were being saved' };
  const where = stays ? '; its directory stays at the site for a while' : '';
  const message = [end.message, `outputs not saved: ${problem}${where}`].filter(Boolean).join('; ');
  return { ...waited, cause: well ? 'OUTPUTS_FAILED' : end.cause, message };
}

const reasonOf = ({ cause, message }: Reason): Reason => ({ cause, message });

/** Looks at what a run has left, and used, whose lane has written down how it ended. */
export function lookAtEnd(
  run: ProcessRun,
  { code, atMs, childrenCpuS }: EndRecord,
  isolation: Isolation,
): Ended {
  // A clock tick is 10 ms, and what was rounded away before is added later: never below 0.
  const cpuS = Math.max(0, childrenCpuS - run.cpuBeforeS);
  run.slot.childrenCpuS = childrenCpuS;
  return {
    ...{ code, atMs, atUpMs: run.startedUpMs + atMs - run.startedAtMs },
    unstarted: code === 0 ? null : launchProblem(run, isolation),
    outOfMemoryMb: run.group?.usage().outOfMemory ? run.memoryMb : null,
    outlasted: outlasted(run, atMs),
    measured: measuredOf(run, cpuS),
  };
}

export function measuredOf(
  { slot, bytesBefore, group, meter, stagedS = 0 }: ProcessRun,
  cpuS: number | null,
): Measured {
  const now = bytesBefore && bytesOf(slot.lanePid);
  slot.bytes = now;
  const bytes = now && { read: now.read - bytesBefore.read, written: now.written - bytesBefore.written };
  const measured = meter.result(group?.usage() ?? null, { cpuS, bytes }, upMs());
  const { ioWaitS } = measured;
  // Its machines have waited for its inputs.
  return { ...measured, ioWaitS: ioWaitS === null ? null : ioWaitS + stagedS };
}

/** Whether the run took as long as it may. */
function outlasted({ startedAtMs, startedUpMs, runTimeLimitS }: ProcessRun, endedAtMs: number): boolean {
  const ranMs = Math.min(endedAtMs - startedAtMs, upMs() - startedUpMs);
  return runTimeLimitS !== null && ranMs >= runTimeLimitS * 1000;
}

/**
 * The shell's own words on standard error, or those of a launcher, where it could not start the program: that has changed since it was found,
 * say, or its interpreter is missing. null: the program was started.
 */
function launchProblem(
  { slot, outputs, image, terminal }: ProcessRun,
  { mode, accounts }: Isolation,
): string | null {
  const said = [outputs.err, ...(terminal ? [outputs.out] : [])].map((stream) => stream.beginning(4096));
  if (image) {
    for (const text of said) {
      const problem = saidByRuntime(text, image.program ?? 'its program');
      if (problem !== null) return problem;
    }
  }
  const launchers = mode === 'none' && !image ? [] : [...LAUNCHERS, ...(accounts?.launcherSays ?? [])];
  const prefixes = [`${LANE_NAME}: `, `${slot.dir}/run: `, ...launchers];
  const problem = said.find((text) => prefixes.some((prefix) => text.startsWith(prefix)));
  return problem === undefined
    ? null
    : prefixes.reduce((text, prefix) => text.replaceAll(prefix, ''), problem).trim();
}
