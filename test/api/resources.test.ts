/** Kinds of resources besides CPUs and memory, and labels: declared of machines, asked for by jobs. */
import { expect, test, vi } from 'vitest';
import { PATIENCE_MS } from '../support/patience.js';
import { unique, withApi } from './support/api.js';

const api = withApi();

const newSite = async (): Promise<string> =>
  (
    await api.must<{ createSite: { site: { id: string } } }>(
      'mutation ($name: String!) { createSite(input: { name: $name }) { site { id } } }',
      { name: unique('site') },
    )
  ).createSite.site.id;

interface Amount {
  kind: string;
  amount: number;
}
const register = (site: string, resources: Amount[]) =>
  api.ask<{ createMachine: { machine: { id: string; resources: (Amount & { used: number })[] } } }>(
    `mutation ($site: ID!, $resources: [ResourceAmountInput!]!) { createMachine(input:
      { siteId: $site, name: "m", cpus: 4, memoryMb: 100, resources: $resources }) { machine { id resources { kind amount used } } } }`,
    { site, resources },
  );
const submit = (resourcesPerTask: Amount[], allowUnfit = false) =>
  api.must<{
    submitJobs: { jobs: { resourcesPerTask: Amount[] }[]; errors: { code: string; message: string }[] };
  }>(
    `mutation ($job: JobInput!, $allowUnfit: Boolean!) { submitJobs(input: { jobs: [$job], allowUnfit: $allowUnfit }) {
      jobs { resourcesPerTask { kind amount } } errors { code message } } }`,
    { job: { command: 'true', resourcesPerTask }, allowUnfit },
  );
const messageOf = ({ errors }: { errors?: readonly { message: string; extensions: object }[] | undefined }) =>
  JSON.stringify(errors?.[0]?.extensions) + errors?.[0]?.message;

test('a machine has what it is registered with, and jobs ask for kinds that there are', async () => {
  const { data } = await register(await newSite(), [
    { kind: 'tape-drive', amount: 1 },
    { kind: 'gpu:a100', amount: 4 },
  ]);
  expect(data.createMachine.machine.resources).toEqual([
    { kind: 'gpu:a100', amount: 4, used: 0 },
    { kind: 'tape-drive', amount: 1, used: 0 },
  ]);
  const asked = [
    { kind: 'tape-drive', amount: 1 },
    { kind: 'gpu:a100', amount: 2 },
  ];
  expect((await submit(asked)).submitJobs.jobs[0]?.resourcesPerTask).toEqual([asked[1], asked[0]]);
  expect((await submit([])).submitJobs.jobs[0]?.resourcesPerTask).toEqual([]);
  const refused = async (resources: Amount[], allowUnfit = false) =>
    (await submit(resources, allowUnfit)).submitJobs.errors.map(({ code, message }) => `${code} ${message}`);
  // Whether or not it may wait for a machine that could run it: nobody has declared this kind.
  for (const allowUnfit of [false, true])
    expect(await refused([{ kind: 'gpu', amount: 1 }], allowUnfit)).toEqual([
      expect.stringMatching(/resourcesPerTask.*gpu.*gpu:a100, tape-drive/s),
    ]);
  expect(await refused([{ kind: 'gpu:a100', amount: 5 }])).toEqual([
    expect.stringMatching(/NEVER_FITS resourcesPerTask: gpu:a100=5.*nearest: gpu:a100=4 on one machine/s),
  ]);
  expect(await refused([{ kind: 'gpu:a100', amount: 5 }], true)).toEqual([]);
});

test('what is no kind or amount is refused by name', async () => {
  const site = await newSite();
  const bad: [Amount[], RegExp][] = [
    [[{ kind: 'cpus', amount: 1 }], /resources\[0\]\.kind.*cpus/s],
    [[{ kind: '2x', amount: 1 }], /resources\[0\]\.kind.*2x/s],
    [[{ kind: 'a', amount: 0 }], /resources\[0\]\.amount.*0.*1 to/s],
    [
      [
        { kind: 'a', amount: 1 },
        { kind: 'a', amount: 2 },
      ],
      /resources\[1\]\.kind.*each kind once/s,
    ],
    [Array.from({ length: 33 }, (_, i) => ({ kind: `k${i}`, amount: 1 })), /resources.*33.*up to 32/s],
  ];
  for (const [resources, message] of bad) expect(messageOf(await register(site, resources))).toMatch(message);
});

