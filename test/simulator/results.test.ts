import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runSimulation } from '../../src/simulator/engine.js';
import { TextFile } from '../../src/simulator/files.js';
import { generatedJobs } from '../../src/simulator/generate.js';
import { policyNamed } from '../../src/simulator/policies.js';
import { EstimateErrors, LastTwo, Measured, Regression } from '../../src/simulator/prediction.js';
import { type SimulateOptions, simulateAndRecord } from '../../src/simulator/simulate.js';
import { MemorySink, type ResultSink } from '../../src/simulator/sink.js';
import { countedWorld } from '../../src/simulator/sites.js';
import { intervalOf, Statistics, summarize } from '../../src/simulator/statistics.js';
import { readTrace } from '../../src/simulator/trace.js';
import { IN_FULL } from '../support/seed.js';
import { simJobs } from './support/jobs.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'results-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const defaults: Omit<SimulateOptions, 'trace'> = {
  processors: null,
  policy: policyNamed('easy', 1),
  estimate: 'requested',
  missingEstimate: 'drop',
  overrun: 'kill',
  eventOrder: 'batch',
  load: null,
  sites: null,
  out: null,
  events: null,
  summary: null,
};
const simulate = async (options: Partial<SimulateOptions> & Pick<SimulateOptions, 'trace'>) =>
  (await simulateAndRecord({ ...defaults, ...options }, null)).simulated;

/** id submit run processors requested user partition */
const line = (...[id, submit, run, processors, requested, user, partition]: number[]) =>
  `${id} ${submit} 99 ${run} ${processors} 1.5 77 ${processors} ${requested} 2048 1 ${user} 21 22 23 ${partition} -1 -1`;
const TRACE = [
  '; MaxProcs: 4',
  line(1, 0, 100, 4, 100, 7, 3),
  line(2, 10, 50, 2, 40, 8, 3),
  line(3, 20, 20, 1, 30, 7, 5),
].join('\n');

describe('jobs in the Standard Workload Format', () => {
  it('have the schedule filled in, and what the trace said besides', async () => {
    const trace = join(folder, 'a.swf');
    const sites = join(folder, 'sites.csv');
    writeFileSync(trace, TRACE);
    writeFileSync(sites, 'site,capacity\n3,4\n5,4\n');
    const swf = join(folder, 'out.swf');
    const out = join(folder, 'out.csv');
    await simulate({ trace, sites, swf, out });
    const written = await readTrace(swf);
    expect(written.malformedCount).toBe(0);
    expect(written.header.get('MaxProcs')).toBe('8');
    // Wait, run, processors, status and partition are the schedule's: job 2 is killed at its limit.
    expect(readFileSync(swf, 'utf8').split('\n').slice(4, 7)).toEqual([
      '1 0 0 100 4 1.5 77 4 100 2048 1 7 21 22 23 3 -1 -1',
      '2 10 90 40 2 1.5 77 2 40 2048 0 8 21 22 23 3 -1 -1',
      '3 20 0 20 1 1.5 77 1 30 2048 1 7 21 22 23 5 -1 -1',
    ]);
    const rows = readFileSync(out, 'utf8').trimEnd().split('\n').slice(1);
    expect(rows.map((row) => [row.split(',')[0], row.split(',').at(-1)])).toEqual([
      ['3', 'site-5'],
      ['1', 'site-3'],
      ['2', 'site-3'],
    ]);
  });

  it('written and simulated again give the same schedule', async () => {
    const [first, again] = [join(folder, 'first.swf'), join(folder, 'again.swf')];
    await simulate({ trace: { model: 'lublin', jobs: 500, seed: 3 }, processors: 64, load: 0.9, swf: first });
    await simulate({ trace: first, swf: again });
    const body = (path: string) => readFileSync(path, 'utf8').split('\n').slice(2);
    expect(body(again)).toEqual(body(first));
  });

  it('of jobs that never ran say so', async () => {
    const trace = join(folder, 'b.swf');
    writeFileSync(trace, TRACE);
    const sites = join(folder, 'small.csv');
    writeFileSync(sites, 'site,capacity,memoryMb\n3,4,4\n');
    const swf = join(folder, 'never.swf');
    // Job 1 needs 8 MB.
    expect((await simulate({ trace, sites, swf })).waiting).toBe(1);
    expect((await readTrace(swf)).jobs.map(({ wait, run, status }) => [wait, run, status])).toEqual([
      [-1, -1, 5],
      [0, 40, 0],
    ]);
  });
});

