// Generated from src/agent/documents.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { Document } from '../client/index.js';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type DeviceInput = {
  readonly id: string;
  readonly kind?: string;
  readonly model?: string | null | undefined;
  readonly memoryMb?: number;
  readonly shares?: number;
  readonly link?: string | null | undefined;
};

export type MachineLabelInput = {
  readonly name: string;
  readonly value?: string;
};

export type EndCause =
  | 'EXITED_ZERO'
  | 'EXITED_NONZERO'
  | 'SIGNALLED'
  | 'RUN_TIME_LIMIT'
  | 'MEMORY_LIMIT'
  | 'STAGING_FAILED'
  | 'INPUT_MISMATCH'
  | 'OUTPUTS_FAILED'
  | 'CPU_LIMIT'
  | 'DISK_LIMIT'
  | 'PROCESS_LIMIT'
  | 'LAUNCH_FAILED'
  | 'MACHINE_FAILED'
  | 'LOST'
  | 'REFUSED'
  | 'CANCELLED_BY_USER'
  | 'CANCELLED_BY_OPERATOR'
  | 'DEADLINE_PASSED'
  | 'NEVER_FITS'
  | 'WITHDRAWN'
  | 'OTHER_TASK_FAILED'
  | 'DEPENDENCY_FAILED'
  | 'REQUEUED'
  | 'PREEMPTED';

export type WarnSignal =
  | 'SIGTERM'
  | 'SIGHUP'
  | 'SIGINT'
  | 'SIGQUIT'
  | 'SIGALRM'
  | 'SIGUSR1'
  | 'SIGUSR2';

export type TaskLaunch =
  | 'EVERY_TASK'
  | 'ONCE';

export type MeasurementMethod =
  | 'CGROUP'
  | 'DELAY_ACCOUNTING'
  | 'PROC'
  | 'SAMPLES'
  | 'SIMULATED';

export type OutputStream =
  | 'STDOUT'
  | 'STDERR';

export type LinkMeasurementInput = {
  readonly from: string;
  readonly bandwidthMbPerS: number;
  readonly rttS?: number | null | undefined;
  readonly loss?: number | null | undefined;
};

export type StagingReportInput = {
  readonly job: string;
  readonly epoch: number;
  readonly token?: string | null | undefined;
  readonly beganAt: string;
  readonly endedAt?: string | null | undefined;
  readonly totalMb: number;
  readonly movedMb: number;
  readonly error?: string | null | undefined;
};

export type RegisterAgentInput = {
  readonly site: string;
  readonly identity: string;
  readonly instance: string;
  readonly host: string;
  readonly version: string;
  readonly protocol: number;
  readonly simulated?: boolean;
  readonly machines?: ReadonlyArray<AgentMachineInput> | null | undefined;
};

export type AgentMachineInput = {
  readonly name: string;
  readonly measured?: MeasurementInput | null | undefined;
  readonly problem?: string | null | undefined;
  readonly waits?: string | null | undefined;
};

export type MeasurementInput = {
  readonly cpus: number;
  readonly memoryMb: number;
  readonly os: string;
  readonly architecture: string;
  readonly model?: string | null | undefined;
  readonly benchmark: number;
  readonly gpus?: ReadonlyArray<GpuInput>;
  readonly labels?: ReadonlyArray<MachineLabelInput>;
  readonly devices?: ReadonlyArray<DeviceInput>;
};

export type GpuInput = {
  readonly name: string;
  readonly memoryMb: number;
};

export type RunReportInput = {
  readonly job: string;
  readonly epoch: number;
  readonly token?: string | null | undefined;
  readonly task?: number | null | undefined;
  readonly phase: RunPhase;
  readonly at: string;
  readonly exitCode?: number | null | undefined;
  readonly signal?: string | null | undefined;
  readonly cause?: EndCause | null | undefined;
  readonly message?: string | null | undefined;
  readonly cpuS?: number | null | undefined;
  readonly ioWaitS?: number | null | undefined;
  readonly cpuMethod?: MeasurementMethod | null | undefined;
  readonly peakMemoryMb?: number | null | undefined;
  readonly peakMemoryMethod?: MeasurementMethod | null | undefined;
  readonly readMb?: number | null | undefined;
  readonly writtenMb?: number | null | undefined;
  readonly bytesMethod?: MeasurementMethod | null | undefined;
  readonly ioWaitMethod?: MeasurementMethod | null | undefined;
  readonly outputs?: ReadonlyArray<OutputPieceInput> | null | undefined;
  readonly local?: LocalRunInput | null | undefined;
};

