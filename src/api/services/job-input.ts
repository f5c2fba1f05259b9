/**
 * From `JobInput` to what the store takes. GraphQL has checked the types; here the values are, each fault with the field,
 * the value and what is accepted. Written flat: a submission has up to 10 000 of these.
 */

import { handOverLimit } from '../../core/local/registry.js';
import {
  bothConstraints,
  type JobInput as CoreInput,
  envelopeOf,
  type JobPart,
  type JobPreference,
  NO_DATASET,
  NO_PREFERENCES,
  PREEMPTION_CLASS_MAX,
  type SameSwitch,
  type TasksPerMachine,
} from '../../core/model.js';
import type { Policy } from '../../core/policy.js';
import { ConstraintError, parseConstraint, TERMINAL } from '../../core/resources/constraint.js';
import type { DeviceRequest } from '../../core/resources/devices.js';
import { filePathFault, keptPath, outputPathFault } from '../../platform/file-paths.js';
import { isImageName } from '../../platform/images.js';
import { MAX } from '../../platform/limits.js';
import { httpUrlFault, shownUrl } from '../../platform/urls.js';
import {
  type Checkpoint,
  type Download,
  type JobOutput,
  jobMailKinds,
  type MailKind,
  type SiteTerms,
  type TerminalSize,
  type Upload,
} from '../../store/job-fields.js';
import type { Queries } from '../../store/queries.js';
import type { NewJob } from '../../store/store.js';
import { textFault } from '../check.js';
import { notAccepted } from '../errors.js';
import type {
  ErrorCode,
  InputDataInput,
  JobInput,
  JobOutputInput,
  JobPartInput,
  JobPreferenceInput,
  ResourceAmountInput,
  SameSwitchInput,
  SiteTermsInput,
} from '../generated/types.js';
import { globalId, type IdType, parseGlobalId } from '../ids.js';
import { amountsGiven } from '../resources.js';
import { type Submitter, type UsableClasses, usableClasses, withCharges } from './classes.js';
import { retryGiven } from './retry-input.js';

export interface Fault {
  field: string;
  code: ErrorCode;
  message: string;
}

/** Ids in one look-up. */
const LOOK_UP_MAX = 10_000;
const VARIABLE_NAME = new RegExp(`^[A-Za-z_][A-Za-z0-9_]{0,${MAX.variableNameChars - 1}}$`);

/** What Slurm and others accept of a name, and what no command takes for an option. */
const LOCAL_NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/;
const PARTITIONS = /^[A-Za-z0-9_][A-Za-z0-9_.-]*(,[A-Za-z0-9_][A-Za-z0-9_.-]*)*$/;
const LOCAL_NAMES = `letters, digits and \`_.-\`, at most ${MAX.nameChars}; partitions separated by commas`;

/** As a word of `machineConstraint` is one. */
const LABEL = /^[A-Za-z_][A-Za-z0-9_.\-/]*$/;
const IMAGE_NAMES = `the name of an image, such as debian:12 or ghcr.io/tools/aligner:1.4, at most ${MAX.nameChars} characters`;

/** Of the kinds of resources that there are, in a message. */
const KINDS_SHOWN = 20;
/** Characters of a bad constraint that its fault repeats. */
const SHOWN_CHARS = 200;
const inputNames = ['dataset', 'from', 'output', 'site', 'sizeMb'] as const;
const NO_INPUTS: readonly CoreInput[] = Object.freeze([]);
const NO_OUTPUTS: readonly JobOutput[] = Object.freeze([]);
const NO_VARIABLES: Readonly<Record<string, string>> = Object.freeze({});

/** Of the datasets and sites that jobs name, those that are there: not removed; and the kinds of resources that machines and pools have. */
export interface Places {
  datasets: ReadonlySet<number>;
  sites: ReadonlySet<number>;
  /** Of machines in service; null: nobody has to look. */
  kinds: ReadonlySet<string> | null;
  /** Of pools in service; null likewise. */
  pools: ReadonlySet<string> | null;
  /** By what jobs call them: name or id. */
  reservations: ReadonlyMap<string, Reservable>;
  /** Classes of jobs, if any job names one; null: nobody has to look. */
  classes: UsableClasses | null;
}

/** A reservation that jobs name. */
interface Reservable {
  id: number;
  /** Who may run jobs in it. */
  userIds: readonly number[];
  /** It has not ended. */
  open: boolean;
  /** Of its next times. */
  longestS: number;
  /** What jobs without a limit of their own have at its site; null: none. */
  siteLimitS: number | null;
  /** Its site has its own scheduler, which knows of no reservations of ours: no job would ever start in it. */
  elsewhere: boolean;
}

type AskedKinds = Pick<JobInput, 'resourcesPerTask' | 'devicesPerTask'>;

const namesKinds = ({ resourcesPerTask, devicesPerTask }: AskedKinds): boolean =>
  resourcesPerTask.length + devicesPerTask.length > 0;

/**
 * Looks up what all jobs of a submission name, each once. `removedToo`: for the retry of a submission, of which something
 * may have been removed since it was accepted.
 */
