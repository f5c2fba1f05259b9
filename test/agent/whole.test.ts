/** The whole way: jobs through the public API, the engine and Postgres, to real processes and back. */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeAll, expect, it } from 'vitest';
import { Agent } from '../../src/agent/agent.js';
import { OutputKeeper, ProcessRunner, StagingRunner } from '../../src/agent/index.js';
import { measureHost } from '../../src/agent/measure.js';
import { Isolation, type IsolationMode } from '../../src/agent/process/isolation.js';
import { processAgent } from '../../src/cli/agents.js';
import { Client } from '../../src/client/index.js';
import { loadConfig } from '../../src/platform/config.js';
import type { Logger } from '../../src/platform/log.js';
import { withApi } from '../api/support/api.js';
import { withEngine } from '../api/support/engine.js';
import { quietLog, until } from '../engine/support.js';
import { PATIENCE_MS } from '../support/patience.js';
import { openRunner } from './support.js';

const api = withApi();
withEngine(api);
let site = '';
let agentKey = '';

beforeAll(async () => {
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "here" }) { site { id } } }',
  );
  site = createSite.site.id;
  await api.must(
    'mutation ($site: ID!) { createMachine(input: { siteId: $site, name: "m", cpus: 16, memoryMb: 1000 }) { machine { id } } }',
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
    // The service may not know yet of what has only just been registered.
    'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs, allowUnfit: true }) { jobIds errors { message } } }',
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

interface StagedRun {
  site: { id: string };
  staging: { endedAt: string | null; movedMb: number; error: string | null } | null;
}

/** The latest run of a job, once what was brought to it is known. */
async function stagedRun(id: string): Promise<StagedRun & { staging: NonNullable<StagedRun['staging']> }> {
  const query =
    'query ($id: ID!) { job(id: $id) { runs { site { id } staging { endedAt totalMb movedMb predictedS measuredS error } } } }';
  for (const deadline = Date.now() + PATIENCE_MS; ; ) {
    const { job } = await api.must<{ job: { runs: StagedRun[] } }>(query, { id });
    const run = job.runs.at(-1);
    if (run?.staging?.endedAt) return { ...run, staging: run.staging };
    if (Date.now() > deadline) throw new Error('waited in vain for the report of staging');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
const stagingOf = async (id: string) => (await stagedRun(id)).staging;

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

const isRoot = process.getuid?.() === 0;
if (!isRoot) it.skip('a user’s job as their account: it takes an agent that is root');

it.runIf(isRoot)(
  'a user’s job runs as their account; what jobs could reach is said at the start',
  async () => {
    const dir = mkdtempSync(join(tmpdir(), 'switchyard-accounts-'));
    chmodSync(dir, 0o755);
    writeFileSync(join(dir, 'accounts'), 'ada = nobody # of every system\n');
    const config = loadConfig({
      ...{ SWITCHYARD_HOME: join(dir, 'home'), AGENT_STATE_DIR: join(dir, 'agent') },
      ...{ SWITCHYARD_ISOLATION: 'user', AGENT_ACCOUNTS: join(dir, 'accounts'), AGENT_CGROUPS: 'false' },
      ...{
        DATABASE_URL: 'postgres://switchyard:its-password@db/switchyard',
        REDIS_URL: 'redis://queues:6379',
      },
    });
    mkdirSync(config.home);
    writeFileSync(join(config.home, 'admin.key'), 'for nobody else', { mode: 0o600 });
    const said: string[] = [];
    const keep = (_: object, text: string): void => void said.push(text);
    // pino's own methods return nothing; these are called in the same way.
    const log = { ...quietLog, error: keep, info: keep } as unknown as Logger;
    const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
      'mutation { createSite(input: { name: "accounts" }) { site { id } } }',
    );
    const { key } = await api.user('AGENT', 'agent-of-accounts', createSite.site.id);
    const agent = processAgent(config, log, () => ({ url: api.url, key, site: 'accounts' }));
    await agent.start?.();
    expect(said).toContainEqual(expect.stringMatching(/^isolation of jobs: user, accounts of users/));
    const exposed = said.filter((text) => text.includes('can read'));
    expect(exposed).toEqual([
      'Jobs run with isolation `user` and can read the server at REDIS_URL, which has no password. Stronger isolation is not available: control groups: switched off. See SECURITY.md.',
    ]);
    // What runs have of their own tells whose a program is; with `none` there is no such thing.
    const hides = (mode: IsolationMode): boolean =>
      Isolation.open({ mode, cgroups: false }, join(dir, mode), mode).canHide;
    expect([hides('none'), hides('user')]).toEqual([true, false]);
    const [ada, bob] = [await api.user('USER', 'ada'), await api.user('USER', 'bob')];
    const jobs = [{ command: 'id', arguments: ['-un'], estimateS: 1 }];
    const submitAs = async (user: { key: string }): Promise<string> => {
      const { submitJobs } = await api.must<{ submitJobs: { jobIds: string[] } }>(
        'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { jobIds } }',
        { jobs },
        user.key,
      );
      return submitJobs.jobIds[0]!;
    };
    const ids = [await submitAs(ada), await submitAs(bob)];
    const [done, refused] = await jobsWhen(ids, ended);
    expect([done, refused]).toMatchObject([{ cause: 'EXITED_ZERO' }, { cause: 'LAUNCH_FAILED' }]);
    const texts = await Promise.all(
      ids.map((id) =>
        api.must<object>('query ($id: ID!) { job(id: $id) { message output { text } } }', { id }),
      ),
    );
    expect(texts).toMatchObject([
      { job: { output: { text: 'nobody\n' } } },
      { job: { message: 'the user bob has no account at this site (AGENT_ACCOUNTS)' } },
    ]);
    await agent.stop?.();
    await api.must(`mutation { drainSite(input: { siteId: "${createSite.site.id}" }) { site { id } } }`);
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  },
);

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
  await api.must('mutation ($id: ID!) { cancelJobs(input: { selection: { ids: [$id] } }) { jobIds } }', {
    id: sleeper,
  });
  const [cancelled, failed] = await jobsWhen([sleeper!, missing!], ended);
  expect(cancelled).toMatchObject({ state: 'CANCELLED', cause: 'CANCELLED_BY_OPERATOR' });
  expect(failed).toMatchObject({ state: 'FAILED', cause: 'LAUNCH_FAILED', exitCode: null });
  await agent.stop();
});

