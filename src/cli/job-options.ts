/** Options of the command line that describe a job (`JobInput`), and those that select jobs (`JobFilter`). */
import type { Command } from 'commander';
import type { Client } from '../client/index.js';
import { RETRY_LIMITS } from '../core/runs/retry.js';
import { endCauses, jobStates } from '../core/states.js';
import {
  countsRetries,
  type DevicesAsked,
  type Exclusive,
  elementsOf,
  given,
  type Indices,
  MAIL_KINDS,
  mailKinds,
  neededBy,
  ON_UNMET,
  parseAmount,
  parseDelay,
  parseDevices,
  parseDuration,
  parseId,
  parseKeepDataset,
  parseLabelNames,
  parseLicenses,
  parseMemory,
  parseNumber,
  parsePart,
  parseReadFrom,
  parseRequest,
  parseRequests,
  parseSameSwitch,
  parseSignal,
  parseSince,
  parseTasksPerMachine,
  parseTerminal,
  parseTime,
  parseUpload,
  parseVariable,
  parseWord,
  retryRuleOf,
  saysMore,
  withDevices,
  withRule,
} from '../words/index.js';
import { collect, collectWhole, findDataset, findSite, findUser, note } from './command.js';
import type {
  CheckpointInput,
  InputDataInput,
  JobChangesInput,
  JobFilter,
  JobInput,
  JobOutputInput,
  JobPreferenceInput,
  JobSelection,
  NeedClauseInput,
  NeedTermInput,
  RetryInput,
  SiteTermsInput,
} from './documents.gql.js';
import { ViewerDocument } from './documents.gql.js';
import { CliError, ExitCode, usage } from './errors.js';

/** What of a job is given with options; what is absent is the service's to fill in. */
export type GivenJob = Partial<JobInput>;
/** Fields that `placesFromOptions` and `expandArray` see to. */
type Placed = 'inputs' | 'originSite' | 'preferences' | 'arrayIndex';

export interface JobOptions {
  name?: string;
  application?: string;
  project?: string;
  group?: string;
  array?: string;
  tasks?: string;
  cpus?: string;
  memoryMb?: string;
  mem?: string;
  memPerCpu?: string;
  tasksPerMachine?: string;
  exclusive?: boolean | 'user';
  'exclusive=user'?: boolean;
  allAlike?: string;
  sameSwitch?: string;
  part?: string[];
  license?: string[];
  resource?: string[];
  gpus?: string;
  gres?: string[];
  devices?: string[];
  constraint?: string;
  image?: string;
  terminal?: string;
  reservation?: string;
  partition?: string;
  account?: string;
  qos?: string;
  os?: string;
  arch?: string;
  estimate?: string;
  benchmark?: string;
  deadline?: string;
  limit?: string;
  time?: string;
  warn?: string;
  warnSignal?: string;
  killGrace?: string;
  sandboxMb?: string;
  outputMb?: string;
  input?: string[];
  inputFrom?: string[];
  keep?: string[];
  keepDataset?: string[];
  download?: string[];
  upload?: string[];
  checkpoint?: string;
  checkpointSignal?: string;
  fromSite?: string;
  prefer?: string[];
  computationShare?: string;
  env?: string[];
  dir?: string;
  boost?: string;
  class?: string;
  simulatedRun?: string;
  simulatedIo?: string;
  retries?: string;
  retryRule?: string[];
  retryBackoff?: string;
  retryFactor?: string;
  retryMaxBackoff?: string;
  restart: boolean;
  mail?: string[];
  hold?: boolean;
  ref?: string;
  after?: string[];
  afterOk?: string[];
  afterNotOk?: string[];
  afterStart?: string[];
  afterSame?: string[];
  onUnmet?: string;
  begin?: string;
  launchOnce?: boolean;
  continueOnFailure?: boolean;
}