test('a machine keeps what its jobs hold', async () => {
  const site = await newSite();
  const { id } = (await register(site, [{ kind: 'disk', amount: 3 }])).data.createMachine.machine;
  const number = Number(id.split('_')[1]);
  await api.db.pool.query(`UPDATE machines SET resources_used = '{"disk": 2}' WHERE id = $1`, [number]);
  const change = (resources: Amount[]) =>
    api.ask<{ updateMachine: { machine: { resources: object[] } } }>(
      `mutation ($machine: ID!, $resources: [ResourceAmountInput!]) { updateMachine(input: { machineId: $machine, resources: $resources }) {
        machine { resources { kind amount used } } } }`,
      { machine: id, resources },
    );
  expect(messageOf(await change([{ kind: 'disk', amount: 1 }]))).toMatch(/CONFLICT.*jobs use 2 disk/s);
  expect(messageOf(await change([]))).toMatch(/jobs use 2 disk/);
  const { data } = await change([{ kind: 'disk', amount: 2 }]);
  expect(data.updateMachine.machine.resources).toEqual([{ kind: 'disk', amount: 2, used: 2 }]);
});

const label = (machine: string, labels: { name: string; value?: string }[]) =>
  api.ask<{ updateMachine: { machine: { labels: { name: string; value: string }[] } } }>(
    `mutation ($machine: ID!, $labels: [MachineLabelInput!]) { updateMachine(input: { machineId: $machine, labels: $labels }) { machine { labels { name value } } } }`,
    { machine, labels },
  );
const submitWhere = async (machineConstraint: string, allowUnfit = false) =>
  (
    await api.must<{
      submitJobs: { jobs: { id: string; machineConstraint: string }[]; errors: { message: string }[] };
    }>(
      `mutation ($job: JobInput!, $allowUnfit: Boolean!) { submitJobs(input: { jobs: [$job], allowUnfit: $allowUnfit }) {
        jobs { id machineConstraint } errors { message } } }`,
      { job: { command: 'true', machineConstraint }, allowUnfit },
    )
  ).submitJobs;

test('a job asks for labels; what no machine is, is said with the part that fails', async () => {
  const { data } = await register(await newSite(), []);
  const labeled = await label(data.createMachine.machine.id, [{ name: 'gen', value: '3' }, { name: 'fast' }]);
  expect(labeled.data.updateMachine.machine.labels).toEqual([
    { name: 'fast', value: '' },
    { name: 'gen', value: '3' },
  ]);
  // What there is, is remembered for two seconds.
  const good = await vi.waitFor(
    async () => {
      const answer = await submitWhere('fast and gen >= 2 and os = linux');
      expect(answer.errors).toEqual([]);
      return answer;
    },
    { timeout: PATIENCE_MS, interval: 200 },
  );
  expect(good.jobs[0]?.machineConstraint).toBe('fast and gen >= 2 and os = linux');
  const never = async (text: string) => (await submitWhere(text)).errors.map(({ message }) => message);
  expect(await never('fast and (gen = 4 or gen = "3.0") and os = linux')).toEqual([
    expect.stringMatching(/machineConstraint: gen = 4 or gen = "3.0" can never run.*nearest: fast, gen=3/),
  ]);
  expect(await never('fast and and slow')).toEqual([expect.stringMatching(/SYNTAX at position 9/)]);
  const { jobs } = await submitWhere('fast and gen = 4', true);
  const why = await api.must<{ job: { whyWaiting: { code: string; message: string } } }>(
    'query ($id: ID!) { job(id: $id) { whyWaiting { code message } } }',
    { id: jobs[0]?.id },
  );
  expect(why.job.whyWaiting).toEqual({
    code: 'NEVER_FITS_CONSTRAINT',
    message: expect.stringMatching(/The part that fails: gen = 4$/),
  });
});

