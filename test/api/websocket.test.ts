/** Connections as strangers and broken clients make them: nothing of it may cost the others anything. */
import { once } from 'node:events';
import { connect } from 'node:net';
import fc from 'fast-check';
import { describe, expect, test, vi } from 'vitest';
import WebSocket from 'ws';
import { cases } from '../support/seed.js';
import { withApi } from './support/api.js';

const SOCKETS = 40;
const api = withApi((config) => ({
  ...config,
  trustedProxies: ['127.0.0.1'],
  limits: {
    ...config.limits,
    connectionsMax: SOCKETS,
    addressConnections: 10,
    socketsOpen: 5,
    messageBytesMax: 300_000,
    strangersPerMinute: 1_000,
  },
}));

const url = () => api.url.replace('http', 'ws');
/** A socket of a client at this address, as a proxy tells it. */
const dial = (address = '192.0.2.1') =>
  new WebSocket(url(), 'graphql-transport-ws', { headers: { 'x-forwarded-for': address } });
async function opened(address?: string): Promise<WebSocket> {
  const socket = dial(address);
  socket.on('error', () => {});
  await once(socket, 'open');
  return socket;
}
const init = (key = api.adminKey) =>
  JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${key}` } });
async function acknowledged(key?: string): Promise<WebSocket> {
  const socket = await opened();
  const answer = once(socket, 'message');
  socket.send(init(key));
  await answer;
  return socket;
}
const closeOf = async (socket: WebSocket): Promise<[number, string]> => {
  const [code, reason] = (await once(socket, 'close')) as [number, Buffer];
  return [code, String(reason)];
};
/** Whoever has a key and a place is served. */
const isServed = async (): Promise<void> => {
  expect(await api.must('{ viewer { name } }')).toEqual({ viewer: { name: 'admin' } });
};
/** The service hears of closed sockets a moment later. */
const free = (): Promise<void> =>
  expect
    .poll(async () => {
      const socket = dial('192.0.2.99');
      socket.on('error', () => {});
      const is = await Promise.race([
        once(socket, 'open').then(() => true),
        once(socket, 'close').then(() => false),
      ]);
      socket.terminate();
      return is;
    })
    .toBe(true);

describe('before connection_init', () => {
  test('large frames are not taken in', async () => {
    const whole = await opened();
    const closed = closeOf(whole);
    whole.send('x'.repeat(100_000));
    expect((await closed)[0]).toBeGreaterThanOrEqual(1006);

    const parts = await opened();
    const ended = closeOf(parts);
    let sent = 0;
    const more = setInterval(() => {
      if (parts.readyState === WebSocket.OPEN) parts.send('y'.repeat(1_000), { fin: false });
      sent++;
    }, 1);
    await ended;
    clearInterval(more);
    expect(sent).toBeLessThan(1_000);
    await isServed();
  });

  test('sockets are counted from the upgrade, by address', async () => {
    const sockets = await Promise.all(Array.from({ length: 10 }, () => opened('192.0.2.7')));
    const refused = dial('192.0.2.7');
    const [error] = (await once(refused, 'error')) as [Error];
    expect(error.message).toContain('429');
    // Whatever a client writes itself stands before what the proxy adds.
    const [lied] = (await once(dial('198.51.100.3, 192.0.2.7'), 'error')) as [Error];
    expect(lied.message).toContain('429');
    await opened('192.0.2.8').then((socket) => socket.terminate());
    for (const socket of sockets) socket.terminate();
    await free();
  });

  test('sockets are counted from the upgrade, all together', async () => {
    // At once: they have only so long to say whose they are.
    const sockets = await Promise.all(Array.from({ length: SOCKETS }, (_, i) => opened(`203.0.113.${i}`)));
    // Of those that have not said it one gives way.
    const closed = Promise.race(sockets.map(closeOf));
    sockets.push(await acknowledged());
    expect((await closed)[0]).toBe(1006);
    await isServed();
    for (const socket of sockets) socket.terminate();
    await free();
  });
});

describe('with a key', () => {
  test('messages are as large as they may be, and not larger', async () => {
    const socket = await acknowledged();
    const answer = once(socket, 'message');
    const query = `{ viewer { name } } # ${'x'.repeat(200_000)}`;
    socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload: { query } }));
    expect(JSON.parse(String((await answer)[0]))).toMatchObject({
      type: 'next',
      payload: { data: { viewer: {} } },
    });
    const closed = closeOf(socket);
    socket.send('x'.repeat(400_000));
    expect((await closed)[0]).toBe(1009);
  });

  test('long messages are parsed in pieces, and are no texts within texts', async () => {
    const parse = vi.spyOn(JSON, 'parse');
    const variables = { x: Array(50_000).fill([]) };
    const payload = { query: '{ viewer { name } }', variables };
    const long = JSON.stringify({ id: 'long', type: 'subscribe', payload });
    const socket = await acknowledged();
    const answers: string[] = [];
    socket.on('message', (data) => answers.push(String(data)));
    socket.send(long);
    await expect.poll(() => answers.at(-1)).toContain('"complete"');
    expect(answers.at(-2)).toContain('"admin"');
    expect(Math.max(...parse.mock.calls.map(([text]) => text.length))).toBeLessThan(70_000);
    parse.mockRestore();

    for (const text of [
      JSON.stringify(long),
      `${long}}`,
      '"ping"',
      'null',
      '[]',
      `[${'['.repeat(100_000)}`,
    ]) {
      const one = await acknowledged();
      const closed = closeOf(one);
      one.send(text);
      expect((await closed)[0]).toBe(4400);
    }
    await isServed();
    socket.terminate();
  });

  test('a user has so many connections', async () => {
    // One of whom the service has no other socket still to forget.
    const { key } = await api.user('USER', 'connected');
    const sockets = await Promise.all(Array.from({ length: 5 }, () => acknowledged(key)));
    const one = await opened();
    const closed = closeOf(one);
    one.send(init(key));
    expect(await closed).toEqual([1013, expect.stringContaining('LIMIT_EXCEEDED')]);
    const left = closeOf(sockets[0]!);
    sockets[0]!.close();
    await left;
    await expect
      .poll(async () => {
        const again = await opened();
        const told = Promise.race([
          once(again, 'message').then(() => true),
          once(again, 'close').then(() => false),
        ]);
        again.send(init(key));
        const is = await told;
        again.terminate();
        return is;
      })
      .toBe(true);
    for (const socket of sockets) socket.terminate();
    await free();
  });
});

