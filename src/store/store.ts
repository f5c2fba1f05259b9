/**
 * The seam between the truth (Postgres) and everybody who schedules: snapshots and changes out, plans and reports in.
 *
 * Two implementations pass one conformance suite: `PostgresStore` (the product) and `MemoryStore` (its model in the tests).
 * What the seam leaves out on purpose: lists for people (filters, pages) and the directory's administration, which only the
 * API needs and reads through Prisma.
 *
 * Terms: a *cursor* is the id of an event, as a decimal string ("0" is before the first). A *refusal* is an item of a plan
 * or report that no longer fits the truth; the rest of the plan is carried out.
 */
import type { Job, Licence, Machine, Move, Reservation, Run, Site, Start } from '../core/model.js';
import type { PolicyDocument } from '../core/policy.js';
import type { EndCause, JobState } from '../core/states.js';

export type Cursor = string;

export interface Policy {
  version: number;
  document: PolicyDocument;
}

/** What the scheduler needs to know of a job, and where the job is. */
export interface JobImage {
  job: Job;
  state: JobState;
  siteId: number | null;
  run: Run | null;
}

/** Everything a scheduler must know, at one instant, and the cursor from which changes continue it. */
export interface GridImage {
  cursor: Cursor;
  policy: Policy;
  sites: Site[];
  machines: Machine[];
  licences: Licence[];
  /** Every job that has not ended, by id. */
  jobs: JobImage[];
  /** Margins (s) of the last dispatched jobs with a deadline, oldest first: level 1's window. */
  margins: number[];
  reservations: Reservation[];
}

/** What happened after a cursor, folded: for each job its last image, or null when it has ended or is gone. */
export interface GridChanges {
  cursor: Cursor;
  /** Jobs in the order of their last event. `dispatched`: it moved from the root to a site within these changes. */
  jobs: { id: number; image: JobImage | null; dispatched: boolean }[];
  /** Present when anything of that kind changed: the whole new list. */
  directory: Pick<GridImage, 'policy' | 'sites' | 'machines' | 'licences'> | null;
  /** Events still to come when the limit cut this answer short. */
  more: boolean;
}

export interface NewJob {
  name: string | null;
  application: string;
  groupName: string | null;
  arrayIndex: number | null;
  command: string;
  args: string[];
  env: Record<string, string>;
  workingDirectory: string | null;
  tasks: number;
  cpusPerTask: number;
  memoryMbPerTask: number;
  licences: string[];
  os: string | null;
  arch: string | null;
  estimateS: number;
  benchmark: number;
  runTimeLimitS: number | null;
  /** Epoch seconds. */
  deadline: number | null;
  inputMb: number;
  outputMb: number;
  restartable: boolean;
  /** What a simulated agent takes as the real run time on the reference machine, seconds. */
  simulatedRunS: number | null;
  boost: number;
  held: boolean;
}

export interface Submission {
  userId: number;
  idempotencyKey: string | null;
  /** Of the whole payload: the same key with another hash is refused. */
  payloadHash: string;
  jobs: NewJob[];
  /** Epoch seconds. */
  now: number;
}

export type SubmitResult =
  | { kind: 'accepted'; jobIds: number[]; repeated: boolean }
  | { kind: 'key-reused' }
  /** freesAt: epoch seconds at which this submission would be admitted, null when it never would (larger than the quota). */
  | { kind: 'quota'; limit: number; periodS: number; used: number; asked: number; freesAt: number | null };

export interface PlanContext {
  policyVersion: number;
  /** Names the cycle in decisions and logs. */
  cycle: string;
  /** Epoch seconds. */
  now: number;
}

export interface Applied {
  /** Jobs for which the plan was carried out. */
  accepted: number[];
  /** Jobs for which it was not, because the truth had moved on since the snapshot. */
  refused: { jobId: number; why: string }[];
}

export type StartOutcome = Applied & {
  /** Epochs of the runs made, aligned with `accepted`. */
  epochs: number[];
};

/** One run as the site's agent must know it. */
export interface Assignment {
  jobId: number;
  epoch: number;
  state: 'ASSIGNED' | 'RUNNING' | 'CANCELLING';
  command: string;
  args: string[];
  env: Record<string, string>;
  workingDirectory: string | null;
  tasks: number;
  cpusPerTask: number;
  memoryMbPerTask: number;
  licences: string[];
  runTimeLimitS: number | null;
  arrayIndex: number | null;
  application: string;
  machines: { machineId: number; name: string; tasks: number; benchmark: number }[];
  /** Seconds the scheduler planned on these machines. */
  plannedS: number;
  /** Seconds it will take on these machines where the submission said so (simulations); else null. */
  simulatedS: number | null;
}

