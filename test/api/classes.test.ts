/** Classes of jobs through the API: who may name which, what is told of them, and that the policy is what says so. */
import { beforeAll, expect, it } from 'vitest';
import { type Json, withApi } from './support/api.js';

const api = withApi();
let ada = '';
let eve = '';

const CLASSES = {
  urgent: { rank: 7, users: ['ada'], graceS: 5 },
  golden: { userClasses: ['GOLD'] },
  spare: { scavenger: true, charged: false, onPreemption: 'CANCEL' },
};

async function setPolicy(change: (document: Json) => Json): Promise<void> {
  const { policy } = await api.must<{ policy: { version: number; document: Json } }>(
    '{ policy { version document } }',
  );
  await api.must(
    'mutation ($input: UpdatePolicyInput!) { updatePolicy(input: $input) { policy { version } } }',
    {
      input: { document: change(policy.document), expectedVersion: policy.version, reason: 'classes' },
    },
  );
}
interface Submitted {
  jobs: { id: string; class: string | null; charged: boolean; preemptionClass: number }[];
  errors: { message: string; code: string; field: string }[];
}
async function submit(jobs: object[], key = ada, more: object = {}): Promise<Submitted> {
  const { submitJobs } = await api.must<{ submitJobs: Submitted }>(
    `mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) {
      jobs { id class charged preemptionClass } errors { message code field } } }`,
    {
      input: {
        jobs: jobs.map((job) => ({ command: 'true', estimateS: 1, ...job })),
        allowUnfit: true,
        ...more,
      },
    },
    key,
  );
  return submitJobs;
}
const classes = async (key: string) =>
  (
    await api.must<{ jobClasses: Json[] }>(
      `{ jobClasses { name rank isScavenger mayUse users userClasses exemptS graceS onPreemption charged waitingJobs runningJobs } }`,
      {},
      key,
    )
  ).jobClasses;

beforeAll(async () => {
  ada = (await api.user('USER', 'ada')).key;
  eve = (await api.user('USER', 'eve')).key;
});

it('without classes no job may name one, and what there is is nothing', async () => {
  expect(await classes(ada)).toEqual([]);
  expect((await submit([{ class: 'spare' }])).errors).toMatchObject([
    {
      code: 'BAD_USER_INPUT',
      field: 'class',
      message: expect.stringContaining('the policy has no classes of jobs'),
    },
  ]);
});

it('are the policy’s: those that one may use are accepted, others refused with their names', async () => {
  await setPolicy((document) => ({ ...document, classes: CLASSES }));
  const { jobs } = await submit([{ class: 'urgent' }, { class: 'spare' }, {}]);
  expect(jobs).toMatchObject([
    { class: 'urgent', charged: true, preemptionClass: 0 },
    { class: 'spare', charged: false },
    { class: null, charged: true },
  ]);
  expect(
    (await submit([{ class: 'urgent' }, { class: 'nice' }, { class: 'golden' }], eve)).errors,
  ).toMatchObject([
    {
      ...{ code: 'FORBIDDEN', field: 'class' },
      message: expect.stringContaining(
        'class: "urgent" is not accepted; accepted: spare (urgent is for certain users, operators)',
      ),
    },
    {
      code: 'BAD_USER_INPUT',
      message: expect.stringContaining('class: "nice" is not accepted; accepted: spare'),
    },
    { code: 'FORBIDDEN', message: expect.stringContaining('golden is for GOLD users, operators') },
  ]);
  // Operators may use all; a class has a rank, so a job has no other.
  expect((await submit([{ class: 'golden' }], api.adminKey)).errors).toEqual([]);
  expect((await submit([{ class: 'golden', preemptionClass: 3 }], api.adminKey)).errors).toMatchObject([
    { field: 'preemptionClass', message: expect.stringContaining('0 with a class') },
  ]);
  expect((await submit([{ class: 'x'.repeat(65) }], api.adminKey)).errors[0]).toMatchObject({
    field: 'class',
  });
});

