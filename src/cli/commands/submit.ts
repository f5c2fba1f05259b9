/** `switchyard submit`: jobs from the command line or a file. */
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import type { Client, Document } from '../../client/index.js';
import { DEFAULT_LIMITS } from '../../platform/limits.js';
import { parseArray, withInput } from '../../words/index.js';
import { addCommand, interruption, note, print, printJson, readText, wantsJson } from '../command.js';
import { connect } from '../connect.js';
import {
  type JobInput,
  JobsDocument,
  SubmitDocument,
  SubmitFullDocument,
  type SubmitFullMutation,
  type SubmitMutation,
  type SubmitMutationVariables,
} from '../documents.gql.js';
import { CliError, ExitCode, exitCodeOf } from '../errors.js';
import { awaitEnds, type JobLine, stateTold } from '../follow.js';
import { count, printable } from '../format.js';
import {
  addJobOptions,
  expandArray,
  type GivenJob,
  type JobOptions,
  jobFromOptions,
  placesByName,
  placesFromOptions,
  remembering,
} from '../job-options.js';
import { shippedScript, standardInput } from '../script.js';
import { saidOfFile, saidOfOptions } from '../spoken.js';
import type { Step, Workflow } from '../workflow.js';
import { printOutput } from './jobs.js';

/** Readers of workflows bring the schedulers with them, which takes longer to load than all else: only where there is one. */
const workflows = () => import('../workflow.js');

/** A job, and what is shipped with it. */
export interface CommandOptions extends JobOptions {
  ship: boolean;
  stdin?: boolean;
  lenient?: boolean;
}

interface SubmitOptions extends CommandOptions {
  file?: string;
  workflow?: string;
  dryRun?: boolean;
  idempotencyKey?: string;
  allowUnfit?: boolean;
  wait?: boolean;
  output?: boolean;
}

/** With the jobs, where they were asked for. */
type SubmitPayload = SubmitMutation['submitJobs'] & Partial<SubmitFullMutation['submitJobs']>;

export function addSubmit(program: Command): void {
  const command = addShipOptions(
    addJobOptions(
      addCommand(program, 'submit [command] [arguments...]', 'submit jobs; either all are accepted or none'),
    ),
  )
    .option(
      '--array <indices>',
      'submit a job array with these indices, such as 1-10, 0-99:5 or 1,3,5-9:2%4 (at most 4 run at a time); a job finds its index in SWITCHYARD_ARRAY_INDEX',
    )
    .option(
      '--file <path>',
      'a JSON file with a job or a list of jobs (fields of JobInput; sites and datasets by name or ID), - for standard input; other options set fields that a job omits',
    )
    .option(
      '--workflow <path>',
      'a YAML file with jobs and their dependencies (docs/workflows.md), - for standard input; other options set fields that neither a job nor the defaults set',
    )
    .option(
      '--dry-run',
      'check the --workflow and show its plan, without submitting anything or contacting a service',
    )
    .option(
      '--allow-unfit',
      'accept jobs that no registered machines could ever run; they wait until such machines are registered',
    )
    .option('--idempotency-key <key>', 'a retry with the same key and jobs returns the same jobs')
    .option(
      '--wait',
      'wait until the jobs have ended, and exit with the exit code of the job (the largest of several)',
    )
    .option('--output', 'wait, then print the output of the jobs')
    .passThroughOptions()
    .addHelpText(
      'after',
      "\nExamples:\n  switchyard submit --cpus 2 --estimate 10m -- sh -c 'echo hello'\n  switchyard submit run.sh    (ships the script; its #SWITCHYARD and #SBATCH lines are options)",
    );
  command.action(async (program: string | undefined, args: string[], options: SubmitOptions) => {
    const commandLine = program === undefined ? [] : [program, ...args];
    if (options.dryRun) return showPlan(command, options, commandLine);
    const client = connect();
    const { jobs, nameOf } = await jobsToSubmit(client, options, commandLine);
    const payload = await submit(client, jobs, options.idempotencyKey ?? null, {
      full: wantsJson(command) && !options.wait,
      allowUnfit: options.allowUnfit === true,
      ...(nameOf && { nameOf }),
      ...((options.file ?? options.workflow) !== undefined && { say: saidOfFile }),
    });
    const wait = options.wait || options.output;
    if (wantsJson(command)) {
      if (!wait) return printJson(payload.jobs);
    } else {
      print(payload.jobIds.length === 1 ? payload.jobIds[0]! : idList(payload.jobIds));
      if (payload.repeated)
        note('the idempotency key has been used before: these jobs were already submitted');
    }
    if (wait) await waitFor(client, payload.jobIds, wantsJson(command), options.output === true);
  });
}

