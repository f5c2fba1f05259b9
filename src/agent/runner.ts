/**
 * The seam between the agent's conversation with the service (agent.ts) and what carries out its assignments: real
 * processes (process/runner.ts) or a simulation of them (simulated.ts).
 *
 * Words: an *assignment* is what the service asks for; a *run* is one attempt at a job, named by job and epoch; a *report*
 * says that a run started or ended. A runner numbers its reports from 1 upwards and keeps each until it is acknowledged.
 */

/** Why a run ended, as in schema.graphql. */
export type EndCause =
  | 'EXITED_ZERO'
  | 'EXITED_NONZERO'
  | 'SIGNALLED'
  | 'RUN_TIME_LIMIT'
  | 'LAUNCH_FAILED'
  | 'MACHINE_FAILED'
  | 'LOST'
  | 'CANCELLED_BY_USER';

/** One run as the service describes it. */
export interface Assignment {
  /** Names the job; letters, digits and `_.:=+-` only. */
  jobId: string;
  /** Which attempt at the job. */
  epoch: number;
  /** A path, or a name to be looked up in PATH. */
  command: string;
  arguments: readonly string[];
  /** Added to the agent's clean base environment. */
  environment: Readonly<Record<string, string>>;
  /** null: a directory of the run's own, empty at the start and removed after its end. */
  workingDirectory: string | null;
  tasks: number;
  cpusPerTask: number;
  memoryMbPerTask: number;
  /** Stopped after so long; null: never. */
  runTimeLimitS: number | null;
  arrayIndex: number | null;
  machines: readonly { name: string; tasks: number }[];
  /** Run time planned on these machines: how long a simulated run takes unless `simulatedS` says otherwise. */
  plannedS: number;
  /** Actual run time of a simulated run, where the submission gave one. */
  simulatedS: number | null;
  /** How much of that it spends on input and output, where the submission said so. */
  simulatedIoS: number | null;
}

/** What a run wrote to one of its streams, as far as it was kept. */
export interface OutputText {
  text: string;
  /** Bytes written in all. */
  bytes: number;
  truncated: boolean;
}

interface ReportBase {
  /** Place in the runner's sequence of reports. */
  seq: number;
  jobId: string;
  epoch: number;
  /** When it happened, milliseconds since 1970 by this machine's clock. */
  atMs: number;
}

export interface StartedReport extends ReportBase {
  phase: 'STARTED';
}

export interface EndedReport extends ReportBase {
  phase: 'ENDED';
  cause: EndCause;
  /** As a shell tells it: 128 + n after signal n. null: there was no process, or nobody saw its end. */
  exitCode: number | null;
  /** Name of the signal that ended it. */
  signal: string | null;
  message: string | null;
  /** User and system time of all processes that were waited for; null: not measured. */
  cpuS: number | null;
  /** Time its processes waited for block I/O, where Linux accounts for it; null: not measured. */
  ioWaitS: number | null;
  stdout: OutputText | null;
  stderr: OutputText | null;
}

export type RunReport = StartedReport | EndedReport;

/** A run that has been started and has not ended. */
export interface LiveRun {
  jobId: string;
  epoch: number;
  startedAtMs: number;
}

export interface Runner {
  /** Why nothing can be started here now; null: it can. */
  readonly problem: string | null;
  /**
   * Starts a run, unless this or a later one of the same job has been started before: asking twice does no harm.
   * Never throws for what an assignment asks: what cannot be started is reported as LAUNCH_FAILED.
   */
  start(assignment: Assignment): void;
  /** The service believes that this run goes on. If the runner knows nothing of it, it is reported as LOST. */
  resume(assignment: Assignment): void;
  /** Stops a run: SIGTERM, and SIGKILL after `graceMs`. A run never started here is reported as ended, and never will be. */
  cancel(jobId: string, epoch: number, graceMs?: number): void;
  /** Stops a run in the same way; the service does not want to hear of it any more. */
  forget(jobId: string, epoch: number): void;
  /** What runs now. */
  runs(): LiveRun[];
  /** The oldest reports that have not been acknowledged, in order, at most `limit`. */
  reports(limit: number): RunReport[];
  /** The service has the reports up to `seq`: they need not be kept any longer. */
  acknowledge(seq: number): void;
  /** Called (soon, and once for many) when there are new reports. */
  onReports: (() => void) | null;
  /** Lets go without stopping any run. */
  close(): void;
}

/** Grace between SIGTERM and SIGKILL unless told otherwise. */
export const DEFAULT_GRACE_MS = 10_000;

/** One string for a run. */
export function runKey(jobId: string, epoch: number): string {
  return `${jobId}.${epoch}`;
}
