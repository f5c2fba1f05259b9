/**
 * Signing in by a link with a key that works once: the portal replaces it by one for this session. The key
 * is in the fragment of the address, which browsers send to nobody.
 */
import { ask } from '../api/client';
import { session } from '../api/session';
import { RevokeSessionKeyDocument, RotateKeyDocument } from './shell.gql';

const LINK = /^#sign-in=(apikey_\d+)\.(.+)$/;
const REFUSED = 'This link has been used already, or has expired. Sign in with a key.';

/** @param mayReplace asks whether the session that there is may end */
export async function signInByLink(mayReplace: () => Promise<boolean>): Promise<void> {
  const [, id, secret] = LINK.exec(location.hash) ?? [];
  if (!id || !secret) return;
  history.replaceState(history.state, '', location.pathname + location.search);
  if (session.get().key !== null) {
    if (!(await mayReplace())) return;
    signOut();
  }
  session.signIn(secret);
  try {
    const { rotateApiKey } = await ask(RotateKeyDocument, { id, name: 'portal' });
    session.signIn(rotateApiKey.secret, rotateApiKey.apiKey.id);
  } catch (error) {
    session.refuse(session.get().key === null ? REFUSED : (error as Error).message);
  }
}

/** A link that is opened in the tab of the portal changes nothing but the fragment. */
export function watchForLinks(): void {
  addEventListener('hashchange', () => {
    if (LINK.test(location.hash)) location.reload();
  });
}

/** A key that was made for this session ends with it. */
export function signOut(): void {
  const id = session.ownId();
  if (id !== null) ask(RevokeSessionKeyDocument, { id }).catch(() => {});
  session.end();
}
