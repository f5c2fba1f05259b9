import { describe, expect, it } from 'vitest';
import {
  agingStudy,
  expectations,
  INTER_ARRIVALS,
  MODES,
  paperJobs,
  paperWorld,
  SITES,
  twoLevel,
  twoLevelReport,
  UNIT_S,
  unitStudy,
  usageOver,
} from '../../experiments/two-level.js';

describe("the two-level paper's draws", () => {
  it('are in the ranges of section 5', () => {
    const { machines, licenses } = paperWorld(1, 0);
    expect(SITES.map((_, i) => machines.filter(({ siteId }) => siteId === i + 1).length)).toEqual([...SITES]);
    for (const { cpus, benchmark } of machines) {
      expect(cpus).toBeGreaterThanOrEqual(4);
      expect(cpus).toBeLessThanOrEqual(32);
      expect(benchmark).toBeGreaterThanOrEqual(100);
      expect(benchmark).toBeLessThanOrEqual(500);
    }
    expect(machines.every(({ licenseIds }) => licenseIds.length === 0)).toBe(true);
    for (const { siteId, copies } of licenses) {
      const able = machines.filter((machine) => machine.siteId === siteId).length;
      expect(copies).toBeGreaterThanOrEqual(Math.round(0.5 * able));
      expect(copies).toBeLessThanOrEqual(Math.round(0.7 * able));
    }
    const jobs = paperJobs(1, 0, 5);
    expect(jobs).toHaveLength(5000);
    const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
    expect(mean(jobs.map(({ job }) => (job.licenses.length > 0 ? 1 : 0)))).toBeCloseTo(0.3, 1);
    expect(mean(jobs.map(({ job }) => (job.deadline === null ? 1 : 0)))).toBeCloseTo(0.3, 1);
    expect((jobs.at(-1)?.job.submittedAt ?? 0) / 5000).toBeGreaterThan(4.7 * UNIT_S);
    expect((jobs.at(-1)?.job.submittedAt ?? 0) / 5000).toBeLessThan(5.3 * UNIT_S);
  });
});

describe('usage', () => {
  it('is what runs over the lesser of what there is and what is asked for', () => {
    const jobs = [
      { submit: 0, start: 0, end: 10, needs: 2 },
      { submit: 0, start: 10, end: 20, needs: 3 },
    ];
    // 0 to 10: 2 of min(4, 5); 10 to 20: 3 of min(4, 3).
    expect(usageOver(jobs, 4)).toBe((20 + 30) / (40 + 30));
    expect(usageOver([], 4)).toBe(0);
  });
});

describe('the experiment', () => {
  const cells = twoLevel(1, () => {}, 1, 200);

  it('gives every figure for every mode and rate, the same again', () => {
    for (const interArrival of INTER_ARRIVALS) {
      for (const mode of MODES) {
        const cell = cells.find((one) => one.mode === mode && one.interArrival === interArrival);
        const [figures] = cell?.runs ?? [];
        expect(figures?.share.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 9);
        // So few jobs, so far apart, need not come to every site.
        figures?.share.forEach((share, site) => {
          const usage = figures.processors[site] as number;
          expect(usage > 0).toBe(share > 0);
          expect(usage).toBeLessThanOrEqual(1);
          const slowdown = figures.slowdown[site] as number;
          if (slowdown !== 0) expect(slowdown).toBeGreaterThanOrEqual(1);
        });
      }
    }
    const figures = (all: typeof cells) => all.map(({ runs }) => runs);
    expect(figures(twoLevel(1, () => {}, 1, 200))).toEqual(figures(cells));
  });

  it('shares the work equally when all comes at once', () => {
    expect(expectations(cells)[0]).toMatchObject({ holds: true });
  });

  it('ends its page with what holds', () => {
    const { text, verdict } = twoLevelReport(1, cells, agingStudy(1, 100), unitStudy(1, 100));
    expect(verdict).toMatch(/^\d+ of 18 expectations hold$/);
    expect(text.trimEnd().split('\n').at(-1)).toBe(verdict);
  });
});
