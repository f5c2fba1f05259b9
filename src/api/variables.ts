/**
 * Variables of operations, as graphql-js checks and completes them. It takes a list of any length at once, so long ones are given to it one
 * by one, in turns: what has been coerced here it takes as it is, by a type that lets anything through.
 */
import {
  coerceInputValue,
  type DocumentNode,
  GraphQLError,
  type GraphQLInputType,
  GraphQLScalarType,
  type GraphQLSchema,
  getNullableType,
  isInputObjectType,
  isInputType,
  isListType,
  Kind,
  type OperationDefinitionNode,
  typeFromAST,
} from 'graphql';
import { inspect } from 'graphql/jsutils/inspect.js';
import { printPathArray } from 'graphql/jsutils/printPathArray.js';
import { coercerOf, LEFT } from './coercer.js';

/** A list of more is a long one. */
const SHORT_MAX = 32;
/** So long is coerced in one turn. */
const TURN_MS = 2;
/** As in graphql-js. */
const FAULTS_MAX = 50;

const COERCED = new GraphQLScalarType({ name: '__Coerced' });

type Values = Readonly<Record<string, unknown>>;
type Path = readonly (string | number)[];
type OnFault = (path: Path, value: unknown, error: GraphQLError) => void;
/** A long list, and where it is. */
interface Long {
  path: Path;
  items: readonly unknown[];
  type: GraphQLInputType;
}

/** Lets operations have variables that have been coerced. Whoever looks at the schema does not see it. */
export function allowCoerced(schema: GraphQLSchema): void {
  Object.defineProperty(schema.getTypeMap(), COERCED.name, { value: COERCED });
}

/**
 * The operation with what was long among its variables coerced, or what is wrong with it; null: nothing is long.
 *
 * @param pause waits for the next turn; rejects when the operation goes no further
 */
export async function coerceVariables(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  given: Values,
  pause: () => Promise<void>,
): Promise<{ document: DocumentNode; variables: Values } | readonly GraphQLError[] | null> {
  const variables = { ...given };
  const long = new Set<unknown>();
  const faults: GraphQLError[] = [];
  for (const definition of operation.variableDefinitions ?? []) {
    const name = definition.variable.name.value;
    const type = typeFromAST(schema, definition.type);
    if (!isInputType(type) || !Object.hasOwn(given, name)) continue;
    const fault: OnFault = (path, value, error) => {
      if (faults.length === FAULTS_MAX)
        throw new GraphQLError(
          'Too many errors processing variables, error limit reached. Execution aborted.',
        );
      const at = path.length > 0 ? ` at "${name}${printPathArray(path)}"` : '';
      const message = `Variable "$${name}" got invalid value ${inspect(value)}${at}; ${error.message}`;
      faults.push(new GraphQLError(message, { nodes: definition, originalError: error }));
    };
    if (withoutLong(given[name], type).lists.length === 0) continue;
    long.add(definition);
    try {
      variables[name] = await new Coercion(fault, pause).value(given[name], type, []);
    } catch (error) {
      if (!(error instanceof GraphQLError) || faults.length < FAULTS_MAX) throw error;
      faults.push(error);
    }
    if (faults.length > 0) {
      for (const one of faults) one.extensions.code = 'BAD_USER_INPUT';
      return faults;
    }
  }
  return long.size === 0 ? null : { document: retyped(document, operation, long), variables };
}

class Coercion {
  private untilMs = performance.now() + TURN_MS;

  constructor(
    private readonly fault: OnFault,
    private readonly pause: () => Promise<void>,
  ) {}

  /** Answers at once where nothing is long. */
  value(given: unknown, type: GraphQLInputType, path: Path): unknown {
    const { rest, lists } = withoutLong(given, type);
    const value = coerceInputValue(rest, type, (at, invalid, error) =>
      this.fault([...path, ...at], invalid, error),
    );
    return lists.length === 0 ? value : this.filled(value, lists, path);
  }

  private async filled(value: unknown, lists: readonly Long[], path: Path): Promise<unknown> {
    for (const { path: at, items, type } of lists) {
      // Nothing where what is around it is at fault.
      const list = at.reduce<unknown>((within, name) => (within as Values | undefined)?.[name], value);
      const coerce = coercerOf(type);
      for (const [index, item] of items.entries()) {
        if (performance.now() > this.untilMs) {
          await this.pause();
          this.untilMs = performance.now() + TURN_MS;
        }
        const one = coerce(item);
        const coerced = one === LEFT ? this.value(item, type, [...path, ...at, index]) : one;
        (list as unknown[] | undefined)?.push(coerced instanceof Promise ? await coerced : coerced);
      }
    }
    return value;
  }
}

/** A value with its long lists empty, and these. */
function withoutLong(given: unknown, type: GraphQLInputType): { rest: unknown; lists: readonly Long[] } {
  const lists: Long[] = [];
  return { rest: emptied(given, type, []), lists };

  function emptied(value: unknown, valueType: GraphQLInputType, path: Path): unknown {
    if (value === null || typeof value !== 'object') return value;
    const nullable = getNullableType(valueType);
    if (isListType(nullable)) {
      // One that is no list stands for a list of one.
      const items: readonly unknown[] = Array.isArray(value) ? value : [value];
      if (items.length <= SHORT_MAX)
        return items.map((item, i) => emptied(item, nullable.ofType, [...path, i]));
      lists.push({ path, items, type: nullable.ofType });
      return [];
    }
    if (!isInputObjectType(nullable) || Array.isArray(value)) return value;
    let copy: Record<string, unknown> | null = null;
    for (const { name, type: fieldType } of Object.values(nullable.getFields())) {
      const part = (value as Values)[name];
      if (part === null || typeof part !== 'object') continue;
      copy ??= { ...value };
      copy[name] = emptied(part, fieldType, [...path, name]);
    }
    return copy ?? value;
  }
}

/** The document with these variables of the operation as values that have been coerced. */
function retyped(
  document: DocumentNode,
  operation: OperationDefinitionNode,
  coerced: ReadonlySet<unknown>,
): DocumentNode {
  const type = { kind: Kind.NAMED_TYPE, name: { kind: Kind.NAME, value: COERCED.name } } as const;
  const variableDefinitions = operation.variableDefinitions?.map((one) =>
    coerced.has(one) ? { ...one, type } : one,
  );
  return {
    ...document,
    definitions: document.definitions.map((one) =>
      one === operation ? { ...operation, variableDefinitions } : one,
    ),
  };
}
