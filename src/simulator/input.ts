/**
 * Files that are read in pieces: gzipped or not, `-` for standard input, never more than a bound, and every error with the
 * name of the file.
 */
import { createReadStream } from 'node:fs';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';

export const STANDARD_INPUT = '-';

/** Of one file, unpacked. */
export const MAX_BYTES = 1024 ** 3;
/** Read and unpacked at a time: in the 16 KB that zlib takes unless told, a third of the time goes to their number. */
const PIECE_BYTES = 1024 ** 2;

/** What messages call the file. */
export const nameOf = (path: string): string => (path === STANDARD_INPUT ? 'standard input' : path);

/**
 * The content of a file in pieces. Throws what opening, reading and unpacking it throws, and on more than `maxBytes`, with the
 * name of the file.
 */
export async function* piecesOf(path: string, maxBytes = MAX_BYTES): AsyncGenerator<Buffer> {
  let bytes = 0;
  try {
    const source =
      path === STANDARD_INPUT
        ? createReadStream('', { fd: 0, autoClose: false, highWaterMark: PIECE_BYTES })
        : createReadStream(path, { highWaterMark: PIECE_BYTES });
    for await (const piece of unpacked(source)) {
      bytes += piece.length;
      if (bytes > maxBytes) throw new Error(`more than ${maxBytes} bytes, the maximum`);
      yield piece;
    }
  } catch (error) {
    const { message } = error as Error;
    throw message.includes(nameOf(path)) ? error : new Error(`${nameOf(path)}: ${message}`);
  }
}

/** The text of a small file; throws as {@link piecesOf}. */
export async function textOf(path: string, maxBytes: number): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of piecesOf(path, maxBytes)) pieces.push(piece);
  return Buffer.concat(pieces).toString('utf8');
}

async function* unpacked(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const pieces = source[Symbol.asyncIterator]();
  const { value: first, done } = await pieces.next();
  if (done || first === undefined) return;
  async function* all(): AsyncGenerator<Buffer> {
    yield first as Buffer;
    for (let next = await pieces.next(); !next.done; next = await pieces.next()) yield next.value;
  }
  if (first[0] !== 0x1f || first[1] !== 0x8b) {
    yield* all();
    return;
  }
  const gunzip = createGunzip({ chunkSize: PIECE_BYTES });
  // What goes wrong on the way comes out of the loop over `gunzip`.
  pipeline(Readable.from(all(), { objectMode: false }), gunzip, () => {});
  yield* gunzip;
}
