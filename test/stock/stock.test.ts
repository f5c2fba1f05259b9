/** Clients and tools that portals are written with, as they are published: they know this service by its introspection and the specifications only. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { buildClientSchema, getIntrospectionQuery, type IntrospectionQuery, printSchema } from 'graphql';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { withApi } from '../api/support/api.js';
import { stockPackages } from './install.js';

const OPERATIONS = `
query Page($first: Int!, $after: String) {
  jobs(first: $first, after: $after) { totalCount nodes { id name state } pageInfo { hasNextPage endCursor } }
}
mutation Submit($input: SubmitJobsInput!) {
  submitJobs(input: $input) {
    jobIds
    errors { __typename code message field index ... on QuotaExceededError { freesAt } }
  }
}
mutation NewSite($input: CreateSiteInput!) {
  createSite(input: $input) { site { id name } errors { code field message } }
}
subscription Follow($after: String) { jobUpdated(after: $after) { cursor job { id state } } }
query Now { latestCursor }
`;

/** What a portal does, with either client. */
const STORY = `
const told = [];
const after = (await client.ask(docs.NowDocument)).latestCursor;
const stop = client.follow(docs.FollowDocument, { after }, (data) => told.push(data.jobUpdated.job));
const { submitJobs } = await client.do(docs.SubmitDocument, { input: { jobs: [{ command: 'a', name: 'stock' }] } });
const refused = await client.do(docs.SubmitDocument, { input: { jobs: [{ command: 'a', tasks: 0 }] } });
const made = await client.do(docs.NewSiteDocument, { input: { name: process.env.SITE } });
const again = await client.do(docs.NewSiteDocument, { input: { name: process.env.SITE } });
const page = await client.ask(docs.PageDocument, { first: 10 });
while (told.length === 0) await new Promise((resolve) => setTimeout(resolve, 50));
stop();
console.log(JSON.stringify({
  told, made: made.createSite, again: again.createSite.errors, names: page.jobs.nodes.map(({ name }) => name),
  submitted: submitJobs.jobIds, errors: refused.submitJobs.errors,
}));
process.exit();
`;

const CLIENTS = {
  urql: `
import { Client, cacheExchange, fetchExchange, subscriptionExchange } from '@urql/core';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import * as docs from './operations.js';
const headers = { authorization: 'Bearer ' + process.env.KEY };
const socket = createClient({ url: process.env.URL.replace('http', 'ws'), webSocketImpl: WebSocket, connectionParams: headers });
const urql = new Client({
  url: process.env.URL, fetchOptions: { headers }, preferGetMethod: false,
  exchanges: [cacheExchange, fetchExchange, subscriptionExchange({
    forwardSubscription: (operation) => ({
      subscribe: (sink) => ({ unsubscribe: socket.subscribe({ ...operation, query: operation.query ?? '' }, sink) }),
    }),
  })],
});
const of = ({ data, error }) => { if (error) throw error; return data; };
const client = {
  ask: async (document, variables = {}) => of(await urql.query(document, variables).toPromise()),
  do: async (document, variables) => of(await urql.mutation(document, variables).toPromise()),
  follow: (document, variables, heard) => urql.subscription(document, variables).subscribe((r) => heard(of(r))).unsubscribe,
};
${STORY}`,
  Apollo: `
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache } from '@apollo/client';
import { GraphQLWsLink } from '@apollo/client/link/subscriptions';
import { OperationTypeNode } from 'graphql';
import { createClient } from 'graphql-ws';
import WebSocket from 'ws';
import * as docs from './operations.js';
import possibleTypes from './possible.json' with { type: 'json' };
const headers = { authorization: 'Bearer ' + process.env.KEY };
const live = new GraphQLWsLink(createClient({ url: process.env.URL.replace('http', 'ws'), webSocketImpl: WebSocket, connectionParams: headers }));
const apollo = new ApolloClient({
  cache: new InMemoryCache({ possibleTypes }),
  link: ApolloLink.split(({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION, live, new HttpLink({ uri: process.env.URL, headers })),
});
const client = {
  ask: async (query, variables) => (await apollo.query({ query, variables })).data,
  do: async (mutation, variables) => (await apollo.mutate({ mutation, variables })).data,
  follow: (query, variables, heard) => {
    const subscription = apollo.subscribe({ query, variables }).subscribe(({ data }) => heard(data));
    return () => subscription.unsubscribe();
  },
};
${STORY}`,
};

