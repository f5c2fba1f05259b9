/** The portal as files: what a browser gets, and that nobody gets anything else. */
import { readdirSync } from 'node:fs';
import { request } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { withApi } from './support/api.js';

const api = withApi();
const PAGE = { accept: 'text/html,application/xhtml+xml' };
const assets = readdirSync(packagePath('dist', 'web', 'assets'));
const script = assets.find((name) => /^index-.*\.js$/.test(name)) as string;

/** As it comes over the wire: neither the path nor the body is touched on the way. */
function raw(
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<{ status: number; headers: Record<string, string>; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(api.origin);
    request({ hostname, port, path, headers, method }, (response) => {
      const parts: Buffer[] = [];
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers as Record<string, string>,
          body: Buffer.concat(parts),
        }),
      );
    })
      .on('error', reject)
      .end();
  });
}

test.each(['/', '/jobs', '/jobs/job_1?states=RUNNING', '/no/such/page'])(
  '%s is the portal to a browser, under a content security policy with a nonce of its own',
  async (path) => {
    const first = await raw(path, PAGE);
    const second = await raw(path, PAGE);
    expect(first.status).toBe(200);
    expect(first.headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
    });
    const policy = first.headers['content-security-policy'] as string;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toMatch(/script-src 'self'(;|$)/);
    const nonce = /'nonce-([\w-]{20,})'/.exec(policy)?.[1] as string;
    expect(first.body.toString()).toContain(`nonce="${nonce}"`);
    expect(second.headers['content-security-policy']).not.toContain(nonce);
    expect(first.body.toString()).not.toContain('__NONCE__');
  },
);

test('everything that the pages load is the service’s own', async () => {
  for (const path of ['/', '/graphql']) {
    const html = (await raw(path, PAGE)).body.toString();
    const sources = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1] as string);
    expect(sources.length).toBeGreaterThan(1);
    for (const source of sources) {
      expect(source).toMatch(/^\/[^/]/);
      expect((await raw(source)).status).toBe(200);
    }
  }
});

test('files with a hash in their names are kept for ever, and come as small as the browser can read them', async () => {
  const plain = await raw(`/assets/${script}`);
  expect(plain.headers).toMatchObject({
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': 'public, max-age=31536000, immutable',
    vary: 'Accept-Encoding',
  });
  expect(plain.headers['content-encoding']).toBeUndefined();
  const br = await raw(`/assets/${script}`, { 'accept-encoding': 'gzip, deflate, br' });
  expect(br.headers['content-encoding']).toBe('br');
  expect(brotliDecompressSync(br.body).equals(plain.body)).toBe(true);
  const gz = await raw(`/assets/${script}`, { 'accept-encoding': 'gzip' });
  expect(gz.headers['content-encoding']).toBe('gzip');
  expect(gunzipSync(gz.body).equals(plain.body)).toBe(true);
  expect(br.body.length).toBeLessThan(gz.body.length);
  const head = await raw(`/assets/${script}`, {}, 'HEAD');
  expect([head.status, head.body.length]).toEqual([200, 0]);
});

test('a file of another build is not found, rather than a page', async () => {
  const { status, headers } = await raw('/assets/index-OLDBUILD.js', { accept: '*/*' });
  expect(status).toBe(404);
  expect(headers['cache-control']).toBeUndefined();
  expect((await raw('/assets/index-OLDBUILD.js', PAGE)).status).toBe(404);
});

test.each([
  '/../package.json',
  '/assets/../../../package.json',
  '/assets/..%2f..%2f..%2fpackage.json',
  '/%2e%2e/%2e%2e/package.json',
  '/.vite/manifest.json',
  '/.stamp',
  '/index.html.br',
])('%s leads to nothing outside the portal', async (path) => {
  const { status, body } = await raw(path);
  expect(status).toBe(404);
  expect(body.toString()).not.toContain('switchyard');
});

test('the explorer is at the endpoint to a browser that opens it, and the endpoint stays what it is', async () => {
  const page = await raw('/graphql', PAGE);
  expect(page.status).toBe(200);
  expect(page.body.toString()).toContain('GraphQL explorer');
  const query = await raw(`/graphql?query=${encodeURIComponent('{ viewer { role } }')}`, {
    accept: 'text/html, application/json',
    authorization: `Bearer ${api.adminKey}`,
  });
  expect(JSON.parse(query.body.toString())).toMatchObject({ data: { viewer: { role: 'ADMIN' } } });
  expect((await raw('/graphql')).status).toBeGreaterThanOrEqual(400);
});

test('health, readiness and metrics are not taken for pages', async () => {
  expect((await raw('/healthz', PAGE)).body.toString()).toBe('alive\n');
  expect((await raw('/readyz', PAGE)).body.toString()).toBe('ready\n');
  expect((await raw('/metrics', PAGE)).status).toBe(401);
  const metrics = await raw('/metrics', { ...PAGE, authorization: `Bearer ${api.adminKey}` });
  expect(metrics.body.toString()).toContain('switchyard_operations_total');
  expect((await raw('/jobs', { accept: 'application/json' })).status).toBe(404);
  expect((await raw('/', PAGE, 'POST')).status).toBe(404);
});
