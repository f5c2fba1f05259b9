/** The `switchyard` command. */
import { type Command, CommanderError } from 'commander';
import { ConfigError } from '../platform/config.js';
import { CliError, ExitCode } from './errors.js';
import { buildProgram } from './program.js';

/** Exits by exception and in one line also in subcommands, which inherit no settings made later. */
function tame(command: Command): void {
  command.exitOverride().configureOutput({ outputError: (text, write) => write(text) });
  for (const child of command.commands) tame(child);
}

async function main(): Promise<void> {
  // `switchyard jobs | head`: the reader has gone, and that is no error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(ExitCode.OK);
    throw error;
  });
  const program = buildProgram();
  tame(program);
  try {
    await program.parseAsync();
  } catch (error) {
    process.exitCode = report(error);
  }
}

/** Prints what went wrong and gives the exit code for it. */
function report(error: unknown): number {
  // Commander has printed its own message, or the help that was asked for.
  if (error instanceof CommanderError) return error.exitCode === 0 ? ExitCode.OK : ExitCode.USAGE;
  if (error instanceof CliError) {
    process.stderr.write(`error: ${error.message}\n`);
    return error.exitCode;
  }
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
  return error instanceof ConfigError ? ExitCode.USAGE : ExitCode.FAILED;
}

await main();
