/**
 * From `JobInput` to what the store takes. GraphQL has checked the types; here the values are, each fault with the field,
 * the value and what is accepted. Written flat: a submission has up to 10 000 of these.
 */
import { type JobInput as CoreInput, type JobPreference, NO_PREFERENCES } from '../../core/model.js';
import { ConstraintError, parseConstraint } from '../../core/resources/constraint.js';
import { filePathFault } from '../../platform/file-paths.js';
import { MAX } from '../../platform/limits.js';
import type { JobOutput } from '../../store/job-fields.js';
import type { Queries } from '../../store/queries.js';
import type { NewJob } from '../../store/store.js';
import { textFault } from '../check.js';
import { notAccepted } from '../errors.js';
import type {
  ErrorCode,
  InputDataInput,
  JobInput,
  JobOutputInput,
  JobPreferenceInput,
} from '../generated/types.js';
import { type IdType, parseGlobalId } from '../ids.js';
import { amountsGiven } from '../resources.js';
import { retryGiven } from './retry-input.js';

export interface Fault {
  field: string;
  code: ErrorCode;
  message: string;
}

/** Ids in one look-up. */
const LOOK_UP_MAX = 10_000;
const VARIABLE_NAME = new RegExp(`^[A-Za-z_][A-Za-z0-9_]{0,${MAX.variableNameChars - 1}}$`);

/** Of the kinds of resources that there are, in a message. */
const KINDS_SHOWN = 20;
/** Characters of a bad constraint that its fault repeats. */
const SHOWN_CHARS = 200;
const NO_INPUTS: readonly CoreInput[] = Object.freeze([]);
const NO_OUTPUTS: readonly JobOutput[] = Object.freeze([]);
const NO_VARIABLES: Readonly<Record<string, string>> = Object.freeze({});

/** Of the datasets and sites that jobs name, those that are there: not removed; and the kinds of resources that machines have. */
export interface Places {
  datasets: ReadonlySet<number>;
  sites: ReadonlySet<number>;
  /** null: nobody has to look. */
  kinds: ReadonlySet<string> | null;
}

/**
 * Looks up what all jobs of a submission name, each once. `removedToo`: for the retry of a submission, of which something
 * may have been removed since it was accepted.
 */
