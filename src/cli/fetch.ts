/** Fetches the files that the service keeps of a job, into one directory and nowhere else. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Client, pauseMs, ServiceError, sleep } from '../client/index.js';
import { filePathFault } from '../platform/file-paths.js';
import { MAX } from '../platform/limits.js';
import { note } from './command.js';
import { JobFilesDocument, type JobFilesQuery } from './documents.gql.js';
import { CliError, ExitCode } from './errors.js';
import { noSuchJob } from './follow.js';
import { printable } from './format.js';

/** A file that the service keeps, or is about to. */
export type KeptFile = NonNullable<JobFilesQuery['job']>['files'][number];

export interface FetchedFile extends KeptFile {
  /** Where it is now; null: it could not be fetched. */
  file: string | null;
  problem: string | null;
}

/** How often in a row nothing comes. */
const ATTEMPTS = 5;

/** Fetches all files of a job's latest run, or of run `epoch`. What is there already, and is the same, stays. */
export async function fetchFiles(
  client: Client,
  id: string,
  dir: string,
  epoch: number | undefined,
): Promise<FetchedFile[]> {
  const { job } = await client.request(JobFilesDocument, {
    id,
    epoch,
  });
  if (!job) throw noSuchJob(id);
  const inTasks = job.files.some(({ task }) => task > 0);
  const fetched: FetchedFile[] = [];
  for (const file of job.files) {
    try {
      if (file.keptAt === null)
        throw new CliError('the service has not received all of it yet', ExitCode.FAILED);
      const fault = filePathFault(file.path, MAX.outputPathChars);
      if (fault !== null) throw new CliError(`its path is invalid; accepted: ${fault}`, ExitCode.FAILED);
      const names = inTasks ? [`task-${file.task}`, ...file.path.split('/')] : file.path.split('/');
      const target = await placeFor(dir, names);
      await fetchOne(
        client,
        `/jobs/${id}/files/${file.path.split('/').map(encodeURIComponent).join('/')}?task=${file.task}&epoch=${epoch ?? job.epoch}`,
        file,
        target,
      );
      fetched.push({ ...file, file: target, problem: null });
    } catch (error) {
      const { message } = error as Error;
      note(`error: ${printable(file.path)}: ${message}`);
      fetched.push({ ...file, file: null, problem: message });
    }
  }
  return fetched;
}

/** Makes the directories above a file. None of them may be a link: it could lead anywhere. */
async function placeFor(dir: string, names: readonly string[]): Promise<string> {
  await mkdir(dir, { recursive: true });
  let at = dir;
  for (const name of names.slice(0, -1)) {
    at = join(at, name);
    await mkdir(at).catch(() => {});
    if (!(await lstat(at)).isDirectory()) throw new Error(`${at} exists and is not a directory`);
  }
  return join(at, names.at(-1) as string);
}

async function fetchOne(
  client: Client,
  address: string,
  { sha256, bytes }: KeptFile,
  target: string,
): Promise<void> {
  const there = await lstat(target).catch(() => null);
  if (there !== null) {
    if (there.isFile() && there.size === bytes && (await sumOf(target)) === sha256) return;
    throw new Error(`${target} exists with different content`);
  }
  // By its content: what has come of it can be continued, and of nothing else.
  const part = join(dirname(target), `.${basename(target).slice(0, 200)}.${sha256.slice(0, 16)}.part`);
  for (let failures = 0; ; ) {
    const before = (await lstat(part).catch(() => null))?.size ?? 0;
    try {
      await continueFrom(client, address, part, { sha256, bytes });
      break;
    } catch (error) {
      const after = (await lstat(part).catch(() => null))?.size ?? 0;
      failures = after > before ? 1 : failures + 1;
      const mayPass = !(error instanceof ServiceError) || error.mayPass;
      if (!mayPass || failures >= ATTEMPTS) throw error;
      await sleep(pauseMs(failures, error));
    }
  }
  if ((await sumOf(part)) !== sha256) {
    await rm(part);
    throw new Error('the checksum does not match the one from the service; the received file was removed');
  }
  await rename(part, target);
}

async function continueFrom(
  client: Client,
  address: string,
  part: string,
  { sha256, bytes }: Pick<KeptFile, 'sha256' | 'bytes'>,
): Promise<void> {
  const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW;
  const file = await open(part, flags, 0o666);
  try {
    let at = Math.min((await file.stat()).size, bytes);
    if (at === bytes && bytes > 0) return;
    const response = await client.get(address, {
      ...(at > 0 && { range: `bytes=${at}-`, 'if-range': `"${sha256}"` }),
    });
    if (response.status !== 206) {
      at = 0;
      await file.truncate(0);
    }
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      await write(file, chunk, at);
      at += chunk.length;
    }
    if (at < bytes) throw new Error(`${at} of ${bytes} bytes received`);
  } finally {
    await file.close();
  }
}

async function write(file: FileHandle, chunk: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < chunk.length; )
    done += (await file.write(chunk, done, chunk.length - done, at + done)).bytesWritten;
}

async function sumOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    for await (const chunk of file.createReadStream({ autoClose: false })) hash.update(chunk);
  } finally {
    await file.close();
  }
  return hash.digest('hex');
}
