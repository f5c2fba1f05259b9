/** Names of the release before work as they did, are deprecated for the new ones, and refusals of mutations are typed for those who ask. */
import { buildClientSchema, getIntrospectionQuery, isInputObjectType, isObjectType } from 'graphql';
import { describe, expect, test } from 'vitest';
import { type Json, unique, withApi } from './support/api.js';

const api = withApi();
api.hasFormer = true;
const submit = async (...commands: string[]): Promise<string[]> => {
  const { submitJobs } = await api.must<{ submitJobs: { jobIds: string[] } }>(
    'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }',
    { input: { jobs: commands.map((command) => ({ command })) } },
  );
  return submitJobs.jobIds;
};

describe('a name of the release before', () => {
  test('is shown as deprecated, with the new one that stands beside it', async () => {
    const schema = buildClientSchema(await api.must(getIntrospectionQuery({ inputValueDeprecation: true })));
    const wrong: string[] = [];
    let found = 0;
    for (const type of Object.values(schema.getTypeMap())) {
      if (!isObjectType(type) && !isInputObjectType(type)) continue;
      const fields = Object.values(type.getFields());
      const lists: { name: string; deprecationReason?: string | null }[][] = [
        fields,
        ...fields.map((field) => ('args' in field ? [...field.args] : [])),
      ];
      for (const list of lists) {
        for (const { name, deprecationReason } of list) {
          if (!deprecationReason) continue;
          found++;
          const [, now] = /^Use `(\w+)(?: \{ \w+ \})?`\.$/.exec(deprecationReason) ?? [];
          const isThere = list.some((one) => one.name === now && !one.deprecationReason);
          if (!isThere) wrong.push(`${type.name}.${name}: ${deprecationReason}`);
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(found).toBeGreaterThan(10);
  });

  test('of an argument that is in the input now', async () => {
    const [one, two, three] = await submit('a', 'b', 'c');
    const old = `mutation ($s: JobSelection!) {
      holdJobs(selection: $s) { jobIds }
      reprioritizeJobs(selection: { ids: ["${two}"] }, boost: 7) { jobIds }
      cancelJobs(selection: { ids: ["${three}"] }) { jobIds }
    }`;
    expect(await api.must(old, { s: { ids: [one] } })).toEqual({
      holdJobs: { jobIds: [one] },
      reprioritizeJobs: { jobIds: [two] },
      cancelJobs: { jobIds: [three] },
    });
    const { errors } = await api.ask('mutation { reprioritizeJobs(boost: 1) { jobIds } }');
    expect(errors).toMatchObject([
      { message: 'selection: missing; accepted: a value', extensions: { code: 'BAD_USER_INPUT' } },
    ]);
  });

  test('takes null no more than the field did that it was', async () => {
    for (const replicas of ['replicas', 'replicaSiteIds']) {
      const { errors } = await api.ask(
        `mutation { createDataset(input: { name: "${unique('null')}", sizeMb: 1, ${replicas}: null }) { id } }`,
      );
      expect(errors).toMatchObject([
        {
          message: 'replicaSiteIds: null is not accepted; accepted: a value',
          extensions: { code: 'BAD_USER_INPUT' },
        },
      ]);
    }
  });

  test('of a mutation, its input and the fields of both', async () => {
    const groupName = unique('formerly');
    const old = 'mutation ($input: RerunInput!) { rerun(input: $input) { jobIds repointed } }';
    expect(await api.must(old, { input: { group: groupName } })).toEqual({
      rerun: { jobIds: [], repointed: [] },
    });
    const now = `mutation { rerunJobs(input: { groupName: "${groupName}" }) { jobIds repointedJobIds errors { code } } }`;
    expect(await api.must(now)).toEqual({ rerunJobs: { jobIds: [], repointedJobIds: [], errors: [] } });
  });

  test('of a mutation, with the result that it had, fragments on it, and loose arguments', async () => {
    const [site, kind] = [unique('site'), unique('kind')];
    const { registerSite } = await api.must<Record<string, { id: string; name: string }>>(
      'mutation ($input: RegisterSiteInput!) { registerSite(input: $input) { ...told } } fragment told on Site { id name }',
      { input: { name: site } },
    );
    expect(registerSite).toEqual({ id: expect.stringContaining('site_'), name: site });
    const machines = [0, 1].map((n) => ({
      ...{ site: registerSite!.id, name: `m${n}` },
      ...{ cpus: 2, memoryMb: 1000, licenses: [] },
    }));
    const many =
      'mutation ($inputs: [RegisterMachineInput!]!) { registerMachines(inputs: $inputs) { name cpus } }';
    expect(await api.must(many, { inputs: machines })).toEqual({
      registerMachines: machines.map(({ name }) => ({ name, cpus: 2 })),
    });
    const [other] = [unique('site')];
    const { id: to } = await api
      .must<{ registerSite: { id: string } }>(`mutation { registerSite(input: { name: "${other}" }) { id } }`)
      .then((made) => made.registerSite);
    const link = `from: "${registerSite!.id}", to: "${to}"`;
    const loose = `mutation {
      setLinks(links: [{ ${link}, bandwidthMbPerS: 7 }]) { from { name } bandwidthMbPerS }
      removeLink(${link}) { to { name } }
      registerLicense(input: { kind: "${kind}", copies: 1, site: "${to}" }) { site { name } }
    }`;
    expect(await api.must(loose)).toEqual({
      setLinks: [{ from: { name: site }, bandwidthMbPerS: 7 }],
      removeLink: { to: { name: other } },
      registerLicense: { site: { name: other } },
    });
    const { errors } = await api.ask('mutation { setLinks { bandwidthMbPerS } }');
    expect(errors).toMatchObject([{ message: 'links: missing; accepted: a value' }]);
  });

  test('of what a mutation of the same name returned: its fields are in the payload', async () => {
    const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
      `mutation { createSite(input: { name: "${unique('site')}" }) { site { id } errors { code } } }`,
    );
    const { id } = createSite.site;
    const changed = `mutation ($id: ID!) {
      updateSite(input: { site: $id, latitude: 1 }) { id latitude site { longitude } }
      drainSite(site: $id) { state machines { name } }
    }`;
    expect(await api.must(changed, { id })).toEqual({
      updateSite: { id, latitude: 1, site: { longitude: null } },
      drainSite: { state: 'DRAINING', machines: [] },
    });
    const gone = 'mutation { drainSite(site: "site_99999") { id errors { code } } }';
    expect(await api.must(gone)).toEqual({ drainSite: { id: null, errors: [{ code: 'NOT_FOUND' }] } });
    const { errors } = await api.ask('mutation { drainSite { id } }');
    expect(errors).toMatchObject([{ message: 'siteId: missing; accepted: a value' }]);
  });

  test('of a reservation: whether it is only tried', async () => {
    const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
      `mutation { createSite(input: { name: "${unique('site')}" }) { site { id } } }`,
    );
    const input = { kind: 'MAINTENANCE', site: createSite.site.id };
    const old = 'mutation ($input: ReserveInput!) { reserve(input: $input, dryRun: true) { hold { id } } }';
    expect(await api.must(old, { input })).toEqual({ reserve: { hold: null } });
    const again =
      'mutation ($input: ReserveInput!, $n: Boolean!) { reserve(input: $input, dryRun: $n) { hold { id } } }';
    expect(await api.must(again, { input, n: false })).toMatchObject({
      reserve: { hold: { id: expect.any(String) } },
    });
  });

  test('of a query gives the same for the same cost', async () => {
    const sites = '{ site { name } congested }';
    const [now, old] = await Promise.all(
      [`{ sites: congestion { nodes ${sites} } }`, `{ nodes: peers ${sites} }`].map((query) =>
        api.ask<Json>(query),
      ),
    );
    expect(old?.data).toEqual(now?.data?.sites);
    expect(old?.extensions?.cost.estimated).toBe(now?.extensions?.cost.estimated);
    expect(now?.extensions?.cost.estimated).toBeGreaterThan(50);
    const keys = await api.must<Json>('{ viewer { apiKeys { id } keys { nodes { id } } } }');
    expect(keys).toEqual({ viewer: { apiKeys: [expect.anything()], keys: { nodes: [expect.anything()] } } });
    const none = `{ transfers(from: "site_1", first: 1) { sizeMb } now: inputTransfers(fromSiteId: "site_1") { nodes { sizeMb } } }`;
    expect(await api.must(none)).toEqual({ transfers: [], now: { nodes: [] } });
  });

  test('of a condition, in queries and within arguments of mutations', async () => {
    const { id, key } = await api.user('USER', unique('u'));
    await api.must('mutation { submitJobs(input: { jobs: [{ command: "x" }] }) { jobIds } }', {}, key);
    const count = `{ old: jobCount(filter: { user: "${id}" }) now: jobCount(filter: { userId: "${id}" }) }`;
    expect(await api.must(count)).toEqual({ old: 1, now: 1 });
    const hold = `mutation { holdJobs(input: { selection: { filter: { user: "${id}" } } }) { jobIds } }`;
    expect((await api.must<{ holdJobs: { jobIds: string[] } }>(hold)).holdJobs.jobIds).toHaveLength(1);
  });
});

describe('what a caller did wrong', () => {
  const cancel = (fields: string) =>
    `mutation { cancelJobGroup(input: { jobGroupId: "group_99999" }) { ${fields} } }`;

  test('is in the payload where it is asked for', async () => {
    const { cancelJobGroup } = await api.must<{ cancelJobGroup: Json }>(
      `${cancel('cancelled jobGroup { id } ...told')} fragment told on CancelJobGroupPayload { errors { code field message } }`,
    );
    expect(cancelJobGroup).toEqual({
      cancelled: 0,
      jobGroup: null,
      errors: [{ code: 'NOT_FOUND', field: null, message: expect.stringContaining('group_99999') }],
    });
    const { holdJobs } = await api.must<{ holdJobs: Json }>(
      'mutation { holdJobs(input: { selection: { filter: {} } }) { jobIds jobs { id } errors { code field } } }',
    );
    expect(holdJobs).toEqual({
      jobIds: [],
      jobs: [],
      errors: [{ code: 'BAD_USER_INPUT', field: 'selection.filter' }],
    });
  });

  test('is an error of the answer where it is not', async () => {
    const { errors } = await api.ask(cancel('cancelled'));
    expect(errors).toMatchObject([{ path: ['cancelJobGroup'], extensions: { code: 'NOT_FOUND' } }]);
  });

  test('is that they may not', async () => {
    const { key } = await api.user('USER', unique('u'));
    const create = (asked: string) => `mutation { createSite(input: { name: "own" }) { ${asked} } }`;
    expect(await api.must(create('site { id } errors { code message }'), {}, key)).toEqual({
      createSite: {
        site: null,
        errors: [{ code: 'FORBIDDEN', message: expect.stringContaining('createSite requires the role') }],
      },
    });
    const { errors } = await api.ask(create('site { id }'), {}, key);
    expect(errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
  });

  test('is not that the service fails: that is an error of the answer', async () => {
    const { errors, status } = await api.ask(cancel('errors { code }'), {}, 'wrong');
    expect({ status, errors }).toMatchObject({
      status: 401,
      errors: [{ extensions: { code: 'UNAUTHENTICATED' } }],
    });
  });

  test('has a type that says more, where portals do something else about it', async () => {
    interface Refusal {
      policy: unknown;
      errors: { faults: unknown[] }[];
    }
    const { policy } = await api.must<{ policy: { version: number; document: { dispatch: object } } }>(
      '{ policy { version document } }',
    );
    const update = `mutation ($input: UpdatePolicyInput!) { updatePolicy(input: $input) {
      policy { version }
      errors { __typename code field ... on VersionConflictError { currentVersion } ... on PolicyDocumentError { faults { path accepted } } } } }`;
    const told = async (input: object) =>
      (await api.must<{ updatePolicy: Refusal }>(update, { input: { reason: 'x', ...input } })).updatePolicy;
    const { document, version } = policy;
    expect(await told({ expectedVersion: version + 7, document })).toEqual({
      policy: null,
      errors: [
        {
          __typename: 'VersionConflictError',
          code: 'VERSION_CONFLICT',
          field: 'expectedVersion',
          currentVersion: version,
        },
      ],
    });
    const wrong = { ...document, seed: 'x', dispatch: { ...document.dispatch, weights: 7 } };
    const { errors } = await told({ expectedVersion: version, document: wrong });
    expect(errors).toMatchObject([
      {
        __typename: 'PolicyDocumentError',
        code: 'BAD_USER_INPUT',
        faults: expect.arrayContaining([{ path: 'dispatch.weights', accepted: expect.any(String) }]),
      },
    ]);
    expect(errors[0]?.faults).toHaveLength(2);
  });

  test('is told of each entry of a list by its index, and of a submission as a whole', async () => {
    const { id, key } = await api.user('USER', unique('u'));
    const quota = { userId: id, submissionLimit: 2, submissionPeriodS: 3600, reason: 'test' };
    await api.must(
      'mutation ($input: UpdateQuotaInput!) { updateQuota(input: $input) { user { submissionQuota { limit } } } }',
      { input: quota },
    );
    const submitted = async (
      jobs: object[],
      asked = 'jobIds errors { __typename index code field ...told }',
    ) =>
      api.ask<{ submitJobs: Json }>(
        `mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { ${asked} } }
        ${asked.includes('told') ? 'fragment told on QuotaExceededError { limit periodS used freesAt }' : ''}`,
        { jobs },
        key,
      );
    const wrong = [{ command: 'a' }, { command: 'b', tasks: 0 }];
    expect((await submitted(wrong)).data.submitJobs).toEqual({
      jobIds: [],
      errors: [{ __typename: 'EntryError', index: 1, code: 'BAD_USER_INPUT', field: 'tasks' }],
    });
    const many = ['a', 'b', 'c'].map((command) => ({ command }));
    expect((await submitted(many)).data.submitJobs).toEqual({
      jobIds: [],
      errors: [
        {
          ...{ __typename: 'QuotaExceededError', index: null, code: 'QUOTA_EXCEEDED', field: null },
          ...{ limit: 2, periodS: 3600, used: 0, freesAt: null },
        },
      ],
    });
    // Who does not ask for them does not take an empty list for jobs.
    for (const jobs of [wrong, many]) expect((await submitted(jobs, 'jobIds')).errors).toHaveLength(1);
    const { errors } = await submitted(wrong, 'jobIds');
    expect(errors).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT', field: 'tasks', index: 1 } }]);
    expect((await submitted(many.slice(1))).data.submitJobs.errors).toEqual([]);
  });

  test('names the holds and the jobs that a hold conflicts with', async () => {
    const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
      `mutation { createSite(input: { name: "${unique('site')}" }) { site { id } } }`,
    );
    const hold = `mutation ($input: CreateHoldInput!) { createHold(input: $input) {
      hold { id } runsInTheWay
      errors { __typename code ... on HoldConflictError { holds { id } jobs { id } runsInTheWay } } } }`;
    const siteId = createSite.site.id;
    const { createMachine } = await api.must<{ createMachine: { machine: { id: string } } }>(
      'mutation ($input: CreateMachineInput!) { createMachine(input: $input) { machine { id } } }',
      { input: { siteId, name: 'm', cpus: 1, memoryMb: 1 } },
    );
    const to = new Date(Date.now() + 3_600_000).toISOString();
    const input = { siteId, machineIds: [createMachine.machine.id], to };
    const made = await api.must<{ createHold: Json }>(hold, { input });
    expect(made.createHold).toMatchObject({ hold: { id: expect.any(String) }, errors: [] });
    const { createHold } = await api.must<{ createHold: Json }>(hold, { input });
    expect(createHold).toEqual({
      hold: null,
      runsInTheWay: 0,
      errors: [
        {
          __typename: 'HoldConflictError',
          code: 'CONFLICT',
          ...{ holds: [made.createHold.hold], jobs: [], runsInTheWay: 0 },
        },
      ],
    });
  });
});
