/** What tools are called with, and what is said of a call that is not so. */
import { z } from 'zod';
import type { Client } from '../client/index.js';
import { JOB_STATES } from '../client/states.gql.js';
import { MAX } from '../platform/limits.js';
import { elementsOf } from '../words/asked.js';
import { meant } from '../words/nearest.js';
import { parseArray } from '../words/values.js';
import { type JobFilter, type JobInput, SiteNamesDocument, ViewerDocument } from './documents.gql.js';

/** A call that cannot be done, in words that name the argument. */
export class BadCall extends Error {
  override readonly name = 'BadCall';
}

const INT_MAX = 2_147_483_647;
const text = (about: string): z.ZodOptional<z.ZodString> => z.string().max(4_096).optional().describe(about);
const whole = (about: string): z.ZodOptional<z.ZodNumber> =>
  z.number().int().min(0).max(INT_MAX).optional().describe(about);
export const time = (about: string): z.ZodOptional<z.ZodISODateTime> =>
  z.iso.datetime({ offset: true }).optional().describe(`${about}, such as 2030-01-31T12:00:00Z`);
export const jobId = z
  .string()
  .regex(/^job_\d{1,18}$/)
  .describe('The id of a job, such as job_12');
export const cursor = z
  .string()
  .max(500)
  .optional()
  .describe('Where to continue: `after` of the previous result');

export const states = z
  .array(z.enum(JOB_STATES))
  .min(1)
  .max(JOB_STATES.length)
  .optional()
  .describe('Only jobs in these states');

/** A job as it would be submitted: the fields of `JobInput` in schema.graphql that people set most. */
const CONSTRAINT = text('A constraint on the labels of its machines, such as `site = cern and gen >= 3`');

/** What the tasks of a job, or of a part, ask for. */
const TASKS = {
  tasks: whole('Number of tasks; by default 1'),
  cpusPerTask: whole('CPUs per task; by default 1'),
  memoryMbPerTask: whole('Memory per task, MB'),
  resourcesPerTask: z
    .record(z.string(), z.number().int().min(1).max(INT_MAX))
    .optional()
    .describe('Other resources of each task, such as {"gpu": 1}'),
  devicesPerTask: z
    .array(
      z.object({
        kind: z.string().optional().describe('Their kind; by default gpu'),
        count: whole('Number of devices, or of shares; by default 1'),
        model: z.string().optional(),
        minMemoryMb: whole('Memory of each, at least, MB'),
        share: z
          .object({ parts: z.number().int().min(1), of: z.number().int().min(2) })
          .optional()
          .describe('Share of each device; by default the whole device'),
      }),
    )
    .max(16)
    .optional()
    .describe('Devices of each task by model, memory and share, such as [{"model": "a100", "count": 2}]'),
  memoryMbPerCpu: whole(
    'Memory for each CPU, MB: a task has the larger of this times its CPUs and memoryMbPerTask',
  ),
  tasksPerMachine: z
    .object({ min: z.number().int().min(1), max: z.number().int().min(1).optional() })
    .optional()
    .describe('How many tasks are on each machine; by default as many as fit'),
  exclusive: z
    .enum(['MACHINE', 'USER'])
    .optional()
    .describe('MACHINE: no other job on its machines; USER: none of another user'),
  allAlike: z
    .array(z.string())
    .max(16)
    .optional()
    .describe('Labels of which all its machines have the same values'),
  sameSwitch: z
    .object({ maxWaitS: z.number().min(0).optional() })
    .optional()
    .describe('Machines on one switch; with maxWaitS, seconds, it then takes any'),
};

export const JOB = {
  command: z.string().min(1).max(4_096).describe('The program: a path or a name, not run through a shell'),
  arguments: z.array(z.string().max(131_072)).max(1_000).optional().describe('Its arguments'),
  name: text('Any name'),
  application: text('The program, for statistics; by default the last component of the command'),
  project: text('Its project'),
  groupName: text('A name shared by jobs that belong together'),
  environment: z.record(z.string(), z.string()).optional().describe('Environment variables'),
  workingDirectory: text('An absolute path at the site; by default a new directory'),
  ...TASKS,
  parts: z
    .array(z.object({ ...TASKS, machineConstraint: CONSTRAINT }))
    .max(16)
    .optional()
    .describe('Parts whose tasks ask for different things; these fields are then given for each part only'),
  licenses: z
    .array(z.string())
    .max(MAX.jobLicenses)
    .optional()
    .describe('Kinds of licenses, one entry per copy'),
  machineConstraint: CONSTRAINT,
  image: text('The container image that it runs in'),
  os: text('Required operating system'),
  architecture: text('Required architecture'),
  estimateS: z.number().optional().describe('Estimated run time, seconds; by default 3600'),
  runTimeLimitS: z.number().optional().describe('Run time limit, seconds'),
  deadline: time('The time by which it should end'),
  notBefore: time('The earliest time at which it can be scheduled'),
  outputs: z
    .array(z.string())
    .max(100)
    .optional()
    .describe('Files to keep, as paths or patterns such as *.csv'),
};
export type Job = z.infer<z.ZodObject<typeof JOB>>;

