/** What comes in over a WebSocket: in turns, counted, and parsed in pieces. */
import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import type { WebSocket } from 'ws';
import type { Account } from '../../platform/turns.js';
import type { Budget } from '../admission/budget.js';
import { accountOf, type Shares } from '../admission/shares.js';
import { inflowOf, paced } from '../inflow.js';
import { parseJson } from '../json.js';
import type { Connected, Connection } from './connected.js';

/** A connection takes so many bytes until it has shown a key: the key, and what a client says of itself. */
const INIT_BYTES_MAX = 16 * 1024;
/** Who does not read what is sent to him is not listened to beyond this. */
const UNREAD_BYTES = 1024 * 1024;
/** What has come of a message that is not whole yet, and is not worth counting. */
const PART_BYTES = 64 * 1024;
/** "Try again later", which stock clients do. */
export const TRY_LATER = 1013;
const TOO_BIG = 1009;

/** What a message says; a text where that is nothing that a client may say. */
export type Parse = (message: Buffer) => Promise<unknown>;

/**
 * Sees that a connection does not make us keep more than it may: little before it has shown a key, then whole messages, each until it has
 * been parsed. The answer parses one, behind those before it; nothing more is taken in meanwhile.
 */
export function listen(
  webSocket: WebSocket,
  socket: Duplex,
  stranger: Account,
  { connected, shares }: { connected: Connected; shares: Shares },
): Parse {
  let pinged: Buffer | null = null;
  let parsing: Promise<unknown> = Promise.resolve();
  const weight = weighed(webSocket, connected, shares);
  const inflow = inflowOf(socket) ?? paced(socket, stranger);
  inflow.account = stranger;
  inflow.before = async () => {
    if (socket.writableLength > UNREAD_BYTES) await drained(socket);
    await parsing;
    const connection = connected.of(webSocket);
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
function weighed(webSocket: WebSocket, connected: Connected, shares: Shares) {
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
    const connection = connected.of(webSocket);
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
      const connection = connected.of(webSocket);
      if (!connection) {
        first += bytes;
        if (first > INIT_BYTES_MAX) webSocket.close(TOO_BIG, 'too much data before connection_init');
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
