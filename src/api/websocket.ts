/**
 * Subscriptions, and whatever else a client wants to run over graphql-ws, on the HTTP server's port.
 *
 * The key comes in `connectionParams.authorization` as it would in the header. A connection whose key has expired or was
 * revoked is closed with 4401, after which stock clients do not try again; at shutdown it is closed with 1001, after
 * which they reconnect and go on behind their cursor.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
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
import { CloseCode, type ConnectionInitMessage } from 'graphql-ws';
import { useServer } from 'graphql-ws/use/ws';
import { type WebSocket, WebSocketServer } from 'ws';
import { MAX } from '../platform/limits.js';
import { type Authenticator, sameViewer, type Viewer } from './auth.js';
import type { ApiConfig } from './config.js';
import type { Context } from './context.js';
import { ApiError, type outward } from './errors.js';
import type { ApiMetrics, OperationType } from './metrics.js';
import type { Prepare } from './operations.js';
import { watched } from './subscriptions/streams.js';

/** How often open connections' keys are looked at again. The authenticator may be half a second behind: together below 1 s. */
const KEY_CHECK_MS = 300;
/** A request over a WebSocket waits so long for `connection_init`. */
const INIT_WAIT_MS = 5_000;
const PING_MS = 15_000;

interface Connection {
  viewer: Viewer;
  authorization: string;
  socket: WebSocket;
  requestId: string;
}

export interface WebSocketParts {
  server: Server;
  path: string;
  schema: GraphQLSchema;
  config: ApiConfig;
  authenticator: Authenticator;
  prepare: Prepare;
  /** Takes one request from the key's allowance. Throws RATE_LIMITED. */
  consume(viewer: Viewer): Promise<void>;
  /** Throws RATE_LIMITED when an address has offered too many bad keys. */
  consumeStranger(address: string): Promise<void>;
  createContext(viewer: Viewer, requestId: string): Context;
  /** Masks and logs; see `outward`. */
  toClient(error: unknown, context: { requestId: string }): ReturnType<typeof outward>['formatted'];
  newRequestId(): string;
  metrics: ApiMetrics;
}

export interface WebSockets {
  close(): Promise<void>;
}

