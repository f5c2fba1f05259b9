/** Whoever comes without a good key: how far they get, and from where they come. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { createAddresses } from '../../src/api/addresses.js';
import { createShares } from '../../src/api/admission/shares.js';
import { createAuthenticator, type Strangers, type Viewer } from '../../src/api/auth.js';
import { DEFAULT_LIMITS } from '../../src/platform/limits.js';
import { withApi } from './support/api.js';

describe('keys that nobody has seen', () => {
  const one = { keyId: 1, userId: 1, role: 'USER', siteId: null, expiresAtMs: null } as const;
  const viewer: Viewer = { ...one, actsForUsers: false, onBehalfBy: null };
  const bearer = (key: string) => `Bearer ${key}`;
  /** An authenticator that knows keys beginning with `good`, and what it asked. */
  function desk(
    strangers: Strangers = createShares({ ...DEFAULT_LIMITS, strangersPerMinute: 20 }).strangers,
  ) {
    const asked: string[] = [];
    let most = 0;
    let now = 0;
    const { authenticate, forget } = createAuthenticator(async (secret) => {
      asked.push(secret);
      most = Math.max(most, ++now);
      await new Promise((resolve) => setTimeout(resolve, 2));
      now--;
      return secret.startsWith('good') ? viewer : null;
    }, strangers);
    const code = (key: string, address = '192.0.2.1') =>
      authenticate(bearer(key), address).then(
        () => 'OK',
        (error: { code: string }) => error.code,
      );
    return { asked, authenticate, code, forget, most: () => most };
  }

  test('are looked up a few at a time, and not at all from an address that has tried too many', async () => {
    const { asked, code, most } = desk();
    const codes = await Promise.all(Array.from({ length: 500 }, (_, i) => code(`bad${i}`)));
    expect(most()).toBeLessThanOrEqual(4);
    expect(asked.length).toBeLessThanOrEqual(24);
    expect(codes.filter((one) => one === 'RATE_LIMITED').length).toBeGreaterThanOrEqual(476);
    expect(await code('bad', '192.0.2.2')).toBe('UNAUTHENTICATED');
  });

  test('a good key that was seen before is heard, wherever it comes from', async () => {
    const { code, forget } = desk();
    expect(await code('good')).toBe('OK');
    await Promise.all(Array.from({ length: 100 }, (_, i) => code(`bad${i}`)));
    expect(await code('another')).toBe('RATE_LIMITED');
    forget();
    expect(await code('good')).toBe('OK');
  });

  test('any number of good ones may come at once', async () => {
    const { code } = desk();
    const codes = await Promise.all(Array.from({ length: 300 }, (_, i) => code(`good${i}`)));
    expect(new Set(codes)).toEqual(new Set(['OK']));
  });

  test('one that is no good is asked about once in a while, and keeps nobody out who shares its address', async () => {
    const { asked, authenticate, code } = desk();
    for (let i = 0; i < 100; i++) {
      expect(await code('bad')).toBe('UNAUTHENTICATED');
      await expect(authenticate(undefined, '192.0.2.1')).rejects.toMatchObject({ code: 'UNAUTHENTICATED' });
    }
    expect(asked).toEqual(['bad']);
    expect(await code('good')).toBe('OK');
  });
});

describe('addresses', () => {
  // As much of a request as addresses are read from.
  const from = (remoteAddress: string, forwarded?: string) =>
    ({ socket: { remoteAddress }, headers: { 'x-forwarded-for': forwarded } }) as unknown as IncomingMessage;
  const addresses = createAddresses(['10.0.0.0/8', '2001:db8:ffff::/48', '192.0.2.10']);

  test.each([
    ['198.51.100.1', undefined, '198.51.100.1'],
    ['::ffff:198.51.100.1', undefined, '198.51.100.1'],
    // Nobody's word but that of our proxies.
    ['198.51.100.1', '203.0.113.5', '198.51.100.1'],
    ['10.1.2.3', '203.0.113.5', '203.0.113.5'],
    ['192.0.2.10', '1.1.1.1, 203.0.113.5', '203.0.113.5'],
    ['::ffff:10.1.2.3', '203.0.113.5, 10.9.9.9', '203.0.113.5'],
    ['10.1.2.3', 'unknown', '10.1.2.3'],
    ['10.1.2.3', undefined, '10.1.2.3'],
    ['2001:db8:ffff::1', '203.0.113.5', '203.0.113.5'],
    // What one client has of IPv6 is a network.
    ['2001:db8:1:2:3:4:5:6', undefined, '2001:db8:1:2::/64'],
    ['2001:db8::1', undefined, '2001:db8:0:0::/64'],
    ['::1', undefined, '0:0:0:0::/64'],
  ])('%s with X-Forwarded-For %s is %s', (remote, forwarded, expected) => {
    expect(addresses.of(from(remote, forwarded))).toBe(expected);
  });
});

describe('connections', () => {
  const api = withApi((config) => ({ ...config, limits: { ...config.limits, addressConnections: 8 } }));

  test('of one address are so many, and no more', async () => {
    const { hostname, port } = new URL(api.origin);
    const dial = () => connect(Number(port), hostname).on('error', () => {});
    const closed: boolean[] = [];
    const sockets = Array.from({ length: 20 }, (_, i) =>
      dial().on('close', () => {
        closed[i] = true;
      }),
    );
    await expect.poll(() => closed.filter(Boolean).length).toBeGreaterThanOrEqual(12);
    // Those that ask for nothing give way to who comes from the same address and does.
    expect((await api.ask('{ viewer { name } }')).status).toBe(200);
    for (const socket of sockets) socket.destroy();
    await Promise.all(sockets.map((socket) => socket.closed || once(socket, 'close')));
    await expect
      .poll(() =>
        api.ask('{ viewer { name } }').then(
          ({ status }) => status,
          () => 0,
        ),
      )
      .toBe(200);
  });
});
