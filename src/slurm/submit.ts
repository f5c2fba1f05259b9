/** sbatch, srun and salloc. */
import { readFileSync } from 'node:fs';
import { constants, hostname } from 'node:os';
import { basename, resolve } from 'node:path';
import { ACTIVE_STATES } from '../client/states.gql.js';
import { programEnvironment } from '../platform/connection.js';
import {
  type Asked,
  arrayName,
  batchCommand,
  batchEnvironment,
  type Command,
  commandOfScript,
  directivesOf,
  elementsOf,
  exported,
  jobOf,
  type Need,
  NotAccepted,
  nothing,
  readComponent,
  readOptions,
  SCRIPT_BYTES_MAX,
  SLURM,
  SLURM_STEP,
  shapeOf,
  takeOptions,
  UnknownOption,
} from '../words/index.js';
import { ask, clientOptions, SlurmError, send } from './ask.js';
import { clustersAsked, OWN } from './clusters.js';
import { complain, helpTold, pause, print, type Run, unrecognized, versionTold, warn } from './command.js';
import {
  SlurmPlacementDocument,
  SlurmSiteNamesDocument,
  SlurmSubmitDocument,
  type SlurmSubmitMutationVariables,
} from './documents.gql.js';
import { exitOf, findJobs, hasEnded, type Job, localTime, numberOf, placeOf, slurmState } from './jobs.js';
import { type AskedPartitions, atSite, noPartition, ownPartitions, SITES_OR_ONE } from './partitions.js';

type JobInput = Extract<SlurmSubmitMutationVariables['input']['jobs'], readonly unknown[]>[number];

const ownName = (): string => programEnvironment().USER ?? programEnvironment().LOGNAME ?? '';

/** What options of the command line ask for, over what is there already; the words behind them. */
function takeInto(asked: Asked, words: readonly string[], name: string, table = SLURM): string[] {
  const at = { nowMs: Date.now(), note: () => undefined };
  try {
    let { options, rest } = takeOptions(words, table);
    const ignored = readOptions(asked, options, at);
    // Behind each colon are the options of a further component.
    for (let i = 0; rest[0] === ':'; i++) {
      const component = asked.components[i] ?? nothing();
      asked.components[i] = component;
      ({ options, rest } = takeOptions(rest.slice(1), table));
      ignored.push(...readComponent(asked, component, options, at));
    }
    if (asked.help) throw helpTold(name);
    if (asked.version) throw versionTold();
    for (const unheeded of ignored) warn(name, unheeded);
    return rest;
  } catch (error) {
    throw error instanceof UnknownOption ? unrecognized(name, error) : error;
  }
}

/** The script: a file, `--wrap`, or standard input. */
function scriptOf(asked: Asked, path: string | undefined): { script: string; name: string } {
  if (asked.wrap !== undefined) {
    if (path !== undefined) throw new SlurmError('Script arguments not permitted with --wrap option');
    return {
      script: `#!/bin/sh\n# This script was created by sbatch --wrap.\n\n${asked.wrap}\n`,
      name: 'wrap',
    };
  }
  let body: Buffer;
  try {
    body = readFileSync(path ?? 0);
  } catch {
    throw new SlurmError(`Unable to open file ${path ?? 'standard input'}`);
  }
  const script = body.toString('utf8');
  if (!script.startsWith('#!'))
    throw new SlurmError(
      script.trim() === ''
        ? 'Batch script is empty!'
        : 'This does not look like a batch script.  The first\nline must start with #! followed by the path to an interpreter.\nFor instance: #!/bin/sh',
    );
  if (script.includes('\0'))
    throw new SlurmError("The Slurm controller does not allow scripts that contain a NULL character '\\0'.");
  if (body.length > SCRIPT_BYTES_MAX)
    throw new SlurmError(
      `Batch script is too large: ${body.length} bytes; accepted: up to ${SCRIPT_BYTES_MAX}`,
    );
  return { script, name: path === undefined ? 'sbatch' : basename(path) };
}

