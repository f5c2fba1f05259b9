/** Options of the command line that describe a job (`JobInput`), and those that select jobs (`JobFilter`). */
import type { Command } from 'commander';
import type { Client } from '../client/index.js';
import { jobStates } from '../core/states.js';
import { collect, collectWhole, findDataset, findSite, findUser } from './command.js';
import { CliError, ExitCode } from './errors.js';
import {
  parseArray,
  parseDuration,
  parseId,
  parseNumber,
  parseTime,
  parseVariable,
  parseWord,
} from './parse.js';

/** `JobInput` of schema.graphql; what is absent is the service's to fill in. */
export interface JobInput {
  command?: string;
  [field: string]: unknown;
}

export interface JobOptions {
  name?: string;
  application?: string;
  group?: string;
  array?: string;
  tasks?: string;
  cpus?: string;
  memoryMb?: string;
  license?: string[];
  os?: string;
  arch?: string;
  estimate?: string;
  benchmark?: string;
  deadline?: string;
  limit?: string;
  sandboxMb?: string;
  outputMb?: string;
  input?: string[];
  fromSite?: string;
  computationShare?: string;
  env?: string[];
  dir?: string;
  boost?: string;
  simulatedRun?: string;
  simulatedIo?: string;
  restart: boolean;
  hold?: boolean;
}

/** Adds an option for every field of `JobInput`. */
export function addJobOptions(command: Command): Command {
  return command
    .option('--name <text>', 'a name for people')
    .option(
      '--application <name>',
      "groups runs of the same program (default: the command's last path component)",
    )
    .option('--group <name>', 'shared by jobs that belong together')
    .option('--tasks <n>', 'tasks; one task sits on one machine (default: 1)')
    .option('--cpus <n>', 'CPUs for each task (default: 1)')
    .option('--memory-mb <mb>', 'memory for each task, MB (default: 0)')
    .option('--license <kind>', 'a license it needs; may be repeated', collect)
    .option('--os <name>', 'required operating system, such as linux')
    .option('--arch <name>', 'required architecture, such as x64')
    .option(
      '--estimate <duration>',
      'run time on a machine of --benchmark, such as 90, 15m, 2h (default: 1h)',
    )
    .option('--benchmark <power>', 'power of the machine that the estimate is for (default: 100)')
    .option('--deadline <time>', 'it should end by then: ISO 8601, or +DURATION from now')
    .option('--limit <duration>', 'stop it after so long')
    .option('--sandbox-mb <mb>', 'what travels with it from the submitting site, MB')
    .option('--output-mb <mb>', 'expected output, which goes back to the submitting site, MB')
    .option('--input <data>', 'what it reads: a dataset, or MB@SITE; may be repeated', collectWhole)
    .option('--from-site <site>', 'the site it is submitted from')
    .option('--computation-share <share>', 'share of its run time in which it computes, 0 to 1')
    .option('--env <name=value>', 'an environment variable; may be repeated', collectWhole)
    .option('--dir <path>', 'absolute path at the site to run in (default: a directory of its own)')
    .option('--boost <n>', 'added to its priorities; above 0 needs an operator')
    .option(
      '--simulated-run <duration>',
      'what a simulated agent takes as its run time (default: the estimate)',
    )
    .option('--simulated-io <duration>', 'what a simulated agent reports as its time of input and output')
    .option('--no-restart', 'do not start it again when its run is lost')
    .option('--hold', 'begin held');
}

/** The job that the options and the command line describe, without what names data and sites. Throws usage errors. */
export function jobFromOptions(options: JobOptions, commandLine: readonly string[]): JobInput {
  const given = <T>(value: string | undefined, parse: (value: string) => T): T | undefined =>
    value === undefined ? undefined : parse(value);
  const whole = (field: string, min: number) => (value: string) =>
    parseNumber(field, value, { min, integer: true });
  const size = (field: string) => (value: string) => parseNumber(field, value, { min: 0 });
  const [command, ...args] = commandLine;
  const job: JobInput = {
    command,
    arguments: command === undefined ? undefined : args,
    name: options.name,
    application: options.application,
    groupName: options.group,
    tasks: given(options.tasks, whole('--tasks', 1)),
    cpusPerTask: given(options.cpus, whole('--cpus', 1)),
    memoryMbPerTask: given(options.memoryMb, whole('--memory-mb', 0)),
    licenses: options.license,
    os: options.os,
    architecture: options.arch,
    estimateS: given(options.estimate, (value) => parseDuration('--estimate', value)),
    benchmark: given(options.benchmark, size('--benchmark')),
    deadline: given(options.deadline, (value) => parseTime('--deadline', value, Date.now())),
    runTimeLimitS: given(options.limit, (value) => parseDuration('--limit', value)),
    sandboxMb: given(options.sandboxMb, size('--sandbox-mb')),
    outputMb: given(options.outputMb, size('--output-mb')),
    environment: options.env?.map((variable) => parseVariable('--env', variable)),
    workingDirectory: options.dir,
    boost: given(options.boost, (value) =>
      parseNumber('--boost', value, { min: -1000, max: 1000, integer: true }),
    ),
    computationShare: given(options.computationShare, (value) =>
      parseNumber('--computation-share', value, { min: 0, max: 1 }),
    ),
    simulatedRunS: given(options.simulatedRun, (value) => parseDuration('--simulated-run', value)),
    simulatedIoS: given(options.simulatedIo, (value) => parseDuration('--simulated-io', value)),
    restartable: options.restart ? undefined : false,
    held: options.hold,
  };
  // Absent is not null: the service's defaults are for what is absent.
  return Object.fromEntries(Object.entries(job).filter(([, value]) => value !== undefined));
}

