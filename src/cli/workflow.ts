/**
 * Workflow files: jobs, and what they need of one another, in YAML. Their fields are the options of `switchyard submit`, read by the same
 * code; the structure is a schema, from which the JSON schema for editors is made (docs/workflow.schema.json).
 */
import { Command, type Option } from 'commander';
import { type Document, isMap, isScalar, LineCounter, parseDocument, visit } from 'yaml';
import { z } from 'zod';
import type { Client } from '../client/index.js';
import { checked, type Fault, placeOf, sayFault } from '../core/accepted.js';
import { checkNeeds, type NeedsItem, sayNeedsError } from '../core/needs/check.js';
import { forecast } from '../core/needs/forecast.js';
import { NEEDS_LIMITS } from '../core/needs/model.js';
import { inOrder, type WorkflowTask } from '../simulator/workflow.js';
import {
  commandOfScript,
  elementName,
  elementsOf,
  type Indices,
  meant,
  NotAccepted,
  parseArray,
  parseDelay,
  readFrom,
} from '../words/index.js';
import { note } from './command.js';
import type { InputDataInput, JobInput, NeedClauseInput, NeedTermInput } from './documents.gql.js';
import { CliError, ExitCode } from './errors.js';
import { count, duration, table } from './format.js';
import {
  addJobOptions,
  type GivenJob,
  type JobOptions,
  jobFromOptions,
  placesFromOptions,
  remembering,
} from './job-options.js';

// What a file may contain ------------------------------------------------------------------------------------------------

/** Options that say what `needs` says, and second names of others. */
const LEFT_OUT = /^--(ref|after(-.*)?|time|memory-mb|exclusive=user)$/;
/** What fields are called here that somebody may know by another name. */
const SECOND_NAMES: readonly [RegExp, string][] = [
  [/^time$/, 'limit'],
  [/^memory(-mb)?$/, 'mem'],
  [/^(after|depend)/, 'needs'],
  [/^script$/, 'run'],
];

const nameOf = ({ long }: Option): string => (long ?? '').replace(/^--(no-)?/, '');
const OPTIONS: ReadonlyMap<string, Option> = new Map(
  addJobOptions(new Command())
    .options.filter(({ long }) => !LEFT_OUT.test(long ?? ''))
    .map((option) => [nameOf(option), option]),
);

// Each error says what is accepted.
const TEXT = z.union([z.string(), z.number()], { error: 'a text or a number' });
const MAP = z.record(z.string(), TEXT, { error: 'names with values' });

function schemaOf({ flags, required, parseArg, negate, description }: Option): z.ZodType {
  const about = description.replace('; may be repeated', '');
  if (flags === '--exclusive')
    return z
      .union([z.boolean(), z.literal('user')], { error: 'true, false or user' })
      .describe(`${about}; user: without other users' jobs`);
  if (!required)
    return z
      .boolean({ error: 'true or false' })
      .describe(negate ? `whether to ${about.replace(/^do not /, '')}` : about);
  if (!parseArg) return TEXT.describe(about);
  if (/<(name|kind)=/.test(flags))
    return z
      .union([TEXT, z.array(TEXT), MAP], { error: 'names with values, or a list of NAME=VALUE' })
      .describe(about);
  return z.union([TEXT, z.array(TEXT)], { error: 'a text, or a list of texts' }).describe(about);
}

const ofOptions = Object.fromEntries(
  [...OPTIONS].map(([name, option]) => [name, schemaOf(option).optional()]),
);

