/**
 * Sends a message to an endpoint that a user has named, by Standard Webhooks 1.0 (signature v1: HMAC-SHA256). Redirects are not followed,
 * and no address is connected to that is not public, unless the operator allows it.
 */
import { createHmac } from 'node:crypto';
import { type IncomingMessage, Agent as PlainAgent, request as plain } from 'node:http';
import { Agent as SecureAgent, request as secure } from 'node:https';
import { networks } from '../platform/networks.js';
import { CLOSED, checkedLookup, checkHost, type Reach } from '../platform/reach.js';
import { VERSION } from '../platform/version.js';

export interface Message {
  /** The same whenever it is sent again. */
  id: string;
  body: string;
}

/** What became of sending. */
export type Attempt =
  | { ok: true; status: number; tookMs: number }
  /** `gone`: nothing more is to be sent there. `retryAfterS`: as the endpoint asks. */
  | {
      ok: false;
      status: number | null;
      tookMs: number;
      reason: string;
      gone: boolean;
      retryAfterS: number | null;
    };

export interface SenderOptions {
  /** Addresses and networks that may be sent to although they are private, also without TLS. */
  addresses: readonly string[];
  /** For one request, from the look-up of the name to the end of the answer, ms. */
  timeoutMs: number;
}

type Protocol = 'http:' | 'https:';

/** Read of an answer, which nobody needs: then the connection can be used again. */
const ANSWER_BYTES = 65_536;
/** Connections that are kept for the next message, to one host and in all. */
const KEPT = { keepAlive: true, maxFreeSockets: 256, timeout: 30_000 } as const;

export class Sender {
  private readonly reach: Readonly<Record<Protocol, Reach>>;
  private readonly agents: { 'http:': PlainAgent; 'https:': SecureAgent };

  constructor(private readonly options: SenderOptions) {
    const given = { allowed: networks(options.addresses), variable: 'SWITCHYARD_WEBHOOK_ADDRESSES' };
    this.reach = {
      'http:': { ...given, closed: CLOSED.all },
      'https:': { ...given, closed: CLOSED.private },
    };
    this.agents = {
      'http:': new PlainAgent({ ...KEPT, lookup: checkedLookup(this.reach['http:']) }),
      'https:': new SecureAgent({ ...KEPT, lookup: checkedLookup(this.reach['https:']) }),
    };
  }

  close(): void {
    for (const agent of Object.values(this.agents)) agent.destroy();
  }

  /** Never throws. @param atS epoch seconds */
  async send(
    { url, secrets }: { url: string; secrets: readonly string[] },
    { id, body }: Message,
    atS: number,
    signal: AbortSignal,
  ): Promise<Attempt> {
    const begunMs = performance.now();
    const tookMs = (): number => Math.round(performance.now() - begunMs);
    const headers = {
      'content-type': 'application/cloudevents+json; charset=utf-8',
      'content-length': Buffer.byteLength(body),
      'user-agent': `Switchyard/${VERSION}`,
      ...signed({ id, body }, secrets, Math.floor(atS)),
    };
    const overdue = AbortSignal.timeout(this.options.timeoutMs);
    try {
      const response = await this.post(new URL(url), headers, body, AbortSignal.any([signal, overdue]));
      const status = response.statusCode as number;
      if (status >= 200 && status < 300) return { ok: true, status, tookMs: tookMs() };
      const asked = Number(response.headers['retry-after']);
      return {
        ok: false,
        status,
        tookMs: tookMs(),
        reason:
          status >= 300 && status < 400
            ? `${status}: redirects are not followed`
            : `responded with ${status}`,
        gone: status === 410,
        retryAfterS: asked > 0 ? asked : null,
      };
    } catch (error) {
      const reason = overdue.aborted
        ? `no response within ${this.options.timeoutMs / 1000} s`
        : (error as Error).message || (error as NodeJS.ErrnoException).code || String(error);
      return { ok: false, status: null, tookMs: tookMs(), reason, gone: false, retryAfterS: null };
    }
  }

  private async post(
    url: URL,
    headers: Readonly<Record<string, string | number>>,
    body: string,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const protocol = url.protocol as Protocol;
    checkHost(url, this.reach[protocol]);
    const once = (): Promise<IncomingMessage> =>
      new Promise((resolve, reject) => {
        const options = { method: 'POST', headers, signal, agent: this.agents[protocol] };
        const request = (protocol === 'https:' ? secure : plain)(url, options, (response) => {
          drained(response).then(() => resolve(response), reject);
        });
        request.on('error', (error: NodeJS.ErrnoException) => {
          // The endpoint has closed a connection that was kept, as it may: nothing was sent.
          const closed = request.reusedSocket && ['ECONNRESET', 'EPIPE'].includes(error.code ?? '');
          if (closed && !signal.aborted) once().then(resolve, reject);
          else reject(error);
        });
        request.end(body);
      });
    return once();
  }
}

/** Resolves when it was read, or as much of it as anybody cares for. */
function drained(response: IncomingMessage): Promise<void> {
  return new Promise((resolve, reject) => {
    let bytes = 0;
    response.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= ANSWER_BYTES) return;
      resolve();
      response.destroy();
    });
    response.on('end', resolve);
    response.on('error', reject);
  });
}

/** https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md, "Signature scheme". */
export function signed(
  { id, body }: Message,
  secrets: readonly string[],
  timestamp: number,
): Record<string, string> {
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  };
}
