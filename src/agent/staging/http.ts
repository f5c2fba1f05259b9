/**
 * Fetching by HTTP what others have named. They are not to reach through the agent what only its host reaches: addresses are looked at as
 * they are connected to, after every redirect, whatever they were written as and whatever a name means a moment later.
 */
import dns, { type LookupAddress } from 'node:dns';
import { type IncomingMessage, request as plain } from 'node:http';
import { request as secure } from 'node:https';
import { type BlockList, isIP, type LookupFunction } from 'node:net';
import { networks } from '../../platform/networks.js';
import { UnfitSource } from './source.js';

/** Of the host itself, of its link (clouds tell secrets to whoever asks there), of nobody, of everybody. */
const CLOSED = networks([
  ...['0.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '224.0.0.0/4', '240.0.0.0/4', '100.100.100.200'],
  // The same, as parts of addresses of version 6: compatible, translated, 6to4.
  ...['::/96', '64:ff9b::7f00:0/104', '64:ff9b::a9fe:0/112', '2002:7f00::/24', '2002:a9fe::/32'],
  ...['fe80::/10', 'fec0::/10', 'ff00::/8', 'fd00:ec2::254'],
]);
const MAX_REDIRECTS = 5;

/** @throws UnfitSource for an address from which nothing is fetched */
function check(host: string, address: string, allowed: BlockList): void {
  // Behind % is the name of an interface.
  const plainAddress = address.replace(/%.*$/, '');
  const family = isIP(plainAddress) === 6 ? 'ipv6' : 'ipv4';
  if (CLOSED.check(plainAddress, family) && !allowed.check(plainAddress, family))
    throw new UnfitSource(
      `${host === address ? host : `${host} is ${address}, which`} is an address of the host itself or link-local (AGENT_DATA_ADDRESSES)`,
    );
}

/** Looks a name up once: what is checked is what is connected to. */
function checkedLookup(allowed: BlockList): LookupFunction {
  return (host, options, done) => {
    dns.lookup(host, { ...options, all: true }, (error, found: LookupAddress[]) => {
      try {
        if (error) throw error;
        for (const { address } of found) check(host, address, allowed);
        if (options.all) done(null, found);
        else done(null, found[0]!.address, found[0]!.family);
      } catch (problem) {
        done(problem as Error, []);
      }
    });
  };
}

/**
 * Asks for a URL, following redirects.
 *
 * @param allowed addresses that may be asked although they are closed
 * @throws UnfitSource where it may not be asked
 */
export async function get(
  location: string,
  headers: Readonly<Record<string, string>>,
  allowed: BlockList,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  let url = new URL(location);
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const response = await ask(url, headers, allowed, signal);
    const next = response.headers.location;
    if (next === undefined || ![301, 302, 303, 307, 308].includes(response.statusCode!)) return response;
    response.destroy();
    url = new URL(next, url);
    if (!/^https?:$/.test(url.protocol))
      throw new UnfitSource(`it redirects to ${url.protocol}, not to http(s)`);
  }
  throw new UnfitSource(`more than ${MAX_REDIRECTS} redirects`);
}

function ask(
  url: URL,
  headers: Readonly<Record<string, string>>,
  allowed: BlockList,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  // As URLs have them: numbers in any notation are addresses by now, and those of version 6 are in brackets.
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) > 0) check(host, host, allowed);
  const request = url.protocol === 'https:' ? secure : plain;
  return new Promise((resolve, reject) => {
    const options = { headers, signal, agent: false as const, lookup: checkedLookup(allowed) };
    request(url, options, resolve).on('error', reject).end();
  });
}
