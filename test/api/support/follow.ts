/** Subscriptions as tests follow them. */
import type { Client } from 'graphql-ws';
import { expect } from 'vitest';
import type { Json } from './api.js';

export interface Followed<T> {
  readonly got: T[];
  /** How it ended: null while it is open. */
  readonly end: { completed: true } | { error: unknown } | null;
  stop(): void;
}

/** A subscription, and what it has said until now. */
export function follow<T = Json>(client: Client, query: string, variables: Json = {}): Followed<T> {
  const got: T[] = [];
  const state: { end: Followed<T>['end'] } = { end: null };
  const stop = client.subscribe<Record<string, T>>(
    { query, variables },
    {
      next({ data, errors }) {
        // A subscription that is refused says so in an answer, which is its last.
        if (errors) state.end = { error: errors };
        else got.push(Object.values(data ?? {})[0] as T);
      },
      error(error) {
        state.end = { error };
      },
      complete() {
        state.end ??= { completed: true };
      },
    },
  );
  return {
    got,
    get end() {
      return state.end;
    },
    stop,
  };
}

/** Waits for the end of a subscription. */
export async function settled<T>(subscription: Followed<T>): Promise<Followed<T>> {
  await expect.poll(() => subscription.end).not.toBeNull();
  return subscription;
}