describe('numbers in a file', () => {
  it('are as JavaScript writes them, rounded ones to a millionth, whatever they are', () => {
    const path = join(folder, 'numbers');
    const value = fc.oneof(
      fc.integer(),
      fc.double({ noNaN: true }),
      fc.maxSafeInteger(),
      fc.constantFrom(0, 9, 10, 2 ** 31 - 1, 2 ** 31, -(2 ** 31), 1e9, 999_999_999),
    );
    fc.assert(
      fc.property(
        fc.array(fc.tuple(value, fc.string({ unit: 'grapheme', maxLength: 200 })), { maxLength: 50 }),
        fc.array(fc.double({ min: 0, max: 1e6, noNaN: true })),
        (given, rounded) => {
          const file = new TextFile(path);
          for (const [number, text] of given) file.number(number).text(text);
          for (const number of rounded) file.text(' ').rounded(number);
          file.close();
          const expected = given.map(([number, text]) => `${String(number + 0)}${text}`).join('');
          const text = readFileSync(path, 'utf8');
          const numbers =
            rounded.length === 0 ? [] : text.slice(Buffer.from(expected).toString().length + 1).split(' ');
          expect(text.startsWith(Buffer.from(expected).toString())).toBe(true);
          numbers.forEach((word, i) => {
            expect(Math.abs(Number(word) - (rounded[i] as number))).toBeLessThanOrEqual(1e-6);
            expect(word).toMatch(/^\d+(\.\d{1,6})?$/);
          });
        },
      ),
    );
  });

  it('fill a file of any length', () => {
    const path = join(folder, 'long');
    const file = new TextFile(path);
    for (let i = 0; i < 200_000; i++) file.number(i).text('\n');
    file.text('x'.repeat(1_000_000)).close();
    const lines = readFileSync(path, 'utf8').split('\n');
    expect(lines.slice(0, -1).every((text, i) => text === String(i))).toBe(true);
    expect([lines.length, lines.at(-1)?.length]).toEqual([200_001, 1_000_000]);
  });
});

