/** Values as people write them: on the command line, in scripts and in the portal. Each parser throws an error naming field, value and what is accepted. */
import { meant } from './nearest.js';

/** A value that says nothing acceptable. */
export class NotAccepted extends Error {
  override readonly name = 'NotAccepted';
  constructor(
    readonly field: string,
    readonly value: string,
    /** In words. */
    readonly accepted: string,
  ) {
    super(`${field}: "${value}" is not accepted; accepted: ${accepted}`);
  }
}

const refused = (field: string, value: string, accepted: string): NotAccepted =>
  new NotAccepted(field, value, accepted);

export type Exclusive = 'MACHINE' | 'USER';

/** Of `--exclusive`: nothing, or `user`. */
export function parseExclusive(field: string, value: string): Exclusive {
  if (value === '') return 'MACHINE';
  if (value === 'user') return 'USER';
  throw refused(
    field,
    value,
    'no value (machines without any other job), or user (without jobs of other users)',
  );
}

/** Of a job that has its machines to itself, or to its user. */
export const exclusiveText = (exclusive: Exclusive): string =>
  exclusive === 'USER' ? 'without jobs of other users' : 'for itself: no other job beside it';

/** As `SameSwitchInput` of the schema; without a wait it is required. */
export interface SameSwitch {
  maxWaitS?: number;
}

/** Of `--same-switch`: `require`, or how long to wait for such machines. */
export const parseSameSwitch = (field: string, value: string): SameSwitch =>
  value === 'require' ? {} : { maxWaitS: parseDelay(field, value) };

/** As Slurm writes it: `1`, `1@10:00`; a number alone counts minutes. */
export function parseSwitches(field: string, value: string): SameSwitch {
  const [, count, wait] = /^(\d+)(?:@(.+))?$/.exec(value.trim()) ?? [];
  if (count !== '1')
    throw refused(field, value, '1 (one switch), or 1@ and how long to wait for it, such as 1@10');
  return wait === undefined ? {} : { maxWaitS: wait === '0' ? 0 : parseDuration(field, wait, 'm') };
}

