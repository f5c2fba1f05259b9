/** `switchyard jobs`, `job`, `cancel`, `signal`, `hold`, `release`, `boost`, `change`: lists of jobs, one job, and what can be done to them. */
import type { Command } from 'commander';
import type { Client, Document } from '../../client/index.js';
import { isLive, isTerminal } from '../../core/states.js';
import { licensesWritten } from '../../words/index.js';
import { parseRunSignal } from '../../words/options.js';
import { partText } from '../../words/parts.js';
import { commandLine } from '../../words/script.js';
import { parseId, parseNumber, parseWord } from '../../words/values.js';
import { addCommand, note, print, printJson, wantsJson } from '../command.js';
import { connect } from '../connect.js';
import {
  CancelDocument,
  type CancelMutation,
  ChangeDocument,
  HoldDocument,
  JobCountDocument,
  JobDocument,
  JobLinesDocument,
  JobOutputDocument,
  JobOutputFollowedDocument,
  type JobOutputQuery,
  type JobQuery,
  type JobSelection,
  JobsDocument,
  JobTasksDocument,
  type JobTasksQuery,
  JobUseDocument,
  ReleaseDocument,
  ReprioritizeDocument,
  RequeueDocument,
  type RequeueMutation,
  SignalDocument,
  WhyWaitingDocument,
} from '../documents.gql.js';
import { CliError, ExitCode } from '../errors.js';
import { type FetchedFile, fetchFiles } from '../fetch.js';
import { type JobLine, noSuchJob } from '../follow.js';
import { count, duration, printable, printableOutput, table, time, workflowPlace } from '../format.js';
import {
  addChangeOptions,
  addFilterOptions,
  type ChangeOptions,
  changesFromOptions,
  type FilterOptions,
  filterFromOptions,
  selectionFrom,
} from '../job-options.js';
import { addListOptions, type Columns, showList } from '../lists.js';
import { saidOfOptions, spoken } from '../spoken.js';