const NEED_CONDITIONS = ['START', 'OK', 'NOT_OK', 'ANY', 'CORRESPONDING'] as const;
const TERM = z
  .strictObject({
    ref: z.string({ error: 'the name of a job of this file' }).optional().describe('a job of this file'),
    job: z.string({ error: 'an id such as job_6' }).optional().describe('an existing job, such as job_6'),
    group: z
      .string({ error: 'the name of a group' })
      .optional()
      .describe('all of your own jobs with this --group'),
    'job-group': z
      .string({ error: 'an id such as group_3' })
      .optional()
      .describe('a bulk group, such as group_3'),
    condition: z
      .enum(NEED_CONDITIONS, { error: NEED_CONDITIONS.join(', ') })
      .optional()
      .describe(
        'START: they have started; OK (the default): COMPLETED; NOT_OK: ended, not all COMPLETED; ANY: ended; CORRESPONDING: the element with the same index is COMPLETED',
      ),
    delay: TEXT.optional().describe('how long the condition must have been satisfied, such as 10m'),
  })
  .describe('a job or a group: one of ref, job, group and job-group');
type Term = z.infer<typeof TERM>;
const NAMED = z.string().describe('the name of a job of this file that must be COMPLETED');
const TERMS_ACCEPTED = 'names of jobs, or {ref | job | group | job-group, condition, delay}';
const ANY_OF = z
  .strictObject({
    any: z
      .array(z.union([NAMED, TERM], { error: TERMS_ACCEPTED }), {
        error: 'a list of terms, one of which is enough',
      })
      .min(1, { error: 'at least one' }),
  })
  .describe('any of these');

const JOB = z.strictObject(
  {
    run: z
      .string({ error: 'a script' })
      .optional()
      .describe('a script, run by the interpreter in its first line (#!), or by sh'),
    command: z
      .array(TEXT, { error: 'a list of words, such as [python3, step.py]' })
      .min(1, { error: 'at least one word' })
      .optional()
      .describe('instead of run: the program and its arguments, without a shell'),
    needs: z
      .union(
        [NAMED, z.array(z.union([NAMED, TERM, ANY_OF], { error: `${TERMS_ACCEPTED}, or {any: […]}` }))],
        {
          error: 'the name of a job, or a list',
        },
      )
      .optional()
      .describe('dependencies, all of which must be satisfied before it starts'),
    array: TEXT.optional().describe(
      'run it once for each index, such as 1-10, 0-99:5 or 1,3,5-9:2%4 (at most 4 at a time)',
    ),
    ...ofOptions,
  },
  { error: 'a job: fields with values' },
);

const NAME = /^[A-Za-z][\w.-]{0,99}$/;
const FILE = z
  .strictObject(
    {
      name: TEXT.optional().describe('the group of its jobs (default for their field group)'),
      defaults: z
        .strictObject(ofOptions, { error: 'fields with values' })
        .optional()
        .describe('defaults for fields that jobs do not set'),
      jobs: z
        .record(
          z.string().regex(NAME, { error: 'a letter, then letters, digits, ".", "_" and "-", at most 100' }),
          JOB,
          {
            error: 'names with jobs',
          },
        )
        .describe('the jobs, by the names that others refer to'),
    },
    { error: 'name, defaults and jobs' },
  )
  .describe('A workflow of Switchyard: switchyard submit --workflow FILE');
type Fields = Readonly<Record<string, unknown>>;
type FileJob = Fields & Pick<z.infer<typeof JOB>, 'run' | 'command' | 'needs' | 'array'>;

/** For editors. */
export const workflowSchema = (): object => ({
  title: 'Switchyard workflow',
  ...z.toJSONSchema(FILE, { io: 'input' }),
});

// Reading ------------------------------------------------------------------------------------------------------------------

type Path = readonly (string | number)[];
interface AskedTerm extends NeedTermInput {
  path: Path;
}

/** A job of the file, or an array of them. */
export interface Step {
  ref: string;
  /** Without what it needs. */
  job: JobInput;
  array: Indices | null;
  needs: Clause[];
  /** What it reads files of (`input-from`): jobs and arrays of this file, and others. */
  reads: { from: string; path: Path }[];
}

interface Clause {
  expression: 'ALL' | 'ANY';
  of: AskedTerm[];
}

export interface Workflow {
  steps: readonly Step[];
  /** Where a job stands in the file, as `flow.yaml:3:5: jobs.prepare`. */
  placeOf(step: Step): string;
}

/** Of the faults of one file that are shown. */
const FAULTS_SHOWN = 20;

