/** Tokens of a real OpenID Connect provider. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { SignJWT, UnsecuredJWT } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { createAuthenticator, type Viewer } from '../../src/api/auth.js';
import type { OidcConfig } from '../../src/api/config.js';
import { createOidc, isToken } from '../../src/api/oidc.js';
import { AUDIENCE, BRIEF, Issuer, PORTAL } from '../support/issuer.js';
import { portOf } from '../support/ports.js';
import { withApi } from './support/api.js';

let issuer: Issuer;
beforeAll(async () => {
  issuer = await Issuer.start([
    { name: 'alice', groups: ['staff', 'grid-admins'] },
    { name: 'bob', groups: ['students'] },
  ]);
});
afterAll(() => issuer.stop());

const config = (more: Partial<OidcConfig> = {}): OidcConfig => ({
  issuer: issuer.url,
  audience: [AUDIENCE],
  client: null,
  groupsClaim: 'groups',
  roles: new Map([
    ['staff', 'USER'],
    ['grid-admins', 'ADMIN'],
  ]),
  nameClaim: 'preferred_username',
  createUsers: true,
  clockToleranceS: 5,
  ...more,
});
const desk = (more: Partial<OidcConfig> = {}) => createOidc(config(more), () => {});

describe('a token', () => {
  test('tells who it is about, and what their groups may', async () => {
    const token = await issuer.token('alice');
    expect(isToken(token)).toBe(true);
    expect(isToken('swy_abc_def')).toBe(false);
    const identity = await desk().identify(token);
    expect(identity).toMatchObject({ subject: `${issuer.url} alice`, name: 'alice', role: 'ADMIN' });
    expect(identity!.expiresAtMs).toBeGreaterThan(Date.now() + 500_000);
    await expect(desk().identify(await issuer.token('bob'))).rejects.toMatchObject({ code: 'FORBIDDEN' });
    expect(await desk({ roles: new Map() }).identify(await issuer.token('bob'))).toMatchObject({
      role: null,
    });
  });

  test('must be meant for this service, by this issuer, signed, and not have expired', async () => {
    const oidc = desk();
    expect(await oidc.identify(await issuer.token('alice', 'https://elsewhere.example'))).toBeNull();
    const claims = { sub: 'alice', groups: ['grid-admins'] };
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const forged = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'ES256', kid: 'key-1' })
      .setIssuer(issuer.url)
      .setAudience(AUDIENCE)
      .setExpirationTime('1h')
      .sign(privateKey);
    expect(await oidc.identify(forged)).toBeNull();
    const shared = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid: 'key-1' })
      .setIssuer(issuer.url)
      .setAudience(AUDIENCE)
      .setExpirationTime('1h')
      .sign(new TextEncoder().encode('x'.repeat(32)));
    expect(await oidc.identify(shared)).toBeNull();
    const unsigned = new UnsecuredJWT(claims).setIssuer(issuer.url).setAudience(AUDIENCE).encode();
    expect(await oidc.identify(unsigned)).toBeNull();
    const good = await issuer.token('alice');
    const [head, body] = good.split('.') as [string, string];
    expect(await oidc.identify(`${head}.${body}.${'A'.repeat(86)}`)).toBeNull();
    const brief = await issuer.token('alice', BRIEF);
    const strict = desk({ audience: [AUDIENCE, BRIEF], clockToleranceS: 0 });
    expect(await desk({ audience: [BRIEF], clockToleranceS: 60 }).identify(brief)).not.toBeNull();
    await expect.poll(() => strict.identify(brief)).toBeNull();
  });

  test('is good after the issuer has changed its keys, and one signed before is not', async () => {
    const oidc = desk();
    const before = await issuer.token('alice');
    expect(await oidc.identify(before)).not.toBeNull();
    issuer.rotate();
    const other = desk();
    expect(await other.identify(before)).toBeNull();
    expect(await other.identify(await issuer.token('alice'))).toMatchObject({ name: 'alice' });
    // Whoever makes up keys does not make us ask for them each time.
    const { fetched } = issuer;
    for (let i = 0; i < 20; i++) {
      const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
      const made = await new SignJWT({ sub: 'x' })
        .setProtectedHeader({ alg: 'ES256', kid: `made-up-${i}` })
        .setExpirationTime('1h')
        .sign(privateKey);
      expect(await other.identify(made)).toBeNull();
    }
    expect(issuer.fetched).toBeLessThanOrEqual(fetched + 1);
  });

  test('cannot be judged while the issuer is away, unless its keys are known', async () => {
    const oidc = desk();
    const token = await issuer.token('alice');
    expect(await oidc.identify(token)).not.toBeNull();
    issuer.break();
    expect(await oidc.identify(token)).not.toBeNull();
    await expect(desk().identify(token)).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    issuer.rotate();
  });
});

describe('a token that is not what it seems', () => {
  const pair = (alg: 'rsa' | 'ec') =>
    alg === 'rsa'
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const [mine, foreign] = [pair('rsa'), pair('rsa')];
  const jwk = (key: KeyObject) => ({ ...key.export({ format: 'jwk' }), kid: 'k', alg: 'RS256', use: 'sig' });
  let answer: (path: string, response: ServerResponse) => void;
  let at = '';
  let asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url!);
    answer(request.url!, response);
  });
  const json = (response: ServerResponse, body: object) => void response.end(JSON.stringify(body));
  const good = (path: string, response: ServerResponse) =>
    path.endsWith('openid-configuration')
      ? json(response, { issuer: at, jwks_uri: `${at}/keys` })
      : json(response, { keys: [jwk(path.startsWith('/foreign') ? foreign.publicKey : mine.publicKey)] });
  beforeAll(async () => {
    at = `http://127.0.0.1:${await portOf(server)}`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  beforeEach(() => {
    answer = good;
    asked = [];
  });
  const now = () => Math.floor(Date.now() / 1000);
  const token = (claims: object = {}, header: object = {}, key: KeyObject | Uint8Array = mine.privateKey) =>
    new SignJWT({
      ...{ iss: at, aud: AUDIENCE, sub: 'mallory', groups: ['grid-admins'], exp: now() + 600 },
      ...claims,
    })
      .setProtectedHeader({ alg: 'RS256', kid: 'k', ...header })
      .sign(key);
  const judged = async (given: Promise<string> | string, more: Partial<OidcConfig> = {}) =>
    createOidc(config({ issuer: at, ...more }), () => {}).identify(await given);

  test('is refused, whatever was changed', async () => {
    expect(await judged(token())).toMatchObject({ name: 'mallory', role: 'ADMIN' });
    expect(await judged(token({}, { typ: 'at+jwt' }))).not.toBeNull();
    expect(await judged(token({ aud: ['https://other.example', AUDIENCE], azp: 'other' }))).not.toBeNull();
    const asSecret = new TextEncoder().encode(
      mine.publicKey.export({ format: 'pem', type: 'spki' }).toString(),
    );
    const elsewhere = `${at}/foreign`;
    const bad: Record<string, Promise<string> | string> = {
      'the ID token of a client': token({ aud: PORTAL, nonce: 'n', at_hash: 'x' }),
      'another audience': token({ aud: 'https://other.example' }),
      'an audience that begins alike': token({ aud: `${AUDIENCE}.evil.example` }),
      'another issuer, the same subject': token({ iss: 'https://other.example' }),
      'the issuer with a slash more': token({ iss: `${at}/` }),
      'HS256 with the public key': token({}, { alg: 'HS256' }, asSecret),
      'a key of its own in the head': token({}, { jwk: jwk(foreign.publicKey) }, foreign.privateKey),
      'a key set that the head names': token({}, { jku: elsewhere, kid: 'other' }, foreign.privateKey),
      'a certificate that the head names': token({}, { x5u: elsewhere }, foreign.privateKey),
      'a foreign key under our kid': token({}, {}, foreign.privateKey),
      'no kid': token({}, { kid: undefined }, foreign.privateKey),
      expired: token({ exp: now() - 60 }),
      'not yet valid': token({ nbf: now() + 60 }),
      'without an end': token({ exp: undefined }),
      'an end that is a text': token({ exp: '9999999999' }),
      nobody: token({ sub: undefined }),
      'a subject that is a number': token({ sub: 7 }),
      'a subject with NUL': token({ sub: 'a\0b' }),
      'a token of logout': token({}, { typ: 'logout+jwt' }),
      'a refresh token': token({ typ: 'Refresh' }),
      'a part that must be understood': `${Buffer.from('{"alg":"RS256","kid":"k","crit":["x"],"x":1}').toString('base64url')}.e30.AA`,
      'alg none': `${Buffer.from('{"alg":"none"}').toString('base64url')}.${Buffer.from('{}').toString('base64url')}.AA`,
    };
    for (const [what, given] of Object.entries(bad))
      expect([what, await judged(given)]).toEqual([what, null]);
    // Also where the operator took the client's name for the audience.
    const both = { audience: [AUDIENCE, PORTAL] };
    expect(await judged(token({ aud: PORTAL, nonce: 'n', at_hash: 'x' }), both)).toBeNull();
    expect(asked.filter((path) => path.startsWith('/foreign'))).toEqual([]);
    expect(isToken(await token({ more: 'x'.repeat(9_000) }))).toBe(false);
  });

  test('cannot be judged where the keys are not told: a redirection, something else, or nothing', async () => {
    const answers: ((path: string, response: ServerResponse) => void)[] = [
      (path, response) =>
        path === '/keys'
          ? void response.writeHead(302, { location: '/foreign' }).end()
          : good(path, response),
      (path, response) => (path === '/keys' ? json(response, { keys: 'none' }) : good(path, response)),
      (path, response) => (path === '/keys' ? void response.writeHead(500).end() : good(path, response)),
      (_, response) => void response.writeHead(302, { location: '/foreign/openid-configuration' }).end(),
      (_, response) => json(response, { issuer: 'https://other.example', jwks_uri: `${at}/keys` }),
    ];
    for (answer of answers)
      await expect(judged(token({}, {}, foreign.privateKey))).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    expect(asked.filter((path) => path.startsWith('/foreign'))).toEqual([]);
  });

  test('is judged by the keys that were told last where no others can be had, for a while', async () => {
    const oidc = createOidc(config({ issuer: at }), () => {});
    const unknown = { kid: 'another' };
    expect(await oidc.identify(await token())).not.toBeNull();
    // Half an answer, and nothing more.
    answer = (path, response) => void (path === '/keys' && response.writeHead(200).write('{"keys":['));
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 15 * 60_000 });
    try {
      const [again, forged] = await Promise.all([
        oidc.identify(await token()),
        oidc.identify(await token({}, unknown, foreign.privateKey)),
      ]);
      expect([again?.name, forged]).toEqual(['mallory', null]);
      vi.setSystemTime(Date.now() + 50 * 60_000);
      asked = [];
      const late = async () => oidc.identify(await token());
      await expect(late()).rejects.toMatchObject({ code: 'UNAVAILABLE' });
      // Nor is it asked again at once.
      for (let i = 0; i < 20; i++) await expect(late()).rejects.toMatchObject({ code: 'UNAVAILABLE' });
      expect(asked.length).toBeLessThanOrEqual(1);
    } finally {
      vi.useRealTimers();
    }
  });

  test('keeps nobody waiting who has a key, while the provider does not answer', async () => {
    let asks = 0;
    const { authenticate } = createAuthenticator(
      (secret) => {
        if (isToken(secret)) asks++;
        return isToken(secret)
          ? new Promise<null>(() => {})
          : Promise.resolve({ keyId: 1, userId: 1, expiresAtMs: null } as Viewer);
      },
      { check: async () => {}, count: () => {} },
    );
    for (let i = 0; i < 20; i++) void authenticate(`Bearer a${i}.b.c`, '192.0.2.1');
    expect(await authenticate('Bearer swy_1_2', '192.0.2.1')).toMatchObject({ keyId: 1 });
    expect(asks).toBe(4);
  });
});

describe('the service', () => {
  const open = withApi((given) => ({ ...given, oidc: config() }));
  const closed = withApi((given) => ({ ...given, oidc: config({ roles: new Map(), createUsers: false }) }));
  const VIEWER = '{ viewer { id name role } }';
  type Viewer = { viewer: { id: string; name: string; role: string } };

  test('takes a token where it takes a key, and makes a user of whoever comes for the first time, once', async () => {
    const tokens = await Promise.all([issuer.token('alice'), issuer.token('alice'), issuer.token('alice')]);
    const asked = await Promise.all(tokens.map((token) => open.must<Viewer>(VIEWER, {}, token)));
    expect(new Set(asked.map(({ viewer }) => viewer.id)).size).toBe(1);
    expect(asked[0]).toMatchObject({ viewer: { name: 'alice', role: 'ADMIN' } });
    const { rows } = await open.db.pool.query(`SELECT user_id FROM audits WHERE action = 'signIn'`);
    expect(rows).toEqual([{ user_id: null }]);
    // Keys that they make are theirs, and live on when the token has expired.
    const made = await open.must<{ createApiKey: { secret: string; apiKey: { expiresAt: string | null } } }>(
      'mutation { createApiKey(input: { name: "laptop" }) { secret apiKey { expiresAt } } }',
      {},
      tokens[0],
    );
    expect(made.createApiKey.apiKey.expiresAt).toBeNull();
    expect(await open.must(VIEWER, {}, made.createApiKey.secret)).toEqual(asked[0]);
    const news = open.subscriber(tokens[0]).iterate({ query: VIEWER });
    expect((await news.next()).value).toMatchObject({ data: asked[0] });
  });

  test('goes by the groups at each sign-in, and refuses whom no group gives a role', async () => {
    await open.db.pool.query(`UPDATE users SET role = 'USER' WHERE name = 'alice'`);
    const { viewer } = await open.must<Viewer>(VIEWER, {}, await issuer.token('alice'));
    expect(viewer.role).toBe('ADMIN');
    const bob = await open.ask(VIEWER, {}, await issuer.token('bob'));
    expect(bob).toMatchObject({ status: 403, errors: [{ extensions: { code: 'FORBIDDEN' } }] });
    await open.db.pool.query(`UPDATE users SET active = false WHERE name = 'alice'`);
    expect(await open.ask(VIEWER, {}, await issuer.token('alice'))).toMatchObject({ status: 401 });
    await open.db.pool.query(`UPDATE users SET active = true WHERE name = 'alice'`);
  });

  test('nobody becomes a user who is there by being called so', async () => {
    const { rows } = await closed.db.pool.query(
      `INSERT INTO users (name, role) VALUES ('alice', 'ADMIN') RETURNING id`,
    );
    expect(await closed.ask(VIEWER, {}, await issuer.token('alice'))).toMatchObject({ status: 401 });
    await closed.must('mutation { createUser(input: { name: "alice2", subject: "alice" }) { user { id } } }');
    const { viewer } = await closed.must<Viewer>(VIEWER, {}, await issuer.token('alice'));
    expect(viewer).toMatchObject({ name: 'alice2', role: 'USER' });
    expect(viewer.id).not.toBe(`user_${rows[0].id}`);
    expect(
      await closed.ask(VIEWER, {}, await issuer.token('alice', 'https://elsewhere.example')),
    ).toMatchObject({ status: 401 });
  });
});

describe('a trusted portal', () => {
  const api = withApi();
  const asks = async (key: string, name: string, query: string) => {
    const response = await fetch(api.url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${key}`,
        'x-switchyard-user': name,
      },
      body: JSON.stringify({ query }),
    });
    return (await response.json()) as {
      data?: Record<string, unknown>;
      errors?: { extensions: { code: string } }[];
    };
  };
  const SUBMIT =
    'mutation { submitJobs(input: { jobs: [{ command: "/bin/true" }] }) { jobs { id user { name } } } }';
  const FORBIDDEN = { errors: [{ extensions: { code: 'FORBIDDEN' } }] };

  test('submits on behalf of users, which is in the audit log, and is nobody more by it', async () => {
    const portal = await api.user('USER', 'portal');
    const ann = await api.user('USER', 'ann');
    await api.user('OPERATOR', 'olga');
    const create = (acts: boolean, user: string) =>
      `mutation { createApiKey(input: { userId: "${user}", name: "k", actsForUsers: ${acts} }) { secret } }`;
    const { createApiKey } = await api.must<{ createApiKey: { secret: string } }>(create(true, portal.id));
    const { secret } = createApiKey;
    expect(await asks(secret, 'ann', SUBMIT)).toMatchObject({
      data: { submitJobs: { jobs: [{ user: { name: 'ann' } }] } },
    });
    expect(await asks(secret, 'ann', '{ viewer { name role } }')).toMatchObject({
      data: { viewer: { name: 'ann', role: 'USER' } },
    });
    expect(
      (await api.must<{ jobs: { nodes: unknown[] } }>('{ jobs { nodes { id } } }', {}, ann.key)).jobs.nodes
        .length,
    ).toBe(1);
    expect(
      (await api.must<{ jobs: { nodes: unknown[] } }>('{ jobs { nodes { id } } }', {}, secret)).jobs.nodes,
    ).toEqual([]);
    const { audit } = await api.must<{ audit: { nodes: object[] } }>(
      '{ audit(first: 1) { nodes { action target user { name } } } }',
    );
    expect(audit.nodes).toEqual([{ action: 'submitOnBehalf', target: ann.id, user: { name: 'portal' } }]);

    for (const name of ['olga', 'admin', 'nobody', ''])
      expect(await asks(secret, name, SUBMIT)).toMatchObject(FORBIDDEN);
    expect(await asks(portal.key, 'ann', SUBMIT)).toMatchObject(FORBIDDEN);
    expect(await asks(api.adminKey, 'ann', SUBMIT)).toMatchObject(FORBIDDEN);
    expect(
      await asks(secret, 'ann', 'mutation { createApiKey(input: { name: "mine" }) { secret } }'),
    ).toMatchObject(FORBIDDEN);
    expect(await api.ask(create(true, portal.id), {}, portal.key)).toMatchObject(FORBIDDEN);
  });

  test('does the same over a WebSocket, for as long as the user and the key are good', async () => {
    const portal = await api.user('USER', 'gateway');
    const ben = await api.user('USER', 'ben');
    await api.user('OPERATOR', 'oscar');
    const { createApiKey } = await api.must<{ createApiKey: { secret: string; apiKey: { id: string } } }>(
      `mutation { createApiKey(input: { userId: "${portal.id}", name: "k", actsForUsers: true }) { secret apiKey { id } } }`,
    );
    const { secret, apiKey } = createApiKey;
    const askedFor = (name: unknown, key = secret) => api.subscriber(key, { 'X-Switchyard-User': name });
    const once = async (client: ReturnType<typeof askedFor>, query: string) => {
      for await (const answer of client.iterate({ query })) return answer;
      return null;
    };
    const ignored = { next() {}, error() {}, complete() {} };
    /** Stays open for a subscription; resolves to what closes it. */
    const closes = async (client: ReturnType<typeof askedFor>) => {
      const closed = new Promise((resolve) => client.on('closed', resolve));
      client.subscribe({ query: 'subscription { jobUpdated { cursor } }' }, ignored);
      expect(await once(client, '{ viewer { name role } }')).toMatchObject({
        data: { viewer: { name: 'ben', role: 'USER' } },
      });
      return () => closed;
    };

    expect(await once(askedFor('ben'), SUBMIT)).toMatchObject({
      data: { submitJobs: { jobs: [{ user: { name: 'ben' } }] } },
    });
    const { audit } = await api.must<{ audit: { nodes: object[] } }>(
      '{ audit(first: 1) { nodes { action target user { name } } } }',
    );
    expect(audit.nodes).toEqual([{ action: 'submitOnBehalf', target: ben.id, user: { name: 'gateway' } }]);
    expect(
      await once(askedFor('ben'), 'mutation { createApiKey(input: { name: "mine" }) { secret } }'),
    ).toMatchObject(FORBIDDEN);

    for (const name of ['oscar', 'admin', 'nobody', '', 'ben\0', 7, null, ['ben']])
      await expect(once(askedFor(name), SUBMIT), JSON.stringify(name)).rejects.toMatchObject({ code: 4403 });
    for (const key of [portal.key, api.adminKey])
      await expect(once(askedFor('ben', key), SUBMIT)).rejects.toMatchObject({ code: 4403 });

    const setActive = (active: boolean) =>
      api.must('mutation ($input: UpdateUserInput!) { updateUser(input: $input) { user { id } } }', {
        input: { userId: ben.id, active },
      });
    const blocked = await closes(askedFor('ben'));
    await setActive(false);
    expect(await blocked()).toMatchObject({ code: 4403 });
    await setActive(true);
    const revoked = await closes(askedFor('ben'));
    await api.must(`mutation { revokeApiKey(input: { apiKeyId: "${apiKey.id}" }) { apiKey { id } } }`);
    expect(await revoked()).toMatchObject({ code: 4401 });
  });
});
