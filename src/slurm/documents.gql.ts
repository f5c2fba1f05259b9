// Generated from src/slurm/documents.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { Document } from '../client/index.js';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type ErrorCode =
  | 'UNAUTHENTICATED'
  | 'FORBIDDEN'
  | 'BAD_USER_INPUT'
  | 'NEVER_FITS'
  | 'NOT_FOUND'
  | 'CONFLICT'
  | 'VERSION_CONFLICT'
  | 'IDEMPOTENCY_KEY_REUSED'
  | 'QUOTA_EXCEEDED'
  | 'LIMIT_EXCEEDED'
  | 'QUERY_TOO_COMPLEX'
  | 'RATE_LIMITED'
  | 'UNAVAILABLE'
  | 'INTERNAL_SERVER_ERROR';

export type SiteState =
  | 'UP'
  | 'DRAINING'
  | 'DOWN';

export type ResourceAmountInput = {
  readonly kind: string;
  readonly amount: number;
};

export type MachineState =
  | 'UP'
  | 'DRAINING'
  | 'DOWN';

export type HoldKind =
  | 'MAINTENANCE'
  | 'USER'
  | 'STANDING';

export type UserClass =
  | 'GOLD'
  | 'SILVER'
  | 'REGULAR';

export type UserRole =
  | 'ADMIN'
  | 'OPERATOR'
  | 'USER'
  | 'AGENT'
  | 'PEER';

export type MailKind =
  | 'BEGIN'
  | 'END'
  | 'FAIL'
  | 'LIMIT_80'
  | 'WAITED'
  | 'GROUP_DONE';

export type JobState =
  | 'QUEUED'
  | 'BLOCKED'
  | 'HELD'
  | 'DISPATCHED'
  | 'ASSIGNED'
  | 'RUNNING'
  | 'CANCELLING'
  | 'COMPLETED'
  | 'FAILED'
  | 'CANCELLED';

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

export type TaskFailure =
  | 'END_ALL'
  | 'CONTINUE';

export type RetryAction =
  | 'RETRY'
  | 'RETRY_ELSEWHERE'
  | 'FAIL'
  | 'HOLD';

export type AskedNeed =
  | 'START'
  | 'OK'
  | 'NOT_OK'
  | 'ANY'
  | 'CORRESPONDING';

export type NeedExpression =
  | 'ALL'
  | 'ANY';

export type OnUnmet =
  | 'CANCEL'
  | 'HOLD'
  | 'RUN';

export type OutputKeeper =
  | 'SERVICE'
  | 'DATASET';

export type JobFilter = {
  readonly ids?: ReadonlyArray<string> | null | undefined;
  readonly states?: ReadonlyArray<JobState> | null | undefined;
  readonly site?: string | null | undefined;
  readonly user?: string | null | undefined;
  readonly application?: string | null | undefined;
  readonly project?: string | null | undefined;
  readonly groupName?: string | null | undefined;
  readonly license?: string | null | undefined;
  readonly group?: string | null | undefined;
  readonly waitsForOthers?: boolean | null | undefined;
  readonly submittedAfter?: string | null | undefined;
  readonly submittedBefore?: string | null | undefined;
  readonly endedAfter?: string | null | undefined;
  readonly endedBefore?: string | null | undefined;
};

export type EnvironmentVariable = {
  readonly name: string;
  readonly value: string;
};

export type InputDataInput = {
  readonly dataset?: string | null | undefined;
  readonly sizeMb?: number | null | undefined;
  readonly site?: string | null | undefined;
  readonly from?: string | null | undefined;
  readonly output?: string | null | undefined;
};

export type JobOutputInput = {
  readonly path: string;
  readonly keep?: OutputKeeper;
  readonly dataset?: string | null | undefined;
};

export type RetryInput = {
  readonly maxRetries?: number;
  readonly backoffS?: number;
  readonly factor?: number;
  readonly maxBackoffS?: number;
  readonly rules?: ReadonlyArray<RetryRuleInput>;
};

export type RetryRuleInput = {
  readonly causes?: ReadonlyArray<EndCause> | null | undefined;
  readonly exitCodes?: ReadonlyArray<ExitCodesInput> | null | undefined;
  readonly signals?: ReadonlyArray<string> | null | undefined;
  readonly action: RetryAction;
  readonly memoryFactor?: number;
  readonly memoryMaxMb?: number | null | undefined;
};