/** Adds an option for every field of `JobInput`. */
export function addJobOptions(command: Command): Command {
  return addMailOption(
    addRetryOptions(
      addTimeOptions(
        addWaitOptions(addRankOptions(addTermsOptions(addDataOptions(addMachineOptions(command))))),
      ),
    ),
  )
    .option('--name <text>', 'name of the job')
    .option(
      '--application <name>',
      "the program, for statistics (default: the last component of the command's path)",
    )
    .option('--project <name>', 'project of the job')
    .option('--group <name>', 'a name shared by jobs that belong together')
    .option('--tasks <n>', 'number of tasks; each runs on one machine (default: 1)')
    .option('--cpus <n>', 'CPUs per task (default: 1)')
    .option('--mem <amount>', 'memory per task, such as 512M, 2G or 1.5 GB (default: 0)')
    .option('--memory-mb <mb>', 'the same, MB')
    .option(
      '--mem-per-cpu <amount>',
      'memory per CPU, such as 2G: a task gets the larger of this × its CPUs and --mem',
    )
    .option(
      '--reservation <name>',
      'run in this reservation (switchyard reserve): on its machines, within its times',
    )
    .option(
      '--estimate <duration>',
      'estimated run time on a machine with this --benchmark, such as 90, 15m, 2h (default: 1h)',
    )
    .option('--benchmark <power>', 'benchmark of the machine that the estimate refers to (default: 100)')
    .option('--from-site <site>', 'site of submission')
    .option(
      '--prefer <conditions>',
      'a preference, not a requirement, such as site=cern or os=linux,cpus=8,memory-mb=64000,license=cad; may be repeated',
      collectWhole,
    )
    .option(
      '--part <requirements>',
      'a part of the job, in which tasks have requirements of their own, such as tasks=4,cpus=2,mem=4G,gpus=1,constraint=gen >= 3 (the constraint last); may be repeated; all parts start together',
      collectWhole,
    )
    .option('--computation-share <share>', 'fraction of the run time spent computing, from 0 to 1')
    .option('--env <name=value>', 'an environment variable; may be repeated', collectWhole)
    .option('--image <name>', 'image to run in, by its name at the sites, such as debian:12')
    .option(
      '--terminal <columns>x<rows>',
      'run the command in a terminal of this size, such as 80x24 (`switchyard shell` also connects it with yours)',
    )
    .option('--dir <path>', 'directory to run in, an absolute path at the site (default: a new one)')
    .option(
      '--simulated-run <duration>',
      'actual run time if a simulated agent runs it (default: the estimate)',
    )
    .option(
      '--simulated-io <duration>',
      'time that a simulated agent reports as waiting for input and output',
    )
    .option('--no-restart', 'do not start it again if its run is lost')
    .option(
      '--launch-once',
      'start the command once, on the first machine, instead of once for each task (for example for mpirun)',
    )
    .option('--continue-on-failure', 'let the other tasks continue when one has failed')
    .option('--hold', 'submit in state HELD');
}

/** A rank is a number, a class never is one. */
function classOf({ class: of }: JobOptions) {
  const isRank = of !== undefined && /^[0-9]/.test(of);
  return {
    class: isRank ? undefined : of,
    preemptionClass: isRank ? parseNumber('--class', of, { min: 0, max: 9, integer: true }) : undefined,
  };
}

/** Whom it goes before. */
const addRankOptions = (command: Command): Command =>
  command
    .option('--boost <n>', 'added to the priority; above 0 for operators only')
    .option(
      '--class <name>',
      'class of jobs of the policy (switchyard classes), or a rank from 0 to 9 without one; above 0 for operators only',
    );

/** What its machines must have. `--exclusive` is two options: one with a value that may be left out would take the command for it. */
function addMachineOptions(command: Command): Command {
  return command
    .option(
      '--resource <kind=amount>',
      'other resources per task, such as gpu=2, of kinds declared by operators; of kinds counted for a site or the grid, for the whole job, such as tape-drive=2; may be repeated',
      collect,
    )
    .option(
      '--gpus <n>',
      'GPUs per task: 2, a100:2 for a model, or a100:2:mem=40G:share=1/4, which is --devices gpu:…',
    )
    .option(
      '--gres <kind:n>',
      'the same in Slurm syntax: gpu:2, gpu:a100:2, gpu:2:mem=40G; may be repeated',
      collect,
    )
    .option(
      '--devices <kind:…>',
      'devices per task by model, number, memory and share, such as gpu:a100:2, gpu:mem=40G or gpu:share=1/4; may be repeated, the one that fewer devices satisfy first',
      collect,
    )
    .option(
      '--tasks-per-machine <range>',
      'tasks per machine: 4 (exactly), 2-4, or 2- (at least 2); default: as many as fit',
    )
    .option('--exclusive', 'run only on otherwise idle machines, and take all of them')
    .option('--exclusive=user', "run only on machines without other users' jobs, and keep them out")
    .option(
      '--all-alike <labels>',
      'labels of which all its machines have the same values, such as rack or rack,gen',
    )
    .option(
      '--same-switch <wait>',
      'machines on one switch: require, or how long to wait for them, such as 10m, before it takes any',
    )
    .option(
      '--license <kind:n>',
      'a license that the job needs, and the number of copies: matlab, matlab:2; may be repeated',
      collect,
    )
    .option('--os <name>', 'required operating system, such as linux')
    .option('--arch <name>', 'required architecture, such as x64')
    .option(
      '--constraint <expression>',
      'constraint on the labels of its machines, such as "gen >= 3 and not slow"',
    );
}

