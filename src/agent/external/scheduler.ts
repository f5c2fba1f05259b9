/**
 * The contract of a site's own scheduler: five verbs. What makes a run happen once is not asked of it: that is the guard in the script
 * (script.ts), which lets a run begin once however often it is submitted, and writes down how it ended. So a scheduler may forget what
 * it acknowledged, run a job again, or fail after it accepted one. docs/operations/adapters.md is the same for programs.
 */

/** The only thing by which a lost submission is found. */
export interface LocalName {
  /** As it was submitted: letters, digits and `_.+-`, a letter first, at most 100. */
  name: string;
  /** Which element of an array, from 0; null: it is no array. */
  element: number | null;
}

/** In the scheduler's words; null: as it has it. */
export interface Terms {
  /** Of several, separated by commas, the scheduler chooses one. */
  partition: string | null;
  account: string | null;
  qos: string | null;
}

export const NO_TERMS: Terms = { partition: null, account: null, qos: null };

/** What tasks that are alike ask for: of a whole submission, or of a part of it. */
export interface AskedTasks {
  tasks: number;
  cpusPerTask: number;
  memoryMbPerTask: number;
  /** Devices and the like for each task. */
  resourcesPerTask: readonly { kind: string; amount: number }[];
  /** Whole devices for each task, by kind and model (null: any); none where it is left out. */
  devicesPerTask?: readonly { kind: string; count: number; model: string | null }[];
  /** On each node; null: as many as fit. */
  tasksPerMachine: { readonly min: number; readonly max: number | null } | null;
  /** Nodes without any other job, or without other users' jobs; null: it may have neighbors. */
  exclusive: 'MACHINE' | 'USER' | null;
  /** Nodes on one switch, waited for so many seconds at most (null: as long as it takes); null: any nodes. */
  sameSwitch: { readonly maxWaitS: number | null } | null;
  /** Where it may run; null: on any node. */
  nodes: readonly string[] | null;
}

/** A run, or an array of runs that need the same. */
export interface Submission extends Terms, AskedTasks {
  /** Its own: no other job of ours has it, unless this one is submitted again. */
  name: string;
  /** How many jobs it is, each of which runs the script; null: one, and no array. */
  elements: number | null;
  /** Said to the site's administrators, where the scheduler has a place for it. */
  comment: string;
  /** The batch script, an absolute path. */
  script: string;
  /** Account of the host that submits it; null: that of the agent. */
  user: string | null;
  /** Where the script begins; also for what the scheduler itself writes. */
  directory: string;
  /**
   * Its parts, where its tasks are not all alike, in their order: all start at the same time, or none does. `tasks` is then the sum, and the
   * amounts are the largest of any part; other requirements of tasks are of the parts alone. Null: it has none, as every array.
   */
  parts: readonly AskedTasks[] | null;
  /** Those that the scheduler counts too are asked of it; the service counts all. */
  licenses: readonly string[];
  /** Amounts for the whole job, likewise. */
  resources: readonly { kind: string; amount: number }[];
  /** Both together, by kind. */
  pools: readonly { kind: string; amount: number }[];
  /** Seconds, rounded up by the scheduler to what it counts in; null: as long as it allows. */
  timeLimitS: number | null;
}

/** A job in the scheduler's queue, or in its books. */
export interface LocalJob extends LocalName {
  /** The scheduler's name for it, as people there know it. Such names are given again: never compared with those of other days. */
  id: string;
  phase: 'WAITING' | 'RUNNING' | 'ENDED';
  /** How it stands, in its words. */
  words: string;
  /** It will wait for ever. */
  hopeless: boolean;
  /** Why it ended, where the scheduler ended it; null: it has not, or the run ended by itself. */
  ended: 'RUN_TIME_LIMIT' | 'MEMORY_LIMIT' | 'CANCELLED' | 'LOST' | null;
  /** Seconds from its submission to its start, to the last one if it was started again, by the scheduler's clock; absent or null: not told. */
  startedAfterS?: number | null;
  /** Where it begins; null: the scheduler does not tell. */
  directory: string | null;
  /** The account whose it is; null: that of the agent. */
  user: string | null;
}

/** A machine of the site. */
export interface LocalNode {
  name: string;
  cpus: number;
  memoryMb: number;
  /** What jobs of anybody have of it. */
  busyCpus: number;
  busyMemoryMb: number;
  /** So many of a kind; model: null, not known. */
  devices: { kind: string; model: string | null; amount: number }[];
  /** What is said of it by name (`Feature` of Slurm). */
  labels: string[];
  /** Why no job can start there, in the scheduler's words; null: jobs can. */
  problem: string | null;
}

