/**
 * A directory as one file, for a service that keeps files: a tar (POSIX pax) that says what it is, so that it is unpacked where the next run
 * is to find a directory, and no tar that a job has made itself is. It is read as it is sent, and never lies on the agent's disk.
 */
import { dirname, join } from 'node:path';
import { filePathFault } from '../../platform/file-paths.js';
import { MAX } from '../../platform/limits.js';
import type { OpenFile } from './handover.js';
import { chmod, mkdir, open } from './share.js';

const BLOCK = 512;
const CHUNK = 1 << 20;
/** Of a header of ours that says more of a file. */
const EXTENDED_MAX = 16_384;
/** Comment in the header for the whole archive. */
const MARK = 'directory saved by Switchyard';

/** A file of the directory. */
export interface Packed {
  /** Below the directory. */
  name: string;
  bytes: number;
  executable: boolean;
  open(): Promise<OpenFile>;
}

interface Piece {
  from: number;
  to: number;
  /** What is there; or a file, whose bytes are. */
  of: Buffer | Packed;
}

/** The archive of these files, to be read anywhere in it. */
export function packed(files: readonly Packed[]): OpenFile {
  const pieces: Piece[] = [];
  let end = 0;
  const put = (of: Buffer | Packed, bytes: number): void => {
    if (bytes > 0) pieces.push({ from: end, to: end + bytes, of });
    end += bytes;
  };
  const header = (...given: Parameters<typeof headerOf>): void => put(headerOf(...given), BLOCK);
  const extended = (type: 'g' | 'x', records: string): void => {
    const data = Buffer.from(records);
    header('pax', data.length, type, false);
    put(data, data.length);
    put(Buffer.alloc(padding(data.length)), padding(data.length));
  };
  extended('g', record('comment', MARK));
  for (const file of files) {
    const { name, bytes, executable } = file;
    extended('x', record('path', name) + record('size', String(bytes)));
    header('file', bytes, '0', executable);
    put(file, bytes);
    put(Buffer.alloc(padding(bytes)), padding(bytes));
  }
  put(Buffer.alloc(2 * BLOCK), 2 * BLOCK);
  return new Pieces(pieces);
}

/** One file of it is open at a time. */
class Pieces implements OpenFile {
  private opened: { of: Packed; file: OpenFile } | null = null;

  constructor(private readonly pieces: readonly Piece[]) {}

  async read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ bytesRead: number }> {
    const piece = this.pieces.find(({ from, to }) => from <= position && position < to);
    if (piece === undefined) return { bytesRead: 0 };
    const { from, to, of } = piece;
    const bytes = Math.min(length, to - position);
    if (Buffer.isBuffer(of))
      return { bytesRead: of.copy(buffer, offset, position - from, position - from + bytes) };
    const file = await this.fileOf(of);
    const { bytesRead } = await file.read(buffer, offset, bytes, position - from);
    if (bytesRead === 0) throw new Error(`${of.name} became shorter while being saved`);
    return { bytesRead };
  }

  async close(): Promise<void> {
    await this.opened?.file.close();
    this.opened = null;
  }

  private async fileOf(of: Packed): Promise<OpenFile> {
    if (this.opened?.of === of) return this.opened.file;
    await this.close();
    const file = await of.open();
    this.opened = { of, file };
    return file;
  }
}

/** Whether the file is an archive of ours. */
export async function isPacked(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    if (!(await file.stat()).isFile()) return false;
    const start = Buffer.alloc(2 * BLOCK);
    const { bytesRead } = await file.read(start, 0, start.length, 0);
    if (bytesRead < start.length || typeOf(start) !== 'g') return false;
    return start.subarray(BLOCK).toString().startsWith(record('comment', MARK));
  } finally {
    await file.close();
  }
}

/**
 * Makes the directory of an archive of ours.
 *
 * @throws Error where it is cut short, or has anything but files below the directory
 */
