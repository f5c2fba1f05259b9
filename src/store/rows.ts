/** Rows as the store's readers hand them out. Times are epoch seconds; ids of jobs, events and decisions are exact integers. */
import type { Dataset, JobInput, Link, SiteState, UserClass } from '../core/model.js';
import type { EndCause, JobState } from '../core/states.js';

export interface JobRow {
  id: number;
  userId: number;
  state: JobState;
  /** Which site's scheduler holds it, or where it ended; QUEUED with a site: in its meta-queue. */
  siteId: number | null;
  name: string | null;
  application: string;
  groupName: string | null;
  arrayIndex: number | null;
  command: string;
  arguments: string[];
  environment: Record<string, string>;
  workingDirectory: string | null;
  tasks: number;
  cpusPerTask: number;
  memoryMbPerTask: number;
  licenses: string[];
  os: string | null;
  architecture: string | null;
  estimateS: number;
  benchmark: number;
  runTimeLimitS: number | null;
  deadline: number | null;
  deadlineMissed: boolean;
  sandboxMb: number;
  outputMb: number;
  inputs: JobInput[];
  originSiteId: number | null;
  computationShare: number | null;
  restartable: boolean;
  simulatedRunS: number | null;
  simulatedIoS: number | null;
  /** Of jobs that were submitted together. */
  groupId: number | null;
  migratedAt: number | null;
  priority: number | null;
  boost: number;
  epoch: number;
  cause: EndCause | null;
  message: string | null;
  exitCode: number | null;
  submittedAt: number;
  dispatchedAt: number | null;
  startedAt: number | null;
  endedAt: number | null;
}

export interface RunRow {
  jobId: number;
  epoch: number;
  siteId: number;
  machineIds: number[];
  machineTasks: number[];
  licenseIds: number[];
  policyVersion: number;
  assignedAt: number;
  plannedS: number;
  startedAt: number | null;
  endedAt: number | null;
  exitCode: number | null;
  signal: string | null;
  cause: EndCause | null;
  message: string | null;
  cpuS: number | null;
  ioWaitS: number | null;
}

export interface OutputRow {
  jobId: number;
  epoch: number;
  stream: 'STDOUT' | 'STDERR';
  body: string;
  bytes: number;
  truncated: boolean;
}

export type EventKind =
  | 'JOB_STATE'
  | 'JOB_CHANGED'
  | 'SITE'
  | 'MACHINE'
  | 'LICENSE'
  | 'USER'
  | 'POLICY'
  | 'SIMULATION'
  /** About dataset `entityId` (no site), or the link from site `entityId` to site `siteId`. */
  | 'DATA';

/** `fromState` and `toState` are equal for JOB_CHANGED; both are null where the event is not about a job. */
export interface EventRow {
  id: number;
  at: number;
  kind: EventKind;
  entityId: number;
  seq: number | null;
  fromState: JobState | null;
  toState: JobState | null;
  /** Where it is now; null for a QUEUED job: at the root. */
  siteId: number | null;
  /** Of an event after which the job waits: the site that it was at before. */
  fromSiteId: number | null;
  userId: number | null;
  epoch: number | null;
  cause: EndCause | null;
}

export interface DecisionRow {
  id: number;
  jobId: number;
  at: number;
  kind: 'DISPATCH' | 'START' | 'TAKE_BACK';
  reason: string;
  policyVersion: number;
  cycle: string;
  fromSiteId: number | null;
  siteId: number | null;
  /** JSON text: the core's DispatchExplanation or StartExplanation. */
  detail: string;
}

export interface SiteRow {
  id: number;
  name: string;
  state: SiteState;
  latitude: number | null;
  longitude: number | null;
  localPolicy: unknown;
  maxRunningJobs: number | null;
  agentSeenAt: number | null;
  createdAt: number;
  removedAt: number | null;
}

export interface MachineRow {
  id: number;
  siteId: number;
  name: string;
  state: 'UP' | 'DRAINING' | 'DOWN';
  cpus: number;
  memoryMb: number;
  benchmark: number;
  os: string;
  architecture: string;
  licenseIds: number[];
  heartbeatAt: number | null;
  silent: boolean;
  cpusUsed: number;
  memoryUsedMb: number;
  maxTasks: number | null;
  tasksUsed: number;
  removedAt: number | null;
}

export interface LicenseRow {
  id: number;
  kind: string;
  copies: number;
  siteId: number | null;
  inUse: number;
  removedAt: number | null;
}

export type UserRole = 'ADMIN' | 'OPERATOR' | 'USER' | 'AGENT';

export interface UserRow {
  id: number;
  name: string;
  class: UserClass;
  role: UserRole;
  quotaShare: number;
  submissionLimit: number | null;
  submissionPeriodS: number | null;
  active: boolean;
  createdAt: number;
}

export interface ApiKeyRow {
  id: number;
  userId: number;
  name: string;
  prefix: string;
  siteId: number | null;
  createdAt: number;
  expiresAt: number | null;
  revokedAt: number | null;
  lastUsedAt: number | null;
}

export interface PolicyRow {
  version: number;
  document: unknown;
  reason: string;
  authorId: number | null;
  revertsTo: number | null;
  createdAt: number;
}

export type SimulationState = 'QUEUED' | 'RUNNING' | 'DONE' | 'FAILED' | 'CANCELLED';

/** A what-if: jobs submitted within [from, to) under the policy of a version and under a candidate. */
export interface SimulationRow {
  id: number;
  userId: number;
  state: SimulationState;
  /** 0 to 1. */
  progress: number;
  policyVersion: number;
  candidate: unknown;
  from: number;
  to: number;
  reason: string | null;
  createdAt: number;
  endedAt: number | null;
  /** When DONE: what the simulator answered. */
  result: unknown;
  /** When FAILED: why. */
  message: string | null;
}

export interface AuditRow {
  id: number;
  at: number;
  userId: number | null;
  action: string;
  target: string;
  reason: string | null;
  before: unknown;
  after: unknown;
}

export interface DatasetRow extends Dataset {
  name: string;
  createdAt: number;
  removedAt: number | null;
}

export interface LinkRow extends Link {
  measuredAt: number;
  /** AGENT: the mean of its last measurements. */
  source: 'ADMIN' | 'AGENT';
}

export interface LinkMeasurementRow extends Link {
  id: number;
  at: number;
}

/** What the runs of an application have shown, over all users; times scaled to the reference power. */
export interface RatioRow {
  application: string;
  runs: number;
  turnaroundS: number;
  executionS: number;
  ioS: number;
  /** Share of computation, 0 to 1. */
  computation: number;
  updatedAt: number;
}

/** One run as it entered the history, times as measured, and what the application's history was from it on. */
export interface RatioPointRow {
  id: number;
  application: string;
  at: number;
  jobId: number;
  epoch: number;
  siteId: number;
  turnaroundS: number;
  ioS: number;
  /** Power of the slowest machine of the run. */
  sitePower: number;
  runs: number;
  computation: number;
}

export interface GroupRow {
  id: number;
  userId: number;
  name: string | null;
  template: unknown;
  size: number;
  createdAt: number;
}

export interface ReservationRow {
  siteId: number;
  jobId: number;
  at: number;
  machineIds: number[];
  machineTasks: number[];
}

/** What a site has to do and to do it with. */
export interface SiteStats {
  siteId: number;
  /** In its meta-queue. */
  metaQueued: number;
  /** DISPATCHED. */
  queued: number;
  /** ASSIGNED, RUNNING, CANCELLING. */
  running: number;
  /** Of machines in service. */
  cpus: number;
  cpusUsed: number;
}
