/** Jobs with data in the simulator: cases small enough to be worked out by hand. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  averagesOf,
  DEFAULT_POLICY,
  JobHistory,
  jobData,
  type Link,
  type Machine,
  type Move,
  type Policy,
  parsePolicy,
  type RunTotals,
} from '../../src/core/index.js';
import { Learning } from '../../src/simulator/data.js';
import { runSimulation, type World } from '../../src/simulator/engine.js';
import { policyNamed } from '../../src/simulator/policies.js';
import { MemorySink, type Sink } from '../../src/simulator/sink.js';
import { countedWorld } from '../../src/simulator/sites.js';
import type { SimJob } from '../../src/simulator/workload.js';
import { job } from '../core/support/drive.js';
import { simJobs } from '../simulator/support/jobs.js';
import { assertUntil, cases, IN_FULL } from '../support/seed.js';
import { totalsOf } from '../support/totals.js';

const link = (fromSiteId: number, toSiteId: number, bandwidthMbPerS: number, rttS = 0, loss = 0): Link => ({
  fromSiteId,
  toSiteId,
  bandwidthMbPerS,
  rttS,
  loss,
});

/** Two sites of one CPU; the second's is twice as fast. */
function world(given: Partial<World> = {}): World {
  const base = countedWorld([
    { id: 1, name: 'a', processors: 1 },
    { id: 2, name: 'b', processors: 1 },
  ]);
  const machines = base.machines.map((machine): Machine => ({ ...machine, benchmark: machine.siteId }));
  return { ...base, machines, ...given };
}

function run(given: World, jobs: readonly SimJob[]) {
  const times = new MemorySink(jobs.length);
  runSimulation(given, jobs, { policy: policyNamed('fcfs', 1), eventOrder: 'batch' }, [times]);
  return { starts: [...times.starts], ends: [...times.ends] };
}

describe('a run of a job with data', () => {
  const datasets = [{ id: 7, sizeMb: 1000, siteIds: [1] }];
  const links = [link(1, 2, 100, 0.5, 0.2), link(2, 1, 50)];

  it('brings sandbox and inputs, computes at the speed of the machine, returns its output, and holds its CPU all along', () => {
    const heavy = jobData({
      originSiteId: 1,
      sandboxMb: 10,
      inputs: [{ datasetId: 7 }, { sizeMb: 300, siteId: 2 }],
      outputMb: 200,
    });
    const jobs = simJobs([
      { runS: 100, siteId: 2, data: heavy },
      { runS: 10, siteId: 2 },
    ]);
    // (0.5 + 10/100)/(1 − 0.2) + 1000/100 + 0 + 100/2 + 200/50
    const ends = 0.75 + 10 + 50 + 4;
    expect(run(world({ datasets, links }), jobs)).toEqual({ starts: [0, ends], ends: [ends, ends + 5] });
  });

  it('does its own input and output at the same speed on every machine', () => {
    const jobs = simJobs([{ runS: 100, siteId: 2 }]).map((given) => ({ ...given, ioS: 30 }));
    expect(run(world(), jobs).ends).toEqual([80]);
  });

  it('takes the links and the replicas as they are when it starts', () => {
    const reads = jobData({ inputs: [{ datasetId: 7 }] });
    const jobs = simJobs([
      { runS: 2, siteId: 2, data: reads },
      { runS: 2, siteId: 2, data: reads, submittedAt: 20 },
      { runS: 2, siteId: 2, data: reads, submittedAt: 60 },
    ]);
    const changes = [
      { at: 5, link: link(1, 2, 50) },
      { at: 50, dataset: { id: 7, sizeMb: 1000, siteIds: [1, 2] } },
    ];
    // 1000/100 + 1; 1000/50 + 1; 0 + 1
    expect(run(world({ datasets, links, changes }), jobs).ends).toEqual([11, 41, 61]);
  });

  it('takes no more time where its data is', () => {
    const jobs = simJobs([
      { runS: 100, siteId: 1, data: jobData({ inputs: [{ datasetId: 7 }], outputMb: 5 }) },
    ]);
    expect(run(world({ datasets, links }), jobs).ends).toEqual([100]);
  });

  it('counts towards no limit but the computing', () => {
    const reads = jobData({ inputs: [{ datasetId: 7 }] });
    const jobs = simJobs([{ runS: 100, limitS: 40, siteId: 2, data: reads }]);
    expect(run(world({ datasets, links }), jobs).ends).toEqual([10 + 20]);
  });
});