export type ExitCodesInput = {
  readonly from: number;
  readonly to: number;
};

export type SiteTermsInput = {
  readonly partition?: string | null | undefined;
  readonly account?: string | null | undefined;
  readonly qos?: string | null | undefined;
};

export type JobInput = {
  readonly name?: string | null | undefined;
  readonly application?: string | null | undefined;
  readonly project?: string | null | undefined;
  readonly groupName?: string | null | undefined;
  readonly arrayIndex?: number | null | undefined;
  readonly command: string;
  readonly arguments?: ReadonlyArray<string>;
  readonly environment?: ReadonlyArray<EnvironmentVariable>;
  readonly workingDirectory?: string | null | undefined;
  readonly tasks?: number;
  readonly cpusPerTask?: number;
  readonly memoryMbPerTask?: number;
  readonly resourcesPerTask?: ReadonlyArray<ResourceAmountInput>;
  readonly licenses?: ReadonlyArray<string>;
  readonly machineConstraint?: string | null | undefined;
  readonly image?: string | null | undefined;
  readonly os?: string | null | undefined;
  readonly architecture?: string | null | undefined;
  readonly siteTerms?: SiteTermsInput | null | undefined;
  readonly estimateS?: number;
  readonly benchmark?: number;
  readonly runTimeLimitS?: number | null | undefined;
  readonly warnS?: number | null | undefined;
  readonly warnSignal?: WarnSignal;
  readonly killGraceS?: number;
  readonly deadline?: string | null | undefined;
  readonly sandboxMb?: number;
  readonly inputs?: ReadonlyArray<InputDataInput>;
  readonly outputMb?: number;
  readonly originSite?: string | null | undefined;
  readonly reservation?: string | null | undefined;
  readonly outputs?: ReadonlyArray<JobOutputInput>;
  readonly preferences?: ReadonlyArray<JobPreferenceInput>;
  readonly computationShare?: number | null | undefined;
  readonly restartable?: boolean;
  readonly retry?: RetryInput | null | undefined;
  readonly launch?: TaskLaunch;
  readonly onTaskFailure?: TaskFailure;
  readonly mail?: ReadonlyArray<MailKind> | null | undefined;
  readonly boost?: number;
  readonly preemptionClass?: number;
  readonly held?: boolean;
  readonly ref?: string | null | undefined;
  readonly needs?: ReadonlyArray<NeedClauseInput>;
  readonly onUnmet?: OnUnmet;
  readonly notBefore?: string | null | undefined;
  readonly simulatedRunS?: number | null | undefined;
  readonly simulatedIoS?: number | null | undefined;
};

export type JobPreferenceInput = {
  readonly site?: string | null | undefined;
  readonly os?: string | null | undefined;
  readonly architecture?: string | null | undefined;
  readonly licenses?: ReadonlyArray<string>;
  readonly cpusPerTask?: number | null | undefined;
  readonly memoryMbPerTask?: number | null | undefined;
};

export type NeedClauseInput = {
  readonly expression?: NeedExpression;
  readonly of: ReadonlyArray<NeedTermInput>;
};

export type NeedTermInput = {
  readonly ref?: string | null | undefined;
  readonly job?: string | null | undefined;
  readonly group?: string | null | undefined;
  readonly jobGroup?: string | null | undefined;
  readonly condition?: AskedNeed;
  readonly minDelayS?: number;
};

export type SubmitJobsInput = {
  readonly idempotencyKey?: string | null | undefined;
  readonly jobs: ReadonlyArray<JobInput>;
  readonly allowUnfit?: boolean;
};

export type JobSelection = {
  readonly ids?: ReadonlyArray<string> | null | undefined;
  readonly filter?: JobFilter | null | undefined;
  readonly all?: boolean | null | undefined;
};

export type ChangeJobsInput = {
  readonly selection: JobSelection;
  readonly set: JobChangesInput;
  readonly allowUnfit?: boolean;
};

