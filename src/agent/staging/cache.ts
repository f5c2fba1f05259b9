/** The copies of datasets that an agent keeps: bounded, each fetched once however many runs want it, none taken from a run. */
import { createHash, randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import pLimit, { type LimitFunction } from 'p-limit';
import { networks } from '../../platform/networks.js';
import { CLOSED as OF_HOST } from '../../platform/reach.js';
import { isHttp, shownUrl } from '../../platform/urls.js';
import { access, chmod, mkdir, open, readFile, rename, rm, stat, utimes, writeFile } from '../files/share.js';
import { type DataRoots, dataPath } from './roots.js';
import { pathAtService, pathOf, RETRIES, retried, UnfitSource, WrongContent } from './source.js';
import {
  type Origin,
  roomOn,
  settle,
  sha256Of,
  sizeOf,
  type TransferOptions,
  type TransferProgress,
  transfer,
} from './transfer.js';

/** A dataset that a run reads. */
export interface Input {
  /** Place among the job's inputs, from 1. */
  place: number;
  /** Id of the dataset. */
  dataset: string;
  name: string;
  sizeMb: number;
  /** In hexadecimal; null: not known. */
  sha256: string | null;
  /** Where it can be had, best first. */
  sources: readonly Source[];
}

export interface Source {
  /** Name of the site. */
  site: string;
  /** A path, which counts at its own site only, or a URL. */
  location: string;
}

export interface CacheOptions extends Omit<TransferOptions, 'reach' | 'service' | 'maxBytes'> {
  dir: string;
  /** Name of the agent's own site. */
  site: string;
  maxBytes: number;
  /** Which files of the host can be data; by default any. */
  roots?: DataRoots;
  /** Addresses and ranges of them, from which is fetched although they are the host's own or its link's. */
  addresses?: readonly string[];
  /** By default files that the service keeps cannot be had. */
  service?: TransferOptions['service'];
  /** Transfers at once. */
  transfers?: number;
  /** Attempts at one source, and the pause before the second, which doubles with each. */
  attempts?: number;
  retryMs?: number;
}

/** What a transfer has moved. */
export interface Moved {
  /** Name of the site from which it came; null: from the service, which tells nothing of the link from a site. */
  from: string | null;
  bytes: number;
  seconds: number;
}

/** An input within reach of its run. `moved` null: it was there. */
export interface Staged {
  path: string;
  moved: Moved | null;
}

interface Entry {
  key: string;
  /** Has been verified, and is complete. */
  ready: boolean;
  /** Taken of the bound: what it has, and while it is fetched what it will have. */
  bytes: number;
  usedAtMs: number;
  users: Set<string>;
  fetching: Fetching | null;
}

interface Fetching {
  done: Promise<Moved>;
  progress: TransferProgress;
  stop: AbortController;
  waiting: Set<string>;
}

/** What was written before the machine last started may have holes where it was not on the disk yet: it is not continued. */
const BOOT = bootId();

/** Of the file system, whichever is less: with less than this left nothing is fetched. */
const LOW = { bytes: 512 << 20, part: 1 / 20 };
/** How far a copy may be from what the catalog says. */
const TOLERANCE = { part: 0.01, bytes: 1e6 };

/**
 * A directory for each dataset, named by what the catalog says of it, so that other content is another entry:
 *
 *   part    what has come of it, under this name until it is complete, verified and on the disk
 *   origin  where the part comes from
 *   data    the dataset: a file or a directory, by a rename from `part`
 *   seal    what `data` was like then: who runs jobs under its own account must expect them to write into what they only read
 *
 * The time of a directory is when it was used last.
 */
export class DataCache {
  private readonly entries = new Map<string, Entry>();
  /** By key: directories of former entries that are on their way out. */
  private readonly leaving = new Map<string, Promise<void>>();
  private readonly options: Required<Omit<CacheOptions, 'addresses'>>;
  private readonly transfer: TransferOptions;
  /** One after another where there are many. */
  private readonly inTurn: LimitFunction;

  constructor(options: CacheOptions) {
    const roots = { allowed: null, closed: [], open: [] };
    const { addresses = [], ...given } = options;
    this.options = { ...RETRIES, transfers: 4, roots, service: null, ...given };
    const { command, rateMbPerS, service } = this.options;
    const reach = { closed: OF_HOST.host, allowed: networks(addresses), variable: 'AGENT_DATA_ADDRESSES' };
    this.transfer = { command, rateMbPerS, service, reach };
    this.inTurn = pLimit(this.options.transfers);
    mkdirSync(options.dir, { recursive: true, mode: 0o755 });
    for (const key of readdirSync(options.dir)) this.find(key);
  }

  /** Bytes that copies take, and will take. */
  get bytes(): number {
    return [...this.entries.values()].reduce((sum, { bytes }) => sum + bytes, 0);
  }

  /** Bytes that have come of what is fetched for a run. */
  moving(user: string): number {
    return [...this.entries.values()].reduce(
      (sum, { fetching }) => sum + (fetching?.waiting.has(user) ? fetching.progress.bytes : 0),
      0,
    );
  }

  /**
   * Brings an input within reach of a run. Until `release`, its copy stays.
   *
   * @throws Error that says for each source why it cannot be had
   */
  async stage(input: Input, user: string, signal: AbortSignal): Promise<Staged> {
    const local = await this.local(input);
    if (local !== null) return { path: local, moved: null };
    const key = keyOf(input);
    await this.leaving.get(key);
    const entry = this.entries.get(key) ?? this.add(key);
    entry.users.add(user);
    entry.usedAtMs = Date.now();
    const dir = this.dirOf(key);
    // Whatever the agent's umask: runs may have accounts of their own.
    if ((await mkdir(dir, { mode: 0o755, recursive: true })) !== undefined) await chmod(dir, 0o755);
    await utimes(dir, new Date(), new Date());
    const path = join(dir, 'data');
    const isSealed = entry.ready && (await sealOf(path)) === (await textIn(join(dir, 'seal')));
    if (entry.ready && isSealed) return { path, moved: null };
    if (entry.fetching === null) entry.ready = false;
    const fetching = entry.fetching ?? this.fetch(entry, input);
    fetching.waiting.add(user);
    const leave = (): void => {
      fetching.waiting.delete(user);
      if (fetching.waiting.size === 0) fetching.stop.abort(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    if (signal.aborted) leave();
    try {
      const moved = await fetching.done;
      signal.throwIfAborted();
      return { path, moved };
    } catch (error) {
      entry.users.delete(user);
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  /** The run reads them again, after a restart of the agent. */
  hold(inputs: readonly string[], user: string): void {
    for (const key of inputs) this.entries.get(key)?.users.add(user);
  }

  /** Only these runs still read anything. */
  retain(users: ReadonlySet<string>): void {
    for (const entry of this.entries.values())
      for (const user of entry.users) if (!users.has(user)) entry.users.delete(user);
  }

  /** The entries that a run uses. */
  usedBy(user: string): string[] {
    return [...this.entries.values()].filter(({ users }) => users.has(user)).map(({ key }) => key);
  }

  /** Stops all transfers; what has come stays. */
  async close(): Promise<void> {
    const all = [...this.entries.values()].flatMap(({ fetching }) => fetching ?? []);
    for (const { stop } of all) stop.abort(new Error('the agent stops'));
    await Promise.allSettled(all.map(({ done }) => done));
  }

  /** The path of a replica at this site, or at hand in the file system; null: it has to be fetched. */
  private async local({ name, sizeMb, sources }: Input): Promise<string | null> {
    for (const { site, location } of sources) {
      if (site !== this.options.site) continue;
      const path = pathOf(location);
      if (path === null) continue;
      if (!(await isThere(path))) continue;
      const real = await dataPath(path, this.options.roots);
      const bytes = await sizeOf(real);
      const fault = sizeFault(bytes, sizeMb);
      if (fault !== null) {
        const message = `input ${name}: ${shownUrl(location)} at ${site}: ${fault}`;
        throw sources.length === 1 ? new WrongContent(message) : new Error(message);
      }
      // Not the link to it, which somebody may have lead elsewhere later.
      return real;
    }
    return null;
  }

  private fetch(entry: Entry, input: Input): Fetching {
    const stop = new AbortController();
    const progress = { bytes: 0 };
    const done = this.inTurn(() => {
      stop.signal.throwIfAborted();
      return this.fetchFromAny(entry, input, progress, stop.signal);
    });
    const fetching = { done, progress, stop, waiting: new Set<string>() };
    entry.fetching = fetching;
    const over = (): void => {
      entry.fetching = null;
    };
    done.then(over, over);
    return fetching;
  }

  private async fetchFromAny(
    entry: Entry,
    input: Input,
    progress: TransferProgress,
    signal: AbortSignal,
  ): Promise<Moved> {
    const reasons: string[] = [];
    let wrong = 0;
    try {
      await this.makeRoom(entry, input);
      for (const source of input.sources) {
        // A path says nothing about another site's files.
        if (source.location.startsWith('/') && source.site !== this.options.site) continue;
        try {
          return await this.fetchFrom(entry, input, source, progress, signal);
        } catch (error) {
          signal.throwIfAborted();
          if (error instanceof WrongContent) wrong++;
          reasons.push(`from ${source.site}: ${(error as Error).message}`);
        }
      }
    } catch (error) {
      signal.throwIfAborted();
      reasons.push((error as Error).message);
    } finally {
      if (!entry.ready) entry.bytes = await partBytes(this.dirOf(entry.key));
    }
    const why = reasons.length > 0 ? reasons.join('; ') : 'no location can be reached from here';
    // Nowhere is it what the catalog says: no other attempt would help, nor another site.
    const message = `input ${input.name}: ${why}`;
    throw wrong > 0 && wrong === input.sources.length ? new WrongContent(message) : new Error(message);
  }

  private fetchFrom(
    entry: Entry,
    input: Input,
    source: Source,
    progress: TransferProgress,
    signal: AbortSignal,
  ): Promise<Moved> {
    const { attempts, retryMs } = this.options;
    const attempt = async (): Promise<Moved> => {
      const before = progress.bytes;
      const begun = performance.now();
      const dir = this.dirOf(entry.key);
      const origin = await readOrigin(dir);
      // What a command writes to after its agent died, nobody else reads.
      const named = pathOf(source.location);
      const path = named === null ? null : await dataPath(named, this.options.roots);
      const byService = pathAtService(source.location) !== null;
      const byCommand = path === null && !byService && !isHttp(source.location);
      const part = join(dir, byCommand ? `part-${randomUUID()}` : 'part');
      const begin = (from: Origin) =>
        writeFile(join(dir, 'origin'), JSON.stringify({ ...from, boot: BOOT }), { mode: 0o600 });
      try {
        await transfer(source.location, path, part, origin, begin, this.transfer, progress, signal);
        const seconds = (performance.now() - begun) / 1000;
        await this.accept(entry, input, part, signal);
        return { from: byService ? null : source.site, bytes: progress.bytes - before, seconds };
      } catch (error) {
        if (byCommand || error instanceof UnfitSource) await rm(part, { recursive: true, force: true });
        throw error;
      }
    };
    return retried(attempt, { attempts, retryMs }, signal);
  }

  /** Makes a complete and verified part the dataset. */
  private async accept(
    entry: Entry,
    { sizeMb, sha256 }: Input,
    part: string,
    signal: AbortSignal,
  ): Promise<void> {
    const bytes = await sizeOf(part);
    const fault = sizeFault(bytes, sizeMb);
    if (fault !== null) throw new WrongContent(fault);
    if (sha256 !== null) {
      if ((await stat(part)).isDirectory())
        throw new WrongContent('it is a directory, but only a single file can have a checksum');
      const found = await sha256Of(part, signal);
      if (found !== sha256) throw new WrongContent(`its SHA-256 is ${found}; the catalog says ${sha256}`);
    }
    await settle(part);
    const dir = this.dirOf(entry.key);
    const data = join(dir, 'data');
    await rm(data, { recursive: true, force: true });
    await rename(part, data);
    await writeFile(join(dir, 'seal'), await sealOf(data), { mode: 0o600 });
    await rm(join(dir, 'origin'), { force: true });
    await rm(join(dir, 'part'), { recursive: true, force: true });
    const handle = await open(dir);
    await handle.sync().finally(() => handle.close());
    entry.ready = true;
    entry.bytes = bytes;
  }

  /** Takes room for a dataset of the bound and of the disk, from what was not used for the longest time. */
  private async makeRoom(entry: Entry, { sizeMb }: Input): Promise<void> {
    const { maxBytes, dir } = this.options;
    const needed = Math.round(sizeMb * 1e6);
    if (needed > maxBytes)
      throw new Error(`${mb(needed)} do not fit in the agent's cache of ${mb(maxBytes)} (AGENT_CACHE_MB)`);
    const here = entry.bytes;
    entry.bytes = Math.max(here, needed);
    while (this.bytes > maxBytes) {
      if (!(await this.evictOne())) {
        entry.bytes = here;
        throw new Error(
          `the agent's cache of ${mb(maxBytes)} is full of data in use by runs (AGENT_CACHE_MB)`,
        );
      }
    }
    for (;;) {
      const { free, size } = await roomOn(dir);
      const left = free - Math.max(0, needed - here);
      if (left >= Math.min(LOW.bytes, size * LOW.part)) return;
      if (!(await this.evictOne())) {
        entry.bytes = here;
        throw new Error(
          `the disk of the agent's cache is almost full: ${mb(free)} left, ${mb(needed)} needed`,
        );
      }
    }
  }

  /** False: everything is in use. */
  private async evictOne(): Promise<boolean> {
    const unused = [...this.entries.values()].filter(
      ({ users, fetching }) => users.size === 0 && fetching === null,
    );
    const oldest = unused.sort((a, b) => a.usedAtMs - b.usedAtMs)[0];
    if (oldest === undefined) return false;
    const { key } = oldest;
    this.entries.delete(key);
    // Under another name first: it may be wanted again before all of it is gone.
    const trash = this.dirOf(`trash-${randomUUID()}`);
    const renamed = rename(this.dirOf(key), trash);
    const left = renamed.catch(() => {}).finally(() => this.leaving.delete(key));
    this.leaving.set(key, left);
    await renamed;
    await rm(trash, { recursive: true, force: true });
    return true;
  }

  private dirOf(key: string): string {
    return join(this.options.dir, key);
  }

  private add(key: string): Entry {
    const entry = {
      key,
      ready: false,
      bytes: 0,
      usedAtMs: Date.now(),
      users: new Set<string>(),
      fetching: null,
    };
    this.entries.set(key, entry);
    return entry;
  }

  /** What an earlier agent has left under this name. */
  private find(key: string): void {
    const dir = this.dirOf(key);
    if (!/^[0-9a-f]{32}$/.test(key)) {
      rmSync(dir, { recursive: true, force: true });
      return;
    }
    for (const name of readdirSync(dir)) {
      if (name.startsWith('part-')) rmSync(join(dir, name), { recursive: true, force: true });
    }
    chmodSync(dir, 0o755);
    const entry = this.add(key);
    entry.usedAtMs = statSync(dir).mtimeMs;
    entry.ready = bytesNow(join(dir, 'data')) !== null;
    entry.bytes = bytesNow(join(dir, entry.ready ? 'data' : 'part')) ?? 0;
  }
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return randomUUID(); // Nothing is continued.
  }
}

const keyOf = ({ dataset, sizeMb, sha256 }: Input): string =>
  createHash('sha256')
    .update(JSON.stringify([dataset, sizeMb, sha256]))
    .digest('hex')
    .slice(0, 32);

const mb = (bytes: number): string => `${Math.round(bytes / 1e5) / 10} MB`;

function sizeFault(bytes: number, sizeMb: number): string | null {
  const said = sizeMb * 1e6;
  if (Math.abs(bytes - said) <= TOLERANCE.part * said + TOLERANCE.bytes) return null;
  return `it has ${mb(bytes)}; the catalog says ${mb(said)}`;
}

/** Of a directory only when something in itself was added or removed. */
async function sealOf(path: string): Promise<string> {
  const { ino, size, mtimeMs } = await stat(path);
  return `${ino} ${size} ${mtimeMs}`;
}

const textIn = (path: string): Promise<string | null> => readFile(path, 'utf8').catch(() => null);

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

async function readOrigin(dir: string): Promise<Origin | null> {
  try {
    const { boot, ...origin } = JSON.parse(await readFile(join(dir, 'origin'), 'utf8'));
    return boot === BOOT ? (origin as Origin) : null;
  } catch {
    return null; // None, or cut short: the part is not continued.
  }
}

const partBytes = (dir: string): Promise<number> => sizeOf(join(dir, 'part')).catch(() => 0);

function bytesNow(path: string): number | null {
  const one = statSync(path, { throwIfNoEntry: false });
  if (one === undefined) return null;
  if (!one.isDirectory()) return one.size;
  return readdirSync(path).reduce((sum, name) => sum + (bytesNow(join(path, name)) ?? 0), 0);
}
