/**
 * Talks to the service: GraphQL over HTTP, subscriptions over WebSocket (graphql-ws). Of Node it uses nothing that browsers do not have: the portal is
 * one of its users.
 */
import type { Client as Connection } from 'graphql-ws';
import { errorOf, errorOfSubscription, type Fault, ServiceError } from './errors.js';
import { pauseMs, sleep } from './retry.js';

export interface WebClientOptions {
  /** Of the GraphQL endpoint, such as http://localhost:4000/graphql. */
  url: string;
  /** API key; null: none was found. A function: it may change. */
  key: string | null | (() => string | null);
  /** How long a request may take; by default a submission of 10 000 jobs on a busy machine fits many times over. */
  requestTimeoutMs?: number;
  /** For a service that is not believed: a longer answer is not read, and redirects are not followed. */
  answerBytesMax?: number;
  /** How long the connection is kept when its last subscription has ended; by default it is closed at once. */
  lingerMs?: number;
  /** Told of the connection that subscriptions share. `closed`: none is left that needs it; `lost`: they cannot go on before there is another. */
  onConnection?: (state: 'connecting' | 'open' | 'closed' | 'lost') => void;
}

/** The text of an operation; its type is what it answers and asks for (`npm run codegen`). */
export type Document<Answer, Variables> = string & { readonly types?: (variables: Variables) => Answer };

interface Page {
  nodes: readonly unknown[];
  pageInfo: { hasNextPage: boolean; endCursor: string | null };
}
/** The fields of an answer that are lists in pages, and what they list. */
type Lists<Answer> = { [K in keyof Answer as Answer[K] extends Page ? K : never]: Answer[K] };
type Listed<List> = List extends { nodes: readonly (infer T)[] } ? T : never;

const REQUEST_TIMEOUT_MS = 120_000;
/** Objects in a page. */
const PAGE_SIZE = 500;
/** A connection is asked so often whether its other end is still there, and has so long to answer. */
const KEEP_ALIVE_MS = 10_000;

/** An answer that has data: without those of the fields that have errors. */
export interface Answered<Answer> {
  data: Answer;
  errors: readonly Fault[];
}

export class WebClient {
  /** Of all subscriptions; null: there was none yet. */
  #connection: Promise<Connection> | null = null;
  /** When what lost the connection together goes on together, ms since 1970. */
  #goesOnAt = 0;

  constructor(readonly options: WebClientOptions) {}

  /**
   * Sends a query or mutation and gives its data.
   *
   * @throws ServiceError
   */
  async request<Answer, Variables extends object = object>(
    document: Document<Answer, Variables>,
    variables: NoInfer<Variables>,
    signal?: AbortSignal,
  ): Promise<Answer> {
    const { data, errors } = await this.answer(document, variables, signal);
    if (errors.length > 0) throw errorOf(errors);
    return data;
  }