describe('figures', () => {
  const jobs = simJobs([
    { runS: 100, cpusPerTask: 2, userId: 1 },
    { runS: 100, cpusPerTask: 2, userId: 2, submittedAt: 50 },
    { runS: 5, cpusPerTask: 1, userId: 1, submittedAt: 60 },
  ]);
  const times = new MemorySink(3) as ResultSink;
  runSimulation(
    countedWorld([{ id: 1, name: 'one', processors: 2 }]),
    jobs,
    { policy: policyNamed('fcfs', 1), eventOrder: 'batch' },
    [times],
  );

  it('take τ, weigh with the area, and say how much was done and queued', () => {
    // Job 2 waits 50 s, job 3 140 s; the last end is 205 s.
    const summary = summarize(jobs, times, 2, { tauS: 20 });
    expect(summary).toMatchObject({ jobs: 3, makespan: 205 });
    expect(summary.boundedSlowdown.max).toBe(145 / 20);
    expect(summarize(jobs, times, 2, { tauS: 1 }).boundedSlowdown.max).toBe(145 / 5);
    expect(summary.perProcessorSlowdown.max).toBe(145 / 20);
    expect(summary.areaWeighted.wait).toBeCloseTo((200 * 50 + 5 * 140) / 405, 9);
    expect(summary.throughputPerHour).toBeCloseTo((3 * 3600) / 205, 9);
    expect(summary.meanQueued).toBeCloseTo(190 / 205, 9);
    expect(summary.utilization).toBeCloseTo(405 / 410, 9);
  });

  it('leave the warm-up out, but not what it uses of the machines', () => {
    const summary = summarize(jobs, times, 2, { warmUpJobs: 1 });
    expect(summary).toMatchObject({ jobs: 2, makespan: 155 });
    expect(summary.wait.mean).toBe(95);
    // From 50 s on: 100 CPU-seconds of job 1, 200 of job 2, 5 of job 3.
    expect(summary.utilization).toBeCloseTo(305 / 310, 9);
  });

  it('by user add up to the whole', () => {
    const groups = new Statistics(jobs, times).by(
      (index) => jobs[index]!.job.userId,
      () => 2,
    );
    expect(groups.map(([user, figures]) => [user, figures.jobs, figures.wait.mean])).toEqual([
      [1, 2, 70],
      [2, 1, 50],
    ]);
    const used = groups.reduce((sum, [, { utilization }]) => sum + utilization, 0);
    expect(used).toBeCloseTo(summarize(jobs, times, 2).utilization, 9);
  });

  it('come by site, user and width in the summary', async () => {
    const trace = join(folder, 'groups.swf');
    writeFileSync(trace, TRACE);
    const sites = join(folder, 'groups.csv');
    writeFileSync(sites, 'site,capacity,name\n3,4,big\n5,4,small\n');
    const summary = join(folder, 'summary.json');
    const result = await simulate({ trace, sites, summary, warmUp: { part: 0.34 } });
    expect(JSON.parse(readFileSync(summary, 'utf8'))).toEqual(result);
    expect(result.warmUpJobs).toBe(1);
    expect(result.bySite?.map(({ site, name, jobs }) => [site, name, jobs])).toEqual([
      [3, 'big', 1],
      [5, 'small', 1],
    ]);
    expect(result.byUser?.map(({ user, jobs }) => [user, jobs])).toEqual([
      [7, 1],
      [8, 1],
    ]);
    expect(result.byWidth?.map(({ from, to, jobs }) => [from, to, jobs])).toEqual([
      [1, 1, 1],
      [2, 2, 1],
    ]);
    expect((await simulate({ trace, sites, warmUp: { s: 15 } })).warmUpJobs).toBe(2);
    expect((await simulate({ trace, sites })).byUser).toBeUndefined();
  });

  it('of repetitions have confidence intervals (Student)', () => {
    expect(intervalOf([3])).toEqual({ mean: 3, half: null });
    // t(0.975; 2) = 4.3027, s = 1.
    expect(intervalOf([1, 2, 3]).half).toBeCloseTo(4.3027 / Math.sqrt(3), 4);
    // Tables: t(0.975; 40) = 2.0211, t(0.975; 120) = 1.9799.
    for (const [n, t] of [
      [41, 2.0211],
      [121, 1.9799],
    ] as const) {
      const values = Array.from({ length: n }, (_, i) => i);
      const deviation = Math.sqrt(((n + 1) * n) / 12);
      expect((intervalOf(values).half as number) / (deviation / Math.sqrt(n))).toBeCloseTo(t, 3);
    }
  });
});

