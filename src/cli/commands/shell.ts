/** `switchyard shell`: a shell, or another command, in a terminal on a machine of a site. */
import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import { asked } from '../../client/index.js';
import {
  SHELL_COMMAND,
  TERMINAL_VARIABLES,
  terminalSize,
  untilRunning,
  useTerminal,
} from '../../client/terminal.js';
import { programEnvironment } from '../../platform/connection.js';
import { addCommand, findSite, note } from '../command.js';
import { connect } from '../connect.js';
import { CliError, ExitCode } from '../errors.js';
import {
  addJobOptions,
  type GivenJob,
  type JobOptions,
  jobFromOptions,
  placesFromOptions,
} from '../job-options.js';
import { cancelled, codeOfSignal, exitCodeOfRun, INTERRUPTIONS } from './run.js';
import { submit } from './submit.js';

interface ShellOptions extends JobOptions {
  site?: string;
}

export function addShell(program: Command): void {
  const command = addJobOptions(
    addCommand(
      program,
      'shell [command] [arguments...]',
      'run a shell, or a command, in a terminal on a machine; exit with its exit code',
    ),
  )
    .option('--site <site>', 'only at this site')
    .passThroughOptions()
    .addHelpText(
      'after',
      '\nCtrl-C and all other keys go to the command. If the connection is lost, the command is ended after a while.\nExamples:\n  switchyard shell --site alps --gpus 1 --time 1h\n  switchyard shell -- python3',
    );
  command.action(async (name: string | undefined, args: string[], options: ShellOptions) => {
    const size = terminalSize();
    if (size === null)
      throw new CliError(
        'shell: standard input and output must be a terminal; without one, use `switchyard run COMMAND`',
        ExitCode.USAGE,
      );
    const client = connect();
    const interrupted = interruptedTwice();
    const site = options.site === undefined ? null : (await findSite(client, options.site)).name;
    const given: GivenJob = {
      ...jobFromOptions(options, name === undefined ? [] : [name, ...args]),
      ...(await placesFromOptions(client, options)),
    };
    const job = inTerminal(given, site, size);
    const key = randomUUID();
    const id = (await asked(() => submit(client, [job], key))).jobIds[0]!;
    interrupted.addEventListener('abort', () => void cancelled(client, [id]));
    if (interrupted.aborted) await cancelled(client, [id]);
    note(`${id} submitted; waiting for a machine`);
    const epoch = await untilRunning(client, id);
    if (epoch !== null && !(await useTerminal(client, { id, epoch }, interrupted))) {
      if (!interrupted.aborted) {
        note(`connection to ${id} lost; the command is ended at its site`);
        await cancelled(client, [id]);
      }
      process.exitCode = interrupted.aborted ? codeOfSignal(interrupted.reason) : ExitCode.UNREACHABLE;
      return;
    }
    process.exitCode = await exitCodeOfRun(client, id, interrupted);
  });
}

/** Aborted by the first signal; the second ends the process, by `exit`, so that the terminal is put back. */
function interruptedTwice(): AbortSignal {
  const controller = new AbortController();
  for (const signal of INTERRUPTIONS)
    process.on(signal, () => {
      if (controller.signal.aborted) process.exit(codeOfSignal(signal));
      controller.abort(signal);
    });
  return controller.signal;
}

/** A shell is not started again: what was typed in it is gone. */
function inTerminal(given: GivenJob, site: string | null, size: { rows: number; columns: number }) {
  const env = programEnvironment();
  const shown = TERMINAL_VARIABLES.flatMap((name) => {
    const value = env[name];
    const isGiven = given.environment?.some((variable) => variable.name === name);
    return value === undefined || isGiven ? [] : [{ name, value }];
  });
  const at = site === null ? null : `site = "${site.replaceAll(/["\\]/g, '\\$&')}"`;
  const constraint = [at, given.machineConstraint && `(${given.machineConstraint})`]
    .filter(Boolean)
    .join(' and ');
  return {
    ...(given.command === undefined ? { ...SHELL_COMMAND, application: 'shell' } : {}),
    ...{ restartable: false, name: given.command === undefined ? 'shell' : undefined },
    ...given,
    command: given.command ?? SHELL_COMMAND.command,
    terminal: given.terminal ?? size,
    environment: [...(given.environment ?? []), ...shown],
    ...(constraint !== '' && { machineConstraint: constraint }),
    ...((given.tasks ?? 1) > 1 || given.parts ? { launch: 'ONCE' as const } : {}),
  };
}
