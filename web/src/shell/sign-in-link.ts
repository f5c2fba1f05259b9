/**
 * Signing in by a link with a key that works once: the portal replaces it by one for this session. The key
 * is in the fragment of the address, which browsers send to nobody.
 */
import { ask } from '../api/client';
import { session } from '../api/session';
import { RevokeSessionKeyDocument, RotateKeyDocument } from './shell.gql';

const LINK = /^#sign-in=(apikey_\d+)\.(.+)$/;
const REFUSED = 'This link has been used already, or has expired. Sign in with a key.';

export async function signInByLink(): Promise<void> {
  const [, id, secret] = LINK.exec(location.hash) ?? [];
  if (!id || !secret) return;
  history.replaceState(history.state, '', location.pathname + location.search);
  session.signIn(secret);
  try {
    const { rotateApiKey } = await ask(RotateKeyDocument, { id, name: 'portal' });
    session.signIn(rotateApiKey.secret, rotateApiKey.apiKey.id);
  } catch (error) {
    session.refuse(session.get().key === null ? REFUSED : (error as Error).message);
  }
}

/** A key that was made for this session ends with it. */
export function signOut(): void {
  const id = session.ownId();
  if (id !== null) ask(RevokeSessionKeyDocument, { id }).catch(() => {});
  session.end();
}
