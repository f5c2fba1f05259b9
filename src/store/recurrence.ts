/**
 * Times that come again by a rule of RFC 5545 in a named time zone. Rules: resources.md, "Standing".
 *
 * A rule is about what clocks on the wall show, so it is worked out in local time, and each of its times is then found in the zone: one
 * that a change of clocks leaves out is an hour later (the offset before the gap), one that it repeats is the first. The library would
 * leave the former out, and a maintenance that vanishes once a year is worse than one an hour later.
 */
import { RRuleTemporal } from 'rrule-temporal';
import { Temporal } from 'temporal-polyfill';
import { MAX } from '../platform/limits.js';

/** When something is held again and again. */
export interface Recurrence {
  /** An RRULE of RFC 5545, without the name of the property. */
  rrule: string;
  /** IANA name. */
  timeZone: string;
  /** The first time it may be: DTSTART. Epoch seconds. */
  from: number;
  /** Of each time, seconds. */
  lengthS: number;
  /** Times of the rule that are left out, and further ones: epoch seconds. */
  except: readonly number[];
  also: readonly number[];
}

/** Times are made so far ahead, seconds. */
export const MADE_AHEAD_S = 400 * 86_400;
/** Times made at once. */
export const TIMES_AHEAD_MAX = 1_000;
/** What the library may try before it gives up: some tenths of a second. */
const TRIED_MAX = 20_000;

/** What is wrong with times or a rule, and what is accepted. `field`: as in the API. */
export class TimesFault extends Error {
  constructor(
    readonly field: string,
    readonly value: unknown,
    readonly accepted: string,
  ) {
    super(`${field}: ${value} is not accepted; accepted: ${accepted}`);
  }
}

