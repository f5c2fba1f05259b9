/** How runs end that the site's own scheduler runs: by their own word, and by the scheduler's where they left none. */
import { endOf } from '../process/ends.js';
import type { End } from '../process/reports.js';
import { type EndCause, UNMEASURED } from '../runner.js';
import type { Handed } from './handed.js';
import type { LocalJob } from './scheduler.js';
import { type EndMark, KILLED, TIMED_OUT } from './script.js';

/** The run's own word; what the scheduler says explains it. */
export function endOfRun({ assignment, beganMs, listed, asked }: Handed, mark: EndMark, label: string): End {
  const { code, cpuS, readMb, writtenMb, atMs } = mark;
  const { runTimeLimitS, tasks, memoryMbPerTask } = assignment;
  const timedOut =
    (code === TIMED_OUT || code === KILLED) &&
    runTimeLimitS !== null &&
    atMs - (beganMs ?? 0) >= runTimeLimitS * 1000 - 50;
  const killed = listed?.ended ?? null;
  const limit: EndCause | null = timedOut || killed === 'RUN_TIME_LIMIT' ? 'RUN_TIME_LIMIT' : null;
  const cause = asked === null ? limit : 'CANCELLED_BY_USER';
  const measured = {
    ...UNMEASURED,
    ...(tasks === 1 && cpuS !== null && { cpuS, cpuMethod: 'PROC' as const }),
    ...(tasks === 1 && readMb !== null && { readMb, writtenMb, bytesMethod: 'PROC' as const }),
  };
  const end = endOf(
    {
      // Clocks of two hosts do not tell which came first: a command that ended with 0 has ended by itself.
      ...{ code, atMs, atUpMs: 0, unstarted: null, measured, outlasted: false },
      outOfMemoryMb: killed === 'MEMORY_LIMIT' ? memoryMbPerTask : null,
    },
    cause && { cause, message: null, askedAtMs: Number.POSITIVE_INFINITY },
  );
  if (cause !== null || !isKilled(mark) || listed === null) return end;
  // The site took its machines away, or ended it: it is not the job's own doing.
  if (killed === 'LOST') return { ...end, cause: 'LOST', message: `${label} reports ${listed.words}` };
  return killed === 'CANCELLED' ? { ...end, message: 'canceled at the site' } : end;
}

/** As a shell tells it: by a signal. */
export const isKilled = ({ code }: EndMark): boolean => code > 128;

/** Of a run that began and has left no word. */
export function endThere(run: Handed, job: LocalJob, label: string): End {
  const { ended, words } = job;
  if (run.asked !== null) return { cause: 'CANCELLED_BY_USER', message: null };
  if (startedAgain(run, job)) return { cause: 'LOST', message: `${label} lost it and started it again` };
  if (ended === 'CANCELLED') return { cause: 'SIGNALLED', message: 'canceled at the site' };
  return { cause: ended ?? 'LOST', message: `${label} reports ${words}` };
}

/**
 * A scheduler that has forgotten that it started a run kills it without a word when its node tells of it, and starts it once more: what it then
 * says of that start, which the guard refuses, is not said of the run. Such a start is later than one that was listed before, or than the run's
 * own beginning: told by durations, since clocks differ, and by more than a second, since schedulers count whole ones.
 */
const startedAgain = (
  { beganMs, submittedMs, startedAfterS: before }: Handed,
  { startedAfterS: start = null }: LocalJob,
): boolean =>
  beganMs !== null && start !== null && (start >= before + 1 || start > (beganMs - submittedMs) / 1000 + 1);

/** Of a run that has not begun: the service tries again. */
export const neverBegan = ({ words }: LocalJob, label: string): End => ({
  cause: 'MACHINE_FAILED',
  message: `it never started: ${label} reports ${words}`,
});
