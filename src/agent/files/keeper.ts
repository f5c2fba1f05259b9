/** Keeps what jobs name as their outputs: hands files over to the service, or makes them datasets at the site. */
import { createHash } from 'node:crypto';
import { constants, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import pLimit, { type LimitFunction } from 'p-limit';
import type { Client } from '../../client/index.js';
import { keptPath } from '../../platform/file-paths.js';
import { MAX } from '../../platform/limits.js';
import { urlBelow } from '../../platform/urls.js';
import { KeepDatasetDocument, RemovedOutputsDocument } from '../documents.gql.js';
import type { WantedOutput } from '../runner.js';
import { roomOn, settle, sizeOf } from '../staging/transfer.js';
import { Uploads, type UrlOptions } from '../staging/urls.js';
import { type Packed, packed } from './archive.js';
import { reportedCheckpoint } from './checkpoint.js';
import { findFiles, openInside } from './find.js';
import { chunksOf, type EndedRun, HandOver, type KnownAgent, type OpenFile } from './handover.js';
import { chmod, mkdir, open, readdir, rename, rm } from './share.js';

export interface KeeperOptions {
  client: Pick<Client, 'request' | 'put'>;
  /** Where outputs that become datasets are put. */
  datasetsDir: string;
  /** Room that they may take, bytes; null: as much as there is. */
  datasetsBytes: number | null;
  /** How files are sent to URLs. */
  urls?: UrlOptions;
  /** Runs at once. */
  runs?: number;
}

/** The directory of a run's datasets, and the job that it is of. */
const placeOf = ({ jobId, epoch }: EndedRun): string => `${jobId}.${epoch}`;
const PLACE = /^(job_\d+)\.\d+$/;
/** Of the disk of datasets, whichever is less, is left. */
const LOW = { bytes: 512 << 20, part: 1 / 20 };
/** Problems that are told. */
const TOLD = 10;

export class OutputKeeper {
  private known: (agent: KnownAgent) => void = () => {};
  private readonly us = new Promise<KnownAgent>((resolve) => {
    this.known = resolve;
  });
  /** Runs of which something is being kept. */
  private readonly keeping = new Set<string>();
  private readonly inTurn: LimitFunction;
  private readonly options: Required<KeeperOptions>;
  private readonly handing: HandOver;
  private readonly uploads: Uploads;

  constructor(options: KeeperOptions) {
    this.options = { runs: 4, urls: {}, ...options };
    this.inTurn = pLimit(this.options.runs);
    this.handing = HandOver.ofRuns(options.client);
    this.uploads = new Uploads(this.options.urls);
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
      const { removedOutputs } = await this.handing.untilAnswered(signal, () =>
        client.request(RemovedOutputsDocument, variables, signal),
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
    let begun = false;
    const work = this.inTurn(() => {
      signal.throwIfAborted();
      begun = true;
      return this.keepAll(us, run, signal);
    });
    // Who waits for a turn leaves at once; what has begun sees to its own end.
    return Promise.race([work, stopped.catch((error) => (begun ? work : Promise.reject(error)))]);
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
          .filter(({ dataset, checkpoint, url }) => dataset === null && !checkpoint && url === undefined)
          .map(({ path }) => findFiles(run, path, required)),
      );
      const files = new Set(found.flatMap((one) => one.files));
      for (const { path } of run.outputs.filter(({ checkpoint }) => checkpoint)) files.delete(path);
      const twice = [...files].filter((path) => keptPath(path) !== path && files.delete(keptPath(path)));
      await this.handing.handOver(us, run, [...files], signal);
      return [
        ...found.flatMap((one) => one.problems),
        ...twice.map((path) => `${keptPath(path)}: ${path} is kept under this path`),
      ];
    });
    for (const { path, checkpoint } of run.outputs)
      if (checkpoint) await attempt(() => this.keepCheckpoint(us, run, path, signal));
    for (const [place, { path, dataset }] of run.outputs.entries())
      if (dataset !== null && required)
        await attempt(() => this.makeDataset(us, run, { path, dataset }, place, signal));
    for (const { path, url } of run.outputs)
      if (url !== undefined && required) await attempt(() => this.upload(us, run, path, url, signal));
    if (problems.length === 0) return null;
    const told = problems.slice(0, TOLD).join('; ');
    return problems.length > TOLD ? `${told}; and ${problems.length - TOLD} more` : told;
  }

  /** Sends a file, or what is in a directory, to a URL; what did not get there the service keeps. */
  private async upload(
    us: KnownAgent,
    run: EndedRun,
    path: string,
    url: string,
    signal: AbortSignal,
  ): Promise<string[]> {
    const { files, problems } = await findFiles(run, path, true);
    if (problems.length > 0) return problems;
    const root = path.replace(/\/$/, '');
    const sends = files.map((file) => ({
      url: file === root ? url : urlBelow(url, file.slice(root.length + 1)),
      open: () => openInside(run, file),
    }));
    let sent = 0;
    try {
      await this.uploads.send(url, sends, () => sent++, signal);
      return [];
    } catch (error) {
      signal.throwIfAborted();
      const { message } = error as Error;
      const rest = files.slice(sent);
      try {
        await this.handing.handOver(us, run, rest, signal);
      } catch (problem) {
        signal.throwIfAborted();
        return [`${message}; and the service does not keep ${path}: ${(problem as Error).message}`];
      }
      const kept = rest.length === 1 ? rest[0] : `${rest.length} files of ${path}`;
      return [`${message}; the service keeps ${kept}`];
    }
  }

  /** Keeps the last checkpoint that the run has reported, else what is there under the path, under this path. */
  private async keepCheckpoint(
    us: KnownAgent,
    run: EndedRun,
    path: string,
    signal: AbortSignal,
  ): Promise<string[]> {
    const reported = await reportedCheckpoint(run, run.reports);
    const from = reported?.path ?? path;
    const { files, problems } = await findFiles(run, from, reported !== null);
    // Half of one is none.
    if (problems.length > 0) return problems.map((problem) => `checkpoint: ${problem}`);
    if (files.length === 0) return [];
    const isFile = files.length === 1 && files[0] === from;
    const source = isFile ? () => openInside(run, from) : await packedFrom(run, from, files);
    const sources = new Map([[path, source]]);
    await this.handing.handOver(us, { ...run, sources }, [path], signal);
    return [];
  }

  // --- Datasets

  private async makeDataset(
    us: KnownAgent,
    run: EndedRun,
    { path, dataset }: WantedOutput & { dataset: string },
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
      const { jobId: job, epoch, token = null } = run;
      const variables = { job, epoch, token, dataset, sizeMb: bytes / 1e6, sha256, location: target };
      await this.handing.untilAnswered(signal, () =>
        this.options.client.request(
          KeepDatasetDocument,
          { site: us.site, agent: us.agent(), ...variables },
          signal,
        ),
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
}

/** The files of a directory as one. */
async function packedFrom(
  run: EndedRun,
  directory: string,
  paths: readonly string[],
): Promise<() => Promise<OpenFile>> {
  const files: Packed[] = [];
  for (const path of paths) {
    const file = await openInside(run, path);
    try {
      const { size, mode } = await file.stat();
      const name = path.slice(directory.length + 1);
      files.push({ name, bytes: size, executable: (mode & 0o100) !== 0, open: () => openInside(run, path) });
    } finally {
      await file.close();
    }
  }
  return async () => packed(files);
}
