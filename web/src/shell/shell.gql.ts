// Generated from web/src/shell/shell.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type UserClass =
  | 'GOLD'
  | 'SILVER'
  | 'REGULAR';

export type UserRole =
  | 'ADMIN'
  | 'OPERATOR'
  | 'USER'
  | 'AGENT'
  | 'PEER';

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

export type ViewerQueryVariables = Exact<{ [key: string]: never; }>;


export type ViewerQuery = { viewer: { id: string, name: string, role: UserRole, class: UserClass } };

export type GridNewsSubscriptionVariables = Exact<{
  after?: string | null | undefined;
}>;


export type GridNewsSubscription = { siteUpdated: { cursor: string, resyncRequired: boolean, event: { id: string, kind: EventKind } | null } };

export type QuickOpenQueryVariables = Exact<{ [key: string]: never; }>;


export type QuickOpenQuery = { sites: { nodes: Array<{ id: string, name: string }> } };

export type RotateKeyMutationVariables = Exact<{
  id: string;
  name: string;
}>;


export type RotateKeyMutation = { rotateApiKey: { secret: string, apiKey: { id: string } } };

export type RevokeSessionKeyMutationVariables = Exact<{
  id: string;
}>;


export type RevokeSessionKeyMutation = { revokeApiKey: { id: string } };

export type EndSessionMutationVariables = Exact<{
  id: string;
}>;


export type EndSessionMutation = { endSessions: { ended: Array<string> } };


export const ViewerDocument =
  "query Viewer { viewer { id name role class } }" as unknown as TypedDocumentNode<ViewerQuery, ViewerQueryVariables>;

export const GridNewsDocument =
  "subscription GridNews($after: String) { siteUpdated(after: $after) { cursor resyncRequired event { id kind } } }" as unknown as TypedDocumentNode<GridNewsSubscription, GridNewsSubscriptionVariables>;

export const QuickOpenDocument =
  "query QuickOpen { sites(first: 200) { nodes { id name } } }" as unknown as TypedDocumentNode<QuickOpenQuery, QuickOpenQueryVariables>;

export const RotateKeyDocument =
  "mutation RotateKey($id: ID!, $name: String!) { rotateApiKey(apiKey: $id, name: $name) { secret apiKey { id } } }" as unknown as TypedDocumentNode<RotateKeyMutation, RotateKeyMutationVariables>;

export const RevokeSessionKeyDocument =
  "mutation RevokeSessionKey($id: ID!) { revokeApiKey(apiKey: $id) { id } }" as unknown as TypedDocumentNode<RevokeSessionKeyMutation, RevokeSessionKeyMutationVariables>;

export const EndSessionDocument =
  "mutation EndSession($id: ID!) { endSessions(input: {sessions: [$id]}) { ended } }" as unknown as TypedDocumentNode<EndSessionMutation, EndSessionMutationVariables>;
