/**
 * Files that jobs have from URLs, and send to URLs. Users name them, and the agent asks: never an address of its host or of private networks
 * that its operator has not allowed.
 */
import { chmodSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import pLimit, { type LimitFunction } from 'p-limit';
import { networks } from '../../platform/networks.js';
import { CLOSED, ClosedAddress, type Reach } from '../../platform/reach.js';
import { shownUrl } from '../../platform/urls.js';
import { chunksOf } from '../files/handover.js';
import { mkdir, type OpenedFile, rm } from '../files/share.js';
import { put } from './http.js';
import { RETRIES, type Retries, retried, UnfitSource } from './source.js';
import { keepRate, type Origin, roomOn, settle, type TransferProgress, transfer } from './transfer.js';

export interface UrlOptions extends Partial<Retries> {
  /** Addresses and ranges of them that jobs may name although they are the host's own, its link's, or private; by default none. */
  addresses?: readonly string[];
  /** Of one file that is fetched; by default any size for which there is room. */
  maxBytes?: number;
  /** For one file that is fetched, and for all that an upload sends, attempts and pauses included; by default six hours. */
  limitMs?: number;
  /** As of TransferOptions; by default null. */
  rateMbPerS?: number | null;
  /** At once. */
  transfers?: number;
}

/** Left on the disk, whichever is less. */
const LOW = { bytes: 512 << 20, part: 1 / 20 };

const DEFAULTS: Required<UrlOptions> = {
  ...RETRIES,
  ...{ addresses: [], maxBytes: Infinity, limitMs: 6 * 3_600_000, rateMbPerS: null, transfers: 4 },
};

class Transfers {
  protected readonly options: Required<UrlOptions>;
  protected readonly reach: Reach;
  protected readonly inTurn: LimitFunction;

  constructor(options: UrlOptions) {
    this.options = { ...DEFAULTS, ...options };
    this.inTurn = pLimit(this.options.transfers);
    const allowed = networks(this.options.addresses);
    this.reach = { closed: CLOSED.private, allowed, variable: 'AGENT_URL_ADDRESSES' };
  }

  /** Names the URL, without its secrets, in what goes wrong; and ends what takes too long. */
  protected async within<T>(
    what: string,
    url: string,
    signal: AbortSignal,
    action: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const late = new AbortController();
    const { limitMs } = this.options;
    const timer = setTimeout(
      () => late.abort(new Error(`it took longer than ${Math.round(limitMs / 1000)} s (AGENT_URL_S)`)),
      limitMs,
    );
    try {
      return await action(AbortSignal.any([signal, late.signal]));
    } catch (error) {
      signal.throwIfAborted();
      const { message, name } = late.signal.aborted ? (late.signal.reason as Error) : (error as Error);
      const prefix = `${shownUrl(url)}: `;
      const why = message.startsWith(prefix) ? message.slice(prefix.length) : message || name;
      throw new Error(`${prefix}${what}: ${why}`);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** The directories of what runs have from URLs, one of each run: what is behind a URL may be another thing for the next. */
export class Downloads extends Transfers {
  /** @param dir a directory of their own */
  constructor(
    private readonly dir: string,
    options: UrlOptions,
  ) {
    super(options);
    mkdirSync(dir, { recursive: true });
    // Nobody finds the directory of a run who is not told its name.
    chmodSync(dir, 0o711);
  }

  /** Removes what is left of runs that nobody knows any more. */
  sweep(inUse: ReadonlySet<string | undefined>): void {
    for (const name of readdirSync(this.dir)) if (!inUse.has(name)) this.remove(name);
  }

  /** What cannot be removed now, the next agent removes. */
  remove(name: string): void {
    rm(join(this.dir, name), { recursive: true, force: true }).catch(() => {});
  }

  /**
   * Fetches files into a new directory.
   *
   * @returns their paths, in order
   * @throws Error that names the first URL that could not be fetched
   */
  async fetch(
    name: string,
    urls: readonly string[],
    progress: TransferProgress,
    signal: AbortSignal,
  ): Promise<string[]> {
    const directory = join(this.dir, name);
    await mkdir(directory, { mode: 0o755 });
    const stop = new AbortController();
    const fetchOne = async (url: string, i: number): Promise<string> => {
      const path = join(directory, String(i + 1));
      await this.inTurn(() => this.fetchOne(url, path, progress, AbortSignal.any([signal, stop.signal])));
      return path;
    };
    const all = urls.map(fetchOne);
    try {
      return await Promise.all(all);
    } catch (error) {
      stop.abort(error);
      await Promise.allSettled(all);
      this.remove(name);
      throw error;
    }
  }

  private fetchOne(
    url: string,
    path: string,
    progress: TransferProgress,
    signal: AbortSignal,
  ): Promise<void> {
    return this.within('cannot be downloaded', url, signal, async (signal) => {
      let origin: Origin | null = null;
      const begun = async (from: Origin): Promise<void> => {
        origin = from;
      };
      const attempt = async (): Promise<void> => {
        const { free, size } = await roomOn(this.dir);
        const room = Math.max(0, free - Math.min(LOW.bytes, size * LOW.part));
        const options = {
          ...{ command: null, service: null, reach: this.reach, rateMbPerS: this.options.rateMbPerS },
          maxBytes: Math.min(this.options.maxBytes, room),
        };
        await transfer(url, null, path, origin, begun, options, progress, signal);
      };
      await retried(attempt, this.options, signal);
      await settle(path);
    });
  }
}

/** Sends files of runs that have ended to URLs. */
export class Uploads extends Transfers {
  /**
   * Sends files, one after another. Those before the first that fails are there.
   *
   * @param open of the file, from its beginning
   * @param sent told of each
   * @throws Error that names the URL that did not take its file
   */
  send(
    url: string,
    files: readonly { url: string; open: () => Promise<OpenedFile> }[],
    sent: () => void,
    signal: AbortSignal,
  ): Promise<void> {
    return this.inTurn(() =>
      this.within('cannot be uploaded', url, signal, async (signal) => {
        for (const file of files) {
          await retried(() => this.sendOne(file, signal), this.options, signal);
          sent();
        }
      }),
    );
  }

  private async sendOne(
    { url, open }: { url: string; open: () => Promise<OpenedFile> },
    signal: AbortSignal,
  ): Promise<void> {
    const file = await open().catch((error: Error) => {
      throw new UnfitSource(error.message);
    });
    try {
      const { size } = await file.stat();
      const status = await put(url, size, (signal) => this.body(file, size, signal), this.reach, signal);
      if (status >= 200 && status < 300) return;
      const why = `status ${status}`;
      throw status >= 500 || status === 408 || status === 429 ? new Error(why) : new UnfitSource(why);
    } catch (error) {
      throw error instanceof ClosedAddress ? new UnfitSource(error.message) : error;
    } finally {
      await file.close();
    }
  }

  /** So many bytes: something of the run may still write to its file. */
  private async *body(file: OpenedFile, size: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const begunMs = performance.now();
    let bytes = 0;
    for await (const chunk of chunksOf(file, signal)) {
      const part = chunk.subarray(0, size - bytes);
      bytes += part.length;
      if (part.length > 0) yield part;
      await keepRate(bytes, begunMs, this.options.rateMbPerS, signal);
      if (bytes === size) return;
    }
    if (bytes < size) throw new UnfitSource('the file became shorter while being uploaded');
  }
}
