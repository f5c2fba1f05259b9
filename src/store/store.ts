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

import type { PromisesImage } from '../core/local/policy.js';
import type {
  Dataset,
  Held,
  Job,
  JobInput,
  License,
  Link,
  Machine,
  Move,
  Preemption,
  Reservation,
  Run,
  RunTotals,
  Site,
  SiteImages,
  SiteLoad,
  Start,
  TreeScheduler,
  UserClass,
  WorkflowPlace,
} from '../core/model.js';
import type { Policy as PolicyDocument } from '../core/policy.js';
import type { Labels } from '../core/resources/constraint.js';
import type { OwnedDevice } from '../core/resources/devices.js';
import type { changeableFields, JobState } from '../core/states.js';
import type { Share } from './bounds.js';
import type { Copies, GrantedInput, Offers } from './federation.js';
import type { AssignedJob, GivenJob, JobOutput, StoredJob, TaskLaunch, WarnSignal } from './job-fields.js';
import type { JobFilter } from './job-filter.js';
import type { JobWait, NewWait } from './needs.js';
import type { EventKind, EventRow } from './rows.js';
import type { OutputPiece, RunReport } from './run-reports.js';
import type { StoppedRun } from './upkeep.js';

export type { Share } from './bounds.js';
export type { GrantedInput } from './federation.js';
export type { LocalRun, Method, OutputPiece, RunReport, RunStep, RunUsage } from './run-reports.js';

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
  licenses: License[];
  /** Between the root and sites. */
  schedulers: TreeScheduler[];
  /** Of each maintenance window and reservation the next TIMES_KNOWN times, by id. */
  holds: Held[];
  /** Every job that has not ended, by id. */
  jobs: JobImage[];
  /** Margins (s) of the last dispatched jobs with a deadline, oldest first: level 1's window. */
  margins: number[];
  reservations: Reservation[];
  datasets: Dataset[];
  links: Link[];
  /** Of the sites that have any. */
  images: SiteImages[];
  /** Of users whose quota is not 1. */
  quotas: { userId: number; share: number }[];
  /** What runs have shown. */
  totals: RunTotals[];
  /** Of the last hour. */
  traffic: TrafficCount[];
}

/** How many jobs came to a site's queues from elsewhere, and how many of its runs ended for good, within an interval. */
export interface TrafficCount {
  siteId: number;
  /** When the interval begins, epoch seconds: a multiple of the core's INTERVAL_S. */
  at: number;
  arrivals: number;
  services: number;
}

/** Where a job is, exactly at the cursor of the changes that tell it. */
export interface JobPosition {
  state: JobState;
  /** With QUEUED: in whose meta-queue; null: at the root. */
  siteId: number | null;
  /** Level-1 priority. */
  priority: number | null;
  /** When it last went from one meta-queue to another, epoch seconds. */
  migratedAt: number | null;
  /** When it came to the local queue of its site, epoch seconds. */
  dispatchedAt: number | null;
  /** With QUEUED at no site: the scheduler that holds it; null: the root. */
  schedulerId: number | null;
  treeMoves: number;
  run: Run | null;
}

/** What happened to a job within some changes, folded into the last of it. */
export interface JobChange {
  id: number;
  /** null: it has ended. */
  position: JobPosition | null;
  /** Its description, where these changes tell of it for the first time or change it; null: as known (or it has ended). */
  job: Job | null;
}

/** What happened after a cursor. */
export interface GridChanges {
  cursor: Cursor;
  /** In the order of their last event. */
  jobs: JobChange[];
  /** Margins (s) of jobs with a deadline that the root gave to a site, in the order in which it did: they enter the window. */
  margins: number[];
  /** Users whose class or share may have changed. */
  users: { userId: number; userClass: UserClass; share: number }[];
  /**
   * Present when anything of that kind changed: the whole new list, as it is now. With `more` it may be ahead of the
   * jobs: what is missing from it may still be named by them.
   */
  directory: Pick<GridImage, 'policy' | 'sites' | 'machines' | 'licenses' | 'schedulers' | 'holds'> | null;
  /** Datasets and links that may have changed, as they are now; null: it is not there any more. */
  datasets: { id: number; dataset: Dataset | null }[];
  links: { fromSiteId: number; toSiteId: number; link: Link | null }[];
  /** Of sites whose images may have changed, all of them. */
  images: SiteImages[];
  /** Totals of runs that are new or have changed, as they are now. */
  totals: RunTotals[];
  /** What came and went within these changes: it adds to what is known. */
  traffic: TrafficCount[];
  /** The limit cut this answer short: ask again from its cursor. */
  more: boolean;
}

