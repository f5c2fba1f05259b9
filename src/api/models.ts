/** What the resolvers of each type of the schema are given: mostly the rows as they were read. */
import type {
  ChannelView,
  CongestionStatus,
  JobRatio,
  MovedStart,
  ReasonCode,
  TransferStatus,
  TreeStep,
  UserStanding,
} from '../core/index.js';
import type { Allocation, JobInput, JobPreference, KnownImage } from '../core/model.js';
import type { NeedCondition } from '../core/needs/model.js';
import type { OwnedDevice } from '../core/resources/devices.js';
import type { ForeignJobRow, PeerRow } from '../store/directory/peers.js';
import type { WebhookWithSecret } from '../store/directory/webhooks.js';
import type { OfferState } from '../store/federation.js';
import type { FileRow } from '../store/files.js';
import type { LostWorkRow, UsageRow } from '../store/history.js';
import type { HeldMachines, HeldPools, HoldTime } from '../store/holds.js';
import type { JobOutput } from '../store/job-fields.js';
import type { JobWait, NeedTerm } from '../store/needs.js';
import type { JobCountRow } from '../store/queries.js';
import type { Recurrence } from '../store/recurrence.js';
import type * as rows from '../store/rows.js';
import type { LeasedMachine, Measurement } from '../store/store.js';
import type { ShownTask } from '../store/tasks.js';
import type { Connection } from './connections.js';
import type {
  Candidate,
  ErrorCode,
  JobFilter,
  SimulatedScheduler,
  SimulationComparison,
  UserClass,
} from './generated/types.js';
import type { Loaders, ShownReservation } from './loaders.js';

/** What a mutation was refused for, with what the extensions of the error have: its type follows from them. */
export interface UserErrorModel {
  code: ErrorCode;
  message: string;
  field: string | null;
  /** Of an entry of a list. */
  index: number | null;
}
export type InputErrorModel = UserErrorModel;
export type EntryErrorModel = UserErrorModel;
export interface QuotaExceededErrorModel extends UserErrorModel {
  limit: number;
  periodS: number;
  used: number;
  freesAt: string | null;
}
export type VersionConflictErrorModel = UserErrorModel;
export interface PolicyDocumentErrorModel extends UserErrorModel {
  faults: readonly { path: string; accepted: string }[];
}
/** By their global ids. */
export interface HoldConflictErrorModel extends UserErrorModel {
  holds: readonly string[];
  jobs: readonly string[];
  runsInTheWay: number;
}
export type SiteModel = rows.SiteRow;
export type SchedulerModel = rows.SchedulerRow;
/** The root: there is one. */
export type TreeModel = Record<never, never>;
export type ChannelModel = ChannelView;
export type ChannelBranchModel = ChannelView['branches'][number];
export type MachineModel = rows.MachineRow;
export type AgentModel = rows.AgentRow;
export type MachineMeasurementModel = Omit<Measurement, 'devices' | 'labels'> & {
  devices: (OwnedDevice & { used: number })[];
  measuredAt: number;
  warning: string | null;
};

export interface RegisterAgentPayloadModel {
  agentId: number;
  machines: readonly LeasedMachine[];
}
export type LicenseModel = rows.LicenseRow;
export type ResourceKindModel = rows.ResourceKindRow;
export type HoldModel = rows.HoldRow;
export type HeldMachineModel = NonNullable<HeldMachines>[number];
export type HoldTimeModel = HoldTime;
export type RecurrenceModel = Recurrence;
export type MovedStartModel = MovedStart;
export interface ReservePayloadModel {
  hold: rows.HoldRow | null;
  machines: HeldMachines;
  pools: HeldPools;
  holds: readonly number[];
  runs: readonly number[];
  moved: readonly MovedStart[];
}
export type UserModel = rows.UserRow;
export type ApiKeyModel = rows.ApiKeyRow;
export type SessionModel = rows.SessionRow;
export type RegistryCredentialModel = rows.RegistryCredentialRow;
export type WebhookModel = rows.WebhookRow;
export type WebhookSecretPayloadModel = WebhookWithSecret;
export type JobModel = rows.JobRow;
export type NeedClauseModel = JobWait['needs'][number];
export type NeedTermModel = NeedTerm;
/** Times are epoch seconds; `needs` and the critical path are positions. */
export interface JobGraphNodeModel
  extends Pick<rows.JobRow, 'id' | 'name' | 'arrayIndex' | 'state' | 'startedAt' | 'endedAt'> {
  level: number;
  expectedStart: number | null;
  expectedEnd: number | null;
  needs: number[];
  conditions: NeedCondition[];
}
export interface JobGraphModel {
  nodes: JobGraphNodeModel[];
  isWhole: boolean;
  criticalPath: number[];
  expectedEnd: number | null;
}
export type RunModel = rows.RunRow;
export type TaskModel = ShownTask;
export type RunStepModel = rows.RunStepRow;
export type DecisionModel = rows.DecisionRow;
export type EventModel = rows.EventRow;
export type PolicyModel = rows.PolicyRow;
export type SimulationModel = rows.SimulationRow;
/** Parts of what a what-if has shown, as its worker wrote them. */
export type SimulationOfClassModel = SimulationComparison & { userClass: UserClass };
export type SimulationOfSiteModel = SimulationComparison & {
  siteId: number;
  name: string;
  /** Left out: the simulation ran in an earlier release. */
  ownScheduler?: SimulatedScheduler | null;
};
export type AuditEntryModel = rows.AuditRow;

