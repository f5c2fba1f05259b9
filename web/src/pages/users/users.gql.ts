// Generated from web/src/pages/users/users.graphql by scripts/codegen-documents.mjs. Do not edit.
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

export type JobEventKind =
  | 'QUEUED'
  | 'BLOCKED'
  | 'HELD'
  | 'DISPATCHED'
  | 'ASSIGNED'
  | 'RUNNING'
  | 'CANCELLING'
  | 'COMPLETED'
  | 'FAILED'
  | 'CANCELLED'
  | 'CHANGED';

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

export type RegisterUserInput = {
  name: string;
  class?: UserClass;
  role?: UserRole;
  quotaShare?: number;
  subject?: string | null | undefined;
};

export type UpdateUserInput = {
  user: string;
  class?: UserClass | null | undefined;
  role?: UserRole | null | undefined;
  active?: boolean | null | undefined;
};

export type SetQuotaInput = {
  user: string;
  quotaShare?: number | null | undefined;
  submissionLimit?: number | null | undefined;
  submissionPeriodS?: number | null | undefined;
  reason: string;
};

export type CreateApiKeyInput = {
  user?: string | null | undefined;
  name: string;
  site?: string | null | undefined;
  expiresAt?: string | null | undefined;
  sessionExpiresAt?: string | null | undefined;
  actsForUsers?: boolean;
};

export type ChangePasswordInput = {
  current: string;
  password: string;
};

export type EndSessionsInput = {
  user?: string | null | undefined;
  sessions?: Array<string> | null | undefined;
};

export type CreateWebhookInput = {
  name: string;
  url: string;
  filter?: JobFilter | null | undefined;
  kinds?: Array<JobEventKind>;
};

export type UpdateWebhookInput = {
  webhook: string;
  name?: string | null | undefined;
  url?: string | null | undefined;
  filter?: JobFilter | null | undefined;
  kinds?: Array<JobEventKind> | null | undefined;
  enabled?: boolean | null | undefined;
};

export type UsersQueryVariables = Exact<{
  first: number;
  after?: string | null | undefined;
}>;


export type UsersQuery = { users: { nodes: Array<{ id: string, name: string, class: UserClass, role: UserRole, quotaShare: number, active: boolean, createdAt: string, submissionQuota: { limit: number, periodS: number, used: number } | null }>, pageInfo: { hasNextPage: boolean, endCursor: string | null } } };

export type UserPartsFragment = { id: string, name: string, class: UserClass, role: UserRole, quotaShare: number, active: boolean, createdAt: string, submissionQuota: { limit: number, periodS: number, used: number } | null };

export type StandingsQueryVariables = Exact<{ [key: string]: never; }>;


export type StandingsQuery = { userStandings: Array<{ quotaShare: number, queuedJobs: number, user: { id: string, name: string }, groups: Array<{ processors: number, jobs: number, threshold: number, priority: number, queue: number }> }>, policy: { id: string, version: number, document: unknown } | null };

export type UserPageQueryVariables = Exact<{
  id: string;
  keys: boolean;
}>;


export type UserPageQuery = { node:
    | { passwordSetAt?: string | null, invitedUntil?: string | null, id: string, name: string, class: UserClass, role: UserRole, quotaShare: number, active: boolean, createdAt: string, apiKeys?: Array<{ id: string, name: string, prefix: string, createdAt: string, expiresAt: string | null, revokedAt: string | null, lastUsedAt: string | null, site: { id: string, name: string } | null }>, sessions?: Array<{ id: string, current: boolean, address: string, agent: string, createdAt: string, lastUsedAt: string, expiresAt: string }> | null, submissionQuota: { limit: number, periodS: number, used: number } | null }
    | Record<PropertyKey, never>
   | null };

export type KeyPartsFragment = { id: string, name: string, prefix: string, createdAt: string, expiresAt: string | null, revokedAt: string | null, lastUsedAt: string | null, site: { id: string, name: string } | null };

export type UserCountsQueryVariables = Exact<{
  user: string;
}>;


export type UserCountsQuery = { waiting: number, running: number, completed: number, failed: number };

export type KeySitesQueryVariables = Exact<{ [key: string]: never; }>;


export type KeySitesQuery = { sites: { nodes: Array<{ id: string, name: string }> } };

export type RegisterUserMutationVariables = Exact<{
  input: RegisterUserInput;
}>;


export type RegisterUserMutation = { registerUser: { id: string, name: string, class: UserClass, role: UserRole, quotaShare: number, active: boolean, createdAt: string, submissionQuota: { limit: number, periodS: number, used: number } | null } };

export type UpdateUserMutationVariables = Exact<{
  input: UpdateUserInput;
}>;


