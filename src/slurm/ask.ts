/** Asks the service by one request. Not with the client that the other commands share: fetch and what it loads take longer than all the rest here. */
import { readFileSync } from 'node:fs';
import { type IncomingMessage, request as plain } from 'node:http';
import { join } from 'node:path';
import type { Document } from '../client/index.js';
import { type Connection, loadConnection } from '../platform/connection.js';

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

/** Gives the answer once its head has come. What cannot be reached is told as Slurm tells it: clients try again. */
export async function send(
  path: string,
  { body, headers = {} }: { body?: string; headers?: Record<string, string> } = {},
): Promise<IncomingMessage> {
  const { url: endpoint, key } = clientOptions();
  const url = new URL(endpoint);
  const { request } = url.protocol === 'https:' ? await import('node:https') : { request: plain };
  const base = url.pathname.replace(/\/graphql\/?$/, '');
  const askAt = (hostname?: string): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const asked = request(
        new URL(path === '/graphql' ? url.pathname : base + path, url),
        {
          ...(hostname !== undefined && { hostname, servername: '' }),
          method: body === undefined ? 'GET' : 'POST',
          headers: {
            host: url.host,
            ...(key !== null && { authorization: `Bearer ${key}` }),
            ...(body !== undefined && {
              'content-type': 'application/json',
              'content-length': Buffer.byteLength(body),
            }),
            ...headers,
          },
          agent: false,
          timeout: PATIENCE_MS,
        },
        resolve,
      );
      asked.on('timeout', () => asked.destroy(new Error('Socket timed out on send/recv operation')));
      asked.on('error', reject);
      asked.end(body);
    });
  try {
    // To tell a name from an address of IPv6, and to look it up, takes Node longer than the service takes to answer.
    if (url.protocol !== 'http:' || url.hostname !== 'localhost') return await askAt();
    return await askAt('127.0.0.1').catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNREFUSED') throw error;
      return askAt('::1');
    });
  } catch (error) {
    const { message } = error as Error;
    throw new SlurmError(`Unable to contact slurm controller (connect failure): ${url.origin}: ${message}`);
  }
}

export async function bodyOf(answer: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of answer) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

/** @throws SlurmError for what the service refuses, in its words */
export async function ask<Answer, Variables extends object>(
  document: Document<Answer, Variables>,
  variables: NoInfer<Variables>,
): Promise<Answer> {
  const answer = await send('/graphql', { body: JSON.stringify({ query: document, variables }) });
  const text = (await bodyOf(answer)).toString();
  let parsed: { data?: Answer | null; errors?: { message: string }[] };
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new SlurmError(`Unexpected response from the service: ${answer.statusCode}`);
  }
  if (parsed.errors?.[0]) throw new SlurmError(parsed.errors[0].message);
  if (!parsed.data) throw new SlurmError(`Unexpected response from the service: ${answer.statusCode}`);
  return parsed.data;
}
