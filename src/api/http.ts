/**
 * GraphQL over HTTP: Express takes the request in, Apollo runs it. What is ours here: who asks, how often and how much,
 * what an error may tell, and the status codes of the GraphQL-over-HTTP specification where Apollo's differ.
 */
import type { Server } from 'node:http';
import { ApolloServer, type ApolloServerPlugin, type GraphQLRequestListener } from '@apollo/server';
import {
  ApolloServerPluginCacheControlDisabled,
  ApolloServerPluginInlineTraceDisabled,
  ApolloServerPluginLandingPageDisabled,
  ApolloServerPluginSchemaReportingDisabled,
  ApolloServerPluginUsageReportingDisabled,
} from '@apollo/server/plugin/disabled';
import { ApolloServerPluginDrainHttpServer } from '@apollo/server/plugin/drainHttpServer';
import { expressMiddleware } from '@as-integrations/express5';
import cors from 'cors';
import type { ErrorRequestHandler, Express, Request, RequestHandler, Response } from 'express';
import { GraphQLError, type GraphQLFormattedError, type GraphQLSchema } from 'graphql';
import { MAX } from '../platform/limits.js';
import { turns } from '../platform/turns.js';
import type { Addresses } from './addresses.js';
import { type Budget, givenUp, UNBOUNDED } from './admission/budget.js';
import type { Connections } from './admission/connections.js';
import { type MeasureOperation, tooComplex } from './admission/cost.js';
import { accountOf, type Permit, type Shares } from './admission/shares.js';
import { type Authenticator, ON_BEHALF_HEADER, onBehalfOf, type Viewer } from './auth.js';
import { isJson, parsedBody, readBody } from './body.js';
import type { ApiConfig } from './config.js';
import type { Context } from './context.js';
import { documentOf, type GivenDocument } from './documents.js';
import { ApiError, notAccepted, refusedRequest, statusOf } from './errors.js';
import { receiveFile, sendExport, sendFile, sendInput } from './files-http.js';
import type { ErrorCode } from './generated/types.js';
import type { ApiMetrics } from './metrics.js';
import type { Documents } from './operations.js';
import { sendOutput } from './output-http.js';
import type { Services } from './services/index.js';
import { SIGN_IN, SIGN_IN_BYTES_MAX, SIGN_IN_PATH } from './sign-in-http.js';
import type { Ask } from './tes/operation.js';
import { openApi, ROUTES, TES_PATH } from './tes/routes.js';
import { coerceVariables } from './variables.js';

declare module 'express-serve-static-core' {
  interface Request {
    requestId: string;
    admitted?: Admitted;
  }
}

/** Who asks, and what the request may cost. */
interface Admitted {
  viewer: Viewer;
  permit: Permit;
}

export interface HttpParts {
  app: Express;
  server: Server;
  path: string;
  schema: GraphQLSchema;
  config: ApiConfig;
  authenticator: Authenticator;
  /** Of secrets by which copies of datasets are fetched: good for nothing else. */
  exportAuthenticator: Authenticator;
  userByName: Parameters<typeof onBehalfOf>[2];
  signIn: Services['signIn'];
  addresses: Addresses;
  connections: Connections;
  shares: Shares;
  documents: Documents;
  measure: MeasureOperation;
  createContext(viewer: Viewer, requestId: string, budget: Budget): Context;
  metrics: ApiMetrics;
  toClient(error: unknown, context: { requestId: string }): GraphQLFormattedError;
}

/** How long requests in hand may take to finish at shutdown. */
const DRAIN_MS = 5_000;
/** An unread body of a refused request is read all the same if it is not longer, so that the connection can be kept: a new one costs more. */
const SKIPPED_BYTES_MAX = 64 * 1024;