it('inputs from another site are brought to a run, shown beside what was predicted, and at hand for the next', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'switchyard-data-'));
  const file = join(dir, 'far.bin');
  writeFileSync(file, Buffer.alloc(3e6, 'switchyard'));
  await api.must('mutation { createSite(input: { name: "far" }) { site { id } } }');
  const { sites } = await api.must<{ sites: { nodes: { id: string; name: string }[] } }>(
    '{ sites { nodes { id name } } }',
  );
  const far = sites.nodes.find(({ name }) => name === 'far')!.id;
  const register = async (name: string, location: string): Promise<string> => {
    const input = { name, sizeMb: 3, locations: [{ siteId: far, location }] };
    const { createDataset } = await api.must<{ createDataset: { dataset: { id: string } } }>(
      'mutation ($input: DatasetInput!) { createDataset(input: $input) { dataset { id } } }',
      { input },
    );
    return createDataset.dataset.id;
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
  // Its files go when somebody removes the dataset, and what the service knows nothing of stays.
  mkdirSync(join(dir, 'datasets', 'job_999.1'));
  const us = { site, agent: () => '' };
  const { signal } = new AbortController();
  expect(await keeper.clean(us, signal)).toEqual([]);
  await api.must(`mutation { removeDataset(input: { datasetId: "${model?.id}" }) { dataset { id } } }`);
  expect(await keeper.clean(us, signal)).toEqual([join(dir, 'datasets', `${made}.1`)]);
  expect(readdirSync(join(dir, 'datasets'))).toEqual(['job_999.1']);
  await agent.stop();
  runner.close();
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
});