/** A job to be submitted: what it says of itself (job-fields.ts), whether it shall wait to be released, and for what else (null: nothing). */
export type NewJob = GivenJob & {
  held: boolean;
  wait?: NewWait | null;
  /** Where it stands in the workflow that is submitted with it. */
  workflow?: WorkflowPlace | null;
};

export interface Submission {
  userId: number;
  idempotencyKey: string | null;
  /** Of the whole payload: the same key with another hash is refused. */
  payloadHash: string;
  jobs: NewJob[];
  /**
   * Makes a group of the jobs, which people can follow and cancel as one. Without it, jobs submitted together are still one
   * group to the schedulers.
   */
  group?: { name: string | null; template: unknown; idleTimeoutS?: number | null } | null;
  /** What the user's jobs that have not ended may come to; left out: no limit. */
  share?: Share;
  /** The entry in the audit log, given the jobs. It is written in the same transaction. */
  audit?: (jobIds: readonly number[]) => AuditEntry;
  /** Epoch seconds. */
  now: number;
}

export type SubmitResult =
  /** groupId: null for a single job without a group. */
  | { kind: 'accepted'; jobIds: number[]; groupId: number | null; repeated: boolean }
  | { kind: 'key-reused' }
  /** The service holds as many jobs that have not ended as it may. */
  | { kind: 'full'; limit: number; live: number }
  /** These jobs, which others of the submission need, were deleted meanwhile. */
  | { kind: 'gone'; jobs: number[] }
  /** The user does. */
  | { kind: 'share'; of: keyof Share; limit: number; used: number; asked: number }
  /** freesAt: epoch seconds at which this submission would be admitted, null when it never would (larger than the quota). */
  | { kind: 'quota'; limit: number; periodS: number; used: number; asked: number; freesAt: number | null };

/** What has failed of a group is run again. */
export interface Rerun extends Pick<Submission, 'share' | 'audit' | 'now'> {
  /** Whose jobs they are. */
  userId: number;
  /** A bulk group, the user's jobs with a group name, or just these, however they ended. */
  target: { jobGroup: number } | { group: string } | { jobs: readonly number[] };
  /** Of a group: what failed itself, or that and what was canceled for it. */
  only: 'FAILED' | 'FAILED_AND_DOWNSTREAM';
  /** More copies than that, or jobs that wait for them: nothing is done. */
  limit: number;
}

export type RerunOutcome =
  /** In the order of the jobs that they are copies of; `repointed`: those that need copies from now on. */
  | { kind: 'accepted'; jobIds: readonly number[]; repointed: readonly number[] }
  | { kind: 'too-many'; limit: number }
  | Extract<SubmitResult, { kind: 'quota' | 'full' | 'share' | 'gone' }>;

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
  /** The site has promised otherwise than the plan knew: nothing of it was done. */
  outdated: boolean;
};

/** What a site's scheduler has promised, under a policy that promises. */
export interface KeptPromises {
  /** Counts how often they were written or dropped; 0: never. */
  revision: number;
  promises: PromisesImage | null;
}

/** A signal that somebody has sent to a run. */
export interface SentSignal {
  /** Counts those of the run, from 1. */
  number: number;
  signal: WarnSignal | 'SIGSTOP' | 'SIGCONT';
  /** All its processes, only the one that its agent has started, or all others. */
  to: 'ALL' | 'COMMAND' | 'OTHERS';
}

