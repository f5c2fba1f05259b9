import { describe, expect, it } from 'vitest';
import { meanAndError } from '../../experiments/santoso.js';
import { RandomStream } from '../../src/core/index.js';
import { offeredLoad, scaleLoad } from '../../src/simulator/load.js';
import { lublinJobs } from '../../src/simulator/lublin.js';
import { gamma, normal } from '../../src/simulator/random.js';
import { estimatesOf, giveEstimates, MAX_ESTIMATE_S } from '../../src/simulator/user-estimates.js';

/** Whether the mean of draws is where it should be, within four standard errors. */
function expectMean(values: number[], mean: number): void {
  const found = meanAndError(values);
  expect(Math.abs(found.mean - mean)).toBeLessThan(4 * found.error);
}

describe('draws', () => {
  const random = new RandomStream(5, 'test');
  const draws = (draw: () => number): number[] => Array.from({ length: 50_000 }, draw);

  it('normal: mean 0, variance 1', () => {
    const values = draws(() => normal(random));
    expectMean(values, 0);
    expectMean(
      values.map((value) => value ** 2),
      1,
    );
  });

  it.each([
    [0.5, 2],
    [4.2, 0.94],
    [312, 0.03],
  ])('gamma of shape %d and scale %d: mean and variance', (shape, scale) => {
    const values = draws(() => gamma(random, shape, scale));
    expectMean(values, shape * scale);
    expectMean(
      values.map((value) => (value - shape * scale) ** 2),
      shape * scale ** 2,
    );
  });
});

describe('the model of Lublin and Feitelson', () => {
  const jobs = lublinJobs(1, 50_000, 128);
  const sizes = jobs.map(({ job }) => job.cpusPerTask);
  const share = (test: (size: number) => boolean): number => sizes.filter(test).length / sizes.length;

  it('has the sizes of the model', () => {
    expect(Math.max(...sizes)).toBeLessThanOrEqual(128);
    // Serial jobs, and parallel ones whose size rounds to 1 or to a power of two by chance.
    expect(share((size) => size === 1)).toBeGreaterThan(0.23);
    expect(share((size) => size === 1)).toBeLessThan(0.27);
    expect(share((size) => Number.isInteger(Math.log2(size)))).toBeGreaterThan(0.244 + 0.576 - 0.01);
    expect(share((size) => Number.isInteger(Math.log2(size)))).toBeLessThan(0.9);
  });

  it('has run times below two days, longer for larger jobs', () => {
    const runs = (test: (size: number) => boolean): number[] =>
      jobs.filter(({ job }) => test(job.cpusPerTask)).map(({ runS }) => Math.log(runS));
    expect(Math.max(...jobs.map(({ runS }) => runS))).toBeLessThanOrEqual(Math.exp(12));
    expect(meanAndError(runs((size) => size >= 64)).mean).toBeGreaterThan(
      meanAndError(runs((size) => size === 1)).mean + 0.5,
    );
  });

  it('has a day and a night', () => {
    const byHour = new Array<number>(24).fill(0);
    for (const { job } of jobs) byHour[Math.floor((job.submittedAt % 86_400) / 3600)]!++;
    const busiest = byHour.indexOf(Math.max(...byHour));
    expect(busiest).toBeGreaterThanOrEqual(11);
    expect(busiest).toBeLessThanOrEqual(17);
    expect(Math.max(...byHour)).toBeGreaterThan(4 * Math.min(...byHour));
  });

  it('comes in order, and the same again with the same seed', () => {
    expect(jobs.every(({ job }, i) => i === 0 || job.submittedAt >= jobs[i - 1]!.job.submittedAt)).toBe(true);
    expect(lublinJobs(1, 1000, 128)).toEqual(jobs.slice(0, 1000));
    expect(lublinJobs(2, 1000, 128)).not.toEqual(jobs.slice(0, 1000));
  });

  it('can be brought to another load', () => {
    const scaled = scaleLoad(jobs, 128, 0.9);
    expect(offeredLoad(scaled, 128)).toBeCloseTo(0.9, 3);
    expect(scaled.map(({ runS }) => runS)).toEqual(jobs.map(({ runS }) => runS));
    expect(() => scaleLoad(jobs.slice(0, 1), 128, 0.5)).toThrow('cannot be reached');
  });
});

describe('the model of user estimates', () => {
  const HOUR = 3600;

  it.each([1, 2, 3])('has the head of the paper (seed %d)', (seed) => {
    const jobs = 100_000;
    const byCount = [...estimatesOf(seed, jobs, 18 * HOUR)].sort((a, b) => b[1] - a[1]);
    const part = (count: number): number => count / jobs;
    const popular = byCount.slice(0, 20);
    expect(popular[0]![0]).toBe(18 * HOUR);
    expect(part(popular.reduce((sum, [, count]) => sum + count, 0))).toBeCloseTo(0.89, 3);
    // a exp(b x) + c percent have the value of rank x.
    for (const [i, [, count]] of popular.entries())
      if (i > 0) expect(100 * part(count)).toBeCloseTo(14.0491 * Math.exp(-0.177531 * (i + 1)) + 0.462513, 2);
    for (const minutes of [5, 10, 15, 20, 30, 60, 120, 180, 240, 300, 360, 480, 600, 720])
      expect(popular.map(([time]) => time)).toContain(minutes * 60);
    // From 70 000 to 250 000 jobs on the line from 340 to 565 values.
    expect(byCount.length).toBe(Math.round(340 + (30_000 * 225) / 180_000));
    expect(byCount.reduce((sum, [, count]) => sum + count, 0)).toBe(jobs);
  });

  it.each([
    [1, MAX_ESTIMATE_S.least],
    [19, MAX_ESTIMATE_S.least],
    [21, 100 * HOUR],
    [5_000, MAX_ESTIMATE_S.most],
    [300_000, 36 * HOUR],
  ])('for %d jobs and a maximum of %d s: as many, none above', (jobs, most) => {
    const estimates = [...estimatesOf(7, jobs, most)];
    expect(estimates.reduce((sum, [, count]) => sum + count, 0)).toBe(jobs);
    expect(estimates.every(([time, count]) => time > 0 && time <= most && Number.isInteger(count))).toBe(
      true,
    );
  });

  it('deals each job one that is long enough, and all of them', () => {
    const jobs = lublinJobs(4, 20_000, 128);
    const plain = structuredClone(jobs.map(({ runS, job }) => [runS, job.submittedAt, job.cpusPerTask]));
    giveEstimates(jobs, 4, 48 * HOUR);
    const counts = new Map<number, number>();
    for (const { job, runS, limitS } of jobs) {
      expect(runS).toBeLessThanOrEqual(job.estimateS);
      expect(limitS).toBe(job.estimateS);
      counts.set(job.estimateS, (counts.get(job.estimateS) ?? 0) + 1);
    }
    const all = [...estimatesOf(4, 20_000, 48 * HOUR)].filter(([, count]) => count > 0);
    expect([...counts].sort((a, b) => a[0] - b[0])).toEqual(all.sort((a, b) => a[0] - b[0]));
    expect(jobs.map(({ runS, job }) => [runS, job.submittedAt, job.cpusPerTask])).toEqual(plain);
    const again = lublinJobs(4, 20_000, 128);
    giveEstimates(again, 4, 48 * HOUR);
    expect(again).toEqual(jobs);
  });

  it('says so where too many jobs run too long', () => {
    expect(() => giveEstimates(lublinJobs(1, 1_000, 128), 1, 2 * HOUR)).toThrow('accepted: a larger maximum');
  });
});
