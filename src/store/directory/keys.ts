/** API keys: random, stored as hashes. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Prisma } from '../generated/client.js';
import type { Database } from '../pool.js';
import { instant, plain } from '../read-rows.js';
import type { ApiKeyRow, UserRole } from '../rows.js';
import { sql } from '../sql.js';
import { type Actor, type Changes, conflict, found, Refusal, type Transaction } from './changes.js';
import { lockSite } from './sites.js';
import { lockUser, userOf } from './users.js';

export interface NewApiKey {
  userId: number;
  name: string;
  siteId: number | null;
  /** Epoch seconds. */
  expiresAt: number | null;
  /** Epoch seconds: when the key expires by which it replaces itself; null: with it. */
  sessionExpiresAt?: number | null;
  /** The key of the same user with which it is made; null: none, or another user's. */
  madeBy?: number | null;
  /** Whether requests with it may be on behalf of users: a trusted portal's. */
  actsForUsers?: boolean;
}

/** A key that is to be replaced. */
export interface Rotation {
  id: number;
  /** Of the new one. */
  name: string;
  /** Epoch seconds after which the new one is not accepted; null: as the old one. */
  latest: number | null;
  /** The key of the same user with which it is asked for, which may be the key itself; null: none, or another user's. */
  madeBy: number | null;
}

/** The holder of a good key. */
export interface KeyHolder {
  keyId: number;
  userId: number;
  role: UserRole;
  siteId: number | null;
  expiresAtMs: number | null;
  actsForUsers: boolean;
}

/** Keys begin with it, so that they are recognized in logs and by scanners of secrets. */
const KEY_PREFIX = 'swy';
/** A key's last use is noted at most so often. */
export const TOUCH_EVERY_S = 60;
const withoutHash = { omit: { hash: true } } as const;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: each change is a short function
export const keyChanges = (change: Changes, { prisma }: Pick<Database, 'prisma'>) => ({
  /** The secret is in this answer only; stored is its SHA-256 (it has 256 random bits: nothing slower is needed). */
  createApiKey(
    { expiresAt, sessionExpiresAt = null, madeBy = null, actsForUsers = false, ...key }: NewApiKey,
    actor: Actor,
    most = Infinity,
  ) {
    return change(actor, 'createApiKey', async (tx, note): Promise<{ apiKey: ApiKeyRow; secret: string }> => {
      await lockUser(tx, key.userId);
      await userOf(tx, key.userId);
      const good = {
        userId: key.userId,
        revokedAt: null,
        OR: [{ expiresAt: null }, { expiresAt: { gt: new Date() } }],
      };
      if ((await tx.apiKey.count({ where: good })) >= most)
        throw new Refusal(
          'LIMIT_EXCEEDED',
          `the user already has ${most} API keys, which is the limit; revoke one first`,
        );
      if (madeBy !== null) await lockMaker(tx, madeBy);
      if (key.siteId !== null) await lockSite(tx, key.siteId);
      const ends = {
        expiresAt: instantOrNever(expiresAt),
        sessionExpiresAt: instantOrNever(sessionExpiresAt),
      };
      const made = await makeKey(tx, { ...key, ...ends, madeBy, actsForUsers });
      await note(`apikey_${made.apiKey.id}`, null, made.apiKey);
      return made;
    });
  },

  /** Puts a key of another name and secret in the place of one that is good, which is revoked. */
  rotateApiKey({ id, name, latest, madeBy }: Rotation, now: number, actor: Actor) {
    return change(actor, 'rotateApiKey', async (tx, note): Promise<{ apiKey: ApiKeyRow; secret: string }> => {
      await tx.$queryRaw(sql`SELECT 1 FROM api_keys WHERE id = ${id} FOR NO KEY UPDATE`);
      const before = found('apikey', id, await tx.apiKey.findUnique({ where: { id }, ...withoutHash }));
      if (before.revokedAt !== null) throw conflict('the key has been revoked');
      const expired = before.expiresAt !== null && before.expiresAt.getTime() <= now * 1000;
      if (expired) throw conflict('the key has expired');
      const ofItself = madeBy === id;
      if (madeBy !== null && !ofItself) await lockMaker(tx, madeBy);
      const { userId, siteId, actsForUsers } = before;
      const made = await makeKey(tx, {
        ...{ userId, siteId, actsForUsers, name },
        madeBy: madeBy === null || ofItself ? before.madeBy : madeBy,
        expiresAt: ofItself
          ? (before.sessionExpiresAt ?? before.expiresAt)
          : earlier(before.expiresAt, instantOrNever(latest)),
      });
      await note(`apikey_${id}`, plain(before), made.apiKey);
      await tx.apiKey.update({ where: { id }, data: { revokedAt: instant(now) }, select: { id: true } });
      // What was made with the one goes with the other.
      await tx.apiKey.updateMany({ where: { madeBy: id }, data: { madeBy: made.apiKey.id } });
      return made;
    });
  },

  /** With it go those that were made with it. Revoking twice leaves the first time. */
  revokeApiKey(id: number, now: number, actor: Actor) {
    return change(actor, 'revokeApiKey', async (tx, note): Promise<ApiKeyRow> => {
      await tx.$queryRaw(sql`SELECT 1 FROM api_keys WHERE id = ${id} FOR NO KEY UPDATE`);
      const before = plain(
        found('apikey', id, await tx.apiKey.findUnique({ where: { id }, ...withoutHash })),
      );
      if (before.revokedAt !== null) return before;
      const after = plain(
        await tx.apiKey.update({ where: { id }, data: { revokedAt: instant(now) }, ...withoutHash }),
      );
      await tx.$queryRaw(sql`
WITH RECURSIVE made AS (
  SELECT id FROM api_keys WHERE made_by = ${id}
  UNION SELECT k.id FROM api_keys k JOIN made ON k.made_by = made.id)
UPDATE api_keys SET revoked_at = ${instant(now)} WHERE id IN (SELECT id FROM made) AND revoked_at IS NULL RETURNING id`);
      await note(`apikey_${id}`, before, after);
      return after;
    });
  },

  /** The holder of a key that is good now: known, not revoked, not expired, its user active, its site in service. */
  async findKey(secret: string, now: number): Promise<KeyHolder | null> {
    const key = await prisma.apiKey.findUnique({
      where: { prefix: prefixOf(secret) },
      include: { user: { select: { role: true, active: true } }, site: { select: { removedAt: true } } },
    });
    if (key === null || !sameText(key.hash, hashOf(secret))) return null;
    const { id: keyId, userId, siteId, expiresAt, revokedAt, lastUsedAt, actsForUsers, user, site } = key;
    if (revokedAt !== null || (expiresAt !== null && expiresAt.getTime() <= now * 1000)) return null;
    if (!user.active || (site !== null && site.removedAt !== null)) return null;
    if (lastUsedAt === null || lastUsedAt.getTime() / 1000 < now - TOUCH_EVERY_S) {
      const data = { lastUsedAt: instant(now) };
      await prisma.apiKey.update({ where: { id: keyId }, data, select: { id: true } });
    }
    const expiresAtMs = expiresAt?.getTime() ?? null;
    return { keyId, userId, role: user.role, siteId, expiresAtMs, actsForUsers };
  },
});

