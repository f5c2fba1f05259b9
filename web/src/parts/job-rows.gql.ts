// Generated from web/src/parts/job-rows.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type Direction =
  | 'ASC'
  | 'DESC';

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

export type EventKind =
  | 'JOB_STATE'
  | 'JOB_CHANGED'
  | 'SITE'
  | 'MACHINE'
  | 'AGENT'
  | 'LICENSE'
  | 'SCHEDULER'
  | 'USER'
  | 'POLICY'
  | 'SIMULATION'
  | 'DATA'
  | 'HOLD';

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

export type JobOrderField =
  | 'SUBMITTED_AT'
  | 'ENDED_AT'
  | 'DEADLINE';

export type JobOrder = {
  field?: JobOrderField;
  direction?: Direction;
};

export type JobRowFragment = { id: string, state: JobState, name: string | null, application: string, command: string, groupName: string | null, arrayIndex: number | null, tasks: number, cpusPerTask: number, memoryMbPerTask: number, licenses: Array<string>, estimateS: number, deadline: string | null, deadlineMissed: boolean, priority: number | null, boost: number, cause: EndCause | null, exitCode: number | null, submittedAt: string, dispatchedAt: string | null, startedAt: string | null, endedAt: string | null, user: { id: string, name: string }, site: { id: string, name: string } | null };

export type JobsPageQueryVariables = Exact<{
  filter?: JobFilter | null | undefined;
  orderBy?: JobOrder | null | undefined;
  first?: number | null | undefined;
  after?: string | null | undefined;
}>;


export type JobsPageQuery = { jobs: { nodes: Array<{ id: string, state: JobState, name: string | null, application: string, command: string, groupName: string | null, arrayIndex: number | null, tasks: number, cpusPerTask: number, memoryMbPerTask: number, licenses: Array<string>, estimateS: number, deadline: string | null, deadlineMissed: boolean, priority: number | null, boost: number, cause: EndCause | null, exitCode: number | null, submittedAt: string, dispatchedAt: string | null, startedAt: string | null, endedAt: string | null, user: { id: string, name: string }, site: { id: string, name: string } | null }>, pageInfo: { hasNextPage: boolean, endCursor: string | null } } };

export type JobsStepQueryVariables = Exact<{
  filter?: JobFilter | null | undefined;
  orderBy?: JobOrder | null | undefined;
  first?: number | null | undefined;
  after?: string | null | undefined;
}>;


export type JobsStepQuery = { jobs: { pageInfo: { hasNextPage: boolean, endCursor: string | null } } };

export type JobsCountQueryVariables = Exact<{
  filter?: JobFilter | null | undefined;
}>;


export type JobsCountQuery = { jobCount: number };

export type CursorQueryVariables = Exact<{ [key: string]: never; }>;


export type CursorQuery = { latestCursor: string };

export type JobRowsSubscriptionVariables = Exact<{
  filter?: JobFilter | null | undefined;
  after?: string | null | undefined;
}>;


export type JobRowsSubscription = { jobUpdated: { cursor: string, resyncRequired: boolean, event: { id: string, kind: EventKind, fromState: JobState | null, toState: JobState | null, objectId: string } | null, job: { id: string, state: JobState, name: string | null, application: string, command: string, groupName: string | null, arrayIndex: number | null, tasks: number, cpusPerTask: number, memoryMbPerTask: number, licenses: Array<string>, estimateS: number, deadline: string | null, deadlineMissed: boolean, priority: number | null, boost: number, cause: EndCause | null, exitCode: number | null, submittedAt: string, dispatchedAt: string | null, startedAt: string | null, endedAt: string | null, user: { id: string, name: string }, site: { id: string, name: string } | null } | null } };


export const JobsPageDocument =
  "query JobsPage($filter: JobFilter, $orderBy: JobOrder, $first: Int, $after: String) { jobs(filter: $filter, orderBy: $orderBy, first: $first, after: $after) { nodes { ...JobRow } pageInfo { hasNextPage endCursor } } } fragment JobRow on Job { id state name application command user { id name } site { id name } groupName arrayIndex tasks cpusPerTask memoryMbPerTask licenses estimateS deadline deadlineMissed priority boost cause exitCode submittedAt dispatchedAt startedAt endedAt }" as unknown as TypedDocumentNode<JobsPageQuery, JobsPageQueryVariables>;

export const JobsStepDocument =
  "query JobsStep($filter: JobFilter, $orderBy: JobOrder, $first: Int, $after: String) { jobs(filter: $filter, orderBy: $orderBy, first: $first, after: $after) { pageInfo { hasNextPage endCursor } } }" as unknown as TypedDocumentNode<JobsStepQuery, JobsStepQueryVariables>;

export const JobsCountDocument =
  "query JobsCount($filter: JobFilter) { jobCount(filter: $filter) }" as unknown as TypedDocumentNode<JobsCountQuery, JobsCountQueryVariables>;

export const CursorDocument =
  "query Cursor { latestCursor }" as unknown as TypedDocumentNode<CursorQuery, CursorQueryVariables>;

export const JobRowsDocument =
  "subscription JobRows($filter: JobFilter, $after: String) { jobUpdated(filter: $filter, after: $after) { cursor resyncRequired event { id kind fromState toState objectId } job { ...JobRow } } } fragment JobRow on Job { id state name application command user { id name } site { id name } groupName arrayIndex tasks cpusPerTask memoryMbPerTask licenses estimateS deadline deadlineMissed priority boost cause exitCode submittedAt dispatchedAt startedAt endedAt }" as unknown as TypedDocumentNode<JobRowsSubscription, JobRowsSubscriptionVariables>;
