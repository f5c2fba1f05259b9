// Generated from src/mcp/documents.graphql by scripts/codegen-documents.mjs. Do not edit.
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

export type NeedCondition =
  | 'START'
  | 'OK'
  | 'NOT_OK'
  | 'ANY';

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

export type DecisionKind =
  | 'DISPATCH'
  | 'START'
  | 'TAKE_BACK'
  | 'PREEMPT';

export type UsageBy =
  | 'USER'
  | 'SITE'
  | 'APPLICATION';

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

export type RoleQueryVariables = Exact<{ [key: string]: never; }>;


export type RoleQuery = { readonly viewer: { readonly role: UserRole } };

export type SitesQueryVariables = Exact<{
  sites?: number;
  after?: string | null | undefined;
}>;


export type SitesQuery = { readonly sites: { readonly edges: ReadonlyArray<{ readonly cursor: string, readonly node: { readonly id: string, readonly name: string, readonly state: SiteState, readonly cpus: number, readonly cpusUsed: number, readonly queuedJobs: number, readonly runningJobs: number, readonly machines: ReadonlyArray<{ readonly cpus: number, readonly cpusUsed: number, readonly memoryMb: number, readonly os: string, readonly architecture: string, readonly resources: ReadonlyArray<{ readonly kind: string, readonly amount: number, readonly used: number }> }> } }>, readonly pageInfo: { readonly hasNextPage: boolean } } };

export type PlacementQueryVariables = Exact<{
  spec: JobInput;
}>;


export type PlacementQuery = { readonly placement: { readonly startsAt: string | null, readonly earliestStart: string | null, readonly reason: string, readonly message: string, readonly site: { readonly name: string } | null, readonly candidates: ReadonlyArray<{ readonly eligible: boolean, readonly reason: string | null, readonly rank: number | null, readonly site: { readonly name: string } }> } };

export type SiteNamesQueryVariables = Exact<{ [key: string]: never; }>;


export type SiteNamesQuery = { readonly sites: { readonly nodes: ReadonlyArray<{ readonly id: string, readonly name: string }> } };

export type ViewerQueryVariables = Exact<{ [key: string]: never; }>;


export type ViewerQuery = { readonly viewer: { readonly id: string } };

export type JobsQueryVariables = Exact<{
  filter: JobFilter;
  first: number;
  after?: string | null | undefined;
}>;


export type JobsQuery = { readonly jobs: { readonly totalCount: number, readonly edges: ReadonlyArray<{ readonly cursor: string, readonly node: { readonly id: string, readonly state: JobState, readonly name: string | null, readonly application: string, readonly submittedAt: string, readonly startedAt: string | null, readonly endedAt: string | null, readonly cause: EndCause | null, readonly exitCode: number | null, readonly user: { readonly name: string }, readonly site: { readonly name: string } | null } }>, readonly pageInfo: { readonly hasNextPage: boolean } } };

export type JobQueryVariables = Exact<{
  id: string;
}>;


export type JobQuery = { readonly job: { readonly id: string, readonly state: JobState, readonly name: string | null, readonly application: string, readonly project: string | null, readonly groupName: string | null, readonly arrayIndex: number | null, readonly command: string, readonly arguments: ReadonlyArray<string>, readonly image: string | null, readonly tasks: number, readonly cpusPerTask: number, readonly memoryMbPerTask: number, readonly licenses: ReadonlyArray<string>, readonly machineConstraint: string | null, readonly os: string | null, readonly architecture: string | null, readonly estimateS: number, readonly runTimeLimitS: number | null, readonly deadline: string | null, readonly submittedAt: string, readonly startedAt: string | null, readonly endedAt: string | null, readonly expectedStart: string | null, readonly earliestStart: string | null, readonly cause: EndCause | null, readonly exitCode: number | null, readonly message: string | null, readonly retries: number, readonly user: { readonly name: string }, readonly site: { readonly name: string } | null, readonly resourcesPerTask: ReadonlyArray<{ readonly kind: string, readonly amount: number }>, readonly runs: ReadonlyArray<{ readonly epoch: number, readonly startedAt: string | null, readonly endedAt: string | null, readonly cause: EndCause | null, readonly exitCode: number | null, readonly signal: string | null, readonly message: string | null, readonly cpuS: number | null, readonly peakMemoryMb: number | null, readonly site: { readonly name: string } }> } | null };

