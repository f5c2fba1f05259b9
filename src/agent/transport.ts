/** GraphQL with the service: requests over HTTP, a subscription over graphql-ws. */
import { type Client, createClient } from 'graphql-ws';
import WebSocket from 'ws';

const REQUEST_TIMEOUT_MS = 30_000;
const KEEP_ALIVE_MS = 10_000;

/** The service did not do what it was asked for. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  constructor(
    message: string,
    /** `extensions.code` of the first error, `HTTP_n`, or `NETWORK`. */
    readonly code: string,
    /** When to try again, where the service says so. */
    readonly retryAfterMs: number | null = null,
  ) {
    super(message);
  }
}

interface GraphqlError {
  message: string;
  extensions?: { code?: string; retryAfterS?: number };
}

/** @param url the GraphQL endpoint, `http://…/graphql` */
export class Transport {
  private socket: Client | null = null;

  constructor(
    private readonly url: string,
    private readonly key: string,
  ) {}

  /**
   * One query or mutation.
   *
   * @throws ServiceError
   */
  async request<T>(query: string, variables: object, stop: AbortSignal): Promise<T> {
    let response: Response;
    let text: string;
    const abort = new AbortController();
    const timer = setTimeout(
      () => abort.abort(new Error(`no answer within ${REQUEST_TIMEOUT_MS} ms`)),
      REQUEST_TIMEOUT_MS,
    );
    const onStop = (): void => abort.abort();
    stop.addEventListener('abort', onStop);
    try {
      response = await fetch(this.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/graphql-response+json, application/json',
          authorization: `Bearer ${this.key}`,
        },
        body: JSON.stringify({ query, variables }),
        signal: abort.signal,
      });
      text = await response.text();
    } catch (error) {
      throw new ServiceError(reason(error), 'NETWORK');
    } finally {
      clearTimeout(timer);
      stop.removeEventListener('abort', onStop);
    }
    const body = parse(text);
    const failed = body?.errors?.[0];
    if (failed) throw serviceError(failed, response.status);
    if (!body?.data) throw new ServiceError(`HTTP status ${response.status}`, `HTTP_${response.status}`);
    return body.data as T;
  }

  /**
   * Follows a subscription until it ends.
   *
   * @param next is given each result's data
   * @returns when the service completes it or `stop` is signalled
   * @throws ServiceError when the connection or the subscription fails
   */
  async follow<T>(
    query: string,
    variables: object,
    next: (data: T) => void,
    stop: AbortSignal,
  ): Promise<void> {
    this.socket ??= this.connect();
    const socket = this.socket;
    let leave = (): void => {};
    const onStop = (): void => leave();
    stop.addEventListener('abort', onStop);
    await new Promise<void>((resolve, reject) => {
      leave = socket.subscribe<T>(
        { query, variables: variables as Record<string, unknown> },
        {
          next: ({ data, errors }) => {
            const failed = errors?.[0] as GraphqlError | undefined;
            if (failed) {
              reject(serviceError(failed, 200));
              leave();
            } else if (data) next(data);
          },
          error: (error) => {
            const failed = Array.isArray(error) ? (error[0] as GraphqlError) : null;
            reject(failed ? serviceError(failed, 200) : new ServiceError(reason(error), 'NETWORK'));
          },
          complete: resolve,
        },
      );
    }).finally(() => stop.removeEventListener('abort', onStop));
  }

  async close(): Promise<void> {
    await this.socket?.dispose();
    this.socket = null;
  }

  private connect(): Client {
    let silence: NodeJS.Timeout | undefined;
    let current: WebSocket | undefined;
    return createClient({
      url: this.url.replace(/^http/, 'ws'),
      webSocketImpl: WebSocket,
      connectionParams: { authorization: `Bearer ${this.key}` },
      // The agent asks again itself: it wants to start from a full list each time.
      retryAttempts: 0,
      lazyCloseTimeout: 0,
      keepAlive: KEEP_ALIVE_MS,
      on: {
        opened: (opened) => {
          current = opened as WebSocket;
        },
        // A connection whose other end has vanished without a word: no answer to a ping.
        ping: (received) => {
          if (!received) silence = setTimeout(() => current?.terminate(), KEEP_ALIVE_MS);
        },
        pong: (received) => {
          if (received) clearTimeout(silence);
        },
        closed: () => clearTimeout(silence),
      },
    });
  }
}

function serviceError({ message, extensions }: GraphqlError, status: number): ServiceError {
  const afterS = extensions?.retryAfterS;
  // A body that is too large was refused before anybody looked for a better code.
  const code = status === 413 ? 'HTTP_413' : (extensions?.code ?? `HTTP_${status}`);
  return new ServiceError(message, code, typeof afterS === 'number' ? afterS * 1000 : null);
}

function parse(text: string): { data?: unknown; errors?: GraphqlError[] } | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** What went wrong with a connection, in words. */
function reason(error: unknown): string {
  if (error instanceof Error) {
    const cause = error.cause instanceof Error ? `: ${error.cause.message}` : '';
    return `${error.message}${cause}`;
  }
  const { code, reason: why } = (error ?? {}) as { code?: number; reason?: string };
  if (code !== undefined) return `connection closed (${code}${why ? ` ${why}` : ''})`;
  return (error as { message?: string })?.message ?? String(error);
}
