/** A whole API over a database of the test file's own: real HTTP, real WebSockets, real Postgres. */
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, createClient } from 'graphql-ws';
import { afterAll, beforeAll } from 'vitest';
import WebSocket from 'ws';
import type { ApiConfig } from '../../../src/api/config.js';
import { type Api, type ApiParts, createApi } from '../../../src/api/server.js';
import { readToken, Sender, webhookTester } from '../../../src/callbacks/index.js';
import type { Scheduler } from '../../../src/core/scheduler.js';
import { DEFAULT_LIMITS } from '../../../src/platform/limits.js';
import { createLogger } from '../../../src/platform/log.js';
import { createMetrics } from '../../../src/platform/metrics.js';
import { Secrets } from '../../../src/platform/secrets.js';
import { DirectoryBlobs } from '../../../src/store/blobs.js';
import { openDirectory } from '../../../src/store/directory.js';
import { openExports } from '../../../src/store/federation/index.js';
import { EventFeed } from '../../../src/store/feed.js';
import { openFiles } from '../../../src/store/files.js';
import { Mirror } from '../../../src/store/mirror.js';
import { type Database, openDatabase } from '../../../src/store/pool.js';
import { PostgresStore } from '../../../src/store/postgres.js';
import { Queries } from '../../../src/store/queries.js';
import type { UserRole } from '../../../src/store/rows.js';
import { Webhooks } from '../../../src/store/webhooks.js';
import { type TestDatabase, withDatabase } from '../../support/database.js';
import { refuseFormer } from '../../support/former-names.js';

export interface GraphqlAnswer<T> {
  status: number;
  headers: Headers;
  data: T;
  errors?: {
    message: string;
    path?: (string | number)[];
    extensions: { code: string } & Record<string, unknown>;
  }[];
  /** What it cost. */
  extensions?: { cost: Record<string, number> };
}

export type Json = Record<string, unknown>;

/** An answer with its lists of names and values as objects, which are easier to compare. */
export const named = <T>(answer: T): T =>
  JSON.parse(JSON.stringify(answer), (_, value) =>
    Array.isArray(value) && value.length > 0 && value.every((one) => one?.name && 'value' in one)
      ? Object.fromEntries(value.map((one) => [one.name, one.value]))
      : value,
  );

export interface TestApi {
  readonly db: TestDatabase;
  readonly url: string;
  /** `http://host:port`, without the path. */
  readonly origin: string;
  readonly parts: ApiParts;
  /** A key of the administrator that the installation has made. */
  readonly adminKey: string;
  /** Schedulers woken since it was last emptied. */
  readonly wakes: Scheduler[];
  /** Told of them, too. */
  onWake: ((schedulers: readonly Scheduler[]) => void) | null;
  /** Whether peers fetch copies of what lies at its sites from it. */
  exports: boolean;
  /** Whether requests may have names of the release before. */
  hasFormer: boolean;
  /** What the log says, line by line. */
  readonly log: string[];
  /** One request. Answers of every kind are returned; throws only when there is none. */
  ask<T = Json>(query: string, variables?: object, key?: string | null): Promise<GraphqlAnswer<T>>;
  /** The same, for requests that must succeed. */
  must<T = Json>(query: string, variables?: object, key?: string): Promise<T>;
  /** An agent of the site says that it serves all of its machines. Answers its id. */
  serve(site: string, key: string): Promise<string>;
  /** A new user of this role, with a key. An AGENT's is for the site. */
  user(
    role: UserRole,
    name: string,
    siteId?: string,
  ): Promise<{ id: string; number: number; key: string; keyId: string }>;
  /** A stock graphql-ws client. */
  subscriber(key?: string, params?: Record<string, unknown>): Client;
}

let names = 0;
/** A name that no other test of the file uses. */
export const unique = (stem: string): string => `${stem}-${++names}`;

