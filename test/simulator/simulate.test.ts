import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ROOT } from '../../src/core/scheduler.js';
import { fetchTrace, listTraces } from '../../src/simulator/fetch.js';
import { policyNamed } from '../../src/simulator/policies.js';
import { type SimulateOptions, simulateAndRecord } from '../../src/simulator/simulate.js';
import { readSites } from '../../src/simulator/sites.js';
import { parseTrace } from '../../src/simulator/trace.js';
import { TraceSurvey } from '../../src/simulator/trace-info.js';

/** id submit run processors requestedTime partition */
const line = (
  id: number,
  submit: number,
  run: number,
  processors: number,
  requested: number,
  partition = 1,
) =>
  `${id} ${submit} -1 ${run} ${processors} -1 -1 ${processors} ${requested} -1 1 1 1 1 1 ${partition} -1 -1`;
const TRACE = [
  '; MaxProcs: 4',
  line(1, 0, 100, 4, 100),
  line(2, 10, 50, 2, 40),
  line(3, 10, 20, 5, 20),
  line(4, 20, 20, 1, -1),
  line(5, 30, 0, 1, 20),
  'nonsense',
  line(6, 40, 20, 2, 20, 2),
].join('\n');

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'simulate-'));
  writeFileSync(join(folder, 'small.swf'), TRACE);
});
afterAll(() => rmSync(folder, { recursive: true }));

const options = (changes: Partial<SimulateOptions> = {}): SimulateOptions => ({
  trace: join(folder, 'small.swf'),
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
  ...changes,
});

const simulate = async (given: SimulateOptions) => (await simulateAndRecord(given, null)).simulated;

describe('simulate', () => {
  it('cleans, runs, sums up and writes', async () => {
    const out = join(folder, 'jobs.csv');
    const summary = join(folder, 'summary.json');
    const result = await simulate(options({ out, summary }));
    expect(result).toMatchObject({
      trace: 'small.swf',
      processors: 4,
      jobs: 3,
      makespan: 140,
      killed: 1,
      waiting: 0,
      dropped: { noSite: 0, tooWide: 1, noWidth: 0, noRunTime: 1, noEstimate: 1, negativeSubmit: 0 },
      malformed: { count: 1, first: [{ line: 7 }] },
    });
    expect(result.wait).toEqual({ mean: 50, median: 60, p95: 87, max: 90 });
    expect(JSON.parse(readFileSync(summary, 'utf8'))).toEqual(result);
    expect(readFileSync(out, 'utf8').trim().split('\n')).toHaveLength(4);
  });

  it('gives the same bytes again', async () => {
    const [a, b] = [join(folder, 'a.csv'), join(folder, 'b.csv')];
    await simulate(options({ out: a, missingEstimate: 'run' }));
    await simulate(options({ out: b, missingEstimate: 'run' }));
    expect(readFileSync(a)).toEqual(readFileSync(b));
  });

  it('takes run times for missing estimates, actual times as estimates, and lets jobs run on', async () => {
    expect((await simulate(options({ missingEstimate: 'run' }))).jobs).toBe(4);
    expect((await simulate(options({ overrun: 'continue' }))).killed).toBe(0);
    expect((await simulate(options({ overrun: 'continue' }))).makespan).toBe(150);
    expect((await simulate(options({ estimate: 'actual' }))).jobs).toBe(3);
  });

  it('runs each job at the site of its partition', async () => {
    const sites = join(folder, 'sites.csv.gz');
    writeFileSync(sites, gzipSync('site,name,capacity\n1,one,4\n2,two,2\n'));
    const events = join(folder, 'events.jsonl');
    const result = await simulate(options({ sites, events }));
    expect(result).toMatchObject({ jobs: 3, sites: 2, processors: 6 });
    const starts = readFileSync(events, 'utf8')
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text))
      .filter(({ event }) => event === 'START');
    expect(starts.map(({ job, site, at }) => [job, site, at])).toEqual([
      [1, 1, 0],
      [6, 2, 40],
      [2, 1, 100],
    ]);
  });

  it('submits to the root, which holds jobs and sends them to sites; a processor is a task where there are machines', async () => {
    const sites = join(folder, 'shared.csv');
    writeFileSync(sites, 'site,capacity,machines,maxTasks,maxRunningJobs\n7,2,2,2,3\n9,4,1,,\n');
    const events = join(folder, 'shared.jsonl');
    const policy = policyNamed('queues-ff-0+fcfs', 1);
    const result = await simulate(options({ sites, events, policy, enter: ROOT, missingEstimate: 'run' }));
    expect(result).toMatchObject({ jobs: 4, sites: 2, dispatch: { kind: 'queues', order: 'FF' } });
    const told = readFileSync(events, 'utf8')
      .trim()
      .split('\n')
      .map((text) => JSON.parse(text))
      .map(({ event, job, site, at }) => [event, job, site, at]);
    // Job 1 takes the four processors of site 9. At site 7 job 4 halves the speed of one task of job 2, and leaves job 6 one
    // open machine of the two that it needs.
    expect(told).toEqual([
      ['START', 1, 9, 0],
      ['START', 2, 7, 10],
      ['START', 4, 7, 20],
      ['END', 4, 7, 60],
      ['START', 6, 7, 60],
      ['END', 2, 7, 80],
      ['END', 6, 7, 90],
      ['END', 1, 9, 100],
    ]);
    // 400 + 80 + 20 + 40 CPU-seconds of 6 CPUs in 100 s: the time on shared machines is no use of them.
    expect(result.utilization).toBeCloseTo(540 / 600, 9);
  });

  it('stretches the times to a load', async () => {
    // 400 + 80 + 40 CPU-seconds on 4 CPUs in 40 s are a load of 3.25.
    const half = await simulate(options({ load: 1.625, events: join(folder, 'half.jsonl') }));
    expect(half.jobs).toBe(3);
    expect(readFileSync(join(folder, 'half.jsonl'), 'utf8')).toContain('"event":"START","at":100,"job":2');
    expect(half.wait.max).toBe(80);
  });

  it('says what is wrong with its input', async () => {
    writeFileSync(join(folder, 'bare.swf'), line(1, 0, 1, 1, 1));
    await expect(simulate(options({ trace: join(folder, 'bare.swf') }))).rejects.toThrow('MaxProcs');
    await expect(simulate(options({ trace: join(folder, 'absent.swf') }))).rejects.toThrow('ENOENT');
    const sites = join(folder, 'bad.csv');
    writeFileSync(sites, 'site,capacity\n1,4\n2,many\n');
    await expect(readSites(sites)).rejects.toThrow(
      'line 3: capacity: "many" is not accepted; accepted: a whole number',
    );
    writeFileSync(sites, 'site,size\n1,4\n');
    await expect(readSites(sites)).rejects.toThrow('column capacity is missing');
    writeFileSync(sites, 'site,capacity\n1,4\n1,5\n');
    await expect(readSites(sites)).rejects.toThrow('site 1 is given twice');
    writeFileSync(sites, 'site,capacity,machines\n1,4,3\n');
    await expect(readSites(sites)).rejects.toThrow('line 2: machines is 3; accepted: a divisor of');
    expect(() => policyNamed('best', 1)).toThrow('"best" is not accepted; accepted: fcfs, ');
    expect(() => policyNamed('queues-lifo-3+fcfs', 1)).toThrow('before it, with a +, queues-fcfs-N');
  });
});

