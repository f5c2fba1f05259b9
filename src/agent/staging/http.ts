/** Requests by HTTP to what others have named: only to addresses within reach, also after redirects (platform/reach.ts). */
import { type IncomingMessage, request as plain, type RequestOptions } from 'node:http';
import { request as secure } from 'node:https';
import { pipeline } from 'node:stream/promises';
import { checkedLookup, checkHost, type Reach } from '../../platform/reach.js';
import { UnfitSource } from './source.js';

const MAX_REDIRECTS = 5;
/** A server that does not say whether it takes a body is sent it after so long. */
const CONTINUE_MS = 1_000;
/** Nothing has gone, or come, for so long. */
const STALL_MS = 60_000;

type Headers = Readonly<Record<string, string>>;

/**
 * Asks for a URL, following redirects.
 *
 * @throws UnfitSource, ClosedAddress where it may not be asked
 */
export const get = (
  location: string,
  headers: Headers,
  reach: Reach,
  signal: AbortSignal,
): Promise<IncomingMessage> =>
  follow(
    location,
    [301, 302, 303, 307, 308],
    reach,
    (url) =>
      new Promise((resolve, reject) => {
        request(url, { headers, signal }, reach).on('response', resolve).on('error', reject).end();
      }),
  );

/**
 * Sends a body to a URL, following the redirects that keep the method.
 *
 * @param open a body of so many bytes, again for each address
 * @returns the status of the answer
 * @throws UnfitSource, ClosedAddress where it may not be sent there
 */
export async function put(
  location: string,
  size: number,
  open: (signal: AbortSignal) => AsyncIterable<Uint8Array>,
  reach: Reach,
  signal: AbortSignal,
): Promise<number> {
  const response = await follow(location, [307, 308], reach, (url) => send(url, size, open, reach, signal));
  response.destroy();
  return response.statusCode!;
}

/** The answer of the first address that does not lead on to another. `statuses`: of those that do. */
async function follow(
  location: string,
  statuses: readonly number[],
  reach: Reach,
  ask: (url: URL) => Promise<IncomingMessage>,
): Promise<IncomingMessage> {
  let url = new URL(location);
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    checkHost(url, reach);
    const response = await ask(url);
    const next = response.headers.location;
    if (next === undefined || !statuses.includes(response.statusCode!)) return response;
    response.destroy();
    if (!URL.canParse(next, url.href)) throw new UnfitSource('it redirects to what is no URL');
    url = new URL(next, url);
    if (!/^https?:$/.test(url.protocol))
      throw new UnfitSource(`it redirects to ${url.protocol}, not to http(s)`);
  }
  throw new UnfitSource(`more than ${MAX_REDIRECTS} redirects`);
}

/** A connection of its own: whoever it is kept for might be checked by another rule. */
const request = (url: URL, options: RequestOptions, reach: Reach) =>
  (url.protocol === 'https:' ? secure : plain)(url, {
    ...options,
    agent: false,
    lookup: checkedLookup(reach),
  });

/** Sends the body once the server is ready for it: one that refuses it, or has it sent elsewhere, says so before. */
async function send(
  url: URL,
  size: number,
  open: (signal: AbortSignal) => AsyncIterable<Uint8Array>,
  reach: Reach,
  signal: AbortSignal,
): Promise<IncomingMessage> {
  const headers = {
    'content-length': String(size),
    'content-type': 'application/octet-stream',
    expect: '100-continue',
  };
  const sending = request(url, { method: 'PUT', headers, signal }, reach);
  sending.setTimeout(STALL_MS, () => sending.destroy(new Error('nothing was accepted for a minute')));
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    sending.on('response', resolve).on('error', reject);
  });
  const ready = new Promise<void>((resolve) => {
    sending.once('socket', () => setTimeout(resolve, CONTINUE_MS).unref());
    sending.once('continue', resolve);
  });
  sending.flushHeaders();
  const early = await Promise.race([answered, ready]);
  if (early !== undefined) {
    sending.destroy();
    return early;
  }
  const sent = pipeline(open(signal), sending);
  // A server may answer, and close, before it has all: what it says counts.
  return Promise.race([answered, sent.then(() => answered)]);
}
