/**
 * Signing in by a link with a key that works once: with it the portal makes a key for this session, and revokes it. The key
 * is in the fragment of the address, which browsers send to nobody.
 */
import { ask } from '../api/client';
import { session } from '../api/session';
import { CreateSessionKeyDocument, RevokeSessionKeyDocument } from './shell.gql';

const LINK = /^#sign-in=(apikey_\d+)\.(.+)$/;
const SESSION_HOURS = 12;
const REFUSED = 'This link has been used already, or has expired. Sign in with a key.';

export async function signInByLink(): Promise<void> {
  const [, linkId, secret] = LINK.exec(location.hash) ?? [];
  if (!linkId || !secret) return;
  history.replaceState(history.state, '', location.pathname + location.search);
  session.signIn(secret);
  try {
    const expiresAt = new Date(Date.now() + SESSION_HOURS * 3_600_000).toISOString();
    const { createApiKey } = await ask(CreateSessionKeyDocument, { name: 'portal', expiresAt });
    session.signIn(createApiKey.secret, createApiKey.apiKey.id);
    await ask(RevokeSessionKeyDocument, { id: linkId });
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
