/** What goes wrong between a client and the service, what a command's exit code makes of it, and whether to try again. */

/** Exit codes of `switchyard`; the README lists them. `submit --wait` may also end with the exit code of its job. */
export const ExitCode = {
  OK: 0,
  /** It was tried and did not succeed: a job failed, the state does not allow it, the service made an error. */
  FAILED: 1,
  /** The command line, or a value on it, is not acceptable. */
  USAGE: 2,
  /** The service does not answer, or not now. */
  UNREACHABLE: 3,
  /** The key is missing, unknown, expired or revoked, or its role does not allow this. */
  REFUSED: 4,
  /** No such object, or not one that the key may see. */
  NOT_FOUND: 5,
} as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** The exit code for the code of an error: `ErrorCode` in schema.graphql, `NETWORK` or `HTTP_n`. */
export function exitCodeOf(code: string): ExitCode {
  switch (code) {
    case 'UNAUTHENTICATED':
    case 'FORBIDDEN':
      return ExitCode.REFUSED;
    case 'NOT_FOUND':
      return ExitCode.NOT_FOUND;
    case 'BAD_USER_INPUT':
    case 'LIMIT_EXCEEDED':
    case 'NEVER_FITS':
    case 'GRAPHQL_VALIDATION_FAILED':
      return ExitCode.USAGE;
    case 'UNAVAILABLE':
    case 'NETWORK':
      return ExitCode.UNREACHABLE;
    default:
      return /^HTTP_5/.test(code) ? ExitCode.UNREACHABLE : ExitCode.FAILED;
  }
}

/** An error in a GraphQL answer. */
export interface Fault {
  readonly message: string;
  readonly extensions?: { readonly [name: string]: unknown };
}

/** The service did not do what it was asked for. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  constructor(
    message: string,
    /** `ErrorCode` in schema.graphql; `HTTP_n` for an answer that is not GraphQL; `NETWORK` where there was none. */
    readonly code: string,
    /** When the service wants to be asked again, where it says so. */
    readonly retryAfterMs: number | null = null,
    /** By which the service's log knows the request, where the message alone does not tell what went wrong. */
    readonly requestId: string | null = null,
    /** The field that is not accepted, as the service names it. */
    readonly field: string | null = null,
  ) {
    super(message);
  }

  get exitCode(): ExitCode {
    return exitCodeOf(this.code);
  }

  /** Whether the service does not know the operation, or something in it: it is of an earlier release. */
  get isUnknownThere(): boolean {
    return this.code === 'GRAPHQL_VALIDATION_FAILED';
  }

  /** Whether the service does not know this field of an input object: it is of an earlier release. */
  lacksField(name: string): boolean {
    return this.code === 'BAD_USER_INPUT' && this.message.includes(`Field "${name}" is not defined by type `);
  }

  /** Whether the same request may succeed later: the service is away, busy, or has had enough for the moment. */
  get mayPass(): boolean {
    return this.code === 'RATE_LIMITED' || this.exitCode === ExitCode.UNREACHABLE;
  }
}

/** The error for the faults of an answer, of which there is at least one. */
export function errorOf(faults: readonly Fault[]): ServiceError {
  const { message, extensions = {} } = faults[0] as Fault;
  const { code, retryAfterS, requestId, field } = extensions;
  return new ServiceError(
    faults.length > 1 ? `${message} (and ${faults.length - 1} more)` : message,
    typeof code === 'string' ? code : 'INTERNAL_SERVER_ERROR',
    typeof retryAfterS === 'number' ? retryAfterS * 1000 : null,
    typeof requestId === 'string' ? requestId : null,
    typeof field === 'string' ? field : null,
  );
}

/** Codes of a closed WebSocket by which the service refuses for good, and the error that each stands for. */
const REFUSALS: Readonly<Record<number, string>> = {
  4400: 'BAD_REQUEST',
  4401: 'UNAUTHENTICATED',
  4403: 'FORBIDDEN',
  4406: 'BAD_REQUEST',
};

/** The error for what ended a subscription: faults, a closed connection, or none that came about. */
export function errorOfSubscription(cause: unknown): ServiceError {
  if (cause instanceof ServiceError) return cause;
  if (Array.isArray(cause)) return errorOf(cause as Fault[]);
  const { code, reason, message } = cause as { code?: unknown; reason?: string; message?: string };
  if (typeof code !== 'number') return new ServiceError(message || 'connection lost', 'NETWORK');
  const refusal = REFUSALS[code];
  if (refusal) return new ServiceError(reason || 'the subscription was refused', refusal);
  return new ServiceError(`connection closed (${code}${reason ? ` ${reason}` : ''})`, 'NETWORK');
}