export type LocalRunInput = {
  readonly id?: string | null | undefined;
  readonly state?: string | null | undefined;
  readonly nodes?: ReadonlyArray<string> | null | undefined;
  readonly imageDigest?: string | null | undefined;
};

export type SiteLoadInput = {
  readonly waitingJobs: number;
  readonly waitingS: number;
  readonly waitingCpuS: number;
  readonly busy: ReadonlyArray<BusyMachineInput>;
};

export type BusyMachineInput = {
  readonly machine: string;
  readonly cpus: number;
  readonly memoryMb: number;
};

export type RunFileInput = {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
};

export type OutputPieceInput = {
  readonly stream: OutputStream;
  readonly start?: number;
  readonly text?: string | null | undefined;
  readonly base64?: string | null | undefined;
  readonly bytes: number;
};

export type RunOutputInput = {
  readonly job: string;
  readonly epoch: number;
  readonly token?: string | null | undefined;
  readonly task?: number;
  readonly stream: OutputStream;
  readonly start?: number;
  readonly text?: string | null | undefined;
  readonly base64?: string | null | undefined;
  readonly bytes: number;
};

export type RunPhase =
  | 'ACCEPTED'
  | 'STARTED'
  | 'ENDED';

export type ReportResult =
  | 'ACCEPTED'
  | 'REPEATED'
  | 'STALE_EPOCH'
  | 'UNKNOWN_RUN';

export type AssignmentAction =
  | 'START'
  | 'CONTINUE'
  | 'STOP';

export type AssignmentsPart =
  | 'FIRST'
  | 'NEXT'
  | 'LAST';

export type SitesQueryVariables = Exact<{
  first: number;
  after?: string | null | undefined;
}>;


export type SitesQuery = { readonly sites: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly name: string }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type RegisterMutationVariables = Exact<{
  input: RegisterAgentInput;
}>;


export type RegisterMutation = { readonly registerAgent: { readonly agent: { readonly id: string }, readonly machines: ReadonlyArray<{ readonly name: string, readonly refused: string | null, readonly problem: string | null }> } };

export type HeartbeatMutationVariables = Exact<{
  site: string;
  agent: string;
  instance: string;
}>;


export type HeartbeatMutation = { readonly heartbeat: boolean };

export type ReportMutationVariables = Exact<{
  site: string;
  agent: string;
  sentAt: string;
  reports: ReadonlyArray<RunReportInput>;
}>;


export type ReportMutation = { readonly reportRuns: { readonly results: ReadonlyArray<ReportResult> } };

export type ReportOutputMutationVariables = Exact<{
  site: string;
  agent: string;
  outputs: ReadonlyArray<RunOutputInput>;
}>;


export type ReportOutputMutation = { readonly reportOutput: { readonly results: ReadonlyArray<ReportResult>, readonly receivedBytes: ReadonlyArray<number | null> } };

export type ReportLoadMutationVariables = Exact<{
  site: string;
  agent: string;
  load: SiteLoadInput;
}>;


export type ReportLoadMutation = { readonly reportLoad: boolean };

export type ReportLinksMutationVariables = Exact<{
  site: string;
  measurements: ReadonlyArray<LinkMeasurementInput>;
}>;


export type ReportLinksMutation = { readonly reportLinks: ReadonlyArray<{ readonly measuredAt: string } | null> };

export type ReportStagingMutationVariables = Exact<{
  site: string;
  reports: ReadonlyArray<StagingReportInput>;
}>;


export type ReportStagingMutation = { readonly reportStaging: ReadonlyArray<boolean> };