/** What it reads, and what stays of it. */
function addDataOptions(command: Command): Command {
  return command
    .option('--sandbox-mb <mb>', 'size of the input sandbox, transferred from the site of submission, MB')
    .option('--output-mb <mb>', 'expected size of the output, transferred to the site of submission, MB')
    .option('--input <data>', 'input data: a dataset, or MB@SITE; may be repeated', collectWhole)
    .option(
      '--input-from <job:path>',
      'a file kept by another job, such as job_1:out.dat or REF:out.dat, or by a group, group:NAME:out.dat; the job waits until that job or group has completed; may be repeated',
      collectWhole,
    )
    .option(
      '--keep <path>',
      'keep this file or directory, or files matching this pattern, in the directory of the job or, as /tmp/NAME, in its /tmp, for download (job --fetch); may be repeated',
      collectWhole,
    )
    .option(
      '--keep-dataset <name=path>',
      'turn this file or directory into a dataset with this name if the job succeeds; may be repeated',
      collectWhole,
    )
    .option(
      '--download <url>',
      'fetch this file by http(s) before the job starts; the job finds it at $SWITCHYARD_DOWNLOAD_1; may be repeated ($SWITCHYARD_DOWNLOAD_2, …)',
      collectWhole,
    )
    .option(
      '--upload <path=url>',
      'send this file or directory to the URL by http(s) if the job succeeds; may be repeated',
      collectWhole,
    )
    .option(
      '--checkpoint <path>',
      'a file or directory in the directory of the job from which the next run continues if this one is stopped, requeued or fails; the next run finds it at $SWITCHYARD_CHECKPOINT',
    )
    .option(
      '--checkpoint-signal <signal>',
      'signal sent instead of SIGTERM when the job is stopped to make room for another: one of those of --warn-signal',
    );
}

/** What it asks of a site with a scheduler of its own. */
function addTermsOptions(command: Command): Command {
  return command
    .option('--partition <names>', 'at a site with its own scheduler: the partition, or several (a,b)')
    .option('--account <name>', 'at such a site: the account that the job is charged to')
    .option('--qos <name>', 'at such a site: the quality of service');
}

/** What is told of it. */
function addMailOption(command: Command): Command {
  return command.option(
    '--mail <kinds>',
    `kinds of mail about the job: ${MAIL_KINDS.join(', ')}, none (default: as set by \`switchyard mail\`)`,
    collect,
  );
}

/** By when it should end, and what becomes of it at its run time limit. */
function addTimeOptions(command: Command): Command {
  return command
    .option(
      '--deadline <time>',
      'time by which the job should end: ISO 8601 (local time without a zone), or +DURATION from now',
    )
    .option('--limit <duration>', 'run time limit, such as 15m, 00:05:00 or 1-12:00 (default: none)')
    .option('--time <duration>', 'the same')
    .option(
      '--warn <duration>',
      'how long before the run time limit the job gets --warn-signal (default: never)',
    )
    .option(
      '--warn-signal <signal>',
      'SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGALRM, SIGUSR1 or SIGUSR2 (default: SIGTERM)',
    )
    .option(
      '--kill-grace <duration>',
      'time from SIGTERM at the run time limit to SIGKILL; 0: SIGKILL only (default: 30s)',
    );
}

/** When it is started again. */
function addRetryOptions(command: Command): Command {
  return command
    .option(
      '--retries <n>',
      'restart the job up to this many times after failed runs, according to the first matching --retry-rule; without rules, whatever the cause',
    )
    .option(
      '--retry-rule <rule>',
      'conditions, any of exit=75, exit=100-110, signal=SIGKILL, cause=MEMORY_LIMIT (none: every end), and the action: do=RETRY (the default), do=ELSEWHERE, do=FAIL or do=HOLD; memory=2 doubles the memory of the next run, up to memory-max-mb=64000; separated by commas; may be repeated',
      collectWhole,
    )
    .option('--retry-backoff <duration>', 'delay before the first retry (default: 30s)')
    .option(
      '--retry-factor <factor>',
      'factor by which the delay grows with each retry, from 1 to 10 (default: 2)',
    )
    .option('--retry-max-backoff <duration>', 'maximum delay (default: 1h)');
}

