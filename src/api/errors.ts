/**
 * What clients are told when something goes wrong. Expected failures are `ApiError`s with a code of the public enum;
 * everything else is masked: the client gets INTERNAL_SERVER_ERROR and the id of the request, the log gets the error.
 */
import { GraphQLError, type GraphQLFormattedError, Kind } from 'graphql';
import type { ErrorCode } from './generated/types.js';

/** The longest message sent: coercion errors quote values, and those may be as long as a request. */
const MESSAGE_CHARS_MAX = 2_000;

/** Codes that Apollo and graphql-ws give to requests that are malformed before any of our code sees them. */
const PROTOCOL_CODES: ReadonlySet<unknown> = new Set([
  'GRAPHQL_PARSE_FAILED',
  'GRAPHQL_VALIDATION_FAILED',
  'OPERATION_RESOLUTION_FAILURE',
  'BAD_REQUEST',
  'BAD_USER_INPUT',
]);

/** The HTTP status that goes with a code when nothing could be executed. Failures inside an answer stay 200. */
const STATUS: Partial<Record<ErrorCode, number>> = {
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  NOT_FOUND: 404,
  RATE_LIMITED: 429,
  UNAVAILABLE: 503,
  QUERY_TOO_COMPLEX: 400,
  LIMIT_EXCEEDED: 413,
};

/** The status of an answer that is nothing but an error. */
export const statusOf = (code: unknown): number =>
  code === 'INTERNAL_SERVER_ERROR' || code === undefined ? 500 : (STATUS[code as ErrorCode] ?? 400);

/** A failure that is part of the contract. */
export class ApiError extends GraphQLError {
  override readonly name = 'ApiError';
  constructor(
    readonly code: ErrorCode | 'GRAPHQL_VALIDATION_FAILED',
    message: string,
    extensions: Readonly<Record<string, unknown>> = {},
  ) {
    super(message, { extensions: { ...extensions, code } });
  }
}

/**
 * The same for a request that is refused as a whole, before it is executed: over HTTP it has a status and headers.
 * `headers` are lower case.
 */
export function refusedRequest(
  code: ErrorCode,
  message: string,
  extensions: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): ApiError {
  return new ApiError(code, message, {
    ...extensions,
    http: { status: statusOf(code), headers: new Map(Object.entries(headers)) },
  });
}

/** What is said of a value that is not acceptable: the field, the value and what is accepted. */
export function notAccepted(field: string, value: unknown, accepted: string): string {
  const what = value === undefined ? 'missing' : `${quote(value)} is not accepted`;
  return `${field}: ${what}; accepted: ${accepted}`;
}

/** The error for such a value. */
export function badInput(field: string, value: unknown, accepted: string): ApiError {
  return new ApiError('BAD_USER_INPUT', notAccepted(field, value, accepted), { field });
}

/** No such object, or not one that the viewer may see: the two are not told apart. */
export function notFound(what: string, id: string): ApiError {
  return new ApiError('NOT_FOUND', `${what} ${quote(id)} does not exist, or this key may not see it`);
}

/** A value as it appears in a message: JSON, cut short. */
export function quote(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 80 ? `${text.slice(0, 77)}…` : text;
}

/** What became of an error on its way out. `cause` is set when it was masked: log it. */
export interface Outward {
  formatted: GraphQLFormattedError;
  masked: unknown;
}

/**
 * Turns any error into what the client may see.
 * `isUnavailable` says whether an unexpected error only means that the database is away.
 */
export function outward(
  error: unknown,
  requestId: string,
  isUnavailable: (error: unknown) => boolean,
): Outward {
  const graphqlError = error instanceof GraphQLError ? error : null;
  const original = rootCause(error);
  const place = graphqlError
    ? { locations: graphqlError.locations, path: graphqlError.path }
    : { locations: undefined, path: undefined };
  const where = {
    ...(place.locations ? { locations: place.locations } : {}),
    ...(place.path ? { path: place.path } : {}),
  };
  if (original instanceof ApiError) {
    const { http: _, ...extensions } = original.extensions;
    return { formatted: { message: shorten(original.message), ...where, extensions }, masked: null };
  }
  // Errors of the language itself (parse, validate, coerce) wrap nothing of ours.
  if (original instanceof GraphQLError) {
    const given = original.extensions.code;
    const ofVariable = original.nodes?.[0]?.kind === Kind.VARIABLE_DEFINITION;
    const code = PROTOCOL_CODES.has(given)
      ? given
      : ofVariable
        ? 'BAD_USER_INPUT'
        : original.path
          ? null
          : 'BAD_REQUEST';
    if (code !== null) {
      return {
        formatted: { message: shorten(original.message), ...where, extensions: { code } },
        masked: null,
      };
    }
  }
  if (isUnavailable(original)) {
    const message = 'the service is unavailable; try again later';
    return {
      formatted: { message, ...where, extensions: { code: 'UNAVAILABLE', requestId } },
      masked: original,
    };
  }
  const message = `unexpected error; the log has the details under request ${requestId}`;
  return {
    formatted: { message, ...where, extensions: { code: 'INTERNAL_SERVER_ERROR', requestId } },
    masked: original,
  };
}

/** What a resolver threw, taken out of the located error that graphql-js wraps around it. Errors of the language that wrap each other stay: the outermost names the place. */
function rootCause(error: unknown): unknown {
  const inner = error instanceof GraphQLError ? error.originalError : undefined;
  if (error instanceof ApiError || !inner) return error;
  return inner instanceof GraphQLError && !(inner instanceof ApiError) && !inner.originalError
    ? error
    : rootCause(inner);
}

const shorten = (message: string): string =>
  message.length > MESSAGE_CHARS_MAX ? `${message.slice(0, MESSAGE_CHARS_MAX - 1)}…` : message;