const RELAY = `
import { graphql } from 'relay-runtime';
graphql\`fragment portalJob_job on Job { id name state }\`;
graphql\`
  fragment portalJobs_query on Query @refetchable(queryName: "portalJobsPageQuery")
  @argumentDefinitions(count: { type: "Int", defaultValue: 20 }, cursor: { type: "String" }) {
    jobs(first: $count, after: $cursor) @connection(key: "portalJobs_jobs") { edges { node { ...portalJob_job } } }
  }\`;
graphql\`fragment portalSite_site on Site @refetchable(queryName: "portalSiteRefetchQuery") { id name state runningJobs }\`;
graphql\`query portalQuery { ...portalJobs_query sites(first: 10) @connection(key: "portal_sites") { edges { node { ...portalSite_site } } } }\`;
graphql\`
  mutation portalCreateSiteMutation($input: CreateSiteInput!, $connections: [ID!]!) {
    createSite(input: $input) {
      site @appendNode(connections: $connections, edgeTypeName: "SiteEdge") { id ...portalSite_site }
      errors { __typename code field message ... on HoldConflictError { runsInTheWay } }
    }
  }\`;
graphql\`mutation portalRemoveWebhookMutation($input: RemoveWebhookInput!) { removeWebhook(input: $input) { webhook { id @deleteRecord } errors { code } } }\`;
graphql\`subscription portalSubscription($after: String) { jobUpdated(after: $after) { cursor job { ...portalJob_job } } }\`;
`;