/** Faults of a file, each with its line and column. */
class Faults {
  /** With where they are. */
  private readonly told = new Map<string, number>();
  constructor(
    private readonly file: string,
    private readonly document: Document,
    private readonly counter: LineCounter,
  ) {}

  at(offset: number, text: string): void {
    const { line, col } = this.counter.linePos(offset);
    this.told.set(`${this.file}:${line}:${col}: ${text}`, offset);
  }

  refuse(path: Path, accepted: string): void {
    this.tell({ path, value: this.document.getIn(path), accepted, of: 'VALUE' });
  }

  tell(fault: Fault): void {
    const { path, of } = fault as Fault & { path: Path };
    const name = String(path.at(-1));
    const meantBy = SECOND_NAMES.find(([other]) => other.test(name))?.[1];
    const hint =
      of !== 'UNKNOWN'
        ? ''
        : meantBy === undefined
          ? meant(name, fault.accepted.split(', '))
          : `; did you mean ${meantBy}?`;
    this.at(this.offsetOf(path, of !== 'VALUE'), sayFault(fault, 'the file', hint));
  }

  say(path: Path, text: string, { atKey = false } = {}): void {
    this.at(this.offsetOf(path, atKey), path.length === 0 ? text : `${placeOf(path)}: ${text}`);
  }

  place(path: Path): string {
    const { line, col } = this.counter.linePos(this.offsetOf(path, true));
    return `${this.file}:${line}:${col}: ${placeOf(path)}`;
  }

  /** Throws when there are any. */
  check(): void {
    if (this.told.size > 0) throw this.error();
  }

  error(): CliError {
    const all = [...this.told].sort(([, a], [, b]) => a - b).map(([told]) => told);
    const more = all.length > FAULTS_SHOWN ? [`and ${all.length - FAULTS_SHOWN} more`] : [];
    return new CliError([...all.slice(0, FAULTS_SHOWN), ...more].join('\n'), ExitCode.USAGE);
  }

  /** Of what is there: a field that is missing stands where its object does. */
  private offsetOf(path: Path, atKey: boolean): number {
    const above = path.length === 0 ? null : this.document.getIn(path.slice(0, -1), true);
    const pair = isMap(above)
      ? above.items.find(({ key }) => isScalar(key) && String(key.value) === path.at(-1))
      : undefined;
    const node = atKey && pair ? pair.key : this.document.getIn(path, true);
    const range = (node as { range?: [number, number, number] | null } | undefined)?.range;
    if (range) return range[0];
    if (pair && isScalar(pair.key) && pair.key.range) return pair.key.range[0];
    return path.length === 0 ? 0 : this.offsetOf(path.slice(0, -1), atKey);
  }
}

/**
 * The jobs of a file. Throws one error that names all faults by line and column.
 *
 * @param given fields of jobs that neither they nor the defaults set
 * @param client asked for the ids of sites and datasets; null: they stay as they are named
 */
export async function readWorkflow(
  file: string,
  text: string,
  { given, client }: { given: GivenJob; client: Pick<Client, 'all'> | null },
): Promise<Workflow> {
  const counter = new LineCounter();
  const document = parseDocument(text, { lineCounter: counter, prettyErrors: false });
  const faults = new Faults(file, document, counter);
  for (const { pos, message } of document.errors) faults.at(pos[0], message);
  faults.check();
  // 1.10 is a version, and no number.
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'number' && node.source !== undefined) node.value = node.source;
    },
  });
  const written = document.toJS() as unknown;
  const parsed = checked(FILE, written, (all) => {
    for (const fault of all) faults.tell(fault);
    return faults.error();
  });
  const {
    name,
    defaults = {},
    jobs,
  } = parsed as { name?: string; defaults?: Fields; jobs: Record<string, FileJob> };
  const before: GivenJob = { ...given, ...(name !== undefined && { groupName: name }) };
  const places = client === null ? null : remembering(client);
  const steps: Step[] = [];
  for (const [ref, fields] of Object.entries(jobs))
    steps.push(await stepOf(ref, fields, { defaults, before, places, faults }));
  if (steps.length === 0) faults.refuse(['jobs'], 'at least one job');
  faults.check();
  checkSteps(steps, faults);
  faults.check();
  return { steps, placeOf: ({ ref }) => faults.place(['jobs', ref]) };
}