interface ListOptions extends FilterOptions {
  order: string;
  oldestFirst?: boolean;
  first: string;
  after?: string;
  all?: boolean;
  count?: boolean;
}

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: commands and their options, a line each
export function addJobs(program: Command): void {
  const jobs = addListOptions(
    addFilterOptions(addCommand(program, 'jobs', 'list jobs, newest first')),
    JOB_COLUMNS,
  )
    .option('--order <field>', 'order of the list: submitted, ended or deadline', 'submitted')
    .option('--oldest-first', 'reverse the order')
    .option('--first <n>', 'how many', '50')
    .option('--after <cursor>', 'continue after this cursor of an earlier page')
    .option('--all', 'list all jobs, not only the first')
    .option('--count', 'print only the number of jobs');
  jobs.action(async (options: ListOptions) => {
    const client = connect();
    const filter = await filterFromOptions(client, options);
    if (options.count) {
      const { jobCount } = await client.request(JobCountDocument, { filter });
      return wantsJson(jobs) ? printJson(jobCount) : print(String(jobCount));
    }
    const orders = { SUBMITTED: 'SUBMITTED_AT', ENDED: 'ENDED_AT', DEADLINE: 'DEADLINE' } as const;
    const field = orders[parseWord('--order', options.order, ['SUBMITTED', 'ENDED', 'DEADLINE'])];
    const direction = options.oldestFirst ? 'ASC' : 'DESC';
    const variables = { filter, orderBy: { field, direction } } as const;
    const document = wantsJson(jobs) ? JobsDocument : JobLinesDocument;
    if (options.all)
      return showList<JobLine>(jobs, JOB_COLUMNS, () => client.all(document, 'jobs', variables));
    const first = parseNumber('--first', options.first, { min: 1, integer: true });
    let more: string | null = null;
    const ask = async (): Promise<readonly JobLine[]> => {
      const page = (await client.request(document, { ...variables, first, after: options.after })).jobs;
      more = page.pageInfo.hasNextPage ? (page.pageInfo.endCursor ?? null) : null;
      return page.nodes;
    };
    await showList(jobs, JOB_COLUMNS, ask, () => {
      if (more !== null) note(`more: --after ${more}`);
    });
  });

  const job = addCommand(program, 'job <id>', 'show one job')
    .option('--output', 'print its standard output and standard error')
    .option('--stdout', 'print only its standard output')
    .option('--stderr', 'print only its standard error')
    .option('--follow', 'print its output as it is written, until the job has ended')
    .option('--fetch [dir]', 'download its kept files (default: into a directory named after its ID)')
    .option('--epoch <n>', 'number of the run (default: the latest)')
    .option('--task <n>', 'with --output, --stdout, --stderr or --follow: index of the task (default: 0)')
    .option('--tasks', 'show the tasks of its latest run')
    .option('--script', 'print its script as submitted');
  job.action(async (id: string, options: JobShown) => {
    const client = connect();
    const jobId = parseId('job', id);
    const epoch =
      options.epoch === undefined
        ? undefined
        : parseNumber('--epoch', options.epoch, { min: 1, integer: true });
    if (options.fetch) {
      const dir = options.fetch === true ? jobId : options.fetch;
      return told(jobId, await fetchFiles(client, jobId, dir, epoch), wantsJson(job));
    }
    if (options.output || options.stdout || options.stderr || options.follow) {
      const task =
        options.task === undefined ? 0 : parseNumber('--task', options.task, { min: 0, integer: true });
      if (options.follow) return followOutput(client, jobId, { ...options, epoch, task });
      return printOutput(client, jobId, { ...options, epoch, task, json: wantsJson(job) });
    }
    if (options.tasks) return showTasks(client, jobId, wantsJson(job));
    const found = (await client.request(JobDocument, { id: jobId })).job;
    if (!found) throw noSuchJob(jobId);
    if (options.script) return printScript(found, wantsJson(job));
    return wantsJson(job) ? printJson(found) : print(describeJob(await withUse(client, found)));
  });

  addAction(program, 'cancel', 'cancel jobs that have not ended', CancelDocument, 'cancelJobs');
  addAction(
    program,
    'requeue',
    'stop the runs of jobs and queue the jobs again; rerun ended jobs as copies',
    RequeueDocument,
    'requeueJobs',
  );
  addSignal(program);
  addAction(program, 'hold', 'hold pending jobs', HoldDocument, 'holdJobs');
  addAction(program, 'release', 'release held jobs', ReleaseDocument, 'releaseJobs');
  const boost = addFilterOptions(
    addCommand(
      program,
      'boost <value> [ids...]',
      'set the boost of jobs, which is added to their priority, from -1000 to 1000',
    ),
  ).option('--all', 'all jobs that have not ended');
  boost.action(async (value: string, ids: string[], options: FilterOptions) => {
    const client = connect();
    const number = parseNumber('boost', value, { min: -1000, max: 1000, integer: true });
    const selection = await selectionFrom(client, ids, options);
    const data = await client.request(ReprioritizeDocument, {
      selection,
      boost: number,
    });
    report(data.reprioritizeJobs, 'changed', wantsJson(boost));
  });
  addChange(program);
}

function addSignal(program: Command): void {
  const signal = addFilterOptions(
    addCommand(
      program,
      'signal <signal> [ids...]',
      'send a signal, such as USR1, to the processes of running jobs',
    ),
  )
    .option('--all', 'all jobs that have not ended')
    .option(
      '--to <receivers>',
      "which processes get it: all, command (only that of the job's command) or others (all but that one)",
      'all',
    );
  signal.action(async (named: string, ids: string[], options: FilterOptions & { to: string }) => {
    const client = connect();
    const to = parseWord('--to', options.to, ['ALL', 'COMMAND', 'OTHERS']);
    const sent = parseRunSignal('signal', named);
    if (sent === null) throw new CliError('signal: KILL ends jobs: use `switchyard cancel`', ExitCode.USAGE);
    const selection = await selectionFrom(client, ids, options);
    const { signalJobs } = await client.request(SignalDocument, { selection, signal: sent, to });
    report(signalJobs, 'signaled', wantsJson(signal));
  });
}

