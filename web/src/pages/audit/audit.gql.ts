// Generated from web/src/pages/audit/audit.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type AuditLogQueryVariables = Exact<{
  first: number;
  after?: string | null | undefined;
}>;


export type AuditLogQuery = { audit: { edges: Array<{ cursor: string, node: { at: string, action: string, target: string, targetName: string | null, reason: string | null, before: unknown, after: unknown, targetSite: { id: string, name: string } | null, user: { id: string, name: string } | null } }>, pageInfo: { hasNextPage: boolean, endCursor: string | null } } };


export const AuditLogDocument =
  "query AuditLog($first: Int!, $after: String) { audit(first: $first, after: $after) { edges { cursor node { at action target targetName targetSite { id name } reason before after user { id name } } } pageInfo { hasNextPage endCursor } } }" as unknown as TypedDocumentNode<AuditLogQuery, AuditLogQueryVariables>;
