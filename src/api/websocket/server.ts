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
import { CloseCode, type Server as GraphqlWs, handleProtocols, makeServer } from 'graphql-ws';
import { type RawData, type WebSocket, WebSocketServer } from 'ws';
import { type Account, turns } from '../../platform/turns.js';
import { Counter } from '../admission/shares.js';
import { Connected, type ConnectedParts } from './connected.js';
import { listen, type Parse } from './incoming.js';
import { type Extra, handlersOf, type OperationParts } from './operations.js';
import { sent } from './send.js';

const PING_MS = 15_000;
/** Clients have so long to close their side when the service stops. */
const CLOSE_MS = 2_000;

export interface WebSocketParts extends Omit<OperationParts, 'connected'>, ConnectedParts {
  server: Server;
  path: string;
}

export interface WebSockets {
  close(): Promise<void>;
}

export function createWebSockets(parts: WebSocketParts): WebSockets {
  const { server, shares, addresses } = parts;
  const { limits } = parts.config;
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: limits.messageBytesMax,
    clientTracking: true,
    // Once for all pings of a piece.
    autoPong: false,
    handleProtocols,
  });
  const connected = new Connected(parts);
  /** Behind proxies the addresses of clients; others are counted where they connect (server.ts). */
  const forwarded = new Counter();

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
      const parse = listen(webSocket, socket, stranger, { connected, shares });
      serve(graphqlWs, { socket: webSocket, request }, parse, failed(webSocket));
    });
  };

  /** Ends the connection that has waited longest without saying whose it is. False: all have said it. */
  function giveWay(): boolean {
    for (const webSocket of sockets.clients) {
      if (connected.of(webSocket) || webSocket.readyState !== webSocket.OPEN) continue;
      webSocket.terminate();
      return true;
    }
    return false;
  }

  const graphqlWs = makeServer(handlersOf({ ...parts, connected }));
  const failed =
    (socket: WebSocket) =>
    (error: unknown): void => {
      // Of types that only servers send.
      if (error instanceof Error && error.message.startsWith('Unexpected message of type'))
        socket.close(CloseCode.BadRequest, 'Invalid message received');
      else if (socket.readyState === socket.OPEN) {
        parts.toClient(error, { requestId: connected.of(socket)?.requestId ?? '' });
        socket.close(CloseCode.InternalServerError, 'Internal server error');
      }
    };

  server.on('upgrade', upgrade);
  return {
    async close() {
      connected.stop();
      server.off('upgrade', upgrade);
      for (const socket of sockets.clients) socket.close(1001, 'Going away');
      sockets.close();
      await Promise.race([once(sockets, 'close'), sleep(CLOSE_MS)]);
      for (const socket of sockets.clients) socket.terminate();
    },
  };
}

/**
 * What `graphql-ws/use/ws` does, with our own log, and no word to the client about what went wrong inside. That one hands on texts, which
 * would be parsed at once; here messages are parsed in pieces and in turns.
 */
function serve(
  graphqlWs: GraphqlWs<Extra>,
  { socket, request }: Extra,
  parse: Parse,
  failed: (error: unknown) => void,
): void {
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
      send: (text) => sent(socket, text) ?? undefined,
      close: (code, reason) => socket.close(code, reason),
      onMessage: (take) =>
        void socket.on('message', async (data: RawData) => {
          try {
            // It parses texts, and takes what has been parsed as it is, though its type does not say so.
            await take((await parse(data as Buffer)) as string);
          } catch (error) {
            failed(error);
          }
        }),
    },
    { socket, request },
  );
  socket.once('close', (code, reason) => {
    clearInterval(pings);
    closed(code, String(reason)).catch((error: unknown) => failed(error));
  });
}
