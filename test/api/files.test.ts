/** Files of runs: handed over in parts by agents, kept within bounds, fetched by whoever may see the job, removed in time. */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { beforeAll, expect, test, vi } from 'vitest';
import { MAX } from '../../src/platform/limits.js';
import { DirectoryBlobs } from '../../src/store/blobs.js';
import { FileSweep } from '../../src/store/file-sweep.js';
import { tokenOf } from '../../src/store/rules.js';
import { type Json, named, unique, withApi } from './support/api.js';
import { schedule } from './support/schedule.js';

const USER_BYTES = 60_000_000;
const api = withApi((config) => ({
  ...config,
  limits: { ...config.limits, userFileBytes: USER_BYTES, jobFileBytes: 30_000_000 },
}));
const PART = MAX.filePartBytes;
let site = '';
let agentKey = '';
let agent = '';
let user = { id: '', key: '' };

beforeAll(async () => {
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "s" }) { site { id } } }',
  );
  site = createSite.site.id;
  await api.must(
    `mutation { createMachine(input: { siteId: "${site}", name: "m", cpus: 64, memoryMb: 1000 }) { machine { id } } }`,
  );
  agentKey = (await api.user('AGENT', 'agent', site)).key;
  agent = await api.serve(site, agentKey);
  user = await api.user('USER', 'u');
});

/** A job that runs, with what is kept of it. */
async function running(outputs: object[], key = user.key): Promise<string> {
  const { submitJobs } = await api.must<{ submitJobs: { jobIds: string[] } }>(
    'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { jobIds } }',
    { jobs: [{ command: 'true', outputs }] },
    key,
  );
  await schedule(api.parts);
  return submitJobs.jobIds[0] as string;
}
const sha256 = (body: Buffer): string => createHash('sha256').update(body).digest('hex');
const KEEP = `mutation ($site: ID!, $agent: ID!, $job: ID!, $files: [RunFileInput!]!) {
  keepFiles(site: $site, agent: $agent, job: $job, epoch: 1, files: $files) { id path receivedBytes } }`;
const announce = (job: string, files: Record<string, Buffer>, key = agentKey) =>
  api.ask<{ keepFiles: { id: string; path: string; receivedBytes: number }[] }>(
    KEEP,
    {
      ...{ site, agent, job },
      files: Object.entries(files).map(([path, body]) => ({
        path,
        bytes: body.length,
        sha256: sha256(body),
      })),
    },
    key,
  );
async function put(id: string, offset: number, body: Buffer, more: { key?: string; digest?: string } = {}) {
  const { key = agentKey, digest = `sha-256=:${createHash('sha256').update(body).digest('base64')}:` } = more;
  const response = await fetch(`${api.origin}/files/${id}?agent=${agent}&offset=${offset}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${key}`, 'content-digest': digest },
    body: new Uint8Array(body),
  });
  return { status: response.status, body: (await response.json()) as Json };
}
async function send(job: string, path: string, body: Buffer): Promise<string> {
  const { data } = await announce(job, { [path]: body });
  const { id } = data.keepFiles[0]!;
  let at = 0;
  do {
    const answer = await put(id, at, body.subarray(at, at + PART));
    expect(answer.status).toBe(200);
    at = answer.body.receivedBytes as number;
  } while (at < body.length);
  return id;
}
const get = (job: string, path: string, headers: Record<string, string> = {}, key = user.key) =>
  fetch(`${api.origin}/jobs/${job}/files/${path.split('/').map(encodeURIComponent).join('/')}`, {
    headers: { authorization: `Bearer ${key}`, ...headers },
  });
const FILES =
  'query ($job: ID!) { job(id: $job) { files { path bytes sha256 epoch task receivedBytes keptAt keptUntil rateMbPerS } } }';
const filesOf = async (job: string) =>
  (await api.must<{ job: { files: (Json & { keptAt: string | null })[] } }>(FILES, { job }, user.key)).job
    .files;