export async function placesOf(
  jobs: Iterable<
    Pick<
      JobInput,
      | 'inputs'
      | 'originSite'
      | 'preferences'
      | keyof AskedKinds
      | 'resources'
      | 'parts'
      | 'reservation'
      | 'class'
    >
  >,
  queries: Pick<
    Queries,
    | 'datasetsByIds'
    | 'sitesByIds'
    | 'declaredKinds'
    | 'poolKinds'
    | 'holdsNamed'
    | 'openTimesOf'
    | 'policy'
    | 'usersByIds'
  >,
  submitter: Submitter,
  removedToo = false,
): Promise<Places> {
  const datasets = new Set<number>();
  const sites = new Set<number>();
  const holds = new Set<string>();
  const note = (type: IdType, id: string | null | undefined, into: Set<number>): void => {
    const parsed = id ? parseGlobalId(id) : null;
    if (parsed?.type === type) into.add(parsed.id);
  };
  let asksForKinds = false;
  let namesClass = false;
  for (const job of jobs) {
    const { inputs, originSite, preferences, parts, reservation } = job;
    namesClass ||= given(job.class);
    asksForKinds ||= job.resources.length > 0 || [job, ...(parts ?? [])].some(namesKinds);
    note('site', originSite, sites);
    if (given(reservation) && textFault(reservation, MAX.nameChars) === null) holds.add(reservation);
    for (const { site } of preferences) note('site', site, sites);
    for (const { dataset, site } of inputs) {
      note('dataset', dataset, datasets);
      note('site', site, sites);
    }
  }
  return {
    datasets: await there(datasets, removedToo, (ids) => queries.datasetsByIds(ids)),
    sites: await there(sites, removedToo, (ids) => queries.sitesByIds(ids)),
    kinds: asksForKinds && !removedToo ? new Set(await queries.declaredKinds()) : null,
    pools: asksForKinds && !removedToo ? new Set(await queries.poolKinds()) : null,
    reservations: await reservationsOf([...holds], queries, removedToo),
    classes: namesClass && !removedToo ? await usableClasses(queries, submitter) : null,
  };
}

async function reservationsOf(
  named: readonly string[],
  queries: Pick<Queries, 'holdsNamed' | 'openTimesOf' | 'sitesByIds' | 'policy'>,
  removedToo: boolean,
): Promise<Map<string, Reservable>> {
  const found = new Map<string, Reservable>();
  for (let i = 0; i < named.length; i += LOOK_UP_MAX) {
    const some = new Set(named.slice(i, i + LOOK_UP_MAX));
    const ids = [...some]
      .map(parseGlobalId)
      .flatMap((parsed) => (parsed?.type === 'hold' ? [parsed.id] : []));
    const holds = await queries.holdsNamed(ids, [...some]);
    const times = await queries.openTimesOf(holds.map(({ id }) => id));
    const siteIds = removedToo ? [] : [...new Set(holds.map(({ siteId }) => siteId))];
    const sites = siteIds.length === 0 ? [] : await queries.sitesByIds(siteIds);
    const elsewhere = await withOwnScheduler(sites, queries);
    // Of the same name the one that has not ended, else the latest.
    for (const { id, name, kind, siteId, userId, userIds, endedAt } of holds) {
      if (kind === 'MAINTENANCE') continue;
      const lengths = times.flatMap(({ holdId, fromAt, toAt }) =>
        holdId === id ? [toAt === null ? Infinity : toAt - fromAt] : [],
      );
      const one = {
        ...{ id, userIds: [userId, ...userIds], open: removedToo || endedAt === null },
        longestS: removedToo ? Infinity : Math.max(0, ...lengths),
        siteLimitS: sites.find((site) => site.id === siteId)?.maxLimitS ?? null,
        elsewhere: elsewhere.has(siteId),
      };
      for (const called of [name, globalId('hold', id)])
        if (called !== null && some.has(called)) found.set(called, one);
    }
  }
  return found;
}

/** Ids of the sites that schedule themselves. */
async function withOwnScheduler(
  sites: readonly { id: number; localPolicy: unknown }[],
  queries: Pick<Queries, 'policy'>,
): Promise<Set<number>> {
  if (sites.length === 0) return new Set();
  const local = ((await queries.policy())?.document as Policy | undefined)?.local;
  const own = sites.filter(({ localPolicy }) => {
    const policy = (localPolicy as Policy['local'] | null) ?? local;
    return policy !== undefined && handOverLimit(policy) !== null;
  });
  return new Set(own.map(({ id }) => id));
}

/**
 * Outputs of a submission that become datasets under names that cannot be theirs: of another of its jobs, or of a dataset that there is. Of two
 * submissions whoever keeps its output first has the name.
 */
export async function checkDatasets(
  jobs: readonly NewJob[],
  queries: Pick<Queries, 'datasetNames'>,
  fault: (index: number, fault: Fault) => void,
): Promise<void> {
  const first = new Map<string, number>();
  const refuse = (index: number, name: string, accepted: string): void => {
    const place = jobs[index]!.outputs.findIndex((one) => one.dataset === name);
    const field = `outputs[${place}].dataset`;
    fault(index, { field, code: 'BAD_USER_INPUT', message: notAccepted(field, name, accepted) });
  };
  for (const [index, { outputs }] of jobs.entries())
    for (const { dataset } of outputs) {
      if (dataset === undefined) continue;
      const other = first.get(dataset);
      if (other === undefined) first.set(dataset, index);
      else if (other !== index)
        refuse(index, dataset, `each dataset for one job only; jobs[${other}] names it too`);
    }
  const names = [...first.keys()];
  for (let i = 0; i < names.length; i += LOOK_UP_MAX)
    for (const name of await queries.datasetNames(names.slice(i, i + LOOK_UP_MAX)))
      refuse(first.get(name) as number, name, 'a name not used by a dataset');
}

