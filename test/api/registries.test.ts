/** Credentials for registries: whose they are, what is told of them, and which agent gets one. */
import { randomBytes } from 'node:crypto';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { createApi } from '../../src/api/server.js';
import { sealAnew } from '../../src/cli/secrets.js';
import { Secrets } from '../../src/platform/secrets.js';
import { type Json, unique, withApi } from './support/api.js';
import { schedule } from './support/schedule.js';

const api = withApi((config) => ({ ...config, limits: { ...config.limits, userRegistries: 2 } }));
const SECRET = 'not-to-be-seen-9';
const SHOWN = 'registry username setAt lastUsedAt';
let site = '';
let agent = '';
let agentId = '';
let ada: { id: string; number: number; key: string };
let job = '';

const set = (key: string, input: Json = {}) =>
  api.ask<{ setRegistryCredential: { credential: Json } }>(
    `mutation ($input: SetRegistryCredentialInput!) { setRegistryCredential(input: $input) { credential { ${SHOWN} } } }`,
    { input: { registry: 'ghcr.io', username: 'ada', password: SECRET, ...input } },
    key,
  );
const list = async (key: string) =>
  (await api.must<{ registryCredentials: Json[] }>(`{ registryCredentials { ${SHOWN} } }`, {}, key))
    .registryCredentials;
const take = async (change: Json = {}, key = agent) => {
  const { errors, data } = await api.ask<{ takeRegistryCredential: Json }>(
    'mutation ($input: TakeRegistryCredentialInput!) { takeRegistryCredential(input: $input) { login { registry username password } missing } }',
    { input: { siteId: site, agentId, jobId: job, epoch: 1, ...change } },
    key,
  );
  return errors?.[0]?.extensions.code ?? data.takeRegistryCredential;
};
const sql = async (text: string): Promise<Json[]> => {
  const result = await api.db.pool.query<Json>(text);
  return result.rows;
};
const submit = async (key: string, image: string) => {
  const { submitJobs } = await api.must<{ submitJobs: { jobIds: string[] } }>(
    'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }',
    { input: { jobs: [{ command: 'true', image }] } },
    key,
  );
  await schedule(api.parts);
  return submitJobs.jobIds[0]!;
};

beforeAll(async () => {
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "s" }) { site { id } } }',
  );
  site = createSite.site.id;
  await api.must(
    `mutation { createMachine(input: { siteId: "${site}", name: "m", cpus: 64, memoryMb: 1000, labels: [{ name: "containers", value: "yes" }] }) { machine { id } } }`,
  );
  agent = (await api.user('AGENT', 'agent', site)).key;
  agentId = await api.serve(site, agent);
  ada = await api.user('USER', unique('ada'));
  job = await submit(ada.key, 'GHCR.io/tools/own:1');
});

test('are seen by their users without the password, and by nobody else', async () => {
  const before = await set(ada.key, { username: 'former', password: 'former-not-to-be-seen' });
  expect(before.errors).toBeUndefined();
  const { data } = await set(ada.key, { registry: 'GHCR.IO' });
  const shown = { registry: 'ghcr.io', username: 'ada', setAt: expect.any(String), lastUsedAt: null };
  expect(data.setRegistryCredential.credential).toEqual(shown);
  expect(await list(ada.key)).toEqual([shown]);
  const [other, operator] = [await api.user('USER', unique('u')), await api.user('OPERATOR', unique('o'))];
  for (const key of [other.key, operator.key, api.adminKey]) {
    expect(await list(key)).toEqual([]);
    const answer = await api.ask(
      'mutation { removeRegistryCredential(input: { registry: "ghcr.io" }) { credential { registry } } }',
      {},
      key,
    );
    expect(answer.errors?.[0]?.extensions.code).toBe('NOT_FOUND');
  }
  const { audit } = await api.must<{ audit: { nodes: Json[] } }>(
    '{ audit { nodes { action target before after } } }',
  );
  const entry = audit.nodes.find(({ action }) => action === 'setRegistryCredential')!;
  expect(entry).toMatchObject({
    target: ada.id,
    ...{ before: { username: 'former' }, after: { registry: 'ghcr.io', username: 'ada' } },
  });
  expect(Object.keys(entry.after as Json).sort()).toEqual(['lastUsedAt', 'registry', 'setAt', 'username']);
  // Neither in the log of the service, nor anywhere in the database.
  const rows = await sql('SELECT c::text FROM registry_credentials c UNION ALL SELECT a::text FROM audits a');
  expect(rows.length).toBeGreaterThan(2);
  expect(`${JSON.stringify(rows)}${api.log.join('')}`).not.toMatch(/not-to-be-seen/);
  expect(JSON.stringify(rows)).not.toContain(Buffer.from(SECRET).toString('hex'));
});

