/** Signing in by user name and password, invitations, and sessions. */
import { beforeAll, describe, expect, test } from 'vitest';
import { type TestApi, unique, withApi } from './support/api.js';

const GOOD = 'seven quiet harbors';
const OTHER = 'nine loud foundries';
const api = withApi();

/** What the address answers. */
async function post(path: string, body: unknown, headers: Record<string, string> = {}, at: TestApi = api) {
  const response = await fetch(`${at.origin}/sign-in/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'user-agent': 'a browser', ...headers },
    body: JSON.stringify(body),
  });
  const answer = (await response.json()) as {
    secret: string;
    user: string;
    expiresAt: string;
    errors?: { message: string; extensions: { code: string } }[];
  };
  const [error] = answer.errors ?? [];
  return {
    status: response.status,
    headers: response.headers,
    ...answer,
    ...error,
    code: error?.extensions.code,
  };
}

const INVITE =
  'mutation ($user: ID!, $until: DateTime) { inviteUser(input: { userId: $user, expiresAt: $until }) { invitation expiresAt user { invitedUntil passwordSetAt } } }';
async function invite(user: string, until?: string, at: TestApi = api) {
  const { inviteUser } = await at.must<{ inviteUser: { invitation: string; expiresAt: string } }>(INVITE, {
    user,
    until,
  });
  return inviteUser;
}

/** A user with a password, signed in once. */
async function member(name = unique('member'), role: 'USER' | 'ADMIN' = 'USER', at: TestApi = api) {
  const user = await at.user(role, name);
  const { invitation } = await invite(user.id, undefined, at);
  const { secret } = await post('invitation', { invitation, password: GOOD }, {}, at);
  return { ...user, name, session: secret };
}

const SESSIONS =
  '{ viewer { id name sessions { id current address agent createdAt lastUsedAt expiresAt } } }';
type Sessions = { viewer: { id: string; sessions: { id: string; current: boolean; agent: string }[] } };
const sessionsOf = async (key: string) => (await api.must<Sessions>(SESSIONS, {}, key)).viewer.sessions;
const codeOf = async (key: string) =>
  (await api.ask('{ viewer { id } }', {}, key)).errors?.[0]?.extensions.code;
const audits = async (action: string, user: string) => {
  const { audit } = await api.must<{ audit: { nodes: { action: string; target: string }[] } }>(
    '{ audit(first: 200) { nodes { action target } } }',
  );
  return audit.nodes.filter((entry) => entry.action === action && entry.target === user).length;
};
const END = 'mutation ($input: EndSessionsInput!) { endSessions(input: $input) { endedSessionIds } }';
const CHANGE =
  'mutation ($current: String!, $password: String!) { changePassword(input: { current: $current, password: $password }) { user { name } } }';

describe('an invitation', () => {
  test('sets a password once, signs in, and is told whom it is for', async () => {
    const name = unique('ada');
    const ada = await api.user('USER', name);
    const { invitation, expiresAt } = await invite(ada.id);
    expect(Date.parse(expiresAt)).toBeGreaterThan(Date.now() + 6.9 * 86_400_000);
    expect(await post('invitation', { invitation })).toMatchObject({ status: 200, user: name, expiresAt });
    const begun = await post('invitation', { invitation, password: GOOD });
    expect(begun).toMatchObject({ status: 200, user: name });
    expect(begun.headers.get('cache-control')).toBe('no-store');
    expect(await sessionsOf(begun.secret)).toMatchObject([
      { current: true, address: '127.0.0.1', agent: 'a browser' },
    ]);
    expect(await post('invitation', { invitation, password: OTHER })).toMatchObject({
      status: 404,
      code: 'NOT_FOUND',
    });
    expect(await post('password', { user: name, password: GOOD })).toMatchObject({ status: 200, user: name });
    expect(await post('password', { user: name, password: OTHER })).toMatchObject({ status: 401 });
    expect([await audits('inviteUser', ada.id), await audits('setPassword', ada.id)]).toEqual([1, 1]);
    // Nothing that could be used is in the log, the audit log or the database.
    const stored = await api.db.pool.query<{ all: string }>(
      `SELECT (SELECT string_agg(p::text, ' ') FROM passwords p) || (SELECT string_agg(s::text, ' ') FROM sessions s) || (SELECT string_agg(a::text, ' ') FROM audits a) AS all`,
    );
    const kept = stored.rows[0]!.all + api.log.join(' ');
    expect(kept).toContain('$argon2id$v=19$m=19456,t=2,p=1$');
    for (const secret of [GOOD, invitation, begun.secret]) expect(kept).not.toContain(secret);
  });

  test('is replaced by a newer one, and resets: the sessions before it end', async () => {
    const ada = await member();
    const [first, second] = [await invite(ada.id), await invite(ada.id)];
    expect(await post('invitation', { invitation: first.invitation })).toMatchObject({ status: 404 });
    // Until it is used nothing changes.
    expect(await codeOf(ada.session)).toBeUndefined();
    expect(await post('invitation', { invitation: second.invitation, password: OTHER })).toMatchObject({
      status: 200,
    });
    expect(await codeOf(ada.session)).toBe('UNAUTHENTICATED');
    expect(await post('password', { user: ada.name, password: GOOD })).toMatchObject({ status: 401 });
  });

  test('expires, goes with the rest that is old, and is for active people only', async () => {
    const ada = await api.user('USER', unique('ada'));
    const { invitation } = await invite(ada.id);
    await api.db.pool.query("UPDATE invitations SET expires_at = now() - interval '1 s' WHERE user_id = $1", [
      ada.number,
    ]);
    expect(await post('invitation', { invitation, password: GOOD })).toMatchObject({ status: 404 });
    const { id } = await member();
    await api.db.pool.query("UPDATE sessions SET expires_at = now() - interval '1 s' WHERE user_id = $1", [
      Number(id.split('_')[1]),
    ]);
    const old = 0;
    await api.parts.store.prune({
      ...{
        eventsBefore: old,
        unreadBefore: old,
        jobsEndedBefore: old,
        processesBefore: old,
        auditsBefore: old,
      },
      limit: 100,
    });
    const left = await api.db.pool.query(
      'SELECT 1 FROM invitations WHERE expires_at < now() UNION ALL SELECT 1 FROM sessions WHERE expires_at < now()',
    );
    expect(left.rowCount).toBe(0);
    const until = new Date(Date.now() + 91 * 86_400_000).toISOString();
    const refused = await api.ask(INVITE, { user: ada.id, until });
    expect(refused.errors?.[0]?.message).toContain('up to 90 days from now');
    await api.must(
      'mutation ($user: ID!) { updateUser(input: { userId: $user, active: false }) { user { id } } }',
      {
        user: ada.id,
      },
    );
    expect((await api.ask(INVITE, { user: ada.id })).errors?.[0]?.extensions.code).toBe('CONFLICT');
  });
});

describe('a password', () => {
  test.each([
    ['short', 'it has 5 characters; accepted: 12 to 128'],
    ['x'.repeat(129), 'it has 129 characters'],
    ['aaaaaaaaaaaaa', 'it is a common password'],
    ['Password1234', 'it is a common password'],
    ['switchyard-12', 'besides the names of the user and the service'],
  ])('is refused where it is weak: %s', async (password, why) => {
    const ada = await api.user('USER', unique('ada'));
    const { invitation } = await invite(ada.id);
    const refused = await post('invitation', { invitation, password });
    expect(refused).toMatchObject({ status: 400, code: 'BAD_USER_INPUT' });
    expect(refused.message).toContain(why);
    expect(refused.message).not.toContain(password);
    // The invitation is still good.
    expect(await post('invitation', { invitation, password: 'päßwörter im Garten' })).toMatchObject({
      status: 200,
    });
  });

  test('is changed by who knows it, which ends the other sessions', async () => {
    const ada = await member();
    const elsewhere = (await post('password', { user: ada.name, password: GOOD })).secret;
    const wrong = await api.ask(CHANGE, { current: OTHER, password: 'a third one of these' }, ada.session);
    expect(wrong.errors?.[0]).toMatchObject({ message: 'current: it is not the current password' });
    expect(await codeOf(ada.session)).toBeUndefined();
    const { invitation } = await invite(ada.id);
    await api.must(CHANGE, { current: GOOD, password: OTHER }, ada.session);
    expect([await codeOf(ada.session), await codeOf(elsewhere)]).toEqual([undefined, 'UNAUTHENTICATED']);
    expect(await post('invitation', { invitation })).toMatchObject({ status: 404 });
    expect(await post('password', { user: ada.name, password: GOOD })).toMatchObject({ status: 401 });
    expect(await post('password', { user: ada.name, password: OTHER })).toMatchObject({ status: 200 });
    expect(await audits('changePassword', ada.id)).toBe(1);
  });

  test('is asked for in JSON of this form only, and the answer is no cookie', async () => {
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    expect(await post('password', { user: 'a', password: 'b' }, form)).toMatchObject({ status: 400 });
    for (const body of [
      {},
      [],
      { user: 'a' },
      { user: 'a', password: 1 },
      { user: 'a', password: 'b', more: 1 },
      { user: 'a\0', password: 'b' },
    ])
      expect(await post('password', body)).toMatchObject({ status: 400, code: 'BAD_USER_INPUT' });
    expect(await post('password', { user: 'a', password: 'x'.repeat(5_000) })).toMatchObject({ status: 413 });
    const ada = await member();
    const begun = await post('password', { user: ada.name, password: GOOD });
    expect(begun.headers.get('set-cookie')).toBeNull();
  });
});

describe('a session', () => {
  test('is listed and ended by whose it is, and by administrators; others see none', async () => {
    const [ada, eve] = [await member(), await member()];
    const second = (await post('password', { user: ada.name, password: GOOD })).secret;
    const list = await sessionsOf(ada.session);
    expect(list.map(({ current }) => current).sort()).toEqual([false, true]);
    const other = list.find(({ current }) => !current)!.id;
    const look = `{ node(id: "${ada.id}") { ... on User { sessions { id } passwordSetAt invitedUntil } } session: node(id: "${other}") { id } }`;
    expect(await api.must(look)).toMatchObject({ node: { sessions: [{}, {}] }, session: { id: other } });
    expect(await api.must(look, {}, eve.session)).toEqual({ node: null, session: null });
    const operator = await api.user('OPERATOR', unique('operator'));
    expect(await api.must(look, {}, operator.key)).toEqual({
      node: { sessions: null, passwordSetAt: null, invitedUntil: null },
      session: null,
    });
    for (const [key, input] of [
      [eve.session, { userId: ada.id }],
      [operator.key, { userId: ada.id, sessionIds: [other] }],
    ] as const)
      expect((await api.ask(END, { input }, key)).errors?.[0]?.extensions.code).toBe('FORBIDDEN');
    // Another user's among one's own is not there.
    expect(await api.must(END, { input: { sessionIds: [other] } }, eve.session)).toEqual({
      endSessions: { endedSessionIds: [] },
    });
    expect(await api.must(END, { input: { sessionIds: [other] } }, ada.session)).toEqual({
      endSessions: { endedSessionIds: [other] },
    });
    expect([await codeOf(ada.session), await codeOf(second)]).toEqual([undefined, 'UNAUTHENTICATED']);
    const third = (await post('password', { user: ada.name, password: GOOD })).secret;
    await api.must(END, { input: {} }, ada.session);
    expect([await codeOf(ada.session), await codeOf(third)]).toEqual([undefined, 'UNAUTHENTICATED']);
    await api.must(END, { input: { userId: ada.id } });
    expect(await codeOf(ada.session)).toBe('UNAUTHENTICATED');
  });

  test('closes its WebSocket when it ends', async () => {
    const ada = await member();
    const client = api.subscriber(ada.session);
    const closed = new Promise<number>((resolve) =>
      client.on('closed', (event) => resolve((event as { code: number }).code)),
    );
    const opened = new Promise((resolve) => client.on('connected', resolve));
    client.subscribe(
      { query: 'subscription { siteUpdated { cursor } }' },
      { next: () => {}, error: () => {}, complete: () => {} },
    );
    await opened;
    await api.must(END, { input: { userId: ada.id } });
    expect(await closed).toBe(4401);
  });

  test('is refused with its user, and replaced by newer ones where there are many', async () => {
    const ada = await member();
    const limit = api.parts.config.limits.userSessions;
    const begun: string[] = [];
    for (let i = 0; i < limit; i++)
      begun.push((await post('password', { user: ada.name, password: GOOD })).secret);
    expect(await codeOf(ada.session)).toBe('UNAUTHENTICATED');
    expect(await sessionsOf(begun.at(-1)!)).toHaveLength(limit);
    await api.must(
      'mutation ($user: ID!) { updateUser(input: { userId: $user, active: false }) { user { id } } }',
      {
        user: ada.id,
      },
    );
    expect(await codeOf(begun.at(-1)!)).toBe('UNAUTHENTICATED');
    expect(await post('password', { user: ada.name, password: GOOD })).toMatchObject({ status: 401 });
  });

  test('makes keys that stay, like a token of an identity provider; portals get none', async () => {
    const ada = await member();
    const { createApiKey } = await api.must<{
      createApiKey: { secret: string; apiKey: { expiresAt: null } };
    }>(
      'mutation { createApiKey(input: { name: "pipeline" }) { secret apiKey { expiresAt } } }',
      {},
      ada.session,
    );
    expect(createApiKey.apiKey.expiresAt).toBeNull();
    await api.must(END, { input: { userId: ada.id } });
    expect(await codeOf(createApiKey.secret)).toBeUndefined();
    const made = await api.must<{ createApiKey: { secret: string } }>(
      'mutation ($user: ID!) { createApiKey(input: { userId: $user, name: "portal", actsForUsers: true }) { secret } }',
      { user: (await api.user('USER', unique('portal'))).id },
    );
    const response = await fetch(api.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${made.createApiKey.secret}`,
        'x-switchyard-user': ada.name,
      },
      body: JSON.stringify({ query: END, variables: { input: {} } }),
    });
    expect(await response.json()).toMatchObject({ errors: [{ extensions: { code: 'FORBIDDEN' } }] });
  });
});

