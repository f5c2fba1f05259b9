/**
 * The state machine of jobs: the one list of actions and transitions. Everything else is derived from it: which states are live or
 * ended, here and in SQL; which transitions the database allows; which fields a statement writes; the table in docs/glossary.md.
 *
 *   QUEUED      held by the root, by a scheduler between it and sites (grid-tree.md), or in the meta-queue of a site, from which it
 *               can still go elsewhere (diana.md)
 *   BLOCKED     waiting for what it needs: other jobs, or a time, as between a run that failed and the next (jobs.md). No scheduler
 *               knows it
 *   HELD        waiting for somebody to release it; goes back to the queue it came from, from a meta-queue to the root
 *   DISPATCHED  in the local queue of a site
 *   ASSIGNED    machines and licenses are taken, the site's agent has been told
 *   RUNNING     its processes run
 *   CANCELLING  its live run has been asked to stop
 *   COMPLETED, FAILED, CANCELLED   ended, each with a cause
 */

export const jobStates = [
  'QUEUED',
  'BLOCKED',
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
  'STAGING_FAILED',
  'INPUT_MISMATCH',
  'OUTPUTS_FAILED',
  'CPU_LIMIT',
  'DISK_LIMIT',
  'PROCESS_LIMIT',
  'LAUNCH_FAILED',
  'MACHINE_FAILED',
  'LOST',
  'REFUSED',
  'CANCELLED_BY_USER',
  'CANCELLED_BY_OPERATOR',
  'DEADLINE_PASSED',
  // Nothing of its group has run, and no job of it has changed, for as long as the group allows.
  'IDLE_TIMEOUT',
  'NEVER_FITS',
  // Of a copy of a peer's job: its owner has it run elsewhere or wants it no more, or one side isolated itself.
  'WITHDRAWN',
  // Of a task only: another one of its run failed, and it was ended with it.
  'OTHER_TASK_FAILED',
  // Of a job that needed another one, which did not end, or start, as it was needed.
  'DEPENDENCY_FAILED',
  // Of a run that somebody stopped so that its job is started again.
  'REQUEUED',
  // Of a run that was stopped to make room for a job of a higher rank.
  'PREEMPTED',
] as const;
export type EndCause = (typeof endCauses)[number];

/** Who performs an action: whoever submits the job, a scheduler, a site's agent, a person, the service as time passes, or a peer. */
export type Actor = 'SUBMITTER' | 'SCHEDULER' | 'AGENT' | 'PERSON' | 'SERVICE' | 'PEER';

interface Action {
  readonly by: readonly Actor[];
  /** Fields of the job that it sets, besides the state. For `submit`: those that are not part of the job as submitted. */
  readonly sets?: readonly string[];
  /** Fields that it sets to null. */
  readonly clears?: readonly string[];
  /** Whether a run begins or ends with it. */
  readonly run?: 'BEGINS' | 'ENDS';
  /** States in which it is possible and that it does not change. */
  readonly keeps?: readonly JobState[];
}

const notEnded = ['QUEUED', 'BLOCKED', 'HELD', 'DISPATCHED', 'ASSIGNED', 'RUNNING', 'CANCELLING'] as const;
const atRoot = ['siteId', 'priority', 'dispatchedAt'] as const;

/** What people may change of a job that has not ended: neither where it waits nor how it runs depends on it. */
export const amendableFields = ['name', 'restartable', 'retry', 'mail', 'atOnce'] as const;
/** What people may change of a job that waits. */
export const changeableFields = [
  ...amendableFields,
  'project',
  'tasks',
  'cpusPerTask',
  'memoryMbPerTask',
  'resourcesPerTask',
  'devicesPerTask',
  'tasksPerMachine',
  'exclusive',
  'allAlike',
  'sameSwitch',
  'licenses',
  'resources',
  'os',
  'architecture',
  'machineConstraint',
  'estimateS',
  'benchmark',
  'runTimeLimitS',
  'warnS',
  'warnSignal',
  'killGraceS',
  'deadline',
  'boost',
  'class',
  'preemptionClass',
  'charged',
] as const;

