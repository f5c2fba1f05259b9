/**
 * The core against the rules as written a second time (rules.ts, batch-rules.ts, resource-rules.ts), on cases drawn from seeds of each run's own:
 * `npm run test:vectors -- --seeds N --seed S`. The same seed gives the same cases.
 */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { runVectors } from '../../src/core/index.js';
import { SEED } from '../support/seed.js';
import { ALL_RULES, type Case, casesOf } from './draw.js';

const OF_EACH = 100;
const seeds = Number(process.env.VECTORS_SEEDS ?? 2);
const first = Number(process.env.VECTORS_SEED ?? SEED);
const samples = ['vectors.json', 'vectors-batch.json']
  .map((name) => new URL(`../../../shared/spec/${name}`, import.meta.url))
  .filter((sample) => existsSync(sample));

describe('the rules', () => {
  it.each(Array.from({ length: seeds }, (_, i) => first + i))('on the cases of seed %i', (seed) => {
    const cases = casesOf(seed, OF_EACH);
    const { lines, passed } = runVectors({ cases });
    expect(lines.filter((line) => line.startsWith('  '))).toEqual([]);
    expect(passed).toBe(OF_EACH * Object.keys(ALL_RULES).length);
  });

  // Where the specification lies beside the repository: what is compared with answers as it does.
  it.runIf(samples.length > 0)('as written here answer as the samples of the specification', () => {
    const cases = samples.flatMap(
      (sample) => (JSON.parse(readFileSync(sample, 'utf8')) as { cases: Case[] }).cases,
    );
    expect(new Set(cases.map(({ rule }) => rule))).toEqual(new Set(Object.keys(ALL_RULES)));
    for (const { rule, input, expected } of cases) {
      const answer = ALL_RULES[rule] as (input: never) => unknown;
      expectNear(answer(input as never), expected);
    }
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
