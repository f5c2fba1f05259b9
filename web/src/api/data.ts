/** What pages show: a query that is kept up to date. */
import { useCallback, useEffect, useMemo, useRef } from 'react';
import {
  type AnyVariables,
  type CombinedError,
  type TypedDocumentNode,
  type UseMutationExecute,
  useMutation,
  useQuery,
} from 'urql';
import { mayPass, messageOf } from './client';
import { type Follower, follow } from './live';
import { reconnections } from './service';
import { useStore } from './store';

/** An answer that has not come in this time is asked for anew. */
const PATIENCE_MS = 30_000;

export interface Data<D> {
  data: D | undefined;
  error: CombinedError | undefined;
  /** Nothing to show yet. */
  loading: boolean;
  refresh(): void;
}

/**
 * @param everyMs asks again so often while the page is visible; absent: only when `refresh` is called, or when a lost
 * connection has come back
 */
export function useData<D, V extends AnyVariables>(
  query: TypedDocumentNode<D, V>,
  variables: V,
  { everyMs, pause = false }: { everyMs?: number; pause?: boolean } = {},
): Data<D> {
  const context = useMemo(() => ({ requestPolicy: 'cache-and-network' as const }), []);
  const [result, execute] = useQuery<D, V>({ query, variables, pause, context } as Parameters<
    typeof useQuery<D, V>
  >[0]);
  /** Since when an answer is awaited; null: it has come. */
  const since = useRef<number | null>(null);
  if (result.fetching || result.stale) since.current ??= Date.now();
  else since.current = null;
  const refresh = useCallback(() => {
    since.current = Date.now();
    execute({ requestPolicy: 'network-only' });
  }, [execute]);
  const connections = useStore(reconnections);
  const seen = useRef(connections);
  useEffect(() => {
    if (seen.current !== connections && !pause) refresh();
    seen.current = connections;
  }, [connections, pause, refresh]);
  useEffect(() => {
    if (everyMs === undefined || pause) return;
    const timer = setInterval(() => {
      // To ask again gives up what is on its way: a slow service would never be heard.
      const isAwaited = since.current !== null && Date.now() - since.current < PATIENCE_MS;
      if (!document.hidden && !isAwaited) refresh();
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs, pause, refresh]);
  // What was shown stays while the service is away: an answer that did not come takes nothing back.
  const asked = JSON.stringify(variables);
  const shown = useRef<{ query: unknown; asked: string; data: D } | null>(null);
  if (result.data && !result.stale) shown.current = { query, asked, data: result.data };
  const held =
    shown.current?.query === query && shown.current.asked === asked ? shown.current.data : undefined;
  const away = result.error !== undefined && mayPass(result.error) && held !== undefined;
  // Null where the query as a whole was refused.
  const data = result.data ?? (away ? held : undefined);
  return {
    data,
    error: away ? undefined : result.error,
    loading: !pause && !data && result.error === undefined,
    refresh,
  };
}

/** Calls `work` at once, and then at most every `ms` however often it is asked for; what was asked last is done. */
export function useThrottled(work: () => void, ms: number): () => void {
  const latest = useRef(work);
  latest.current = work;
  const state = useRef({ last: 0, timer: undefined as ReturnType<typeof setTimeout> | undefined });
  useEffect(() => () => clearTimeout(state.current.timer), []);
  return useCallback(() => {
    const now = Date.now();
    const { last, timer } = state.current;
    if (timer !== undefined) return;
    const run = (): void => {
      state.current = { last: Date.now(), timer: undefined };
      latest.current();
    };
    if (now - last >= ms) run();
    else state.current.timer = setTimeout(run, ms - (now - last));
  }, [ms]);
}

/** Follows a subscription while the component is there; anew when `variables` change. */
export function useFollow<F extends string, U extends object, V extends AnyVariables>(
  document: TypedDocumentNode<Record<F, U>, V>,
  field: F,
  variables: NoInfer<V> | null,
  follower: Follower<NoInfer<U>>,
): void {
  const latest = useRef(follower);
  latest.current = follower;
  const key = JSON.stringify(variables);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for the variables
  useEffect(() => {
    if (variables === null) return;
    return follow(document, field, variables, {
      onUpdates: (updates) => latest.current.onUpdates(updates),
      onResync: () => latest.current.onResync(),
    });
  }, [document, field, key]);
}

/** A mutation that throws with a sentence for people when it fails. */
export function useAction<D, V extends AnyVariables>(
  document: TypedDocumentNode<D, V>,
): { run: (variables: V) => Promise<D>; busy: boolean } {
  const [{ fetching }, execute] = useMutation<D, V>(document);
  const latest = useRef<UseMutationExecute<D, V>>(execute);
  latest.current = execute;
  const run = useCallback(async (variables: V): Promise<D> => {
    const { data, error } = await latest.current(variables);
    if (error || !data) throw new Error(error ? messageOf(error) : 'The service does not respond.');
    return data;
  }, []);
  return { run, busy: fetching };
}