/** The options of `change`: those that select jobs, and those that say what is to be different. */
function addChange(program: Command): void {
  const change = addChangeOptions(
    addFilterOptions(addCommand(program, 'change [ids...]', 'change waiting jobs')),
  ).option('--all', 'all jobs that have not ended');
  change.action(async (ids: string[], options: ChangeOptions) => {
    const client = connect();
    const set = changesFromOptions(options);
    const selection = await selectionFrom(client, ids, options);
    const input = { selection, set, allowUnfit: options.allowUnfit ?? false };
    const { updateJobs } = await client.request(ChangeDocument, { input }).catch((error: unknown) => {
      throw spoken(error);
    });
    report(updateJobs, 'changed', wantsJson(change));
  });
}

type JobsPayload = CancelMutation['cancelJobs'] & Partial<Pick<RequeueMutation['requeueJobs'], 'jobs'>>;

function addAction<Field extends string>(
  program: Command,
  name: string,
  description: string,
  document: Document<Record<Field, JobsPayload>, { selection: JobSelection }>,
  field: Field,
): void {
  const command = addFilterOptions(addCommand(program, `${name} [ids...]`, description)).option(
    '--all',
    'all jobs that have not ended',
  );
  command.action(async (ids: string[], options: FilterOptions) => {
    const client = connect();
    const selection = await selectionFrom(client, ids, options);
    const data = await client.request(document, { selection });
    report(data[field], 'changed', wantsJson(command), new Set(selection.ids ?? []));
  });
}

/** Tells what an action did; a job that was named and stayed as it was makes the command fail. */
function report(payload: JobsPayload, verb: string, json: boolean, named = new Set<string>()): void {
  if (json) printJson(payload);
  else {
    print(`${count(payload.jobIds.length, 'job')} ${verb}`);
    for (const { id, rerunOf } of payload.jobs ?? [])
      if (rerunOf && named.has(rerunOf.id)) print(`${rerunOf.id} is run again as ${id}`);
  }
  for (const { id, code, message } of payload.unchanged)
    note(`error: ${message.includes(id) ? '' : `${id}: `}${saidOfOptions({ message, code })} (${code})`);
  if (payload.unchanged.length === 0) return;
  const allMissing =
    payload.jobIds.length === 0 && payload.unchanged.every(({ code }) => code === 'NOT_FOUND');
  process.exitCode = allMissing ? ExitCode.NOT_FOUND : ExitCode.FAILED;
}

/** Says what was fetched, and fails if something was not. */
function told(id: string, files: readonly FetchedFile[], json: boolean): void {
  if (json) printJson(files);
  else if (files.length === 0) note(`${id}: no files of this run are kept`);
  else for (const { file, bytes } of files) if (file !== null) print(`${printable(file)}  ${bytes} bytes`);
  if (files.some(({ file }) => file === null)) process.exitCode = ExitCode.FAILED;
}

type WithOutput = NonNullable<JobOutputQuery['job']>;
type Output = NonNullable<WithOutput['output']>;

interface JobShown extends OutputOptions {
  output?: boolean;
  follow?: boolean;
  fetch?: string | true;
  epoch?: string;
  task?: string;
  tasks?: boolean;
  script?: boolean;
}

/** Which streams; both when neither is named. */
interface OutputOptions {
  stdout?: boolean;
  stderr?: boolean;
}

type TaskLine = NonNullable<JobTasksQuery['job']>['runs'][number]['tasks'][number];

