/**
 * The images that runs take place in: unpacked root file systems, each in a directory of its name below one of the operator's
 * (`AGENT_IMAGES`), or fetched (fetched.ts). Bubblewrap makes the surroundings of a run of them, as the run's own account in a namespace of
 * its users: nothing in it has a right that the account lacks, and what is below is shared by all runs, read-only.
 */
import { execFile } from 'node:child_process';
import { lstatSync, readdirSync, readlinkSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import type { FetchedImages, Requester } from './fetched.js';
import type { Image } from './image-tools.js';
import { LaunchError } from './script.js';

/** Reading an image takes a second for each gigabyte or so. */
const READ_MS = 1_800_000;
/** Images that are remembered. */
const KNOWN_MAX = 1_000;
/** The same bytes for the same names, contents, owners, rights and times of change; how tar ended is said beside them. */
const DIGEST = `{ { tar --sort=name --numeric-owner --format=posix --pax-option=delete=atime,delete=ctime -C "$1" -cf - . 2>/dev/null
echo "tar $?" >&3; } | sha256sum; } 3>&1`;

export class Images {
  /** By root, as the root was. */
  private readonly known = new Map<string, string | null>();
  private readonly asked = new Set<string>();
  /** One is read at a time. */
  private reading: Promise<void> = Promise.resolve();
  /** Called when an image has been read, or fetched. */
  onKnown: () => void = () => {};
  /** null: none is fetched. */
  readonly fetched: FetchedImages | null;

  /** @param directories in which images are looked for, in this order */
  constructor(
    readonly directories: readonly string[],
    fetched: ((onFetched: () => void) => FetchedImages) | null = null,
  ) {
    this.fetched = fetched?.(() => this.onKnown()) ?? null;
  }

  /** Whether `of` can tell at once. Otherwise the image is being read or fetched, beside everything else. */
  isKnown(name: string, by: Requester): boolean {
    const found = this.find(name);
    if (found === null) return !isName(name) || (this.fetched?.isKnown(name, by) ?? true);
    if (this.known.has(found.key)) return true;
    if (!this.asked.has(found.key)) {
      this.asked.add(found.key);
      this.reading = this.reading.then(() => this.read(found.root, found.key));
    }
    return false;
  }

  /** @throws LaunchError where this machine lacks it */
  of(name: string, by: Requester): Image {
    const found = this.find(name);
    if (found !== null) return { root: found.root, digest: this.known.get(found.key) ?? null };
    const fetched = isName(name) ? (this.fetched?.use(name, by.user) ?? null) : null;
    if (fetched !== null) return fetched;
    const problem = this.fetched?.problemOf(by) ?? null;
    throw new LaunchError(
      problem === null
        ? `image ${name}: not available on this machine (AGENT_IMAGES of its agent)`
        : `image ${name}: cannot be fetched: ${problem}`,
    );
  }

  private async read(root: string, key: string): Promise<void> {
    const digest = await digestOf(root);
    if (this.known.size >= KNOWN_MAX) this.known.clear();
    this.known.set(key, digest);
    this.asked.delete(key);
    this.onKnown();
  }

  /** Whoever puts another image in its place makes another directory. */
  private find(name: string): { root: string; key: string } | null {
    if (!isName(name)) return null;
    for (const directory of this.directories) {
      const root = join(directory, name);
      const stat = statOf(root);
      // A directory of images is none.
      if (stat?.isDirectory() && statOf(join(root, 'usr'))?.isDirectory())
        return { root, key: `${root}\n${stat.ino} ${stat.ctimeMs}` };
    }
    return null;
  }
}

/** The service has checked it; nobody else's word for a path, or for an option of a program, is taken. */
const isName = (name: string): boolean =>
  /^[A-Za-z0-9]/.test(name) && !name.split('/').some((part) => part === '' || part.startsWith('.'));

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

/** By processes of their own: it takes long. */
const digestOf = (root: string): Promise<string | null> =>
  new Promise((resolve) => {
    const options = { env: { LC_ALL: 'C', PATH: '/usr/bin:/bin' }, timeout: READ_MS };
    execFile('/bin/sh', ['-c', DIGEST, 'sh', root], options, (error, said) => {
      const hash = /^([0-9a-f]{64}) /m.exec(said)?.[1];
      const whole = error === null && /^tar 0$/m.test(said);
      resolve(whole && hash !== undefined ? `sha256:${hash}` : null);
    });
  });

const isBelow = (path: string, dir: string): boolean => path.startsWith(dir === '/' ? '/' : `${dir}/`);

/**
 * The words for bubblewrap that show an image, read-only. A directory in which something else is to be seen is made anew, with what the image
 * has in it beside that.
 *
 * @param places where something else is to be seen
 */
export function imageBinds(root: string, places: readonly string[], at = '/'): string[] {
  return readdirSync(join(root, at)).flatMap((name) => {
    const path = join(at, name);
    if (places.includes(path)) return [];
    if (places.some((place) => isBelow(place, path))) {
      const within = statOf(join(root, path))?.isDirectory() && !isLink(join(root, path));
      return ['--dir', path, ...(within ? imageBinds(root, places, path) : [])];
    }
    return isLink(join(root, path))
      ? ['--symlink', readlinkSync(join(root, path)), path]
      : ['--ro-bind', join(root, path), path];
  });
}

const isLink = (path: string): boolean => lstatSync(path).isSymbolicLink();

/** Files by which names of hosts are found: the host's, where the image has a place for them. */
export const resolverFiles = (root: string): string[] =>
  ['/etc/resolv.conf', '/etc/hosts'].filter((path) =>
    lstatSync(join(root, path), { throwIfNoEntry: false })?.isFile(),
  );
