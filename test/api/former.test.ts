/** Names of the release before work as they did, are deprecated for the new ones, and refusals of mutations are typed for those who ask. */
import { buildClientSchema, getIntrospectionQuery, isInputObjectType, isObjectType } from 'graphql';
import { describe, expect, test } from 'vitest';
import { type Json, unique, withApi } from './support/api.js';

const api = withApi();
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

  test('of a mutation, its input and the fields of both', async () => {
    const groupName = unique('formerly');
    const old = 'mutation ($input: RerunInput!) { rerun(input: $input) { jobIds repointed } }';
    expect(await api.must(old, { input: { group: groupName } })).toEqual({
      rerun: { jobIds: [], repointed: [] },
    });
    const now = `mutation { rerunJobs(input: { groupName: "${groupName}" }) { jobIds repointedJobIds errors { code } } }`;
    expect(await api.must(now)).toEqual({ rerunJobs: { jobIds: [], repointedJobIds: [], errors: [] } });
  });

  test('of a query gives the same for the same cost', async () => {
    const [now, old] = await Promise.all(
      ['congestion', 'peers'].map((name) => api.ask<Json>(`{ sites: ${name} { site { name } congested } }`)),
    );
    expect(old?.data).toEqual(now?.data);
    expect(old?.extensions?.cost.estimated).toBe(now?.extensions?.cost.estimated);
    expect(now?.extensions?.cost.estimated).toBeGreaterThan(50);
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

  test('is not that the caller may not', async () => {
    const { id } = await api
      .must<{ registerSite: { id: string } }>('mutation { registerSite(input: { name: "own" }) { id } }')
      .then(({ registerSite }) => registerSite);
    const agent = await api.user('AGENT', unique('agent'), id);
    const { errors } = await api.ask(cancel('errors { code }'), {}, agent.key);
    expect(errors).toMatchObject([{ extensions: { code: 'FORBIDDEN' } }]);
  });
});