/** Options for a script, and for standard input, that travel with the job. */
export function addShipOptions(command: Command): Command {
  return command
    .option('--no-ship', 'run the file of this name at the site, even if a local script has this name')
    .option('--stdin', 'ship standard input to the job even if it is a pipe (a file is always shipped)')
    .option('--lenient', 'skip lines of the script (#SWITCHYARD, #SBATCH) that are not understood');
}

interface Asked {
  jobs: JobInput[];
  /** How an error names the job at this position, where it is not by position. */
  nameOf?: (position: number) => string;
}

/** The jobs that the command line asks to submit. */
export async function jobsToSubmit(
  client: Client,
  options: SubmitOptions,
  commandLine: string[],
): Promise<Asked> {
  if (options.workflow !== undefined) return jobsOfWorkflow(client, options, options.workflow, commandLine);
  const fromOptions = {
    ...jobFromOptions(options, commandLine),
    ...(await placesFromOptions(client, options)),
  };
  const shipped =
    options.ship && options.file === undefined
      ? shippedScript(commandLine, { lenient: options.lenient === true })
      : null;
  const given = shipped === null ? fromOptions : together(shipped.job, fromOptions);
  const jobs =
    options.file === undefined
      ? [given]
      : (await jobsFrom(remembering(client), options.file)).map((job) => ({ ...given, ...job }));
  const bare = jobs.findIndex((job) => typeof job.command !== 'string');
  if (bare >= 0) {
    const where = options.file === undefined ? '' : ` (job ${bare} of ${options.file} does not have one)`;
    throw new CliError(
      `no command given; give one after --, such as: switchyard submit -- sleep 10${where}`,
      ExitCode.USAGE,
    );
  }
  const array =
    options.array === undefined ? (shipped?.asked.array ?? null) : parseArray('--array', options.array);
  const all = (jobs as JobInput[]).flatMap((job) => expandArray(job, array));
  checkNumber(all);
  if (options.file !== undefined) return { jobs: all };
  const input = standardInput(options.stdin === true);
  return {
    jobs: all.map((job, place) => {
      const run = shipped?.command(place) ?? { command: job.command, arguments: [...(job.arguments ?? [])] };
      return { ...job, ...(input ? withInput(input, run) : run) };
    }),
  };
}

function checkNumber(jobs: readonly JobInput[]): void {
  if (jobs.length <= DEFAULT_LIMITS.submissionJobsMax) return;
  throw new CliError(
    `${jobs.length} jobs are too many for one submission; accepted: up to ${DEFAULT_LIMITS.submissionJobsMax}`,
    ExitCode.USAGE,
  );
}

async function workflowOf(
  client: Client | null,
  options: SubmitOptions,
  path: string,
  commandLine: readonly string[],
): Promise<Workflow> {
  if (commandLine.length > 0 || options.file !== undefined || options.array !== undefined)
    throw new CliError('with --workflow, do not give a command, --file or --array', ExitCode.USAGE);
  const given = {
    ...jobFromOptions(options, []),
    ...(client && (await placesFromOptions(client, options))),
  };
  const { readWorkflow } = await workflows();
  return readWorkflow(path, await readText('--workflow', path), { given, client });
}

async function jobsOfWorkflow(
  client: Client,
  options: SubmitOptions,
  path: string,
  commandLine: readonly string[],
): Promise<Asked> {
  const workflow = await workflowOf(client, options, path, commandLine);
  const { jobsOf } = await workflows();
  const { jobs, stepOf } = jobsOf(workflow);
  checkNumber(jobs);
  return { jobs, nameOf: (position) => workflow.placeOf(stepOf[position] as Step) };
}

async function showPlan(
  command: Command,
  options: SubmitOptions,
  commandLine: readonly string[],
): Promise<void> {
  if (options.workflow === undefined)
    throw new CliError('--dry-run requires --workflow FILE', ExitCode.USAGE);
  const workflow = await workflowOf(null, options, options.workflow, commandLine);
  const { jobsOf, planOf } = await workflows();
  const { jobs } = jobsOf(workflow);
  checkNumber(jobs);
  if (wantsJson(command)) printJson(jobs);
  else print(planOf(workflow));
}

