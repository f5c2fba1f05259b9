/** Runs that are stopped for jobs of higher classes, as simulations have them. That live cycles decide alike: test/engine/simulated. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Preemption, parsePolicy, type Run, type SitePlan } from '../../src/core/index.js';
import { runSimulation } from '../../src/simulator/engine.js';
import { policyNamed, policyNames } from '../../src/simulator/policies.js';
import { simulateAndRecord } from '../../src/simulator/simulate.js';
import { ResultSink } from '../../src/simulator/sink.js';
import { countedWorld } from '../../src/simulator/sites.js';
import { summarize } from '../../src/simulator/statistics.js';
import type { SimJob } from '../../src/simulator/workload.js';
import { cases, IN_FULL } from '../support/seed.js';
import { simJobs } from './support/jobs.js';

const PREEMPTION = { graceS: 30, exemptS: 60, cancelBelow: 0 };

/** A job of 2 of 2 CPUs for 1 000 s from 0 on, and one of class 1 for 100 s that comes at 500. */
const scavengerAndUrgent = (of: Partial<SimJob> = {}): SimJob[] => {
  const [scavenger, urgent] = simJobs([
    { submittedAt: 0, cpusPerTask: 2, runS: 1000 },
    { submittedAt: 500, cpusPerTask: 2, runS: 100, preemptionClass: 1 },
  ]) as [SimJob, SimJob];
  return [{ ...scavenger, ...of }, urgent];
};

function run(jobs: readonly SimJob[], rules: Partial<typeof PREEMPTION> = {}) {
  const policy = parsePolicy({ ...policyNamed('easy', 1), preemption: { ...PREEMPTION, ...rules } });
  const results = new ResultSink(jobs.length);
  const world = countedWorld([{ id: 1, name: 'one', processors: 2 }]);
  const outcome = runSimulation(world, jobs, { policy, eventOrder: 'batch' }, [results]);
  const { starts, ends, preempted, lostCpuS } = results;
  return { starts: [...starts], ends: [...ends], preempted, lostCpuS, outcome, results };
}

describe('a run that is stopped for another', () => {
  it('goes on to the end of the grace, and its job starts over behind the other', () => {
    const { starts, ends, preempted, lostCpuS } = run(scavengerAndUrgent());
    expect(starts).toEqual([630, 530]);
    expect(ends).toEqual([1630, 630]);
    expect([preempted, lostCpuS]).toEqual([1, 2 * 530]);
  });

  it('need not compute again what its last checkpoint has', () => {
    const jobs = scavengerAndUrgent({ checkpointS: 200 });
    const { ends, lostCpuS, results } = run(jobs);
    expect(ends).toEqual([630 + 600, 630]);
    expect(lostCpuS).toBe(2 * 130);
    // The machine was in use to the last, lost work apart.
    expect(summarize(jobs, results, 2).utilization).toBeCloseTo((2 * 1230 - 260) / (2 * 1230), 9);
  });

  it('is completed if it ends by itself in the grace', () => {
    const { ends, preempted } = run(scavengerAndUrgent({ runS: 530 }));
    expect(ends).toEqual([530, 630]);
    expect(preempted).toBe(0);
  });

  it('ends for good where the policy says so, for jobs that need it too', () => {
    const [scavenger, urgent] = scavengerAndUrgent() as [SimJob, SimJob];
    const [, , dependent] = simJobs([{ runS: 1 }, { runS: 1 }, { submittedAt: 501, runS: 10 }]) as SimJob[];
    const needs = [{ expression: 'ALL', of: [{ members: [1], condition: 'OK', minDelayS: 0 }] }] as const;
    const wait = { needs, onUnmet: 'CANCEL', since: 501 } as const;
    const { ends, outcome } = run([scavenger, urgent, { ...(dependent as SimJob), wait }], {
      cancelBelow: 1,
    });
    expect(ends).toEqual([Number.NaN, 630, Number.NaN]);
    expect(outcome).toMatchObject({ ended: 1, cancelled: 2, waiting: 0 });
  });

  it('is left alone while it is young, and by its own class', () => {
    expect(run(scavengerAndUrgent(), { exemptS: 600 }).starts).toEqual([730, 630]);
    const alike = scavengerAndUrgent().map((one) => ({ ...one, job: { ...one.job, preemptionClass: 1 } }));
    expect(run(alike)).toMatchObject({ starts: [0, 1000], preempted: 0 });
  });
});

/** Keeps what is preempted, and lets only so many of these be: from then on the plans have none. */
class CalmingSink extends ResultSink {
  readonly preemptions: (Preemption & { at: number })[] = [];
  readonly begun: Run[] = [];

  constructor(
    jobs: number,
    private readonly most: number,
  ) {
    super(jobs);
  }

  planned(plan: SitePlan, at: number): void {
    plan.preemptions = plan.preemptions.slice(0, this.most - this.preemptions.length);
    for (const preemption of plan.preemptions) this.preemptions.push({ ...preemption, at });
  }

  override started(job: SimJob, index: number, run: Run): void {
    super.started(job, index, run);
    this.begun.push(run);
  }
}