describe('anything at all', () => {
  /** Bytes after a handshake, sent as they are: broken frames, masks, lengths that never come. */
  const handshake = (): string =>
    [
      'GET /graphql HTTP/1.1',
      'Host: x',
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
      'Sec-WebSocket-Protocol: graphql-transport-ws',
      '\r\n',
    ].join('\r\n');

  test('bytes that are no frames', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 200 }), { maxLength: 5 }),
        async (chunks) => {
          const { hostname, port } = new URL(api.origin);
          const socket = connect(Number(port), hostname);
          socket.on('error', () => {});
          socket.write(handshake());
          await once(socket, 'data');
          for (const chunk of chunks) socket.write(chunk);
          socket.end();
          await once(socket, 'close');
        },
      ),
      { numRuns: cases(60) },
    );
    await isServed();
  });

  test('messages in any order, of any shape', async () => {
    const json = fc.json({ maxDepth: 3 });
    const id = fc.constantFrom('', '1', '2', '__proto__', 'x'.repeat(1_000));
    const payload = fc.oneof(
      fc.jsonValue({ maxDepth: 2 }),
      fc.record({
        query: fc.oneof(
          fc.constantFrom(
            '{ viewer { name } }',
            'subscription { siteUpdated { cursor } }',
            '{',
            'mutation { x }',
          ),
          fc.string(),
          fc.jsonValue(),
        ),
        variables: fc.oneof(fc.jsonValue(), fc.constant({ __proto__: 1 })),
        operationName: fc.oneof(fc.string(), fc.jsonValue()),
      }),
    );
    const message = fc.oneof(
      json,
      fc.string({ maxLength: 50 }),
      fc
        .record(
          {
            type: fc.constantFrom('connection_init', 'ping', 'pong', 'subscribe', 'complete', 'next', 'x'),
            id,
            payload,
          },
          { requiredKeys: ['type'] },
        )
        .map((value) => JSON.stringify(value)),
    );
    await fc.assert(
      fc.asyncProperty(fc.boolean(), fc.array(message, { maxLength: 12 }), async (hasKey, messages) => {
        const socket = hasKey ? await acknowledged() : await opened();
        for (const one of messages) if (socket.readyState === WebSocket.OPEN) socket.send(one);
        if (socket.readyState === WebSocket.OPEN) {
          const closed = once(socket, 'close');
          socket.close();
          await closed;
        } else if (socket.readyState !== WebSocket.CLOSED) await once(socket, 'close');
      }),
      { numRuns: cases(120) },
    );
    await isServed();
    expect(api.log.filter((line) => line.includes('unexpectedly'))).toEqual([]);
  });
});
