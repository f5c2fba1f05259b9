/** Hands files to the service, which keeps them: of runs that are over, and copies of datasets. */
import { createHash } from 'node:crypto';
import { type Client, pauseMs, ServiceError } from '../../client/index.js';
import { type Env, pause, REAL_ENV } from '../../platform/env.js';
import { keptPath } from '../../platform/file-paths.js';
import { MAX } from '../../platform/limits.js';
import { KeepFilesDocument } from '../documents.gql.js';
import type { WantedOutput } from '../runner.js';
import { openInside, type Place } from './find.js';

/** A run that is over, with what is to be kept of it. */
export interface EndedRun extends Place {
  jobId: string;
  epoch: number;
  /** As of RunName. */
  token?: string;
  /** Index of the task. */
  task: number;
  outputs: readonly WantedOutput[];
  /** Its command ended with 0: what was named has to be there, and may become a dataset. */
  well: boolean;
  /** Where it has reported checkpoints. */
  reports?: string;
  /** By path, what is kept under it in place of the file there. */
  sources?: ReadonlyMap<string, () => Promise<OpenFile>>;
}

/** What the service calls the agent, once it has registered. */
export interface KnownAgent {
  /** Id of its site. */
  site: string;
  agent(): string;
}

/** A file that is being read. */
export interface OpenFile {
  read(buffer: Buffer, offset: number, length: number, position: number): Promise<{ bytesRead: number }>;
  close(): Promise<void>;
}

/** What cannot be kept, and why: no other attempt would help. */
class NotKept extends Error {}

const CHUNK = 1 << 20;
/** How often a file is begun anew that the service has lost again. */
const BEGUN_ANEW = 3;
/** How often a part is sent that the service does not take. */
const SENT_IN_VAIN = 5;

/** How the service is told of files to come: what it has of each, in their order. */
type Announce<P> = (
  us: KnownAgent,
  place: P,
  files: readonly { path: string; bytes: number; sha256: string }[],
  signal: AbortSignal,
) => Promise<readonly { id: string; receivedBytes: number }[]>;

/** Hands over files of runs; or of what else `P` is, with functions of its own. */
export class HandOver<P = EndedRun> {
  /** @param open of a run, by its path below the directory */
  constructor(
    private readonly client: Pick<Client, 'request' | 'put'>,
    private readonly open: (place: P, path: string) => Promise<OpenFile>,
    private readonly announce: Announce<P>,
    private readonly env: Env = REAL_ENV,
  ) {}

  /** Of runs. */
  static ofRuns(
    client: Pick<Client, 'request' | 'put'>,
    open: (run: EndedRun, path: string) => Promise<OpenFile> = (run, path) =>
      run.sources?.get(path)?.() ?? openInside(run, path),
    env: Env = REAL_ENV,
  ): HandOver {
    return new HandOver<EndedRun>(
      client,
      open,
      async (us, { jobId: job, epoch, token = null, task }, found, signal) => {
        const files = found.map((file) => ({ ...file, path: keptPath(file.path) }));
        const variables = { site: us.site, agent: us.agent(), job, epoch, token, task, files };
        return (await client.request(KeepFilesDocument, variables, signal)).keepFiles;
      },
      env,
    );
  }

  /**
   * Hands over files of a run, and returns when the service keeps them. Tries as long as it takes while the service is away.
   *
   * @throws NotKept, or what the service says when it refuses one for good
   */
  async handOver(us: KnownAgent, place: P, paths: readonly string[], signal: AbortSignal): Promise<void> {
    for (let from = 0; from < paths.length; from += MAX.filesAnnounced) {
      const some = paths.slice(from, from + MAX.filesAnnounced);
      const files: { path: string; bytes: number; sha256: string }[] = [];
      for (const path of some) files.push({ path, ...(await this.sumOf(place, path, signal)) });
      for (let times = 1; ; times++) {
        const kept = await this.untilAnswered(signal, () => this.announce(us, place, files, signal));
        let lost = false;
        for (const [i, { id, receivedBytes }] of kept.entries())
          lost = !(await this.send(us, place, files[i]!, id, receivedBytes, signal)) || lost;
        if (!lost) break;
        if (times === BEGUN_ANEW) throw new NotKept('the service lost data that it had received');
      }
    }
  }

  /** Sends what the service does not have of a file. False: it knows it no more, and has to be asked again. */
  private async send(
    us: KnownAgent,
    place: P,
    { path, bytes }: { path: string; bytes: number },
    id: string,
    received: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    const file = await this.open(place, path);
    try {
      let at = received;
      let kept = false;
      let inVain = 0;
      // Also where it has all: an empty part has it do what is left to do, if the process that took the last one died before it had.
      while (!kept) {
        const body = await partOf(file, at, Math.min(MAX.filePartBytes, bytes - at));
        const digest = createHash('sha256').update(body).digest('base64');
        const address = `/files/${id}?agent=${us.agent()}&offset=${at}`;
        try {
          const answer = await this.untilAnswered(signal, () =>
            this.client.put<{ receivedBytes: number; kept: boolean }>(
              address,
              body,
              { 'content-digest': `sha-256=:${digest}:` },
              signal,
            ),
          );
          inVain = answer.receivedBytes > at ? 0 : inVain + 1;
          at = answer.receivedBytes;
          kept = answer.kept;
        } catch (error) {
          if (!(error instanceof ServiceError)) throw error;
          if (error.code === 'NOT_FOUND') return false;
          // Spoiled on its way, perhaps.
          if (++inVain >= SENT_IN_VAIN) throw error;
        }
        if (!kept && inVain >= SENT_IN_VAIN) throw new NotKept(`${path}: the service does not accept it`);
      }
      return true;
    } finally {
      await file.close();
    }
  }

  /** Asks as often as it takes while that may help. */
  async untilAnswered<T>(signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
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
        await pause(this.env, pauseMs(failures, error, this.env), signal);
        signal.throwIfAborted();
      }
    }
  }

  /** Size and checksum of a file of a run. */
  private async sumOf(
    place: P,
    path: string,
    signal: AbortSignal,
  ): Promise<{ bytes: number; sha256: string }> {
    try {
      const file = await this.open(place, path);
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
}

export async function* chunksOf(file: OpenFile, signal: AbortSignal): AsyncGenerator<Buffer> {
  for (let at = 0; ; ) {
    const chunk = await partOf(file, at, CHUNK, true);
    signal.throwIfAborted();
    if (chunk.length === 0) return;
    yield chunk;
    at += chunk.length;
  }
}

/** So many bytes of a file; fewer only at its end, and where that is accepted. */
async function partOf(file: OpenFile, from: number, length: number, orLess = false): Promise<Buffer> {
  const buffer = Buffer.allocUnsafe(length);
  let done = 0;
  while (done < length) {
    const { bytesRead } = await file.read(buffer, done, length - done, from + done);
    if (bytesRead === 0) break;
    done += bytesRead;
  }
  if (done < length && !orLess) throw new NotKept('it became shorter while being saved');
  return buffer.subarray(0, done);
}
