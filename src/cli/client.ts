/** Talks to the service: GraphQL over HTTP, subscriptions over WebSocket. */
import { LATEST_CURSOR } from './documents.js';
import { CliError, ExitCode, exitCodeOf } from './errors.js';

export interface ClientOptions {
  /** Of the GraphQL endpoint, such as http://localhost:4000/graphql. */
  url: string;
  /** API key; null: none was found. */
  key: string | null;
  /** Where a key was looked for, for the message when there is none. */
  keySource: string;
}

interface Connection<T> {
  nodes: T[];
  pageInfo: { hasNextPage: boolean; endCursor: string | null };
}

interface GraphQLFault {
  message: string;
  path?: readonly (string | number)[];
  extensions?: { code?: string; retryAfterS?: number; requestId?: string; [name: string]: unknown };
}

/** An error that the API answered with. */
export class ApiError extends CliError {
  constructor(readonly faults: readonly GraphQLFault[]) {
    const [first] = faults;
    const more = faults.length > 1 ? ` (and ${faults.length - 1} more)` : '';
    super(`${sentence(first)}${more}`, exitCodeOf(codeOf(first)));
  }

  /** `ErrorCode` of the first fault. */
  get code(): string {
    return codeOf(this.faults[0]);
  }

  /** Seconds after which the service wants to be asked again, where it said so. */
  get retryAfterS(): number | null {
    return this.faults[0]?.extensions?.retryAfterS ?? null;
  }
}

const codeOf = (fault: GraphQLFault | undefined): string =>
  fault?.extensions?.code ?? 'INTERNAL_SERVER_ERROR';

function sentence(fault: GraphQLFault | undefined): string {
  const request = fault?.extensions?.requestId;
  return `${fault?.message ?? 'unknown error'} (${codeOf(fault)}${request ? `, request ${request}` : ''})`;
}

/** How long a request may take: a submission of 10 000 jobs on a busy machine fits many times over. */
const REQUEST_TIMEOUT_MS = 120_000;
/** Objects in a page. */
const PAGE_SIZE = 500;
/** Waits between attempts to subscribe again grow up to this. */
const RECONNECT_MAX_MS = 5_000;

export class Client {
  constructor(readonly options: ClientOptions) {}

