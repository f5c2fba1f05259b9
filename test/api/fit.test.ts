/** What can never run is told when it is submitted, with the nearest that could. */
import { beforeAll, expect, test, vi } from 'vitest';
import { createApi } from '../../src/api/server.js';
import { createFits, createResources } from '../../src/api/services/fit.js';
import { PLAIN_JOB } from '../support/plain-job.js';
import { unique, withApi } from './support/api.js';

const api = withApi();
let key = '';

const SUBMIT =
  'mutation ($job: JobInput!, $allow: Boolean!) { submitJobs(input: { jobs: [$job], allowUnfit: $allow }) { jobs { id whyWaiting { code startsAt numbers { name value } } } errors { index field code message } } }';
interface Submitted {
  submitJobs: {
    jobs: { id: string; whyWaiting: { code: string; startsAt: string | null; numbers: object[] } }[];
    errors: { index: number; field: string; code: string; message: string }[];
  };
}
const submit = async (job: object, allow = false): Promise<Submitted['submitJobs']> =>
  (await api.must<Submitted>(SUBMIT, { job: { command: 'x', ...job }, allow }, key)).submitJobs;

beforeAll(async () => {
  key = (await api.user('USER', unique('user'))).key;
  // Nothing is registered yet: anything may come.
  expect((await submit({ cpusPerTask: 1000 })).errors).toEqual([]);
  const site = 'mutation ($name: String!) { createSite(input: { name: $name }) { site { id } } }';
  const machines =
    'mutation ($inputs: [CreateMachineInput!]!) { createMachines(input: { machines: $inputs }) { machines { id } } }';
  for (const [cpus, count] of [
    [16, 1],
    [4, 3],
  ] as const) {
    const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(site, {
      name: unique('site'),
    });
    const inputs = Array.from({ length: count }, (_, i) => ({
      ...{
        siteId: createSite.site.id,
        name: `m${i}`,
        cpus,
        memoryMb: 1000 * cpus,
        os: 'linux',
        architecture: 'x64',
      },
    }));
    await api.must(machines, { inputs });
  }
  // What was registered is known a moment later.
  while ((await submit({ cpusPerTask: 1000 })).errors.length === 0)
    await new Promise((resolve) => setTimeout(resolve, 200));
});

test.each([
  [{ cpusPerTask: 17 }, 'cpusPerTask', '16 CPUs on one machine'],
  [{ cpusPerTask: 2, tasks: 9 }, 'tasks', '8 at one site'],
  [{ memoryMbPerTask: 16_001 }, 'memoryMbPerTask', '16000 MB on one machine'],
  [{ memoryMbPerTask: 8_000, tasks: 3 }, 'tasks', '2 at one site'],
  [{ os: 'plan9' }, 'os', 'linux x64'],
  [{ architecture: 'mips' }, 'architecture', 'linux x64'],
  [{ licenses: ['matlab'] }, 'licenses', 'none'],
])('%j is refused, with the nearest', async (job, field, nearest) => {
  const { jobs, errors } = await submit(job);
  expect(jobs).toEqual([]);
  expect(errors).toMatchObject([
    { index: 0, field, code: 'NEVER_FITS', message: expect.stringContaining(`nearest: ${nearest}`) },
  ]);
  // On request it waits, and says why.
  const { jobs: waiting } = await submit(job, true);
  expect(waiting[0]?.whyWaiting).toMatchObject({
    code: expect.stringMatching(/^NEVER_FITS_/),
    startsAt: null,
  });
  const group = `mutation ($job: JobInput!) { submitJobGroup(input: { template: $job, count: 3 }) { jobIds errors { code field } } }`;
  expect(await api.must(group, { job: { command: 'x', ...job } }, key)).toEqual({
    submitJobGroup: { jobIds: [], errors: [{ code: 'NEVER_FITS', field: `template.${field}` }] },
  });
});

test('what fits is not', async () => {
  for (const job of [
    { cpusPerTask: 16 },
    { cpusPerTask: 4, tasks: 4 },
    { os: 'linux', memoryMbPerTask: 16_000 },
  ])
    expect((await submit(job)).errors).toEqual([]);
});

