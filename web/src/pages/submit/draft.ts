/** A job as it is being written: texts of fields, and the `JobInput` that follows from them. */
import {
  batchCommand,
  batchEnvironment,
  commandOfScript,
  type DeviceTerms,
  type Directives,
  directivesOf,
  elementsOf,
  exported,
  jobOf,
  licensesWritten,
  mailKinds,
  NotAccepted,
  parseArray,
  parseDelay,
  parseDuration,
  parseLabelNames,
  parseLicenses,
  parseMemory,
  parseNeeds,
  parsePart,
  parseRequests,
  parseTasksPerMachine,
  parseUpload,
  requestsWritten,
  retryRuleOf,
  tasksPerMachineWritten,
  withDevices,
  wordsOf,
} from '../../../../src/words/index';
import { END_CAUSES } from '../../api/states.gql';
import { sameSwitchOf, sameSwitchWritten } from '../../parts/placement';
import type {
  Exclusive,
  JobAgainQuery,
  JobInput,
  JobPartInput,
  SubmitChoicesQuery,
  TaskFailure,
  TaskLaunch,
} from './submit.gql';

export interface Draft {
  command: string;
  /** `sh -c` runs the command line; else it is split into words and run as it is. */
  shell: boolean;
  script: string;
  name: string;
  application: string;
  project: string;
  groupName: string;
  class: string;
  tasks: string;
  launch: TaskLaunch;
  onTaskFailure: TaskFailure;
  cpusPerTask: string;
  memoryMbPerTask: string;
  /** `4`, `2-4`, `2-`; empty: as many as fit. */
  tasksPerMachine: string;
  exclusive: '' | Exclusive;
  /** `rack,gen` */
  allAlike: string;
  /** Empty, `require`, or `within 10m`. */
  sameSwitch: string;
  /** `gpu`; empty: none. */
  deviceKind: string;
  /** Per task. */
  devices: string;
  deviceModel: string;
  /** Of each device, or of its share, at least; empty: any. */
  deviceMemory: string;
  /** By what they are: `gpu:a100:2:mem=40G, gpu:share=1/4`. */
  requests: string;
  /** `90`, `10m`, `2h`, `1-12:00:00`. */
  estimate: string;
  runTimeLimit: string;
  deadline: string;
  /** `gpu=2, tape=1` */
  resources: string;
  /** `gen >= 3 and not slow` */
  constraint: string;
  /** A part a line, as `switchyard submit --part` takes them; empty: all tasks are alike. */
  parts: string;
  /** Name or id of the one that it runs in. */
  reservation: string;
  licenses: string;
  /** As sbatch's `--dependency`: `afterok:12`. */
  needs: string;
  os: string;
  architecture: string;
  inputs: string[];
  outputMb: string;
  /** Paths or patterns, one a line. */
  outputs: string;
  /** URLs, one a line. */
  downloads: string;
  /** One a line, as `switchyard submit --upload` takes them. */
  uploads: string;
  environment: string;
  workingDirectory: string;
  restartable: boolean;
  held: boolean;
  boost: string;
  /** How often it is run again after a failure. */
  retries: string;
  /** Before the first time. */
  backoff: string;
  /** A rule a line, as `switchyard submit --retry-rule` takes them. */
  retryRules: string;
  /** `end,fail`; `none`; empty: as its user has chosen. */
  mail: string;
}

export const EMPTY: Draft = {
  command: '',
  shell: true,
  script: '#!/bin/sh\n#SBATCH --cpus-per-task=1\n#SBATCH --time=00:10:00\n\necho "Hello from $(hostname)"\n',
  name: '',
  application: '',
  project: '',
  groupName: '',
  class: '',
  tasks: '1',
  launch: 'EVERY_TASK',
  onTaskFailure: 'END_ALL',
  cpusPerTask: '1',
  memoryMbPerTask: '0',
  tasksPerMachine: '',
  exclusive: '',
  allAlike: '',
  sameSwitch: '',
  deviceKind: '',
  devices: '1',
  deviceModel: '',
  deviceMemory: '',
  requests: '',
  estimate: '1h',
  runTimeLimit: '',
  deadline: '',
  resources: '',
  constraint: '',
  parts: '',
  reservation: '',
  licenses: '',
  needs: '',
  os: '',
  architecture: '',
  inputs: [],
  outputMb: '0',
  outputs: '',
  downloads: '',
  uploads: '',
  environment: '',
  workingDirectory: '',
  restartable: true,
  held: false,
  boost: '0',
  retries: '0',
  backoff: '30s',
  retryRules: '',
  mail: '',
};

