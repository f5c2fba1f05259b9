// Generated from web/src/pages/submit/submit.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type ResourceAmountInput = {
  kind: string;
  amount: number;
};

export type MailKind =
  | 'BEGIN'
  | 'END'
  | 'FAIL'
  | 'LIMIT_80'
  | 'WAITED'
  | 'GROUP_DONE';

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

export type SubmitJobGroupInput = {
  name?: string | null | undefined;
  template: JobInput;
  parameters?: Array<unknown> | null | undefined;
  count?: number | null | undefined;
  idempotencyKey?: string | null | undefined;
  allowUnfit?: boolean;
};

export type SubmitJobsMutationVariables = Exact<{
  input: SubmitJobsInput;
}>;


export type SubmitJobsMutation = { submitJobs: { jobIds: Array<string>, errors: Array<{ index: number, field: string, message: string }> } };

export type SubmitGroupMutationVariables = Exact<{
  input: SubmitJobGroupInput;
}>;


export type SubmitGroupMutation = { submitJobGroup: { jobGroup: { id: string, size: number } | null, errors: Array<{ index: number, field: string, message: string }> } };

export type PreviewQueryVariables = Exact<{
  spec: JobInput;
}>;


export type PreviewQuery = { placement: { policyVersion: number, priority: number | null, startsAt: string | null, earliestStart: string | null, reason: string, message: string, jobTerms: Array<{ name: string, value: number }>, site: { id: string, name: string } | null, allocations: Array<{ tasks: number, machine: { id: string, name: string } }>, candidates: Array<{ eligible: boolean, reason: string | null, rank: number | null, terms: Array<{ name: string, value: number }>, site: { id: string, name: string } }> } };

export type SubmitChoicesQueryVariables = Exact<{ [key: string]: never; }>;


export type SubmitChoicesQuery = { sites: { nodes: Array<{ id: string, name: string, licenses: Array<{ id: string, kind: string }> }> }, licenses: { nodes: Array<{ id: string, kind: string }> }, datasets: { nodes: Array<{ id: string, name: string, sizeMb: number }> } };

export type JobAgainQueryVariables = Exact<{
  id: string;
}>;


export type JobAgainQuery = { job: { id: string, name: string | null, application: string, project: string | null, groupName: string | null, command: string, arguments: Array<string>, workingDirectory: string | null, tasks: number, cpusPerTask: number, memoryMbPerTask: number, machineConstraint: string | null, licenses: Array<string>, os: string | null, architecture: string | null, estimateS: number, benchmark: number, runTimeLimitS: number | null, sandboxMb: number, outputMb: number, computationShare: number | null, restartable: boolean, launch: TaskLaunch, onTaskFailure: TaskFailure, environment: Array<{ name: string, value: string }> | null, resourcesPerTask: Array<{ kind: string, amount: number }>, originSite: { id: string } | null, preferences: Array<{ os: string | null, architecture: string | null, licenses: Array<string>, cpusPerTask: number | null, memoryMbPerTask: number | null, site: { id: string } | null }>, outputs: Array<{ path: string, keep: OutputKeeper, dataset: string | null }>, inputs: Array<{ sizeMb: number, output: string | null, dataset: { id: string } | null, site: { id: string } | null, from: { id: string } | null }> } | null };

export type TermPartsFragment = { name: string, value: number };

export type CandidatePartsFragment = { eligible: boolean, reason: string | null, rank: number | null, terms: Array<{ name: string, value: number }>, site: { id: string, name: string } };

export type PlacementPartsFragment = { policyVersion: number, priority: number | null, startsAt: string | null, earliestStart: string | null, reason: string, message: string, jobTerms: Array<{ name: string, value: number }>, site: { id: string, name: string } | null, allocations: Array<{ tasks: number, machine: { id: string, name: string } }>, candidates: Array<{ eligible: boolean, reason: string | null, rank: number | null, terms: Array<{ name: string, value: number }>, site: { id: string, name: string } }> };


export const SubmitJobsDocument =
  "mutation SubmitJobs($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds errors { index field message } } }" as unknown as TypedDocumentNode<SubmitJobsMutation, SubmitJobsMutationVariables>;

export const SubmitGroupDocument =
  "mutation SubmitGroup($input: SubmitJobGroupInput!) { submitJobGroup(input: $input) { jobGroup { id size } errors { index field message } } }" as unknown as TypedDocumentNode<SubmitGroupMutation, SubmitGroupMutationVariables>;

export const PreviewDocument =
  "query Preview($spec: JobInput!) { placement(spec: $spec) { ...PlacementParts } } fragment TermParts on Term { name value } fragment CandidateParts on Candidate { eligible reason rank terms { ...TermParts } site { id name } } fragment PlacementParts on Placement { policyVersion priority startsAt earliestStart jobTerms { ...TermParts } reason message site { id name } allocations { tasks machine { id name } } candidates { ...CandidateParts } }" as unknown as TypedDocumentNode<PreviewQuery, PreviewQueryVariables>;

export const SubmitChoicesDocument =
  "query SubmitChoices { sites(first: 200) { nodes { id name licenses { id kind } } } licenses(first: 500) { nodes { id kind } } datasets(first: 200) { nodes { id name sizeMb } } }" as unknown as TypedDocumentNode<SubmitChoicesQuery, SubmitChoicesQueryVariables>;

export const JobAgainDocument =
  "query JobAgain($id: ID!) { job(id: $id) { id name application project groupName command arguments environment { name value } workingDirectory tasks cpusPerTask memoryMbPerTask resourcesPerTask { kind amount } machineConstraint licenses os architecture estimateS benchmark runTimeLimitS sandboxMb outputMb computationShare restartable launch onTaskFailure originSite { id } preferences { site { id } os architecture licenses cpusPerTask memoryMbPerTask } outputs { path keep dataset } inputs { sizeMb dataset { id } site { id } from { id } output } } }" as unknown as TypedDocumentNode<JobAgainQuery, JobAgainQueryVariables>;