const used = async () => {
  const { viewer } = await api.must<{
    viewer: { limits: { name: string; used: number; allowed: number }[] };
  }>('{ viewer { limits { name used allowed } } }', {}, user.key);
  return viewer.limits.find(({ name }) => name === 'FILE_BYTES');
};
const end = (job: string) =>
  api.must(
    `mutation ($reports: [RunReportInput!]!) { reportRuns(site: "${site}", agent: "${agent}", reports: $reports) { results } }`,
    {
      reports: [
        { job, epoch: 1, phase: 'ENDED', cause: 'EXITED_ZERO', exitCode: 0, at: new Date().toISOString() },
      ],
    },
    agentKey,
  );

test('a file comes in parts, torn and repeated ones included, is seen when it is whole, and is fetched in ranges', async () => {
  const job = await running([{ path: 'out' }]);
  const body = Buffer.alloc(2 * PART + 1234, randomBytes(1001));
  const { data } = await announce(job, { 'out/a <1>.bin': body });
  // One file was announced.
  const [{ id, receivedBytes }] = data.keepFiles as unknown as [{ id: string; receivedBytes: number }];
  expect(receivedBytes).toBe(0);
  const first = body.subarray(0, PART);
  // Spoiled on its way; cut short; ahead of what is there; as it is; once more.
  expect(await put(id, 0, Buffer.alloc(PART), { digest: 'sha-256=:AAAA:' })).toMatchObject({ status: 400 });
  expect((await put(id, 0, body.subarray(0, 100))).body).toMatchObject({
    errors: [{ message: /^body: 100 is not accepted/ }],
  });
  expect((await put(id, PART, body.subarray(PART, 2 * PART))).body).toEqual({
    receivedBytes: 0,
    kept: false,
  });
  expect((await put(id, 0, first)).body).toEqual({ receivedBytes: PART, kept: false });
  expect((await put(id, 0, first)).body).toEqual({ receivedBytes: PART, kept: false });
  expect(await filesOf(job)).toEqual([
    {
      ...{ path: 'out/a <1>.bin', bytes: body.length, sha256: sha256(body), epoch: 1 },
      ...{ task: 0, receivedBytes: PART, keptAt: null, keptUntil: null, rateMbPerS: null },
    },
  ]);
  expect((await get(job, 'out/a <1>.bin')).status).toBe(404);
  // Another process of the agent asks where it was.
  expect((await announce(job, { 'out/a <1>.bin': body })).data.keepFiles).toEqual([
    { id, path: 'out/a <1>.bin', receivedBytes: PART },
  ]);
  // Both ends of the same part at once: it counts once.
  const second = body.subarray(PART, 2 * PART);
  await Promise.all([put(id, PART, second), put(id, PART, second)]);
  expect((await put(id, 2 * PART, body.subarray(2 * PART))).body).toEqual({
    ...{ receivedBytes: body.length, kept: true },
  });
  const [file] = await filesOf(job);
  expect(file).toMatchObject({ receivedBytes: body.length, rateMbPerS: expect.any(Number) });
  expect(Date.parse(file?.keptUntil as string) - Date.parse(file?.keptAt as string)).toBe(30 * 86_400_000);

  const whole = await get(job, 'out/a <1>.bin');
  expect(Object.fromEntries(whole.headers)).toMatchObject({
    'content-type': 'application/octet-stream',
    'content-disposition': 'attachment; filename="a <1>.bin"',
    'x-content-type-options': 'nosniff',
    etag: `"${sha256(body)}"`,
  });
  expect(sha256(Buffer.from(await whole.arrayBuffer()))).toBe(sha256(body));
  const rest = await get(job, 'out/a <1>.bin', { range: `bytes=${PART}-`, 'if-range': `"${sha256(body)}"` });
  expect([rest.status, rest.headers.get('content-range')]).toEqual([
    206,
    `bytes ${PART}-${body.length - 1}/${body.length}`,
  ]);
  expect(sha256(Buffer.from(await rest.arrayBuffer()))).toBe(sha256(body.subarray(PART)));
  expect((await get(job, 'out/a <1>.bin', { range: 'bytes=0-9', 'if-range': '"other"' })).status).toBe(200);
  expect((await get(job, 'out/a <1>.bin', { range: `bytes=${body.length}-` })).status).toBe(416);
});

