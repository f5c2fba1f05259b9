/** A task as a job, and back. The job's arguments have the task's document, so a job has no state besides its own. */
import { posix } from 'node:path';
import { referenceOf } from '../../platform/images.js';
import { MAX } from '../../platform/limits.js';
import { isHttp, shownUrl } from '../../platform/urls.js';
import { ApiError, badInput, notAccepted } from '../errors.js';
import { keptTask, type TesTask } from './document.js';
import type { JobInput } from './documents.gql.js';
import { scriptOf, uploadPath } from './script.js';

/** What a job of a task is known by. */
const [SHELL, NAME] = ['/bin/sh', 'ga4gh-tes'];
/** Of a content that is one argument: a character is at most three bytes, and Linux takes 131 071. */
const PART_CHARS = 32 * 1024;
const ARGUMENT_BYTES_MAX = 128 * 1024 - 1;

export interface Circumstances {
  /** Whether images are left out of account for all tasks. */
  ignoresImages: boolean;
  sites: readonly { id: string; name: string }[];
}

type Parameters = Readonly<Record<string, string>>;

/** Keys of `backend_parameters`, in lower case, and what each makes of a job. */
const PARAMETERS: Readonly<Record<string, (value: string, field: string) => Partial<JobInput>>> = {
  run_without_image: (value, field) => {
    if (value !== 'true' && value !== 'false') throw badInput(field, value, 'true or false');
    return {};
  },
  project: (project) => ({ project }),
  group: (groupName) => ({ groupName }),
  machine_constraint: (machineConstraint) => ({ machineConstraint }),
  estimate_s: (value, field) => ({ estimateS: amount(value, field) }),
  run_time_limit_s: (value, field) => ({ runTimeLimitS: amount(value, field) }),
  memory_mb_per_cpu: (value, field) => ({ memoryMbPerCpu: amount(value, field) }),
  exclusive: (value, field) => {
    if (value !== 'machine' && value !== 'user') throw badInput(field, value, 'machine or user');
    return { exclusive: value === 'machine' ? 'MACHINE' : 'USER' };
  },
  gpus: (value, field) => ({ resourcesPerTask: [{ kind: 'gpu', amount: amount(value, field) }] }),
};
export const PARAMETER_NAMES = Object.keys(PARAMETERS);

function amount(value: string, field: string): number {
  const number = Number(value);
  if (value.trim() === '' || !Number.isFinite(number)) throw badInput(field, value, 'a number');
  return number;
}

/** The parameters that there are, under the names that they have here. */
function parametersOf({ resources }: TesTask): Parameters {
  const given = Object.entries(resources?.backend_parameters ?? {});
  const known = given.map(([key, value]): [string, string] => [key.toLowerCase(), value]);
  const unknown = given.find(([key]) => !(key.toLowerCase() in PARAMETERS));
  if (unknown && resources?.backend_parameters_strict)
    throw badInput('resources.backend_parameters', unknown[0], PARAMETER_NAMES.join(', '));
  return Object.fromEntries(known.filter(([key]) => key in PARAMETERS));
}

/** The job of a task. Throws BAD_USER_INPUT or LIMIT_EXCEEDED for what it cannot be. */
export function jobOfTask(task: TesTask, { ignoresImages, sites }: Circumstances): JobInput {
  const parameters = parametersOf(task);
  const image = ignoresImages || parameters.run_without_image === 'true' ? '' : imageOf(task);
  const { cpu_cores, ram_gb, preemptible, zones = [] } = task.resources ?? {};
  const [command] = task.executors[0]!.command;
  const job: JobInput = {
    ...{ command: SHELL, arguments: argumentsOf(task, parameters) },
    ...(image !== '' && { image }),
    ...transfersOf(task),
    name: [...(task.name ?? '')].slice(0, MAX.nameChars).join('') || null,
    application: [...posix.basename(command!)].slice(0, MAX.nameChars).join('') || null,
    ...(cpu_cores !== undefined && { cpusPerTask: cpu_cores }),
    ...(ram_gb !== undefined && { memoryMbPerTask: Math.ceil(ram_gb * 1000) }),
    // A job that cannot be started again is not stopped to make room.
    ...(preemptible !== undefined && { restartable: preemptible }),
    ...(zones.length > 0 && { preferences: zones.map((zone) => ({ site: siteOf(zone, sites) })) }),
  };
  for (const [key, value] of Object.entries(parameters))
    Object.assign(job, PARAMETERS[key]?.(value, `resources.backend_parameters.${key}`));
  return job;
}

export const WITHOUT_IMAGE =
  'The task runs without images if resources.backend_parameters has "run_without_image": "true"';

/** A task is one run, which is in one image. */
function imageOf({ executors }: TesTask): string {
  const image = executors[0]!.image;
  const other = executors.findIndex((one) => referenceOf(one.image) !== referenceOf(image));
  if (other >= 0)
    throw new ApiError(
      'BAD_USER_INPUT',
      notAccepted(
        `executors[${other}].image`,
        executors[other]?.image,
        `that of executors[0] ("${image}"): all executors of a task run in the same image. ${WITHOUT_IMAGE}`,
      ),
    );
  return image;
}

