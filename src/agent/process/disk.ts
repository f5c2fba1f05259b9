import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Files, REAL_ENV } from '../../platform/env.js';
import { hostEnvironment } from '../../platform/environment.js';

/** Of the file system, whichever is less. With less room than this nothing new is started. */
const LOW = { bytes: 256 << 20, part: 1 / 20 };
/** Kept back, so that what runs can still be accounted for when the disk is full. */
const RESERVE = { bytes: 16 << 20, part: 1 / 100 };
/** What it consists of. Not zeros: some file systems store those without taking room for them. */
const PIECE = Buffer.alloc(1 << 20, 'switchyard');
const LOOK_EVERY_MS = 500;

/** Errors of the system that say nothing about the run: the machine has no room, no descriptors, no processes left for now. */
const PASSING = new Set([
  ...['ENOSPC', 'EDQUOT', 'EROFS', 'EIO', 'EMFILE', 'ENFILE', 'EAGAIN', 'ENOMEM'],
  // Of a file system that others share.
  'ETIMEDOUT',
]);

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
    const room = this.room();
    this.low = room === null || room.free < Math.min(LOW.bytes, room.size * LOW.part);
    if (room && !this.low) this.reserve(Math.floor(Math.min(RESERVE.bytes, room.size * RESERVE.part)));
    return this.low;
  }

  /** Bytes of the file system; null: somebody has removed the directory. */
  private room(): { free: number; size: number } | null {
    try {
      const { bavail, blocks, bsize } = this.files.statfsSync(this.dir);
      return { free: bavail * bsize, size: blocks * bsize };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
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
        for (let at = 0; at < bytes; )
          at += files.writeSync(fd, PIECE, 0, Math.min(PIECE.length, bytes - at), null);
      } finally {
        files.closeSync(fd);
      }
    } catch {
      this.release();
    }
  }
}

/** A look that takes longer has not seen all. */
const LOOK_MS = 60_000;

/**
 * Bytes that directories take with all below them. By du(1), which goes as deep as they do, however many files there are, follows no links, and
 * counts what has two names once. What it cannot see, or has gone, does not count.
 */
export async function roomOf(directories: readonly string[], lookMs = LOOK_MS): Promise<number> {
  const { out } = await run('du', ['-skx', '--', ...directories], lookMs);
  return [...out.matchAll(/^\d+/gm)].reduce((sum, [kb]) => sum + Number(kb) * 1024, 0);
}

/** Removes a directory with all below it, also what lies deeper than paths are long. */
export async function removeTree(dir: string): Promise<void> {
  await rm(dir, { recursive: true, force: true }).catch(async (error) => {
    if (!(await run('rm', ['-rf', '--', dir], 0)).well) throw error;
  });
}

function run(
  program: string,
  words: readonly string[],
  timeout: number,
): Promise<{ well: boolean; out: string }> {
  return new Promise((resolve) => {
    const options = { env: hostEnvironment(), cwd: '/', timeout };
    execFile(program, words, options, (error, out) => resolve({ well: error === null, out }));
  });
}
