/**
 * The seam between the agent's conversation with the service (agent.ts) and what carries out its assignments: real
 * processes (process/runner.ts) or a simulation of them (simulated.ts).
 *
 * Words: an *assignment* is what the service asks for; a *run* is one attempt at a job, named by job and epoch; a *report*
 * says that a run started or ended. A runner numbers its reports from 1 upwards and keeps each until it is acknowledged.
 */
import type { NotedStep } from '../platform/steps.js';
import type {
  AssignmentsSubscription,
  EndCause,
  MeasurementMethod,
  OutputStream,
  WarnSignal,
} from './documents.gql.js';
import type { Input } from './staging/cache.js';

export type { EndCause, WarnSignal };

/** An input that is within reach of its run. */
export interface StagedInput {
  /** Place among the job's inputs, or its downloads, from 1. */
  place: number;
  /** Of the dataset, or of the file. */
  name: string;
  /** Where it is: a file or a directory, not to be changed. */
  path: string;
  /** It was fetched from a URL. */
  downloaded?: true;
}

/** Files of a run's directory that are to be kept. */
export interface WantedOutput {
  /** Below the directory, or below `/tmp`; a file, a directory, or a pattern. */
  path: string;
  /** Name of the dataset that it becomes; null: the service keeps it. */
  dataset: string | null;
  /** Where it is sent when the command has succeeded; then nobody keeps it, unless it cannot be sent. */
  url?: string;
  /** It is the checkpoint: kept under this path is the last one that the run has reported, if it has; a directory as one file. */
  checkpoint?: true;
}

/** What a run is known by. */
export interface RunName {
  /** Names the job; letters, digits and `_.:=+-` only. */
  jobId: string;
  /** Which attempt at the job. */
  epoch: number;
  /** What the service tells it by from a run of the same name; left out where it was recorded by the release before. */
  token?: string;
  /** Index of the task, where the tasks of a run are carried out, and reported on, one by one: each is a run of its own to a runner. */
  task?: number;
}

type Told = AssignmentsSubscription['assignments']['assignments'][number];

/** A signal that somebody has sent to a run; they are numbered from 1. */
export type SentSignal = Told['signals'][number];
export type RunSignal = SentSignal['signal'];

export interface TerminalSize {
  rows: number;
  columns: number;
}

/** What is typed at the terminal of a run; empty: its client is still there. */
export interface TerminalPiece extends Pick<RunName, 'jobId' | 'epoch'> {
  /** The terminal takes those only that are larger than the last. */
  sequence: number;
  body: Buffer;
  /** null: as it was. */
  size: TerminalSize | null;
}

/** One run as the service describes it: fields as of `Assignment` in schema.graphql, but for those that are here. */
export interface Assignment
  extends RunName,
    Omit<
      Told,
      | keyof RunName
      | 'action'
      | 'parts'
      | 'jobParts'
      | 'devicesPerTask'
      | 'pools'
      | 'partNodes'
      | 'environment'
      | 'machines'
      | 'inputs'
      | 'outputs'
      | 'downloads'
      | 'uploads'
      | 'checkpoint'
      | 'signals'
      | 'terminal'
    > {
  /** Added to the agent's clean base environment. */
  environment: Readonly<Record<string, string>>;
  /** Devices of each task, for the site's own scheduler; none where it is left out, as in records of the release before. */
  devicesPerTask?: Told['devicesPerTask'];
  /** What it has of pools, by kind; none where it is left out, likewise. */
  pools?: Told['pools'];
  /** Of a job whose tasks are not all alike, in their order; none where it is left out. */
  jobParts?: readonly JobPart[];
  /** Where the site's own scheduler may run the tasks of each; null: anywhere. */
  partNodes?: readonly (readonly string[] | null)[];
  /** Index of the part that the task is of, whose requirements are those of this assignment. */
  part?: number;
  /** In the order of the tasks: the first has the first of them. `host`: where it is. */
  machines: readonly { name: string; host?: string; tasks: number; devices?: readonly string[] }[];
  /** The size of the terminal that its command is in; none where it is left out. */
  terminal?: TerminalSize | null;
  /** The last that people have sent it, in order; none where it is left out. */
  signals?: readonly SentSignal[];
  /** Datasets to be brought to it before it starts; nothing where it is left out. */
  inputs?: readonly Input[];
  /** What is kept of its files before its end is reported; nothing where it is left out. */
  outputs?: readonly WantedOutput[];
  /** Files to be fetched from URLs before it starts; none where it is left out. */
  downloads?: Told['downloads'];
  /** Below its directory: the file that is kept for the next run of the job; none where it is left out. */
  checkpoint?: string;
  /** Those inputs, once they are within its reach, and how long that took. */
  staged?: readonly StagedInput[];
  stagedS?: number;
}

