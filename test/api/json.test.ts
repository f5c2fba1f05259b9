/** Long texts of JSON, which are parsed in pieces: they are what `JSON.parse` says that they are. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseJson } from '../../src/api/json.js';

const parsed = (text: string | Buffer) => parseJson(Buffer.from(text as string));
/** Longer than a piece, by something that is not looked at. */
const long = (text: string, padding = 200_000) => `${' '.repeat(padding)}${text}`;
const outcome = async (read: () => unknown): Promise<unknown> => {
  try {
    return { is: await read() };
  } catch {
    return 'refused';
  }
};

describe('a text that is longer than a piece', () => {
  const name = fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', '', '"', '\\'));
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.string({ unit: 'binary' }),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.constantFrom(
        null,
        true,
        false,
        'é'.repeat(70_000),
        '\\"\u0001😀'.repeat(30_000),
        ' '.repeat(65_536),
      ),
      fc.array(tie('value'), { maxLength: 8 }),
      fc.dictionary(name, tie('value'), { maxKeys: 8 }),
      // More than fit into one.
      fc
        .tuple(tie('value'), fc.integer({ min: 1, max: 20_000 }))
        .map(([one, times]) => (JSON.stringify(one)?.length < 100 ? Array(times).fill(one) : [one])),
    ),
  }));

  test('says what JSON.parse says', async () => {
    await fc.assert(
      fc.asyncProperty(value, fc.constantFrom(0, 1, 2), async (value, spaces) => {
        const text = JSON.stringify(value, null, spaces);
        // To the last byte, `__proto__` and order included.
        expect(JSON.stringify(await parsed(long(text)))).toBe(JSON.stringify(JSON.parse(text)));
      }),
      { numRuns: 60 },
    );
  });

  test('is refused where JSON.parse refuses it', async () => {
    const members = Array.from({ length: 20_000 }, (_, i) => `{"a":[${i}],"b":"x\\"]}"}`).join(',');
    const object = Array.from({ length: 20_000 }, (_, i) => `"k${i}":${i}`).join(',');
    const texts = [`[${members}]`, `{${object}}`, `{"jobs":[${members}],"more":{${object}}}`];
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...texts),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        fc.constantFrom('', ',', ']', '}', '[', '{', '"', '\\', ':', '1', ',,', 'null', '\u0000'),
        fc.integer({ min: 0, max: 3 }),
        async (text, at, put, take) => {
          const i = Math.floor(at * text.length);
          const broken = text.slice(0, i) + put + text.slice(i + take);
          const [ours, theirs] = [
            await outcome(() => parsed(broken)),
            await outcome(() => JSON.parse(broken)),
          ];
          expect(JSON.stringify(ours)).toBe(JSON.stringify(theirs));
        },
      ),
      { numRuns: 150 },
    );
  });

  test.each([
    '[]',
    '[ ]',
    '{}',
    '{ }',
    '1',
    '-1.5e3',
    '"x"',
    'true',
    '[,]',
    '[1,]',
    '{,}',
    '{"a":1,}',
    '{"a"}',
    '{1:1}',
    '[1 2]',
    '',
    '[',
    '"',
    '"\\',
    '{"a":',
    '[1]]',
    '1 1',
    'nul',
    ' "\\u12" ',
    `[${' '.repeat(100_000)}]`,
    `[1${' '.repeat(100_000)},${' '.repeat(100_000)}2]`,
    `[1${' '.repeat(100_000)},${' '.repeat(100_000)}]`,
    `{"a"${' '.repeat(100_000)}:${' '.repeat(100_000)}1}`,
  ])('%.30s', async (text) => {
    const [ours, theirs] = [await outcome(() => parsed(long(text))), await outcome(() => JSON.parse(text))];
    expect(JSON.stringify(ours)).toBe(JSON.stringify(theirs));
  });

  test('is not nested beyond measure', async () => {
    const nested = `${'['.repeat(2e6)}${']'.repeat(2e6)}`;
    await expect(parsed(nested)).rejects.toThrow('nested too deeply');
  });
});