/** What a job asks for that only some agents have: its field, the label of their machines, and what its user is told. */
interface OnlyWhere {
  field: string;
  value: unknown;
  label: string;
  refused: RegExp;
  waits: RegExp;
}
async function runsOnlyWhere(only: OnlyWhere): Promise<void> {
  const submitIn = async (more: object, allowUnfit = false) =>
    (
      await api.must<{
        submitJobs: { jobs: { id: string }[]; errors: { message: string }[] };
      }>(
        `mutation ($job: JobInput!, $allowUnfit: Boolean!) { submitJobs(input: { jobs: [$job], allowUnfit: $allowUnfit }) {
          jobs { id } errors { field message } } }`,
        { job: { command: 'true', [only.field]: only.value, ...more }, allowUnfit },
      )
    ).submitJobs;
  const why = async (id: string | undefined) =>
    (
      await api.must<{ job: { whyWaiting: { code: string; message: string } } }>(
        'query ($id: ID!) { job(id: $id) { whyWaiting { code message } } }',
        { id },
      )
    ).job.whyWaiting;
  const { data } = await register(await newSite(), []);
  await label(data.createMachine.machine.id, [{ name: 'kept' }]);
  expect((await submitIn({})).errors).toEqual([
    { field: only.field, message: expect.stringMatching(only.refused) },
  ]);
  const lacking = await submitIn({}, true);
  expect(await why(lacking.jobs[0]?.id)).toEqual({
    code: 'NEVER_FITS_CONSTRAINT',
    message: expect.stringMatching(only.waits),
  });
  // The most that people may write, which the label comes before.
  const deep = `${'('.repeat(64)}kept${')'.repeat(64)}`;
  const long = `kept${' or other'.repeat(454)}`;
  const waiting = await submitIn({ machineConstraint: deep }, true);
  expect((await why(waiting.jobs[0]?.id)).code).toBe('NEVER_FITS_CONSTRAINT');
  await label(data.createMachine.machine.id, [{ name: 'kept' }, { name: only.label, value: 'yes' }]);
  for (const id of [lacking, waiting].map(({ jobs }) => jobs[0]?.id))
    expect((await why(id)).code).not.toBe('NEVER_FITS_CONSTRAINT');
  // What there is, is remembered for two seconds.
  await vi.waitFor(
    async () => {
      for (const machineConstraint of [null, deep, long])
        expect((await submitIn({ machineConstraint })).errors).toEqual([]);
    },
    { timeout: PATIENCE_MS, interval: 200 },
  );
  expect((await submitIn({ machineConstraint: 'other' })).errors).toEqual([
    { field: 'machineConstraint', message: expect.stringMatching(/machineConstraint: other can never run/) },
  ]);
}

test('a job in an image runs only where an agent runs images', () =>
  runsOnlyWhere({
    ...{ field: 'image', value: 'debian:12', label: 'containers' },
    refused: /image: debian:12 can never run.*AGENT_IMAGES/,
    waits: /runs in an image, and no machine of that kind has an agent that runs images/,
  }));

test('an image is named as registries name it', async () => {
  for (const image of [
    '',
    '/etc',
    '../etc',
    'a/../b',
    'a//b',
    'a/',
    '-x',
    'a b',
    'docker://x',
    'x'.repeat(201),
  ])
    expect(
      (
        await api.must<{ submitJobs: { errors: { message: string }[] } }>(
          'mutation ($job: JobInput!) { submitJobs(input: { jobs: [$job] }) { errors { field message } } }',
          { job: { command: 'true', image } },
        )
      ).submitJobs.errors,
      image,
    ).toEqual([{ field: 'image', message: expect.stringMatching(/image: .*; accepted/s) }]);
});

test('what is no label is refused by name', async () => {
  const { data } = await register(await newSite(), []);
  for (const [labels, message] of [
    [[{ name: 'os', value: 'x' }], /labels\[0\]\.name.*not and, or, not, in, os/s],
    [[{ name: '9' }], /labels\[0\]\.name/],
    [[{ name: 'and' }], /labels\[0\]\.name/],
    [[{ name: 'a' }, { name: 'a' }], /labels\[1\]\.name.*each name once/s],
    [[{ name: 'a', value: 'x'.repeat(201) }], /labels\[0\]\.value.*200/s],
  ] as const)
    expect(messageOf(await label(data.createMachine.machine.id, [...labels]))).toMatch(message);
});

