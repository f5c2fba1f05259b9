/** What is counted for a site or the whole grid: declared with an amount and a unit, asked for by amount as kinds of machines are. */
import { beforeAll, expect, test } from 'vitest';
import { unique, withApi } from './support/api.js';
import { schedule } from './support/schedule.js';

const api = withApi();
const tape = unique('tape');
const scratch = unique('scratch');
let here = '';
let pool = '';

interface Amount {
  kind: string;
  amount: number;
}
interface Job {
  id: string;
  resourcesPerTask: Amount[];
  resources: Amount[];
  licenses: string[];
  whyWaiting: { code: string; message: string } | null;
}
const JOB = `id resourcesPerTask { kind amount } resources { kind amount } licenses whyWaiting { code message }`;
const submit = async (job: object, more: object = {}) =>
  (
    await api.must<{
      submitJobs: { jobs: Job[]; errors: { code: string; field: string; message: string }[] };
    }>(
      `mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobs { ${JOB} } errors { code field message } } }`,
      { input: { jobs: [{ command: 'true', estimateS: 600, ...job }], ...more } },
    )
  ).submitJobs;
const register = async (kind: string, copies: number, site: string | null, unit: string | null) =>
  (
    await api.must<{ createLicense: { license: { id: string } } }>(
      'mutation ($input: CreateLicenseInput!) { createLicense(input: $input) { license { id } } }',
      { input: { kind, copies, siteId: site, unit } },
    )
  ).createLicense.license.id;

beforeAll(async () => {
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation ($name: String!) { createSite(input: { name: $name }) { site { id } } }',
    { name: unique('alps') },
  );
  here = createSite.site.id;
  await api.must(
    `mutation ($site: ID!) { createMachine(input:
      { siteId: $site, name: "m", cpus: 64, memoryMb: 1000, resources: [{ kind: "gpu", amount: 4 }] }) { machine { id } } }`,
    { site: here },
  );
  await api.db.pool.query('UPDATE machines SET silent = false');
  pool = await register(tape, 4, here, 'drives');
  await register(scratch, 2_147_483_647, null, 'GB');
});

test('is listed with its unit, and where it is counted', async () => {
  const { resourceKinds } = await api.must<{ resourceKinds: { name: string }[] }>(
    '{ resourceKinds { name countedOn unit total inUse free largest sites { id } } }',
  );
  const named = (name: string) => resourceKinds.find((kind) => kind.name === name);
  const idle = (amount: number) => ({ total: amount, inUse: 0, free: amount, largest: amount });
  const sites = [{ id: here }];
  expect(named(tape)).toEqual({ name: tape, countedOn: 'SITE', unit: 'drives', ...idle(4), sites });
  expect(named(scratch)).toMatchObject({ countedOn: 'GRID', unit: 'GB', ...idle(2_147_483_647) });
  expect(named('memoryMb')).toMatchObject({ countedOn: 'MACHINE', unit: 'MB' });
  expect(named('gpu')).toMatchObject({ countedOn: 'MACHINE', unit: null });
});

test('is asked for per task or for the job: it is for the whole job, in either case', async () => {
  const amounts = [
    { kind: scratch, amount: 5_000 },
    { kind: tape, amount: 2 },
  ];
  const gpu = { kind: 'gpu', amount: 1 };
  const { jobs } = await submit({ tasks: 3, resourcesPerTask: [amounts[1], gpu, amounts[0]], held: true });
  expect(jobs[0]).toMatchObject({ resourcesPerTask: [gpu], resources: amounts, licenses: [] });
  const { jobs: others } = await submit({ resources: [amounts[1]], licenses: [tape], held: true });
  expect(others[0]).toMatchObject({ resourcesPerTask: [], resources: [amounts[1]], licenses: [tape] });
});

test('who asks for a name that machines have, too, gets that of machines; as a license, the other', async () => {
  await register('gpu', 7, here, null);
  const { jobs } = await submit({ resourcesPerTask: [{ kind: 'gpu', amount: 2 }], held: true });
  expect(jobs[0]).toMatchObject({ resourcesPerTask: [{ kind: 'gpu', amount: 2 }], resources: [] });
  const { jobs: others } = await submit(
    { resources: [{ kind: 'gpu', amount: 5 }], held: true },
    // It may not be known yet.
    { allowUnfit: true },
  );
  expect(others[0]).toMatchObject({ resourcesPerTask: [], resources: [{ kind: 'gpu', amount: 5 }] });
});

test('what is wrong with it is named, with what was asked and what there is', async () => {
  const refused = async (job: object) => (await submit(job)).errors[0];
  for (const field of ['resources', 'resourcesPerTask'])
    expect(await refused({ [field]: [{ kind: tape, amount: 5 }] })).toMatchObject({
      ...{ code: 'NEVER_FITS', field: 'resources' },
      message: expect.stringMatching(`${tape}: 5 drives can never run .*nearest: 4 drives at site alps`),
    });
  expect(await refused({ licenses: [tape, tape, tape, tape, tape] })).toMatchObject({ field: 'licenses' });
  expect(await refused({ resources: [{ kind: 'nothing', amount: 1 }] })).toMatchObject({
    ...{ code: 'BAD_USER_INPUT', field: 'resources' },
    message: expect.stringContaining('a kind that is counted for a site or the grid: '),
  });
  expect(await refused({ resources: [{ kind: tape, amount: 0 }] })).toMatchObject({
    field: 'resources[0].amount',
  });
  const both = [{ kind: tape, amount: 1 }];
  expect(await refused({ resources: both, resourcesPerTask: both })).toMatchObject({
    field: 'resources[0].kind',
  });
  // Parts say what their tasks have on machines.
  const parts = [{ tasks: 1, resourcesPerTask: both }, { tasks: 1 }];
  expect(await refused({ parts })).toMatchObject({ field: 'parts[0].resourcesPerTask' });
  expect((await submit({ parts: [{ tasks: 1 }, { tasks: 1 }], resources: both, held: true })).errors).toEqual(
    [],
  );
});