type ToldPart = Told['jobParts'][number];
export type JobPart = Omit<ToldPart, 'devicesPerTask'> & Partial<Pick<ToldPart, 'devicesPerTask'>>;

/** What one task of a run is to an agent: with what its part asks for, where it is of one. */
export function taskOf(run: Assignment, task: number): Assignment {
  let first = 0;
  for (const [part, { tasks, ...asked }] of (run.jobParts ?? []).entries()) {
    if (task < first + tasks) return { ...run, ...asked, task, part };
    first += tasks;
  }
  return { ...run, task };
}

/**
 * How something was measured: by the run's control group and its pressure; by the kernel's account of what processes waited for; by what
 * `/proc` (or the shell's `times`) tells of all processes that were waited for; by samples of the processes while they ran; not at all,
 * but as a simulation was told to.
 */
export type Method = MeasurementMethod;

/** What a run has used, each with how it was measured; null: not measured. */
export interface Measured {
  /** User and system time of its processes. */
  cpuS: number | null;
  cpuMethod: Method | null;
  /** The most memory that they had together. */
  peakMemoryMb: number | null;
  peakMemoryMethod: Method | null;
  /** What they read and wrote, caches and pipes included; by CGROUP only from and to devices. */
  readMb: number | null;
  writtenMb: number | null;
  bytesMethod: Method | null;
  /** Time that they were blocked on devices, pipes and sockets. Sleeping is no input or output. */
  ioWaitS: number | null;
  ioWaitMethod: Method | null;
  /** How long the devices that it had for itself were busy, device-seconds, and the most memory in use on them together. */
  deviceS: number | null;
  deviceMemoryMb: number | null;
}

export const UNMEASURED: Measured = {
  cpuS: null,
  cpuMethod: null,
  peakMemoryMb: null,
  peakMemoryMethod: null,
  readMb: null,
  writtenMb: null,
  bytesMethod: null,
  ioWaitS: null,
  ioWaitMethod: null,
  deviceS: null,
  deviceMemoryMb: null,
};

export type Stream = OutputStream;

/** A part of what a run wrote to one of its streams. */
export interface OutputPiece {
  stream: Stream;
  /** How many bytes the run had written to the stream before. */
  start: number;
  /** The bytes as text where they are UTF-8 without NUL, else in base64. */
  text?: string;
  base64?: string;
  /** Bytes written to the stream up to now. */
  bytes: number;
}

/** A piece of the output of a run that goes on, or is about to be reported as ended. `terminal`: somebody waits for it at a terminal. */
export interface LiveOutput extends OutputPiece, RunName {
  terminal?: true;
}

interface ReportBase extends RunName {
  /** Place in the runner's sequence of reports. */
  seq: number;
  /** When it happened, milliseconds since 1970 by this machine's clock. */
  atMs: number;
}

/** What the site's own scheduler says of a run, and what its image is; what is null, or left out, stays as it was. */
export interface LocalRun {
  id?: string | null;
  state?: string | null;
  nodes?: readonly string[] | null;
  imageDigest?: string | null;
  /** Where its output lies (`out`, `err`). */
  directory?: string | null;
}

/** ACCEPTED: the site's own scheduler has it, or says something new of it. */
export interface StartedReport extends ReportBase {
  phase: 'ACCEPTED' | 'STARTED';
  local?: LocalRun;
}

export interface EndedReport extends ReportBase, Measured {
  phase: 'ENDED';
  cause: EndCause;
  /** As a shell tells it: 128 + n after signal n. null: there was no process, or nobody saw its end. */
  exitCode: number | null;
  /** Name of the signal that ended it. */
  signal: string | null;
  message: string | null;
  /** What it wrote, as far as it was kept and has not been handed out before (`Runner.freshOutput`). */
  outputs: readonly OutputPiece[];
  local?: LocalRun;
  /** Left out: none. */
  steps?: readonly RunStep[];
}

/** A step of a run, within it. */
export type RunStep = NotedStep;

export type RunReport = StartedReport | EndedReport;

/** A run has written its checkpoint. */
export interface WrittenCheckpoint extends RunName {
  /** By this machine's clock, ms since 1970. */
  atMs: number;
}

/** A run that has been started and has not ended. */
export interface LiveRun extends RunName {
  startedAtMs: number;
}

