/**
 * GraphQL over HTTP: Express takes the request in, Apollo runs it. What is ours here: who asks, how often and how much,
 * what an error may tell, and the status codes of the GraphQL-over-HTTP specification where Apollo's differ.
 */
import type { Server } from 'node:http';
import { ApolloServer, type ApolloServerPlugin, type GraphQLRequestListener } from '@apollo/server';
import { ApolloServerPluginLandingPageDisabled } from '@apollo/server/plugin/disabled';
import { ApolloServerPluginDrainHttpServer } from '@apollo/server/plugin/drainHttpServer';
import { expressMiddleware } from '@as-integrations/express5';
import express, {
  type ErrorRequestHandler,
  type Express,
  type Request,
  type RequestHandler,
  type Response,
} from 'express';
import { GraphQLError, type GraphQLFormattedError, type GraphQLSchema } from 'graphql';
import type { Authenticator, Viewer } from './auth.js';
import { measure, tooComplex } from './complexity.js';
import type { ApiConfig } from './config.js';
import type { Context } from './context.js';
import { ApiError, refusedRequest } from './errors.js';
import type { ApiMetrics } from './metrics.js';

declare module 'express-serve-static-core' {
  interface Request {
    requestId: string;
    viewer?: Viewer;
  }
}

export interface HttpParts {
  app: Express;
  server: Server;
  path: string;
  schema: GraphQLSchema;
  config: ApiConfig;
  authenticator: Authenticator;
  consume(viewer: Viewer): Promise<void>;
  consumeStranger(address: string): Promise<void>;
  createContext(viewer: Viewer, requestId: string): Context;
  metrics: ApiMetrics;
  toClient(error: unknown, context: { requestId: string }): GraphQLFormattedError;
}

/** How long requests in hand may take to finish at shutdown. */
const DRAIN_MS = 5_000;

/** Mounts GraphQL on the app. Resolves to the Apollo server, which is started: stop it at the end. */
export async function mountGraphql(parts: HttpParts): Promise<ApolloServer<Context>> {
  const { app, config, schema } = parts;
  // Apollo formats errors without saying whose: these two know.
  const requestIds = new WeakMap<Error, string>();
  const remember = (error: unknown, requestId: string): void => {
    if (error instanceof Error) requestIds.set(error, requestId);
  };

  const apollo = new ApolloServer<Context>({
    schema,
    introspection: config.introspection,
    hideSchemaDetailsFromClientErrors: !config.introspection,
    // Browsers ask first (preflight) before they send any of these from another site; without one a request is refused.
    csrfPrevention: {
      requestHeaders: ['authorization', 'apollo-require-preflight', 'x-apollo-operation-name'],
    },
    persistedQueries: false,
    includeStacktraceInErrorResponses: false,
    stopOnTerminationSignals: false,
    nodeEnv: 'production',
    parseOptions: { maxTokens: config.limits.tokensMax },
    plugins: [
      ApolloServerPluginLandingPageDisabled(),
      ApolloServerPluginDrainHttpServer({ httpServer: parts.server, stopGracePeriodMillis: DRAIN_MS }),
      complexity(schema, config),
      statusCodes(),
      counting(parts.metrics),
      {
        async requestDidStart() {
          return {
            async didEncounterErrors({ errors, contextValue }) {
              for (const error of errors) remember(error, contextValue.requestId);
            },
          };
        },
      },
    ],
    formatError: (_formatted, error) =>
      parts.toClient(error, { requestId: (error instanceof Error && requestIds.get(error)) || '' }),
  });
  await apollo.start();

  const identify: RequestHandler = async (req, _res, next) => {
    // Only those with a key may make us read a body.
    if (req.method !== 'GET') await viewerOf(req);
    next();
  };
  const viewerOf = async (req: Request): Promise<Viewer> => {
    if (req.viewer) return req.viewer;
    try {
      req.viewer = await parts.authenticator.authenticate(req.headers.authorization);
    } catch (error) {
      if (error instanceof ApiError) await parts.consumeStranger(req.socket.remoteAddress ?? '');
      throw error;
    }
    await parts.consume(req.viewer);
    return req.viewer;
  };

  app.use(
    parts.path,
    answerInTime(parts),
    identify,
    express.json({ limit: config.limits.bodyBytesMax, type: ['application/json'] }),
    withBody,
    expressMiddleware(apollo, {
      async context({ req }) {
        try {
          return parts.createContext(await viewerOf(req), req.requestId);
        } catch (error) {
          const known = error instanceof GraphQLError ? error : wrapped(error);
          remember(known, req.requestId);
          throw known;
        }
      },
    }),
    refusals(parts),
  );
  return apollo;
}

const wrapped = (error: unknown): GraphQLError =>
  new GraphQLError('', { originalError: error instanceof Error ? error : new Error(String(error)) });

/** Express 5 leaves the body of a GET undefined, which the integration takes for a missing parser. */
const withBody: RequestHandler = (req, _res, next) => {
  req.body ??= {};
  next();
};