export class Wrong extends Error {
  constructor(
    readonly field: keyof Draft,
    message: string,
  ) {
    super(message);
  }
}

/** What the lines of a script ask for: as fields, and what has no field, as the job is to be submitted with it. */
export function fieldsOf(script: string): {
  fields: Partial<Draft>;
  beside: Partial<JobInput>;
  directives: Directives;
} {
  const directives = directivesOf(script, { nowMs: Date.now(), note: () => undefined });
  const { name, project, groupName, tasks, cpusPerTask, memoryMbPerTask, ...job } = jobOf(directives.asked);
  const { estimateS, runTimeLimitS, deadline, resourcesPerTask, machineConstraint, licenses, os, ...more } =
    job;
  const { architecture, outputs = [], workingDirectory, restartable, held, boost, launch, ...others } = more;
  const { onTaskFailure, outputMb, mail, tasksPerMachine, exclusive, allAlike, sameSwitch, ...further } =
    others;
  const { class: jobClass, reservation, devicesPerTask, downloads, uploads, ...rest } = further;
  const datasets = outputs.filter(({ dataset }) => dataset !== undefined);
  const files = outputs.filter(({ dataset }) => dataset === undefined);
  const beside = { ...rest, ...(datasets.length > 0 && { outputs: datasets }) };
  const text = (value: number | undefined): string | undefined => value?.toString();
  const fields: Partial<Draft> = {
    name,
    project,
    groupName,
    class: jobClass,
    tasks: text(tasks),
    cpusPerTask: text(cpusPerTask),
    memoryMbPerTask: text(memoryMbPerTask),
    tasksPerMachine: tasksPerMachine && tasksPerMachineWritten(tasksPerMachine),
    exclusive: exclusive ?? undefined,
    allAlike: allAlike?.join(', '),
    sameSwitch: sameSwitch && sameSwitchWritten(sameSwitch),
    estimate: text(estimateS),
    runTimeLimit: text(runTimeLimitS),
    deadline,
    // Of kinds that are counted for a site or the grid, too: the service knows which are.
    resources: resourcesPerTask?.map(({ kind, amount }) => `${kind}=${amount}`).join(','),
    requests: devicesPerTask && requestsWritten(devicesPerTask),
    constraint: machineConstraint,
    reservation,
    licenses: licenses && licensesWritten(licenses),
    os,
    architecture,
    outputs: files.map(({ path }) => path).join('\n') || undefined,
    downloads: downloads?.map(({ url }) => url).join('\n'),
    uploads: uploads?.map(({ path, url }) => `${path}=${url}`).join('\n'),
    outputMb: text(outputMb),
    onTaskFailure,
    workingDirectory,
    restartable,
    held,
    boost: text(boost),
    launch,
    mail: mail && (mail.join(',').toLowerCase() || 'none'),
  };
  return {
    fields: Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)),
    beside,
    directives,
  };
}

/** What a script asks for beside what the fields say: its environment too, which the form adds to. */
function besidesFields(script: string, name: string): Partial<JobInput> {
  const { beside, directives } = fieldsOf(script);
  const { asked, isSlurms, misread } = directives;
  const [wrong] = misread;
  if (wrong) throw new Wrong('script', `Line ${wrong.line}: ${wrong.why}.`);
  const environment = {
    ...(asked.exports !== undefined && exported(asked.exports, {})),
    ...(isSlurms && batchEnvironment({ ...asked, name }, { user: '', host: '', directory: '' })),
    ...asked.environment,
  };
  return {
    ...beside,
    environment: Object.entries(environment).map(([variable, value]) => ({ name: variable, value })),
  };
}

/** Reads fields of a draft; throws {@link Wrong}. */
interface Reading {
  whole(field: keyof Draft, least: number, most: number): number;
  said<T>(field: keyof Draft, parse: (name: string, value: string) => T): T;
}

const reading = (draft: Draft): Reading => ({
  whole(field, least, most) {
    const value = Number(draft[field]);
    if (draft[field] === '' || !Number.isInteger(value) || value < least || value > most)
      throw new Wrong(field, `A whole number from ${least} to ${most.toLocaleString('en-US')}.`);
    return value;
  },
  said(field, parse) {
    try {
      return parse(field, String(draft[field]));
    } catch (error) {
      if (!(error instanceof NotAccepted)) throw error;
      throw new Wrong(field, `Accepted: ${error.accepted}.`);
    }
  },
});

const list = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean);

