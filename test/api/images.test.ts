/** Images at sites: what agents report of them, and what the service then says. */
import { beforeAll, expect, it } from 'vitest';
import { withApi } from './support/api.js';

const api = withApi();
let site = '';
let key = '';
let agent = '';

const register = (identity: string) =>
  api
    .must<{ registerAgent: { agent: { id: string } } }>(
      'mutation ($input: RegisterAgentInput!) { registerAgent(input: $input) { agent { id } } }',
      {
        input: {
          ...{
            site,
            identity,
            instance: identity,
            host: identity,
            version: '1',
            protocol: 4,
            simulated: true,
          },
          machines: [{ name: identity, measured: null, problem: null, waits: null }],
        },
      },
      key,
    )
    .then(({ registerAgent }) => registerAgent.agent.id);

const report = (images: object[], by = agent) =>
  api.ask<{ reportImages: boolean }>(
    'mutation ($site: ID!, $agent: ID!, $images: [ImageReportInput!]!) { reportImages(site: $site, agent: $agent, images: $images) }',
    { site, agent: by, images },
    key,
  );
const told = async (images: object[], by = agent) => (await report(images, by)).data?.reportImages;

interface Image {
  name: string;
  sizeMb: number;
  digests: string[];
  agents: number;
  site: { name: string };
}
const images = async (page = '') =>
  (
    await api.must<{ images: { nodes: Image[]; pageInfo: { endCursor: string } } }>(
      `query ($site: ID) { images(siteId: $site${page}) { nodes { name sizeMb digests agents site { name } } pageInfo { endCursor } } }`,
      { site },
    )
  ).images;

beforeAll(async () => {
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "s" }) { site { id } } }',
  );
  site = createSite.site.id;
  for (const name of ['a', 'b'])
    await api.must(
      'mutation ($site: ID!, $name: String!) { createMachine(input: { siteId: $site, name: $name, cpus: 4, memoryMb: 1000, labels: [{ name: "containers" }] }) { machine { id } } }',
      { site, name },
    );
  key = (await api.user('AGENT', 'agent', site)).key;
  agent = await register('a');
});

const one = { name: 'debian:12', sizeMb: 120 };
/** The one name that the service has for it. */
const ONE = 'docker.io/library/debian:12';

it('are as the last reports of agents say: twice is as once, and what is left out has gone', async () => {
  const other = await register('b');
  expect(await told([one, { name: 'tools', sizeMb: 1 }])).toBe(true);
  expect(await told([{ ...one, digest: 'sha256:1' }])).toBe(true);
  expect(await told([{ ...one, digest: 'sha256:1' }])).toBe(true);
  expect(
    await told(
      [
        { ...one, sizeMb: 130, digest: 'sha256:2' },
        { name: 'z', sizeMb: 2 },
      ],
      other,
    ),
  ).toBe(true);
  const at = { site: { name: 's' } };
  const both = [
    { name: ONE, sizeMb: 130, digests: ['sha256:1', 'sha256:2'], agents: 2, ...at },
    { name: 'docker.io/library/z:latest', sizeMb: 2, digests: [], agents: 1, ...at },
  ];
  expect((await images()).nodes).toEqual(both);
  const { nodes, pageInfo } = await images(', first: 1');
  expect(nodes).toEqual(both.slice(0, 1));
  expect((await images(`, after: "${pageInfo.endCursor}"`)).nodes).toEqual(both.slice(1));
  expect(await told([], other)).toBe(true);
  expect((await images()).nodes).toMatchObject([{ name: ONE, sizeMb: 120, agents: 1 }]);
  // Of an agent that has it under two names, the larger counts.
  expect(
    await told([
      { ...one, digest: 'sha256:1' },
      { name: ONE, sizeMb: 90 },
    ]),
  ).toBe(true);
  expect((await images()).nodes).toMatchObject([
    { name: ONE, sizeMb: 120, digests: ['sha256:1'], agents: 1 },
  ]);
});

