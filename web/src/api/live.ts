/**
 * News over one WebSocket. A subscription goes on behind its cursor when the connection was lost: the cursor of the last
 * update is written into the operation's variables, which graphql-ws sends again when it is back. Updates are handed on once
 * per frame, however many came.
 */
import { type Client, CloseCode, createClient } from 'graphql-ws';
import type { AnyVariables, TypedDocumentNode } from 'urql';
import { KEY_REFUSED, session } from './session';
import { createStore } from './store';

/** Updates that wait for the next frame. Beyond, the subscriber is told to query again instead. */
const BATCH_MAX = 5_000;
/** A tab in the background has no frames. */
const HIDDEN_MS = 500;
const PONG_WAIT_MS = 8_000;
const RETRY_MAX_MS = 5_000;

/** Whether news arrive. `lost`: they did, and do not now. */
export type Connection = 'idle' | 'connecting' | 'open' | 'lost';
export const connection = createStore<Connection>('idle');
/** Counts the times that a lost connection came back: whoever shows what was queried queries again. */
export const reconnections = createStore(0);

let client: Client | null = null;

function connect(): Client {
  let silence: ReturnType<typeof setTimeout> | undefined;
  let socket: WebSocket | null = null;
  return createClient({
    url: `${location.origin.replace(/^http/, 'ws')}/graphql`,
    connectionParams: () => ({ authorization: `Bearer ${session.get().key}` }),
    lazyCloseTimeout: 3_000,
    keepAlive: 10_000,
    retryAttempts: Number.POSITIVE_INFINITY,
    shouldRetry: () => session.get().key !== null,
    retryWait: (retries) =>
      new Promise((resolve) => {
        const wait = Math.min(RETRY_MAX_MS, 250 * 2 ** Math.min(retries, 6)) * (0.75 + Math.random() / 2);
        const timer = setTimeout(go, wait);
        // Back on the network: no reason to wait longer.
        window.addEventListener('online', go, { once: true });
        function go(): void {
          clearTimeout(timer);
          window.removeEventListener('online', go);
          resolve();
        }
      }),
    on: {
      opened: (opened) => {
        socket = opened as WebSocket;
      },
      connected: () => {
        const before = connection.get();
        connection.set('open');
        if (before === 'lost') reconnections.set(reconnections.get() + 1);
      },
      connecting: () => {
        if (connection.get() === 'idle') connection.set('connecting');
      },
      closed: (event) => {
        const { code, wasClean } = event as CloseEvent;
        if (code === CloseCode.Unauthorized) session.end(KEY_REFUSED);
        else connection.set(wasClean && code === 1000 ? 'idle' : 'lost');
      },
      ping: (received) => {
        if (!received) silence = setTimeout(() => socket?.close(4408, 'no response'), PONG_WAIT_MS);
      },
      pong: (received) => {
        if (received) clearTimeout(silence);
      },
    },
  });
}

let followed = session.get().number;
session.subscribe(() => {
  const { key, number } = session.get();
  if (key !== null && number === followed) {
    // Its key was renewed: the service would end the connection when the old one expires.
    client?.terminate();
    return;
  }
  followed = number;
  // A connection that was just being made fails.
  void Promise.resolve(client?.dispose()).catch(() => {});
  client = null;
  connection.set('idle');
});

/** Without a cursor: the latest says everything, and is sent anew with each connection. */
interface Update {
  cursor?: string;
  resyncRequired?: boolean;
}

export interface Follower<U> {
  /** Updates of the time since the last frame, in order. */
  onUpdates(updates: U[]): void;
  /** Updates were left out: query again. What comes next is news. */
  onResync(): void;
}

/**
 * Follows the one field of a subscription behind `variables.after`, or from now on. Answers with what ends it.
 */
export function follow<F extends string, U extends object, V extends AnyVariables>(
  document: TypedDocumentNode<Record<F, U>, V>,
  field: F,
  variables: NoInfer<V>,
  follower: Follower<U>,
): () => void {
  if (session.get().key === null) return () => {};
  client ??= connect();
  const payload = {
    // A document of ours is its text (scripts/codegen-documents.mjs); the type carries the operation's.
    query: document as unknown as string,
    variables: { ...variables } as Record<string, unknown>,
  };
  let waiting: U[] = [];
  let scheduled: (() => void) | null = null;
  let ended = false;

  function deliver(): void {
    scheduled = null;
    const batch = waiting;
    waiting = [];
    if (batch.length > 0 && !ended) follower.onUpdates(batch);
  }
  function schedule(): void {
    if (scheduled !== null) return;
    if (globalThis.document.hidden) {
      const timer = setTimeout(deliver, HIDDEN_MS);
      scheduled = () => clearTimeout(timer);
    } else {
      const frame = requestAnimationFrame(deliver);
      scheduled = () => cancelAnimationFrame(frame);
    }
  }

  const stop = client.subscribe<Record<F, U>>(payload, {
    next({ data }) {
      const update = data?.[field];
      if (!update) return;
      const { cursor, resyncRequired } = update as Update;
      if (cursor !== undefined) payload.variables.after = cursor;
      if (resyncRequired) {
        waiting = [];
        follower.onResync();
        return;
      }
      if (waiting.length >= BATCH_MAX) {
        waiting = [];
        follower.onResync();
        return;
      }
      waiting.push(update);
      schedule();
    },
    error(reason) {
      // What can be tried again graphql-ws has tried; the rest is a refusal of the operation itself.
      if (Array.isArray(reason))
        console.error(`${field}: ${reason.map((error) => error.message).join('; ')}`);
    },
    complete() {},
  });
  return () => {
    ended = true;
    scheduled?.();
    stop();
  };
}
