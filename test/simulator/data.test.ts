/** Jobs with data in the simulator: cases small enough to be worked out by hand. */
import { describe, expect, it } from 'vitest';
import { type JobData, JobHistory, type Link, type Machine } from '../../src/core/index.js';
import { Learning } from '../../src/simulator/data.js';
import { runSimulation, type World } from '../../src/simulator/engine.js';
import { policyNamed } from '../../src/simulator/policies.js';
import { MemorySink } from '../../src/simulator/sink.js';
import { countedWorld } from '../../src/simulator/sites.js';
import type { SimJob } from '../../src/simulator/workload.js';
import { job } from '../core/support/drive.js';
import { simJobs } from './support/jobs.js';

const link = (fromSiteId: number, toSiteId: number, bandwidthMbS: number, rttS = 0, loss = 0): Link => ({
  fromSiteId,
  toSiteId,
  bandwidthMbS,
  rttS,
  loss,
});
const data = (given: Partial<JobData>): JobData => ({
  originSiteId: null,
  sandboxMb: 0,
  inputs: [],
  outputMb: 0,
  computationShare: null,
  ...given,
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
    const heavy = data({
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
    const reads = data({ inputs: [{ datasetId: 7 }] });
    const jobs = simJobs([
      { runS: 2, siteId: 2, data: reads },
      { runS: 2, siteId: 2, data: reads, submit: 20 },
      { runS: 2, siteId: 2, data: reads, submit: 60 },
    ]);
    const changes = [
      { at: 5, link: link(1, 2, 50) },
      { at: 50, dataset: { id: 7, sizeMb: 1000, siteIds: [1, 2] } },
    ];
    // 1000/100 + 1; 1000/50 + 1; 0 + 1
    expect(run(world({ datasets, links, changes }), jobs).ends).toEqual([11, 41, 61]);
  });

  it('takes no more time where its data is', () => {
    const jobs = simJobs([{ runS: 100, siteId: 1, data: data({ inputs: [{ datasetId: 7 }], outputMb: 5 }) }]);
    expect(run(world({ datasets, links }), jobs).ends).toEqual([100]);
  });

  it('counts towards no limit but the computing', () => {
    const reads = data({ inputs: [{ datasetId: 7 }] });
    const jobs = simJobs([{ runS: 100, limitS: 40, siteId: 2, data: reads }]);
    expect(run(world({ datasets, links }), jobs).ends).toEqual([10 + 20]);
  });
});

describe('learning', () => {
  it('continues the averages that were there, scaled to the reference power', () => {
    const history = new JobHistory();
    const kinds = JSON.stringify([null, null]);
    const before = {
      application: 'fit',
      userId: 1,
      kinds,
      count: 3,
      turnaroundS: 100,
      executionS: 90,
      ioS: 10,
    };
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
