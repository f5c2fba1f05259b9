/** Keeps what jobs name as their outputs: hands files over to the service, or makes them datasets at the site. */
import { createHash } from 'node:crypto';
import { constants, mkdirSync } from 'node:fs';
import { chmod, type FileHandle, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, pauseMs, ServiceError } from '../../client/index.js';
import { MAX } from '../../platform/limits.js';
import type { WantedOutput } from '../runner.js';
import { roomOn, settle, sizeOf } from '../staging/transfer.js';
import { findFiles, openInside, type Place } from './find.js';

/** A run that is over, with what is to be kept of it. */
export interface EndedRun extends Place {
  jobId: string;
  epoch: number;
  /** Index of the task. */
  task: number;
  outputs: readonly WantedOutput[];
  /** Its command ended with 0: what was named has to be there, and may become a dataset. */
  well: boolean;
}

/** What the service calls the agent, once it has registered. */
export interface KnownAgent {
  /** Id of its site. */
  site: string;
  agent(): string;
}

export interface KeeperOptions {
  client: Pick<Client, 'request' | 'put'>;
  /** Where outputs that become datasets are put. */
  datasetsDir: string;
  /** Room that they may take, bytes; null: as much as there is. */
  datasetsBytes: number | null;
  /** Runs at once. */
  runs?: number;
}

/** What cannot be kept, and why: no other attempt would help. */
class NotKept extends Error {}

/** The directory of a run's datasets, and the job that it is of. */
const placeOf = ({ jobId, epoch }: EndedRun): string => `${jobId}.${epoch}`;
const PLACE = /^(job_\d+)\.\d+$/;
const CHUNK = 1 << 20;
/** How often a file is begun anew that the service has lost again. */
const BEGUN_ANEW = 3;
/** How often a part is sent that the service does not take. */
const SENT_IN_VAIN = 5;
/** Of the disk of datasets, whichever is less, is left. */
const LOW = { bytes: 512 << 20, part: 1 / 20 };
/** Problems that are told. */
const TOLD = 10;

export const KEEP_FILES = `mutation KeepFiles($site: ID!, $agent: ID!, $job: ID!, $epoch: Int!, $task: Int!, $files: [RunFileInput!]!) {
  keepFiles(site: $site, agent: $agent, job: $job, epoch: $epoch, task: $task, files: $files) { id path receivedBytes }
}`;
export const KEEP_DATASET = `mutation KeepDataset($site: ID!, $agent: ID!, $job: ID!, $epoch: Int!, $dataset: String!, $sizeMb: Float!, $sha256: String, $location: String!) {
  keepDataset(site: $site, agent: $agent, job: $job, epoch: $epoch, dataset: $dataset, sizeMb: $sizeMb, sha256: $sha256, location: $location) { id }
}`;

export const REMOVED_OUTPUTS = `query RemovedOutputs($site: ID!, $jobs: [ID!]!) { removedOutputs(site: $site, jobs: $jobs) }`;

export class OutputKeeper {
  private known: (agent: KnownAgent) => void = () => {};
  private readonly us = new Promise<KnownAgent>((resolve) => {
    this.known = resolve;
  });
  /** Runs of which something is being kept. */
  private readonly keeping = new Set<string>();
  private running = 0;
  private readonly queue: (() => void)[] = [];
  private readonly options: Required<KeeperOptions>;

  constructor(options: KeeperOptions) {
    this.options = { runs: 4, ...options };
    mkdirSync(options.datasetsDir, { recursive: true, mode: 0o755 });
  }

  /** From now on there is somebody to hand files to. */
  serve(us: KnownAgent): void {
    this.known(us);
  }

