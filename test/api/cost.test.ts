/** What queries are reckoned to cost, and what they come to when they run. */
import { readFileSync } from 'node:fs';
import { buildSchema, executeSync, getIntrospectionQuery, Kind, parse } from 'graphql';
import { beforeAll, describe, expect, test } from 'vitest';
import { createMeasure, tooComplex } from '../../src/api/admission/cost.js';
import { SCHEMA_FILE } from '../../src/api/schema.js';
import { DEFAULT_LIMITS } from '../../src/platform/limits.js';
import { type Json, withApi } from './support/api.js';

const schema = buildSchema(readFileSync(SCHEMA_FILE, 'utf8'));
const measure = createMeasure(schema, DEFAULT_LIMITS);
const measured = (text: string, variables: object = {}) => {
  const document = parse(text);
  const operation = document.definitions.find((one) => one.kind === Kind.OPERATION_DEFINITION)!;
  return measure(document, operation, variables as Record<string, unknown>);
};

/** Objects in an answer. */
const objectsIn = (value: unknown): number =>
  Array.isArray(value)
    ? value.reduce<number>((sum, one) => sum + objectsIn(one), 0)
    : value && typeof value === 'object'
      ? Object.values(value).reduce<number>((sum, one) => sum + objectsIn(one), 1)
      : 0;

describe('introspection', () => {
  test('costs about what it leads to', () => {
    const query = getIntrospectionQuery();
    const objects = objectsIn(executeSync({ schema, document: parse(query) }).data);
    const { cost, depth } = measured(query);
    expect(cost).toBeGreaterThan(objects / 2);
    expect(cost).toBeLessThan(objects * 2);
    expect(depth).toBe(1);
    expect(tooComplex(measured(query), DEFAULT_LIMITS)).toBeNull();
  });

  test('is refused when it is asked for again and again', () => {
    const types = '{ types { fields { name args { name type { name } } type { name } } } }';
    const often = Array.from({ length: 100 }, (_, i) => `a${i}: __schema ${types}`).join(' ');
    expect(tooComplex(measured(`{ ${often} }`), DEFAULT_LIMITS)?.code).toBe('QUERY_TOO_COMPLEX');
    const within = Array.from({ length: 100 }, (_, i) => `a${i}: fields { name }`).join(' ');
    expect(tooComplex(measured(`{ __schema { types { ${within} } } }`), DEFAULT_LIMITS)?.code).toBe(
      'QUERY_TOO_COMPLEX',
    );
  });
});

describe('a page', () => {
  test('counts its objects, and what is told of all of them once', () => {
    expect(measured('{ jobs(first: 1000) { totalCount nodes { id } } }').cost).toBe(1_000 + 50);
    const named =
      '{ jobs(first: 1000) { ...page } } fragment page on JobConnection { totalCount nodes { id } }';
    expect(measured(named).cost).toBe(1_000 + 50);
    expect(measured('{ sites(first: 10) { nodes { machines(first: 5) { totalCount } } } }').cost).toBe(
      10 * measured('{ sites(first: 1) { nodes { machines(first: 5) { totalCount } } } }').cost,
    );
  });

  test('of jobs with all that is in their rows is not dear', () => {
    const fields =
      'id retry { rules { causes exitCodes { from to } } } environment { name value } resourcesPerTask { kind amount }';
    expect(measured(`{ jobs(first: 500) { nodes { ${fields} } } }`).cost).toBe(500);
  });
});

describe('the answer of a mutation', () => {
  test('is as long as what it was given, a tenth of which is to be looked at', () => {
    const jobs = Array.from({ length: 5_000 }, () => ({ command: 'true' }));
    const submit =
      'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobs { id whyWaiting { code } } } }';
    expect(measured(submit, { input: { jobs } }).cost).toBe(5_000 * (1 + 1 + 400) + 499);
    expect(measured(submit, { input: { jobs: jobs.slice(0, 20) } }).cost).toBe(20 * (1 + 1 + 400) + 1);
    expect(
      measured('mutation ($j: [ID!]) { cancelJobs(input: { selection: { ids: $j } }) { jobs { id } } }', {
        j: jobs,
      }).cost,
    ).toBe(5_000 + 499);
  });

  test('may be as long as an action may be, where a filter chooses', () => {
    const { cost } = measured(
      'mutation { holdJobs(input: { selection: { all: true } }) { jobs { id user { name } } } }',
    );
    expect(cost).toBe(DEFAULT_LIMITS.jobsMax * 2 + 999);
    const why =
      'mutation { cancelJobs(input: { selection: { all: true } }) { jobs { whyWaiting { code } } } }';
    expect(tooComplex(measured(why), DEFAULT_LIMITS)?.extensions).toMatchObject({ cost: 4_020_999 });
  });
});

describe('while it runs', () => {
  const api = withApi((config) => ({ ...config, limits: { ...config.limits, answerCharsMax: 100_000 } }));
  const MACHINES = 300;

  beforeAll(async () => {
    const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
      'mutation { createSite(input: { name: "large" }) { site { id } } }',
    );
    await api.must(
      'mutation ($inputs: [CreateMachineInput!]!) { createMachines(input: { machines: $inputs }) { machines { id } } }',
      {
        inputs: Array.from({ length: MACHINES }, (_, i) => ({
          siteId: createSite.site.id,
          name: `m${i}`,
          cpus: 1,
          memoryMb: 1,
        })),
      },
    );
  });

  test('machines of the site of machines of a site end in time', async () => {
    const nested =
      '{ sites(first: 1) { nodes { machines { site { machines { site { machines { site { name } } } } } } } } }';
    expect(measured(nested).cost).toBeLessThan(DEFAULT_LIMITS.costMax);
    const { status, data, errors } = await api.ask(nested);
    expect({ status, data }).toEqual({ status: 400, data: undefined });
    expect(errors).toMatchObject([{ extensions: { code: 'QUERY_TOO_COMPLEX', cost: expect.any(Number) } }]);
    expect(errors).toHaveLength(1);
    expect(await api.must('{ viewer { name } }')).toEqual({ viewer: { name: 'admin' } });
  });

  test('an answer says what it cost', async () => {
    const ask = '{ sites { nodes { machines { name } } } viewer { name } }';
    const answer = (await (await post(ask)).json()) as { extensions: { cost: Json } };
    expect(answer.extensions.cost).toMatchObject({
      estimated: measured(ask).cost,
      objects: 1 + MACHINES + 1,
      statements: expect.any(Number),
    });
  });

  test('long texts are counted, in queries and in updates', async () => {
    const words = ['x'.repeat(30_000)];
    const submit = 'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }';
    const input = {
      jobs: Array.from({ length: 4 }, () => ({ command: 'true', arguments: words, held: true })),
    };
    await api.must(submit, { input });
    expect(await api.must('{ jobs(first: 3) { nodes { arguments } } }')).toMatchObject({
      jobs: { nodes: [{ arguments: words }, {}, {}] },
    });
    const { errors } = await api.ask('{ jobs { nodes { arguments } } }');
    expect(errors).toMatchObject([{ extensions: { code: 'QUERY_TOO_COMPLEX' } }]);
    const told = 'mutation { releaseJobs(input: { selection: { all: true } }) { jobs { arguments } } }';
    const done = await api.ask(told);
    expect(done.errors?.[0]?.message).toContain('may have been carried out');
    expect(await api.must('{ jobCount(filter: { states: [HELD] }) }')).toEqual({ jobCount: 0 });
  });

  const post = (query: string) =>
    fetch(api.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${api.adminKey}` },
      body: JSON.stringify({ query }),
    });
});
