/** The one kind of error of the command line that becomes one clear line. */
import { ExitCode } from '../client/index.js';

export { ExitCode, exitCodeOf } from '../client/index.js';

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
  return new CliError(`${field}: "${value}" is not accepted; accepted: ${accepted}`, ExitCode.USAGE);
}