test('a submission that is repeated is the same, whatever has been removed meanwhile', async () => {
  const kind = unique('floating');
  const floating = await register(kind, 3, here, null);
  const asked = [{ resourcesPerTask: [{ kind, amount: 2 }], held: true }, { idempotencyKey: kind }] as const;
  // Until it is known.
  let first = await submit(...asked);
  while (first.errors.length > 0) first = await submit(...asked);
  await api.must('mutation ($id: ID!) { removeLicense(input: { licenseId: $id }) { license { id } } }', {
    id: floating,
  });
  expect((await submit(...asked)).jobs).toMatchObject([{ id: first.jobs[0]?.id }]);
});

test('is held by runs, free again when they end, and counted as it was used', async () => {
  const [running, waiting] = [
    (await submit({ application: tape, resources: [{ kind: tape, amount: 3 }] })).jobs[0] as Job,
    (await submit({ application: tape, resources: [{ kind: tape, amount: 2 }] })).jobs[0] as Job,
  ];
  await schedule(api.parts);
  const found = async (id: string) =>
    (
      await api.must<{
        job: Job & {
          state: string;
          runs: { licenses: object[]; pools: { pool: object; amount: number }[] }[];
        };
      }>(
        `query ($id: ID!) { job(id: $id) { state ${JOB} runs { licenses { id } pools { pool { id kind unit } amount } } } }`,
        { id },
      )
    ).job;
  expect(await found(running.id)).toMatchObject({
    state: 'ASSIGNED',
    runs: [
      { licenses: [{ id: pool }], pools: [{ pool: { id: pool, kind: tape, unit: 'drives' }, amount: 3 }] },
    ],
  });
  expect((await found(waiting.id)).whyWaiting).toMatchObject({
    code: 'LICENSES_BUSY',
    message: expect.stringContaining(`(2 ${tape}; 1 free)`),
  });
  // Less than what is held cannot be there; another unit can.
  const change = (input: object) =>
    api.ask(
      'mutation ($input: UpdateLicenseInput!) { updateLicense(input: $input) { license { copies unit } } }',
      {
        input: { licenseId: pool, ...input },
      },
    );
  expect((await change({ copies: 2 })).errors).toHaveLength(1);
  expect((await change({ unit: null })).data).toEqual({
    updateLicense: { license: { copies: 4, unit: null } },
  });
  expect((await change({ copies: 5 })).data).toEqual({
    updateLicense: { license: { copies: 5, unit: null } },
  });
  await schedule(api.parts);
  expect(await found(waiting.id)).toMatchObject({ state: 'ASSIGNED' });
  const { usage } = await api.must<{
    usage: { application: string; cpuS: number; resources: (Amount & { amountS: number })[] }[];
  }>(
    'query ($from: DateTime!) { usage(by: APPLICATION, from: $from) { application cpuS resources { kind countedOn amountS } } }',
    { from: new Date(Date.now() - 3_600_000).toISOString() },
  );
  const used = usage.find(({ application }) => application === tape);
  expect(used?.resources).toMatchObject([{ kind: tape, countedOn: 'SITE' }]);
  expect(used?.resources[0]?.amountS).toBeGreaterThan(2 * (used?.cpuS ?? 0));
});

test('jobs that wait may ask for another amount, and are found by it', async () => {
  const { jobs } = await submit({ resources: [{ kind: tape, amount: 1 }], held: true });
  const id = jobs[0]?.id as string;
  const change = (set: object) =>
    api.must<{ updateJobs: { jobs: object[] } }>(
      `mutation ($input: UpdateJobsInput!) { updateJobs(input: $input) {
        jobs { resourcesPerTask { kind amount } resources { kind amount } } } }`,
      { input: { selection: { ids: [id] }, set } },
    );
  const asked = [{ kind: tape, amount: 3 }];
  expect((await change({ resources: asked })).updateJobs.jobs).toEqual([
    { resourcesPerTask: [], resources: asked },
  ]);
  const mixed = [
    { kind: 'gpu', amount: 1 },
    { kind: tape, amount: 2 },
  ];
  expect((await change({ resourcesPerTask: mixed })).updateJobs.jobs).toEqual([
    { resourcesPerTask: [mixed[0]], resources: [mixed[1]] },
  ]);
  const { jobs: listed } = await api.must<{ jobs: { nodes: { id: string }[] } }>(
    'query ($license: String!) { jobs(filter: { license: $license, states: [HELD] }) { nodes { id } } }',
    { license: tape },
  );
  expect(listed.nodes.map((one) => one.id)).toContain(id);
});
