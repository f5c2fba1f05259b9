/** Task documents as clients of GA4GH TES send them, checked. What the server fills in, and fields of later versions, are left out. */
import { z } from 'zod';
import { checked, placeOf, sayFault } from '../../core/index.js';
import { MAX } from '../../platform/limits.js';
import { httpUrlFault, isHttp, shownUrl } from '../../platform/urls.js';
import { ApiError, badInput } from '../errors.js';

/** In a path or an argument of a program. */
const words = z.string().refine((value) => !value.includes('\0'), 'a text without NUL');
const path = words.refine((value) => value.startsWith('/'), 'an absolute path');
const fileType = z.enum(['FILE', 'DIRECTORY']).default('FILE');
const LIST_MAX = 1_000;
/** Of a URL in a message. */
const SHOWN_CHARS = 200;
const listOf = <T extends z.ZodType>(one: T) => z.array(one).max(LIST_MAX);
/** Clients that write all fields send null for what there is not. */
const optional = <T extends z.ZodType>(of: T) =>
  of
    .nullish()
    .transform((value) => value ?? undefined)
    .optional();

const environment = z.record(z.string(), words).superRefine((env, context) => {
  for (const name of Object.keys(env))
    if (!/^[A-Za-z_]\w*$/.test(name))
      context.addIssue({
        code: 'custom',
        message: 'a name of letters, digits and _ that does not begin with a digit',
        path: [name],
      });
});

const executor = z.object({
  image: words,
  command: z.array(words).min(1).max(LIST_MAX),
  workdir: optional(path),
  stdin: optional(path),
  stdout: optional(path),
  stderr: optional(path),
  env: optional(environment),
  ignore_error: optional(z.boolean()),
});

const input = z.object({
  name: optional(z.string()),
  description: optional(z.string()),
  url: optional(words),
  path,
  type: fileType,
  content: optional(words),
  streamable: optional(z.boolean()),
});

const output = z.object({
  name: optional(z.string()),
  description: optional(z.string()),
  url: words,
  path,
  path_prefix: optional(words),
  type: fileType,
});

const resources = z.object({
  cpu_cores: optional(z.int().min(1)),
  preemptible: optional(z.boolean()),
  ram_gb: optional(z.number().min(0)),
  disk_gb: optional(z.number().min(0)),
  zones: optional(listOf(z.string())),
  backend_parameters: optional(z.record(z.string(), z.string())),
  backend_parameters_strict: optional(z.boolean()),
});

const task = z.object({
  name: optional(z.string()),
  description: optional(z.string()),
  inputs: optional(listOf(input)),
  outputs: optional(listOf(output)),
  resources: optional(resources),
  executors: z.array(executor).min(1).max(LIST_MAX),
  volumes: optional(listOf(path)),
  tags: optional(z.record(z.string(), z.string())),
});

export type TesTask = z.output<typeof task>;
export type TesExecutor = TesTask['executors'][number];

/** The task that a client sends. Throws BAD_USER_INPUT that names the first faulty field. */
export const readTask = (sent: unknown): TesTask =>
  checked(
    task,
    sent,
    ([fault]) =>
      new ApiError('BAD_USER_INPUT', sayFault(fault, 'task'), { field: placeOf(fault.path) || 'task' }),
  );

/** The same as it was kept; null: it is none of ours. */
export function keptTask(kept: string): TesTask | null {
  try {
    return task.safeParse(JSON.parse(kept)).data ?? null;
  } catch {
    return null;
  }
}

/**
 * Where a URL of a file leads: to a path on the machines, or by HTTP (null). Throws BAD_USER_INPUT, without what may be secret, for another URL.
 */
export function pathOfUrl(field: string, url: string): string | null {
  if (url.startsWith('/')) return url;
  const accepted = `http:// or https://, such as a presigned URL of an object (up to ${MAX.fileUrlChars} characters); file:///… or an absolute path on a file system shared by the machines of the sites; or \`content\` for an input`;
  if (isHttp(url) && httpUrlFault(url, MAX.fileUrlChars) === null) return null;
  try {
    const { protocol, host, pathname } = new URL(url);
    const local = decodeURIComponent(pathname);
    if (protocol === 'file:' && host === '' && !local.includes('\0')) return local;
  } catch {
    // Neither.
  }
  throw badInput(field, shownUrl(url).slice(0, SHOWN_CHARS), accepted);
}