/** The tasks of a job's latest run. */
async function showTasks(client: Client, id: string, json: boolean): Promise<void> {
  const all: TaskLine[] = [];
  for (;;) {
    const { job } = await client.request(JobTasksDocument, {
      id,
      from: all.length,
      first: TASKS_PAGE,
    });
    if (!job) throw noSuchJob(id);
    const page = job.runs.at(-1)?.tasks ?? [];
    all.push(...page);
    if (page.length < TASKS_PAGE) break;
  }
  if (json) return printJson(all);
  const rows = all.map(({ index, machine, state, startedAt, endedAt, exitCode, cause, message }) => [
    ...[index, machine?.name, state, time(startedAt), time(endedAt), exitCode, cause, message],
  ]);
  print(table(['TASK', 'MACHINE', 'STATE', 'STARTED', 'ENDED', 'EXIT', 'CAUSE', 'MESSAGE'], rows));
}

const TASKS_PAGE = 1_000;

/** Prints what a job writes as it comes, each stream on the stream of its name. */
export async function followOutput(
  client: Client,
  id: string,
  { stdout, stderr, epoch, task }: OutputOptions & { epoch?: number | undefined; task: number },
): Promise<void> {
  const both = Boolean(stdout) === Boolean(stderr);
  const stop = new AbortController();
  const follow = async (stream: 'STDOUT' | 'STDERR'): Promise<void> => {
    const to = stream === 'STDOUT' ? process.stdout : process.stderr;
    // What is no whole character waits for the rest of it.
    const decoder = new TextDecoder();
    const told = {
      after: null,
      signal: stop.signal,
      onRetry: (why: string) => note(`connection lost (${why}); trying again`),
    };
    let at: { epoch: number; end: number } | null = null;
    for await (const part of client.updates(
      JobOutputFollowedDocument,
      'jobOutput',
      { id, stream, epoch, task },
      told,
    )) {
      if (part.last) return;
      const known: number = at?.epoch === part.epoch ? at.end : 0;
      if (part.start > known) note(`(${part.start - known} bytes of ${stream.toLowerCase()} were not kept)`);
      at = { epoch: part.epoch, end: part.start + part.length };
      const body = Buffer.from(part.base64, 'base64');
      to.write(to.isTTY ? printableOutput(decoder.decode(body, { stream: true })) : body);
    }
  };
  try {
    await Promise.all(
      (['STDOUT', 'STDERR'] as const)
        .filter((stream) => both || (stream === 'STDOUT') === Boolean(stdout))
        .map(follow),
    );
  } finally {
    stop.abort();
  }
}

/** Prints what a job wrote, each stream on the stream of its name. */
export async function printOutput(
  client: Client,
  id: string,
  {
    stdout,
    stderr,
    epoch,
    task = 0,
    json,
  }: { stdout?: boolean; stderr?: boolean; epoch?: number | undefined; task?: number; json?: boolean },
): Promise<void> {
  const both = Boolean(stdout) === Boolean(stderr);
  const all: Record<string, Output | null> = {};
  let job: WithOutput | null = null;
  for (const stream of ['STDOUT', 'STDERR'] as const) {
    if (!both && (stream === 'STDOUT') !== Boolean(stdout)) continue;
    job = (await client.request(JobOutputDocument, { id, stream, epoch, task })).job;
    if (!job) throw noSuchJob(id);
    const { output } = job;
    all[stream.toLowerCase()] = output;
    if (json || !output) continue;
    const to = stream === 'STDOUT' ? process.stdout : process.stderr;
    // Into a file it goes as it is.
    to.write(to.isTTY ? printableOutput(output.text) : output.text);
    if (output.truncated)
      note(`(${id}: only part of the ${output.bytes} bytes on ${stream.toLowerCase()} was kept)`);
  }
  if (json) return printJson(all);
  if (job && Object.values(all).every((output) => output === null))
    note(`${id}: ${await whyNoOutput(client, id, job)}`);
}