/** All actions on jobs. `transitions` has the states from and to which each leads. */
export const jobActions = {
  submit: { by: ['SUBMITTER'], sets: ['userId', 'groupId', 'submittedAt', 'bytes', 'rerunOf', 'workflow'] },
  moveToMeta: { by: ['SCHEDULER'], sets: ['siteId', 'migratedAt', 'treeMoves'], clears: ['schedulerId'] },
  moveInTree: { by: ['SCHEDULER'], sets: ['schedulerId', 'treeMoves'], clears: atRoot },
  dispatch: {
    by: ['SCHEDULER', 'PEER'],
    sets: ['siteId', 'priority', 'dispatchedAt'],
    clears: ['schedulerId'],
  },
  takeBack: { by: ['SCHEDULER', 'PEER'], clears: atRoot },
  start: {
    by: ['SCHEDULER', 'PEER'],
    sets: ['epoch'],
    clears: ['startedAt', 'exitCode', 'message', 'avoids', 'promised'],
    run: 'BEGINS',
  },
  /** What a copy of a peer's job is to run comes with the grant of its claim. */
  grant: {
    by: ['PEER'],
    sets: ['command', 'arguments', 'environment', 'workingDirectory'],
    keeps: ['ASSIGNED', 'CANCELLING'],
  },
  reportStart: { by: ['AGENT', 'PEER'], sets: ['startedAt'], keeps: ['CANCELLING'] },
  /** Another site can start it now: the site's own scheduler is asked for it, and gives it back unless it has begun (`requeue`). */
  recall: { by: ['SCHEDULER'], sets: ['note'], keeps: ['ASSIGNED'] },
  /** Its run is stopped for a job of a higher rank. */
  preempt: { by: ['SCHEDULER'], sets: ['stopCause', 'preempted', 'note'] },
  /** Others are stopped for it. */
  promiseRoom: { by: ['SCHEDULER'], sets: ['promised', 'note'], keeps: ['DISPATCHED'] },
  /** A task has failed: those of its run that go on are told to end. */
  endTasks: { by: ['AGENT', 'SERVICE'], keeps: ['ASSIGNED', 'RUNNING', 'CANCELLING'] },
  reportEnd: {
    by: ['AGENT', 'SERVICE', 'PEER'],
    sets: ['cause', 'endedAt', 'exitCode', 'message', 'note', 'deadlineMissed'],
    run: 'ENDS',
  },
  requeue: {
    by: ['AGENT', 'SERVICE', 'PEER'],
    sets: ['message', 'note', 'retries', 'memoryMbPerTask', 'avoids'],
    clears: [...atRoot, 'startedAt', 'stopCause', 'preempted'],
    run: 'ENDS',
  },
  hold: { by: ['PERSON'], sets: ['siteId'], clears: ['schedulerId'] },
  setAside: { by: ['SERVICE'], sets: ['siteId', 'message'], clears: ['schedulerId'] },
  /** What it needs has happened, and it is due. */
  unblock: { by: ['SERVICE'], sets: ['eligibleAt', 'inputs'] },
  /** What it needs cannot happen any more. */
  unmet: { by: ['SERVICE'], sets: ['stopCause', 'cause', 'endedAt', 'deadlineMissed', 'message'] },
  holdUnmet: { by: ['SERVICE'], sets: ['message'] },
  /** What it needs is run again: it needs the copies from now on. */
  repoint: { by: ['PERSON'], sets: ['inputs', 'message', 'note'], keeps: ['BLOCKED', 'HELD'] },
  release: { by: ['PERSON'], sets: ['siteId', 'priority', 'dispatchedAt'], clears: ['avoids'] },
  boost: { by: ['PERSON'], sets: ['boost'], keeps: notEnded },
  amend: { by: ['PERSON'], sets: [...amendableFields, 'bytes', 'note'], keeps: notEnded },
  /** Schedulers decide about it anew. */
  change: {
    by: ['PERSON'],
    sets: [...changeableFields, 'bytes', 'note', 'message', 'eligibleAt', 'deadlineMissed'],
    clears: [...atRoot, 'schedulerId', 'promised'],
    keeps: ['QUEUED', 'BLOCKED', 'HELD'],
  },
  cancel: {
    by: ['PERSON', 'SERVICE'],
    sets: ['stopCause', 'cause', 'endedAt', 'deadlineMissed'],
    clears: ['schedulerId'],
  },
  stop: { by: ['PERSON', 'SERVICE'], sets: ['stopCause', 'deadlineMissed'] },
  /** It was to be started again once its run has stopped, and is not any more. */
  stopForGood: { by: ['PERSON', 'SERVICE'], sets: ['stopCause', 'deadlineMissed'], keeps: ['CANCELLING'] },
  /** Its run is sent a signal, and goes on unless it ends because of it. */
  signal: { by: ['PERSON'], sets: ['note'], keeps: ['RUNNING'] },
  missDeadline: { by: ['SERVICE'], sets: ['deadlineMissed'], keeps: notEnded },
} as const satisfies Record<string, Action>;
export type JobAction = keyof typeof jobActions;

