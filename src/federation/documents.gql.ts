// Generated from src/federation/documents.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { Document } from '../client/index.js';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
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

export type TaskLaunch =
  | 'EVERY_TASK'
  | 'ONCE';

export type TaskFailure =
  | 'END_ALL'
  | 'CONTINUE';

export type MeasurementMethod =
  | 'CGROUP'
  | 'DELAY_ACCOUNTING'
  | 'PROC'
  | 'SAMPLES'
  | 'SIMULATED';

export type OutputStream =
  | 'STDOUT'
  | 'STDERR';

export type PeerLoadInput = {
  readonly ahead: number;
  readonly work: number;
  readonly power: number;
  readonly benchmark: number;
  readonly ageS: number;
};

export type MachineKindInput = {
  readonly site: number;
  readonly os: string;
  readonly architecture: string;
  readonly cpus: number;
  readonly memoryMb: number;
  readonly maxTasks?: number | null | undefined;
  readonly machines: number;
  readonly hops: number;
  readonly licenses: ReadonlyArray<string>;
};

export type ExchangeInput = {
  readonly protocol: number;
  readonly service: string;
  readonly after: string;
  readonly room: number;
  readonly kinds: ReadonlyArray<MachineKindInput>;
  readonly places?: ReadonlyArray<PlaceInput>;
  readonly load?: PeerLoadInput | null | undefined;
};

export type PlaceInput = {
  readonly offer: string;
  readonly path: ReadonlyArray<string>;
};

export type OfferState =
  | 'OFFERED'
  | 'CLAIMED'
  | 'WITHDRAWN';

export type ClaimOutcome =
  | 'GRANTED'
  | 'REFUSED'
  | 'PENDING';

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

export type RunPhase =
  | 'ACCEPTED'
  | 'STARTED'
  | 'ENDED';

export type ReportResult =
  | 'ACCEPTED'
  | 'REPEATED'
  | 'STALE_EPOCH'
  | 'UNKNOWN_RUN';

export type ExchangeMutationVariables = Exact<{
  input: ExchangeInput;
}>;


export type ExchangeMutation = { readonly exchangeJobs: { readonly service: string, readonly site: string, readonly cursor: string, readonly more: boolean, readonly offers: ReadonlyArray<{ readonly offer: string, readonly state: OfferState, readonly stop: boolean, readonly job: string, readonly boost: number, readonly request: { readonly request: string, readonly hops: number, readonly visited: ReadonlyArray<string>, readonly user: string, readonly bytes: number, readonly name: string | null, readonly application: string, readonly arrayIndex: number | null, readonly tasks: number, readonly cpusPerTask: number, readonly memoryMbPerTask: number, readonly licenses: ReadonlyArray<string>, readonly os: string | null, readonly architecture: string | null, readonly estimateS: number, readonly benchmark: number, readonly runTimeLimitS: number | null, readonly deadline: string | null, readonly sandboxMb: number, readonly outputMb: number, readonly computationShare: number | null, readonly simulatedRunS: number | null, readonly simulatedIoS: number | null, readonly launch: TaskLaunch, readonly onTaskFailure: TaskFailure, readonly outputs: ReadonlyArray<string>, readonly preferences: ReadonlyArray<{ readonly os: string | null, readonly architecture: string | null, readonly licenses: ReadonlyArray<string> | null, readonly cpusPerTask: number | null, readonly memoryMbPerTask: number | null }> } | null }> } };

export type ExchangeBeforeMutationVariables = Exact<{
  input: ExchangeInput;
}>;


export type ExchangeBeforeMutation = { readonly exchangeJobs: { readonly service: string, readonly site: string, readonly cursor: string, readonly more: boolean, readonly offers: ReadonlyArray<{ readonly offer: string, readonly state: OfferState, readonly stop: boolean, readonly job: string, readonly boost: number, readonly request: { readonly request: string, readonly hops: number, readonly visited: ReadonlyArray<string>, readonly user: string, readonly bytes: number, readonly name: string | null, readonly application: string, readonly arrayIndex: number | null, readonly tasks: number, readonly cpusPerTask: number, readonly memoryMbPerTask: number, readonly licenses: ReadonlyArray<string>, readonly os: string | null, readonly architecture: string | null, readonly estimateS: number, readonly benchmark: number, readonly runTimeLimitS: number | null, readonly deadline: string | null, readonly sandboxMb: number, readonly outputMb: number, readonly computationShare: number | null, readonly simulatedRunS: number | null, readonly simulatedIoS: number | null, readonly launch: TaskLaunch, readonly onTaskFailure: TaskFailure, readonly preferences: ReadonlyArray<{ readonly os: string | null, readonly architecture: string | null, readonly licenses: ReadonlyArray<string> | null, readonly cpusPerTask: number | null, readonly memoryMbPerTask: number | null }> } | null }> } };

export type KeepMutationVariables = Exact<{
  site: string;
  job: string;
  epoch: number;
  task: number;
  files: ReadonlyArray<RunFileInput>;
}>;


export type KeepMutation = { readonly keepFiles: ReadonlyArray<{ readonly id: string, readonly receivedBytes: number }> };