export type UpdateUserMutation = { updateUser: { id: string, name: string, class: UserClass, role: UserRole, quotaShare: number, active: boolean, createdAt: string, submissionQuota: { limit: number, periodS: number, used: number } | null } };

export type SetQuotaMutationVariables = Exact<{
  input: SetQuotaInput;
}>;


export type SetQuotaMutation = { setQuota: { id: string, name: string, class: UserClass, role: UserRole, quotaShare: number, active: boolean, createdAt: string, submissionQuota: { limit: number, periodS: number, used: number } | null } };

export type CreateKeyMutationVariables = Exact<{
  input: CreateApiKeyInput;
}>;


export type CreateKeyMutation = { createApiKey: { secret: string, apiKey: { id: string, name: string, prefix: string, createdAt: string, expiresAt: string | null, revokedAt: string | null, lastUsedAt: string | null, site: { id: string, name: string } | null } } };

export type RevokeKeyMutationVariables = Exact<{
  key: string;
}>;


export type RevokeKeyMutation = { revokeApiKey: { id: string, name: string, prefix: string, createdAt: string, expiresAt: string | null, revokedAt: string | null, lastUsedAt: string | null, site: { id: string, name: string } | null } };

export type WebhookPartsFragment = { id: string, name: string, url: string, kinds: Array<JobEventKind>, enabled: boolean, disabledReason: string | null, deliveredAt: string | null, failures: number, failedReason: string | null, nextAttemptAt: string | null, lagS: number };

export type WebhooksQueryVariables = Exact<{
  user: string;
}>;


export type WebhooksQuery = { webhooks: Array<{ id: string, name: string, url: string, kinds: Array<JobEventKind>, enabled: boolean, disabledReason: string | null, deliveredAt: string | null, failures: number, failedReason: string | null, nextAttemptAt: string | null, lagS: number }> };

export type CreateWebhookMutationVariables = Exact<{
  input: CreateWebhookInput;
}>;


export type CreateWebhookMutation = { createWebhook: { secret: string, webhook: { id: string, name: string, url: string, kinds: Array<JobEventKind>, enabled: boolean, disabledReason: string | null, deliveredAt: string | null, failures: number, failedReason: string | null, nextAttemptAt: string | null, lagS: number } } };

export type UpdateWebhookMutationVariables = Exact<{
  input: UpdateWebhookInput;
}>;


export type UpdateWebhookMutation = { updateWebhook: { id: string, name: string, url: string, kinds: Array<JobEventKind>, enabled: boolean, disabledReason: string | null, deliveredAt: string | null, failures: number, failedReason: string | null, nextAttemptAt: string | null, lagS: number } };

export type DeleteWebhookMutationVariables = Exact<{
  webhook: string;
}>;


export type DeleteWebhookMutation = { deleteWebhook: { id: string } };

export type TestWebhookMutationVariables = Exact<{
  webhook: string;
}>;


export type TestWebhookMutation = { testWebhook: { delivered: boolean, status: number | null, reason: string | null, tookMs: number } };

export type SessionPartsFragment = { id: string, current: boolean, address: string, agent: string, createdAt: string, lastUsedAt: string, expiresAt: string };

export type ChangePasswordMutationVariables = Exact<{
  input: ChangePasswordInput;
}>;


export type ChangePasswordMutation = { changePassword: { user: { id: string } } };

export type EndSessionsMutationVariables = Exact<{
  input: EndSessionsInput;
}>;


export type EndSessionsMutation = { endSessions: { ended: Array<string> } };


export const UsersDocument =
  "query Users($first: Int!, $after: String) { users(first: $first, after: $after) { nodes { ...UserParts } pageInfo { hasNextPage endCursor } } } fragment UserParts on User { id name class role quotaShare active createdAt submissionQuota { limit periodS used } }" as unknown as TypedDocumentNode<UsersQuery, UsersQueryVariables>;

export const StandingsDocument =
  "query Standings { userStandings(first: 200) { quotaShare queuedJobs user { id name } groups(first: 50) { processors jobs threshold priority queue } } policy { id version document } }" as unknown as TypedDocumentNode<StandingsQuery, StandingsQueryVariables>;

export const UserPageDocument =
  "query UserPage($id: ID!, $keys: Boolean!) { node(id: $id) { ... on User { ...UserParts apiKeys @include(if: $keys) { ...KeyParts } passwordSetAt @include(if: $keys) invitedUntil @include(if: $keys) sessions @include(if: $keys) { ...SessionParts } } } } fragment UserParts on User { id name class role quotaShare active createdAt submissionQuota { limit periodS used } } fragment KeyParts on ApiKey { id name prefix createdAt expiresAt revokedAt lastUsedAt site { id name } } fragment SessionParts on Session { id current address agent createdAt lastUsedAt expiresAt }" as unknown as TypedDocumentNode<UserPageQuery, UserPageQueryVariables>;