/** What the job waits for. */
function addWaitOptions(command: Command): Command {
  return addNeedsOptions(
    command
      .option('--ref <name>', 'a name by which other jobs of the same --file can depend on it')
      .option(
        '--after-same <jobs>',
        'wait until the job with the same index in this group is COMPLETED; may be repeated',
        collect,
      ),
  );
}

function addNeedsOptions(command: Command): Command {
  return command
    .option(
      '--after <jobs>',
      'wait until these have ended: a job, a bulk group (group_3), or group:NAME for your own jobs with this --group; may be repeated',
      collect,
    )
    .option('--after-ok <jobs>', 'wait until these are COMPLETED; may be repeated', collect)
    .option(
      '--after-not-ok <jobs>',
      'wait until these have ended, not all COMPLETED; may be repeated',
      collect,
    )
    .option('--after-start <jobs>', 'wait until these have started; may be repeated', collect)
    .option(
      '--on-unmet <action>',
      'what to do if these conditions can no longer be satisfied: CANCEL, HOLD or RUN (default: CANCEL)',
    )
    .option(
      '--begin <time>',
      'the earliest start: ISO 8601 (local time without a zone), 20:00, tomorrow, or +DURATION from now',
    );
}

function termsOf({ partition, account, qos }: JobOptions): SiteTermsInput | undefined {
  const asked = Object.entries({ partition, account, qos }).filter(([, value]) => value !== undefined);
  return asked.length === 0 ? undefined : Object.fromEntries(asked);
}

export interface ChangeOptions extends FilterOptions, Omit<JobOptions, keyof FilterOptions | 'restart'> {
  all?: boolean;
  toProject?: string;
  toClass?: string;
  restart?: boolean;
  atOnce?: string;
  clear?: string[];
  allowUnfit?: boolean;
}

/** What `--clear` takes away. */
const CLEARED = {
  name: { name: null },
  project: { project: null },
  resources: { resourcesPerTask: [], resources: [] },
  devices: { devicesPerTask: [] },
  class: { class: null },
  constraint: { machineConstraint: null },
  exclusive: { exclusive: null },
  'all-alike': { allAlike: null },
  'same-switch': { sameSwitch: null },
  'tasks-per-machine': { tasksPerMachine: null },
  licenses: { licenses: [] },
  os: { os: null },
  arch: { architecture: null },
  limit: { runTimeLimitS: null },
  warn: { warnS: null },
  deadline: { deadline: null },
  retries: { retry: null },
  mail: { mail: null },
  needs: { needs: [] },
  begin: { notBefore: null },
} as const satisfies Record<string, JobChangesInput>;

/** Adds an option for every field of `JobChangesInput`. */
export function addChangeOptions(command: Command): Command {
  return addMailOption(addRetryOptions(addTimeOptions(addNeedsOptions(addMachineOptions(command)))))
    .option('--name <text>', 'name of the job')
    .option('--to-project <name>', 'project of the job')
    .option('--to-class <name>', 'class of jobs of the policy (switchyard classes)')
    .option('--tasks <n>', 'number of tasks')
    .option('--cpus <n>', 'CPUs per task')
    .option('--mem <amount>', 'memory per task, such as 512M, 2G or 1.5 GB')
    .option('--memory-mb <mb>', 'the same, MB')
    .option('--mem-per-cpu <amount>', 'memory for each CPU of a task; the larger of this and --mem applies')
    .option('--estimate <duration>', 'estimated run time on a machine with its benchmark')
    .option('--benchmark <power>', 'benchmark of the machine that the estimate refers to')
    .option('--boost <n>', 'added to the priority; above 0 for operators only')
    .option('--restart', 'start it again if its run is lost')
    .option('--no-restart', 'do not')
    .option('--at-once <n>', 'at most so many of these jobs run at once; 0: as many as can')
    .option(
      '--clear <field>',
      `remove this value: ${Object.keys(CLEARED).join(', ')}; may be repeated`,
      collect,
    )
    .option('--allow-unfit', 'accept jobs that no registered machines could ever run');
}

