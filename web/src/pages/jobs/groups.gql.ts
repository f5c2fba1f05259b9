// Generated from web/src/pages/jobs/groups.graphql by scripts/codegen-documents.mjs. Do not edit.
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

export type JobGroupState =
  | 'OPEN'
  | 'DONE';

export type GroupPartsFragment = { id: string, name: string | null, size: number, state: JobGroupState, progress: number, submittedAt: string, user: { id: string, name: string }, counts: Array<{ state: JobState, jobs: number }> };

export type JobGroupsQueryVariables = Exact<{
  first: number;
  after?: string | null | undefined;
}>;


export type JobGroupsQuery = { jobGroups: { nodes: Array<{ id: string, name: string | null, size: number, state: JobGroupState, progress: number, submittedAt: string, user: { id: string, name: string }, counts: Array<{ state: JobState, jobs: number }> }>, pageInfo: { hasNextPage: boolean, endCursor: string | null } } };

export type JobGroupPageQueryVariables = Exact<{
  id: string;
}>;


export type JobGroupPageQuery = { jobGroup: { template: unknown, id: string, name: string | null, size: number, state: JobGroupState, progress: number, submittedAt: string, user: { id: string, name: string }, counts: Array<{ state: JobState, jobs: number }> } | null };

export type CancelGroupMutationVariables = Exact<{
  id: string;
}>;


export type CancelGroupMutation = { cancelJobGroup: { cancelled: number, jobGroup: { id: string, name: string | null, size: number, state: JobGroupState, progress: number, submittedAt: string, user: { id: string, name: string }, counts: Array<{ state: JobState, jobs: number }> } } };

export type GroupNewsSubscriptionVariables = Exact<{
  id: string;
}>;


export type GroupNewsSubscription = { jobGroupUpdated: { template: unknown, id: string, name: string | null, size: number, state: JobGroupState, progress: number, submittedAt: string, user: { id: string, name: string }, counts: Array<{ state: JobState, jobs: number }> } };


export const JobGroupsDocument =
  "query JobGroups($first: Int!, $after: String) { jobGroups(first: $first, after: $after) { nodes { ...GroupParts } pageInfo { hasNextPage endCursor } } } fragment GroupParts on JobGroup { id name user { id name } size state counts { state jobs } progress submittedAt }" as unknown as TypedDocumentNode<JobGroupsQuery, JobGroupsQueryVariables>;

export const JobGroupPageDocument =
  "query JobGroupPage($id: ID!) { jobGroup(id: $id) { ...GroupParts template } } fragment GroupParts on JobGroup { id name user { id name } size state counts { state jobs } progress submittedAt }" as unknown as TypedDocumentNode<JobGroupPageQuery, JobGroupPageQueryVariables>;

export const CancelGroupDocument =
  "mutation CancelGroup($id: ID!) { cancelJobGroup(jobGroup: $id) { cancelled jobGroup { ...GroupParts } } } fragment GroupParts on JobGroup { id name user { id name } size state counts { state jobs } progress submittedAt }" as unknown as TypedDocumentNode<CancelGroupMutation, CancelGroupMutationVariables>;

export const GroupNewsDocument =
  "subscription GroupNews($id: ID!) { jobGroupUpdated(jobGroup: $id) { ...GroupParts template } } fragment GroupParts on JobGroup { id name user { id name } size state counts { state jobs } progress submittedAt }" as unknown as TypedDocumentNode<GroupNewsSubscription, GroupNewsSubscriptionVariables>;