async function there(
  named: ReadonlySet<number>,
  removedToo: boolean,
  read: (ids: number[]) => Promise<{ id: number; removedAt: number | null }[]>,
): Promise<Set<number>> {
  const ids = [...named];
  const found = new Set<number>();
  for (let i = 0; i < ids.length; i += LOOK_UP_MAX) {
    for (const { id, removedAt } of await read(ids.slice(i, i + LOOK_UP_MAX)))
      if (removedToo || removedAt === null) found.add(id);
  }
  return found;
}

/**
 * Checks one job; faults are handed to `fault`. The result is only good when there were none. `now`: deadlines are in the future; null for
 * the retry of a submission, whose deadlines may have passed since it was accepted.
 */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a line for each field
export function newJob(
  input: JobInput,
  {
    mayRaise,
    userId,
    places,
    now,
  }: {
    /** An operator: boosts and preemption classes above 0, and reservations of others. */
    mayRaise: boolean;
    userId: number;
    places: Places;
    now: number | null;
  },
  fault: (fault: Fault) => void,
): NewJob {
  const check = new JobChecks(places, fault);
  const { command, inputs, outputs, preferences } = input;
  check.text('command', command, MAX.pathChars);
  const environment = check.words(input);
  const workingDirectory = check.directory(input.workingDirectory);
  const shape = given(input.parts) ? shapeOf(check.parts(input, input.parts)) : check.tasks(input);
  check.lengths(input);
  check.boost(input.boost, mayRaise);
  if (given(input.arrayIndex)) check.between('arrayIndex', input.arrayIndex, 0, MAX.integer);
  check.products(input, shape);
  return {
    name: check.text('name', input.name, MAX.nameChars),
    application: check.text('application', input.application, MAX.nameChars) ?? programName(command),
    project: check.text('project', input.project, MAX.nameChars),
    groupName: check.text('groupName', input.groupName, MAX.nameChars),
    arrayIndex: input.arrayIndex ?? null,
    command,
    arguments: input.arguments,
    environment,
    workingDirectory,
    tasks: shape.tasks,
    cpusPerTask: shape.cpusPerTask,
    memoryMbPerTask: shape.memoryMbPerTask,
    resourcesPerTask: shape.resourcesPerTask,
    devicesPerTask: shape.devicesPerTask ?? null,
    tasksPerMachine: shape.tasksPerMachine,
    exclusive: shape.exclusive,
    allAlike: shape.allAlike,
    parts: shape.parts,
    sameSwitch: shape.sameSwitch ?? null,
    licenses: check.kinds('licenses', input.licenses),
    resources: check.resources('resources', input.resources),
    os: check.text('os', input.os, MAX.nameChars),
    architecture: check.text('architecture', input.architecture, MAX.nameChars),
    machineConstraint: check.where(input, shape),
    image: check.image('image', input.image),
    terminal: check.terminal(input, shape.tasks),
    siteTerms: check.terms(input.siteTerms),
    estimateS: check.seconds('estimateS', input.estimateS),
    benchmark: check.between('benchmark', input.benchmark, MAX.leastBenchmark, MAX.benchmark),
    runTimeLimitS: given(input.runTimeLimitS) ? check.seconds('runTimeLimitS', input.runTimeLimitS) : null,
    warnS: check.amount('warnS', input.warnS, MAX.seconds),
    warnSignal: input.warnSignal,
    killGraceS: check.between('killGraceS', input.killGraceS, 0, MAX.killGraceS),
    deadline: check.deadline(input.deadline, now),
    sandboxMb: check.between('sandboxMb', input.sandboxMb, 0, MAX.sizeMb),
    outputMb: check.between('outputMb', input.outputMb, 0, MAX.sizeMb),
    inputs: inputs.length === 0 ? NO_INPUTS : inputs.map((one, i) => check.data(`inputs[${i}]`, one)),
    originSiteId: given(input.originSite) ? check.place('originSite', 'site', input.originSite) : null,
    outputs: outputs.length === 0 ? NO_OUTPUTS : outputs.map((one, i) => check.kept(`outputs[${i}]`, one)),
    checkpoint: check.checkpoint(input, shape.tasks),
    downloads: check.downloads(input),
    uploads: check.uploads(input),
    computationShare: check.amount('computationShare', input.computationShare, 1),
    preferences:
      preferences.length === 0
        ? NO_PREFERENCES
        : preferences.map((one, i) => check.liked(`preferences[${i}]`, one)),
    restartable: input.restartable,
    retry: retryGiven(input.retry, check.refuse),
    launch: input.launch,
    onTaskFailure: input.onTaskFailure,
    simulatedRunS: check.amount('simulatedRunS', input.simulatedRunS, MAX.seconds),
    simulatedIoS: check.amount('simulatedIoS', input.simulatedIoS, MAX.seconds),
    mail: input.mail ? check.mail(input.mail) : null,
    reservationId: given(input.reservation)
      ? check.reserved(input.reservation, input.runTimeLimitS ?? null, mayRaise ? null : userId)
      : null,
    boost: input.boost,
    class: check.class(input.class),
    charged: true,
    preemptionClass: check.preemptionClass(input, mayRaise),
    held: input.held,
  };
}

