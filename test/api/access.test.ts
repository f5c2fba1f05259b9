import { readFileSync } from 'node:fs';
import { buildSchema, type GraphQLArgument, getNamedType, isLeafType, isNonNullType } from 'graphql';
import { beforeAll, describe, expect, test } from 'vitest';
import { SCHEMA_FILE } from '../../src/api/schema.js';
import { rules } from '../../src/api/services/access.js';
import type { UserRole } from '../../src/store/rows.js';
import { unique, withApi } from './support/api.js';
import { sample } from './support/sample.js';

const schema = buildSchema(readFileSync(SCHEMA_FILE, 'utf8'));
const api = withApi();
const roles: UserRole[] = ['ADMIN', 'OPERATOR', 'USER', 'AGENT'];
const keys = {} as Record<UserRole, string>;
let siteId = '';

beforeAll(async () => {
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "matrix" }) { site { id } } }',
  );
  siteId = createSite.site.id;
  for (const role of roles) {
    keys[role] = (
      await api.user(role, unique(role.toLowerCase()), role === 'AGENT' ? siteId : undefined)
    ).key;
  }
});

function operation(
  type: 'query' | 'mutation' | 'subscription',
  name: string,
  args: readonly GraphQLArgument[],
  leaf: boolean,
): { query: string; variables: object } {
  const required = args.filter(
    (argument) => isNonNullType(argument.type) && argument.defaultValue === undefined,
  );
  const declared = required.map((argument) => `$${argument.name}: ${argument.type}`).join(', ');
  const passed = required.map((argument) => `${argument.name}: $${argument.name}`).join(', ');
  const query = `${type}${declared && ` (${declared})`} { ${name}${passed && `(${passed})`} ${leaf ? '' : '{ __typename }'} }`;
  return {
    query,
    variables: Object.fromEntries(required.map((argument) => [argument.name, sample(argument.type)])),
  };
}

describe('who may do what: each query and mutation with each role', () => {
  for (const [type, root] of [
    ['query', schema.getQueryType()],
    ['mutation', schema.getMutationType()],
  ] as const) {
    for (const field of Object.values(root?.getFields() ?? {})) {
      for (const role of roles) {
        const allowed = rules[field.name as keyof typeof rules]?.includes(role) ?? false;
        test(`${role} ${allowed ? 'may' : 'may not'} ask for ${type} ${field.name}`, async () => {
          const { query, variables } = operation(
            type,
            field.name,
            field.args,
            isLeafType(getNamedType(field.type)),
          );
          const { errors } = await api.ask(query, variables, keys[role]);
          const code = errors?.[0]?.extensions.code;
          if (!allowed) expect(code).toBe('FORBIDDEN');
          // Beyond the rule it may fail over what is asked for, but never unexpectedly.
          else
            expect(['INTERNAL_SERVER_ERROR', 'UNAUTHENTICATED', 'GRAPHQL_VALIDATION_FAILED']).not.toContain(
              code,
            );
          if (allowed && !errors) expect(code).toBeUndefined();
        });
      }
    }
  }

  for (const field of Object.values(schema.getSubscriptionType()?.getFields() ?? {})) {
    for (const role of roles) {
      const allowed = rules[field.name as keyof typeof rules]?.includes(role) ?? false;
      test(`${role} ${allowed ? 'may' : 'may not'} subscribe to ${field.name}`, async () => {
        const { query, variables } = operation('subscription', field.name, field.args, false);
        const codes: unknown[] = [];
        const stop = api.subscriber(keys[role]).subscribe(
          { query, variables: { ...variables } },
          {
            next: ({ errors }) => void codes.push(errors?.[0]?.extensions?.code),
            error: (errors) =>
              void codes.push((errors as { extensions: { code: string } }[])[0]?.extensions.code),
            complete: () => {},
          },
        );
        // Whoever may listen hears nothing, or what is wrong with the question; the others are refused at once.
        if (!allowed) await expect.poll(() => codes).toEqual(['FORBIDDEN']);
        else {
          await api.must('{ viewer { id } }', {}, keys[role]);
          expect(['INTERNAL_SERVER_ERROR', 'UNAUTHENTICATED', 'GRAPHQL_VALIDATION_FAILED']).not.toContain(
            codes[0],
          );
        }
        stop();
      });
    }
  }

  test('nobody gets anything without a good key', async () => {
    for (const key of [null, 'wrong', `${keys.ADMIN}x`, 'swy_0000000000_nothing']) {
      const answer = await api.ask('{ viewer { id } }', {}, key);
      expect(answer).toMatchObject({ status: 401, errors: [{ extensions: { code: 'UNAUTHENTICATED' } }] });
      expect(answer.headers.get('www-authenticate')).toBe('Bearer');
      expect(answer.data).toBeUndefined();
    }
    const introspection = await api.ask('{ __schema { queryType { name } } }', {}, null);
    expect(introspection.status).toBe(401);
  });
});

