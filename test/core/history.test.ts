import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  averagesWith,
  JobHistory,
  jobData,
  type ObservedRun,
  type RunAverages,
  resourceKinds,
} from '../../src/core/index.js';
import { job } from './support/drive.js';

const anyRun: fc.Arbitrary<ObservedRun> = fc
  .record({
    turnaroundS: fc.double({ min: 0.001, max: 1e6, noNaN: true }),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
    sitePower: fc.double({ min: 0.1, max: 500, noNaN: true }),
  })
  .map(({ turnaroundS, share, sitePower }) => ({ turnaroundS, ioS: turnaroundS * share, sitePower }));

const none = (application: string, userId = 1, kinds = ''): RunAverages => ({
  application,
  userId,
  kinds,
  count: 0,
  turnaroundS: 0,
  executionS: 0,
  ioS: 0,
});
const replay = (runs: readonly ObservedRun[], from: RunAverages, reference = 1): RunAverages =>
  runs.reduce((averages, run) => averagesWith(averages, run, reference), from);

describe('run averages', () => {
  it('replayed in any batching are those that are stored, and the means of the scaled values', () => {
    fc.assert(
      fc.property(
        fc.array(anyRun, { minLength: 1, maxLength: 60 }),
        fc.array(fc.nat(60), { maxLength: 5 }),
        fc.double({ min: 0.1, max: 500, noNaN: true }),
        (runs, cuts, reference) => {
          const stored = replay(runs, none('a'), reference);
          let batched = none('a');
          const ends = [...cuts, runs.length].map((cut) => Math.min(cut, runs.length)).sort((a, b) => a - b);
          let start = 0;
          for (const end of ends) {
            // What a batch leaves goes through the store.
            batched = JSON.parse(JSON.stringify(replay(runs.slice(start, end), batched, reference)));
            start = end;
          }
          expect(batched).toEqual(stored);
          const mean = (value: (run: ObservedRun) => number): number =>
            runs.reduce((sum, run) => sum + (value(run) * run.sitePower) / reference, 0) / runs.length;
          expect(stored.count).toBe(runs.length);
          expect(
            relative(
              stored.turnaroundS,
              mean((run) => run.turnaroundS),
            ),
          ).toBeLessThan(1e-9);
          expect(relative(stored.executionS + stored.ioS, stored.turnaroundS)).toBeLessThan(1e-9);
        },
      ),
    );
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
        const latest = new Map<string, RunAverages>();
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
              expect(ratio.computation + ratio.dataIntensive).toBe(1);
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
      history.set({ application, userId, kinds, count, turnaroundS: 8, executionS, ioS: 8 - executionS });
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
