/**
 * Files of peers' runs, from our store of files to their owner's, before the end is told: in the parts that agents send, from where the last
 * one ended, whoever died in between.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { ServiceError } from '../client/index.js';
import { MAX } from '../platform/limits.js';
import type { Blobs } from '../store/blobs.js';
import type { FileRow } from '../store/files.js';
import { type Ask, badAnswer } from './answers.js';
import { KeepDocument } from './documents.gql.js';

/** What is sent in one round at most: other runs, and other peers, have their turn. */
const ROUND_BYTES = 64 * 1024 * 1024;
/** How often a part is sent that the owner does not take. */
const SENT_IN_VAIN = 5;

/** The peer, and what we ask of it. */
export interface OutputsLink {
  blobs: Pick<Blobs, 'read'>;
  ask: Ask;
  put(path: string, body: Buffer, headers: Record<string, string>): Promise<unknown>;
}

/** A run, as its owner knows it, with what is kept of it here. */
export interface RunFiles {
  /** The site that stands for us there. */
  site: string;
  job: string;
  epoch: number;
  files: readonly FileRow[];
}

const announced = z.object({
  keepFiles: z.array(z.object({ id: z.string().regex(/^[1-9]\d{0,14}$/), receivedBytes: z.int().min(0) })),
});
const taken = z.object({ receivedBytes: z.int().min(0), kept: z.boolean().default(true) });

/** Our store of files does not give it out. */
class Unreadable extends Error {}

export class RunOutputs {
  private left = ROUND_BYTES;

  constructor(private readonly link: OutputsLink) {}

  /**
   * Hands a run's files over, as far as a round goes: `done` when their owner has all of them; else it is tried again. What their owner
   * does not take, it says why, and no other attempt would help. `later`: they cannot be read here now.
   *
   * @throws ServiceError when the owner does not answer, or not as it should
   */
  async handOver(run: RunFiles): Promise<'done' | 'more' | 'later' | { refused: string }> {
    try {
      const { site, job, epoch } = run;
      for (const files of announcements(run.files)) {
        const list = files.map(({ path, bytes, sha256 }) => ({ path, bytes, sha256 }));
        const given = { site, job, epoch, task: files[0]?.task as number, files: list };
        const answer = announced.safeParse(await this.link.ask(KeepDocument, given));
        if (!answer.success || answer.data.keepFiles.length !== files.length)
          throw badAnswer('keepFiles', `not one file for each of ${files.length}`);
        for (const [i, file] of files.entries()) {
          const { id, receivedBytes } = answer.data.keepFiles[i] as { id: string; receivedBytes: number };
          if (!(await this.send(file, id, receivedBytes))) return 'more';
        }
      }
      return 'done';
    } catch (error) {
      if (error instanceof Unreadable) return 'later';
      if (error instanceof ServiceError && REFUSALS.has(error.code)) return { refused: error.message };
      throw error;
    }
  }

  /** What is missing there. False: the round is over before the file is. */
  private async send({ id, bytes, path }: FileRow, there: string, received: number): Promise<boolean> {
    let at = Math.min(received, bytes);
    // Also where it has all: an empty part makes it whole, if that did not come to pass.
    for (let inVain = 0; inVain < SENT_IN_VAIN; ) {
      if (this.left <= 0) return false;
      const body = await this.part(id, at, Math.min(bytes, at + MAX.filePartBytes));
      this.left -= Math.max(1, body.length);
      const digest = `sha-256=:${createHash('sha256').update(body).digest('base64')}:`;
      const answer = taken.safeParse(
        await this.link.put(`/files/${there}?offset=${at}`, body, { 'content-digest': digest }),
      );
      if (!answer.success) throw badAnswer('files', 'the number of bytes received is missing');
      const { receivedBytes, kept } = answer.data;
      if (receivedBytes > bytes) throw badAnswer('files', `${receivedBytes} of ${bytes} bytes`);
      // Where it has all but has not made a file of it yet, it is asked again.
      if (receivedBytes === bytes) return kept;
      if (receivedBytes <= at) inVain++;
      at = receivedBytes;
    }
    throw badAnswer('files', `it does not accept ${path}`);
  }

  private async part(id: number, from: number, to: number): Promise<Buffer> {
    if (from === to) return Buffer.alloc(0);
    const pieces: Buffer[] = [];
    try {
      for await (const piece of await this.link.blobs.read(id, from, to)) pieces.push(piece as Buffer);
    } catch (error) {
      throw new Unreadable(`file ${id}`, { cause: error });
    }
    return Buffer.concat(pieces);
  }
}

/** The owner does not take these files, now or later: too much, or the run is over there. */
const REFUSALS: ReadonlySet<string> = new Set(['LIMIT_EXCEEDED', 'BAD_USER_INPUT', 'NOT_FOUND', 'FORBIDDEN']);

/** Files of one task, as many as one request may name. */
function* announcements(files: readonly FileRow[]): Iterable<readonly FileRow[]> {
  for (let from = 0; from < files.length; ) {
    const task = files[from]?.task;
    let to = from;
    while (to < files.length && to - from < MAX.filesAnnounced && files[to]?.task === task) to++;
    yield files.slice(from, to);
    from = to;
  }
}
