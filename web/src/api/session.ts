/**
 * Who is signed in. The key is kept in session storage: it goes when the tab is closed, and no other tab can read it.
 */
const KEY = 'switchyard.key';
/** Of what was made for this session alone, a key or a session of the service: it ends with it. */
const KEY_ID = 'switchyard.key-id';

interface Session {
  /** null: nobody is signed in. */
  key: string | null;
  /** Counts the sessions: a key that was renewed belongs to the same one. */
  number: number;
  /** Why the last session ended, for the sign-in page. */
  ended: string | null;
}

let current: Session = { key: sessionStorage.getItem(KEY), number: 0, ended: null };
const listeners = new Set<() => void>();

function change(next: Session): void {
  current = next;
  for (const listener of [...listeners]) listener();
}

export const session = {
  get: (): Session => current,
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
  signIn(key: string, ownId: string | null = null): void {
    sessionStorage.setItem(KEY, key);
    if (ownId === null) sessionStorage.removeItem(KEY_ID);
    else sessionStorage.setItem(KEY_ID, ownId);
    change({ key, number: current.number + 1, ended: null });
  },
  /** The same session goes on with another key. */
  renew(key: string): void {
    if (current.key === null) return;
    sessionStorage.setItem(KEY, key);
    change({ ...current, key });
  },
  ownId: (): string | null => sessionStorage.getItem(KEY_ID),
  /** Why nobody is signed in, for the sign-in page. */
  refuse(why: string): void {
    sessionStorage.removeItem(KEY);
    change({ ...current, key: null, ended: why });
  },
  /** @param why shown on the sign-in page; absent: the user asked for it */
  end(why: string | null = null): void {
    if (current.key === null) return;
    sessionStorage.removeItem(KEY);
    sessionStorage.removeItem(KEY_ID);
    change({ ...current, key: null, ended: why });
  },
};

export const KEY_REFUSED = 'Your session has ended: it has expired or was revoked. Sign in again.';
