/**
 * The core against the rules of the papers as written a second time (rules.ts), on cases drawn from seeds of each run's own:
 * `npm run test:vectors -- --seeds N --seed S`. The same seed gives the same cases.
 */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { runVectors } from '../../src/core/index.js';
import { type Case, casesOf } from './draw.js';
import { RULES } from './rules.js';

const OF_EACH = 100;
const seeds = Number(process.env.VECTORS_SEEDS ?? 2);
const first = Number(process.env.VECTORS_SEED ?? Math.floor(Math.random() * 2 ** 31));
const sample = new URL('../../../shared/spec/vectors.json', import.meta.url);

describe('the rules of the papers', () => {
  it.each(Array.from({ length: seeds }, (_, i) => first + i))('on the cases of seed %i', (seed) => {
    const cases = casesOf(seed, OF_EACH);
    const { lines, passed } = runVectors({ cases });
    expect(lines.filter((line) => line.startsWith('  '))).toEqual([]);
    expect(passed).toBe(OF_EACH * Object.keys(RULES).length);
  });

  // Where the specification lies beside the repository: what is compared with answers as it does.
  it.runIf(existsSync(sample))('as written here answer as the sample of the specification', () => {
    const { cases } = JSON.parse(readFileSync(sample, 'utf8')) as { cases: Case[] };
    const again = cases.map(({ rule, input }) => {
      const answer = RULES[rule] as (input: never) => unknown;
      return { rule, input, expected: answer(input as never) };
    });
    expect(new Set(cases.map(({ rule }) => rule))).toEqual(new Set(Object.keys(RULES)));
    for (const [i, { expected }] of again.entries()) expectNear(expected, cases[i]?.expected);
  });
});

/** Numbers to a relative 1e-9, all else exactly. */
function expectNear(got: unknown, expected: unknown): void {
  if (typeof got === 'number' && typeof expected === 'number') {
    expect(Math.abs(got - expected)).toBeLessThanOrEqual(1e-9 * Math.abs(expected));
  } else if (typeof expected === 'object' && expected !== null) {
    expect(Object.keys(got as object).sort()).toEqual(Object.keys(expected).sort());
    for (const [name, value] of Object.entries(expected))
      expectNear((got as Record<string, unknown>)[name], value);
  } else expect(got).toBe(expected);
}
