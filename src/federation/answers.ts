/**
 * What a peer answers, checked: nothing of it is believed to be as the schema says. An answer that is no answer fails the round; an offer or
 * a grant with values that no job may have is given back alone.
 */
import { z } from 'zod';
import { type Document, ServiceError } from '../client/index.js';
import { checked, envelopeOf, sayFault } from '../core/index.js';
import { outputPathFault } from '../platform/file-paths.js';
import { MAX } from '../platform/limits.js';
import {
  charsOfInputs,
  type GrantedJob,
  type NewCopy,
  OFFERS_PAGE,
  type OfferedJob,
  type OfferedPart,
  type OfferedPreference,
} from '../store/federation.js';
import { givenEnums, givenFields, type OfferedFields, offeredFields } from '../store/job-fields.js';

/** What is asked is typed, and what is answered is not believed. */
export type Ask = <Variables extends object>(
  document: Document<unknown, Variables>,
  variables: NoInfer<Variables>,
) => Promise<unknown>;

/** Without NUL, which no database keeps. */
const text = (most: number) =>
  z
    .string()
    .max(most)
    .regex(/^[^\0]*$/, { error: 'a text without NUL' });
const name = text(MAX.nameChars);
const whole = (most: number) => z.int().min(0).max(most);
const kinds = z.array(name).max(MAX.jobLicenses);
const number = z
  .string()
  .regex(/^\d{1,16}$/, { error: 'a whole number of up to 16 digits, as text' })
  .transform(Number)
  .refine(Number.isSafeInteger, { error: `a whole number up to ${Number.MAX_SAFE_INTEGER}` });

const preference = z.object({
  os: name.nullish(),
  architecture: name.nullish(),
  licenses: kinds.nullish(),
  cpusPerTask: z.int().min(1).max(MAX.tasks).nullish(),
  memoryMbPerTask: whole(MAX.integer).nullish(),
});

/** What a field of this type may be; of numbers the ranges are the store's matter (store/bounds.ts). */
const typed = {
  text: name,
  'text[]': kinds,
  integer: whole(MAX.integer),
  float8: z.number(),
  boolean: z.boolean(),
  timestamptz: z.iso.datetime().transform((at) => Date.parse(at) / 1000),
  task_launch: z.enum(givenEnums.task_launch),
  task_failure: z.enum(givenEnums.task_failure),
} as const;

/** What travels as it is, each by its type in store/job-fields.ts. Null is what a peer may leave out: its version may not know the field. */
const travelling = z.object(
  Object.fromEntries(
    offeredFields.flatMap((field) => {
      if (field === 'preferences' || field === 'parts' || field === 'devicesPerTask') return [];
      const { type, nullable } = givenFields[field];
      const checked: z.ZodType = typed[type as keyof typeof typed];
      return [[field, nullable ? checked.nullable().default(null) : checked]];
    }),
  ),
  // The compiler does not follow this far; the types above are those of the fields.
) as unknown as z.ZodObject<{
  [K in Exclude<keyof OfferedFields, 'preferences' | 'parts' | 'devicesPerTask'>]: z.ZodType<
    OfferedFields[K]
  >;
}>;

/** Devices by what they are, as `JobInput` has them. Left out by versions before 3. */
const devices = z
  .array(
    z.object({
      kind: text(MAX.plainNameChars).min(1),
      count: z.int().min(1).max(MAX.machineDevices),
      model: text(MAX.labelChars).nullable(),
      minMemoryMb: whole(MAX.integer).nullable(),
      share: z
        .object({ parts: z.int().min(1), of: z.int().min(2).max(MAX.deviceShares) })
        .refine(({ parts, of }) => parts < of)
        .nullable(),
    }),
  )
  .min(1)
  .max(MAX.jobResources)
  .nullable()
  .default(null);

const part = z.object({
  tasks: z.int().min(1).max(MAX.tasks),
  cpusPerTask: z.int().min(1).max(MAX.tasks),
  memoryMbPerTask: whole(MAX.integer),
  devicesPerTask: devices,
});

const request = travelling
  .extend({
    request: text(2 * MAX.nameChars).min(1),
    hops: whole(MAX.hops),
    visited: z.array(name).min(1).max(MAX.hops),
    user: name,
    bytes: whole(MAX.integer),
    preferences: z.array(preference.transform(given)).max(MAX.jobPreferences),
    // Neither is of version 1.
    parts: z.array(part).min(2).max(MAX.jobParts).nullable().default(null),
    devicesPerTask: devices,
    outputs: z
      .array(
        z
          .string()
          .refine((path) => !path.includes('\0') && outputPathFault(path, MAX.outputPathChars) === null),
      )
      .max(MAX.jobOutputs)
      .default([]),
  })
  .refine(hasEnvelope) satisfies z.ZodType<OfferedJob>;

/** The amounts of a job of several parts follow from these: others would be planned with, or charged. */
function hasEnvelope({ parts, ...job }: Pick<OfferedJob, 'parts' | keyof OfferedPart>): boolean {
  if (parts === null) return true;
  if (job.devicesPerTask != null) return false;
  const { tasks, cpusPerTask, memoryMbPerTask } = envelopeOf(parts);
  return job.tasks === tasks && job.cpusPerTask === cpusPerTask && job.memoryMbPerTask === memoryMbPerTask;
}

/** Without what it leaves open. */
function given(one: z.infer<typeof preference>): OfferedPreference {
  const entries = Object.entries(one).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(entries);
}