export interface AssignmentBatch {
  /** Continue from here. */
  cursor: Cursor;
  /** True: this is the full list of the site's live runs; what the agent has beyond it is not its to run any more. */
  complete: boolean;
  assignments: Assignment[];
}

export interface RunReport {
  jobId: number;
  epoch: number;
  phase: 'STARTED' | 'ENDED';
  /** Epoch seconds. */
  at: number;
  exitCode: number | null;
  signal: string | null;
  /** Required for ENDED. */
  cause: EndCause | null;
  message: string | null;
  cpuS: number | null;
  ioWaitS: number | null;
  stdout: OutputPiece | null;
  stderr: OutputPiece | null;
}

export interface OutputPiece {
  body: string;
  /** Bytes the process wrote in all. */
  bytes: number;
  truncated: boolean;
}

export interface ReportOutcome {
  /** Aligned with the reports. `repeated`: it had been reported before; the agent may forget it. */
  results: ('accepted' | 'repeated' | 'stale-epoch' | 'unknown-run')[];
}

/** Which jobs: by id, or by a filter; only jobs that have not ended are meant. `userId` limits both to that user's. */
export interface JobSelection {
  ids?: number[];
  filter?: { states?: JobState[]; siteId?: number; userId?: number; application?: string; groupName?: string };
  ownedBy: number | null;
  /** At most so many; more selected is an error of the caller's to report. */
  limit: number;
}

export interface SelectionOutcome {
  /** Changed now, in id order. */
  changed: number[];
  /** Selected but in a state in which it cannot be done (ended jobs given by id among them), or not there, or not theirs. */
  unchanged: { jobId: number; state: JobState | null }[];
  /** More jobs match than `limit`: nothing was done. */
  tooMany: boolean;
}

export interface SweepRules {
  now: number;
  /** A machine whose heartbeat is older becomes silent: nothing new is put on it. Seconds. */
  silentAfterS: number;
  /** Runs on a machine silent for longer end as LOST. Seconds. */
  lostAfterS: number;
  /** A run that exceeds its limit by so much, because its agent did not stop it, is ended by the service. Seconds. */
  runTimeGraceS: number;
  onDeadlinePassed: 'RECORD' | 'CANCEL';
  maxAttempts: number;
  limit: number;
}

export interface SweepOutcome {
  silentMachines: number;
  lostRuns: number;
  deadlinesMissed: number;
  overLimit: number;
  /** Sites whose queue or machines changed: wake these; null in it means the root. */
  touched: (number | null)[];
}

export interface Store {
  // Out ---------------------------------------------------------------------------------------------------------------
  loadGrid(marginWindow: number): Promise<GridImage>;
  /** 'too-old' when retention has passed the cursor: load again. */
  changesSince(cursor: Cursor, limit: number): Promise<GridChanges | 'too-old'>;
  /** Reservations of all sites (only asked for where grid-wide licences exist). */
  reservations(): Promise<Reservation[]>;

  // In ----------------------------------------------------------------------------------------------------------------
  submit(submission: Submission): Promise<SubmitResult>;
  /** QUEUED at `from` → DISPATCHED at `to`, or between sites; refuses jobs that are elsewhere now and sites that are not UP. */
  applyMoves(moves: readonly Move[], context: PlanContext): Promise<Applied>;
  /** DISPATCHED at the site → ASSIGNED with a new epoch; re-checks machines, memory and licences against the truth. */
  applyStarts(siteId: number, starts: readonly Start[], reservation: Reservation | null, context: PlanContext): Promise<StartOutcome>;
  /** DISPATCHED at a site → QUEUED at the root (the site drains or is down). */
  takeBack(siteId: number, context: PlanContext, limit: number): Promise<number[]>;
  /** ASSIGNED → RUNNING → COMPLETED/FAILED/CANCELLED, or → QUEUED when lost and restartable. One transaction. */
  reportRuns(siteId: number, reports: readonly RunReport[], maxAttempts: number): Promise<ReportOutcome>;
  /** Live runs of a site after a cursor; without one, or with one that is too old, all of them (`complete`). */
  assignments(siteId: number, after: Cursor | null, limit: number): Promise<AssignmentBatch>;
  /** The site's agent lives; machines named are seen, unnamed are not. */
  heartbeat(siteId: number, machineIds: readonly number[], now: number): Promise<void>;

  /** Not started → CANCELLED; live → CANCELLING (the agent ends it). Also sites to wake. */
  cancel(selection: JobSelection, now: number): Promise<SelectionOutcome>;
  hold(selection: JobSelection): Promise<SelectionOutcome>;
  release(selection: JobSelection): Promise<SelectionOutcome>;
  reprioritise(selection: JobSelection, boost: number): Promise<SelectionOutcome>;

  sweep(rules: SweepRules): Promise<SweepOutcome>;
}
