/**
 * The seed of the run's random cases: a new one each time, printed at the start (globalSetup.ts); `TEST_SEED=7 npm test` repeats those of a run.
 * What fails tells its own seed, too.
 */
import * as fc from 'fast-check';
import { RandomStream } from '../../src/core/random.js';

export const SEED = Number(process.env.TEST_SEED);

/** `npm run test:properties`: all cases are tried. That they met what they are about is asked there only. */
export const IN_FULL = process.env.PROPERTIES !== undefined;

/** How many cases a property tries: in `npm test` a part of them, which runs of new seeds add up to more. */
export const cases = (all: number): number => (IN_FULL ? all : Math.ceil(all / 20));

const drawn = new RandomStream(SEED, 'part');

/** A part of them, by default as many as `cases`: others in each run, all in full. */
export const part = <T>(values: readonly T[], count = cases(values.length)): readonly T[] =>
  IN_FULL || values.length <= count
    ? values
    : Array.from({ length: count }, () => values[drawn.integer(0, values.length - 1)] as T);

/** Seeds for what has to be met with some of them: always the same first ones; in full also that of the run. */
export const seeds = (all: number): number[] => [
  ...Array.from({ length: cases(all) }, (_, i) => i + 1),
  ...(IN_FULL ? [SEED] : []),
];

/** How many times as many cases are tried for `met` before it is taken for broken. */
const ROUNDS = 20;

/**
 * Tries a property, and goes on with further cases until `met`, which asserts what was counted meanwhile, holds: that cases met what the property
 * is about is aimed at, since how many of them a seed draws is chance. Fails as `met` does if twenty times as many cases did not.
 */
export function assertUntil<Ts>(
  property: fc.IProperty<Ts>,
  params: fc.Parameters<Ts> & { numRuns: number },
  met: () => void,
): void {
  for (let round = 1; ; round++) {
    fc.assert(property, { ...params, seed: SEED + (round - 1) * 1_000_003 });
    try {
      met();
      return;
    } catch (error) {
      if (round === ROUNDS) throw error;
    }
  }
}

fc.configureGlobal({ seed: SEED, numRuns: cases(100) });
