/**
 * A job, described once: its fields, their types, who writes them, and whether schedulers, agents and peers are told them. Inserting, reading,
 * mirroring, what is said to agents and peers, and the TypeScript types follow from it. Names are those of `schema.graphql`; a column has the same name in snake_case. Tests compare it with
 * the database, the schema, the core's `Job` and the list of actions. CONTRIBUTING.md says what a new field needs.
 */
import type {
  Avoids,
  Exclusive,
  JobInput,
  JobPart,
  JobPreference,
  PreemptedFor,
  PromisedRoom,
  SameSwitch,
  TasksPerMachine,
  WorkflowPlace,
} from '../core/model.js';
import type { DeviceRequest } from '../core/resources/devices.js';
import type { Retry } from '../core/runs/retry.js';
import type { EndCause, JobState } from '../core/states.js';

/** Files of a job's directory that are kept: by the service, or as a dataset of this name at the site. */
export interface JobOutput {
  path: string;
  dataset?: string;
}

/** On which terms the own scheduler of a site is to take a job, in words of that scheduler. What is left out the site's operator decides. */
export interface SiteTerms {
  partition?: string;
  account?: string;
  qos?: string;
}

/** Where a run writes its state to begin again from it, and the signal that tells it to when it is stopped for another. */
export interface Checkpoint {
  /** Below its directory. */
  path: string;
  signal: WarnSignal;
}

/** A file that the agent of a run fetches before it starts, by http(s). The URL may have secrets in it (platform/urls.ts). */
export interface Download {
  url: string;
}

/** A file or directory of a run's directory that its agent sends to a URL by http(s), when the command has succeeded. */
export interface Upload {
  path: string;
  url: string;
}

/** Of a terminal, in characters. */
export interface TerminalSize {
  rows: number;
  columns: number;
}

type FieldType =
  | 'bigint'
  | 'integer'
  | 'float8'
  | 'boolean'
  | 'text'
  | 'text[]'
  | 'jsonb'
  | 'timestamptz'
  | EnumType;
const enumTypes = ['job_state', 'end_cause', 'task_launch', 'task_failure'] as const;
type EnumType = (typeof enumTypes)[number];
export const isEnum = (type: string): type is EnumType => (enumTypes as readonly string[]).includes(type);

/** Which tasks of a job its agents start: each, or the first only, which sees to the others itself. */
const launches = ['EVERY_TASK', 'ONCE'] as const;
export type TaskLaunch = (typeof launches)[number];
/** What becomes of the other tasks when one has failed. */
const failures = ['END_ALL', 'CONTINUE'] as const;
export type TaskFailure = (typeof failures)[number];
/** Signals that may warn a run of its limit: those that its shell outlives. */
export const warnSignals = [
  'SIGTERM',
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGALRM',
  'SIGUSR1',
  'SIGUSR2',
] as const;
export type WarnSignal = (typeof warnSignals)[number];
/** The values of types that whoever submits a job chooses from. */
export const givenEnums = { task_launch: launches, task_failure: failures } as const;

/** What users get mail about: docs/mail.md. */
export const jobMailKinds = ['BEGIN', 'END', 'FAIL', 'LIMIT_80', 'WAITED', 'GROUP_DONE'] as const;
export const mailKinds = [...jobMailKinds, 'RESERVATION'] as const;
/** Of who has not chosen any. */
export const DEFAULT_MAIL_KINDS: readonly MailKind[] = ['RESERVATION'];
export type MailKind = (typeof mailKinds)[number];

/** The object of the core that it is part of: the job, or the data that the job moves; null: schedulers do not know it. */
type Scheduled = 'JOB' | 'DATA' | null;

interface Field<T> {
  readonly type: FieldType;
  readonly nullable: boolean;
  /** Stored as null when empty. */
  readonly sparse: boolean;
  readonly scheduled: Scheduled;
  /** For the type only. */
  readonly value?: T;
}

type More = Partial<Pick<Field<unknown>, 'scheduled' | 'sparse'>>;
const field = (type: FieldType, nullable: boolean, more: More) => ({
  ...{ type, nullable, sparse: false, scheduled: null },
  ...more,
});
const always = <T>(type: FieldType, more: More = {}): Field<T> => field(type, false, more);
const maybe = <T>(type: FieldType, more: More = {}): Field<T | null> => field(type, true, more);

const ofJob = { scheduled: 'JOB' } as const;
const ofData = { scheduled: 'DATA' } as const;