/**
 * The job with what it asks of kinds that no machine has, but a pool, among its amounts for the whole job. Not before a submission is compared
 * with another: who submits again what may be gone by now does not look for kinds.
 */
export function poolsApart(job: NewJob, { kinds, pools }: Places): NewJob {
  if (job.parts !== null || job.resourcesPerTask === null || kinds === null || pools === null) return job;
  const isPool = (kind: string): boolean => pools.has(kind) && !kinds.has(kind);
  const all = Object.entries(job.resourcesPerTask);
  const ofPools = all.filter(([kind]) => isPool(kind));
  if (ofPools.length === 0) return job;
  const ofTasks = all.filter(([kind]) => !isPool(kind));
  return {
    ...job,
    // With devices it says that there are some.
    resourcesPerTask:
      ofTasks.length === 0 && job.devicesPerTask === null ? null : Object.fromEntries(ofTasks),
    resources: Object.fromEntries(
      [...Object.entries(job.resources ?? {}), ...ofPools].sort(([a], [b]) => (a < b ? -1 : 1)),
    ),
  };
}

/** As the store is told of them, once a submission has been compared with others. */
export const storedJobs = (jobs: readonly NewJob[], places: Places): NewJob[] =>
  withCharges(
    jobs.map((job) => poolsApart(job, places)),
    places.classes,
  );

/** What the tasks of a job ask for. `machineConstraint`: besides that of the job. */
type Shape = Omit<JobPart, 'machineConstraint'> & Pick<NewJob, 'parts' | 'machineConstraint'>;

/** One part is a job without parts. */
function shapeOf(parts: readonly JobPart[]): Shape {
  const [only, ...others] = parts;
  if (only !== undefined && others.length === 0) return { ...only, parts: null };
  const none = { tasksPerMachine: null, exclusive: null, allAlike: null, sameSwitch: null };
  return { ...envelopeOf(parts), ...none, machineConstraint: null, parts };
}

/** What a job with parts says of each part. */
const BY_PART = {
  ...{ tasks: 1, cpusPerTask: 1, memoryMbPerTask: 0, memoryMbPerCpu: null, tasksPerMachine: null },
  ...{ exclusive: null, allAlike: null, sameSwitch: null },
} as const satisfies Partial<Record<keyof JobInput, number | null>>;

const given = <T>(value: T | null | undefined): value is T => value !== null && value !== undefined;

/** What a job, or a part, says of its tasks. */
type TasksInput = Omit<JobPartInput, 'machineConstraint'>;

/** Checks of the fields of one job. Each gives what is stored; of a value that was refused, anything. */
class JobChecks {
  constructor(
    private readonly places: Places,
    private readonly fault: (fault: Fault) => void,
    /** Of a part: what it asks for is on machines. */
    private readonly ofPart = false,
  ) {}

  readonly refuse = (field: string, value: unknown, accepted: string, code: ErrorCode = 'BAD_USER_INPUT') =>
    this.fault({ field, code, message: notAccepted(field, value, accepted) });

  text(field: string, value: string | null | undefined, charsMax: number, charsMin = 1): string | null {
    if (!given(value)) return null;
    const wrong = textFault(value, charsMax, charsMin);
    if (wrong) this.refuse(field, value, wrong);
    return value;
  }

  between(field: string, value: number, min: number, max: number): number {
    if (!(value >= min && value <= max)) this.refuse(field, value, `${min} to ${max}`);
    return value;
  }

  seconds(field: string, value: number): number {
    return this.between(field, value, MAX.leastSeconds, MAX.seconds);
  }

  /** Seconds or shares that may be absent. */
  amount(field: string, value: number | null | undefined, max: number): number | null {
    return given(value) ? this.between(field, value, 0, max) : null;
  }

  place(field: string, type: 'dataset' | 'site', id: string): number {
    const parsed = parseGlobalId(id);
    const known = type === 'dataset' ? this.places.datasets : this.places.sites;
    if (parsed?.type === type && known.has(parsed.id)) return parsed.id;
    this.refuse(field, id, type === 'dataset' ? 'the id of a dataset' : 'the id of a site');
    return 0;
  }

  /** `userId`: who has to be one who may run jobs in it; null: nobody. */
  reserved(named: string, ownLimitS: number | null, userId: number | null): number {
    const found = this.places.reservations.get(named);
    if (!found?.open || (userId !== null && !found.userIds.includes(userId))) {
      const accepted = `name or id of a reservation${userId === null ? '' : ' in which you may run jobs'} that has not ended`;
      this.refuse('reservation', named, accepted);
      return 0;
    }
    if (found.elsewhere)
      this.refuse(
        'reservation',
        named,
        'a reservation at a site without a scheduler of its own, in which no job of a reservation could start',
      );
    const limitS = ownLimitS ?? found.siteLimitS;
    if (found.longestS < Infinity && (limitS === null || limitS > found.longestS))
      this.refuse('runTimeLimitS', limitS, `up to ${found.longestS}, the length of the reservation`);
    return found.id;
  }

