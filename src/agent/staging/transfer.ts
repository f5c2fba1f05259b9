/** One copy of a file, from where it lies to a file of ours: by file system, by HTTP, or by a command of the operator's. */

import { createHash } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client, ServiceError } from '../../client/index.js';
import { ClosedAddress, type Reach } from '../../platform/reach.js';
import { isHttp, shownUrl } from '../../platform/urls.js';
import { lstat, mkdir, type OpenedFile, open, readdir, realpath, rm, stat, statfs } from '../files/share.js';
import { spawnGroup } from '../group.js';
import { get } from './http.js';
import { pathAtService, UnfitSource } from './source.js';

export interface TransferOptions {
  /** What copies from locations other than files and http(s): a program and its arguments, with {source} and {target} in them. */
  command: readonly string[] | null;
  /** Accepted at most, MB/s, by files and http(s); null: as fast as it goes. */
  rateMbPerS: number | null;
  /** Which addresses are asked by http(s). */
  reach: Reach;
  /** Where files are that the service keeps: what is at its own address is no location of anybody else's. */
  service: Pick<Client, 'get'> | null;
  /** What is larger is not had; by default anything is. */
  maxBytes?: number;
}

/** Where a transfer stands: told while it goes on. */
export interface TransferProgress {
  /** Moved by this transfer. */
  bytes: number;
}

/** What a part of a copy belongs to: with another `version` it is begun anew. null: it cannot be continued. */
export interface Origin {
  location: string;
  version: string | null;
}

/** What is asked for by HTTP is answered with this, by whomever. */
interface Answer {
  status: number;
  header(name: string): string | null;
  body: Readable;
}

/** Nothing has come for so long. */
const STALL_MS = 60_000;
const CHUNK = 1 << 20;
/** Of a command's complaints. */
const SAID_BYTES = 2_000;

/**
 * Copies what is at `location` to `part`, continuing what is there of it where the source allows that.
 *
 * @param path what may be copied where `location` is a path, links followed; null: it is none
 * @param origin of what is in `part`; null: there is nothing
 * @param begun told of the origin before the first byte of it is written
 * @throws UnfitSource when it cannot be had from there
 */
export async function transfer(
  location: string,
  path: string | null,
  part: string,
  origin: Origin | null,
  begun: (origin: Origin) => Promise<void>,
  options: TransferOptions,
  progress: TransferProgress,
  signal: AbortSignal,
): Promise<void> {
  const { rateMbPerS, maxBytes = Infinity } = options;
  const move: Move = { location, part, origin, begun, rateMbPerS, maxBytes, progress, signal };
  if (path !== null) await copyPath(path, move);
  else if (isHttp(location)) {
    const { reach } = options;
    await download(move, (headers, signal) => ask(location, headers, reach, signal));
  } else if (pathAtService(location) !== null) {
    const { service } = options;
    await download(move, (headers, signal) => askService(service, location, headers, signal));
  } else await runCommand(options.command, move);
}

interface Move {
  location: string;
  part: string;
  origin: Origin | null;
  begun: (origin: Origin) => Promise<void>;
  rateMbPerS: number | null;
  maxBytes: number;
  progress: TransferProgress;
  signal: AbortSignal;
}

// Files -----------------------------------------------------------------------------------------------------------------

async function copyPath(path: string, move: Move): Promise<void> {
  const before = await statOf(path);
  if (before.isDirectory()) {
    await rm(move.part, { recursive: true, force: true });
    await move.begun({ location: move.location, version: null });
    await copyTree(path, path, move);
    return;
  }
  if (!before.isFile()) throw new UnfitSource(`${shownUrl(move.location)}: neither a file nor a directory`);
  const version = versionOf(before);
  const from = await partSize(move, version);
  await move.begun({ location: move.location, version });
  // What may be copied has no links in it. One that has come meanwhile leads somewhere else.
  const source = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    await append(move, from, fileChunks(source, from));
    if (versionOf(await source.stat()) !== version)
      throw new Error(`${shownUrl(move.location)}: changed while being copied`);
  } finally {
    await source.close();
  }
}

/** Of a directory what is at `from`, file after file: a tree has no offset at which it could be continued. */
async function copyTree(root: string, from: string, move: Move): Promise<void> {
  const { location, part, signal } = move;
  signal.throwIfAborted();
  const real = await realpath(from);
  if (real !== root && !real.startsWith(`${root}/`))
    throw new UnfitSource(`${shownUrl(location)}: ${from} points outside the dataset`);
  const found = await stat(from);
  if (found.isDirectory()) {
    if ((await lstat(from)).isSymbolicLink())
      throw new UnfitSource(`${shownUrl(location)}: ${from} is a link to a directory, which may form a loop`);
    await mkdir(part);
    for (const name of await readdir(from))
      await copyTree(root, join(from, name), { ...move, part: join(part, name) });
    return;
  }
  if (!found.isFile())
    throw new UnfitSource(`${shownUrl(location)}: ${from} is neither a file nor a directory`);
  const source = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    await append(move, 0, fileChunks(source, 0));
  } finally {
    await source.close();
  }
}

