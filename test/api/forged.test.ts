/** Cursors and ids that nobody gave out: every field that takes one says what is wrong with it, and none fails over it. */
import { readFileSync } from 'node:fs';
import {
  buildSchema,
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLInputField,
  type GraphQLInputType,
  getNamedType,
  isInputObjectType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
} from 'graphql';
import { beforeAll, expect, test } from 'vitest';
import { SCHEMA_FILE } from '../../src/api/schema.js';
import { rules } from '../../src/api/services/access.js';
import type { UserRole } from '../../src/store/rows.js';
import { part } from '../support/seed.js';
import { unique, withApi } from './support/api.js';
import { type Followed, follow } from './support/follow.js';
import { sample } from './support/sample.js';
import { schedule } from './support/schedule.js';

const api = withApi();
const schema = buildSchema(readFileSync(SCHEMA_FILE, 'utf8'));
const keys: Partial<Record<UserRole, string>> = {};
/** A job that has a run. */
let begun = '';
/** Ids of what there is, and of what there could be, by the names that arguments have for them. */
const good: Record<string, string> = {};

beforeAll(async () => {
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "forged" }) { site { id } } }',
  );
  keys.ADMIN = api.adminKey;
  for (const role of ['AGENT', 'PEER'] as const)
    keys[role] = (await api.user(role, unique('forger'), createSite.site.id)).key;
  await api.must(
    'mutation ($siteId: ID!) { createMachine(input: { siteId: $siteId, name: "m", cpus: 1, memoryMb: 1 }) { machine { id } } }',
    { siteId: createSite.site.id },
  );
  const agent = await api.serve(createSite.site.id, keys.AGENT!);
  const { submitJobs } = await api.must<{ submitJobs: { jobIds: [string] } }>(
    'mutation { submitJobs(input: { jobs: [{ command: "true" }] }) { jobIds } }',
  );
  [begun] = submitJobs.jobIds;
  await schedule(api.parts);
  expect(await api.must('query ($id: ID!) { job(id: $id) { runs { epoch } } }', { id: begun })).toEqual({
    job: { runs: [{ epoch: 1 }] },
  });
  const { submitJobGroup } = await api.must<{
    submitJobGroup: { jobGroup: { id: string }; jobIds: [string] };
  }>(
    'mutation { submitJobGroup(input: { template: { command: "true" }, count: 1, allowUnfit: true }) { jobGroup { id } jobIds } }',
  );
  const [job] = submitJobGroup.jobIds;
  const group = submitJobGroup.jobGroup.id;
  const site = createSite.site.id;
  Object.assign(good, {
    site,
    from: site,
    to: site,
    sites: site,
    peer: site,
    agent,
    job,
    jobs: job,
    ids: job,
  });
  Object.assign(good, { machine: 'machine_1', machines: 'machine_1', license: 'license_1', user: 'user_1' });
  Object.assign(good, { dataset: 'dataset_1', jobGroup: group, group, apiKey: 'apikey_999' });
  Object.assign(good, { simulation: 'simulation_1', scheduler: 'scheduler_1', policy: 'policy_1' });
});

/** What failed unexpectedly, by what was asked. */
async function failures(asked: readonly { what: string; query: string; variables: object; key?: string }[]) {
  const failed: string[] = [];
  const left = [...asked];
  const ask = async (): Promise<void> => {
    for (let next = left.pop(); next; next = left.pop()) {
      const { errors } = await api.ask(next.query, next.variables, next.key);
      for (const { extensions, message } of errors ?? [])
        if (['INTERNAL_SERVER_ERROR', 'UNAVAILABLE', 'GRAPHQL_VALIDATION_FAILED'].includes(extensions.code))
          failed.push(`${next.what}: ${message}`);
    }
  };
  await Promise.all(Array.from({ length: 8 }, ask));
  return failed;
}