/** As Slurm writes it: `1`, `1@10:00`. */
export function switchesWritten({ maxWaitS = null }: { maxWaitS?: number | null }): string {
  if (maxWaitS === null) return '1';
  const seconds = Math.ceil(maxWaitS);
  return `1@${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

/** `on one switch`, `on one switch, if there is within 600 s`. */
export const sameSwitchText = ({ maxWaitS = null }: { maxWaitS?: number | null }): string =>
  maxWaitS === null ? 'on one switch' : `on one switch, if there are within ${maxWaitS} s`;

/** Labels: `rack,gen`. */
export const parseLabelNames = (value: string): string[] => value.split(',').map((label) => label.trim());

/** Indices of one array of jobs at most: jobs in a submission. */
export const ARRAY_MAX = 10_000;

/** What an option says, where it was given. */
export const given = <T>(value: string | undefined, parse: (value: string) => T): T | undefined =>
  value === undefined ? undefined : parse(value);

// By hand: libraries of durations (ms, parse-duration) know no `1-12:00`, take the unknown for 0 or undefined, and cannot count a number alone in minutes.
const UNIT_S: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };
/** `MM:SS`, `HH:MM:SS`, `D-HH`, `D-HH:MM`, `D-HH:MM:SS`, as Slurm writes them. */
const CLOCK = /^(?:(\d+)-(\d+)(?::(\d+))?(?::(\d+))?|(?:(\d+):)?(\d+):(\d+))$/;
const WITH_UNITS =
  /^(?:\d+(?:\.\d+)?(?:s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?|w(?:eeks?)?))+$/i;

/**
 * `90`, `90s`, `15m`, `2h`, `1h30m`, `10 min`, `00:05:00`, `1-12:00` as seconds, above 0.
 *
 * @param bare what a number alone counts: Slurm's time limits are minutes
 */
export function parseDuration(field: string, value: string, bare: 's' | 'm' = 's'): number {
  const total = secondsOf(value, bare);
  if (total === null || !(total > 0) || !Number.isFinite(total)) {
    const unit = bare === 's' ? 'seconds' : 'minutes';
    throw refused(
      field,
      value,
      `${unit} or a duration such as 90, 15m, 2h, 1h30m, 00:05:00 or 1-12:00, above 0`,
    );
  }
  return total;
}

/** A duration, or `0`. */
export const parseDelay = (field: string, value: string): number =>
  value.trim() === '0' ? 0 : parseDuration(field, value);

function secondsOf(value: string, bare: 's' | 'm'): number | null {
  const text = value.trim();
  if (text === '') return null;
  if (!Number.isNaN(Number(text))) return Number(text) * UNIT_S[bare]!;
  const clock = CLOCK.exec(text);
  if (clock) {
    const [, days, dayHours, dayMinutes, daySeconds, hours, minutes, seconds] = clock.map((part) =>
      Number(part ?? 0),
    );
    return (
      days! * UNIT_S.d! +
      (dayHours! + hours!) * UNIT_S.h! +
      (dayMinutes! + minutes!) * UNIT_S.m! +
      daySeconds! +
      seconds!
    );
  }
  const close = text.replaceAll(/\s+/g, '');
  if (!WITH_UNITS.test(close)) return null;
  return [...close.matchAll(/([\d.]+)([a-z])[a-z]*/gi)].reduce(
    (sum, [, number, unit]) => sum + Number(number) * UNIT_S[unit!.toLowerCase()]!,
    0,
  );
}

const MEGABYTES: Readonly<Record<string, number>> = { '': 1, k: 1e-3, m: 1, g: 1e3, t: 1e6 };

/** `512`, `2G`, `1.5 GB`, `4GiB` as MB of 10^6 bytes, rounded up. */
export function parseMemory(field: string, value: string): number {
  const [, number, unit = '', binary] = /^(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?$/i.exec(value.trim()) ?? [];
  if (number === undefined || (binary && unit === ''))
    throw refused(field, value, 'megabytes, or an amount such as 512M, 2G, 1.5 GB or 4GiB');
  const power = ' kmgt'.indexOf(unit.toLowerCase() || ' ');
  const mb = binary
    ? (Number(number) * 1024 ** power) / 1e6
    : Number(number) * MEGABYTES[unit.toLowerCase()]!;
  // What binary fractions leave over is no megabyte more.
  return Math.ceil(Number(mb.toFixed(6)));
}

/** `KIND=AMOUNT`: an amount of a kind of resource. */
export function parseAmount(field: string, value: string): { kind: string; amount: number } {
  const [kind, amount, ...more] = value.split('=');
  if (!kind || amount === undefined || more.length > 0)
    throw refused(field, value, 'a kind and its amount, such as gpu=2');
  return { kind, amount: parseNumber(field, amount, { min: 1, integer: true }) };
}

/** A device of a machine; what is left out is the service's to fill in. */
export interface Device {
  id: string;
  kind?: string;
  model?: string;
  memoryMb?: number;
  shares?: number;
  link?: string;
  oneUser?: boolean;
}

/** `gpu`, `gpu:2`, `gpu:a100`, or `gpu:a100:2`: kind, model and amount. */
export function parseDevices(
  field: string,
  value: string,
): { kind: string; model: string | null; amount: number } {
  const [, kind, model = null, amount = '1'] =
    /^([A-Za-z][\w.-]*)(?::([A-Za-z][^",:=]*))?(?:[:=](\d+))?$/.exec(value) ?? [];
  if (kind === undefined)
    throw refused(field, value, 'kinds with amounts, such as gpu:2 or gpu:a100:2; for --gpus 2 or a100:2');
  return { kind, model, amount: parseNumber(field, amount, { min: 1, integer: true }) };
}

/** Whether devices are asked for by what they are: by memory, or as shares, which amounts of a kind cannot say. */
export const saysMore = (value: string): boolean => /:(mem|share)=/.test(value);

/** Devices of each task by what they are; what is left out is the service's to fill in. */
export interface DevicesAsked {
  kind: string;
  model?: string;
  count?: number;
  minMemoryMb?: number;
  share?: { parts: number; of: number };
}

/** `gpu:a100:2:mem=40G:share=1/4`, where all but the kind may be left out. */
export function parseRequest(field: string, value: string): DevicesAsked {
  const [kind = '', ...facts] = value.trim().split(':');
  const accepted = 'a kind, then a model, a number, mem= and share=, such as gpu:a100:2:mem=40G:share=1/4';
  if (!/^[A-Za-z]/.test(kind)) throw refused(field, value, accepted);
  const asked: DevicesAsked = { kind };
  for (const fact of facts) {
    const [, name, text = ''] = /^(mem|share)=(.+)$/.exec(fact) ?? [];
    const [, parts, of] = /^(\d+)\/(\d+)$/.exec(text) ?? [];
    if (name === 'mem') asked.minMemoryMb = parseMemory(field, text);
    else if (name === 'share' && parts !== undefined) asked.share = { parts: Number(parts), of: Number(of) };
    else if (/^\d+$/.test(fact)) asked.count = parseNumber(field, fact, { min: 1, integer: true });
    else if (fact !== '' && !fact.includes('=') && asked.model === undefined) asked.model = fact;
    else throw refused(field, value, accepted);
  }
  return asked;
}

/** `gpu:a100:2, gpu:share=1/4`, one or several; none for an empty text. */
export const parseRequests = (field: string, value: string): DevicesAsked[] =>
  value.split(',').map((written) => parseRequest(field, written));

/** The same as it is written. */
export function requestWritten({
  kind,
  model = null,
  count = 1,
  minMemoryMb = null,
  share = null,
}: {
  readonly kind: string;
  readonly count?: number;
  readonly model?: string | null;
  readonly minMemoryMb?: number | null;
  readonly share?: { readonly parts: number; readonly of: number } | null;
}): string {
  return [
    ...(model === null ? [kind] : [kind, model]),
    count,
    ...(minMemoryMb === null ? [] : [`mem=${minMemoryMb}`]),
    ...(share === null ? [] : [`share=${share.parts}/${share.of}`]),
  ].join(':');
}

/** Several of them. */
export const requestsWritten = (requests: readonly Parameters<typeof requestWritten>[0][]): string =>
  requests.map(requestWritten).join(', ');

/** What the devices of a kind have to be. */
export interface DeviceTerms {
  kind: string;
  model?: string | null;
  /** Of each device, or of its share, at least. */
  memoryMb?: number | null;
}

/** A constraint that asks for the models and the memory of devices, too: both are labels of the machine, by their kind. */
export function withDevices(
  constraint: string | undefined,
  devices: readonly DeviceTerms[],
): string | undefined {
  const asked = devices.flatMap(({ kind, model = null, memoryMb = null }) => [
    ...(model === null ? [] : [`${kind} = "${model}"`]),
    ...(memoryMb === null ? [] : [`${kind}.memory-mb >= ${memoryMb}`]),
  ]);
  if (asked.length === 0) return constraint;
  return [...(constraint === undefined ? [] : [`(${constraint})`]), ...asked].join(' and ');
}

/** `gpu0,kind=gpu,model=a100,memory-mb=80000,shares=1,link=left,one-user=yes`: all but the id may be left out. */
export function parseDevice(field: string, value: string): Device {
  const [id = '', ...facts] = value.split(',');
  const device: Device = { id };
  for (const fact of facts) {
    const [, name = '', text = ''] = /^([^=]*)=(.+)$/.exec(fact) ?? [];
    const whole = (min: number) => parseNumber(field, text, { min, integer: true });
    if (name === 'kind') device.kind = text;
    else if (name === 'model') device.model = text;
    else if (name === 'memory-mb') device.memoryMb = whole(0);
    else if (name === 'shares') device.shares = whole(1);
    else if (name === 'link') device.link = text;
    else if (name === 'one-user' && /^(yes|no)$/.test(text)) device.oneUser = text === 'yes';
    else
      throw refused(
        field,
        fact,
        'kind=, model=, memory-mb=, shares=, link= or one-user=yes with a value, after the ID of the device',
      );
  }
  return device;
}

/** `NAME=TEXT`, or a name alone. */
export function parseLabel(field: string, value: string): { name: string; value: string } {
  const [, name, text = ''] = /^([^=]+)(?:=(.*))?$/s.exec(value) ?? [];
  if (name === undefined) throw refused(field, value, 'a name, or a name and a text such as gen=3');
  return { name, value: text };
}

const ISO = /^(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(Z|[+-]\d\d:?\d\d)?)?$/;

/**
 * An ISO 8601 time, `20:00`, `noon`, `midnight` or `tomorrow`, or `+DURATION` (`now+DURATION`) from now, as ISO 8601 in UTC. A time without a
 * zone, or a day alone, is taken as local, which is said; a time of day that has passed is tomorrow's.
 *
 * @param nowMs milliseconds since 1970
 */
export function parseTime(field: string, value: string, nowMs: number, say: (text: string) => void): string {
  const later = /^(?:now)?\s*\+\s*(.+)$/i.exec(value);
  if (later) return new Date(nowMs + parseDuration(field, later[1]!) * 1000).toISOString();
  const local = ofDay(value.trim().toLowerCase(), nowMs);
  if (local !== null) {
    say(`${field}: ${value} is taken as local time, which is ${local.toISOString()}`);
    return local.toISOString();
  }
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
    throw refused(
      field,
      value,
      'a time such as 2026-03-01T12:00:00Z, or 2026-03-01 12:00 or 20:00 for local time, or +DURATION such as +2h',
    );
  }
  if (!zone) say(`${field}: ${value} is taken as local time, which is ${date.toISOString()}`);
  return date.toISOString();
}

const TIMES_OF_DAY: Readonly<Record<string, string>> = { midnight: '00:00', noon: '12:00', teatime: '16:00' };

/** The next local `20:00`, `noon` and so on; null: it is none. */
function ofDay(value: string, nowMs: number): Date | null {
  const now = new Date(nowMs);
  if (value === 'now' || value === 'today') return now;
  if (value === 'tomorrow') return new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1);
  const [, hour, minute, second = '0'] =
    /^(\d{1,2}):(\d\d)(?::(\d\d))?$/.exec(TIMES_OF_DAY[value] ?? value) ?? [];
  if (hour === undefined || Number(hour) > 23 || Number(minute) > 59 || Number(second) > 59) return null;
  const at = (day: number) =>
    new Date(
      now.getFullYear(),
      now.getMonth(),
      now.getDate() + day,
      Number(hour),
      Number(minute),
      Number(second),
    );
  return at(0).getTime() > nowMs ? at(0) : at(1);
}

/** A time as {@link parseTime}, or `7d`: that long ago. */
export function parseSince(field: string, value: string, nowMs: number, say: (text: string) => void): string {
  const ago = WITH_UNITS.test(value) ? secondsOf(value, 's') : null;
  return ago === null ? parseTime(field, value, nowMs, say) : new Date(nowMs - ago * 1000).toISOString();
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
    throw refused(field, value, `${integer ? 'a whole number' : 'a number'}${bounds && ` ${bounds}`}`);
  }
  return number;
}

/** `4` is exactly so many, `2-4` from and to, `2-` at least; to the most on one machine, null: as many as fit. */
export function parseTasksPerMachine(field: string, value: string): { min: number; max: number | null } {
  const [, least, upTo, most] = /^([1-9]\d{0,5})(-)?([1-9]\d{0,5})?$/.exec(value.trim()) ?? [];
  const min = Number(least);
  const max = most === undefined ? (upTo === undefined ? min : null) : Number(most);
  if (least === undefined || (upTo === undefined && most !== undefined) || (max !== null && max < min))
    throw refused(field, value, 'tasks per machine: exactly (4), from 2 to 4 (2-4), at least 2 (2-)');
  return { min, max };
}

/** `80x24`: columns and rows of a terminal. */
export function parseTerminal(field: string, value: string): { rows: number; columns: number } {
  const [, columns, rows] = /^(\d{1,4})x(\d{1,4})$/.exec(value.trim()) ?? [];
  if (columns === undefined) throw refused(field, value, 'columns and rows of a terminal, such as 80x24');
  return { rows: Number(rows), columns: Number(columns) };
}

/** As it is written: `4`, `2-4`, `2-`. */
export const tasksPerMachineWritten = ({ min, max = null }: { min: number; max?: number | null }): string =>
  max === min ? String(min) : `${min}-${max ?? ''}`;

/** `exactly 4`, `2 to 4`, `at least 2`, `at most 4`. */
export function tasksPerMachineText({ min, max = null }: { min: number; max?: number | null }): string {
  if (max === null) return `at least ${min}`;
  if (min === max) return `exactly ${min}`;
  return min === 1 ? `at most ${max}` : `${min} to ${max}`;
}

/** Indices of an array of jobs, and how many of them may run at the same time. */
export interface Indices {
  /** In order, each once. */
  indices: number[];
  /** null: all. */
  atOnce: number | null;
}

/** `1-10`, `0-99:5` or `1,3,5-9:2%4`: after `%`, how many run at the same time. */
export function parseArray(field: string, value: string): Indices {
  const accepted = `indices and ranges with at most ${ARRAY_MAX} indices, such as 1-10, 0-99:5 or 1,3,5-9:2%4`;
  const [, list = '', atOnce] = /^([^%]+)(?:%([1-9]\d{0,8}))?$/.exec(value.replaceAll(/[\s[\]]/g, '')) ?? [];
  const indices = new Set<number>();
  for (const part of list.split(',')) {
    const match = /^(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?$/.exec(part);
    if (!match) throw refused(field, value, accepted);
    const from = Number(match[1]);
    const [to, step] = [Number(match[2] ?? from), Number(match[3] ?? 1)];
    if (to < from || step < 1 || indices.size + (to - from) / step >= ARRAY_MAX)
      throw refused(field, value, accepted);
    for (let index = from; index <= to; index += step) indices.add(index);
  }
  return {
    indices: [...indices].sort((a, b) => a - b),
    atOnce: atOnce === undefined ? null : Number(atOnce),
  };
}

/** `NAME=VALUE`. */
export function parseVariable(field: string, value: string): { name: string; value: string } {
  const [, name, text] = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/s.exec(value) ?? [];
  if (name === undefined || text === undefined) throw refused(field, value, 'NAME=VALUE');
  return { name, value: text };
}

/** `17` or `job_17` as the global id `job_17`. */
export function parseId(type: string, value: string): string {
  if (/^\d+$/.test(value)) return `${type}_${value}`;
  if (new RegExp(`^${type}_\\d+$`).test(value)) return value;
  throw refused(type, value, `an id such as ${type}_17, or 17`);
}

/** One of a few words, in any case. */
export function parseWord<T extends string>(field: string, value: string, words: readonly T[]): T {
  const found = words.find((word) => word === value.toUpperCase());
  if (!found) throw refused(field, value, `${words.join(', ')}${meant(value, words)}`);
  return found;
}

/** `matlab:2,cad`, as Slurm's `--licenses`: each kind as often as copies of it are asked for. */
export function parseLicenses(field: string, value: string): string[] {
  const names = value.split(/[\s,]+/).filter(Boolean);
  return names.flatMap((name) => {
    const [, kind, written] = /^(.*?)(?:[:=](\d+))?$/.exec(name) ?? [];
    const copies = Number(written ?? 1);
    if (!kind || copies < 1 || copies > COPIES_AT_MOST)
      throw refused(
        field,
        value,
        `kinds of license, such as matlab,cad:2, of each up to ${COPIES_AT_MOST} copies`,
      );
    return new Array<string>(copies).fill(kind);
  });
}

/** As many as a service takes. */
const COPIES_AT_MOST = 256;

/** As they are written: `matlab:2,cad`; with `amounts`, what else is asked of pools. */
export function licensesWritten(
  licenses: readonly string[],
  amounts: readonly { kind: string; amount: number }[] = [],
): string {
  const copies = new Map<string, number>();
  for (const kind of licenses) copies.set(kind, (copies.get(kind) ?? 0) + 1);
  for (const { kind, amount } of amounts) copies.set(kind, (copies.get(kind) ?? 0) + amount);
  return [...copies].map(([kind, count]) => (count === 1 ? kind : `${kind}:${count}`)).join(',');
}

/** A kind of resource, with where it is counted: one that is counted in pools may have the name of another. */
export const resourceWritten = ({
  kind,
  countedOn,
}: {
  kind: string;
  countedOn: 'MACHINE' | 'SITE' | 'GRID';
}): string => (countedOn === 'MACHINE' ? kind : `${kind} (${countedOn.toLowerCase()})`);
