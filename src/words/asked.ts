/** What a script, or a command called like Slurm's, asks for: gathered from options (options.ts), and turned into a job. */
import { type WrittenRetry, withRule } from './retry.js';
import { type DevicesAsked, type Exclusive, type Indices, type SameSwitch, withDevices } from './values.js';

/** As `WarnSignal` of the schema. */
export const WARN_SIGNALS = [
  'SIGTERM',
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGALRM',
  'SIGUSR1',
  'SIGUSR2',
] as const;
export type WarnSignal = (typeof WARN_SIGNALS)[number];
/** As `RunSignal` of the schema. */
export const RUN_SIGNALS = [...WARN_SIGNALS, 'SIGSTOP', 'SIGCONT'] as const;
export type RunSignal = (typeof RUN_SIGNALS)[number];

/** As `MailKind` of the schema. */
export const MAIL_KINDS = [
  'BEGIN',
  'END',
  'FAIL',
  'LIMIT_80',
  'WAITED',
  'GROUP_DONE',
  'RESERVATION',
] as const;
export type MailKind = (typeof MAIL_KINDS)[number];

/** As `SiteTermsInput` of the schema. */
export interface SiteTerms {
  partition?: string;
  account?: string;
  qos?: string;
}

/** As `TasksPerMachineInput` of the schema. */
export interface TasksPerMachine {
  min: number;
  max: number | null;
}

/** A condition on another job, or on own jobs with a group name. */
export interface Need {
  job?: string;
  group?: string;
  jobGroup?: string;
  condition: 'START' | 'OK' | 'NOT_OK' | 'ANY' | 'CORRESPONDING';
  minDelayS?: number;
}

/** What becomes of a job when what it needs cannot happen any more. As `OnUnmet` of the schema. */
export const ON_UNMET = ['CANCEL', 'HOLD', 'RUN'] as const;
export type OnUnmet = (typeof ON_UNMET)[number];

/** A file to keep, or to make a dataset of. */
export interface AskedOutput {
  path: string;
  keep?: 'DATASET';
  dataset?: string;
}

/** What is absent was not asked for. */
export interface Asked {
  name?: string;
  application?: string;
  project?: string;
  group?: string;
  /** Slurm's: processes that the script starts itself. */
  ntasks?: number;
  nodes?: number;
  ntasksPerNode?: number;
  /** On each machine, of Switchyard's tasks. */
  tasksPerMachine?: TasksPerMachine;
  /** Its machines for itself, or for its user. */
  exclusive?: Exclusive;
  /** Labels that are the same on all its machines. */
  allAlike?: string[];
  /** Machines on one switch. */
  sameSwitch?: SameSwitch;
  /** Switchyard's: its command is started for each, maybe on several machines. */
  tasks?: number;
  cpusPerTask?: number;
  /** For each task of Switchyard's, which is a node of Slurm's. */
  memoryMb?: number;
  memoryMbPerCpu?: number;
  /** For each node. */
  resources: Record<string, number>;
  /** By what they are, for each task of Switchyard's. */
  devices: DevicesAsked[];
  /** Of devices, by their kind. */
  models: Record<string, string>;
  /** For each task of Slurm's, and in all. */
  gpusPerTask?: number;
  gpus?: number;
  /** What these GPUs have to be, if more is asked than a model. */
  gpuTerms?: Omit<DevicesAsked, 'kind' | 'count'>;
  licenses: string[];
  os?: string;
  architecture?: string;
  /** On labels of machines. */
  constraint?: string;
  image?: string;
  /** Name or id. */
  reservation?: string;
  /** Of a site that schedules itself. */
  siteTerms?: SiteTerms;
  estimateS?: number;
  limitS?: number;
  warnS?: number;
  warnSignal?: WarnSignal;
  killGraceS?: number;
  checkpoint?: { path: string; signal?: WarnSignal };
  /** What causes there are the service knows. */
  retry: WrittenRetry<never>;
  deadline?: string;
  begin?: string;
  directory?: string;
  hold?: boolean;
  restartable?: boolean;
  mail?: MailKind[];
  boost?: number;
  class?: string;
  preemptionClass?: number;
  launchOnce?: boolean;
  continueOnFailure?: boolean;
  benchmark?: number;
  computationShare?: number;
  /** Its command has one. */
  terminal?: { rows: number; columns: number };
  sandboxMb?: number;
  outputMb?: number;
  simulatedRunS?: number;
  simulatedIoS?: number;
  array?: Indices & { written: string };
  /** All of these, or any of them. */
  needs: Need[];
  needsAny?: boolean;
  onUnmet?: OnUnmet;
  /** Files that other jobs keep. */
  reads: { from: string; output: string }[];
  /** Patterns of file names on the machine that runs it. */
  output?: string;
  error?: string;
  input?: string;
  append?: boolean;
  environment: Record<string, string>;
  keep: AskedOutput[];
  downloads: { url: string }[];
  uploads: { path: string; url: string }[];
  /** `ALL`, `NONE`, `NIL`, or names and `NAME=value`, as Slurm's --export. */
  exports?: string;
  partition?: string;
  /** Slurm's: this service, and its peers. */
  clusters?: string;
  /** What each part of the job has, if its tasks are not all alike. */
  parts: AskedPart[];
  /** Slurm's components of a job behind the first, which is asked for here. */
  components: Asked[];
  /** Of the command itself. */
  wrap?: string;
  parsable?: boolean;
  wait?: boolean;
  testOnly?: boolean;
  quiet?: boolean;
  /** With the terminal of this process. */
  pty?: boolean;
  /** The job that srun's step is in. */
  jobid?: string;
  /** Lines of a step's output have the number of their task. */
  label?: boolean;
  /** The other tasks of a step end when one fails. */
  killOnBadExit?: boolean;
  /** A step has its CPUs for itself, among the steps of its job. */
  stepExclusive?: boolean;
  /** After all earlier jobs of its user with its name. */
  singleton?: boolean;
  help?: boolean;
  version?: boolean;
}