async function* fileChunks(file: OpenedFile, from: number): AsyncGenerator<Uint8Array> {
  const buffer = Buffer.allocUnsafe(CHUNK);
  for (let at = from; ; ) {
    const { bytesRead } = await file.read(buffer, 0, buffer.length, at);
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
    at += bytesRead;
  }
}

async function statOf(path: string): Promise<Stats> {
  try {
    return await stat(path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES') throw new UnfitSource(message);
    throw error;
  }
}

const versionOf = ({ ino, size, mtimeMs }: Stats): string => `${ino} ${size} ${mtimeMs}`;

// HTTP ------------------------------------------------------------------------------------------------------------------

type Asking = (headers: Record<string, string>, signal: AbortSignal) => Promise<Answer>;

async function download(move: Move, asking: Asking): Promise<void> {
  const { location, origin, signal } = move;
  const stalled = new AbortController();
  const timer = setTimeout(
    () => stalled.abort(new Error(`${shownUrl(location)}: no data received for a minute`)),
    STALL_MS,
  );
  try {
    const from = await partSize(move, origin?.version ?? null);
    const headers: Record<string, string> = { 'accept-encoding': 'identity' };
    if (from > 0) Object.assign(headers, { range: `bytes=${from}-`, 'if-range': origin!.version! });
    const { status, header, body } = await asking(headers, AbortSignal.any([signal, stalled.signal]));
    if (status !== 200 && status !== 206) {
      body.destroy();
      await refuse(move, status);
    }
    const continued = status === 206;
    const tag = header('etag');
    // A weak tag says that it means the same, not that its bytes are the same.
    const version = tag !== null && !tag.startsWith('W/') ? tag : header('last-modified');
    if (continued && !header('content-range')?.startsWith(`bytes ${from}-`))
      throw new UnfitSource(`${shownUrl(location)}: the response has a different range than requested`);
    if ((header('content-encoding') ?? 'identity') !== 'identity')
      throw new UnfitSource(`${shownUrl(location)}: the response has a different encoding than requested`);
    await move.begun({ location, version });
    const length = Number(header('content-length') ?? Number.NaN);
    if ((continued ? from : 0) + length > move.maxBytes) {
      body.destroy();
      throw new UnfitSource(tooLarge(location, move.maxBytes));
    }
    const alive = async function* (): AsyncGenerator<Uint8Array> {
      for await (const chunk of body) {
        timer.refresh();
        yield chunk as Uint8Array;
      }
    };
    const came = await append(move, continued ? from : 0, alive());
    if (Number.isFinite(length) && came !== length)
      throw new Error(`${shownUrl(location)}: ${came} of ${length} bytes received`);
  } finally {
    clearTimeout(timer);
  }
}

/** @throws Error for an answer that is not what was asked for */
async function refuse({ location, part }: Move, status: number): Promise<never> {
  // There is nothing behind what we have. Whether that is all, or too much, is found out from the beginning.
  if (status === 416) {
    await rm(part, { force: true });
    throw new Error(`${shownUrl(location)}: shorter than the part already received; starting over`);
  }
  const why = `${shownUrl(location)}: status ${status}`;
  throw status >= 500 || status === 408 || status === 429 ? new Error(why) : new UnfitSource(why);
}

async function ask(
  location: string,
  headers: Record<string, string>,
  reach: Reach,
  signal: AbortSignal,
): Promise<Answer> {
  try {
    const response = await get(location, headers, reach, signal);
    const header = (name: string): string | null => response.headers[name]?.toString() ?? null;
    return { status: response.statusCode as number, header, body: response };
  } catch (error) {
    signal.throwIfAborted();
    const { message, name } = error as Error;
    const why = `${shownUrl(location)}: ${message || name}`;
    throw error instanceof UnfitSource || error instanceof ClosedAddress
      ? new UnfitSource(why)
      : new Error(why);
  }
}

async function askService(
  service: Pick<Client, 'get'> | null,
  location: string,
  headers: Record<string, string>,
  signal: AbortSignal,
): Promise<Answer> {
  if (service === null) throw new UnfitSource(`${location}: the agent is not connected to a service`);
  try {
    const response = await service.get(pathAtService(location) as string, headers, signal);
    const body = Readable.from(response.body ?? []);
    return { status: response.status, header: (name) => response.headers.get(name), body };
  } catch (error) {
    signal.throwIfAborted();
    const { message, code } = error as ServiceError;
    throw code === 'NOT_FOUND' ? new UnfitSource(`${location}: ${message}`) : error;
  }
}

// Commands --------------------------------------------------------------------------------------------------------------

/** Without a shell: what is in a location stays one argument. */
async function runCommand(command: readonly string[] | null, move: Move): Promise<void> {
  const { location, part, signal } = move;
  if (command === null)
    throw new UnfitSource(
      `${shownUrl(location)}: the agent has no transfer command for such locations (AGENT_TRANSFER_COMMAND)`,
    );
  await rm(part, { recursive: true, force: true });
  await move.begun({ location, version: null });
  const words = command.map((word) =>
    word.replaceAll('{source}', () => location).replaceAll('{target}', () => part),
  );
  signal.throwIfAborted();
  await new Promise<void>((resolve, reject) => {
    const stdio = ['ignore', 'ignore', 'pipe'] as const;
    const { child, end: stop } = spawnGroup(words[0] as string, words.slice(1), [...stdio]);
    let said = '';
    signal.addEventListener('abort', stop, { once: true });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-SAID_BYTES);
    });
    child.on('error', (error) => reject(new UnfitSource(`${words[0]}: ${error.message}`)));
    child.on('close', (code, name) => {
      signal.removeEventListener('abort', stop);
      if (signal.aborted) reject(signal.reason);
      else if (code === 0) resolve();
      else
        reject(
          new Error(
            `${words[0]}: ended with ${code ?? name}: ${said.replaceAll(location, shownUrl(location)).trim()}`,
          ),
        );
    });
  });
  move.progress.bytes += await sizeOf(part).catch(() => {
    throw new UnfitSource(`${words[0]}: exited with 0 but wrote nothing to {target}`);
  });
}

