/** What clients ask for over graphql-ws: who they are, whether they may, and the answer within their share. */
import type { IncomingMessage } from 'node:http';
import {
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  subscribe,
} from 'graphql';
import { CloseCode, type ConnectionInitMessage, type ServerOptions, type SubscribePayload } from 'graphql-ws';
import type { WebSocket } from 'ws';
import { turns } from '../../platform/turns.js';
import type { Addresses } from '../addresses.js';
import { type Budget, charactersOf, givenUp } from '../admission/budget.js';
import type { Connections } from '../admission/connections.js';
import { accountOf, type Permit, type Shares } from '../admission/shares.js';
import { type Authenticator, ON_BEHALF_HEADER, onBehalfOf, type Viewer } from '../auth.js';
import type { ApiConfig } from '../config.js';
import type { Context } from '../context.js';
import { documentOf, type GivenDocument } from '../documents.js';
import { ApiError, type outward, refusedRequest } from '../errors.js';
import type { ApiMetrics, OperationType } from '../metrics.js';
import type { Prepare } from '../operations.js';
import { subscribeCompiled } from '../subscriptions/compiled.js';
import { type Recipient, SharedAnswers } from '../subscriptions/shared.js';
import { watched } from '../subscriptions/streams.js';
import { coerceVariables } from '../variables.js';
import type { Connected, Connection } from './connected.js';
import { TRY_LATER } from './incoming.js';
import { sent } from './send.js';

/** A connection waits so long for `connection_init`. */
const INIT_WAIT_MS = 5_000;
const CLOSED_FOR: ReadonlyMap<string, CloseCode> = new Map([
  ['UNAUTHENTICATED', CloseCode.Unauthorized],
  ['FORBIDDEN', CloseCode.Forbidden],
]);

export interface OperationParts {
  schema: GraphQLSchema;
  config: ApiConfig;
  authenticator: Authenticator;
  userByName: Parameters<typeof onBehalfOf>[2];
  prepare: Prepare;
  addresses: Addresses;
  connections: Connections;
  shares: Shares;
  connected: Connected;
  createContext(viewer: Viewer, requestId: string, budget: Budget): Context;
  /** Masks and logs; see `outward`. */
  toClient(error: unknown, context: { requestId: string }): ReturnType<typeof outward>['formatted'];
  newRequestId(): string;
  metrics: ApiMetrics;
}

export interface Extra {
  socket: WebSocket;
  request: IncomingMessage;
}

/** What is to be executed, and for which message of a client. */
interface Asked extends ExecutionArgs {
  socket: WebSocket;
  messageId: string;
}

/** What graphql-ws asks. */
export function handlersOf(parts: OperationParts): ServerOptions<ConnectionInitMessage['payload'], Extra> {
  const { connected, metrics } = parts;
  const answers = new SharedAnswers();
  return {
    schema: parts.schema,
    connectionInitWaitTimeout: INIT_WAIT_MS,
    onConnect: ({ extra, connectionParams }) => opens(parts, extra, connectionParams),
    onSubscribe: ({ extra }, id, payload) => prepared(parts, connected.of(extra.socket), id, payload),
    async execute(args) {
      const started = process.hrtime.bigint();
      const type = getOperationAST(args.document, args.operationName)?.operation ?? 'query';
      const result = await answer(args, type, parts);
      count(metrics, type, result.errors, started);
      return result;
    },
    // As `prepared` has made them.
    subscribe: (args) => follow(args as Asked, answers, parts),

    // Formatted errors are plain data, which is what goes over the wire; the types want the class.
    onNext: (_ctx, _id, _payload, args, result) => outwardly(parts, result, args) as ExecutionResult,
    onError: (ctx, _id, _payload, errors) => {
      const requestId = connected.of(ctx.extra.socket)?.requestId ?? '';
      return errors.map((error) => parts.toClient(error, { requestId }));
    },
    onClose(ctx) {
      const connection = connected.of(ctx.extra.socket);
      if (connection) connected.close(connection);
    },
  };
}

/** Whose the connection is; false: it is being closed. */
async function opens(
  parts: OperationParts,
  { socket, request }: Extra,
  params: ConnectionInitMessage['payload'],
): Promise<boolean> {
  const { authenticator, addresses, shares, connected } = parts;
  const given = { ...request.headers, ...lowerCase(params) };
  const authorization = String(given.authorization ?? '');
  const name = given[ON_BEHALF_HEADER];
  try {
    const holder = await authenticator.authenticate(authorization, addresses.of(request));
    const viewer = name === undefined ? holder : await onBehalfOf(holder, name, parts.userByName);
    const close = shares.open(viewer, 'connections');
    const requestId = parts.newRequestId();
    const connection = { viewer, holder, authorization, socket, requestId, close };
    connected.add(connection);
    // Until it is closed.
    parts.connections.recognized(request.socket, accountOf(viewer));
    // It has gone while its key was looked up.
    if (socket.readyState !== socket.OPEN) connected.close(connection);
    return true;
  } catch (error) {
    if (error instanceof ApiError) {
      const code = CLOSED_FOR.get(error.code) ?? TRY_LATER;
      socket.close(code, `${error.code}: ${error.message}`.slice(0, 120));
    } else {
      parts.toClient(error, { requestId: 'connection_init' });
      // The database is away.
      socket.close(TRY_LATER, 'UNAVAILABLE');
    }
    // The socket is closing: graphql-ws must not acknowledge.
    return false;
  }
}

