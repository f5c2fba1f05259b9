// Generated from web/src/parts/bulk.graphql by scripts/codegen-documents.mjs. Do not edit.
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
  waitsForOthers?: boolean | null | undefined;
  submittedAfter?: string | null | undefined;
  submittedBefore?: string | null | undefined;
  endedAfter?: string | null | undefined;
  endedBefore?: string | null | undefined;
};

export type JobIdsQueryVariables = Exact<{
  filter?: JobFilter | null | undefined;
  first?: number | null | undefined;
  after?: string | null | undefined;
}>;


export type JobIdsQuery = { jobs: { nodes: Array<{ id: string, state: JobState }>, pageInfo: { hasNextPage: boolean, endCursor: string | null } } };


export const JobIdsDocument =
  "query JobIds($filter: JobFilter, $first: Int, $after: String) { jobs(filter: $filter, first: $first, after: $after) { nodes { id state } pageInfo { hasNextPage endCursor } } }" as unknown as TypedDocumentNode<JobIdsQuery, JobIdsQueryVariables>;