/** Gives up an answer that takes too long. What it waits for is bounded too, by the database's statement timeout. */
function answerInTime(parts: HttpParts): RequestHandler {
  return (req, res, next) => {
    const timer = setTimeout(() => {
      const error = refusedRequest('UNAVAILABLE', 'the request took too long; try again, or request less');
      if (!res.headersSent) sendError(parts, req, res, error);
    }, parts.config.limits.answerTimeoutMs);
    res.once('close', () => clearTimeout(timer));
    next();
  };
}

/** Whatever fails before or around Apollo, in the form of a GraphQL answer. */
function refusals(parts: HttpParts): ErrorRequestHandler {
  return (error: unknown, req, res, _next) => {
    if (res.headersSent) return;
    sendError(parts, req, res, ofBodyParser(error, parts.config) ?? error);
  };
}

/** What the body parser did not like: not JSON, too large, a charset that it does not know. */
function ofBodyParser(error: unknown, config: ApiConfig): GraphQLError | null {
  const { type, status } = (error ?? {}) as { type?: unknown; status?: unknown };
  if (typeof type !== 'string' || typeof status !== 'number') return null;
  if (type === 'entity.too.large') {
    return refusedRequest(
      'LIMIT_EXCEEDED',
      `the request is too large; accepted: up to ${config.limits.bodyBytesMax} bytes`,
    );
  }
  const message =
    type === 'entity.parse.failed' ? 'the body is not JSON' : `the body cannot be read (${type})`;
  return new GraphQLError(message, { extensions: { code: 'BAD_REQUEST', http: { status } } });
}

function sendError(parts: HttpParts, req: Request, res: Response, error: unknown): void {
  const formatted = parts.toClient(error, { requestId: req.requestId });
  const http = error instanceof GraphQLError ? (error.extensions.http as HttpHead | undefined) : undefined;
  for (const [name, value] of http?.headers ?? []) res.setHeader(name, value);
  const type = accepts(req.headers.accept) ? 'application/graphql-response+json' : 'application/json';
  res.statusCode = http?.status ?? (formatted.extensions?.code === 'UNAVAILABLE' ? 503 : 500);
  res.setHeader('content-type', `${type}; charset=utf-8`);
  // An unread body cannot be skipped over: the connection ends with the answer.
  if (!req.complete) res.setHeader('connection', 'close');
  res.end(`${JSON.stringify({ errors: [formatted] })}\n`);
}

interface HttpHead {
  status?: number;
  headers?: ReadonlyMap<string, string>;
}

const accepts = (accept: string | undefined): boolean =>
  accept?.includes('application/graphql-response+json') ?? false;

/** Refuses operations that ask for too much, or that HTTP cannot answer, before anything of them runs. */
function complexity(schema: GraphQLSchema, config: ApiConfig): ApolloServerPlugin<Context> {
  return {
    async requestDidStart(): Promise<GraphQLRequestListener<Context>> {
      return {
        async didResolveOperation({ document, operation, request }) {
          if (!operation) return;
          if (operation.operation === 'subscription') {
            const extensions = { code: 'BAD_REQUEST', http: { status: 400 } };
            throw new GraphQLError('subscriptions require a WebSocket (graphql-ws) at the same address', {
              extensions,
            });
          }
          const error = tooComplex(
            measure(schema, document, operation, request.variables ?? {}),
            config.limits,
          );
          if (error) throw error;
        },
      };
    },
  };
}

/** Counts operations by outcome, and how long they took. */
function counting(metrics: ApiMetrics): ApolloServerPlugin<Context> {
  return {
    async requestDidStart(): Promise<GraphQLRequestListener<Context>> {
      const started = process.hrtime.bigint();
      return {
        async willSendResponse({ operation, response: { body } }) {
          const type = operation?.operation ?? 'query';
          const errors = body.kind === 'single' ? body.singleResult.errors : undefined;
          metrics.operations.inc({ type, code: String(errors?.[0]?.extensions?.code ?? 'OK') });
          metrics.operationSeconds.observe({ type }, Number(process.hrtime.bigint() - started) / 1e9);
        },
      };
    },
  };
}

/**
 * The specification wants 200 where a client accepts only application/json and the request was well-formed JSON: an old
 * client must be able to read why its query is not valid. Apollo answers 400.
 */
function statusCodes(): ApolloServerPlugin<Context> {
  const languageErrors: ReadonlySet<unknown> = new Set([
    'GRAPHQL_PARSE_FAILED',
    'GRAPHQL_VALIDATION_FAILED',
    'OPERATION_RESOLUTION_FAILURE',
    'BAD_USER_INPUT',
  ]);
  return {
    async requestDidStart(): Promise<GraphQLRequestListener<Context>> {
      return {
        async willSendResponse({ request, response }) {
          const { body, http } = response;
          if (http.status !== 400 || body.kind !== 'single') return;
          if (accepts(request.http?.headers.get('accept'))) return;
          if (body.singleResult.errors?.every((error) => languageErrors.has(error.extensions?.code)))
            http.status = 200;
        },
      };
    },
  };
}
