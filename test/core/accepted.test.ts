/** What is said of a value that a schema refuses: in words for people, never in zod's. */
import { expect, test } from 'vitest';
import { z } from 'zod';
import { checked, sayFault } from '../../src/core/index.js';

const shape = z.strictObject({
  text: z.string().min(2).max(5).optional(),
  whole: z.int().multipleOf(5).optional(),
  flag: z.boolean().optional(),
  at: z.iso.datetime().optional(),
  like: z.string().regex(/^a+$/).optional(),
  list: z
    .array(z.strictObject({ name: z.string() }))
    .max(1)
    .optional(),
  names: z.record(z.string().regex(/^\w+$/, 'a word'), z.number()).optional(),
  kind: z
    .discriminatedUnion('kind', [
      z.strictObject({ kind: z.literal('a'), left: z.number() }),
      z.strictObject({ kind: z.literal('b'), right: z.number().nullable() }),
    ])
    .optional(),
  either: z.union([z.string(), z.strictObject({ job: z.string(), delay: z.number().optional() })]).optional(),
  none: z.never().optional(),
  date: z.date().optional(),
});

test.each<[unknown, string]>([
  [[], 'the file: [] is not accepted; accepted: an object'],
  [{ text: 'x' }, 'text: "x" is not accepted; accepted: at least 2 characters'],
  [{ text: 5 }, 'text: 5 is not accepted; accepted: a text'],
  [{ whole: 1.5 }, 'whole: 1.5 is not accepted; accepted: a whole number'],
  [{ whole: 7 }, 'whole: 7 is not accepted; accepted: a multiple of 5'],
  [{ flag: 'yes' }, 'flag: "yes" is not accepted; accepted: true or false'],
  [
    { at: 'noon' },
    'at: "noon" is not accepted; accepted: a time with its zone, such as 2030-01-31T12:00:00Z',
  ],
  [{ like: 'b' }, 'like: "b" is not accepted; accepted: a text that matches /^a+$/'],
  [{ list: [{}] }, 'list[0].name: missing; accepted: a text'],
  [
    { list: [{ name: 'x' }, { name: 'y' }] },
    'list: [{"name":"x"},{"name":"y"}] is not accepted; accepted: at most 1 entry',
  ],
  [{ list: [{ name: 'x', more: 1 }] }, 'list[0].more: unknown field; accepted: name'],
  [{ names: { 'a b': 1 } }, 'names.a b: invalid name; accepted: a word'],
  [{ kind: { kind: 'c' } }, 'kind.kind: "c" is not accepted; accepted: a, b'],
  [{ kind: { kind: 'b', right: null, left: 1 } }, 'kind.left: unknown field; accepted: kind, right'],
  [{ kind: { kind: 'b', right: 'x' } }, 'kind.right: "x" is not accepted; accepted: a number'],
  [{ either: 5 }, 'either: 5 is not accepted; accepted: a text or an object'],
  [{ either: { job: 'a', dealy: 1 } }, 'either.dealy: unknown field; accepted: job, delay'],
  [{ either: { job: 5 } }, 'either.job: 5 is not accepted; accepted: a text'],
  [{ none: 1 }, 'none: 1 is not accepted; accepted: nothing'],
  [{ date: 'x' }, 'date: "x" is not accepted; accepted: a date'],
  [{ text: 'x'.repeat(500) }, `text: "${'x'.repeat(98)}… is not accepted; accepted: at most 5 characters`],
])('%j', (value, said) => {
  expect(() => checked(shape, value, ([fault]) => new Error(sayFault(fault, 'the file')))).toThrow(
    new Error(said),
  );
});
