/** Times that come again: RFC 5545 in a named time zone. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { MADE_AHEAD_S, TIMES_AHEAD_MAX, TimesFault, timesOf } from '../../src/store/recurrence.js';

const HOUR = 3600;
const at = (text: string): number => Date.parse(text) / 1000;
const of = (rrule: string, from: string, timeZone = 'Europe/Stockholm', lengthS = HOUR) => ({
  ...{ rrule, timeZone, from: at(from), lengthS, except: [] as number[], also: [] as number[] },
});
const begins = (
  recurrence: Parameters<typeof timesOf>[0],
  from = recurrence.from,
  until = from + MADE_AHEAD_S,
): string[] =>
  timesOf(recurrence, from, until).map((time) => new Date(time.from * 1000).toISOString().slice(0, 16));

describe('times of a rule', () => {
  it('keep to the local time through changes of clocks', () => {
    expect(begins(of('FREQ=MONTHLY;BYDAY=2TU', '2026-11-01T08:00Z')).slice(0, 6)).toEqual([
      ...['2026-11-10T08:00', '2026-12-08T08:00', '2027-01-12T08:00'],
      ...['2027-02-09T08:00', '2027-03-09T08:00', '2027-04-13T07:00'],
    ]);
    // A local time that does not exist is read with the offset before the gap; one that comes twice is the first.
    const daily = of('FREQ=DAILY', '2026-10-01T00:30Z');
    expect(begins(daily, at('2027-03-27T12:00Z')).slice(0, 2)).toEqual([
      '2027-03-28T01:30',
      '2027-03-29T00:30',
    ]);
    expect(begins(daily, at('2026-10-24T12:00Z')).slice(0, 2)).toEqual([
      '2026-10-25T00:30',
      '2026-10-26T01:30',
    ]);
  });

  it('leave out days that do not exist, and begin with the first only if it is one of the rule', () => {
    const last = begins(of('FREQ=MONTHLY;BYMONTHDAY=31', '2026-11-01T08:00Z'));
    expect(last.slice(0, 3)).toEqual(['2026-12-31T08:00', '2027-01-31T08:00', '2027-03-31T07:00']);
    expect(begins(of('FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30', '2026-11-01T08:00Z'))).toEqual([]);
    expect(begins(of('FREQ=WEEKLY;BYDAY=SU', '2026-11-01T08:00Z'))[0]).toBe('2026-11-01T08:00');
  });

  it('end by COUNT and UNTIL, without what is left out and with what is added', () => {
    expect(begins(of('RRULE:FREQ=DAILY;COUNT=2', '2026-11-01T08:00Z'))).toHaveLength(2);
    const until = of('FREQ=DAILY;UNTIL=20261103T080000Z', '2026-11-01T08:00Z');
    expect(begins(until)).toHaveLength(3);
    expect(begins({ ...until, except: [at('2026-11-02T08:00Z')], also: [at('2026-12-24T12:00Z')] })).toEqual([
      '2026-11-01T08:00',
      '2026-11-03T08:00',
      '2026-12-24T12:00',
    ]);
    // Counted from the first, however late one asks.
    expect(begins(of('FREQ=DAILY;COUNT=10', '2026-11-01T08:00Z'), at('2026-11-09T00:00Z'))).toHaveLength(2);
  });

  it('include one that has begun, and are not more than can be kept', () => {
    const long = of('FREQ=DAILY', '2026-11-01T08:00Z', 'UTC', 4 * HOUR);
    expect(begins(long, at('2026-11-05T11:00Z'))[0]).toBe('2026-11-05T08:00');
    expect(begins(long, at('2026-11-05T12:00Z'))[0]).toBe('2026-11-06T08:00');
    expect(begins(of('FREQ=HOURLY', '2026-11-01T08:00Z', 'UTC'))).toHaveLength(TIMES_AHEAD_MAX);
  });

  it.each([
    ['rrule', 'FREQ=MINUTELY'],
    ['rrule', 'FREQ=SECONDLY'],
    ['rrule', 'BYDAY=TU'],
    ['rrule', 'FREQ=DAILY;BYHOUR=25'],
    ['rrule', 'FREQ=DAILY;BYMONTH=0'],
    ['rrule', 'FREQ=DAILY;BYDAY=XX'],
    ['rrule', 'FREQ=DAILY;INTERVAL=0'],
    ['rrule', 'FREQ=DAILY;INTERVAL=2;INTERVAL=3'],
    ['rrule', 'FREQ=DAILY;UNTIL=20270101'],
    ['rrule', 'FREQ=DAILY;UNTIL=20271301T000000Z'],
    ['rrule', 'FREQ=DAILY;COUNT=2;UNTIL=20270101T000000Z'],
    ['rrule', 'FREQ=DAILY;RSCALE=HEBREW'],
    ['rrule', 'FREQ=DAILY;__proto__=1'],
    ['rrule', 'FREQ=DAILY;BYHOUR=1,2;BYMINUTE=0,30'],
    ['rrule', 'FREQ=DAILY\nDTSTART:20200101T000000Z'],
    ['rrule', 'x'.repeat(501)],
    ['rrule', ''],
    ['timeZone', 'Mars/Base'],
    ['timeZone', ''],
  ])('refuse a bad %s: %s', (field, text) => {
    const rule =
      field === 'rrule' ? of(text, '2026-11-01T08:00Z') : of('FREQ=DAILY', '2026-11-01T08:00Z', text);
    expect(() => timesOf(rule, rule.from, rule.from + MADE_AHEAD_S)).toThrow(TimesFault);
  });

  it('are the same whenever they are worked out', () => {
    const rules = ['FREQ=DAILY;INTERVAL=3', 'FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,TH', 'FREQ=MONTHLY;BYDAY=-1FR'];
    const zones = ['UTC', 'Europe/Stockholm', 'America/St_Johns', 'Australia/Lord_Howe', 'Africa/Casablanca'];
    fc.assert(
      fc.property(
        fc.constantFrom(...rules),
        fc.constantFrom(...zones),
        fc.integer({ min: at('2024-01-01T00:00Z'), max: at('2028-01-01T00:00Z') }),
        fc.integer({ min: 0, max: 900 * 86_400 }),
        (rrule, timeZone, from, later) => {
          const rule = { rrule, timeZone, from, lengthS: HOUR, except: [], also: [] };
          const all = timesOf(rule, from, from + later + MADE_AHEAD_S);
          const rest = timesOf(rule, from + later, from + later + MADE_AHEAD_S);
          expect(rest).toEqual(all.filter(({ to }) => (to as number) > from + later));
        },
      ),
      { numRuns: 50 },
    );
  });
});