// Common ----------------------------------------------------------------------------------------------------------------

/** Bytes in `part` that may be continued. */
async function partSize({ part, origin, location }: Move, version: string | null): Promise<number> {
  const here = await stat(part).catch(() => null);
  const fits =
    here?.isFile() && origin?.location === location && version !== null && origin.version === version;
  return fits ? (here?.size ?? 0) : 0;
}

/** Writes what comes behind the first `from` bytes of the part, no faster than allowed, and down to the disk. Answers how many bytes came. */
async function append(move: Move, from: number, chunks: AsyncIterable<Uint8Array>): Promise<number> {
  const { location, part, rateMbPerS, maxBytes, progress, signal } = move;
  if (from === 0) await rm(part, { recursive: true, force: true });
  const file = await open(part, constants.O_WRONLY | constants.O_CREAT, 0o600);
  try {
    const begun = performance.now();
    let bytes = 0;
    for await (const chunk of chunks) {
      signal.throwIfAborted();
      if (from + bytes + chunk.length > maxBytes) throw new UnfitSource(tooLarge(location, maxBytes));
      for (let done = 0; done < chunk.length; ) {
        const { bytesWritten } = await file.write(chunk, done, chunk.length - done, from + bytes + done);
        done += bytesWritten;
      }
      bytes += chunk.length;
      progress.bytes += chunk.length;
      await keepRate(bytes, begun, rateMbPerS, signal);
    }
    await file.sync();
    return bytes;
  } finally {
    await file.close();
  }
}

/** Waits where so many bytes since then (by the clock of durations) were more than the rate allows. */
export async function keepRate(
  bytes: number,
  begunMs: number,
  rateMbPerS: number | null,
  signal: AbortSignal,
): Promise<void> {
  if (rateMbPerS === null) return;
  const aheadMs = bytes / (rateMbPerS * 1e3) - (performance.now() - begunMs);
  if (aheadMs > 1) await sleep(aheadMs, undefined, { signal });
}

const tooLarge = (location: string, maxBytes: number): string =>
  `${shownUrl(location)}: larger than ${Math.floor(maxBytes / 1e6)} MB, the most that this agent accepts now (AGENT_URL_MB, and the room on its disk)`;

/** Bytes of a file, or of all files below a directory. A link to a directory counts for nothing: it may lead round in a circle. */
export async function sizeOf(path: string): Promise<number> {
  const one = await stat(path);
  if (!one.isDirectory()) return one.size;
  let bytes = 0;
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const below = join(path, entry.name);
    if (!entry.isSymbolicLink() || !(await stat(below)).isDirectory()) bytes += await sizeOf(below);
  }
  return bytes;
}

export async function sha256Of(path: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  const file = await open(path, constants.O_RDONLY);
  try {
    for await (const chunk of fileChunks(file, 0)) {
      signal.throwIfAborted();
      hash.update(chunk);
    }
  } finally {
    await file.close();
  }
  return hash.digest('hex');
}

/** Writes a file, or all files below a directory, down to the disk, and takes everybody's right to change it. */
export async function settle(path: string): Promise<void> {
  const directory = (await stat(path)).isDirectory();
  if (directory) for (const name of await readdir(path)) await settle(join(path, name));
  const file = await open(path, constants.O_RDONLY);
  try {
    await file.chmod(directory ? 0o755 : 0o444);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Bytes that are left on the disk of a directory, and how many it has. */
export async function roomOn(dir: string): Promise<{ free: number; size: number }> {
  const { bavail, blocks, bsize } = await statfs(dir);
  return { free: bavail * bsize, size: blocks * bsize };
}