  /**
   * Keeps what a run's outputs name. Tries as long as it takes while the service is away.
   *
   * @returns what could not be kept, and why; null: everything was
   * @throws the reason of `signal` when it is aborted
   */
  async keep(run: EndedRun, signal: AbortSignal): Promise<string | null> {
    const stopped = new Promise<never>((_, reject) => {
      const stop = () => reject(signal.reason);
      if (signal.aborted) stop();
      signal.addEventListener('abort', stop, { once: true });
    });
    stopped.catch(() => {});
    const name = placeOf(run);
    this.keeping.add(name);
    try {
      return await this.keepInTurn(run, signal, stopped);
    } finally {
      this.keeping.delete(name);
    }
  }

  /**
   * Removes outputs that were datasets and are none any more, because somebody removed them from the service. What the service does not know
   * stays: it may have been restored from a backup.
   *
   * @returns what was removed
   */
  async clean(us: KnownAgent, signal: AbortSignal): Promise<string[]> {
    const { datasetsDir, client } = this.options;
    const removed: string[] = [];
    const places = (await readdir(datasetsDir)).filter((name) => PLACE.test(name) && !this.keeping.has(name));
    const jobOf = (name: string): string => PLACE.exec(name)![1]!;
    const jobs = [...new Set(places.map(jobOf))];
    for (let from = 0; from < jobs.length; from += MAX.outputsAsked) {
      const variables = { site: us.site, jobs: jobs.slice(from, from + MAX.outputsAsked) };
      const { removedOutputs } = await this.untilAnswered(signal, () =>
        client.request<{ removedOutputs: string[] }>(REMOVED_OUTPUTS, variables, signal),
      );
      const gone = new Set(removedOutputs);
      for (const name of places.filter((one) => gone.has(jobOf(one)) && !this.keeping.has(one))) {
        await rm(join(datasetsDir, name), { recursive: true, force: true });
        removed.push(join(datasetsDir, name));
      }
    }
    return removed;
  }

  private async keepInTurn(
    run: EndedRun,
    signal: AbortSignal,
    stopped: Promise<never>,
  ): Promise<string | null> {
    const us = await Promise.race([this.us, stopped]);
    if (this.running >= this.options.runs)
      await Promise.race([new Promise<void>((go) => this.queue.push(go)), stopped]);
    this.running++;
    try {
      return await this.keepAll(us, run, signal);
    } finally {
      this.running--;
      this.queue.shift()?.();
    }
  }

  private async keepAll(us: KnownAgent, run: EndedRun, signal: AbortSignal): Promise<string | null> {
    const problems: string[] = [];
    const attempt = async (action: () => Promise<string[]>): Promise<void> => {
      try {
        problems.push(...(await action()));
      } catch (error) {
        signal.throwIfAborted();
        problems.push((error as Error).message);
      }
    };
    // Only the first task has to leave what was named; the others, what they have.
    const required = run.well && run.task === 0;
    await attempt(async () => {
      const found = await Promise.all(
        run.outputs
          .filter(({ dataset }) => dataset === null)
          .map(({ path }) => findFiles(run, path, required)),
      );
      const files = [...new Set(found.flatMap((one) => one.files))];
      await this.handOver(us, run, files, signal);
      return found.flatMap((one) => one.problems);
    });
    for (const [place, output] of run.outputs.entries())
      if (output.dataset !== null && required)
        await attempt(() => this.makeDataset(us, run, output, place, signal));
    if (problems.length === 0) return null;
    const told = problems.slice(0, TOLD).join('; ');
    return problems.length > TOLD ? `${told}; and ${problems.length - TOLD} more` : told;
  }

  // --- Files for the service

  private async handOver(
    us: KnownAgent,
    run: EndedRun,
    paths: readonly string[],
    signal: AbortSignal,
  ): Promise<void> {
    for (let from = 0; from < paths.length; from += MAX.filesAnnounced) {
      const some = paths.slice(from, from + MAX.filesAnnounced);
      const files: { path: string; bytes: number; sha256: string }[] = [];
      for (const path of some) files.push({ path, ...(await sumOf(run, path, signal)) });
      for (let times = 1; ; times++) {
        const kept = await this.announce(us, run, files, signal);
        let lost = false;
        for (const [i, { id, receivedBytes }] of kept.entries())
          lost = !(await this.send(us, run, files[i]!, id, receivedBytes, signal)) || lost;
        if (!lost) break;
        if (times === BEGUN_ANEW) throw new NotKept('the service lost what it had been given');
      }
    }
  }