const exchange = z.object({
  site: text(MAX.nameChars),
  cursor: number,
  more: z.boolean(),
  offers: z
    .array(
      z.object({
        offer: number,
        state: z.enum(['OFFERED', 'CLAIMED', 'WITHDRAWN']),
        stop: z.boolean(),
        job: z
          .string()
          .regex(/^job_\d{1,16}$/, { error: 'the id of a job, such as job_17' })
          .transform((id) => Number(id.slice('job_'.length))),
        boost: z.number().transform((boost) => Math.max(-MAX.boost, Math.min(MAX.boost, Math.trunc(boost)))),
        request: z.unknown(),
      }),
    )
    .max(OFFERS_PAGE),
});

/** The news of an exchange. */
export interface News {
  /** The site that stands for us there. */
  site: string;
  cursor: number;
  more: boolean;
  /** Not ours any more, or to be stopped. */
  over: number[];
  open: NewCopy[];
  /** Ours by the owner's account. */
  claimed: number[];
  /** Offered with values that no job may have. */
  bad: number[];
}

/** @throws ServiceError BAD_ANSWER */
export function newsOf(answer: unknown, after: number): News {
  const { offers, ...news } = read('exchangeJobs', exchange, answer);
  if (offers.length > 0 && news.cursor <= after)
    throw badAnswer('exchangeJobs', `its cursor ${news.cursor} is not after ${after}`);
  const open: NewCopy[] = [];
  const bad: number[] = [];
  for (const { offer, state, job: jobId, boost, request: told } of offers) {
    if (state !== 'OFFERED') continue;
    const known = request.safeParse(told);
    if (known.success) open.push({ offer, jobId, boost, request: known.data });
    else bad.push(offer);
  }
  const over = offers.filter(({ state, stop }) => state === 'WITHDRAWN' || stop).map(({ offer }) => offer);
  // Those to be stopped, too: who was restored to before its copy gives it back.
  const claimed = offers.filter(({ state }) => state === 'CLAIMED').map(({ offer }) => offer);
  return { ...news, over, open, claimed, bad };
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;
/** As it came: a copy would lose a variable that is called `__proto__`. */
const environment = z.custom<Record<string, string>>((value) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const entries = Object.entries(value);
  return (
    entries.length <= MAX.variables &&
    entries.every(([key, word]) => VARIABLE.test(key) && typeof word === 'string' && !word.includes('\0'))
  );
});

const input = z.object({
  place: z.int().min(1).max(MAX.jobInputs),
  dataset: text(MAX.pathChars).min(1),
  name: name.min(1),
  sizeMb: z.number().min(0).max(MAX.sizeMb),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .nullable(),
  // Nothing of ours: neither files nor what an operator's command would fetch.
  urls: z
    .array(
      z
        .string()
        .max(MAX.urlChars)
        .regex(/^https?:\/\/[^\0]+$/i),
    )
    .min(1)
    .max(MAX.sources),
});

const grant = z.object({
  epoch: z.int().min(1).max(MAX.integer),
  command: text(MAX.pathChars).min(1),
  arguments: z.array(text(MAX.argumentChars)).max(MAX.arguments),
  environment,
  workingDirectory: text(MAX.pathChars).nullable(),
  inputs: z.array(input).max(MAX.jobInputs),
}) satisfies z.ZodType<GrantedJob>;

const claims = z.object({
  results: z.array(z.looseObject({ outcome: z.enum(['GRANTED', 'REFUSED', 'PENDING']) })),
});

/**
 * What became of claims: those that are granted, and those that are not to be run, because the owner says so or grants what no job may be,
 * such as more than the offer said. All others are pending.
 *
 * @throws ServiceError BAD_ANSWER
 */
export function outcomesOf(
  answer: unknown,
  claimed: readonly { offer: number; bytes: number }[],
): { granted: (GrantedJob & { offer: number })[]; refused: number[] } {
  const { results } = read('claimJobs', claims, answer);
  if (results.length !== claimed.length)
    throw badAnswer('claimJobs', `${results.length} results of ${claimed.length} claims`);
  const granted: (GrantedJob & { offer: number })[] = [];
  const refused: number[] = [];
  for (const [i, { offer, bytes }] of claimed.entries()) {
    const result = results[i];
    if (result?.outcome === 'PENDING') continue;
    const job = result?.outcome === 'GRANTED' ? grant.safeParse(result) : null;
    if (job?.success && charsOf(job.data) <= bytes) granted.push({ offer, ...job.data });
    else refused.push(offer);
  }
  return { granted, refused };
}

/** As they count in what a job takes (store/rules.ts, bytesOf). */
function charsOf({
  command,
  arguments: words,
  environment: variables,
  workingDirectory,
  inputs,
}: GrantedJob): number {
  const texts = [command, workingDirectory ?? '', ...words, ...Object.entries(variables).flat()];
  return texts.reduce((sum, one) => sum + one.length, charsOfInputs(inputs));
}

/** @throws ServiceError BAD_ANSWER unless there is an answer to each report */
export function checkResults(answer: unknown, reports: number): void {
  const { results } = read('reportRuns', z.object({ results: z.array(z.unknown()) }), answer);
  if (results.length !== reports)
    throw badAnswer('reportRuns', `${results.length} results of ${reports} reports`);
}

const read = <T>(field: string, schema: z.ZodType<T>, answer: unknown): T =>
  checked(z.object({ [field]: schema }), answer, ([fault]) => notByProtocol(sayFault(fault, field)))[
    field
  ] as T;

export const badAnswer = (where: string, why: string): ServiceError => notByProtocol(`${where}: ${why}`);

const notByProtocol = (why: string): ServiceError =>
  new ServiceError(`the peer's response does not follow the protocol: ${why}`, 'BAD_ANSWER');
