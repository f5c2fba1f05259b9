// Generated from web/src/pages/jobs/jobs.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type JobsFacetsQueryVariables = Exact<{ [key: string]: never; }>;


export type JobsFacetsQuery = { sites: { nodes: Array<{ id: string, name: string }> } };

export type JobsUsersQueryVariables = Exact<{ [key: string]: never; }>;


export type JobsUsersQuery = { users: { nodes: Array<{ id: string, name: string }> } };


export const JobsFacetsDocument =
  "query JobsFacets { sites(first: 200) { nodes { id name } } }" as unknown as TypedDocumentNode<JobsFacetsQuery, JobsFacetsQueryVariables>;

export const JobsUsersDocument =
  "query JobsUsers { users(first: 500) { nodes { id name } } }" as unknown as TypedDocumentNode<JobsUsersQuery, JobsUsersQueryVariables>;