const packages = stockPackages();
describe.skipIf(packages === null)('what portals are written with', () => {
  const api = withApi();
  let folder = '';
  let introspection: IntrospectionQuery;
  /** The service answers in this process meanwhile. */
  async function ran(program: string, args: readonly string[], env: object = {}) {
    const child = spawn(program, args, {
      cwd: folder,
      env: { ...process.env, ...env, URL: api.url, KEY: api.adminKey },
    });
    const [stdout, stderr, [status]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ]);
    return { stdout, stderr, status: status as number | null };
  }

  beforeAll(async () => {
    // Beside their packages, so that Node finds them.
    folder = mkdtempSync(join(packages!, 'portal-'));
    introspection = await api.must<IntrospectionQuery>(getIntrospectionQuery());
    const schema = printSchema(buildClientSchema(introspection));
    writeFileSync(join(folder, 'schema.graphql'), schema);
    writeFileSync(join(folder, 'operations.graphql'), OPERATIONS);
    writeFileSync(
      join(folder, 'generate.mjs'),
      `import { readFileSync, writeFileSync } from 'node:fs';
      import { codegen } from '@graphql-codegen/core';
      import * as operations from '@graphql-codegen/typescript-operations';
      import * as typed from '@graphql-codegen/typed-document-node';
      import { parse } from 'graphql';
      const read = (name) => parse(readFileSync(name, 'utf8'));
      writeFileSync('operations.ts', await codegen({
        filename: 'operations.ts', schema: read('schema.graphql'), config: { useTypeImports: true },
        documents: [{ location: 'operations.graphql', document: read('operations.graphql') }],
        plugins: [{ operations: {} }, { typed: {} }], pluginMap: { operations, typed },
      }));`,
    );
    const possible = Object.fromEntries(
      introspection.__schema.types.flatMap((type) =>
        type.kind === 'INTERFACE' ? [[type.name, type.possibleTypes.map(({ name }) => name)]] : [],
      ),
    );
    writeFileSync(join(folder, 'possible.json'), JSON.stringify(possible));
    const made = await ran(process.execPath, ['generate.mjs']);
    expect(made.status, made.stderr).toBe(0);
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('generated types of operations compile, with both clients, and say what can be null', async () => {
    writeFileSync(
      join(folder, 'use.ts'),
      `import { ApolloClient } from '@apollo/client';
      import { Client } from '@urql/core';
      import * as docs from './operations.js';
      export async function use(apollo: ApolloClient, urql: Client): Promise<string[]> {
        const { data } = await apollo.mutate({ mutation: docs.NewSiteDocument, variables: { input: { name: 'a' } } });
        const page = await urql.query(docs.PageDocument, { first: 1 }).toPromise();
        // @ts-expect-error: a refused mutation has none.
        const site: string = data!.createSite.site.name;
        // @ts-expect-error: no such variable.
        void urql.query(docs.PageDocument, { last: 1 });
        return [site, ...(page.data?.jobs.nodes.map(({ id }) => id) ?? [])];
      }`,
    );
    const compilerOptions = {
      ...{ module: 'nodenext', target: 'es2022', strict: true, skipLibCheck: true },
      ...{ types: [], noEmit: true },
    };
    const config = { compilerOptions, files: ['use.ts', 'operations.ts'] };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
    const { stdout, status } = await ran(packagePath('node_modules', '.bin', 'tsc'), ['-p', '.']);
    expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
  });

  for (const [name, program] of Object.entries(CLIENTS)) {
    test(`${name}: submits, is refused, creates, lists and follows`, async () => {
      const { transformSync } = await import('esbuild');
      const generated = readFileSync(join(folder, 'operations.ts'), 'utf8');
      writeFileSync(join(folder, 'operations.js'), transformSync(generated, { loader: 'ts' }).code);
      writeFileSync(join(folder, `${name}.mjs`), program);
      const { stdout, stderr } = await ran(process.execPath, [`${name}.mjs`], { SITE: `of-${name}` });
      expect(JSON.parse(stdout || JSON.stringify(stderr))).toMatchObject({
        told: [{ id: expect.stringContaining('job_'), state: 'QUEUED' }],
        submitted: [expect.stringContaining('job_')],
        errors: [{ __typename: 'EntryError', code: 'BAD_USER_INPUT', field: 'tasks', index: 0 }],
        made: { site: { name: `of-${name}` }, errors: [] },
        again: [{ code: 'CONFLICT' }],
        names: expect.arrayContaining(['stock']),
      });
    });
  }

  test("Relay's compiler accepts connections, refetching by Node, and edges made of a payload's object", async () => {
    mkdirSync(join(folder, 'src'));
    writeFileSync(join(folder, 'src', 'portal.js'), RELAY);
    const config = {
      ...{ src: './src', schema: './schema.graphql', language: 'javascript', eagerEsModules: true },
      // Without what it leaves out by default, which this folder is below.
      excludes: ['**/__generated__/**'],
    };
    writeFileSync(join(folder, 'relay.config.json'), JSON.stringify(config));
    const { status, stdout, stderr } = await ran(
      join(packages!, 'node_modules', '.bin', 'relay-compiler'),
      [],
    );
    expect(status, stdout + stderr).toBe(0);
    expect(readdirSync(join(folder, 'src', '__generated__')).sort()).toEqual(
      expect.arrayContaining([
        'portalCreateSiteMutation.graphql.js',
        'portalJobsPageQuery.graphql.js',
        'portalSiteRefetchQuery.graphql.js',
      ]),
    );
  });

  test("Python's graphql-core builds the schema and finds operations valid", async ({ skip }) => {
    if (spawnSync('python3', ['-c', 'import graphql']).status !== 0) skip('python3 has no graphql-core');
    writeFileSync(join(folder, 'introspection.json'), JSON.stringify(introspection));
    const program = `import json, graphql
schema = graphql.build_client_schema(json.load(open("introspection.json")))
assert graphql.validate_schema(schema) == []
print(graphql.validate(schema, graphql.parse(open("operations.graphql").read())))`;
    const { status, stdout, stderr } = await ran('python3', ['-c', program]);
    expect({ status, stderr, stdout: stdout.trim() }).toEqual({ status: 0, stderr: '', stdout: '[]' });
  });
});