const WEEKDAY = /^([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)$/;
const UNTIL = /^\d{8}T\d{6}Z$/;

/** Of a part of a rule, whether a value is one: the library takes no notice of some that are not. */
const within =
  (least: number, most: number, negative = false) =>
  (value: string): boolean => {
    if (!(negative ? /^[+-]?\d{1,9}$/ : /^\d{1,9}$/).test(value)) return false;
    const size = Math.abs(Number(value));
    return size >= least && size <= most;
  };
const FREQUENCIES = ['HOURLY', 'DAILY', 'WEEKLY', 'MONTHLY', 'YEARLY'];
const PARTS: Readonly<Record<string, { is(value: string): boolean; accepted: string; list?: true }>> = {
  FREQ: { is: (value) => FREQUENCIES.includes(value), accepted: `FREQ=${FREQUENCIES.join(', ')}` },
  INTERVAL: { is: within(1, 10_000), accepted: 'INTERVAL from 1 to 10000' },
  COUNT: { is: within(1, 100_000), accepted: 'COUNT from 1 to 100000' },
  UNTIL: {
    is: (value) => UNTIL.test(value) && !Number.isNaN(utcOf(value)),
    accepted: 'UNTIL in UTC, as 20271231T235959Z',
  },
  WKST: { is: (value) => /^(MO|TU|WE|TH|FR|SA|SU)$/.test(value), accepted: 'WKST as MO' },
  BYDAY: { is: (value) => WEEKDAY.test(value), accepted: 'BYDAY as TU or 2TU or -1FR', list: true },
  BYHOUR: { is: within(0, 23), accepted: 'BYHOUR from 0 to 23', list: true },
  BYMINUTE: { is: within(0, 59), accepted: 'BYMINUTE from 0 to 59', list: true },
  BYSECOND: { is: within(0, 59), accepted: 'BYSECOND from 0 to 59', list: true },
  BYMONTH: { is: within(1, 12), accepted: 'BYMONTH from 1 to 12', list: true },
  BYMONTHDAY: { is: within(1, 31, true), accepted: 'BYMONTHDAY from 1 to 31 or -31 to -1', list: true },
  BYYEARDAY: { is: within(1, 366, true), accepted: 'BYYEARDAY from 1 to 366 or -366 to -1', list: true },
  BYWEEKNO: { is: within(1, 53, true), accepted: 'BYWEEKNO from 1 to 53 or -53 to -1', list: true },
  BYSETPOS: { is: within(1, 366, true), accepted: 'BYSETPOS from 1 to 366 or -366 to -1', list: true },
};

/** Milliseconds; NaN: no such time. */
function utcOf(until: string): number {
  return Date.parse(until.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
}

/**
 * The times of the rule that end behind `after`, in order, those that begin before `until` (epoch seconds), and TIMES_AHEAD_MAX at the most.
 *
 * @throws TimesFault
 */
export function timesOf(
  recurrence: Recurrence,
  after: number,
  until: number,
): { from: number; to: number }[] {
  const { rrule, timeZone, from, lengthS, except, also } = recurrence;
  const { rule, last } = checked(rrule);
  const ended = Math.min(until, last);
  // What a gap makes later may have ended before it by its rule.
  const walls = wallTimes(rule, rrule, wallOf(from, timeZone), [
    wallOf(Math.max(from, after - lengthS), timeZone).subtract({ hours: 2 }),
    wallOf(Math.max(from, ended), timeZone),
  ]);
  const begins = new Set(walls.map((wall) => wall.toZonedDateTime(timeZone).epochMilliseconds / 1000));
  for (const at of also) begins.add(at);
  for (const at of except) begins.delete(at);
  const times = [...begins]
    .filter((at) => at >= from && at + lengthS > after && at <= until && (at <= last || also.includes(at)))
    .sort((a, b) => a - b)
    .map((at) => ({ from: at, to: at + lengthS }));
  const overlapping = times.find(({ from: at }, i) => i > 0 && at < (times[i - 1]?.to ?? 0));
  if (overlapping !== undefined)
    throw new TimesFault(
      'rrule',
      rrule,
      `a rule whose occurrences do not overlap: at ${new Date(overlapping.from * 1000).toISOString()} the previous one, of ${lengthS} s, has not ended`,
    );
  return times.slice(0, TIMES_AHEAD_MAX);
}

function wallOf(at: number, timeZone: string): Temporal.PlainDateTime {
  try {
    return Temporal.Instant.fromEpochMilliseconds(Math.round(at * 1000))
      .toZonedDateTimeISO(timeZone)
      .toPlainDateTime();
  } catch {
    throw new TimesFault('timeZone', timeZone, 'an IANA time zone, such as Europe/Stockholm or UTC');
  }
}

function wallTimes(
  rule: string,
  given: string,
  first: Temporal.PlainDateTime,
  [from, until]: readonly [Temporal.PlainDateTime, Temporal.PlainDateTime],
): Temporal.PlainDateTime[] {
  const utc = (wall: Temporal.PlainDateTime) => wall.toZonedDateTime('UTC');
  const date = (wall: Temporal.PlainDateTime) => new Date(utc(wall).epochMilliseconds);
  try {
    const times = new RRuleTemporal({
      ...{ rruleString: rule, dtstart: utc(first), strict: true },
      ...{ maxIterations: TRIED_MAX, maxCandidateEvaluations: TRIED_MAX },
    });
    return times.between(date(from), date(until), true).map((at) => at.toPlainDateTime());
  } catch (error) {
    throw new TimesFault('rrule', given, `a valid rule (${(error as Error).message.slice(0, 200)})`);
  }
}

/** The rule without its end, and that (epoch seconds). */
function checked(given: string): { rule: string; last: number } {
  const fault = (accepted: string): never => {
    throw new TimesFault('rrule', given, accepted);
  };
  if (given.length === 0 || given.length > MAX.rruleChars) fault(`from 1 to ${MAX.rruleChars} characters`);
  const parts = new Map<string, string>();
  for (const text of given
    .toUpperCase()
    .replace(/^RRULE:/, '')
    .split(';')) {
    const [name = '', value = ''] = text.split('=');
    const part = Object.hasOwn(PARTS, name) ? PARTS[name] : undefined;
    if (part === undefined || parts.has(name))
      return fault(`each once of ${Object.keys(PARTS).join(', ')}, as in FREQ=WEEKLY;BYDAY=TU`);
    if (!(part.list ? value.split(',') : [value]).every(part.is)) fault(part.accepted);
    parts.set(name, value);
  }
  if (!parts.has('FREQ')) fault('with FREQ, as in FREQ=WEEKLY;BYDAY=TU');
  if (parts.has('UNTIL') && parts.has('COUNT')) fault('either COUNT or UNTIL');
  const until = parts.get('UNTIL');
  parts.delete('UNTIL');
  return {
    rule: [...parts].map(([name, value]) => `${name}=${value}`).join(';'),
    last: until === undefined ? Infinity : utcOf(until) / 1000,
  };
}
