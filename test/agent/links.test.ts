/** Measuring links against a real web server. */
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { measureLink } from '../../src/agent/links.js';

const never = new AbortController().signal;

async function serve(
  body: (send: (bytes: number) => boolean, end: () => void, response: ServerResponse) => void,
): Promise<string> {
  const server: Server = createServer((_, response) => {
    const chunk = Buffer.alloc(1 << 16);
    body(
      (bytes) => response.write(chunk.subarray(0, bytes)),
      () => response.end(),
      response,
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/file`;
}

test('the bandwidth is that at which the file comes, the loss and the time those of connecting', async () => {
  // 2 MB in 20 steps, at least 10 ms apart: never faster than 10 MB/s, whatever the machine does.
  const url = await serve((send, end) => {
    let steps = 0;
    const timer = setInterval(() => {
      for (let i = 0; i < 2; i++) send(50_000);
      if (++steps === 20) {
        clearInterval(timer);
        end();
      }
    }, 10);
  });
  const { bandwidthMbPerS, rttS, loss } = await measureLink(url, never);
  expect(bandwidthMbPerS).toBeGreaterThan(0);
  expect(bandwidthMbPerS).toBeLessThan(12);
  expect(loss).toBe(0);
  expect(rttS).toBeGreaterThan(0);
  expect(rttS).toBeLessThan(2);
});

test('a file without end is left after a bounded amount', async () => {
  let leave = (): void => {};
  const left = new Promise<void>((resolve) => {
    leave = resolve;
  });
  const url = await serve((send, _, response) => {
    response.on('drain', () => send(1 << 16)).on('close', leave);
    while (send(1 << 16));
  });
  expect((await measureLink(url, never)).bandwidthMbPerS).toBeGreaterThan(0);
  await left;
});

test('what cannot be measured is an error that names the url', async () => {
  const short = await serve((send, end) => {
    send(1000);
    end();
  });
  await expect(measureLink(short, never)).rejects.toThrow(
    `${short}: 1000 bytes; the file must have at least`,
  );

  const closed = createTcpServer().listen(0, '127.0.0.1');
  await once(closed, 'listening');
  const nowhere = `http://127.0.0.1:${(closed.address() as AddressInfo).port}/file`;
  closed.close();
  await once(closed, 'close');
  await expect(measureLink(nowhere, never)).rejects.toThrow(`${nowhere}: none of 5 connections succeeded`);
});