test('a job says how its tasks are spread; what no machines could do is refused with what there is', async () => {
  const site = await newSite();
  for (const name of ['a', 'b'])
    await api.must(
      `mutation ($site: ID!, $name: String!) { createMachine(input: { siteId: $site, name: $name, cpus: 4, memoryMb: 100, os: "spread" }) { machine { id } } }`,
      { site, name },
    );
  const spread = async (job: object) =>
    (
      await api.must<{ submitJobs: { jobs: object[]; errors: { code: string; message: string }[] } }>(
        `mutation ($job: JobInput!) { submitJobs(input: { jobs: [$job] }) {
          jobs { tasks memoryMbPerTask exclusive tasksPerMachine { min max } } errors { code message } } }`,
        { job: { command: 'true', os: 'spread', ...job } },
      )
    ).submitJobs;
  // What there is, is remembered for two seconds.
  await vi.waitFor(async () => expect((await spread({})).errors).toEqual([]), {
    timeout: PATIENCE_MS,
    interval: 200,
  });
  const given = { tasks: 4, tasksPerMachine: { min: 2, max: 2 }, exclusive: 'MACHINE' };
  expect((await spread({ ...given, memoryMbPerCpu: 7, memoryMbPerTask: 5 })).jobs).toEqual([
    { ...given, memoryMbPerTask: 7 },
  ]);
  expect((await spread({ tasks: 3, cpusPerTask: 2, memoryMbPerCpu: 7, memoryMbPerTask: 15 })).jobs).toEqual([
    { tasks: 3, memoryMbPerTask: 15, exclusive: null, tasksPerMachine: null },
  ]);
  const alike = async (job: object) =>
    (
      await api.must<{ submitJobs: { jobs: object[]; errors: { message: string }[] } }>(
        `mutation ($job: JobInput!) { submitJobs(input: { jobs: [$job] }) { jobs { allAlike sameSwitch { maxWaitS } } errors { message } } }`,
        { job: { command: 'true', os: 'spread', tasks: 2, ...job } },
      )
    ).submitJobs;
  expect(await alike({ allAlike: ['os', 'architecture'], sameSwitch: { maxWaitS: 30 } })).toEqual({
    ...{ jobs: [{ allAlike: ['architecture', 'os'], sameSwitch: { maxWaitS: 30 } }], errors: [] },
  });
  for (const [job, message] of [
    [{ sameSwitch: {} }, /^sameSwitch: 2 tasks on machines with the same switch can never run/],
    [{ allAlike: ['rack'] }, /^allAlike: 2 tasks on machines with the same rack can never run/],
    [{ allAlike: ['a b'] }, /^allAlike: .*a b.*names of labels/],
    [{ allAlike: ['a', 'a'] }, /^allAlike: .*each label once/],
    [{ sameSwitch: { maxWaitS: -1 } }, /^sameSwitch\.maxWaitS.*-1/],
  ] as const)
    expect((await alike(job)).errors).toEqual([{ message: expect.stringMatching(message) }]);
  expect((await spread({ exclusive: 'USER' })).jobs).toMatchObject([{ exclusive: 'USER' }]);
  const faults = async (job: object) =>
    (await spread(job)).errors.map(({ code, message }) => `${code} ${message}`);
  for (const [job, message] of [
    [
      { tasks: 3, tasksPerMachine: { min: 1, max: 1 } },
      /^NEVER_FITS tasksPerMachine: 3 tasks with exactly 1 on each machine can never run .*nearest: up to 3 on 2 machines/,
    ],
    [
      { tasks: 5, tasksPerMachine: { min: 5 } },
      /^NEVER_FITS .*5 tasks with at least 5 on each .*up to 4 on 2/,
    ],
    [
      { tasks: 2, tasksPerMachine: { min: 3 } },
      /^BAD_USER_INPUT tasksPerMachine\.min.*3.*number of tasks, 2/,
    ],
    [{ tasks: 2, tasksPerMachine: { min: 0 } }, /^BAD_USER_INPUT tasksPerMachine\.min.*0.*1/],
    [{ tasks: 4, tasksPerMachine: { min: 2, max: 1 } }, /^BAD_USER_INPUT tasksPerMachine\.max.*1.*2/],
    [{ cpusPerTask: 3, memoryMbPerCpu: 1e9 }, /^BAD_USER_INPUT memoryMbPerCpu.*1000000000.*2147483647/],
    [{ memoryMbPerCpu: -1 }, /^BAD_USER_INPUT memoryMbPerCpu.*-1/],
  ] as const)
    expect(await faults(job)).toEqual([expect.stringMatching(message)]);
});