export type AssignmentsSubscriptionVariables = Exact<{
  site: string;
  agent: string;
}>;


export type AssignmentsSubscription = { readonly assignments: { readonly cursor: string, readonly complete: boolean, readonly part: AssignmentsPart | null, readonly assignments: ReadonlyArray<{ readonly user: string, readonly epoch: number, readonly token: string, readonly action: AssignmentAction, readonly recalled: boolean, readonly stopGraceS: number | null, readonly command: string, readonly arguments: ReadonlyArray<string>, readonly environment: unknown, readonly workingDirectory: string | null, readonly image: string | null, readonly tasks: number, readonly launch: TaskLaunch, readonly cpusPerTask: number, readonly memoryMbPerTask: number, readonly licenses: ReadonlyArray<string>, readonly nodes: ReadonlyArray<string> | null, readonly project: string | null, readonly runTimeLimitS: number | null, readonly warnS: number | null, readonly warnSignal: WarnSignal, readonly killGraceS: number, readonly arrayIndex: number | null, readonly plannedS: number, readonly simulatedS: number | null, readonly simulatedIoS: number | null, readonly jobId: string, readonly resourcesPerTask: ReadonlyArray<{ readonly kind: string, readonly amount: number }>, readonly siteTerms: { readonly partition: string | null, readonly account: string | null, readonly qos: string | null } | null, readonly machines: ReadonlyArray<{ readonly name: string, readonly host: string, readonly tasks: number, readonly devices: ReadonlyArray<string> }>, readonly parts: ReadonlyArray<{ readonly firstTask: number, readonly tasks: number, readonly action: AssignmentAction }>, readonly inputs: ReadonlyArray<{ readonly place: number, readonly dataset: string, readonly name: string, readonly sizeMb: number, readonly sha256: string | null, readonly sources: ReadonlyArray<{ readonly site: string, readonly location: string }> }>, readonly outputs: ReadonlyArray<{ readonly path: string, readonly dataset: string | null }> }> } };

export type KeepFilesMutationVariables = Exact<{
  site: string;
  agent: string;
  job: string;
  epoch: number;
  token?: string | null | undefined;
  task: number;
  files: ReadonlyArray<RunFileInput>;
}>;


export type KeepFilesMutation = { readonly keepFiles: ReadonlyArray<{ readonly id: string, readonly path: string, readonly receivedBytes: number }> };

export type KeepDatasetMutationVariables = Exact<{
  site: string;
  agent: string;
  job: string;
  epoch: number;
  token?: string | null | undefined;
  dataset: string;
  sizeMb: number;
  sha256?: string | null | undefined;
  location: string;
}>;


export type KeepDatasetMutation = { readonly keepDataset: { readonly id: string } };

export type RemovedOutputsQueryVariables = Exact<{
  site: string;
  jobs: ReadonlyArray<string>;
}>;


export type RemovedOutputsQuery = { readonly removedOutputs: ReadonlyArray<string> };

export type WantedExportsQueryVariables = Exact<{
  site: string;
}>;


export type WantedExportsQuery = { readonly wantedExports: ReadonlyArray<{ readonly dataset: string, readonly name: string, readonly location: string }> };

export type ExportDatasetMutationVariables = Exact<{
  site: string;
  agent: string;
  dataset: string;
  bytes?: number | null | undefined;
  sha256?: string | null | undefined;
  problem?: string | null | undefined;
}>;


export type ExportDatasetMutation = { readonly exportDataset: { readonly id: string, readonly receivedBytes: number } | null };


export const SitesDocument: Document<SitesQuery, SitesQueryVariables> =
  "query Sites($first: Int!, $after: String) { sites(first: $first, after: $after) { nodes { id name } pageInfo { hasNextPage endCursor } } }";

export const RegisterDocument: Document<RegisterMutation, RegisterMutationVariables> =
  "mutation Register($input: RegisterAgentInput!) { registerAgent(input: $input) { agent { id } machines { name refused problem } } }";

