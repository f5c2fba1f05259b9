/** How long news takes to reach a thousand subscribers, each with a WebSocket of its own. */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { WebSocket } from 'ws';

/** Receives on `count` sockets; `age` says how old a message is, in seconds, or null when it is none of the news. */
class Audience {
  private readonly ages: number[] = [];
  private closed: string | null = null;
  private constructor(private readonly sockets: WebSocket[]) {}

  static async open(
    count: number,
    url: string,
    protocol: string | undefined,
    age: (text: string) => number | null,
  ): Promise<Audience> {
    const sockets: WebSocket[] = [];
    const audience = new Audience(sockets);
    // A hundred at a time: a thousand handshakes at once are another question.
    while (sockets.length < count) {
      const more = Array.from(
        { length: Math.min(100, count - sockets.length) },
        () => new WebSocket(url, protocol),
      );
      for (const socket of more) {
        socket.on('message', (data) => {
          const seconds = age(String(data));
          if (seconds !== null) audience.ages.push(seconds);
        });
      }
      await Promise.all(more.map((socket) => once(socket, 'open')));
      for (const socket of more)
        socket.once('close', (code, reason) => {
          audience.closed ??= `${code} ${reason}`;
        });
      sockets.push(...more);
    }
    return audience;
  }

  async send(message: object): Promise<void> {
    for (const socket of this.sockets) socket.send(JSON.stringify(message));
    await sleep(500);
  }

  /**
   * Has news made `times` times, waits until all have it, and gives the 99th percentile of their ages.
   *
   * @throws Error where the server has closed a socket, as it does with who takes nothing for long: what it was sent is not known
   */
  async p99(times: number, make: () => Promise<unknown>): Promise<number> {
    this.ages.length = 0;
    for (let made = 1; made <= times; made++) {
      await make();
      while (this.ages.length < made * this.sockets.length) {
        if (this.closed !== null) throw new Error(`a subscriber was cut off: ${this.closed}`);
        await sleep(5);
      }
      await sleep(50);
    }
    this.ages.sort((a, b) => a - b);
    return this.ages[Math.ceil(this.ages.length * 0.99) - 1] as number;
  }

  close(): void {
    for (const socket of this.sockets) socket.terminate();
  }
}

/** Subscribers of `jobUpdated`; an update's age counts from the event's own time. */
export async function subscribers(count: number, url: string, authorization: string): Promise<Audience> {
  const audience = await Audience.open(count, url.replace(/^http/, 'ws'), 'graphql-transport-ws', (text) => {
    const { type, payload } = JSON.parse(text);
    return type === 'next' ? (Date.now() - Date.parse(payload.data.jobUpdated.event.at)) / 1000 : null;
  });
  await audience.send({ type: 'connection_init', payload: { authorization } });
  const query = 'subscription { jobUpdated { cursor event { at fromState toState } job { id state name } } }';
  await audience.send({ id: '1', type: 'subscribe', payload: { query } });
  return audience;
}

const SERVER = `
const { WebSocketServer } = require('ws');
const { parentPort } = require('node:worker_threads');
const server = new WebSocketServer({ port: 0, host: '127.0.0.1' }, () => parentPort.postMessage(server.address().port));
parentPort.on('message', (padding) => {
  const text = JSON.stringify({ at: Date.now(), padding });
  for (const client of server.clients) client.send(text);
});`;

/** The baseline: a bare WebSocket server in a thread of its own sends a message of the same size to all. */
export async function bareSockets(
  count: number,
): Promise<{ audience: Audience; make: () => Promise<void>; close: () => Promise<unknown> }> {
  const worker = new Worker(SERVER, { eval: true });
  const [port] = await once(worker, 'message');
  const audience = await Audience.open(
    count,
    `ws://127.0.0.1:${port}`,
    undefined,
    (text) => (Date.now() - JSON.parse(text).at) / 1000,
  );
  return { audience, make: async () => worker.postMessage('x'.repeat(250)), close: () => worker.terminate() };
}
