// Generated from web/src/pages/usage/usage.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type UsageBy =
  | 'USER'
  | 'SITE'
  | 'APPLICATION';

export type UsageQueryVariables = Exact<{
  by: UsageBy;
  from: string;
  to: string;
}>;


export type UsageQuery = { usage: Array<{ application: string | null, runs: number, cpuS: number, endedJobs: number, failedJobs: number, meanWaitS: number | null, user: { id: string, name: string } | null, site: { id: string, name: string } | null }> };

export type LoadHistoryQueryVariables = Exact<{
  site?: string | null | undefined;
  from: string;
  to: string;
  points: number;
}>;


export type LoadHistoryQuery = { loadHistory: Array<{ at: string, cpus: number, running: number, waiting: number | null }> };

export type UsageSitesQueryVariables = Exact<{ [key: string]: never; }>;


export type UsageSitesQuery = { sites: { nodes: Array<{ id: string, name: string }> } };


export const UsageDocument =
  "query Usage($by: UsageBy!, $from: DateTime!, $to: DateTime!) { usage(by: $by, from: $from, to: $to, first: 500) { user { id name } site { id name } application runs cpuS endedJobs failedJobs meanWaitS } }" as unknown as TypedDocumentNode<UsageQuery, UsageQueryVariables>;

export const LoadHistoryDocument =
  "query LoadHistory($site: ID, $from: DateTime!, $to: DateTime!, $points: Int!) { loadHistory(site: $site, from: $from, to: $to, points: $points) { at cpus running waiting } }" as unknown as TypedDocumentNode<LoadHistoryQuery, LoadHistoryQueryVariables>;

export const UsageSitesDocument =
  "query UsageSites { sites(first: 1000) { nodes { id name } } }" as unknown as TypedDocumentNode<UsageSitesQuery, UsageSitesQueryVariables>;
