/** What can never run is told when it is submitted, with the nearest that could. */
import { beforeAll, expect, test } from 'vitest';
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
  const site = 'mutation ($name: String!) { registerSite(input: { name: $name }) { id } }';
  const machines =
    'mutation ($inputs: [RegisterMachineInput!]!) { registerMachines(inputs: $inputs) { id } }';
  for (const [cpus, count] of [
    [16, 1],
    [4, 3],
  ] as const) {
    const { registerSite } = await api.must<{ registerSite: { id: string } }>(site, { name: unique('site') });
    const inputs = Array.from({ length: count }, (_, i) => ({
      ...{
        site: registerSite.id,
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
      'mutation ($id: ID!, $s: Float) { updateSite(input: { site: $id, maxLimitS: $s }) { id } }',
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
