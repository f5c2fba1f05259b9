/** The WebSocket connections that have said whose they are, and whether they still may. */
import { CloseCode } from 'graphql-ws';
import type { WebSocket } from 'ws';
import { MAX } from '../../platform/limits.js';
import { type Authenticator, isAskedFor, sameViewer, type Viewer } from '../auth.js';
import type { UserRole } from '../generated/types.js';

/** How often open connections' keys are looked at again. The authenticator may be half a second behind: together below 1 s. */
const KEY_CHECK_MS = 300;

export interface Connection {
  viewer: Viewer;
  /** The holder of the key: other than the viewer where a portal asks for a user. */
  holder: Viewer;
  authorization: string;
  socket: WebSocket;
  requestId: string;
  /** Gives its share back. */
  close(): void;
}

export interface ConnectedParts {
  authenticator: Authenticator;
  usersByIds(ids: readonly number[]): Promise<{ id: number; role: UserRole; active: boolean }[]>;
}

export class Connected {
  private readonly open = new Set<Connection>();
  private readonly known = new WeakMap<WebSocket, Connection>();
  private readonly checks: NodeJS.Timeout;

  constructor(private readonly parts: ConnectedParts) {
    this.checks = setInterval(() => this.check(), KEY_CHECK_MS).unref();
  }

  /** Also after it was closed. */
  of(socket: WebSocket): Connection | undefined {
    return this.known.get(socket);
  }

  add(connection: Connection): void {
    this.known.set(connection.socket, connection);
    this.open.add(connection);
  }

  close(connection: Connection): void {
    connection.close();
    this.open.delete(connection);
  }

  stop(): void {
    clearInterval(this.checks);
  }

  private check(): void {
    const byKey = new Map<string, Connection[]>();
    for (const connection of this.open) {
      // As bearer of the same key in the same role: an answer for one is an answer for all.
      const holders = byKey.get(connection.authorization);
      if (holders) holders.push(connection);
      else byKey.set(connection.authorization, [connection]);
    }
    for (const [authorization, holders] of byKey) {
      // Where the database is away nobody is thrown out for that.
      this.checkKey(authorization, holders).catch(() => {});
    }
    const askedFor = [...this.open].filter(({ viewer }) => viewer.onBehalfBy !== null);
    if (askedFor.length > 0) this.checkUsers(askedFor).catch(() => {});
    for (const { socket } of this.open) {
      if (socket.bufferedAmount > MAX.socketBacklogBytes) socket.terminate();
    }
  }

  private async checkKey(authorization: string, holders: readonly Connection[]): Promise<void> {
    const viewer = await this.parts.authenticator.goodViewer(authorization);
    for (const { holder, socket } of holders) {
      if (viewer && sameViewer(viewer, holder)) continue;
      socket.close(CloseCode.Unauthorized, 'UNAUTHENTICATED: the API key has expired or has been revoked');
    }
  }

  /** Portals' connections for users who are blocked, or have become more than a USER. */
  private async checkUsers(askedFor: readonly Connection[]): Promise<void> {
    const users = await this.parts.usersByIds([...new Set(askedFor.map(({ viewer }) => viewer.userId))]);
    const good = new Set(users.filter(isAskedFor).map(({ id }) => id));
    for (const { viewer, socket } of askedFor)
      if (!good.has(viewer.userId))
        socket.close(CloseCode.Forbidden, 'FORBIDDEN: the user is no longer active');
  }
}
