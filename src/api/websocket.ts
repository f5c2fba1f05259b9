/**
 * Subscriptions, and whatever else a client wants to run over graphql-ws, on the HTTP server's port.
 *
 * What HTTP has in headers, the key and the user for whom a trusted portal asks, comes in connection parameters of the same names. A
 * connection whose key has expired or was revoked is closed with 4401, after which stock clients do not try again, and with 4403 when
 * its user may not be asked for any more; at shutdown it is closed with 1001, after which they reconnect and go on behind their cursor.
 */
import { once } from 'node:events';
import type { IncomingMessage, Server } from 'node:http';
import type { Duplex } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
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
import { CloseCode, type ConnectionInitMessage, handleProtocols, makeServer } from 'graphql-ws';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import { MAX } from '../platform/limits.js';
import { type Account, turns } from '../platform/turns.js';
import type { Addresses } from './addresses.js';
import { type Budget, charactersOf, givenUp } from './admission/budget.js';
import type { Connections } from './admission/connections.js';
import { accountOf, Counter, type Permit, type Shares } from './admission/shares.js';
import {
  type Authenticator,
  isAskedFor,
  ON_BEHALF_HEADER,
  onBehalfOf,
  sameViewer,
  type Viewer,
} from './auth.js';
import type { ApiConfig } from './config.js';
import type { Context } from './context.js';
import { documentOf, type GivenDocument } from './documents.js';
import { ApiError, type outward, refusedRequest } from './errors.js';
import type { UserRole } from './generated/types.js';
import { inflowOf, paced } from './inflow.js';
import { parseJson } from './json.js';
import type { ApiMetrics, OperationType } from './metrics.js';
import type { Prepare } from './operations.js';
import { watched } from './subscriptions/streams.js';
import { coerceVariables } from './variables.js';

/** How often open connections' keys are looked at again. The authenticator may be half a second behind: together below 1 s. */
const KEY_CHECK_MS = 300;
/** A connection waits so long for `connection_init`, and takes so many bytes until then: a key and what a client says of itself. */
const INIT_WAIT_MS = 5_000;
const INIT_BYTES_MAX = 16 * 1024;
/** Who does not read what is sent to him is not listened to beyond this. */
const UNREAD_BYTES = 1024 * 1024;
/** What has come of a message that is not whole yet, and is not worth counting. */
const PART_BYTES = 64 * 1024;
/** "Try again later", which stock clients do. */
const TRY_LATER = 1013;
const CLOSED_FOR: ReadonlyMap<string, CloseCode> = new Map([
  ['UNAUTHENTICATED', CloseCode.Unauthorized],
  ['FORBIDDEN', CloseCode.Forbidden],
]);
const TOO_BIG = 1009;
const PING_MS = 15_000;
/** Clients have so long to close their side when the service stops. */
const CLOSE_MS = 2_000;

/** What a message says; a text where that is nothing that a client may say. */
type Parse = (message: Buffer) => Promise<unknown>;

interface Connection {
  viewer: Viewer;
  /** The holder of the key: other than the viewer where a portal asks for a user. */
  holder: Viewer;
  authorization: string;
  socket: WebSocket;
  requestId: string;
  /** Gives its share back. */
  close(): void;
}

export interface WebSocketParts {
  server: Server;
  path: string;
  schema: GraphQLSchema;
  config: ApiConfig;
  authenticator: Authenticator;
  userByName: Parameters<typeof onBehalfOf>[2];
  usersByIds(ids: readonly number[]): Promise<{ id: number; role: UserRole; active: boolean }[]>;
  prepare: Prepare;
  addresses: Addresses;
  connections: Connections;
  shares: Shares;
  createContext(viewer: Viewer, requestId: string, budget: Budget): Context;
  /** Masks and logs; see `outward`. */
  toClient(error: unknown, context: { requestId: string }): ReturnType<typeof outward>['formatted'];
  newRequestId(): string;
  metrics: ApiMetrics;
}