/** What is to be different. The options that jobs are selected by say nothing of that. */
export function changesFromOptions(options: ChangeOptions): JobChangesInput {
  const { toProject: project, toClass, restart, clear = [], group: _, application: __, ...others } = options;
  const atOnce = given(options.atOnce, (text) => parseNumber('--at-once', text, { min: 0, integer: true }));
  const rest = { ...others, class: toClass };
  const cleared = clear.map((field) => {
    const known = Object.entries(CLEARED).find(([name]) => name === field);
    if (known === undefined) throw usage('--clear', field, Object.keys(CLEARED).join(', '));
    return known[1];
  });
  const changes: JobChangesInput = Object.assign(
    jobFromOptions({ ...rest, ...{ project }, restart: true } as JobOptions, []),
    restart === undefined ? {} : { restartable: restart },
    atOnce === undefined ? {} : { atOnce },
    ...cleared,
  );
  if (Object.keys(changes).length === 0)
    throw new CliError(
      'nothing to change: give an option such as --time 2h or --clear deadline',
      ExitCode.USAGE,
    );
  return changes;
}

/**
 * The job that the options and the command line describe, without what names data and sites. Throws usage errors.
 *
 * @param say is told how a time without a zone was taken
 */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a line for each field
export function jobFromOptions(
  options: JobOptions,
  commandLine: readonly string[],
  say: (text: string) => void = note,
): GivenJob {
  const size = (field: string) => (value: string) => parseNumber(field, value, { min: 0 });
  const [command, ...args] = commandLine;
  const whole = (field: string) => (value: string) => parseNumber(field, value, { min: 1, integer: true });
  const { resources, devices, constraint } = machinesFrom(options);
  // Each field of JobInput, so that none is forgotten.
  const job: { [K in Exclude<keyof JobInput, Placed>]: JobInput[K] | undefined } = {
    command,
    arguments: command === undefined ? undefined : args,
    name: options.name,
    application: options.application,
    project: options.project,
    groupName: options.group,
    tasks: given(options.tasks, whole('--tasks')),
    cpusPerTask: given(options.cpus, whole('--cpus')),
    memoryMbPerTask: memoryOf(options),
    memoryMbPerCpu: given(options.memPerCpu, (value) => parseMemory('--mem-per-cpu', value)),
    tasksPerMachine: given(options.tasksPerMachine, (value) =>
      parseTasksPerMachine('--tasks-per-machine', value),
    ),
    exclusive: exclusiveOf(options),
    allAlike: given(options.allAlike, parseLabelNames),
    devicesPerTask: devices,
    resourcesPerTask: options.part ? undefined : resources,
    // Of parts, what they have on machines is said by part.
    resources: options.part && resources,
    machineConstraint: constraint,
    parts: options.part?.map((written) => parsePart('--part', written)),
    sameSwitch: given(options.sameSwitch, (value) => parseSameSwitch('--same-switch', value)),
    licenses: options.license?.flatMap((one) => parseLicenses('--license', one)),
    os: options.os,
    architecture: options.arch,
    image: options.image,
    terminal: given(options.terminal, (value) => parseTerminal('--terminal', value)),
    reservation: options.reservation,
    siteTerms: termsOf(options),
    estimateS: given(options.estimate, (value) => parseDuration('--estimate', value)),
    benchmark: given(options.benchmark, size('--benchmark')),
    deadline: given(options.deadline, (value) => parseTime('--deadline', value, Date.now(), say)),
    runTimeLimitS: limitOf(options),
    warnS: given(options.warn, (value) => parseDuration('--warn', value)),
    warnSignal: given(options.warnSignal, (value) => parseSignal('--warn-signal', value)),
    killGraceS: given(options.killGrace, (value) => parseDelay('--kill-grace', value)),
    sandboxMb: given(options.sandboxMb, size('--sandbox-mb')),
    outputMb: given(options.outputMb, size('--output-mb')),
    environment: options.env?.map((variable) => parseVariable('--env', variable)),
    outputs: outputsOf(options),
    downloads: options.download?.map((url) => ({ url })),
    uploads: options.upload?.map((written) => parseUpload('--upload', written)),
    checkpoint: checkpointOf(options),
    workingDirectory: options.dir,
    boost: given(options.boost, (value) =>
      parseNumber('--boost', value, { min: -1000, max: 1000, integer: true }),
    ),
    ...classOf(options),
    computationShare: given(options.computationShare, (value) =>
      parseNumber('--computation-share', value, { min: 0, max: 1 }),
    ),
    simulatedRunS: given(options.simulatedRun, (value) => parseDuration('--simulated-run', value)),
    simulatedIoS: given(options.simulatedIo, (value) => parseDuration('--simulated-io', value)),
    restartable: options.restart ? undefined : false,
    retry: retryOf(options),
    launch: options.launchOnce ? 'ONCE' : undefined,
    onTaskFailure: options.continueOnFailure ? 'CONTINUE' : undefined,
    mail: options.mail && mailKinds(options.mail.join(), '--mail'),
    held: options.hold,
    ref: options.ref,
    needs: needsOf(options),
    onUnmet: given(options.onUnmet, (value) => parseWord('--on-unmet', value, ON_UNMET)),
    notBefore: given(options.begin, (value) => parseTime('--begin', value, Date.now(), say)),
  };
  // Absent is not null: the service's defaults are for what is absent.
  return Object.fromEntries(Object.entries(job).filter(([, value]) => value !== undefined));
}

