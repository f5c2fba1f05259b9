/** Values for the arguments of any field of the schema. */
import { type GraphQLInputType, isEnumType, isInputObjectType, isListType, isNonNullType } from 'graphql';

/** A value that the type accepts, naming objects that do not exist. */
export function sample(type: GraphQLInputType): unknown {
  if (isNonNullType(type)) return sample(type.ofType);
  if (isListType(type)) return [sample(type.ofType)];
  if (isInputObjectType(type)) {
    const required = Object.values(type.getFields()).filter(
      (field) => isNonNullType(field.type) && field.defaultValue === undefined,
    );
    return Object.fromEntries(required.map((field) => [field.name, sample(field.type)]));
  }
  if (isEnumType(type)) return type.getValues()[0]?.name;
  const values: Record<string, unknown> = {
    ID: 'job_999999999',
    String: 'x',
    Int: 1,
    Float: 1,
    Boolean: true,
    DateTime: '2026-01-01T00:00:00Z',
    JSON: {},
  };
  return values[type.name];
}