export interface WebSockets {
  close(): Promise<void>;
}

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: its short functions share its connections
export function createWebSockets(parts: WebSocketParts): WebSockets {
  const { server, config, authenticator, prepare, metrics, shares, addresses } = parts;
  const { limits } = config;
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: limits.messageBytesMax,
    clientTracking: true,
    // Once for all pings of a piece.
    autoPong: false,
    handleProtocols,
  });
  const connections = new Set<Connection>();
  const opened = new WeakMap<WebSocket, Connection>();
  /** Behind proxies the addresses of clients; others are counted where they connect (server.ts). */
  const forwarded = new Counter();

  function count(type: OperationType, errors: readonly GraphQLError[] | undefined, started: bigint): void {
    metrics.operations.inc({
      type,
      code: errors?.[0] ? String(errors[0].extensions.code ?? 'BAD_REQUEST') : 'OK',
    });
    metrics.operationSeconds.observe({ type }, Number(process.hrtime.bigint() - started) / 1e9);
  }

  const upgrade = async (request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> => {
    const path = (request.url ?? '').split('?', 1)[0];
    const address = addresses.isProxy(request.socket.remoteAddress) ? addresses.of(request) : null;
    const stranger: Account = { name: `address ${addresses.of(request)}`, rank: 'people' };
    // One that breaks while it waits; ws listens itself from the upgrade on.
    socket.on('error', () => socket.destroy());
    await turns.turn(stranger);
    const refusal =
      path !== parts.path
        ? '404 Not Found'
        : // Counted from here on, with a key or without one.
          sockets.clients.size >= limits.connectionsMax && !giveWay()
          ? '503 Service Unavailable'
          : address !== null && forwarded.of(address) >= limits.addressConnections
            ? '429 Too Many Requests'
            : null;
    if (refusal !== null) {
      socket.end(`HTTP/1.1 ${refusal}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
      return;
    }
    if (address !== null) {
      forwarded.change(address, 1);
      socket.once('close', () => forwarded.change(address, -1));
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      serve(webSocket, request, listen(webSocket, socket, stranger));
    });
  };

  /** Ends the connection that has waited longest without saying whose it is. False: all have said it. */
  function giveWay(): boolean {
    for (const webSocket of sockets.clients) {
      if (opened.has(webSocket) || webSocket.readyState !== webSocket.OPEN) continue;
      webSocket.terminate();
      return true;
    }
    return false;
  }

  /**
   * Sees that a connection does not make us keep more than it may: little before it has shown a key, then whole messages, each until it has
   * been parsed. The answer parses one, behind those before it; nothing more is taken in meanwhile.
   */
  function listen(webSocket: WebSocket, socket: Duplex, stranger: Account): Parse {
    let pinged: Buffer | null = null;
    let parsing: Promise<unknown> = Promise.resolve();
    const weight = weighed(webSocket);
    const inflow = inflowOf(socket) ?? paced(socket, stranger);
    inflow.account = stranger;
    inflow.before = async () => {
      if (socket.writableLength > UNREAD_BYTES) await drained(socket);
      await parsing;
      const connection = opened.get(webSocket);
      if (connection) inflow.account = accountOf(connection.viewer);
    };
    inflow.take = (piece, hand) => {
      weight.arrived(piece.length);
      hand();
      if (pinged && webSocket.readyState === webSocket.OPEN) webSocket.pong(pinged);
      pinged = null;
    };
    webSocket.on('ping', (data) => {
      pinged = data;
    });
    return (message) => {
      const parsed = weight.whole(message.length);
      const isOpen = (): boolean => webSocket.readyState === webSocket.OPEN;
      parsing = parsing.then(() => (isOpen() ? messageOf(message) : '')).finally(parsed);
      return parsing;
    };
  }

  /** Counts the bytes of a connection. */
  function weighed(webSocket: WebSocket) {
    let first = 0;
    /** Of the message that is coming in: what there is of it, and what of it has been counted. */
    let part = 0;
    let counted = 0;
    let budget: Budget | null = null;
    const count = (connection: Connection, more: (budget: Budget) => void): void => {
      try {
        budget ??= shares.message(connection.viewer);
        more(budget);
      } catch {
        webSocket.close(TRY_LATER, 'UNAVAILABLE: the service is busy');
      }
    };
    /** What is made of so many bytes counts until the answer is called. */
    const whole = (bytes: number): (() => void) => {
      const connection = opened.get(webSocket);
      if (connection && bytes >= PART_BYTES) count(connection, (one) => one.parsed(bytes));
      const message = budget;
      budget = null;
      part = 0;
      counted = 0;
      return () => message?.close();
    };
    webSocket.on('close', () => whole(0)());
    return {
      whole,
      arrived(bytes: number): void {
        const connection = opened.get(webSocket);
        if (!connection) {
          first += bytes;
          if (first > INIT_BYTES_MAX) webSocket.close(TOO_BIG, 'too much before connection_init');
          // What comes after that is not even read.
          if (first > 2 * INIT_BYTES_MAX) webSocket.terminate();
          return;
        }
        part += bytes;
        if (part - counted < PART_BYTES) return;
        count(connection, (one) => one.arrived(part - counted));
        counted = part;
      },
    };
  }
  server.on('upgrade', upgrade);

  /** What `graphql-ws/use/ws` does, with our own log, and no word to the client about what went wrong inside. */
  function serve(socket: WebSocket, request: IncomingMessage, parse: Parse): void {
    // A frame that is none: ws has answered it with the code that says so, and closes.
    socket.on('error', () => {});
    let isThere = true;
    socket.on('pong', () => {
      isThere = true;
    });
    const pings = setInterval(() => {
      if (!isThere) socket.terminate();
      else if (socket.readyState === socket.OPEN) socket.ping();
      isThere = false;
    }, PING_MS);

    const closed = graphqlWs.opened(
      {
        protocol: socket.protocol,
        send: (text) =>
          new Promise((resolve, reject) => {
            if (socket.readyState !== socket.OPEN) resolve();
            else socket.send(text, (error) => (error ? reject(error) : resolve()));
          }),
        close: (code, reason) => socket.close(code, reason),
        onMessage: (take) =>
          void socket.on('message', async (data: RawData) => {
            try {
              // It parses texts, and takes what has been parsed as it is, though its type does not say so.
              await take((await parse(data as Buffer)) as string);
            } catch (error) {
              failed(socket, error);
            }
          }),
      },
      { socket, request },
    );
    socket.once('close', (code, reason) => {
      clearInterval(pings);
      closed(code, String(reason)).catch((error: unknown) => failed(socket, error));
    });
  }

  function failed(socket: WebSocket, error: unknown): void {
    // Of types that only servers send.
    if (error instanceof Error && error.message.startsWith('Unexpected message of type'))
      socket.close(CloseCode.BadRequest, 'Invalid message received');
    else if (socket.readyState === socket.OPEN) {
      parts.toClient(error, { requestId: opened.get(socket)?.requestId ?? '' });
      socket.close(CloseCode.InternalServerError, 'Internal server error');
    }
  }

  /** Runs a query or mutation within the viewer's share, as HTTP does (http.ts). */
  async function answer(args: ExecutionArgs, type: OperationType): Promise<ExecutionResult> {
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
    const contextValue = parts.createContext(context.viewer, context.requestId, budget);
    const late = setTimeout(
      () =>
        budget.end(refusedRequest('UNAVAILABLE', 'the request took too long; try again, or request less')),
      limits.answerTimeoutMs,
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

  function closed(connection: Connection): void {
    connection.close();
    connections.delete(connection);
  }

  const graphqlWs = makeServer<
    ConnectionInitMessage['payload'],
    { socket: WebSocket; request: IncomingMessage }
  >({
    schema: parts.schema,
    connectionInitWaitTimeout: INIT_WAIT_MS,

    async onConnect(ctx) {
      const { socket, request } = ctx.extra;
      const given = { ...request.headers, ...lowerCase(ctx.connectionParams) };
      const authorization = String(given.authorization ?? '');
      const name = given[ON_BEHALF_HEADER];
      try {
        const holder = await authenticator.authenticate(authorization, addresses.of(request));
        const viewer = name === undefined ? holder : await onBehalfOf(holder, name, parts.userByName);
        const close = shares.open(viewer, 'connections');
        const requestId = parts.newRequestId();
        const connection = { viewer, holder, authorization, socket, requestId, close };
        opened.set(socket, connection);
        connections.add(connection);
        // Until it is closed.
        parts.connections.recognized(request.socket, accountOf(viewer));
        // It has gone while its key was looked up.
        if (socket.readyState !== socket.OPEN) closed(connection);
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
    },

    async onSubscribe(ctx, _id, payload) {
      const connection = opened.get(ctx.extra.socket);
      if (!connection) return [new ApiError('UNAUTHENTICATED', 'the connection is closing')];
      try {
        const { viewer } = connection;
        await shares.request(viewer);
        const query = documentOf(payload as GivenDocument, config.trustedDocuments);
        const prepared = prepare(String(query ?? ''), payload.operationName, payload.variables ?? {});
        if (!('document' in prepared)) return prepared;
        const budget = shares.update();
        budget.cost.estimated = prepared.cost;
        const { document, operation } = prepared;
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
        };
      } catch (error) {
        return [asGraphQLError(error)];
      }
    },

    async execute(args) {
      const started = process.hrtime.bigint();
      const type = getOperationAST(args.document, args.operationName)?.operation ?? 'query';
      const result = await answer(args, type);
      count(type, result.errors, started);
      return result;
    },
    async subscribe(args) {
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
        result = await subscribe(args);
      } catch (error) {
        ended();
        throw error;
      }
      count('subscription', 'errors' in result ? result.errors : undefined, started);
      if (Symbol.asyncIterator in result) {
        return watched(result as AsyncGenerator<ExecutionResult, void, void>, ended);
      }
      ended();
      return result;
    },

    onNext: (_ctx, _id, _payload, args, result) =>
      result.errors
        ? // Formatted errors are plain data, which is what goes over the wire; the types want the class.
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
      if (connection) closed(connection);
    },
  });
  /** Portals' connections for users who are blocked, or have become more than a USER. */
  async function checkUsers(askedFor: readonly Connection[]): Promise<void> {
    const users = await parts.usersByIds([...new Set(askedFor.map(({ viewer }) => viewer.userId))]);
    const good = new Set(users.filter(isAskedFor).map(({ id }) => id));
    for (const { viewer, socket } of askedFor)
      if (!good.has(viewer.userId))
        socket.close(CloseCode.Forbidden, 'FORBIDDEN: the user is not active any more');
  }

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
          for (const { holder, socket } of holders) {
            if (viewer && sameViewer(viewer, holder)) continue;
            socket.close(
              CloseCode.Unauthorized,
              'UNAUTHENTICATED: the API key has expired or has been revoked',
            );
          }
        },
        // The database is away: nobody is thrown out for that.
        () => {},
      );
    }
    const askedFor = [...connections].filter(({ viewer }) => viewer.onBehalfBy !== null);
    if (askedFor.length > 0) checkUsers(askedFor).catch(() => {});
    for (const { socket } of connections) {
      if (socket.bufferedAmount > MAX.socketBacklogBytes) socket.terminate();
    }
  }, KEY_CHECK_MS);
  keyCheck.unref();

  return {
    async close() {
      clearInterval(keyCheck);
      server.off('upgrade', upgrade);
      for (const socket of sockets.clients) socket.close(1001, 'Going away');
      sockets.close();
      await Promise.race([once(sockets, 'close'), sleep(CLOSE_MS)]);
      for (const socket of sockets.clients) socket.terminate();
    },
  };
}

async function messageOf(text: Buffer): Promise<unknown> {
  const value = await parseJson(text).catch(() => null);
  return value !== null && typeof value === 'object' ? value : '';
}

/** Until what was sent has been read, or never will be. */
async function drained(socket: Duplex): Promise<void> {
  const settled = new AbortController();
  const { signal } = settled;
  await Promise.race([once(socket, 'drain', { signal }), once(socket, 'close', { signal })]).catch(() => {});
  settled.abort();
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