  /** Sends a query or mutation and gives its data. Throws {@link ApiError}, or a CliError when nothing answers. */
  async request<T>(document: string, variables: object = {}): Promise<T> {
    let response: Response;
    try {
      response = await fetch(this.options.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/graphql-response+json, application/json',
          ...(this.options.key ? { authorization: `Bearer ${this.options.key}` } : {}),
        },
        body: JSON.stringify({ query: document, variables }),
        signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
      });
    } catch (error) {
      throw this.#unreachable(error);
    }
    const text = await response.text().catch((error) => {
      throw this.#unreachable(error);
    });
    let body: { data?: T | null; errors?: GraphQLFault[] };
    try {
      body = JSON.parse(text);
    } catch {
      const exit = response.status >= 500 ? ExitCode.UNREACHABLE : ExitCode.FAILED;
      throw new CliError(`${this.options.url} answered ${response.status}, which is no GraphQL answer`, exit);
    }
    if (body.errors?.length) throw this.#explained(new ApiError(body.errors));
    if (!body.data) throw new CliError(`${this.options.url} answered ${response.status} without data`);
    return body.data;
  }

  /** All pages of the list that is the field `list` of the answer; `document` takes `$first` and `$after`. */
  async *pages<T>(document: string, list: string, variables: object = {}): AsyncGenerator<T[]> {
    let after: string | null = null;
    do {
      const data: Record<string, Connection<T>> = await this.request(document, {
        ...variables,
        first: PAGE_SIZE,
        after,
      });
      const { nodes, pageInfo } = data[list]!;
      yield nodes;
      after = pageInfo.hasNextPage ? pageInfo.endCursor : null;
    } while (after !== null);
  }

  /** The whole of such a list. */
  async all<T>(document: string, list: string, variables: object = {}): Promise<T[]> {
    const nodes: T[] = [];
    for await (const page of this.pages<T>(document, list, variables)) nodes.push(...page);
    return nodes;
  }

  /**
   * News by subscription, without a gap across lost connections: each attempt continues behind the last cursor seen.
   * Ends when the service ends the subscription or `signal` is aborted; throws {@link ApiError} when it refuses.
   *
   * @param field the subscription's field, which gives the updates
   * @param onRetry told about each lost connection
   */
  async *subscribe<T extends { cursor: string }>(
    document: string,
    field: string,
    variables: object,
    {
      after,
      signal,
      onRetry,
    }: { after: string | null; signal: AbortSignal; onRetry?: (why: string) => void },
  ): AsyncGenerator<T> {
    // Loaded here: most commands ask once and need neither.
    const [{ createClient }, { WebSocket }] = await Promise.all([import('graphql-ws'), import('ws')]);
    // Without a cursor, a connection lost before the first update would be a gap.
    let cursor = after ?? (await this.request<{ latestCursor: string }>(LATEST_CURSOR)).latestCursor;
    for (let failures = 0; !signal.aborted; failures++) {
      const client = createClient({
        url: this.options.url.replace(/^http/, 'ws'),
        webSocketImpl: WebSocket,
        connectionParams: this.options.key ? { authorization: `Bearer ${this.options.key}` } : {},
        keepAlive: 10_000,
        retryAttempts: 0,
      });
      const updates = client.iterate<Record<string, T>>({
        query: document,
        variables: { ...variables, after: cursor },
      });
      const stop = (): void => void updates.return?.();
      signal.addEventListener('abort', stop);
      try {
        for await (const { data, errors } of updates) {
          if (errors?.length) throw new ApiError(errors as unknown as GraphQLFault[]);
          if (!data) continue;
          const update = data[field]!;
          cursor = update.cursor;
          failures = 0;
          yield update;
        }
        return;
      } catch (error) {
        if (signal.aborted) return;
        const refusal = refusalOf(error);
        if (refusal) throw this.#explained(refusal);
        onRetry?.(closeReason(error));
        await sleep(Math.min(RECONNECT_MAX_MS, 200 * 2 ** Math.min(failures, 10)), signal);
      } finally {
        signal.removeEventListener('abort', stop);
        await client.dispose();
      }
    }
  }

  #unreachable(error: unknown): CliError {
    const cause = (error as { cause?: { code?: string; message?: string } }).cause;
    const timedOut = (error as Error).name === 'TimeoutError';
    const why = timedOut
      ? `no answer in ${REQUEST_TIMEOUT_MS / 1000} s`
      : (cause?.code ?? cause?.message ?? String(error));
    return new CliError(
      `nothing answers at ${this.options.url} (${why}): start the service with \`npm start\`, or set SWITCHYARD_URL`,
      ExitCode.UNREACHABLE,
    );
  }

  #explained(error: ApiError): CliError {
    if (error.code !== 'UNAUTHENTICATED' || this.options.key) return error;
    return new CliError(
      `no API key: set SWITCHYARD_KEY (there is none in ${this.options.keySource}) (UNAUTHENTICATED)`,
      ExitCode.REFUSED,
    );
  }
}

/** Close codes with which graphql-ws servers refuse for good: trying again would not help. */
const REFUSING_CODES: ReadonlySet<number> = new Set([4400, 4401, 4403, 4406]);

/** The refusal in what a subscription failed with; null: the connection was lost, try again. */
function refusalOf(error: unknown): ApiError | null {
  if (error instanceof ApiError) return error.code === 'UNAVAILABLE' ? null : error;
  if (Array.isArray(error)) return refusalOf(new ApiError(error as GraphQLFault[]));
  const { code, reason } = error as { code?: unknown; reason?: string };
  if (typeof code !== 'number' || !REFUSING_CODES.has(code)) return null;
  const errorCode = code === 4401 ? 'UNAUTHENTICATED' : code === 4403 ? 'FORBIDDEN' : 'BAD_REQUEST';
  return new ApiError([
    { message: reason || 'the subscription was refused', extensions: { code: errorCode } },
  ]);
}

function closeReason(error: unknown): string {
  const { code, reason, message } = error as { code?: unknown; reason?: string; message?: string };
  return reason || message || (code ? `closed with ${String(code)}` : 'connection lost');
}

/** Waits, or less when `signal` is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done);
  });
}