/** Locked, so that it is not revoked meanwhile. */
async function lockMaker(tx: Transaction, id: number): Promise<void> {
  const makers = await tx.$queryRaw<{ id: number }[]>(
    sql`SELECT id FROM api_keys WHERE id = ${id} AND revoked_at IS NULL FOR SHARE`,
  );
  if (makers.length === 0) throw conflict('the key of this request has been revoked');
}

const instantOrNever = (at: number | null): Date | null => (at === null ? null : instant(at));

/** Null: never. */
const earlier = (a: Date | null, b: Date | null): Date | null =>
  a === null || (b !== null && b < a) ? b : a;

export async function makeKey(
  tx: Transaction,
  key: Omit<Prisma.ApiKeyUncheckedCreateInput, 'prefix' | 'hash'>,
): Promise<{ apiKey: ApiKeyRow; secret: string }> {
  const { secret, ...kept } = newSecret(KEY_PREFIX);
  const data = { ...key, ...kept };
  return { apiKey: plain(await tx.apiKey.create({ data, ...withoutHash })), secret };
}

/** What has 256 random bits, what it is found by, and what is stored to know it again. */
export function newSecret(kind: string): { secret: string; prefix: string; hash: string } {
  const prefix = `${kind}_${randomBytes(5).toString('hex')}`;
  const secret = `${prefix}_${randomBytes(32).toString('base64url')}`;
  return { secret, prefix, hash: hashOf(secret) };
}

export const prefixOf = (secret: string): string => secret.split('_', 2).join('_');

export const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex');

/** In a time that does not depend on where they differ. */
export const sameText = (a: string, b: string): boolean =>
  a.length === b.length && timingSafeEqual(Buffer.from(a), Buffer.from(b));
