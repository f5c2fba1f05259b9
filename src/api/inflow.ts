/**
 * What comes in on connections, handed on piece by piece, each in a turn of whoever the connection is of: of its address until it has
 * shown a good key, then of whose key it was. So nothing is parsed for free, be it requests, bodies, messages, pings or parts of them.
 */
import type { Duplex } from 'node:stream';
import { type Account, turns } from '../platform/turns.js';

/** Of what comes in, what is looked at in one turn: some hundred frames or requests at the most. */
const PIECE_BYTES = 8 * 1024;

export interface Inflow {
  /** Whose turns they are, from the next piece on. */
  account: Account;
  /** Resolves when more may be handed on. */
  before?: () => Promise<void>;
  /** Hands a piece on, and does in the same turn what comes before and after it. */
  take?: (piece: Buffer, hand: () => void) => void;
}

const inflows = new WeakMap<Duplex, Inflow>();

/** The inflow of a connection that is paced. */
export const inflowOf = (socket: Duplex): Inflow | undefined => inflows.get(socket);

/** Paces a connection, once. Whoever listens to it at that time gets the pieces: the server's parser, or a WebSocket's. */
export function paced(socket: Duplex, account: Account): Inflow {
  const inflow: Inflow = { account };
  inflows.set(socket, inflow);
  // To listen, be it to nothing, takes the connection back from the HTTP parser, which else reads it by itself.
  const nothing = (): void => {};
  socket.on('data', nothing).off('data', nothing);
  const emit = socket.emit.bind(socket);
  const pause = socket.pause.bind(socket);
  const resume = socket.resume.bind(socket);
  /** What has arrived; null: its end. */
  const arrived: (Buffer | null)[] = [];
  let isHanding = false;
  /** Whoever listens wants no more for now; or has ceased to listen, be it that another protocol begins or that the rest is thrown away. */
  let isPaused = false;
  let resumed = nothing;

  socket.pause = () => {
    isPaused = true;
    return pause();
  };
  socket.resume = () => {
    isPaused = false;
    resumed();
    return isHanding ? socket : resume();
  };
  socket.emit = (event: string | symbol, ...args: unknown[]) => {
    if (event !== 'data' && !(event === 'end' && isHanding)) return emit(event, ...args);
    pause();
    arrived.push(event === 'data' ? (args[0] as Buffer) : null);
    if (!isHanding) void handOn();
    return true;
  };

  async function handOn(): Promise<void> {
    isHanding = true;
    for (let next = arrived.shift(); next !== undefined; next = arrived.shift()) {
      if (next === null) emit('end');
      else
        for (let at = 0; at < next.length; at += PIECE_BYTES)
          await handPiece(next.subarray(at, at + PIECE_BYTES));
    }
    isHanding = false;
    if (!isPaused) resume();
  }

  async function handPiece(piece: Buffer): Promise<void> {
    while (isPaused && !socket.destroyed)
      await new Promise<void>((resolve) => {
        resumed = resolve;
      });
    await inflow.before?.();
    if (socket.destroyed) return;
    await turns.turn(inflow.account);
    if (socket.destroyed) return;
    const hand = (): void => void emit('data', piece);
    const isHeard = socket.listenerCount('data') > 0;
    if (inflow.take) inflow.take(piece, hand);
    else hand();
    if (isHeard && socket.listenerCount('data') === 0) isPaused = true;
  }

  return inflow;
}