  data(field: string, input: InputDataInput): CoreInput {
    const { dataset, site, from, output } = input;
    const sizeMb = this.between(`${field}.sizeMb`, input.sizeMb ?? 0, 0, MAX.sizeMb);
    const names = inputNames.filter((name) => given(input[name])).join();
    if (names === 'dataset' && given(dataset))
      return { datasetId: this.place(`${field}.dataset`, 'dataset', dataset) };
    if (names === 'site,sizeMb' && given(site))
      return { sizeMb, siteId: this.place(`${field}.site`, 'site', site) };
    if (names.startsWith('from,output') && given(from) && given(output)) {
      const fault = /[*?]/.test(output)
        ? 'the path of one file, not a pattern'
        : outputPathFault(output, MAX.outputPathChars);
      if (fault) this.refuse(`${field}.output`, output, fault);
      // Which job that is, is found with what the jobs need.
      return { datasetId: NO_DATASET, from: { job: 0, path: keptPath(output), expectedMb: sizeMb } };
    }
    this.refuse(field, input, 'either `dataset`, or `sizeMb` and `site`, or `from` and `output`');
    return { datasetId: NO_DATASET };
  }

  kept(field: string, { path, keep, dataset }: JobOutputInput): JobOutput {
    const fault = outputPathFault(path.replace(/\/$/, ''), MAX.outputPathChars);
    if (fault) this.refuse(`${field}.path`, path, fault);
    if (given(dataset) !== (keep === 'DATASET')) {
      const accepted = keep === 'DATASET' ? 'a name' : 'no value, unless it is kept as a dataset';
      this.refuse(`${field}.dataset`, dataset, accepted);
    }
    if (!given(dataset)) return { path };
    if (/[*?]/.test(path))
      this.refuse(`${field}.path`, path, 'the path of one file or directory to become a dataset');
    this.text(`${field}.dataset`, dataset, MAX.nameChars);
    return { path, dataset };
  }

  downloads({ downloads }: JobInput): readonly Download[] | null {
    for (const [i, { url }] of downloads.entries()) this.fileUrl(`downloads[${i}].url`, url);
    return downloads.length === 0 ? null : downloads;
  }

  uploads({ uploads }: JobInput): readonly Upload[] | null {
    for (const [i, { path, url }] of uploads.entries()) {
      const fault = outputPathFault(path.replace(/\/$/, ''), MAX.outputPathChars);
      if (fault) this.refuse(`uploads[${i}].path`, path, fault);
      if (/[*?]/.test(path)) this.refuse(`uploads[${i}].path`, path, 'the path of one file or directory');
      this.fileUrl(`uploads[${i}].url`, url);
    }
    return uploads.length === 0 ? null : uploads;
  }

  /** Without its secrets: messages are logged. */
  private fileUrl(field: string, url: string): void {
    const fault = httpUrlFault(url, MAX.fileUrlChars);
    if (fault) this.refuse(field, shownUrl(url).slice(0, SHOWN_CHARS), fault);
  }

  /** What all tasks of a job, or of a part, ask for each. */
  tasks(input: TasksInput): Shape {
    const devicesPerTask = this.devices(input.devicesPerTask);
    const resourcesPerTask = this.resources('resourcesPerTask', input.resourcesPerTask);
    return {
      tasks: this.between('tasks', input.tasks, 1, MAX.tasks),
      cpusPerTask: this.between('cpusPerTask', input.cpusPerTask, 1, MAX.tasks),
      memoryMbPerTask: this.memory(input),
      // That it has any devices is said there, too (store/job-fields.ts).
      resourcesPerTask: devicesPerTask === null ? resourcesPerTask : { ...resourcesPerTask },
      devicesPerTask,
      tasksPerMachine: this.tasksPerMachine(input),
      exclusive: input.exclusive ?? null,
      allAlike: this.allAlike(input.allAlike),
      sameSwitch: this.sameSwitch(input.sameSwitch),
      machineConstraint: null,
      parts: null,
    };
  }

  parts(input: JobInput, parts: readonly JobPartInput[]): JobPart[] {
    for (const [field, unsaid] of Object.entries(BY_PART)) {
      const value = input[field as keyof typeof BY_PART] ?? null;
      if (value !== unsaid) this.refuse(field, value, 'no value for the job: it has parts, which say it');
    }
    if (input.resourcesPerTask.length > 0)
      this.refuse('resourcesPerTask', input.resourcesPerTask, 'none for the job: it has parts, which say it');
    if (input.devicesPerTask.length > 0)
      this.refuse(
        'devicesPerTask',
        input.devicesPerTask.length,
        'none for the job: it has parts, which say it',
      );
    if (parts.length === 0 || parts.length > MAX.jobParts)
      this.refuse('parts', parts.length, `1 to ${MAX.jobParts} parts`);
    if ((input.retry?.rules ?? []).some(({ memoryFactor }) => memoryFactor > 1))
      this.refuse('retry', 'memoryFactor', 'no more memory in a retry of a job with parts');
    const found = parts.slice(0, MAX.jobParts).map((part, i): JobPart => {
      const of = `parts[${i}].`;
      const check = new JobChecks(
        this.places,
        ({ field, code, message }) => this.fault({ field: of + field, code, message: of + message }),
        true,
      );
      const { parts: _, ...shape } = check.tasks(part);
      return { ...shape, machineConstraint: check.constraint('machineConstraint', part.machineConstraint) };
    });
    const tasks = found.reduce((sum, part) => sum + part.tasks, 0);
    if (tasks > MAX.tasks) this.refuse('parts', tasks, `up to ${MAX.tasks} tasks in all parts together`);
    return found;
  }