describe('generated workloads', () => {
  it.runIf(IN_FULL)('of exponential times wait as queueing theory says (M/M/c, Erlang)', async () => {
    // Mean waits in units of the mean run: ρ/(1-ρ) with one server; Erlang's C(c, cρ)/(c(1-ρ)) with more.
    const erlang = (servers: number, load: number): number => {
      let blocked = 1;
      for (let k = 1; k <= servers; k++)
        blocked = (servers * load * blocked) / (k + servers * load * blocked);
      return blocked / (1 - load * (1 - blocked)) / (servers * (1 - load));
    };
    expect(erlang(1, 0.5)).toBeCloseTo(1, 9);
    for (const [processors, load] of [
      [1, 0.5],
      [4, 0.7],
    ] as const) {
      const means = await Promise.all(
        Array.from({ length: 10 }, async (_, seed) => {
          const trace = { model: 'poisson', jobs: 20_000, seed } as const;
          const { wait } = await simulate({
            trace,
            processors,
            load,
            policy: policyNamed('fcfs', 1),
            warmUp: { part: 0.1 },
          });
          return wait.mean / 3600;
        }),
      );
      const { mean, half } = intervalOf(means);
      // Half as wide again: one of twenty intervals misses, and the seeds are what they are.
      expect(Math.abs(mean - erlang(processors, load))).toBeLessThan(1.5 * (half as number));
      expect((half as number) / mean).toBeLessThan(0.1);
    }
  });

  it('are the same for the same seed only, and go to the root or to the one site', async () => {
    const what = { model: 'poisson', jobs: 100, seed: 1 } as const;
    expect(generatedJobs(what, 4)).toEqual(generatedJobs(what, 4));
    expect(generatedJobs({ ...what, seed: 2 }, 4)).not.toEqual(generatedJobs(what, 4));
    const sites = join(folder, 'two.csv');
    writeFileSync(sites, 'site,capacity\n3,4\n5,4\n');
    const policy = policyNamed('round-robin+fcfs', 1);
    const result = await simulate({ trace: what, sites, policy, enter: 'root', groups: true });
    expect(result.bySite?.map(({ jobs }) => jobs)).toEqual([50, 50]);
    await expect(simulate({ trace: what, sites })).rejects.toThrow('these jobs do not name a site');
    await expect(simulate({ trace: what })).rejects.toThrow('required for a generated workload');
  });
});

describe('estimates', () => {
  it('have errors', () => {
    const errors = new EstimateErrors();
    errors.add(100, 50);
    errors.add(10, 40);
    expect(errors.summary).toEqual({ jobs: 2, meanAbsoluteS: 40, accuracy: 0.375, underestimated: 0.5 });
    expect(new EstimateErrors().summary).toMatchObject({ jobs: 0, meanAbsoluteS: 0 });
  });

  it('by regression learn what part of their requests users use; those who use all stay believed', () => {
    const request = 1000;
    const jobs = simJobs(
      Array.from({ length: 400 }, (_, i) => {
        const userId = 1 + (i % 2);
        const runS = userId === 1 ? 200 + (i % 5) : request;
        return { runS, estimateS: request, limitS: request, userId, submittedAt: 2000 * i };
      }),
    );
    const measured = new Measured(new Regression(), jobs);
    const believed: number[] = [];
    for (const { job, runS } of jobs) {
      believed.push(measured.estimate(job));
      measured.ended(job, runS);
    }
    expect(believed[0]).toBe(request);
    expect(Math.max(...believed)).toBeLessThanOrEqual(request);
    for (const [i, estimate] of believed.entries())
      if (i > 300) expect(Math.abs(estimate - jobs[i]!.runS)).toBeLessThan(20);
    expect(measured.errors.summary.accuracy).toBeGreaterThan(0.9);
  });

  it('are compared with what really ran, whoever made them', async () => {
    const trace = { model: 'lublin', jobs: 300, seed: 1 } as const;
    expect((await simulate({ trace, processors: 32 })).estimateError).toEqual({
      jobs: 300,
      meanAbsoluteS: 0,
      accuracy: 1,
      underestimated: 0,
    });
    const predicted = await simulate({ trace, processors: 32, estimate: 'predicted' });
    expect(predicted.estimateError).toMatchObject({ jobs: 300, underestimated: expect.any(Number) });
    expect(predicted.estimateError.accuracy).toBeLessThan(1);
    const [job] = simJobs([{ runS: 50, estimateS: 80 }]);
    const two = new LastTwo();
    two.ended(job!.job, 50);
    two.ended(job!.job, 30);
    expect(two.estimate(job!.job)).toBe(40);
  });
});