/** By the field that takes them: good cursors as they are inside, or `event` where they are plain numbers. */
const LISTS: Record<string, readonly ('event' | readonly [string, ...unknown[]])[]> = {
  'JobRatio.history': ['event'],
  'Job.decisions': [['decision', 1]],
  'Job.events': ['event'],
  'JobGroup.jobs': [['job SUBMITTED ASC', 1, 1]],
  'Query.sites': [['site', 'x']],
  'Query.machines': [['machine', 1, 'x']],
  'Query.licenses': [['license', 'x', 1]],
  'Query.users': [['user', 'x']],
  'Query.jobs': [
    ['job SUBMITTED ASC', 1, 1],
    ['job ENDED ASC', 1, 1],
    ['job DEADLINE ASC', 1, 1],
  ],
  'Query.jobGroups': [['group', 1]],
  'Query.datasets': [['dataset', 'x']],
  'Query.links': [['link', 1, 1]],
  'Query.congestion': [['congestion', 'x']],
  'Query.inputTransfers': [['transfer', 1, 1, 1]],
  'Query.policyHistory': [['policy', 1]],
  'Query.decisions': [['decision', 1]],
  'Query.events': ['event'],
  'Query.holds': [['hold', 1]],
  'Query.images': [['image', 1, 'x']],
  'Query.audit': [['audit', 1]],
  'Query.simulations': [['simulation', 1]],
  'User.keys': [['apikey', 1]],
  'Run.steps': [['step', 0, 1]],
};
/** How to get to a list that is no root field. */
const ORDERS: Record<string, string> = {
  'job SUBMITTED ASC': 'SUBMITTED_AT',
  'job ENDED ASC': 'ENDED_AT',
  'job DEADLINE ASC': 'DEADLINE',
};
const ON: Record<string, (field: string) => string> = {
  Query: (field) => field,
  Job: (field) => `job(id: "${good.job}") { ${field} }`,
  JobGroup: (field) => `jobGroup(id: "${good.group}") { ${field} }`,
  JobRatio: (field) => `jobRatio(application: "x") { ${field} }`,
  User: (field) => `viewer { ${field} }`,
  Run: (field) => `job(id: "${begun}") { runs { ${field} } }`,
};
const encoded = (values: readonly unknown[]): string =>
  Buffer.from(JSON.stringify(values)).toString('base64url');
const HOSTILE = [-1, 0.5, 2 ** 31, 2 ** 53, 1e15, 1e300, '\0', 'x'.repeat(300), null];

function forgedCursors(good: 'event' | readonly [string, ...unknown[]]): string[] {
  if (good === 'event') return ['', '-1', '1e3', '01', '9'.repeat(18), '9'.repeat(19), '9'.repeat(400)];
  return [
    ...['x', '9'.repeat(600), encoded([]), encoded(good.slice(0, -1)), encoded(['other', ...good.slice(1)])],
    ...good.flatMap((_, at) => HOSTILE.map((value) => encoded(good.with(at, value)))),
  ];
}

const takesCursor = ({ args }: GraphQLField<unknown, unknown>): boolean =>
  args.some(({ name }) => name === 'after' || name === 'before');

test('cursors', async () => {
  const lists = Object.values(schema.getTypeMap())
    .filter((type) => isObjectType(type))
    .filter((type) => type !== schema.getSubscriptionType())
    .flatMap((type) =>
      Object.values(type.getFields())
        .filter(takesCursor)
        .map((field) => `${type.name}.${field.name}`),
    );
  expect(lists.sort()).toEqual(Object.keys(LISTS).sort());
  const asked = Object.entries(LISTS).flatMap(([list, cursors]) => {
    const [on, name] = list.split('.') as [keyof typeof ON & string, string];
    const { args } = (schema.getType(on) as ReturnType<typeof schema.getQueryType>)!.getFields()[name]!;
    return cursors.flatMap((good) =>
      args
        .filter((argument) => argument.name === 'after' || argument.name === 'before')
        .flatMap((argument) => {
          const order =
            ORDERS[good[0]] && args.some(({ name }) => name === 'orderBy')
              ? `, orderBy: { field: ${ORDERS[good[0]]} }`
              : '';
          const field = `${name}(${argument.name}: $cursor${order}) { pageInfo { endCursor } }`;
          const query = `query ($cursor: String) { ${ON[on]!(field)} }`;
          return forgedCursors(good).map((cursor) => ({
            what: `${list} ${argument.name}: ${Buffer.from(cursor, 'base64url').subarray(0, 60)}`,
            query,
            variables: { cursor },
          }));
        }),
    );
  });
  expect(await failures(part(asked))).toEqual([]);
});

const SUFFIXES = ['0', '1.5', '\0', 2 ** 31, 2 ** 53 - 1, 2 ** 53];

/** Whether the field has to be there, or leads to an id. */
const isGiven = ({ type, defaultValue }: GraphQLArgument | GraphQLInputField): boolean =>
  (isNonNullType(type) && defaultValue === undefined) || idNames(type, '').length > 0;