/** Two jobs of higher classes, of which the second one starts where the first one, which is short, has ended, and not earlier if others stop. */
const shape = (submittedAt: number, runS: number, cpusPerTask: number, preemptionClass: number) => ({
  ...{ submittedAt, runS, cpusPerTask, preemptionClass },
  restartable: true,
});
const SHORT = [
  [
    shape(5, 12, 4, 0),
    shape(30, 10, 1, 3),
    shape(15, 9, 1, 0),
    shape(23, 1, 1, 7),
    shape(0, 27, 3, 0),
    shape(21, 16, 1, 7),
    shape(6, 1, 3, 0),
    shape(5, 10, 2, 0),
    shape(20, 1, 1, 0),
    shape(0, 1, 1, 0),
    shape(0, 1, 1, 0),
    shape(20, 14, 4, 7),
  ],
  [
    shape(0, 22, 1, 0),
    shape(7, 8, 1, 0),
    shape(14, 1, 1, 7),
    shape(7, 8, 2, 0),
    shape(0, 15, 3, 0),
    shape(5, 9, 4, 0),
    shape(4, 10, 1, 0),
    shape(0, 1, 1, 0),
    shape(0, 1, 1, 0),
    shape(14, 1, 1, 3),
    shape(0, 1, 1, 0),
  ],
];

describe.each(policyNames.map((name) => name.replace('-N', '-2')))(
  'preemption in simulations under %s',
  (name) => {
    it('stops nothing without a start that it makes earlier than in the same history without it', () => {
      const policy = parsePolicy({
        ...policyNamed(name, 1),
        preemption: { graceS: 3, exemptS: 2, cancelBelow: 0 },
      });
      let compared = 0;
      const anyJob = fc.record({
        submittedAt: fc.integer({ min: 0, max: 40 }),
        runS: fc.integer({ min: 1, max: 30 }),
        cpusPerTask: fc.integer({ min: 1, max: 4 }),
        preemptionClass: fc.constantFrom(0, 0, 3, 7),
        restartable: fc.constantFrom(true, true, true, false),
      });
      fc.assert(
        fc.property(fc.array(anyJob, { minLength: 5, maxLength: 25 }), (given) => {
          const jobs = simJobs([...given].sort((a, b) => a.submittedAt - b.submittedAt));
          const simulate = (most: number): CalmingSink => {
            const sink = new CalmingSink(jobs.length, most);
            const world = countedWorld([{ id: 1, name: 'one', processors: 8 }]);
            runSimulation(world, jobs, { policy, eventOrder: 'batch' }, [sink]);
            return sink;
          };
          const { preemptions, begun } = simulate(Infinity);
          const startOf = (jobId: number, at: number, runs: Run[]): number =>
            runs.find((run) => run.jobId === jobId && run.start >= at)?.start as number;
          preemptions.forEach(({ jobId, victims, at }, i) => {
            if (victims.length === 0) return;
            const without = simulate(i);
            expect(without.preemptions).toEqual(preemptions.slice(0, i));
            expect(startOf(jobId, at, begun)).toBeLessThan(startOf(jobId, at, without.begun));
            compared++;
          });
        }),
        { numRuns: cases(100), examples: SHORT.map((jobs): [typeof jobs] => [jobs]) },
      );
      expect(compared).toBeGreaterThan(0);
    });
  },
);

describe('switchyard simulate --scavengers', () => {
  const JOBS = IN_FULL ? 2000 : 1000;
  const simulate = async (scavengers: number | null, checkpointS: number | null, classes?: object) => {
    const { simulated } = await simulateAndRecord(
      {
        ...{
          trace: { model: 'lublin', jobs: JOBS, seed: 3 },
          processors: 64,
          policy: parsePolicy({ ...policyNamed('easy', 3), ...(classes && { classes }) }),
        },
        ...{ estimate: 'requested', missingEstimate: 'drop', overrun: 'kill', eventOrder: 'batch' },
        ...{ load: 0.9, sites: null, out: null, events: null, summary: null, groups: true },
        ...{ scavengers, checkpointS },
      },
      null,
    );
    return simulated;
  };

  it('tells what was stopped and lost, and the figures of each class', async () => {
    const [plain, stopped, keeping] = [
      await simulate(null, null),
      await simulate(0.2, null),
      await simulate(0.2, 600),
    ];
    expect(plain).toMatchObject({ preempted: 0, lostCpuHours: 0 });
    expect(plain.byClass).toBeUndefined();
    expect(stopped.preempted).toBeGreaterThan(0);
    expect(stopped.byClass?.map((of) => of.class)).toEqual([0, 1]);
    expect(stopped.byClass?.reduce((sum, { jobs }) => sum + jobs, 0)).toBe(JOBS);
    // Others wait less for it, and checkpoints save work.
    expect(stopped.byClass?.[1]?.wait.mean).toBeLessThan(plain.wait.mean);
    expect(keeping.lostCpuHours).toBeLessThan(stopped.lostCpuHours);
    expect(await simulate(0.2, 600)).toEqual(keeping);
  });

  it('are of the scavenger class of the policy, and cost others next to nothing', async () => {
    const scavenging = await simulate(0.2, null, { spare: { scavenger: true, graceS: 0 } });
    expect(scavenging.byClass?.map((of) => of.class)).toEqual([-1, 0]);
    expect(scavenging.preempted).toBeGreaterThan(0);
    const ranked = await simulate(0.2, null);
    expect(scavenging.byClass?.[0]?.jobs).toBe(ranked.byClass?.[0]?.jobs);
    const plain = await simulate(null, null);
    expect(scavenging.byClass?.[1]?.wait.mean).toBeLessThan(plain.wait.mean);
  });
});
