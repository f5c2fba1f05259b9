import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import type { Assignment } from '../../src/agent/runner.js';
import { SimulatedRunner } from '../../src/agent/simulated.js';
import { cases } from '../support/seed.js';
import { assignment, endOf, ends, until } from './support.js';

function simulated(speed: number): SimulatedRunner {
  const runner = new SimulatedRunner({ speed });
  onTestFinished(() => runner.close());
  return runner;
}

function planned(jobId: string, plannedS: number, more: Partial<Assignment> = {}): Assignment {
  return { ...assignment(jobId, 'none'), plannedS, ...more };
}

function spanMs(runner: Pick<SimulatedRunner, 'reports'>, jobId: string): number {
  const [start, end] = runner.reports(1000).filter((report) => report.jobId === jobId);
  return end!.atMs - start!.atMs;
}

it('takes as long as planned, or as told, divided by the speed, up to the limit', async () => {
  const runner = simulated(1000);
  runner.start(planned('job_1', 50));
  runner.start(planned('job_2', 50, { simulatedS: 20 }));
  runner.start(planned('job_3', 50, { runTimeLimitS: 30 }));
  runner.start(planned('job_4', 50, { runTimeLimitS: 60, simulatedS: 0 }));
  await until(() => ends(runner).length === 4, 'the ends');
  expect(['job_1', 'job_2', 'job_3', 'job_4'].map((id) => spanMs(runner, id))).toEqual([50, 20, 30, 0]);
  expect(endOf(runner, 'job_1')).toMatchObject({ cause: 'EXITED_ZERO', exitCode: 0 });
  expect(endOf(runner, 'job_3')).toMatchObject({ cause: 'RUN_TIME_LIMIT', exitCode: null });
  expect(runner.runs()).toEqual([]);
});

it('ends runs in the order of their ends, whatever the order of their starts', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 200 }), async (durations) => {
      const runner = new SimulatedRunner({ speed: 1000 });
      durations.forEach((plannedS, i) => {
        runner.start(planned(`job_${i}`, plannedS));
      });
      await until(() => ends(runner).length === durations.length, 'the ends');
      const times = ends(runner).map((report) => report.atMs);
      expect(times).toEqual(times.toSorted((a, b) => a - b));
      durations.forEach((plannedS, i) => {
        expect(spanMs(runner, `job_${i}`)).toBe(plannedS);
      });
      runner.close();
    }),
    { numRuns: cases(10) },
  );
});

it('starts once, is cancelled once, and takes up what the service believes to go on', async () => {
  const runner = simulated(1);
  runner.start(planned('job_1', 1000));
  runner.start(planned('job_1', 1000));
  runner.cancel({ jobId: 'job_1', epoch: 1 });
  runner.cancel({ jobId: 'job_1', epoch: 1 });
  runner.start(planned('job_1', 1000));
  runner.cancel({ jobId: 'job_2', epoch: 1 });
  runner.start(planned('job_2', 0));
  runner.resume(planned('job_3', 0));
  runner.start(planned('job_4', 1000));
  runner.forget({ jobId: 'job_4', epoch: 1 });
  await until(() => ends(runner).length === 3, 'the ends');
  expect(runner.reports(100).map(({ seq, jobId, phase }) => `${seq} ${jobId} ${phase}`)).toEqual([
    '1 job_1 STARTED',
    '2 job_1 ENDED',
    '3 job_2 ENDED',
    '4 job_3 STARTED',
    '5 job_4 STARTED',
    '6 job_3 ENDED',
  ]);
  runner.acknowledge(5);
  expect(runner.reports(100).map((report) => report.seq)).toEqual([6]);
});

it('tells a service that has lost an end of it again, whether that starts the run or cancels it', async () => {
  const runner = simulated(1000);
  runner.start(planned('job_1', 0));
  runner.start(planned('job_2', 0));
  await until(() => ends(runner).length === 2, 'the ends');
  runner.acknowledge(4);
  for (let i = 0; i < 2; i++) {
    runner.cancel({ jobId: 'job_1', epoch: 1 });
    runner.start(planned('job_2', 0));
  }
  expect(ends(runner).map(({ jobId, cause }) => `${jobId} ${cause}`)).toEqual([
    'job_1 CANCELLED_BY_USER',
    'job_2 LOST',
  ]);
});

it.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY])('refuses the speed %s', (speed) => {
  expect(() => new SimulatedRunner({ speed })).toThrow(`speed: ${speed}; a number above 0 is accepted`);
});
