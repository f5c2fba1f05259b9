// Generated from web/src/parts/actions.graphql by scripts/codegen-documents.mjs. Do not edit.
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

export type JobFilter = {
  ids?: Array<string> | null | undefined;
  states?: Array<JobState> | null | undefined;
  site?: string | null | undefined;
  user?: string | null | undefined;
  application?: string | null | undefined;
  project?: string | null | undefined;
  groupName?: string | null | undefined;
  license?: string | null | undefined;
  group?: string | null | undefined;
  waitsForOthers?: boolean | null | undefined;
  submittedAfter?: string | null | undefined;
  submittedBefore?: string | null | undefined;
  endedAfter?: string | null | undefined;
  endedBefore?: string | null | undefined;
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

export type JobSelection = {
  ids?: Array<string> | null | undefined;
  filter?: JobFilter | null | undefined;
  all?: boolean | null | undefined;
};

export type ChangeJobsInput = {
  selection: JobSelection;
  set: JobChangesInput;
  allowUnfit?: boolean;
};

export type JobChangesInput = {
  name?: string | null | undefined;
  project?: string | null | undefined;
  tasks?: number | null | undefined;
  cpusPerTask?: number | null | undefined;
  memoryMbPerTask?: number | null | undefined;
  resourcesPerTask?: Array<ResourceAmountInput> | null | undefined;
  licenses?: Array<string> | null | undefined;
  machineConstraint?: string | null | undefined;
  os?: string | null | undefined;
  architecture?: string | null | undefined;
  estimateS?: number | null | undefined;
  benchmark?: number | null | undefined;
  runTimeLimitS?: number | null | undefined;
  warnS?: number | null | undefined;
  warnSignal?: WarnSignal | null | undefined;
  killGraceS?: number | null | undefined;
  deadline?: string | null | undefined;
  restartable?: boolean | null | undefined;
  retry?: RetryInput | null | undefined;
  mail?: Array<MailKind> | null | undefined;
  boost?: number | null | undefined;
  needs?: Array<NeedClauseInput> | null | undefined;
  onUnmet?: OnUnmet | null | undefined;
  notBefore?: string | null | undefined;
};

export type CancelJobsMutationVariables = Exact<{
  selection: JobSelection;
}>;


export type CancelJobsMutation = { cancelJobs: { jobIds: Array<string>, unchanged: Array<{ id: string, message: string }> } };

export type RequeueJobsMutationVariables = Exact<{
  selection: JobSelection;
}>;


export type RequeueJobsMutation = { requeueJobs: { jobIds: Array<string>, unchanged: Array<{ id: string, message: string }> } };

export type HoldJobsMutationVariables = Exact<{
  selection: JobSelection;
}>;


export type HoldJobsMutation = { holdJobs: { jobIds: Array<string>, unchanged: Array<{ id: string, message: string }> } };

export type ReleaseJobsMutationVariables = Exact<{
  selection: JobSelection;
}>;


export type ReleaseJobsMutation = { releaseJobs: { jobIds: Array<string>, unchanged: Array<{ id: string, message: string }> } };

export type BoostJobsMutationVariables = Exact<{
  selection: JobSelection;
  boost: number;
}>;


export type BoostJobsMutation = { reprioritizeJobs: { jobIds: Array<string>, unchanged: Array<{ id: string, message: string }> } };

export type ChangeJobsMutationVariables = Exact<{
  input: ChangeJobsInput;
}>;


export type ChangeJobsMutation = { changeJobs: { jobIds: Array<string>, unchanged: Array<{ id: string, field: string | null, message: string }> } };


export const CancelJobsDocument =
  "mutation CancelJobs($selection: JobSelection!) { cancelJobs(selection: $selection) { jobIds unchanged { id message } } }" as unknown as TypedDocumentNode<CancelJobsMutation, CancelJobsMutationVariables>;

export const RequeueJobsDocument =
  "mutation RequeueJobs($selection: JobSelection!) { requeueJobs(selection: $selection) { jobIds unchanged { id message } } }" as unknown as TypedDocumentNode<RequeueJobsMutation, RequeueJobsMutationVariables>;

export const HoldJobsDocument =
  "mutation HoldJobs($selection: JobSelection!) { holdJobs(selection: $selection) { jobIds unchanged { id message } } }" as unknown as TypedDocumentNode<HoldJobsMutation, HoldJobsMutationVariables>;

export const ReleaseJobsDocument =
  "mutation ReleaseJobs($selection: JobSelection!) { releaseJobs(selection: $selection) { jobIds unchanged { id message } } }" as unknown as TypedDocumentNode<ReleaseJobsMutation, ReleaseJobsMutationVariables>;

export const BoostJobsDocument =
  "mutation BoostJobs($selection: JobSelection!, $boost: Int!) { reprioritizeJobs(selection: $selection, boost: $boost) { jobIds unchanged { id message } } }" as unknown as TypedDocumentNode<BoostJobsMutation, BoostJobsMutationVariables>;

export const ChangeJobsDocument =
  "mutation ChangeJobs($input: ChangeJobsInput!) { changeJobs(input: $input) { jobIds unchanged { id field message } } }" as unknown as TypedDocumentNode<ChangeJobsMutation, ChangeJobsMutationVariables>;
