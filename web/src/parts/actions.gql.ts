// Generated from web/src/parts/actions.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
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
  submittedAfter?: string | null | undefined;
  submittedBefore?: string | null | undefined;
  endedAfter?: string | null | undefined;
  endedBefore?: string | null | undefined;
};

export type JobSelection = {
  ids?: Array<string> | null | undefined;
  filter?: JobFilter | null | undefined;
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
