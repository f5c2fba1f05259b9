/** Values as people type them on the command line. Each parser throws a usage error naming field, value and what is accepted. */
import { DEFAULT_LIMITS } from '../platform/limits.js';
import { usage } from './errors.js';

/** What an option says, where it was given. */
export const given = <T>(value: string | undefined, parse: (value: string) => T): T | undefined =>
  value === undefined ? undefined : parse(value);

const UNIT_S: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** `90`, `90s`, `15m`, `2h`, `1d`, `1h30m` as seconds, above 0. */
export function parseDuration(field: string, value: string): number {
  const accepted = 'seconds or a duration such as 90, 15m, 2h, 1h30m or 1d, above 0';
  const plain = Number(value);
  let total = plain;
  if (value.trim() === '' || Number.isNaN(plain)) {
    if (!/^(\d+(\.\d+)?[smhd])+$/.test(value)) throw usage(field, value, accepted);
    total = 0;
    for (const [, number, unit] of value.matchAll(/([\d.]+)([smhd])/g))
      total += Number(number) * UNIT_S[unit!]!;
  }
  if (!(total > 0) || !Number.isFinite(total)) throw usage(field, value, accepted);
  return total;
}

/** `KIND=AMOUNT`: an amount of a kind of resource. */
export function parseAmount(field: string, value: string): { kind: string; amount: number } {
  const [kind, amount, ...more] = value.split('=');
  if (!kind || amount === undefined || more.length > 0)
    throw usage(field, value, 'a kind and its amount, such as gpu=2');
  return { kind, amount: parseNumber(field, amount, { min: 1, integer: true }) };
}

/** `NAME=TEXT`, or a name alone. */
export function parseLabel(field: string, value: string): { name: string; value: string } {
  const [, name, text = ''] = /^([^=]+)(?:=(.*))?$/s.exec(value) ?? [];
  if (name === undefined) throw usage(field, value, 'a name, or a name and a text such as gen=3');
  return { name, value: text };
}

const ISO = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:?\d\d)?)?$/;

/**
 * An ISO 8601 time, or `+DURATION` from now, as ISO 8601 in UTC. A time without a zone, or a day alone, is taken as local, which is said.
 *
 * @param nowMs milliseconds since 1970
 */
export function parseTime(field: string, value: string, nowMs: number, say: (text: string) => void): string {
  if (value.startsWith('+'))
    return new Date(nowMs + parseDuration(field, value.slice(1)) * 1000).toISOString();
  const match = ISO.exec(value);
  const [year, month, day, hour, minute, second] = (match ?? [])
    .slice(1, 7)
    .map((part) => Number(part ?? 0)) as [number, number, number, number, number, number];
  const isReal =
    match !== null &&
    month >= 1 &&
    month <= 12 &&
    day >= 1 &&
    day <= new Date(Date.UTC(year, month, 0)).getUTCDate() &&
    hour <= 23 &&
    minute <= 59 &&
    second <= 59;
  const zone = match?.[8];
  // Date takes the 30th of February for the 2nd of March.
  const date = !isReal
    ? new Date(Number.NaN)
    : zone
      ? new Date(value.replace(' ', 'T').replace(/([+-]\d\d)(\d\d)$/, '$1:$2'))
      : new Date(
          year,
          month - 1,
          day,
          hour,
          minute,
          second,
          Number((match[7] ?? '').padEnd(3, '0').slice(0, 3)),
        );
  if (Number.isNaN(date.getTime())) {
    throw usage(
      field,
      value,
      'a time such as 2026-03-01T12:00:00Z, or 2026-03-01 12:00 for local time, or +DURATION such as +2h',
    );
  }
  if (!zone) say(`${field}: ${value} is taken as local time, which is ${date.toISOString()}`);
  return date.toISOString();
}

/** A number within bounds. */
export function parseNumber(
  field: string,
  value: string,
  { min = -Infinity, max = Infinity, integer = false } = {},
): number {
  const number = Number(value);
  if (
    value.trim() === '' ||
    Number.isNaN(number) ||
    number < min ||
    number > max ||
    (integer && !Number.isInteger(number))
  ) {
    const bounds = [min > -Infinity ? `from ${min}` : '', max < Infinity ? `to ${max}` : '']
      .filter(Boolean)
      .join(' ');
    throw usage(field, value, `${integer ? 'a whole number' : 'a number'}${bounds && ` ${bounds}`}`);
  }
  return number;
}

/** `1-10` or `0-99:5` as the indices of an array of jobs. */
export function parseArray(field: string, value: string): number[] {
  const match = /^(\d{1,9})-(\d{1,9})(?::(\d{1,9}))?$/.exec(value);
  const [from, to, step] = [Number(match?.[1]), Number(match?.[2]), Number(match?.[3] ?? 1)];
  if (!match || to < from || step < 1 || (to - from) / step >= DEFAULT_LIMITS.jobsMax) {
    throw usage(
      field,
      value,
      `FROM-TO or FROM-TO:STEP with at most ${DEFAULT_LIMITS.jobsMax} indices, such as 1-10`,
    );
  }
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, i) => from + i * step);
}

/** `NAME=VALUE`. */
export function parseVariable(field: string, value: string): { name: string; value: string } {
  const [, name, text] = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s.exec(value) ?? [];
  if (name === undefined || text === undefined) throw usage(field, value, 'NAME=VALUE');
  return { name, value: text };
}

/** `17` or `job_17` as the global id `job_17`. */
export function parseId(type: string, value: string): string {
  if (/^\d+$/.test(value)) return `${type}_${value}`;
  if (new RegExp(`^${type}_\\d+$`).test(value)) return value;
  throw usage(type, value, `an id such as ${type}_17, or 17`);
}

/** One of a few words, in any case. */
export function parseWord<T extends string>(field: string, value: string, words: readonly T[]): T {
  const found = words.find((word) => word === value.toUpperCase());
  if (!found) throw usage(field, value, words.join(', '));
  return found;
}
