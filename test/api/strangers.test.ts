/** Whoever comes without a good key: how far they get, and from where they come. */
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectSecurely } from 'node:tls';
import { describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { createAddresses } from '../../src/api/addresses.js';
import { createShares } from '../../src/api/admission/shares.js';
import { createAuthenticator, type Strangers, type Viewer } from '../../src/api/auth.js';
import { DEFAULT_LIMITS, type Limits } from '../../src/platform/limits.js';
import { type TestApi, withApi } from './support/api.js';
import { withCertificate } from './support/certificate.js';

describe('keys that nobody has seen', () => {
  const one = {
    keyId: 1,
    sessionId: null,
    userId: 1,
    role: 'USER',
    siteId: null,
    expiresAtMs: null,
  } as const;
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

const tls = withCertificate();

describe.each(['http', 'https'])('connections over %s', (scheme) => {
  const isSecure = scheme === 'https';
  const { request, Agent } = isSecure ? https : http;
  /** A connection from an address of this machine's own; without a handshake (`bare`) also over TLS. */
  const dialTo = (api: TestApi, from = '127.0.0.1', bare = false): Socket => {
    const { hostname, port } = new URL(api.origin);
    const options = { host: hostname, port: Number(port), localAddress: from };
    const socket =
      isSecure && !bare ? connectSecurely({ ...options, rejectUnauthorized: false }) : connect(options);
    return socket.on('error', () => {});
  };
  const withLimits = (limits: Partial<Limits>) =>
    withApi((config) => ({
      ...config,
      tls: isSecure ? tls : null,
      limits: { ...config.limits, ...limits },
    }));

  describe('of an address', () => {
    const api = withLimits({ addressConnections: 8 });

    test('are so many, and no more', async () => {
      const closed: boolean[] = [];
      const sockets = Array.from({ length: 20 }, (_, i) =>
        dialTo(api).on('close', () => {
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

  describe('of a process', () => {
    const api = withLimits({ connectionsMax: 16 });
    /** A request of an administrator on a connection of the agent's. */
    const asked = (agent: http.Agent | false): Promise<{ status: number; socket: Socket }> =>
      new Promise((resolve, reject) => {
        const headers = { authorization: `Bearer ${api.adminKey}`, 'content-type': 'application/json' };
        request(api.url, { method: 'POST', agent, headers }, (response) => {
          const { socket } = response;
          response.resume().on('end', () => resolve({ status: response.statusCode!, socket }));
        })
          .on('error', reject)
          .end('{"query":"{ viewer { name } }"}');
      });
    const ended = (sockets: readonly Socket[]) =>
      Promise.all(sockets.map((socket) => socket.destroy().closed || once(socket, 'close')));
    /** As many as there may be and more, of several addresses. */
    const idle = () =>
      ['127.0.0.2', '127.0.0.3', '127.0.0.4'].flatMap((from) =>
        Array.from({ length: 20 }, (_, i) => dialTo(api, from, i % 2 === 0)),
      );

    test('on which nothing is done give way, wherever they come from', async () => {
      const sockets = idle();
      await expect.poll(() => sockets.filter(({ destroyed }) => destroyed).length).toBeGreaterThan(25);
      for (let i = 0; i < 40; i++) expect((await asked(false)).status).toBe(200);
      await ended(sockets);
    });

    test('of an operator do not, once their key has been shown', async () => {
      const agent = new Agent({ keepAlive: true });
      const { socket } = await asked(agent);
      const sockets = idle();
      await expect.poll(() => sockets.filter(({ destroyed }) => destroyed).length).toBeGreaterThan(25);
      const again = await asked(agent);
      expect([again.status, again.socket === socket]).toEqual([200, true]);
      agent.destroy();
      await ended(sockets);
    });

    test('over WebSocket give way that have not said whose they are; of the rest a part is kept for operators', async () => {
      const open = async (key: string | null): Promise<WebSocket | null> => {
        const socket = new WebSocket(api.url.replace('http', 'ws'), 'graphql-transport-ws');
        socket.on('error', () => {});
        await Promise.race([once(socket, 'open'), once(socket, 'close')]);
        if (key === null) return socket;
        socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${key}` } }));
        const [first] = await Promise.race([once(socket, 'message'), once(socket, 'close')]);
        return String(first).includes('ack') ? socket : null;
      };
      const silent = await Promise.all(Array.from({ length: 16 }, () => open(null)));
      const { key } = await api.user('USER', 'greedy');
      const theirs: (WebSocket | null)[] = [];
      for (let i = 0; i < 16; i++) theirs.push(await open(key));
      expect(theirs.filter(Boolean).length).toBeGreaterThan(4);
      expect(theirs.filter(Boolean).length).toBeLessThanOrEqual(12);
      const ours = [await open(api.adminKey), await open(api.adminKey)];
      expect(ours).not.toContain(null);
      for (const socket of [...silent, ...theirs, ...ours]) socket?.terminate();
    });

    test('requests one behind the other are not read for long: thousands on a few connections', async () => {
      const { key } = await api.user('USER', 'hasty');
      const body = '{"query":"{ viewer { name } }"}';
      const head = `POST /graphql HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n`;
      for (const one of [
        `${head}authorization: Bearer ${key}\r\n\r\n${body}`,
        `${head}\r\n${body}`,
        'GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n',
        'GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n',
      ]) {
        const answered = await Promise.all(
          Array.from({ length: 4 }, async () => {
            const socket = dialTo(api);
            let received = '';
            socket.setEncoding('utf8').on('data', (text) => {
              received += text;
            });
            socket.write(one.repeat(5_000));
            await new Promise((resolve) => socket.on('close', resolve));
            return received.split('HTTP/1.1 ').length - 1;
          }),
        );
        expect(Math.max(...answered)).toBeLessThanOrEqual(4);
        expect((await asked(false)).status).toBe(200);
      }
    });

    test('bytes may come in any portions', async () => {
      const body = JSON.stringify({ query: '{ viewer { name } }', variables: { x: 'é'.repeat(100_000) } });
      const head = `POST /graphql HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nauthorization: Bearer ${api.adminKey}\r\n\r\n`;
      const one = Buffer.from(head + body);
      for (const portion of [one.length, 65_536, 8_192, 8_191, 1_000]) {
        const socket = dialTo(api);
        let received = '';
        socket.setEncoding('utf8').on('data', (text) => {
          received += text;
        });
        for (const answers of [1, 2]) {
          for (let at = 0; at < one.length; at += portion) {
            socket.write(one.subarray(at, at + portion));
            if (at % 7 === 0) await sleep(0);
          }
          await expect.poll(() => received.split('"data":{"viewer"').length - 1).toBe(answers);
        }
        await ended([socket]);
      }
    });

    test('what comes behind the request for a WebSocket is its first message', async () => {
      const socket = dialTo(api);
      const init = Buffer.from(
        JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${api.adminKey}` } }),
      );
      const head = `GET /graphql HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-key: ${Buffer.alloc(16).toString('base64')}\r\nsec-websocket-version: 13\r\nsec-websocket-protocol: graphql-transport-ws\r\nx-padding: ${'x'.repeat(8_000)}\r\n\r\n`;
      socket.write(
        Buffer.concat([
          Buffer.from(head),
          Buffer.from([0x81, 0xfe, init.length >> 8, init.length & 255, 0, 0, 0, 0]),
          init,
        ]),
      );
      let received = '';
      socket.on('data', (data) => {
        received += data;
      });
      await expect.poll(() => received).toContain('connection_ack');
      await ended([socket]);
    });
  });
});