export type JobChangesInput = {
  readonly name?: string | null | undefined;
  readonly project?: string | null | undefined;
  readonly tasks?: number | null | undefined;
  readonly cpusPerTask?: number | null | undefined;
  readonly memoryMbPerTask?: number | null | undefined;
  readonly resourcesPerTask?: ReadonlyArray<ResourceAmountInput> | null | undefined;
  readonly licenses?: ReadonlyArray<string> | null | undefined;
  readonly machineConstraint?: string | null | undefined;
  readonly os?: string | null | undefined;
  readonly architecture?: string | null | undefined;
  readonly estimateS?: number | null | undefined;
  readonly benchmark?: number | null | undefined;
  readonly runTimeLimitS?: number | null | undefined;
  readonly warnS?: number | null | undefined;
  readonly warnSignal?: WarnSignal | null | undefined;
  readonly killGraceS?: number | null | undefined;
  readonly deadline?: string | null | undefined;
  readonly restartable?: boolean | null | undefined;
  readonly retry?: RetryInput | null | undefined;
  readonly mail?: ReadonlyArray<MailKind> | null | undefined;
  readonly boost?: number | null | undefined;
  readonly needs?: ReadonlyArray<NeedClauseInput> | null | undefined;
  readonly onUnmet?: OnUnmet | null | undefined;
  readonly notBefore?: string | null | undefined;
};

export type BriefJobFragment = { readonly id: string, readonly state: JobState, readonly name: string | null, readonly application: string, readonly command: string, readonly project: string | null, readonly groupName: string | null, readonly arrayIndex: number | null, readonly workingDirectory: string | null, readonly tasks: number, readonly cpusPerTask: number, readonly memoryMbPerTask: number, readonly licenses: ReadonlyArray<string>, readonly runTimeLimitS: number | null, readonly deadline: string | null, readonly priority: number | null, readonly boost: number, readonly restartable: boolean, readonly machineConstraint: string | null, readonly epoch: number, readonly cause: EndCause | null, readonly message: string | null, readonly exitCode: number | null, readonly submittedAt: string, readonly startedAt: string | null, readonly endedAt: string | null, readonly notBefore: string | null, readonly eligibleAt: string | null, readonly user: { readonly name: string }, readonly site: { readonly name: string } | null };

export type SlurmJobsQueryVariables = Exact<{
  filter?: JobFilter | null | undefined;
  first: number;
  after?: string | null | undefined;
}>;


export type SlurmJobsQuery = { readonly viewer: { readonly name: string }, readonly jobs: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly state: JobState, readonly name: string | null, readonly application: string, readonly command: string, readonly project: string | null, readonly groupName: string | null, readonly arrayIndex: number | null, readonly workingDirectory: string | null, readonly tasks: number, readonly cpusPerTask: number, readonly memoryMbPerTask: number, readonly licenses: ReadonlyArray<string>, readonly runTimeLimitS: number | null, readonly deadline: string | null, readonly priority: number | null, readonly boost: number, readonly restartable: boolean, readonly machineConstraint: string | null, readonly epoch: number, readonly cause: EndCause | null, readonly message: string | null, readonly exitCode: number | null, readonly submittedAt: string, readonly startedAt: string | null, readonly endedAt: string | null, readonly notBefore: string | null, readonly eligibleAt: string | null, readonly user: { readonly name: string }, readonly site: { readonly name: string } | null }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type SlurmRunsQueryVariables = Exact<{
  filter?: JobFilter | null | undefined;
  first: number;
  after?: string | null | undefined;
}>;


export type SlurmRunsQuery = { readonly viewer: { readonly name: string }, readonly jobs: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly state: JobState, readonly name: string | null, readonly application: string, readonly command: string, readonly project: string | null, readonly groupName: string | null, readonly arrayIndex: number | null, readonly workingDirectory: string | null, readonly tasks: number, readonly cpusPerTask: number, readonly memoryMbPerTask: number, readonly licenses: ReadonlyArray<string>, readonly runTimeLimitS: number | null, readonly deadline: string | null, readonly priority: number | null, readonly boost: number, readonly restartable: boolean, readonly machineConstraint: string | null, readonly epoch: number, readonly cause: EndCause | null, readonly message: string | null, readonly exitCode: number | null, readonly submittedAt: string, readonly startedAt: string | null, readonly endedAt: string | null, readonly notBefore: string | null, readonly eligibleAt: string | null, readonly resourcesPerTask: ReadonlyArray<{ readonly kind: string, readonly amount: number }>, readonly runs: ReadonlyArray<{ readonly epoch: number, readonly nodes: ReadonlyArray<string>, readonly signal: string | null, readonly cpuS: number | null, readonly peakMemoryMb: number | null, readonly readMb: number | null, readonly writtenMb: number | null, readonly allocations: ReadonlyArray<{ readonly tasks: number, readonly machine: { readonly name: string } }> }>, readonly user: { readonly name: string }, readonly site: { readonly name: string } | null }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type SlurmSitesQueryVariables = Exact<{
  first: number;
  after?: string | null | undefined;
}>;


