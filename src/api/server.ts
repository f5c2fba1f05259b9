/** The API process: GraphQL over HTTP and WebSocket, health, readiness and metrics, on one port. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { ApolloServer } from '@apollo/server';
import express, { type Request, type RequestHandler } from 'express';
import type { GraphQLFormattedError } from 'graphql';
import type { Logger } from 'pino';
import type { Scheduler } from '../core/scheduler.js';
import type { Secrets } from '../platform/secrets.js';
import type { KeyHolder } from '../store/directory/keys.js';
import type { SessionHolder } from '../store/directory/sign-ins.js';
import { type Directory, isSession } from '../store/directory.js';
import type { Exports } from '../store/federation/index.js';
import type { EventFeed } from '../store/feed.js';
import type { MailKind } from '../store/job-fields.js';
import type { Mirror } from '../store/mirror.js';
import type { Queries } from '../store/queries.js';
import type { Store } from '../store/store.js';
import { isUnavailable } from '../store/unavailable.js';
import { createAddresses } from './addresses.js';
import type { Budget } from './admission/budget.js';
import { watchConnections } from './admission/connections.js';
import { createMeasure } from './admission/cost.js';
import { createShares } from './admission/shares.js';
import { createAuthenticator, type Viewer } from './auth.js';
import type { ApiConfig, OidcConfig } from './config.js';
import type { Context } from './context.js';
import { ApiError, outward } from './errors.js';
import { mountGraphql } from './http.js';
import { createLoaders } from './loaders.js';
import type { ApiMetrics } from './metrics.js';
import { createOidc, type Identity, isToken } from './oidc.js';
import { createDocuments, createPrepare } from './operations.js';
import { mountPortal } from './portal.js';
import { resolvers } from './resolvers/index.js';
import { createSchema } from './schema.js';
import { handlesAll } from './services/access.js';
import { createFits, createResources } from './services/fit.js';
import { createServices } from './services/index.js';
import type { FileStore, WebhookAnswer } from './services/parts.js';
import { createRanks } from './services/ranks.js';
import { createHttpServer } from './tls.js';
import { mountUnsubscribe } from './unsubscribe-http.js';
import { createWebSockets, type WebSockets } from './websocket/server.js';

export const GRAPHQL_PATH = '/graphql';

/** What the API is made of. */
export interface ApiParts {
  config: ApiConfig;
  store: Store;
  directory: Directory;
  queries: Queries;
  /** Copies of our datasets for peers. */
  exports: Exports;
  fileStore: FileStore;
  /** Started. */
  feed: EventFeed;
  /** Made with `reservations: true`. */
  mirror: Mirror;
  /** Tells schedulers (sites by their number) that there may be something to do. What it fails with is logged, no more. */
  wake(schedulers: readonly Scheduler[]): void | Promise<void>;
  /** Sends a message to a webhook, and waits for the answer; null: there is none of this number. */
  testWebhook(id: number): Promise<WebhookAnswer | null>;
  /** Whose mail about what a token in a mail ends; null: it is none of ours. */
  unsubscribeToken(token: string): Promise<{ userId: number; kinds: MailKind[] } | null>;
  /** Encrypts what is kept for users; null: the operator has given no key. */
  secrets: Secrets | null;
  log: Logger;
  metrics: ApiMetrics;
  /** What stands in the way of answering requests, as far as is known without asking anybody; null: nothing. */
  missing?(): string | null;
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

/** Well below the gap after which a process counts as gone (store.ts, PRESENCE_GAP_S). */
const PRESENCE_MS = 5_000;
/** Who came without a key of ours; the rest is said by who vouches for them. */
const NOBODY = {
  ...{ keyId: null, sessionId: null, siteId: null, actsForUsers: false, onBehalfBy: null, expiresAtMs: null },
  role: 'USER',
} as const;
/** Of a client's own request id, what is taken over. */
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: puts parts together, in the order in which they start
export function createApi(parts: ApiParts): Api {
  const { config, log, metrics, queries } = parts;
  const { limits } = config;
  const { now = () => Date.now() / 1000 } = parts;
  let phase: Phase = { is: 'new' };

  const shares = createShares(limits);
  const addresses = createAddresses(config.trustedProxies);
  const oidc =
    config.oidc &&
    createOidc(config.oidc, (error) => log.warn({ err: error }, 'the identity provider cannot be reached'));
  const authenticator = createAuthenticator(async (secret) => {
    if (oidc && config.oidc && isToken(secret)) return ofToken(await oidc.identify(secret), config.oidc);
    if (isSession(secret))
      return config.passwords ? ofSession(await parts.directory.findSession(secret, now())) : null;
    return ofKey(await parts.directory.findKey(secret, now()));
  }, shares.strangers);

  async function ofToken(identity: Identity | null, { createUsers }: OidcConfig): Promise<Viewer | null> {
    const user =
      identity &&
      (await parts.directory.userOfIdentity({ ...identity, identity: identity.subject }, createUsers));
    if (identity === null || user === null) return null;
    const { expiresAtMs } = identity;
    return { ...NOBODY, userId: user.id, role: user.role, expiresAtMs };
  }
  const ofSession = (holder: SessionHolder | null): Viewer | null => holder && { ...NOBODY, ...holder };
  const ofKey = (holder: KeyHolder | null): Viewer | null => holder && { ...NOBODY, ...holder };

  const exportAuthenticator = createAuthenticator(async (secret) => {
    const userId = await services.exports.userOf(secret);
    return userId === null ? null : { ...NOBODY, userId };
  }, shares.strangers);

  const schema = createSchema(resolvers);
  const resources = createResources(queries, parts.directory, now);
  const measure = createMeasure(schema, limits);
  const services = createServices({
    ...parts,
    limits,
    shares,
    fits: createFits(resources),
    ranks: createRanks(resources, queries),
    oidcIssuer: config.oidc?.issuer ?? null,
    passwords: config.passwords,
    now,
    keysChanged: () => authenticator.forget(),
    agentRefused(fields) {
      metrics.agentRefusals.inc();
      log.error(fields, 'an agent was refused a machine');
    },
    siteReported(site, { waitingJobs, details: { calls } }) {
      const { requests, unanswered, listSeconds, jobs, othersWaiting, reportedAt } = metrics.siteScheduler;
      othersWaiting.set({ site }, waitingJobs);
      reportedAt.set({ site }, now());
      if (calls === null) return;
      requests.set({ site }, calls.made);
      unanswered.set({ site }, calls.failed);
      listSeconds.set({ site }, calls.listS);
      jobs.set({ site }, calls.jobs);
    },
    machineUnfit: (fields) =>
      log.error(fields, 'a machine gets no jobs: its hardware does not match its registration'),
    wake(schedulers) {
      const failed = (error: unknown) =>
        log.warn({ err: error, schedulers }, 'wake-up failed; the slow timer compensates for it');
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
      .catch((error: unknown) => log.warn({ err: error }, 'could not record that the API is running'));
  let presence: NodeJS.Timeout | null = null;

  const createContext = (viewer: Viewer, requestId: string, budget: Budget): Context => ({
    viewer,
    requestId,
    log: log.child({ requestId, keyId: viewer.keyId }),
    services,
    budget,
    loaders: createLoaders(queries, now, budget),
  });

  function toClient(error: unknown, { requestId }: { requestId: string }): GraphQLFormattedError {
    const { formatted, masked } = outward(error, requestId, isUnavailable);
    const about = { requestId, err: masked, path: formatted.path };
    if (formatted.extensions?.code === 'UNAVAILABLE')
      log.warn({ ...about, answer: formatted.message }, 'a request could not be served');
    else if (masked !== null) log.error(about, 'a request failed unexpectedly');
    return formatted;
  }

  const app = express();
  app.disable('x-powered-by');
  app.disable('etag');
  const listening = createHttpServer(
    {
      requestTimeout: limits.requestTimeoutMs,
      headersTimeout: Math.min(limits.requestTimeoutMs, 30_000),
      keepAliveTimeout: limits.keepAliveMs,
    },
    withoutPipelines(app),
    config.tls,
    (error) => {
      if (error === null) log.info('the certificate has been reloaded');
      else log.warn({ err: error }, 'the new certificate cannot be read; the previous one stays in use');
    },
  );
  const { server } = listening;
  const connections = watchConnections(server, config.tls ? 'secureConnection' : 'connection', addresses, {
    ofAddress: limits.addressConnections,
    // Those of WebSockets, and as many for requests.
    ofProcess: limits.connectionsMax * 2,
  });

  app.use(identifyRequest);
  app.get('/healthz', (_req, res) => {
    res.type('text/plain').send('alive\n');
  });
  app.get('/readyz', (_req, res) => {
    // Whoever may know more asks at METRICS_PORT.
    const isReady = phase.is === 'listening' && (parts.missing?.() ?? null) === null;
    res
      .status(isReady ? 200 : 503)
      .type('text/plain')
      .send(isReady ? 'ready\n' : 'not ready\n');
  });
  app.get('/metrics', async (req, res) => {
    const asked = await metricsViewer(req);
    if (typeof asked === 'number') {
      if (asked === 401) res.setHeader('www-authenticate', 'Bearer');
      return void res.status(asked).end();
    }
    const { body, contentType } = await metrics.expose();
    res.setHeader('content-type', contentType);
    res.end(body);
  });

  mountUnsubscribe(app, {
    read: parts.unsubscribeToken,
    unsubscribe: (userId, kinds) => parts.directory.unsubscribeMail(userId, kinds),
    failed: (error) => log.warn({ err: error }, 'an unsubscribe link could not be processed'),
  });

  /** The operator or administrator who asks for metrics, or the status for anybody else. */
  async function metricsViewer(req: Request): Promise<Viewer | number> {
    try {
      const viewer = await authenticator.authenticate(req.headers.authorization, addresses.of(req));
      return handlesAll(viewer) ? viewer : 403;
    } catch (error) {
      const known = { UNAUTHENTICATED: 401, FORBIDDEN: 403, RATE_LIMITED: 429 } as Record<string, number>;
      if (error instanceof ApiError) return known[error.code] ?? 503;
      log.warn({ err: error }, 'a key could not be looked up');
      return 503;
    }
  }

  return {
    async listen() {
      if (phase.is !== 'new') throw new Error(`the API is ${phase.is}; it can listen only once`);
      const documents = createDocuments(schema, config);
      const shared = {
        server,
        path: GRAPHQL_PATH,
        schema,
        config,
        authenticator,
        exportAuthenticator,
        userByName: (name: string) => queries.userByName(name),
        signIn: services.signIn,
        metrics,
        addresses,
        connections,
        shares,
        documents,
        measure,
        createContext,
        toClient,
      };
      if (config.portal) mountPortal(app, GRAPHQL_PATH, config);
      const apollo = await mountGraphql({ ...shared, app });
      const sockets = createWebSockets({
        ...shared,
        usersByIds: (ids) => queries.usersByIds(ids),
        prepare: createPrepare(documents, config, measure),
        newRequestId,
      });
      phase = { is: 'listening', apollo, sockets };
      server.listen(config.port, config.host);
      await once(server, 'listening');
      await sayPresent();
      presence = setInterval(sayPresent, PRESENCE_MS);
      return `${config.tls ? 'https' : 'http'}://${hostInUrl(config.host)}:${portOf(server.address())}${GRAPHQL_PATH}`;
    },
    get port() {
      return portOf(server.address());
    },
    async close() {
      if (phase.is !== 'listening') return;
      const { apollo, sockets } = phase;
      listening.close();
      phase = { is: 'closing' };
      if (presence) clearInterval(presence);
      await sockets.close();
      // Its plugin closes the server, waits for the requests in hand, and then cuts off what is left.
      await apollo.stop();
      phase = { is: 'closed' };
    },
  };
}

/** Requests that may come on one connection before those in front of them are answered. No client that is known sends a second one. */
const PIPELINED_MAX = 4;

/** Ends connections on which requests come faster than they are answered. */
function withoutPipelines(handle: RequestListener): RequestListener {
  const open = new WeakMap<Socket, number>();
  return (req, res) => {
    const { socket } = req;
    const count = (open.get(socket) ?? 0) + 1;
    if (count > PIPELINED_MAX) return void socket.destroy();
    open.set(socket, count);
    res.once('close', () => open.set(socket, (open.get(socket) ?? 1) - 1));
    handle(req, res);
  };
}

const newRequestId = (): string => randomUUID();

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