test('kinds of resources are listed with what there is, used, free where jobs are accepted, and where', async () => {
  const [here, there] = [await newSite(), await newSite()];
  const disk = unique('disk');
  const license = unique('license');
  const ids = await Promise.all(
    [here, here, there].map(async (site, i) => {
      const { createMachine } = await api.must<{ createMachine: { machine: { id: string } } }>(
        `mutation ($site: ID!, $name: String!, $of: [ResourceAmountInput!]!, $devices: [DeviceInput!]!) { createMachine(input:
          { siteId: $site, name: $name, cpus: 4, memoryMb: 100, resources: $of, devices: $devices }) { machine { id } } }`,
        {
          ...{ site, name: `m${i}`, of: [{ kind: disk, amount: 10 * (i + 1) }] },
          devices: [{ id: 'd0', kind: `${disk}.gpu`, model: `model${i % 2}`, shares: 2 }],
        },
      );
      return Number(createMachine.machine.id.split('_')[1]);
    }),
  );
  // The second one has no agent; nobody knows what is free there.
  await api.db.pool.query(
    `UPDATE machines SET silent = id = $1, resources_used = $2::jsonb WHERE id = ANY ($3)`,
    [ids[1], JSON.stringify({ [disk]: 7 }), ids],
  );
  for (const [site, copies] of [
    [here, 3],
    [there, 2],
    [null, 4],
  ])
    await api.must(
      `mutation ($site: ID, $kind: String!, $copies: Int!) { createLicense(input: { siteId: $site, kind: $kind, copies: $copies }) { license { id } } }`,
      { site, kind: license, copies },
    );
  await api.db.pool.query('UPDATE licenses SET in_use = 1 WHERE kind = $1', [license]);
  const { resourceKinds, sites } = await api.must<{
    resourceKinds: { name: string; sites: { id: string }[] }[];
    sites: { nodes: { id: string }[] };
  }>(
    `{ resourceKinds { name countedOn unit total inUse free largest models sites { id } } sites(first: 1000) { nodes { id } } }`,
  );
  const named = (name: string) => resourceKinds.filter((kind) => kind.name === name);
  const machines = { countedOn: 'MACHINE', unit: null, sites: [here, there].map((id) => ({ id })) };
  expect(named(disk)).toEqual([
    { ...machines, name: disk, total: 60, inUse: 21, free: 3 + 23, largest: 30, models: [] },
  ]);
  expect(named(`${disk}.gpu`)).toEqual([
    {
      ...{ ...machines, name: `${disk}.gpu`, total: 6, inUse: 0, free: 4, largest: 2 },
      models: ['model0', 'model1'],
    },
  ]);
  expect(named(license)).toEqual([
    {
      ...{
        name: license,
        countedOn: 'GRID',
        unit: null,
        total: 9,
        inUse: 3,
        free: 6,
        largest: 7,
        models: [],
      },
      sites: expect.arrayContaining(sites.nodes),
    },
  ]);
  expect(named('cpus')).toHaveLength(1);
  expect(resourceKinds.map(({ name }) => name)).toEqual(resourceKinds.map(({ name }) => name).sort());
});