describe('learning', () => {
  it('continues the averages that were there, scaled to the reference power', () => {
    const history = new JobHistory();
    const kinds = JSON.stringify([null, null]);
    const shown = { count: 3, turnaroundS: 100, executionS: 90, ioS: 10 };
    const before = totalsOf({ application: 'fit', userId: 1, kinds, ...shown });
    const learning = new Learning(history, 2, [before]);
    const asked = job({ id: 1, application: 'fit' });
    expect(history.ratioOf(asked).computation).toBe(0.9);
    // f = 4/2: 200 and 120 of the reference; (3·100 + 200)/4 = 125, (3·90 + 80)/4 = 87.5.
    learning.completed(asked, { turnaroundS: 100, ioS: 60, sitePower: 4 });
    expect(history.ratioOf(asked)).toMatchObject({ computation: 0.7, source: 'APPLICATION', runs: 4 });
    learning.completed(asked, { turnaroundS: 0, ioS: 0, sitePower: 4 });
    expect(history.ratioOf(asked).runs).toBe(4);
  });

  it('keeps users and kinds apart, for jobs that are only similar', () => {
    const history = new JobHistory();
    const learning = new Learning(history, 1, []);
    const runs = (userId: number, ioS: number): void =>
      learning.completed(job({ id: 1, userId, application: 'fit' }), { turnaroundS: 10, ioS, sitePower: 1 });
    runs(1, 1);
    runs(2, 9);
    const other = (userId: number) => history.ratioOf(job({ id: 2, userId, application: 'other' }));
    expect(other(1)).toMatchObject({ computation: 0.9, source: 'USER' });
    expect(other(2)).toMatchObject({ source: 'USER' });
    expect(other(2).computation).toBeCloseTo(0.1, 12);
    expect(other(3)).toMatchObject({ computation: 0.5, source: 'EVERYBODY' });
  });
});

const under = (dispatch: object): Policy =>
  parsePolicy({ ...DEFAULT_POLICY, dispatch, local: { kind: 'fcfs' } });

/** What a policy decided: moves as `job from>to queue at`, starts as `job site at`. */
function decided(given: World, jobs: readonly SimJob[], policy: Policy) {
  const moves: string[] = [];
  const starts: string[] = [];
  const sink: Sink = {
    moved: ({ jobId, from, to, queue }, at) => moves.push(`${jobId} ${from ?? 'root'}>${to} ${queue} ${at}`),
    started: (_job, _index, { jobId, siteId, start }) => starts.push(`${jobId} ${siteId} ${start}`),
  };
  const outcome = runSimulation(given, jobs, { policy, eventOrder: 'batch' }, [sink]);
  return { moves, starts, ...outcome };
}

describe('job-ratio', () => {
  it('moves an application between power and data as its runs teach', () => {
    // Four fifths of the power at site 1, all of the data at site 2, from where it takes 10 s.
    const base = countedWorld([
      { id: 1, name: 'a', processors: 8 },
      { id: 2, name: 'b', processors: 2 },
    ]);
    const given: World = {
      ...base,
      datasets: [{ id: 7, sizeMb: 200, siteIds: [2] }],
      links: [link(2, 1, 20)],
    };
    const reads = jobData({ inputs: [{ datasetId: 7 }] });
    const jobs = simJobs(
      [0, 100, 200, 300, 400].map((submittedAt) => ({
        runS: 10,
        submittedAt,
        siteId: null,
        application: 'fit',
        data: reads,
      })),
    );
    // Computation c ranks site 1 at 0.8·c + 1, site 2 at 0.2·c + (1 − c) + 1: site 1 leads from c = 5/8 on. c is 1/2, then 10/10,
    // 20/30 (a run that moves takes 20), 30/50, 40/60.
    const { starts, totals } = decided(given, jobs, under({ kind: 'job-ratio' }));
    expect(starts).toEqual(['1 2 0', '2 1 100', '3 1 200', '4 2 300', '5 1 400']);
    expect(totals).toHaveLength(1);
    expect(totals[0]).toMatchObject({ application: 'fit', count: 5 });
    expect(averagesOf(totals[0] as RunTotals)).toEqual({ turnaroundS: 16, executionS: 10, ioS: 6 });
  });
});