interface Circumstances {
  defaults: Fields;
  before: GivenJob;
  places: Pick<Client, 'all'> | null;
  faults: Faults;
}

async function stepOf(
  ref: string,
  fields: FileJob,
  { defaults, before, places, faults }: Circumstances,
): Promise<Step> {
  const path = ['jobs', ref];
  const { run, command, needs, array, ...own } = fields;
  if ((run === undefined) === (command === undefined))
    faults.say(path, 'give either run, a script, or command, a list of words', { atKey: true });
  const script = run === undefined ? null : commandOfScript(run, ref);
  const words = script === null ? (command ?? []).map(String) : [script.command, ...script.arguments];
  const of = (options: JobOptions) => fieldsOf(options, places);
  const all = { ...defaults, ...own };
  const job = await of(optionsOf(all)).catch(async () => {
    // One by one, to find which.
    for (const [field, value] of Object.entries(all)) {
      const at = field in own ? [...path, field] : ['defaults', field];
      await of(optionsOf({ [field]: value })).catch((error: Error) =>
        faults.say(at, error.message.replace(/^--[\w-]+: /, '')),
      );
    }
    return {};
  });
  return {
    ref,
    job: {
      ...before,
      name: ref,
      ...(script !== null && { application: ref }),
      ...job,
      command: words[0] ?? '',
      arguments: words.slice(1),
    },
    array:
      array === undefined
        ? null
        : tried([...path, 'array'], faults, () => parseArray('array', String(array))),
    needs: needs === undefined ? [] : clausesOf(needs, [...path, 'needs'], faults),
    reads: readsOf(all).map((from) => ({
      from,
      path: 'input-from' in own ? [...path, 'input-from'] : ['defaults', 'input-from'],
    })),
  };
}

/** Wrong ones are told with the other options. */
const readsOf = ({ 'input-from': written }: Fields): string[] =>
  written === undefined ? [] : listOf(written).flatMap((one) => readFrom(one)?.from ?? []);

async function fieldsOf(options: JobOptions, places: Pick<Client, 'all'> | null): Promise<GivenJob> {
  const job = jobFromOptions(options, [], say);
  return places === null ? job : { ...job, ...(await placesFromOptions(places, options)) };
}

const said = new Set<string>();
/** Once, for however many jobs. */
function say(text: string): void {
  if (!said.has(text)) note(text);
  said.add(text);
}

/** The values of a file as the command line would have them. */
function optionsOf(fields: Fields): JobOptions {
  const options: Record<string, unknown> & Pick<JobOptions, 'restart'> = { restart: true };
  for (const [name, value] of Object.entries(fields)) {
    const option = OPTIONS.get(name) as Option;
    options[option.attributeName()] = !option.required
      ? value
      : option.parseArg
        ? listOf(value).reduce<unknown>((before, one) => option.parseArg?.(one, before), undefined)
        : String(value);
  }
  // By the names and in the types that commander gives them, for these are its options.
  return options as JobOptions;
}

const listOf = (value: unknown): string[] =>
  typeof value !== 'object' || value === null
    ? [String(value)]
    : Array.isArray(value)
      ? value.map(String)
      : Object.entries(value).map(([name, one]) => `${name}=${one}`);

function tried<T>(path: Path, faults: Faults, parse: () => T): T | null {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof NotAccepted)) throw error;
    faults.refuse(path, error.accepted);
    return null;
  }
}