function siteOf(zone: string, sites: Circumstances['sites']): string {
  const site = sites.find(({ name }) => name === zone);
  if (site) return site.id;
  const known = sites.slice(0, 10).map(({ name }) => name);
  throw badInput('resources.zones', zone, `names of sites: ${known.join(', ')}`);
}

/** Inputs that are fetched from URLs: content goes before. */
const isFetched = ({ url, content }: { url?: string | undefined; content?: string | undefined }): boolean =>
  !content && url !== undefined && isHttp(url);

/** What the agent of the job fetches and sends, in the order of the task's inputs and outputs. */
function transfersOf({ inputs = [], outputs = [] }: TesTask): Pick<JobInput, 'downloads' | 'uploads'> {
  const downloads = inputs.filter(isFetched).map(({ url = '' }) => ({ url }));
  const uploads = outputs.flatMap(({ url }, i) => (isHttp(url) ? { path: uploadPath(i), url } : []));
  for (const [field, { length }] of Object.entries({ inputs: downloads, outputs: uploads }))
    if (length > MAX.jobUrls)
      throw badInput(field, length, `up to ${MAX.jobUrls} with URLs of http(s), and others beside them`);
  return { ...(downloads.length > 0 && { downloads }), ...(uploads.length > 0 && { uploads }) };
}

/** The script, the document, and the contents of inputs, in parts: the document says how many parts each has. */
function argumentsOf(task: TesTask, backend_parameters: Parameters): string[] {
  const contents = (task.inputs ?? []).map(({ content, url }) =>
    content || url === undefined ? partsOf(content) : null,
  );
  // Whoever sees the job, or the processes of its machine, sees its arguments: what is secret in URLs is among the job's downloads and uploads only.
  const kept: TesTask = {
    ...task,
    ...(task.inputs && {
      inputs: task.inputs.map(({ content: _, ...input }, i) => {
        const parts = contents[i];
        const url = input.url === undefined ? {} : { url: shownUrl(input.url) };
        return { ...input, ...url, ...(parts && { content: String(parts.length) }) };
      }),
    }),
    ...(task.outputs && {
      outputs: task.outputs.map((output) => ({ ...output, url: shownUrl(output.url) })),
    }),
    ...(task.resources && { resources: { ...task.resources, backend_parameters } }),
  };
  // `$1` is the document.
  let next = 2;
  const places = contents.map((parts) => parts?.map(() => next++) ?? null);
  const all = [
    '-c',
    scriptOf(task, (i) => places[i] ?? null),
    NAME,
    JSON.stringify(kept),
    ...contents.flatMap((parts) => parts ?? []),
  ];
  if (all.some((one) => Buffer.byteLength(one) > ARGUMENT_BYTES_MAX))
    throw new ApiError(
      'LIMIT_EXCEEDED',
      `the task is too large; accepted: up to ${ARGUMENT_BYTES_MAX} bytes as a script, besides the content of inputs`,
    );
  return all;
}

/** A task with what is secret in its URLs, as the job's downloads and uploads tell it to whoever asks. */
export function withUrls(
  task: TesTask,
  downloads: readonly { url: string }[],
  uploads: readonly { url: string }[],
): TesTask {
  const [fetched, sent] = [downloads.values(), uploads.values()];
  const next = <T extends { url?: string | undefined }>(one: T, from: Iterator<{ url: string }>): T => {
    const { value } = from.next();
    return value === undefined ? one : { ...one, url: value.url };
  };
  return {
    ...task,
    ...(task.inputs && {
      inputs: task.inputs.map((input) => (isFetched(input) ? next(input, fetched) : input)),
    }),
    ...(task.outputs && {
      outputs: task.outputs.map((output) => (isHttp(output.url) ? next(output, sent) : output)),
    }),
  };
}

function partsOf(content: string | undefined): string[] | null {
  if (content === undefined) return null;
  const parts: string[] = [];
  for (let at = 0; at < content.length; ) {
    const end = at + PART_CHARS;
    // Not between the halves of a character.
    const part = content.slice(at, /[\ud800-\udbff]/.test(content.charAt(end - 1)) ? end + 1 : end);
    parts.push(part);
    at += part.length;
  }
  return parts;
}

/** The task of a job; null: it was submitted as something else. */
export function taskOfJob({
  command,
  arguments: args,
}: {
  command: string;
  arguments: readonly string[];
}): TesTask | null {
  if (command !== SHELL || args[2] !== NAME) return null;
  const [, , , document = '', ...parts] = args;
  const task = keptTask(document);
  if (!task?.inputs) return task;
  const inputs = task.inputs.map((input) =>
    input.content === undefined
      ? input
      : { ...input, content: parts.splice(0, Number(input.content)).join('') },
  );
  return { ...task, inputs };
}