function exclusiveOf({ exclusive, 'exclusive=user': forUser }: JobOptions): Exclusive | undefined {
  if (forUser === true || exclusive === 'user') return 'USER';
  return exclusive ? 'MACHINE' : undefined;
}

function memoryOf({ memoryMb, mem }: JobOptions): number | undefined {
  if (mem !== undefined && memoryMb !== undefined)
    throw new CliError('give either --mem or --memory-mb, not both', ExitCode.USAGE);
  return mem === undefined
    ? given(memoryMb, (value) => parseNumber('--memory-mb', value, { min: 0, integer: true }))
    : parseMemory('--mem', mem);
}

function limitOf({ limit, time }: JobOptions): number | undefined {
  if (limit !== undefined && time !== undefined)
    throw new CliError('give either --limit or --time, not both', ExitCode.USAGE);
  return (
    given(limit, (value) => parseDuration('--limit', value)) ??
    given(time, (value) => parseDuration('--time', value))
  );
}

/** Amounts, labels and requests: a device is an amount of its kind, and its model a label of the machine, unless more is asked of it. */
function machinesFrom({ resource = [], gpus, gres = [], devices = [], constraint }: JobOptions): {
  resources: { kind: string; amount: number }[] | undefined;
  devices: DevicesAsked[] | undefined;
  constraint: string | undefined;
} {
  const written = [
    ...(gpus === undefined ? [] : [['--gpus', `gpu:${gpus}`] as const]),
    ...gres.flatMap((one) => one.split(',')).map((one) => ['--gres', one] as const),
  ];
  const counted = written
    .filter(([, one]) => !saysMore(one))
    .map(([option, one]) => parseDevices(option, one));
  const requests = [
    ...written.filter(([, one]) => saysMore(one)).map(([option, one]) => parseRequest(option, one)),
    ...devices.flatMap((one) => parseRequests('--devices', one)),
  ];
  const resources = [...resource.map((one) => parseAmount('--resource', one)), ...counted];
  return {
    resources: resources.length === 0 ? undefined : resources.map(({ kind, amount }) => ({ kind, amount })),
    devices: requests.length === 0 ? undefined : requests,
    constraint: withDevices(constraint, counted),
  };
}

const AFTER = [
  ['after', '--after', 'ANY'],
  ['afterOk', '--after-ok', 'OK'],
  ['afterNotOk', '--after-not-ok', 'NOT_OK'],
  ['afterStart', '--after-start', 'START'],
  ['afterSame', '--after-same', 'CORRESPONDING'],
] as const;

/** One clause of all that the options name. */
function needsOf(options: JobOptions): NeedClauseInput[] | undefined {
  const terms = AFTER.flatMap(([option, field, condition]) =>
    (options[option] ?? []).map((written): NeedTermInput => ({ ...neededBy(field, written), condition })),
  );
  return terms.length === 0 ? undefined : [{ of: terms }];
}

function retryOf(options: JobOptions): RetryInput | undefined {
  const { retries, retryRule, retryBackoff, retryFactor, retryMaxBackoff } = options;
  const retry = {
    maxRetries: given(retries, (text) => parseNumber('--retries', text, { min: 0, integer: true })),
    backoffS: given(retryBackoff, (text) => parseDelay('--retry-backoff', text)),
    factor: given(retryFactor, (text) =>
      parseNumber('--retry-factor', text, { min: 1, max: RETRY_LIMITS.factor }),
    ),
    maxBackoffS: given(retryMaxBackoff, (text) => parseDelay('--retry-max-backoff', text)),
    rules: retryRule?.map((written) => {
      const rule = retryRuleOf('--retry-rule', written, endCauses);
      if (retries === undefined && countsRetries(rule))
        throw usage('--retry-rule', written, '--retries as well, the number of retries');
      return rule;
    }),
  };
  const written = Object.entries(retry).filter(([, value]) => value !== undefined);
  return written.length === 0 ? undefined : withRule(Object.fromEntries(written));
}