/** What all terms need is one clause; each `any` is another. */
function clausesOf(needs: NonNullable<FileJob['needs']>, path: Path, faults: Faults): Clause[] {
  if (typeof needs === 'string') return [{ expression: 'ALL', of: [{ ref: needs, path }] }];
  const all: AskedTerm[] = [];
  const clauses: Clause[] = [];
  for (const [i, one] of needs.entries()) {
    const at = [...path, i];
    if (typeof one === 'object' && 'any' in one)
      clauses.push({
        expression: 'ANY',
        of: one.any.map((term, k) => termOf(term, [...at, 'any', k], faults)),
      });
    else all.push(termOf(one, at, faults));
  }
  return all.length === 0 ? clauses : [{ expression: 'ALL', of: all }, ...clauses];
}

function termOf(term: string | Term, path: Path, faults: Faults): AskedTerm {
  if (typeof term === 'string') return { ref: term, path };
  const { ref, job, group, 'job-group': jobGroup, condition, delay } = term;
  if ([ref, job, group, jobGroup].filter((name) => name !== undefined).length !== 1)
    faults.refuse(path, 'exactly one of ref, job, group and job-group');
  const minDelayS =
    delay === undefined
      ? undefined
      : (tried([...path, 'delay'], faults, () => parseDelay('delay', String(delay))) ?? undefined);
  const given = { ref, job, group, jobGroup, condition, minDelayS };
  return { ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)), path };
}

type Steps = ReadonlyMap<string, Step>;
const byRefOf = (steps: readonly Step[]): Steps => new Map(steps.map((step) => [step.ref, step]));

/** All clauses of a job: what it reads, it needs. In an array each element reads the file of the one with its index, as the service has it for groups. */
function clausesWithReads({ array, needs, reads }: Step, byRef: Steps): Clause[] {
  const read = reads.flatMap(({ from, path }): AskedTerm[] => {
    const other = byRef.get(from);
    if (other === undefined) return [];
    return [{ ref: from, path, ...(array && other.array && { condition: 'CORRESPONDING' }) }];
  });
  return read.length === 0 ? needs : [...needs, { expression: 'ALL', of: read }];
}

/** What only the whole file shows: names that nobody has, circles, arrays that do not match. What exists is the service's to know. */
function checkSteps(steps: readonly Step[], faults: Faults): void {
  const byRef = byRefOf(steps);
  const clauses = steps.map((step) => clausesWithReads(step, byRef));
  const items: NeedsItem[] = steps.map(({ ref, job, array }, i) => ({
    ref,
    array: array && [array.indices[0] as number, array.indices.at(-1) as number],
    group: job.groupName ?? null,
    needs: (clauses[i] as Clause[]).map(({ expression, of }) => ({
      expression,
      of: of.map(({ ref: name, job: id, group, jobGroup, condition = 'OK', minDelayS = 0 }) => ({
        ...(name ? { ref: name } : group ? { group } : { job: id ?? jobGroup ?? '' }),
        ...{ condition, minDelayS },
      })),
    })),
  }));
  const existing = { has: () => true, indicesOf: () => [null] };
  for (const error of checkNeeds(items, existing, NEEDS_LIMITS)) {
    const at = 'item' in error ? error.item : 'items' in error ? (error.items[0] as number) : 0;
    const step = steps[at] as Step;
    const term = 'term' in error ? clauses[at]?.[error.clause]?.of[error.term] : undefined;
    // Arrays may have gaps, which the check below knows.
    if ((term && !term.ref) || error.code === 'INDEX_MISSING') continue;
    const text = sayNeedsError(error, items, NEEDS_LIMITS)
      .replaceAll(/jobs\.\d+ \(ref "([^"]*)"\)/g, '$1')
      .replace(/^[^:]*: needs\.\d+\.of\.\d+\.? ?/, '');
    faults.say(term?.path ?? ['jobs', step.ref, 'needs'], text);
  }
  for (const [i, { array }] of steps.entries())
    for (const { expression, of } of clauses[i] as Clause[])
      for (const { ref, condition, path } of of) {
        const other = byRef.get(ref ?? '')?.array ?? null;
        if (other === null) continue;
        if (condition === 'CORRESPONDING') {
          const there = new Set(other.indices);
          const lacking = array?.indices.find((index) => !there.has(index));
          if (lacking !== undefined)
            faults.say(
              path,
              `CORRESPONDING: ${ref} does not have index ${lacking}; accepted: an array with every index of the job's own`,
            );
        } else if (expression === 'ANY' && other.indices.length > 1)
          faults.say(
            path,
            `${ref} is an array, which \`any\` does not support; accepted: a job, or the group of the array`,
          );
      }
  faults.check();
  for (const step of steps) {
    const terms = expanded(step, byRef, null).reduce((sum, { of }) => sum + of.length, 0);
    if (terms > NEEDS_LIMITS.needsPerJob)
      faults.say(
        ['jobs', step.ref, 'needs'],
        `${terms} dependencies, counting array elements; accepted: up to ${NEEDS_LIMITS.needsPerJob}; depend on the group of larger arrays`,
      );
  }
}

