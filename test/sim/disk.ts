/**
 * The disk of a machine, in memory: it fills up, takes a part of what is written then, and loses what is young when the power goes. A
 * program that uses it can be killed between any two of its calls, and in the middle of a write.
 */
import type { RandomStream } from '../../src/core/index.js';
import type { Files } from '../../src/platform/env.js';
import type { Process, Time } from './time.js';

interface File {
  bytes: Buffer;
  /** What a power cut leaves of it at the least; null: not even its name. */
  safe: Buffer | null;
  changedAt: number;
}

/** The system writes back what is older than this, ms. */
const WRITTEN_BACK_MS = 5_000;
/** Bytes: few, so that a line seldom fits into what is left of a file's last one. */
const BLOCK = 256;

const failure = (code: string): Error => Object.assign(new Error(code), { code });

export class SimulatedDisk {
  /** Blocks that something else has taken. */
  private others = 0;
  private readonly files = new Map<string, File>();
  private readonly open = new Map<number, { file: File; append: boolean; at: number }>();
  private nextFd = 3;

  /** @param blocks how large it is, in blocks */
  constructor(
    private readonly time: Time,
    private readonly random: RandomStream,
    private readonly blocks: number,
  ) {}

  /** As a process sees it. One that is dead does nothing any more. */
  of(process: Process): Files {
    const alive = (): void => {
      if (process.dead) throw failure('killed');
      process.callsLeft--;
      if (process.callsLeft < 0) this.kill(process);
    };
    const found = (path: string): File => {
      const file = this.files.get(path);
      if (file === undefined) throw failure('ENOENT');
      return file;
    };
    return {
      openSync: (path, flags) => {
        alive();
        const known = this.files.get(path);
        if (known === undefined && this.free < 1) throw failure('ENOSPC');
        const file = known ?? { bytes: Buffer.alloc(0), safe: null, changedAt: this.time.now };
        this.files.set(path, file);
        if (flags === 'w') this.change(file, Buffer.alloc(0));
        this.open.set(this.nextFd, { file, append: flags === 'a', at: 0 });
        return this.nextFd++;
      },
      closeSync: (fd) => void this.open.delete(fd),
      writeSync: (fd, bytes, offset, length, position) => {
        const torn = process.callsLeft === 0 ? this.random.integer(0, length) : length;
        const handle = this.open.get(fd);
        if (handle === undefined) throw failure('EBADF');
        if (process.dead) throw failure('killed');
        const { file, append } = handle;
        const at = append ? file.bytes.length : (position ?? handle.at);
        const room = this.roomFor(file, at);
        if (room === 0 && length > 0) throw failure('ENOSPC');
        const taken = Math.min(torn, room);
        const end = at + taken;
        const whole = Buffer.alloc(Math.max(file.bytes.length, end));
        file.bytes.copy(whole);
        bytes.copy(whole, at, offset, offset + taken);
        this.change(file, whole);
        if (position === null) handle.at = end;
        alive();
        return taken;
      },
      ftruncateSync: (fd, length) => {
        alive();
        const { file } = this.open.get(fd) as { file: File };
        if (length < file.bytes.length) this.change(file, file.bytes.subarray(0, length));
      },
      readFileSync: (path) => {
        alive();
        return found(path).bytes.toString('utf8');
      },
      readdirSync: (path) => {
        alive();
        const inside = [...this.files.keys()].filter((name) => name.startsWith(`${path}/`));
        return inside.map((name) => name.slice(path.length + 1)).filter((name) => !name.includes('/'));
      },
      mkdirSync: alive,
      rmSync: (path) => {
        alive();
        this.files.delete(path);
      },
      statSync: (path) => {
        alive();
        const file = this.files.get(path);
        return file && { size: file.bytes.length };
      },
      statfsSync: () => {
        alive();
        return { bsize: BLOCK, blocks: this.blocks, bavail: this.free };
      },
    };
  }

  /** What is in the files below a directory. */
  *textsBelow(dir: string): Generator<[path: string, text: string]> {
    for (const [path, { bytes }] of this.files)
      if (path.startsWith(`${dir}/`)) yield [path, bytes.toString()];
  }

  /** Something else takes all the room that is left, `greedy`: and all that becomes free; or gives it back. */
  fill(greedy: boolean): void {
    this.others = greedy ? Infinity : this.others + this.free;
  }
  makeRoom(): void {
    this.others = 0;
  }

  /** Another disk, which is empty. */
  replace(): void {
    this.files.clear();
    this.others = 0;
  }

  /** Of what is young, anything may be missing: an end, the whole file, or it is there and consists of zeros. */
  cutPower(): void {
    for (const [path, file] of this.files) {
      if (this.time.now - file.changedAt >= WRITTEN_BACK_MS) continue;
      const { bytes, safe } = file;
      const kept = this.random.integer(safe?.length ?? 0, Math.max(safe?.length ?? 0, bytes.length));
      const left = [
        () => bytes,
        () => safe,
        () => bytes.subarray(0, kept),
        () => Buffer.concat([bytes.subarray(0, kept), Buffer.alloc(Math.max(0, bytes.length - kept))]),
      ][this.random.integer(0, 3)]?.();
      if (left) Object.assign(file, { bytes: left, safe: left });
      else this.files.delete(path);
    }
  }

  private kill(process: Process): never {
    process.dead = true;
    process.onDeath();
    throw failure('killed');
  }

  private change(file: File, bytes: Buffer): void {
    // What was written long ago has been written back.
    if (this.time.now - file.changedAt >= WRITTEN_BACK_MS) file.safe = file.bytes;
    file.bytes = bytes;
    file.changedAt = this.time.now;
  }

  private get free(): number {
    let used = this.others;
    for (const { bytes } of this.files.values()) used += Math.ceil(bytes.length / BLOCK);
    return Math.max(0, this.blocks - used);
  }

  /** Bytes that a file takes from there on: its last block may have room on a full disk. */
  private roomFor({ bytes }: File, at: number): number {
    return Math.ceil(bytes.length / BLOCK) * BLOCK - at + this.free * BLOCK;
  }
}