describe('trace info', () => {
  it('looks through a trace', () => {
    const trace = parseTrace(TRACE);
    const survey = new TraceSurvey();
    for (const job of trace.jobs) survey.take(job);
    expect(survey.info(trace)).toMatchObject({
      header: { MaxProcs: '4' },
      jobs: 6,
      malformedLines: 1,
      users: 1,
      partitions: 2,
      spanS: 40,
      withoutRequestedTime: 1,
      overran: 1,
      processors: { max: 5 },
      interArrival: { mean: 8, max: 10 },
    });
  });
});

describe('trace fetch', () => {
  const server = createServer((request, response) => {
    if (request.url === '/logs-list')
      response.end('l_a/A-SP2-1.swf.gz\nl_a/A-SP3-1.swf.gz\nl_b/B-1.swf.gz\n');
    else if (request.url === '/l_b/B-1.swf.gz') response.end(gzipSync(TRACE));
    else response.writeHead(404).end();
  });
  let archive: string;
  beforeAll(async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    archive = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  it('finds a trace by the beginning of its name and downloads it', async () => {
    expect([...(await listTraces(archive)).keys()]).toEqual(['A-SP2-1', 'A-SP3-1', 'B-1']);
    const path = await fetchTrace('b', folder, archive);
    expect(path).toBe(join(folder, 'B-1.swf.gz'));
    expect((await simulate(options({ trace: path }))).jobs).toBe(3);
    await expect(fetchTrace('b-1', folder, archive)).rejects.toThrow('already exists');
  });

  it('names what there is when the name does not do, and leaves nothing behind', async () => {
    await expect(fetchTrace('A-', folder, archive)).rejects.toThrow('accepted: one of A-SP2-1, A-SP3-1');
    await expect(fetchTrace('C', folder, archive)).rejects.toThrow(
      '"C" is not in the archive; accepted: one of A-SP2-1',
    );
    await expect(fetchTrace('A-SP2', folder, archive)).rejects.toThrow('returned 404');
    expect(existsSync(join(folder, 'A-SP2-1.swf.gz'))).toBe(false);
  });

  it('says so when the archive cannot be reached', async () => {
    await expect(fetchTrace('B', folder, 'http://127.0.0.1:9/')).rejects.toThrow('needs internet access');
  });
});