describe('DIANA', () => {
  /** Two sites of one CPU. */
  const sites = countedWorld([
    { id: 1, name: 'a', processors: 1 },
    { id: 2, name: 'b', processors: 1 },
  ]);
  /** Six jobs of a group; those that come to the second site end early. */
  const group = simJobs(
    [100, 10, 100, 10, 100, 10].map((runS) => ({ runS, estimateS: 100, siteId: null, groupId: 9 })),
  );
  const placed = [1, 2, 3, 4, 5, 6].map((id) => `${id} root>${2 - (id % 2)} META 0`);

  it('places by least cost, feeds local queues as they have room, and exports what waits too long', () => {
    const { moves, starts } = decided(sites, group, under({ kind: 'diana', queueLimit: 1 }));
    expect(moves).toEqual([
      ...placed,
      ...['1 1>1 LOCAL 0', '2 2>2 LOCAL 0', '3 1>1 LOCAL 0', '4 2>2 LOCAL 0'],
      // The second site goes on. The ticks at 10 and 20 find as many jobs ahead of 5 there as here, the one at 30 none.
      '6 2>2 LOCAL 10',
      '5 1>2 META 30',
      '5 2>2 LOCAL 30',
    ]);
    expect(starts).toEqual(['1 1 0', '2 2 0', '4 2 10', '6 2 20', '5 2 30', '3 1 100']);
  });

  it('leaves a job where it is where no site is congested', () => {
    const calm = under({ kind: 'diana', queueLimit: 1, congestionThreshold: 1 });
    const { starts } = decided(sites, group, calm);
    expect(starts.at(-1)).toBe('5 1 200');
  });

  it('gives back to the root what waits before a site that drains', () => {
    const draining = { ...sites.sites[0]!, state: 'DRAINING' } as const;
    const changes = [{ at: 5, site: draining }];
    const { moves } = decided({ ...sites, changes }, group, under({ kind: 'diana', queueLimit: 1 }));
    // What waits in its local queue, job 3, together with what waits before it.
    expect(moves.slice(10)).toEqual([
      '3 root>2 META 5',
      '5 root>2 META 5',
      '3 2>2 LOCAL 10',
      '5 2>2 LOCAL 20',
      '6 2>2 LOCAL 120',
    ]);
  });

  it('ends when what waits in meta-queues can never run', () => {
    const away = { ...sites.machines[0]!, available: false };
    const changes = [
      { at: 5, machine: away },
      { at: 6, machine: { ...sites.machines[1]!, available: false } },
    ];
    const { ended, waiting } = decided({ ...sites, changes }, group, under({ kind: 'diana', queueLimit: 1 }));
    expect([ended, waiting]).toEqual([2, 4]);
  });

  it('has every job in one place at a time, and moves none again within the hold-off', () => {
    const holdOffS = 30;
    const policy = under({
      kind: 'diana',
      queueLimit: 1,
      congestionThreshold: -1,
      congestionWindowS: 60,
      holdOffS,
    });
    const anyJob = fc.record({
      submittedAt: fc.integer({ min: 0, max: 100 }),
      runS: fc.integer({ min: 1, max: 60 }),
      estimateS: fc.integer({ min: 1, max: 60 }),
      userId: fc.integer({ min: 1, max: 3 }),
      groupId: fc.integer({ min: 1, max: 4 }),
    });
    let migrations = 0;
    assertUntil(
      fc.property(fc.array(anyJob, { minLength: 1, maxLength: 40 }), (given) => {
        const jobs = simJobs(
          [...given].sort((a, b) => a.submittedAt - b.submittedAt).map((one) => ({ ...one, siteId: null })),
        );
        const places = new Map<number, string>(jobs.map(({ job: { id } }) => [id, 'root']));
        const migrated = new Map<number, number>();
        const sink: Sink = {
          moved({ jobId, from, to, queue }: Move, at) {
            expect(places.get(jobId)).toBe(from === null ? 'root' : `META ${from}`);
            if (queue === 'LOCAL') expect(to).toBe(from);
            places.set(jobId, `${queue} ${to}`);
            if (from === null || from === to) return;
            migrations++;
            expect(at - (migrated.get(jobId) ?? Number.NEGATIVE_INFINITY)).toBeGreaterThanOrEqual(holdOffS);
            migrated.set(jobId, at);
          },
          started(_job, _index, { jobId, siteId }) {
            expect(places.get(jobId)).toBe(`LOCAL ${siteId}`);
            places.set(jobId, 'running');
          },
        };
        const { ended } = runSimulation(sites, jobs, { policy, eventOrder: 'batch' }, [sink]);
        expect(ended).toBe(jobs.length);
      }),
      { numRuns: cases(300) },
      () => {
        if (IN_FULL) expect(migrations).toBeGreaterThan(0);
      },
    );
  });
});