describe('whose objects', () => {
  test('a USER sees and touches their own jobs only, an OPERATOR all', async () => {
    const [one, other] = [await api.user('USER', unique('u')), await api.user('USER', unique('u'))];
    const submit =
      'mutation { submitJobs(input: { jobs: [{ command: "true", environment: [{ name: "A", value: "b" }] }] }) { jobIds } }';
    const { submitJobs } = await api.must<{ submitJobs: { jobIds: string[] } }>(submit, {}, one.key);
    const [id] = submitJobs.jobIds;
    const look = `{
      job(id: "${id}") { id environment { name value } }
      node(id: "${id}") { id }
      jobs { nodes { id } }
      mine: jobs(filter: { userId: "${one.id}" }) { nodes { id } }
      jobCount
    }`;
    expect(await api.must(look, {}, one.key)).toEqual({
      job: { id, environment: [{ name: 'A', value: 'b' }] },
      node: { id },
      jobs: { nodes: [{ id }] },
      mine: { nodes: [{ id }] },
      jobCount: 1,
    });
    const nothing = { job: null, node: null, jobs: { nodes: [] }, mine: { nodes: [] }, jobCount: 0 };
    expect(await api.must(look, {}, other.key)).toEqual(nothing);
    expect(await api.must(look, {}, keys.OPERATOR)).toMatchObject({ job: { id }, mine: { nodes: [{ id }] } });

    const cancel = `mutation { cancelJobs(input: { selection: { ids: ["${id}"] } }) { jobIds unchanged { id code } } }`;
    expect(await api.must(cancel, {}, other.key)).toEqual({
      cancelJobs: { jobIds: [], unchanged: [{ id, code: 'NOT_FOUND' }] },
    });
    const all = 'mutation { cancelJobs(input: { selection: { all: true } }) { jobIds } }';
    expect(await api.must(all, {}, other.key)).toEqual({ cancelJobs: { jobIds: [] } });
    for (const query of [
      `{ decisions(jobId: "${id}") { nodes { id } } }`,
      `{ placement(jobId: "${id}") { reason } }`,
    ]) {
      expect((await api.ask(query, {}, other.key)).errors?.[0]?.extensions.code).toBe('NOT_FOUND');
    }
    expect(
      (await api.ask('{ decisions { nodes { id } } }', {}, other.key)).errors?.[0]?.extensions.code,
    ).toBe('FORBIDDEN');

    const events = '{ events(after: "0", first: 5000) { nodes { kind objectId } } }';
    type Events = { events: { nodes: { kind: string; objectId: string }[] } };
    const seen = (await api.must<Events>(events, {}, other.key)).events.nodes;
    expect(seen.some((event) => event.kind === 'SITE')).toBe(true);
    expect(
      seen.filter(
        (event) => event.kind.startsWith('JOB') || (event.kind === 'USER' && event.objectId !== other.id),
      ),
    ).toEqual([]);
    expect((await api.must<Events>(events, {}, one.key)).events.nodes).toContainEqual({
      kind: 'JOB_STATE',
      objectId: id,
    });

    expect(await api.must(cancel, {}, keys.OPERATOR)).toMatchObject({ cancelJobs: { jobIds: [id] } });
    expect(await api.must(`{ job(id: "${id}") { state cause } }`)).toEqual({
      job: { state: 'CANCELLED', cause: 'CANCELLED_BY_OPERATOR' },
    });
    const { audit } = await api.must<{ audit: { nodes: object[] } }>(
      '{ audit(first: 1) { nodes { action target user { name } } } }',
    );
    expect(audit.nodes).toMatchObject([{ action: 'cancelJobs', target: id }]);
  });

  test('an AGENT sees its own site and machines only, and acts there only', async () => {
    const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
      'mutation { createSite(input: { name: "elsewhere" }) { site { id } } }',
    );
    const machines = `mutation { createMachines(input: { machines: [
      { siteId: "${siteId}", name: "a", cpus: 1, memoryMb: 1 }, { siteId: "${createSite.site.id}", name: "b", cpus: 1, memoryMb: 1 }] }) { machines { id } } }`;
    const { createMachines } = await api.must<{ createMachines: { machines: { id: string }[] } }>(machines);
    const [own, foreign] = createMachines.machines;
    const look = `{ sites { nodes { id } } machines { nodes { id } } all: machines(siteId: "${createSite.site.id}") { nodes { id } }
      own: node(id: "${own?.id}") { id } foreign: node(id: "${foreign?.id}") { id } site: node(id: "${createSite.site.id}") { id } }`;
    expect(await api.must(look, {}, keys.AGENT)).toEqual({
      sites: { nodes: [{ id: siteId }] },
      machines: { nodes: [own] },
      all: { nodes: [] },
      own,
      foreign: null,
      site: null,
    });
    for (const action of [
      `mutation { heartbeat(site: "${createSite.site.id}", agent: "agent_1", instance: "1") }`,
      `mutation { reportRuns(site: "${createSite.site.id}", agent: "agent_1", reports: []) { results } }`,
    ]) {
      expect((await api.ask(action, {}, keys.AGENT)).errors?.[0]?.extensions.code).toBe('FORBIDDEN');
    }
    const agent = await api.serve(siteId, keys.AGENT);
    expect(
      await api.must(
        `mutation { heartbeat(site: "${siteId}", agent: "${agent}", instance: "1") }`,
        {},
        keys.AGENT,
      ),
    ).toEqual({ heartbeat: true });
  });

  test('people see themselves, and keys of their own', async () => {
    const [one, other] = [await api.user('USER', unique('u')), await api.user('OPERATOR', unique('u'))];
    const own = await api.must<{ viewer: { keys: { nodes: object[] } } }>(
      '{ viewer { id keys { nodes { id prefix } } } }',
      {},
      one.key,
    );
    expect(own.viewer.keys.nodes).toMatchObject([{ id: one.keyId }]);
    expect(
      (await api.ask(`{ node(id: "${one.id}") { ... on User { keys { nodes { id } } } } }`, {}, other.key))
        .errors?.[0]?.extensions.code,
    ).toBe('FORBIDDEN');
    expect(await api.must(`{ node(id: "${other.id}") { id } }`, {}, one.key)).toEqual({ node: null });
    expect(await api.must(`{ node(id: "${one.keyId}") { id } }`, {}, other.key)).toEqual({ node: null });
    const revoke = `mutation { revokeApiKey(input: { apiKeyId: "${one.keyId}" }) { apiKey { revokedAt } } }`;
    expect((await api.ask(revoke, {}, other.key)).errors?.[0]?.extensions.code).toBe('NOT_FOUND');
    const forAnother = `mutation { createApiKey(input: { userId: "${one.id}", name: "x" }) { secret } }`;
    expect((await api.ask(forAnother, {}, other.key)).errors?.[0]?.extensions.code).toBe('FORBIDDEN');
    expect((await api.ask(revoke, {}, one.key)).errors).toBeUndefined();
    expect((await api.ask('{ viewer { id } }', {}, one.key)).status).toBe(401);
  });
});