// Submitting ---------------------------------------------------------------------------------------------------------------

/** The jobs to submit, and the step of each. */
export function jobsOf({ steps }: Workflow): { jobs: JobInput[]; stepOf: Step[] } {
  const byRef = byRefOf(steps);
  const jobs: JobInput[] = [];
  const stepOf: Step[] = [];
  for (const step of steps) {
    const elements = step.array === null ? [{ ref: step.ref }] : elementsOf(step.array, step.ref);
    for (const element of elements) {
      const index = 'arrayIndex' in element ? element.arrayIndex : null;
      const lanes = 'needs' in element ? (element.needs ?? []) : [];
      const needs = [...expanded(step, byRef, index), ...lanes];
      const inputs = step.job.inputs?.flatMap((input) => inputsOf(input, byRef, index));
      jobs.push({
        ...step.job,
        ...element,
        ...(needs.length > 0 && { needs }),
        ...(inputs && { inputs }),
      });
      stepOf.push(step);
    }
  }
  return { jobs, stepOf };
}

/** What an element of a step reads of an array: what the element with its index keeps, or, where it has none, what each keeps. */
function inputsOf(input: InputDataInput, byRef: Steps, index: number | null): InputDataInput[] {
  const array = byRef.get(input.from ?? '')?.array ?? null;
  if (array === null) return [input];
  const indices = index === null ? array.indices : [index];
  return indices.map((one) => ({ ...input, from: elementName(input.from as string, one) }));
}

/** What would be submitted, as text: the jobs by level, and the way that takes longest. */
export function planOf(workflow: Workflow): string {
  const { steps } = workflow;
  const position = new Map(steps.map(({ ref }, i) => [ref, [i]]));
  const byRef = byRefOf(steps);
  const clauses = steps.map((step) => clausesWithReads(step, byRef));
  const { levels, ends, criticalPath } = forecast(
    steps.map(({ job }, i) => ({
      needs: (clauses[i] as Clause[]).map(({ expression, of }) => ({
        expression,
        of: of.flatMap(({ ref, condition = 'OK', minDelayS = 0 }) => {
          const on = position.get(ref ?? '');
          const asked = condition === 'CORRESPONDING' ? ('OK' as const) : condition;
          return on === undefined ? [] : [{ on, condition: asked, minDelayS }];
        }),
      })),
      ...{ firstStartedAt: null, startedAt: null, endedAt: null, notBefore: null },
      runS: job.estimateS ?? ESTIMATE_S,
      held: false,
    })),
    0,
  );
  const order = [...steps.keys()].sort((a, b) => (levels[a] as number) - (levels[b] as number) || a - b);
  const rows = order.map((i) => {
    const { ref, job, array } = steps[i] as Step;
    const cpus = (job.tasks ?? 1) * (job.cpusPerTask ?? 1);
    return [
      ...[(levels[i] as number) + 1, ref, array?.indices.length ?? 1, cpus],
      ...[duration(job.estimateS ?? ESTIMATE_S), (clauses[i] as Clause[]).map(clauseTold).join(', ') || null],
    ];
  });
  const jobs = rows.reduce((sum, row) => sum + (row[2] as number), 0);
  const last = criticalPath.at(-1);
  const way = criticalPath.map((i) => steps[i]?.ref).join(' → ');
  return [
    table(['LEVEL', 'JOB', 'JOBS', 'CPUS', 'ESTIMATE', 'NEEDS'], rows),
    `${count(jobs, 'job')}; by the estimates at least ${duration(last === undefined ? null : ends[last])}: ${way}`,
  ].join('\n');
}

