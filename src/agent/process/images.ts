/**
 * The images that runs take place in: unpacked root file systems, each in a directory of one of its names below one of the operator's
 * (`AGENT_IMAGES`), or fetched (fetched.ts). A runtime (image-runtimes.ts) makes the surroundings of a run of them, as the run's own account in a
 * namespace of its users: nothing in it has a right that the account lacks, and what is below is shared by all runs, read-only.
 */
import { execFile } from 'node:child_process';
import { lstatSync, readdirSync, readlinkSync, type Stats, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { isImageName, namesOf, referenceOf } from '../../platform/images.js';
import type { HeldImage } from '../runner.js';
import { roomOf } from './disk.js';
import type { FetchedImages, Requester } from './fetched.js';
import { bind, directory, type Mount } from './image-runtimes.js';
import type { Image } from './image-tools.js';
import { LaunchError } from './script.js';

/** Reading an image takes a second for each gigabyte or so. */
const READ_MS = 1_800_000;
/** Images that are remembered. */
const KNOWN_MAX = 1_000;
/** Between two looks for what operators have put there. */
const LOOK_MS = 600_000;
/** Names in `$1` that may be images, as far down as names go that registries have: each followed by NUL. */
const FIND = `find -L "$1" -mindepth 1 -maxdepth 6 -type d -exec test -d '{}/usr' ';' -print0 -prune`;
/** The same bytes for the same names, contents, owners, rights and times of change; how tar ended is said beside them. */
const DIGEST = `{ { tar --sort=name --numeric-owner --format=posix --pax-option=delete=atime,delete=ctime -C "$1" -cf - . 2>/dev/null
echo "tar $?" >&3; } | sha256sum; } 3>&1`;

export class Images {
  /** By root, as the root was. */
  private readonly known = new Map<string, string | null>();
  private readonly asked = new Set<string>();
  /** Of an operator, as of the last look; null: there was none yet. */
  private unpacked: { name: string; key: string; bytes: number }[] | null = null;
  private looking = false;
  private lookedAtMs = Number.NEGATIVE_INFINITY;
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

  /** At most `limit`, those that the agent fetched before others; null: the operator's are being looked for, beside everything else. */
  held(limit: number): HeldImage[] | null {
    if (!this.looking && performance.now() - this.lookedAtMs > LOOK_MS) {
      this.looking = true;
      void this.look();
    }
    if (this.unpacked === null) return null;
    const own = this.unpacked.map((one) => ({ ...one, digest: this.known.get(one.key) ?? null }));
    const there = new Set(own.map(({ name }) => referenceOf(name)));
    const fetched = (this.fetched?.held(limit) ?? []).filter(({ name }) => !there.has(referenceOf(name)));
    return [...fetched, ...own]
      .slice(0, limit)
      .map(({ name, bytes, digest }) => ({ name, sizeMb: bytes / 1e6, digest }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** What it takes is measured once, until another is in its place. */
  private async look(): Promise<void> {
    const before = new Map(this.unpacked?.map(({ key, bytes }) => [key, bytes]));
    const names = (await Promise.all(this.directories.map(namesIn))).flat();
    const there: NonNullable<typeof this.unpacked> = [];
    const seen = new Set<string>();
    for (const name of names.slice(0, KNOWN_MAX)) {
      const found = this.find(name);
      if (found === null || seen.has(found.root)) continue;
      seen.add(found.root);
      const bytes = before.get(found.key) ?? (await roomOf([found.root], READ_MS));
      there.push({ name, key: found.key, bytes });
    }
    this.unpacked = there;
    this.lookedAtMs = performance.now();
    this.looking = false;
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
    const names = namesOf(name).filter(isName);
    const roots = this.directories.flatMap((directory) => names.map((one) => join(directory, one)));
    for (const root of roots) {
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

const namesIn = (directory: string): Promise<string[]> =>
  new Promise((resolve) => {
    const options = { env: { LC_ALL: 'C', PATH: '/usr/bin:/bin' }, timeout: READ_MS };
    // What it has found counts, though it may not look everywhere.
    execFile('/bin/sh', ['-c', FIND, 'sh', directory], options, (_, said) => {
      const names = said.split('\0').map((path) => relative(directory, path));
      resolve(names.filter(isImageName).sort());
    });
  });

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
 * What shows an image, read-only. A directory in which something else is to be seen is made anew, with what the image has in it beside that.
 *
 * @param places where something else is to be seen
 */
export function imageMounts(root: string, places: readonly string[], at = '/'): Mount[] {
  return readdirSync(join(root, at)).flatMap((name) => {
    const path = join(at, name);
    if (places.includes(path)) return [];
    const from = join(root, path);
    if (places.some((place) => isBelow(place, path))) {
      const within = statOf(from)?.isDirectory() && !isLink(from);
      return [directory(path), ...(within ? imageMounts(root, places, path) : [])];
    }
    return [isLink(from) ? { kind: 'link', path, to: readlinkSync(from) } : bind(from, 'read', false, path)];
  });
}

const isLink = (path: string): boolean => lstatSync(path).isSymbolicLink();

/** Files by which names of hosts are found: the host's, where the image has a place for them. */
export const resolverFiles = (root: string): string[] =>
  ['/etc/resolv.conf', '/etc/hosts'].filter((path) =>
    lstatSync(join(root, path), { throwIfNoEntry: false })?.isFile(),
  );
