// Generated from src/client/operations.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { Document } from './client.js';
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

export type OutputStream =
  | 'STDOUT'
  | 'STDERR';

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

export type ViewerQueryVariables = Exact<{ [key: string]: never; }>;


export type ViewerQuery = { readonly viewer: { readonly id: string, readonly name: string, readonly role: UserRole } };

export type LatestCursorQueryVariables = Exact<{ [key: string]: never; }>;


export type LatestCursorQuery = { readonly latestCursor: string };

export type SitesQueryVariables = Exact<{
  first: number;
  after?: string | null | undefined;
}>;


export type SitesQuery = { readonly sites: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly name: string, readonly state: SiteState, readonly cpus: number, readonly cpusUsed: number, readonly queuedJobs: number, readonly runningJobs: number }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type JobFieldsFragment = { readonly id: string, readonly state: JobState, readonly name: string | null, readonly groupName: string | null, readonly arrayIndex: number | null, readonly command: string, readonly arguments: ReadonlyArray<string>, readonly image: string | null, readonly cause: EndCause | null, readonly exitCode: number | null, readonly message: string | null, readonly submittedAt: string, readonly startedAt: string | null, readonly endedAt: string | null, readonly site: { readonly id: string, readonly name: string } | null };

export type JobQueryVariables = Exact<{
  id: string;
}>;


export type JobQuery = { readonly job: { readonly id: string, readonly state: JobState, readonly name: string | null, readonly groupName: string | null, readonly arrayIndex: number | null, readonly command: string, readonly arguments: ReadonlyArray<string>, readonly image: string | null, readonly cause: EndCause | null, readonly exitCode: number | null, readonly message: string | null, readonly submittedAt: string, readonly startedAt: string | null, readonly endedAt: string | null, readonly site: { readonly id: string, readonly name: string } | null } | null };

export type JobsQueryVariables = Exact<{
  filter?: JobFilter | null | undefined;
  first: number;
  after?: string | null | undefined;
}>;


export type JobsQuery = { readonly jobs: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly state: JobState, readonly name: string | null, readonly groupName: string | null, readonly arrayIndex: number | null, readonly command: string, readonly arguments: ReadonlyArray<string>, readonly image: string | null, readonly cause: EndCause | null, readonly exitCode: number | null, readonly message: string | null, readonly submittedAt: string, readonly startedAt: string | null, readonly endedAt: string | null, readonly site: { readonly id: string, readonly name: string } | null }>, readonly pageInfo: { readonly hasNextPage: boolean, readonly endCursor: string | null } } };

export type OutputQueryVariables = Exact<{
  id: string;
  stream: OutputStream;
}>;


export type OutputQuery = { readonly job: { readonly output: { readonly text: string, readonly bytes: number, readonly truncated: boolean } | null } | null };

export type SubmitMutationVariables = Exact<{
  input: SubmitJobsInput;
}>;


export type SubmitMutation = { readonly submitJobs: { readonly jobIds: ReadonlyArray<string>, readonly repeated: boolean, readonly errors: ReadonlyArray<{ readonly index: number, readonly field: string, readonly code: ErrorCode, readonly message: string }> } };

export type CancelMutationVariables = Exact<{
  selection: JobSelection;
}>;


export type CancelMutation = { readonly cancelJobs: { readonly jobIds: ReadonlyArray<string>, readonly unchanged: ReadonlyArray<{ readonly id: string, readonly code: ErrorCode, readonly message: string }> } };

export type JobUpdatedSubscriptionVariables = Exact<{
  filter?: JobFilter | null | undefined;
  after?: string | null | undefined;
}>;


export type JobUpdatedSubscription = { readonly jobUpdated: { readonly cursor: string, readonly resyncRequired: boolean, readonly job: { readonly id: string, readonly state: JobState, readonly name: string | null, readonly groupName: string | null, readonly arrayIndex: number | null, readonly command: string, readonly arguments: ReadonlyArray<string>, readonly image: string | null, readonly cause: EndCause | null, readonly exitCode: number | null, readonly message: string | null, readonly submittedAt: string, readonly startedAt: string | null, readonly endedAt: string | null, readonly site: { readonly id: string, readonly name: string } | null } | null } };


export const ViewerDocument: Document<ViewerQuery, ViewerQueryVariables> =
  "query Viewer { viewer { id name role } }";

export const LatestCursorDocument: Document<LatestCursorQuery, LatestCursorQueryVariables> =
  "query LatestCursor { latestCursor }";

export const SitesDocument: Document<SitesQuery, SitesQueryVariables> =
  "query Sites($first: Int!, $after: String) { sites(first: $first, after: $after) { nodes { id name state cpus cpusUsed queuedJobs runningJobs } pageInfo { hasNextPage endCursor } } }";

export const JobDocument: Document<JobQuery, JobQueryVariables> =
  "query Job($id: ID!) { job(id: $id) { ...JobFields } } fragment JobFields on Job { id state name groupName arrayIndex command arguments image cause exitCode message submittedAt startedAt endedAt site { id name } }";

export const JobsDocument: Document<JobsQuery, JobsQueryVariables> =
  "query Jobs($filter: JobFilter, $first: Int!, $after: String) { jobs(filter: $filter, first: $first, after: $after) { nodes { ...JobFields } pageInfo { hasNextPage endCursor } } } fragment JobFields on Job { id state name groupName arrayIndex command arguments image cause exitCode message submittedAt startedAt endedAt site { id name } }";

export const OutputDocument: Document<OutputQuery, OutputQueryVariables> =
  "query Output($id: ID!, $stream: OutputStream!) { job(id: $id) { output(stream: $stream) { text bytes truncated } } }";

export const SubmitDocument: Document<SubmitMutation, SubmitMutationVariables> =
  "mutation Submit($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds repeated errors { index field code message } } }";

export const CancelDocument: Document<CancelMutation, CancelMutationVariables> =
  "mutation Cancel($selection: JobSelection!) { cancelJobs(selection: $selection) { jobIds unchanged { id code message } } }";

export const JobUpdatedDocument: Document<JobUpdatedSubscription, JobUpdatedSubscriptionVariables> =
  "subscription JobUpdated($filter: JobFilter, $after: String) { jobUpdated(filter: $filter, after: $after) { cursor resyncRequired job { ...JobFields } } } fragment JobFields on Job { id state name groupName arrayIndex command arguments image cause exitCode message submittedAt startedAt endedAt site { id name } }";