/** As the service has it for jobs without an estimate. */
const ESTIMATE_S = 3600;

const clauseTold = ({ expression, of }: Clause): string => {
  const terms = of.map(({ ref, job, group, jobGroup, condition = 'OK', minDelayS }) =>
    [
      ref ?? job ?? jobGroup ?? `group ${group}`,
      ...(condition === 'OK' ? [] : [condition]),
      ...(minDelayS ? [`+${duration(minDelayS)}`] : []),
    ].join(' '),
  );
  return expression === 'ANY' ? `any of (${terms.join(', ')})` : terms.join(', ');
};

/** What an element of a step needs, with the elements of the arrays that it names. */
function expanded({ needs }: Step, byRef: Steps, index: number | null): NeedClauseInput[] {
  const clauses: NeedClauseInput[] = [];
  for (const { expression, of } of needs) {
    const terms: NeedTermInput[] = [];
    for (const { path: _, ...term } of of) {
      const array = byRef.get(term.ref ?? '')?.array ?? null;
      if (array === null) terms.push(term);
      else if (term.condition === 'CORRESPONDING')
        terms.push({ ...term, ref: elementName(term.ref ?? '', index ?? 0), condition: 'OK' });
      else {
        const elements = array.indices.map((one) => ({ ...term, ref: elementName(term.ref ?? '', one) }));
        // Not all went well: all have ended, and one of them did not.
        const failing = term.condition === 'NOT_OK' && elements.length > 1;
        if (failing) clauses.push({ expression: 'ANY', of: elements });
        for (const element of elements) terms.push(failing ? { ...element, condition: 'ANY' } : element);
      }
    }
    clauses.push({ expression, of: terms });
  }
  return clauses;
}

const readNeeds = (inputs: readonly InputDataInput[]): NeedClauseInput[] => {
  const of = inputs.flatMap(({ from }) =>
    from ? [from.startsWith('group:') ? { group: from.slice(6) } : { ref: from }] : [],
  );
  return of.length === 0 ? [] : [{ of }];
};

/**
 * The jobs as a simulation knows them: they run as long as they say (`simulatedRunS`) or estimate, and end well. What they need of jobs that
 * exist has happened.
 */
export function tasksOf(jobs: readonly JobInput[]): WorkflowTask[] {
  const byRef = new Map(jobs.flatMap(({ ref }, i) => (ref ? [[ref, [i]] as const] : [])));
  const groups = new Map<string, number[]>();
  for (const [i, { groupName }] of jobs.entries())
    if (groupName) groups.set(groupName, [...(groups.get(groupName) ?? []), i]);
  const clauseOf = ({ expression = 'ALL', of }: NeedClauseInput) => {
    const terms = of.flatMap(({ ref, group, condition = 'OK', minDelayS = 0 }) => {
      const members = ref ? byRef.get(ref) : groups.get(group ?? '');
      return members === undefined || condition === 'CORRESPONDING'
        ? []
        : [{ members, condition, minDelayS }];
    });
    const open = expression === 'ANY' ? terms.length === of.length : terms.length > 0;
    return open ? [{ expression, of: terms }] : [];
  };
  return inOrder(
    jobs.map(({ needs = [], inputs, onUnmet = 'CANCEL', estimateS = ESTIMATE_S, ...job }) => ({
      ...{ runS: job.simulatedRunS ?? estimateS, estimateS, onUnmet, reads: [] },
      cpus: (job.tasks ?? 1) * (job.cpusPerTask ?? 1),
      memoryMb: (job.tasks ?? 1) * (job.memoryMbPerTask ?? 0),
      needs: [...needs, ...readNeeds(inputs ?? [])].flatMap(clauseOf),
    })),
  );
}