test('an empty file is one too', async () => {
  const job = await running([{ path: 'empty' }]);
  await send(job, 'empty', Buffer.alloc(0));
  const answer = await get(job, 'empty');
  expect([answer.status, await answer.text()]).toEqual([200, '']);
});

test("only the run's agent hands over, while it runs; only those who may see the job fetch", async () => {
  const job = await running([{ path: 'a' }]);
  const body = Buffer.from('secret');
  const other = await api.user('USER', unique('other'));
  const elsewhere = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "elsewhere" }) { site { id } } }',
  );
  const stranger = await api.user('AGENT', unique('agent'), elsewhere.createSite.site.id);
  expect((await announce(job, { a: body }, user.key)).errors?.[0]?.extensions.code).toBe('FORBIDDEN');
  expect((await announce(job, { a: body }, stranger.key)).errors?.[0]?.extensions.code).toBe('FORBIDDEN');
  const id = await send(job, 'a', body);
  for (const key of [user.key, stranger.key]) expect((await put(id, 0, body, { key })).status).not.toBe(200);
  expect((await get(job, 'a', {}, other.key)).status).toBe(404);
  expect((await get(job, 'a', {}, agentKey)).status).toBe(404);
  expect((await get(job, 'a', {}, 'no-key')).status).toBe(401);
  expect(await (await get(job, 'a')).text()).toBe('secret');
  await end(job);
  expect((await announce(job, { b: body })).errors?.[0]).toMatchObject({ extensions: { code: 'NOT_FOUND' } });
  expect((await put(id, 0, body)).status).toBe(404);
});

test('a path that could lead elsewhere, or that nobody can read, is refused', async () => {
  const paths = [
    '../up',
    '/etc/passwd',
    'a//b',
    'a/./b',
    'a\u0007b',
    'a\\b',
    'C:\\x',
    '',
    'x'.repeat(256),
    'a\u202eb',
  ];
  const { submitJobs } = await api.must<{ submitJobs: { errors: { index: number; field: string }[] } }>(
    'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { errors { index field } } }',
    { jobs: paths.map((path) => ({ command: 'true', outputs: [{ path }] })) },
  );
  expect(submitJobs.errors).toEqual(paths.map((_, index) => ({ index, field: 'outputs[0].path' })));
  const job = await running([]);
  for (const path of paths)
    expect((await announce(job, { [path]: Buffer.from('x') })).errors?.[0]?.extensions.code).toBe(
      'BAD_USER_INPUT',
    );
});

test('what is kept of a run and of a user is bounded, and shown; files go in time, and their content with them', async () => {
  const before = (await used())?.used as number;
  const job = await running([{ path: 'a' }]);
  const megabytes = (n: number) => ({ path: `f${n}`, bytes: n * 1e6, sha256: sha256(Buffer.from([n])) });
  const keep = (of: string, files: object[]) => api.ask(KEEP, { site, agent, job: of, files }, agentKey);
  expect((await keep(job, [megabytes(31)])).errors?.[0]).toMatchObject({
    message: 'files: 31000000 in total; accepted: up to 30000000 bytes of a run (LIMIT_JOB_FILE_BYTES)',
    extensions: { code: 'LIMIT_EXCEEDED' },
  });
  // Nothing of what was refused counts.
  expect(await used()).toEqual({ name: 'FILE_BYTES', used: before, allowed: USER_BYTES });
  const jobs = [await running([{ path: 'a' }]), await running([{ path: 'a' }])];
  for (const one of jobs) expect((await keep(one, [megabytes(20)])).errors).toBeUndefined();
  expect((await keep(job, [megabytes(21)])).errors?.[0]?.message).toMatch(/LIMIT_USER_FILE_BYTES/);
  // The same path with other content takes the place of what was there.
  await keep(jobs[0]!, [{ ...megabytes(20), bytes: 1 }]);
  expect((await used())?.used).toBe(before + 20e6 + 1);

  const id = await send(job, 'small', Buffer.from('small'));
  const { files, blobs } = api.parts.fileStore;
  const sweep = (retentionDays: number) =>
    new FileSweep({ files, blobs, retentionDays, now: () => Date.now() / 1000, onError: () => {} }).sweep();
  await sweep(1);
  expect((await get(job, 'small')).status).toBe(200);
  // Private: a look behind the scenes.
  const dir = (blobs as unknown as { dir: string }).dir;
  const content = (): string[] =>
    readdirSync(dir, { recursive: true })
      .map(String)
      .filter((name) => name.endsWith(`/${id}`));
  expect(content()).toHaveLength(1);
  await sweep(-1);
  expect((await get(job, 'small')).status).toBe(404);
  expect(content()).toEqual([]);
  // What was on its way stays with its run.
  expect((await used())?.used).toBe(20e6 + 1);
  expect(existsSync(dir)).toBe(true);
});