it('a job reads what another has written at another site, and not without it', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'switchyard-edges-'));
  const stops: (() => Promise<void>)[] = [];
  const keys: string[] = [];
  /** A site with a machine that has a resource of the site's name, and an agent with directories of its own. */
  const open = async (name: string): Promise<void> => {
    const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
      'mutation ($input: CreateSiteInput!) { createSite(input: $input) { site { id } } }',
      { input: { name } },
    );
    const { id } = createSite.site;
    const machine = {
      siteId: id,
      name: 'm',
      cpus: 4,
      memoryMb: 1000,
      resources: [{ kind: name, amount: 4 }],
    };
    await api.must(
      'mutation ($input: CreateMachineInput!) { createMachine(input: $input) { machine { id } } }',
      {
        input: machine,
      },
    );
    const { key } = await api.user('AGENT', `agent-of-${name}`, id);
    keys.push(key);
    const client = new Client({ url: api.url, key });
    const keeper = new OutputKeeper({
      client,
      datasetsDir: join(dir, name, 'datasets'),
      datasetsBytes: null,
    });
    const runner = new StagingRunner(
      await ProcessRunner.open({
        stateDir: join(dir, name),
        keep: (run, signal) => keeper.keep(run, signal),
      }),
      join(dir, name, 'data'),
      { site: name, maxBytes: 1e8, command: null, rateMbPerS: null, service: client },
    );
    const access = { url: api.url, key, site: name, log: quietLog };
    const agent = new Agent({
      ...access,
      ...(await serving()),
      identity: name,
      runner,
      staging: runner,
      keeper,
    });
    agent.start();
    stops.push(async () => {
      await api.must(`mutation { drainSite(input: { siteId: "${id}" }) { site { id } } }`);
      await agent.stop();
      runner.close();
    });
  };
  await open('writes');
  await open('reads');
  const at = (kind: string, text: string, more: object) => ({
    ...{ command: 'sh', arguments: ['-c', text], estimateS: 1, resourcesPerTask: [{ kind, amount: 1 }] },
    ...more,
  });
  const from = (ref: string, output: string) => ({ inputs: [{ from: ref, output, sizeMb: 2 }] });
  const outputs = [{ path: 'sub' }];
  const [wrote, read, lacking, without, anyway] = await submit([
    at('writes', 'mkdir sub; head -c 3000000 /dev/zero > sub/out.dat', { ref: 'A', outputs }),
    at('reads', 'wc -c < out.dat; wc -c < "$SWITCHYARD_INPUT_1"; sleep 1', from('A', 'sub/out.dat')),
    at('writes', 'mkdir sub', { ref: 'B', name: 'empty', outputs }),
    at('reads', 'true', from('B', 'sub/out.dat')),
    at('reads', 'test ! -e out.dat', { ...from('B', 'sub/out.dat'), onUnmet: 'RUN' }),
  ]);
  await until('it runs', async () => (await jobsWhen([read!], () => true))[0]?.state === 'RUNNING');
  // Its own site may have the file as long as it runs, others may not.
  const { rows } = await api.db.pool.query('SELECT id FROM files WHERE job_id = $1', [wrote?.slice(4)]);
  const asked = await Promise.all(
    keys.map((key) =>
      fetch(`${api.origin}/files/${rows[0].id}`, { headers: { authorization: `Bearer ${key}` } }),
    ),
  );
  expect(asked.map(({ status }) => status)).toEqual([404, 200]);
  for (const answer of asked) await answer.arrayBuffer();
  const done = await jobsWhen([wrote!, read!, lacking!, without!, anyway!], ended);
  expect(done.map(({ id, cause }) => `${id} ${cause}`).sort()).toEqual(
    [`${wrote} EXITED_ZERO`, `${read} EXITED_ZERO`, `${lacking} EXITED_ZERO`, `${anyway} EXITED_ZERO`]
      .concat(`${without} DEPENDENCY_FAILED`)
      .sort(),
  );
  const { job, none } = await api.must<{ job: object; none: object }>(
    `query ($id: ID!, $none: ID!) {
      job(id: $id) { output { text } inputs { sizeMb site { name } from { id } output } }
      none: job(id: $none) { message } }`,
    { id: read, none: without },
  );
  expect(job).toEqual({
    output: { text: '3000000\n3000000\n' },
    inputs: [{ sizeMb: 3, site: { name: 'writes' }, from: { id: wrote }, output: 'sub/out.dat' }],
  });
  expect(none).toEqual({
    message: `${lacking} (empty), on which it depends, did not keep sub/out.dat`,
  });
  expect(await stagingOf(read!)).toMatchObject({ totalMb: 3, movedMb: 3, predictedS: expect.closeTo(0.3) });
  for (const stop of stops) await stop();
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
});

