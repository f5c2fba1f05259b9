// Generated from web/src/pages/overview/begin.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type ResourceAmountInput = {
  kind: string;
  amount: number;
};

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

export type EnvironmentVariable = {
  name: string;
  value: string;
};

export type InputDataInput = {
  dataset?: string | null | undefined;
  sizeMb?: number | null | undefined;
  site?: string | null | undefined;
  from?: string | null | undefined;
  output?: string | null | undefined;
};

export type JobOutputInput = {
  path: string;
  keep?: OutputKeeper;
  dataset?: string | null | undefined;
};

export type RetryInput = {
  maxRetries?: number;
  backoffS?: number;
  factor?: number;
  maxBackoffS?: number;
  rules?: Array<RetryRuleInput>;
};

export type RetryRuleInput = {
  causes?: Array<EndCause> | null | undefined;
  exitCodes?: Array<ExitCodesInput> | null | undefined;
  signals?: Array<string> | null | undefined;
  action: RetryAction;
  memoryFactor?: number;
  memoryMaxMb?: number | null | undefined;
};

export type ExitCodesInput = {
  from: number;
  to: number;
};

export type SiteTermsInput = {
  partition?: string | null | undefined;
  account?: string | null | undefined;
  qos?: string | null | undefined;
};

export type JobInput = {
  name?: string | null | undefined;
  application?: string | null | undefined;
  project?: string | null | undefined;
  groupName?: string | null | undefined;
  arrayIndex?: number | null | undefined;
  command: string;
  arguments?: Array<string>;
  environment?: Array<EnvironmentVariable>;
  workingDirectory?: string | null | undefined;
  tasks?: number;
  cpusPerTask?: number;
  memoryMbPerTask?: number;
  resourcesPerTask?: Array<ResourceAmountInput>;
  licenses?: Array<string>;
  machineConstraint?: string | null | undefined;
  image?: string | null | undefined;
  os?: string | null | undefined;
  architecture?: string | null | undefined;
  siteTerms?: SiteTermsInput | null | undefined;
  estimateS?: number;
  benchmark?: number;
  runTimeLimitS?: number | null | undefined;
  warnS?: number | null | undefined;
  warnSignal?: WarnSignal;
  killGraceS?: number;
  deadline?: string | null | undefined;
  sandboxMb?: number;
  inputs?: Array<InputDataInput>;
  outputMb?: number;
  originSite?: string | null | undefined;
  reservation?: string | null | undefined;
  outputs?: Array<JobOutputInput>;
  preferences?: Array<JobPreferenceInput>;
  computationShare?: number | null | undefined;
  restartable?: boolean;
  retry?: RetryInput | null | undefined;
  launch?: TaskLaunch;
  onTaskFailure?: TaskFailure;
  mail?: Array<MailKind> | null | undefined;
  boost?: number;
  preemptionClass?: number;
  held?: boolean;
  ref?: string | null | undefined;
  needs?: Array<NeedClauseInput>;
  onUnmet?: OnUnmet;
  notBefore?: string | null | undefined;
  simulatedRunS?: number | null | undefined;
  simulatedIoS?: number | null | undefined;
};

export type JobPreferenceInput = {
  site?: string | null | undefined;
  os?: string | null | undefined;
  architecture?: string | null | undefined;
  licenses?: Array<string>;
  cpusPerTask?: number | null | undefined;
  memoryMbPerTask?: number | null | undefined;
};

export type NeedClauseInput = {
  expression?: NeedExpression;
  of: Array<NeedTermInput>;
};

export type NeedTermInput = {
  ref?: string | null | undefined;
  job?: string | null | undefined;
  group?: string | null | undefined;
  jobGroup?: string | null | undefined;
  condition?: AskedNeed;
  minDelayS?: number;
};

export type SubmitJobsInput = {
  idempotencyKey?: string | null | undefined;
  jobs: Array<JobInput>;
  allowUnfit?: boolean;
};

export type RegisterSiteInput = {
  name: string;
  latitude?: number | null | undefined;
  longitude?: number | null | undefined;
  localPolicy?: unknown;
  scheduler?: string | null | undefined;
  maxRunningJobs?: number | null | undefined;
  reservableCpuHours?: number;
};

export type RegisterUserInput = {
  name: string;
  class?: UserClass;
  role?: UserRole;
  quotaShare?: number;
  subject?: string | null | undefined;
};

export type CreateApiKeyInput = {
  user?: string | null | undefined;
  name: string;
  site?: string | null | undefined;
  expiresAt?: string | null | undefined;
  sessionExpiresAt?: string | null | undefined;
  actsForUsers?: boolean;
};

export type AnyJobQueryVariables = Exact<{ [key: string]: never; }>;


export type AnyJobQuery = { jobs: { nodes: Array<{ id: string }> } };

export type SubmitSampleMutationVariables = Exact<{
  input: SubmitJobsInput;
}>;


export type SubmitSampleMutation = { submitJobs: { jobIds: Array<string>, errors: Array<{ message: string }> } };

export type SampleQueryVariables = Exact<{
  id: string;
}>;


export type SampleQuery = { job: { id: string, state: JobState, cause: EndCause | null, whyWaiting: { message: string } | null, output: { text: string } | null } | null };

export type BeginSiteMutationVariables = Exact<{
  input: RegisterSiteInput;
}>;


export type BeginSiteMutation = { registerSite: { id: string, name: string } };

export type BegunSiteQueryVariables = Exact<{
  id: string;
}>;


export type BegunSiteQuery = { node:
    | { id: string, agentSeenAt: string | null, machines: Array<{ id: string }> }
    | Record<PropertyKey, never>
   | null };

export type BeginUserMutationVariables = Exact<{
  input: RegisterUserInput;
}>;


export type BeginUserMutation = { registerUser: { id: string, name: string } };

export type BeginKeyMutationVariables = Exact<{
  input: CreateApiKeyInput;
}>;


export type BeginKeyMutation = { createApiKey: { secret: string, apiKey: { id: string, expiresAt: string | null } } };


export const AnyJobDocument =
  "query AnyJob { jobs(first: 1) { nodes { id } } }" as unknown as TypedDocumentNode<AnyJobQuery, AnyJobQueryVariables>;

export const SubmitSampleDocument =
  "mutation SubmitSample($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds errors { message } } }" as unknown as TypedDocumentNode<SubmitSampleMutation, SubmitSampleMutationVariables>;

export const SampleDocument =
  "query Sample($id: ID!) { job(id: $id) { id state cause whyWaiting { message } output(stream: STDOUT) { text } } }" as unknown as TypedDocumentNode<SampleQuery, SampleQueryVariables>;

export const BeginSiteDocument =
  "mutation BeginSite($input: RegisterSiteInput!) { registerSite(input: $input) { id name } }" as unknown as TypedDocumentNode<BeginSiteMutation, BeginSiteMutationVariables>;

export const BegunSiteDocument =
  "query BegunSite($id: ID!) { node(id: $id) { ... on Site { id agentSeenAt machines { id } } } }" as unknown as TypedDocumentNode<BegunSiteQuery, BegunSiteQueryVariables>;

export const BeginUserDocument =
  "mutation BeginUser($input: RegisterUserInput!) { registerUser(input: $input) { id name } }" as unknown as TypedDocumentNode<BeginUserMutation, BeginUserMutationVariables>;

export const BeginKeyDocument =
  "mutation BeginKey($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret apiKey { id expiresAt } } }" as unknown as TypedDocumentNode<BeginKeyMutation, BeginKeyMutationVariables>;