/** An image of jobs that lies here, ready to be used. */
export interface HeldImage {
  /** As jobs give it. */
  name: string;
  /** Disk space that it takes, megabytes (10^6 bytes). */
  sizeMb: number;
  /** null: not known. */
  digest: string | null;
}

/** What one run, or task of a run, uses so far. */
export interface RunUse extends RunName {
  cpuS: number | null;
  peakMemoryMb: number | null;
}

export interface Runner {
  /** It carries out all tasks of a run as one, where it has all of them: nothing is run. */
  readonly simulates?: boolean;
  /** The clock by which its reports tell times, ms since 1970. It may be wrong. */
  nowMs(): number;
  /** Why nothing can be started here now; null: it can. */
  readonly problem: string | null;
  /**
   * Ends what agents that are dead have left running for the same machines, before their leases are asked for.
   *
   * @returns why they may not be asked for, or not yet; null: nothing is left
   */
  takeOver?(): Promise<string | null>;
  /**
   * Starts a run, unless this or a later one of the same job has been started before: asking twice does no harm.
   * Never throws for what an assignment asks: what cannot be started is reported as LAUNCH_FAILED.
   */
  start(assignment: Assignment): void;
  /** The service believes that this run goes on. If the runner knows nothing of it, it is reported as LOST. */
  resume(assignment: Assignment): void;
  /** Stops a run: SIGTERM, and SIGKILL after `graceMs`. A run never started here is reported as ended, and never will be. */
  cancel(run: RunName, graceMs?: number, signal?: WarnSignal): void;
  /** Signals of a run that goes on: each is sent once, whoever asks again. Those of a run that has not begun, never. Left out: no processes are run here. */
  signal?(run: RunName, signals: readonly SentSignal[]): void;
  /** Whether runs can have terminals here; left out: they cannot. */
  readonly givesTerminals?: boolean;
  /** Passes on what is typed; whether the terminal has it. */
  input?(piece: TerminalPiece): boolean;
  /** Whether a run that goes on has a terminal: then its output is looked for more often. */
  readonly hasTerminals?: boolean;
  /** Where the run has not begun it never does, and is reported as ended (REQUEUED); else it goes on. */
  recall?(run: RunName): void;
  /** Stops a run in the same way; the service does not want to hear of it any more. */
  forget(run: RunName): void;
  /** What runs now. */
  runs(): LiveRun[];
  /** The oldest reports that have not been acknowledged, in order, at most `limit`. */
  reports(limit: number): RunReport[];
  /** The service has the reports up to `seq`: they need not be kept any longer. */
  acknowledge(seq: number): void;
  /**
   * Output that the service does not have yet, or an empty piece where that is not known, of runs that go on or whose end waits for it: some pieces, a few hundred kilobytes in all. The
   * same pieces again until they are `delivered`; a run with much output is reported as ended when the service has it. null: runs write
   * nothing here.
   */
  freshOutput(): LiveOutput[] | null;
  /**
   * The service has these pieces, or will never take them.
   *
   * @param received of those that are empty, which ask for it: up to which byte the service has the stream
   */
  delivered(pieces: readonly LiveOutput[], received?: readonly (number | null)[]): void;
  /**
   * Runs that have written their checkpoints since that was told, each at most once a minute; the same again until they are told. Left out:
   * runs write none here.
   */
  writtenCheckpoints?(): Promise<WrittenCheckpoint[]>;
  /** The service knows of them, or will never. */
  checkpointsTold?(written: readonly WrittenCheckpoint[]): void;
  /** The images here, at most `limit`, those used last; null: that is being found out. Left out: nothing runs in images here. */
  images?(limit: number): HeldImage[] | null;
  /** What those of the runs use so far that go on here. Left out: that is not known here. */
  uses?(runs: readonly { jobId: string; epoch: number }[]): RunUse[];
  /** Called (soon, and once for many) when there are new reports. */
  onReports: (() => void) | null;
  /** Lets go without stopping any run. */
  close(): void;
}

/** Grace between SIGTERM and SIGKILL of a run that is cancelled, unless told otherwise. */
export const DEFAULT_GRACE_MS = 10_000;

/** One string for a run. */
export function runKey({ jobId, epoch, token, task }: RunName): string {
  const key = task === undefined ? `${jobId}.${epoch}` : `${jobId}.${epoch}.${task}`;
  return token === undefined ? key : `${key}+${token}`;
}

/** What a run is known by, and nothing else. */
export const nameOf = ({ jobId, epoch, token, task }: RunName): RunName => ({
  jobId,
  epoch,
  ...(token !== undefined && { token }),
  ...(task !== undefined && { task }),
});
