/**
 * The files that a job's outputs name, in the directory of its run. Who wrote them is not trusted: links and names may lead anywhere, and
 * something of the run may still be there to exchange one for another under the eyes of the agent, which may be root.
 */
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readdir, readlink, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { filePathFault } from '../../platform/file-paths.js';
import { MAX } from '../../platform/limits.js';

/** Files of one run that are looked at, kept or not. */
const LOOKED_AT_MAX = 100_000;

/** The directory of a run. */
export interface Place {
  directory: string;
  /** The account of the run, whose files alone are taken; null: the agent's, and anybody's are. */
  uid: number | null;
}

export interface Found {
  /** Below the directory, by name. */
  files: string[];
  /** What was named and is not to be had, in words. */
  problems: string[];
}

/**
 * The files of an output: that of the path, all below it where it is a directory, or all that its pattern fits. Links that lead out of the
 * directory, and what is neither file nor directory, are left out where they are not named themselves.
 *
 * @param required whether a path without a pattern has to be there
 */
export async function findFiles(place: Place, path: string, required: boolean): Promise<Found> {
  const root = await realpath(place.directory);
  const files: string[] = [];
  const problems: string[] = [];
  let looks = 0;
  const look = async (names: readonly string[], rest: readonly string[], named: boolean): Promise<void> => {
    if (++looks > LOOKED_AT_MAX || files.length > MAX.jobFiles) return;
    const [next, ...others] = rest;
    const here = join(root, ...names);
    if (next !== undefined && !/[*?]/.test(next)) return look([...names, next], others, named);
    const what = await kindOf(root, here);
    if (next !== undefined) {
      if (what !== 'directory') return;
      for (const name of await namesIn(here))
        if (fits(name, next)) await look([...names, name], others, false);
    } else if (what === 'directory') {
      for (const name of await namesIn(here)) await look([...names, name], [], false);
    } else if (what === 'file') {
      const found = names.join('/');
      const fault = filePathFault(found, MAX.outputPathChars);
      if (fault === null) files.push(found);
      else problems.push(`${JSON.stringify(found)}: its name is not accepted; accepted: ${fault}`);
    } else if (named && (required || what !== 'missing')) problems.push(`${names.join('/')}: ${WRONG[what]}`);
  };
  await look([], path.replace(/\/$/, '').split('/'), true);
  if (files.length > MAX.jobFiles) problems.push(`${path}: more than ${MAX.jobFiles} files`);
  if (looks > LOOKED_AT_MAX) problems.push(`${path}: more than ${LOOKED_AT_MAX} names to be looked at`);
  return { files: files.slice(0, MAX.jobFiles), problems };
}

/**
 * Opens a file in the directory of a run for reading.
 *
 * @throws Error when it is not there, leads out of the directory, is no file, or is somebody else's
 */
export async function openInside({ directory, uid }: Place, path: string): Promise<FileHandle> {
  const root = await realpath(directory);
  // Whatever it has become meanwhile: without waiting for somebody at the other end.
  const file = await open(join(root, path), constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    // Of what has been opened, not of what the path may mean by now.
    const opened =
      process.platform === 'linux'
        ? await readlink(`/proc/self/fd/${file.fd}`)
        : await realpath(join(root, path));
    if (!opened.startsWith(`${root}/`)) throw new Error(WRONG.outside);
    const found = await file.stat();
    if (!found.isFile()) throw new Error(WRONG.other);
    // Another name for a file of somebody else's, which the run itself may not read.
    if (uid !== null && found.uid !== uid) throw new Error('it is not owned by the account of the run');
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}

type Kind = 'file' | 'directory' | keyof typeof WRONG;

const WRONG = {
  missing: 'there is no such file',
  outside: 'it leads out of the directory of the run',
  other: 'it is neither a file nor a directory, or a link to a directory',
} as const;

async function kindOf(root: string, path: string): Promise<Kind> {
  try {
    const real = await realpath(path);
    if (real !== root && !real.startsWith(`${root}/`)) return 'outside';
    const isLink = (await lstat(path)).isSymbolicLink();
    const found = await stat(real);
    if (found.isFile()) return 'file';
    // A link to a directory may lead round in a circle.
    return found.isDirectory() && !isLink ? 'directory' : 'other';
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP') return 'missing';
    throw error;
  }
}

/** In order; those that are no UTF-8 as they are shown. */
const namesIn = async (path: string): Promise<string[]> => (await readdir(path)).sort();

/** Whether a name fits a pattern of `*` and `?`; in a time that grows with the product of their lengths at the most. */
function fits(name: string, pattern: string): boolean {
  let [n, p] = [0, 0];
  let star = -1;
  let from = 0;
  while (n < name.length) {
    if (pattern[p] === '*') {
      star = p++;
      from = n;
    } else if (pattern[p] === '?' || pattern[p] === name[n]) {
      n++;
      p++;
    } else if (star >= 0) {
      p = star + 1;
      n = ++from;
    } else return false;
  }
  while (pattern[p] === '*') p++;
  return p === pattern.length;
}
