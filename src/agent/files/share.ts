/**
 * Node's `fs/promises` for files of runs and of datasets, which may be on a network's file system that hangs: a few questions at a time. Each that
 * is not answered holds one of the threads with which Node asks everything, and finds addresses of hosts; as long as these have only a share of
 * them, the agent goes on, and stays in contact with its service. What one of these calls waits for must not be another one.
 */
import * as fs from 'node:fs/promises';
import pLimit from 'p-limit';

/** Of the four threads that Node has. */
const AT_ONCE = 2;
const inTurn = pLimit(AT_ONCE);

/** The same function, whose calls wait for their turn. */
const shared = <F extends (...given: never[]) => Promise<unknown>>(ask: F): F =>
  ((...given: never[]) => inTurn(() => ask(...given))) as F;

/** All that is called of open files. */
const ASKED = ['read', 'write', 'writeFile', 'stat', 'chmod', 'sync', 'close'] as const;

export async function open(
  path: string,
  flags?: string | number,
  mode?: number,
): Promise<Pick<fs.FileHandle, 'fd' | (typeof ASKED)[number]>> {
  const file = await inTurn(() => fs.open(path, flags, mode));
  for (const name of ASKED)
    Object.defineProperty(file, name, { value: shared((file[name] as () => Promise<unknown>).bind(file)) });
  return file;
}
export type OpenedFile = Awaited<ReturnType<typeof open>>;

export const access = shared(fs.access);
export const chmod = shared(fs.chmod);
export const lstat = shared(fs.lstat);
export const mkdir = shared(fs.mkdir);
export const readdir = shared(fs.readdir);
export const readFile = shared(fs.readFile);
export const readlink = shared(fs.readlink);
export const realpath = shared(fs.realpath);
export const rename = shared(fs.rename);
export const rm = shared(fs.rm);
export const stat = shared(fs.stat);
export const statfs = shared(fs.statfs);
export const utimes = shared(fs.utimes);
/** What is written is there: it does not come by itself. */
export const writeFile: (path: string, text: string, options: { mode: number }) => Promise<void> = shared(
  fs.writeFile,
);
