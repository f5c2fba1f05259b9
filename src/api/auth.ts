/**
 * Who asks. A key is looked up by its hash; the answer is remembered for half a second, so that a revocation acts within
 * a second in every process of the API while a busy agent costs two look-ups a second.
 */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { refusedRequest } from './errors.js';
import type { UserRole } from './generated/resolvers-types.js';

/** How long a key is trusted, or known to be bad, without asking again. */
const TRUST_MS = 500;
const KEYS_MAX = 10_000;
/** A key is ASCII without spaces; anything longer is no key, and is not hashed. */
const KEY_CHARS_MAX = 200;

/** The holder of the key that a request came with. */
export interface Viewer {
  keyId: number;
  userId: number;
  role: UserRole;
  /** The only site that the key is good for; null: no such limit. */
  siteId: number | null;
  /** When the key ceases to be accepted, ms since 1970. */
  expiresAtMs: number | null;
}

/** What authentication needs of the directory: the holder of a live key of an active user; null: there is none. */
export type FindKey = (secret: string) => Promise<Viewer | null>;

export interface Authenticator {
  /** The viewer of an `Authorization: Bearer KEY` header. Throws UNAUTHENTICATED. */
  authenticate(authorization: string | undefined): Promise<Viewer>;
  /** The same without throwing for a bad key; null: it is not good now. */
  goodViewer(authorization: string): Promise<Viewer | null>;
  /** Forgets what it knows: a key has been revoked, or a user changed, in this very process. */
  forget(): void;
}

export function createAuthenticator(findKey: FindKey): Authenticator {
  const known = new LRUCache<string, Promise<Viewer | null>>({ max: KEYS_MAX, ttl: TRUST_MS });

  function lookUp(secret: string): Promise<Viewer | null> {
    // Kept by hash: the cache must not be a list of secrets in memory.
    const hash = createHash('sha256').update(secret).digest('base64');
    const remembered = known.get(hash);
    if (remembered) return remembered;
    const asked = findKey(secret);
    known.set(hash, asked);
    // A failure of the database is nobody's answer: the next request asks again.
    asked.catch(() => known.delete(hash));
    return asked;
  }

  async function find(authorization: string | undefined): Promise<Viewer | null> {
    const secret = bearer(authorization);
    if (secret === null) return null;
    const viewer = await lookUp(secret);
    return viewer && (viewer.expiresAtMs === null || viewer.expiresAtMs > Date.now()) ? viewer : null;
  }

  return {
    async authenticate(authorization) {
      const viewer = await find(authorization);
      if (viewer) return viewer;
      throw refusedRequest(
        'UNAUTHENTICATED',
        bearer(authorization) === null
          ? 'no API key: send the header `Authorization: Bearer KEY`'
          : 'the API key is unknown, expired or revoked',
        {},
        { 'www-authenticate': 'Bearer' },
      );
    },
    goodViewer: find,
    forget: () => known.clear(),
  };
}

/** The key of a bearer header; null where there is none. */
function bearer(authorization: string | undefined): string | null {
  const match = /^bearer ([\x21-\x7e]+)$/i.exec(authorization ?? '');
  const secret = match?.[1];
  return secret && secret.length <= KEY_CHARS_MAX ? secret : null;
}

/** Whether a key still stands for what it stood for when a connection was opened with it. */
export const sameViewer = (a: Viewer, b: Viewer): boolean =>
  a.keyId === b.keyId && a.userId === b.userId && a.role === b.role && a.siteId === b.siteId;
