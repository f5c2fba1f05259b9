import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  averagesOf,
  JobHistory,
  jobData,
  noRuns,
  type ObservedRun,
  type RunTotals,
  resourceKinds,
  totalsWith,
} from '../../src/core/index.js';
import { totalsOf } from '../support/totals.js';
import { job } from './support/drive.js';

const anyRun: fc.Arbitrary<ObservedRun> = fc
  .record({
    turnaroundS: fc.double({ min: 0.001, max: 1e6, noNaN: true }),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
    sitePower: fc.double({ min: 0.1, max: 500, noNaN: true }),
  })
  .map(({ turnaroundS, share, sitePower }) => ({ turnaroundS, ioS: turnaroundS * share, sitePower }));

const none = (application: string, userId = 1, kinds = ''): RunTotals =>
  noRuns({ application, userId, kinds });
const replay = (runs: readonly ObservedRun[], from: RunTotals, reference = 1): RunTotals =>
  runs.reduce((totals, run) => totalsWith(totals, run, reference), from);

describe('run totals', () => {
  it('are the same in whatever order runs ended, and their averages are the means of the scaled values', () => {
    fc.assert(
      fc.property(
        fc.array(anyRun, { minLength: 1, maxLength: 60 }),
        fc.infiniteStream(fc.nat(100)),
        fc.double({ min: 0.1, max: 500, noNaN: true }),
        (runs, keys, reference) => {
          const totals = replay(runs, none('a'), reference);
          const shuffled = runs
            .map((run) => ({ run, key: keys.next().value as number }))
            .sort((a, b) => a.key - b.key)
            .map(({ run }) => run);
          expect(replay(shuffled, none('a'), reference)).toEqual(totals);
          const mean = (value: (run: ObservedRun) => number): number =>
            runs.reduce((sum, run) => sum + (value(run) * run.sitePower) / reference, 0) / runs.length;
          const { turnaroundS, executionS, ioS } = averagesOf(totals);
          expect(totals.count).toBe(runs.length);
          expect(
            relative(
              turnaroundS,
              mean((run) => run.turnaroundS),
            ),
          ).toBeLessThan(1e-12);
          expect(relative(executionS + ioS, turnaroundS)).toBeLessThan(1e-12);
        },
      ),
    );
  });

  it('give the ratio of an application whose runs are far below a second', () => {
    const runs = [3, 7, 11].map((k) => ({ turnaroundS: k * 1.3e-6, ioS: k * k * 1e-9, sitePower: 1 }));
    const history = new JobHistory();
    history.set(replay(runs, none('a')));
    const [turnaroundS, ioS] = [21 * 1.3e-6, (9 + 49 + 121) * 1e-9];
    const { computation } = history.ratioOf(job({ id: 1, application: 'a' }));
    expect(relative(computation, (turnaroundS - ioS) / turnaroundS)).toBeLessThan(1e-12);
  });
});

describe('job ratio', () => {
  const anyRecord = fc.record({
    application: fc.constantFrom('a', 'b', 'c'),
    userId: fc.integer({ min: 1, max: 3 }),
    licenses: fc.constantFrom([], ['x']),
    runs: fc.array(anyRun, { minLength: 1, maxLength: 4 }),
  });

  it('sums to 1, and depends on the records only, not on how they came to be', () => {
    fc.assert(
      fc.property(fc.array(anyRecord, { maxLength: 20 }), fc.infiniteStream(fc.nat(100)), (shapes, keys) => {
        const live = new JobHistory();
        const latest = new Map<string, RunTotals>();
        for (const { application, userId, licenses, runs } of shapes) {
          const kinds = resourceKinds({ licenses, os: null, architecture: null });
          const key = JSON.stringify([application, userId, kinds]);
          const record = replay(runs, latest.get(key) ?? none(application, userId, kinds));
          latest.set(key, record);
          live.set(record);
        }
        const loaded = new JobHistory();
        const shuffled = [...latest.values()]
          .map((record) => ({ record, key: keys.next().value as number }))
          .sort((a, b) => a.key - b.key);
        for (const { record } of shuffled) loaded.set(record);
        for (const application of ['a', 'b', 'c', 'd']) {
          for (const userId of [1, 2, 3, 4]) {
            for (const licenses of [[], ['x']]) {
              const asks = job({ id: 1, application, userId, licenses });
              const ratio = live.ratioOf(asks);
              expect(ratio.computation).toBeGreaterThanOrEqual(0);
              expect(ratio.computation + ratio.dataIntensive).toBeCloseTo(1, 14);
              expect(loaded.ratioOf(asks)).toEqual(ratio);
            }
          }
        }
      }),
    );
  });

  it("falls back from the application's runs to the user's, everybody's, what is declared, one half", () => {
    const history = new JobHistory();
    const of = (application: string, userId: number, licenses: string[] = [], computationShare = 0.9) => {
      const asks = job({ id: 1, application, userId, licenses, data: jobData({ computationShare }) });
      const { computation, source, runs } = history.ratioOf(asks);
      return [computation, source, runs];
    };
    expect(of('a', 1)).toEqual([0.9, 'DECLARED', 0]);
    expect(history.ratioOf(job({ id: 1 }))).toMatchObject({ computation: 0.5, source: 'UNKNOWN' });
    const kinds = resourceKinds({ licenses: [], os: null, architecture: null });
    const record = (application: string, userId: number, count: number, executionS: number): void =>
      history.set(
        totalsOf({ application, userId, kinds, count, turnaroundS: 8, executionS, ioS: 8 - executionS }),
      );
    record('a', 1, 1, 2);
    record('a', 2, 3, 6);
    record('b', 2, 4, 7);
    expect(of('a', 9)).toEqual([0.625, 'APPLICATION', 4]);
    expect(of('c', 1)).toEqual([0.25, 'USER', 1]);
    expect(of('c', 2)).toEqual([(3 * 6 + 4 * 7) / (7 * 8), 'USER', 7]);
    expect(of('c', 9)).toEqual([(2 + 3 * 6 + 4 * 7) / 64, 'EVERYBODY', 8]);
    expect(of('c', 9, ['x'])).toEqual([0.9, 'DECLARED', 0]);
  });
});

const relative = (a: number, b: number): number =>
  a === b ? 0 : Math.abs(a - b) / Math.max(Math.abs(a), Math.abs(b));
