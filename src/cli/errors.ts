/** How a command ends: the exit codes, and the one kind of error that becomes one clear line. */

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

/** An expected failure: `main` prints its message as one line, without a stack. */
export class CliError extends Error {
  override readonly name = 'CliError';
  constructor(
    message: string,
    readonly exitCode: number = ExitCode.FAILED,
  ) {
    super(message);
  }
}

/** A value on the command line that is not acceptable. */
export function usage(field: string, value: string, accepted: string): CliError {
  return new CliError(`${field}: "${value}" is not accepted: ${accepted}`, ExitCode.USAGE);
}

/** The exit code for an error code of the API (`ErrorCode` in schema.graphql). */
export function exitCodeOf(errorCode: string): ExitCode {
  switch (errorCode) {
    case 'UNAUTHENTICATED':
    case 'FORBIDDEN':
      return ExitCode.REFUSED;
    case 'NOT_FOUND':
      return ExitCode.NOT_FOUND;
    case 'BAD_USER_INPUT':
    case 'LIMIT_EXCEEDED':
    case 'GRAPHQL_VALIDATION_FAILED':
      return ExitCode.USAGE;
    case 'UNAVAILABLE':
      return ExitCode.UNREACHABLE;
    default:
      return ExitCode.FAILED;
  }
}
