/** The GraphQL client: one endpoint, one normalized cache, which goes with the session. */
import { cacheExchange, type UpdateResolver } from '@urql/exchange-graphcache';
import { relayPagination } from '@urql/exchange-graphcache/extras';
import {
  type AnyVariables,
  Client,
  type CombinedError,
  mapExchange,
  subscriptionExchange,
  type TypedDocumentNode,
} from 'urql';
import { asked, errorOf, ServiceError, type WebClient } from '../../../src/client/browser';
import { noticed, sentenceOf, service, textOf } from './service';

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

/** Somebody waits: after a second or two they are told. */
const ATTEMPTS = 5;

/** Its transport is the client's: queries, which can be asked twice, are asked again where the service may answer the next time. */
const transport = (by: WebClient) =>
  subscriptionExchange({
    enableAllOperations: true,
    forwardSubscription: ({ query = '', variables = {} }, { kind }) => ({
      subscribe({ next, error, complete }) {
        const stop = new AbortController();
        const ask = () => by.answer<Record<string, unknown>>(query, variables as object, stop.signal);
        void (kind === 'query' ? asked(ask, stop.signal, ATTEMPTS) : ask())
          .then(({ data, errors }) => next(errors.length > 0 ? { data, errors: [...errors] } : { data }))
          .catch(error)
          .then(complete);
        return { unsubscribe: () => stop.abort() };
      },
    }),
  });

export function createGraphqlClient(by: WebClient = service): Client {
  return new Client({
    url: by.options.url,
    preferGetMethod: false,
    requestPolicy: 'cache-and-network',
    exchanges: [
      mapExchange({ onError: (error) => void noticed(serviceErrorOf(error)) }),
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
      transport(by),
    ],
  });
}

/** What the client made of an answer: of one without data it is urql's `networkError`, else the fields that are missing have errors. */
function serviceErrorOf({ networkError, graphQLErrors }: CombinedError): ServiceError {
  if (networkError)
    return networkError instanceof ServiceError
      ? networkError
      : new ServiceError(networkError.message, 'NETWORK');
  return errorOf(graphQLErrors);
}

/** `ErrorCode` of the schema, `NETWORK` or `HTTP_n`. */
export const codeOf = (error: CombinedError): string => serviceErrorOf(error).code;

/** Whether the same may be answered later. */
export const mayPass = (error: CombinedError): boolean => serviceErrorOf(error).mayPass;

/** An error as a sentence for people. */
export const messageOf = (error: CombinedError): string => sentenceOf(serviceErrorOf(error));

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
export function ask<D, V extends AnyVariables>(
  document: TypedDocumentNode<D, V>,
  variables: V,
  signal?: AbortSignal,
): Promise<D> {
  const text = textOf<D, object>(document as TypedDocumentNode<D, object>);
  const once = () => service.request(text, variables as object, signal);
  return (text.startsWith('query') ? asked(once, signal, ATTEMPTS) : once()).catch((error: unknown) => {
    throw signal?.aborted ? error : forPeople(error);
  });
}

/** A file of a run. Throws what is wrong as a sentence. */
export async function fetchFile(path: string): Promise<Blob> {
  const response = await service.get(path).catch((error: unknown) => {
    throw forPeople(error);
  });
  return response.blob();
}

function forPeople(error: unknown): unknown {
  if (!(noticed(error) instanceof ServiceError)) return error;
  const { field } = error as ServiceError;
  const sentence = sentenceOf(error as ServiceError);
  return field === null ? new Error(sentence) : new Refused(sentence, field);
}