test('a checkpoint is kept while its job lives, for later runs of the job alone', async () => {
  const submit = async (...jobs: object[]) => {
    const { submitJobs } = await api.must<{ submitJobs: { jobIds: string[]; errors: { field: string }[] } }>(
      'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { jobIds errors { field } } }',
      { jobs: jobs.map((job) => ({ command: 'true', ...job })) },
      user.key,
    );
    return submitJobs;
  };
  const refused = [{ path: '/state' }, { path: '../state' }, { path: 'state*' }].map((checkpoint) => ({
    checkpoint,
  }));
  const { errors } = await submit(...refused, { checkpoint: { path: 'state' }, tasks: 1001 });
  expect(errors.map(({ field }) => field)).toEqual([...refused.map(() => 'checkpoint.path'), 'checkpoint']);

  const retry = { maxRetries: 1, backoffS: 0, rules: [{ action: 'RETRY' }] };
  const { jobIds } = await submit({ checkpoint: { path: 'state' }, retry });
  const [job] = jobIds as [string];
  await schedule(api.parts);
  const state = Buffer.from('half of it');
  const id = await send(job, 'state', state);
  const fetched = (key: string) =>
    fetch(`${api.origin}/files/${id}`, { headers: { authorization: `Bearer ${key}` } });
  // Not by the run that left it.
  expect((await fetched(agentKey)).status).toBe(404);
  await api.must(
    `mutation ($reports: [RunReportInput!]!) { reportRuns(site: "${site}", agent: "${agent}", reports: $reports) { results } }`,
    {
      reports: [
        { job, epoch: 1, phase: 'ENDED', cause: 'EXITED_NONZERO', exitCode: 1, at: new Date().toISOString() },
      ],
    },
    agentKey,
  );
  await api.parts.fileStore.files.prune(Date.now() / 1000 + 60, 100);
  await vi.waitFor(async () => {
    await schedule(api.parts);
    const { job: now } = await api.must<{ job: Json }>(
      'query ($job: ID!) { job(id: $job) { epoch } }',
      { job },
      user.key,
    );
    expect(now.epoch).toBe(2);
  }, 20_000);
  const answer = await fetched(agentKey);
  expect([answer.status, await answer.text()]).toEqual([200, 'half of it']);
  expect((await fetched((await api.user('AGENT', unique('agent'), site)).key)).status).toBe(200);
  const {
    createSite: { site: other },
  } = await api.must<{ createSite: { site: { id: string } } }>(
    `mutation { createSite(input: { name: "${unique('other')}" }) { site { id } } }`,
  );
  expect((await fetched((await api.user('AGENT', unique('agent'), other.id)).key)).status).toBe(404);
});

test('parts that the store has lost are sent again', async () => {
  const job = await running([{ path: 'a' }]);
  const body = randomBytes(PART + 5);
  const { data } = await announce(job, { a: body });
  const { id } = data.keepFiles[0]!;
  await put(id, 0, body.subarray(0, PART));
  // Private, as above.
  await new DirectoryBlobs((api.parts.fileStore.blobs as unknown as { dir: string }).dir).remove(Number(id));
  expect((await put(id, PART, body.subarray(PART))).status).toBe(404);
  await send(job, 'a', body);
  expect(sha256(Buffer.from(await (await get(job, 'a')).arrayBuffer()))).toBe(sha256(body));
});

