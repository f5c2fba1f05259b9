/** What agents and peers tell of runs. */
import type { EndCause } from '../core/states.js';
import type { RunRow } from './rows.js';
import type { Usage } from './usage.js';

export interface RunReport {
  jobId: number;
  epoch: number;
  /** Of the run as it was assigned; null or left out: not compared. */
  token?: string | null;
  /** Index of the task that it is about; null or left out: the whole run. */
  task?: number | null;
  /** ACCEPTED: the site's own scheduler has it. */
  phase: 'ACCEPTED' | 'STARTED' | 'ENDED';
  /** Epoch seconds, by the reporter's clock. */
  at: number;
  /** Epoch seconds: the time of that clock when the report was sent; null or left out: it is taken to be right. */
  sentAt?: number | null;
  exitCode: number | null;
  signal: string | null;
  /** Required for ENDED. */
  cause: EndCause | null;
  message: string | null;
  cpuS: number | null;
  ioWaitS: number | null;
  /** What else was measured, and how. */
  usage?: Partial<RunUsage>;
  outputs?: readonly OutputPiece[];
  /** Of ENDED: what `srun` started in it. */
  steps?: readonly RunStep[];
  /** What the site says of it; what is null stays. */
  local?: LocalRun | null;
}

/** A run as the site's own scheduler has it (its name for it, how it stands there, its nodes, where its output lies), and what its image is. */
export interface LocalRun {
  id: string | null;
  state: string | null;
  nodes: readonly string[] | null;
  imageDigest: string | null;
  directory: string | null;
}

export type Method = NonNullable<RunRow['cpuMethod']>;
/** What a run used beside CPU time and waiting for input and output, and how it was measured; null: not measured. */
export type RunUsage = Omit<Usage, 'cpuS' | 'ioWaitS'>;

/** A part of what a run wrote to a stream. */
export interface OutputPiece {
  stream: 'STDOUT' | 'STDERR';
  /** Bytes written before. */
  start: number;
  body: Buffer;
  /** Bytes written up to now. */
  bytes: number;
}

/** A step of a run, or of a task that is started by itself: what `srun` in it started. */
export interface RunStep {
  /** Counted in the run, from 0. */
  number: number;
  name: string;
  tasks: number;
  machines: number;
  cpus: number;
  /** Epoch seconds, by the clock of the report. */
  startedAt: number;
  /** null: it ended with its run. */
  endedAt: number | null;
  /** As a shell tells it: 128 + n after signal n; null: as `endedAt`. */
  exitCode: number | null;
  signal: string | null;
}

/** With the times as they are taken. */
export type TakenStep = RunStep & { jobId: number; epoch: number; task: number };
