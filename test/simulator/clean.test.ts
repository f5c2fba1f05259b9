import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { cleanTrace } from '../../src/simulator/clean.js';
import { parseSwf, readSwf } from '../../src/simulator/swf.js';

describe('cleaning a trace', () => {
  const line = (
    id: number,
    submit: number,
    run: number,
    allocated: number,
    requested: number,
    time: number,
  ): string =>
    [id, submit, -1, run, allocated, -1, -1, requested, time, -1, 1, 1, 1, 3, 1, 1, -1, -1].join(' ');
  const { jobs } = parseSwf(
    [
      line(1, 0, 50, 4, 8, 100),
      line(2, 1, 50, 4, -1, 100),
      line(3, 2, 50, -1, -1, 100),
      line(4, 3, 50, 11, -1, 100),
      line(5, 4, 0, 4, 4, 100),
      line(6, 5, 50, 4, 4, -1),
      line(7, -6, 50, 4, 4, 100),
      line(8, 7, 150, 4, 4, 100),
    ].join('\n'),
  );

  it('leaves out what cannot be scheduled, and says how much of it', () => {
    const {
      jobs: left,
      dropped,
      cut,
    } = cleanTrace(jobs, { processors: 10, missingEstimate: 'DROP', limit: Infinity });
    expect(left.map(({ id, processors, run }) => [id, processors, run])).toEqual([
      [1, 8, 50],
      [2, 4, 50],
      [8, 4, 100],
    ]);
    expect(dropped).toEqual({
      'of unknown width': 1,
      'wider than the machine': 1,
      'without run time': 1,
      'without requested time': 1,
      'submitted before the beginning': 1,
    });
    expect(cut).toBe(1);
  });

  it('takes the run time for a missing estimate where asked, and no more jobs than asked', () => {
    const { jobs: left } = cleanTrace(jobs, { processors: 10, missingEstimate: 'RUN', limit: 3 });
    expect(left.map(({ id, requested }) => [id, requested])).toEqual([
      [1, 100],
      [2, 100],
      [6, 50],
    ]);
  });

  // The traces lie beside a checkout for development and are no part of the product.
  const trace = packagePath('..', 'shared', 'data', 'traces', 'KTH-SP2.swf.gz');
  it.runIf(existsSync(trace))('KTH-SP2: the counts that its users agree on', async () => {
    const { jobs: all, malformedCount } = await readSwf(trace);
    const clean = cleanTrace(all, { processors: 100, missingEstimate: 'DROP', limit: Infinity });
    expect([all.length, malformedCount, clean.jobs.length, clean.cut]).toEqual([28_489, 0, 28_481, 475]);
  });
});