export type OutputModel = rows.OutputRow;

export type SiteImageModel = rows.SiteImageRow;
/** Null: it lies nowhere. */
export interface ImageDataModel {
  name: string;
  known: KnownImage | null;
}
export type DatasetModel = rows.DatasetRow;
export type DatasetLocationModel = rows.DatasetRow['locations'][number];
export type StagingModel = rows.StagingRow;
export type LinkModel = rows.LinkRow;
export type JobRatioPointModel = rows.RatioPointRow;
export type JobGroupModel = rows.GroupRow;

/** What a link was measured to be, or what it is taken to be since. */
export type LinkMeasurementModel = rows.LinkMeasurementRow | rows.LinkRow;

/** An input of a job as its row has it. */
export type InputDataModel = JobInput;

/** An output of a job as its row has it. */
export type JobOutputModel = JobOutput;
export type JobFileModel = FileRow;
export type RunFileModel = FileRow;

export type JobPreferenceModel = JobPreference;
export interface PathStepModel extends TreeStep {
  /** Epoch seconds. */
  at: number;
}

export interface RunAveragesModel {
  turnaroundS: number;
  executionS: number;
  ioS: number;
}

export interface JobRatioModel extends JobRatio {
  application: string;
  /** null: it never ran. */
  averages: RunAveragesModel | null;
  /** Of the last point in it. */
  cursor: string;
}

export interface SiteCongestionModel extends CongestionStatus {
  alive: boolean;
  /** Epoch seconds. */
  lastHeardAt: number | null;
}

export type FederationPeerModel = PeerRow;
export interface JobAtPeerModel {
  siteId: number;
  state: OfferState | null;
  reason: string | null;
  path: string[] | null;
}
export type ForeignUserModel = PeerRow['users'][number];
export type ForeignJobModel = ForeignJobRow;

export type UserStandingModel = UserStanding;

export type TransferModel = TransferStatus;

/** `devices`: of a run's. */
export type AllocationModel = Allocation & { devices?: readonly string[] };

export type ReservationModel = ShownReservation;

export interface RespectedReservationModel {
  jobId: number;
  at: number;
}

/** A user whose quota is asked for: what was used is counted only then. */
export interface SubmissionQuotaModel {
  userId: number;
  limit: number;
  periodS: number;
}

/** By name. */
export type Numbers = Readonly<Record<string, number>>;

export interface WhyWaitingModel {
  code: ReasonCode;
  message: string;
  numbers: Numbers;
  startsAt: Date | null;
  earliestStart: Date | null;
  startsAtLatest: Date | null;
  fitsIfLimitS: number | null;
  wouldChange: readonly string[];
  /** Left out: nothing. */
  missing?: MissingNeedModel[];
}

/** One of the two is null. */
export interface MissingNeedModel {
  term: NeedTermModel;
  expectedAt: Date | null;
  unknown: string | null;
}

export interface CandidateModel extends Pick<Candidate, 'eligible'> {
  siteId: number;
  reason: ReasonCode | null;
  rank: number | null;
  terms: Numbers;
}

export interface PlacementModel {
  policyVersion: number;
  priority: number | null;
  candidates: readonly CandidateModel[];
  siteId: number | null;
  startsAt: number | null;
  earliestStart: number | null;
  startsAtLatest: number | null;
  fitsIfLimitS: number | null;
  allocations: readonly Allocation[];
  jobTerms: Numbers;
  image: ImageDataModel | null;
  reason: ReasonCode;
  message: string;
}

/** Jobs by id: loaded only when they are asked for. */
export interface SubmitJobsPayloadModel {
  ids: readonly number[];
  repeated: boolean;
  errors: readonly UserErrorModel[];
}

export interface SubmitJobGroupPayloadModel extends SubmitJobsPayloadModel {
  groupId: number | null;
}

export interface CancelJobGroupPayloadModel {
  groupId: number;
  cancelled: number;
}

export interface ImportDatasetsPayloadModel {
  created: number;
  updated: number;
  errors: readonly UserErrorModel[];
}

export interface RerunPayloadModel {
  ids: readonly number[];
  repointed: readonly number[];
}

export interface JobsPayloadModel {
  ids: readonly number[];
  unchanged: readonly { id: string; code: ErrorCode; message: string; field: string | null }[];
}

interface UpdateModel {
  cursor: string;
  /** null: a resync is required. */
  event: EventModel | null;
  /** For what the update refers to: shared by all subscribers to the same news. */
  loaders: Loaders | null;
}

export interface JobUpdateModel extends UpdateModel {
  job: JobModel | null;
}

export interface SiteUpdateModel extends UpdateModel {
  siteId: number | null;
}

export interface SimulationUpdateModel extends UpdateModel {
  simulation: SimulationModel | null;
}

export interface JobGroupUpdateModel {
  group: JobGroupModel;
  loaders: Loaders | null;
}

export type UsageModel = UsageRow;
export type LostWorkModel = LostWorkRow;
export type JobCountModel = JobCountRow;

/** What the list was filtered by goes with a page, for those who ask how long the list is. */
export interface JobConnectionModel extends Connection<JobModel> {
  filter: JobFilter | null;
}

export interface JobRatioUpdateModel {
  cursor: string;
  /** null: a resync is required. */
  point: JobRatioPointModel | null;
  loaders: Loaders | null;
}
