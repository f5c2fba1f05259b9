/**
 * Requests to addresses that others have named. They are not to reach through this process what only its host or its network reaches:
 * addresses are looked at as they are connected to, whatever they were written as and whatever a name means a moment later.
 */
import dns, { type LookupAddress } from 'node:dns';
import { type BlockList, isIP, type LookupFunction } from 'node:net';
import { networks } from './networks.js';

/** Of the host itself, of its link (clouds tell secrets to whoever asks there), of nobody, of everybody. */
const HOST_AND_LINK = [
  ...['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/4', '240.0.0.0/4', '100.100.100.200'],
  // The same, as parts of addresses of version 6: compatible, translated, 6to4.
  ...['::/96', '64:ff9b::7f00:0/104', '64:ff9b::a9fe:0/112', '2002:7f00::/24', '2002:a9fe::/32'],
  ...['fe80::/10', 'fec0::/10', 'ff00::/8', 'fd00:ec2::254'],
];
/** Of one's own network, and reserved. */
const PRIVATE = [
  ...['10.0.0.0/8', '100.64.0.0/10', '172.16.0.0/12', '192.0.0.0/24', '192.168.0.0/16', '198.18.0.0/15'],
  ...['64:ff9b::a00:0/104', '64:ff9b::6440:0/106', '64:ff9b::ac10:0/108', '64:ff9b::c0a8:0/112'],
  ...['64:ff9b:1::/48', '2001::/32', '2002::/16', 'fc00::/7'],
];

/** What an address is that is not to be connected to. */
export const CLOSED = {
  host: { addresses: networks(HOST_AND_LINK), are: 'a local or link-local address' },
  private: {
    addresses: networks([...HOST_AND_LINK, ...PRIVATE]),
    are: 'a local, link-local or private address',
  },
  /** Where only what the operator has named is connected to. */
  all: { addresses: networks(['0.0.0.0/0', '::/0']), are: 'allowed only with https:, not with http:' },
} as const;

export class ClosedAddress extends Error {
  override readonly name = 'ClosedAddress';
}

/** Which addresses may be connected to. */
export interface Reach {
  closed: (typeof CLOSED)[keyof typeof CLOSED];
  /** Addresses that may be connected to although they are closed. */
  allowed: BlockList;
  /** The variable that allows them, for the message. */
  variable: string;
}

/** @throws ClosedAddress */
function check(host: string, address: string, { closed, allowed, variable }: Reach): void {
  // Behind % is the name of an interface.
  const plain = address.replace(/%.*$/, '');
  const family = isIP(plain) === 6 ? 'ipv6' : 'ipv4';
  if (closed.addresses.check(plain, family) && !allowed.check(plain, family))
    throw new ClosedAddress(
      `${host === address ? host : `${host} is ${address}, which`} is ${closed.are} (${variable})`,
    );
}

/** Checks a host that is an address; a name is checked when it is looked up. As URLs have them: numbers in any notation are addresses by now, and those of version 6 are in brackets. */
export function checkHost({ hostname }: URL, reach: Reach): void {
  const host = hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) > 0) check(host, host, reach);
}

/** Looks a name up once: what is checked is what is connected to. */
export function checkedLookup(reach: Reach): LookupFunction {
  return (host, options, done) => {
    dns.lookup(host, { ...options, all: true }, (error, found: LookupAddress[]) => {
      try {
        if (error) throw error;
        for (const { address } of found) check(host, address, reach);
        if (options.all) done(null, found);
        else done(null, found[0]!.address, found[0]!.family);
      } catch (problem) {
        done(problem as Error, []);
      }
    });
  };
}
