/**
 * Runs whose tasks are started, and reported on, one by one: what a report of a task does to its run, and what agents are told of tasks.
 * Pure functions, the same for every implementation of the store.
 */
import type { EndCause } from '../core/states.js';
import type { TaskFailure, TaskLaunch } from './job-fields.js';
import type { RunRow, TaskRow } from './rows.js';
import type { Assignment, RunReport } from './store.js';
import { eachUsage, UNMEASURED } from './usage.js';

/** Whether the agents of a job start its tasks one by one. */
export const hasTasks = ({ tasks, launch }: { tasks: number; launch: TaskLaunch }): boolean =>
  tasks > 1 && launch === 'EVERY_TASK';

/** The place of a task's machine among those of its run: the first has the first tasks. −1: there is no such task. */
export function placeOf(machineTasks: readonly number[], task: number): number {
  let behind = 0;
  return machineTasks.findIndex((tasks) => {
    behind += tasks;
    return task >= 0 && task < behind;
  });
}

/** Without such a task the run is no whole any more: the others are ended whatever the job says. */
const breaking: ReadonlySet<EndCause> = new Set([
  'LOST',
  'MACHINE_FAILED',
  'STAGING_FAILED',
  'INPUT_MISMATCH',
  'REFUSED',
]);

/** A report of a task. */
export type TaskReport = RunReport & { task: number };

export const ofTask = (report: RunReport): report is TaskReport => typeof report.task === 'number';

/** How a task has failed. */
type Failure = Pick<RunReport, 'exitCode' | 'signal' | 'message'> & { task: number; cause: EndCause };

/** A task as it has been reported; epoch seconds. */
export interface KnownTask {
  startedAt: number | null;
  ended: boolean;
}

/** What is known of the tasks of a live run. */
export interface TasksOfRun {
  /** By machine. */
  machines: readonly { name: string; tasks: number; agentId: number | null }[];
  onTaskFailure: TaskFailure;
  /** Epoch seconds. */
  assignedAt: number;
  /** How many have ended, and when the last of them did. */
  ended: number;
  endedAt: number | null;
  /** A process of the run has begun. */
  begun: boolean;
  /** The failure that decides how the run ends. */
  failure: Failure | null;
  /** The others have been told to end. */
  ending: boolean;
}

export interface TaskJudgment {
  result: 'accepted' | 'repeated';
  /** Why the task has ended. */
  cause: EndCause | null;
  /** The tasks that go on have to be told to end. */
  ends: boolean;
  /** What this makes of the run: its first task has started, its last one ended. */
  run: RunReport | null;
}

/** The tasks of one live run while a batch of reports is judged. */
export class RunTasks {
  private readonly known: Map<number, KnownTask>;

  /** @param known those that the reports are about, by index */
  constructor(
    readonly of: TasksOfRun,
    known: Iterable<readonly [number, KnownTask]>,
  ) {
    this.known = new Map(known);
  }

  /** Whether there is such a task and the agent serves its machine. null: the service itself. */
  serves(task: number, agentId: number | null): boolean {
    const machine = this.machineOf(task);
    return machine !== undefined && (agentId === null || machine.agentId === agentId);
  }

  /** From when on it can start or, if it has started, end. */
  since(task: number): number {
    return this.known.get(task)?.startedAt ?? this.of.assignedAt;
  }

  /** `report.at`: as it is taken. `cancelling`: the run has been asked to stop. */
  judge(report: RunReport, task: number, cancelling: boolean): TaskJudgment {
    const { of } = this;
    const known = this.known.get(task) ?? { startedAt: null, ended: false };
    const nothing = { cause: null, ends: false, run: null };
    if (known.ended || (report.phase === 'STARTED' && known.startedAt !== null))
      return { result: 'repeated', ...nothing };
    if (report.phase === 'STARTED') {
      this.known.set(task, { startedAt: report.at, ended: false });
      of.begun = true;
      return { ...nothing, result: 'accepted', run: report };
    }
    if (report.cause === null)
      throw new RangeError('report.cause is null; accepted when phase is ENDED: a cause of end');
    const { exitCode, signal, message } = report;
    const told = of.ending && !cancelling && report.cause === 'CANCELLED_BY_USER';
    const cause = told ? 'OTHER_TASK_FAILED' : report.cause;
    this.known.set(task, { ...known, ended: true });
    of.ended++;
    of.endedAt = Math.max(of.endedAt ?? Number.NEGATIVE_INFINITY, report.at);
    of.begun ||= hasBegun({ ...known, exitCode, signal, cause });
    const failed = cause !== 'EXITED_ZERO';
    const over = of.ended === this.size;
    const breaks = breaking.has(cause);
    if (failed && (of.failure === null || (breaks && !of.ending && !breaking.has(of.failure.cause))))
      of.failure = { task, cause, exitCode, signal, message };
    const ends = failed && !over && !of.ending && !cancelling && (breaks || of.onTaskFailure === 'END_ALL');
    of.ending ||= ends;
    return { result: 'accepted', cause, ends, run: over ? this.endOf(report) : null };
  }

