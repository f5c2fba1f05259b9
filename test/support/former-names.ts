/** Names of the release before in what tests send, which the next release no longer has. That they still work is tested in one place. */
import { readFileSync } from 'node:fs';
import {
  buildSchema,
  type DocumentNode,
  type GraphQLDirective,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  getDirectiveValues,
  getNamedType,
  isInputObjectType,
  isInputType,
  Kind,
  parse,
  typeFromAST,
  validate,
} from 'graphql';
import { createSchema, SCHEMA_FILE } from '../../src/api/schema.js';

/** Without the names of the release before. */
export const writtenSchema = buildSchema(readFileSync(SCHEMA_FILE, 'utf8'));
const withFormer = createSchema({});
const directive = writtenSchema.getDirective('formerly') as GraphQLDirective;

/** What is wrong with an operation because of them; null: nothing, or it is wrong anyway. */
export function formerIn(document: DocumentNode): string | null {
  const [fault] = validate(writtenSchema, document);
  return fault && validate(withFormer, document).length === 0 ? fault.message : null;
}

/** Entries of a list that are looked at: the others are made in the same way. */
const LOOKED_AT = 20;

/** The same of the values that an operation is given. */
export function formerInVariables(
  document: DocumentNode,
  variables: Readonly<Record<string, unknown>>,
): string | null {
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    for (const { variable, type: written } of definition.variableDefinitions ?? []) {
      const type = typeFromAST(writtenSchema, written);
      const found = isInputType(type) ? inValue(variables[variable.name.value], type) : null;
      if (found !== null) return found;
    }
  }
  return null;
}

function inValue(value: unknown, type: GraphQLInputType): string | null {
  const named = getNamedType(type);
  if (value === null || typeof value !== 'object' || !isInputObjectType(named)) return null;
  if (Array.isArray(value)) return firstOf(value.slice(0, LOOKED_AT), (one) => inValue(one, named));
  const names = formerFields(named);
  return firstOf(Object.entries(value), ([name, one]) => {
    const now = names.get(name);
    if (now !== undefined) return `${named.name}.${name} is ${now}`;
    const field = named.getFields()[name];
    return field ? inValue(one, field.type) : null;
  });
}

function firstOf<T>(all: readonly T[], find: (one: T) => string | null): string | null {
  for (const one of all) {
    const found = find(one);
    if (found !== null) return found;
  }
  return null;
}

const known = new Map<string, ReadonlyMap<string, string>>();
/** The names of an input object's fields by what they were called. */
function formerFields(type: GraphQLInputObjectType): ReadonlyMap<string, string> {
  let names = known.get(type.name);
  if (names === undefined) {
    names = new Map(
      Object.values(type.getFields()).flatMap(({ name, astNode }) => {
        const was = astNode && (getDirectiveValues(directive, astNode) as { name?: string } | undefined);
        return was?.name === undefined ? [] : [[was.name, name] as const];
      }),
    );
    known.set(type.name, names);
  }
  return names;
}

const parsed = new Map<string, { document: DocumentNode | null; fault: string | null }>();
/** Throws where a request has one. What cannot be read at all has none. */
export function refuseFormer(query: string, variables: Readonly<Record<string, unknown>>): void {
  let found = parsed.get(query);
  if (found === undefined) {
    let document: DocumentNode | null = null;
    try {
      document = parse(query, { maxTokens: 10_000 });
    } catch {
      // Tests send such, too.
    }
    found = { document, fault: document && formerIn(document) };
    if (parsed.size < 1_000) parsed.set(query, found);
  }
  const fault = found.fault ?? (found.document && formerInVariables(found.document, variables));
  if (fault !== null) throw new Error(`a name of the release before: ${fault}`);
}
