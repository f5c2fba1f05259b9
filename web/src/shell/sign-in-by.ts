/** How people may sign in here, and signing in before anybody is known: by user name and password, and by an invitation. */
import { useEffect, useState } from 'react';
import { session } from '../api/session';

/** What `/portal.json` says. */
export interface SignInBy {
  /** The identity provider; null: there is none. */
  oidc: { issuer: string; clientId: string; scope: string; audience: string } | null;
  passwords: boolean;
}

let asked: Promise<SignInBy> | null = null;

/** Where it cannot be asked: a key only. */
export function askSignInBy(): Promise<SignInBy> {
  asked ??= fetch('/portal.json')
    .then(async (response) => (await response.json()) as SignInBy)
    .catch(() => {
      asked = null;
      return { oidc: null, passwords: false };
    });
  return asked;
}

/** Whether users may have passwords; not before it is known. */
export function usePasswords(): boolean {
  const [is, setIs] = useState(false);
  useEffect(() => void askSignInBy().then(({ passwords }) => setIs(passwords)), []);
  return is;
}

interface Begun {
  secret: string;
  session: string;
}

/** Throws what is wrong as a sentence. */
async function post<T>(path: string, body: object): Promise<T> {
  const response = await fetch(`/sign-in/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  }).catch(() => {
    throw new Error('The service does not respond.');
  });
  const answer = (await response.json().catch(() => ({}))) as T & { errors?: { message: string }[] };
  if (response.ok) return answer;
  const message = answer.errors?.[0]?.message.replace(/^password: /, '');
  throw new Error(
    message
      ? `${message.charAt(0).toUpperCase()}${message.slice(1)}.`
      : `The service responded with status ${response.status}.`,
  );
}

const begin = ({ secret, session: id }: Begun): void => session.signIn(secret, id);

export const signInByPassword = (user: string, password: string): Promise<void> =>
  post<Begun>('password', { user, password }).then(begin);

/** Whom an invitation is for. */
export const lookAtInvitation = (invitation: string): Promise<{ user: string }> =>
  post('invitation', { invitation });

/** Sets the password of whom it is for, and signs them in. */
export const acceptInvitation = (invitation: string, password: string): Promise<void> =>
  post<Begun>('invitation', { invitation, password }).then(begin);