/** One run as the site's agent must know it. */
export interface Assignment extends AssignedJob {
  jobId: number;
  userId: number;
  epoch: number;
  /** As `tokenOf` its assignment. */
  token: string;
  state: 'ASSIGNED' | 'RUNNING' | 'CANCELLING';
  launch: TaskLaunch;
  /** Of a job whose tasks are not all alike, in their order; null: they are. */
  jobParts: StoredJob['parts'];
  /** Of tasks that have been reported: index, and whether it has ended. */
  known: readonly (readonly [task: number, ended: boolean])[];
  /** A task has failed: the others are to end. */
  ending: boolean;
  /** Wanted back from the site's own scheduler, unless it has begun. */
  recalled: boolean;
  /** Of a run that is stopped for another job: from SIGTERM to SIGKILL. Null: as the agent has it. */
  stopGraceS: number | null;
  /** The last that people have sent it, in order. */
  signals: SentSignal[];
  /** `agentId`: who holds, or held last, the lease on it; `host`: its agent's, or else the name. */
  machines: {
    machineId: number;
    name: string;
    host: string;
    tasks: number;
    /** Of the tasks there, those of the first task first: names of devices, or of shares of devices. */
    devices: readonly string[];
    benchmark: number;
    agentId: number | null;
  }[];
  /** Of a run that the site's own scheduler places: the agent that hands it over. null: it has machines, or nobody serves the site. */
  siteAgentId: number | null;
  /** Seconds the scheduler planned on these machines. */
  plannedS: number;
  /** Seconds it will take on these machines where the submission said so (simulations), input and output included; else null. */
  simulatedS: number | null;
  /** How much of them is input and output, where the submission said so. */
  simulatedIoS: number | null;
  inputs: readonly JobInput[];
  /** What a peer's job reads, and the site that stands for the peer; null: it is none, or reads nothing. */
  foreignInputs: { siteId: number; inputs: readonly GrantedInput[] } | null;
  outputs: readonly JobOutput[];
}

/** A place in the list of a site's live runs: behind this job. What is new since the cursor follows when the list has ended. */
export interface ListPlace {
  cursor: Cursor;
  jobId: number;
}

export interface AssignmentBatch {
  /** Continue from here. */
  next: Cursor | ListPlace;
  /** A part of the list of all live runs; null: what is new. Beyond the whole list nothing is the agent's to run. */
  list: { first: boolean; last: boolean } | null;
  assignments: Assignment[];
}

/** What an agent has found on a machine. */
export interface Measurement {
  cpus: number;
  memoryMb: number;
  os: string;
  architecture: string;
  /** Of its CPUs; null: not known. */
  model: string | null;
  /** By the best of short standard runs while it was idle; about 100 on an ordinary machine. */
  benchmark: number;
  gpus: { name: string; memoryMb: number }[];
  /** What the agent says of the machine, name and text; left out by earlier versions: nothing. */
  labels?: Labels;
  /** What it has found; left out by earlier versions: nothing. */
  devices?: readonly OwnedDevice[];
}

/** A machine that an agent serves, as it says. */
export interface MachineClaim {
  name: string;
  /** null: nothing is run there, so nothing was measured (simulated). */
  measured: Measurement | null;
  /** Why nothing can be run there now; null: it can. */
  problem: string | null;
  /** Why the agent does not ask for the lease yet; null: it does. */
  waits: string | null;
}

/** An agent as it describes itself. */
export interface AgentRegistration {
  siteId: number;
  /** Kept with its state: the same after a restart, another where the state was lost. */
  identity: string;
  /** Of the process: the latest to register speaks for the agent. */
  instance: string;
  host: string;
  version: string;
  protocol: number;
  simulated: boolean;
  /** null: all of the site, as they are registered. */
  machines: readonly MachineClaim[] | null;
  /** The entry in the audit log if machines are registered with it; their names are added. */
  audit?: Omit<AuditEntry, 'after'>;
}

export interface LeasedMachine {
  /** null: there is no such machine. */
  machineId: number | null;
  name: string;
  /** Why the agent may not serve it; null: it has the lease. */
  refused: string | null;
  /** Why nothing is put on it though the agent has the lease. */
  problem: string | null;
}

