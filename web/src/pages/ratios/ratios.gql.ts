// Generated from web/src/pages/ratios/ratios.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type JobRatioSource =
  | 'APPLICATION'
  | 'USER'
  | 'EVERYBODY'
  | 'DECLARED'
  | 'UNKNOWN';

export type RecentApplicationsQueryVariables = Exact<{ [key: string]: never; }>;


export type RecentApplicationsQuery = { jobs: { nodes: Array<{ id: string, application: string }> } };

export type RatioQueryVariables = Exact<{
  application: string;
}>;


export type RatioQuery = { jobRatio: { application: string, computation: number, dataIntensive: number, source: JobRatioSource, runs: number, cursor: string, averages: { turnaroundS: number, executionS: number, ioS: number } | null, history: { nodes: Array<{ cursor: string, at: string, turnaroundS: number, ioS: number | null, runs: number, computation: number | null, dataIntensive: number | null, job: { id: string } | null, site: { id: string, name: string } }>, pageInfo: { hasPreviousPage: boolean } } } };

export type PointFragment = { cursor: string, at: string, turnaroundS: number, ioS: number | null, runs: number, computation: number | null, dataIntensive: number | null, job: { id: string } | null, site: { id: string, name: string } };

export type RatioNewsSubscriptionVariables = Exact<{
  application?: string | null | undefined;
  after?: string | null | undefined;
}>;


export type RatioNewsSubscription = { jobRatioUpdated: { cursor: string, resyncRequired: boolean, point: { cursor: string, at: string, turnaroundS: number, ioS: number | null, runs: number, computation: number | null, dataIntensive: number | null, job: { id: string } | null, site: { id: string, name: string } } | null } };


export const RecentApplicationsDocument =
  "query RecentApplications { jobs( filter: {states: [COMPLETED]} orderBy: {field: ENDED_AT, direction: DESC} first: 500 ) { nodes { id application } } }" as unknown as TypedDocumentNode<RecentApplicationsQuery, RecentApplicationsQueryVariables>;

export const RatioDocument =
  "query Ratio($application: String!) { jobRatio(application: $application) { application computation dataIntensive source runs cursor averages { turnaroundS executionS ioS } history(last: 1000) { nodes { ...Point } pageInfo { hasPreviousPage } } } } fragment Point on JobRatioPoint { cursor at turnaroundS ioS runs computation dataIntensive job { id } site { id name } }" as unknown as TypedDocumentNode<RatioQuery, RatioQueryVariables>;

export const RatioNewsDocument =
  "subscription RatioNews($application: String, $after: String) { jobRatioUpdated(application: $application, after: $after) { cursor resyncRequired point { ...Point } } } fragment Point on JobRatioPoint { cursor at turnaroundS ioS runs computation dataIntensive job { id } site { id name } }" as unknown as TypedDocumentNode<RatioNewsSubscription, RatioNewsSubscriptionVariables>;