  checkpoint({ checkpoint, launch }: JobInput, tasks: number): Checkpoint | null {
    if (!given(checkpoint)) return null;
    const { path, signal } = checkpoint;
    const fault = filePathFault(path, MAX.outputPathChars);
    if (fault) this.refuse('checkpoint.path', path, fault);
    if (/[*?]/.test(path)) this.refuse('checkpoint.path', path, 'the path of one file or directory');
    // Each task has a file of its own.
    if (tasks > MAX.jobFiles && launch !== 'ONCE')
      this.refuse('checkpoint', checkpoint, `null, or launch ONCE, with more than ${MAX.jobFiles} tasks`);
    return { path, signal };
  }

  mail(kinds: readonly MailKind[]): MailKind[] {
    if (kinds.includes('RESERVATION')) this.refuse('mail', 'RESERVATION', jobMailKinds.join(', '));
    return [...new Set(kinds)];
  }

  kinds(field: string, names: readonly string[]): string[] {
    if (names.length === 0) return [];
    if (names.length > MAX.jobLicenses) this.refuse(field, names.length, `up to ${MAX.jobLicenses} copies`);
    for (const kind of new Set(names)) this.text(field, kind, MAX.nameChars);
    return [...names].sort();
  }

  constraint(field: string, value: string | null | undefined): string | null {
    if (!given(value)) return null;
    try {
      parseConstraint(value);
    } catch (error) {
      if (!(error instanceof ConstraintError)) throw error;
      this.refuse(field, value.slice(0, SHOWN_CHARS), `an expression over labels: ${error.message}`);
    }
    return this.text(field, value, MAX.constraintChars);
  }

  where({ machineConstraint, terminal }: JobInput, of: Shape): string | null {
    const own = bothConstraints(
      this.constraint('machineConstraint', machineConstraint),
      of.machineConstraint,
    );
    return given(terminal) ? bothConstraints(TERMINAL, own) : own;
  }

  terminal({ terminal, launch }: JobInput, tasks: number): TerminalSize | null {
    if (!given(terminal)) return null;
    if (tasks > 1 && launch !== 'ONCE')
      this.refuse('terminal', terminal, 'null, or launch ONCE, with more than one task');
    for (const field of ['rows', 'columns'] as const)
      this.between(`terminal.${field}`, terminal[field], 1, MAX.terminalSize);
    return { rows: terminal.rows, columns: terminal.columns };
  }

  allAlike(labels: readonly string[] | null | undefined): string[] | null {
    if (!given(labels) || labels.length === 0) return null;
    if (labels.length > MAX.jobAlike) this.refuse('allAlike', labels.length, `up to ${MAX.jobAlike} labels`);
    for (const label of labels)
      if (!LABEL.test(label) || label.length > MAX.nameChars)
        this.refuse('allAlike', label.slice(0, SHOWN_CHARS), 'names of labels, such as switch or rack');
    if (new Set(labels).size < labels.length) this.refuse('allAlike', labels, 'each label once');
    return [...labels].sort();
  }

  sameSwitch(input: SameSwitchInput | null | undefined): SameSwitch | null {
    if (!given(input)) return null;
    return { maxWaitS: this.amount('sameSwitch.maxWaitS', input.maxWaitS, MAX.seconds) };
  }

  image(field: string, value: string | null | undefined): string | null {
    if (!given(value)) return null;
    if (!isImageName(value)) this.refuse(field, value.slice(0, SHOWN_CHARS), IMAGE_NAMES);
    return value;
  }

  terms(input: SiteTermsInput | null | undefined): SiteTerms | null {
    if (!given(input)) return null;
    const asked: SiteTerms = {};
    for (const name of ['partition', 'account', 'qos'] as const) {
      const value = input[name];
      if (!given(value)) continue;
      const pattern = name === 'partition' ? PARTITIONS : LOCAL_NAME;
      if (!pattern.test(value) || value.length > MAX.nameChars)
        this.refuse(`siteTerms.${name}`, value.slice(0, SHOWN_CHARS), LOCAL_NAMES);
      asked[name] = value;
    }
    if (Object.keys(asked).length === 0)
      this.refuse('siteTerms', input, 'at least one of partition, account, qos');
    return asked;
  }

