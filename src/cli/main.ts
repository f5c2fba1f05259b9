/** The `switchyard` command. */
import { Command, CommanderError } from 'commander';
import { ConfigError } from '../platform/config.js';
import { addConformance } from './commands/conformance.js';
import { addGrid } from './commands/grid.js';
import { addJobs } from './commands/jobs.js';
import { addPeople } from './commands/people.js';
import { addPolicy } from './commands/policy.js';
import { addServices } from './commands/services.js';
import { addSubmit } from './commands/submit.js';
import { addWatch } from './commands/watch.js';
import { addWhy } from './commands/why.js';
import { CliError, ExitCode } from './errors.js';

const EXIT_CODES = `
Exit codes: 0 done; 1 tried and failed; 2 wrong usage or value; 3 the service does not answer; 4 key refused or role too
low; 5 no such object. \`submit --wait\` ends with the exit code of its job.

The service is found by SWITCHYARD_URL and SWITCHYARD_KEY; without them it is the one that \`npm start\` runs here.`;

/** The whole command line. */
export function buildProgram(): Command {
  const program = new Command('switchyard')
    .description('Scheduling as a service for batch computing on many sites')
    .option('--json', 'print JSON instead of text')
    // Options behind a command's first operand belong to what it runs: `submit sleep --help`.
    .enablePositionalOptions()
    .showSuggestionAfterError()
    .addHelpText('after', EXIT_CODES);
  addServices(program);
  addSubmit(program);
  addJobs(program);
  addWatch(program);
  addWhy(program);
  addGrid(program);
  addPeople(program);
  addPolicy(program);
  addConformance(program);
  return program;
}

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
