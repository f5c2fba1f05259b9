// Generated from web/src/pages/overview/overview.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type SiteState =
  | 'UP'
  | 'DRAINING'
  | 'DOWN';

export type MachineState =
  | 'UP'
  | 'DRAINING'
  | 'DOWN';

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

export type OverviewQueryVariables = Exact<{
  since: string;
}>;


export type OverviewQuery = { queued: number, dispatched: number, held: number, running: number, failed: number, oldestAtRoot: { nodes: Array<{ id: string, submittedAt: string }> }, oldestAtSites: { nodes: Array<{ id: string, submittedAt: string }> } };

export type OverviewSitesQueryVariables = Exact<{ [key: string]: never; }>;


export type OverviewSitesQuery = { sites: { nodes: Array<{ id: string, name: string, state: SiteState, latitude: number | null, longitude: number | null, agentSeenAt: string | null, queuedJobs: number, metaQueuedJobs: number, runningJobs: number, cpus: number, cpusUsed: number, machines: Array<{ id: string, name: string, state: MachineState, silent: boolean, problem: string | null }>, licenses: Array<{ id: string, kind: string, copies: number, inUse: number }> }> } };

export type EndedQueryVariables = Exact<{
  since: string;
  first: number;
}>;


export type EndedQuery = { jobs: { nodes: Array<{ id: string, state: JobState, cause: EndCause | null, endedAt: string | null }>, pageInfo: { hasNextPage: boolean } } };

export type ChangesQueryVariables = Exact<{ [key: string]: never; }>;


export type ChangesQuery = { policyHistory: { nodes: Array<{ id: string, version: number, reason: string, createdAt: string, author: { id: string, name: string } | null }> } };

export type ChangesAuditQueryVariables = Exact<{ [key: string]: never; }>;


export type ChangesAuditQuery = { audit: { edges: Array<{ cursor: string }>, nodes: Array<{ at: string, action: string, target: string, targetName: string | null, reason: string | null, targetSite: { id: string, name: string } | null, user: { id: string, name: string } | null }> } };


export const OverviewDocument =
  "query Overview($since: DateTime!) { queued: jobCount(filter: {states: [QUEUED]}) dispatched: jobCount(filter: {states: [DISPATCHED]}) held: jobCount(filter: {states: [HELD]}) running: jobCount(filter: {states: [ASSIGNED, RUNNING, CANCELLING]}) failed: jobCount(filter: {states: [FAILED], endedAfter: $since}) oldestAtRoot: jobs(filter: {states: [QUEUED]}, first: 1) { nodes { id submittedAt } } oldestAtSites: jobs(filter: {states: [DISPATCHED]}, first: 1) { nodes { id submittedAt } } }" as unknown as TypedDocumentNode<OverviewQuery, OverviewQueryVariables>;

export const OverviewSitesDocument =
  "query OverviewSites { sites(first: 100) { nodes { id name state latitude longitude agentSeenAt queuedJobs metaQueuedJobs runningJobs cpus cpusUsed machines { id name state silent problem } licenses { id kind copies inUse } } } }" as unknown as TypedDocumentNode<OverviewSitesQuery, OverviewSitesQueryVariables>;

export const EndedDocument =
  "query Ended($since: DateTime!, $first: Int!) { jobs( filter: {endedAfter: $since} orderBy: {field: ENDED_AT, direction: DESC} first: $first ) { nodes { id state cause endedAt } pageInfo { hasNextPage } } }" as unknown as TypedDocumentNode<EndedQuery, EndedQueryVariables>;

export const ChangesDocument =
  "query Changes { policyHistory(first: 10) { nodes { id version reason createdAt author { id name } } } }" as unknown as TypedDocumentNode<ChangesQuery, ChangesQueryVariables>;

export const ChangesAuditDocument =
  "query ChangesAudit { audit(first: 30) { edges { cursor } nodes { at action target targetName targetSite { id name } reason user { id name } } } }" as unknown as TypedDocumentNode<ChangesAuditQuery, ChangesAuditQueryVariables>;
