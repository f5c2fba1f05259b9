/**
 * The connections of an API process. Nobody takes all there are, and many may share an address: where there is no room for another one, one
 * on which nothing is done for anybody gives way, of the address that has most of them the one that has rested longest. Whose a
 * connection is shows only when a request has come with a good key; those of agents and operators do not give way from then on.
 */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Account } from '../../platform/turns.js';
import type { Addresses } from '../addresses.js';
import { inflowOf, paced } from '../inflow.js';
import { Counter } from './shares.js';

/** Room that is made before there is none left at all: those that give way take a moment to close. */
const SPARE = 1 / 16;

interface Held {
  socket: Socket;
  address: string;
  /** What is being done on it for somebody who has shown a key. */
  work: number;
  mayRest: boolean;
}

export interface Connections {
  /** Something is done on the connection for whom the account is of, until `end` is called. */
  recognized(socket: Socket, account: Account): () => void;
}

/**
 * @param connected the event with which the server tells of a connection that requests may come on
 * @param most of the process, and of an address. Proxies stand for many: theirs are counted by whom they are for, where that is known
 */
export function watchConnections(
  server: Server,
  connected: 'connection' | 'secureConnection',
  addresses: Addresses,
  most: { ofAddress: number; ofProcess: number },
): Connections {
  const open = new Counter();
  let inAll = 0;
  /** By where they come from: under TLS the socket of requests is another than the one that was accepted. */
  const all = new Map<string, Held>();
  const resting = new Map<string, Set<Held>>();
  const addressOf = (socket: Socket): string => addresses.of({ socket, headers: {} });
  const nameOf = ({ remoteAddress, remotePort }: Socket): string => `${remoteAddress} ${remotePort}`;

  function rest(held: Held): void {
    if (held.socket.destroyed || !held.mayRest) return;
    const others = resting.get(held.address) ?? new Set();
    resting.set(held.address, others.add(held));
  }
  function work(held: Held): void {
    const others = resting.get(held.address);
    if (others?.delete(held) && others.size === 0) resting.delete(held.address);
  }
  /** Whether one of these addresses could give one up. */
  function giveWay(from: Iterable<Set<Held> | undefined>): boolean {
    let largest: Set<Held> | undefined;
    for (const some of from) if (some && some.size > (largest?.size ?? 0)) largest = some;
    const [oldest] = largest ?? [];
    if (oldest === undefined) return false;
    work(oldest);
    oldest.socket.destroy();
    return true;
  }

  server.maxConnections = most.ofProcess;
  server.on('connection', (socket: Socket) => {
    inAll++;
    socket.once('close', () => inAll--);
    if (inAll > most.ofProcess * (1 - SPARE) && !giveWay(resting.values())) return void socket.destroy();
    if (addresses.isProxy(socket.remoteAddress)) return;
    const address = addressOf(socket);
    if (open.of(address) >= most.ofAddress && !giveWay([resting.get(address)])) return void socket.destroy();
    const held: Held = { socket, address, work: 0, mayRest: true };
    const name = nameOf(socket);
    all.set(name, held);
    open.change(address, 1);
    rest(held);
    socket.once('close', () => {
      open.change(address, -1);
      all.delete(name);
      work(held);
    });
  });
  server.on(connected, (socket: Socket) => {
    if (!socket.destroyed) paced(socket, { name: `address ${addressOf(socket)}`, rank: 'people' });
  });

  return {
    recognized(socket, account) {
      const held = all.get(nameOf(socket));
      // What comes from a proxy next may be for anybody.
      if (!held) return () => {};
      const inflow = inflowOf(socket);
      if (inflow) inflow.account = account;
      held.mayRest = account.rank === 'people';
      held.work++;
      work(held);
      return () => {
        held.work--;
        if (held.work === 0) rest(held);
      };
    },
  };
}
