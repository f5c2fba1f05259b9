/**
 * Good input of a type as graphql-js coerces it, by functions that are made once for the type: `coerceInputValue` asks the schema about every
 * field of every value, which for 100 000 jobs takes ten times as long. What is wrong, and why, only graphql-js says.
 */
import {
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLLeafType,
  isInputObjectType,
  isListType,
  isNonNullType,
} from 'graphql';

/** Left to graphql-js: it is wrong, or larger than what is coerced at once. */
export const LEFT = Symbol('left to graphql-js');

/** Members of lists within one value, all together, that are coerced at once. */
const MEMBERS_MAX = 1_000;

/** What is coerced at once. */
interface Budget {
  members: number;
}
type Coerce = (value: unknown, budget: Budget) => unknown;

const known = new WeakMap<GraphQLInputType, Coerce>();

/** For values of the type: what they are coerced to, or LEFT. */
export function coercerOf(type: GraphQLInputType): (value: unknown) => unknown {
  const coerce = made(type);
  return (value) => coerce(value, { members: MEMBERS_MAX });
}

function made(type: GraphQLInputType): Coerce {
  let coerce = known.get(type);
  if (coerce === undefined) {
    if (isNonNullType(type)) coerce = required(made(type.ofType));
    else if (isListType(type)) coerce = list(made(type.ofType));
    else coerce = isInputObjectType(type) ? object(type) : leaf(type);
    known.set(type, coerce);
  }
  return coerce;
}

const required =
  (coerce: Coerce): Coerce =>
  (value, budget) =>
    value === null || value === undefined ? LEFT : coerce(value, budget);

function list(coerce: Coerce): Coerce {
  return (value, budget) => {
    if (value === null || value === undefined) return null;
    // One that is no list stands for a list of one.
    const items: readonly unknown[] = Array.isArray(value) ? value : [value];
    budget.members -= items.length;
    if (budget.members < 0) return LEFT;
    const coerced: unknown[] = new Array(items.length);
    for (let i = 0; i < items.length; i++) {
      const one = coerce(items[i], budget);
      if (one === LEFT) return LEFT;
      coerced[i] = one;
    }
    return coerced;
  };
}

function leaf(type: GraphQLLeafType): Coerce {
  return (value) => {
    if (value === null || value === undefined) return null;
    try {
      const parsed = type.parseValue(value);
      return parsed === undefined ? LEFT : parsed;
    } catch {
      return LEFT;
    }
  };
}

function object(type: GraphQLInputObjectType): Coerce {
  if (type.isOneOf) return () => LEFT;
  // When they are needed first: a type may hold itself.
  let fields: ReturnType<typeof fieldsOf> | null = null;
  return (value, budget) => {
    if (value === null || value === undefined) return null;
    if (typeof value !== 'object' || Array.isArray(value)) return LEFT;
    fields ??= fieldsOf(type);
    for (const name in value) if (!fields.names.has(name)) return LEFT;
    const given = value as Record<string, unknown>;
    const coerced: Record<string, unknown> = {};
    for (const { name, byDefault, isRequired, coerce } of fields.all) {
      const part = given[name];
      if (part !== undefined) {
        const one = coerce(part, budget);
        if (one === LEFT) return LEFT;
        coerced[name] = one;
      } else if (byDefault !== undefined) coerced[name] = byDefault;
      else if (isRequired) return LEFT;
    }
    return coerced;
  };
}

function fieldsOf(type: GraphQLInputObjectType) {
  const all = Object.values(type.getFields()).map(({ name, type: fieldType, defaultValue: byDefault }) => {
    return { name, byDefault, isRequired: isNonNullType(fieldType), coerce: made(fieldType) };
  });
  return { all, names: new Set(all.map(({ name }) => name)) };
}