  private get size(): number {
    return this.of.machines.reduce((sum, { tasks }) => sum + tasks, 0);
  }

  private machineOf(task: number) {
    const { machines } = this.of;
    return machines[
      placeOf(
        machines.map(({ tasks }) => tasks),
        task,
      )
    ];
  }

  /** The end of the run, with the last of its tasks. */
  private endOf({ jobId, epoch, phase }: RunReport): RunReport {
    const { failure, endedAt } = this.of;
    const end = { jobId, epoch, phase, at: endedAt as number, cpuS: null, ioWaitS: null };
    if (failure === null) return { ...end, cause: 'EXITED_ZERO', exitCode: 0, signal: null, message: null };
    const { task, cause, exitCode, signal } = failure;
    const where = `task ${task} on ${this.machineOf(task)?.name}`;
    const message = `${where}: ${failure.message ?? cause}`;
    return { ...end, cause, exitCode, signal, message };
  }
}

/** Whether a process of a task has, or may have, begun. */
export const hasBegun = (task: {
  startedAt: number | null;
  exitCode: number | null;
  signal: string | null;
  cause: EndCause | null;
}): boolean =>
  task.startedAt !== null || task.exitCode !== null || task.signal !== null || task.cause === 'LOST';

/** Tasks on one machine, one index after another, and what their agent has to do with them. */
export interface AssignedPart {
  /** Its name. */
  machine: string;
  firstTask: number;
  tasks: number;
  action: 'START' | 'CONTINUE' | 'STOP';
}

/** The tasks of a run that an agent has to see to. None: the run is one command. */
export function partsOf(run: Assignment, agentId: number): AssignedPart[] {
  if (!hasTasks(run)) return [];
  const known = new Map(run.known);
  const stops = run.ending || run.state === 'CANCELLING';
  const parts: AssignedPart[] = [];
  let first = 0;
  for (const { name, tasks, agentId: holder } of run.machines) {
    if (holder === agentId) {
      for (let task = first; task < first + tasks; task++) {
        const ended = known.get(task);
        if (ended) continue;
        const action = stops ? 'STOP' : ended === undefined ? 'START' : 'CONTINUE';
        const last = parts.at(-1);
        if (last?.machine === name && last.action === action && last.firstTask + last.tasks === task)
          last.tasks++;
        else parts.push({ machine: name, firstTask: task, tasks: 1, action });
      }
    }
    first += tasks;
  }
  return parts;
}

/** The agents that are told of a run. */
export function agentsOf(
  run: Pick<Assignment, 'tasks' | 'launch' | 'machines' | 'siteAgentId'>,
): (number | null)[] {
  if (run.siteAgentId !== null) return [run.siteAgentId];
  const machines = hasTasks(run) ? run.machines : run.machines.slice(0, 1);
  return [...new Set(machines.map(({ agentId }) => agentId))];
}

/** A task as people see it; times are epoch seconds. */
export type ShownTask = TaskRow & { machineId: number | null };

/**
 * The tasks of a run from an index on: as they have been reported and, where nothing was, as their run is.
 *
 * @param reported whether any task of the run has been reported by itself
 */
export function shownTasks(
  run: RunRow,
  job: { tasks: number; launch: TaskLaunch },
  known: readonly TaskRow[],
  reported: boolean,
  from: number,
  first: number,
): ShownTask[] {
  const byIndex = new Map(known.map((task) => [task.index, task]));
  const { jobId, epoch, endedAt, exitCode, signal, cause, message } = run;
  const one = !hasTasks(job);
  const last = Math.min(one ? 1 : job.tasks, from + first);
  return Array.from({ length: Math.max(0, last - from) }, (_, i): ShownTask => {
    const index = from + i;
    const machineId = run.machineIds[one ? 0 : placeOf(run.machineTasks, index)] ?? null;
    const task = byIndex.get(index);
    if (task && (task.endedAt !== null || endedAt === null)) return { ...task, machineId };
    const startedAt = task ? task.startedAt : reported ? null : run.startedAt;
    const of = { jobId, epoch, index, machineId, startedAt, endedAt, exitCode, signal, cause, message };
    if (!one) return { ...of, ...UNMEASURED, checkpointAt: null };
    return { ...of, ...eachUsage((field) => run[field]), checkpointAt: run.checkpointAt } as ShownTask;
  });
}