  /**
   * The same for who can use an answer with a part missing.
   *
   * @throws ServiceError when there are no data at all
   */
  async answer<Answer, Variables extends object = object>(
    document: Document<Answer, Variables>,
    variables: NoInfer<Variables>,
    signal?: AbortSignal,
  ): Promise<Answered<Answer>> {
    const { url } = this.options;
    const { status, text } = await this.#send(
      url,
      {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/graphql-response+json, application/json',
        },
        body: JSON.stringify({ query: document, variables }),
      },
      signal,
    );
    const body = parsed<{ data?: Answer | null }>(text);
    if (body?.data) return { data: body.data, errors: body.errors ?? [] };
    if (body?.errors?.length) throw errorOf(body.errors);
    throw new ServiceError(`${url} returned ${status} without a GraphQL response`, `HTTP_${status}`);
  }

  /**
   * Sends bytes to an address beside that of GraphQL, such as `/files/17?offset=0`, and gives the JSON of the answer.
   *
   * @throws ServiceError
   */
  async put<T>(
    path: string,
    body: Uint8Array,
    headers: Readonly<Record<string, string>>,
    signal?: AbortSignal,
  ): Promise<T> {
    const url = this.addressOf(path);
    const { status, text } = await this.#send(
      url,
      { method: 'PUT', headers, body: new Uint8Array(body) },
      signal,
    );
    const answer = parsed<T>(text);
    if (answer?.errors?.length) throw errorOf(answer.errors);
    if (answer === null || status >= 400)
      throw new ServiceError(`${url} returned ${status}`, `HTTP_${status}`);
    return answer;
  }

  /**
   * Asks for bytes at such an address. The body is the caller's to read.
   *
   * @throws ServiceError
   */
  async get(
    path: string,
    headers: Readonly<Record<string, string>> = {},
    signal: AbortSignal | null = null,
  ): Promise<Response> {
    const url = this.addressOf(path);
    const response = await fetch(url, { headers: { ...headers, ...this.#authorization }, signal }).catch(
      (error: unknown) => {
        throw new ServiceError(`no response from ${url} (${networkFault(error)})`, 'NETWORK');
      },
    );
    if (response.ok || response.status === 416) return response;
    const faults = parsed<object>(await response.text())?.errors;
    throw faults?.length
      ? errorOf(faults)
      : new ServiceError(`${url} returned ${response.status}`, `HTTP_${response.status}`);
  }

  /** Beside that of GraphQL. */
  addressOf(path: string): string {
    return this.options.url.replace(/\/graphql\/?$/, '') + path;
  }

  async #send(
    url: string,
    init: RequestInit,
    signal: AbortSignal | undefined,
  ): Promise<{ status: number; text: string }> {
    const { requestTimeoutMs = REQUEST_TIMEOUT_MS, answerBytesMax } = this.options;
    // Not AbortSignal.any: the signal of an agent lives as long as the process, and would keep what is tied to it.
    const abort = new AbortController();
    const onStop = (): void => abort.abort();
    const late = new Error(`no response within ${requestTimeoutMs / 1000} s`);
    const timer = setTimeout(() => abort.abort(late), requestTimeoutMs);
    signal?.addEventListener('abort', onStop);
    if (signal?.aborted) onStop();
    try {
      const response = await fetch(url, {
        ...init,
        headers: { ...init.headers, ...this.#authorization } as Record<string, string>,
        signal: abort.signal,
        redirect: answerBytesMax === undefined ? 'follow' : 'error',
      });
      const text = await (answerBytesMax === undefined ? response.text() : textOf(response, answerBytesMax));
      return { status: response.status, text };
    } catch (error) {
      throw new ServiceError(`no response from ${url} (${networkFault(error)})`, 'NETWORK');
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onStop);
    }
  }

  /** All pages of the list that is the field `list` of the answer; `document` takes `$first` and `$after`. */
  async *pages<Answer, Variables extends object, List extends keyof Lists<Answer>>(
    document: Document<Answer, Variables>,
    list: List,
    variables: Omit<NoInfer<Variables>, 'first' | 'after'>,
    signal?: AbortSignal,
  ): AsyncGenerator<readonly Listed<Answer[List]>[]> {
    let after: string | null = null;
    do {
      // All that the operation asks for: the compiler cannot put together again what it took apart.
      const asked = { ...variables, first: PAGE_SIZE, after } as unknown as Variables;
      const data: Answer = await this.request<Answer, object>(
        document as Document<Answer, object>,
        asked,
        signal,
      );
      const { nodes, pageInfo } = data[list] as Page;
      yield nodes as Listed<Answer[List]>[];
      after = pageInfo.hasNextPage ? pageInfo.endCursor : null;
    } while (after !== null);
  }

  /** The whole of such a list. */
  async all<Answer, Variables extends object, List extends keyof Lists<Answer>>(
    document: Document<Answer, Variables>,
    list: List,
    variables: Omit<NoInfer<Variables>, 'first' | 'after'>,
    signal?: AbortSignal,
  ): Promise<Listed<Answer[List]>[]> {
    const nodes: Listed<Answer[List]>[] = [];
    for await (const page of this.pages(document, list, variables, signal)) nodes.push(...page);
    return nodes;
  }

  /**
   * A subscription's data, over the connection that all subscriptions of this client share: it is made by the first and closed with the last. Ends when
   * the service completes it or `signal` is aborted.
   *
   * @throws ServiceError when the subscription is refused or the connection fails
   */
  async *subscribe<Answer, Variables extends object = object>(
    document: Document<Answer, Variables>,
    variables: NoInfer<Variables>,
    signal: AbortSignal,
  ): AsyncGenerator<Answer> {
    this.#connection ??= this.#connect().catch((error: unknown) => {
      this.#connection = null;
      throw errorOfSubscription(error);
    });
    const connection = await this.#connection;
    if (signal.aborted) return;
    const results = connection.iterate<Answer>({
      query: document,
      variables: { ...variables } as Record<string, unknown>,
    });
    const stop = (): void => void results.return?.();
    signal.addEventListener('abort', stop);
    try {
      for await (const { data, errors } of results) {
        if (errors?.length) throw errorOf(errors);
        if (data) yield data;
      }
    } catch (error) {
      if (!signal.aborted) throw errorOfSubscription(error);
    } finally {
      signal.removeEventListener('abort', stop);
      stop();
    }
  }

  /** The class of its sockets; undefined: that of the platform. */
  protected webSocket(): Promise<unknown> {
    return Promise.resolve();
  }

  async #connect(): Promise<Connection> {
    const { url, onConnection } = this.options;
    // Loaded here: most commands ask once and need neither.
    const [{ createClient }, webSocketImpl] = await Promise.all([import('graphql-ws'), this.webSocket()]);
    let socket: { terminate?(): void } | undefined;
    let silence: ReturnType<typeof setTimeout> | undefined;
    const connection = createClient({
      url: url.replace(/^http/, 'ws'),
      webSocketImpl,
      connectionParams: () => this.#authorization,
      // Whoever subscribes decides whether and from where to go on.
      retryAttempts: 0,
      lazyCloseTimeout: this.options.lingerMs ?? 0,
      keepAlive: KEEP_ALIVE_MS,
      on: {
        connecting: () => onConnection?.('connecting'),
        opened: (opened) => {
          socket = opened as typeof socket;
        },
        connected: () => onConnection?.('open'),
        // The other end may have vanished without a word: then no ping is answered.
        ping: (received) => {
          if (received) return;
          silence = setTimeout(() => {
            connection.terminate();
            socket?.terminate?.();
          }, KEEP_ALIVE_MS);
        },
        pong: (received) => {
          if (received) clearTimeout(silence);
        },
        closed: (event) => {
          clearTimeout(silence);
          onConnection?.((event as { code?: number }).code === 1000 ? 'closed' : 'lost');
        },
      },
    });
    return connection;
  }

  /** Makes the connection anew, such as with another key: `updates` go on, `subscribe` fails. */
  reconnect(): void {
    this.#connection?.then((connection) => connection.terminate()).catch(() => {});
  }

  /** Ends all subscriptions. */
  close(): void {
    const connection = this.#connection;
    this.#connection = null;
    // One that was just being made fails.
    connection?.then((is) => is.dispose()).catch(() => {});
  }

  /**
   * The updates of a subscription without a gap across lost connections: each attempt continues behind the last cursor seen. Updates without a cursor
   * say everything, and the latest comes again. Ends when the service completes it or `signal` is aborted.
   *
   * @param field the subscription's field, which gives the updates; `document` takes `$after`
   * @param onRetry told why a connection was lost
   * @throws ServiceError when the service refuses for good
   */
  async *updates<Answer, Variables extends object = object, Field extends keyof Answer = keyof Answer>(
    document: Document<Answer, Variables>,
    field: Field,
    variables: Omit<NoInfer<Variables>, 'after'>,
    {
      after,
      signal,
      onRetry,
    }: { after: string | null; signal: AbortSignal; onRetry?: (why: string) => void },
  ): AsyncGenerator<NonNullable<Answer[Field]>> {
    let cursor = after;
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        const asked = cursor === null ? variables : { ...variables, after: cursor };
        for await (const answer of this.subscribe(document as Document<Answer, object>, asked, signal)) {
          const update = answer[field];
          if (!update) continue;
          cursor = (update as { cursor?: string }).cursor ?? cursor;
          failures = 0;
          yield update;
        }
        return;
      } catch (error) {
        if (!(error instanceof ServiceError && error.mayPass)) throw error;
        onRetry?.(error.message);
        const now = Date.now();
        if (this.#goesOnAt <= now) this.#goesOnAt = now + pauseMs(failures, error);
        await sleep(Math.max(this.#goesOnAt - now, error.retryAfterMs ?? 0), signal);
      }
    }
  }

  get #authorization(): { authorization?: string } {
    const { key } = this.options;
    const is = typeof key === 'function' ? key() : key;
    return is ? { authorization: `Bearer ${is}` } : {};
  }
}

async function textOf(response: Response, bytesMax: number): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = '';
  for (let bytes = 0; reader; ) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.length;
    if (bytes > bytesMax) {
      void reader.cancel();
      throw new Error(`the response has more than ${bytesMax} bytes`);
    }
    text += decoder.decode(value, { stream: true });
  }
  return text + decoder.decode();
}

function parsed<T>(text: string): (T & { errors?: Fault[] }) | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Why a request came to nothing: the code of the network's error, where there is one. */
function networkFault(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: { code?: string; message?: string } };
  return cause?.code ?? cause?.message ?? message ?? String(error);
}
