import { describe, expect, it } from 'vitest';
import {
  matching,
  meanAndError,
  meanResponse,
  PAPER_RUNS,
  type SantosoRow,
  santoso,
  santosoJobs,
  santosoReport,
  TABLE_2,
} from '../../experiments/santoso.js';
import { RandomStream } from '../../src/core/index.js';
import { hyperExponential } from '../../src/simulator/random.js';

describe('hyper-exponential draws', () => {
  it('have the mean and deviation asked for', () => {
    const random = new RandomStream(1, 'test');
    const values = Array.from({ length: 200_000 }, () => hyperExponential(random, 8, 10));
    const { mean, error } = meanAndError(values);
    expect(Math.abs(mean - 8)).toBeLessThan(4 * error);
    expect(error * Math.sqrt(values.length)).toBeCloseTo(10, 0);
  });
});

describe("Santoso's table", () => {
  /**
   * Means of one run at 0.8, in the order of the table, as a program of its own gave them: global and local queues and
   * nodes in one loop, without the core. It was told only which of two sections that end at one instant goes first (the one that was
   * known first). It served local queues by submission: rows in which that differs from the order of arrival at the site are left out.
   */
  const ALONE = [
    24.02879327921382, 35.56004264435641, 44.765567581181756, 27.1102202066323, 27.121095518026788,
    33.85191082121348, 37.253937769193726, 35.708011540354796, 47.67444029002512, 54.54359134092439,
    27.30395497022032, 26.67837532382637, 40.08966844667344, 39.736483256725705, 74.21543015256266,
    23.973335447075925, 64.56261602391919,
  ];

  it('is what a scheduler written for it alone computes, to the last digit', () => {
    const jobs = santosoJobs(1, 0, 0.8);
    const same = TABLE_2.map((row, i) => ({ row, alone: ALONE[i] })).filter(
      ({ row: { queueMax, local } }) => queueMax === 0 || local === 'SJF',
    );
    expect(same).toHaveLength(9);
    expect(same.map(({ row }) => meanResponse(row, jobs))).toEqual(same.map(({ alone }) => alone));
  });

  it('comes out where the load is low', () => {
    const means = Array.from({ length: PAPER_RUNS }, (_, run) =>
      meanResponse({ global: 'S-SJF', local: 'SJF', queueMax: 4 }, santosoJobs(1, run, 1.5)),
    );
    const { mean, error } = meanAndError(means);
    expect(Math.abs(mean - 7.9)).toBeLessThan(2 * Math.hypot(error, 0.1));
  });

  it('is the same again, and its page says how many cells agree', () => {
    const few = [{ global: 'SJF', local: 'FCFS', queueMax: 0, paper: Array(5).fill([9, 1e9]) } as const];
    const long = { measured: 1000, interArrival: 0.8, runs: 1 };
    const rows = santoso(3, () => {}, 1, few, long);
    expect(santoso(3, () => {}, 1, few, long)).toEqual(rows);
    const { types, utilization } = (rows[0] as SantosoRow).figures;
    expect(types).toHaveLength(4);
    expect(utilization).toBeGreaterThan(0.85);
    expect(utilization).toBeLessThan(1.05);
    expect(matching(rows)).toEqual({ within: 5, cells: 5 });
    const { text, verdict } = santosoReport(3, rows, 1);
    expect(verdict).toBe('5 of 5 cells within two standard errors');
    expect(text.trimEnd().split('\n').at(-1)).toBe(verdict);
  });
});