test('a job may have parts, whose tasks ask for different things; what is wrong with one names it', async () => {
  const site = await newSite();
  for (const [name, cpus, gpus] of [
    ['a', 4, 0],
    ['b', 8, 2],
  ] as const)
    await api.must(
      `mutation ($input: CreateMachineInput!) { createMachine(input: $input) { machine { id } } }`,
      {
        input: {
          ...{
            siteId: site,
            name,
            cpus,
            memoryMb: 100,
            os: 'parted',
            labels: [{ name: 'gen', value: String(cpus) }],
          },
          resources: gpus > 0 ? [{ kind: 'parted-gpu', amount: gpus }] : [],
        },
      },
    );
  const FIELDS = `tasks cpusPerTask cpus memoryMbPerTask resourcesPerTask { kind amount } machineConstraint
    parts { tasks cpusPerTask memoryMbPerTask resourcesPerTask { kind amount } tasksPerMachine { min max } exclusive allAlike sameSwitch { maxWaitS } machineConstraint }`;
  const submitParts = async (job: object) =>
    (
      await api.must<{
        submitJobs: { jobs: { parts: object[] }[]; errors: { code: string; message: string }[] };
      }>(
        `mutation ($job: JobInput!) { submitJobs(input: { jobs: [$job] }) { jobs { ${FIELDS} } errors { code message } } }`,
        { job: { command: 'true', os: 'parted', ...job } },
      )
    ).submitJobs;
  await vi.waitFor(async () => expect((await submitParts({})).errors).toEqual([]), {
    timeout: PATIENCE_MS,
    interval: 200,
  });
  const none = { tasksPerMachine: null, exclusive: null, allAlike: null, sameSwitch: null };
  const gpu = [{ kind: 'parted-gpu', amount: 1 }];
  const parts = [
    { tasks: 3, cpusPerTask: 1, memoryMbPerCpu: 10 },
    { cpusPerTask: 2, memoryMbPerTask: 5, resourcesPerTask: gpu, machineConstraint: 'gen >= 8' },
  ];
  expect(await submitParts({ parts, machineConstraint: 'gen > 1' })).toEqual({
    errors: [],
    jobs: [
      {
        ...{ tasks: 4, cpusPerTask: 2, cpus: 5, memoryMbPerTask: 10, resourcesPerTask: gpu },
        machineConstraint: 'gen > 1',
        parts: [
          {
            ...none,
            tasks: 3,
            cpusPerTask: 1,
            memoryMbPerTask: 10,
            resourcesPerTask: [],
            machineConstraint: null,
          },
          {
            ...{ ...none, tasks: 1, cpusPerTask: 2, memoryMbPerTask: 5, resourcesPerTask: gpu },
            machineConstraint: 'gen >= 8',
          },
        ],
      },
    ],
  });
  // Each part may have its machines to its user, and wait for one switch for a time of its own.
  const apart = [{ exclusive: 'USER', sameSwitch: { maxWaitS: 60 } }, { sameSwitch: { maxWaitS: 0 } }];
  expect((await submitParts({ parts: apart })).jobs[0]?.parts).toMatchObject([
    apart[0],
    { ...apart[1], exclusive: null },
  ]);
  // One part is a job like any other.
  expect((await submitParts({ parts: [parts[1]], machineConstraint: 'gen > 1' })).jobs).toEqual([
    {
      ...{ tasks: 1, cpusPerTask: 2, cpus: 2, memoryMbPerTask: 5, resourcesPerTask: gpu, parts: [] },
      machineConstraint: '(gen > 1) and (gen >= 8)',
    },
  ]);
  for (const [job, message] of [
    [{ parts: [] }, /^BAD_USER_INPUT parts.*0.*1 to 16 parts/],
    [{ parts: new Array(17).fill({}) }, /^BAD_USER_INPUT parts.*17.*1 to 16 parts/],
    [{ parts: [{}, {}], tasks: 2 }, /^BAD_USER_INPUT tasks.*2.*it has parts/],
    [{ parts: [{}, {}], exclusive: 'MACHINE' }, /^BAD_USER_INPUT exclusive.*MACHINE.*it has parts/],
    [{ parts: [{}, {}], sameSwitch: {} }, /^BAD_USER_INPUT sameSwitch.*it has parts/],
    [{ parts: [{}, { tasks: 0 }] }, /^BAD_USER_INPUT parts\[1\]\.tasks.*0.*1 to/],
    [
      { parts: [{}, { sameSwitch: { maxWaitS: -1 } }] },
      /^BAD_USER_INPUT parts\[1\]\.sameSwitch\.maxWaitS.*-1/,
    ],
    [
      { parts: [{}, { tasks: 2, sameSwitch: {} }] },
      /^NEVER_FITS parts\[1\]\.sameSwitch: 2 tasks on machines with the same switch can never run/,
    ],
    [{ parts: [{}, { machineConstraint: 'gen >' }] }, /^BAD_USER_INPUT parts\[1\]\.machineConstraint.*gen >/],
    [
      { parts: [{}, {}], retry: { maxRetries: 1, rules: [{ action: 'RETRY', memoryFactor: 2 }] } },
      /^BAD_USER_INPUT retry.*memoryFactor/,
    ],
    [
      { parts: [{}, { resourcesPerTask: [{ kind: 'nothing', amount: 1 }] }] },
      /^BAD_USER_INPUT parts\[1\]\.resourcesPerTask.*nothing/,
    ],
    [
      { parts: [{}, { cpusPerTask: 9 }] },
      /^NEVER_FITS parts\[1\]\.cpusPerTask: 9 can never run .*nearest: 8 CPUs on one machine/,
    ],
    [
      { parts: [{}, { machineConstraint: 'gen = 3' }] },
      /^NEVER_FITS parts\[1\]\.machineConstraint: gen = 3 can never run/,
    ],
    [
      { parts: [{ cpusPerTask: 8 }, { resourcesPerTask: gpu }] },
      /^NEVER_FITS parts\[1\]\.tasks: 1 next to the parts before it can never run .*Part 1, next to the parts before it: .* 1 parted-gpu each\./,
    ],
  ] as const) {
    const { errors } = await submitParts(job);
    expect(errors.map(({ code, message: said }) => `${code} ${said}`)).toEqual([
      expect.stringMatching(message),
    ]);
  }
  // What is said by part cannot be changed; the rest can, as far as all parts go along.
  const change = async (id: string, set: object) =>
    (
      await api.must<{
        updateJobs: { jobs: { cpus: number }[]; unchanged: { code: string; message: string }[] };
      }>(
        `mutation ($id: ID!, $set: JobChangesInput!) { updateJobs(input: { selection: { ids: [$id] }, set: $set }) {
          jobs { cpus machineConstraint } unchanged { code message } } }`,
        { id, set },
      )
    ).updateJobs;
  const heldJob = async (job: object): Promise<string> =>
    (
      await api.must<{ submitJobs: { jobIds: string[] } }>(
        'mutation ($job: JobInput!) { submitJobs(input: { jobs: [$job] }) { jobIds } }',
        { job: { command: 'true', os: 'parted', held: true, ...job } },
      )
    ).submitJobs.jobIds[0] as string;
  const id = await heldJob({ parts });
  const answer = expect.stringMatching(
    /^cpusPerTask: job_\d+ has parts, whose requirements cannot be changed/,
  );
  expect((await change(id, { cpusPerTask: 4 })).unchanged).toEqual([{ code: 'CONFLICT', message: answer }]);
  expect(await change(id, { machineConstraint: 'gen >= 4' })).toEqual({
    ...{ jobs: [{ cpus: 5, machineConstraint: 'gen >= 4' }], unchanged: [] },
  });
  expect((await change(id, { machineConstraint: 'gen < 8' })).unchanged).toMatchObject([
    { code: 'NEVER_FITS' },
  ]);
  expect((await change(await heldJob({}), { cpusPerTask: 2 })).jobs).toMatchObject([{ cpus: 2 }]);
});