/** Options of the environment, of the script, of the command line: later ones win. */
function askedFor(words: readonly string[], name: string): { asked: Asked; script: string; args: string[] } {
  const fromLine = nothing();
  const rest = takeInto(fromLine, words, name);
  const { script, name: scriptName } = scriptOf(fromLine, rest[0]);
  const { asked, misread, unheeded } = directivesOf(script, { nowMs: Date.now(), note: () => undefined });
  const [wrong] = misread;
  if (wrong) throw new SlurmError(`line ${wrong.line}: ${wrong.text}: ${wrong.why}`);
  for (const one of unheeded) warn(name, one);
  takeInto(asked, words, name);
  asked.name ??= scriptName;
  return { asked, script, args: rest.slice(1) };
}

/** The jobs of a submission: one, or those of an array. */
async function inputsOf(asked: Asked, run: Command, name: string): Promise<JobInput[]> {
  const directory = process.cwd();
  const environment = {
    ...exported(asked.exports ?? 'ALL', programEnvironment()),
    ...batchEnvironment(asked, { user: ownName(), host: hostname(), directory }),
    ...asked.environment,
  };
  const needs = [
    ...(await throughArrays(asked.needs)),
    ...(asked.singleton ? await namesakes(asked.name!) : []),
  ];
  const peers = await peersAsked(asked, name);
  const place =
    asked.partition !== undefined
      ? await placeIn(asked.partition, asked.limitS, name)
      : peers.length > 0
        ? await placeIn(peers.join(','), asked.limitS, name, '--clusters')
        : {};
  const given = jobOf({ ...(place.own ? inPartitions(asked, place.own) : asked), needs });
  const { ntasks } = shapeOf(asked);
  const groupName = asked.array && arrayName(asked.array.written, randomHex());
  if (groupName !== undefined && groupName.length > 200)
    throw new SlurmError('Invalid job array specification: too many ranges; accepted: up to 185 characters');
  const job = {
    ...given,
    application: asked.name!,
    workingDirectory: resolve(directory, asked.directory ?? '.'),
    ...(place.preferences && { preferences: place.preferences }),
    ...((ntasks > 1 || asked.components.length > 0) && { launch: 'ONCE' as const }),
    ...(groupName !== undefined && { groupName }),
    environment: Object.entries(environment).map(([variable, value]) => ({ name: variable, value })),
  };
  if (!asked.array) return [{ ...job, ...batchCommand(asked, run) }];
  return elementsOf(asked.array).map(({ needs, ...element }, place) => ({
    ...job,
    ...element,
    ...batchCommand(asked, run, place),
    ...(needs && { needs: [...(job.needs ?? []), ...needs] }),
  }));
}

/** Eight digits that tell arrays apart, and keep nothing secret: node:crypto takes 3 ms to load, for every job. */
const randomHex = (): string =>
  Math.floor(Math.random() * 2 ** 32)
    .toString(16)
    .padStart(8, '0');

/** The number of an array stands for all its elements: they are known by the name that they share. */
async function throughArrays(needs: readonly Need[]): Promise<Need[]> {
  const ids = needs.flatMap(({ job }) => job ?? []);
  if (ids.length === 0) return [...needs];
  const { jobs } = await findJobs({ ids: [...new Set(ids)] });
  return needs.map(({ job, ...need }) => {
    const found = jobs.find(({ id }) => id === job);
    if (!found)
      throw new SlurmError(`Batch job submission failed: Job dependency problem: job ${job} does not exist`);
    const place = placeOf(found);
    return place?.first === numberOf(found.id)
      ? { ...need, group: place.groupName }
      : { ...need, job: found.id };
  });
}

/** The user's jobs of that name that have not ended: what `singleton` waits for. */
async function namesakes(application: string): Promise<Need[]> {
  const { jobs, user } = await findJobs({ application, states: ACTIVE_STATES });
  return jobs
    .filter((job) => job.user.name === user)
    .map(({ id }) => ({ job: id, condition: 'ANY' as const }));
}

/**
 * Peers among the clusters that are asked for.
 *
 * @throws SlurmError for a cluster that there is not, and where the command has to reach what the job runs
 */
async function peersAsked({ clusters = '' }: Asked, name: string): Promise<string[]> {
  const asked = await clustersAsked(clusters.split(',').filter(Boolean));
  if (asked === null || asked.names.includes(OWN)) return [];
  if (name !== 'sbatch')
    throw new SlurmError(
      `--clusters: ${name} does not reach jobs of peers; accepted: ${OWN}, or \`sbatch -M ${asked.names.join(',')}\``,
    );
  return [...asked.names];
}