export type OutputQueryVariables = Exact<{
  id: string;
  stream: OutputStream;
  task: number;
  maxBytes: number;
}>;


export type OutputQuery = { readonly job: { readonly state: JobState, readonly output: { readonly epoch: number, readonly text: string, readonly bytes: number, readonly truncated: boolean } | null } | null };

export type WaitingQueryVariables = Exact<{
  id: string;
}>;


export type WaitingQuery = { readonly job: { readonly state: JobState, readonly message: string | null, readonly whyWaiting: { readonly code: string, readonly message: string, readonly startsAt: string | null, readonly earliestStart: string | null, readonly startsAtLatest: string | null, readonly fitsIfLimitS: number | null, readonly wouldChange: ReadonlyArray<string>, readonly numbers: ReadonlyArray<{ readonly name: string, readonly value: number }>, readonly missing: ReadonlyArray<{ readonly expectedAt: string | null, readonly unknown: string | null, readonly term: { readonly group: string | null, readonly condition: NeedCondition, readonly job: { readonly id: string } | null, readonly jobGroup: { readonly id: string } | null } }> } | null } | null };

export type DecisionsQueryVariables = Exact<{
  id: string;
  first: number;
  after?: string | null | undefined;
}>;


export type DecisionsQuery = { readonly job: { readonly state: JobState, readonly decisions: { readonly edges: ReadonlyArray<{ readonly cursor: string, readonly node: { readonly at: string, readonly kind: DecisionKind, readonly reason: string, readonly message: string, readonly policyVersion: number, readonly from: { readonly name: string } | null, readonly site: { readonly name: string } | null, readonly candidates: ReadonlyArray<{ readonly eligible: boolean, readonly reason: string | null, readonly rank: number | null, readonly site: { readonly name: string }, readonly terms: ReadonlyArray<{ readonly name: string, readonly value: number }> }> } }>, readonly pageInfo: { readonly hasNextPage: boolean } } } | null };

export type UsageQueryVariables = Exact<{
  by: UsageBy;
  from: string;
  to?: string | null | undefined;
}>;


export type UsageQuery = { readonly usage: ReadonlyArray<{ readonly application: string | null, readonly runs: number, readonly cpuS: number, readonly endedJobs: number, readonly failedJobs: number, readonly meanWaitS: number | null, readonly user: { readonly name: string } | null, readonly site: { readonly name: string } | null }> };

export type StateQueryVariables = Exact<{
  id: string;
}>;


export type StateQuery = { readonly latestCursor: string, readonly job: { readonly id: string, readonly state: JobState, readonly startedAt: string | null, readonly endedAt: string | null, readonly cause: EndCause | null, readonly exitCode: number | null, readonly message: string | null, readonly site: { readonly name: string } | null } | null };

export type UpdatesSubscriptionVariables = Exact<{
  id: string;
  after?: string | null | undefined;
}>;


export type UpdatesSubscription = { readonly jobUpdated: { readonly cursor: string } };

export type SubmitMutationVariables = Exact<{
  input: SubmitJobsInput;
}>;


export type SubmitMutation = { readonly submitJobs: { readonly jobIds: ReadonlyArray<string>, readonly repeated: boolean, readonly errors: ReadonlyArray<{ readonly index: number, readonly field: string, readonly code: ErrorCode, readonly message: string }> } };

export type CancelMutationVariables = Exact<{
  ids: ReadonlyArray<string>;
}>;


export type CancelMutation = { readonly cancelJobs: { readonly jobIds: ReadonlyArray<string>, readonly unchanged: ReadonlyArray<{ readonly id: string, readonly code: ErrorCode, readonly message: string }> } };


export const RoleDocument: Document<RoleQuery, RoleQueryVariables> =
  "query Role { viewer { role } }";