it('are listed as they act, with how many jobs wait; users see their own', async () => {
  expect(await classes(ada)).toEqual([
    {
      ...{ name: 'golden', rank: 0, isScavenger: false, mayUse: false, users: null, userClasses: ['GOLD'] },
      ...{ exemptS: 600, graceS: 30, onPreemption: 'REQUEUE', charged: true, waitingJobs: 0, runningJobs: 0 },
    },
    {
      ...{ name: 'spare', rank: -1, isScavenger: true, mayUse: true, users: null, userClasses: null },
      ...{ exemptS: 0, graceS: 30, onPreemption: 'CANCEL', charged: false, waitingJobs: 1, runningJobs: 0 },
    },
    {
      ...{ name: 'urgent', rank: 7, isScavenger: false, mayUse: true, users: null, userClasses: null },
      ...{ exemptS: 600, graceS: 5, onPreemption: 'REQUEUE', charged: true, waitingJobs: 1, runningJobs: 0 },
    },
  ]);
  const all = await classes(api.adminKey);
  expect(all.map(({ name, waitingJobs, users }) => [name, waitingJobs, users])).toEqual([
    ['golden', 1, null],
    ['spare', 1, null],
    ['urgent', 1, ['ada']],
  ]);
});

it('can be changed while a job waits, to one that its user may use, and count and filter jobs', async () => {
  const change = async (id: string, set: object, key = ada) => {
    const { data, errors } = await api.ask<{ updateJobs: { jobs: Json[]; unchanged: Json[] } }>(
      `mutation ($id: ID!, $set: JobChangesInput!) { updateJobs(input: { selection: { ids: [$id] }, set: $set, allowUnfit: true }) {
        jobs { class charged preemptionClass } unchanged { code field message } } }`,
      { id, set },
      key,
    );
    return errors?.[0] ?? data.updateJobs;
  };
  const [plain, ranked] = [
    (await submit([{ name: 'changed', groupName: 'change' }])).jobs[0]!.id,
    (await submit([{ preemptionClass: 4, groupName: 'change' }], api.adminKey)).jobs[0]!.id,
  ];
  expect(await change(plain, { class: 'spare' })).toEqual({
    ...{ jobs: [{ class: 'spare', charged: false, preemptionClass: 0 }], unchanged: [] },
  });
  expect(await change(plain, { class: 'golden' })).toMatchObject({
    message: expect.stringContaining(
      'set.class: "golden" is not accepted; accepted: spare, urgent (golden is for GOLD users, operators)',
    ),
    extensions: { code: 'FORBIDDEN', field: 'set.class' },
  });
  expect(await change(plain, { class: 'nowhere' })).toMatchObject({
    extensions: { code: 'BAD_USER_INPUT', field: 'set.class' },
  });
  // Its rank as a number goes with it.
  expect(await change(ranked, { class: 'golden' }, api.adminKey)).toMatchObject({
    jobs: [{ class: 'golden', charged: true, preemptionClass: 0 }],
  });
  expect(await change(plain, { estimateS: 5 })).toMatchObject({ jobs: [{ class: 'spare', charged: false }] });
  const counts = async () =>
    (
      await api.must<{ jobCounts: Json[] }>(
        '{ jobCounts(by: CLASS, filter: { groupName: "change" }) { class count } }',
      )
    ).jobCounts;
  const found = async (of: string) =>
    (
      await api.must<{ jobs: { nodes: { id: string }[] } }>(
        'query ($of: String) { jobs(filter: { groupName: "change", class: $of }) { nodes { id } } }',
        { of },
      )
    ).jobs.nodes.map(({ id }) => id);
  expect(await counts()).toEqual([
    { class: 'golden', count: 1 },
    { class: 'spare', count: 1 },
  ]);
  expect([await found('spare'), await found('golden'), await found('normal')]).toEqual([
    [plain],
    [ranked],
    [],
  ]);
  expect(await change(plain, { class: null })).toMatchObject({ jobs: [{ class: null, charged: true }] });
  expect(await counts()).toContainEqual({ class: null, count: 1 });
  expect(await found('normal')).toEqual([plain]);
});

it('a submission that is repeated is the same, whatever has become of the class', async () => {
  const again = () => submit([{ class: 'spare', name: 'again' }], ada, { idempotencyKey: 'spare-again' });
  const first = await again();
  expect(first.jobs).toMatchObject([{ charged: false }]);
  await setPolicy(({ classes: _, ...document }) => document);
  expect(await again()).toEqual(first);
  expect(await classes(ada)).toEqual([]);
  expect((await submit([{ class: 'spare' }])).errors).toHaveLength(1);
});
