/**
 * Signing in at the service's OpenID Connect provider: authorization code with PKCE (RFC 7636), which oidc-client-ts does. It is loaded
 * only where it is needed. The access token is the session's key; with a refresh token it is renewed before it expires.
 */
import type { UserManager } from 'oidc-client-ts';
import { session } from '../api/session';
import { askSignInBy } from './sign-in-by';

/** The address that the provider sends people back to: it is registered there. */
const RETURN_PATH = '/sign-in';
/** Whether this tab's session is the provider's. */
const MARK = 'switchyard.provider';
const RENEW_BEFORE_S = 60;

let manager: Promise<UserManager> | null = null;

async function create(): Promise<UserManager> {
  const [{ oidc: found }, { UserManager, WebStorageStateStore }] = await Promise.all([
    askSignInBy(),
    import('oidc-client-ts'),
  ]);
  if (!found) throw new Error('The service has no identity provider.');
  const { issuer, clientId, scope, audience } = found;
  // RFC 8707 where the audience is an address; some providers have `audience` instead, and the others leave it aside.
  const resource = /^https?:/.test(audience)
    ? { resource: audience, extraTokenParams: { resource: audience } }
    : {};
  const made = new UserManager({
    authority: issuer,
    client_id: clientId,
    redirect_uri: location.origin + RETURN_PATH,
    scope,
    ...resource,
    extraQueryParams: { audience },
    stateStore: new WebStorageStateStore({ store: sessionStorage }),
    userStore: new WebStorageStateStore({ store: sessionStorage }),
    automaticSilentRenew: false,
    accessTokenExpiringNotificationTimeInSeconds: RENEW_BEFORE_S,
  });
  made.events.addAccessTokenExpiring(async () => {
    const user = await made.getUser();
    // Without a refresh token the session ends when the service says so.
    if (user?.refresh_token) await made.signinSilent(resource).catch(() => {});
  });
  made.events.addUserLoaded((user) => {
    if (sessionStorage.getItem(MARK)) session.renew(user.access_token);
  });
  return made;
}

function open(): Promise<UserManager> {
  manager ??= create();
  manager.catch(() => {
    manager = null;
  });
  return manager;
}

/** Goes to the provider, and with it leaves this page. Answers why that failed. */
export async function leaveForProvider(): Promise<string | null> {
  try {
    await (await open()).signinRedirect({ state: location.pathname + location.search });
    return null;
  } catch {
    return 'The identity provider does not respond. Try again later, or use an API key.';
  }
}

/** Takes what the provider has sent a person back with, and goes on where they left; keeps renewing after a reload. */
export async function returnFromProvider(): Promise<void> {
  if (location.pathname !== RETURN_PATH) {
    if (session.get().key !== null && sessionStorage.getItem(MARK))
      void open().then((made) => made.getUser());
    return;
  }
  const back = location.href;
  // The code is good once, and belongs in no history.
  history.replaceState(null, '', '/');
  if (!new URL(back).searchParams.has('state')) return;
  try {
    const user = await (await open()).signinRedirectCallback(back);
    session.signIn(user.access_token);
    sessionStorage.setItem(MARK, 'yes');
    const to = typeof user.state === 'string' && /^\/(?!\/)/.test(user.state) ? user.state : '/';
    // The explorer is a page of its own.
    if (to.startsWith('/graphql')) location.replace(to);
    else history.replaceState(null, '', to);
  } catch (error) {
    session.refuse(`The identity provider did not sign you in: ${(error as Error).message}`);
  }
}

// However the session ends: nothing of the provider's stays in the tab, and a refresh token is revoked.
session.subscribe(() => {
  if (session.get().key !== null || !sessionStorage.getItem(MARK)) return;
  sessionStorage.removeItem(MARK);
  void open()
    .then(async (made) => {
      if ((await made.getUser())?.refresh_token) await made.revokeTokens(['refresh_token']).catch(() => {});
      await made.removeUser();
    })
    .catch(() => {});
});
