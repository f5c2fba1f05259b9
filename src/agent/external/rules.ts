/**
 * On which terms runs are handed over to the site's own scheduler: partition, account, QOS, by rules of the operator (AGENT_LOCAL_RULES,
 * docs/operations/slurm.md). Of each the first matching rule that says one decides; a job may ask for another that matching rules list.
 */
import { readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import type { Assignment } from '../runner.js';
import { NO_TERMS, type Terms } from './scheduler.js';

const TERMS = ['partition', 'account', 'qos'] as const;

const RULES_MAX = 1_000;
/** What is accepted, for whatever is wrong. */
const says = (error: string) => ({ error });
const WORD = says('letters, digits and _.-, at most 200');
const word = z.string(WORD).regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}$/, WORD);
const PARTITIONS = says('letters, digits and _.-, several separated by commas, at most 200 characters');
const partitions = z
  .string(PARTITIONS)
  .regex(/^[A-Za-z0-9_][A-Za-z0-9_.-]*(,[A-Za-z0-9_][A-Za-z0-9_.-]*)*$/, PARTITIONS)
  .max(200, PARTITIONS);
const NAMES = says('a list of 1 to 10000 names, each of 1 to 200 characters');
const names = z.array(z.string(NAMES).min(1, NAMES).max(200, NAMES), NAMES).min(1, NAMES).max(10_000, NAMES);
const LEAST = says('a number of at least 0');
const least = z.number(LEAST).min(0, LEAST);
const CHOICES = says('lists of names: partition, account and qos');
const choices = z.array(word, CHOICES).max(1_000, says('at most 1000 names')).optional();

const FIELDS = {
  users: names.optional(),
  projects: names.optional(),
  /** Kinds of devices and other resources, one of which it asks for. */
  resources: names.optional(),
  /** In all. */
  cpusMin: least.optional(),
  cpusMax: least.optional(),
  /** In all. */
  memoryMbMin: least.optional(),
  memoryMbMax: least.optional(),
  /** Of its run time limit; without one it is longer than any. */
  limitSMin: least.optional(),
  limitSMax: least.optional(),
  partition: partitions.optional(),
  account: word.optional(),
  qos: word.optional(),
  /** What jobs may ask for instead. */
  choices: z.strictObject({ partition: choices, account: choices, qos: choices }, CHOICES).default({}),
};
const Rule = z.strictObject(FIELDS, says(`a rule: ${Object.keys(FIELDS).join(', ')}`));
type Rule = z.infer<typeof Rule>;
const Rules = z.array(Rule, says('a list of rules')).max(RULES_MAX, says(`at most ${RULES_MAX} rules`));

export type Termed = Pick<
  Assignment,
  | 'user'
  | 'project'
  | 'siteTerms'
  | 'tasks'
  | 'cpusPerTask'
  | 'memoryMbPerTask'
  | 'resourcesPerTask'
  | 'devicesPerTask'
  | 'runTimeLimitS'
>;

/** What the operator does not allow; the message is for the job's user. */
export class NotAllowedError extends Error {}

export interface TermsRulesOptions {
  /** A JSON list of rules, read again when it changes; null: there are none. */
  file: string | null;
  /** Where no rule says anything. */
  otherwise: Terms;
  /** Told of a file that is not accepted any more: the one before stays in force. */
  warn: (fields: object, message: string) => void;
}

export class TermsRules {
  private rules: readonly Rule[];
  private version: string | null = null;

  /** @throws Error for a file that cannot be read, or is not accepted */
  constructor(private readonly options: TermsRulesOptions) {
    this.rules = this.read();
  }

  /** @throws NotAllowedError where the job asks for what it may not have */
  of(run: Termed): Terms {
    this.refresh();
    const matching = [...this.rules.filter((rule) => matches(rule, run)), this.otherwise];
    const terms = { ...NO_TERMS };
    for (const name of TERMS) {
      const asked = run.siteTerms?.[name] ?? null;
      const allowed = new Set(
        matching.flatMap((rule) => [...(rule[name]?.split(',') ?? []), ...(rule.choices[name] ?? [])]),
      );
      const refused = asked?.split(',').find((one) => allowed.size > 0 && !allowed.has(one));
      if (refused !== undefined)
        throw new NotAllowedError(
          `${name}: ${JSON.stringify(refused)} was requested; accepted at this site: ${[...allowed].join(', ')}`,
        );
      terms[name] = asked ?? matching.find((rule) => rule[name] !== undefined)?.[name] ?? null;
    }
    return terms;
  }

  private get otherwise(): Rule {
    const said = Object.entries(this.options.otherwise).filter(([, value]) => value !== null);
    return { ...Object.fromEntries(said), choices: {} };
  }

  private refresh(): void {
    const { file, warn } = this.options;
    if (file === null) return;
    try {
      // What is not accepted is read, and said, once.
      if (versionOf(file) !== this.version) this.rules = this.read();
    } catch (error) {
      warn({ file, error: (error as Error).message }, 'the rules are invalid; the previous ones stay in use');
    }
  }

  private read(): readonly Rule[] {
    const { file } = this.options;
    if (file === null) return [];
    this.version = versionOf(file);
    return rulesOf(readFileSync(file, 'utf8'), file);
  }
}

/** @throws Error that names the field, its value and what is accepted */
export function rulesOf(text: string, file: string): readonly Rule[] {
  let written: unknown;
  try {
    written = JSON.parse(text);
  } catch (error) {
    throw new Error(`${file}: ${(error as Error).message}; accepted: a JSON list of rules`);
  }
  const read = Rules.safeParse(written);
  if (read.success) return read.data;
  const [issue] = read.error.issues as [z.core.$ZodIssue];
  const path = issue.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0] ?? ''] : issue.path;
  const value = path.reduce<unknown>(
    (at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key],
    written,
  );
  const steps = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`));
  const field = `rules${steps.join('')}`;
  throw new Error(
    `${file}: ${field}: ${(JSON.stringify(value) ?? 'nothing').slice(0, 200)} is not accepted; accepted: ${issue.message}`,
  );
}

function matches(rule: Rule, run: Termed): boolean {
  const { user, project, tasks, cpusPerTask, memoryMbPerTask, resourcesPerTask, runTimeLimitS } = run;
  const kinds = [...resourcesPerTask, ...(run.devicesPerTask ?? [])].map(({ kind }) => kind);
  const within = (value: number, min = 0, max = Number.MAX_VALUE): boolean => value >= min && value <= max;
  return (
    (rule.users?.includes(user) ?? true) &&
    (rule.projects === undefined || (project !== null && rule.projects.includes(project))) &&
    (rule.resources === undefined || kinds.some((kind) => rule.resources?.includes(kind))) &&
    within(tasks * cpusPerTask, rule.cpusMin, rule.cpusMax) &&
    within(tasks * memoryMbPerTask, rule.memoryMbMin, rule.memoryMbMax) &&
    within(runTimeLimitS ?? Number.MAX_VALUE, rule.limitSMin, rule.limitSMax)
  );
}

function versionOf(file: string): string {
  const { mtimeMs, ino, size } = statSync(file);
  return `${mtimeMs} ${ino} ${size}`;
}
