/**
 * What is wrong with a value that a schema refuses, in words for the people who wrote it: where, what is there, and what is accepted. The
 * one way in which faults that zod finds are told, whatever was read: policies, files of the simulator and the command line, tools, what
 * clients and peers send.
 */
import type { z } from 'zod';

export interface Fault {
  readonly path: readonly PropertyKey[];
  /** What is there; undefined: nothing. */
  readonly value: unknown;
  readonly accepted: string;
  /** NAME: not the value at the path is at fault, but the last name in it. UNKNOWN: nothing has that name; `accepted` lists what does. */
  readonly of: 'VALUE' | 'NAME' | 'UNKNOWN';
}

/** The value as the schema reads it. @throws what `refuse` makes of its faults, of which there is one at least */
export function checked<S extends z.ZodType>(
  schema: S,
  value: unknown,
  refuse: (faults: readonly [Fault, ...Fault[]]) => Error,
): z.output<S> {
  const result = schema.safeParse(value, { error: accepted });
  if (result.success) return result.data;
  const faults = result.error.issues.flatMap((issue) => faultsIn(issue, [], { schema, value }));
  throw refuse(faults as [Fault, ...Fault[]]);
}

/**
 * `sites[0].cpus: "x" is not accepted; accepted: a number`
 *
 * @param whole names what the path begins in, where the path is empty
 * @param hint stands before what is accepted
 */
export function sayFault({ path, value, accepted: words, of }: Fault, whole: string, hint = ''): string {
  const what =
    of === 'UNKNOWN'
      ? 'unknown field'
      : of === 'NAME'
        ? 'invalid name'
        : value === undefined
          ? 'missing'
          : `${shownValue(value)} is not accepted`;
  return `${placeOf(path) || whole}: ${what}${hint}; accepted: ${words}`;
}

/** `sites[0].cpus` */
export const placeOf = (path: readonly PropertyKey[]): string =>
  path
    .map((step, i) => (typeof step === 'number' ? `[${step}]` : `${i > 0 ? '.' : ''}${String(step)}`))
    .join('');

const SHOWN_MAX = 100;

/** As JSON, cut short where it is long. */
export function shownValue(value: unknown): string {
  const written = JSON.stringify(value) ?? String(value);
  return written.length > SHOWN_MAX ? `${written.slice(0, SHOWN_MAX - 1)}…` : written;
}

interface Whole {
  schema: z.core.$ZodType;
  value: unknown;
}

/** Of several forms that a value may have, what is wrong with the one that it begins to have. */
function faultsIn(issue: z.core.$ZodIssue, above: readonly PropertyKey[], whole: Whole): Fault[] {
  const path = [...above, ...issue.path];
  const fault = (at: readonly PropertyKey[], words: string, of: Fault['of']): Fault[] => [
    { path: at, value: valueAt(whole.value, at), accepted: words, of },
  ];
  if (issue.code === 'unrecognized_keys') {
    const fields = fieldsAt(whole, path).join(', ') || 'none';
    return issue.keys.flatMap((key) => fault([...path, key], fields, 'UNKNOWN'));
  }
  if (issue.code === 'invalid_key') return fault(path, issue.issues[0]?.message ?? issue.message, 'NAME');
  if (issue.code === 'invalid_union') {
    const begun = issue.errors.filter((branch) =>
      branch.every(({ code, path: at }) => at.length > 0 || code === 'unrecognized_keys'),
    );
    const nearest =
      begun.find((branch) => branch.every(({ code }) => code !== 'unrecognized_keys')) ?? begun[0];
    if (nearest) return nearest.flatMap((one) => faultsIn(one, path, whole));
  }
  return fault(path, issue.message, 'VALUE');
}

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown> | null | undefined)?.[key], value);

/** The fields of the object that stands there. */
function fieldsAt({ schema, value }: Whole, path: readonly PropertyKey[]): string[] {
  let at = formOf(schema, value);
  for (const [i, key] of path.entries()) {
    const { def } = at._zod as z.core.$ZodTypes['_zod'];
    const next =
      def.type === 'object'
        ? def.shape[String(key)]
        : def.type === 'array'
          ? def.element
          : def.type === 'record'
            ? def.valueType
            : undefined;
    if (next === undefined) return [];
    at = formOf(next, valueAt(value, path.slice(0, i + 1)));
  }
  const { def } = at._zod as z.core.$ZodTypes['_zod'];
  return def.type === 'object' ? Object.keys(def.shape) : [];
}

/** Without what lets it be left out; of several forms the one that has most of the value's fields. */
function formOf(schema: z.core.$ZodType, value: unknown): z.core.$ZodType {
  const { def } = schema._zod as z.core.$ZodTypes['_zod'];
  switch (def.type) {
    case 'optional':
    case 'nullable':
    case 'default':
    case 'prefault':
    case 'readonly':
      return formOf(def.innerType, value);
    case 'pipe':
      return formOf(def.in, value);
    case 'union': {
      const likeness = (one: z.core.$ZodType): number => {
        const { def: of } = one._zod as z.core.$ZodTypes['_zod'];
        if (of.type !== 'object' || typeof value !== 'object' || value === null) return -1;
        return Object.entries(value).reduce((sum, [key, given]) => {
          const field = of.shape[key];
          const words = field?._zod.values;
          // Another kind says of itself that it is none.
          if (words && !words.has(given)) return sum - Object.keys(value).length;
          return field ? sum + 1 : sum;
        }, 0);
      };
      const forms = def.options.map((one) => formOf(one, value));
      return forms.reduce((best, one) => (likeness(one) > likeness(best) ? one : best), forms[0] ?? schema);
    }
    default:
      return schema;
  }
}

// What is accepted ----------------------------------------------------------------------------------------------------------

const TYPES: Readonly<Record<string, string>> = {
  object: 'an object',
  record: 'an object',
  array: 'a list',
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  null: 'null',
  never: 'nothing',
  date: 'a date',
};
const FORMATS: Readonly<Record<string, string>> = {
  datetime: 'a time with its zone, such as 2030-01-31T12:00:00Z',
  email: 'an e-mail address',
  url: 'a URL',
};

/** For zod's `error`. What only a schema's author can say (`custom`, `refine`) is said there. */
function accepted(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return TYPES[String(issue.expected)] ?? String(issue.expected);
    case 'too_small':
      return `${issue.inclusive ? 'at least' : 'more than'} ${issue.minimum}${unitOf(issue.origin, issue.minimum)}`;
    case 'too_big':
      return `${issue.inclusive ? 'at most' : 'less than'} ${issue.maximum}${unitOf(issue.origin, issue.maximum)}`;
    case 'not_multiple_of':
      return `a multiple of ${issue.divisor}`;
    case 'invalid_format':
      return (
        FORMATS[issue.format] ??
        (issue.pattern === undefined
          ? `a text of the form ${issue.format}`
          : `a text that matches ${issue.pattern}`)
      );
    case 'invalid_value':
      return (issue.values as unknown[]).map(String).join(', ');
    case 'invalid_union':
      return Array.isArray(issue.options)
        ? issue.options.map(String).join(', ')
        : [...new Set(issue.errors.flat().map(({ message }) => message))].join(' or ');
    default:
      return undefined;
  }
}

/** What is counted of a value that is no number. */
function unitOf(origin: string, count: number | bigint): string {
  if (origin === 'string') return count === 1 ? ' character' : ' characters';
  if (origin !== 'array' && origin !== 'record') return '';
  return count === 1 ? ' entry' : ' entries';
}