export interface RegistrationOutcome {
  /**
   * `too-many`: the site has as many agents as it may. `superseded`: another instance has registered as this agent since. Nothing was
   * done then.
   */
  agentId: number | 'too-many' | 'superseded';
  machines: LeasedMachine[];
  /** A machine of the site is another than before: wake the root and the site. */
  changed: boolean;
  /** Schedulers of runs that were lost with a former agent; null is the root. */
  touched: (number | null)[];
}

/** An agent says that it is there. */
export interface AgentBeat {
  siteId: number;
  agentId: number;
  instance: string;
}

/** A run, or a task that is launched by itself, has written its checkpoint. */
export interface CheckpointReport extends Pick<RunReport, 'jobId' | 'epoch' | 'token'> {
  /** null: the whole run. */
  task: number | null;
  /** How long ago, by the reporter's clock, seconds. */
  ageS: number;
}

export interface RunCheckpoint {
  jobId: number;
  epoch: number;
  /** Epoch seconds. */
  at: number;
}

export interface HeartbeatOutcome {
  /**
   * Aligned with the beats. `superseded`: another instance has registered as this agent since. `unknown`: it has to register again; the
   * database may have been restored to before it did.
   */
  answers: ('known' | 'unknown' | 'superseded')[];
  /** Sites where machines are served again that were silent. */
  touched: number[];
}

/** What people are told besides of a site's own scheduler (`SiteLoad` of schema.graphql). */
export interface SiteDetails {
  partitions: readonly {
    name: string;
    isDefault: boolean;
    isUsed: boolean;
    state: string;
    nodes: number;
    nodeList: string;
    cpus: number;
    busyCpus: number;
    longestS: number | null;
  }[];
  queue: readonly { id: string | null; cpus: number; limitS: number; reason: string | null }[] | null;
  calls: { made: number; failed: number; listS: number; jobs: number } | null;
}

/** An image of jobs that lies at an agent. */
export interface ReportedImage {
  /** Its reference (`referenceOf`). */
  name: string;
  /** null: not known. */
  digest: string | null;
  sizeMb: number;
}

/** What a site that schedules itself has; see the core's `SiteLoad`. Machines by name; those that it has not registered are left out. */
export type ReportedLoad = Omit<SiteLoad, 'busy' | 'waits'> & {
  details: SiteDetails;
  /** What its scheduler counts itself; null: not told. */
  licenses: readonly { kind: string; copies: number }[] | null;
  busy: readonly { machine: string; cpus: number; memoryMb: number }[];
};

/** A piece of a run that goes on. */
export interface RunOutput extends OutputPiece {
  jobId: number;
  epoch: number;
  /** As of a report. */
  token?: string | null;
  /** Index of the task that wrote it; 0 where left out. */
  task?: number;
}

/** How much is kept of what runs write. */
/** What became of a piece of output. */
export interface OutputOutcome {
  result: ReportResult;
  received: number | null;
}

export interface OutputBounds {
  /** Of a stream that is longer the first half of so many bytes is kept, and about the last half. */
  keepBytes: number;
  /** Of all jobs of a user; beyond, the first bytes of each stream. Two transactions at a time may both use what is left: once, and no more. */
  userBytes: number;
}

export interface ReportOutcome {
  /**
   * Aligned with the reports. `repeated`: it had been reported before. `stale-epoch`: the run is not the job's any more,
   * because a later one is or because the service ended it; the agent stops it, should it still be there, and forgets it.
   * `unknown-run`: there was never such a run at this site.
   */
  results: ReportResult[];
  /** Schedulers with something new to do: the sites of ended runs, null (the root) for jobs that queue again. */
  touched: (number | null)[];
}

export type ReportResult = 'accepted' | 'repeated' | 'stale-epoch' | 'unknown-run';

/** Which jobs: by id, or by a filter; only jobs that have not ended are meant. `userId` limits both to that user's. */
export interface JobSelection {
  ids?: number[];
  filter?: JobFilter;
  ownedBy: number | null;
  /** At most so many; more selected is an error of the caller's to report. */
  limit: number;
  /** The entry in the audit log, given the jobs that are changed, if there are any. It is written in the same transaction. */
  audit?: ((changed: readonly number[]) => AuditEntry) | undefined;
}