/** The names of what is an id in a value of this type. */
function idNames(type: GraphQLInputType, name: string, within: readonly string[] = []): string[] {
  const named = getNamedType(type);
  if (named.name === 'ID') return [name];
  if (!isInputObjectType(named) || within.includes(named.name)) return [];
  const inside = [...within, named.name];
  return Object.values(named.getFields()).flatMap((field) => idNames(field.type, field.name, inside));
}

/** A value of the type with these ids, by name. */
function withIds(
  type: GraphQLInputType,
  name: string,
  ids: Readonly<Record<string, string>>,
  within: readonly string[] = [],
): unknown {
  if (isNonNullType(type)) return withIds(type.ofType, name, ids, within);
  if (isListType(type)) return [withIds(type.ofType, name, ids, within)];
  if (type.name === 'ID') return ids[name] ?? 'job_1';
  if (!isInputObjectType(type)) return sample(type);
  if (within.includes(type.name)) return {};
  const inside = [...within, type.name];
  return Object.fromEntries(
    Object.values(type.getFields())
      .filter(isGiven)
      .map((field) => [field.name, withIds(field.type, field.name, ids, inside)]),
  );
}

test('ids', async () => {
  const asked = (['query', 'mutation'] as const).flatMap((kind) => {
    const root = kind === 'query' ? schema.getQueryType() : schema.getMutationType();
    return Object.values(root!.getFields()).flatMap((field) => {
      const args = field.args.filter(isGiven);
      const declared = args.map(({ name, type }) => `$${name}: ${type}`).join(', ');
      const passed = args.map(({ name }) => `${name}: $${name}`).join(', ');
      const body = isLeafType(getNamedType(field.type)) ? '' : '{ __typename }';
      const query = `${kind} (${declared}) { ${field.name}(${passed}) ${body} }`;
      const names = new Set(args.flatMap(({ name, type }) => idNames(type, name)));
      const key = keys[rules[field.name as keyof typeof rules].find((role) => keys[role])!];
      return [...names].flatMap((forgedName) => {
        const type = (good[forgedName] ?? 'job_1').split('_')[0];
        return [...SUFFIXES.map((suffix) => `${type}_${suffix}`), '__proto___1'].map((id) => ({
          what: `${field.name}, ${forgedName}: ${JSON.stringify(id)}`,
          ...{ query, key: key! },
          variables: Object.fromEntries(
            args.map((argument) => [
              argument.name,
              withIds(argument.type, argument.name, { ...good, [forgedName]: id }),
            ]),
          ),
        }));
      });
    });
  });
  expect(asked.length).toBeGreaterThan(500);
  expect(await failures(part(asked))).toEqual([]);
});

test('cursors of subscriptions', async () => {
  const fields = Object.values(schema.getSubscriptionType()!.getFields()).filter(takesCursor);
  expect(fields.length).toBeGreaterThan(5);
  const client = api.subscriber(keys.ADMIN);
  const agents = api.subscriber(keys.AGENT);
  const said = new Map<string, Followed<unknown>>();
  for (const field of fields) {
    const given = field.args.filter(isGiven).filter(({ name }) => good[name]);
    const passed = given.map(({ name }) => `, ${name}: "${good[name]}"`).join('');
    const body = isLeafType(getNamedType(field.type)) ? '' : '{ __typename }';
    const query = `subscription ($after: String) { ${field.name}(after: $after${passed}) ${body} }`;
    const isFor = rules[field.name as keyof typeof rules].includes('ADMIN') ? client : agents;
    const hostile = [
      ...forgedCursors('event'),
      'x',
      '0x10',
      ' 1',
      '1 ',
      '１',
      '\0',
      '1\n',
      '{}',
      '-0',
      '1,2',
      'NaN',
    ];
    for (const after of [...hostile, ...HOSTILE.filter((one) => typeof one === 'number').map(String)])
      said.set(`${field.name} ${JSON.stringify(after).slice(0, 60)}`, follow(isFor, query, { after }));
  }
  const wrong = () =>
    [...said].flatMap(([what, { end }]) =>
      end && 'error' in end && !JSON.stringify(end.error).includes('BAD_USER_INPUT') ? [[what, end]] : [],
    );
  const silent = () => [...said].filter(([, { end, got }]) => !end && got.length === 0);
  await expect.poll(() => silent().map(([what]) => what)).toEqual([]);
  expect(wrong()).toEqual([]);
});
