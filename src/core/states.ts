/**
 * The life of a job: THE table of its states and the transitions between them. Every place that changes a state asks
 * `assertTransition`; nothing else knows which changes are legal.
 *
 *   QUEUED      held by the root, or in the meta-queue of a site, from which it can still go elsewhere (diana.md)
 *   HELD        waiting for somebody to release it; goes back to the queue it came from, from a meta-queue to the root
 *   DISPATCHED  in the local queue of a site
 *   ASSIGNED    machines and licenses are taken, the site's agent has been told
 *   RUNNING     its processes run
 *   CANCELLING  its live run has been asked to stop
 *   COMPLETED, FAILED, CANCELLED   ended, each with a cause
 */

export const jobStates = [
  'QUEUED',
  'HELD',
  'DISPATCHED',
  'ASSIGNED',
  'RUNNING',
  'CANCELLING',
  'COMPLETED',
  'FAILED',
  'CANCELLED',
] as const;
export type JobState = (typeof jobStates)[number];

/** Why a run, and with its last run a job, ended. */
export const endCauses = [
  'EXITED_ZERO',
  'EXITED_NONZERO',
  'SIGNALLED',
  'RUN_TIME_LIMIT',
  'MEMORY_LIMIT',
  'LAUNCH_FAILED',
  'LOST',
  'REFUSED',
  'CANCELLED_BY_USER',
  'CANCELLED_BY_OPERATOR',
  'DEADLINE_PASSED',
  'NEVER_FITS',
] as const;
export type EndCause = (typeof endCauses)[number];

/** From each state (`NONE`: not submitted yet) to which others, and when. */
export const transitions: Readonly<Record<JobState | 'NONE', Readonly<Partial<Record<JobState, string>>>>> = {
  NONE: { QUEUED: 'submitted', HELD: 'submitted on hold' },
  QUEUED: {
    QUEUED: 'moved between the root and meta-queues',
    DISPATCHED: 'moved to a site',
    HELD: 'held',
    CANCELLED: 'cancelled',
    FAILED: 'can never run, or its deadline passed',
  },
  HELD: {
    QUEUED: 'released, or the site it was held at is gone',
    DISPATCHED: 'released at its site',
    CANCELLED: 'cancelled',
    FAILED: 'its deadline passed',
  },
  DISPATCHED: {
    ASSIGNED: 'started',
    QUEUED: 'taken back: the site is down, draining or can no longer run it',
    HELD: 'held',
    CANCELLED: 'cancelled',
    FAILED: 'its deadline passed',
  },
  ASSIGNED: {
    RUNNING: 'the agent reports the start',
    QUEUED: 'lost, refused or returned by the agent, and restartable',
    CANCELLING: 'asked to stop',
    COMPLETED: 'start and end reported together',
    FAILED: 'launch failed, lost for good, or start and failure reported together',
    CANCELLED: 'cancelled before the agent took it',
  },
  RUNNING: {
    COMPLETED: 'ended well',
    FAILED: 'ended badly',
    QUEUED: 'lost, and restartable',
    CANCELLING: 'asked to stop',
  },
  CANCELLING: {
    CANCELLED: 'stopped as asked',
    COMPLETED: 'ended well before the request reached it',
    FAILED: 'ended badly before the request reached it, or was lost',
  },
  COMPLETED: {},
  FAILED: {},
  CANCELLED: {},
};

const terminal: ReadonlySet<JobState> = new Set(['COMPLETED', 'FAILED', 'CANCELLED']);
const live: ReadonlySet<JobState> = new Set(['ASSIGNED', 'RUNNING', 'CANCELLING']);

/** The job has ended. */
export const isTerminal = (state: JobState): boolean => terminal.has(state);
/** The job has a live run: it occupies machines and licenses. */
export const isLive = (state: JobState): boolean => live.has(state);
/** Whether the table allows the change; null is a job that is not submitted yet. */
export const canTransition = (from: JobState | null, to: JobState): boolean =>
  to in transitions[from ?? 'NONE'];

/** Throws when the table does not allow the change, naming what would be. */
export function assertTransition(from: JobState | null, to: JobState): void {
  if (canTransition(from, to)) return;
  const accepted = Object.keys(transitions[from ?? 'NONE']).join(', ') || 'nothing: it has ended';
  throw new Error(`a job may not go from ${from ?? 'nothing'} to ${to}; accepted: ${accepted}`);
}
