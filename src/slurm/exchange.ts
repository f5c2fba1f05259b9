/**
 * One HTTP request on one connection, without node:http, which takes as long to load as everything else that these commands do before they ask
 * (`npm run bench -- --only squeue`). The server is told to close the connection behind its answer, so an answer is read once it is whole.
 */
import { connect } from 'node:net';

export interface Answer {
  status: number;
  body: Buffer;
}

export interface Asked {
  method: string;
  host: string;
  port: number;
  /** With the query. */
  path: string;
  headers: Readonly<Record<string, string | number>>;
  body?: string;
  /** Without a byte, either way. */
  timeoutMs: number;
}

/** @throws Error if the host cannot be reached, stays silent, or closes the connection before its answer is whole */
export function exchange({
  method,
  host,
  port,
  path,
  headers,
  body = '',
  timeoutMs,
}: Asked): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, host);
    const pieces: Buffer[] = [];
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error('Socket timed out on send/recv operation')));
    socket.on('error', reject);
    socket.on('data', (piece) => pieces.push(piece));
    socket.on('end', () => {
      try {
        resolve(answerIn(Buffer.concat(pieces)));
      } catch (error) {
        reject(error);
      }
    });
    const lines = Object.entries({ ...headers, connection: 'close' }).map(
      ([name, value]) => `${name}: ${value}`,
    );
    socket.write([`${method} ${path} HTTP/1.1`, ...lines, '', body].join('\r\n'));
  });
}

const cut = (): Error => new Error('the connection was closed before the answer was whole');

/** What was received until the connection was closed (RFC 9112). */
function answerIn(received: Buffer): Answer {
  const end = received.indexOf('\r\n\r\n');
  if (end < 0) throw cut();
  const head = received.toString('latin1', 0, end);
  const status = Number(/^HTTP\/1\.[01] (\d{3})\b/.exec(head)?.[1]);
  if (Number.isNaN(status)) throw new Error('the answer is not HTTP/1');
  const rest = received.subarray(end + 4);
  // Others follow those that only say that work goes on.
  if (status < 200) return answerIn(rest);
  if (/^transfer-encoding:\s*chunked\s*$/im.test(head)) return { status, body: unchunked(rest) };
  const length = Number(/^content-length:(.*)$/im.exec(head)?.[1] ?? rest.length);
  if (!(rest.length >= length)) throw cut();
  return { status, body: rest.subarray(0, length) };
}

function unchunked(body: Buffer): Buffer {
  const chunks: Buffer[] = [];
  for (let from = 0; ; ) {
    const line = body.indexOf('\r\n', from);
    const size = line < 0 ? Number.NaN : Number.parseInt(body.toString('latin1', from, line), 16);
    const end = line + 2 + size;
    if (!(body.length >= end)) throw cut();
    if (size === 0) return Buffer.concat(chunks);
    chunks.push(body.subarray(line + 2, end));
    from = end + 2;
  }
}