/** Why there is none: a job that waits, one that could not be started, one that has not written yet. */
async function whyNoOutput(client: Client, id: string, job: WithOutput): Promise<string> {
  const { state, cause, message, epoch } = job;
  const because = cause ? ` (${cause}${message ? `: ${message}` : ''})` : '';
  if (isTerminal(state)) {
    if (epoch === 0) return `it ended without being started: ${state}${because}`;
    return cause === 'EXITED_ZERO' || cause === 'EXITED_NONZERO'
      ? `it wrote no output: ${state}${because}`
      : `none of its output was kept: ${state}${because}`;
  }
  if (isLive(state)) return `no output yet: it is ${state}`;
  const data = await client.request(WhyWaitingDocument, { id });
  const why = data.job?.whyWaiting;
  return `no output yet: it is ${state}${why ? `: ${why.message} (${why.code})` : ''}`;
}

const JOB_COLUMNS: Columns<JobLine> = {
  ID: (job) => job.id,
  STATE: (job) => job.state,
  SITE: (job) => job.site?.name,
  CLASS: (job) => job.class,
  'SUBMITTED (UTC)': (job) => time(job.submittedAt),
  RUN: (job) => (job.startedAt ? duration(secondsBetween(job.startedAt, job.endedAt)) : null),
  EXIT: howEnded,
  WHAT: whatRuns,
};

/** The exit code where that is what ended it; else why it ended: 137 says less than MEMORY_LIMIT. */
function howEnded({ state, exitCode, cause }: JobLine): number | string | null {
  if (!isTerminal(state) || state === 'COMPLETED') return exitCode;
  return cause === 'EXITED_NONZERO' ? exitCode : (cause ?? exitCode);
}

function printScript(job: FullJob, json: boolean): void {
  const { line, script } = commandLine(job);
  if (json) {
    printJson({ script });
    return;
  }
  if (script === null)
    throw new CliError(`${job.id} does not have a script; it runs: ${printable(line)}`, ExitCode.NOT_FOUND);
  const text = script.endsWith('\n') ? script : `${script}\n`;
  // Into a file it goes as it is.
  process.stdout.write(process.stdout.isTTY ? printableOutput(text) : text);
}

/** A job's name or command line, not longer than fits a line. */
export function whatRuns(job: Pick<JobLine, 'name' | 'command' | 'arguments'>): string {
  const text = job.name ?? [job.command, ...job.arguments].join(' ');
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}

/** Seconds from one ISO time to another, or to now. */
export function secondsBetween(from: string, to: string | null): number {
  return Math.max(0, ((to ? Date.parse(to) : Date.now()) - Date.parse(from)) / 1000);
}

type FullJob = NonNullable<JobQuery['job']>;

/** `job_1 OK, job_2 ANY; any of job_3 OK, group "a" OK`; null: nothing. */
function afterOf({ needs, onUnmet }: FullJob): string | null {
  if (needs.length === 0) return null;
  const clauses = needs.map(({ expression, of }) => {
    const terms = of.map(({ job, jobGroup, group, condition, minDelayS }) => {
      const what = job?.id ?? jobGroup?.id ?? (group === null ? 'a job' : `group ${JSON.stringify(group)}`);
      return `${what} ${condition}${minDelayS > 0 ? ` + ${duration(minDelayS)}` : ''}`;
    });
    return `${expression === 'ANY' && of.length > 1 ? 'any of ' : ''}${terms.join(', ')}`;
  });
  return `${clauses.join('; ')} (else ${onUnmet})`;
}