const tasksOf = <T extends Pick<Job, 'resourcesPerTask'>>({ resourcesPerTask, ...same }: T) => ({
  ...same,
  ...(resourcesPerTask && {
    resourcesPerTask: Object.entries(resourcesPerTask).map(([kind, amount]) => ({ kind, amount })),
  }),
});

/** The job in the words of the API. */
export function jobOf({ environment, outputs, parts, ...job }: Job): JobInput {
  return {
    ...tasksOf(job),
    ...(parts && { parts: parts.map(tasksOf) }),
    ...(environment && {
      environment: Object.entries(environment).map(([name, value]) => ({ name, value })),
    }),
    ...(outputs && { outputs: outputs.map((path) => ({ path })) }),
  };
}

/** CPU hours of a job that runs until its limit; null: it has none, or gets CPUs that it did not ask for. */
export function cpuHoursAtMost({
  tasks,
  cpusPerTask,
  parts,
  exclusive,
  runTimeLimitS,
}: JobInput): number | null {
  if (runTimeLimitS == null || exclusive != null || parts?.some((part) => part.exclusive != null))
    return null;
  const asked = parts?.length ? parts : [{ tasks, cpusPerTask }];
  const cpus = asked.reduce((sum, part) => sum + (part.tasks ?? 1) * (part.cpusPerTask ?? 1), 0);
  return (cpus * runTimeLimitS) / 3_600;
}

/** The jobs of an array such as `1-10`; without one, the job. */
export function jobsOfArray(job: JobInput, array: string | undefined): JobInput[] {
  return array === undefined
    ? [job]
    : elementsOf(parseArray('array', array)).map((one) => ({ ...job, ...one }));
}

/** Which jobs. */
export const FILTER = {
  states,
  site: text('Only jobs at this site, by name or id'),
  mine: z.boolean().optional().describe('Only jobs of the user of this key'),
  application: text('Only jobs of this application'),
  project: text('Only jobs for this project'),
  groupName: text('Only jobs with this group name'),
  class: text('Only jobs of this class of the policy; normal: jobs without one'),
  waitsForOthers: z
    .boolean()
    .optional()
    .describe('Only jobs that wait (true) or do not wait (false) for other jobs'),
};
type Filter = z.infer<z.ZodObject<typeof FILTER>>;

/** The filter in the words of the API, which knows sites and users by id. */
export async function filterOf(client: Client, { site, mine, ...same }: Filter): Promise<JobFilter> {
  return {
    ...same,
    ...(site !== undefined && { siteId: await siteId(client, site) }),
    ...(mine && { userId: (await client.request(ViewerDocument, {})).viewer.id }),
  };
}

async function siteId(client: Client, nameOrId: string): Promise<string> {
  const { nodes } = (await client.request(SiteNamesDocument, {})).sites;
  const found = nodes.find(({ id, name }) => name === nameOrId || id === nameOrId);
  if (found) return found.id;
  const names = nodes.map(({ name }) => name);
  throw new BadCall(
    `site: ${shown(nameOrId)} is not accepted; accepted: the name or id of a site (find_sites lists them)${meant(nameOrId, names)}`,
  );
}

/** The input of a tool. @throws BadCall that names the first field at fault, its value, and what is accepted */
export function parsed<Shape extends z.ZodRawShape>(
  schema: z.ZodObject<Shape>,
  input: unknown,
): z.infer<z.ZodObject<Shape>> {
  const result = schema.safeParse(input ?? {});
  if (result.success) return result.data;
  throw new BadCall(faultOf(result.error.issues[0]!, schema, input));
}

const shown = (value: unknown): string => {
  const written = JSON.stringify(value) ?? String(value);
  return written.length > 80 ? `${written.slice(0, 80)}…` : written;
};

function faultOf(issue: z.core.$ZodIssue, schema: z.ZodObject, input: unknown): string {
  const fields = Object.keys(schema.shape);
  if (issue.code === 'unrecognized_keys') {
    const [key = ''] = issue.keys;
    return `${key}: unknown field${meant(key, fields)}; accepted: ${fields.join(', ') || 'none'}`;
  }
  const path = issue.path.join('.') || 'arguments';
  const value = issue.path.reduce<unknown>(
    (at, key) => (at as Record<PropertyKey, unknown> | null)?.[key],
    input,
  );
  if (value === undefined) return `${path}: is missing`;
  return `${path}: ${shown(value)} is not accepted; accepted: ${acceptedBy(issue)}`;
}

function acceptedBy(issue: z.core.$ZodIssue): string {
  switch (issue.code) {
    case 'invalid_type':
      return (
        {
          ...{ int: 'a whole number', number: 'a number', string: 'a text', array: 'a list' },
          ...{ boolean: 'true or false', object: 'an object', record: 'an object' },
        }[issue.expected as string] ?? issue.expected
      );
    case 'invalid_value':
      return issue.values.join(', ');
    case 'too_small':
      return `at least ${issue.minimum}${issue.origin === 'string' ? ' characters' : ''}`;
    case 'too_big':
      return `at most ${issue.maximum}${{ string: ' characters', array: ' items' }[issue.origin as string] ?? ''}`;
    case 'invalid_format':
      return issue.format === 'datetime'
        ? 'a time with its zone, such as 2030-01-31T12:00:00Z'
        : issue.format === 'regex'
          ? 'an id such as job_12'
          : issue.format;
    default:
      return issue.message;
  }
}