test('a file of which the last part came is kept, though whoever took that died over it', async () => {
  const { files, blobs } = api.parts.fileStore;
  const body = randomBytes(PART + 5);
  /** All of a file has come, and it is not whole: the process that took the last part died. */
  const halfDone = async (path: string): Promise<{ job: string; id: string }> => {
    const job = await running([{ path }]);
    const { id } = (await announce(job, { [path]: body })).data.keepFiles[0]!;
    await put(id, 0, body.subarray(0, PART));
    const died = vi.spyOn(blobs, 'finish').mockRejectedValueOnce(new Error('killed'));
    expect((await put(id, PART, body.subarray(PART))).status).toBe(500);
    died.mockRestore();
    expect(await filesOf(job)).toMatchObject([{ receivedBytes: body.length, keptAt: null }]);
    return { job, id };
  };
  const isWhole = async (job: string, path: string): Promise<void> => {
    expect(await filesOf(job)).toMatchObject([{ path, keptAt: expect.any(String) }]);
    expect(sha256(Buffer.from(await (await get(job, path)).arrayBuffer()))).toBe(sha256(body));
  };
  // Its agent had no answer, and sends the part again.
  const again = await halfDone('again');
  expect((await put(again.id, PART, body.subarray(PART))).body).toEqual({
    ...{ receivedBytes: body.length, kept: true },
  });
  await isWhole(again.job, 'again');
  // Its agent says no more about it; two processes look at the same time.
  const silent = await halfDone('silent');
  await end(silent.job);
  const options = { files, blobs, retentionDays: 1, now: () => Date.now() / 1000, onError: () => {} };
  await Promise.all([new FileSweep(options).sweep(), new FileSweep(options).sweep()]);
  await isWhole(silent.job, 'silent');
});

test('an output becomes the dataset that the job names, and no other', async () => {
  const name = unique('dataset');
  const job = await running([{ path: 'model', keep: 'DATASET', dataset: name }]);
  const keep = (dataset: string, of = job) =>
    api.ask<{ keepDataset: Json }>(
      `mutation ($site: ID!, $agent: ID!, $job: ID!, $dataset: String!) {
        keepDataset(site: $site, agent: $agent, job: $job, epoch: 1, dataset: $dataset, sizeMb: 3, location: "/data/model") {
          name sizeMb replicas { name } job { id } } }`,
      { site, agent, job: of, dataset },
      agentKey,
    );
  expect((await keep('other')).errors?.[0]?.extensions.code).toBe('NOT_FOUND');
  // Whoever keeps it first has the name.
  const second = await running([{ path: 'model', keep: 'DATASET', dataset: name }]);
  for (const _ of [1, 2])
    expect((await keep(name)).data.keepDataset).toEqual({
      ...{ name, sizeMb: 3, replicas: [{ name: 's' }] },
      // An agent sees no jobs.
      job: null,
    });
  const { datasets } = await api.must<{ datasets: { nodes: Json[] } }>(
    '{ datasets(first: 100) { nodes { name job { id } locations { location } } } }',
  );
  expect(datasets.nodes).toContainEqual({ name, job: { id: job }, locations: [{ location: '/data/model' }] });
  expect((await keep(name, second)).errors?.[0]?.extensions.code).toBe('CONFLICT');
  // From now on it is refused at once.
  const refusals = async (...datasets: string[]) => {
    const outputs = (dataset: string) => [{ path: 'x' }, { path: 'model', keep: 'DATASET', dataset }];
    const { submitJobs } = await api.must<{ submitJobs: { errors: Json[] } }>(
      'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { errors { index field message } } }',
      { jobs: datasets.map((one) => ({ command: 'true', outputs: outputs(one) })) },
      user.key,
    );
    return submitJobs.errors;
  };
  const field = 'outputs[1].dataset';
  expect(await refusals(unique('x'), name)).toEqual([
    {
      index: 1,
      field,
      message: `${field}: "${name}" is not accepted; accepted: a name not used by a dataset`,
    },
  ]);
  const twice = unique('x');
  expect(await refusals(twice, unique('x'), twice)).toEqual([
    {
      index: 2,
      field,
      message: `${field}: "${twice}" is not accepted; accepted: each dataset for one job only; jobs[0] names it too`,
    },
  ]);
  const { submitJobGroup } = await api.must<{ submitJobGroup: { errors: Json[] } }>(
    `mutation ($template: JobInput!) { submitJobGroup(input: { name: "g", count: 2, template: $template }) { errors { index field } } }`,
    { template: { command: 'true', outputs: [{ path: 'model', keep: 'DATASET', dataset: unique('x') }] } },
    user.key,
  );
  expect(submitJobGroup.errors).toEqual([{ index: 1, field: 'template.outputs[0].dataset' }]);

  // When it is a dataset no more, its agent is told.
  const removedOutputs = async (...jobs: string[]) =>
    (
      await api.must<{ removedOutputs: string[] }>(
        `query ($jobs: [ID!]!) { removedOutputs(site: "${site}", jobs: $jobs) }`,
        { jobs },
        agentKey,
      )
    ).removedOutputs;
  expect(await removedOutputs(job, second)).toEqual([]);
  const made = await api.must<{ datasets: { nodes: { id: string; name: string }[] } }>(
    '{ datasets(first: 100) { nodes { id name } } }',
  );
  const { id } = made.datasets.nodes.find((one) => one.name === name)!;
  await api.must(`mutation { removeDataset(input: { datasetId: "${id}" }) { dataset { id } } }`);
  expect(await removedOutputs(job, second)).toEqual([job]);
});

