/**
 * The contract of a site's own scheduler: five verbs. What makes a run happen once is not asked of it: that is the guard in the script
 * (script.ts), which lets a run begin once however often it is submitted, and writes down how it ended. So a scheduler may forget what
 * it acknowledged, run a job again, or fail after it accepted one.
 */

/** A run as it is submitted. Its name is the run's own: the only thing by which a lost submission is found. */
export interface Submission {
  name: string;
  /** Said to the site's administrators, where the scheduler has a place for it. */
  comment: string;
  /** The batch script, an absolute path. */
  script: string;
  /** Where the script begins; also for what the scheduler itself writes. */
  directory: string;
  tasks: number;
  cpusPerTask: number;
  memoryMbPerTask: number;
  /** Seconds, rounded up by the scheduler to what it counts in; null: as long as it allows. */
  timeLimitS: number | null;
}

/** A run in the scheduler's queue, or in its books. */
export interface LocalJob {
  /** Its name for it. Names are given again: never compared with those of other days. */
  id: string;
  /** As it was submitted. */
  name: string;
  phase: 'WAITING' | 'RUNNING' | 'ENDED';
  /** How it stands, in its words. */
  words: string;
  /** It will wait for ever. */
  hopeless: boolean;
  /** Why it ended, where the scheduler ended it; null: it has not, or the run ended by itself. */
  ended: 'RUN_TIME_LIMIT' | 'MEMORY_LIMIT' | 'CANCELLED' | 'LOST' | null;
}

/** A machine of the site. */
export interface LocalNode {
  name: string;
  cpus: number;
  memoryMb: number;
  /** What jobs of anybody have of it. */
  busyCpus: number;
  busyMemoryMb: number;
  /** Why no job can start there, in the scheduler's words; null: jobs can. */
  problem: string | null;
}

export interface Capacity {
  nodes: LocalNode[];
  /** Jobs that wait, of anybody: the name, its CPUs in all, its time limit in seconds. */
  waiting: { name: string; cpus: number; limitS: number }[];
}

/** What a scheduler answered that refused a submission for what was asked. */
export class RefusedError extends Error {}

export interface LocalScheduler {
  /** What it is called: `Slurm`. */
  readonly label: string;
  /**
   * Shell text that the script of a run begins with: it sets `local_id` and `nodes` (names, separated by blanks) to what the scheduler says
   * of the run.
   */
  readonly prologue: string;
  /** Words before a command that is to be started once for each task. */
  taskLauncher(tasks: number): readonly string[];
  /** Its variable for the index of a task. */
  readonly taskIndex: string;
  /**
   * Answers the scheduler's name for it. Throws RefusedError where it will never take it, else another error: then it may have taken it
   * nevertheless.
   */
  submit(job: Submission): Promise<string>;
  /** Those of these names that it knows, in its queue or in its books since a time (ms since 1970). Throws where it cannot say. */
  find(names: readonly string[], sinceMs: number): Promise<LocalJob[]>;
  /** All runs of ours in its queue, and those that ended lately: one question, whatever their number. Throws where it cannot say. */
  list(): Promise<LocalJob[]>;
  /** Asks it to end what it has under these names; it may take a while. By name: the same id may be another run's by now. */
  cancel(names: readonly string[]): Promise<void>;
  capacity(): Promise<Capacity>;
}