/** What is to be executed, or why it is not. */
async function prepared(
  parts: OperationParts,
  connection: Connection | undefined,
  messageId: string,
  payload: SubscribePayload,
): Promise<Asked | readonly GraphQLError[]> {
  const { shares, config, prepare } = parts;
  if (!connection) return [new ApiError('UNAUTHENTICATED', 'the connection is closing')];
  try {
    const { viewer, socket } = connection;
    await shares.request(viewer);
    const query = documentOf(payload as GivenDocument, config.trustedDocuments);
    const found = prepare(String(query ?? ''), payload.operationName, payload.variables ?? {});
    if (!('document' in found)) return found;
    const budget = shares.update();
    budget.cost.estimated = found.cost;
    const { document, operation } = found;
    const given = payload.variables ?? {};
    const coerced = await coerceVariables(parts.schema, document, operation, given, () =>
      turns.turn(accountOf(viewer)),
    );
    if (coerced !== null && !('variables' in coerced)) return coerced;
    return {
      schema: parts.schema,
      document: coerced?.document ?? document,
      operationName: payload.operationName ?? null,
      variableValues: coerced?.variables ?? given,
      contextValue: parts.createContext(viewer, parts.newRequestId(), budget),
      ...{ socket, messageId },
    };
  } catch (error) {
    return [asGraphQLError(error)];
  }
}

/** Runs a query or mutation within the viewer's share, as HTTP does (http.ts). */
async function answer(
  args: ExecutionArgs,
  type: OperationType,
  { shares, config, createContext }: OperationParts,
): Promise<ExecutionResult> {
  const context = args.contextValue as Context;
  const { estimated } = context.budget.cost;
  let permit: Permit | null = null;
  try {
    permit = shares.enter(context.viewer);
    permit.budget.parsed(charactersOf(args.variableValues));
  } catch (error) {
    permit?.close();
    return { errors: [asGraphQLError(error)] };
  }
  const { budget, close } = permit;
  budget.cost.estimated = estimated;
  const contextValue = createContext(context.viewer, context.requestId, budget);
  const late = setTimeout(
    () => budget.end(refusedRequest('UNAVAILABLE', 'the request took too long; try again, or request less')),
    config.limits.answerTimeoutMs,
  );
  try {
    const result = await execute({ ...args, contextValue });
    const extensions = { ...result.extensions, cost: budget.cost };
    return budget.over ? { errors: [givenUp(budget.over, type)], extensions } : { ...result, extensions };
  } finally {
    clearTimeout(late);
    close();
  }
}

/** A subscription within the viewer's share, until it ends. */
async function follow(args: Asked, answers: SharedAnswers, parts: OperationParts) {
  const { shares, metrics } = parts;
  const context = args.contextValue as Context;
  let giveBack: () => void;
  try {
    // Counted before it is open: many may come at once.
    giveBack = shares.open(context.viewer, 'subscriptions');
  } catch (error) {
    return { errors: [asGraphQLError(error)] };
  }
  const started = process.hrtime.bigint();
  const field = rootFieldOf(args);
  metrics.subscriptions.inc({ field });
  const ended = (): void => {
    giveBack();
    metrics.subscriptions.dec({ field });
  };
  let result: Awaited<ReturnType<typeof subscribe>>;
  try {
    result =
      (field === 'assignments'
        ? await subscribeCompiled(args)
        : await answers.follow(field, args, recipientOf(args, parts))) ?? (await subscribe(args));
  } catch (error) {
    ended();
    throw error;
  }
  count(metrics, 'subscription', 'errors' in result ? result.errors : undefined, started);
  if (Symbol.asyncIterator in result) {
    return watched(result as AsyncGenerator<ExecutionResult, void, void>, ended);
  }
  ended();
  return result;
}

/** The `next` messages of graphql-ws, of which only the id differs between clients that are told the same. */
function recipientOf(args: Asked, parts: OperationParts): Recipient {
  const head = `{"id":${JSON.stringify(args.messageId)},"type":"next","payload":`;
  return {
    outward: (result) => outwardly(parts, result, args),
    send: (payload) => sent(args.socket, `${head}${payload}}`),
  };
}

/** A result as it goes over the wire. */
const outwardly = ({ toClient }: OperationParts, result: ExecutionResult, args: ExecutionArgs): object =>
  result.errors
    ? { ...result, errors: result.errors.map((error) => toClient(error, args.contextValue as Context)) }
    : result;

function count(
  metrics: ApiMetrics,
  type: OperationType,
  errors: readonly GraphQLError[] | undefined,
  started: bigint,
): void {
  metrics.operations.inc({
    type,
    code: errors?.[0] ? String(errors[0].extensions.code ?? 'BAD_REQUEST') : 'OK',
  });
  metrics.operationSeconds.observe({ type }, Number(process.hrtime.bigint() - started) / 1e9);
}

/** Connection parameters by names as headers have them. */
const lowerCase = (params: Readonly<Record<string, unknown>> | undefined): Record<string, unknown> =>
  Object.fromEntries(Object.entries(params ?? {}).map(([name, value]) => [name.toLowerCase(), value]));

/** The one field that a valid subscription asks for: a label of the metrics, so only names of the schema. */
function rootFieldOf({ document, operationName, schema }: ExecutionArgs): string {
  const selection = getOperationAST(document, operationName)?.selectionSet.selections[0];
  const name = selection?.kind === Kind.FIELD ? selection.name.value : '';
  return schema.getSubscriptionType()?.getFields()[name] ? name : 'other';
}

const asGraphQLError = (error: unknown): GraphQLError =>
  error instanceof GraphQLError
    ? error
    : new GraphQLError('', { originalError: error instanceof Error ? error : new Error(String(error)) });