export type ClaimMutationVariables = Exact<{
  offers: ReadonlyArray<string>;
}>;


export type ClaimMutation = { readonly claimJobs: { readonly results: ReadonlyArray<{ readonly outcome: ClaimOutcome, readonly epoch: number | null, readonly command: string | null, readonly arguments: ReadonlyArray<string> | null, readonly environment: unknown, readonly workingDirectory: string | null, readonly inputs: ReadonlyArray<{ readonly place: number, readonly dataset: string, readonly name: string, readonly sizeMb: number, readonly sha256: string | null, readonly urls: ReadonlyArray<string> }> | null }> } };

export type ReturnMutationVariables = Exact<{
  offers: ReadonlyArray<string>;
}>;


export type ReturnMutation = { readonly returnJobs: boolean };

export type ReportMutationVariables = Exact<{
  site: string;
  reports: ReadonlyArray<RunReportInput>;
}>;


export type ReportMutation = { readonly reportRuns: { readonly results: ReadonlyArray<ReportResult> } };

export type EveryOfferedJobFragment = { readonly request: string, readonly hops: number, readonly visited: ReadonlyArray<string>, readonly user: string, readonly bytes: number, readonly name: string | null, readonly application: string, readonly arrayIndex: number | null, readonly tasks: number, readonly cpusPerTask: number, readonly memoryMbPerTask: number, readonly licenses: ReadonlyArray<string>, readonly os: string | null, readonly architecture: string | null, readonly estimateS: number, readonly benchmark: number, readonly runTimeLimitS: number | null, readonly deadline: string | null, readonly sandboxMb: number, readonly outputMb: number, readonly computationShare: number | null, readonly simulatedRunS: number | null, readonly simulatedIoS: number | null, readonly launch: TaskLaunch, readonly onTaskFailure: TaskFailure, readonly outputs: ReadonlyArray<string> };

export type EveryOfferedPreferenceFragment = { readonly os: string | null, readonly architecture: string | null, readonly licenses: ReadonlyArray<string> | null, readonly cpusPerTask: number | null, readonly memoryMbPerTask: number | null };

export type EveryClaimResultFragment = { readonly outcome: ClaimOutcome, readonly epoch: number | null, readonly command: string | null, readonly arguments: ReadonlyArray<string> | null, readonly environment: unknown, readonly workingDirectory: string | null };

export type EveryGrantedInputFragment = { readonly place: number, readonly dataset: string, readonly name: string, readonly sizeMb: number, readonly sha256: string | null, readonly urls: ReadonlyArray<string> };


export const ExchangeDocument: Document<ExchangeMutation, ExchangeMutationVariables> =
  "mutation Exchange($input: ExchangeInput!) { exchangeJobs(input: $input) { service site cursor more offers { offer state stop job boost request { ...EveryOfferedJob preferences { ...EveryOfferedPreference } } } } } fragment EveryOfferedJob on OfferedJob { request hops visited user bytes name application arrayIndex tasks cpusPerTask memoryMbPerTask licenses os architecture estimateS benchmark runTimeLimitS deadline sandboxMb outputMb computationShare simulatedRunS simulatedIoS launch onTaskFailure outputs } fragment EveryOfferedPreference on OfferedPreference { os architecture licenses cpusPerTask memoryMbPerTask }";

export const ExchangeBeforeDocument: Document<ExchangeBeforeMutation, ExchangeBeforeMutationVariables> =
  "mutation ExchangeBefore($input: ExchangeInput!) { exchangeJobs(input: $input) { service site cursor more offers { offer state stop job boost request { request hops visited user bytes name application arrayIndex tasks cpusPerTask memoryMbPerTask licenses os architecture estimateS benchmark runTimeLimitS deadline sandboxMb outputMb computationShare preferences { os architecture licenses cpusPerTask memoryMbPerTask } simulatedRunS simulatedIoS launch onTaskFailure } } } }";

export const KeepDocument: Document<KeepMutation, KeepMutationVariables> =
  "mutation Keep($site: ID!, $job: ID!, $epoch: Int!, $task: Int!, $files: [RunFileInput!]!) { keepFiles(site: $site, job: $job, epoch: $epoch, task: $task, files: $files) { id receivedBytes } }";

export const ClaimDocument: Document<ClaimMutation, ClaimMutationVariables> =
  "mutation Claim($offers: [ID!]!) { claimJobs(offers: $offers) { results { ...EveryClaimResult inputs { ...EveryGrantedInput } } } } fragment EveryClaimResult on ClaimResult { outcome epoch command arguments environment workingDirectory } fragment EveryGrantedInput on GrantedInput { place dataset name sizeMb sha256 urls }";

export const ReturnDocument: Document<ReturnMutation, ReturnMutationVariables> =
  "mutation Return($offers: [ID!]!) { returnJobs(offers: $offers) }";

export const ReportDocument: Document<ReportMutation, ReportMutationVariables> =
  "mutation Report($site: ID!, $reports: [RunReportInput!]!) { reportRuns(site: $site, reports: $reports) { results } }";
