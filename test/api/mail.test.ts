/** Mail about jobs in the API: who sees and sets what, and what links in mails do. */
import { once } from 'node:events';
import { request } from 'node:http';
import { expect, it } from 'vitest';
import { tokenFor } from '../../src/callbacks/mail-text.js';
import type { MailKind } from '../../src/store/job-fields.js';
import { type Json, unique, withApi } from './support/api.js';

const api = withApi();

const MAIL = 'mail { address kinds unsubscribed problem }';
const setMail = (kinds: string) => `mutation { setMail(input: { kinds: ${kinds} }) { user { id ${MAIL} } } }`;
const SET_ADDRESS = `mutation ($user: ID!, $address: String) { setMailAddress(input: { userId: $user, address: $address }) { user { id ${MAIL} } } }`;
const codeOf = async (query: string, key: string, variables = {}) =>
  (await api.ask(query, variables, key)).errors?.[0]?.extensions.code;
const mailOf = async (key: string) =>
  (await api.must<{ viewer: { mail: Json } }>(`{ viewer { ${MAIL} } }`, {}, key)).viewer.mail;
const audited = async (user: string) =>
  (
    await api.must<{ audit: { nodes: { action: string; target: string }[] } }>(
      '{ audit(first: 100) { nodes { action target before after reason user { name } } } }',
    )
  ).audit.nodes.filter(({ action, target }) => target === user && /mail/i.test(action));

it('users choose the kinds, an ADMIN the address; nobody else sees either', async () => {
  const [one, other, operator] = [
    await api.user('USER', unique('u')),
    await api.user('USER', unique('u')),
    await api.user('OPERATOR', unique('o')),
  ];
  expect(await mailOf(one.key)).toEqual({
    ...{ address: null, kinds: ['RESERVATION'], unsubscribed: [], problem: null },
  });
  const address = { user: one.id, address: 'ann@example.org' };
  for (const { key } of [one, other, operator])
    expect(await codeOf(SET_ADDRESS, key, address)).toBe('FORBIDDEN');
  const mail = { address: 'ann@example.org', kinds: ['RESERVATION'], unsubscribed: [], problem: null };
  expect(await api.must(SET_ADDRESS, address)).toEqual({ setMailAddress: { user: { id: one.id, mail } } });
  mail.kinds = ['END', 'FAIL'];
  expect(await api.must(setMail('[END, FAIL, END]'), {}, one.key)).toEqual({
    setMail: { user: { id: one.id, mail } },
  });

  const see = `{ node(id: "${one.id}") { ... on User { id ${MAIL} } } }`;
  expect(await api.must(see, {}, one.key)).toEqual({ node: { id: one.id, mail } });
  expect(await api.must(see)).toEqual({ node: { id: one.id, mail } });
  for (const { key } of [other, operator])
    expect(JSON.stringify(await api.ask(see, {}, key))).not.toMatch(/ann@example|FAIL/);
  const owned = `{ job(id: "ID") { user { name ${MAIL} } } }`;
  const { submitJobs } = await api.must<{ submitJobs: { jobs: { id: string }[] } }>(
    'mutation { submitJobs(input: { jobs: [{ command: "true", mail: [FAIL] }] }) { jobs { id } } }',
    {},
    one.key,
  );
  const seen = await api.must<{ job: { user: Json } }>(
    owned.replace('ID', submitJobs.jobs[0]!.id),
    {},
    operator.key,
  );
  expect(seen.job.user.mail).toBeNull();

  expect(await audited(one.id)).toMatchObject([
    { action: 'setMail', after: { kinds: ['END', 'FAIL'] } },
    { action: 'setMailAddress', before: null, after: { address: 'ann@example.org' } },
  ]);
  expect(await api.must(SET_ADDRESS, { user: one.id })).toMatchObject({
    setMailAddress: { user: { mail: { address: null } } },
  });
});

it('addresses that are two, or more than an address, and unknown users and kinds are refused', async () => {
  const { id, key } = await api.user('USER', unique('u'));
  for (const address of [
    ...['', 'ann', '@example.org', 'ann@', 'a b@example.org', 'a@example.org,b@example.org'],
    ...['a@example.org\r\nBcc: b@example.org', '<a@example.org>', 'a@b@example.org', 'a\u0000@example.org'],
    ...[`${'a'.repeat(65)}@example.org`, `a@${'b'.repeat(254)}`],
  ]) {
    const { errors } = await api.ask(SET_ADDRESS, { user: id, address });
    expect(errors?.[0], JSON.stringify(address)).toMatchObject({
      message: expect.stringMatching(/^address: .*accepted: an address such as ann@example.org/s),
      extensions: { code: 'BAD_USER_INPUT' },
    });
  }
  expect(await codeOf(SET_ADDRESS, api.adminKey, { user: 'user_999999', address: 'a@example.org' })).toBe(
    'NOT_FOUND',
  );
  expect((await api.ask(setMail('[LATER]'), {}, key)).errors).toBeDefined();
  expect((await mailOf(key)).address).toBeNull();
});

it('a job says what mail is about it, or leaves it to its user', async () => {
  const { key } = await api.user('USER', unique('u'));
  const { submitJobs } = await api.must<{ submitJobs: { jobs: Json[] } }>(
    `mutation { submitJobs(input: { jobs: [{ command: "true", mail: [END, BEGIN, END] }, { command: "true", mail: [] }, { command: "true" }] }) {
      jobs { mail } } }`,
    {},
    key,
  );
  expect(submitJobs.jobs).toEqual([{ mail: ['END', 'BEGIN'] }, { mail: [] }, { mail: null }]);
});

