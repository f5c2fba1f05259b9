/**
 * News over the connection to the service. A subscription goes on behind its cursor when the connection was lost. Updates are handed on once per frame,
 * however many came.
 */
import type { AnyVariables, TypedDocumentNode } from 'urql';
import type { ServiceError } from '../../../src/client/browser';
import { noticed, service, textOf } from './service';
import { session } from './session';

/** Updates that wait for the next frame. Beyond, the subscriber is told to query again instead. */
const BATCH_MAX = 5_000;
/** A tab in the background has no frames. */
const HIDDEN_MS = 500;

interface Update {
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
  const stop = new AbortController();
  let waiting: U[] = [];
  let scheduled: (() => void) | null = null;

  function deliver(): void {
    scheduled = null;
    const batch = waiting;
    waiting = [];
    if (batch.length > 0 && !stop.signal.aborted) follower.onUpdates(batch);
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

  async function take(): Promise<void> {
    const { after = null, ...others } = { ...variables } as { after?: string | null };
    const text = textOf<Record<F, U>, object>(document as TypedDocumentNode<Record<F, U>, object>);
    const updates = service.updates(text, field, others, { after, signal: stop.signal });
    for await (const update of updates) {
      if ((update as Update).resyncRequired || waiting.length >= BATCH_MAX) {
        waiting = [];
        follower.onResync();
        continue;
      }
      waiting.push(update);
      schedule();
    }
  }
  take().catch((error: unknown) => {
    const { code, message } = noticed(error) as Partial<ServiceError>;
    // What may pass has been tried again, and a session that has ended is told by the sign-in page; the rest is a refusal of the operation itself.
    if (code !== 'UNAUTHENTICATED') console.error(`${field}: ${message}`);
  });
  return () => {
    stop.abort();
    scheduled?.();
  };
}
