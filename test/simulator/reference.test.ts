import { describe, expect, it } from 'vitest';
import type { EventOrder } from '../../src/simulator/engine.js';
import { runSimulation } from '../../src/simulator/engine.js';
import { policyNamed } from '../../src/simulator/policies.js';
import { prepare } from '../../src/simulator/simulate.js';
import { MemorySink } from '../../src/simulator/sink.js';
import { type Summary, summarize } from '../../src/simulator/statistics.js';
import { readTrace } from '../../src/simulator/trace.js';
import { capacitiesOf, haveTraces, readReference, tracePath } from './support/reference.js';

/** Schedules by independent simulators: every job starts and ends at the same second. */
const references: {
  schedule: string;
  trace: string;
  processors: number | null;
  policy: string;
  orders: EventOrder[];
  missingEstimate?: 'run';
}[] = [
  {
    schedule: 'KTH-SP2.FCFS',
    trace: 'KTH-SP2',
    processors: 100,
    policy: 'fcfs',
    orders: ['batch', 'per-event'],
  },
  { schedule: 'KTH-SP2.EASY.batch', trace: 'KTH-SP2', processors: 100, policy: 'easy', orders: ['batch'] },
  {
    schedule: 'KTH-SP2.EASY.event',
    trace: 'KTH-SP2',
    processors: 100,
    policy: 'easy',
    orders: ['per-event'],
  },
  {
    schedule: 'SDSC-SP2-5k.FCFS',
    trace: 'SDSC-SP2-first4961',
    processors: 128,
    policy: 'fcfs',
    orders: ['batch', 'per-event'],
  },
  {
    schedule: 'SDSC-SP2-5k.EASY.event',
    trace: 'SDSC-SP2-first4961',
    processors: 128,
    policy: 'easy',
    orders: ['per-event'],
  },
  {
    schedule: 'KTH-SP2.EASY-SJBF.event',
    trace: 'KTH-SP2',
    processors: 100,
    policy: 'easy-sjbf',
    orders: ['per-event'],
  },
  {
    schedule: 'KTH-SP2.CONS.event',
    trace: 'KTH-SP2',
    processors: 100,
    policy: 'conservative',
    orders: ['per-event'],
  },
  {
    schedule: 'SDSC-SP2-5k.CONS.event',
    trace: 'SDSC-SP2-first4961',
    processors: 128,
    policy: 'conservative',
    orders: ['per-event'],
  },
  {
    schedule: 'NASA-iPSC.FCFS',
    trace: 'NASA-iPSC',
    processors: 128,
    policy: 'fcfs',
    orders: ['batch'],
    missingEstimate: 'run',
  },
  {
    schedule: 'NASA-iPSC.EASY.event',
    trace: 'NASA-iPSC',
    processors: 128,
    policy: 'easy',
    orders: ['per-event'],
    missingEstimate: 'run',
  },
  {
    schedule: 'LCG-2005.FCFS.site-bound',
    trace: 'LCG-2005',
    processors: null,
    policy: 'fcfs',
    orders: ['batch'],
    missingEstimate: 'run',
  },
];

/** Mean wait, turnaround and bounded slowdown, utilization and makespan, as published beside the schedules. */
const published: Record<string, [number, number, number, number, number]> = {
  'KTH-SP2.FCFS': [353776.40915, 362636.335241, 6814.97331, 0.68524, 29379608],
  'KTH-SP2.EASY.event': [6836.87209, 15696.798181, 92.57654, 0.685613, 29363626],
  'KTH-SP2.EASY.batch': [6834.587269, 15694.51336, 92.687654, 0.685613, 29363626],
  'KTH-SP2.EASY-SJBF.event': [5904.076577, 14764.002668, 69.405401, 0.685613, 29363626],
  'KTH-SP2.CONS.event': [7310.551174, 16170.477266, 88.997275, 0.685613, 29363626],
  'SDSC-SP2-5k.FCFS': [15581.477855, 23872.519974, 139.594804, 0.643389, 4665136],
  'SDSC-SP2-5k.EASY.event': [3641.371038, 11932.413157, 18.005752, 0.643389, 4665136],
  'SDSC-SP2-5k.CONS.event': [3810.178246, 12101.220365, 17.12142, 0.643389, 4665136],
  'NASA-iPSC.FCFS': [8.081313, 780.293258, 1.026233, 0.466093, 7949022],
  'NASA-iPSC.EASY.event': [4.066645, 776.27859, 1.011872, 0.466093, 7949022],
};

describe('reference schedules', () => {
  if (!haveTraces) {
    it('has no ../shared/data to compare with: the reference schedules were not tried', () => {});
    return;
  }
  const cases = references.flatMap((reference) => reference.orders.map((order) => ({ ...reference, order })));
  it.each(cases)(
    '$schedule, $order',
    async ({ schedule, trace, processors, policy, order, missingEstimate }) => {
      const sites = processors === null ? capacitiesOf('LCG-2005') : null;
      const { world, workload } = prepare(await readTrace(tracePath(trace)), sites, {
        processors,
        estimate: 'requested',
        missingEstimate: missingEstimate ?? 'drop',
        overrun: 'kill',
      });
      const { jobs } = workload;
      const times = new MemorySink(jobs.length);
      runSimulation(world, jobs, { policy: policyNamed(policy, 1), eventOrder: order }, [times]);
      const expected = new Map(readReference(schedule).map((row) => [row.job_id, row]));
      expect(jobs).toHaveLength(expected.size);
      const wrong = jobs.flatMap(({ sourceId }, i) => {
        const row = expected.get(sourceId);
        if (row?.start === times.starts[i] && row?.end === times.ends[i]) return [];
        return [{ sourceId, start: times.starts[i], end: times.ends[i], expected: row }];
      });
      expect(wrong.slice(0, 3)).toEqual([]);
      const figures = published[schedule];
      if (figures) expectFigures(summarize(jobs, times, processors as number), figures);
    },
  );
});

function expectFigures(
  summary: Summary,
  [wait, turnaround, slowdown, utilization, makespan]: number[],
): void {
  expect(summary.wait.mean).toBeCloseTo(wait!, 5);
  expect(summary.turnaround.mean).toBeCloseTo(turnaround!, 5);
  expect(summary.boundedSlowdown.mean).toBeCloseTo(slowdown!, 5);
  expect(summary.utilization).toBeCloseTo(utilization!, 5);
  expect(summary.makespan).toBe(makespan);
}