/** Mounts GraphQL on the app. Resolves to the Apollo server, which is started: stop it at the end. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: puts parts together, in the order in which they start
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
    // What was found good before Apollo is asked (withDocument) is not parsed and validated again.
    documentStore: parts.documents.store,
    plugins: [
      ApolloServerPluginLandingPageDisabled(),
      // Nothing says how long it may be cached, and this would look at each field for it.
      ApolloServerPluginCacheControlDisabled(),
      // Nothing goes to Apollo or its gateway, whatever variables are set; and nothing of theirs is loaded (scripts/prune.mjs).
      ApolloServerPluginUsageReportingDisabled(),
      ApolloServerPluginSchemaReportingDisabled(),
      ApolloServerPluginInlineTraceDisabled(),
      ApolloServerPluginDrainHttpServer({ httpServer: parts.server, stopGracePeriodMillis: DRAIN_MS }),
      complexity(parts),
      costs(parts),
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

  const identify: RequestHandler = async (req, res, next) => {
    // Only those with a key may make us read a body.
    if (req.method !== 'GET') await admitted(req, res);
    next();
  };
  const admitted = async (req: Request, res: Response): Promise<Admitted> => {
    if (req.admitted) return req.admitted;
    const asking = await parts.authenticator.authenticate(req.headers.authorization, parts.addresses.of(req));
    return letIn(asking, req, res);
  };
  /** What is fetched with a secret in its address counts as its user's. */
  const admittedBySecret = async (req: Request, res: Response): Promise<Admitted> =>
    letIn(
      await parts.exportAuthenticator.authenticate(`Bearer ${req.query.key}`, parts.addresses.of(req)),
      req,
      res,
    );
  const letIn = async (asking: Viewer, req: Request, res: Response): Promise<Admitted> => {
    const name = req.headers[ON_BEHALF_HEADER];
    const viewer = typeof name === 'string' ? await onBehalfOf(asking, name, parts.userByName) : asking;
    // Those that are refused take their turn too: who sends too many waits for the answers.
    await turns.turn(accountOf(viewer));
    await parts.shares.request(viewer);
    const permit = parts.shares.enter(viewer);
    const answered = parts.connections.recognized(req.socket, permit.account);
    const end = (): void => {
      permit.close();
      answered();
    };
    res.once('close', end);
    // The client had gone meanwhile.
    if (res.closed) end();
    req.admitted = { viewer, permit };
    return req.admitted;
  };

  for (const [path, admit, send] of [
    ['/jobs/:id/output', admitted, sendOutput],
    ['/jobs/:id/files/*path', admitted, sendFile],
    ['/files/:id', admitted, sendInput],
    ['/exports/:id', admittedBySecret, sendExport],
  ] as const) {
    app.get(
      path,
      answerInTime(parts),
      async (req: Request, res: Response) => {
        const { viewer, permit } = await admit(req, res);
        await send(parts.createContext(viewer, req.requestId, permit.budget), req, res);
      },
      refusals(parts),
    );
  }
  app.put(
    '/files/:id',
    answerInTime(parts),
    async (req: Request, res: Response) => {
      const { viewer, permit } = await admitted(req, res);
      const { budget, account } = permit;
      req.body = await readBody(req, MAX.filePartBytes, budget);
      await turns.turn(account);
      await receiveFile(parts.createContext(viewer, req.requestId, budget), req, res);
    },
    refusals(parts),
  );
  if (config.corsOrigins.length > 0) app.use([parts.path, TES_PATH, SIGN_IN_PATH], crossOrigin(config));
  for (const [path, answer] of Object.entries(SIGN_IN)) {
    app.post(
      SIGN_IN_PATH + path,
      answerInTime(parts),
      async (req: Request, res: Response) => {
        const body = await readStranger(req);
        const given = new AbortController();
        res.once('close', () => given.abort(new Error('nobody waits for the answer')));
        const from = {
          address: parts.addresses.of(req),
          agent: req.headers['user-agent'] ?? '',
          requestId: req.requestId,
          signal: given.signal,
        };
        res.setHeader('cache-control', 'no-store');
        res.json(await answer(parts.signIn, body, from));
      },
      refusals(parts),
    );
  }
  app.get(`${TES_PATH}/openapi.yaml`, (_req, res) => void res.type('application/yaml').send(openApi()));
  for (const { method, path, answer } of ROUTES) {
    app[method](
      TES_PATH + path,
      answerInTime(parts),
      basicAsBearer,
      identify,
      withBody(config),
      async (req: Request, res: Response) => {
        const { viewer, permit } = await admitted(req, res);
        const context = parts.createContext(viewer, req.requestId, permit.budget);
        res.json(await answer(asking(apollo, context), req, config.tes));
      },
      refusals(parts),
    );
  }
  app.use(
    parts.path,
    answerInTime(parts),
    identify,
    withBody(config),
    withDocument(parts),
    expressMiddleware(apollo, {
      async context({ req, res }) {
        try {
          const { viewer, permit } = await admitted(req, res);
          return parts.createContext(viewer, req.requestId, permit.budget);
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

/** Runs operations as they run for clients of GraphQL. */
function asking(apollo: ApolloServer<Context>, contextValue: Context): Ask {
  return async <Answer, Variables extends object>(query: string, variables: Variables) => {
    const { body } = await apollo.executeOperation<Answer, Variables>({ query, variables }, { contextValue });
    if (body.kind !== 'single') throw new Error('an answer in parts, which nothing here asks for');
    const { data, errors: [error] = [] } = body.singleResult;
    if (error)
      throw new ApiError(error.extensions?.code as ErrorCode, error.message, { ...error.extensions });
    return data as Answer;
  };
}

/** Clients of TES may send the key as the password of anybody. */
const basicAsBearer: RequestHandler = (req, _res, next) => {
  const [, encoded] = /^basic (\S+)$/i.exec(req.headers.authorization ?? '') ?? [];
  if (encoded !== undefined) {
    const [, password = ''] = /^[^:]*:(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? [];
    req.headers.authorization = `Bearer ${password}`;
  }
  next();
};

/** Answers browsers that ask whether pages of other sites may use the API. Keys come in a header, never in a cookie. */
const crossOrigin = ({ corsOrigins }: ApiConfig): RequestHandler =>
  cors({
    origin: corsOrigins.includes('*') ? '*' : [...corsOrigins],
    methods: ['GET', 'POST'],
    exposedHeaders: ['x-request-id', 'retry-after'],
    maxAge: 600,
  });

/** The body of somebody whom nobody knows yet. */
async function readStranger(req: Request): Promise<unknown> {
  if (!isJson(req))
    throw refusedRequest('BAD_USER_INPUT', 'accepted: a body of JSON (Content-Type: application/json)');
  return parsedBody(await readBody(req, SIGN_IN_BYTES_MAX, UNBOUNDED), UNBOUNDED);
}

/** Reads bodies of JSON, and goes on in a turn of whose request it is. Clients may name the type of a body that they do not send: that is none. */
function withBody({ limits }: ApiConfig): RequestHandler {
  return async (req, _res, next) => {
    if (req.admitted && isJson(req)) {
      const { budget, account } = req.admitted.permit;
      const body = await readBody(req, limits.bodyBytesMax, budget);
      await turns.turn(account);
      if (body.length > 0) req.body = await parsedBody(body, budget);
    }
    next();
  };
}

/** Puts the text of the query where Apollo looks for it, whichever way the request names it. Express 5 leaves the body of a GET undefined. */
function withDocument({ config: { trustedDocuments }, documents }: HttpParts): RequestHandler {
  return (req, _res, next) => {
    req.body ??= {};
    const given = req.method === 'GET' ? queryOf(req) : (req.body as unknown);
    if (given === null || typeof given !== 'object' || Array.isArray(given)) return next();
    const { documentId: _, extensions, ...rest } = given as GivenDocument;
    const query = documentOf(given, trustedDocuments);
    if (req.admitted && typeof query === 'string') documents.admit(query);
    const others = withoutId(extensions);
    const named = { ...rest, ...(query === undefined ? {} : { query }) };
    if (req.method === 'GET') {
      const search = new URLSearchParams(named as Record<string, string>);
      if (extensions !== undefined) search.set('extensions', JSON.stringify(others));
      req.url = `${req.path}?${search}`;
    } else req.body = extensions === undefined ? named : { ...named, extensions: others };
    next();
  };
}

/** Apollo would answer an id itself, and says what is wrong with extensions that are no object. */
function withoutId(extensions: unknown): unknown {
  if (extensions === null || typeof extensions !== 'object' || Array.isArray(extensions)) return extensions;
  const { persistedQuery: _, ...others } = extensions as Record<string, unknown>;
  return others;
}

/** What a GET asks for; null: for nothing, as a browser that opens the address does. */
function queryOf(req: Request): GivenDocument | null {
  const { searchParams } = new URL(req.url, 'http://here');
  if (!['query', 'documentId', 'extensions'].some((name) => searchParams.has(name))) return null;
  const given: Record<string, unknown> = Object.fromEntries(searchParams);
  if (typeof given.extensions === 'string') {
    try {
      given.extensions = JSON.parse(given.extensions);
    } catch {
      throw new ApiError('BAD_USER_INPUT', notAccepted('extensions', given.extensions, 'a JSON object'));
    }
  }
  return given;
}

/** Gives up an answer that takes too long. What it waits for is bounded too, by the database's statement timeout. */
function answerInTime(parts: HttpParts): RequestHandler {
  return (req, res, next) => {
    const timer = setTimeout(() => {
      const error = refusedRequest('UNAVAILABLE', 'the request took too long; try again, or request less');
      req.admitted?.permit.budget.end(error);
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
    sendError(parts, req, res, error);
  };
}

function sendError(parts: HttpParts, req: Request, res: Response, error: unknown): void {
  const formatted = parts.toClient(error, { requestId: req.requestId });
  for (const [name, value] of headOf(error)?.headers ?? []) res.setHeader(name, value);
  const type = accepts(req.headers.accept) ? 'application/graphql-response+json' : 'application/json';
  res.statusCode = headOf(error)?.status ?? statusOf(formatted.extensions?.code);
  res.setHeader('content-type', `${type}; charset=utf-8`);
  // A long body is not read to skip over it: the connection ends with the answer.
  if (!req.complete && !(Number(req.headers['content-length']) <= SKIPPED_BYTES_MAX))
    res.setHeader('connection', 'close');
  res.end(`${JSON.stringify({ errors: [formatted] })}\n`);
}

interface HttpHead {
  status?: number;
  headers?: ReadonlyMap<string, string>;
}

const headOf = (error: unknown): HttpHead | undefined =>
  error instanceof GraphQLError ? (error.extensions.http as HttpHead | undefined) : undefined;

const accepts = (accept: string | undefined): boolean =>
  accept?.includes('application/graphql-response+json') ?? false;

/** Refuses operations that ask for too much, or that HTTP cannot answer, before anything of them runs. */
function complexity({ measure, config, schema, toClient }: HttpParts): ApolloServerPlugin<Context> {
  return {
    async requestDidStart(): Promise<GraphQLRequestListener<Context>> {
      let faults: readonly GraphQLError[] | null = null;
      return {
        async didResolveOperation(operationContext) {
          const { document, operation, request, contextValue } = operationContext;
          const { budget } = contextValue;
          if (!operation) return;
          if (operation.operation === 'subscription') {
            const extensions = { code: 'BAD_REQUEST', http: { status: 400 } };
            throw new GraphQLError('subscriptions require a WebSocket (graphql-ws) at the same address', {
              extensions,
            });
          }
          const measured = measure(document, operation, request.variables ?? {});
          budget.cost.estimated = measured.cost;
          const error = tooComplex(measured, config.limits);
          if (error) throw error;
          const variables = request.variables ?? {};
          const coerced = await coerceVariables(schema, document, operation, variables, () =>
            nextTurn(contextValue),
          );
          if (coerced === null) return;
          if ('variables' in coerced) {
            // What is here is what Apollo executes, though its types do not say so.
            Object.assign(operationContext, { document: coerced.document });
            request.variables = { ...coerced.variables };
          } else faults = coerced;
        },
        async responseForOperation({ response, contextValue }) {
          if (faults === null) return null;
          const errors = faults.map((fault) => toClient(fault, contextValue));
          return {
            http: { ...response.http, status: 400 },
            body: { kind: 'single', singleResult: { errors } },
          };
        },
      };
    },
  };
}

/** Waits for a turn of the viewer's. Throws when the operation goes no further. */
async function nextTurn({ viewer, budget }: Pick<Context, 'viewer' | 'budget'>): Promise<void> {
  await turns.turn(accountOf(viewer));
  if (budget.over) throw budget.over;
}

/** Says what an operation has cost. Of one that went beyond its budget nothing is answered but that. */
function costs({ toClient }: HttpParts): ApolloServerPlugin<Context> {
  return {
    async requestDidStart(): Promise<GraphQLRequestListener<Context>> {
      return {
        async willSendResponse({ operation, response: { body, http }, contextValue }) {
          if (!operation || body.kind !== 'single') return;
          const { budget } = contextValue;
          if (budget.over) {
            const error = givenUp(budget.over, operation.operation);
            body.singleResult = { errors: [toClient(error, contextValue)] };
            http.status = headOf(error)?.status ?? 500;
          }
          body.singleResult.extensions = { ...body.singleResult.extensions, cost: budget.cost };
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
