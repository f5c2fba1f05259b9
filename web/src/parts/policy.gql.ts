// Generated from web/src/parts/policy.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type PolicyPartsFragment = { id: string, version: number, document: unknown, reason: string, revertsTo: number | null, createdAt: string, author: { id: string, name: string } | null };

export type PolicyInForceQueryVariables = Exact<{ [key: string]: never; }>;


export type PolicyInForceQuery = { policy: { id: string, version: number, document: unknown, reason: string, revertsTo: number | null, createdAt: string, author: { id: string, name: string } | null } | null };


export const PolicyInForceDocument =
  "query PolicyInForce { policy { ...PolicyParts } } fragment PolicyParts on Policy { id version document reason revertsTo createdAt author { id name } }" as unknown as TypedDocumentNode<PolicyInForceQuery, PolicyInForceQueryVariables>;