export async function placesOf(
  jobs: Iterable<Pick<JobInput, 'inputs' | 'originSite' | 'preferences' | 'resourcesPerTask'>>,
  queries: Pick<Queries, 'datasetsByIds' | 'sitesByIds' | 'resourceKinds'>,
  removedToo = false,
): Promise<Places> {
  const datasets = new Set<number>();
  const sites = new Set<number>();
  const note = (type: IdType, id: string | null | undefined, into: Set<number>): void => {
    const parsed = id ? parseGlobalId(id) : null;
    if (parsed?.type === type) into.add(parsed.id);
  };
  let asksForKinds = false;
  for (const { inputs, originSite, preferences, resourcesPerTask } of jobs) {
    asksForKinds ||= resourcesPerTask.length > 0;
    note('site', originSite, sites);
    for (const { site } of preferences) note('site', site, sites);
    for (const { dataset, site } of inputs) {
      note('dataset', dataset, datasets);
      note('site', site, sites);
    }
  }
  return {
    datasets: await there(datasets, removedToo, (ids) => queries.datasetsByIds(ids)),
    sites: await there(sites, removedToo, (ids) => queries.sitesByIds(ids)),
    kinds: asksForKinds && !removedToo ? new Set(await queries.resourceKinds()) : null,
  };
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
        refuse(index, dataset, `each dataset of one job; jobs[${other}] names it too`);
    }
  const names = [...first.keys()];
  for (let i = 0; i < names.length; i += LOOK_UP_MAX)
    for (const name of await queries.datasetNames(names.slice(i, i + LOOK_UP_MAX)))
      refuse(first.get(name) as number, name, 'a name that no dataset has');
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
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one field after another
export function newJob(
  input: JobInput,
  { mayRaise, places, now }: { mayRaise: boolean; places: Places; now: number | null },
  fault: (fault: Fault) => void,
): NewJob {
  const refuse = (field: string, value: unknown, accepted: string, code: ErrorCode = 'BAD_USER_INPUT') =>
    fault({ field, code, message: notAccepted(field, value, accepted) });
  const text = (
    field: string,
    value: string | null | undefined,
    charsMax: number,
    charsMin = 1,
  ): string | null => {
    if (value === null || value === undefined) return null;
    const wrong = textFault(value, charsMax, charsMin);
    if (wrong) refuse(field, value, wrong);
    return value;
  };
  const whole = (field: string, value: number, min: number, max: number): number => {
    if (value < min || value > max) refuse(field, value, `${min} to ${max}`);
    return value;
  };
  const between = (field: string, value: number, min: number, max: number): number => {
    if (!(value >= min && value <= max)) refuse(field, value, `${min} to ${max}`);
    return value;
  };
  const seconds = (field: string, value: number): number =>
    between(field, value, MAX.leastSeconds, MAX.seconds);
  const size = (field: string, value: number): number => {
    if (!(value >= 0 && value <= MAX.sizeMb)) refuse(field, value, `0 to ${MAX.sizeMb}`);
    return value;
  };
  /** Seconds or shares that may be absent. */
  const amount = (field: string, value: number | null | undefined, max: number): number | null => {
    if (value === null || value === undefined) return null;
    if (!(value >= 0 && value <= max)) refuse(field, value, `0 to ${max}`);
    return value;
  };
  const place = (field: string, type: 'dataset' | 'site', id: string): number => {
    const parsed = parseGlobalId(id);
    const known = type === 'dataset' ? places.datasets : places.sites;
    if (parsed?.type === type && known.has(parsed.id)) return parsed.id;
    refuse(field, id, type === 'dataset' ? 'the id of a dataset' : 'the id of a site');
    return 0;
  };
  const data = ({ dataset, sizeMb, site }: InputDataInput, field: string): CoreInput => {
    const given = (value: unknown): boolean => value !== null && value !== undefined;
    if (given(dataset) !== (given(sizeMb) || given(site)) && given(sizeMb) === given(site)) {
      return given(dataset)
        ? { datasetId: place(`${field}.dataset`, 'dataset', dataset as string) }
        : {
            sizeMb: size(`${field}.sizeMb`, sizeMb as number),
            siteId: place(`${field}.site`, 'site', site as string),
          };
    }
    refuse(field, { dataset, sizeMb, site }, 'either `dataset`, or `sizeMb` and `site`');
    return { datasetId: 0 };
  };

  const kept = ({ path, keep, dataset }: JobOutputInput, field: string): JobOutput => {
    const fault = filePathFault(path.replace(/\/$/, ''), MAX.outputPathChars);
    if (fault) refuse(`${field}.path`, path, fault);
    const named = dataset !== null && dataset !== undefined;
    if (named !== (keep === 'DATASET'))
      refuse(
        `${field}.dataset`,
        dataset,
        keep === 'DATASET' ? 'a name' : 'nothing, unless it is kept as a dataset',
      );
    if (!named) return { path };
    if (/[*?]/.test(path))
      refuse(`${field}.path`, path, 'the path of one file or directory, to be a dataset');
    text(`${field}.dataset`, dataset, MAX.nameChars);
    return { path, dataset };
  };

  const kinds = (field: string, given: readonly string[]): string[] => {
    if (given.length > MAX.jobLicenses) refuse(field, given.length, `up to ${MAX.jobLicenses} kinds`);
    const licenses = [...new Set(given)].sort();
    if (licenses.length !== given.length) refuse(field, given, 'each kind once');
    for (const kind of licenses) text(field, kind, MAX.nameChars);
    return licenses;
  };
  const constraint = (field: string, value: string | null | undefined): string | null => {
    if (value === null || value === undefined) return null;
    try {
      parseConstraint(value);
    } catch (error) {
      if (!(error instanceof ConstraintError)) throw error;
      refuse(field, value.slice(0, SHOWN_CHARS), `an expression over labels: ${error.message}`);
    }
    return text(field, value, MAX.constraintChars);
  };
  const liked = (input: JobPreferenceInput, field: string): JobPreference => {
    const { site, os, architecture, licenses, cpusPerTask, memoryMbPerTask } = input;
    const given = <T>(value: T | null | undefined): value is T => value !== null && value !== undefined;
    const preference: JobPreference = {
      ...(given(site) && { siteId: place(`${field}.site`, 'site', site) }),
      ...(given(os) && { os: text(`${field}.os`, os, MAX.nameChars) as string }),
      ...(given(architecture) && {
        architecture: text(`${field}.architecture`, architecture, MAX.nameChars) as string,
      }),
      ...(licenses.length > 0 && { licenses: kinds(`${field}.licenses`, licenses) }),
      ...(given(cpusPerTask) && { cpusPerTask: whole(`${field}.cpusPerTask`, cpusPerTask, 1, MAX.tasks) }),
      ...(given(memoryMbPerTask) && {
        memoryMbPerTask: whole(`${field}.memoryMbPerTask`, memoryMbPerTask, 0, MAX.integer),
      }),
    };
    if (Object.keys(preference).length === 0) refuse(field, input, 'at least one condition');
    return preference;
  };

  text('command', input.command, MAX.pathChars);
  if (input.arguments.length > MAX.arguments)
    refuse('arguments', input.arguments.length, `up to ${MAX.arguments} arguments`);
  let words = 0;
  for (const argument of input.arguments) {
    words += argument.length;
    text('arguments', argument, MAX.argumentChars, 0);
  }

  let env = NO_VARIABLES as Record<string, string>;
  if (input.environment.length > 0) {
    if (input.environment.length > MAX.variables)
      refuse('environment', input.environment.length, `up to ${MAX.variables} variables`);
    // No prototype: a variable may be called `constructor`, and `__proto__` is a name like any other.
    env = Object.create(null) as Record<string, string>;
    for (const { name, value } of input.environment) {
      words += name.length + value.length;
      if (!VARIABLE_NAME.test(name))
        refuse('environment.name', name, 'letters, digits and `_`, not starting with a digit');
      if (name in env) refuse('environment.name', name, 'each name once');
      text('environment.value', value, MAX.argumentChars, 0);
      env[name] = value;
    }
  }
  if (words > MAX.wordsChars) {
    refuse('arguments', words, `up to ${MAX.wordsChars} characters in arguments and environment together`);
  }

  const workingDirectory = text('workingDirectory', input.workingDirectory, MAX.pathChars);
  if (workingDirectory !== null && !/^(\/|[A-Za-z]:[\\/])/.test(workingDirectory)) {
    refuse('workingDirectory', workingDirectory, 'an absolute path');
  }

  const licenses = input.licenses.length === 0 ? [] : kinds('licenses', input.licenses);

  const resources = amountsGiven('resourcesPerTask', input.resourcesPerTask, MAX.jobResources, refuse);
  // Schedulers keep every kind that they have met: what nobody declared is none.
  for (const kind in resources)
    if (places.kinds?.has(kind) === false)
      refuse(
        'resourcesPerTask',
        kind,
        places.kinds.size === 0
          ? 'none: no machine in service has resources besides CPUs and memory'
          : `a kind that a machine in service has: ${[...places.kinds].slice(0, KINDS_SHOWN).join(', ')}`,
      );

  if (input.inputs.length > MAX.jobInputs)
    refuse('inputs', input.inputs.length, `up to ${MAX.jobInputs} inputs`);

  if (input.outputs.length > MAX.jobOutputs)
    refuse('outputs', input.outputs.length, `up to ${MAX.jobOutputs} outputs`);
  const datasets = input.outputs.flatMap(({ dataset }) => dataset ?? []);
  if (new Set(datasets).size < datasets.length) refuse('outputs', datasets, 'each dataset once');

  if (input.preferences.length > MAX.jobPreferences)
    refuse('preferences', input.preferences.length, `up to ${MAX.jobPreferences} preferences`);

  whole('boost', input.boost, -MAX.boost, MAX.boost);
  if (input.boost > 0 && !mayRaise)
    refuse('boost', input.boost, `-${MAX.boost} to 0; above 0 only by operators`, 'FORBIDDEN');
  if (input.arrayIndex !== null && input.arrayIndex !== undefined)
    whole('arrayIndex', input.arrayIndex, 0, MAX.integer);

  const cpus = input.tasks * input.cpusPerTask;
  if (cpus > MAX.jobCpus) refuse('tasks', cpus, `tasks × cpusPerTask up to ${MAX.jobCpus}`);
  const work = input.estimateS * input.benchmark * cpus;
  if (work > MAX.work)
    refuse('estimateS', work, `estimateS × benchmark × tasks × cpusPerTask up to ${MAX.work}`);
  const deadline = input.deadline ? input.deadline.getTime() / 1000 : null;
  if (deadline !== null && now !== null && deadline <= now)
    refuse('deadline', (input.deadline as Date).toISOString(), 'a time in the future');

  const origin = input.originSite ?? null;
  const limit = input.runTimeLimitS ?? null;
  return {
    name: text('name', input.name, MAX.nameChars),
    application: text('application', input.application, MAX.nameChars) ?? programName(input.command),
    project: text('project', input.project, MAX.nameChars, 1),
    groupName: text('groupName', input.groupName, MAX.nameChars),
    arrayIndex: input.arrayIndex ?? null,
    command: input.command,
    arguments: input.arguments,
    environment: env,
    workingDirectory,
    tasks: whole('tasks', input.tasks, 1, MAX.tasks),
    cpusPerTask: whole('cpusPerTask', input.cpusPerTask, 1, MAX.tasks),
    memoryMbPerTask: whole('memoryMbPerTask', input.memoryMbPerTask, 0, MAX.integer),
    resourcesPerTask: input.resourcesPerTask.length === 0 ? null : resources,
    licenses,
    os: text('os', input.os, MAX.nameChars),
    architecture: text('architecture', input.architecture, MAX.nameChars),
    machineConstraint: constraint('machineConstraint', input.machineConstraint),
    estimateS: seconds('estimateS', input.estimateS),
    benchmark: between('benchmark', input.benchmark, MAX.leastBenchmark, MAX.benchmark),
    runTimeLimitS: limit === null ? null : seconds('runTimeLimitS', limit),
    warnS: amount('warnS', input.warnS, MAX.seconds),
    warnSignal: input.warnSignal,
    killGraceS: between('killGraceS', input.killGraceS, 0, MAX.killGraceS),
    deadline,
    sandboxMb: size('sandboxMb', input.sandboxMb),
    outputMb: size('outputMb', input.outputMb),
    inputs: input.inputs.length === 0 ? NO_INPUTS : input.inputs.map((one, i) => data(one, `inputs[${i}]`)),
    originSiteId: origin === null ? null : place('originSite', 'site', origin),
    outputs:
      input.outputs.length === 0 ? NO_OUTPUTS : input.outputs.map((one, i) => kept(one, `outputs[${i}]`)),
    computationShare: amount('computationShare', input.computationShare, 1),
    preferences:
      input.preferences.length === 0
        ? NO_PREFERENCES
        : input.preferences.map((one, i) => liked(one, `preferences[${i}]`)),
    restartable: input.restartable,
    retry: retryGiven(input.retry, refuse),
    launch: input.launch,
    onTaskFailure: input.onTaskFailure,
    simulatedRunS: amount('simulatedRunS', input.simulatedRunS, MAX.seconds),
    simulatedIoS: amount('simulatedIoS', input.simulatedIoS, MAX.seconds),
    mail: input.mail ? [...new Set(input.mail)] : null,
    boost: input.boost,
    held: input.held,
  };
}

/** The last component of a path, cut to the length of a name. */
function programName(command: string): string {
  const last = command.slice(Math.max(command.lastIndexOf('/'), command.lastIndexOf('\\')) + 1);
  return (last || command).slice(0, MAX.nameChars);
}
