/** The GraphQL client: one endpoint, one normalized cache, which goes with the session. */
import { cacheExchange, type UpdateResolver } from '@urql/exchange-graphcache';
import { relayPagination } from '@urql/exchange-graphcache/extras';
import {
  type AnyVariables,
  Client,
  type CombinedError,
  fetchExchange,
  mapExchange,
  type TypedDocumentNode,
} from 'urql';
import { KEY_REFUSED, session } from './session';

/** Objects are known by their global ids, everything else belongs to what it is in. */
const keys = new Proxy(
  {},
  {
    get: (_, type) => (data: { id?: string }) =>
      // A job in a graph names others by their positions there: it is another in each graph.
      type === 'JobGraphNode' ? null : (data.id ?? null),
  },
);

type Updaters = Record<string, UpdateResolver<Record<string, unknown>, unknown>>;

/** A new object belongs into lists that do not have it: what is shown is asked again. Not by its type, which would forget the object, too. */
const asksAgain: UpdateResolver<Record<string, unknown>, unknown> = (_, _arguments, cache) => {
  for (const { fieldName, arguments: of } of cache.inspectFields('Query'))
    cache.invalidate('Query', fieldName, of);
};
const updates: { Mutation: Updaters } = {
  Mutation: new Proxy<Updaters>(
    {},
    {
      get: (_, mutation) =>
        typeof mutation === 'string' && mutation.startsWith('create') ? asksAgain : undefined,
    },
  ),
};

export function createGraphqlClient(key = (): string | null => session.get().key): Client {
  return new Client({
    url: '/graphql',
    preferGetMethod: false,
    requestPolicy: 'cache-and-network',
    fetchOptions: () => ({
      headers: {
        authorization: `Bearer ${key()}`,
        accept: 'application/graphql-response+json, application/json',
      },
    }),
    exchanges: [
      mapExchange({
        onError(error) {
          if (codeOf(error) === 'UNAUTHENTICATED') session.end(KEY_REFUSED);
        },
      }),
      cacheExchange({
        keys,
        updates,
        resolvers: {
          Query: {
            audit: relayPagination(),
            datasets: relayPagination(),
            jobGroups: relayPagination(),
            policyHistory: relayPagination(),
            simulations: relayPagination(),
            users: relayPagination(),
          },
        },
      }),
      fetchExchange,
    ],
  });
}

/** `extensions.code` of an error's first part; null: there was no answer. */
export const codeOf = (error: CombinedError | undefined): string | null =>
  (error?.graphQLErrors[0]?.extensions.code as string | undefined) ?? null;

/** An error as a sentence for people. */
export function messageOf(error: CombinedError): string {
  const [first] = error.graphQLErrors;
  if (!first) return 'The service does not respond.';
  return sentence(first.message);
}

const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;

/** A service that is busy says when to ask again. A query is asked so often, without a word. */
const ASKS_MAX = 5;
const RETRY_AFTER_MAX_S = 10;

/** What the service says of a field that it does not accept, as a sentence. */
export class Refused extends Error {
  constructor(
    message: string,
    readonly field: string,
  ) {
    super(message);
  }
}

/** An operation past the cache: long lists and what is looked at once. Throws what is wrong as a sentence. */
export async function ask<D, V extends AnyVariables>(
  query: TypedDocumentNode<D, V>,
  variables: V,
  signal?: AbortSignal,
): Promise<D> {
  const asksMax = String(query).startsWith('query') ? ASKS_MAX : 1;
  for (let asked = 1; ; asked++) {
    const response = await fetch('/graphql', {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/graphql-response+json, application/json',
        authorization: `Bearer ${session.get().key}`,
      },
      body: JSON.stringify({ query, variables }),
      signal: signal ?? null,
    }).catch((error: unknown) => {
      if (signal?.aborted) throw error;
      throw new Error('The service does not respond.');
    });
    const { data, errors } = (await response.json().catch(() => ({}))) as {
      data?: D;
      errors?: { message: string; extensions?: { code?: string; field?: string; retryAfterS?: number } }[];
    };
    const [error] = errors ?? [];
    const { code, field, retryAfterS } = error?.extensions ?? {};
    if (retryAfterS !== undefined && asked < asksMax) {
      await sleep(Math.min(retryAfterS, RETRY_AFTER_MAX_S) * 1000);
      signal?.throwIfAborted();
      continue;
    }
    if (code === 'UNAUTHENTICATED') session.end(KEY_REFUSED);
    if (error && field !== undefined) throw new Refused(sentence(error.message), field);
    if (error) throw new Error(sentence(error.message));
    if (!data) throw new Error(`The service responded with status ${response.status}.`);
    return data;
  }
}

/** A file of a run. Throws what is wrong as a sentence. */
export async function fetchFile(address: string): Promise<Blob> {
  const headers = { authorization: `Bearer ${session.get().key}` };
  const response = await fetch(address, { headers }).catch(() => {
    throw new Error('The service does not respond.');
  });
  if (!response.ok) throw new Error(`The service responded with status ${response.status}.`);
  return response.blob();
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
