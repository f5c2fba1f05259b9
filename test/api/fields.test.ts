/**
 * Each role × every field and argument of the API: whatever is asked for, nothing goes wrong inside, nothing is told that is masked
 * afterwards, and nothing of another user's is shown or changed.
 */
import { readFileSync } from 'node:fs';
import { buildSchema, type GraphQLField } from 'graphql';
import { beforeAll, describe, expect, test } from 'vitest';
import { SCHEMA_FILE } from '../../src/api/schema.js';
import { type RootField, rules } from '../../src/api/services/access.js';
import { RandomStream } from '../../src/core/index.js';
import type { UserRole } from '../../src/store/rows.js';
import { Adversary } from '../support/adversary.js';
import { part } from '../support/seed.js';
import { unique, withApi } from './support/api.js';

const schema = buildSchema(readFileSync(SCHEMA_FILE, 'utf8'));
const api = withApi((config) => ({
  ...config,
  limits: {
    ...config.limits,
    costMax: 1_000_000,
    costPerMinute: 1_000_000_000,
    bodyBytesMax: 4_000_000,
    userKeys: 10_000,
  },
}));
/** Weakest first. */
const ROLES: readonly UserRole[] = ['AGENT', 'USER', 'OPERATOR', 'ADMIN'];
/** In everything that is the victim's alone. */
const SECRET = 'only-the-victim-knows';
const keys = {} as Record<UserRole, string>;
let adversary: Adversary;
let before: unknown;

/** What others must not change. */
const victimsThings = async (): Promise<unknown> =>
  (
    await api.db.pool.query(
      `SELECT j.id, j.state, j.boost, j.seq, g.id AS "group" FROM jobs j LEFT JOIN job_groups g ON g.id = j.group_id WHERE j.command = '${SECRET}' ORDER BY 1`,
    )
  ).rows;

beforeAll(async () => {
  const victim = await api.user('USER', unique('victim'));
  const site = async () =>
    (
      await api.must<{ createSite: { site: { id: string } } }>(
        'mutation ($name: String!) { createSite(input: { name: $name }) { site { id } } }',
        { name: unique('site') },
      )
    ).createSite.site.id;
  const [here, there] = [await site(), await site()];
  for (const role of ROLES)
    keys[role] = (await api.user(role, unique(role), role === 'AGENT' ? there : undefined)).key;
  const { createMachine } = await api.must<{ createMachine: { machine: { id: string } } }>(
    'mutation ($site: ID!) { createMachine(input: { siteId: $site, name: "m", cpus: 4, memoryMb: 100, os: "linux", architecture: "x64" }) { machine { id } } }',
    { site: here },
  );
  const { createDataset } = await api.must<{ createDataset: { dataset: { id: string } } }>(
    'mutation ($site: ID!) { createDataset(input: { name: "d", sizeMb: 1, replicaSiteIds: [$site] }) { dataset { id } } }',
    { site: here },
  );
  const job = {
    command: SECRET,
    name: SECRET,
    arguments: [SECRET],
    environment: [{ name: 'S', value: SECRET }],
    groupName: SECRET,
    project: SECRET,
    application: SECRET,
  };
  const { submitJobs } = await api.must<{ submitJobs: { jobs: { id: string }[] } }>(
    'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { jobs { id } } }',
    { jobs: [job, { ...job, held: true }, job] },
    victim.key,
  );
  const { submitJobGroup } = await api.must<{ submitJobGroup: { jobGroup: { id: string } } }>(
    'mutation ($template: JobInput!, $name: String) { submitJobGroup(input: { name: $name, template: $template, count: 3 }) { jobGroup { id } } }',
    { template: job, name: SECRET },
    victim.key,
  );
  const { createApiKey } = await api.must<{ createApiKey: { apiKey: { id: string } } }>(
    'mutation ($name: String!) { createApiKey(input: { name: $name }) { apiKey { id } } }',
    { name: SECRET },
    victim.key,
  );
  const ids = [
    victim.id,
    here,
    there,
    createMachine.machine.id,
    createDataset.dataset.id,
    ...submitJobs.jobs.map(({ id }) => id),
    submitJobGroup.jobGroup.id,
    createApiKey.apiKey.id,
    'policy_1',
    'simulation_1',
    'license_1',
  ];
  adversary = new Adversary(schema, new RandomStream(1, 'fields'), ids);
  before = await victimsThings();
});

const roots = [
  ['query', schema.getQueryType()!],
  ['mutation', schema.getMutationType()!],
] as const;

for (const [kind, root] of roots) {
  describe(`each ${kind}`, () => {
    for (const field of Object.values(root.getFields())) {
      const allowed = ROLES.filter((role) => rules[field.name as RootField].includes(role));
      test(`${field.name}, to ${allowed.join(', ')}`, async () => {
        for (const role of allowed) await everyArgument(kind, field, role, role === allowed[0]);
      });
    }
  });
}

/** `each`: with more of the values of each argument; other roles go through the same code behind the same door. */
async function everyArgument(
  kind: 'query' | 'mutation',
  field: GraphQLField<unknown, unknown>,
  role: UserRole,
  each: boolean,
): Promise<void> {
  const operations = [adversary.of(kind, field, {}, 2)];
  for (const { name, type } of field.args) {
    const values = adversary.all(type);
    for (const value of part(values, each ? 6 : 2))
      operations.push(adversary.of(kind, field, { [name]: value }, 0.5));
  }
  for (let i = 0; i < operations.length; i += 8) {
    const together = operations.slice(i, i + 8);
    const answers = await Promise.all(
      together.map(({ query, variables }) => api.ask(query, variables, keys[role])),
    );
    for (const [place, { data, errors }] of answers.entries()) {
      const operation = JSON.stringify(together[place]).slice(0, 500);
      for (const { extensions, message } of errors ?? []) {
        expect(['INTERNAL_SERVER_ERROR', undefined], `${message}: ${operation}`).not.toContain(
          extensions?.code,
        );
        expect(message).not.toMatch(/prisma|postgres|SELECT |node_modules|\.ts:|\.js:/i);
      }
      if (role === 'USER' || role === 'AGENT')
        expect(JSON.stringify(data) ?? '', operation).not.toContain(SECRET);
    }
  }
  if (role === 'USER' || role === 'AGENT') expect(await victimsThings()).toEqual(before);
  else before = await victimsThings();
}

test('those who may see everything did', async () => {
  const { jobs } = await api.must<{ jobs: unknown }>(
    '{ jobs(first: 5) { nodes { command arguments } } }',
    {},
    keys.OPERATOR,
  );
  expect(JSON.stringify(jobs)).toContain(SECRET);
});

test('what went wrong inside was nothing', () => {
  expect(api.log.filter((line) => line.includes('unexpectedly'))).toEqual([]);
});
