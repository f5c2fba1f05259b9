/** `switchyard run`: a command as a job, as if it ran here: its output as it is written, signals, and its exit code. */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:os';
import type { Command } from 'commander';
import { asked, type Client } from '../../client/index.js';
import { addCommand, interruption, note, printJson, wantsJson } from '../command.js';
import { connect } from '../connect.js';
import { CancelDocument, JobDocument, JobEndDocument } from '../documents.gql.js';
import { CliError, ExitCode } from '../errors.js';
import { awaitEnds, noSuchJob, stateTold } from '../follow.js';
import { printable } from '../format.js';
import { addJobOptions } from '../job-options.js';
import { followOutput } from './jobs.js';
import { addShipOptions, type CommandOptions, jobsToSubmit, submit } from './submit.js';

/** Tasks whose output is followed: each stream takes a connection. */
const TASKS_MAX = 8;

/** The terminal, or whoever started it, may be gone. */
export const INTERRUPTIONS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export function addRun(program: Command): void {
  const command = addShipOptions(
    addJobOptions(
      addCommand(
        program,
        'run [command] [arguments...]',
        'run a command as a job: stream its output, and exit with its exit code',
      ),
    ),
  )
    .passThroughOptions()
    .addHelpText(
      'after',
      '\nCtrl-C, TERM or HUP cancels the job, and the command exits when the job has ended; a second Ctrl-C exits at once.\nExample:\n  switchyard run --cpus 4 -- make -j 4',
    );
  command.action(async (name: string | undefined, args: string[], options: CommandOptions) => {
    const interrupted = interruption(INTERRUPTIONS);
    const client = connect();
    const { jobs } = await jobsToSubmit(client, options, name === undefined ? [] : [name, ...args]);
    const [job] = jobs;
    if (!job || jobs.length > 1)
      throw new CliError(
        `run: an array of ${jobs.length} jobs; accepted: one job (submit --wait accepts arrays)`,
        ExitCode.USAGE,
      );
    const tasks = job.launch === 'ONCE' ? 1 : (job.tasks ?? 1);
    if (tasks > TASKS_MAX)
      throw new CliError(
        `run: ${tasks} tasks; accepted: up to ${TASKS_MAX}, because more outputs cannot be followed`,
        ExitCode.USAGE,
      );
    // With a key, a lost answer does not start it twice.
    const key = randomUUID();
    const id = (await asked(() => submit(client, jobs, key))).jobIds[0]!;
    const cancel = (): void => void cancelled(client, [id]);
    interrupted.addEventListener('abort', cancel);
    if (interrupted.aborted) cancel();
    const json = wantsJson(command);
    await Promise.all([
      followed(client, id, json),
      ...(json ? [] : Array.from({ length: tasks }, (_, task) => followOutput(client, id, { task }))),
    ]);
    if (json) printJson((await asked(() => client.request(JobDocument, { id }))).job);
    process.exitCode = await exitCodeOfRun(client, id, interrupted);
  });
}

/** Waits for the end. People are told what the job waits for; programs get what the job writes, and no more. */
async function followed(client: Client, id: string, json: boolean): Promise<void> {
  const tells = process.stderr.isTTY && !json;
  await awaitEnds(client, [id], new AbortController().signal, (job, update) => {
    if (tells)
      note(`${job.id} ${stateTold(job, update)}${job.site ? ` at ${printable(job.site.name)}` : ''}`);
  });
}

/** Cancels jobs because this command was interrupted. */
export async function cancelled(client: Client, ids: readonly string[]): Promise<void> {
  try {
    await asked(() => client.request(CancelDocument, { selection: { ids } }));
  } catch (error) {
    note(`error: not canceled: ${(error as Error).message}`);
  }
}

/** What a shell would give: the job's own, 128 + n for a signal, 1 for any other end that is not good. */
export async function exitCodeOfRun(client: Client, id: string, interrupted: AbortSignal): Promise<number> {
  const { job } = await asked(() => client.request(JobEndDocument, { id }));
  if (!job) throw noSuchJob(id);
  const { state, cause, message, exitCode } = job;
  if (state === 'COMPLETED') return ExitCode.OK;
  if (state === 'CANCELLED' && interrupted.aborted) return codeOfSignal(interrupted.reason);
  if (cause !== 'EXITED_NONZERO') note(`${id} ${state} ${cause}${message ? `: ${message}` : ''}`);
  const signal = job.runs.at(-1)?.signal;
  return exitCode || (signal ? codeOfSignal(signal) : ExitCode.FAILED);
}

/** 128 + n for the signal of this name, as shells say. */
export const codeOfSignal = (name: string): number => 128 + (constants.signals[name as NodeJS.Signals] ?? 0);
