/** Whatever is in an answer, it is short, and what others wrote stays in its marks. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { answer, fittingEnd, fittingPage, seen } from '../../src/mcp/answers.js';
import { Plans } from '../../src/mcp/plans.js';
import { cases } from '../support/seed.js';
import { dataOf, INJECTIONS, type Result } from './answers.js';

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 500 }),
  fc.constantFrom(...INJECTIONS),
  fc.constantFrom(
    '<'.repeat(5_000),
    '"\\'.repeat(3_000),
    '\u202e'.repeat(3_000),
    '\u{e0041}'.repeat(3_000),
    '\ud800',
  ),
);
const item = fc.record({ id: text, name: text, state: text, user: text, message: fc.option(text) });
// `dataOf` knows what an answer must be like.
const shown = (result: unknown) => dataOf(result as Result);

it('holds for all data', () => {
  fc.assert(
    fc.property(fc.array(item, { maxLength: 200 }), item, (jobs, job) => {
      shown(answer({ jobs, job }, { next: 'More: call find_jobs with after: 12' }));
      shown(answer({ error: job.name }, { isError: true, textChars: 1_000 }));
    }),
    { numRuns: cases(50) },
  );
});

it('tells a page to its end, item by item', () => {
  fc.assert(
    fc.property(fc.array(text, { minLength: 1, maxLength: 120 }), (texts) => {
      const edges = texts.map((node, at) => ({ node, cursor: String(at) }));
      let told = 0;
      for (let after: string | null = '-1'; after !== null; ) {
        const rest = edges.slice(Number(after) + 1);
        const page = fittingPage({ edges: rest, pageInfo: { hasNextPage: false } }, (node) => ({ node }));
        expect(page.items.length).toBeGreaterThan(0);
        const data = shown(answer({ total: texts.length, jobs: page.items }));
        // Nothing of it was left out again.
        expect(data.jobs).toHaveLength(page.items.length);
        told += page.items.length;
        after = page.after;
      }
      expect(told).toBe(texts.length);
    }),
    { numRuns: cases(50) },
  );
});

it('gives the end of a text', () => {
  fc.assert(
    fc.property(fc.array(text), (lines) => {
      const whole = lines.join('\n');
      const end = fittingEnd(whole);
      expect(whole.endsWith(end)).toBe(true);
      expect(end === '').toBe(whole === '');
      const data = shown(answer({ text: end }, { textChars: 3_400 }));
      expect(data.text).toBe(seen(end));
    }),
    { numRuns: cases(50) },
  );
});

it('forgets plans: after ten minutes, and the oldest of a key with more than fifty', () => {
  let nowMs = 0;
  const plans = new Plans(() => nowMs);
  const make = (key: string): string =>
    plans.make(key, 'cancel_jobs', { mine: true }, (id) => ({ id })).digest;
  const confirm = (key: string, digest: string) => plans.confirm(key, 'cancel_jobs', { mine: true }, digest);
  const [first, others] = [make('a'), make('b')];
  for (let i = 0; i < 50; i++) make('a');
  expect(confirm('a', first)).toMatch(/^confirm: /);
  expect(confirm('b', others)).toMatchObject({ id: expect.any(String) });
  expect(confirm('a', others)).toMatch(/^confirm: /);
  nowMs = 600_001;
  expect(confirm('b', others)).toMatch(/^confirm: /);
});