test('an agent keeps files of tasks on the machines that it serves, and of no others', async () => {
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "two" }) { site { id } } }',
  );
  const two = createSite.site.id;
  const key = (await api.user('AGENT', unique('agent'), two)).key;
  const register = `mutation ($input: RegisterAgentInput!) { registerAgent(input: $input) { agent { id } } }`;
  const agents: string[] = [];
  for (const name of ['a', 'b']) {
    await api.must(
      `mutation { createMachine(input: { siteId: "${two}", name: "${name}", os: "plan9", cpus: 1, memoryMb: 1000 }) { machine { id } } }`,
    );
    const measured = { cpus: 1, memoryMb: 1000, os: 'plan9', architecture: 'x64', benchmark: 100, gpus: [] };
    const input = {
      site: two,
      identity: name,
      instance: '1',
      host: name,
      version: '1',
      protocol: 3,
      simulated: false,
    };
    const { registerAgent } = await api.must<{ registerAgent: { agent: { id: string } } }>(
      register,
      { input: { ...input, machines: [{ name, measured }] } },
      key,
    );
    agents.push(registerAgent.agent.id);
  }
  const dataset = unique('of-two');
  const outputs = [{ path: 'out' }, { path: 'made', keep: 'DATASET', dataset }];
  const { submitJobs } = await api.must<{ submitJobs: { jobIds: [string] } }>(
    'mutation ($jobs: [JobInput!]!) { submitJobs(input: { allowUnfit: true, jobs: $jobs }) { jobIds errors { message } } }',
    { jobs: [{ command: 'true', tasks: 2, os: 'plan9', outputs }] },
    user.key,
  );
  expect(submitJobs).toMatchObject({ errors: [] });
  const [job] = submitJobs.jobIds;
  await schedule(api.parts);
  const { job: found } = await api.must<{
    job: { runs: [{ allocations: { machine: { name: string } }[] }] };
  }>('query ($job: ID!) { job(id: $job) { runs { allocations { machine { name } } } } }', { job });
  const ofTask = found.runs[0].allocations.map(({ machine }) => agents['ab'.indexOf(machine.name)] as string);
  expect(new Set(ofTask).size).toBe(2);
  const keep = (agent: string, task: number) =>
    api.ask<{ keepFiles: { id: string }[] }>(
      `mutation ($site: ID!, $agent: ID!, $job: ID!, $task: Int!, $files: [RunFileInput!]!) {
        keepFiles(site: $site, agent: $agent, job: $job, epoch: 1, task: $task, files: $files) { id } }`,
      { site: two, agent, job, task, files: [{ path: 'out', bytes: 1, sha256: sha256(Buffer.from('x')) }] },
      key,
    );
  const send = (id: string, agent: string) => {
    const body = Buffer.from('x');
    const digest = `sha-256=:${createHash('sha256').update(body).digest('base64')}:`;
    const headers = { authorization: `Bearer ${key}`, 'content-digest': digest };
    return fetch(`${api.origin}/files/${id}?agent=${agent}&offset=0`, {
      method: 'PUT',
      headers,
      body: new Uint8Array(body),
    });
  };
  const make = (agent: string) =>
    api.ask<{ keepDataset: Json }>(
      `mutation ($site: ID!, $agent: ID!, $job: ID!, $dataset: String!) {
        keepDataset(site: $site, agent: $agent, job: $job, epoch: 1, dataset: $dataset, sizeMb: 3, location: "/data/made") { name } }`,
      { site: two, agent, job, dataset },
      key,
    );
  for (const task of [0, 1]) {
    const [own, other] = [ofTask[task] as string, ofTask[1 - task] as string];
    expect((await keep(other, task)).errors?.[0]?.extensions.code).toBe('NOT_FOUND');
    const { id } = (await keep(own, task)).data.keepFiles[0]!;
    expect((await send(id, other)).status).toBe(404);
    expect((await send(id, own)).status).toBe(200);
  }
  expect((await keep(ofTask[1] as string, 2)).errors?.[0]?.extensions.code).toBe('NOT_FOUND');
  // Datasets are of the first task.
  expect((await make(ofTask[1] as string)).errors?.[0]?.extensions.code).toBe('NOT_FOUND');
  expect((await make(ofTask[0] as string)).data.keepDataset).toEqual({ name: dataset });
});