/** Agents are told it of a run, as it is (`Assignment` in schema.graphql). */
const toAgents = <F extends object>(field: F) => ({ ...field, agents: true as const });
/** Peers are told it with an offer (`OfferedJob`). */
const offered = <F extends object>(field: F) => ({ ...field, peers: 'OFFER' as const });
/** Peers are not told it, as it means something at the sites of this service only: a job that has it is offered to none. */
const staying = <F extends object>(field: F) => ({ ...field, peers: 'STAYS' as const });
/** A peer is told it when it was granted the run (`ClaimResult`); before, it is nobody's business but the owner's. */
const granted = <F extends object>(field: F) => ({ ...field, peers: 'GRANT' as const });

/** What a job says of itself, written by whoever submits it. Times are epoch seconds. */
export const givenFields = {
  name: offered(maybe<string>('text')),
  application: offered(toAgents(always<string>('text', ofJob))),
  /** On whose behalf it runs: a peculiarity of its own at level 1 (two-level.md, "User"). Peers are not told: each has projects of its own. */
  project: toAgents(maybe<string>('text', ofJob)),
  groupName: maybe<string>('text'),
  arrayIndex: offered(toAgents(maybe<number>('integer'))),
  command: granted(toAgents(always<string>('text'))),
  arguments: granted(toAgents(always<string[]>('text[]'))),
  environment: granted(toAgents(always<Record<string, string>>('jsonb'))),
  workingDirectory: granted(toAgents(maybe<string>('text'))),
  tasks: offered(toAgents(always<number>('integer', ofJob))),
  cpusPerTask: offered(toAgents(always<number>('integer', ofJob))),
  memoryMbPerTask: offered(toAgents(always<number>('integer', ofJob))),
  /** Amounts by kind of resource. */
  resourcesPerTask: staying(toAgents(maybe<Record<string, number>>('jsonb', ofJob))),
  /** Devices by what they are, beside those amounts. A job that has any has amounts, too, if only none. */
  devicesPerTask: offered(toAgents(maybe<readonly DeviceRequest[]>('jsonb', ofJob))),
  /** How many tasks are on each of its machines; null: as many as fit. */
  tasksPerMachine: staying(toAgents(maybe<TasksPerMachine>('jsonb', ofJob))),
  /** What it has to itself. */
  exclusive: staying(toAgents(maybe<Exclusive>('text', ofJob))),
  /** Labels of which all its machines have the same values; in order; null: none. */
  allAlike: staying(maybe<readonly string[]>('jsonb', ofJob)),
  /** Whether, or how long, it waits for machines on one switch; null: not at all. */
  sameSwitch: staying(toAgents(maybe<SameSwitch>('jsonb', ofJob))),
  /** Where its tasks are not all alike: the amounts above are then those of `envelopeOf`. Agents are told it by another name. */
  parts: offered(maybe<readonly JobPart[]>('jsonb', ofJob)),
  /** Kinds; stored in order. */
  licenses: offered(toAgents(always<string[]>('text[]', ofJob))),
  /** Amounts of kinds that are counted in pools of sites and of the grid, for the whole job. */
  resources: staying(toAgents(maybe<Record<string, number>>('jsonb', ofJob))),
  os: offered(maybe<string>('text', ofJob)),
  architecture: offered(maybe<string>('text', ofJob)),
  /** An expression over labels of machines. */
  machineConstraint: staying(toAgents(maybe<string>('text', ofJob))),
  /** What it runs in; null: the system of its machine. */
  image: staying(toAgents(maybe<string>('text', ofJob))),
  /** The size of the terminal in which its command runs; null: it has none. Peers are not told: what is typed has no way to them. */
  terminal: staying(toAgents(maybe<TerminalSize>('jsonb'))),
  /** Of sites that schedule themselves; others do not look at it. Peers are not told: such a job is taken there as their operators have it. */
  siteTerms: toAgents(maybe<SiteTerms>('jsonb')),
  estimateS: offered(always<number>('float8', ofJob)),
  benchmark: offered(always<number>('float8', ofJob)),
  runTimeLimitS: offered(toAgents(maybe<number>('float8', ofJob))),
  /** So long before the limit the run gets `warnSignal`; null: never. Peers are not told: of them, versions without it are in use. */
  warnS: toAgents(maybe<number>('float8')),
  warnSignal: toAgents(always<WarnSignal>('text')),
  /** From SIGTERM at the limit to SIGKILL. */
  killGraceS: toAgents(always<number>('float8', ofJob)),
  deadline: offered(maybe<number>('timestamptz', ofJob)),
  /** What travels with the job from the site it is submitted from: its sandbox. */
  sandboxMb: offered(always<number>('float8', ofData)),
  /** What goes back there. */
  outputMb: offered(always<number>('float8', ofData)),
  /** At most 100. */
  inputs: always<readonly JobInput[]>('jsonb', { scheduled: 'DATA', sparse: true }),
  /** What its runs leave to the next. Peers are not told: a run there begins from the start, and leaves nothing. */
  checkpoint: toAgents(maybe<Checkpoint>('jsonb')),
  /** The site it is submitted from; null: nowhere in the grid. */
  originSiteId: maybe<number>('integer', ofData),
  /** What is kept of its files. At most 100. */
  outputs: always<readonly JobOutput[]>('jsonb', { sparse: true }),
  /** Files from and to servers that neither the catalog nor the service knows. At most 100 each. Whether peers' agents reach them nobody knows. */
  downloads: staying(toAgents(maybe<readonly Download[]>('jsonb'))),
  uploads: staying(toAgents(maybe<readonly Upload[]>('jsonb'))),
  /** Declared share of computation in its run time, 0 to 1. */
  computationShare: offered(maybe<number>('float8', ofData)),
  /** What it would like and can do without. At most 16. */
  preferences: offered(always<readonly JobPreference[]>('jsonb', { scheduled: 'JOB', sparse: true })),
  restartable: always<boolean>('boolean', ofJob),
  /** null: it says nothing of retries. Peers are not told: whether it runs again is decided here. */
  retry: maybe<Retry>('jsonb'),
  launch: offered(toAgents(always<TaskLaunch>('task_launch'))),
  onTaskFailure: offered(always<TaskFailure>('task_failure')),
  /** What a simulated agent takes as the real run time on the reference machine. */
  simulatedRunS: offered(maybe<number>('float8')),
  /** How much of it is input and output. */
  simulatedIoS: offered(maybe<number>('float8')),
  /** What its user gets mail about; null: as the user has chosen for all jobs. Peers are not told: mail is its owner's to send. */
  mail: maybe<readonly MailKind[]>('text[]'),
  /** The reservation in which it runs. */
  reservationId: staying(maybe<number>('integer', ofJob)),
  /** What an operator adds to its priorities. */
  boost: always<number>('integer', ofJob),
  /** The name of its class in the policy; null: it has none. A peer takes the job if its policy has a class of that name for our jobs. */
  class: offered(maybe<string>('text', ofJob)),
  /** Whether its work counts as charged, by its class when it was submitted, or given that class: not said by whoever submits it. */
  charged: always<boolean>('boolean'),
  /** Without a class, its rank. Runs of lower ranks may be stopped for it. */
  preemptionClass: always<number>('integer', ofJob),
};