/** Gives the surrounding file an API. Call it while collecting. */
export function withApi(change: (config: ApiConfig) => ApiConfig = (config) => config): TestApi {
  const db = withDatabase();
  const log: string[] = [];
  const wakes: Scheduler[] = [];
  const clients: Client[] = [];
  let database: Database;
  let feed: EventFeed;
  let api: Api;
  let parts: ApiParts;
  let url = '';
  let adminKey = '';
  const filesDir = join(tmpdir(), `switchyard-files-${randomUUID()}`);

  beforeAll(async () => {
    database = openDatabase({
      url: db.url,
      poolSize: 10,
      connectTimeoutMs: 5_000,
      statementTimeoutMs: 30_000,
      applicationName: 'test-api',
    });
    const directory = openDirectory(database);
    const { adminId } = await directory.bootstrap();
    const store = new PostgresStore(database, {
      // Data of tests of peers come from servers on this host.
      reach: {
        dataHosts: ['127.0.0.1'],
        get publicUrl() {
          return self.exports ? self.origin : null;
        },
      },
    });
    const queries = new Queries(database);
    feed = new EventFeed(queries, { url: db.url });
    await feed.start();
    const destination = { write: (line: string) => void log.push(line) };
    parts = {
      config: change({
        host: '127.0.0.1',
        port: 0,
        introspection: true,
        portal: true,
        trustedProxies: [],
        tls: null,
        corsOrigins: [],
        tes: { ignoresImages: false, storage: [] },
        trustedDocuments: null,
        passwords: true,
        oidc: null,
        limits: {
          ...DEFAULT_LIMITS,
          requestsPerSecond: 100_000,
          requestsBurst: 100_000,
          strangersPerMinute: 100_000,
        },
      }),
      store,
      directory,
      queries,
      fileStore: { files: openFiles(database), blobs: new DirectoryBlobs(filesDir), retentionDays: 30 },
      exports: openExports(database),
      feed,
      mirror: new Mirror(store, { reservations: true }),
      wake: (schedulers) => {
        wakes.push(...schedulers);
        self.onWake?.(schedulers);
      },
      secrets: new Secrets(Buffer.alloc(32, 7)),
      unsubscribeToken: async (token) => readToken('secret', token),
      testWebhook: webhookTester({
        webhooks: new Webhooks(database, directory),
        sender: new Sender({ addresses: ['127.0.0.1'], timeoutMs: 5_000 }),
        now: () => Date.now() / 1000,
        source: async () => 'urn:switchyard:test',
      }),
      log: createLogger({ level: 'info', destination }),
      metrics: createMetrics(),
    };
    api = createApi(parts);
    url = await api.listen();
    const made = await directory.createApiKey(
      { userId: adminId, name: 'test', siteId: null, expiresAt: null },
      { userId: null, requestId: null },
    );
    if (made.kind === 'refused') throw new Error(made.message);
    adminKey = made.value.secret;
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.dispose()));
    await api?.close();
    await feed?.stop();
    await database?.close();
    rmSync(filesDir, { recursive: true, force: true });
  });

  const self: TestApi = {
    db,
    get url() {
      return url;
    },
    get origin() {
      return new URL(url).origin;
    },
    get parts() {
      return parts;
    },
    get adminKey() {
      return adminKey;
    },
    wakes,
    onWake: null,
    exports: false,
    hasFormer: false,
    log,
    async ask<T>(query: string, variables: object = {}, key: string | null = adminKey) {
      if (!self.hasFormer) refuseFormer(query, variables as Json);
      const response = await fetch(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/graphql-response+json, application/json',
          ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        },
        body: JSON.stringify({ query, variables }),
      });
      const body = (await response.json()) as Pick<GraphqlAnswer<T>, 'data' | 'errors'>;
      return { status: response.status, headers: response.headers, ...body };
    },
    async must<T>(query: string, variables: object = {}, key: string = adminKey) {
      const { data, errors } = await self.ask<T>(query, variables, key);
      if (errors) throw new Error(JSON.stringify(errors, null, 2));
      return data;
    },
    async serve(site, key) {
      const input = {
        site,
        identity: 'test',
        instance: '1',
        host: 'host',
        version: '1',
        protocol: 3,
        simulated: true,
      };
      const { registerAgent } = await self.must<{ registerAgent: { agent: { id: string } } }>(
        'mutation ($input: RegisterAgentInput!) { registerAgent(input: $input) { agent { id } } }',
        { input },
        key,
      );
      return registerAgent.agent.id;
    },
    async user(role, name, siteId) {
      const { createUser } = await self.must<{ createUser: { user: { id: string } } }>(
        'mutation ($input: CreateUserInput!) { createUser(input: $input) { user { id } } }',
        { input: { name, role } },
      );
      const { createApiKey } = await self.must<{ createApiKey: { secret: string; apiKey: { id: string } } }>(
        'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret apiKey { id } } }',
        { input: { userId: createUser.user.id, name: 'test', siteId } },
      );
      const number = Number(createUser.user.id.split('_')[1]);
      return { id: createUser.user.id, number, key: createApiKey.secret, keyId: createApiKey.apiKey.id };
    },
    subscriber(key = adminKey, params = {}) {
      const client = createClient({
        url: url.replace('http', 'ws'),
        webSocketImpl: WebSocket,
        connectionParams: { authorization: `Bearer ${key}`, ...params },
        retryAttempts: 0,
      });
      clients.push(client);
      return client;
    },
  };
  return self;
}
