/**
 * Links that sign in, once. One has a key, which the portal replaces by one for this session; the other an invitation to set a password.
 * Both secrets are in the fragment of the address, which browsers send to nobody.
 */
import { ask } from '../api/client';
import { session } from '../api/session';
import { EndSessionDocument, RevokeSessionKeyDocument, RotateKeyDocument } from './shell.gql';

const LINK = /^#sign-in=(apikey_\d+)\.(.+)$/;
const INVITATION = /^#invitation=(.+)$/;
const REFUSED = 'This link has already been used or has expired. Sign in with a key.';

interface Asking {
  /** Whether the session that there is may end. */
  mayReplace(): Promise<boolean>;
  /** Has a password set by the invitation, unless it is refused. */
  setPassword(invitation: string): Promise<void>;
}

export async function signInByLink({ mayReplace, setPassword }: Asking): Promise<void> {
  const [, id, secret] = LINK.exec(location.hash) ?? [];
  const [, invitation] = INVITATION.exec(location.hash) ?? [];
  if ((!id || !secret) && !invitation) return;
  history.replaceState(history.state, '', location.pathname + location.search);
  if (session.get().key !== null) {
    if (!(await mayReplace())) return;
    signOut();
  }
  if (invitation) return setPassword(invitation);
  if (id && secret) await signInByKey(id, secret);
}

async function signInByKey(id: string, secret: string): Promise<void> {
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
    if (LINK.test(location.hash) || INVITATION.test(location.hash)) location.reload();
  });
}

/** What was made for this session ends with it. */
export function signOut(): void {
  const id = session.ownId();
  if (id?.startsWith('session_')) ask(EndSessionDocument, { id }).catch(() => {});
  else if (id !== null) ask(RevokeSessionKeyDocument, { id }).catch(() => {});
  session.end();
}