export type SlurmSitesQuery = { readonly sites: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly name: string, readonly state: SiteState, readonly cpus: number, readonly cpusUsed: number, readonly machines: ReadonlyArray<{ readonly name: string, readonly state: MachineState, readonly silent: boolean, readonly cpus: number, readonly cpusUsed: number, readonly memoryMb: number, readonly memoryUsedMb: number, readonly os: string, readonly architecture: string, readonly resources: ReadonlyArray<{ readonly kind: string, readonly amount: number }> }> }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type SlurmSiteNamesQueryVariables = Exact<{
  first: number;
  after?: string | null | undefined;
}>;


export type SlurmSiteNamesQuery = { readonly sites: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly name: string }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type SlurmViewerQueryVariables = Exact<{ [key: string]: never; }>;


export type SlurmViewerQuery = { readonly viewer: { readonly name: string, readonly quotaShare: number, readonly class: UserClass, readonly role: UserRole } };

export type SlurmSubmitMutationVariables = Exact<{
  input: SubmitJobsInput;
}>;


export type SlurmSubmitMutation = { readonly submitJobs: { readonly jobIds: ReadonlyArray<string>, readonly errors: ReadonlyArray<{ readonly index: number, readonly code: ErrorCode, readonly field: string, readonly message: string }> } };

export type SlurmPlacementQueryVariables = Exact<{
  spec: JobInput;
}>;


export type SlurmPlacementQuery = { readonly placement: { readonly message: string, readonly startsAt: string | null, readonly site: { readonly name: string } | null, readonly allocations: ReadonlyArray<{ readonly machine: { readonly name: string } }> } };

export type SlurmCancelMutationVariables = Exact<{
  selection: JobSelection;
}>;


export type SlurmCancelMutation = { readonly cancelJobs: { readonly jobIds: ReadonlyArray<string>, readonly unchanged: ReadonlyArray<{ readonly id: string, readonly code: ErrorCode, readonly message: string }> } };

export type SlurmHoldMutationVariables = Exact<{
  selection: JobSelection;
}>;


export type SlurmHoldMutation = { readonly holdJobs: { readonly jobIds: ReadonlyArray<string>, readonly unchanged: ReadonlyArray<{ readonly id: string, readonly code: ErrorCode, readonly message: string }> } };

export type SlurmReleaseMutationVariables = Exact<{
  selection: JobSelection;
}>;


export type SlurmReleaseMutation = { readonly releaseJobs: { readonly jobIds: ReadonlyArray<string>, readonly unchanged: ReadonlyArray<{ readonly id: string, readonly code: ErrorCode, readonly message: string }> } };

export type SlurmRequeueMutationVariables = Exact<{
  selection: JobSelection;
}>;


export type SlurmRequeueMutation = { readonly requeueJobs: { readonly jobIds: ReadonlyArray<string>, readonly unchanged: ReadonlyArray<{ readonly id: string, readonly code: ErrorCode, readonly message: string }> } };

export type SlurmHoldsQueryVariables = Exact<{
  first: number;
  after?: string | null | undefined;
}>;


export type SlurmHoldsQuery = { readonly holds: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly name: string | null, readonly kind: HoldKind, readonly wholeSite: boolean, readonly site: { readonly name: string, readonly machines: ReadonlyArray<{ readonly name: string, readonly cpus: number }> }, readonly user: { readonly name: string } | null, readonly machines: ReadonlyArray<{ readonly cpus: number | null, readonly machine: { readonly name: string, readonly cpus: number } }>, readonly times: ReadonlyArray<{ readonly from: string, readonly to: string | null }> }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type SlurmChangeMutationVariables = Exact<{
  input: ChangeJobsInput;
}>;


export type SlurmChangeMutation = { readonly changeJobs: { readonly jobIds: ReadonlyArray<string>, readonly unchanged: ReadonlyArray<{ readonly id: string, readonly code: ErrorCode, readonly message: string }> } };


