/** The `switchyard` command. */
import { CommanderError } from 'commander';
import { ServiceError } from '../client/index.js';
import { preferProduction } from '../platform/config.js';
import { ConfigError } from '../platform/variables.js';
import { NotAccepted } from '../words/values.js';
import { note } from './command.js';
import { explained } from './connect.js';
import { CliError, ExitCode } from './errors.js';
import { buildProgram } from './program.js';

/** How long the process may take to end by itself. */
const LINGER_MS = 200;

async function main(): Promise<void> {
  preferProduction();
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // `switchyard jobs | head`: the reader has gone, and that is no error.
    if (error.code === 'EPIPE') process.exit(ExitCode.OK);
    // The terminal was closed: its HUP ends the process in order.
    if (error.code !== 'EIO') throw error;
  });
  try {
    // The options before the command take no values.
    const command = process.argv.slice(2).find((argument) => !argument.startsWith('-'));
    await (await buildProgram(command)).parseAsync();
  } catch (error) {
    process.exitCode = report(error);
  }
  // Something may keep the process: a part that did not stop in time, or the schema engine, which leaves a timer of ten
  // seconds behind after a migration.
  setTimeout(() => process.exit(), LINGER_MS).unref();
}

/** Prints what went wrong and gives the exit code for it. */
function report(error: unknown): number {
  // Commander has printed its own message, or the help that was asked for.
  if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.OK : ExitCode.USAGE;
  if (error instanceof CliError) {
    note(`error: ${error.message}`);
    return error.exitCode;
  }
  if (error instanceof ServiceError) {
    note(`error: ${explained(error)}`);
    return error.exitCode;
  }
  note(`error: ${error instanceof Error ? error.message : String(error)}`);
  return error instanceof ConfigError || error instanceof NotAccepted ? ExitCode.USAGE : ExitCode.FAILED;
}

await main();