/** A part of the site with nodes and limits of its own, such as a partition of Slurm. */
export interface LocalPartition {
  name: string;
  /** Jobs go there that name none. */
  isDefault: boolean;
  /** Jobs of the agent may go there. */
  isUsed: boolean;
  /** In its words: `up`. */
  state: string;
  /** How many nodes it has, and which: names as the scheduler abbreviates them (`n[1-4]`). */
  nodes: number;
  nodeList: string;
  cpus: number;
  /** What jobs of anybody have of them. */
  busyCpus: number;
  /** The longest that a job may run, seconds; null: any time. */
  longestS: number | null;
}

/** Kinds of license that a scheduler tells. */
export const LICENSES_MAX = 1_000;

/** Jobs that ask for it wait until some of it are free, whoever has them. */
export interface LocalLicense {
  name: string;
  total: number;
}

/** A job of anybody that waits. */
export interface WaitingJob {
  name: string;
  /** In all. */
  cpus: number;
  /** Its time limit, seconds. */
  limitS: number;
  /** As the scheduler calls it, and why it waits, in its words; left out: it does not tell. */
  id?: string;
  reason?: string;
}

export interface Capacity {
  nodes: LocalNode[];
  /** In the order in which the scheduler looks at them, where it tells. */
  waiting: WaitingJob[];
  /** Left out: it has none. */
  partitions?: LocalPartition[];
  /** What it counts itself, each name once; left out: it does not tell. */
  licenses?: readonly LocalLicense[];
  /** Elements that an array may have; 1: it has no arrays. */
  elementsMax: number;
  /** It takes a job of several parts as one job (`LocalScheduler.parts`). */
  takesParts: boolean;
  /** It can be asked for `devicesPerTask`. */
  takesDevices: boolean;
}

/** What the scheduler has measured of a job, of all its tasks together; null: not told. */
export interface LocalUse {
  cpuS: number | null;
  peakMemoryMb: number | null;
}

/** What a scheduler answered that refused a submission for what was asked. */
export class RefusedError extends Error {}

export interface LocalScheduler {
  /** What it is called: `Slurm`. */
  readonly label: string;
  /** It submits as other accounts, too. */
  readonly hasAccounts: boolean;
  /**
   * Shell text that each script begins with. It sets `local_id` and `nodes` (names, separated by blanks) to what the scheduler says of the job,
   * and in an array `element` to its index. It finds the number of tasks in `tasks`, and may set `machines` to where they are (`node:tasks`,
   * separated by blanks, in their order).
   */
  readonly prologue: string;
  /** How a command is started once for each task; null: only jobs of one task, or that start their tasks themselves. */
  readonly tasks: {
    /** Words before the command; `{tasks}` is their number. */
    launcher: readonly string[];
    /** The variable that has the index of a task. */
    index: string;
  } | null;
  /**
   * How it runs a job of several parts, which is one job to all verbs here: it runs when all parts do, and is canceled as a whole. Null: it
   * takes none.
   */
  readonly parts: {
    /** As that of `tasks`, but starts the tasks of all parts, counted through them; `{parts}`: the numbers of the parts, separated by commas. */
    launcher: readonly string[];
    /**
     * Shell text behind `prologue`, which finds the number of tasks of each part in `tasks_by_part`, separated by blanks: sets `nodes` and
     * `machines` to those of all parts in their order, and exports `SWITCHYARD_PART_MACHINES_0`, …: `node:tasks,…` of each.
     */
    prologue: string;
  } | null;
  /**
   * Answers the scheduler's name for each job of it. Throws RefusedError where it will never take it, else another error: then it may have
   * taken it nevertheless.
   */
  submit(submission: Submission): Promise<string[]>;
  /**
   * The jobs that were submitted under these names, as far as they are known in its queue or in its books since a time (ms since 1970).
   * Throws where it cannot say.
   */
  find(names: readonly string[], sinceMs: number): Promise<LocalJob[]>;
  /**
   * All jobs of the agent's account, and of others where it submits as these, in its queue whose name begins so, and those of them that ended lately: one question, whatever their
   * number. Throws where it cannot say.
   */
  list(prefix: string): Promise<LocalJob[]>;
  /**
   * Asks it to end what it has under these names; it may take a while. By name: the same id may be another job's by now. What it does not
   * have is no error.
   */
  cancel(jobs: readonly LocalName[]): Promise<void>;
  capacity(): Promise<Capacity>;
  /** It measures jobs, and tells of those that have ended. */
  readonly measures?: boolean;
  /** What it has measured of jobs that were submitted under these names since a time (ms since 1970) and are over there, by `nameKey`. */
  use?(names: readonly string[], sinceMs: number): Promise<Map<string, LocalUse>>;
  /** What there is for the agent's account, in words, for whoever sets up the site; with the partitions that it uses. */
  survey?(): Promise<{ name: string; found: string; problem: string | null; partition?: string }[]>;
}

/** One string for a name. */
export const nameKey = ({ name, element }: LocalName): string =>
  element === null ? name : `${name}[${element}]`;
