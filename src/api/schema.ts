/** The executable schema: schema.graphql with the resolvers. */
import { readFileSync } from 'node:fs';
import {
  assertValidSchema,
  buildASTSchema,
  type GraphQLFieldResolver,
  type GraphQLSchema,
  isInterfaceType,
  isObjectType,
  isScalarType,
  parse,
} from 'graphql';
import { packagePath } from '../platform/paths.js';

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
  assertValidSchema(schema);
  return schema;
}

/** A scalar of the schema keeps its name and description, and takes over how values are read and written. */
const pick = ({ parseValue, parseLiteral, serialize }: Readonly<Record<string, unknown>>) => ({
  parseValue,
  parseLiteral,
  serialize,
});
