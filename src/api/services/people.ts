/** Users, their keys, their quotas, and the audit log. Everybody sees themselves and their own keys. */
import { MAX } from '../../platform/limits.js';
import { DEFAULT_MAIL_KINDS } from '../../store/job-fields.js';
import type { ApiKeyRow, AuditRow, UserRow } from '../../store/rows.js';
import type { Viewer } from '../auth.js';
import { clearable, given, notNull, patch, plainName, reason, text, within } from '../check.js';
import {
  type Connection,
  connection,
  decodeCursor,
  encodeCursor,
  type ForwardArguments,
  pageSize,
} from '../connections.js';
import { ApiError, badInput, notFound } from '../errors.js';
import type {
  CreateApiKeyInput,
  CreateUserInput,
  MailKind,
  MailSettings,
  RotateApiKeyInput,
  SetMailAddressInput,
  UpdateQuotaInput,
  UpdateUserInput,
} from '../generated/types.js';
import { localId } from '../ids.js';
import { guarded, noPortal } from './access.js';
import { actor, done, type ServiceParts, wakeAfter } from './parts.js';

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: it returns short functions that share its parts
export function createPeopleService(parts: ServiceParts) {
  const { directory, queries, limits, now } = parts;

  async function user(id: number, shown: string): Promise<UserRow> {
    const [found] = await queries.usersByIds([id]);
    if (!found) throw notFound('user', shown);
    return found;
  }

  /** A user of the identity provider. */
  function identityOf(subject: string | null): string | null {
    if (subject === null) return null;
    if (parts.oidcIssuer === null)
      throw badInput('subject', subject, 'none, because there is no identity provider');
    return `${parts.oidcIssuer} ${text('subject', subject, MAX.nameChars, 1)}`;
  }

  /** A key of the viewer's own; an ADMIN's: of anybody's. */
  async function keyOf(viewer: Viewer, id: string): Promise<ApiKeyRow> {
    const keyId = localId('apikey', id, 'apiKeyId');
    const [key] = await queries.apiKeysByIds([keyId]);
    if (!key || (key.userId !== viewer.userId && viewer.role !== 'ADMIN')) throw notFound('apikey', id);
    return key;
  }

  /** When a key is to expire, epoch seconds; null: not given. */
  function expiry(viewer: Viewer, field: string, given: Date | null | undefined): number | null {
    if (!given) return null;
    const at = given.getTime() / 1000;
    const latest = latestExpiry(viewer);
    if (at <= now()) throw badInput(field, given, 'a time in the future');
    if (latest === null || at <= latest) return at;
    const until = new Date(latest * 1000).toISOString();
    throw badInput(field, given, `up to ${until}, when the key of this request expires`);
  }

  return {
    ...guarded({
      viewer: (viewer: Viewer) => user(viewer.userId, 'viewer'),

      async users(_viewer: Viewer, { first, after }: ForwardArguments): Promise<Connection<UserRow>> {
        const size = pageSize('first', first, limits);
        const behind = after ? decodeCursor('after', after, 'user', ['text'])[0] : '';
        const rows = await queries.users(behind, size + 1);
        return connection(rows, size, (one) => encodeCursor('user', [one.name]), {
          continued: behind !== '',
        });
      },

      async audit(_viewer: Viewer, { first, after }: ForwardArguments): Promise<Connection<AuditRow>> {
        const size = pageSize('first', first, limits);
        const before = after ? decodeCursor('after', after, 'audit', ['bigNumber'])[0] : null;
        const rows = await queries.audits(before, size + 1);
        return connection(rows, size, (entry) => encodeCursor('audit', [entry.id]), {
          continued: before !== null,
        });
      },

      async createUser(viewer: Viewer, input: CreateUserInput, requestId: string): Promise<UserRow> {
        const made = {
          name: plainName('name', input.name),
          class: input.class,
          role: input.role,
          quotaShare: within('quotaShare', input.quotaShare, MAX.leastQuotaShare, MAX.quotaShare),
          identity: identityOf(input.subject ?? null),
        };
        return done(await directory.registerUser(made, actor(viewer, requestId)));
      },

      async updateUser(viewer: Viewer, input: UpdateUserInput, requestId: string): Promise<UserRow> {
        const userId = localId('user', input.userId, 'userId');
        const change = patch({
          class: notNull('class', input.class),
          role: notNull('role', input.role),
          active: notNull('active', input.active),
        });
        const changed = done(await directory.updateUser(userId, change, actor(viewer, requestId)));
        parts.keysChanged();
        await wakeAfter(parts, { of: 'USER' });
        return changed;
      },

      async setMail(viewer: Viewer, kinds: readonly MailKind[], requestId: string): Promise<UserRow> {
        const unique = [...new Set(kinds)];
        done(await directory.setMail(viewer.userId, unique, actor(viewer, requestId)));
        return user(viewer.userId, 'viewer');
      },

      async setMailAddress(
        viewer: Viewer,
        { userId: id, address }: SetMailAddressInput,
        requestId: string,
      ): Promise<UserRow> {
        const userId = localId('user', id, 'userId');
        const given = clearable('address', address, mailAddress) ?? null;
        done(await directory.setMailAddress(userId, given, actor(viewer, requestId)));
        return user(userId, id);
      },

      async updateQuota(viewer: Viewer, input: UpdateQuotaInput, requestId: string): Promise<UserRow> {
        const userId = localId('user', input.userId, 'userId');
        const quota = patch({
          quotaShare: given('quotaShare', input.quotaShare, within, MAX.leastQuotaShare, MAX.quotaShare),
          submission: submissionQuota(input),
        });
        const by = { ...actor(viewer, requestId), reason: reason(input.reason) };
        const changed = done(await directory.setQuota(userId, quota, by));
        await wakeAfter(parts, { of: 'USER' });
        return changed;
      },

      async createApiKey(viewer: Viewer, input: CreateApiKeyInput, requestId: string) {
        const userId = input.userId ? localId('user', input.userId, 'userId') : viewer.userId;
        if (userId !== viewer.userId && viewer.role !== 'ADMIN') {
          throw new ApiError('FORBIDDEN', 'createApiKey: only an ADMIN can create keys for other users');
        }
        const owner = await user(userId, input.userId ?? 'viewer');
        const siteId = input.siteId ? localId('site', input.siteId, 'siteId') : null;
        const ofSite = owner.role === 'AGENT' || owner.role === 'PEER';
        if (ofSite && siteId === null)
          throw badInput(
            'siteId',
            null,
            `a site, because the user is ${owner.role === 'PEER' ? 'a PEER' : 'an AGENT'}`,
          );
        if (!ofSite && siteId !== null)
          throw badInput('siteId', input.siteId, 'no site, because the user is neither an AGENT nor a PEER');
        noPortal(viewer, 'createApiKey', 'keys');
        const actsForUsers = input.actsForUsers;
        if (actsForUsers && (viewer.role !== 'ADMIN' || owner.role !== 'USER')) {
          throw new ApiError(
            'FORBIDDEN',
            'createApiKey: only an ADMIN can create keys that act for users, and only for a user with the role USER',
          );
        }
        const key = {
          ...{ userId, siteId, actsForUsers },
          name: text('name', input.name, MAX.nameChars, 1),
          expiresAt: expiry(viewer, 'expiresAt', input.expiresAt) ?? latestExpiry(viewer),
          sessionExpiresAt: expiry(viewer, 'sessionExpiresAt', input.sessionExpiresAt),
          madeBy: userId === viewer.userId ? viewer.keyId : null,
        };
        return done(await directory.createApiKey(key, actor(viewer, requestId), limits.userKeys));
      },

      async rotateApiKey(viewer: Viewer, { apiKeyId, name }: RotateApiKeyInput, requestId: string) {
        noPortal(viewer, 'rotateApiKey', 'keys');
        const { id: keyId, userId, actsForUsers } = await keyOf(viewer, apiKeyId);
        if (actsForUsers && viewer.role !== 'ADMIN' && viewer.keyId !== keyId)
          throw new ApiError(
            'FORBIDDEN',
            'rotateApiKey: only an ADMIN or the key itself can replace a key that acts for users',
          );
        const rotation = {
          id: keyId,
          name: text('name', name, MAX.nameChars, 1),
          latest: latestExpiry(viewer),
          madeBy: userId === viewer.userId ? viewer.keyId : null,
        };
        const made = done(await directory.rotateApiKey(rotation, now(), actor(viewer, requestId)));
        parts.keysChanged();
        return made;
      },

      async revokeApiKey(viewer: Viewer, id: string, requestId: string): Promise<ApiKeyRow> {
        const { id: keyId } = await keyOf(viewer, id);
        const revoked = done(await directory.revokeApiKey(keyId, now(), actor(viewer, requestId)));
        parts.keysChanged();
        return revoked;
      },
    }),

    /** Of the viewer, or of anybody for an ADMIN; null for others. */
    async mailOf(viewer: Viewer, userId: number): Promise<MailSettings | null> {
      if (userId !== viewer.userId && viewer.role !== 'ADMIN') return null;
      const {
        address = null,
        kinds = DEFAULT_MAIL_KINDS,
        off = [],
        problem = null,
      } = (await directory.mailSettings(userId)) ?? {};
      return { address, kinds: [...kinds] as MailKind[], unsubscribed: off as MailKind[], problem };
    },

    /** What the viewer has and may have; null for another user. */
    async limitsOf(viewer: Viewer, userId: number) {
      if (userId !== viewer.userId) return null;
      const [inProcess, used] = await Promise.all([
        parts.shares.uses(viewer),
        queries.sharesOf(userId, now()),
      ]);
      return [
        ...inProcess,
        { name: 'LIVE_JOBS' as const, used: used.jobs, allowed: limits.userJobs },
        { name: 'LIVE_JOB_BYTES' as const, used: used.bytes, allowed: limits.userJobBytes },
        { name: 'OUTPUT_BYTES' as const, used: used.outputBytes, allowed: limits.userOutputBytes },
        { name: 'FILE_BYTES' as const, used: used.fileBytes, allowed: limits.userFileBytes },
        { name: 'API_KEYS' as const, used: used.keys, allowed: limits.userKeys },
        { name: 'OPEN_SIMULATIONS' as const, used: used.simulations, allowed: MAX.openSimulations },
      ];
    },
    /** Whether the viewer may see how the user signs in. */
    mayManage: (viewer: Viewer, userId: number): boolean =>
      userId === viewer.userId || viewer.role === 'ADMIN',
    /** Throws FORBIDDEN unless the viewer may list this user's keys: their own, or anybody's to an ADMIN. */
    async keysOf(
      viewer: Viewer,
      userId: number,
      { first, after }: ForwardArguments,
    ): Promise<Connection<ApiKeyRow>> {
      if (userId !== viewer.userId && viewer.role !== 'ADMIN')
        throw new ApiError('FORBIDDEN', 'only an ADMIN can see or change the keys of other users');
      const size = pageSize('first', first, limits);
      const before = after ? decodeCursor('after', after, 'apikey', ['number'])[0] : null;
      const rows = await queries.apiKeysOfUser(userId, before, size + 1);
      return connection(rows, size, ({ id }) => encodeCursor('apikey', [id]), {
        continued: before !== null,
      });
    },
  };
}

