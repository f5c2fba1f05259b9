import { isUtf8 } from 'node:buffer';
import * as fs from 'node:fs';

/** What is used of `node:fs`. */
export type OutputFiles = {
  openSync(path: string, flags: number, mode: number): number;
  closeSync(fd: number): void;
  fstatSync(fd: number): { size: number; blocks: number };
  ftruncateSync(fd: number, bytes: number): void;
  readSync(fd: number, into: Buffer, offset: number, length: number, position: number): number;
  writeSync(fd: number, bytes: Buffer, offset: number, length: number, position: number): number;
};

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
    private readonly files: OutputFiles = fs,
  ) {
    this.fd = files.openSync(path, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600);
  }

  /** Empties it: nothing of one run is left to the next. */
  clear(): void {
    this.cut = null;
    if (this.slice(0, 1).length > 0) this.files.ftruncateSync(this.fd, 0);
  }

  /** Gives disk space back when more was written than is kept. */
  trim(): void {
    const { size, blocks } = this.files.fstatSync(this.fd);
    if (blocks * 512 <= 2 * this.keepBytes + 65536 || size <= (this.cut?.at ?? 0) + this.keepBytes) return;
    let at = size;
    let tail = this.tail(size);
    // What is written from the last look to the cut is lost: each look has less to read, and is shorter, than the one before.
    for (let look = 0; look < 3; look++) {
      const grown = this.files.fstatSync(this.fd).size;
      const news = this.slice(Math.max(at, grown - this.keepBytes), grown);
      tail = Buffer.concat([tail, news]).subarray(-this.keepBytes);
      at = grown;
    }
    this.cut = { at, tail };
    this.files.ftruncateSync(this.fd, this.headBytes);
  }

  /** Adds lines of the agent's, behind what the run has written. */
  append(text: string): void {
    const { size } = this;
    const isWithin = size > 0 && this.slice(size - 1, size).toString() !== '\n';
    const bytes = Buffer.from(isWithin ? `\n${text}` : text);
    this.files.writeSync(this.fd, bytes, 0, bytes.length, size);
  }

  /** Bytes written up to now. */
  get size(): number {
    return Math.max(this.files.fstatSync(this.fd).size, this.cut?.at ?? 0);
  }

  /** What is kept and follows `from`, at most so many bytes of it in one piece. null: nothing has been written behind it. */
  next(from: number, most: number): { start: number; body: Buffer } | null {
    const { size } = this;
    if (from >= size) return null;
    const inHead = size <= this.keepBytes || from < this.headBytes;
    const start = inHead ? from : Math.max(from, size - (this.keepBytes - this.headBytes));
    const end = Math.min(size, start + most, inHead && size > this.keepBytes ? this.headBytes : size);
    return { start, body: this.range(start, end) };
  }

  /** The first bytes as text. */
  beginning(bytes: number): string {
    return this.slice(0, bytes).toString('utf8');
  }

  close(): void {
    this.files.closeSync(this.fd);
  }

  private get headBytes(): number {
    return this.keepBytes >> 1;
  }

  /** The last bytes before `end` that are kept. */
  private tail(end: number): Buffer {
    return this.range(Math.max(this.headBytes, end - (this.keepBytes - this.headBytes)), end);
  }

  /** From the file and, where that was cut, from what was kept of it. */
  private range(from: number, to: number): Buffer {
    if (!this.cut || from >= this.cut.at || to <= this.headBytes) return this.slice(from, to);
    const { at, tail } = this.cut;
    const kept = tail.subarray(Math.max(0, tail.length - (at - from)), tail.length - Math.max(0, at - to));
    return to <= at ? kept : Buffer.concat([kept, this.slice(at, to)]);
  }

  private slice(from: number, to: number): Buffer {
    const buffer = Buffer.allocUnsafe(Math.max(0, to - from));
    let length = 0;
    while (length < buffer.length) {
      const got = this.files.readSync(this.fd, buffer, length, buffer.length - length, from + length);
      if (got === 0) break;
      length += got;
    }
    return buffer.subarray(0, length);
  }
}

/** As text where that says the same. */
export function written(body: Buffer): { text: string } | { base64: string } {
  return isUtf8(body) && !body.includes(0)
    ? { text: body.toString('utf8') }
    : { base64: body.toString('base64') };
}