/** What becomes of it: written by the actions of core/states.ts, each by what it sets and clears. */
const keptFields = {
  id: always<number>('bigint', ofJob),
  userId: always<number>('integer', ofJob),
  /** Of jobs that were submitted together. */
  groupId: maybe<number>('bigint', ofJob),
  submittedAt: always<number>('timestamptz', ofJob),
  state: always<JobState>('job_state'),
  /** Which site's scheduler holds it, or where it ended; QUEUED with a site: in its meta-queue. */
  siteId: maybe<number>('integer'),
  /** QUEUED without a site: which scheduler between the root and sites holds it; null: the root. */
  schedulerId: maybe<number>('integer', ofJob),
  /** Level-1 priority, without the boost. */
  priority: maybe<number>('integer', ofJob),
  /** When it last went from one meta-queue to another. */
  migratedAt: maybe<number>('timestamptz', ofJob),
  /** When it came to its site's local queue, in whose order of arrival it is. */
  dispatchedAt: maybe<number>('timestamptz', ofJob),
  /** Of its latest run; 0: it had none. */
  epoch: always<number>('integer'),
  /** Counted retries made. */
  retries: always<number>('integer'),
  /** Of its latest run. */
  startedAt: maybe<number>('timestamptz'),
  message: maybe<string>('text'),
  exitCode: maybe<number>('integer'),
  deadlineMissed: always<boolean>('boolean'),
  /** How many of the jobs with which it was changed run at once (lanes.ts); 0: as many as can; null: nobody has said so. */
  atOnce: maybe<number>('integer'),
  endedAt: maybe<number>('timestamptz'),
  cause: maybe<EndCause>('end_cause'),
  /** From when it could be scheduled, where it had to wait for others or for a time (needs.ts); schedulers count its age from then on. */
  eligibleAt: maybe<number>('timestamptz', ofJob),
  /** The job of which it is a copy, made by a rerun. */
  rerunOf: maybe<number>('bigint'),
  /** Of a job that was submitted with others that it needs, or that need it; a copy has that of its job. */
  workflow: maybe<WorkflowPlace>('jsonb', ofJob),
};

