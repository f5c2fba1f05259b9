import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runSimulation } from '../../src/simulator/engine.js';
import { policyNamed } from '../../src/simulator/policies.js';
import { ResultSink, type Sink } from '../../src/simulator/sink.js';
import { awayIn, countedWorld, readOutages, readSites, withOutages } from '../../src/simulator/sites.js';
import { summarize } from '../../src/simulator/statistics.js';
import { simJobs } from './support/jobs.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sites-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const file = (name: string, content: string): string => {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};

describe('a file of sites', () => {
  it('says name, machines, speed and memory; as CSV and as JSON', async () => {
    const csv = file('a.csv', 'site,capacity,name,machines,speed,memoryMb\n3,8,007,4,1.5,1000\n4,2,,,,\n');
    const json = file(
      'a.json',
      JSON.stringify({
        sites: [
          { site: 3, capacity: 8, name: '007', machines: 4, speed: 1.5, memoryMb: 1000 },
          { site: 4, capacity: 2 },
        ],
      }),
    );
    const shapes = await readSites(csv);
    expect(await readSites(json)).toEqual(shapes);
    const world = countedWorld(shapes);
    expect(world.sites.map(({ id, name }) => [id, name])).toEqual([
      [3, '007'],
      [4, 'site-4'],
    ]);
    expect(
      world.machines.map(({ siteId, cpus, benchmark, memoryMb }) => [siteId, cpus, benchmark, memoryMb]),
    ).toEqual([...Array(4).fill([3, 2, 1.5, 1000]), [4, 2, 1, 0]]);
  });

  it('may have machines of several kinds, as JSON', async () => {
    const machines = [
      { count: 2, cpus: 4, speed: 2 },
      { count: 1, cpus: 16, memoryMb: 64_000 },
    ];
    const [shape] = await readSites(file('kinds.json', JSON.stringify({ sites: [{ site: 1, machines }] })));
    expect(shape?.processors).toBe(24);
    expect(countedWorld([shape!]).machines.map(({ cpus, benchmark }) => [cpus, benchmark])).toEqual([
      [4, 2],
      [4, 2],
      [16, 1],
    ]);
  });

  it('may be leaves of a tree of schedulers', async () => {
    const shapes = await readSites(
      file('tree.csv', 'site,capacity,scheduler\n1,1,west/1\n2,1,west/1\n3,1,\n4,1,west/2\n'),
    );
    const tree = {
      sites: shapes.map(({ id, processors, scheduler }) => ({ site: id, capacity: processors, scheduler })),
    };
    expect(await readSites(file('tree.json', JSON.stringify(tree)))).toEqual(shapes);
    const world = countedWorld(shapes);
    expect(world.schedulers).toEqual([
      { id: 1, name: 'west', parentId: null },
      { id: 2, name: 'west/1', parentId: 1 },
      { id: 3, name: 'west/2', parentId: 1 },
    ]);
    expect(world.sites.map(({ schedulerId }) => schedulerId)).toEqual([2, 2, null, 3]);
    const jobs = simJobs(Array.from({ length: 8 }, () => ({ runS: 10, siteId: null })));
    const paths = new Map<number, unknown>();
    const moved: Sink['moved'] = ({ jobId, explanation }) =>
      paths.set(jobId, [...((paths.get(jobId) as unknown[]) ?? []), ...(explanation.path ?? [])]);
    const options = { policy: policyNamed('grid-tree+fcfs', 1), eventOrder: 'batch' } as const;
    expect(runSimulation(world, jobs, options, [{ moved }])).toMatchObject({ ended: 8, waiting: 0 });
    expect([...paths.values()]).toContainEqual([
      { schedulerId: 1, reason: 'BRANCH_SHARE' },
      { schedulerId: 2, reason: 'BRANCH_SHARE' },
      { siteId: 1, reason: 'BRANCH_SHARE' },
      { siteId: 1, reason: 'CLAIMED' },
    ]);
  });

  it.each([
    [
      'site,capacity,scheduler\n1,4,west//1\n',
      'bad, line 2: scheduler: "west//1" is not accepted; accepted: 1 to 16 names with / between, each of 1 to 200 characters',
    ],
    [`site,capacity,scheduler\n1,4,${'a/'.repeat(16)}a\n`, 'bad, line 2: scheduler: "a/a/'],
    [
      'site,capacity,colour\n1,4,red\n',
      'bad, line 1: column "colour" is not accepted; accepted: each once of site, ',
    ],
    ['site,capacity,site\n1,4,2\n', 'bad, line 1: column "site" is not accepted'],
    ['site,size\n1,4\n', 'bad, line 1: column capacity is missing'],
    ['', 'bad, line 1: column site is missing'],
    ['site,capacity\n', 'bad: nothing below its first line'],
    [
      'site,capacity\n1,4\n2,many\n',
      'bad, line 3: capacity: "many" is not accepted; accepted: a whole number from 1 to 10000000',
    ],
    ['site,capacity\n1,4.5\n', 'bad, line 2: capacity: 4.5 is not accepted; accepted: a whole number'],
    ['site,capacity\n1,0x10\n', 'bad, line 2: capacity: "0x10"'],
    ['site,capacity\n1,1e3\n', 'bad, line 2: capacity: "1e3"'],
    ['site,capacity\n1,99999999999999999999\n', 'bad, line 2: capacity: 100000000000000000000'],
    ['site,capacity\n1,\n', 'bad, line 2: capacity is missing'],
    ['site,capacity\n1,4,5\n', 'bad, line 2: 3 cells; accepted: 2'],
    ['site,capacity\n1,4\n1,5\n', 'bad: site 1 is given twice'],
    ['site,capacity,machines\n1,4,3\n', 'bad, line 2: machines is 3; accepted: a divisor of the capacity, 4'],
    [
      'site,capacity,speed\n1,4,0\n',
      'bad, line 2: speed: 0 is not accepted; accepted: a number from 0.001 to 1000',
    ],
    ['{"sites": [', 'bad: '],
    ['{"sites": []}', 'bad: sites: [] is not accepted; accepted: at least one site'],
    [
      '{"sites": [{"site": 1, "capacity": "4"}]}',
      'bad: sites[0].capacity: "4" is not accepted; accepted: a whole number',
    ],
    [
      '{"sites": [{"site": 1, "cpus": 4}]}',
      'bad: sites[0].cpus: unknown field; accepted: site, name, capacity',
    ],
    ['{"sites": [{"site": 1}]}', 'bad: sites[0].capacity is missing; accepted: a whole number'],
    [
      '{"sites": [{"site": 1, "capacity": 4, "machines": [{"count": 1, "cpus": 4}]}]}',
      'bad: sites[0].capacity is 4; accepted: no value together with a list of machines',
    ],
  ])('refuses %j', async (content, message) => {
    await expect(readSites(file('bad', content))).rejects.toThrow(message);
  });
});

