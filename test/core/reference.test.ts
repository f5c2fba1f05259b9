import { describe, expect, it } from 'vitest';
import type { LocalPolicy } from '../../src/core/index.js';
import { driveOneMachine } from './support/drive.js';
import { haveTraces, readStarts, readTrace } from './support/trace.js';

/** Schedules by independent simulators: every job starts at the same second. */
const references: {
  trace: string;
  cpus: number;
  jobs: number;
  schedule: string;
  local: LocalPolicy;
}[] = [
  {
    trace: 'KTH-SP2',
    cpus: 100,
    jobs: 28_481,
    schedule: 'KTH-SP2.EASY.batch',
    local: { kind: 'easy' },
  },
  {
    trace: 'KTH-SP2',
    cpus: 100,
    jobs: 28_481,
    schedule: 'KTH-SP2.FCFS',
    local: { kind: 'fcfs' },
  },
  {
    trace: 'SDSC-SP2-first4961',
    cpus: 128,
    jobs: 4_606,
    schedule: 'SDSC-SP2-5k.FCFS',
    local: { kind: 'fcfs' },
  },
];

describe('one machine equals counted processors', () => {
  if (!haveTraces)
    it('has no ../shared/data to compare with: the reference schedules were not tried', () => {});
  else {
    it.each(references)('$schedule', ({ trace, cpus, jobs, schedule, local }) => {
      const read = readTrace(trace, cpus);
      expect(read).toHaveLength(jobs);
      const starts = driveOneMachine(read, cpus, local);
      const expected = readStarts(schedule);
      const wrong = read.filter(({ id }) => starts.get(id) !== expected.get(id));
      expect(
        wrong.slice(0, 5).map(({ id }) => ({
          id,
          got: starts.get(id),
          expected: expected.get(id),
        })),
      ).toEqual([]);
      expect(starts.size).toBe(expected.size);
    });
  }
});
