import { expect, it } from 'vitest';
import { usedBy } from '../../src/cli/commands/report.js';

type Job = Parameters<typeof usedBy>[0];

const job = (shape: Partial<Job>, run: Partial<Job['runs'][number]> = {}): Job => ({
  ...{
    id: 'job_1',
    state: 'COMPLETED',
    cause: 'EXITED_ZERO',
    tasks: 1,
    cpus: 4,
    memoryMbPerTask: 4000,
  },
  ...{ estimateS: 3600, benchmark: 100 },
  runs: [
    {
      ...{
        epoch: 1,
        startedAt: '2026-03-01T12:00:00Z',
        endedAt: '2026-03-01T12:10:00Z',
        cause: 'EXITED_ZERO',
      },
      ...{ cpuS: 660, peakMemoryMb: 310.5, allocations: [{ machine: { id: 'machine_1', benchmark: 200 } }] },
      ...run,
    },
  ],
  ...shape,
});
const next = (one: Job) => usedBy(one).map((used) => used.next);

it('compares what was used with what was asked for, time by the power of the machine', () => {
  expect(usedBy(job({}))).toEqual([
    // 10 minutes on a machine of twice the power are 20 of those that the estimate is in, and a quarter to spare.
    { what: 'time', used: 600, asked: 1800, next: 1500 },
    { what: 'CPUs', used: 1.1, asked: 4, next: 2 },
    { what: 'memory', used: 310.5, asked: 4000, next: 400 },
  ]);
});

it('asks for twice as much of what the run was ended for', () => {
  expect(next(job({}, { cause: 'RUN_TIME_LIMIT' }))).toEqual([2400, 2, 400]);
  expect(next(job({}, { cause: 'MEMORY_LIMIT', peakMemoryMb: 3990 }))).toEqual([1500, 2, 8000]);
});

it('says nothing of what nobody measured, never asks for less than a CPU a task, and of no run that goes on', () => {
  expect(next(job({}, { cpuS: null, peakMemoryMb: null }))).toEqual([1500, null, null]);
  expect(next(job({ tasks: 3 }, { cpuS: 6 }))).toEqual([1500, 3, 400]);
  expect(usedBy(job({}, { endedAt: null }))).toEqual([]);
  expect(usedBy(job({ runs: [] }))).toEqual([]);
});
