/**
 * Signing in by user name and password: hashes of passwords, invitations to set one, and the sessions of those who have signed in.
 * Passwords are hashed by whoever calls this (argon2id); invitations and sessions are random, and their SHA-256 is enough.
 */
import type { Database } from '../pool.js';
import { instant, plain } from '../read-rows.js';
import type { SessionRow, UserRole, UserRow } from '../rows.js';
import { sql } from '../sql.js';
import { type Actor, type Changes, conflict, Refusal, type Transaction } from './changes.js';
import { hashOf, newSecret, prefixOf, sameText, TOUCH_EVERY_S } from './keys.js';
import { lockUser, userOf } from './users.js';

/** Both begin with what tells scanners of secrets what they are. */
const SESSION_PREFIX = 'sws';
const INVITATION_PREFIX = 'swi';
/** A session ends so long after its last use, */
const IDLE_S = 86_400;
/** and so long after it began. */
const SESSION_S = 30 * 86_400;

/** Whether a bearer's secret has the form of a session's rather than of a key. */
export const isSession = (secret: string): boolean => secret.startsWith(`${SESSION_PREFIX}_`);

/** The holder of a session that is good now. */
export interface SessionHolder {
  sessionId: number;
  userId: number;
  role: UserRole;
  expiresAtMs: number;
}

/** Where a session is from. */
export interface SessionOrigin {
  address: string;
  agent: string;
}

