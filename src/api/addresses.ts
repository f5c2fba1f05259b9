/**
 * Where requests come from. Behind a proxy all come from its address; which header tells the client's is believed only of proxies
 * that the configuration names, for anybody can write one.
 */
import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { networks } from '../platform/networks.js';

export interface Addresses {
  /** The client's address, as shares are counted by it: of IPv6 the network that one client has (/64). */
  of(request: Pick<IncomingMessage, 'socket' | 'headers'>): string;
  /** Whether it is one of our proxies. */
  isProxy(address: string | undefined): boolean;
}

/** @param proxies addresses and networks (`10.0.0.0/8`) of proxies */
export function createAddresses(proxies: readonly string[]): Addresses {
  const trusted = networks(proxies);
  const isProxy = (given: string | undefined): boolean => {
    const address = plain(given);
    const version = isIP(address);
    return version !== 0 && trusted.check(address, version === 6 ? 'ipv6' : 'ipv4');
  };
  return {
    isProxy,
    of({ socket, headers }) {
      let address = plain(socket.remoteAddress);
      const forwarded = headers['x-forwarded-for'];
      const hops = String(forwarded ?? '').split(',');
      // Each proxy writes behind what it was told: the last that is none of ours is the client, whatever it says of itself.
      while (isProxy(address)) {
        const hop = plain(hops.pop()?.trim());
        if (isIP(hop) === 0) break;
        address = hop;
      }
      return isIP(address) === 6 ? networkOf(address) : address;
    },
  };
}

/** IPv4 as IPv4, also where a socket for both writes it as IPv6. */
const plain = (address: string | undefined): string => (address ?? '').replace(/^::ffff:(?=\d+\.)/i, '');

/** The first 64 bits of an IPv6 address. */
function networkOf(address: string): string {
  const [head = '', tail] = address.split('%', 1)[0]!.split('::') as [string, string?];
  const left = head === '' ? [] : head.split(':');
  const right = !tail ? [] : tail.split(':');
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - left.length - right.length }, () => '0');
  return `${[...left, ...zeros, ...right]
    .slice(0, 4)
    .map((part) => Number.parseInt(part, 16).toString(16))
    .join(':')}::/64`;
}
