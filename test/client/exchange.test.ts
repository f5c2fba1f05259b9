/** The bare HTTP of the commands called like Slurm's, against Node's server and against connections that end anywhere. */
import { once } from 'node:events';
import { createServer as httpServer, type RequestListener } from 'node:http';
import { createServer, type Server } from 'node:net';
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { exchange } from '../../src/slurm/exchange.js';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

async function portOf(server: Server): Promise<number> {
  servers.push(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return address.port;
}
const asked = (port: number) => ({
  ...{ method: 'POST', host: '127.0.0.1', port, path: '/graphql?a=b' },
  ...{ headers: { host: 'localhost', 'content-length': 6 }, body: 'asked?', timeoutMs: 5_000 },
});
/** Says these bytes, whatever it is asked, and closes the connection. */
const saying = (bytes: Buffer | string) =>
  portOf(createServer((socket) => void socket.on('error', () => {}).once('data', () => socket.end(bytes))));

test('what Node’s server says arrives, of a known length or in chunks', async () => {
  let answer: RequestListener = () => {};
  const port = await portOf(httpServer((request, response) => answer(request, response)));
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 200, max: 599 }).filter((status) => status !== 204 && status !== 304),
      fc.array(fc.uint8Array({ maxLength: 70_000 }), { maxLength: 4 }),
      fc.boolean(),
      async (status, pieces, isMeasured) => {
        const whole = Buffer.concat(pieces);
        answer = async (request, response) => {
          let body = '';
          for await (const piece of request) body += piece;
          const isAsked = [request.method, request.url, request.headers.host, body].join(' ');
          response.writeHead(isAsked === 'POST /graphql?a=b localhost asked?' ? status : 499, {
            ...(isMeasured && { 'content-length': whole.length }),
          });
          for (const piece of pieces) response.write(piece);
          response.end();
        };
        const { status: got, body } = await exchange(asked(port));
        expect([got, body.equals(whole)]).toEqual([status, true]);
      },
    ),
    { numRuns: 30 },
  );
});

const WHOLE = {
  measured: 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello',
  chunked: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n',
};

test.each(Object.entries(WHOLE))('an answer that is cut anywhere is no answer: %s', async (_, whole) => {
  const isEnough = whole.length - (whole.endsWith('0\r\n\r\n') ? 2 : 0);
  for (let length = 0; length <= whole.length; length++) {
    const result = exchange(asked(await saying(whole.slice(0, length))));
    if (length >= isEnough) expect(await result).toEqual({ status: 200, body: Buffer.from('hello') });
    else await expect(result).rejects.toThrow('the connection was closed before the answer was whole');
  }
});

test('a server that stays silent is given up, and one that is not there, or speaks no HTTP, at once', async () => {
  await expect(exchange(asked(await saying('SSH-2.0-server\r\n\r\n')))).rejects.toThrow('not HTTP');
  const silent = await portOf(createServer());
  await expect(exchange({ ...asked(silent), timeoutMs: 100 })).rejects.toThrow('Socket timed out');
  await expect(exchange(asked(1))).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});