  liked(field: string, input: JobPreferenceInput): JobPreference {
    const { site, os, architecture, licenses, cpusPerTask, memoryMbPerTask } = input;
    if (given(os)) this.text(`${field}.os`, os, MAX.nameChars);
    if (given(architecture)) this.text(`${field}.architecture`, architecture, MAX.nameChars);
    if (given(cpusPerTask)) this.between(`${field}.cpusPerTask`, cpusPerTask, 1, MAX.tasks);
    if (given(memoryMbPerTask)) this.between(`${field}.memoryMbPerTask`, memoryMbPerTask, 0, MAX.integer);
    if (new Set(licenses).size < licenses.length)
      this.refuse(`${field}.licenses`, licenses, 'each kind once');
    const preference: JobPreference = {
      ...(given(site) && { siteId: this.place(`${field}.site`, 'site', site) }),
      ...(given(os) && { os }),
      ...(given(architecture) && { architecture }),
      ...(licenses.length > 0 && { licenses: this.kinds(`${field}.licenses`, licenses) }),
      ...(given(cpusPerTask) && { cpusPerTask }),
      ...(given(memoryMbPerTask) && { memoryMbPerTask }),
    };
    if (Object.keys(preference).length === 0) this.refuse(field, input, 'at least one condition');
    return preference;
  }

  /** Arguments and environment, which have a bound together; the environment. */
  words({ arguments: words, environment }: JobInput): Record<string, string> {
    if (words.length > MAX.arguments)
      this.refuse('arguments', words.length, `up to ${MAX.arguments} arguments`);
    let chars = 0;
    for (const argument of words) {
      chars += argument.length;
      this.text('arguments', argument, MAX.argumentChars, 0);
    }
    let env = NO_VARIABLES as Record<string, string>;
    if (environment.length > 0) {
      if (environment.length > MAX.variables)
        this.refuse('environment', environment.length, `up to ${MAX.variables} variables`);
      // No prototype: a variable may be called `constructor`, and `__proto__` is a name like any other.
      env = Object.create(null) as Record<string, string>;
      for (const { name, value } of environment) {
        chars += name.length + value.length;
        if (!VARIABLE_NAME.test(name))
          this.refuse('environment.name', name, 'letters, digits and `_`, not starting with a digit');
        if (name in env) this.refuse('environment.name', name, 'each name once');
        this.text('environment.value', value, MAX.argumentChars, 0);
        env[name] = value;
      }
    }
    if (chars > MAX.wordsChars) {
      const accepted = `up to ${MAX.wordsChars} characters in arguments and environment together`;
      this.refuse('arguments', chars, accepted);
    }
    return env;
  }

  directory(value: string | null | undefined): string | null {
    const directory = this.text('workingDirectory', value, MAX.pathChars);
    if (directory !== null && !/^(\/|[A-Za-z]:[\\/])/.test(directory))
      this.refuse('workingDirectory', directory, 'an absolute path');
    return directory;
  }

  /** Of a task: what is asked for it or, where that is more, for its CPUs (resources.md, "A shape"). */
  memory({ cpusPerTask, memoryMbPerTask, memoryMbPerCpu }: TasksInput): number {
    const memoryMb = this.between('memoryMbPerTask', memoryMbPerTask, 0, MAX.integer);
    if (!given(memoryMbPerCpu)) return memoryMb;
    const ofCpus = this.between('memoryMbPerCpu', memoryMbPerCpu, 0, MAX.integer) * cpusPerTask;
    if (ofCpus > MAX.integer)
      this.refuse('memoryMbPerCpu', memoryMbPerCpu, `memoryMbPerCpu × cpusPerTask up to ${MAX.integer}`);
    return Math.max(memoryMb, ofCpus);
  }

  tasksPerMachine({ tasks, tasksPerMachine: bounds }: TasksInput): TasksPerMachine | null {
    if (!given(bounds)) return null;
    const { min, max = null } = bounds;
    this.between('tasksPerMachine.min', min, 1, MAX.tasks);
    if (min > tasks) this.refuse('tasksPerMachine.min', min, `up to the number of tasks, ${tasks}`);
    if (max !== null) this.between('tasksPerMachine.max', max, min, MAX.tasks);
    return { min, max };
  }

  resources(
    field: 'resourcesPerTask' | 'resources',
    amounts: readonly ResourceAmountInput[],
  ): NewJob['resourcesPerTask'] {
    const resources = amountsGiven(field, amounts, MAX.jobResources, this.refuse);
    for (const kind in resources)
      this.declared(field, kind, field === 'resources' ? 'POOLS' : this.ofPart ? 'MACHINES' : 'ANY');
    return amounts.length === 0 ? null : resources;
  }

  devices(requests: JobInput['devicesPerTask']): DeviceRequest[] | null {
    if (requests.length > MAX.jobResources)
      this.refuse('devicesPerTask', requests.length, `up to ${MAX.jobResources} requests`);
    const checked = requests.slice(0, MAX.jobResources).map((request, i): DeviceRequest => {
      const at = `devicesPerTask[${i}]`;
      const { kind, count, model, minMemoryMb, share } = request;
      if (LABEL.test(kind) && kind.length <= MAX.plainNameChars) this.declared(`${at}.kind`, kind);
      else this.refuse(`${at}.kind`, kind, `the kind of a device, at most ${MAX.plainNameChars} characters`);
      this.between(`${at}.count`, count, 1, MAX.machineDevices);
      if (given(minMemoryMb)) this.between(`${at}.minMemoryMb`, minMemoryMb, 0, MAX.integer);
      if (given(share)) {
        this.between(`${at}.share.of`, share.of, 2, MAX.deviceShares);
        this.between(`${at}.share.parts`, share.parts, 1, share.of - 1);
      }
      return {
        ...{ kind, count, model: this.text(`${at}.model`, model, MAX.labelChars) },
        minMemoryMb: minMemoryMb ?? null,
        share: given(share) ? { parts: share.parts, of: share.of } : null,
      };
    });
    return checked.length === 0 ? null : checked;
  }