export async function unpack(path: string, directory: string): Promise<void> {
  const file = await open(path);
  try {
    let at = 0;
    const take = async (bytes: number): Promise<Buffer> => {
      const buffer = Buffer.alloc(bytes);
      const { bytesRead } = await file.read(buffer, 0, bytes, at);
      if (bytesRead < bytes) throw new Error('the checkpoint is cut short');
      at += bytes;
      return buffer;
    };
    const made = new Set<string>();
    const make = async (dir: string): Promise<void> => {
      if (made.has(dir)) return;
      if (dir !== directory) await make(dirname(dir));
      await mkdir(dir, { recursive: true });
      await chmod(dir, 0o755);
      made.add(dir);
    };
    await make(directory);
    let said = new Map<string, string>();
    for (let files = 0; ; ) {
      const header = await take(BLOCK);
      const type = typeOf(header);
      if (type === '\0' && header.every((byte) => byte === 0)) return;
      const bytes = Number(said.get('size') ?? Number.parseInt(header.toString('latin1', 124, 136), 8));
      if (!Number.isSafeInteger(bytes) || bytes < 0) throw new Error('the checkpoint has a file of no size');
      if (type === 'g' || type === 'x') {
        if (bytes > EXTENDED_MAX) throw new Error('the checkpoint has a header that is too long');
        const records = recordsOf(await take(bytes));
        if (type === 'x') said = records;
      } else if (type === '0' && ++files <= MAX.jobFiles) {
        const name = said.get('path') ?? '';
        const fault = filePathFault(name, MAX.outputPathChars);
        if (fault !== null)
          throw new Error(`the checkpoint has a file ${JSON.stringify(name)}; accepted: ${fault}`);
        const to = join(directory, name);
        await make(dirname(to));
        const written = await open(to, 'wx');
        try {
          for (let left = bytes; left > 0; left -= CHUNK)
            await written.writeFile(await take(Math.min(left, CHUNK)));
        } finally {
          await written.close();
        }
        // Whatever the agent's mask is: accounts of runs read it.
        await chmod(to, Number.parseInt(header.toString('latin1', 100, 108), 8) & 0o100 ? 0o755 : 0o644);
        said = new Map();
      } else
        throw new Error(`the checkpoint has more than ${MAX.jobFiles} files, or something else than files`);
      at += padding(bytes);
    }
  } finally {
    await file.close();
  }
}

const padding = (bytes: number): number => (BLOCK - (bytes % BLOCK)) % BLOCK;

const typeOf = (header: Buffer): string => header.toString('latin1', 156, 157);

/** A header of ustar. Where it matters, another one before it says name and size. */
function headerOf(name: string, bytes: number, type: 'g' | 'x' | '0', executable: boolean): Buffer {
  const header = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, digits: number): void => {
    header.write(`${value.toString(8).padStart(digits, '0').slice(-digits)}\0`, at, 'latin1');
  };
  header.write(name, 0, 'latin1');
  octal(executable ? 0o755 : 0o644, 100, 7);
  octal(0, 108, 7);
  octal(0, 116, 7);
  octal(bytes, 124, 11);
  octal(0, 136, 11);
  header.write('        ', 148, 'latin1');
  header.write(type, 156, 'latin1');
  header.write('ustar\0', 257, 'latin1');
  header.write('00', 263, 'latin1');
  octal(
    header.reduce((sum, byte) => sum + byte, 0),
    148,
    6,
  );
  return header;
}

/** Its length is part of it. */
function record(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`;
  const bytes = Buffer.byteLength(rest);
  let length = bytes + 1;
  while (String(length).length + bytes !== length) length++;
  return `${length}${rest}`;
}

function recordsOf(data: Buffer): Map<string, string> {
  const records = new Map<string, string>();
  for (let at = 0; at < data.length; ) {
    const length = Number.parseInt(data.toString('latin1', at, at + 8), 10);
    if (!(length > 0)) break;
    const text = data.toString('utf8', at, at + length - 1);
    const [, key, value] = /^\d+ ([^=]*)=(.*)$/s.exec(text) ?? [];
    if (key !== undefined && value !== undefined) records.set(key, value);
    at += length;
  }
  return records;
}
