// Generated from web/src/parts/pulse.graphql by scripts/codegen-documents.mjs. Do not edit.
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

export type PulseSubscriptionVariables = Exact<{
  filter?: JobFilter | null | undefined;
  after?: string | null | undefined;
}>;


export type PulseSubscription = { jobUpdated: { cursor: string, resyncRequired: boolean, event: { id: string, at: string, kind: EventKind, fromState: JobState | null, toState: JobState | null, objectId: string, cause: EndCause | null } | null } };


export const PulseDocument =
  "subscription Pulse($filter: JobFilter, $after: String) { jobUpdated(filter: $filter, after: $after) { cursor resyncRequired event { id at kind fromState toState objectId cause } } }" as unknown as TypedDocumentNode<PulseSubscription, PulseSubscriptionVariables>;
