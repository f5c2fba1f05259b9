/** Talks to the service: GraphQL over HTTP, subscriptions over WebSocket (graphql-ws). */
import type { WebSocket as Socket } from 'ws';
import { errorOf, errorOfSubscription, type Fault, ServiceError } from './errors.js';
import { pauseMs, sleep } from './retry.js';

export interface ClientOptions {
  /** Of the GraphQL endpoint, such as http://localhost:4000/graphql. */
  url: string;
  /** API key; null: none was found. */
  key: string | null;
  /** How long a request may take; by default a submission of 10 000 jobs on a busy machine fits many times over. */
  requestTimeoutMs?: number;
  /** For a service that is not believed: a longer answer is not read, and redirects are not followed. */
  answerBytesMax?: number;
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

export class Client {
  constructor(readonly options: ClientOptions) {}

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
    if (body?.errors?.length) throw errorOf(body.errors);
    if (!body?.data)
      throw new ServiceError(`${url} returned ${status} without a GraphQL response`, `HTTP_${status}`);
    return body.data;
  }

  /**
   * Sends bytes to an address beside that of GraphQL, such as `/files/17?offset=0`, and gives the JSON of the answer.
   *
   * @throws ServiceError
   */
  async put<T>(
    path: string,
    body: Buffer,
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
   * A subscription's data, over one connection. Ends when the service completes it or `signal` is aborted.
   *
   * @throws ServiceError when the subscription is refused or the connection fails
   */
  async *subscribe<Answer, Variables extends object = object>(
    document: Document<Answer, Variables>,
    variables: NoInfer<Variables>,
    signal: AbortSignal,
  ): AsyncGenerator<Answer> {
    // Loaded here: most commands ask once and need neither.
    const [{ createClient }, { WebSocket }] = await Promise.all([import('graphql-ws'), import('ws')]);
    if (signal.aborted) return;
    let socket: Socket | undefined;
    let silence: NodeJS.Timeout | undefined;
    const client = createClient({
      url: this.options.url.replace(/^http/, 'ws'),
      webSocketImpl: WebSocket,
      connectionParams: this.#authorization,
      // Whoever subscribes decides whether and from where to go on.
      retryAttempts: 0,
      keepAlive: KEEP_ALIVE_MS,
      on: {
        opened: (opened) => {
          socket = opened as Socket;
        },
        // The other end may have vanished without a word: then no ping is answered.
        ping: (received) => {
          if (!received) silence = setTimeout(() => socket?.terminate(), KEEP_ALIVE_MS);
        },
        pong: (received) => {
          if (received) clearTimeout(silence);
        },
        closed: () => clearTimeout(silence),
      },
    });
    const results = client.iterate<Answer>({
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
      await client.dispose();
    }
  }

  /**
   * The updates of a subscription without a gap across lost connections: each attempt continues behind the last cursor seen.
   * Ends when the service completes it or `signal` is aborted.
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
  ): AsyncGenerator<Answer[Field] & { cursor: string }> {
    let cursor = after;
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        const asked = { ...variables, after: cursor };
        for await (const answer of this.subscribe(document as Document<Answer, object>, asked, signal)) {
          const update = answer[field] as Answer[Field] & { cursor: string };
          if (!update) continue;
          cursor = update.cursor;
          failures = 0;
          yield update;
        }
        return;
      } catch (error) {
        if (!(error instanceof ServiceError && error.mayPass)) throw error;
        onRetry?.(error.message);
        await sleep(pauseMs(failures, error), signal);
      }
    }
  }

  get #authorization(): { authorization?: string } {
    return this.options.key ? { authorization: `Bearer ${this.options.key}` } : {};
  }
}

async function textOf(response: Response, bytesMax: number): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of response.body ?? []) {
    bytes += piece.length;
    if (bytes > bytesMax) throw new Error(`the response has more than ${bytesMax} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
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