/** Who did what to or with jobs, and why. */
export interface AuditEntry {
  userId: number | null;
  requestId: string | null;
  /** Name of the mutation. */
  action: string;
  /** Global id of what it was done to, or its kind. */
  target: string;
  reason: string | null;
  /** What was asked for. */
  after: object;
}

export interface SelectionOutcome {
  /** Changed now, in id order. */
  changed: number[];
  /** Selected but in a state in which it cannot be done (ended jobs given by id among them), or not there, or not theirs. */
  unchanged: { jobId: number; state: JobState | null }[];
  /** More jobs match than `limit`: nothing was done. */
  tooMany: boolean;
  /** Schedulers that hold or held these jobs; null is the root. */
  touched: (number | null)[];
}

export type ChangeableField = (typeof changeableFields)[number];
/** What of a job may be changed. */
export type ChangeableValues = Pick<StoredJob, ChangeableField>;
/** What of a job decides whether it may be changed. */
export type ChangingJob = ChangeableValues &
  Pick<
    StoredJob,
    'id' | 'userId' | 'state' | 'siteId' | 'epoch' | 'bytes' | 'inputs' | 'outputs' | 'parts'
  > & {
    /** A peer's. */
    foreign: boolean;
    /** null: it waits for nothing, or nobody has asked. */
    wait: JobWait | null;
  };

/** What speaks against changing a job. `field`: as in the API; null: its state does. */
export interface ChangeFault {
  field: string | null;
  code: 'BAD_USER_INPUT' | 'FORBIDDEN' | 'CONFLICT' | 'NEVER_FITS';
  message: string;
}

export interface JobChanges {
  /** New values; what is absent stays. */
  values: Partial<ChangeableValues>;
  /** Memory for each CPU of a task, of which each job has as many as it has; null: that of `values`, if any. */
  memoryMbPerCpu: number | null;
  /** What it is to wait for; what is absent stays. null: nothing of that is changed. */
  wait: Partial<NewWait> | null;
  /** Whose groups the needs mean by name. */
  userId: number;
  /** What is wrong with a job as it would be, beyond each new value by itself; null: nothing. */
  fault(job: Omit<ChangingJob, 'wait'>): ChangeFault | null;
  /** Bytes that jobs of the user may come to; null: no limit. */
  bytesMax: number | null;
  /** Epoch seconds. */
  now: number;
}

export interface ChangeOutcome extends Pick<SelectionOutcome, 'changed' | 'tooMany' | 'touched'> {
  /** Jobs that may not be changed so, and why. */
  refused: { jobId: number; fault: ChangeFault }[];
  /** Jobs given by id that are not there, or not theirs. */
  missing: number[];
  /** These jobs, which were to be needed, are gone: nothing was done. */
  gone: number[];
  /** What the user's jobs would come to, bytes, where that is more than they may: nothing was done. */
  bytes: number | null;
}

export interface SweepRules {
  now: number;
  /**
   * A machine whose agent was heard from longer ago becomes silent, its lease runs out: nothing new is put on it. Seconds. Silence is counted only from when
   * an API process has been there to talk to (`processSeen`): the service's own absence makes nothing silent.
   */
  silentAfterS: number;
  /** Runs on a machine silent for longer end as LOST. Seconds. */
  lostAfterS: number;
  /** A run that exceeds its limit by so much, because its agent did not stop it, is ended by the service. Seconds. */
  runTimeGraceS: number;
  onDeadlinePassed: 'RECORD' | 'CANCEL';
  maxAttempts: number;
  limit: number;
}

/** What retention deletes. */
export interface Retention {
  /**
   * Events before this instant (epoch seconds) that all followers have read (`follow`); cursors into them become too old.
   */
  eventsBefore: number;
  /** Events before it go even if a follower has not read them, and followers that nobody has followed since are forgotten. */
  unreadBefore: number;
  /**
   * Jobs that ended before it, with their runs, outputs and decisions; submissions, idempotency keys and points of job ratios as old;
   * groups with their last job.
   */
  jobsEndedBefore: number;
  /** Processes not seen since. */
  processesBefore: number;
  /** Entries of the audit log before it; keys that expired or were revoked, holds that ended, and agents last seen, before it. */
  auditsBefore: number;
  /** At most so many rows of a kind in one call; call again while `more`. */
  limit: number;
}

