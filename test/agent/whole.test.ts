/** The whole way: jobs through the public API, the engine and Postgres, to real processes and back. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, expect, it } from 'vitest';
import { Agent } from '../../src/agent/agent.js';
import { OutputKeeper, ProcessRunner, StagingRunner } from '../../src/agent/index.js';
import { measureHost } from '../../src/agent/measure.js';
import { Client } from '../../src/client/index.js';
import { withApi } from '../api/support/api.js';
import { withEngine } from '../api/support/engine.js';
import { quietLog } from '../engine/support.js';
import { openRunner, PATIENCE_MS } from './support.js';

const api = withApi();
withEngine(api);
let site = '';
let agentKey = '';

beforeAll(async () => {
  const { registerSite } = await api.must<{ registerSite: { id: string } }>(
    'mutation { registerSite(input: { name: "here" }) { id } }',
  );
  site = registerSite.id;
  await api.must(
    'mutation ($site: ID!) { registerMachine(input: { site: $site, name: "m", cpus: 16, memoryMb: 1000 }) { id } }',
    {
      site,
    },
  );
  agentKey = (await api.user('AGENT', 'agent', site)).key;
});

interface JobAnswer {
  id: string;
  state: string;
  cause: string | null;
  exitCode: number | null;
  epoch: number;
}

async function submit(jobs: object[]): Promise<string[]> {
  const { submitJobs } = await api.must<{ submitJobs: { jobIds: string[]; errors: unknown[] } }>(
    'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { jobIds errors { message } } }',
    { jobs },
  );
  expect(submitJobs.errors).toEqual([]);
  return submitJobs.jobIds;
}

async function jobsWhen(ids: string[], ready: (jobs: JobAnswer[]) => boolean): Promise<JobAnswer[]> {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const { jobs } = await api.must<{ jobs: { nodes: JobAnswer[] } }>(
      'query ($ids: [ID!]!) { jobs(filter: { ids: $ids }, first: 1000) { nodes { id state cause exitCode epoch } } }',
      { ids },
    );
    if (ready(jobs.nodes)) return jobs.nodes;
    if (Date.now() > deadline)
      throw new Error(`waited in vain; the jobs are ${JSON.stringify(jobs.nodes.slice(0, 5))}…`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const ended = (jobs: JobAnswer[]): boolean =>
  jobs.every(({ state }) => ['COMPLETED', 'FAILED', 'CANCELLED'].includes(state));

const serving = async () => ({
  identity: 'whole',
  host: 'host',
  // More than there may be: the processes sleep.
  machines: [
    { name: 'm', measured: { ...(await measureHost()), cpus: 16, os: 'linux', architecture: 'x64' } },
  ],
});

it('500 real processes: each job ends as its process did', async () => {
  const agent = new Agent({
    url: api.url,
    key: agentKey,
    site: 'here',
    runner: await openRunner(),
    ...(await serving()),
    log: quietLog,
  });
  agent.start();
  const ids = await submit(
    Array.from({ length: 500 }, (_, i) => ({
      command: 'sh',
      arguments: ['-c', `echo ${i}; exit ${i % 4}`],
      estimateS: 1,
    })),
  );
  const jobs = await jobsWhen(ids, ended);
  expect(jobs).toHaveLength(500);
  const byId = new Map(jobs.map((job) => [job.id, job]));
  for (const [i, id] of ids.entries()) {
    const exitCode = i % 4;
    const [state, cause] = exitCode === 0 ? ['COMPLETED', 'EXITED_ZERO'] : ['FAILED', 'EXITED_NONZERO'];
    expect(byId.get(id)).toEqual({ id, state, cause, exitCode, epoch: 1 });
  }
  const { job } = await api.must<{ job: object }>(
    'query ($id: ID!) { job(id: $id) { output { text bytes truncated } runs { epoch exitCode cpuS } } }',
    { id: ids[499] },
  );
  expect(job).toEqual({
    output: { text: '499\n', bytes: 4, truncated: false },
    runs: [{ epoch: 1, exitCode: 3, cpuS: expect.any(Number) }],
  });

  // Cancelled while it runs, and one that there is no program for.
  const [sleeper, missing] = await submit([
    { command: 'sleep', arguments: ['1000'] },
    { command: 'no-such-command' },
  ]);
  await jobsWhen([sleeper!], ([running]) => running?.state === 'RUNNING');
  await api.must('mutation ($id: ID!) { cancelJobs(selection: { ids: [$id] }) { jobIds } }', { id: sleeper });
  const [cancelled, failed] = await jobsWhen([sleeper!, missing!], ended);
  expect(cancelled).toMatchObject({ state: 'CANCELLED', cause: 'CANCELLED_BY_OPERATOR' });
  expect(failed).toMatchObject({ state: 'FAILED', cause: 'LAUNCH_FAILED', exitCode: null });
  await agent.stop();
});

it('inputs from another site are brought to a run, shown beside what was predicted, and at hand for the next', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'switchyard-data-'));
  const file = join(dir, 'far.bin');
  writeFileSync(file, Buffer.alloc(3e6, 'switchyard'));
  await api.must('mutation { registerSite(input: { name: "far" }) { id } }');
  const { sites } = await api.must<{ sites: { nodes: { id: string; name: string }[] } }>(
    '{ sites { nodes { id name } } }',
  );
  const far = sites.nodes.find(({ name }) => name === 'far')!.id;
  const register = async (name: string, location: string): Promise<string> => {
    const input = { name, sizeMb: 3, locations: [{ site: far, location }] };
    const { createDataset } = await api.must<{ createDataset: { id: string } }>(
      'mutation ($input: DatasetInput!) { createDataset(input: $input) { id } }',
      { input },
    );
    return createDataset.id;
  };
  const there = await register('far set', pathToFileURL(file).href);
  const gone = await register('gone', 'file:///nowhere/at/all');
  const options = { site: 'here', maxBytes: 1e8, command: null, rateMbPerS: 6, retryMs: 1 };
  const runner = new StagingRunner(await ProcessRunner.open({ stateDir: join(dir, 'agent') }), dir, options);
  const access = { url: api.url, key: agentKey, site: 'here', log: quietLog };
  const agent = new Agent({ ...access, ...(await serving()), runner, staging: runner });
  agent.start();
  const reader = (dataset: string) => ({
    command: 'sh',
    arguments: ['-c', 'wc -c <"far set"'],
    inputs: [{ dataset }],
    estimateS: 1,
  });
  interface Read {
    job: { runs: { staging: { endedAt: string | null; movedMb: number; error: string | null } | null }[] };
  }
  const stagingOf = async (id: string) => {
    const query =
      'query ($id: ID!) { job(id: $id) { runs { staging { endedAt totalMb movedMb predictedS measuredS error } } } }';
    for (const deadline = Date.now() + PATIENCE_MS; ; ) {
      const { job } = await api.must<Read>(query, { id });
      const staging = job.runs.at(-1)?.staging;
      if (staging?.endedAt) return staging;
      if (Date.now() > deadline) throw new Error('waited in vain for the report of staging');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const [first] = await submit([reader(there)]);
  const [done] = await jobsWhen([first!], ended);
  expect(done).toMatchObject({ cause: 'EXITED_ZERO', epoch: 1 });
  // Nothing was known of the link: 10 MB/s.
  expect(await stagingOf(first!)).toMatchObject({
    ...{ totalMb: 3, movedMb: 3, error: null },
    ...{ predictedS: expect.closeTo(0.3), measuredS: expect.any(Number) },
  });
  const [second, third] = await submit([reader(there), reader(gone)]);
  const [again, failed] = await jobsWhen([second!, third!], ended);
  expect(again).toMatchObject({ cause: 'EXITED_ZERO' });
  expect(await stagingOf(second!)).toMatchObject({ totalMb: 3, movedMb: 0 });
  // What is reported later comes after the link.
  const { links } = await api.must<{ links: { nodes: { source: string; bandwidthMbPerS: number }[] } }>(
    '{ links { nodes { from { name } to { name } source bandwidthMbPerS } } }',
  );
  expect(links.nodes).toMatchObject([{ from: { name: 'far' }, to: { name: 'here' }, source: 'AGENT' }]);
  expect(links.nodes[0]!.bandwidthMbPerS).toBeLessThanOrEqual(6.1);
  expect(failed).toMatchObject({ state: 'FAILED', cause: 'STAGING_FAILED', epoch: 3 });
  expect((await stagingOf(third!)).error).toMatch(/^input gone: from far: ENOENT/);
  await agent.stop();
  runner.close();
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
});

it('files that a job names are there when it has ended, and a dataset that it makes is read by the next', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'switchyard-outputs-'));
  const keeper = new OutputKeeper({
    client: new Client({ url: api.url, key: agentKey }),
    datasetsDir: join(dir, 'datasets'),
    datasetsBytes: null,
  });
  const runner = new StagingRunner(
    await ProcessRunner.open({
      stateDir: join(dir, 'agent'),
      keep: (run, signal) => keeper.keep(run, signal),
    }),
    join(dir, 'agent', 'data'),
    { site: 'here', maxBytes: 1e8, command: null, rateMbPerS: null },
  );
  const access = { url: api.url, key: agentKey, site: 'here', log: quietLog };
  const agent = new Agent({ ...access, ...(await serving()), runner, staging: runner, keeper });
  agent.start();
  const shell = (text: string, more: object) => ({
    command: 'sh',
    arguments: ['-c', text],
    estimateS: 1,
    ...more,
  });
  const outputs = [
    { path: '*.txt' },
    { path: 'sub' },
    { path: 'model', keep: 'DATASET', dataset: 'the model' },
  ];
  const [made, lacking] = await submit([
    shell('mkdir sub; echo a > a.txt; echo b > sub/b; echo model > model', { outputs }),
    shell('true', { outputs: [{ path: 'nothing' }] }),
  ]);
  const [done, failed] = await jobsWhen([made!, lacking!], ended);
  expect(done).toMatchObject({ state: 'COMPLETED', cause: 'EXITED_ZERO', epoch: 1 });
  expect(failed).toMatchObject({ state: 'FAILED', cause: 'OUTPUTS_FAILED', exitCode: 0 });
  const { job } = await api.must<{ job: { files: { path: string; keptAt: string | null }[] } }>(
    'query ($id: ID!) { job(id: $id) { files { path bytes keptAt } } }',
    { id: made },
  );
  expect(job.files).toEqual([
    { path: 'a.txt', bytes: 2, keptAt: expect.any(String) },
    { path: 'sub/b', bytes: 2, keptAt: expect.any(String) },
  ]);
  const headers = { authorization: `Bearer ${api.adminKey}` };
  expect(await (await fetch(`${api.origin}/jobs/${made}/files/sub/b`, { headers })).text()).toBe('b\n');
  const { datasets } = await api.must<{ datasets: { nodes: { id: string; name: string; job: object }[] } }>(
    '{ datasets(first: 10) { nodes { id name job { id } } } }',
  );
  const model = datasets.nodes.find(({ name }) => name === 'the model');
  expect(model?.job).toEqual({ id: made });
  const [reader] = await submit([shell('grep -q model "the model"', { inputs: [{ dataset: model?.id }] })]);
  expect((await jobsWhen([reader!], ended))[0]).toMatchObject({ cause: 'EXITED_ZERO' });
  await agent.stop();
  runner.close();
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
});