function checkpointOf({
  checkpoint: path,
  checkpointSignal: signal,
}: JobOptions): CheckpointInput | undefined {
  if (path !== undefined)
    return { path, signal: given(signal, (value) => parseSignal('--checkpoint-signal', value)) };
  if (signal !== undefined) throw usage('--checkpoint-signal', signal, 'a signal together with --checkpoint');
  return undefined;
}

function outputsOf({ keep = [], keepDataset = [] }: JobOptions): JobOutputInput[] | undefined {
  if (keep.length + keepDataset.length === 0) return undefined;
  const datasets = keepDataset.map((written) => parseKeepDataset('--keep-dataset', written));
  return [...keep.map((path) => ({ path })), ...datasets];
}

/** The fields of a job that the options name by the names of sites and datasets. Asks the service for their ids. */
export async function placesFromOptions(client: Pick<Client, 'all'>, options: JobOptions): Promise<GivenJob> {
  const job: { -readonly [K in Placed]?: JobInput[K] } = {};
  if (options.fromSite !== undefined) job.originSite = (await findSite(client, options.fromSite)).id;
  if (options.input !== undefined || options.inputFrom !== undefined)
    job.inputs = [
      ...(await Promise.all((options.input ?? []).map((written) => inputOf(client, written)))),
      ...(options.inputFrom ?? []).map((written) => parseReadFrom('--input-from', written)),
    ];
  if (options.prefer !== undefined)
    job.preferences = await Promise.all(options.prefer.map((written) => preferenceOf(client, written)));
  return job;
}

/** A job of a file, with the ids of sites and datasets that it names. What is not of the right shape the service refuses. */
export async function placesByName(client: Pick<Client, 'all'>, job: GivenJob): Promise<GivenJob> {
  const site = (named: string) => findSite(client, named);
  const dataset = (named: string) => findDataset(client, named);
  const each = <T extends object>(list: readonly T[], finds: Parameters<typeof withIds>[1]): Promise<T[]> =>
    Promise.all(list.map((one) => withIds(one, finds)));
  const { inputs, preferences } = job;
  return {
    ...(await withIds(job, { originSite: site })),
    ...(Array.isArray(inputs) && { inputs: await each(inputs, { site, dataset }) }),
    ...(Array.isArray(preferences) && { preferences: await each(preferences, { site }) }),
  };
}

/** The same object with ids in the place of names in these fields. */
async function withIds<T extends object>(
  object: T,
  finds: Readonly<Record<string, (named: string) => Promise<{ id: string }>>>,
): Promise<T> {
  const changed: Record<string, string> = {};
  for (const [field, find] of Object.entries(finds)) {
    const named = (object as Readonly<Record<string, unknown>> | null)?.[field];
    if (typeof named === 'string' && !/^(site|dataset)_\d+$/.test(named))
      changed[field] = (await find(named)).id;
  }
  return { ...object, ...changed };
}

/** Asks for each list once, for however many jobs that name something in it. */
export function remembering(client: Pick<Client, 'all'>): Pick<Client, 'all'> {
  const answers = new Map<string, unknown>();
  return {
    all: ((document, list, variables) => {
      const key = JSON.stringify([document, variables]);
      const known = answers.get(key) ?? client.all(document, list, variables);
      answers.set(key, known);
      return known;
    }) as Client['all'],
  };
}

/** `site=cern`, or `os=linux,cpus=8`: all of these together are one preference. */
async function preferenceOf(client: Pick<Client, 'all'>, written: string): Promise<JobPreferenceInput> {
  const licenses: string[] = [];
  const preference: { -readonly [K in keyof JobPreferenceInput]: JobPreferenceInput[K] } = { licenses };
  for (const condition of written.split(',')) {
    const [, name = '', value = ''] = /^([^=]*)=(.+)$/.exec(condition) ?? [];
    const whole = (min: number) => parseNumber('--prefer', value, { min, integer: true });
    if (name === 'site') preference.site = (await findSite(client, value)).id;
    else if (name === 'os') preference.os = value;
    else if (name === 'arch') preference.architecture = value;
    else if (name === 'license') licenses.push(value);
    else if (name === 'cpus') preference.cpusPerTask = whole(1);
    else if (name === 'memory-mb') preference.memoryMbPerTask = whole(0);
    else throw usage('--prefer', condition, 'site=, os=, arch=, license=, cpus= or memory-mb= with a value');
  }
  return preference;
}

/** `10000@cern`, or a dataset by its name or id. */
async function inputOf(client: Pick<Client, 'all'>, written: string): Promise<InputDataInput> {
  const [, sizeMb, site] = /^([\d.]+)@(.+)$/.exec(written) ?? [];
  if (sizeMb === undefined || site === undefined) return { dataset: (await findDataset(client, written)).id };
  return { sizeMb: parseNumber('--input', sizeMb, { min: 0 }), site: (await findSite(client, site)).id };
}

