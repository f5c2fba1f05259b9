/** The content of files of runs that the service keeps: in a directory, or in a bucket of anything that speaks S3. */
import { constants, createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import type { S3mini } from 's3mini';
import { MAX } from '../platform/limits.js';
import type { FileOnItsWay } from './files.js';

/** What the store has of a file that is on its way; `part` names the part that came last. */
export interface Stored {
  upload: string | null;
  part: string;
}

/** Where content is kept by the id of its file. Whatever is asked for twice is done once. */
export interface Blobs {
  /**
   * Keeps the next part, which begins where what is there ends.
   *
   * @throws PartsMissing when less is there
   */
  add(file: FileOnItsWay, body: Buffer): Promise<Stored>;
  /**
   * Makes a whole of the parts. From then on it can be read.
   *
   * @throws PartsMissing when they are not what they were said to be
   */
  finish(file: FileOnItsWay): Promise<void>;
  /** Bytes from `from` up to `to`. */
  read(id: number, from: number, to: number): Promise<Readable>;
  /** Forgets it, and what there is of it. */
  remove(id: number, upload: string | null): Promise<void>;
}

/** The parts of a file are gone, or others than were counted: it has to come again. */
export class PartsMissing extends Error {
  override readonly name = 'PartsMissing';
}

/** Files in one directory. */
const FANOUT = 1_000;

/** A directory that all API processes reach. */
export class DirectoryBlobs implements Blobs {
  constructor(private readonly dir: string) {}

  async add({ id, received }: FileOnItsWay, body: Buffer): Promise<Stored> {
    const part = this.part(id);
    await mkdir(dirname(part), { recursive: true, mode: 0o700 });
    await using(part, constants.O_WRONLY | constants.O_CREAT, async (file) => {
      // Behind a hole it would look like a whole file.
      if ((await file.stat()).size < received) throw new PartsMissing(part);
      for (let done = 0; done < body.length; )
        done += (await file.write(body, done, body.length - done, received + done)).bytesWritten;
      await file.datasync();
    });
    return { upload: null, part: String(received) };
  }

  async finish(file: FileOnItsWay): Promise<void> {
    const { id, bytes } = file;
    const [part, whole] = [this.part(id), this.whole(id)];
    if (bytes === 0) await this.add(file, Buffer.alloc(0));
    // Whatever is there already: before the database was restored from a backup, another file may have had the id.
    if ((await sizeOf(part)) === bytes)
      await rename(part, whole).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
      });
    // Another process may have done so meanwhile.
    if ((await sizeOf(whole)) !== bytes) throw new PartsMissing(part);
    await using(dirname(whole), constants.O_RDONLY, (dir) => dir.sync());
  }

  async read(id: number, from: number, to: number): Promise<Readable> {
    if (from === to) return Readable.from([]);
    const file = await open(this.whole(id), 'r');
    return createReadStream('', { fd: file, start: from, end: to - 1 });
  }

  async remove(id: number): Promise<void> {
    for (const path of [this.part(id), this.whole(id)]) await rm(path, { force: true });
  }

  private whole(id: number): string {
    return join(this.dir, String(Math.floor(id / FANOUT)), String(id));
  }

  private part(id: number): string {
    return `${this.whole(id)}.part`;
  }
}

export interface BucketOptions {
  /** With the bucket in its path or host. */
  endpoint: string;
  region: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** In front of the names of all objects. */
  prefix: string;
}

/** How long the bucket may take for one part. */
const BUCKET_MS = 60_000;

/** A bucket. A file of several parts is a multipart upload, one part of it is written as it is. */
export class BucketBlobs implements Blobs {
  private client: Promise<S3mini> | null = null;

  constructor(private readonly options: BucketOptions) {}

  async add({ id, bytes, received, upload }: FileOnItsWay, body: Buffer): Promise<Stored> {
    const bucket = await this.bucket();
    const key = this.key(id);
    if (body.length === bytes) {
      await bucket.putObject(key, body);
      return { upload: null, part: 'all' };
    }
    const into = upload ?? (await bucket.getMultipartUploadId(key));
    const number = received / MAX.filePartBytes + 1;
    const { etag } = await bucket
      .uploadPart(key, into, body, number)
      .catch((error: unknown) => missing(key, error));
    return { upload: into, part: etag };
  }

  async finish(file: FileOnItsWay): Promise<void> {
    const { id, bytes, upload, parts } = file;
    const bucket = await this.bucket();
    const key = this.key(id);
    // Whatever is there already, as in a directory.
    if (bytes === 0) await bucket.putObject(key, Buffer.alloc(0));
    else if (upload !== null)
      await bucket
        .completeMultipartUpload(
          key,
          upload,
          parts.map((etag, i) => ({ partNumber: i + 1, etag })),
        )
        // Another process may have done so meanwhile.
        .catch(unlessGone);
    if (!(await bucket.objectExists(key)) || (await bucket.getContentLength(key)) !== bytes)
      throw new PartsMissing(key);
  }

  async read(id: number, from: number, to: number): Promise<Readable> {
    if (from === to) return Readable.from([]);
    const { body } = await (await this.bucket()).getObjectRaw(this.key(id), false, from, to);
    if (body === null) throw new Error(`${this.key(id)}: empty response from the bucket`);
    return Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]);
  }

  async remove(id: number, upload: string | null): Promise<void> {
    const bucket = await this.bucket();
    if (upload !== null) await bucket.abortMultipartUpload(this.key(id), upload).catch(unlessGone);
    await bucket.deleteObject(this.key(id));
  }

  private key(id: number): string {
    return `${this.options.prefix}${id}`;
  }

  /** Loaded when it is needed: most installations have none. */
  private bucket(): Promise<S3mini> {
    const { prefix: _, ...options } = this.options;
    this.client ??= import('s3mini').then(
      ({ S3mini: Client }) => new Client({ ...options, requestAbortTimeout: BUCKET_MS }),
    );
    return this.client;
  }
}

/** The bucket knows nothing of the upload any more: it has ended, well or not. */
const isGone = (error: unknown): boolean =>
  [error, (error as Error).cause].some((one) => (one as { status?: number } | undefined)?.status === 404);

function unlessGone(error: unknown): void {
  if (!isGone(error)) throw error;
}

function missing(key: string, error: unknown): never {
  throw isGone(error) ? new PartsMissing(key) : error;
}

async function using<T>(path: string, flags: number, action: (file: FileHandle) => Promise<T>): Promise<T> {
  const file = await open(path, flags, 0o600);
  try {
    return await action(file);
  } finally {
    await file.close();
  }
}

const sizeOf = async (path: string): Promise<number | null> =>
  (await stat(path).catch(() => null))?.size ?? null;
