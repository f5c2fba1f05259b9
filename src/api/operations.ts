/**
 * What an operation goes through before it runs, over HTTP and WebSocket alike: its text is parsed, found to be no more work to validate than
 * one may make, validated, and remembered by its hash. A thousand subscribers mostly send one text.
 */
import type { ApolloServerOptions, BaseContext } from '@apollo/server';
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  NoSchemaIntrospectionCustomRule,
  type OperationDefinitionNode,
  parse,
  specifiedRules,
  validate,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import { MAX } from '../platform/limits.js';
import { type MeasureOperation, tooComplex } from './admission/cost.js';
import { faultOfShape, tooMuch } from './admission/shape.js';
import type { ApiConfig } from './config.js';
import { sha256 } from './documents.js';
import { ApiError } from './errors.js';

/** Of the documents that are remembered, the characters of all texts, and of one. In memory each takes some fifty bytes. */
const TEXTS_CHARS_MAX = 1_000_000;
const TEXT_CHARS_MAX = 100_000;
/** Faults of a document that are told: looking for names that are meant costs time for each. */
const FAULTS_MAX = 10;

export interface Documents {
  /** The document of a text, or what is wrong with it. */
  check(query: string): DocumentNode | readonly GraphQLError[];
  /** Finds a good document before Apollo looks for it. Throws QUERY_TOO_COMPLEX; whatever else is wrong Apollo finds itself. */
  admit(query: string): void;
  /** The good ones, as Apollo asks for them. */
  store: NonNullable<ApolloServerOptions<BaseContext>['documentStore']>;
}

export function createDocuments(schema: GraphQLSchema, config: ApiConfig): Documents {
  const good = new LRUCache<string, DocumentNode>({
    maxSize: TEXTS_CHARS_MAX,
    maxEntrySize: TEXT_CHARS_MAX,
  });
  const rules = config.introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];

  function check(query: string): DocumentNode | readonly GraphQLError[] {
    // Before it is read for its hash, which takes its time as well.
    if (query.length > MAX.queryChars) return [tooMuch('number of characters', query.length, MAX.queryChars)];
    const hash = sha256(query);
    const known = good.get(hash);
    if (known) return known;
    let document: DocumentNode;
    try {
      document = parse(query, { maxTokens: config.limits.tokensMax });
    } catch (error) {
      const fault =
        error instanceof GraphQLError ? error : new GraphQLError('the query is nested too deeply');
      return [coded(fault, 'GRAPHQL_PARSE_FAILED')];
    }
    const fault = faultOfShape(document);
    if (fault) return [fault];
    const faults = validate(schema, document, rules, { maxErrors: FAULTS_MAX });
    // Names of the schema are told only to those who may ask for it.
    if (!config.introspection)
      for (const fault of faults) fault.message = fault.message.replace(/ ?Did you mean.*\?$/, '');
    // Apollo would look for more of them; nobody reads so many.
    if (faults.length > FAULTS_MAX)
      return [new ApiError('GRAPHQL_VALIDATION_FAILED', faults.map(({ message }) => message).join(' '))];
    if (faults.length > 0) return faults.map((fault) => coded(fault, 'GRAPHQL_VALIDATION_FAILED'));
    good.set(hash, document, { size: query.length + 1 });
    return document;
  }

  return {
    check,
    admit(query) {
      const found = check(query);
      if (!('kind' in found) && found[0] instanceof ApiError) throw found[0];
    },
    store: {
      // Apollo puts a prefix before the hash.
      get: async (key) => good.get(key.slice(key.lastIndexOf(':') + 1)),
      set: async () => {},
      delete: async () => false,
    },
  };
}

export type Prepare = (
  query: string,
  operationName: string | null | undefined,
  variables: Readonly<Record<string, unknown>>,
) => { document: DocumentNode; operation: OperationDefinitionNode; cost: number } | readonly GraphQLError[];

/** For operations over a WebSocket: finds the document and its operation, and measures; the answer is both and what it is reckoned to cost, or what is wrong. */
export function createPrepare({ check }: Documents, config: ApiConfig, measure: MeasureOperation): Prepare {
  return (query, operationName, variables) => {
    const document = check(query);
    if (!('kind' in document)) return document;
    const operation = getOperationAST(document, operationName);
    if (!operation) {
      return [
        new GraphQLError('operationName must name one of the operations', {
          extensions: { code: 'OPERATION_RESOLUTION_FAILURE' },
        }),
      ];
    }
    const measured = measure(document, operation, variables);
    const complex = tooComplex(measured, config.limits);
    return complex ? [complex] : { document, operation, cost: measured.cost };
  };
}

function coded(error: GraphQLError, code: string): GraphQLError {
  error.extensions.code = code;
  return error;
}
