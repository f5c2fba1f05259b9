/** Asks the service by one request. Not with the client that the other commands share: fetch and what it loads take longer than all the rest here. */
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import type { Document } from '../client/index.js';
import { type Connection, loadConnection } from '../platform/connection.js';
import { type Answer, type Asked, exchange } from './exchange.js';

/** Something that is said on standard error, in Slurm's words where its clients read them. */
export class SlurmError extends Error {
  override readonly name = 'SlurmError';

  /** @param fault what of the command line is at fault, which has an exit code of its own where jobs are submitted; null: nothing */
  constructor(
    message: string,
    readonly fault: 'OPTION' | 'VALUE' | null = null,
  ) {
    super(message);
  }
}

/** A long list, and a submission of a large array, on a busy machine. */
const PATIENCE_MS = 120_000;

function keyOf({ key, home }: Connection): string | null {
  if (key !== null) return key;
  try {
    return readFileSync(join(home, 'admin.key'), 'utf8').trim();
  } catch {
    return null;
  }
}

/** Where the service is, for the client that the other commands of Switchyard have. */
export function clientOptions(): { url: string; key: string | null } {
  const connection = loadConnection();
  return { url: connection.url, key: keyOf(connection) };
}

/** What cannot be reached is told as Slurm tells it: clients try again. */
export async function send(
  path: string,
  { body, headers = {} }: { body?: string; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const { url: endpoint, key } = clientOptions();
  const url = new URL(endpoint);
  const isPlain = url.protocol === 'http:';
  const base = url.pathname.replace(/\/graphql\/?$/, '');
  const { pathname, search } = new URL(path === '/graphql' ? url.pathname : base + path, url);
  const asked: Asked = {
    method: body === undefined ? 'GET' : 'POST',
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: Number(url.port || (isPlain ? 80 : 443)),
    path: pathname + search,
    headers: {
      host: url.host,
      ...(key !== null && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      }),
      ...headers,
    },
    ...(body !== undefined && { body }),
    timeoutMs: PATIENCE_MS,
  };
  try {
    if (!isPlain) return await encrypted(asked);
    // To look a name up takes Node longer than the service takes to answer.
    if (asked.host !== 'localhost') return await exchange(asked);
    return await exchange({ ...asked, host: '127.0.0.1' }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNREFUSED') throw error;
      return exchange({ ...asked, host: '::1' });
    });
  } catch (error) {
    const { message } = error as Error;
    throw new SlurmError(`Unable to contact slurm controller (connect failure): ${url.origin}: ${message}`);
  }
}

async function encrypted({ body, timeoutMs, ...asked }: Asked): Promise<Answer> {
  const { request } = await import('node:https');
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const sent = request({ ...asked, agent: false, timeout: timeoutMs }, resolve);
    sent.on('timeout', () => sent.destroy(new Error('Socket timed out on send/recv operation')));
    sent.on('error', reject);
    sent.end(body);
  });
  const pieces: Buffer[] = [];
  for await (const piece of answer) pieces.push(piece as Buffer);
  return { status: answer.statusCode!, body: Buffer.concat(pieces) };
}

/** @throws SlurmError for what the service refuses, in its words */
export async function ask<Answer, Variables extends object>(
  document: Document<Answer, Variables>,
  variables: NoInfer<Variables>,
): Promise<Answer> {
  const { status, body } = await send('/graphql', { body: JSON.stringify({ query: document, variables }) });
  let parsed: { data?: Answer | null; errors?: { message: string }[] };
  try {
    parsed = JSON.parse(body.toString());
  } catch {
    throw new SlurmError(`Unexpected response from the service: ${status}`);
  }
  if (parsed.errors?.[0]) throw new SlurmError(parsed.errors[0].message);
  if (!parsed.data) throw new SlurmError(`Unexpected response from the service: ${status}`);
  return parsed.data;
}
