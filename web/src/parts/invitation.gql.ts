// Generated from web/src/parts/invitation.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type InviteUserInput = {
  user: string;
  expiresAt?: string | null | undefined;
};

export type InviteUserMutationVariables = Exact<{
  input: InviteUserInput;
}>;


export type InviteUserMutation = { inviteUser: { invitation: string, expiresAt: string, user: { id: string, name: string } } };


export const InviteUserDocument =
  "mutation InviteUser($input: InviteUserInput!) { inviteUser(input: $input) { invitation expiresAt user { id name } } }" as unknown as TypedDocumentNode<InviteUserMutation, InviteUserMutationVariables>;