export const SlurmJobsDocument: Document<SlurmJobsQuery, SlurmJobsQueryVariables> =
  "query SlurmJobs($filter: JobFilter, $first: Int!, $after: String) { viewer { name } jobs(filter: $filter, first: $first, after: $after) { nodes { ...BriefJob } pageInfo { hasNextPage endCursor } } } fragment BriefJob on Job { id state name application command user { name } site { name } project groupName arrayIndex workingDirectory tasks cpusPerTask memoryMbPerTask licenses runTimeLimitS deadline priority boost restartable machineConstraint epoch cause message exitCode submittedAt startedAt endedAt notBefore eligibleAt }";

export const SlurmRunsDocument: Document<SlurmRunsQuery, SlurmRunsQueryVariables> =
  "query SlurmRuns($filter: JobFilter, $first: Int!, $after: String) { viewer { name } jobs(filter: $filter, first: $first, after: $after) { nodes { ...BriefJob resourcesPerTask { kind amount } runs { epoch allocations { machine { name } tasks } nodes signal cpuS peakMemoryMb readMb writtenMb } } pageInfo { hasNextPage endCursor } } } fragment BriefJob on Job { id state name application command user { name } site { name } project groupName arrayIndex workingDirectory tasks cpusPerTask memoryMbPerTask licenses runTimeLimitS deadline priority boost restartable machineConstraint epoch cause message exitCode submittedAt startedAt endedAt notBefore eligibleAt }";

export const SlurmSitesDocument: Document<SlurmSitesQuery, SlurmSitesQueryVariables> =
  "query SlurmSites($first: Int!, $after: String) { sites(first: $first, after: $after) { nodes { id name state cpus cpusUsed machines { name state silent cpus cpusUsed memoryMb memoryUsedMb os architecture resources { kind amount } } } pageInfo { hasNextPage endCursor } } }";

export const SlurmSiteNamesDocument: Document<SlurmSiteNamesQuery, SlurmSiteNamesQueryVariables> =
  "query SlurmSiteNames($first: Int!, $after: String) { sites(first: $first, after: $after) { nodes { id name } pageInfo { hasNextPage endCursor } } }";

export const SlurmViewerDocument: Document<SlurmViewerQuery, SlurmViewerQueryVariables> =
  "query SlurmViewer { viewer { name quotaShare class role } }";

export const SlurmSubmitDocument: Document<SlurmSubmitMutation, SlurmSubmitMutationVariables> =
  "mutation SlurmSubmit($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds errors { index code field message } } }";

export const SlurmPlacementDocument: Document<SlurmPlacementQuery, SlurmPlacementQueryVariables> =
  "query SlurmPlacement($spec: JobInput!) { placement(spec: $spec) { message startsAt site { name } allocations { machine { name } } } }";

export const SlurmCancelDocument: Document<SlurmCancelMutation, SlurmCancelMutationVariables> =
  "mutation SlurmCancel($selection: JobSelection!) { cancelJobs(selection: $selection) { jobIds unchanged { id code message } } }";

export const SlurmHoldDocument: Document<SlurmHoldMutation, SlurmHoldMutationVariables> =
  "mutation SlurmHold($selection: JobSelection!) { holdJobs(selection: $selection) { jobIds unchanged { id code message } } }";

export const SlurmReleaseDocument: Document<SlurmReleaseMutation, SlurmReleaseMutationVariables> =
  "mutation SlurmRelease($selection: JobSelection!) { releaseJobs(selection: $selection) { jobIds unchanged { id code message } } }";

export const SlurmRequeueDocument: Document<SlurmRequeueMutation, SlurmRequeueMutationVariables> =
  "mutation SlurmRequeue($selection: JobSelection!) { requeueJobs(selection: $selection) { jobIds unchanged { id code message } } }";

export const SlurmHoldsDocument: Document<SlurmHoldsQuery, SlurmHoldsQueryVariables> =
  "query SlurmHolds($first: Int!, $after: String) { holds(first: $first, after: $after) { nodes { id name kind site { name machines { name cpus } } wholeSite user { name } machines { cpus machine { name cpus } } times { from to } } pageInfo { hasNextPage endCursor } } }";

export const SlurmChangeDocument: Document<SlurmChangeMutation, SlurmChangeMutationVariables> =
  "mutation SlurmChange($input: ChangeJobsInput!) { changeJobs(input: $input) { jobIds unchanged { id code message } } }";