test('a limit that no site accepts is refused, with the longest that one does', async () => {
  const { sites } = await api.must<{ sites: { nodes: { id: string; name: string; cpus: number }[] } }>(
    '{ sites { nodes { id name cpus } } }',
  );
  const limit = (cpus: number, maxLimitS: number | null) => {
    const { id } = sites.nodes.find((site) => site.cpus === cpus) as { id: string };
    return api.must(
      'mutation ($id: ID!, $s: Float) { updateSite(input: { siteId: $id, maxLimitS: $s }) { site { id } } }',
      {
        ...{ id, s: maxLimitS },
      },
    );
  };
  await limit(16, 3600);
  await limit(12, 7200);
  const long = { cpusPerTask: 4, runTimeLimitS: 7201 };
  const small = sites.nodes.find(({ cpus }) => cpus === 12)?.name;
  // What was set is known a moment later.
  await expect
    .poll(async () => (await submit(long)).errors, { timeout: 20_000, interval: 200 })
    .toMatchObject([
      {
        ...{ code: 'NEVER_FITS', field: 'runTimeLimitS' },
        message: expect.stringContaining(
          `runTimeLimitS: 7201 s can never run on the registered machines; nearest: 7200 s at site ${small}`,
        ),
      },
    ]);
  expect((await submit({ ...long, runTimeLimitS: 7200 })).errors).toEqual([]);
  // Jobs of one submission that are alike but for their limits are judged each.
  const { submitJobs } = await api.must<{ submitJobs: { errors: { index: number }[] } }>(
    'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { errors { index } } }',
    { jobs: [7200, 7201, 7200].map((runTimeLimitS) => ({ ...long, command: 'x', runTimeLimitS })) },
    key,
  );
  expect(submitJobs.errors).toEqual([{ index: 1 }]);
  expect((await submit({ cpusPerTask: 4 })).errors).toEqual([]);
  // Only the site that allows less could run it.
  expect((await submit({ cpusPerTask: 16, runTimeLimitS: 7200 })).errors).toMatchObject([
    { message: expect.stringContaining('nearest: 3600 s at site') },
  ]);
  expect((await submit(long, true)).errors).toEqual([]);
  await limit(16, null);
  await limit(12, null);
});