it('are news when they have changed, and only then', async () => {
  await told([one]);
  const events = async () =>
    (
      await api.must<{ events: { nodes: { objectId: string; site: { id: string } | null }[] } }>(
        '{ events(first: 1000) { nodes { kind objectId site { id } } } }',
      )
    ).events.nodes.filter((event) => event.objectId === site && event.site?.id === site);
  const before = (await events()).length;
  await told([one]);
  expect(await events()).toHaveLength(before);
  await told([{ ...one, sizeMb: 121 }]);
  expect((await events()).length).toBe(before + 1);
  expect((await events()).at(-1)).toMatchObject({ kind: 'DATA' });
});

it('are refused by name where they cannot be, and from others than agents', async () => {
  const refused = async (list: object[]) => (await report(list)).errors?.[0]?.message;
  expect(await refused([one, one])).toMatch(/^images\[1\]\.name: "debian:12" .*; accepted: each name once/);
  expect(await refused([{ ...one, sizeMb: -1 }])).toMatch(/^images\[0\]\.sizeMb: -1 .*accepted: 0 to /);
  expect(await refused([{ ...one, name: '' }])).toMatch(/^images\[0\]\.name: /);
  const many = Array.from({ length: 1001 }, (_, i) => ({ name: `i${i}`, sizeMb: 1 }));
  expect(await refused(many)).toMatch(/^images.*1001.*accepted: .*1000/);
  expect(await told(many.slice(1))).toBe(true);
  const admin = await api.ask(
    'mutation ($site: ID!, $agent: ID!) { reportImages(site: $site, agent: $agent, images: []) }',
    { site, agent },
  );
  expect(admin.errors?.[0]?.extensions?.code).toBe('FORBIDDEN');
});

it('count in decisions and dry runs of policies that weigh data, as far as their size is known', async () => {
  await told([one]);
  const { policy } = await api.must<{ policy: { version: number; document: { dispatch: object } } }>(
    '{ policy { version document } }',
  );
  const dry = async (image: string | null) =>
    (
      await api.must<{ placement: { image: object | null } }>(
        'query ($spec: JobInput!) { placement(spec: $spec) { image { name sizeMb sites { name } } } }',
        { spec: { command: 'true', image, estimateS: 1 } },
      )
    ).placement.image;
  expect(await dry('debian:12')).toBeNull();
  await api.must(
    'mutation ($input: UpdatePolicyInput!) { updatePolicy(input: $input) { policy { version } } }',
    {
      input: {
        document: { ...policy.document, dispatch: { kind: 'diana' } },
        ...{ expectedVersion: policy.version, reason: 'test' },
      },
    },
  );
  expect(await dry('debian:12')).toEqual({ name: 'debian:12', sizeMb: 120, sites: [{ name: 's' }] });
  for (const name of ['docker.io/debian:12', 'index.docker.io/library/debian:12'])
    expect(await dry(name)).toEqual({ name, sizeMb: 120, sites: [{ name: 's' }] });
  expect(await dry('debian:13')).toEqual({ name: 'debian:13', sizeMb: null, sites: [] });
  expect(await dry(null)).toBeNull();
});

it('go with the last machine of their agent, and do not come back', async () => {
  await told([one]);
  const { machines } = await api.must<{ machines: { nodes: { id: string; name: string }[] } }>(
    'query ($site: ID) { machines(siteId: $site) { nodes { id name } } }',
    { site },
  );
  const { id } = machines.nodes.find(({ name }) => name === 'a')!;
  await api.must(
    'mutation ($id: ID!) { updateMachine(input: { machineId: $id, state: DOWN }) { machine { id } } }',
    { id },
  );
  await api.must('mutation ($id: ID!) { removeMachine(input: { machineId: $id }) { machine { id } } }', {
    id,
  });
  expect((await images()).nodes).toEqual([]);
  expect(await told([one])).toBe(false);
  expect((await images()).nodes).toEqual([]);
});
