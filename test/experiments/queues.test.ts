import { describe, expect, it } from 'vitest';
import {
  queueJobs,
  queues,
  queuesReport,
  simulatedEnds,
  theoreticalResponse,
} from '../../experiments/queues.js';
import { IN_FULL } from '../support/seed.js';

describe('M/M/c', () => {
  it('has the theoretical values of the paper', () => {
    expect(theoreticalResponse(1, 0.9, 4)).toBeCloseTo(40, 9);
    expect(theoreticalResponse(2, 0.9, 4)).toBeCloseTo(21.05, 2);
    expect(theoreticalResponse(4, 0.9, 4)).toBeCloseTo(11.88, 2);
  });

  it.each([1, 2, 4])(
    '%d servers: every job ends as the recursion for the earliest free server says',
    (servers) => {
      const jobs = queueJobs(1, 0, servers, 20_000);
      const free = new Array<number>(servers).fill(0);
      const expected = jobs.map(({ job, runS }) => {
        const earliest = free.indexOf(Math.min(...free));
        free[earliest] = Math.max(job.submittedAt, free[earliest]!) + runS;
        return free[earliest];
      });
      expect([...simulatedEnds(servers, jobs)]).toEqual(expected);
    },
  );

  it.runIf(IN_FULL)('is simulated as theory says, within three standard errors', () => {
    const rows = queues(1, () => {}, 40, 10_000);
    for (const { distance, error, mean } of rows) {
      expect(distance).toBeLessThan(3);
      expect(error / mean).toBeLessThan(0.08);
    }
    expect(queuesReport(1, rows).verdict).toMatch(/^\d of 3 queues within two standard errors of theory$/);
  });
});