describe('too many wrong passwords', () => {
  const bounded = withApi((config) => ({
    ...config,
    trustedProxies: ['127.0.0.1'],
    limits: { ...config.limits, passwordsPerMinute: 1, strangersPerMinute: 6 },
  }));
  let ada: Awaited<ReturnType<typeof member>>;
  beforeAll(async () => {
    ada = await member('ada', 'USER', bounded);
  });
  const tried = (user: string, address: string, password = OTHER) =>
    post('password', { user, password }, { 'x-forwarded-for': address }, bounded);

  test('are not looked at for a while, whoever tries them; who is known there is not kept out', async () => {
    // From one address: the right one neither, and the audit log knows.
    for (const name of ['ada', 'nobody']) {
      const codes: unknown[] = [];
      for (let i = 0; i < 2; i++) codes.push((await tried(name, '192.0.2.1')).code);
      expect(codes).toEqual(['UNAUTHENTICATED', 'RATE_LIMITED']);
    }
    const late = await tried('ada', '192.0.2.1', GOOD);
    expect(late.code).toBe('RATE_LIMITED');
    expect(Number(late.headers.get('retry-after'))).toBeGreaterThan(0);
    // Others still may, up to a number of addresses.
    expect((await tried('ada', '192.0.2.2', GOOD)).status).toBe(200);
    for (let i = 3; i < 8; i++) await tried('ada', `192.0.2.${i}`);
    expect((await tried('ada', '192.0.2.9', GOOD)).code).toBe('RATE_LIMITED');
    expect((await tried('ada', '192.0.2.2', GOOD)).status).toBe(200);
    const { audit } = await bounded.must<{ audit: { nodes: { action: string; after: object }[] } }>(
      '{ audit(first: 100) { nodes { action after } } }',
    );
    expect(audit.nodes.filter(({ action }) => action === 'wrongPasswords')).toHaveLength(6);
    // An address that tries many names is stopped as well.
    const codes = new Set<unknown>();
    for (let i = 0; i < 7; i++) codes.add((await tried(`name-${i}`, '192.0.2.77')).code);
    expect(codes).toEqual(new Set(['UNAUTHENTICATED', 'RATE_LIMITED']));
    const key = await bounded.ask('{ viewer { id } }', {}, ada.session);
    expect(key.errors).toBeUndefined();
  });
});