/** The fields of a job that the options name by the names of sites and datasets. Asks the service for their ids. */
export async function placesFromOptions(client: Client, options: JobOptions): Promise<JobInput> {
  const job: JobInput = {};
  if (options.fromSite !== undefined) job.originSite = (await findSite(client, options.fromSite)).id;
  if (options.input !== undefined)
    job.inputs = await Promise.all(options.input.map((written) => inputOf(client, written)));
  return job;
}

/** `10000@cern`, or a dataset by its name or id. */
async function inputOf(client: Client, written: string): Promise<object> {
  const [, sizeMb, site] = /^([\d.]+)@(.+)$/.exec(written) ?? [];
  if (sizeMb === undefined || site === undefined) return { dataset: (await findDataset(client, written)).id };
  return { sizeMb: parseNumber('--input', sizeMb, { min: 0 }), site: (await findSite(client, site)).id };
}

/** The same job once for each index of `--array`. */
export function expandArray(job: JobInput, array: string | undefined): JobInput[] {
  if (array === undefined) return [job];
  return parseArray('--array', array).map((arrayIndex) => ({ ...job, arrayIndex }));
}

export interface FilterOptions {
  state?: string[];
  site?: string;
  user?: string;
  application?: string;
  group?: string;
  jobGroup?: string;
  since?: string;
  until?: string;
  endedSince?: string;
  endedUntil?: string;
}

/** Adds an option for every condition of `JobFilter`. */
export function addFilterOptions(command: Command): Command {
  return command
    .option('--state <state>', 'in this state, such as RUNNING; may be repeated', collect)
    .option('--site <site>', 'held by, or ended at, this site')
    .option('--user <user>', 'submitted by this user')
    .option('--application <name>', 'of this application')
    .option('--group <name>', 'of this group')
    .option('--job-group <id>', 'submitted in this bulk group (`groups submit`)')
    .option('--since <time>', 'submitted at or after: ISO 8601')
    .option('--until <time>', 'submitted before')
    .option('--ended-since <time>', 'ended at or after')
    .option('--ended-until <time>', 'ended before');
}

/** `JobFilter` of the options; null when no condition was given. Asks the service for the ids of names. */
export async function filterFromOptions(client: Client, options: FilterOptions): Promise<object | null> {
  const at = (field: string, value: string | undefined): string | undefined =>
    value === undefined ? undefined : parseTime(field, value, Date.now());
  const filter = {
    states: options.state?.map((state) => parseWord('--state', state, jobStates)),
    application: options.application,
    groupName: options.group,
    group: options.jobGroup === undefined ? undefined : parseId('group', options.jobGroup),
    submittedAfter: at('--since', options.since),
    submittedBefore: at('--until', options.until),
    endedAfter: at('--ended-since', options.endedSince),
    endedBefore: at('--ended-until', options.endedUntil),
    site: options.site === undefined ? undefined : (await findSite(client, options.site)).id,
    user: options.user === undefined ? undefined : (await findUser(client, options.user)).id,
  };
  const conditions = Object.entries(filter).filter(([, value]) => value !== undefined);
  return conditions.length === 0 ? null : Object.fromEntries(conditions);
}

/** `JobSelection`: the ids given, or the filter; `--all` selects without a condition. */
export async function selectionFrom(
  client: Client,
  ids: readonly string[],
  options: FilterOptions & { all?: boolean },
): Promise<object> {
  const filter = await filterFromOptions(client, options);
  if (ids.length > 0) {
    if (filter || options.all) throw new CliError('give ids or conditions, not both', ExitCode.USAGE);
    return { ids: ids.map((id) => parseId('job', id)) };
  }
  if (filter) return { filter };
  if (options.all) return { filter: {} };
  throw new CliError('which jobs? Give ids, conditions such as --group NAME, or --all', ExitCode.USAGE);
}
