/** Bodies of requests: read as they arrive, each byte counted, and no further than they may be long. */
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Request } from 'express';
import { GraphQLError } from 'graphql';
import type { Budget } from './admission/budget.js';
import { refusedRequest } from './errors.js';
import { parseJson } from './json.js';

/** A body that does not say its length is not longer. */
const UNTOLD_BYTES_MAX = 1024 * 1024;

const INFLATERS = { gzip: createGunzip, deflate: createInflate, br: createBrotliDecompress } as const;
type Encoding = keyof typeof INFLATERS;

/** The body of a request, decompressed, of so many bytes at the most. Throws what the client is to be told. */
export async function readBody(req: Request, bodyBytesMax: number, budget: Budget): Promise<Buffer> {
  const told = Number(req.headers['content-length'] ?? Number.NaN);
  const most = Number.isNaN(told) ? Math.min(UNTOLD_BYTES_MAX, bodyBytesMax) : bodyBytesMax;
  const tooLong = (): GraphQLError =>
    refusedRequest(
      'LIMIT_EXCEEDED',
      `the request is too large; accepted: up to ${bodyBytesMax} bytes, and up to ${UNTOLD_BYTES_MAX} without a Content-Length`,
    );
  if (told > most) throw tooLong();
  const pieces: Buffer[] = [];
  let length = 0;
  try {
    for await (const piece of decompressed(req)) {
      length += (piece as Buffer).length;
      if (length > most) throw tooLong();
      budget.arrived((piece as Buffer).length);
      pieces.push(piece as Buffer);
    }
  } catch (error) {
    if (error instanceof GraphQLError) throw error;
    throw badBody(`the body cannot be read (${(error as Error).message})`, 400);
  }
  return Buffer.concat(pieces, length);
}

/** Answers what may be refused while the rest is still to come: then the connection is not destroyed before the answer is sent. */
function decompressed(req: Request): AsyncIterable<unknown> {
  const encoding = (req.headers['content-encoding'] ?? 'identity').toLowerCase();
  if (encoding === 'identity') return req.iterator({ destroyOnReturn: false });
  if (!(encoding in INFLATERS)) throw badBody(`the body cannot be read (Content-Encoding ${encoding})`, 415);
  const inflater = INFLATERS[encoding as Encoding]();
  req.once('error', (error) => inflater.destroy(error));
  return req.pipe(inflater);
}

/** Whether the body is said to be JSON. Throws for a charset other than that of JSON. */
export function isJson({ headers }: Request): boolean {
  const [type = '', ...parameters] = (headers['content-type'] ?? '').toLowerCase().split(';');
  if (type.trim() !== 'application/json') return false;
  const charset = parameters.map((one) => /^\s*charset\s*=\s*"?([^"\s]+)/.exec(one)?.[1]).find(Boolean);
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8')
    throw badBody(`the body cannot be read (charset ${charset})`, 415);
  return true;
}

/** The object or list that a body says, parsed in turns of whose turn it is. */
export async function parsedBody(body: Buffer, budget: Budget): Promise<unknown> {
  budget.parsed(body.length);
  let value: unknown;
  try {
    value = await parseJson(body);
  } catch {
    value = null;
  }
  if (value === null || typeof value !== 'object') throw badBody('the body is not JSON', 400);
  return value;
}

const badBody = (message: string, status: number): GraphQLError =>
  new GraphQLError(message, { extensions: { code: 'BAD_REQUEST', http: { status } } });
