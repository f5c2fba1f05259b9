/**
 * What the network from another site to this one is like, measured as the field does: by connecting, and by fetching a file that
 * the other site serves over HTTP. Nothing has to be installed there but the web server that its data comes from.
 */
import { connect } from 'node:net';
import { performance } from 'node:perf_hooks';

/** Where to measure: a file of at least a megabyte at the other site. */
export interface LinkProbe {
  /** Name of the other site. */
  from: string;
  /** `http:` or `https:` */
  url: string;
}

export interface LinkMeasurement {
  /** Megabytes (10^6 bytes) a second. */
  bandwidthMbPerS: number;
  /** Median time to connect, seconds. */
  rttS: number;
  /** Share of connections that were not made in time. */
  loss: number;
}

const CONNECTIONS = 5;
const CONNECT_TIMEOUT_MS = 2_000;
/** Fetched at most: enough to see past the first round trips, and no burden to the link. */
const FETCHED_BYTES = 16e6;
const FETCH_TIMEOUT_MS = 20_000;
/** Less than this tells of the round trip, not of the bandwidth. */
export const FETCHED_BYTES_MIN = 1e6;

/**
 * Measures one link.
 *
 * @throws Error when no connection was made, or the file could not be had or is too short
 */
export async function measureLink(url: string, stop: AbortSignal): Promise<LinkMeasurement> {
  const times: number[] = [];
  for (let i = 0; i < CONNECTIONS; i++) {
    const seconds = await connectS(new URL(url), stop);
    if (seconds !== null) times.push(seconds);
  }
  if (times.length === 0) throw new Error(`${url}: none of ${CONNECTIONS} connections succeeded`);
  times.sort((a, b) => a - b);
  return {
    bandwidthMbPerS: await bandwidth(url, stop),
    rttS: times[times.length >> 1] as number,
    loss: 1 - times.length / CONNECTIONS,
  };
}

/** How long it takes to connect, seconds; null: it did not come about. */
function connectS({ hostname, port, protocol }: URL, stop: AbortSignal): Promise<number | null> {
  return new Promise((resolve) => {
    const begun = performance.now();
    const host = hostname.replace(/^\[|\]$/g, '');
    const socket = connect({
      host,
      port: Number(port) || (protocol === 'https:' ? 443 : 80),
      timeout: CONNECT_TIMEOUT_MS,
    });
    const done = (seconds: number | null): void => {
      stop.removeEventListener('abort', onStop);
      socket.destroy();
      resolve(seconds);
    };
    const onStop = (): void => done(null);
    stop.addEventListener('abort', onStop);
    socket.once('connect', () => done((performance.now() - begun) / 1000));
    socket.once('timeout', () => done(null));
    socket.once('error', () => done(null));
  });
}

async function bandwidth(url: string, stop: AbortSignal): Promise<number> {
  const ended = new AbortController();
  const signal = AbortSignal.any([stop, ended.signal, AbortSignal.timeout(FETCH_TIMEOUT_MS)]);
  const response = await fetch(url, { signal, headers: { 'accept-encoding': 'identity' } });
  if (!response.ok || response.body === null) {
    ended.abort();
    throw new Error(`${url}: status ${response.status}`);
  }
  const begun = performance.now();
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += (chunk as Uint8Array).length;
    if (bytes >= FETCHED_BYTES) break;
  }
  const seconds = (performance.now() - begun) / 1000;
  if (bytes < FETCHED_BYTES_MIN)
    throw new Error(`${url}: ${bytes} bytes; the file must have at least ${FETCHED_BYTES_MIN} bytes`);
  return bytes / 1e6 / Math.max(seconds, 1e-6);
}
