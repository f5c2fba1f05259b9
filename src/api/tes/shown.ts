/** Jobs as tasks: their states, and what each view shows of them. */
import { posix } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type EndCause, isTerminal, isWaiting, type JobState, jobStates } from '../../core/states.js';
import { urlBelow } from '../../platform/urls.js';
import type { TesTask } from './document.js';
import type { TesDetailsQuery } from './documents.gql.js';
import { taskOfJob, withUrls } from './job.js';
import { SYSTEM_ERROR_CODE, toldBy } from './script.js';

export const VIEWS = ['MINIMAL', 'BASIC', 'FULL'] as const;
export type View = (typeof VIEWS)[number];

export const TES_STATES = [
  ...['UNKNOWN', 'QUEUED', 'INITIALIZING', 'RUNNING', 'PAUSED', 'COMPLETE', 'EXECUTOR_ERROR', 'SYSTEM_ERROR'],
  ...['CANCELED', 'PREEMPTED', 'CANCELING'],
] as const;

interface Ended {
  state: JobState;
  cause: EndCause | null;
  exitCode: number | null;
}

/** Of the states that are not QUEUED, RUNNING or an error there. */
const STATES: Readonly<Partial<Record<JobState, string>>> = {
  HELD: 'PAUSED',
  ASSIGNED: 'INITIALIZING',
  CANCELLING: 'CANCELING',
  COMPLETED: 'COMPLETE',
  CANCELLED: 'CANCELED',
};

/** Ends that the program has brought about, by what it did or by what it took. */
const OF_EXECUTORS: ReadonlySet<EndCause | null> = new Set([
  ...(['EXITED_NONZERO', 'SIGNALLED', 'RUN_TIME_LIMIT', 'MEMORY_LIMIT', 'CPU_LIMIT'] as const),
  ...(['DISK_LIMIT', 'PROCESS_LIMIT'] as const),
]);

/** Of a job that has not failed. */
const plainState = (state: JobState): string => STATES[state] ?? (isWaiting(state) ? 'QUEUED' : 'RUNNING');

export function stateOf({ state, cause, exitCode }: Ended): string {
  if (state !== 'FAILED') return plainState(state);
  return OF_EXECUTORS.has(cause) && exitCode !== SYSTEM_ERROR_CODE ? 'EXECUTOR_ERROR' : 'SYSTEM_ERROR';
}

/** The states of jobs whose tasks may be in this one. */
export const jobStatesOf = (tesState: string): JobState[] =>
  jobStates.filter((state) =>
    state === 'FAILED' ? /^(EXECUTOR|SYSTEM)_ERROR$/.test(tesState) : plainState(state) === tesState,
  );

export type Details = TesDetailsQuery['jobs']['nodes'][number];

/** A task in the view BASIC or FULL. */
export function shownTask(job: Details, view: View) {
  const full = view === 'FULL';
  const own = taskOfJob(job);
  const kept = own ?? plainTask(job);
  const task = own && full ? withUrls(own, job.downloads ?? [], job.uploads ?? []) : kept;
  return {
    ...{ id: job.id, state: stateOf(job) },
    ...task,
    ...(task.inputs && {
      inputs: task.inputs.map(({ content, ...input }) =>
        full && content !== undefined ? { ...input, content } : input,
      ),
    }),
    logs: job.runs.map((run) => logOf(job, run, kept, full)),
    creation_time: job.submittedAt,
  };
}

/** A job that was submitted as something else. */
function plainTask({ name, command, arguments: args, workingDirectory, environment, ...job }: Details) {
  const env = Object.fromEntries((environment ?? []).map((variable) => [variable.name, variable.value]));
  return {
    ...(name !== null && { name }),
    inputs: undefined,
    outputs: undefined,
    resources: { cpu_cores: job.cpusPerTask, ram_gb: job.memoryMbPerTask / 1000 },
    executors: [
      {
        image: '',
        command: [command, ...args],
        env,
        ...(workingDirectory !== null && { workdir: workingDirectory }),
      },
    ],
  };
}

const fileOf = (url: string, path: string, size_bytes: string) => ({
  ...{ url, path: posix.normalize(path), size_bytes },
});

/** One run. What it wrote is known of the latest. */
function logOf(
  job: Details,
  run: Details['runs'][number],
  task: Pick<TesTask, 'outputs' | 'executors'>,
  full: boolean,
) {
  const isLatest = run.epoch === job.epoch;
  const executors = task.executors.length;
  const { codes, stored, uploads, faults } = toldBy((isLatest && job.stderr?.text) || '');
  // What is not told is that of the only one, or of none.
  if (codes.size === 0 && executors === 1 && run.exitCode !== null && run.exitCode !== SYSTEM_ERROR_CODE)
    codes.set(0, run.exitCode);
  const ended = [...codes].sort(([a], [b]) => a - b);
  const times = {
    ...(run.startedAt !== null && { start_time: run.startedAt }),
    ...(run.endedAt !== null && { end_time: run.endedAt }),
  };
  const machines = run.allocations.map(({ machine }) => machine.name).join(',');
  return {
    logs: ended.map(([, exit_code], i) => ({
      exit_code,
      ...(executors === 1 && times),
      // All executors write to the same: it is told with the last.
      ...(full &&
        isLatest &&
        i === ended.length - 1 && { stdout: job.stdout?.text ?? '', stderr: job.stderr?.text ?? '' }),
    })),
    metadata: { site: run.site.name, machines, ...(run.cause !== null && { cause: run.cause }) },
    ...times,
    outputs: [
      ...(isTerminal(job.state)
        ? stored.map(({ bytes, path, to }) => fileOf(pathToFileURL(posix.normalize(to)).href, path, bytes))
        : []),
      // They are sent when the script has ended.
      ...(job.state === 'COMPLETED'
        ? uploads.flatMap(({ bytes, path, output, below }) => {
            const url = task.outputs?.[output]?.url;
            return url === undefined
              ? []
              : fileOf(below === '' ? url : urlBelow(url, posix.normalize(below)), path, bytes);
          })
        : []),
    ],
    ...(full && {
      system_logs: [
        ...[run.cause, run.message].filter((said): said is string => Boolean(said)),
        ...(run.exitCode === SYSTEM_ERROR_CODE ? faults : []),
      ],
    }),
  };
}
