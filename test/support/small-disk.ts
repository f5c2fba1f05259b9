/** A small file system of a test's own (tmpfs), to be filled. Only root may mount one: where it cannot be done `mayMount` is false. */
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

const quiet = { stdio: 'ignore' } as const;
const mount = (dir: string, sizeMb: number): boolean =>
  spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${sizeMb}m`, 'tmpfs', dir], quiet).status === 0;

function unmount(dir: string): void {
  spawnSync('umount', ['-l', dir], quiet);
  rmSync(dir, { recursive: true, force: true });
}

export const mayMount = ((): boolean => {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return false;
  const dir = mkdtempSync(join(tmpdir(), 'switchyard-mount-'));
  const mounted = mount(dir, 1);
  unmount(dir);
  if (!mounted) console.warn('Tests of full disks are skipped: no file system can be mounted here.');
  return mounted;
})();

/** Where it is mounted, until the test is finished. */
export function smallDisk(sizeMb: number): string {
  const dir = mkdtempSync(join(tmpdir(), 'switchyard-small-'));
  onTestFinished(() => unmount(dir));
  if (!mount(dir, sizeMb)) throw new Error(`nothing can be mounted at ${dir}`);
  return dir;
}

/** Takes all the room there is, but for so many bytes. Others may be writing meanwhile. */
export function fill(dir: string, leave = 0): void {
  const fd = openSync(join(dir, 'ballast'), 'a');
  const { bavail, bsize } = statfsSync(dir);
  const block = Buffer.alloc(bsize, 1);
  try {
    for (let left = bavail * bsize - leave; left >= bsize; left -= bsize) writeSync(fd, block);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(fd);
  }
}

export const makeRoom = (dir: string): void => rmSync(join(dir, 'ballast'));
