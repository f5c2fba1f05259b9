/** Small checks of what clients send. Each failure names the field, the value and what is accepted. */
import { MAX } from '../platform/limits.js';
import { ApiError, badInput } from './errors.js';

/** NUL, and halves of surrogate pairs: neither can be stored as text. */
const UNSTORABLE = /[\0\p{Surrogate}]/u;
const NAME = new RegExp(`^[A-Za-z0-9._-]{1,${MAX.plainNameChars}}$`);

/** What is wrong with a text; null: nothing. */
export function textFault(value: string, charsMax: number, charsMin = 0): string | null {
  if (value.length < charsMin || value.length > charsMax) {
    return charsMin > 0 ? `${charsMin} to ${charsMax} characters` : `up to ${charsMax} characters`;
  }
  return UNSTORABLE.test(value) ? 'text without NUL and without unpaired surrogates' : null;
}

/** A text within bounds. */
export function text(field: string, value: string, charsMax: number, charsMin = 0): string {
  const fault = textFault(value, charsMax, charsMin);
  if (fault) throw badInput(field, value, fault);
  return value;
}

/** A name that can stand in a shell or an address. */
export function plainName(field: string, value: string): string {
  if (!NAME.test(value))
    throw badInput(field, value, `1 to ${MAX.plainNameChars} letters, digits, \`.\`, \`_\` or \`-\``);
  return value;
}

/** A number from `min` to `max`, both included. */
export function within(field: string, value: number, min: number, max: number): number {
  if (!(value >= min && value <= max)) throw badInput(field, value, `${min} to ${max}`);
  return value;
}

/** A list that is not longer than a request may have. */
export function atMost<T>(field: string, list: readonly T[], max: number): readonly T[] {
  if (list.length > max)
    throw new ApiError('LIMIT_EXCEEDED', `${field}: ${list.length} given; accepted: up to ${max}`, { field });
  return list;
}

/** Refuses an explicit null where a field may be absent, but not emptied. */
export function notNull<T>(field: string, value: T | null | undefined): T | undefined {
  if (value === null) throw badInput(field, null, 'a value; omit the field to keep the current one');
  return value ?? undefined;
}

/** The checked value of a field that may be absent, but not emptied; absent: undefined. */
export function given<T, Rest extends unknown[], Checked>(
  field: string,
  value: T | null | undefined,
  check: (field: string, value: T, ...rest: Rest) => Checked,
  ...rest: Rest
): Checked | undefined {
  const there = notNull(field, value);
  return there === undefined ? undefined : check(field, there, ...rest);
}

/** The same of a field that null empties. */
export const clearable = <T, Rest extends unknown[], Checked>(
  field: string,
  value: T | null | undefined,
  check: (field: string, value: T, ...rest: Rest) => Checked,
  ...rest: Rest
): Checked | null | undefined =>
  value === null || value === undefined ? (value as null | undefined) : check(field, value, ...rest);

/** What an input changes: the fields without a value are those to be kept. */
export const patch = <T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as typeof fields;

/** Why something was done, for the audit log and the history. */
export const reason = (value: string): string => text('reason', value, MAX.reasonChars, 1);