export interface Pruned {
  events: number;
  jobs: number;
  more: boolean;
}

/** A run that was in the way of a maintenance window or reservation. `lostWork`: core-seconds, as of the decision. */
export type StoppedForHold = Pick<StoppedRun, 'jobId' | 'class' | 'lostWork'>;

export interface SweepOutcome {
  silentMachines: number;
  lostRuns: number;
  deadlinesMissed: number;
  overLimit: number;
  /** Runs that holds have stopped, by job within each site. */
  stopped: readonly StoppedForHold[];
  /** Sites whose queue or machines changed: wake these; null in it means the root. */
  touched: (number | null)[];
}

/** For which blocked jobs it is to be decided: these and all that need one of these, those that are due, or all. */
export type NeedsNews = readonly number[] | 'DUE' | 'ALL';
/** How many blocked jobs have become so. */
export interface NeedsOutcome {
  queued: number;
  cancelled: number;
  held: number;
}

/** What a follower of the event feed is given. */
export type Followed =
  /** Another process holds it: ask again, without a cursor. */
  | { kind: 'held' }
  /**
   * It is new, or events that it had not read are gone: whatever it keeps in step with the events is to be looked at as it is now. Then
   * it goes on behind this cursor.
   */
  | { kind: 'start-over'; cursor: Cursor }
  /** In the order of commits, without gap; `cursor` is behind all that were looked through. */
  | { kind: 'events'; cursor: Cursor; events: EventRow[]; more: boolean };

/** Events of one of these kinds, or by which a job comes to one of these states. */
export interface EventFilter {
  kinds?: readonly EventKind[];
  states?: readonly JobState[];
}

/** Who follows the event feed. */
export interface FollowerTurn {
  /** What is done behind the events: each has one cursor, whoever holds it. */
  name: string;
  /** A process, by a name that no other one has or had. */
  holder: string;
  /** Everything up to here is done; null: at the beginning of a process, and after `held`. */
  after: Cursor | null;
  /** Events looked through. */
  limit: number;
  /** Of these, the ones handed out; null: all. */
  only?: EventFilter | null;
  /** Who has not asked again for so long (s) is replaced by whoever asks next. */
  leaseS?: number;
}

/** Long beside a pause of a process, short beside the patience of those who wait for what is done behind the events. */
export const FOLLOWER_LEASE_S = 4;

export interface Store {
  // Out ---------------------------------------------------------------------------------------------------------------
  /** `keep`: what is kept of each job, for whoever reads a million of them. */
  loadGrid(marginWindow: number, keep?: (job: Job) => Job): Promise<GridImage>;
  /** 'too-old' when retention has passed the cursor: load again. */
  changesSince(cursor: Cursor, limit: number): Promise<GridChanges | 'too-old'>;
  /**
   * Moves the cursor of a follower to what is done, and hands out the events behind it, all in one statement. One process holds a follower
   * at a time. One that was replaced meanwhile moves nothing (`held`). So whatever is done behind the events is done at least once, in order.
   */
  follow(turn: FollowerTurn): Promise<Followed>;
  /** Reservations of all sites (only asked for where grid-wide licenses exist). */
  reservations(): Promise<Reservation[]>;
  /** Of one site (only asked for where its policy promises). */
  promises(siteId: number): Promise<KeptPromises>;