describe('what files say of machines', () => {
  const options = { policy: policyNamed('easy', 1), eventOrder: 'batch' } as const;

  it('makes jobs faster, and keeps them from machines without the memory', () => {
    const world = countedWorld([
      {
        id: 1,
        name: 'one',
        processors: 2,
        groups: [
          { count: 1, cpus: 1, speed: 4, memoryMb: 1000 },
          { count: 1, cpus: 1, speed: 1, memoryMb: 4000 },
        ],
      },
    ]);
    const jobs = simJobs([
      { runS: 100, memoryMbPerTask: 3000 },
      { runS: 100, memoryMbPerTask: 500 },
      { runS: 100, memoryMbPerTask: 9000 },
    ]);
    const results = new ResultSink(3);
    const outcome = runSimulation(world, jobs, options, [results]);
    expect([...results.ends]).toEqual([100, 25, Number.NaN]);
    expect(outcome.waiting).toBe(1);
  });

  it('takes machines away for a while: what runs there is lost and starts over, or finishes', async () => {
    const outages = await readOutages(
      file('outages.csv', 'site,machine,from,to,runs\n1,1,10,50,lost\n1,1,40,60,finish\n1,2,10,30,finish\n'),
    );
    const world = withOutages(
      countedWorld([{ id: 1, name: 'one', processors: 2, machines: 2, memoryMb: 1 }]),
      outages,
    );
    const jobs = simJobs([{ runS: 20 }, { runS: 25 }, { runS: 5, submittedAt: 11 }]);
    const results = new ResultSink(3);
    runSimulation(world, jobs, options, [results]);
    // Job 1 loses ten seconds; machine 2 is back first, and takes it. Machine 1 is away until the later of its ends.
    expect([...results.starts]).toEqual([30, 0, 50]);
    expect([...results.ends]).toEqual([50, 25, 55]);
    expect(results.lost).toBe(1);
    // Machine 1 is gone from 10 on, beyond the last end; machine 2 may finish what it runs, and counts.
    expect(awayIn(world)).toEqual([expect.objectContaining({ siteId: 1, cpus: 1, fromS: 10, toS: 60 })]);
    const { utilization } = summarize(jobs, results, 2, { away: awayIn(world) });
    expect(utilization).toBeCloseTo((20 + 25 + 5) / (2 * 55 - 45), 9);
  });

  it.each([
    ['site,from\n1,2\n', 'line 1: column to is missing'],
    ['site,from,to\n1,5,5\n', 'line 2: to is 5; accepted: a time later than 5'],
    ['site,from,to,runs\n1,5,6,stay\n', 'line 2: runs: "stay" is not accepted; accepted: lost or finish'],
    ['site,from,to\n2,5,6\n', 'there is no site 2'],
    ['site,from,to,machine\n1,5,6,2\n', 'machine 2 of site 1; accepted: 1 to 1'],
  ])('refuses outages %j', async (content, message) => {
    const world = countedWorld([{ id: 1, name: 'one', processors: 2 }]);
    const read = async () => withOutages(world, await readOutages(file('outages', content)));
    await expect(read()).rejects.toThrow(message);
  });
});