const withoutHash = { omit: { hash: true, prefix: true } } as const;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: each change is a short function
export const signInChanges = (change: Changes, { prisma }: Pick<Database, 'prisma'>) => ({
  /** A secret by which an active user may set a password, once. The one before it is good no more. */
  inviteUser(userId: number, expiresAt: number, actor: Actor) {
    return change(actor, 'inviteUser', async (tx, note): Promise<{ user: UserRow; secret: string }> => {
      await lockUser(tx, userId);
      const user = await userOf(tx, userId);
      if (!user.active) throw conflict(`${user.name} is not active`);
      if (user.role === 'AGENT' || user.role === 'PEER')
        throw conflict(`${user.name} has the role ${user.role}, which can sign in only with keys`);
      const { secret, hash } = newSecret(INVITATION_PREFIX);
      const kept = { hash, createdAt: new Date(), expiresAt: instant(expiresAt) };
      await tx.invitation.upsert({ where: { userId }, create: { userId, ...kept }, update: kept });
      await note(`user_${userId}`, null, { invitedUntil: expiresAt });
      return { user, secret };
    });
  },

  /** Whom a good invitation is for, and until when; null: it is not good. */
  async invitation(secret: string, now: number): Promise<{ user: UserRow; expiresAt: number } | null> {
    const hash = hashOf(secret);
    const found = await prisma.invitation.findUnique({ where: { hash }, include: { user: true } });
    if (found === null || !found.user.active || found.expiresAt.getTime() <= now * 1000) return null;
    return { user: plain(found.user), expiresAt: found.expiresAt.getTime() / 1000 };
  },

  /** Sets the password of whom the invitation is for, uses it up, and ends all of their sessions. */
  acceptInvitation(secret: string, hash: string, now: number, actor: Actor) {
    return change(actor, 'setPassword', async (tx, note): Promise<number> => {
      const hashed = hashOf(secret);
      const found = await tx.invitation.findUnique({ where: { hash: hashed }, select: { userId: true } });
      if (found) await lockUser(tx, found.userId);
      const { count } = await tx.invitation.deleteMany({
        where: { hash: hashed, expiresAt: { gt: instant(now) }, user: { active: true } },
      });
      if (!found || count === 0)
        throw new Refusal('NOT_FOUND', 'the invitation has been used or has expired');
      const set = await setPassword(tx, found.userId, hash);
      await tx.session.deleteMany({ where: { userId: found.userId } });
      await note(`user_${found.userId}`, null, set);
      return found.userId;
    });
  },

  /** The active user of this name, and the hash of their password; null: there is none, or no password. */
  async passwordOf(name: string): Promise<{ userId: number; hash: string } | null> {
    const user = await prisma.user.findUnique({ where: { name }, include: { password: true } });
    return user?.active && user.password ? { userId: user.id, hash: user.password.hash } : null;
  },

  /**
   * Puts a password in the place of the one whose hash was `before`, and ends all sessions of the user but `kept`. An invitation that
   * waits is good no more.
   */
  changePassword(
    userId: number,
    { before, hash }: { before: string; hash: string },
    kept: number | null,
    actor: Actor,
  ) {
    return change(actor, 'changePassword', async (tx, note): Promise<void> => {
      await stillPassword(tx, userId, before);
      const set = await setPassword(tx, userId, hash);
      await tx.invitation.deleteMany({ where: { userId } });
      await tx.session.deleteMany({ where: { userId, ...(kept !== null && { id: { not: kept } }) } });
      await note(`user_${userId}`, null, set);
    });
  },

  /** A session of who has shown the password with this hash. Where there are too many, it takes the place of the one used longest ago. */
  openSession(userId: number, hash: string, { address, agent }: SessionOrigin, now: number, most: number) {
    // Whoever signs in changes nothing that an audit log is about.
    return change(
      { userId, requestId: null },
      'signIn',
      async (tx): Promise<{ sessionId: number; secret: string; expiresAt: number }> => {
        await stillPassword(tx, userId, hash);
        const { secret, ...kept } = newSecret(SESSION_PREFIX);
        const expiresAt = now + IDLE_S;
        const at = instant(now);
        const data = {
          userId,
          address,
          agent,
          ...kept,
          createdAt: at,
          lastUsedAt: at,
          expiresAt: instant(expiresAt),
        };
        const { id: sessionId } = await tx.session.create({ data, select: { id: true } });
        await tx.$executeRaw(sql`
DELETE FROM sessions WHERE id IN (
  SELECT id FROM sessions WHERE user_id = ${userId} ORDER BY last_used_at DESC, id DESC OFFSET ${most})`);
        return { sessionId, secret, expiresAt };
      },
    );
  },

  /** Whether the user has a session from the address. */
  async hasSessionFrom(userId: number, address: string, now: number): Promise<boolean> {
    const where = { userId, address, expiresAt: { gt: instant(now) } };
    return (await prisma.session.findFirst({ where, select: { id: true } })) !== null;
  },

  /** The holder of a session that is good now: known, not expired, its user active. Each use puts off its end. */
  async findSession(secret: string, now: number): Promise<SessionHolder | null> {
    const session = await prisma.session.findUnique({
      where: { prefix: prefixOf(secret) },
      include: { user: { select: { role: true, active: true } } },
    });
    if (session === null || !sameText(session.hash, hashOf(secret))) return null;
    const { id, userId, createdAt, lastUsedAt, expiresAt, user } = session;
    if (!user.active || expiresAt.getTime() <= now * 1000) return null;
    const until = Math.min(now + IDLE_S, createdAt.getTime() / 1000 + SESSION_S);
    if (lastUsedAt.getTime() / 1000 < now - TOUCH_EVERY_S) {
      const data = { lastUsedAt: instant(now), expiresAt: instant(until) };
      // It may have been ended meanwhile.
      await prisma.session.updateMany({ where: { id }, data });
    }
    return { sessionId: id, userId, role: user.role, expiresAtMs: until * 1000 };
  },

  /** Ends these sessions of a user; null: all but `kept`. Answers those that were there. */
  endSessions(userId: number, ids: readonly number[] | null, kept: number | null, actor: Actor) {
    return change(actor, 'endSessions', async (tx, note): Promise<SessionRow[]> => {
      await lockUser(tx, userId);
      await userOf(tx, userId);
      const id = ids === null ? { not: kept ?? 0 } : { in: [...ids] };
      const ended = await tx.session.findMany({ where: { userId, id }, ...withoutHash });
      await tx.session.deleteMany({ where: { id: { in: ended.map((one) => one.id) } } });
      if (ended.length > 0) await note(`user_${userId}`, { sessions: ended.map((one) => one.id) }, null);
      return ended.map(plain);
    });
  },

  /** For the audit log: so many wrong passwords for a user in a minute that no more are looked at. */
  noteWrongPasswords(userId: number, address: string, requestId: string) {
    return change({ userId: null, requestId }, 'wrongPasswords', (_tx, note) =>
      note(`user_${userId}`, null, { address }),
    );
  },
});

/** The time is part of what the audit log says; the hash is not. */
async function setPassword(
  tx: Transaction,
  userId: number,
  hash: string,
): Promise<{ passwordSetAt: string }> {
  const setAt = new Date();
  await tx.password.upsert({ where: { userId }, create: { userId, hash, setAt }, update: { hash, setAt } });
  return { passwordSetAt: setAt.toISOString() };
}

/** Locks the user. Refused where the password is another one since it was shown. */
async function stillPassword(tx: Transaction, userId: number, hash: string): Promise<void> {
  await lockUser(tx, userId);
  const user = await tx.user.findUnique({ where: { id: userId }, include: { password: true } });
  if (!user?.active || user.password?.hash !== hash) throw conflict('the password has just been changed');
}
