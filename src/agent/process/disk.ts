import { lstat, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { type Files, REAL_ENV } from '../../platform/env.js';

/** Of the file system, whichever is less. With less room than this nothing new is started. */
const LOW = { bytes: 256 << 20, part: 1 / 20 };
/** Kept back, so that what runs can still be accounted for when the disk is full. */
const RESERVE = { bytes: 16 << 20, part: 1 / 100 };
const LOOK_EVERY_MS = 500;

/** Errors of the system that say nothing about the run: the machine has no room, no descriptors, no processes left for now. */
const PASSING = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EIO', 'EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM']);

export const isPassing = (error: unknown): boolean =>
  PASSING.has((error as NodeJS.ErrnoException)?.code ?? '');

/**
 * The room on the disk of a directory. Some of it is kept back in the file `reserve`, and given up when nothing else is left, so
 * that ends of runs can be written down though something else has filled the disk.
 */
export class Disk {
  private readonly path: string;
  private low = false;
  private lookedAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly dir: string,
    private readonly files: Files = REAL_ENV.files,
  ) {
    this.path = join(dir, 'reserve');
  }

  /** Whether there is too little room to start anything. `nowMs`: of a clock that only goes forward. */
  isLow(nowMs: number): boolean {
    if (nowMs - this.lookedAtMs < LOOK_EVERY_MS) return this.low;
    this.lookedAtMs = nowMs;
    const { bavail, blocks, bsize } = this.files.statfsSync(this.dir);
    const size = blocks * bsize;
    this.low = bavail * bsize < Math.min(LOW.bytes, size * LOW.part);
    if (!this.low) this.reserve(Math.floor(Math.min(RESERVE.bytes, size * RESERVE.part)));
    return this.low;
  }

  /** Gives up what was kept back. */
  release(): void {
    this.files.rmSync(this.path, { force: true });
    this.lookedAtMs = Number.NEGATIVE_INFINITY;
  }

  private reserve(bytes: number): void {
    const { files } = this;
    if (files.statSync(this.path, { throwIfNoEntry: false })?.size === bytes) return;
    try {
      const fd = files.openSync(this.path, 'w', 0o600);
      try {
        // Not zeros: some file systems store those without taking room for them.
        const noise = Buffer.alloc(bytes, 'switchyard');
        for (let at = 0; at < bytes; ) at += files.writeSync(fd, noise, at, bytes - at, null);
      } finally {
        files.closeSync(fd);
      }
    } catch {
      this.release();
    }
  }
}

/** Files of a tree that are looked at. */
const MAX_FILES = 100_000;

/** How much room trees take. */
export class Space {
  /** Bytes of all files below these directories. What vanishes meanwhile, or cannot be read, does not count. */
  async of(directories: readonly string[]): Promise<number> {
    let bytes = 0;
    let files = 0;
    const waiting = [...directories];
    for (let dir = waiting.pop(); dir !== undefined && files < MAX_FILES; dir = waiting.pop()) {
      try {
        for await (const entry of await opendir(dir)) {
          if (++files > MAX_FILES) break;
          const path = join(dir, entry.name);
          if (entry.isDirectory()) waiting.push(path);
          bytes += (await lstat(path)).blocks * 512;
        }
      } catch {
        // It has gone.
      }
    }
    return bytes;
  }
}
