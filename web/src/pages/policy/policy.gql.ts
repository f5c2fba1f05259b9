// Generated from web/src/pages/policy/policy.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type UpdatePolicyInput = {
  expectedVersion: number;
  reason: string;
  document: unknown;
};

export type PolicyHistoryQueryVariables = Exact<{
  first: number;
  after?: string | null | undefined;
}>;


export type PolicyHistoryQuery = { policyHistory: { nodes: Array<{ id: string, version: number, document: unknown, reason: string, revertsTo: number | null, createdAt: string, author: { id: string, name: string } | null }>, pageInfo: { hasNextPage: boolean, endCursor: string | null } } };

export type UpdatePolicyMutationVariables = Exact<{
  input: UpdatePolicyInput;
}>;


export type UpdatePolicyMutation = { updatePolicy: { id: string, version: number, document: unknown, reason: string, revertsTo: number | null, createdAt: string, author: { id: string, name: string } | null } };

export type RevertPolicyMutationVariables = Exact<{
  version: number;
  expectedVersion: number;
  reason: string;
}>;


export type RevertPolicyMutation = { revertPolicy: { id: string, version: number, document: unknown, reason: string, revertsTo: number | null, createdAt: string, author: { id: string, name: string } | null } };

export type PolicyPartsFragment = { id: string, version: number, document: unknown, reason: string, revertsTo: number | null, createdAt: string, author: { id: string, name: string } | null };


export const PolicyHistoryDocument =
  "query PolicyHistory($first: Int!, $after: String) { policyHistory(first: $first, after: $after) { nodes { ...PolicyParts } pageInfo { hasNextPage endCursor } } } fragment PolicyParts on Policy { id version document reason revertsTo createdAt author { id name } }" as unknown as TypedDocumentNode<PolicyHistoryQuery, PolicyHistoryQueryVariables>;

export const UpdatePolicyDocument =
  "mutation UpdatePolicy($input: UpdatePolicyInput!) { updatePolicy(input: $input) { ...PolicyParts } } fragment PolicyParts on Policy { id version document reason revertsTo createdAt author { id name } }" as unknown as TypedDocumentNode<UpdatePolicyMutation, UpdatePolicyMutationVariables>;

export const RevertPolicyDocument =
  "mutation RevertPolicy($version: Int!, $expectedVersion: Int!, $reason: String!) { revertPolicy( version: $version expectedVersion: $expectedVersion reason: $reason ) { ...PolicyParts } } fragment PolicyParts on Policy { id version document reason revertsTo createdAt author { id name } }" as unknown as TypedDocumentNode<RevertPolicyMutation, RevertPolicyMutationVariables>;
