/** How the API may be reached: over TLS, from pages of other sites, with trusted documents only. */
import { writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { generate } from 'selfsigned';
import { describe, expect, test } from 'vitest';
import { sha256 } from '../../src/api/documents.js';
import { createHttpServer } from '../../src/api/tls.js';
import { temporaryDirectory } from '../support/home.js';
import { portOf } from '../support/ports.js';
import { withApi } from './support/api.js';

const PORTAL = 'https://portal.example.org';
const VIEWER = '{ viewer { name } }';
const SITES = 'query Sites($first: Int) { sites(first: $first) { nodes { name } } }';
const NEWS = 'subscription { siteUpdated { cursor } }';

const api = withApi((config) => ({
  ...config,
  corsOrigins: [PORTAL],
  trustedDocuments: new Map([VIEWER, SITES, NEWS].map((text) => [sha256(text), text])),
}));
const open = withApi((config) => ({ ...config, corsOrigins: ['*'] }));

const send = async (body: unknown, headers: Record<string, string> = {}) => {
  const response = await fetch(api.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${api.adminKey}`, ...headers },
    body: JSON.stringify(body),
  });
  return { headers: response.headers, body: (await response.json()) as { data?: unknown; errors?: unknown } };
};

describe('pages of other sites', () => {
  const preflight = (url: string, origin: string) =>
    fetch(url, {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,content-type',
      },
    });

  test('may ask where the configuration names them', async () => {
    const asked = await preflight(api.url, PORTAL);
    expect(asked.status).toBe(204);
    expect(asked.headers.get('access-control-allow-origin')).toBe(PORTAL);
    expect(asked.headers.get('access-control-allow-headers')).toBe('authorization,content-type');
    expect(asked.headers.get('access-control-allow-credentials')).toBeNull();
    const answer = await send({ query: VIEWER }, { origin: PORTAL });
    expect(answer.headers.get('access-control-allow-origin')).toBe(PORTAL);
    expect(answer.body).toMatchObject({ data: { viewer: { name: 'admin' } } });
  });

  test('others may not', async () => {
    const asked = await preflight(api.url, 'https://evil.example');
    expect(asked.headers.get('access-control-allow-origin')).toBeNull();
    expect(
      (await preflight(open.url, 'https://any.example')).headers.get('access-control-allow-origin'),
    ).toBe('*');
  });
});

describe('trusted documents', () => {
  test('are accepted by their text and by their hash, in each of the ways clients know', async () => {
    const data = { data: { viewer: { name: 'admin' } } };
    expect((await send({ query: VIEWER })).body).toMatchObject(data);
    expect((await send({ documentId: `sha256:${sha256(VIEWER)}` })).body).toMatchObject(data);
    const extensions = { persistedQuery: { version: 1, sha256Hash: sha256(VIEWER) } };
    expect((await send({ extensions })).body).toMatchObject(data);
    expect((await send({ extensions, query: VIEWER })).body).toMatchObject(data);
    expect((await send({ documentId: sha256(SITES), variables: { first: 1 } })).body).toMatchObject({
      data: { sites: { nodes: [] } },
    });
    const headers = { authorization: `Bearer ${api.adminKey}` };
    for (const named of [
      { query: VIEWER },
      { documentId: sha256(VIEWER) },
      { extensions: JSON.stringify(extensions) },
    ] as Record<string, string>[]) {
      const got = await fetch(`${api.url}?${new URLSearchParams(named)}`, { headers });
      expect(await got.json()).toMatchObject(data);
    }
  });

  test('others are refused, over HTTP and WebSocket', async () => {
    const refused = { errors: [{ extensions: { code: 'FORBIDDEN' } }] };
    expect((await send({ query: `${VIEWER} ` })).body).toMatchObject(refused);
    expect((await send({ documentId: sha256('{ x }') })).body).toMatchObject(refused);
    expect((await send({ documentId: '__proto__' })).body).toMatchObject(refused);
    expect((await send({})).body).toMatchObject(refused);
    const got = await fetch(`${api.url}?query=${encodeURIComponent('{ __typename }')}`, {
      headers: { authorization: `Bearer ${api.adminKey}` },
    });
    expect(await got.json()).toMatchObject(refused);

    const client = api.subscriber();
    await expect(client.iterate({ query: '{ __typename }' }).next()).rejects.toMatchObject([
      { extensions: { code: 'FORBIDDEN' } },
    ]);
    expect((await client.iterate({ query: VIEWER }).next()).value).toMatchObject({ data: { viewer: {} } });
  });

  test('an id says nothing to a service without a list', async () => {
    const { errors } = (await (
      await fetch(open.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${open.adminKey}` },
        body: JSON.stringify({ documentId: sha256(VIEWER) }),
      })
    ).json()) as { errors: unknown };
    expect(errors).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT' } }]);
  });
});

describe('TLS', () => {
  test('with a certificate from files, taken over anew when they change', async () => {
    const folder = temporaryDirectory();
    const files = { certFile: join(folder, 'cert.pem'), keyFile: join(folder, 'key.pem') };
    const install = async (name: string): Promise<void> => {
      const { cert, private: key } = await generate([{ name: 'commonName', value: name }]);
      writeFileSync(files.certFile, cert);
      writeFileSync(files.keyFile, key);
    };
    await install('first');
    const reloads: unknown[] = [];
    const listening = createHttpServer(
      {},
      (_, response) => response.end('ok'),
      files,
      (error) => reloads.push(error),
      50,
    );
    const port = await portOf(listening.server);
    /** The name on the certificate that a new connection is shown. */
    const shown = (): Promise<string> =>
      new Promise((resolve, reject) => {
        const asked = request(
          { port, host: '127.0.0.1', rejectUnauthorized: false, agent: false },
          (answer) => {
            answer.resume();
            resolve(
              (answer.socket as import('node:tls').TLSSocket).getPeerCertificate().subject.CN as string,
            );
          },
        );
        asked.on('error', reject);
        asked.end();
      });
    try {
      expect(await shown()).toBe('first');
      writeFileSync(files.certFile, 'no certificate');
      await expect.poll(() => reloads.some((error) => error !== null)).toBe(true);
      expect(await shown()).toBe('first');
      await install('second');
      await expect.poll(shown).toBe('second');
    } finally {
      listening.close();
      listening.server.closeAllConnections();
      listening.server.close();
    }
    const missing = { certFile: join(folder, 'none.pem'), keyFile: files.keyFile };
    expect(() =>
      createHttpServer(
        {},
        () => {},
        missing,
        () => {},
      ),
    ).toThrow('none.pem');
  });
});