export const HeartbeatDocument: Document<HeartbeatMutation, HeartbeatMutationVariables> =
  "mutation Heartbeat($site: ID!, $agent: ID!, $instance: String!) { heartbeat(site: $site, agent: $agent, instance: $instance) }";

export const ReportDocument: Document<ReportMutation, ReportMutationVariables> =
  "mutation Report($site: ID!, $agent: ID!, $sentAt: DateTime!, $reports: [RunReportInput!]!) { reportRuns(site: $site, agent: $agent, sentAt: $sentAt, reports: $reports) { results } }";

export const ReportOutputDocument: Document<ReportOutputMutation, ReportOutputMutationVariables> =
  "mutation ReportOutput($site: ID!, $agent: ID!, $outputs: [RunOutputInput!]!) { reportOutput(site: $site, agent: $agent, outputs: $outputs) { results receivedBytes } }";

export const ReportLoadDocument: Document<ReportLoadMutation, ReportLoadMutationVariables> =
  "mutation ReportLoad($site: ID!, $agent: ID!, $load: SiteLoadInput!) { reportLoad(site: $site, agent: $agent, load: $load) }";

export const ReportLinksDocument: Document<ReportLinksMutation, ReportLinksMutationVariables> =
  "mutation ReportLinks($site: ID!, $measurements: [LinkMeasurementInput!]!) { reportLinks(site: $site, measurements: $measurements) { measuredAt } }";

export const ReportStagingDocument: Document<ReportStagingMutation, ReportStagingMutationVariables> =
  "mutation ReportStaging($site: ID!, $reports: [StagingReportInput!]!) { reportStaging(site: $site, reports: $reports) }";

export const AssignmentsDocument: Document<AssignmentsSubscription, AssignmentsSubscriptionVariables> =
  "subscription Assignments($site: ID!, $agent: ID!) { assignments(site: $site, agent: $agent) { cursor complete part assignments { jobId: job user epoch token action recalled stopGraceS command arguments environment workingDirectory image tasks launch cpusPerTask memoryMbPerTask resourcesPerTask { kind amount } licenses nodes project siteTerms { partition account qos } runTimeLimitS warnS warnSignal killGraceS arrayIndex machines { name host tasks devices } parts { firstTask tasks action } plannedS simulatedS simulatedIoS inputs { place dataset name sizeMb sha256 sources { site location } } outputs { path dataset } } } }";

export const KeepFilesDocument: Document<KeepFilesMutation, KeepFilesMutationVariables> =
  "mutation KeepFiles($site: ID!, $agent: ID!, $job: ID!, $epoch: Int!, $token: ID, $task: Int!, $files: [RunFileInput!]!) { keepFiles( site: $site agent: $agent job: $job epoch: $epoch token: $token task: $task files: $files ) { id path receivedBytes } }";

export const KeepDatasetDocument: Document<KeepDatasetMutation, KeepDatasetMutationVariables> =
  "mutation KeepDataset($site: ID!, $agent: ID!, $job: ID!, $epoch: Int!, $token: ID, $dataset: String!, $sizeMb: Float!, $sha256: String, $location: String!) { keepDataset( site: $site agent: $agent job: $job epoch: $epoch token: $token dataset: $dataset sizeMb: $sizeMb sha256: $sha256 location: $location ) { id } }";

export const RemovedOutputsDocument: Document<RemovedOutputsQuery, RemovedOutputsQueryVariables> =
  "query RemovedOutputs($site: ID!, $jobs: [ID!]!) { removedOutputs(site: $site, jobs: $jobs) }";

export const WantedExportsDocument: Document<WantedExportsQuery, WantedExportsQueryVariables> =
  "query WantedExports($site: ID!) { wantedExports(site: $site) { dataset name location } }";

export const ExportDatasetDocument: Document<ExportDatasetMutation, ExportDatasetMutationVariables> =
  "mutation ExportDataset($site: ID!, $agent: ID!, $dataset: ID!, $bytes: Float, $sha256: String, $problem: String) { exportDataset( site: $site agent: $agent dataset: $dataset bytes: $bytes sha256: $sha256 problem: $problem ) { id receivedBytes } }";
