/** What `srun` in a job notes of its steps for the agent: lines of JSON in a file that the job's user owns. */

/** The file, in the directory that `SWITCHYARD_STEPS` names. */
export const STEP_RECORDS = 'records';

/** A line: one when the step starts, and one when it has ended. */
export interface NotedStep {
  /** In the order of the starts, from 0. */
  number: number;
  name: string;
  tasks: number;
  machines: number;
  cpus: number;
  /** Ms since 1970. */
  startedAtMs: number;
  /** null: it has not ended. */
  endedAtMs: number | null;
  /** The highest of its tasks, as a shell tells it: 128 + n after signal n; null: it has not ended. */
  exitCode: number | null;
  /** The name of the signal that ended the task with this exit code; null: none. */
  signal: string | null;
}
