/** Fetching by HTTP what others have named: only from addresses within reach, also after redirects (platform/reach.ts). */
import { type IncomingMessage, request as plain } from 'node:http';
import { request as secure } from 'node:https';
import type { BlockList } from 'node:net';
import { CLOSED, checkedLookup, checkHost, type Reach } from '../../platform/reach.js';
import { UnfitSource } from './source.js';

const MAX_REDIRECTS = 5;

/**
 * Asks for a URL, following redirects.
 *
 * @param allowed addresses that may be asked although they are closed
 * @throws UnfitSource, ClosedAddress where it may not be asked
 */
export async function get(
  location: string,
  headers: Readonly<Record<string, string>>,
  allowed: BlockList,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const reach: Reach = { closed: CLOSED.host, allowed, variable: 'AGENT_DATA_ADDRESSES' };
  let url = new URL(location);
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const response = await ask(url, headers, reach, signal);
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
  reach: Reach,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  checkHost(url, reach);
  const request = url.protocol === 'https:' ? secure : plain;
  return new Promise((resolve, reject) => {
    const options = { headers, signal, agent: false as const, lookup: checkedLookup(reach) };
    request(url, options, resolve).on('error', reject).end();
  });
}
