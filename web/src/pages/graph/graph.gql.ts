// Generated from web/src/pages/graph/graph.graphql by scripts/codegen-documents.mjs. Do not edit.
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

export type NeedCondition =
  | 'START'
  | 'OK'
  | 'NOT_OK'
  | 'ANY';

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

export type RerunInput = {
  group?: string | null | undefined;
  jobGroup?: string | null | undefined;
  only?: RerunOnly;
};

export type RerunOnly =
  | 'FAILED'
  | 'FAILED_AND_DOWNSTREAM';

export type JobGraphPageQueryVariables = Exact<{
  filter: JobFilter;
}>;


export type JobGraphPageQuery = { jobGraph: { isWhole: boolean, criticalPath: Array<number>, expectedEnd: string | null, nodes: Array<{ id: string, name: string | null, arrayIndex: number | null, state: JobState, level: number, startedAt: string | null, endedAt: string | null, expectedStart: string | null, expectedEnd: string | null, needs: Array<number>, conditions: Array<NeedCondition> }> } };

export type JobGraphNewsSubscriptionVariables = Exact<{
  filter?: JobFilter | null | undefined;
}>;


export type JobGraphNewsSubscription = { jobUpdated: { cursor: string, resyncRequired: boolean, job: { id: string, state: JobState } | null } };

export type RerunGroupMutationVariables = Exact<{
  input: RerunInput;
}>;


export type RerunGroupMutation = { rerun: { jobIds: Array<string>, repointed: Array<string> } };


export const JobGraphPageDocument =
  "query JobGraphPage($filter: JobFilter!) { jobGraph(filter: $filter, most: 10000) { nodes { id name arrayIndex state level startedAt endedAt expectedStart expectedEnd needs conditions } isWhole criticalPath expectedEnd } }" as unknown as TypedDocumentNode<JobGraphPageQuery, JobGraphPageQueryVariables>;

export const JobGraphNewsDocument =
  "subscription JobGraphNews($filter: JobFilter) { jobUpdated(filter: $filter) { cursor resyncRequired job { id state } } }" as unknown as TypedDocumentNode<JobGraphNewsSubscription, JobGraphNewsSubscriptionVariables>;

export const RerunGroupDocument =
  "mutation RerunGroup($input: RerunInput!) { rerun(input: $input) { jobIds repointed } }" as unknown as TypedDocumentNode<RerunGroupMutation, RerunGroupMutationVariables>;