  // In ----------------------------------------------------------------------------------------------------------------
  submit(submission: Submission): Promise<SubmitResult>;
  /**
   * To the local queue of `to` (→ DISPATCHED), to its meta-queue (→ QUEUED there), or to a scheduler above the sites (→ QUEUED). From null:
   * QUEUED at the root or such a scheduler; from a site: in its meta-queue. Refuses jobs that are elsewhere now, sites that are not UP,
   * and schedulers that are not there.
   */
  applyMoves(moves: readonly Move[], context: PlanContext): Promise<Applied>;
  /**
   * DISPATCHED at the site → ASSIGNED with a new epoch; re-checks machines, memory and licenses against the truth. A start without machines
   * hands the job over to the site's own scheduler.
   *
   * `promises`: under a policy that promises, what the plan promises and the revision that it was made on. When the site has
   * another revision by now, nothing is done. Without it, what was promised is dropped.
   */
  applyStarts(
    siteId: number,
    starts: readonly Start[],
    reservation: Reservation | null,
    context: PlanContext,
    promises?: KeptPromises | null,
  ): Promise<StartOutcome>;
  /** DISPATCHED at a site, or in its meta-queue → QUEUED at the root (the site drains or is down). */
  takeBack(siteId: number, context: PlanContext, limit: number): Promise<number[]>;
  /**
   * DISPATCHED at the site, or in its meta-queue → QUEUED at the root, for this reason (a reason code): of these jobs those that are
   * still there. Answers with them, in the order of ids.
   */
  returnJobs(
    siteId: number,
    jobIds: readonly number[],
    reason: string,
    context: PlanContext,
  ): Promise<number[]>;
  /**
   * Asks the site's agent for jobs that its own scheduler has and has not started, for this reason (a reason code). They stay ASSIGNED until
   * it reports that they will not begin there. Answers with those that had not been asked for, in the order of ids.
   */
  recallRuns(
    siteId: number,
    jobIds: readonly number[],
    reason: string,
    context: PlanContext,
  ): Promise<number[]>;
  /**
   * Jobs that wait at the site are promised room (they stay DISPATCHED), and runs of lower classes there are stopped for it: ASSIGNED, RUNNING →
   * CANCELLING, and when the run has ended → QUEUED (cause PREEMPTED, which counts for nothing), or CANCELLED. Each all or none. Answers with
   * the jobs for which that was done, in the order given.
   */
  preempt(siteId: number, preemptions: readonly Preemption[], context: PlanContext): Promise<number[]>;
  /**
   * Keeps what runs of the site write while they go on. A piece that comes twice does no harm. Aligned with the pieces; `stale-epoch`:
   * the run is over. `received`: of an empty piece, up to which byte its stream is kept; null for others.
   */
  reportOutput(
    siteId: number,
    pieces: readonly RunOutput[],
    bounds: OutputBounds,
    /** Who reports: runs and tasks on machines that it does not serve are unknown. null: the service. */
    agentId?: number | null,
  ): Promise<OutputOutcome[]>;
  /**
   * ASSIGNED → RUNNING → COMPLETED/FAILED/CANCELLED, or → QUEUED when lost and restartable. One transaction.
   *
   * @param userBytes see {@link OutputBounds}; by default without a bound
   */
  reportRuns(
    siteId: number,
    reports: readonly RunReport[],
    maxAttempts: number,
    /**
     * Who reports: tasks on machines that it does not serve are unknown, and so are runs unless it serves all their machines, or of those
     * that are launched once the first. null: the service, for all of the site.
     */
    agentId?: number | null,
    userBytes?: number,
  ): Promise<ReportOutcome>;
  /**
   * Live runs of a site after a cursor; without one, with one that is too old or not reached yet, or when runs have been given up since, a list of all of
   * them: so the agent stops those. So many runs, and so many bytes as their jobs are counted (`bytesOf`), or one run. Of an agent: those on machines that
   * it serves.
   */
  assignments(
    siteId: number,
    after: Cursor | ListPlace | null,
    limit: number,
    bytesMax: number,
    agentId?: number | null,
  ): Promise<AssignmentBatch>;
  /**
   * An agent takes leases on machines that are free, its own, or whose lease has run out: then the runs of their former agent end as
   * LOST first. Machines that were measured and are not registered yet are registered.
   */
  registerAgent(
    registration: AgentRegistration,
    now: number,
    maxAttempts: number,
  ): Promise<RegistrationOutcome>;
  /** What a site that schedules itself has, for the schedulers. False: the agent serves no machine of the site. */
  reportLoad(siteId: number, agentId: number, load: ReportedLoad, now: number): Promise<boolean>;
  /**
   * All images at an agent, each name once: they replace what it told before. Not `serves`: the agent serves no machine of the site, so what it has
   * does not count.
   */
  reportImages(
    siteId: number,
    agentId: number,
    images: readonly ReportedImage[],
  ): Promise<{ serves: boolean; changed: boolean }>;
  /** Agents renew the leases on all their machines. */
  heartbeat(beats: readonly AgentBeat[], now: number): Promise<HeartbeatOutcome>;
  /**
   * An agent tells when live runs of its machines have last written their checkpoints. What is about others, or about a time that is known to be
   * over, changes nothing: so it may be told twice, or late.
   */
  noteCheckpoints(siteId: number, agentId: number, reports: readonly CheckpointReport[]): Promise<void>;
  /** When live runs of a site have last written their checkpoints, where they have. */
  checkpointsAt(siteId: number): Promise<RunCheckpoint[]>;