function amountOf(text: string): { kind: string; amount: number } {
  const [, kind, value = '1'] = /^([^=]+)(?:=(\d+))?$/.exec(text) ?? [];
  if (kind === undefined) throw new Wrong('resources', 'Kinds and amounts, such as gpu=2, tape-drive=1.');
  return { kind, amount: Number(value) };
}

/** Null: it asks for none. */
function devicesOf(draft: Draft, { whole, said }: Reading): (DeviceTerms & { amount: number }) | null {
  const [kind, model, memory] = [draft.deviceKind, draft.deviceModel, draft.deviceMemory].map((text) =>
    text.trim(),
  ) as [string, string, string];
  if (kind === '') {
    if (model + memory !== '') throw new Wrong('deviceKind', 'The kind of the devices, such as gpu.');
    return null;
  }
  if (!/^[A-Za-z][\w.-]*$/.test(kind))
    throw new Wrong('deviceKind', 'A kind: letters, digits, “_”, “.” and “-”, such as gpu.');
  if (/["\\]/.test(model)) throw new Wrong('deviceModel', 'A model without “"” and “\\”, such as a100.');
  return {
    kind,
    amount: whole('devices', 1, 1_000_000),
    model: model || null,
    memoryMb: memory === '' ? null : said('deviceMemory', parseMemory),
  };
}

export type Kinds = readonly Pick<SubmitChoicesQuery['resourceKinds'][number], 'name' | 'models'>[];

/** Characters that stand before a draft's own constraint where more is asked of its devices. */
export const constraintBefore = ({ deviceModel, deviceMemory }: Draft): number =>
  (deviceModel + deviceMemory).trim() === '' ? 0 : 1;

/** What each part says of its own, if there are parts. */
const OF_EACH_PART = [
  ...['tasks', 'cpusPerTask', 'memoryMbPerTask', 'deviceKind', 'deviceModel', 'deviceMemory', 'resources'],
  'requests',
  ...['tasksPerMachine', 'exclusive', 'allAlike', 'sameSwitch'],
] as (keyof Draft)[];

/** The parts, or what all tasks ask for. `written`: parts of a script. */
function tasksOf(
  draft: Draft,
  written: readonly JobPartInput[],
  { whole, said }: Reading,
): Partial<JobInput> & { all: number } {
  const parts = [
    ...written,
    ...lines(draft.parts).map((line) => said('parts', (name) => parsePart(name, line))),
  ];
  if (parts.length > 0) {
    const field = OF_EACH_PART.find((one) => draft[one] !== EMPTY[one]);
    if (field !== undefined) throw new Wrong(field, 'Each part has its own: leave it as it was.');
    return { parts, all: total(parts.map(({ tasks = 1 }) => tasks)) };
  }
  const all = whole('tasks', 1, 100_000);
  const memoryMbPerTask = said('memoryMbPerTask', parseMemory);
  return { tasks: all, cpusPerTask: whole('cpusPerTask', 1, 100_000), memoryMbPerTask, all };
}

const total = (numbers: readonly number[]): number => numbers.reduce((sum, one) => sum + one, 0);

/** On which machines it may run. */
function placementOf(draft: Draft, read: Reading): Partial<JobInput> {
  const devices = devicesOf(draft, read);
  const resources = [
    ...list(draft.resources).map(amountOf),
    ...(devices === null ? [] : [{ kind: devices.kind, amount: devices.amount }]),
  ];
  if (new Set(resources.map(({ kind }) => kind)).size < resources.length)
    throw new Wrong(devices === null ? 'resources' : 'deviceKind', 'Each kind of resource once.');
  const constraint = withDevices(draft.constraint.trim() || undefined, devices === null ? [] : [devices]);
  const requests = draft.requests.trim() === '' ? [] : read.said('requests', parseRequests);
  const sameSwitch = read.said('sameSwitch', (_, written) => sameSwitchOf(written));
  return {
    ...(Number(draft.tasks) > 1 &&
      draft.tasksPerMachine.trim() && {
        tasksPerMachine: read.said('tasksPerMachine', parseTasksPerMachine),
      }),
    ...(draft.exclusive && { exclusive: draft.exclusive }),
    ...(draft.allAlike.trim() && { allAlike: parseLabelNames(draft.allAlike) }),
    ...(sameSwitch && { sameSwitch }),
    ...(resources.length > 0 && { resourcesPerTask: resources }),
    ...(requests.length > 0 && { devicesPerTask: requests }),
    ...(constraint !== undefined && { machineConstraint: constraint }),
    ...(draft.os.trim() && { os: draft.os.trim() }),
    ...(draft.architecture.trim() && { architecture: draft.architecture.trim() }),
  };
}

/** The input that a draft stands for. Throws {@link Wrong} for a field that says nothing acceptable. */
export function inputOf(draft: Draft, mode: 'form' | 'script'): JobInput {
  const read = reading(draft);
  const { whole, said } = read;
  const seconds = (field: 'estimate' | 'runTimeLimit'): number => said(field, parseDuration);
  const run = mode === 'script' ? runOf(draft.script) : commandOf(draft);
  const { parts = [], ...written } =
    mode === 'script' ? besidesFields(draft.script, draft.name.trim() || 'script') : {};
  const { all, ...tasks } = tasksOf(draft, parts ?? [], read);
  const application = draft.application.trim() || applicationOf(draft, mode);
  const output = Number(draft.outputMb);
  if (!Number.isFinite(output) || output < 0) throw new Wrong('outputMb', 'Megabytes, 0 or more.');
  const deadline = draft.deadline ? new Date(draft.deadline) : null;
  if (deadline && Number.isNaN(deadline.getTime())) throw new Wrong('deadline', 'A date and time.');
  const environment = [
    ...(written.environment ?? []),
    ...(draft.environment.trim() ? environmentOf(draft.environment) : []),
  ];
  return {
    ...written,
    ...run,
    ...(application && { application }),
    ...(draft.name.trim() && { name: draft.name.trim() }),
    ...(draft.project.trim() && { project: draft.project.trim() }),
    ...(draft.groupName.trim() && { groupName: draft.groupName.trim() }),
    ...(draft.class && { class: draft.class }),
    ...(draft.workingDirectory.trim() && { workingDirectory: draft.workingDirectory.trim() }),
    ...tasks,
    ...(all > 1 && { launch: draft.launch }),
    ...(all > 1 && draft.launch === 'EVERY_TASK' && { onTaskFailure: draft.onTaskFailure }),
    ...placementOf(draft, read),
    ...(draft.reservation && { reservation: draft.reservation }),
    estimateS: seconds('estimate'),
    ...(draft.runTimeLimit.trim() && { runTimeLimitS: seconds('runTimeLimit') }),
    ...(deadline && { deadline: deadline.toISOString() }),
    ...(draft.licenses.trim() && { licenses: said('licenses', parseLicenses) }),
    ...(draft.needs.trim() && { needs: [...(written.needs ?? []), ...said('needs', parseNeeds)] }),
    ...(draft.inputs.length > 0 && {
      inputs: [...(written.inputs ?? []), ...draft.inputs.map((dataset) => ({ dataset }))],
    }),
    ...(output > 0 && { outputMb: output }),
    ...(draft.outputs.trim() && {
      outputs: [...(written.outputs ?? []), ...lines(draft.outputs).map((path) => ({ path }))],
    }),
    ...(draft.downloads.trim() && { downloads: lines(draft.downloads).map((url) => ({ url })) }),
    ...(draft.uploads.trim() && {
      uploads: said('uploads', (name, value) => lines(value).map((line) => parseUpload(name, line))),
    }),
    environment,
    ...(!draft.restartable && { restartable: false }),
    ...(draft.held && { held: true }),
    ...retryOf(draft, read),
    ...(draft.mail.trim() && { mail: said('mail', (name, value) => mailKinds(value.trim(), name)) }),
    ...(draft.boost !== '0' && { boost: whole('boost', -1000, 1000) }),
  };
}

/** Nothing where it says nothing of retries: then only what is no fault of the job is run again. */
function retryOf(draft: Draft, { whole, said }: Reading): Pick<JobInput, 'retry'> {
  const rules = lines(draft.retryRules);
  if (draft.retries === '0' && rules.length === 0) return {};
  return {
    retry: {
      maxRetries: whole('retries', 0, 100),
      backoffS: said('backoff', parseDelay),
      rules: said('retryRules', (name) =>
        rules.length === 0
          ? [{ action: 'RETRY' as const }]
          : rules.map((rule) => retryRuleOf(name, rule, END_CAUSES)),
      ),
    },
  };
}

function runOf(script: string): Pick<JobInput, 'command' | 'arguments'> {
  const { asked, isSlurms } = fieldsOf(script).directives;
  const run = commandOfScript(script);
  return isSlurms ? batchCommand(asked, run) : run;
}

/** The same job for each index of an array such as `1-10` or `1,3,5-9:2%4`. */
export function arrayInputs(job: JobInput, array: string): JobInput[] {
  return elementsOf(parseArray('The indices', array)).map(({ needs, ...element }, place) => ({
    ...job,
    ...element,
    // Slurm's scripts find the number of their array by their place in it.
    arguments:
      job.arguments?.[0] === '-c' && job.arguments[2] === 'sh' && job.arguments[3] === '0'
        ? job.arguments.with(3, String(place))
        : job.arguments,
    ...(needs && { needs: [...(job.needs ?? []), ...needs] }),
  }));
}

function commandOf(draft: Draft): Pick<JobInput, 'command' | 'arguments'> {
  const line = draft.command.trim();
  if (line === '') throw new Wrong('command', 'Enter a command or script.');
  if (draft.shell) return { command: 'sh', arguments: ['-c', line] };
  const words = wordsOf(line);
  if (words === null) throw new Wrong('command', 'A quote is left open.');
  const [command = '', ...rest] = words;
  return { command, arguments: rest };
}

/** By the program's name: `sh` would put all jobs in one application. */
function applicationOf(draft: Draft, mode: 'form' | 'script'): string | null {
  if (mode === 'script') return draft.name.trim() || 'script';
  if (!draft.shell) return null;
  const first = wordsOf(draft.command)?.find((word) => !/^\w+=/.test(word));
  return (
    first
      ?.split('/')
      .at(-1)
      ?.replaceAll(/[^\w.+-]/g, '')
      .slice(0, 100) || null
  );
}

const lines = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);

const environmentOf = (text: string): { name: string; value: string }[] =>
  lines(text).map((line) => {
    const at = line.indexOf('=');
    if (at < 1) throw new Wrong('environment', `NAME=value on each line; “${line}” is not.`);
    return { name: line.slice(0, at), value: line.slice(at + 1) };
  });

/** Of a job with parts, what each of them says is said by none for all. */
function byPart<J extends Pick<NonNullable<JobAgainQuery['job']>, 'parts' | (typeof OF_PARTS)[number]>>({
  parts,
  ...job
}: J) {
  if (parts.length === 0) return job;
  const others = Object.entries(job).filter(([field]) => !OF_PARTS.some((one) => one === field));
  const said = parts.map((part) =>
    Object.fromEntries(Object.entries(part).filter(([, value]) => value !== null)),
  );
  return { ...Object.fromEntries(others), parts: said };
}
const OF_PARTS = ['tasks', 'cpusPerTask', 'memoryMbPerTask', 'resourcesPerTask', 'devicesPerTask'] as const;

/** A job that was submitted, as the input that would submit it again: without times that have passed, and what an operator added to its priority. */
export function againOf(job: NonNullable<JobAgainQuery['job']>): JobInput {
  const { id: _, environment, originSite, inputs, outputs, preferences, ...more } = job;
  const { needs, reservation, boost, deadline, notBefore, ...said } = more;
  const rest = byPart(said);
  // Who reads what a job keeps needs the job.
  const read = new Set(inputs.flatMap(({ from }) => (from ? [from.id] : [])));
  const isImplied = ([term, ...others]: (typeof needs)[number]['of']): boolean =>
    others.length === 0 && term?.condition === 'OK' && term.minDelayS === 0 && read.has(term.job?.id ?? '');
  const isAhead = (at: string | null): at is string => at !== null && Date.parse(at) > Date.now();
  const given = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null)) as Omit<
    JobInput,
    'environment' | 'inputs' | 'outputs' | 'preferences' | 'needs'
  > & { command: string };
  return {
    ...given,
    environment: (environment ?? []).map(({ name, value }) => ({ name, value })),
    ...(originSite && { originSite: originSite.id }),
    ...(reservation && { reservation: reservation.id }),
    ...(boost < 0 && { boost }),
    ...(isAhead(deadline) && { deadline }),
    ...(isAhead(notBefore) && { notBefore }),
    needs: needs
      .filter(({ of }) => !isImplied(of))
      .map(({ expression, of }) => ({
        expression,
        of: of.map(({ job: needed, jobGroup, group, ...term }) => ({
          ...term,
          ...(group !== null && { group }),
          ...(needed && { job: needed.id }),
          ...(jobGroup && { jobGroup: jobGroup.id }),
        })),
      })),
    outputs,
    preferences: preferences.map(({ site, ...machine }) => ({ ...machine, site: site?.id ?? null })),
    inputs: inputs.map(({ dataset, site, sizeMb, from, output }) => {
      if (from) return { from: from.id, output, sizeMb };
      return dataset ? { dataset: dataset.id } : { sizeMb, site: site?.id ?? null };
    }),
  };
}
