/** The scalars of the schema. Times are instants inside: a Date in, a Date, epoch seconds or any ISO text out. */
import { GraphQLError, GraphQLScalarType, Kind, valueFromASTUntyped } from 'graphql';
import { MAX } from '../platform/limits.js';
import { quote } from './errors.js';

const ISO = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$/;
const ACCEPTED =
  'an ISO 8601 time with a zone, between the years 1970 and 9999, such as 2026-03-01T12:00:00.000Z';
/** The latest time that clients can write and read. */
export const LATEST_MS = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** graphql-js puts the variable and the path in front. */
const refused = (value: unknown, accepted: string): GraphQLError =>
  new GraphQLError(`${quote(value)} is not accepted; accepted: ${accepted}`, {
    extensions: { code: 'BAD_USER_INPUT' },
  });

function parseTime(value: unknown): Date {
  if (typeof value === 'string' && ISO.test(value)) {
    const date = new Date(value);
    const ms = date.getTime();
    // The day is compared as well: Date takes 31 February for 3 March.
    if (ms >= 0 && ms <= LATEST_MS && realDay(value)) return date;
  }
  throw refused(value, ACCEPTED);
}

function realDay(text: string): boolean {
  const [year, month, day] = text.slice(0, 10).split('-').map(Number) as [number, number, number];
  return day <= new Date(Date.UTC(year, month, 0)).getUTCDate();
}

export const DateTime = new GraphQLScalarType<Date, string>({
  name: 'DateTime',
  parseValue: parseTime,
  parseLiteral: (node) => parseTime(node.kind === Kind.STRING ? node.value : null),
  serialize(value) {
    const date =
      value instanceof Date ? value : new Date(typeof value === 'number' ? value * 1000 : String(value));
    // What is planned later than any date that clients can read is told as the last one.
    return date.getTime() > LATEST_MS ? new Date(LATEST_MS).toISOString() : date.toISOString();
  },
});

function parseJson(value: unknown): unknown {
  if (!isSmall(value, MAX.jsonDepth, { values: MAX.jsonValues })) {
    throw refused(
      value,
      `values nested up to ${MAX.jsonDepth} levels, with up to ${MAX.jsonValues} others within them`,
    );
  }
  return value;
}

/** Looks no further than it may go. */
function isSmall(value: unknown, levels: number, left: { values: number }): boolean {
  if (value === null || typeof value !== 'object') return true;
  if (levels === 0) return false;
  const parts = value as Readonly<Record<string, unknown>>;
  for (const name in parts) if (--left.values < 0 || !isSmall(parts[name], levels - 1, left)) return false;
  return true;
}

export const Json = new GraphQLScalarType<unknown, unknown>({
  name: 'JSON',
  parseValue: parseJson,
  parseLiteral: (node, variables) => parseJson(valueFromASTUntyped(node, variables)),
  serialize: (value) => value,
});
