/** Signing in by user name and password: invitations, passwords, and the sessions of those who have signed in. */
import { MAX } from '../../platform/limits.js';
import type { Account } from '../../platform/turns.js';
import type { SessionRow, UserRow } from '../../store/rows.js';
import { accountOf } from '../admission/shares.js';
import type { Viewer } from '../auth.js';
import { atMost } from '../check.js';
import { ApiError, badInput, notFound, refusedRequest } from '../errors.js';
import type { ChangePasswordInput, EndSessionsInput, InviteUserInput } from '../generated/types.js';
import { globalId, localId } from '../ids.js';
import { checkPassword, createPasswords } from '../passwords.js';
import { guarded, noPortal } from './access.js';
import { actor, done, type ServiceParts } from './parts.js';

const DAY_S = 86_400;
const INVITED_S = 7 * DAY_S;
const INVITED_MAX_S = 90 * DAY_S;
const AGENT_CHARS_MAX = 200;

/** Somebody whom nobody knows yet, and the request that they come with. */
export interface Stranger {
  address: string;
  agent: string;
  requestId: string;
  /** Aborted when nobody waits for the answer any more. */
  signal: AbortSignal;
}

/** As whom its connection is served until a key has come. */
const strangerAt = ({ address }: Stranger): Account => ({ name: `address ${address}`, rank: 'people' });

/** A session that has begun: its secret, to be sent like an API key. */
export interface Begun {
  user: UserRow;
  sessionId: number;
  secret: string;
  /** Epoch seconds. */
  expiresAt: number;
}

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: it returns short functions that share its parts
export function createSignInService(parts: ServiceParts) {
  const { directory, queries, limits, shares, now } = parts;
  const passwords = createPasswords();

  function checkOn(): void {
    if (!parts.passwords)
      throw refusedRequest('FORBIDDEN', 'passwords are switched off for this service (SWITCHYARD_PASSWORDS)');
  }

  async function user(id: number, shown: string): Promise<UserRow> {
    const [found] = await queries.usersByIds([id]);
    if (!found) throw notFound('user', shown);
    return found;
  }

  /**
   * In a turn: the user of this name, whose password it is, and its hash. Takes as long where there is none. Wrong ones are charged to the
   * address and to the name, whether anybody has it or not; who has a session from the address is not kept out by what others try.
   */
  async function rightful(name: string, password: string, from: string, requestId: string) {
    await shares.strangers.check(from);
    const found = await directory.passwordOf(name);
    const isKnown = await directory.hasSessionFrom(found?.userId ?? 0, from, now());
    await shares.passwords.check(name, from, isKnown);
    if ((await passwords.isRight(password, found?.hash ?? null)) && found) return found;
    shares.strangers.count(from);
    const isLast = await shares.passwords.count(name, from);
    if (isLast && found) done(await directory.noteWrongPasswords(found.userId, from, requestId));
    throw refusedRequest('UNAUTHENTICATED', 'the user name or the password is wrong');
  }

  async function begin(userId: number, hash: string, { address, agent }: Stranger): Promise<Begun> {
    const from = { address: address.slice(0, 100), agent: agent.slice(0, AGENT_CHARS_MAX) };
    const opened = done(await directory.openSession(userId, hash, from, now(), limits.userSessions));
    return { user: await user(userId, 'user'), ...opened };
  }

  async function invited(secret: string, { address }: Stranger) {
    await shares.strangers.check(address);
    const found = await directory.invitation(secret, now());
    if (found !== null) return found;
    shares.strangers.count(address);
    throw refusedRequest(
      'NOT_FOUND',
      'this invitation has been used, has expired, or was replaced by a newer one; ask for another',
    );
  }

  return {
    ...guarded({
      async inviteUser(viewer: Viewer, input: InviteUserInput, requestId: string) {
        checkOn();
        noPortal(viewer, 'inviteUser', 'invitations');
        const userId = localId('user', input.userId, 'userId');
        const expiresAt = input.expiresAt ? input.expiresAt.getTime() / 1000 : now() + INVITED_S;
        if (expiresAt <= now() || expiresAt > now() + INVITED_MAX_S)
          throw badInput('expiresAt', input.expiresAt, 'a time in the future, up to 90 days from now');
        const made = done(await directory.inviteUser(userId, expiresAt, actor(viewer, requestId)));
        return { user: made.user, invitation: made.secret, expiresAt };
      },

      async changePassword(
        viewer: Viewer,
        { current, password }: ChangePasswordInput,
        requestId: string,
        signal: AbortSignal,
      ) {
        checkOn();
        noPortal(viewer, 'changePassword', 'passwords');
        const { userId, sessionId } = viewer;
        const own = await user(userId, 'viewer');
        checkPassword('password', password, own.name);
        const account = accountOf(viewer);
        const from = account.name;
        await passwords.inTurn(account, signal, async () => {
          const { hash: before } = await rightful(own.name, current, from, requestId).catch((error) => {
            // The session stays good: it is not this that is refused.
            if (!(error instanceof ApiError) || error.code !== 'UNAUTHENTICATED') throw error;
            throw new ApiError('BAD_USER_INPUT', 'current: it is not the current password', {
              field: 'current',
            });
          });
          const change = { before, hash: await passwords.hash(password) };
          done(await directory.changePassword(userId, change, sessionId, actor(viewer, requestId)));
        });
        parts.keysChanged();
        return { user: own };
      },

      async endSessions(viewer: Viewer, input: EndSessionsInput, requestId: string) {
        noPortal(viewer, 'endSessions', 'sessions');
        const userId = input.userId ? localId('user', input.userId, 'userId') : viewer.userId;
        if (userId !== viewer.userId && viewer.role !== 'ADMIN')
          throw new ApiError('FORBIDDEN', 'endSessions: only an ADMIN can end sessions of other users');
        const ids = input.sessionIds
          ? atMost('sessionIds', input.sessionIds, MAX.sessionsEnded).map((id) =>
              localId('session', id, 'sessionIds'),
            )
          : null;
        const ended: SessionRow[] = done(
          await directory.endSessions(userId, ids, viewer.sessionId, actor(viewer, requestId)),
        );
        parts.keysChanged();
        return {
          user: await user(userId, input.userId ?? 'viewer'),
          endedSessionIds: ended.map(({ id }) => globalId('session', id)),
        };
      },
    }),

    /** Throws UNAUTHENTICATED where the name or the password is wrong, and RATE_LIMITED after too many of these. */
    async byPassword(name: string, password: string, from: Stranger): Promise<Begun> {
      checkOn();
      return passwords.inTurn(strangerAt(from), from.signal, async () => {
        const { userId, hash } = await rightful(name, password, from.address, from.requestId);
        return begin(userId, hash, from);
      });
    },

    /** Whom an invitation is for. Throws NOT_FOUND where it is not good. */
    async invitation(secret: string, from: Stranger): Promise<{ user: UserRow; expiresAt: number }> {
      checkOn();
      return invited(secret, from);
    },

    /** Sets the password of whom an invitation is for, and signs them in. */
    async byInvitation(secret: string, password: string, from: Stranger): Promise<Begun> {
      checkOn();
      const { user: invitee } = await invited(secret, from);
      checkPassword('password', password, invitee.name);
      return passwords.inTurn(strangerAt(from), from.signal, async () => {
        const hash = await passwords.hash(password);
        const by = { userId: invitee.id, requestId: from.requestId, reason: 'an invitation' };
        const userId = done(await directory.acceptInvitation(secret, hash, now(), by));
        parts.keysChanged();
        return begin(userId, hash, from);
      });
    },
  };
}