describe('a service without passwords', () => {
  const without = withApi((config) => ({ ...config, passwords: false }));
  test('says so, and accepts no session', async () => {
    expect(await post('password', { user: 'a', password: 'b' }, {}, without)).toMatchObject({
      code: 'FORBIDDEN',
    });
    const { id } = await without.user('USER', 'ada');
    expect((await without.ask(INVITE, { user: id })).errors?.[0]?.extensions.code).toBe('FORBIDDEN');
    const opened = await without.parts.directory.inviteUser(
      Number(id.split('_')[1]),
      Date.now() / 1000 + 60,
      { userId: null, requestId: null },
    );
    if (opened.kind === 'refused') throw new Error(opened.message);
    const by = { userId: null, requestId: null };
    await without.parts.directory.acceptInvitation(opened.value.secret, 'hash', Date.now() / 1000, by);
    const from = { address: '', agent: '' };
    const session = await without.parts.directory.openSession(
      Number(id.split('_')[1]),
      'hash',
      from,
      Date.now() / 1000,
      9,
    );
    if (session.kind === 'refused') throw new Error(session.message);
    expect((await without.ask('{ viewer { id } }', {}, session.value.secret)).status).toBe(401);
    const portal = await fetch(`${without.origin}/portal.json`);
    expect(await portal.json()).toMatchObject({ passwords: false });
  });
});
