// Generated from src/api/tes/documents.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { Document } from './operation.js';
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

export type ResourceAmountInput = {
  readonly kind: string;
  readonly amount: number;
};

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

export type TesSubmitMutationVariables = Exact<{
  job: JobInput;
}>;


export type TesSubmitMutation = { readonly submitJobs: { readonly jobIds: ReadonlyArray<string>, readonly errors: ReadonlyArray<{ readonly field: string, readonly code: ErrorCode, readonly message: string }> } };

export type TesCancelMutationVariables = Exact<{
  id: string;
}>;


export type TesCancelMutation = { readonly cancelJobs: { readonly unchanged: ReadonlyArray<{ readonly code: ErrorCode, readonly message: string }> } };

export type TesSitesQueryVariables = Exact<{ [key: string]: never; }>;


export type TesSitesQuery = { readonly sites: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly name: string }> } };

export type TesTasksQueryVariables = Exact<{
  filter?: JobFilter | null | undefined;
  first: number;
  after?: string | null | undefined;
  whole: boolean;
}>;


export type TesTasksQuery = { readonly jobs: { readonly edges: ReadonlyArray<{ readonly cursor: string, readonly node: { readonly id: string, readonly state: JobState, readonly cause: EndCause | null, readonly exitCode: number | null, readonly name?: string | null, readonly command?: string, readonly arguments?: ReadonlyArray<string> } }>, readonly pageInfo: { readonly hasNextPage: boolean } } };

export type TesDetailsQueryVariables = Exact<{
  ids: ReadonlyArray<string>;
  first: number;
  full: boolean;
}>;


export type TesDetailsQuery = { readonly jobs: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly state: JobState, readonly cause: EndCause | null, readonly exitCode: number | null, readonly message: string | null, readonly name: string | null, readonly command: string, readonly arguments: ReadonlyArray<string>, readonly workingDirectory: string | null, readonly cpusPerTask: number, readonly memoryMbPerTask: number, readonly submittedAt: string, readonly epoch: number, readonly environment: ReadonlyArray<{ readonly name: string, readonly value: string }> | null, readonly stderr: { readonly text: string } | null, readonly stdout?: { readonly text: string } | null, readonly runs: ReadonlyArray<{ readonly epoch: number, readonly startedAt: string | null, readonly endedAt: string | null, readonly exitCode: number | null, readonly cause: EndCause | null, readonly message: string | null, readonly site: { readonly name: string }, readonly allocations: ReadonlyArray<{ readonly machine: { readonly name: string } }> }> }> } };


export const TesSubmitDocument: Document<TesSubmitMutation, TesSubmitMutationVariables> =
  "mutation TesSubmit($job: JobInput!) { submitJobs(input: {jobs: [$job]}) { jobIds errors { field code message } } }";

export const TesCancelDocument: Document<TesCancelMutation, TesCancelMutationVariables> =
  "mutation TesCancel($id: ID!) { cancelJobs(selection: {ids: [$id]}) { unchanged { code message } } }";

export const TesSitesDocument: Document<TesSitesQuery, TesSitesQueryVariables> =
  "query TesSites { sites(first: 1000) { nodes { id name } } }";

export const TesTasksDocument: Document<TesTasksQuery, TesTasksQueryVariables> =
  "query TesTasks($filter: JobFilter, $first: Int!, $after: String, $whole: Boolean!) { jobs( filter: $filter orderBy: {field: SUBMITTED_AT, direction: DESC} first: $first after: $after ) { edges { cursor node { id state cause exitCode name @include(if: $whole) command @include(if: $whole) arguments @include(if: $whole) } } pageInfo { hasNextPage } } }";

export const TesDetailsDocument: Document<TesDetailsQuery, TesDetailsQueryVariables> =
  "query TesDetails($ids: [ID!]!, $first: Int!, $full: Boolean!) { jobs(filter: {ids: $ids}, first: $first) { nodes { id state cause exitCode message name command arguments workingDirectory environment { name value } cpusPerTask memoryMbPerTask submittedAt epoch stderr: output(stream: STDERR) { text(maxBytes: 65536) } stdout: output(stream: STDOUT) @include(if: $full) { text(maxBytes: 65536) } runs { epoch startedAt endedAt exitCode cause message site { name } allocations { machine { name } } } } } }";