  /** Not started → CANCELLED; live → CANCELLING (the agent ends it, and the job ends with this cause). */
  cancel(
    selection: JobSelection,
    now: number,
    cause: 'CANCELLED_BY_USER' | 'CANCELLED_BY_OPERATOR',
  ): Promise<SelectionOutcome>;
  /** Live → CANCELLING, and when the run has ended → QUEUED: with the cause REQUEUED, which counts for nothing. */
  requeue(selection: JobSelection): Promise<SelectionOutcome>;
  /** A signal for the RUNNING ones that agents of ours run: it is the last of the run's signals from now on. */
  signal(selection: JobSelection, sent: Omit<SentSignal, 'number'>): Promise<SelectionOutcome>;
  /** QUEUED, DISPATCHED → HELD. From a meta-queue it is held as if by the root. */
  hold(selection: JobSelection): Promise<SelectionOutcome>;
  /** QUEUED, DISPATCHED → HELD, because no plan with it can be carried out: the message says why. Answers with those that it did. */
  setAside(jobIds: readonly number[], message: string): Promise<number[]>;
  /** HELD → back to its site's queue, or to the root when it was held there or its site is not UP. */
  release(selection: JobSelection): Promise<SelectionOutcome>;
  /**
   * BLOCKED → QUEUED where what a job needs has happened and its time has come; where it cannot happen any more → CANCELLED or HELD, with
   * all that follows for others, in one transaction. Asked behind each event of a job that starts, ends or becomes BLOCKED, so nothing is missed:
   * what others did before a job's own event is seen then, and what they do later comes behind it.
   */
  settleNeeds(about: NeedsNews, now: number): Promise<NeedsOutcome>;
  /** What jobs wait for, or have waited for, by id. */
  waitsOf(jobIds: readonly number[]): Promise<Map<number, JobWait>>;
  /** Sets the boost of jobs that have not ended. */
  reprioritize(selection: JobSelection, boost: number): Promise<SelectionOutcome>;

  /**
   * Changes what jobs ask for. QUEUED, DISPATCHED → QUEUED at the root, or BLOCKED, where schedulers have to decide anew; HELD and BLOCKED stay.
   * `changed` are those that are now as they are to be, also where they already were.
   */
  revise(selection: JobSelection, changes: JobChanges): Promise<ChangeOutcome>;

  /**
   * Submits copies of jobs of a group that ended badly, once each; they stay as they ended. Waiting and HELD jobs that need one of them need its
   * copy from now on; those that were HELD because it could not happen any more are BLOCKED again.
   */
  rerun(request: Rerun): Promise<RerunOutcome>;

  /** Silent machines, lost runs, passed deadlines, exceeded limits: what time does when nobody reports it. */
  sweep(rules: SweepRules): Promise<SweepOutcome>;
  /** A process of the service lives. Call it every few seconds: after a gap of PRESENCE_GAP_S it counts as new. */
  processSeen(id: string, kind: 'api' | 'worker', now: number): Promise<void>;
  prune(retention: Retention): Promise<Pruned>;

  // Peers ---------------------------------------------------------------------------------------------------------------
  /** The owner's side: jobs of ours that peers may have. */
  readonly offers: Offers;
  /** The guest's side: jobs of peers that are here. */
  readonly copies: Copies;
}

/** A process not seen for so long (s) is not there, and one seen again after it has been away meanwhile. */
export const PRESENCE_GAP_S = 30;