test('jobs ask for devices by what they are, of machines whose devices of one kind may differ', async () => {
  const site = await newSite();
  const machine = (devices: object[]) =>
    api.ask<{ createMachine: { machine: { devices: { id: string; oneUser: boolean }[] } } }>(
      `mutation ($site: ID!, $devices: [DeviceInput!]!) { createMachine(input:
        { siteId: $site, name: "unlike", cpus: 4, memoryMb: 100, devices: $devices }) { machine { devices { id oneUser } } } }`,
      { site, devices },
    );
  const device = (id: string, memoryMb: number, given = {}) => ({
    ...{ id, kind: 'unlike-gpu', model: 'a100', memoryMb, shares: 4 },
    ...given,
  });
  expect(messageOf(await machine([device('a', 40_000), device('b', 40_000, { shares: 7 })]))).toMatch(
    /devices.*b.*same number of shares/s,
  );
  const { data } = await machine([
    device('a', 40_000),
    device('b', 80_000, { oneUser: true }),
    device('c', 80_000, { model: 'h100' }),
  ]);
  expect(data.createMachine.machine.devices).toEqual([
    { id: 'a', oneUser: false },
    { id: 'b', oneUser: true },
    { id: 'c', oneUser: false },
  ]);
  const REQUESTS = 'devicesPerTask { kind count model minMemoryMb share { parts of } }';
  const submitted = async (job: object) =>
    (
      await api.must<{
        submitJobs: {
          jobs: { resourcesPerTask: []; devicesPerTask: object[]; parts: { devicesPerTask: object[] }[] }[];
          errors: { code: string; message: string }[];
        };
      }>(
        `mutation ($job: JobInput!) { submitJobs(input: { jobs: [$job] }) {
          jobs { resourcesPerTask { kind } ${REQUESTS} parts { ${REQUESTS} } } errors { code message } } }`,
        { job: { command: 'true', ...job } },
      )
    ).submitJobs;
  const kind = 'unlike-gpu';
  const quarter = { parts: 1, of: 4 };
  const asked = [
    { kind, model: 'a100', minMemoryMb: 60_000 },
    { kind, count: 2, share: quarter },
  ];
  // What there is, is remembered for two seconds.
  const good = await vi.waitFor(
    async () => {
      const answer = await submitted({ devicesPerTask: asked });
      expect(answer.errors).toEqual([]);
      return answer;
    },
    { timeout: PATIENCE_MS, interval: 200 },
  );
  const shown = [
    { kind, count: 1, model: 'a100', minMemoryMb: 60_000, share: null },
    { kind, count: 2, model: null, minMemoryMb: null, share: quarter },
  ];
  expect(good.jobs).toEqual([{ resourcesPerTask: [], devicesPerTask: shown, parts: [] }]);
  const parts = await submitted({ parts: [{ devicesPerTask: asked }, { tasks: 2 }] });
  expect(parts.jobs.map((job) => job.parts)).toEqual([[{ devicesPerTask: shown }, { devicesPerTask: [] }]]);
  const refused = async (...devicesPerTask: object[]) =>
    (await submitted({ devicesPerTask })).errors.map(({ code, message }) => `${code} ${message}`);
  const there =
    '1 unlike-gpu a100 (40000 MB) in 4 shares; on others 1 unlike-gpu a100 (80000 MB) in 4 shares';
  const never = (what: string) => [
    expect.stringContaining(
      `NEVER_FITS devicesPerTask: ${what} can never run on the registered machines; nearest: ${there}`,
    ),
  ];
  expect(await refused({ kind, model: 'v100' })).toEqual(never('1 unlike-gpu v100'));
  expect(await refused({ kind, count: 2, minMemoryMb: 60_000, model: 'a100' })).toEqual(
    never('2 unlike-gpu a100 (60000 MB)'),
  );
  expect(await refused({ kind, share: { parts: 1, of: 3 } })).toEqual(never('1 unlike-gpu (1/3)'));
  const bad: [object, RegExp][] = [
    [{ kind: 'nowhere' }, /devicesPerTask\[0\]\.kind.*nowhere.*a kind that a machine in service has/],
    [{ kind, count: 0 }, /devicesPerTask\[0\]\.count.*1 to 128/],
    [{ kind, minMemoryMb: -1 }, /devicesPerTask\[0\]\.minMemoryMb.*0 to/],
    [{ kind, share: { parts: 4, of: 4 } }, /devicesPerTask\[0\]\.share\.parts.*1 to 3/],
    [{ kind, share: { parts: 1, of: 1001 } }, /devicesPerTask\[0\]\.share\.of.*2 to 1000/],
  ];
  for (const [request, message] of bad)
    expect(await refused(request)).toEqual([expect.stringMatching(message)]);
});

test('a job in a terminal runs only where an agent allows terminals', () =>
  runsOnlyWhere({
    ...{ field: 'terminal', value: { rows: 24, columns: 80 }, label: 'terminal' },
    refused: /terminal: 80 × 24 can never run.*AGENT_TERMINALS/,
    waits: /has a terminal, and no machine of that kind has an agent that allows terminals/,
  }));