/** The same job once for each index of `--array`. */
export function expandArray<Job extends GivenJob>(job: Job, array: Indices | null): Job[] {
  if (array === null) return [job];
  if (job.ref !== undefined && array.atOnce !== null)
    throw new CliError('--ref cannot name the jobs of an array with a bound (%)', ExitCode.USAGE);
  return elementsOf(array).map(({ needs, ...element }) => ({
    ...job,
    ...element,
    ...(needs && { needs: [...(job.needs ?? []), ...needs] }),
  }));
}

export interface FilterOptions {
  state?: string[];
  site?: string;
  user?: string;
  me?: boolean;
  application?: string;
  project?: string;
  group?: string;
  class?: string;
  asksFor?: string;
  cause?: string;
  jobGroup?: string;
  waitsForOthers?: boolean;
  since?: string;
  until?: string;
  endedSince?: string;
  endedUntil?: string;
}

/** Adds an option for every condition of `JobFilter`. */
export function addFilterOptions(command: Command): Command {
  return command
    .option('--state <state>', 'jobs in this state, such as RUNNING; may be repeated', collect)
    .option('--site <site>', 'jobs that are, or ended, at this site')
    .option('--user <user>', 'jobs of this user')
    .option('--me', 'your own jobs')
    .option('--application <name>', 'jobs of this application')
    .option('--project <name>', 'jobs of this project')
    .option('--group <name>', 'jobs with this group name')
    .option('--class <name>', 'jobs of this class of the policy; normal: without one')
    .option('--asks-for <license>', 'jobs that request a license of this kind')
    .option('--cause <cause>', 'jobs that ended for this cause, such as RUN_TIME_LIMIT')
    .option('--job-group <id>', 'jobs of this bulk group (`groups submit`)')
    .option('--waits-for-others', 'jobs that wait for other jobs')
    .option('--since <time>', 'jobs submitted at this time or later: ISO 8601, or how long ago, such as 7d')
    .option('--until <time>', 'jobs submitted before this time')
    .option('--ended-since <time>', 'jobs that ended at this time or later')
    .option('--ended-until <time>', 'jobs that ended before this time');
}

/** `JobFilter` of the options; null when no condition was given. Asks the service for the ids of names. */
export async function filterFromOptions(client: Client, options: FilterOptions): Promise<JobFilter | null> {
  const at = (field: string, value: string | undefined): string | undefined =>
    value === undefined ? undefined : parseSince(field, value, Date.now(), note);
  const filter = {
    states: options.state?.map((state) => parseWord('--state', state, jobStates)),
    application: options.application,
    project: options.project,
    groupName: options.group,
    class: options.class,
    license: options.asksFor,
    cause: given(options.cause, (cause) => parseWord('--cause', cause, endCauses)),
    jobGroupId: options.jobGroup === undefined ? undefined : parseId('group', options.jobGroup),
    waitsForOthers: options.waitsForOthers,
    submittedAfter: at('--since', options.since),
    submittedBefore: at('--until', options.until),
    endedAfter: at('--ended-since', options.endedSince),
    endedBefore: at('--ended-until', options.endedUntil),
    siteId: options.site === undefined ? undefined : (await findSite(client, options.site)).id,
    userId: await userOf(client, options),
  };
  const conditions = Object.entries(filter).filter(([, value]) => value !== undefined);
  return conditions.length === 0 ? null : Object.fromEntries(conditions);
}

async function userOf(client: Client, { user, me }: FilterOptions): Promise<string | undefined> {
  if (me) return (await client.request(ViewerDocument, {})).viewer.id;
  return user === undefined ? undefined : (await findUser(client, user)).id;
}

/** `JobSelection`: the ids given, or the filter; `--all` selects without a condition. */
export async function selectionFrom(
  client: Client,
  ids: readonly string[],
  options: FilterOptions & { all?: boolean },
): Promise<JobSelection> {
  const filter = await filterFromOptions(client, options);
  if (ids.length > 0) {
    if (filter || options.all) throw new CliError('give either IDs or conditions, not both', ExitCode.USAGE);
    return { ids: ids.map((id) => parseId('job', id)) };
  }
  if (filter) return { filter };
  if (options.all) return { all: true };
  throw new CliError('no jobs given: give IDs, conditions such as --group NAME, or --all', ExitCode.USAGE);
}
