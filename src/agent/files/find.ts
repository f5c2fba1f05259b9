/**
 * The files that a job's outputs name, in the directory of its run. Who wrote them is not trusted: links and names may lead anywhere, and
 * something of the run may still be there to exchange one for another under the eyes of the agent, which may be root.
 */
import { constants } from 'node:fs';
import { join } from 'node:path';
import { filePathFault, fits, pathInTmp } from '../../platform/file-paths.js';
import { MAX } from '../../platform/limits.js';
import { lstat, type OpenedFile, open, readdir, readlink, realpath, stat, statfs } from './share.js';

/** Files of one run that are looked at, kept or not. */
const LOOKED_AT_MAX = 100_000;

const isLinux = process.platform === 'linux';
/** O_PATH (open(2)), which Node has no name for, where there is one. */
const LOOK_ONLY = isLinux ? 0o10000000 : constants.O_RDONLY;

/** The directories of a run. */
export interface Place {
  /** Where it really was when the run began: a link in its place may lead anywhere by now. */
  directory: string;
  /** Likewise what it had as its `/tmp`; left out: that is out of reach. */
  tmp?: string;
  /** The account of the run, whose files alone are taken; null: the agent's, and anybody's are. */
  uid: number | null;
}

/** Where a path of an output leads: from one of the directories of a run, by the path below it. `prefix`: what names of files found there begin with. */
function from({ directory, tmp }: Place, path: string): { directory: string; below: string; prefix: string } {
  const below = pathInTmp(path);
  if (below === null) return { directory, below: path, prefix: '' };
  if (tmp !== undefined) return { directory: tmp, below, prefix: path.slice(0, path.length - below.length) };
  throw new Error(
    `${path}: /tmp of the job's machine is not accessible; accepted: a path below the directory of the run`,
  );
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
  const { directory, below, prefix } = from(place, path);
  const root = await rootOf(directory);
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
      if (fault === null) files.push(prefix + found);
      else problems.push(`${JSON.stringify(prefix + found)}: invalid name; accepted: ${fault}`);
    } else if (what === 'missing' && names.at(-1)?.includes('\ufffd'))
      problems.push(`${prefix}${names.join('/')}: invalid name; accepted: UTF-8`);
    else if (named && (required || what !== 'missing'))
      problems.push(`${prefix}${names.join('/')}: ${WRONG[what]}`);
  };
  await look([], below.replace(/\/$/, '').split('/'), true);
  if (files.length > MAX.jobFiles) problems.push(`${path}: more than ${MAX.jobFiles} files`);
  if (looks > LOOKED_AT_MAX) problems.push(`${path}: more than ${LOOKED_AT_MAX} names to search`);
  return { files: files.slice(0, MAX.jobFiles), problems };
}

/**
 * Opens a file in the directory of a run for reading.
 *
 * @throws Error when it is not there, leads out of the directory, is no file, or is somebody else's
 */
export async function openInside(place: Place, path: string): Promise<OpenedFile> {
  const { uid } = place;
  const { directory, below } = from(place, path);
  const root = await rootOf(directory);
  // Whatever it has become meanwhile, nothing happens to it before it has been looked at: opening some devices does something.
  const looked = await open(join(root, below), LOOK_ONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    // Of what has been opened, not of what the path may mean by now.
    const here = `/proc/self/fd/${looked.fd}`;
    const opened = isLinux ? await readlink(here) : await realpath(join(root, below));
    if (!opened.startsWith(`${root}/`)) throw new Error(WRONG.outside);
    const found = await looked.stat();
    if (!found.isFile()) throw new Error(WRONG.other);
    // Another name for a file of somebody else's, which the run itself may not read.
    if (uid !== null && found.uid !== uid) throw new Error('it is not owned by the account of the run');
    // Holes take no room, and for ever to be read.
    const { blocks, bsize } = await statfs(root);
    if (found.size > blocks * bsize)
      throw new Error(
        `it is a sparse file of ${found.size} bytes, larger than its disk (${blocks * bsize} bytes)`,
      );
    if (!isLinux) return looked;
    const file = await open(here, constants.O_RDONLY);
    await looked.close();
    return file;
  } catch (error) {
    await looked.close();
    throw error;
  }
}

async function rootOf(directory: string): Promise<string> {
  if ((await realpath(directory)) === directory) return directory;
  throw new Error('the directory of the run has been replaced');
}

type Kind = 'file' | 'directory' | keyof typeof WRONG;

const WRONG = {
  missing: 'no such file',
  outside: 'it points outside the directory of the run',
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
