import { describe, expect, it } from 'vitest';
import { isLess } from '../../experiments/grids.js';
import {
  batchesOfTable1,
  type JobRatioResult,
  jobRatio,
  jobsOf,
  SCHEDULERS,
  settingOf,
  TABLE_2,
  TYPES,
  WORKLOADS,
} from '../../experiments/job-ratio.js';
import { claims, comparisons, jobRatioReport } from '../../experiments/job-ratio-report.js';
import { IN_FULL } from '../support/seed.js';

describe("the paper's tables", () => {
  it('make Table 2 of Table 1', () => {
    expect(batchesOfTable1()).toEqual(TABLE_2.map(({ batch }) => [...batch]));
  });
});

describe('the draws', () => {
  const setting = settingOf(3, 1);

  it('are in the ranges that the page tells', () => {
    const { machines, links = [] } = setting.world;
    expect(new Set(machines.map(({ siteId }) => siteId)).size).toBe(5);
    for (const { benchmark } of machines) {
      expect(benchmark).toBeGreaterThanOrEqual(1);
      expect(benchmark).toBeLessThanOrEqual(4);
    }
    expect(links).toHaveLength(20);
    for (const { bandwidthMbPerS } of links) {
      // 10 to 1000 megabits.
      expect(bandwidthMbPerS).toBeGreaterThanOrEqual(1.25);
      expect(bandwidthMbPerS).toBeLessThanOrEqual(125);
    }
    const jobs = jobsOf(3, 1, setting, 'mixed', 'over time', 400);
    const reading = jobs.filter(({ job }) => job.application.startsWith('reading'));
    expect(reading.length).toBeGreaterThan(150);
    expect(reading.length).toBeLessThan(250);
    // 10 GB from a disk of 100 MB/s.
    for (const { ioS } of reading) expect(ioS).toBe(100);
    expect(jobs.map(({ job }) => job.submittedAt)).toEqual(
      [...jobs.map(({ job }) => job.submittedAt)].sort((a, b) => a - b),
    );
  });

  it('are the same again, and the same at once as over time but for the times', () => {
    expect(settingOf(3, 1)).toEqual(setting);
    const over = jobsOf(3, 1, setting, 'reading', 'over time', 50);
    const once = jobsOf(3, 1, setting, 'reading', 'at once', 50);
    expect(once.map(({ runS }) => runS)).toEqual(over.map(({ runS }) => runS));
    expect(once.every(({ job }) => job.submittedAt === 0)).toBe(true);
  });
});

describe.runIf(IN_FULL)('the experiment, in small', () => {
  const seed = 5;
  let result: JobRatioResult;
  it(`is the same again (seed ${seed})`, () => {
    result = jobRatio(seed, () => {}, 4, 240);
    expect(jobRatio(seed, () => {}, 4, 240)).toEqual(result);
    expect(result.cells).toHaveLength(WORKLOADS.length * 2 * SCHEDULERS.length);
  });

  it('has shorter turnarounds with the ratio than every baseline where data matters', () => {
    const compared = comparisons(result).filter(
      ({ workload, against, measure, arrival }) =>
        workload !== 'computing' &&
        against !== 'half' &&
        measure === 'turnaroundS' &&
        arrival === 'over time',
    );
    expect(compared).toHaveLength(6);
    for (const { difference } of compared) expect(difference).toBeLessThan(0);
    expect(compared.filter(isLess).length).toBeGreaterThan(3);
  });

  it('learns what the applications are, and places by it', () => {
    const { learning, none, 'learned before': before } = result.shift;
    const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
    const thought = (blocks: typeof learning, type: (typeof TYPES)[number]): number[] =>
      blocks.map(({ byType }) => byType[type].computation.mean);
    expect(thought(learning, 'computing')[0]).toBeLessThan(0.8);
    expect(thought(learning, 'computing').at(-1)).toBeGreaterThan(0.9);
    expect(thought(learning, 'reading').at(-1)).toBeLessThan(0.4);
    expect(thought(before, 'computing')[0]).toBeGreaterThan(0.9);
    for (const type of TYPES) expect(new Set(thought(none, type))).toEqual(new Set([0.5]));
    const atData = (blocks: typeof learning): number =>
      mean(blocks.map(({ byType }) => byType.reading.atData.mean));
    expect(atData(before)).toBeGreaterThan(atData(none));
  });

  it('ends its page with what holds', () => {
    const { text, verdict } = jobRatioReport(result);
    const of = claims(result).reduce((sum, claim) => sum + claim.of, 0);
    expect(of).toBe(29);
    expect(verdict).toMatch(new RegExp(`^\\d+ of ${of} expectations hold$`));
    expect(text.trimEnd().split('\n').at(-1)).toBe(verdict);
    expect(text).toContain(`--seed ${seed} --runs 4`);
  });
});