/** From a state (null: not submitted yet) to another, by an action. `when`: in words, for the glossary. */
export interface Transition {
  from: JobState | null;
  to: JobState;
  action: JobAction;
  when: string;
}

/** All there are. */
export const transitions: readonly Transition[] = [
  { from: null, to: 'QUEUED', action: 'submit', when: 'submitted' },
  { from: null, to: 'HELD', action: 'submit', when: 'submitted on hold' },
  { from: null, to: 'BLOCKED', action: 'submit', when: 'submitted with dependencies, or for a later time' },
  {
    from: 'BLOCKED',
    to: 'QUEUED',
    action: 'unblock',
    when: 'its dependencies are satisfied, and it is due',
  },
  {
    from: 'BLOCKED',
    to: 'CANCELLED',
    action: 'unmet',
    when: 'its dependencies can no longer be satisfied (`onUnmet: CANCEL`)',
  },
  {
    from: 'BLOCKED',
    to: 'HELD',
    action: 'holdUnmet',
    when: 'its dependencies can no longer be satisfied (`onUnmet: HOLD`)',
  },
  {
    from: 'HELD',
    to: 'BLOCKED',
    action: 'repoint',
    when: 'a dependency that could no longer be satisfied is run again',
  },
  { from: 'BLOCKED', to: 'HELD', action: 'hold', when: 'held' },
  { from: 'BLOCKED', to: 'CANCELLED', action: 'cancel', when: 'canceled, or its deadline passed' },
  { from: 'HELD', to: 'BLOCKED', action: 'release', when: 'released while it waits for its dependencies' },
  {
    from: 'QUEUED',
    to: 'QUEUED',
    action: 'moveToMeta',
    when: 'moved to a meta-queue, from the root or another one',
  },
  {
    from: 'QUEUED',
    to: 'QUEUED',
    action: 'moveInTree',
    when: 'moved to a scheduler between the root and sites, or from one to the root',
  },
  { from: 'QUEUED', to: 'QUEUED', action: 'takeBack', when: 'taken back from a meta-queue' },
  { from: 'QUEUED', to: 'DISPATCHED', action: 'dispatch', when: 'moved to a site' },
  { from: 'QUEUED', to: 'HELD', action: 'hold', when: 'held' },
  { from: 'QUEUED', to: 'HELD', action: 'setAside', when: 'set aside: no plan with it can be carried out' },
  { from: 'QUEUED', to: 'CANCELLED', action: 'cancel', when: 'canceled, or its deadline passed' },
  {
    from: 'HELD',
    to: 'QUEUED',
    action: 'release',
    when: 'released, or the site at which it was held was removed',
  },
  { from: 'HELD', to: 'DISPATCHED', action: 'release', when: 'released at its site' },
  { from: 'HELD', to: 'CANCELLED', action: 'cancel', when: 'canceled, or its deadline passed' },
  { from: 'DISPATCHED', to: 'ASSIGNED', action: 'start', when: 'started' },
  {
    from: 'DISPATCHED',
    to: 'QUEUED',
    action: 'takeBack',
    when: 'taken back: the site is down, draining or can no longer run it',
  },
  {
    from: 'QUEUED',
    to: 'BLOCKED',
    action: 'change',
    when: 'changed: it waits for other jobs, or for a time',
  },
  { from: 'DISPATCHED', to: 'QUEUED', action: 'change', when: 'changed' },
  {
    from: 'DISPATCHED',
    to: 'BLOCKED',
    action: 'change',
    when: 'changed: it waits for other jobs, or for a time',
  },
  { from: 'DISPATCHED', to: 'HELD', action: 'hold', when: 'held' },
  {
    from: 'DISPATCHED',
    to: 'HELD',
    action: 'setAside',
    when: 'set aside: no plan with it can be carried out',
  },
  { from: 'DISPATCHED', to: 'CANCELLED', action: 'cancel', when: 'canceled, or its deadline passed' },
  { from: 'ASSIGNED', to: 'RUNNING', action: 'reportStart', when: 'the agent reports the start' },
  { from: 'ASSIGNED', to: 'COMPLETED', action: 'reportEnd', when: 'succeeded, and no start was reported' },
  { from: 'ASSIGNED', to: 'FAILED', action: 'reportEnd', when: 'launch failed, or lost for good' },
  {
    from: 'ASSIGNED',
    to: 'QUEUED',
    action: 'requeue',
    when: 'its run failed, was lost, refused, returned or taken back, and it is started again',
  },
  { from: 'ASSIGNED', to: 'BLOCKED', action: 'requeue', when: 'started again after a delay' },
  { from: 'ASSIGNED', to: 'HELD', action: 'requeue', when: 'a retry rule holds it' },
  { from: 'ASSIGNED', to: 'CANCELLING', action: 'stop', when: 'asked to stop' },
  { from: 'ASSIGNED', to: 'CANCELLING', action: 'preempt', when: 'stopped to make room for another job' },
  { from: 'RUNNING', to: 'COMPLETED', action: 'reportEnd', when: 'succeeded' },
  { from: 'RUNNING', to: 'FAILED', action: 'reportEnd', when: 'failed, or lost for good' },
  {
    from: 'RUNNING',
    to: 'QUEUED',
    action: 'requeue',
    when: 'its run failed or was lost, and it is started again',
  },
  { from: 'RUNNING', to: 'BLOCKED', action: 'requeue', when: 'started again after a delay' },
  { from: 'RUNNING', to: 'HELD', action: 'requeue', when: 'a retry rule holds it' },
  { from: 'RUNNING', to: 'CANCELLING', action: 'stop', when: 'asked to stop' },
  { from: 'RUNNING', to: 'CANCELLING', action: 'preempt', when: 'stopped to make room for another job' },
  { from: 'CANCELLING', to: 'QUEUED', action: 'requeue', when: 'stopped, to be started again' },
  { from: 'CANCELLING', to: 'HELD', action: 'requeue', when: 'a retry rule holds it' },
  {
    from: 'CANCELLING',
    to: 'COMPLETED',
    action: 'reportEnd',
    when: 'succeeded before the request reached it',
  },
  { from: 'CANCELLING', to: 'CANCELLED', action: 'reportEnd', when: 'stopped as asked, or ended otherwise' },
];