/** With what its run has used so far, as the agents tell it now. */
async function withUse(client: Pick<Client, 'request'>, job: FullJob): Promise<FullJob> {
  if (job.state !== 'RUNNING') return job;
  const { job: live } = await client.request(JobUseDocument, { id: job.id });
  const uses = new Map(live?.runs.map(({ epoch, liveUse }) => [epoch, liveUse ?? {}]));
  return { ...job, runs: job.runs.map((run) => ({ ...run, ...uses.get(run.epoch) })) };
}

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a line for each field
function describeJob(job: FullJob): string {
  const lines: [string, unknown][] = [
    ['id', job.id],
    ['state', `${job.state}${job.cause ? ` (${job.cause})` : ''}`],
    ['message', job.message],
    ['exit code', job.exitCode],
    ['name', job.name],
    ['command', commandLine(job).line],
    ['user', job.user.name],
    ['site', job.site?.name],
    ['project', job.project],
    ['group', job.groupName],
    ['array index', job.arrayIndex],
    ['directory', job.workingDirectory],
    ['needs', needs(job)],
    ['at once', job.atOnce ? `at most ${job.atOnce} of the jobs that were changed with it` : null],
    ['estimate', `${duration(job.estimateS)} on power ${job.benchmark}`],
    ['limit', limit(job)],
    [
      'checkpoint',
      job.checkpoint && `${job.checkpoint.path}, ${job.checkpoint.signal} when it is stopped for another job`,
    ],
    ['downloads', job.downloads.map(({ url }) => url).join(', ') || null],
    ['uploads', job.uploads.map(({ path, url }) => `${path} to ${url}`).join(', ') || null],
    ['retries', retriesOf(job)],
    ['deadline', job.deadline && `${time(job.deadline)}${job.deadlineMissed ? ' (missed)' : ''}`],
    [
      'priority',
      job.priority === null ? null : `${job.priority}${job.boost ? ` and boost ${job.boost}` : ''}`,
    ],
    // Where there is no priority yet.
    ['boost', (job.priority === null && job.boost) || null],
    ['class', job.class ?? (job.preemptionClass || null)],
    ['charged', job.charged ? null : 'no'],
    ['submitted', time(job.submittedAt)],
    ['dispatched', job.dispatchedAt && time(job.dispatchedAt)],
    ['started', job.startedAt && time(job.startedAt)],
    ['ended', job.endedAt && time(job.endedAt)],
    ['after', afterOf(job)],
    ['not before', job.notBefore && time(job.notBefore)],
    ['eligible', job.eligibleAt && time(job.eligibleAt)],
    ['needed by', job.neededBy.length === 0 ? null : job.neededBy.map(({ id }) => id).join(' ')],
    ['workflow', job.workflow && workflowPlace(job.workflow)],
    ['rerun of', job.rerunOf?.id],
    ['rerun as', job.rerunAs?.id],
    ['waits', job.whyWaiting && `${job.whyWaiting.message} (${job.whyWaiting.code})`],
  ];
  const text = lines
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${name.padEnd(12)}${printable(String(value))}`);
  if (job.runs.length > 0) {
    const hasDevices = job.runs.some(({ deviceS }) => deviceS !== null);
    const rows = job.runs.map((run) => [
      run.epoch,
      run.site.name,
      [
        ...run.allocations.map(({ machine, tasks, devices }) =>
          [`${machine.name}×${tasks}`, ...(devices.length > 0 ? [`(${devices.join(' ')})`] : [])].join(' '),
        ),
        ...run.nodes,
      ].join(' '),
      time(run.startedAt),
      run.startedAt ? duration(secondsBetween(run.startedAt, run.endedAt)) : null,
      duration(run.plannedS),
      run.cause,
      run.signal ?? run.exitCode,
      duration(run.cpuS),
      duration(run.ioWaitS) && `${duration(run.ioWaitS)} (${run.ioWaitMethod ?? 'method unknown'})`,
      run.peakMemoryMb === null ? null : `${Math.ceil(run.peakMemoryMb)} MB`,
      run.readMb === null ? null : `${run.readMb.toFixed(1)}/${(run.writtenMb ?? 0).toFixed(1)} MB`,
      ...(hasDevices
        ? [duration(run.deviceS), run.deviceMemoryMb === null ? null : `${Math.ceil(run.deviceMemoryMb)} MB`]
        : []),
    ]);
    text.push(
      '',
      table(
        [
          'RUN',
          'SITE',
          'MACHINES',
          'STARTED (UTC)',
          'TOOK',
          'PLANNED',
          'CAUSE',
          'EXIT',
          'CPU',
          'I/O WAIT',
          'MEMORY',
          'READ/WRITTEN',
          ...(hasDevices ? ['DEVICES BUSY', 'DEVICE MEMORY'] : []),
        ],
        rows,
      ),
    );
  }
  for (const { epoch, localId, localState } of job.runs)
    if (localId !== null)
      text.push(
        `run ${epoch}: ${printable(localId)} of the site's scheduler, ${printable(localState ?? '')}`,
      );
  for (const { epoch, localDirectory, endedAt } of job.runs)
    if (localDirectory !== null && endedAt === null)
      text.push(`run ${epoch}: its output is in ${printable(localDirectory)} at the site`);
  for (const { epoch, imageDigest } of job.runs)
    if (imageDigest !== null) text.push(`run ${epoch}: image ${imageDigest}`);
  for (const { epoch, checkpointAt } of job.runs)
    if (checkpointAt !== null) text.push(`run ${epoch}: last wrote its checkpoint at ${time(checkpointAt)}`);
  for (const { epoch, retry } of job.runs) if (retry?.note) text.push(`run ${epoch}: ${retry.note}`);
  for (const { epoch, staging } of job.runs) {
    if (staging === null) continue;
    const { totalMb, movedMb, predictedS, measuredS } = staging;
    const took = measuredS === null ? 'in progress' : `took ${duration(measuredS)}`;
    const size = `${Math.round(movedMb)} of ${Math.round(totalMb)} MB moved`;
    text.push(`run ${epoch}: staging ${took} (${size}; predicted ${duration(predictedS)})`);
  }
  if (job.files.length > 0) {
    const rows = job.files.map(({ task, path, bytes, receivedBytes, keptUntil }) => [
      ...[task, printable(path), bytes],
      keptUntil === null ? `${receivedBytes} bytes received` : time(keptUntil),
    ]);
    text.push('', table(['TASK', 'FILE', 'BYTES', 'KEPT UNTIL (UTC)'], rows));
  }
  return text.join('\n');
}