/** What only the store knows. */
const ownFields = {
  /** What it takes of its user's share while it lives (rules.ts, bytesOf). */
  bytes: always<number>('integer'),
  /** How often butterfly and load-balance have moved it (grid-tree.md). */
  treeMoves: always<number>('integer', ofJob),
  /** Where its next run is not to be. */
  avoids: maybe<Avoids>('jsonb', ofJob),
  /** What was made free for it. */
  promised: maybe<PromisedRoom>('jsonb', ofJob),
  /** For whom its run is being stopped, or was stopped for good. */
  preempted: maybe<PreemptedFor>('jsonb'),
  /** What its latest change was, where states do not say it: its event tells it, and the next one clears it. */
  note: maybe<string>('text'),
  /** Counts its changes. */
  seq: always<number>('integer'),
  /** Time of its latest event; null: that is the submission. */
  changedAt: maybe<number>('timestamptz'),
  /** Why it is, or was, to be stopped: the cause of its end, should it end as CANCELLED. */
  stopCause: maybe<EndCause>('end_cause'),
};

/** Of people's readers. */
export const shownFields = { ...givenFields, ...keptFields };
export const jobFields = { ...shownFields, ...ownFields };

export type JobField = keyof typeof jobFields;
type Values<F> = { [K in keyof F]: F[K] extends Field<infer T> ? T : never };

/** A job as it is submitted. */
export type GivenJob = Values<typeof givenFields>;
type Marked<M> = {
  [K in keyof GivenJob as (typeof givenFields)[K] extends M ? K : never]: GivenJob[K];
};
const marked = <M extends object>(mark: M): (keyof Marked<M>)[] =>
  Object.entries(givenFields).flatMap(([name, field]) =>
    Object.entries(mark).every(([key, value]) => (field as object as Record<string, unknown>)[key] === value)
      ? [name as keyof Marked<M>]
      : [],
  );

/** These fields of a job, and nothing else. */
export const only = <T, K extends keyof T>(job: T, fields: readonly K[]): Pick<T, K> =>
  Object.fromEntries(fields.map((field) => [field, job[field]])) as Pick<T, K>;

/** What agents are told as it is. */
export type AssignedJob = Marked<{ agents: true }>;
export const assignedFields = marked({ agents: true as const });
/** What peers are told with an offer, as it is; its preferences of sites apart. */
export type OfferedFields = Marked<{ peers: 'OFFER' }>;
export const offeredFields = marked({ peers: 'OFFER' as const });
/** What a peer is told with a grant. */
export type GrantedFields = Marked<{ peers: 'GRANT' }>;
export const grantedFields = marked({ peers: 'GRANT' as const });

/** With which a job is offered to nobody, unless they are null. */
export type StayingFields = Marked<{ peers: 'STAYS' }>;
export const stayingFields = marked({ peers: 'STAYS' as const });

/** A job as people read it. */
export type ShownJob = Values<typeof shownFields>;
export type StoredJob = Values<typeof jobFields>;

const column = (field: string): string => field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
/** The column of each field. */
export const jobColumn = Object.fromEntries(
  Object.keys(jobFields).map((field) => [field, column(field)]),
) as Readonly<Record<JobField, string>>;

/** What SQL reads of a field, of a row `j` unless told otherwise. */
export function readField(field: JobField, of = 'j.'): string {
  const { type, sparse } = jobFields[field];
  const name = `${of}${jobColumn[field]}`;
  if (type === 'timestamptz') return `date_part('epoch', ${name})`;
  return sparse ? `coalesce(${name}, '[]')` : name;
}

/** What schedulers know of a job, by the object of the core that it is a part of. */
export const scheduledFields = (part: 'JOB' | 'DATA'): JobField[] =>
  (Object.keys(jobFields) as JobField[]).filter((field) => jobFields[field].scheduled === part);