test('are bounded, and bad ones are refused without being quoted', async () => {
  const { key } = await api.user('USER', unique('u'));
  await set(key);
  await set(key, { registry: 'localhost:5000' });
  expect((await set(key, { registry: 'docker.io' })).errors?.[0]).toMatchObject({
    message: expect.stringContaining('accepted: up to 2 (LIMIT_USER_REGISTRIES)'),
    extensions: { code: 'LIMIT_EXCEEDED' },
  });
  // Another in place of one that is there.
  expect((await set(key)).errors).toBeUndefined();
  for (const bad of [
    ...['ghcr', 'https://ghcr.io', 'ghcr.io/tools', 'ghcr.io:', ''].map((registry) => ({ registry })),
    ...['', 'a:b', 'a\nb', 'x'.repeat(201)].map((username) => ({ username })),
    ...['', `${SECRET}\0`, SECRET.repeat(1_000)].map((password) => ({ password })),
  ]) {
    const { errors } = await set(key, bad);
    expect(errors?.[0]).toMatchObject({
      message: expect.stringMatching(new RegExp(`^${Object.keys(bad)[0]}: .*accepted: `)),
      extensions: { code: 'BAD_USER_INPUT' },
    });
    expect(errors?.[0]?.message).not.toContain(SECRET);
  }
});

test('the agent of a live run of the user gets that for the registry of its image, and nobody else', async () => {
  await set(ada.key);
  await set(ada.key, { registry: 'docker.io', password: 'another' });
  const login = { registry: 'ghcr.io', username: 'ada', password: SECRET };
  expect(await take()).toEqual({ login, missing: null });
  expect((await list(ada.key)).map(({ lastUsedAt }) => lastUsedAt !== null)).toEqual([false, true]);
  // Other runs, agents and tokens; people.
  for (const change of [{ epoch: 2 }, { jobId: 'job_999' }, { agentId: 'agent_999' }, { token: 'another' }])
    expect(await take(change)).toBe('NOT_FOUND');
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "elsewhere" }) { site { id } } }',
  );
  const elsewhere = await api.user('AGENT', unique('agent'), createSite.site.id);
  expect(await take({}, elsewhere.key)).toBe('FORBIDDEN');
  expect(await take({ siteId: createSite.site.id }, elsewhere.key)).toBe('NOT_FOUND');
  for (const key of [ada.key, api.adminKey]) expect(await take({}, key)).toBe('FORBIDDEN');

  const other = await api.user('USER', unique('u'));
  const jobId = await submit(other.key, 'ghcr.io/tools/own:1');
  expect(await take({ jobId })).toEqual({
    login: null,
    missing: expect.stringMatching(
      /^u\S* has stored no credential for ghcr.io \(`switchyard registries add ghcr.io/,
    ),
  });
  // A row that somebody has moved to another user.
  await sql(
    `UPDATE registry_credentials SET user_id = ${other.number} WHERE user_id = ${ada.number} AND registry = 'ghcr.io'`,
  );
  expect(await take({ jobId })).toEqual({ login: null, missing: expect.stringMatching(/cannot decrypt/) });
  await set(ada.key);

  await api.must(
    `mutation { cancelJobs(input: { selection: { ids: ["${job}"] } }) { jobIds } }`,
    {},
    ada.key,
  );
  expect(await take()).toBe('NOT_FOUND');
});

test('without a key nothing is stored, and what to set is said', async () => {
  const keyless = createApi({ ...api.parts, secrets: null });
  const url = await keyless.listen();
  onTestFinished(() => keyless.close());
  const query = `mutation { setRegistryCredential(input: { registry: "quay.io", username: "a", password: "b" }) { credential { registry } } }`;
  const answer = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${ada.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  });
  expect(await answer.json()).toMatchObject({
    errors: [{ message: expect.stringContaining('must set SECRETS_KEY'), extensions: { code: 'CONFLICT' } }],
  });
  expect(JSON.stringify(await list(ada.key))).not.toContain('quay.io');
});

test('a new key takes over what a former one has encrypted', async () => {
  const jobId = await submit(ada.key, 'ghcr.io/tools/own:1');
  const { directory } = api.parts;
  const former = Buffer.alloc(32, 7);
  await set(ada.key);
  await sql(`DELETE FROM registry_credentials WHERE user_id <> ${ada.number}`);
  const [next, said] = [randomBytes(32), [] as object[]];
  const log = { info: () => {}, error: (fields: object) => said.push(fields) };
  await sealAnew(new Secrets(next), directory, log as never);
  // Without the former one: left as it is, and its name is said.
  expect(said).toEqual([{ keys: [new Secrets(former).keyId] }]);
  expect(await take({ jobId })).toMatchObject({ login: { password: SECRET } });
  await sealAnew(new Secrets(next, [former]), directory, log as never);
  expect(said).toHaveLength(1);
  expect(await take({ jobId })).toMatchObject({
    login: null,
    missing: expect.stringContaining(`the key ${new Secrets(next).keyId}`),
  });
  const row = await directory.registryCredential(ada.number, 'ghcr.io');
  const owner = ['registry', ada.number, 'ghcr.io', 'ada'];
  expect(new Secrets(next).open(row!, owner)).toBe(SECRET);
  // What was read before the user set another one is not put in its place.
  await directory.sealAnew({ ...row!, sealed: randomBytes(40) }, new Secrets(next).seal('former', owner));
  expect(await directory.registryCredential(ada.number, 'ghcr.io')).toEqual(row);
});

test('are gone when their user is deactivated', async () => {
  const { id, key, number } = await api.user('USER', unique('u'));
  await set(key);
  const count = async () =>
    (await sql(`SELECT 1 FROM registry_credentials WHERE user_id = ${number}`)).length;
  expect(await count()).toBe(1);
  await api.must(`mutation { updateUser(input: { userId: "${id}", active: false }) { user { id } } }`);
  expect(await count()).toBe(0);
});
