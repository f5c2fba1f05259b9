/**
 * Subscriptions of agents, executed by functions that graphql-jit makes of their document: of an assignment's 60 fields graphql-js makes
 * four objects each. Only for what agents are told: graphql-jit awaits what resolvers give, not what lies in lists, and nothing there does.
 */
import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  GraphQLError,
} from 'graphql';
import { type CompiledQuery, compileQuery, isCompiledQuery } from 'graphql-jit';
import type { Context } from '../context.js';
import { pulled } from './streams.js';

/** By document, as each is parsed once (operations.ts); null: it cannot be compiled. */
const known = new WeakMap<DocumentNode, CompiledQuery | null>();

function compiled({ schema, document, operationName }: ExecutionArgs): CompiledQuery | null {
  let query = known.get(document);
  if (query === undefined) {
    const made = compileQuery(schema, document, operationName ?? undefined);
    query = isCompiledQuery(made) ? made : null;
    known.set(document, query);
  }
  return query;
}

/** As `subscribe` of graphql-js; null: it has to be asked. */
export async function subscribeCompiled(
  args: ExecutionArgs,
): Promise<AsyncGenerator<ExecutionResult, void, void> | ExecutionResult | null> {
  const query = compiled(args);
  if (query === null) return null;
  const events = await createSourceEventStream(args);
  const context: Context = { ...(args.contextValue as Context), atOnce: true };
  if (!(Symbol.asyncIterator in events)) return events;
  const stream = events[Symbol.asyncIterator]();
  return pulled(
    async () => {
      const event = await stream.next();
      if (event.done) return null;
      const result = await query.query(event.value, context, args.variableValues);
      return 'stringify' in result ? { errors: [new GraphQLError('not executable')] } : result;
    },
    () => void stream.return?.(undefined),
  );
}