  private async announce(
    us: KnownAgent,
    { jobId: job, epoch, task }: EndedRun,
    files: readonly object[],
    signal: AbortSignal,
  ): Promise<{ id: string; receivedBytes: number }[]> {
    const variables = { site: us.site, agent: us.agent(), job, epoch, task, files };
    const { keepFiles } = await this.untilAnswered(signal, () =>
      this.options.client.request<{ keepFiles: { id: string; receivedBytes: number }[] }>(
        KEEP_FILES,
        variables,
        signal,
      ),
    );
    return keepFiles;
  }

  /** Sends what the service does not have of a file. False: it knows it no more, and has to be asked again. */
  private async send(
    us: KnownAgent,
    run: EndedRun,
    { path, bytes }: { path: string; bytes: number },
    id: string,
    received: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    const file = await openInside(run, path);
    try {
      let at = received;
      let inVain = 0;
      // Also where it has all: an empty part makes it whole, if that did not come to pass.
      do {
        const body = await partOf(file, at, Math.min(MAX.filePartBytes, bytes - at));
        const digest = createHash('sha256').update(body).digest('base64');
        const address = `/files/${id}?agent=${us.agent()}&offset=${at}`;
        try {
          const answer = await this.untilAnswered(signal, () =>
            this.options.client.put<{ receivedBytes: number }>(
              address,
              body,
              { 'content-digest': `sha-256=:${digest}:` },
              signal,
            ),
          );
          inVain = answer.receivedBytes > at ? 0 : inVain + 1;
          at = answer.receivedBytes;
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error;
          if (error.code === 'NOT_FOUND') return false;
          // Spoiled on its way, perhaps.
          if (++inVain >= SENT_IN_VAIN) throw error;
        }
        if (at < bytes && inVain >= SENT_IN_VAIN) throw new NotKept(`${path}: the service does not take it`);
      } while (at < bytes);
      return true;
    } finally {
      await file.close();
    }
  }

  // --- Datasets

  private async makeDataset(
    us: KnownAgent,
    run: EndedRun,
    { path, dataset }: WantedOutput,
    place: number,
    signal: AbortSignal,
  ): Promise<string[]> {
    const { files, problems } = await findFiles(run, path, true);
    if (problems.length > 0) return problems;
    const { datasetsDir } = this.options;
    const name = path.replace(/\/$/, '').split('/').at(-1) as string;
    const target = join(datasetsDir, placeOf(run), String(place + 1), name);
    const part = join(datasetsDir, `.part-${placeOf(run)}.${place + 1}`);
    try {
      await rm(part, { recursive: true, force: true });
      const sha256 = await this.copy(run, path, files, part, signal);
      const bytes = await sizeOf(part);
      await settle(part);
      await mkdir(dirname(target), { recursive: true, mode: 0o755 });
      // Whatever the agent's umask: runs may have accounts of their own.
      for (const dir of [dirname(dirname(target)), dirname(target)]) await chmod(dir, 0o755);
      await rm(target, { recursive: true, force: true });
      await rename(part, target);
      const { jobId: job, epoch } = run;
      const variables = { job, epoch, dataset, sizeMb: bytes / 1e6, sha256, location: target };
      await this.untilAnswered(signal, () =>
        this.options.client.request(KEEP_DATASET, { site: us.site, agent: us.agent(), ...variables }, signal),
      );
      return [];
    } catch (error) {
      // An agent that stops has a successor, which finds it there.
      if (!signal.aborted) await rm(dirname(target), { recursive: true, force: true });
      throw new Error(`${path}: ${(error as Error).message}`);
    } finally {
      await rm(part, { recursive: true, force: true });
    }
  }