export const nothing = (): Asked => ({
  resources: {},
  devices: [],
  models: {},
  licenses: [],
  needs: [],
  reads: [],
  retry: {},
  environment: {},
  keep: [],
  downloads: [],
  uploads: [],
  parts: [],
  components: [],
});

/** What a job has as it is asked for. */
const AS_ASKED = [
  ...(['name', 'application', 'project', 'os', 'architecture', 'image', 'reservation', 'siteTerms'] as const),
  ...([
    'warnS',
    'warnSignal',
    'killGraceS',
    'checkpoint',
    'deadline',
    'restartable',
    'mail',
    'boost',
    'exclusive',
    'allAlike',
    'sameSwitch',
  ] as const),
  ...(['class', 'preemptionClass', 'benchmark', 'computationShare', 'sandboxMb', 'outputMb'] as const),
  ...(['simulatedRunS', 'simulatedIoS', 'onUnmet', 'terminal'] as const),
] as const;

/** A job as far as `JobInput` of the schema is asked for, without its command. */
export interface AskedJob extends Pick<Asked, (typeof AS_ASKED)[number]> {
  groupName?: string;
  tasks?: number;
  cpusPerTask?: number;
  memoryMbPerTask?: number;
  tasksPerMachine?: TasksPerMachine;
  resourcesPerTask?: { kind: string; amount: number }[];
  /** Of the whole job: of kinds that a site or the grid has. */
  resources?: { kind: string; amount: number }[];
  devicesPerTask?: DevicesAsked[];
  licenses?: string[];
  machineConstraint?: string;
  parts?: AskedPart[];
  estimateS?: number;
  runTimeLimitS?: number;
  retry?: WrittenRetry<never>;
  notBefore?: string;
  workingDirectory?: string;
  held?: boolean;
  launch?: 'ONCE';
  onTaskFailure?: 'CONTINUE';
  needs?: { expression?: 'ANY'; of: Need[] }[];
  inputs?: { from: string; output: string }[];
  outputs?: AskedOutput[];
  downloads?: { url: string }[];
  uploads?: { path: string; url: string }[];
}

/** Tasks, CPUs and nodes in Slurm's sense. */
export interface Shape {
  ntasks: number;
  nodes: number;
  cpusPerTask: number;
}

/**
 * Slurm's tasks are processes that the script starts where it runs. Without `--nodes` they are together on one machine; with it, a task of
 * Switchyard's is a node, with all CPUs that the node's processes need, on a machine of its own.
 */
export function shapeOf({ ntasks, nodes, ntasksPerNode, cpusPerTask = 1 }: Asked): Shape {
  const perNode = ntasksPerNode ?? 1;
  const count =
    nodes ?? (ntasks !== undefined && ntasksPerNode !== undefined ? Math.ceil(ntasks / perNode) : 1);
  const all = ntasks ?? count * perNode;
  return { ntasks: all, nodes: Math.min(count, Math.max(all, 1)), cpusPerTask };
}

/** A node is a machine. */
const ONE_EACH: TasksPerMachine = { min: 1, max: 1 };

/** What is said of tasks: of all, or by part. */
const OF_TASKS = [
  ...(['tasks', 'cpusPerTask', 'memoryMbPerTask', 'tasksPerMachine', 'resourcesPerTask'] as const),
  'devicesPerTask',
  ...(['exclusive', 'allAlike', 'sameSwitch', 'machineConstraint'] as const),
] as const;

/** A part of a job, as `JobPartInput` of the schema. */
export type AskedPart = Pick<AskedJob, (typeof OF_TASKS)[number]>;

/** What is asked for of tasks, and nothing else. */
export const partOf = (asked: Asked): AskedPart =>
  Object.fromEntries(
    Object.entries(jobOf({ ...asked, parts: [], components: [] })).filter(([field]) =>
      OF_TASKS.some((one) => one === field),
    ),
  );