test('a job that has machines waits for its input data, and says how far that is', async () => {
  const job = await running([]);
  const why = async () =>
    (
      await api.must<{ job: { whyWaiting: { code: string; numbers: { name: string; value: number }[] } } }>(
        'query ($job: ID!) { job(id: $job) { whyWaiting { code message numbers { name value } wouldChange } } }',
        { job },
        user.key,
      )
    ).job.whyWaiting;
  const { rows } = await api.db.pool.query('SELECT assigned_at FROM runs WHERE job_id = $1', [
    job.slice('job_'.length),
  ]);
  const token = tokenOf(rows[0].assigned_at.getTime() / 1000);
  const report = (endedAt: string | null, of = token) =>
    api.must<{ reportStaging: boolean[] }>(
      `mutation ($reports: [StagingReportInput!]!) { reportStaging(site: "${site}", reports: $reports) }`,
      {
        reports: [
          {
            job,
            epoch: 1,
            token: of,
            beganAt: new Date(Date.now() - 90_000),
            endedAt,
            totalMb: 50,
            movedMb: 12.34,
            error: null,
          },
        ],
      },
      agentKey,
    );
  expect(await why()).toMatchObject({ code: 'STARTING', numbers: [] });
  // Of a run that the database has forgotten, to whose job and epoch it has given another one.
  expect((await report(null, `${token}1`)).reportStaging).toEqual([false]);
  expect(await why()).toMatchObject({ code: 'STARTING', numbers: [] });
  expect((await report(null)).reportStaging).toEqual([true]);
  expect(named(await why())).toMatchObject({
    code: 'STAGING',
    message: expect.stringMatching(
      /12\.3 of 50 MB of its input data were transferred to the site in 9\d.*0 s were expected/,
    ),
    numbers: { totalMb: 50, movedMb: 12.3, predictedS: 0 },
  });
  await report(new Date().toISOString());
  expect((await why()).code).toBe('STARTING');
});