export function createWebSockets(parts: WebSocketParts): WebSockets {
  const { server, config, authenticator, prepare, metrics } = parts;
  const { limits } = config;
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: limits.bodyBytesMax,
    clientTracking: true,
  });
  const connections = new Set<Connection>();
  const opened = new WeakMap<WebSocket, Connection>();
  const subscriptionsOfKey = new Map<number, number>();

  function counted(keyId: number, by: 1 | -1): void {
    const count = (subscriptionsOfKey.get(keyId) ?? 0) + by;
    if (count > 0) subscriptionsOfKey.set(keyId, count);
    else subscriptionsOfKey.delete(keyId);
  }

  function count(type: OperationType, errors: readonly GraphQLError[] | undefined, started: bigint): void {
    metrics.operations.inc({
      type,
      code: errors?.[0] ? String(errors[0].extensions.code ?? 'BAD_REQUEST') : 'OK',
    });
    metrics.operationSeconds.observe({ type }, Number(process.hrtime.bigint() - started) / 1e9);
  }

  const upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const path = (request.url ?? '').split('?', 1)[0];
    if (path !== parts.path || connections.size >= limits.connectionsMax) {
      const status = path === parts.path ? '503 Service Unavailable' : '404 Not Found';
      socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) =>
      sockets.emit('connection', webSocket, request),
    );
  };
  server.on('upgrade', upgrade);

  const graphqlWs = useServer<ConnectionInitMessage['payload'], Partial<Record<PropertyKey, never>>>(
    {
      schema: parts.schema,
      connectionInitWaitTimeout: INIT_WAIT_MS,

      async onConnect(ctx) {
        const { socket, request } = ctx.extra;
        const address = request.socket.remoteAddress ?? '';
        const given = ctx.connectionParams?.authorization ?? ctx.connectionParams?.Authorization;
        const authorization = typeof given === 'string' ? given : (request.headers.authorization ?? '');
        try {
          const viewer = await authenticator.authenticate(authorization);
          const connection = { viewer, authorization, socket, requestId: parts.newRequestId() };
          opened.set(socket, connection);
          connections.add(connection);
          return true;
        } catch (error) {
          if (error instanceof ApiError) {
            const rated = await parts.consumeStranger(address).then(
              () => error,
              (limited: unknown) => (limited instanceof ApiError ? limited : error),
            );
            socket.close(CloseCode.Unauthorized, `${rated.code}: ${rated.message}`.slice(0, 120));
          } else {
            parts.toClient(error, { requestId: 'connection_init' });
            // The database is away: "try again later", which stock clients do.
            socket.close(1013, 'UNAVAILABLE');
          }
          // The socket is closing: graphql-ws must not acknowledge.
          return false;
        }
      },

      async onSubscribe(ctx, _id, payload) {
        const connection = opened.get(ctx.extra.socket);
        if (!connection) return [new ApiError('UNAUTHENTICATED', 'the connection is closing')];
        try {
          await parts.consume(connection.viewer);
          const document = prepare(payload.query, payload.operationName, payload.variables ?? {});
          if (!('kind' in document)) return document;
          return {
            schema: parts.schema,
            document,
            operationName: payload.operationName ?? null,
            variableValues: payload.variables ?? null,
            contextValue: parts.createContext(connection.viewer, parts.newRequestId()),
          };
        } catch (error) {
          return [asGraphQLError(error)];
        }
      },

      async execute(args) {
        const started = process.hrtime.bigint();
        const result = await execute(args);
        const type = getOperationAST(args.document, args.operationName)?.operation ?? 'query';
        count(type, result.errors, started);
        return result;
      },
      async subscribe(args) {
        const context = args.contextValue as Context;
        const { keyId } = context.viewer;
        if ((subscriptionsOfKey.get(keyId) ?? 0) >= limits.subscriptionsPerKey) {
          const message = `this key already has ${limits.subscriptionsPerKey} subscriptions, which is the limit`;
          return { errors: [new ApiError('LIMIT_EXCEEDED', message)] };
        }
        const started = process.hrtime.bigint();
        const field = rootFieldOf(args);
        const open = (by: 1 | -1): void => {
          counted(keyId, by);
          if (by > 0) metrics.subscriptions.inc({ field });
          else metrics.subscriptions.dec({ field });
        };
        // Counted before it is open: many may come at once.
        open(1);
        let result: Awaited<ReturnType<typeof subscribe>>;
        try {
          result = await subscribe(args);
        } catch (error) {
          open(-1);
          throw error;
        }
        count('subscription', 'errors' in result ? result.errors : undefined, started);
        if (Symbol.asyncIterator in result) {
          return watched(result as AsyncGenerator<ExecutionResult, void, void>, () => open(-1));
        }
        open(-1);
        return result;
      },

      onNext: (_ctx, _id, _payload, args, result) =>
        result.errors
          ? // Formatted errors are plain data, which is what goes over the wire.
            ({
              ...result,
              errors: result.errors.map((error) => parts.toClient(error, args.contextValue as Context)),
            } as unknown as ExecutionResult)
          : undefined,
      onError: (ctx, _id, _payload, errors) => {
        const requestId = opened.get(ctx.extra.socket)?.requestId ?? '';
        return errors.map((error) => parts.toClient(error, { requestId }));
      },
      onClose(ctx) {
        const connection = opened.get(ctx.extra.socket);
        if (connection) connections.delete(connection);
      },
    },
    sockets,
    PING_MS,
  );

  const keyCheck = setInterval(() => {
    const byKey = new Map<string, Connection[]>();
    for (const connection of connections) {
      // As bearer of the same key in the same role: an answer for one is an answer for all.
      const holders = byKey.get(connection.authorization);
      if (holders) holders.push(connection);
      else byKey.set(connection.authorization, [connection]);
    }
    for (const [authorization, holders] of byKey) {
      authenticator.goodViewer(authorization).then(
        (viewer) => {
          for (const connection of holders) {
            if (viewer && sameViewer(viewer, connection.viewer)) continue;
            connection.socket.close(
              CloseCode.Unauthorized,
              'UNAUTHENTICATED: the API key has expired or has been revoked',
            );
          }
        },
        // The database is away: nobody is thrown out for that.
        () => {},
      );
    }
    for (const { socket } of connections) {
      if (socket.bufferedAmount > MAX.socketBacklogBytes) socket.terminate();
    }
  }, KEY_CHECK_MS);
  keyCheck.unref();

  return {
    async close() {
      clearInterval(keyCheck);
      server.off('upgrade', upgrade);
      await graphqlWs.dispose();
      for (const socket of sockets.clients) socket.terminate();
    },
  };
}

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
