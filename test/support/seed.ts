/**
 * The seed of the run's random cases: a new one each time, printed at the start (globalSetup.ts); `TEST_SEED=7 npm test` repeats those of a run.
 * What fails tells its own seed, too.
 */
import * as fc from 'fast-check';
import { RandomStream } from '../../src/core/index.js';

export const SEED = Number(process.env.TEST_SEED);

/** `npm run test:properties`: all cases are tried. That they met what they are about is asked there only. */
export const IN_FULL = process.env.PROPERTIES !== undefined;

/** How many cases a property tries: in `npm test` a part of them, which runs of new seeds add up to more. */
export const cases = (all: number): number => (IN_FULL ? all : Math.ceil(all / 5));

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

fc.configureGlobal({ seed: SEED, numRuns: cases(100) });