  /** Schedulers keep every kind that they have met: what nobody declared is none. */
  private declared(field: string, kind: string, on: 'MACHINES' | 'POOLS' | 'ANY' = 'MACHINES'): void {
    const { kinds, pools } = this.places;
    if (kinds === null || pools === null) return;
    if ((on !== 'POOLS' && kinds.has(kind)) || (on !== 'MACHINES' && pools.has(kind))) return;
    const named = (there: ReadonlySet<string>): string => [...there].slice(0, KINDS_SHOWN).join(', ');
    const onMachines =
      kinds.size === 0
        ? 'none: no machine in service has resources besides CPUs and memory'
        : `a kind that a machine in service has: ${named(kinds)}`;
    const inPools =
      pools.size === 0
        ? 'none: nothing is counted for a site or the grid'
        : `a kind that is counted for a site or the grid: ${named(pools)}`;
    const either = pools.size === 0 ? onMachines : `${onMachines}; or ${inPools}`;
    this.refuse(field, kind, { MACHINES: onMachines, POOLS: inPools, ANY: either }[on]);
  }

  /** A kind is asked for in one way. */
  private namedOnce({ resourcesPerTask, resources }: JobInput): void {
    const both = resources.findIndex(({ kind }) => resourcesPerTask.some((one) => one.kind === kind));
    if (both !== -1)
      this.refuse(`resources[${both}].kind`, resources[both]?.kind, 'a kind that is not in resourcesPerTask');
  }

  lengths(input: JobInput): void {
    const { inputs, outputs, downloads, uploads, preferences } = input;
    this.namedOnce(input);
    if (downloads.length > MAX.jobUrls)
      this.refuse('downloads', downloads.length, `up to ${MAX.jobUrls} downloads`);
    if (uploads.length > MAX.jobUrls) this.refuse('uploads', uploads.length, `up to ${MAX.jobUrls} uploads`);
    if (inputs.length > MAX.jobInputs) this.refuse('inputs', inputs.length, `up to ${MAX.jobInputs} inputs`);
    if (outputs.length > MAX.jobOutputs)
      this.refuse('outputs', outputs.length, `up to ${MAX.jobOutputs} outputs`);
    const datasets = outputs.flatMap(({ dataset }) => dataset ?? []);
    if (new Set(datasets).size < datasets.length) this.refuse('outputs', datasets, 'each dataset once');
    if (preferences.length > MAX.jobPreferences)
      this.refuse('preferences', preferences.length, `up to ${MAX.jobPreferences} preferences`);
  }

  class(name: string | null | undefined): string | null {
    if (!given(name)) return null;
    this.text('class', name, MAX.classNameChars);
    const { classes } = this.places;
    if (classes === null || classes.usable.includes(name)) return name;
    const isThere = Object.hasOwn(classes.all, name);
    this.refuse('class', name, classes.words(name), isThere ? 'FORBIDDEN' : 'BAD_USER_INPUT');
    return name;
  }

  preemptionClass({ preemptionClass: value, class: name }: JobInput, mayRaise: boolean): number {
    if (value !== 0 && given(name)) this.refuse('preemptionClass', value, '0 with a class, which has a rank');
    this.between('preemptionClass', value, 0, PREEMPTION_CLASS_MAX);
    if (value > 0 && !mayRaise)
      this.refuse('preemptionClass', value, '0; above 0 for operators only', 'FORBIDDEN');
    return value;
  }

  boost(boost: number, mayRaise: boolean): void {
    this.between('boost', boost, -MAX.boost, MAX.boost);
    if (boost > 0 && !mayRaise)
      this.refuse('boost', boost, `-${MAX.boost} to 0; above 0 for operators only`, 'FORBIDDEN');
  }

  /** Numbers that are in their ranges each, and together too large. */
  products(
    { estimateS, benchmark }: JobInput,
    { tasks, cpusPerTask }: Pick<Shape, 'tasks' | 'cpusPerTask'>,
  ): void {
    const cpus = tasks * cpusPerTask;
    if (cpus > MAX.jobCpus) this.refuse('tasks', cpus, `tasks × cpusPerTask up to ${MAX.jobCpus}`);
    const work = estimateS * benchmark * cpus;
    if (work > MAX.work)
      this.refuse('estimateS', work, `estimateS × benchmark × tasks × cpusPerTask up to ${MAX.work}`);
  }

  /** Epoch seconds. */
  deadline(value: Date | null | undefined, now: number | null): number | null {
    if (!value) return null;
    const deadline = value.getTime() / 1000;
    if (now !== null && deadline <= now) this.refuse('deadline', value.toISOString(), 'a time in the future');
    return deadline;
  }
}

/** The last component of a path, cut to the length of a name. */
function programName(command: string): string {
  const last = command.slice(Math.max(command.lastIndexOf('/'), command.lastIndexOf('\\')) + 1);
  return (last || command).slice(0, MAX.nameChars);
}
