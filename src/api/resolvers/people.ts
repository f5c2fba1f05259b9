/** Users, their keys, the policy they set, and what they did. */

import type { JobFilter } from '../../store/job-filter.js';
import type {
  ApiKeyResolvers,
  AuditEntryResolvers,
  PolicyDocumentErrorResolvers,
  PolicyResolvers,
  SessionResolvers,
  SubmissionQuotaResolvers,
  UserResolvers,
  VersionConflictErrorResolvers,
  WebhookResolvers,
} from '../generated/resolvers-types.js';
import type { JobEventKind } from '../generated/types.js';
import { globalId } from '../ids.js';
import { maySeeUser } from '../services/access.js';
import { conditionsOf, shownFilter } from '../services/job-filter.js';
import { targetName, targetSiteId } from './audit-target.js';

export const User: UserResolvers = {
  id: (user) => globalId('user', user.id),
  submissionQuota: ({ id, submissionLimit, submissionPeriodS }) =>
    submissionLimit === null || submissionPeriodS === null
      ? null
      : { userId: id, limit: submissionLimit, periodS: submissionPeriodS },
  keys: ({ id }, { first, after }, { services, viewer, loaders }) =>
    loaders.once(`keys ${id} ${first} ${after}`, () => services.people.keysOf(viewer, id, { first, after })),
  passwordSetAt: async (user, _, { services, viewer, loaders }) =>
    services.people.mayManage(viewer, user.id)
      ? ((await loaders.signIn(user.id))?.passwordSetAt ?? null)
      : null,
  invitedUntil: async (user, _, { services, viewer, loaders }) =>
    services.people.mayManage(viewer, user.id)
      ? ((await loaders.signIn(user.id))?.invitedUntil ?? null)
      : null,
  sessions: async (user, _, { services, viewer, loaders }) =>
    services.people.mayManage(viewer, user.id) ? loaders.sessionsOfUser(user.id) : null,
  mail: (user, _, { services, viewer }) => services.people.mailOf(viewer, user.id),
  limits: (user, _, { services, viewer }) => services.people.limitsOf(viewer, user.id),
};

export const SubmissionQuota: SubmissionQuotaResolvers = {
  used: (quota, _, { loaders }) => loaders.quotaUsed(quota),
};

export const ApiKey: ApiKeyResolvers = {
  id: (key) => globalId('apikey', key.id),
  site: (key, _, { loaders }) => (key.siteId === null ? null : loaders.site(key.siteId)),
};

export const Session: SessionResolvers = {
  id: (session) => globalId('session', session.id),
  current: (session, _, { viewer }) => session.id === viewer.sessionId,
};

export const Webhook: WebhookResolvers = {
  id: (webhook) => globalId('webhook', webhook.id),
  user: ({ userId }, _, { loaders }) => loaders.user(userId),
  conditions: ({ filter }) => conditionsOf(filter as JobFilter),
  filter: ({ filter }) => shownFilter(filter as JobFilter),
  kinds: ({ kinds }) => kinds as JobEventKind[],
  lagS: ({ behindSince }, _, { services }) => services.webhooks.lagS(behindSince),
};

export const Policy: PolicyResolvers = {
  id: (policy) => globalId('policy', policy.version),
  author: ({ authorId }, _, { loaders, viewer }) =>
    authorId === null || !maySeeUser(viewer, authorId) ? null : loaders.user(authorId),
};

export const VersionConflictError: VersionConflictErrorResolvers = {
  field: () => 'expectedVersion',
  currentVersion: async (_, _arguments, { services, viewer }) =>
    (await services.policy.policy(viewer, null))?.version ?? 0,
};

export const PolicyDocumentError: PolicyDocumentErrorResolvers = {
  faults: ({ faults }) => [...faults],
};

export const AuditEntry: AuditEntryResolvers = {
  user: ({ userId }, _, { loaders }) => (userId === null ? null : loaders.user(userId)),
  targetName: (entry, _, { loaders }) => targetName(entry, loaders),
  async targetSite(entry, _, { loaders }) {
    const id = await targetSiteId(entry, loaders);
    return id === null ? null : loaders.findSite(id);
  },
};