  /** Answers the checksum of a single file. */
  private async copy(
    run: EndedRun,
    path: string,
    files: readonly string[],
    to: string,
    signal: AbortSignal,
  ): Promise<string | null> {
    const root = path.replace(/\/$/, '');
    const single = files.length === 1 && files[0] === root;
    if (!single) await mkdir(to, { mode: 0o755 });
    let sha256: string | null = null;
    let bytes = await sizeOf(this.options.datasetsDir);
    for (const file of files) {
      const target = single ? to : join(to, file.slice(root.length + 1));
      await mkdir(dirname(target), { recursive: true, mode: 0o755 });
      const hash = createHash('sha256');
      const source = await openInside(run, file);
      try {
        bytes += (await source.stat()).size;
        await this.checkRoom(bytes, (await source.stat()).size);
        const copied = await open(target, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
        try {
          for await (const chunk of chunksOf(source, signal)) {
            hash.update(chunk);
            await copied.writeFile(chunk);
          }
        } finally {
          await copied.close();
        }
      } finally {
        await source.close();
      }
      if (single) sha256 = hash.digest('hex');
    }
    return sha256;
  }

  private async checkRoom(all: number, more: number): Promise<void> {
    const { datasetsDir, datasetsBytes } = this.options;
    if (datasetsBytes !== null && all > datasetsBytes)
      throw new Error(
        `datasets of outputs would take ${all} bytes; accepted: ${datasetsBytes} (AGENT_DATASETS_MB)`,
      );
    const { free, size } = await roomOn(datasetsDir);
    if (free - more < Math.min(LOW.bytes, size * LOW.part))
      throw new Error(`the disk of ${datasetsDir} is almost full: ${free} bytes are left`);
  }

  // --- Trying again

  /** Asks as often as it takes while that may help. */
  private async untilAnswered<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
    for (let failures = 1; ; failures++) {
      try {
        return await ask();
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof ServiceError)) throw error;
        // A key that is refused ends the agent, which sees to it itself; its successor keeps on.
        const mayPass =
          error.mayPass || ['UNAUTHENTICATED', 'FORBIDDEN', 'INTERNAL_SERVER_ERROR'].includes(error.code);
        if (!mayPass) throw error;
        await sleep(pauseMs(failures, error), undefined, { signal }).catch(() => {});
        signal.throwIfAborted();
      }
    }
  }
}

/** Size and checksum of a file of a run. */
async function sumOf(
  place: Place,
  path: string,
  signal: AbortSignal,
): Promise<{ bytes: number; sha256: string }> {
  try {
    const file = await openInside(place, path);
    try {
      const hash = createHash('sha256');
      let bytes = 0;
      for await (const chunk of chunksOf(file, signal)) {
        hash.update(chunk);
        bytes += chunk.length;
      }
      return { bytes, sha256: hash.digest('hex') };
    } finally {
      await file.close();
    }
  } catch (error) {
    signal.throwIfAborted();
    throw new NotKept(`${path}: ${(error as Error).message}`);
  }
}

async function* chunksOf(file: FileHandle, signal: AbortSignal): AsyncGenerator<Buffer> {
  for (let at = 0; ; ) {
    const chunk = await partOf(file, at, CHUNK, true);
    signal.throwIfAborted();
    if (chunk.length === 0) return;
    yield chunk;
    at += chunk.length;
  }
}

/** So many bytes of a file; fewer only at its end, and where that is accepted. */
async function partOf(file: FileHandle, from: number, length: number, orLess = false): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await file.read(buffer, done, length - done, from + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  if (done < length && !orLess) throw new NotKept('it became shorter while it was kept');
  return buffer.subarray(0, done);
}