/** The job that is asked for. */
export function jobOf(asked: Asked): AskedJob {
  if (asked.components.length > 0) {
    const parts = [asked, ...asked.components].map(partOf);
    const job = Object.entries(jobOf({ ...asked, components: [], parts: [] }));
    const common = job.filter(([field]) => !OF_TASKS.some((one) => one === field));
    return { ...Object.fromEntries(common), parts };
  }
  const { ntasks, nodes, cpusPerTask } = shapeOf(asked);
  const perNode = Math.ceil(ntasks / nodes);
  const isSlurms =
    asked.ntasks !== undefined || asked.nodes !== undefined || asked.ntasksPerNode !== undefined;
  const cpus = isSlurms ? perNode * cpusPerTask : asked.cpusPerTask;
  const resources = { ...asked.resources };
  if (asked.gpusPerTask !== undefined) resources.gpu = asked.gpusPerTask * perNode;
  if (asked.gpus !== undefined) resources.gpu = Math.ceil(asked.gpus / nodes);
  const devices = [...asked.devices];
  if (asked.gpuTerms !== undefined && (resources.gpu ?? 0) > 0) {
    devices.push({ kind: 'gpu', ...asked.gpuTerms, count: resources.gpu as number });
    delete resources.gpu;
  }
  const kinds = Object.entries(resources).filter(([, amount]) => amount > 0);
  const amounts = kinds.length > 0 ? kinds.map(([kind, amount]) => ({ kind, amount })) : undefined;
  const inParts = asked.parts.length > 0;
  const job: { [K in keyof AskedJob]: AskedJob[K] | undefined } = {
    ...Object.fromEntries(AS_ASKED.map((field) => [field, asked[field]])),
    groupName: asked.group,
    tasks: isSlurms ? nodes : asked.tasks,
    cpusPerTask: cpus,
    memoryMbPerTask:
      asked.memoryMbPerCpu === undefined
        ? asked.memoryMb
        : Math.max(asked.memoryMb ?? 0, Math.ceil(asked.memoryMbPerCpu * (cpus ?? 1))),
    tasksPerMachine: isSlurms ? (nodes > 1 ? ONE_EACH : undefined) : asked.tasksPerMachine,
    resourcesPerTask: inParts ? undefined : amounts,
    // Of parts, what they have on machines is said by part.
    resources: inParts ? amounts : undefined,
    devicesPerTask: devices.length > 0 ? devices : undefined,
    licenses: asked.licenses.length > 0 ? asked.licenses : undefined,
    machineConstraint: withDevices(
      asked.constraint,
      Object.entries(asked.models).map(([kind, model]) => ({ kind, model })),
    ),
    parts: inParts ? asked.parts : undefined,
    estimateS: asked.estimateS ?? asked.limitS,
    runTimeLimitS: asked.limitS,
    retry: Object.keys(asked.retry).length > 0 ? withRule(asked.retry) : undefined,
    notBefore: asked.begin,
    workingDirectory: asked.directory,
    held: asked.hold,
    launch: asked.launchOnce || (isSlurms && nodes > 1) ? 'ONCE' : undefined,
    onTaskFailure: asked.continueOnFailure ? 'CONTINUE' : undefined,
    needs:
      asked.needs.length > 0
        ? [{ ...(asked.needsAny && { expression: 'ANY' as const }), of: asked.needs }]
        : undefined,
    inputs: asked.reads.length > 0 ? asked.reads : undefined,
    outputs: asked.keep.length > 0 ? asked.keep : undefined,
    downloads: asked.downloads.length > 0 ? asked.downloads : undefined,
    uploads: asked.uploads.length > 0 ? asked.uploads : undefined,
  };
  // Absent is not undefined: the service's defaults are for what is absent.
  return Object.fromEntries(Object.entries(job).filter(([, value]) => value !== undefined));
}

/** An element of an array: its index, and what it needs of elements before it. */
export interface Element {
  arrayIndex: number;
  ref?: string;
  needs?: { of: { ref: string; condition: 'ANY' }[] }[];
}

/**
 * The jobs of an array. `%4` makes four lanes: an element starts when the one that is four before it has ended, however it did. So never more
 * than four run.
 *
 * @param name of the array, for others to need it: its elements are then called `name[index]`
 */
export function elementsOf({ indices, atOnce }: Indices, name: string | null = null): Element[] {
  const lanes = atOnce === null || atOnce >= indices.length ? null : atOnce;
  if (lanes === null && name === null) return indices.map((arrayIndex) => ({ arrayIndex }));
  const refOf = (index: number): string => (name === null ? `element ${index}` : elementName(name, index));
  return indices.map((arrayIndex, at) => ({
    arrayIndex,
    ref: refOf(arrayIndex),
    ...(lanes !== null &&
      at >= lanes && { needs: [{ of: [{ ref: refOf(indices[at - lanes]!), condition: 'ANY' as const }] }] }),
  }));
}

export const elementName = (array: string, index: number): string => `${array}[${index}]`;