/**
 * Partitions are sites. Policies choose the site, so that a site is a preference. A partition of a site's own scheduler is at one site only: the job
 * goes there, and its operator's rules say whether it may.
 */
async function placeIn(
  partition: string,
  limitS: number | undefined,
  name: string,
  option = '--partition',
): Promise<{ preferences?: { site: string }[]; own?: AskedPartitions }> {
  const { sites } = await ask(SlurmSiteNamesDocument, { first: 5000, after: null });
  const wanted = partition.split(',');
  const found = sites.nodes.filter((site) => wanted.includes(site.name));
  const others = wanted.filter((one) => one !== 'any' && !found.some((site) => site.name === one));
  if (others.length > 0) {
    if (found.length > 0) throw noPartition(partition, [SITES_OR_ONE]);
    const names = sites.nodes.map((site) => site.name);
    return { own: await ownPartitions(others, limitS, names) };
  }
  if (found.length > 0 && sites.nodes.length > 1)
    warn(name, `${option}: a preference only; the policy of the service chooses the site`);
  return { preferences: found.map(({ id }) => ({ site: id })) };
}

const inPartitions = (asked: Asked, { site, partition }: AskedPartitions): Asked => ({
  ...asked,
  constraint: atSite(site, asked.constraint),
  components: asked.components.map((one) => ({ ...one, constraint: atSite(site, one.constraint) })),
  siteTerms: { ...asked.siteTerms, partition },
});

/** The option that says what a field of a job is, where the service may refuse it. */
const SPOKEN: Readonly<Record<string, string>> = {
  ...{
    tasks: '--ntasks',
    cpusPerTask: '--cpus-per-task',
    memoryMbPerTask: '--mem',
    resourcesPerTask: '--gres',
  },
  ...{
    machineConstraint: '--constraint',
    licenses: '--licenses',
    reservation: '--reservation',
    class: '--qos',
  },
  ...{ runTimeLimitS: '--time', estimateS: '--time', notBefore: '--begin', deadline: '--deadline' },
  ...{ name: '--job-name', project: '--account', image: '--container', workingDirectory: '--chdir' },
};
const NO_GRES = 'Invalid generic resource (gres) specification';

async function submit(jobs: readonly JobInput[]): Promise<string[]> {
  const { submitJobs } = await ask(SlurmSubmitDocument, { input: { jobs } });
  const [fault] = submitJobs.errors;
  if (!fault) return [...submitJobs.jobIds];
  // Not about a job: a quota, for example.
  if (fault.field === null) throw new SlurmError(fault.message);
  // Slurm's words, by which clients know that trying again is vain.
  const why =
    fault.code === 'NEVER_FITS' || /ever run/.test(fault.message)
      ? 'Requested node configuration is not available'
      : 'Invalid job';
  const option = SPOKEN[fault.field];
  const what = option === undefined ? fault.message : fault.message.replace(fault.field, option);
  throw new SlurmError(`${what}\nBatch job submission failed: ${option === '--gres' ? NO_GRES : why}`);
}

/** Says when and where it would start. */
async function testOnly(asked: Asked, job: JobInput, name: string): Promise<number> {
  const { placement } = await ask(SlurmPlacementDocument, { spec: { ...job, held: false } });
  if (placement.site === null) throw new SlurmError(`allocation failure: ${placement.message}`);
  const { ntasks, cpusPerTask } = shapeOf(asked);
  const nodes = placement.allocations.map(({ machine }) => machine.name).join(',');
  process.stderr.write(
    `${name}: Job 0 to start at ${localTime(placement.startsAt ?? new Date().toISOString(), '')} using ${ntasks * cpusPerTask} processors on nodes ${nodes} in partition ${placement.site.name}\n`,
  );
  return 0;
}