const rules: Record<JobAction, Action> = jobActions;
const next = new Map<JobState | null, ReadonlySet<JobState>>(
  [null, ...jobStates].map((state) => [
    state,
    new Set(transitions.filter(({ from }) => from === state).map(({ to }) => to)),
  ]),
);

const reached = new Map(
  (Object.keys(rules) as JobAction[]).map((action) => [
    action,
    {
      from: new Set<JobState | null>([
        ...transitions.filter((one) => one.action === action).map(({ from }) => from),
        ...(rules[action].keeps ?? []),
      ]),
      to: transitions.filter((one) => one.action === action).map(({ to }) => to),
    },
  ]),
);

/** The states in which a run begins, and those reached from them before it ends. */
function statesWithRun(): ReadonlySet<JobState> {
  const found = new Set<JobState>();
  for (let size = -1; size < found.size; ) {
    size = found.size;
    for (const { from, to, action } of transitions) {
      const { run } = rules[action];
      if (run === 'BEGINS' || (run === undefined && from !== null && found.has(from))) found.add(to);
    }
  }
  return found;
}
const live = statesWithRun();
const ended: ReadonlySet<JobState> = new Set(jobStates.filter((state) => next.get(state)?.size === 0));

/** Whether the action is possible in this state. */
export const possible = (action: JobAction, state: JobState): boolean =>
  (reached.get(action) as { from: ReadonlySet<JobState | null> }).from.has(state);