it('a job goes to where its 10 GB are, and only what is small is brought elsewhere', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'switchyard-sites-'));
  const { policy } = await api.must<{ policy: { version: number; document: object } }>(
    '{ policy { version document } }',
  );
  await api.must(
    'mutation ($input: UpdatePolicyInput!) { updatePolicy(input: $input) { policy { version } } }',
    {
      input: {
        expectedVersion: policy.version,
        reason: 'costs of data',
        document: { ...policy.document, dispatch: { kind: 'diana' } },
      },
    },
  );
  const stops: (() => Promise<void>)[] = [];
  /** A site with an agent whose directory is its own; over the network it gets 10 MB/s. */
  const open = async (name: string): Promise<string> => {
    const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
      'mutation ($input: CreateSiteInput!) { createSite(input: $input) { site { id } } }',
      { input: { name } },
    );
    const { id } = createSite.site;
    await api.must(
      'mutation ($site: ID!) { createMachine(input: { siteId: $site, name: "m", cpus: 4, memoryMb: 1000, benchmark: 100 }) { machine { id } } }',
      { site: id },
    );
    const options = { site: name, maxBytes: 1e9, command: null, rateMbPerS: 10 };
    const runner = new StagingRunner(
      await ProcessRunner.open({ stateDir: join(dir, name) }),
      join(dir, name),
      options,
    );
    const { key } = await api.user('AGENT', `agent-of-${name}`, id);
    const access = { url: api.url, key, site: name, log: quietLog };
    const agent = new Agent({ ...access, ...(await serving()), identity: name, runner, staging: runner });
    agent.start();
    stops.push(async () => {
      await agent.stop();
      runner.close();
    });
    return id;
  };
  // Nobody serves the site of the other tests any more, which takes a while to be noticed.
  await api.must(`mutation { drainSite(input: { siteId: "${site}" }) { site { id } } }`);
  const [full, empty] = [await open('full'), await open('empty')];
  // Jobs would go to whichever agent is heard first.
  await until('both are heard', async () => {
    const { machines } = await api.must<{ machines: { nodes: { silent: boolean; site: { id: string } }[] } }>(
      '{ machines { nodes { silent site { id } } } }',
    );
    const heard = machines.nodes.filter(({ silent }) => !silent).map(({ site }) => site.id);
    return [full, empty].every((id) => heard.includes(id));
  });
  const register = async (name: string, sizeMb: number): Promise<string> => {
    const file = join(dir, `${name}.bin`);
    // Takes no room: nothing is written.
    writeFileSync(file, '');
    truncateSync(file, sizeMb * 1e6);
    const input = { name, sizeMb, locations: [{ siteId: full, location: pathToFileURL(file).href }] };
    const { createDataset } = await api.must<{ createDataset: { dataset: { id: string } } }>(
      'mutation ($input: DatasetInput!) { createDataset(input: $input) { dataset { id } } }',
      { input },
    );
    return createDataset.dataset.id;
  };
  const [large, small] = [await register('large', 10_000), await register('small', 5)];
  const reader = (name: string, dataset: string) => ({
    command: 'sh',
    arguments: ['-c', `stat -Lc %s ${name}`],
    inputs: [{ dataset }],
    originSite: empty,
    estimateS: 1,
  });
  // Submitted where the data are not.
  const followers = await submit([reader('large', large), reader('large', large)]);
  expect(await jobsWhen(followers, ended)).toMatchObject([{ exitCode: 0 }, { exitCode: 0 }]);
  for (const id of followers)
    expect(await stagedRun(id)).toMatchObject({
      site: { id: full },
      staging: { totalMb: 10_000, movedMb: 0 },
    });
  const { job } = await api.must<{ job: { output: { text: string } } }>(
    'query ($id: ID!) { job(id: $id) { output { text } } }',
    { id: followers[0] },
  );
  expect(job.output.text).toBe('10000000000\n');
  // Where nothing runs they wait for their site; what is small goes on elsewhere, and is at hand there from then on.
  await api.must(`mutation { drainSite(input: { siteId: "${full}" }) { site { id } } }`);
  for (const movedMb of [5, 0]) {
    const [id] = await submit([reader('small', small)]);
    expect(await jobsWhen([id!], ended)).toMatchObject([{ exitCode: 0 }]);
    expect(await stagedRun(id!)).toMatchObject({ site: { id: empty }, staging: { totalMb: 5, movedMb } });
  }
  for (const stop of stops) await stop();
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
});
