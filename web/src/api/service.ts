/** The service as the portal speaks to it, by the client that the command line and agents have, too: requests, errors, retries, and one connection. */
import type { TypedDocumentNode } from 'urql';
import { type Document, ServiceError, WebClient } from '../../../src/client/browser';
import { KEY_REFUSED, session } from './session';
import { createStore } from './store';

/** Whether news arrive. `lost`: they did, and do not now. */
export type Connection = 'idle' | 'connecting' | 'open' | 'lost';
export const connection = createStore<Connection>('idle');
/** Counts the times that a lost connection came back: whoever shows what was queried queries again. */
export const reconnections = createStore(0);

/** From one page to the next the connection stays. */
const LINGER_MS = 3_000;

export const serviceFor = (key: () => string | null): WebClient =>
  new WebClient({ url: `${location.origin}/graphql`, key, lingerMs: LINGER_MS, onConnection });

function onConnection(state: 'connecting' | 'open' | 'closed' | 'lost'): void {
  const before = connection.get();
  if (state === 'open' && before === 'lost') reconnections.set(reconnections.get() + 1);
  if (state === 'connecting' && before !== 'idle') return;
  connection.set(state === 'closed' ? 'idle' : state);
}

/** By the key of the session. */
export const service = serviceFor(() => session.get().key);

let followed = session.get().number;
session.subscribe(() => {
  const { key, number } = session.get();
  // Its key was renewed: the service would end the connection when the old one expires.
  if (key !== null && number === followed) return service.reconnect();
  followed = number;
  service.close();
  connection.set('idle');
});

/** A document of ours is its text (scripts/codegen-documents.mjs), whatever else urql makes of it. */
export const textOf = <D, V>(document: TypedDocumentNode<D, V>): Document<D, V> =>
  document as unknown as Document<D, V>;

/** The same error; a session whose key is refused has ended. */
export function noticed<E>(error: E): E {
  if (error instanceof ServiceError && error.code === 'UNAUTHENTICATED') session.end(KEY_REFUSED);
  return error;
}

/** An error of the service as a sentence for people. */
export function sentenceOf({ code, message }: ServiceError): string {
  if (code === 'NETWORK') return 'The service does not respond.';
  if (code.startsWith('HTTP_')) return `The service responded with status ${code.slice(5)}.`;
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}${/[.!?]$/.test(message) ? '' : '.'}`;
}