/** The job has a live run: it occupies machines and licenses. */
export const liveStates: readonly JobState[] = jobStates.filter((state) => live.has(state));
/** The job has ended: no transition leads on. */
export const endedStates: readonly JobState[] = jobStates.filter((state) => ended.has(state));
/** The job waits: neither live nor ended. */
export const waitingStates: readonly JobState[] = jobStates.filter(
  (state) => !live.has(state) && !ended.has(state),
);

/** The job waits for a scheduler: for its dispatch or start. */
export const pendingStates: readonly JobState[] = waitingStates.filter(
  (state) => possible('dispatch', state) || possible('start', state),
);
/** The job can be cancelled, at once or by stopping its run. */
export const cancellableStates: readonly JobState[] = jobStates.filter(
  (state) => possible('cancel', state) || possible('stop', state),
);
/** Groups of states that lists are asked for, by name. The clients of the API have them as constants (scripts/codegen-documents.mjs). */
export const stateGroups = {
  WAITING: waitingStates,
  PENDING: pendingStates,
  LIVE: liveStates,
  ACTIVE: [...waitingStates, ...liveStates],
  ENDED: endedStates,
  CANCELLABLE: cancellableStates,
};
const pending: ReadonlySet<JobState> = new Set(pendingStates);

/** The job waits for a scheduler. */
export const isPending = (state: JobState): boolean => pending.has(state);
/** The job waits, for a scheduler or for its release. */
export const isWaiting = (state: JobState): boolean => !live.has(state) && !ended.has(state);
/** The job has ended. */
export const isTerminal = (state: JobState): boolean => ended.has(state);
/** The job has a live run: it occupies machines and licenses. */
export const isLive = (state: JobState): boolean => live.has(state);

/** The state to which the action leads, if it is always the same. */
export function stateAfter(action: JobAction): JobState | null {
  const states = new Set((reached.get(action) as { to: JobState[] }).to);
  return states.size === 1 ? ([...states][0] as JobState) : null;
}

/** Whether there is such a transition; null is a job that is not submitted yet. */
export const canTransition = (from: JobState | null, to: JobState): boolean =>
  next.get(from)?.has(to) ?? false;

/** Throws when there is no such transition, naming what there is. */
export function assertTransition(from: JobState | null, to: JobState): void {
  if (canTransition(from, to)) return;
  const states = [...(next.get(from) ?? [])].join(' or ');
  const allowed = states === '' ? 'it has ended' : `only to ${states}`;
  throw new Error(`${from === null ? 'a new job' : `a job that is ${from}`} cannot become ${to}: ${allowed}`);
}
