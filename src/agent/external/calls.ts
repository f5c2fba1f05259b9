/** What is asked of the file system that the nodes share, each a question with a short answer that can be passed between threads. */
import * as fs from 'node:fs';
import { join } from 'node:path';

/** More than a run on many nodes writes in a mark. */
const TEXT_BYTES = 1 << 20;

export const CALLS = {
  openSync: (path: string, flags: string | number, mode?: number): number => fs.openSync(path, flags, mode),
  closeSync: (fd: number): void => fs.closeSync(fd),
  writeSync: (
    fd: number,
    bytes: Uint8Array,
    offset: number,
    length: number,
    position: number | null,
  ): number => fs.writeSync(fd, bytes, offset, length, position),
  readSync: (fd: number, into: Uint8Array, offset: number, length: number, position: number): number =>
    fs.readSync(fd, into, offset, length, position),
  ftruncateSync: (fd: number, bytes: number): void => fs.ftruncateSync(fd, bytes),
  fstatSync: (fd: number): { size: number; blocks: number } => {
    const { size, blocks } = fs.fstatSync(fd);
    return { size, blocks };
  },
  readFileSync: (path: string, encoding: 'utf8'): string => fs.readFileSync(path, encoding),
  writeFileSync: (path: string, text: string, options: { mode: number; flag?: string }): void =>
    fs.writeFileSync(path, text, options),
  readdirSync: (path: string): string[] => fs.readdirSync(path),
  mkdirSync: (path: string, options: { recursive: true; mode?: number }): void =>
    void fs.mkdirSync(path, options),
  rmSync: (path: string, options: { recursive?: boolean; force: true }): void => fs.rmSync(path, options),
  rmdirSync: (path: string): void => fs.rmdirSync(path),
  renameSync: (from: string, to: string): void => fs.renameSync(from, to),
  /** Also where there is one already. */
  symlinkSync(target: string, path: string): void {
    fs.rmSync(path, { force: true });
    fs.symlinkSync(target, path);
  },
  chmodSync: (path: string, mode: number): void => fs.chmodSync(path, mode),
  chownSync: (path: string, uid: number, gid: number): void => fs.chownSync(path, uid, gid),
  statSync: (
    path: string,
    options: { throwIfNoEntry: false },
  ): { size: number; mtimeMs: number } | undefined => {
    const found = fs.statSync(path, options);
    return found && { size: found.size, mtimeMs: found.mtimeMs };
  },
  statfsSync: (path: string): { bsize: number; blocks: number; bavail: number } => {
    const { bsize, blocks, bavail } = fs.statfsSync(path);
    return { bsize, blocks, bavail };
  },

  /** Neither is a link followed nor a pipe waited for: whoever runs there could have left one. null: it is not there, or no plain file. */
  textIn(dir: string, name: string): string | null {
    const flags = fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK;
    let at = -1;
    let file = -1;
    try {
      at = fs.openSync(dir, flags | fs.constants.O_DIRECTORY);
      file = fs.openSync(`/proc/self/fd/${at}/${name}`, flags);
      const found = fs.fstatSync(file);
      if (!found.isFile() || found.size > TEXT_BYTES) return null;
      const buffer = Buffer.alloc(found.size);
      return buffer.toString('utf8', 0, fs.readSync(file, buffer, 0, found.size, 0));
    } catch {
      return null;
    } finally {
      for (const one of [file, at]) if (one !== -1) fs.closeSync(one);
    }
  },

  /** Makes a directory with a file, `draft`, and moves it to a place that only one can have. False: another has it. */
  take(draft: string, file: string, text: string, place: string): boolean {
    fs.mkdirSync(draft, { recursive: true });
    fs.writeFileSync(join(draft, file), text);
    // Whoever has the place removes it.
    fs.chmodSync(draft, 0o777);
    try {
      fs.renameSync(draft, place);
      return true;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (!['EEXIST', 'ENOTEMPTY', 'ENOTDIR'].includes(code ?? '')) throw error;
      fs.rmSync(draft, { recursive: true, force: true });
      return false;
    }
  },
};

export type Calls = typeof CALLS;
export type Call = { [K in keyof Calls]: [K, ...Parameters<Calls[K]>] }[keyof Calls];

/** How a call has gone. */
export type Done = { value: unknown } | { message: string; code: string | undefined };

/** Makes calls, one after another; after one that fails no further ones of it. Answers how the last has gone. */
export function doAll(calls: readonly Call[], passed: () => void = () => {}): Done {
  let value: unknown;
  for (const [name, ...words] of calls) {
    try {
      value = (CALLS[name] as (...words: unknown[]) => unknown)(...words);
    } catch (error) {
      const { message, code } = error as NodeJS.ErrnoException;
      return { message, code };
    } finally {
      passed();
    }
  }
  return { value };
}