export const SitesDocument: Document<SitesQuery, SitesQueryVariables> =
  "query Sites($sites: Int! = 10, $after: String) { sites(first: $sites, after: $after) { edges { cursor node { id name state cpus cpusUsed queuedJobs runningJobs machines { cpus cpusUsed memoryMb os architecture resources { kind amount used } } } } pageInfo { hasNextPage } } }";

export const PlacementDocument: Document<PlacementQuery, PlacementQueryVariables> =
  "query Placement($spec: JobInput!) { placement(spec: $spec) { site { name } startsAt earliestStart reason message candidates { site { name } eligible reason rank } } }";

export const SiteNamesDocument: Document<SiteNamesQuery, SiteNamesQueryVariables> =
  "query SiteNames { sites(first: 1000) { nodes { id name } } }";

export const ViewerDocument: Document<ViewerQuery, ViewerQueryVariables> =
  "query Viewer { viewer { id } }";

export const JobsDocument: Document<JobsQuery, JobsQueryVariables> =
  "query Jobs($filter: JobFilter!, $first: Int!, $after: String) { jobs(filter: $filter, first: $first, after: $after, orderBy: {direction: DESC}) { totalCount edges { cursor node { id state name application user { name } site { name } submittedAt startedAt endedAt cause exitCode } } pageInfo { hasNextPage } } }";

export const JobDocument: Document<JobQuery, JobQueryVariables> =
  "query Job($id: ID!) { job(id: $id) { id state name application project groupName arrayIndex user { name } site { name } command arguments image tasks cpusPerTask memoryMbPerTask resourcesPerTask { kind amount } licenses machineConstraint os architecture estimateS runTimeLimitS deadline submittedAt startedAt endedAt expectedStart earliestStart cause exitCode message retries runs { epoch site { name } startedAt endedAt cause exitCode signal message cpuS peakMemoryMb } } }";

export const OutputDocument: Document<OutputQuery, OutputQueryVariables> =
  "query Output($id: ID!, $stream: OutputStream!, $task: Int!, $maxBytes: Int!) { job(id: $id) { state output(stream: $stream, task: $task) { epoch text(maxBytes: $maxBytes) bytes truncated } } }";

export const WaitingDocument: Document<WaitingQuery, WaitingQueryVariables> =
  "query Waiting($id: ID!) { job(id: $id) { state message whyWaiting { code message startsAt earliestStart startsAtLatest fitsIfLimitS wouldChange numbers { name value } missing { term { job { id } jobGroup { id } group condition } expectedAt unknown } } } }";

export const DecisionsDocument: Document<DecisionsQuery, DecisionsQueryVariables> =
  "query Decisions($id: ID!, $first: Int!, $after: String) { job(id: $id) { state decisions(first: $first, after: $after) { edges { cursor node { at kind reason message policyVersion from { name } site { name } candidates { site { name } eligible reason rank terms { name value } } } } pageInfo { hasNextPage } } } }";

export const UsageDocument: Document<UsageQuery, UsageQueryVariables> =
  "query Usage($by: UsageBy!, $from: DateTime!, $to: DateTime) { usage(by: $by, from: $from, to: $to, first: 50) { user { name } site { name } application runs cpuS endedJobs failedJobs meanWaitS } }";

export const StateDocument: Document<StateQuery, StateQueryVariables> =
  "query State($id: ID!) { latestCursor job(id: $id) { id state site { name } startedAt endedAt cause exitCode message } }";

export const UpdatesDocument: Document<UpdatesSubscription, UpdatesSubscriptionVariables> =
  "subscription Updates($id: ID!, $after: String) { jobUpdated(filter: {ids: [$id]}, after: $after) { cursor } }";

export const SubmitDocument: Document<SubmitMutation, SubmitMutationVariables> =
  "mutation Submit($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds repeated errors { index field code message } } }";

export const CancelDocument: Document<CancelMutation, CancelMutationVariables> =
  "mutation Cancel($ids: [ID!]!) { cancelJobs(selection: {ids: $ids}) { jobIds unchanged { id code message } } }";
