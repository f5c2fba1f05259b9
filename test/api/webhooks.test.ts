/** Webhooks in the API: whose they are, what they may be, and what is told of them. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Endpoint } from '../callbacks/support.js';
import { type Json, unique, withApi } from './support/api.js';

const api = withApi((config) => ({ ...config, limits: { ...config.limits, userWebhooks: 2 } }));
const endpoint = new Endpoint();
beforeAll(async () => void (await endpoint.open()));
afterAll(() => endpoint.close());

const CONDITIONS = `ids states siteId userId application project groupName class license cause jobGroupId waitsForOthers
  submittedAfter submittedBefore endedAfter endedBefore`;
const CREATE = `mutation ($input: CreateWebhookInput!) { createWebhook(input: $input) { secret webhook {
  id name url conditions { ${CONDITIONS} } filter kinds enabled user { name } failures lagS } } }`;
interface Made {
  createWebhook: { secret: string; webhook: { id: string } & Json };
}
const create = (key: string, input: Json = {}) =>
  api.must<Made>(CREATE, { input: { name: 'w', url: endpoint.url, ...input } }, key);
const codeOf = async (query: string, key: string, variables = {}) =>
  (await api.ask(query, variables, key)).errors?.[0]?.extensions.code;

it('belong to their users: others see, change, test and remove none; an ADMIN all but the secrets', async () => {
  const [one, other, operator] = [
    await api.user('USER', unique('u')),
    await api.user('USER', unique('u')),
    await api.user('OPERATOR', unique('o')),
  ];
  const filter = {
    ...{ states: ['COMPLETED'], application: 'x', userId: one.id, ids: ['job_7'], jobGroupId: 'group_1' },
    submittedAfter: '2026-11-23T10:00:00.000Z',
  };
  const { secret, webhook } = (await create(one.key, { filter, kinds: ['COMPLETED', 'COMPLETED'] }))
    .createWebhook;
  expect(secret).toMatch(/^whsec_/);
  expect(webhook).toMatchObject({ filter, kinds: ['COMPLETED'], enabled: true, failures: 0, lagS: 0 });
  // Each field of its own, null where nothing is asked of it; as JSON, as it was in the release before, what was given.
  const none = Object.fromEntries(CONDITIONS.split(/\s+/).map((name) => [name, null]));
  expect(webhook.conditions).toEqual({ ...none, ...filter });
  expect(webhook.filter).toEqual(filter);
  const { id } = webhook;
  const uses = {
    test: `mutation { testWebhook(input: { webhookId: "${id}" }) { test { delivered status } } }`,
    rotate: `mutation { rotateWebhookSecret(input: { webhookId: "${id}" }) { secret } }`,
    change: `mutation { updateWebhook(input: { webhookId: "${id}", enabled: false }) { webhook { enabled } } }`,
    remove: `mutation { removeWebhook(input: { webhookId: "${id}" }) { webhook { id } } }`,
  };
  for (const { key } of [other, operator]) {
    for (const use of Object.values(uses)) expect(await codeOf(use, key)).toBe('NOT_FOUND');
    expect(await api.must(`{ node(id: "${id}") { id } webhooks { id } }`, {}, key)).toEqual({
      node: null,
      webhooks: [],
    });
    expect(await codeOf(`{ webhooks(userId: "${one.id}") { id } }`, key)).toBe('FORBIDDEN');
  }
  expect(await api.must(uses.test, {}, one.key)).toEqual({
    testWebhook: { test: { delivered: true, status: 204 } },
  });
  expect(await codeOf(uses.test, api.adminKey)).toBe('NOT_FOUND');
  expect(await codeOf(uses.rotate, api.adminKey)).toBe('NOT_FOUND');
  expect(await api.must(`{ webhooks(userId: "${one.id}") { id } }`)).toEqual({ webhooks: [{ id }] });
  expect(await api.must(uses.change)).toEqual({ updateWebhook: { webhook: { enabled: false } } });
  expect(await api.must(uses.remove)).toEqual({ removeWebhook: { webhook: { id } } });

  const { audit } = await api.must<{ audit: { nodes: Json[] } }>(
    '{ audit(first: 3) { nodes { action target targetName before after user { name } } } }',
  );
  expect(audit.nodes.map(({ action }) => action)).toEqual([
    'deleteWebhook',
    'updateWebhook',
    'createWebhook',
  ]);
  expect(audit.nodes[0]).toMatchObject({ target: id, targetName: 'w', after: null });
  expect(JSON.stringify(audit)).not.toContain(secret.slice(6));
});

it('are bounded, and bad ones are refused with what is accepted', async () => {
  const { key } = await api.user('USER', unique('u'));
  await create(key);
  await create(key);
  const third = await api.ask(CREATE, { input: { name: 'w', url: endpoint.url } }, key);
  expect(third.errors?.[0]).toMatchObject({
    message: expect.stringContaining('accepted: up to 2'),
    extensions: { code: 'LIMIT_EXCEEDED' },
  });
  for (const url of [
    'x',
    'ftp://x/',
    'https://user@x/',
    'https://user:word@x/',
    `https://x/${'y'.repeat(2000)}`,
  ]) {
    const { errors } = await api.ask(CREATE, { input: { name: 'w', url } }, key);
    expect(errors?.[0]).toMatchObject({
      message: expect.stringMatching(/^url: /),
      extensions: { code: 'BAD_USER_INPUT' },
    });
  }
});

it('a portal that acts for a user can neither make nor change them', async () => {
  const user = await api.user('USER', unique('u'));
  const { createWebhook } = await create(user.key);
  const portal = await api.user('USER', unique('p'));
  const { createApiKey } = await api.must<{ createApiKey: { secret: string } }>(
    `mutation { createApiKey(input: { userId: "${portal.id}", name: "p", actsForUsers: true }) { secret } }`,
  );
  const { viewer } = await api.must<{ viewer: { name: string } }>('{ viewer { name } }', {}, user.key);
  const ask = async (query: string) => {
    const response = await fetch(api.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${createApiKey.secret}`,
        'x-switchyard-user': viewer.name,
      },
      body: JSON.stringify({ query }),
    });
    return (await response.json()) as { data: Json; errors?: { extensions: { code: string } }[] };
  };
  const { id } = createWebhook.webhook;
  expect((await ask('{ webhooks { id } }')).data).toEqual({ webhooks: [{ id }] });
  for (const query of [
    `mutation { createWebhook(input: { name: "x", url: "${endpoint.url}" }) { secret } }`,
    `mutation { updateWebhook(input: { webhookId: "${id}", url: "https://elsewhere.example/" }) { webhook { id } } }`,
    `mutation { rotateWebhookSecret(input: { webhookId: "${id}" }) { secret } }`,
  ])
    expect((await ask(query)).errors?.[0]?.extensions.code).toBe('FORBIDDEN');
});
