import { describe, expect, it } from 'vitest';
import { meanAndError } from '../../experiments/santoso.js';
import { RandomStream } from '../../src/core/index.js';
import { offeredLoad, scaleLoad } from '../../src/simulator/load.js';
import { lublinJobs } from '../../src/simulator/lublin.js';
import { gamma, normal } from '../../src/simulator/random.js';

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
