/** What is copied in is there as it was, whatever it is, and copied out again it is the same. */
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type CopyColumns, withValues } from '../../src/store/copy.js';
import { type Database, transaction } from '../../src/store/pool.js';
import { raw, sql } from '../../src/store/sql.js';
import { copy, copyOut, rows } from '../../src/store/statement.js';
import { withDatabase } from '../support/database.js';
import { cases } from '../support/seed.js';
import { openTestDatabase } from './world.js';

const test = withDatabase();
let database: Database;
beforeAll(async () => {
  database = openTestDatabase(test.url);
  await test.pool.query(`
    CREATE TABLE copied (place integer PRIMARY KEY, big bigint, small integer, number float8, yes boolean, words text NOT NULL DEFAULT '',
      state job_state, document jsonb, at timestamptz(3), list text[], numbers integer[])`);
});
afterAll(() => database.close());

interface Item {
  place: number;
  big: number | null;
  small: number | null;
  number: number | null;
  yes: boolean | null;
  words: string;
  state: string | null;
  document: unknown;
  /** Epoch seconds, whole milliseconds. */
  at: number | null;
  list: string[] | null;
  numbers: number[] | null;
}
const columns: CopyColumns<Item> = {
  place: ['integer', (item) => item.place],
  big: ['bigint', (item) => item.big],
  small: ['integer', (item) => item.small],
  number: ['float8', (item) => item.number],
  yes: ['boolean', (item) => item.yes],
  words: ['text', (item) => item.words],
  state: ['text', (item) => item.state],
  document: ['jsonb', (item) => item.document],
  at: ['timestamptz', (item) => item.at],
  list: ['text[]', (item) => item.list],
  numbers: ['integer[]', (item) => item.numbers],
};
const read = sql`SELECT place, big, small, number, yes, words, state, document, extract(epoch FROM at)::float8 AS at, list, numbers
  FROM copied ORDER BY place`;
/** The table, copied out; `own`: the columns from here on read as one. */
async function copiedOut(own?: number): Promise<unknown[]> {
  const names = Object.keys(columns);
  const types = Object.values(columns).map(([type]) => type);
  const found: unknown[] = [];
  await transaction(database, (tx) =>
    copyOut(
      tx,
      `SELECT ${names.join(', ')} FROM copied ORDER BY place`,
      types,
      (row) => {
        const values = own === undefined ? row : [...row.slice(0, own), ...(row[own] as unknown[])];
        found.push(Object.fromEntries(names.map((name, i) => [name, values[i]])));
      },
      own,
    ),
  );
  return found;
}

const maybe = <T>(values: fc.Arbitrary<T>) => fc.option(values, { freq: 4 });
const integer = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const words = fc.string({ unit: 'binary', maxLength: 40 });
const item: fc.Arbitrary<Omit<Item, 'place'>> = fc.record({
  big: maybe(fc.maxSafeInteger()),
  small: maybe(integer),
  number: maybe(fc.double({ noNaN: true })),
  yes: maybe(fc.boolean()),
  words,
  state: maybe(fc.constantFrom('QUEUED', 'CANCELLED')),
  document: maybe(fc.dictionary(fc.string({ maxLength: 5 }), fc.string({ maxLength: 5 }))),
  at: maybe(fc.integer({ min: -1e9 * 1000, max: 1e10 * 1000 }).map((ms) => ms / 1000)),
  list: maybe(fc.array(words, { maxLength: 4 })),
  numbers: maybe(fc.array(integer, { maxLength: 4 })),
});
/** What text cannot hold. */
const stored = (text: string): string => text.replaceAll('\0', '\uFFFD');

it('values of every type, and none', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(item, { maxLength: 20 }), async (values) => {
      const items = values.map((value, place): Item => ({ ...value, place }));
      await test.pool.query('TRUNCATE copied');
      await transaction(database, (tx) => copy(tx, 'copied', withValues(columns, items), items));
      const wanted = items.map((one) => ({
        ...one,
        words: stored(one.words),
        list: one.list?.map(stored) ?? null,
      }));
      expect(await rows(database.pool, read)).toEqual(wanted);
      expect(await copiedOut()).toEqual(wanted);
      expect(await copiedOut(1 + (items.length % 8))).toEqual(wanted);
    }),
    { numRuns: cases(100) },
  );
});

it('values longer than a part, and more of them than a part holds', async () => {
  const empty = { big: null, small: null, number: null, yes: null, state: null, document: null, at: null };
  const items = Array.from({ length: 300 }, (_, place): Item => {
    const long = 'ü€😀'.repeat(place % 100 === 0 ? 100_000 : 100);
    return { ...empty, place, words: long, list: [long, ''], numbers: [] };
  });
  await test.pool.query('TRUNCATE copied');
  await transaction(database, (tx) => copy(tx, 'copied', columns, items));
  expect(await rows(database.pool, read)).toEqual(items);
  expect(await copiedOut()).toEqual(items);
});

it('as many different values as are not kept, to the end or to a failure; the pool is good for the next', async () => {
  await test.pool.query(
    "INSERT INTO copied (place, words) SELECT i, 'word ' || i / 2 FROM generate_series(301, 40000) i",
  );
  for (const own of [undefined, 1]) expect(await copiedOut(own)).toEqual(await rows(database.pool, read));
  const one = openTestDatabase(test.url, 1);
  try {
    const fails = (at: number) =>
      transaction(one, (tx) =>
        copyOut(tx, 'SELECT place FROM copied ORDER BY place', ['integer'], ([place]) => {
          if (place === at) throw new Error('not this one');
        }),
      );
    await expect(fails(400)).rejects.toThrow('not this one');
    await expect(fails(40_000)).rejects.toThrow('not this one');
    await expect(
      transaction(one, (tx) => copyOut(tx, 'SELECT 1 / (2 - place) FROM copied', ['integer'], () => {})),
    ).rejects.toMatchObject({ code: '22012' });
    expect(await rows(one.pool, sql`SELECT count(*) AS n FROM ${raw('copied')}`)).toEqual([{ n: 40_000 }]);
  } finally {
    await one.close();
  }
});

it('nothing, where the database refuses a row or an item cannot be made; the connection is good for the next', async () => {
  await test.pool.query('TRUNCATE copied');
  const good = { place: ['integer', (i: number) => i] } as const;
  const one = openTestDatabase(test.url, 1);
  try {
    const twice = transaction(one, (tx) => copy(tx, 'copied', good, [1, 1]));
    await expect(twice).rejects.toMatchObject({ code: '23505' });
    const nobody = transaction(one, (tx) => copy(tx, 'copied', { nobody: good.place }, [1]));
    await expect(nobody).rejects.toThrow(/nobody/);
    const failing = {
      place: [
        'integer',
        (i: number) => {
          if (i > 20_000) throw new Error('no such item');
          return i;
        },
      ],
    } as const;
    const many = Array.from({ length: 40_000 }, (_, i) => i);
    await expect(transaction(one, (tx) => copy(tx, 'copied', failing, many))).rejects.toThrow('no such item');
    expect(await rows(one.pool, sql`SELECT count(*) AS n FROM ${raw('copied')}`)).toEqual([{ n: 0 }]);
    await transaction(one, (tx) => copy(tx, 'copied', good, [1, 2]));
    expect(await rows(one.pool, sql`SELECT place FROM copied ORDER BY place`)).toEqual([
      { place: 1 },
      { place: 2 },
    ]);
  } finally {
    await one.close();
  }
});
