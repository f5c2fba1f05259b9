/** The API process: GraphQL over HTTP and WebSocket, health, readiness and metrics, on one port. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ApolloServer } from '@apollo/server';
import express, { type RequestHandler } from 'express';
import type { GraphQLFormattedError } from 'graphql';
import type { Logger } from 'pino';
import type { Scheduler } from '../core/scheduler.js';
import type { Directory } from '../store/directory.js';
import type { EventFeed } from '../store/feed.js';
import type { Mirror } from '../store/mirror.js';
import type { Queries } from '../store/queries.js';
import type { Store } from '../store/store.js';
import { createAuthenticator, type Viewer } from './auth.js';
import type { ApiConfig } from './config.js';
import type { Context } from './context.js';
import { outward } from './errors.js';
import { mountGraphql } from './http.js';
import { createLoaders } from './loaders.js';
import type { ApiMetrics } from './metrics.js';
import { createPrepare } from './operations.js';
import { createRateLimits } from './rate-limit.js';
import { resolvers } from './resolvers/index.js';
import { createSchema } from './schema.js';
import { createServices } from './services/index.js';
import { isUnavailable } from './unavailable.js';
import { createWebSockets, type WebSockets } from './websocket.js';

export const GRAPHQL_PATH = '/graphql';

/** What the API is made of. */
export interface ApiParts {
  config: ApiConfig;
  store: Store;
  directory: Directory;
  queries: Queries;
  /** Started. */
  feed: EventFeed;
  /** Made with `reservations: true`. */
  mirror: Mirror;
  /** Tells schedulers (sites by their number) that there may be something to do. What it fails with is logged, no more. */
  wake(schedulers: readonly Scheduler[]): void | Promise<void>;
  log: Logger;
  metrics: ApiMetrics;
  /** Whether the service can work: resolves where it can, throws what is missing. Beside the database: migrations and the like. */
  ready?(): Promise<void>;
  /** The time by which the service goes, epoch seconds: the database's (store/clock.ts). This machine's if there is none. */
  now?: () => number;
}

export interface Api {
  /** Listens. Resolves to the address of the GraphQL endpoint. */
  listen(): Promise<string>;
  /** Where it listens; throws before `listen`. */
  readonly port: number;
  /** Takes no more requests, finishes those in hand, closes subscriptions so that clients go on elsewhere. */
  close(): Promise<void>;
}

type Phase =
  | { is: 'new' }
  | { is: 'listening'; apollo: ApolloServer<Context>; sockets: WebSockets }
  | { is: 'closing' }
  | { is: 'closed' };

/** How long a look at the database may take before the service counts as not ready. */
const READY_MS = 3_000;
/** Well below the gap after which a process counts as gone (store.ts, PRESENCE_GAP_S). */
const PRESENCE_MS = 5_000;
/** Of a client's own request id, what is taken over. */
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

