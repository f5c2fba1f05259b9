/** Numbers, times and sizes as people read them. Each with its unit; durations are seconds, sizes megabytes (10^6 bytes). */

import type { JobState } from '../api/states.gql';
import { ENDED_STATES, PENDING_STATES, WAITING_STATES } from '../api/states.gql';

const NARROW_SPACE = '\u202f';
const integers = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

export const count = (value: number): string => integers.format(value).replaceAll(',', NARROW_SPACE);

/** `Query.jobCount` counts no further. */
export const COUNT_MAX = 100_000;
export const counted = (jobs: number): string => `${count(jobs)}${jobs >= COUNT_MAX ? '+' : ''}`;

/** Three significant digits, without an exponent. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return '–';
  const size = Math.abs(value);
  if (size === 0) return '0';
  if (size >= 100) return count(value);
  if (size < 0.001) return value.toExponential(1);
  return String(Number(value.toPrecision(3)));
}

export const percent = (share: number, digits = 0): string =>
  `${(share * 100).toFixed(digits)}${NARROW_SPACE}%`;

export function duration(seconds: number): string {
  const s = Math.abs(seconds);
  const sign = seconds < 0 ? '−' : '';
  const two = (value: number): string => String(value).padStart(2, '0');
  if (s < 0.05) return s === 0 ? '0 s' : '< 0.1 s';
  if (s < 60) return `${sign}${s < 10 ? Number(s.toFixed(1)) : Math.round(s)} s`;
  const whole = Math.round(s);
  if (whole < 3600) return `${sign}${Math.floor(whole / 60)} min${whole % 60 ? ` ${two(whole % 60)} s` : ''}`;
  const minutes = Math.round(s / 60);
  if (minutes < 1440)
    return `${sign}${Math.floor(minutes / 60)} h${minutes % 60 ? ` ${two(minutes % 60)} min` : ''}`;
  const hours = Math.round(s / 3600);
  return `${sign}${count(Math.floor(hours / 24))} d${hours % 24 ? ` ${hours % 24} h` : ''}`;
}

export function megabytes(mb: number): string {
  for (const [unit, size] of [
    ['PB', 1e9],
    ['TB', 1e6],
    ['GB', 1e3],
  ] as const) {
    if (mb >= size) return `${figure(mb / size)} ${unit}`;
  }
  return `${figure(mb)} MB`;
}

export function bytes(value: number): string {
  return value < 1000
    ? `${Math.round(value)} B`
    : value < 1e6
      ? `${figure(value / 1000)} kB`
      : megabytes(value / 1e6);
}

const sameDay = (a: Date, b: Date): boolean => a.toDateString() === b.toDateString();
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const shortClock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const dayOf = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const yearOf = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });

/** Local time, without what today makes clear. */
export function moment(at: string | number | Date, { seconds = true, now = new Date() } = {}): string {
  const date = new Date(at);
  const time = (seconds ? clock : shortClock).format(date);
  if (sameDay(date, now)) return time;
  const day = (date.getFullYear() === now.getFullYear() ? dayOf : yearOf).format(date);
  return `${day}, ${shortClock.format(date)}`;
}

/** The instant in full, local and UTC, for tooltips. */
export function instant(at: string | number | Date): string {
  const date = new Date(at);
  return `${yearOf.format(date)}, ${clock.format(date)} (${date.toISOString().replace('T', ' ').replace('.000Z', ' UTC').replace('Z', ' UTC')})`;
}

/** `job_17` as `17`. */
export const numberOf = (id: string): string => id.slice(id.indexOf('_') + 1);

export const plural = (n: number, one: string, many = `${one}s`): string =>
  `${count(n)} ${n === 1 ? one : many}`;

export const TERMINAL: ReadonlySet<JobState> = new Set(ENDED_STATES);
export const WAITING: ReadonlySet<JobState> = new Set(WAITING_STATES);
export const PENDING: ReadonlySet<JobState> = new Set(PENDING_STATES);

const natural = new Intl.Collator('en', { numeric: true }).compare;

/** Names as people count them: node-2 before node-10. */
export const byName = <T extends { name: string }>(items: readonly T[]): T[] =>
  [...items].sort((a, b) => natural(a.name, b.name));

/** A constant of the schema in plain words, as they are spelled here: `RUN_TIME_LIMIT` as `Run time limit`, `CANCELLED` as `Canceled`. */
export function words(constant: string): string {
  const text = constant
    .replaceAll('_', ' ')
    .replaceAll('-', ' ')
    .toLowerCase()
    .replace(/\bcancell(?=ed|ing)/g, 'cancel');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const CAUSES: Record<string, string> = {
  EXITED_ZERO: 'Exit code 0',
  EXITED_NONZERO: 'Nonzero exit code',
  SIGNALLED: 'Ended by a signal',
  RUN_TIME_LIMIT: 'Over its run time',
  MEMORY_LIMIT: 'Over its memory',
  OUTPUTS_FAILED: 'Its files could not be saved',
  STAGING_FAILED: 'Its input data could not be transferred to the site',
  INPUT_MISMATCH: 'An input does not match its dataset',
  CPU_LIMIT: 'Over its CPU time',
  DISK_LIMIT: 'Over its disk space',
  PROCESS_LIMIT: 'Too many processes',
  LAUNCH_FAILED: 'Could not be started',
  MACHINE_FAILED: 'Its machine could not start it',
  LOST: 'Machine or agent lost',
  REFUSED: 'Refused by the agent',
  CANCELLED_BY_USER: 'Canceled by its user',
  CANCELLED_BY_OPERATOR: 'Canceled by an operator',
  DEADLINE_PASSED: 'Deadline passed',
  IDLE_TIMEOUT: 'Its group was idle for too long',
  NEVER_FITS: 'No site could run it',
  WITHDRAWN: 'Its owner runs it elsewhere, or no longer wants it',
  OTHER_TASK_FAILED: 'Another task failed',
  DEPENDENCY_FAILED: 'A job that it depends on did not end as required',
  REQUEUED: 'Stopped to be started again',
  PREEMPTED: 'Stopped for a job of a higher class',
};

export const lower = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);

/** Why a job or run ended. */
export const causeOf = (cause: string): string => CAUSES[cause] ?? words(cause);

/** The name of a field in plain words, its unit apart: `loadPenaltyS` as `Load penalty` and `s`. */
export function named(field: string): { label: string; unit: string } {
  const match = /^(.+?)(Mb|Ms|S|Cpus|PerS)$/.exec(field);
  const unit = match
    ? ({ Mb: 'MB', Ms: 'ms', S: 's', PerS: '/s' } as Record<string, string>)[match[2]!]
    : undefined;
  const base = unit ? match![1]! : field;
  return { label: words(base.replace(/([a-z0-9])([A-Z])/g, '$1_$2')), unit: unit ?? '' };
}
