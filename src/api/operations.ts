/**
 * What a WebSocket operation goes through before it runs; over HTTP Apollo does the same with the same rules (http.ts).
 * Parsed and checked documents are remembered: a thousand subscribers mostly send one text.
 */
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  NoSchemaIntrospectionCustomRule,
  parse,
  specifiedRules,
  validate,
} from 'graphql';
import { LRUCache } from 'lru-cache';
import { type MeasureOperation, tooComplex } from './admission/cost.js';
import type { ApiConfig } from './config.js';

const DOCUMENTS_MAX = 500;
/** Longer texts are rare and would make the cache large. */
const TEXT_CHARS_MAX = 10_000;

export type Prepare = (
  query: string,
  operationName: string | null | undefined,
  variables: Readonly<Record<string, unknown>>,
) => { document: DocumentNode; cost: number } | readonly GraphQLError[];

/** Parses, validates and measures; the answer is the document and what it is reckoned to cost, or what is wrong with it. */
export function createPrepare(schema: GraphQLSchema, config: ApiConfig, measure: MeasureOperation): Prepare {
  const checked = new LRUCache<string, DocumentNode>({ max: DOCUMENTS_MAX });
  const rules = config.introspection ? specifiedRules : [...specifiedRules, NoSchemaIntrospectionCustomRule];

  function check(query: string): DocumentNode | readonly GraphQLError[] {
    const known = checked.get(query);
    if (known) return known;
    let document: DocumentNode;
    try {
      document = parse(query, { maxTokens: config.limits.tokensMax });
    } catch (error) {
      if (error instanceof GraphQLError) return [coded(error, 'GRAPHQL_PARSE_FAILED')];
      throw error;
    }
    const faults = validate(schema, document, rules);
    if (faults.length > 0) return faults.map((fault) => coded(fault, 'GRAPHQL_VALIDATION_FAILED'));
    if (query.length <= TEXT_CHARS_MAX) checked.set(query, document);
    return document;
  }

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
    return complex ? [complex] : { document, cost: measured.cost };
  };
}

function coded(error: GraphQLError, code: string): GraphQLError {
  error.extensions.code = code;
  return error;
}