export const sbatch: Run = async (words, name) => {
  const { asked, script, args } = readAsked(() => askedFor(words, name));
  asked.output ??= asked.array ? 'slurm-%A_%a.out' : 'slurm-%j.out';
  if (asked.input === undefined) asked.input = '/dev/null';
  const inputs = await inputsOf(asked, commandOfScript(script, asked.name, args), name);
  if (asked.testOnly) return testOnly(asked, inputs[0]!, name);
  const ids = await submit(inputs);
  const number = ids[0]!.replace('job_', '');
  if (!asked.quiet || asked.parsable) print(asked.parsable ? number : `Submitted batch job ${number}`);
  if (!asked.wait) return 0;
  // What a signal, a limit or a cancellation has ended counts as 1.
  const codes = (await awaited(ids)).map(
    (job) => parseInt(exitOf(job), 10) || Number(job.state !== 'COMPLETED'),
  );
  return Math.max(...codes);
};

/** What is wrong with a value is told in Slurm's way. */
function readAsked<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof NotAccepted)
      throw new SlurmError(`Invalid ${error.field} specification: ${error.message}`, 'VALUE');
    throw error;
  }
}

const POLL_MS = 500;

async function awaited(ids: readonly string[]): Promise<Job[]> {
  for (;;) {
    const jobs: Job[] = [];
    for (let at = 0; at < ids.length; at += 1000)
      jobs.push(...(await findJobs({ ids: ids.slice(at, at + 1000) })).jobs);
    if (jobs.every(hasEnded)) return jobs;
    await pause(POLL_MS);
  }
}

const codeOf = (job: Job): number => (job.state === 'COMPLETED' ? 0 : job.exitCode || 1);

/** In a job: a step of it. Outside: a job that is waited for. */
export const srun: Run = (words, name) =>
  programEnvironment().SWITCHYARD_JOB_ID === undefined ? waitingRun(words, name) : step(words, name);

/** `isAllocation`: as of salloc, whose command is started once, whatever the number of tasks. */
async function waitingRun(
  words: readonly string[],
  name: string,
  { isAllocation = false } = {},
): Promise<number> {
  const asked = nothing();
  const rest = readAsked(() => takeInto(asked, words, name));
  const [command, ...args] = rest;
  if (asked.jobid !== undefined) throw new SlurmError(NO_JOINING);
  if (command === undefined) {
    if (!isAllocation) throw new SlurmError('No command given to execute.');
    return inTerminal(asked, null, name, { isAllocation });
  }
  if (asked.pty) {
    const isShell = SHELL.test(command) && args.every((word) => word.startsWith('-'));
    if (isShell || (process.stdin.isTTY && process.stdout.isTTY))
      return inTerminal(asked, { command, arguments: args }, name, { isAllocation });
    warn(name, '--pty: there is no terminal: the command gets no input, and its output is streamed');
  }
  asked.name ??= basename(command);
  const { ntasks } = shapeOf(asked);
  // Each task of Slurm's runs the command, which sbatch's do not.
  const run: Command =
    ntasks > 1 && !isAllocation
      ? { command: '/bin/sh', arguments: ['-c', EACH, 'sh', String(ntasks), command, ...args] }
      : { command, arguments: args };
  const [id] = await submit(await inputsOf(asked, run, name));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void cancel(id!, signal));
  const number = id!.replace('job_', '');
  const say = (text: string): void => void (asked.quiet || process.stderr.write(`${name}: ${text}\n`));
  if (isAllocation) say(`Pending job allocation ${number}`);
  say(`job ${number} queued and waiting for resources`);
  const at = { stdout: 0, stderr: 0 };
  for (let granted = false; ; ) {
    const { jobs } = await findJobs({ ids: [id!] });
    const job = jobs[0];
    if (isAllocation && !granted && job && job.startedAt !== null) {
      granted = true;
      say(`Granted job allocation ${number}`);
    }
    if (job && (job.state === 'RUNNING' || hasEnded(job)))
      for (const stream of ['stdout', 'stderr'] as const)
        at[stream] += await copyOutput(id!, stream, at[stream]);
    if (job && hasEnded(job)) {
      if (isAllocation) say(`Relinquishing job allocation ${number}`);
      else if (job.state !== 'COMPLETED')
        complain(
          name,
          `${job.user.name}: job ended ${slurmState(job)}${job.message ? `: ${job.message}` : ''}`,
        );
      return codeOf(job);
    }
    await pause(POLL_MS);
  }
}

