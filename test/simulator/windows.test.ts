/** Maintenance windows in the simulator: under every local policy no run reaches into one. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { crossed, scavengers, windows } from '../../experiments/windows.js';
import { plainJob } from '../../src/core/index.js';
import { runSimulation } from '../../src/simulator/engine.js';
import { policyNamed, policyNames } from '../../src/simulator/policies.js';
import { MemorySink } from '../../src/simulator/sink.js';
import { countedWorld, readWindows, withWindows } from '../../src/simulator/sites.js';
import type { SimJob } from '../../src/simulator/workload.js';
import { haveTraces, tracePath } from './support/reference.js';

const CPUS = 4;
const policies = policyNames.map((name) => name.replace('-N', '-2'));

const job = fc.record({
  at: fc.integer({ min: 0, max: 50 }),
  limit: fc.integer({ min: 1, max: 20 }),
  run: fc.integer({ min: 1, max: 30 }),
  cpus: fc.integer({ min: 1, max: CPUS }),
});
const simJobs = (given: { at: number; limit: number; run: number; cpus: number }[]): SimJob[] =>
  [...given]
    .sort((a, b) => a.at - b.at)
    .map(({ at, limit, run, cpus }, i) => ({
      job: plainJob({ id: i + 1, submittedAt: at, estimateS: limit, cpusPerTask: cpus }),
      ...{ sourceId: i + 1, runS: run, limitS: limit, siteId: 1 },
    }));

describe.each(policies)('windows under %s', (name) => {
  it('are crossed by no run, nothing is taken twice, and all jobs have run in the end', () => {
    fc.assert(
      fc.property(
        fc.array(job, { minLength: 1, maxLength: 12 }),
        fc.array(fc.tuple(fc.integer({ min: 1, max: 80 }), fc.integer({ min: 1, max: 15 })), {
          maxLength: 5,
        }),
        (given, times) => {
          const jobs = simJobs(given);
          const closed = times.map(([fromS, length]) => ({
            ...{ siteId: 1, machine: null, fromS, toS: fromS + length },
          }));
          const sink = new MemorySink(jobs.length);
          const world = withWindows(countedWorld([{ id: 1, name: 'a', processors: CPUS }]), closed);
          runSimulation(world, jobs, { policy: policyNamed(name, 1), eventOrder: 'batch' }, [sink]);
          expect(crossed(sink, closed)).toBe(0);
          const { starts, ends } = sink;
          for (const [i, start] of starts.entries()) {
            expect(ends[i]).toBeGreaterThan(start);
            const there = jobs.filter(
              (_, j) => (starts[j] as number) <= start && start < (ends[j] as number),
            );
            expect(there.reduce((sum, one) => sum + one.job.cpusPerTask, 0)).toBeLessThanOrEqual(CPUS);
          }
        },
      ),
      { numRuns: 30 },
    );
  });
});

it('of a file with a machine that is not there are refused', () => {
  const world = countedWorld([{ id: 1, name: 'a', processors: CPUS }]);
  const window = { siteId: 1, machine: 2, fromS: 1, toS: 2 };
  expect(() => withWindows(world, [window])).toThrow('accepted: 1 to 1');
  expect(() => withWindows(world, [{ ...window, siteId: 7 }])).toThrow('no site 7');
});

it('of a file stop what began before they were known and would reach into them, or let it end', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'windows-'));
  const file = join(folder, 'windows.csv');
  try {
    const ends = async (runs: string): Promise<number[]> => {
      writeFileSync(file, `site,from,to,known,runs\n1,100,120,50,${runs}\n`);
      const jobs = simJobs([
        { at: 0, limit: 200, run: 150, cpus: 1 },
        { at: 40, limit: 20, run: 10, cpus: 1 },
      ]);
      const world = withWindows(
        countedWorld([{ id: 1, name: 'a', processors: CPUS }]),
        await readWindows(file),
      );
      const sink = new MemorySink(jobs.length);
      runSimulation(world, jobs, { policy: policyNamed('easy', 1), eventOrder: 'batch' }, [sink]);
      return [...sink.ends];
    };
    // The second ends by its limit ahead of the window.
    expect(await ends('stop')).toEqual([120 + 150, 50]);
    expect(await ends('finish')).toEqual([150, 50]);
    await expect(ends('lost')).rejects.toThrow('finish or stop');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it('runs that are stopped for others cross no window either', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'windows-'));
  const trace = join(folder, 'small.swf');
  // Short and long ones by turns that keep most of the machine busy, over two weeks of the month that the experiment takes.
  const lines = Array.from({ length: 200 }, (_, i) => {
    const [submitted, runS, processors] = [
      112 * 86_400 + i * 6000,
      i % 3 === 0 ? 20_000 : 5000,
      20 + (i % 4) * 20,
    ];
    const asked = runS + (i % 2) * 3600;
    return [i + 2, submitted, -1, runS, processors, -1, -1, processors, asked, -1, 1, 1, 1, 1, 1, -1, -1, -1];
  });
  const first = [1, 0, -1, 60, 1, -1, -1, 1, 60, -1, 1, 1, 1, 1, 1, -1, -1, -1];
  writeFileSync(trace, [first, ...lines].map((line) => `${line.join(' ')}\n`).join(''));
  try {
    for (const row of await scavengers(trace)) {
      expect(row.crossed).toBe(0);
      expect(row.stopped).toBeGreaterThan(0);
      expect(row.lostCpuHours).toBeGreaterThan(0);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it.runIf(haveTraces)('a month of KTH-SP2 with four hours each week: no run crosses a window', async () => {
  const rows = await windows(tracePath('KTH-SP2'), undefined, ['easy', 'conservative']);
  expect(rows.map(({ crossed }) => crossed)).toEqual([0, 0]);
  for (const { waitH, used } of rows) {
    expect(waitH).toBeGreaterThan(0);
    expect(used).toBeGreaterThan(0);
  }
});
