/** Endpoints of webhooks that behave as they are told, and processes that deliver to them. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Sender } from '../../src/callbacks/index.js';
import { webhookFollowing } from '../../src/callbacks/webhooks.js';
import { Follower } from '../../src/engine/follower.js';
import { ALWAYS_REACHED } from '../../src/engine/ports.js';
import { type Env, REAL_ENV } from '../../src/platform/env.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { EventBell } from '../../src/store/bell.js';
import { openDirectory } from '../../src/store/directory.js';
import type { Database } from '../../src/store/pool.js';
import { PostgresStore } from '../../src/store/postgres.js';
import { Queries } from '../../src/store/queries.js';
import { Webhooks } from '../../src/store/webhooks.js';
import { quietLog } from '../engine/support.js';

/** What an endpoint does with a request: answers a status, with headers; or nothing; or closes the connection. */
export type Behavior = number | { status: number; headers: Record<string, string> } | 'SILENT' | 'CLOSE';

export interface Received {
  headers: IncomingHttpHeaders;
  body: string;
  path: string;
  answered: Behavior;
}

export class Endpoint {
  readonly received: Received[] = [];
  /** Asked for each request; by default it takes everything. */
  behave: (request: Omit<Received, 'answered'>, number: number) => Behavior | Promise<Behavior> = () => 204;
  private server: Server | null = null;
  private port = 0;

  async open(): Promise<this> {
    this.server = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8');
      request.on('data', (chunk) => {
        body += chunk;
      });
      request.on('end', async () => {
        const one = { headers: request.headers, body, path: request.url as string };
        const answered = await this.behave(one, this.received.length);
        this.received.push({ ...one, answered });
        if (answered === 'SILENT') return;
        if (answered === 'CLOSE') return void request.socket.destroy();
        if (typeof answered === 'number') response.writeHead(answered).end();
        else response.writeHead(answered.status, answered.headers).end();
      });
    });
    await new Promise<void>((resolve) => this.server?.listen(this.port, '127.0.0.1', resolve));
    this.port = (this.server.address() as AddressInfo).port;
    return this;
  }

  /** It dies; opened again, it has the same address. */
  async close(): Promise<void> {
    this.server?.closeAllConnections();
    await new Promise((resolve) => (this.server ? this.server.close(resolve) : resolve(null)));
    this.server = null;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hook`;
  }

  /** Messages that it took, each once, in the order in which it took them first. */
  get taken(): Received[] {
    const ids = new Set<unknown>();
    return this.received.filter(({ headers, answered }) => {
      const id = headers['webhook-id'];
      if (typeof answered !== 'number' || answered >= 300 || ids.has(id)) return false;
      ids.add(id);
      return true;
    });
  }

  /** Ids of events that it took. */
  get events(): number[] {
    return this.taken.map(({ body }) => Number(JSON.parse(body).id.replace('event_', '')));
  }
}

export interface DelivererOptions {
  addresses?: readonly string[];
  timeoutMs?: number;
  /** Of the lease on the follower. */
  holder?: string;
}

/** A process that delivers. `skipS`: its clock is ahead of this machine's by so much. */
export class Deliverer {
  skipS = 0;
  readonly metrics = createMetrics();
  private readonly sender: Sender;
  private readonly bell: EventBell;
  private readonly follower: Follower;

  constructor(database: Database, url: string, options: DelivererOptions = {}) {
    const { addresses = ['127.0.0.1'], timeoutMs = 500, holder = 'a' } = options;
    this.sender = new Sender({ addresses, timeoutMs });
    this.bell = new EventBell({ url });
    const store = new PostgresStore(database);
    const now = () => Date.now() / 1000 + this.skipS;
    // Whoever waits looks at the clock again and again: it may have been set.
    const env: Env = { ...REAL_ENV, after: (ms, run) => REAL_ENV.after(Math.min(ms, 20), run) };
    const common = { log: quietLog, metrics: this.metrics, env, now };
    const following = webhookFollowing({
      ...{ webhooks: new Webhooks(database, openDirectory(database)), queries: new Queries(database) },
      ...{ sender: this.sender, ...common, giveUpS: 72 * 3600 },
      source: async () => 'urn:switchyard:test',
    });
    this.follower = new Follower(following, {
      store: { follow: (turn) => store.follow({ ...turn, leaseS: 1 }) },
      ...{ ...common, holder, reach: ALWAYS_REACHED, news: this.bell.listen },
      pace: { batch: 50, gapMs: 5, pollMs: 20 },
    });
  }

  async start(): Promise<this> {
    await this.bell.start();
    this.follower.start();
    return this;
  }

  async stop(): Promise<void> {
    await this.follower.stop();
    await this.bell.stop();
    this.sender.close();
  }
}