function retriesOf({ retry, retries }: FullJob): string | null {
  if (retry === null) return retries === 0 ? null : String(retries);
  const { maxRetries, rules } = retry;
  return `${retries} of ${maxRetries}, ${count(rules.length, 'rule')}`;
}

/** Its own, else what its latest run was given. */
function limit({ runTimeLimitS, runs, warnS, warnSignal, killGraceS }: FullJob): string | null {
  const limitS = runTimeLimitS ?? runs.at(-1)?.runTimeLimitS ?? null;
  if (limitS === null) return null;
  const warned = warnS ? [`${warnSignal} ${duration(warnS)} before`] : [];
  const ofSite = runTimeLimitS === null ? " (its site's)" : '';
  return [`${duration(limitS)}${ofSite}`, ...warned, `SIGKILL ${duration(killGraceS)} after`].join(', ');
}

function needs(job: FullJob): string {
  const several = job.parts.map((part, i) => `part ${i}: ${partText(part)}`).join('; ');
  const parts = [several || partText({ ...job, machineConstraint: null })];
  if (job.licenses.length > 0) parts.push(`licenses ${licensesWritten(job.licenses)}`);
  if (job.os) parts.push(job.os);
  if (job.architecture) parts.push(job.architecture);
  if (job.machineConstraint) parts.push(`machines with ${job.machineConstraint}`);
  if (job.image) parts.push(`image ${job.image}`);
  if (job.terminal) parts.push('a terminal');
  if (job.reservation) parts.push(`in reservation ${job.reservation.name ?? job.reservation.id}`);
  for (const [name, value] of Object.entries(job.siteTerms ?? {}))
    if (value !== null) parts.push(`${name} ${value}`);
  return parts.join(', ');
}