export const UserCountsDocument =
  "query UserCounts($user: ID!) { waiting: jobCount(filter: {user: $user, states: [QUEUED, DISPATCHED, HELD]}) running: jobCount( filter: {user: $user, states: [ASSIGNED, RUNNING, CANCELLING]} ) completed: jobCount(filter: {user: $user, states: [COMPLETED]}) failed: jobCount(filter: {user: $user, states: [FAILED]}) }" as unknown as TypedDocumentNode<UserCountsQuery, UserCountsQueryVariables>;

export const KeySitesDocument =
  "query KeySites { sites(first: 200) { nodes { id name } } }" as unknown as TypedDocumentNode<KeySitesQuery, KeySitesQueryVariables>;

export const RegisterUserDocument =
  "mutation RegisterUser($input: RegisterUserInput!) { registerUser(input: $input) { ...UserParts } } fragment UserParts on User { id name class role quotaShare active createdAt submissionQuota { limit periodS used } }" as unknown as TypedDocumentNode<RegisterUserMutation, RegisterUserMutationVariables>;

export const UpdateUserDocument =
  "mutation UpdateUser($input: UpdateUserInput!) { updateUser(input: $input) { ...UserParts } } fragment UserParts on User { id name class role quotaShare active createdAt submissionQuota { limit periodS used } }" as unknown as TypedDocumentNode<UpdateUserMutation, UpdateUserMutationVariables>;

export const SetQuotaDocument =
  "mutation SetQuota($input: SetQuotaInput!) { setQuota(input: $input) { ...UserParts } } fragment UserParts on User { id name class role quotaShare active createdAt submissionQuota { limit periodS used } }" as unknown as TypedDocumentNode<SetQuotaMutation, SetQuotaMutationVariables>;

export const CreateKeyDocument =
  "mutation CreateKey($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret apiKey { ...KeyParts } } } fragment KeyParts on ApiKey { id name prefix createdAt expiresAt revokedAt lastUsedAt site { id name } }" as unknown as TypedDocumentNode<CreateKeyMutation, CreateKeyMutationVariables>;

export const RevokeKeyDocument =
  "mutation RevokeKey($key: ID!) { revokeApiKey(apiKey: $key) { ...KeyParts } } fragment KeyParts on ApiKey { id name prefix createdAt expiresAt revokedAt lastUsedAt site { id name } }" as unknown as TypedDocumentNode<RevokeKeyMutation, RevokeKeyMutationVariables>;

export const WebhooksDocument =
  "query Webhooks($user: ID!) { webhooks(user: $user) { ...WebhookParts } } fragment WebhookParts on Webhook { id name url kinds enabled disabledReason deliveredAt failures failedReason nextAttemptAt lagS }" as unknown as TypedDocumentNode<WebhooksQuery, WebhooksQueryVariables>;

export const CreateWebhookDocument =
  "mutation CreateWebhook($input: CreateWebhookInput!) { createWebhook(input: $input) { secret webhook { ...WebhookParts } } } fragment WebhookParts on Webhook { id name url kinds enabled disabledReason deliveredAt failures failedReason nextAttemptAt lagS }" as unknown as TypedDocumentNode<CreateWebhookMutation, CreateWebhookMutationVariables>;

export const UpdateWebhookDocument =
  "mutation UpdateWebhook($input: UpdateWebhookInput!) { updateWebhook(input: $input) { ...WebhookParts } } fragment WebhookParts on Webhook { id name url kinds enabled disabledReason deliveredAt failures failedReason nextAttemptAt lagS }" as unknown as TypedDocumentNode<UpdateWebhookMutation, UpdateWebhookMutationVariables>;

export const DeleteWebhookDocument =
  "mutation DeleteWebhook($webhook: ID!) { deleteWebhook(webhook: $webhook) { id } }" as unknown as TypedDocumentNode<DeleteWebhookMutation, DeleteWebhookMutationVariables>;

export const TestWebhookDocument =
  "mutation TestWebhook($webhook: ID!) { testWebhook(webhook: $webhook) { delivered status reason tookMs } }" as unknown as TypedDocumentNode<TestWebhookMutation, TestWebhookMutationVariables>;

export const ChangePasswordDocument =
  "mutation ChangePassword($input: ChangePasswordInput!) { changePassword(input: $input) { user { id } } }" as unknown as TypedDocumentNode<ChangePasswordMutation, ChangePasswordMutationVariables>;

export const EndSessionsDocument =
  "mutation EndSessions($input: EndSessionsInput!) { endSessions(input: $input) { ended } }" as unknown as TypedDocumentNode<EndSessionsMutation, EndSessionsMutationVariables>;
