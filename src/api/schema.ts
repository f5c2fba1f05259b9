/** The executable schema: schema.graphql with the resolvers. */
import { readFileSync } from 'node:fs';
import {
  assertValidSchema,
  buildASTSchema,
  defaultFieldResolver,
  type GraphQLField,
  type GraphQLFieldResolver,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isInterfaceType,
  isObjectType,
  isScalarType,
  parse,
} from 'graphql';
import { packagePath } from '../platform/paths.js';
import { turns } from '../platform/turns.js';
import { charactersOf } from './admission/budget.js';
import { isCounted, isList, ownCost } from './admission/cost.js';
import type { Context } from './context.js';
import { acceptFormerNames } from './former.js';
import { tellUserErrors } from './user-errors.js';
import { allowCoerced } from './variables.js';

/** Where the contract lies. */
export const SCHEMA_FILE = packagePath('schema.graphql');

type FieldResolvers = Readonly<Record<string, unknown>>;

/**
 * Puts resolvers into the schema. Throws when one of them is for a field or type that the schema does not have: the two
 * would have parted silently.
 */
export function createSchema(resolvers: Readonly<Record<string, unknown>>): GraphQLSchema {
  const schema = buildASTSchema(parse(readFileSync(SCHEMA_FILE, 'utf8')));
  for (const [name, value] of Object.entries(resolvers)) {
    const type = schema.getType(name);
    if (isScalarType(type)) {
      Object.assign(type, pick(value as Readonly<Record<string, unknown>>));
      continue;
    }
    if (!isObjectType(type) && !isInterfaceType(type))
      throw new Error(`resolvers for ${name}, which is no type of the schema`);
    const fields = type.getFields();
    for (const [fieldName, resolver] of Object.entries(value as FieldResolvers)) {
      if (fieldName === '__resolveType' && isInterfaceType(type)) {
        type.resolveType = resolver as typeof type.resolveType;
        continue;
      }
      const field = fields[fieldName];
      if (!field) throw new Error(`a resolver for ${name}.${fieldName}, which is no field of the schema`);
      if (typeof resolver === 'function') {
        field.resolve = resolver as GraphQLFieldResolver<unknown, unknown>;
      } else {
        Object.assign(field, resolver);
      }
    }
  }
  tellUserErrors(schema);
  acceptFormerNames(schema);
  for (const type of Object.values(schema.getTypeMap())) {
    if (!isObjectType(type) || type.name.startsWith('__') || type === schema.getSubscriptionType()) continue;
    for (const field of Object.values(type.getFields())) count(type, field);
  }
  assertValidSchema(schema);
  allowCoerced(schema);
  return schema;
}

type Resolve = GraphQLFieldResolver<unknown, Context>;

/** Of a list, what is made an answer of in one turn: some milliseconds' work with every field asked for. */
const OBJECTS_OF_A_TURN = 100;

/** Scalars whose values may be long. */
const LONG: ReadonlySet<string> = new Set(['String', 'JSON']);

/** Lets a field charge what it gives to the budget of its operation, before graphql-js makes an answer of it. */
function count(type: GraphQLObjectType, field: GraphQLField<unknown, Context>): void {
  const resolve: Resolve = field.resolve ?? defaultFieldResolver;
  const own = ownCost(type.name, field);
  if (isCounted(field.type))
    field.resolve = isList(field.type) ? listed(resolve, own) : single(resolve, own + 1);
  else if (LONG.has(getNamedType(field.type).name)) field.resolve = text(resolve, own);
  else if (own > 0) field.resolve = single(resolve, own);
}

const single =
  (resolve: Resolve, cost: number): Resolve =>
  (source, args, context, info) => {
    context.budget.objects(cost);
    return resolve(source, args, context, info);
  };

const listed =
  (resolve: Resolve, own: number): Resolve =>
  (source, args, context, info) => {
    const { budget } = context;
    budget.objects(own);
    return afterwards(resolve(source, args, context, info), (list) => {
      if (!Array.isArray(list)) return list;
      budget.objects(list.length);
      return list.length > OBJECTS_OF_A_TURN && !context.atOnce ? inTurns(list) : list;
    });
  };

/** The same list, of which graphql-js comes to so many objects in each turn: the rest are promised. */
function inTurns(list: readonly unknown[]): unknown[] {
  let turn: Promise<void> = Promise.resolve();
  return list.map((item, i) => {
    if (i > 0 && i % OBJECTS_OF_A_TURN === 0) turn = turn.then(() => turns.pause());
    return i < OBJECTS_OF_A_TURN ? item : turn.then(() => item);
  });
}

const text =
  (resolve: Resolve, own: number): Resolve =>
  (source, args, context, info) => {
    const { budget } = context;
    budget.objects(own);
    return afterwards(resolve(source, args, context, info), (value) => {
      const characters = charactersOf(value);
      if (characters > 0) budget.characters(characters);
      return value;
    });
  };

const afterwards = (result: unknown, charged: (value: unknown) => unknown): unknown =>
  result instanceof Promise ? result.then(charged) : charged(result);

/** A scalar of the schema keeps its name and description, and takes over how values are read and written. */
const pick = ({ parseValue, parseLiteral, serialize }: Readonly<Record<string, unknown>>) => ({
  parseValue,
  parseLiteral,
  serialize,
});
