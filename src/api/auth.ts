/**
 * Who asks. A key is looked up by its hash; the answer is remembered for half a second, so that a revocation acts within
 * a second in every process of the API while a busy agent costs two look-ups a second.
 */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import pLimit from 'p-limit';
import { isSession } from '../store/directory.js';
import { refusedRequest } from './errors.js';
import type { UserRole } from './generated/types.js';
import { isToken } from './oidc.js';

/** How long a key is trusted without asking again. */
const TRUST_MS = 500;
/** How long a key that is no good is remembered as such. */
const DISTRUST_MS = 5_000;
/** How long a good key counts as one that was seen before. */
const ACQUAINTED_MS = 3_600_000;
const KEYS_MAX = 10_000;
/** Keys that nobody here has seen before are looked up so many at a time. */
const FIRST_LOOKS = 4;
/** A key is ASCII without spaces; anything longer is no key, and is not hashed. A token may be longer. */
const KEY_CHARS_MAX = 200;

/** Who a request is from: the holder of the key or token that it came with, or the user that a trusted portal asks for. */
export interface Viewer {
  /** null: it came with a token of the identity provider, or with a session. */
  keyId: number | null;
  /** Of whom has signed in by password; null: of nobody. */
  sessionId: number | null;
  userId: number;
  role: UserRole;
  /** The only site that the key is good for; null: no such limit. */
  siteId: number | null;
  /** When the key ceases to be accepted, ms since 1970. */
  expiresAtMs: number | null;
  /** Whether it may ask on behalf of users. */
  actsForUsers: boolean;
  /** The user whose key it is, where it is used on behalf of another; null: it is the viewer's own. */
  onBehalfBy: number | null;
}

/** What authentication needs: the holder of a live key or token, an active user; null: there is none. */
export type FindKey = (secret: string) => Promise<Viewer | null>;

/** Addresses from which keys are tried. A request without a key tries none. */
export interface Strangers {
  /** Throws RATE_LIMITED when too many bad ones have come from this address. */
  check(address: string): Promise<void>;
  /** Another one. */
  count(address: string): void;
}

export interface Authenticator {
  /** The viewer of an `Authorization: Bearer KEY` header. Throws UNAUTHENTICATED, and RATE_LIMITED before anybody is asked. */
  authenticate(authorization: string | undefined, address: string): Promise<Viewer>;
  /** The same for a connection that was let in with the key; null: it is not good any more. */
  goodViewer(authorization: string): Promise<Viewer | null>;
  /** Forgets what it knows: a key has been revoked, or a user changed, in this very process. */
  forget(): void;
}

export function createAuthenticator(findKey: FindKey, strangers: Strangers): Authenticator {
  const trusted = new LRUCache<string, Promise<Viewer | null>>({ max: KEYS_MAX, ttl: TRUST_MS });
  // Apart, so that no number of bad keys crowds out the good ones.
  const refused = new LRUCache<string, true>({ max: KEYS_MAX, ttl: DISTRUST_MS });
  // Apart: a provider that does not answer keeps nobody waiting who comes with a key.
  const lanes = { token: pLimit(FIRST_LOOKS), key: pLimit(FIRST_LOOKS) };
  const acquainted = new LRUCache<string, true>({ max: KEYS_MAX, ttl: ACQUAINTED_MS });

  // Kept by hash: the caches must not be a list of secrets in memory.
  const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('base64');

  function lookUp(secret: string, hash: string): Promise<Viewer | null> {
    const remembered = trusted.get(hash);
    if (remembered) return remembered;
    const asked = findKey(secret).then((viewer) => {
      if (viewer === null) {
        trusted.delete(hash);
        refused.set(hash, true);
      } else acquainted.set(hash, true);
      return viewer;
    });
    trusted.set(hash, asked);
    // A failure of the database is nobody's answer: the next request asks again.
    asked.catch(() => trusted.delete(hash));
    return asked;
  }

  /** A few at a time: whoever tries keys must not keep the database busy, and is stopped as soon as those before have failed. */
  const firstLook = (secret: string, hash: string, address: string): Promise<Viewer | null> =>
    lanes[isToken(secret) ? 'token' : 'key'](async () => {
      await strangers.check(address);
      return refused.has(hash) ? null : lookUp(secret, hash);
    });

  const good = (viewer: Viewer | null): Viewer | null =>
    viewer && (viewer.expiresAtMs === null || viewer.expiresAtMs > Date.now()) ? viewer : null;

  return {
    async authenticate(authorization, address) {
      const secret = bearer(authorization);
      const hash = secret && hashOf(secret);
      if (secret && hash) {
        // The same bad key again tries nothing new: a client that was set up wrongly keeps nobody out who shares its address.
        const isKnownBad = refused.has(hash);
        const viewer = good(
          await (acquainted.has(hash) ? lookUp(secret, hash) : firstLook(secret, hash, address)),
        );
        if (viewer) return viewer;
        if (!isKnownBad) strangers.count(address);
      }
      throw refusedRequest(
        'UNAUTHENTICATED',
        secret === null
          ? 'no API key: send the header `Authorization: Bearer KEY`'
          : isToken(secret)
            ? 'the token is invalid: it was not issued by the identity provider, is not for this service, has expired, or does not belong to a user here'
            : isSession(secret)
              ? 'the session has ended'
              : 'the API key is unknown, expired or revoked',
        {},
        { 'www-authenticate': 'Bearer' },
      );
    },
    async goodViewer(authorization) {
      const secret = bearer(authorization);
      return secret === null ? null : good(await lookUp(secret, hashOf(secret)));
    },
    forget() {
      trusted.clear();
      refused.clear();
    },
  };
}

/** The key of a bearer header; null where there is none. */
function bearer(authorization: string | undefined): string | null {
  const match = /^bearer ([\x21-\x7e]+)$/i.exec(authorization ?? '');
  const secret = match?.[1];
  return secret && (secret.length <= KEY_CHARS_MAX || isToken(secret)) ? secret : null;
}

/** Whether a key still stands for what it stood for when a connection was opened with it. */
export const sameViewer = (a: Viewer, b: Viewer): boolean =>
  a.keyId === b.keyId &&
  a.sessionId === b.sessionId &&
  a.userId === b.userId &&
  a.role === b.role &&
  a.siteId === b.siteId;

/** The header, or connection parameter, with which a trusted portal says for whom it asks. */
export const ON_BEHALF_HEADER = 'x-switchyard-user';

/** Whether portals may ask for the user. */
export const isAskedFor = <U extends { role: UserRole; active: boolean }>(
  user: U | null | undefined,
): user is U => user?.role === 'USER' && user.active;

/**
 * The user of this name in place of the portal that asks for them. Throws FORBIDDEN unless the portal's key may do that, and for users who
 * could do more than a USER: a portal never gets more power by it.
 */
export async function onBehalfOf(
  viewer: Viewer,
  name: unknown,
  userByName: (name: string) => Promise<{ id: number; role: UserRole; active: boolean } | null>,
): Promise<Viewer> {
  if (!viewer.actsForUsers || viewer.onBehalfBy !== null)
    throw refusedRequest('FORBIDDEN', `${ON_BEHALF_HEADER}: this key may not act for users`);
  // JSON can have what neither a header nor a name has.
  const user = typeof name === 'string' && !name.includes('\0') ? await userByName(name) : null;
  if (!isAskedFor(user))
    throw refusedRequest(
      'FORBIDDEN',
      `${ON_BEHALF_HEADER}: there is no active user with this name and the role USER`,
    );
  return { ...viewer, userId: user.id, role: 'USER', actsForUsers: false, onBehalfBy: viewer.userId };
}
