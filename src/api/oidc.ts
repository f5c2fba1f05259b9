/**
 * OpenID Connect: whom an identity provider vouches for. A token is a JWT that the issuer has signed for this service; its keys and their
 * rotation are jose's business. What is ours: where the provider is found, which of its groups has which role, and what is said when
 * a token is not accepted.
 */
import {
  createRemoteJWKSet,
  customFetch,
  errors,
  type FetchImplementation,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from 'jose';
import { textFault } from './check.js';
import type { OidcConfig } from './config.js';
import { ApiError, refusedRequest } from './errors.js';
import type { UserRole } from './generated/types.js';

/** Anything longer is no token, and is not looked at. */
export const TOKEN_CHARS_MAX = 8_192;
/** OpenID Connect Core 1.0, section 2. */
const SUBJECT_CHARS_MAX = 255;
/** How long the provider may take to tell where its keys are, or what they are. */
const ASK_MS = 5_000;
/** What the provider says of itself is asked for anew after this time; after a failure, sooner. */
const DISCOVERY_MS = 3_600_000;
const RETRY_MS = 5_000;
/** No secret of ours may sign, and nothing goes unsigned. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];
/** What jose says when the provider answers too late, with something else than keys, or with a redirection. */
const KEYS_MISSING: ReadonlySet<string> = new Set([
  errors.JWKSTimeout.code,
  errors.JWKSInvalid.code,
  errors.JOSEError.code,
]);
/** Types of tokens (RFC 9068, and what those say that were there before) that are for services. */
const ACCESS_TYPES: ReadonlySet<string> = new Set(['jwt', 'at+jwt', 'application/at+jwt']);
/** Keycloak's own names for others, in the claim `typ`. */
const OTHER_TYPES: ReadonlySet<unknown> = new Set(['ID', 'Refresh', 'Offline', 'Logout']);
/** Strongest first: who is in several groups has the most that one of them gives. */
const RANKS: readonly UserRole[] = ['ADMIN', 'OPERATOR', 'USER'];

/** Who a token is about. */
export interface Identity {
  /** Issuer and subject: what stays the same of a person, whatever they are called. */
  subject: string;
  /** What they are called, as far as it can be a user's name here. */
  name: string;
  /** By their groups; null: the configuration gives no group a role, so the user's own is the one. */
  role: UserRole | null;
  expiresAtMs: number;
}

export interface Oidc {
  /** Who the token is about. Null: it is not good. Throws UNAVAILABLE when the provider cannot be asked, FORBIDDEN when no group of theirs has a role. */
  identify(token: string): Promise<Identity | null>;
}

/** Whether a bearer's secret has the form of a token rather than of a key. */
export const isToken = (secret: string): boolean =>
  secret.length <= TOKEN_CHARS_MAX && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(secret);

export function createOidc(config: OidcConfig, onError: (error: unknown) => void): Oidc {
  let discovered: Promise<JWTVerifyGetKey> | null = null;
  let until = 0;

  function keys(): Promise<JWTVerifyGetKey> {
    if (discovered === null || Date.now() >= until) {
      until = Date.now() + DISCOVERY_MS;
      discovered = discover(config.issuer);
      discovered.catch(() => {
        until = Date.now() + RETRY_MS;
      });
    }
    return discovered;
  }

  return {
    async identify(token) {
      try {
        const { payload, protectedHeader } = await jwtVerify(token, await keys(), {
          issuer: config.issuer,
          audience: [...config.audience],
          algorithms: ALGORITHMS,
          clockTolerance: config.clockToleranceS,
          requiredClaims: ['sub', 'exp'],
        });
        return isForAccess(payload, protectedHeader.typ) ? identityOf(payload, config) : null;
      } catch (error) {
        if (error instanceof ApiError) throw error;
        // What is wrong with the token is the bearer's affair; that keys cannot be had is ours.
        if (error instanceof errors.JOSEError && !KEYS_MISSING.has(error.code)) return null;
        onError(error);
        throw refusedRequest(
          'UNAVAILABLE',
          'the identity provider does not respond; try again later, or use an API key',
        );
      }
    },
  };
}

/** The provider's keys, from what it says of itself (OpenID Connect Discovery 1.0, section 4). */
async function discover(issuer: string): Promise<JWTVerifyGetKey> {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const response = await fetch(url, { signal: AbortSignal.timeout(ASK_MS), redirect: 'error' });
  if (!response.ok) throw new Error(`${url} returned ${response.status}`);
  const { issuer: told, jwks_uri: keys } = (await response.json()) as {
    issuer?: unknown;
    jwks_uri?: unknown;
  };
  if (told !== issuer) throw new Error(`${url} names the issuer ${JSON.stringify(told)}, not ${issuer}`);
  if (typeof keys !== 'string') throw new Error(`${url} names no jwks_uri`);
  return createRemoteJWKSet(new URL(keys), { timeoutDuration: ASK_MS, [customFetch]: askingForKeys() });
}

/** Asks for keys. Where they are not told, what was told last is good for a while, and nobody waits for another try at once. */
function askingForKeys(): FetchImplementation {
  let last: { keys: string; untilMs: number } | null = null;
  let failure: { why: unknown; untilMs: number } | null = null;
  return async (url, options) => {
    if (failure === null || Date.now() >= failure.untilMs) {
      try {
        const response = await fetch(url, options);
        // To its end: an answer may hang as well.
        const keys = await response.text();
        if (response.status !== 200) throw new Error(`${url} returned ${response.status}`);
        failure = null;
        last = { keys, untilMs: Date.now() + DISCOVERY_MS };
        return new Response(keys);
      } catch (why) {
        failure = { why, untilMs: Date.now() + RETRY_MS };
      }
    }
    if (last && Date.now() < last.untilMs) return new Response(last.keys);
    throw failure.why;
  };
}

/**
 * Whether a good token is one for services, about somebody. ID tokens are for the client that asked, even where its name is an audience of
 * ours: only they have the hash of the access token that came with them.
 */
const isForAccess = ({ sub, typ, at_hash, c_hash }: JWTPayload, type: string | undefined): boolean =>
  (type === undefined || ACCESS_TYPES.has(type.toLowerCase())) &&
  !OTHER_TYPES.has(typ) &&
  at_hash === undefined &&
  c_hash === undefined &&
  typeof sub === 'string' &&
  textFault(sub, SUBJECT_CHARS_MAX, 1) === null;

function identityOf(payload: JWTPayload, config: OidcConfig): Identity {
  const { sub, exp } = payload as { sub: string; exp: number };
  const claimed = payload[config.nameClaim];
  return {
    subject: `${config.issuer} ${sub}`,
    name: plain(typeof claimed === 'string' ? claimed : '') || plain(sub) || 'user',
    role: roleOf(payload[config.groupsClaim], config.roles),
    expiresAtMs: (exp + config.clockToleranceS) * 1000,
  };
}

function roleOf(groups: unknown, roles: OidcConfig['roles']): UserRole | null {
  if (roles.size === 0) return null;
  const named = (Array.isArray(groups) ? groups : [groups]).filter((one) => typeof one === 'string');
  const given = new Set(named.map((group) => roles.get(group)));
  const role = RANKS.find((one) => given.has(one));
  if (role) return role;
  throw refusedRequest('FORBIDDEN', 'none of your groups has a role here; ask an administrator');
}

/** What can be a user's name: other characters become dashes. */
const plain = (name: string): string =>
  name
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^-+|-+$/g, '')
    .slice(0, 60);