/** What a script asks for, and what options say, which goes before it; both of what there may be several of. */
function together(script: GivenJob, options: GivenJob): GivenJob {
  const environment = new Map(
    [...(script.environment ?? []), ...(options.environment ?? [])].map(({ name, value }) => [name, value]),
  );
  return {
    ...script,
    ...options,
    environment: [...environment].map(([name, value]) => ({ name, value })),
    ...((script.siteTerms ?? options.siteTerms) && {
      siteTerms: { ...script.siteTerms, ...options.siteTerms },
    }),
    ...bothOf('needs', script, options),
    ...bothOf('inputs', script, options),
    ...bothOf('outputs', script, options),
  };
}

const bothOf = <Field extends 'needs' | 'inputs' | 'outputs'>(
  field: Field,
  script: GivenJob,
  options: GivenJob,
): GivenJob => {
  const both = [...(script[field] ?? []), ...(options[field] ?? [])];
  return both.length === 0 ? {} : { [field]: both };
};

async function jobsFrom(client: Pick<Client, 'all'>, file: string): Promise<GivenJob[]> {
  let content: unknown;
  try {
    content = JSON.parse(file === '-' ? await text(process.stdin) : await readFile(file, 'utf8'));
  } catch (error) {
    throw new CliError(`--file ${file}: ${(error as Error).message}`, ExitCode.USAGE);
  }
  const jobs = Array.isArray(content) ? content : [content];
  if (jobs.length === 0 || jobs.some((job) => typeof job !== 'object' || job === null)) {
    throw new CliError(
      `--file ${file}: expected a job or a list of jobs (JSON objects with the fields of JobInput)`,
      ExitCode.USAGE,
    );
  }
  return Promise.all(jobs.map((job) => placesByName(client, job)));
}

/** Submits; throws one error that names the first faulty field when the service accepts nothing. `full`: with all fields. */
export async function submit(
  client: Client,
  jobs: readonly JobInput[],
  idempotencyKey: string | null,
  {
    full = false,
    allowUnfit = false,
    nameOf = (position: number): string => `job ${position}`,
    say = saidOfOptions as (fault: { message: string; code: string }) => string,
  } = {},
): Promise<SubmitPayload> {
  const document: Document<{ submitJobs: SubmitPayload }, SubmitMutationVariables> = full
    ? SubmitFullDocument
    : SubmitDocument;
  const { submitJobs } = await client.request(document, {
    input: { idempotencyKey, jobs, allowUnfit },
  });
  const [first, ...others] = submitJobs.errors;
  if (first) {
    const which = jobs.length > 1 && first.index !== null ? `${nameOf(first.index)}: ` : '';
    const more = others.length > 0 ? ` (and ${others.length} more)` : '';
    throw new CliError(`${which}${say(first)} (${first.code})${more}`, exitCodeOf(first.code));
  }
  return submitJobs;
}

/** `job_3`, or first and last of many: ids of one submission follow each other. */
function idList(ids: readonly string[]): string {
  if (ids.length <= 10) return ids.join('\n');
  return `${ids[0]} … ${ids.at(-1)} (${count(ids.length, 'job')})`;
}

/** Waits for the jobs' ends, tells of them, and makes their exit code the command's. */
async function waitFor(
  client: Client,
  ids: readonly string[],
  json: boolean,
  output: boolean,
): Promise<void> {
  const signal = interruption();
  const ended = await awaitEnds(client, ids, signal, (job, update) => {
    if (update && !json && !output)
      note(`${job.id} ${stateTold(job, update)}${job.site ? ` at ${printable(job.site.name)}` : ''}`);
  });
  if (json) {
    const jobs: unknown[] = [];
    for (let i = 0; i < ids.length; i += 1000) {
      const filter = { ids: ids.slice(i, i + 1000) };
      jobs.push(...(await client.all(JobsDocument, 'jobs', { filter })));
    }
    printJson(jobs);
  } else if (output) {
    for (const id of ids) await printOutput(client, id, {});
  }
  if (ended.size < ids.length) {
    throw new CliError(
      `interrupted: ${count(ids.length - ended.size, 'job')} not ended yet`,
      ExitCode.FAILED,
    );
  }
  process.exitCode = Math.max(...[...ended.values()].map(exitCodeOfJob));
}

/** The exit code that stands for a job: its own, or 1 when it ended otherwise. */
export function exitCodeOfJob(job: JobLine): number {
  if (job.state === 'COMPLETED') return ExitCode.OK;
  return job.exitCode || ExitCode.FAILED;
}