/**
 * A job whose command is in a terminal, which is connected with this one: `srun --pty`, and salloc without a command. As Slurm's with
 * `LaunchParameters=use_interactive_step`, the shell of an allocation is on its first machine.
 */
async function inTerminal(
  asked: Asked,
  run: Command | null,
  name: string,
  { isAllocation }: { isAllocation: boolean },
): Promise<number> {
  // From its own file, with all that it takes to follow a job: the other commands do not wait for that to be loaded.
  const terminals = await import('../client/terminal.js');
  const terminal = terminals.terminalSize();
  if (terminal === null) throw new SlurmError(isAllocation ? NO_SHELL : NO_TERMINAL);
  asked.name ??= run === null ? 'interactive' : basename(run.command);
  const [job] = await inputsOf(asked, run ?? terminals.SHELL_COMMAND, name);
  const [id] = await submit([{ ...job!, terminal, restartable: false }]);
  const client = new terminals.Client(clientOptions());
  const number = id!.replace('job_', '');
  const say = (text: string): void => void (asked.quiet || process.stderr.write(`${name}: ${text}\n`));
  const gone = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      gone.abort();
      void cancel(id!, signal);
    });
  if (isAllocation) say(`Pending job allocation ${number}`);
  say(`job ${number} queued and waiting for resources`);
  const epoch = await terminals.untilRunning(client, id!);
  say(`job ${number} has been allocated resources`);
  if (isAllocation) say(`Granted job allocation ${number}`);
  if (epoch !== null && !(await terminals.useTerminal(client, { id: id!, epoch }, gone.signal))) {
    complain(name, `lost the connection to job ${number}`);
    await cancel(id!, 'SIGHUP');
  }
  const [ended] = await awaited([id!]);
  if (isAllocation) say(`Relinquishing job allocation ${number}`);
  else if (ended!.message) complain(name, ended!.message);
  // Connections of the client stay open for a while, for the next request.
  return process.exit(codeOf(ended!));
}

/** Starts a command so many times, and gives the largest exit code. */
const EACH = `n=$1 i=0 code=0; shift
while [ $i -lt $n ]; do SLURM_PROCID=$i SLURM_LOCALID=$i "$@" & pids="$pids $!"; i=$((i + 1)); done
for pid in $pids; do wait $pid; one=$?; [ $one -le $code ] || code=$one; done; exit $code`;

async function cancel(id: string, signal: NodeJS.Signals): Promise<void> {
  const { SlurmCancelDocument } = await import('./documents.gql.js');
  await ask(SlurmCancelDocument, { selection: { ids: [id] } }).catch(() => undefined);
  process.exit(128 + constants.signals[signal]);
}

/** What has been written since. Gives how many bytes. */
async function copyOutput(id: string, stream: 'stdout' | 'stderr', from: number): Promise<number> {
  const { status, body } = await send(`/jobs/${id}/output?stream=${stream}`, {
    headers: { range: `bytes=${from}-` },
  });
  if (status !== 206 && !(status === 200 && from === 0)) return 0;
  process[stream].write(body);
  return body.length;
}

async function step(words: readonly string[], name: string): Promise<number> {
  const asked = nothing();
  const [command, ...args] = readAsked(() => takeInto(asked, words, name, SLURM_STEP));
  if (command === undefined) throw new SlurmError('No command given to execute.');
  const { runStep } = await import('./step.js');
  return runStep(asked, command, args);
}

/** A shell that would wait for input. */
const SHELL = /(^|\/)(ba|da|z|k|c|tc|fi)?sh$/;
const NO_TERMINAL =
  'an interactive shell requires a terminal on standard input and output: give a command (`srun COMMAND`), or submit a script with `sbatch FILE`';
const NO_JOINING =
  '--jobid: a running job cannot be joined from outside: run srun in its script, or see its output with `switchyard job JOB --output`';
const NO_SHELL =
  'an allocation with a shell requires a terminal on standard input and output: give a command (`salloc COMMAND`), or submit a script with `sbatch FILE`';

/** The command is run on the first machine of the allocation, where `srun` runs steps. */
export const salloc: Run = (words, name) => waitingRun(words, name, { isAllocation: true });