test('what was registered a moment ago is submitted for at once, at every process of the API', async () => {
  const second = createApi({ ...api.parts, config: { ...api.parts.config, port: 0 } });
  const url = await second.listen();
  const faultsAt = async (query: string, variables: object): Promise<{ code: string }[]> => {
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify({ query, variables }),
    });
    const { data } = (await response.json()) as { data: Record<string, { errors: { code: string }[] }> };
    return Object.values(data)[0]?.errors ?? [];
  };
  const faults = async (job: object): Promise<string[][]> => {
    const both = [
      (await submit(job)).errors,
      await faultsAt(SUBMIT, { job: { command: 'x', ...job }, allow: false }),
    ];
    return both.map((errors) => errors.map(({ code }) => code));
  };
  const refused = [['NEVER_FITS'], ['NEVER_FITS']];
  const site = (
    await api.must<{ createSite: { site: { id: string } } }>(
      'mutation ($name: String!) { createSite(input: { name: $name }) { site { id } } }',
      { name: unique('site') },
    )
  ).createSite.site.id;
  const machine = (cpus: number) =>
    api.must<{ createMachine: { machine: { id: string } } }>(
      `mutation ($site: ID!, $name: String!, $cpus: Int!) {
        createMachine(input: { siteId: $site, name: $name, cpus: $cpus, memoryMb: 100 }) { machine { id } } }`,
      { site, name: unique('m'), cpus },
    );

  try {
    const waiting = (await submit({}, true)).jobs[0]?.id as string;
    // A refusal reads what is registered: it is remembered by both when the machine comes.
    expect(await faults({ cpusPerTask: 32 })).toEqual(refused);
    const { createMachine } = await machine(32);
    expect(await faults({ cpusPerTask: 32 })).toEqual([[], []]);

    expect(await faults({ licenses: ['ansys'] })).toEqual(refused);
    const license = await api.must<{ createLicense: { license: { id: string } } }>(
      'mutation { createLicense(input: { kind: "ansys", copies: 1 }) { license { id } } }',
    );
    expect(await faults({ licenses: ['ansys'] })).toEqual([[], []]);
    const two = { resources: [{ kind: 'ansys', amount: 2 }] };
    expect(await faults(two)).toEqual(refused);
    await api.must(
      'mutation ($id: ID!) { updateLicense(input: { licenseId: $id, copies: 2 }) { license { id } } }',
      { id: license.createLicense.license.id },
    );
    expect(await faults(two)).toEqual([[], []]);

    await api.must(
      'mutation ($id: ID!) { updateSite(input: { siteId: $id, maxLimitS: 100 }) { site { id } } }',
      {
        id: site,
      },
    );
    const long = { cpusPerTask: 32, runTimeLimitS: 200 };
    await expect.poll(() => faults(long), { timeout: 20_000, interval: 200 }).toEqual(refused);
    await api.must(
      'mutation ($id: ID!) { updateSite(input: { siteId: $id, maxLimitS: 200 }) { site { id } } }',
      { id: site },
    );
    expect(await faults(long)).toEqual([[], []]);

    // A group of jobs, and a job that is changed.
    const group =
      'mutation ($job: JobInput!) { submitJobGroup(input: { template: $job, count: 2 }) { errors { code } } }';
    const change = `mutation ($id: ID!, $cpus: Int!) {
      updateJobs(input: { selection: { ids: [$id] }, set: { cpusPerTask: $cpus } }) { unchanged { code } } }`;
    const big = { job: { command: 'x', cpusPerTask: 48 } };
    expect(await faultsAt(group, big)).toMatchObject([{ code: 'NEVER_FITS' }]);
    expect(await api.must(change, { id: waiting, cpus: 48 }, key)).toEqual({
      updateJobs: { unchanged: [{ code: 'NEVER_FITS' }] },
    });
    await api.must(
      'mutation ($id: ID!) { updateMachine(input: { machineId: $id, cpus: 48 }) { machine { id } } }',
      { id: createMachine.machine.id },
    );
    expect(await faultsAt(group, big)).toEqual([]);
    expect(await api.must(change, { id: waiting, cpus: 48 }, key)).toEqual({ updateJobs: { unchanged: [] } });

    // A peer has told of a machine, or is offered jobs again.
    const kinds = [
      {
        ...{ site: 1, os: 'linux', architecture: 'x64', cpus: 64, memoryMb: 100_000, maxTasks: null },
        ...{ machines: 1, hops: 1, licenses: [], devices: [] },
      },
    ];
    await api.must('mutation { setPeer(input: { name: "other" }) { peer { site { id } } } }');
    expect(await faults({ cpusPerTask: 64 })).toEqual(refused);
    await api.db.pool.query('UPDATE peers SET kinds = $1', [JSON.stringify(kinds)]);
    expect(await faults({ cpusPerTask: 64 })).toEqual([[], []]);
  } finally {
    await second.close();
  }
});

test('however many jobs are refused, what is registered is read again only when it has changed', async () => {
  const queries = {
    sites: vi.fn(async () => [{ id: 1, name: 's', state: 'UP', load: null, maxLimitS: null }]),
    machines: vi.fn(async () => [
      {
        ...{ id: 1, siteId: 1, name: 'm', cpus: 4, memoryMb: 1_000, benchmark: 100, os: 'linux' },
        ...{ architecture: 'x64', resources: {}, labels: {}, devices: [], maxTasks: null },
      },
    ]),
    licenses: vi.fn(async () => []),
    latestCursor: vi.fn(async () => '7'),
    isRegisteredAnew: vi.fn(async (_cursor: string) => false),
  };
  // Of rows only what fitting reads is given.
  const known = createResources(
    queries as unknown as Parameters<typeof createResources>[0],
    { peers: async () => [] },
    () => 1,
  );
  const fits = createFits(known);
  const unfit = { ...PLAIN_JOB, cpusPerTask: 5 };
  for (let i = 0; i < 50; i++) {
    const judge = await fits.remembered();
    for (let k = 0; k < 20; k++) expect(await judge(unfit)).toMatchObject({ code: 'NEVER_FITS' });
  }
  expect(queries.machines).toHaveBeenCalledTimes(1);
  // Once for each submission, however many of its jobs do not fit.
  expect(queries.isRegisteredAnew.mock.calls).toEqual(Array(50).fill(['7']));
  queries.isRegisteredAnew.mockResolvedValueOnce(true);
  await (await fits.remembered())(unfit);
  expect(queries.machines).toHaveBeenCalledTimes(2);
});