/** Whatever a key makes expires no later than the key, epoch seconds; null: no limit. A token's holder may make keys that stay. */
const latestExpiry = ({ keyId, expiresAtMs }: Viewer): number | null =>
  keyId === null || expiresAtMs === null ? null : expiresAtMs / 1000;

/** One that cannot be two, nor anything else in a header. */
function mailAddress(field: string, address: string): string {
  if (!/^[^\s@<>()[\]\\,;:"\p{C}]{1,64}@[A-Za-z0-9.-]{1,253}$/u.test(address))
    throw badInput(field, address, 'an address such as ann@example.org');
  return address;
}

/** Absent: as it is; null: no limit. */
function submissionQuota(input: UpdateQuotaInput): { limit: number; periodS: number } | null | undefined {
  const { submissionLimit: limit, submissionPeriodS: periodS } = input;
  if (limit === undefined && (periodS ?? null) === null) return undefined;
  if (limit === null) return null;
  if (limit === undefined)
    throw badInput('submissionLimit', limit, 'a number of jobs, because `submissionPeriodS` is given');
  if (periodS === null || periodS === undefined)
    throw badInput('submissionPeriodS', periodS, 'a number of seconds, because `submissionLimit` is given');
  return {
    limit: within('submissionLimit', limit, 0, MAX.integer),
    periodS: within('submissionPeriodS', periodS, 1, MAX.quotaPeriodS),
  };
}
