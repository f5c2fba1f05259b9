import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync } from 'node:fs';
import type { OutputText } from '../runner.js';

/**
 * One stream of a run in a file of bounded size.
 *
 * The run writes into the file directly, without anybody copying: that costs nothing per run, and goes on when the agent
 * dies. To bound it, the agent looks at it from time to time (`trim`) and cuts away what lies behind the head. The writer's
 * offset stays where it was, so that its next write leaves a hole: the file's length still counts all that was written,
 * its blocks only what is kept. Between two looks a fast writer can take a few hundred megabytes, not more.
 */
export class OutputFile {
  private readonly fd: number;
  /** Where the file was last cut, and what lay before that. */
  private cut: { at: number; tail: Buffer } | null = null;

  /** @param keepBytes how much is kept: half from the beginning and half from the end */
  constructor(
    path: string,
    private readonly keepBytes: number,
  ) {
    this.fd = openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600);
  }

  /** Empties it: nothing of one run is left to the next. */
  clear(): void {
    this.cut = null;
    if (this.slice(0, 1).length > 0) ftruncateSync(this.fd, 0);
  }

  /** Gives disk space back when more was written than is kept. */
  trim(): void {
    const { size, blocks } = fstatSync(this.fd);
    if (blocks * 512 <= 2 * this.keepBytes + 65536 || size <= (this.cut?.at ?? 0) + this.keepBytes) return;
    let at = size;
    let tail = this.tail(size);
    // What is written from the last look to the cut is lost: each look has less to read, and is shorter, than the one before.
    for (let look = 0; look < 3; look++) {
      const grown = fstatSync(this.fd).size;
      const news = this.slice(Math.max(at, grown - this.keepBytes), grown);
      tail = Buffer.concat([tail, news]).subarray(-this.keepBytes);
      at = grown;
    }
    this.cut = { at, tail };
    ftruncateSync(this.fd, this.headBytes);
  }

  /** What was written up to now. */
  read(): OutputText {
    const size = Math.max(fstatSync(this.fd).size, this.cut?.at ?? 0);
    if (size === 0) return { text: '', bytes: 0, truncated: false };
    if (size <= this.keepBytes)
      return { text: plainText(this.slice(0, size)), bytes: size, truncated: false };
    const head = wholeCharacters(this.slice(0, this.headBytes), 'end');
    const tail = wholeCharacters(this.tail(size), 'start');
    const left = size - head.length - tail.length;
    return {
      text: `${plainText(head)}\n[${left} bytes left out]\n${plainText(tail)}`,
      bytes: size,
      truncated: true,
    };
  }

  /** The first bytes as text. */
  beginning(bytes: number): string {
    return plainText(this.slice(0, bytes));
  }

  close(): void {
    closeSync(this.fd);
  }

  private get headBytes(): number {
    return this.keepBytes >> 1;
  }

  /** The last bytes before `end`, from the file and, where that was cut, from what was kept of it. */
  private tail(end: number): Buffer {
    const from = Math.max(this.headBytes, end - (this.keepBytes - this.headBytes));
    if (!this.cut || from >= this.cut.at) return this.slice(from, end);
    const kept = this.cut.tail.subarray(Math.max(0, this.cut.tail.length - (this.cut.at - from)));
    return Buffer.concat([kept, this.slice(this.cut.at, end)]);
  }

  private slice(from: number, to: number): Buffer {
    const buffer = Buffer.allocUnsafe(Math.max(0, to - from));
    let length = 0;
    while (length < buffer.length) {
      const got = readSync(this.fd, buffer, length, buffer.length - length, from + length);
      if (got === 0) break;
      length += got;
    }
    return buffer.subarray(0, length);
  }
}

/** Text that a database takes: no NUL, and what is no UTF-8 replaced. */
function plainText(bytes: Buffer): string {
  return bytes.toString('utf8').replaceAll('\0', '\uFFFD');
}

/** Drops the part of a UTF-8 character that a cut left at one side. */
function wholeCharacters(bytes: Buffer, side: 'start' | 'end'): Buffer {
  const isContinuation = (at: number): boolean => (bytes[at]! & 0xc0) === 0x80;
  if (side === 'start') {
    let from = 0;
    while (from < 3 && from < bytes.length && isContinuation(from)) from++;
    return bytes.subarray(from);
  }
  let lead = bytes.length - 1;
  while (lead > 0 && bytes.length - lead < 4 && isContinuation(lead)) lead--;
  const first = bytes[lead] ?? 0;
  const needed = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  return bytes.length - lead < needed ? bytes.subarray(0, lead) : bytes;
}