export function createApi(parts: ApiParts): Api {
  const { config, log, metrics, queries } = parts;
  const { limits } = config;
  const { now = () => Date.now() / 1000 } = parts;
  let phase: Phase = { is: 'new' };

  const authenticator = createAuthenticator((secret) => parts.directory.findKey(secret, now()));
  const rates = createRateLimits(limits);
  const schema = createSchema(resolvers);
  const services = createServices({
    ...parts,
    limits,
    now,
    keysChanged: () => authenticator.forget(),
    wake(schedulers) {
      const failed = (error: unknown) =>
        log.warn({ err: error, schedulers }, 'wake-up failed; the slow timer makes up for it');
      try {
        void Promise.resolve(parts.wake(schedulers)).catch(failed);
      } catch (error) {
        failed(error);
      }
    },
  });

  // Agents' silence is only counted while there is an API to talk to: say that there is one.
  const processId = `api-${newRequestId()}`;
  const sayPresent = (): Promise<void> =>
    parts.store
      .processSeen(processId, 'api', now())
      .catch((error: unknown) => log.warn({ err: error }, 'could not say that the API is there'));
  let presence: NodeJS.Timeout | null = null;

  const createContext = (viewer: Viewer, requestId: string): Context => ({
    viewer,
    requestId,
    log: log.child({ requestId, keyId: viewer.keyId }),
    services,
    loaders: createLoaders(queries, now),
  });

  function toClient(error: unknown, { requestId }: { requestId: string }): GraphQLFormattedError {
    const { formatted, masked } = outward(error, requestId, isUnavailable);
    if (masked !== null)
      log.error({ requestId, err: masked, path: formatted.path }, 'a request failed unexpectedly');
    return formatted;
  }

  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  const server = createServer(
    {
      requestTimeout: limits.requestTimeoutMs,
      headersTimeout: Math.min(limits.requestTimeoutMs, 30_000),
      keepAliveTimeout: limits.keepAliveMs,
    },
    app,
  );
  server.maxConnections = limits.connectionsMax * 2;

  app.use(identifyRequest);
  app.get('/healthz', (_req, res) => {
    res.type('text/plain').send('alive\n');
  });
  app.get('/readyz', async (_req, res) => {
    const missing = await whatIsMissing();
    res
      .status(missing === null ? 200 : 503)
      .type('text/plain')
      .send(`${missing ?? 'ready'}\n`);
  });
  app.get('/metrics', async (_req, res) => {
    const { body, contentType } = await metrics.expose();
    res.setHeader('content-type', contentType);
    res.end(body);
  });

  /** Null when requests can be answered; otherwise what stands in the way, in a word that tells strangers nothing. */
  async function whatIsMissing(): Promise<string | null> {
    if (phase.is !== 'listening') return 'shutting down';
    const late = new Promise<never>((_, reject) => {
      setTimeout(() => reject(new Error('timeout')), READY_MS).unref();
    });
    try {
      // The policy is written when the schema is migrated and the installation set up.
      const policy = await Promise.race([queries.policy(), late]);
      if (policy === null) return 'not set up';
      if (parts.ready) await Promise.race([parts.ready(), late]);
      return null;
    } catch (error) {
      log.warn({ err: error }, 'not ready');
      return 'database not available';
    }
  }

  return {
    async listen() {
      if (phase.is !== 'new') throw new Error(`the API is ${phase.is}; accepted is one listen`);
      const shared = {
        server,
        path: GRAPHQL_PATH,
        schema,
        config,
        authenticator,
        metrics,
        consume: rates.consume,
        consumeStranger: rates.consumeStranger,
        createContext,
        toClient,
      };
      const apollo = await mountGraphql({ ...shared, app });
      const sockets = createWebSockets({ ...shared, prepare: createPrepare(schema, config), newRequestId });
      phase = { is: 'listening', apollo, sockets };
      server.listen(config.port, config.host);
      await once(server, 'listening');
      await sayPresent();
      presence = setInterval(sayPresent, PRESENCE_MS);
      return `http://${hostInUrl(config.host)}:${portOf(server.address())}${GRAPHQL_PATH}`;
    },
    get port() {
      return portOf(server.address());
    },
    async close() {
      if (phase.is !== 'listening') return;
      const { apollo, sockets } = phase;
      phase = { is: 'closing' };
      if (presence) clearInterval(presence);
      await sockets.close();
      // Its plugin closes the server, waits for the requests in hand, and then cuts off what is left.
      await apollo.stop();
      phase = { is: 'closed' };
    },
  };
}

const newRequestId = (): string => randomBytes(9).toString('base64url');

/** The client's own id where it is a plain one, so that logs of both sides can be laid side by side. */
const identifyRequest: RequestHandler = (req, res, next) => {
  const given = req.headers['x-request-id'];
  req.requestId = typeof given === 'string' && REQUEST_ID.test(given) ? given : newRequestId();
  res.setHeader('x-request-id', req.requestId);
  next();
};

function portOf(address: AddressInfo | string | null): number {
  if (address === null || typeof address === 'string') throw new Error('the API does not listen');
  return address.port;
}

const hostInUrl = (host: string): string =>
  host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host;