/** What a browser, or a mail program by its button, gets. */
async function follow(token: string, method = 'GET', body?: string) {
  const url = `${api.origin}/unsubscribe?token=${encodeURIComponent(token)}`;
  const response = await fetch(url, { method, ...(body !== undefined && { body }) });
  return { status: response.status, headers: response.headers, text: await response.text() };
}
const token = (userId: number, ...kinds: MailKind[]) => tokenFor('secret', userId, kinds);

it('a link in a mail asks first; its button unsubscribes, once, until the kind is chosen again', async () => {
  const { id, number, key } = await api.user('USER', unique('u'));
  await api.must(setMail('[END, FAIL, BEGIN]'), {}, key);
  const kept = { kinds: ['END', 'FAIL', 'BEGIN'], unsubscribed: [] };

  const asked = await follow(token(number, 'END'));
  expect(asked.status).toBe(200);
  expect(asked.text).toContain('Unsubscribe from mail about: END?');
  expect(asked.text).toContain('<form method="post"><button>');
  expect(asked.headers.get('content-security-policy')).toMatch(/^default-src 'none';/);
  expect(asked.headers.get('cache-control')).toBe('no-store');
  // It names the user in its address.
  expect(asked.headers.get('referrer-policy')).toBe('no-referrer');
  await follow(token(number, 'END'), 'HEAD');
  expect(await mailOf(key)).toMatchObject(kept);

  const done = await follow(token(number, 'END'), 'POST', 'List-Unsubscribe=One-Click');
  expect(done).toMatchObject({
    status: 200,
    text: expect.stringContaining('You are unsubscribed from mail about: END.'),
  });
  expect((await follow(token(number, 'END'), 'POST')).status).toBe(200);
  expect(await mailOf(key)).toMatchObject({ kinds: ['FAIL', 'BEGIN'], unsubscribed: ['END'] });
  expect(await audited(id)).toMatchObject([
    { action: 'unsubscribeMail', user: { name: expect.any(String) }, reason: 'a link in a mail' },
    { action: 'setMail' },
  ]);

  // All at once: none undoes another.
  await Promise.all(
    (['FAIL', 'BEGIN', 'LIMIT_80', 'WAITED'] as const).map((kind) => follow(token(number, kind), 'POST')),
  );
  expect(await mailOf(key)).toMatchObject({
    kinds: [],
    unsubscribed: ['BEGIN', 'END', 'FAIL', 'LIMIT_80', 'WAITED'],
  });
  await api.must(setMail('[END]'), {}, key);
  expect(await mailOf(key)).toMatchObject({
    kinds: ['END'],
    unsubscribed: ['BEGIN', 'FAIL', 'LIMIT_80', 'WAITED'],
  });
});

it('links that nobody has signed change nothing, and nothing of them is shown', async () => {
  const [one, other] = [await api.user('USER', unique('u')), await api.user('USER', unique('u'))];
  for (const { key } of [one, other]) await api.must(setMail('[END, FAIL]'), {}, key);
  const good = token(one.number, 'END');
  const forged = [
    ...['', '.', '..', `${one.number}.END`, `${one.number}.END.`, 'x'.repeat(5000), '\u0000', '%00', 'ü.ü.ü'],
    good.replace(`${one.number}.`, `${other.number}.`),
    good.replace('END', 'FAIL'),
    tokenFor('another secret', one.number, ['END']),
    '<script>alert(1)</script>"\'>',
  ];
  for (const method of ['GET', 'POST'])
    for (const each of forged) {
      const { status, text } = await follow(each, method);
      expect([status, text.includes('This link is not valid.')], each).toEqual([404, true]);
      expect(text).not.toMatch(/script|form/);
    }
  for (const query of ['', '?token', `?token=${good}&token=${good}`, `?token[a]=${good}`])
    expect((await fetch(`${api.origin}/unsubscribe${query}`, { method: 'POST' })).status).toBe(404);
  for (const { key } of [one, other])
    expect(await mailOf(key)).toMatchObject({ kinds: ['END', 'FAIL'], unsubscribed: [] });
  // Signed, but of nobody: from a database that has been restored, say.
  expect((await follow(token(999_999, 'END'), 'POST')).status).toBe(404);
});

it('a user who is no longer active can still unsubscribe', async () => {
  const { id, number } = await api.user('USER', unique('u'));
  await api.must(`mutation { updateUser(input: { userId: "${id}", active: false }) { user { id } } }`);
  expect((await follow(token(number, 'END'), 'POST')).status).toBe(200);
  expect(await api.must(`{ node(id: "${id}") { ... on User { ${MAIL} } } }`)).toMatchObject({
    node: { mail: { unsubscribed: ['END'] } },
  });
});

it('does not wait for a body', async () => {
  const { number, key } = await api.user('USER', unique('u'));
  const sent = request(`${api.origin}/unsubscribe?token=${token(number, 'END')}`, {
    method: 'POST',
    headers: { 'content-length': 1e12 },
  });
  sent.on('error', () => {});
  sent.write('x');
  const [response] = await once(sent, 'response');
  expect(response.statusCode).toBe(200);
  sent.destroy();
  expect(await mailOf(key)).toMatchObject({ unsubscribed: ['END'] });
});
