/** Ways between processes that stop carrying without a word, as a cut network does, and what stands in front of several APIs. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket, connect as socketTo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Where nothing comes through: `to` the server, `from` it, or both ways. */
export type Cut = 'to' | 'from' | 'both';

/** A way to a server on this machine. While it is cut no connection is closed, new ones are made, and what is sent is held back. */
export class Way {
  private readonly pairs = new Set<{ client: Socket; upstream: Socket }>();
  private state: Cut | null = null;

  private constructor(
    private readonly target: { host: string; port: number },
    private readonly server: Server,
  ) {}

  static async open(url: string, at = 0): Promise<Way> {
    const { hostname, port } = new URL(url);
    const server = createServer();
    const way = new Way({ host: hostname.replace('localhost', '127.0.0.1'), port: Number(port) }, server);
    server.on('connection', (client) => way.join(client)).listen(at, '127.0.0.1');
    await once(server, 'listening');
    return way;
  }

  /** The same address by this way. */
  urlFor(url: string): string {
    const by = new URL(url);
    by.hostname = '127.0.0.1';
    by.port = String((this.server.address() as AddressInfo).port);
    return by.href;
  }

  cut(state: Cut | null): void {
    this.state = state;
    for (const pair of this.pairs) this.hold(pair);
  }

  close(): void {
    for (const { client, upstream } of this.pairs) {
      client.destroy();
      upstream.destroy();
    }
    this.server.close();
  }

  private join(client: Socket): void {
    const upstream = socketTo(this.target);
    const pair = { client, upstream };
    this.pairs.add(pair);
    const over = (): void => {
      // A connection that one end has given up looks alive to the other while nothing comes through.
      if (this.state !== null) return;
      this.pairs.delete(pair);
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream])
      socket
        .setNoDelay(true)
        .on('error', () => {})
        .on('close', over);
    client.on('data', (data) => void upstream.write(data));
    upstream.on('data', (data) => void client.write(data));
    this.hold(pair);
  }

  private hold({ client, upstream }: { client: Socket; upstream: Socket }): void {
    const { state } = this;
    const flow = (from: Socket, other: Socket, held: boolean): void => {
      if (held) from.pause();
      else from.resume();
      if (!held && other.destroyed) from.destroy();
    };
    flow(client, upstream, state === 'to' || state === 'both');
    flow(upstream, client, state === 'from' || state === 'both');
  }
}

const LOOK_MS = 500;
/** For an API to say that it is ready. */
const READY_MS = 2_000;

/** Passes connections on to those APIs that say they are ready, one after the other, as a load balancer does; cuts them off from others. */
export class Balancer {
  private readonly server = createServer((client) => this.join(client));
  private readonly ready = new Set<string>();
  private readonly sockets = new Map<Socket, string>();
  private closed = false;
  private next = 0;
  private readonly looking: Promise<unknown>;

  constructor(private readonly backends: readonly string[]) {
    this.looking = Promise.all(backends.map((backend) => this.look(backend)));
  }

  async listen(port: number): Promise<void> {
    this.server.listen(port, '127.0.0.1');
    await once(this.server, 'listening');
  }

  async close(): Promise<void> {
    this.closed = true;
    for (const socket of this.sockets.keys()) socket.destroy();
    this.server.close();
    await this.looking;
  }

  private async look(backend: string): Promise<void> {
    while (!this.closed) {
      const answer = await fetch(new URL('/readyz', backend), {
        signal: AbortSignal.timeout(READY_MS),
        headers: { connection: 'close' },
      }).catch(() => null);
      await answer?.text().catch(() => {});
      if (answer?.ok) this.ready.add(backend);
      else {
        this.ready.delete(backend);
        for (const [socket, to] of this.sockets) if (to === backend) socket.destroy();
      }
      await sleep(LOOK_MS);
    }
  }

  private join(client: Socket): void {
    const ready = this.backends.filter((backend) => this.ready.has(backend));
    const backend = ready[this.next++ % ready.length];
    client.on('error', () => {});
    if (backend === undefined) return void client.destroy();
    const { hostname, port } = new URL(backend);
    const upstream = socketTo(Number(port), hostname).on('error', () => {});
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      this.sockets.set(socket, backend);
      socket.setNoDelay(true).on('data', (data) => void other.write(data));
      socket.on('close', () => {
        this.sockets.delete(socket);
        other.destroy();
      });
    }
  }
}
