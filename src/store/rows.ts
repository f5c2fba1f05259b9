/** Rows as the store's readers hand them out. Times are epoch seconds; ids of jobs, events and decisions are exact integers. */
import type { Dataset } from '../core/model.js';
import type { Prisma } from './generated/client.js';
import type { ShownJob } from './job-fields.js';

/** A job, in the fields of job-fields.ts. */
export type JobRow = ShownJob & {
  /** Whether it was to wait for other jobs, whatever has become of that. */
  needsOthers: boolean;
};

// As schema.prisma has them -----------------------------------------------------------------------------------------------

/** A record of Prisma's with times as epoch seconds, large integers as numbers (exact to 2^53), and JSON of no type. */
export type Plain<T> = {
  [K in keyof T]: Prisma.JsonValue extends NonNullable<T[K]> ? unknown : PlainValue<T[K]>;
};
type PlainValue<V> = V extends Date | bigint ? number : V;

export type RunRow = Plain<
  Omit<
    Prisma.RunModel,
    | 'cpusPerTask'
    | 'memoryMbPerTask'
    | 'resourcesPerTask'
    | 'taken'
    | 'wholeCpus'
    | 'wholePlaces'
    | 'keepsMachines'
    | 'signals'
    | 'devices'
    | 'retry'
  >
> & {
  /** By machine. */
  devices: string[][] | null;
  /** As `Retried` (retries.ts). */
  retry: unknown;
};
export type TaskRow = Plain<Prisma.TaskModel>;
export type RunStepRow = Plain<Prisma.RunStepModel>;
/** Steps of a run behind one of them. */
export interface StepsPage {
  jobId: number;
  epoch: number;
  behind: readonly [task: number, number: number];
  limit: number;
}
/** What was kept of one stream of a run, oldest first; pieces do not overlap, and some may be missing between them. */
export interface OutputRow {
  epoch: number;
  /** Bytes written up to now. */
  bytes: number;
  /** Bytes kept in all. */
  kept: number;
  pieces: { start: number; body: Buffer }[];
}
/** `fromState` and `toState` are equal for JOB_CHANGED; both are null where the event is not about a job. */
export type EventRow = Plain<Prisma.EventModel>;
export type EventKind = EventRow['kind'];
export type DecisionRow = Plain<Prisma.DecisionModel>;
/** One run as it entered the history, times as measured, and what the application's history was from it on. */
export type RatioPointRow = Plain<Prisma.JobRatioModel>;

export type UserRole = Prisma.UserModel['role'];
export type UserRow = Plain<Prisma.UserModel>;
export type SiteRow = Plain<Prisma.SiteModel>;
/** Between the root and sites; `parentId` null: below the root. */
export type SchedulerRow = Plain<Prisma.SchedulerModel>;
export type MachineRow = Plain<Prisma.MachineModel>;
/** Without what only its own process knows. */
export type AgentRow = Plain<Omit<Prisma.AgentModel, 'identity' | 'instance' | 'superseded'>>;
export type HoldRow = Plain<Prisma.HoldModel>;
export type HoldTimeRow = Plain<Prisma.HoldTimeModel>;
export type LicenseRow = Plain<Prisma.LicenseModel>;
/** Without the hash. */
export type ApiKeyRow = Plain<Omit<Prisma.ApiKeyModel, 'hash'>>;
/** Of somebody who has signed in by password; without the hash. */
export type SessionRow = Plain<Omit<Prisma.SessionModel, 'hash' | 'prefix'>>;
/** How a user may sign in by password, epoch seconds; null: not at all. */
export interface SignInRow {
  userId: number;
  passwordSetAt: number | null;
  invitedUntil: number | null;
}
/** Without its secrets. */
export type WebhookRow = Plain<Omit<Prisma.WebhookModel, 'secret' | 'formerSecret' | 'version' | 'cursor'>>;
/** Without its secret. */
export type RegistryCredentialRow = Plain<
  Pick<Prisma.RegistryCredentialModel, 'registry' | 'username' | 'setAt' | 'lastUsedAt'>
>;
export type MailSettingsRow = Plain<Prisma.MailSettingsModel>;
export type PolicyRow = Plain<Prisma.PolicyModel>;
export type AuditRow = Plain<Prisma.AuditModel>;
export type GroupRow = Plain<Omit<Prisma.JobGroupModel, 'firstJobId' | 'lastJobId'>>;
/** A what-if: jobs submitted within [from, to) under the policy of a version and under a candidate. */
export type SimulationRow = Plain<
  Omit<Prisma.SimulationModel, 'trace' | 'worker' | 'workerSeenAt' | 'attempts'>
>;

export type DatasetRow = Plain<Prisma.DatasetModel> &
  Pick<Dataset, 'siteIds'> & { locations: { siteId: number; location: string }[] };
export type StagingRow = Plain<Prisma.StagingModel>;
/** `source` AGENT: the mean of its last measurements. */
export type LinkRow = Plain<Prisma.LinkModel>;
export type LinkMeasurementRow = Plain<Prisma.LinkMeasurementModel>;

export type ReservationRow = Pick<
  Plain<Prisma.ReservationModel>,
  'siteId' | 'jobId' | 'at' | 'machineIds' | 'machineTasks'
>;

// Worked out ------------------------------------------------------------------------------------------------------------------

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

/** An image at a site, as its agents have it. */
export interface SiteImageRow {
  siteId: number;
  name: string;
  sizeMb: number;
  digests: string[];
  agents: number;
}

/** Where amounts of a kind are: on machines, or in pools of sites, or of the grid among others. */
export type ResourceCount = 'MACHINE' | 'SITE' | 'GRID';

/** A kind of resource in service: an amount on machines, or in pools. */
export interface ResourceKindRow {
  name: string;
  countedOn: ResourceCount;
  /** As operators wrote it; null: none, or pieces. */
  unit: string | null;
  total: number;
  inUse: number;
  free: number;
  /** Of the machine with the most, or that jobs at one site can use. */
  largest: number;
  /** Of its devices, in order of name. */
  models: string[];
  siteIds: number[];
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
