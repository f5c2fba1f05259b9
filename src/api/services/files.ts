/** Files of runs that are kept: those that agents hand over, and those that people fetch. */
import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { filePathFault } from '../../platform/file-paths.js';
import { MAX } from '../../platform/limits.js';
import { PartsMissing } from '../../store/blobs.js';
import type { FileOnItsWay, FileRow } from '../../store/files.js';
import type { DatasetRow } from '../../store/rows.js';
import { meantRun } from '../../store/rules.js';
import type { Viewer } from '../auth.js';
import { atMost, text, within } from '../check.js';
import { ApiError, badInput, notFound } from '../errors.js';
import type { MutationKeepDatasetArgs, MutationKeepFilesArgs, RunFileInput } from '../generated/types.js';
import { globalId, localId } from '../ids.js';
import { authorize, guarded, maySeeJob, ownSite } from './access.js';
import { actor, done, type ServiceParts, wakeAfter } from './parts.js';

export const SHA256 = /^[0-9a-f]{64}$/;

/** A part of a file, as its agent sends it. */
export interface ReceivedPart {
  agent: string;
  /** Bytes of the file before it. */
  offset: number;
  body: Buffer;
  /** `sha-256=:…:` (RFC 9530). */
  digest: string;
}

/** How far a file has come. */
export interface FileProgress {
  receivedBytes: number;
  /** It is whole, and stays whatever fails. */
  kept: boolean;
}

/** With its content, or a part of that. */
export interface FoundFile {
  file: FileRow;
  read(from: number, to: number): Promise<Readable>;
}

const progressOf = ({ received, kept }: FileOnItsWay): FileProgress => ({ receivedBytes: received, kept });

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: it returns short functions that share its parts
export function createFilesService(parts: ServiceParts) {
  const { directory, queries, limits } = parts;
  const { files, blobs, retentionDays } = parts.fileStore;

  /** Peers have none; who else leaves it out is told so. */
  const agentOf = (viewer: Viewer, agent: string | null | undefined): number | null =>
    viewer.role === 'PEER' ? null : localId('agent', agent ?? '', 'agent');
  const runOf = (
    viewer: Viewer,
    args: { site: string; agent?: string | null; job: string; epoch: number; token?: string | null },
  ) => {
    const siteId = localId('site', args.site, 'site');
    ownSite(viewer, siteId);
    const epoch = within('epoch', args.epoch, 1, 2 ** 31 - 1);
    return {
      siteId,
      agentId: agentOf(viewer, args.agent),
      jobId: localId('job', args.job, 'job'),
      ...(viewer.role === 'PEER' ? meantRun(epoch) : { epoch, token: args.token ?? null }),
    };
  };
  const noRun = (): ApiError =>
    new ApiError('NOT_FOUND', 'the agent has no such run or task, or the run has ended');

  return {
    ...guarded({
      async keepFiles(viewer: Viewer, args: MutationKeepFilesArgs): Promise<FileRow[]> {
        const run = runOf(viewer, args);
        atMost('files', args.files, MAX.filesAnnounced);
        args.files.forEach(checkFile);
        if (new Set(args.files.map(({ path }) => path)).size < args.files.length)
          throw badInput('files', args.files.length, 'each path once');
        const bounds = {
          userBytes: limits.userFileBytes,
          runBytes: limits.jobFileBytes,
          peerBytes: MAX.peerFileBytes,
        };
        const announced = await files.announce(
          run,
          within('task', args.task, 0, MAX.tasks),
          args.files,
          bounds,
        );
        if (announced.kind === 'unknown') throw noRun();
        if (announced.kind === 'done') return announced.files;
        const { used, max } = announced;
        const accepted = {
          files: `up to ${MAX.jobFiles} files of a run`,
          runBytes: `up to ${bounds.runBytes} bytes of a run (LIMIT_JOB_FILE_BYTES)`,
          userBytes: `up to ${bounds.userBytes} bytes of the user's runs (LIMIT_USER_FILE_BYTES)`,
          peerBytes: `up to ${bounds.peerBytes} bytes of live runs at the peer`,
        };
        throw new ApiError('LIMIT_EXCEEDED', `files: ${used} in total; accepted: ${accepted[max]}`);
      },

      async removedOutputs(viewer: Viewer, site: string, jobs: readonly string[]): Promise<string[]> {
        const siteId = localId('site', site, 'site');
        ownSite(viewer, siteId);
        atMost('jobs', jobs, MAX.outputsAsked);
        const ids = jobs.map((job) => localId('job', job, 'jobs'));
        return (await queries.removedOutputs(siteId, ids)).map((id) => globalId('job', id));
      },

      async keepDataset(
        viewer: Viewer,
        args: MutationKeepDatasetArgs,
        requestId: string,
      ): Promise<DatasetRow> {
        const run = runOf(viewer, args);
        const sha256 = args.sha256 ?? null;
        if (sha256 !== null && !SHA256.test(sha256))
          throw badInput('sha256', sha256, '64 hexadecimal digits in lower case');
        const location = text('location', args.location, MAX.locationChars, 1);
        if (!location.startsWith('/')) throw badInput('location', location, 'an absolute path at the site');
        const sizeMb = within('sizeMb', args.sizeMb, 0, MAX.sizeMb);
        const kept = { name: args.dataset, sizeMb, sha256, location };
        const dataset = done(await directory.keepDataset(run, kept, actor(viewer, requestId)));
        await wakeAfter(parts, { of: 'DATA' });
        return dataset;
      },
    }),

    /** When retention removes what is kept since then. */
    keptUntil: (keptAt: number | null): number | null =>
      keptAt === null ? null : keptAt + retentionDays * 86_400,

    /**
     * Takes the next part of a file, and answers how much of it is there then, and whether it is kept. Of a file that is all there it also
     * does what is left to do, whatever was sent: the process that took the last part may have died before it had.
     */
    async receive(
      viewer: Viewer,
      id: string,
      { agent, offset, body, digest }: ReceivedPart,
    ): Promise<FileProgress> {
      authorize(viewer, 'keepFiles');
      const from = { siteId: viewer.siteId as number, agentId: agentOf(viewer, agent) };
      const file = /^[1-9]\d{0,14}$/.test(id) ? await files.onItsWay(Number(id), from) : null;
      if (file === null) throw notFound('file', id);
      // Otherwise it has come before, or something before it has not.
      if (offset === file.received && !file.kept && !(await take(file, body, digest))) {
        const now = await files.onItsWay(file.id, from);
        return now ? progressOf(now) : { receivedBytes: 0, kept: false };
      }
      if (file.received < file.bytes || file.kept) return progressOf(file);
      await whole(file, () => blobs.finish(file));
      if (!(await files.keep(file.id))) throw notFound('file', id);
      return { receivedBytes: file.bytes, kept: true };
    },

    /** A file that a run at the agent's site reads. Throws NOT_FOUND for any other. */
    async input(viewer: Viewer, id: string): Promise<FoundFile> {
      authorize(viewer, 'assignments');
      const file = /^[1-9]\d{0,14}$/.test(id)
        ? await files.readAt(Number(id), viewer.siteId as number)
        : null;
      if (file === null) throw notFound('file', id);
      return { file, read: (from, to) => blobs.read(file.id, from, to) };
    },

    /** A file for download. Throws NOT_FOUND for one that is not all there. */
    async find(
      viewer: Viewer,
      job: string,
      epoch: number | null,
      task: number,
      path: string,
    ): Promise<FoundFile> {
      const [row] = await queries.jobsByIds([localId('job', job, 'job')]);
      if (!row || !maySeeJob(viewer, row)) throw notFound('job', job);
      const file = await files.kept(row.id, epoch ?? row.epoch, task, path);
      if (file === null) throw notFound('file', path);
      return { file, read: (from, to) => blobs.read(file.id, from, to) };
    },
  };

  /** Stores a part that begins where what is there ends. False: another process has done so meanwhile. */
  async function take(file: FileOnItsWay, body: Buffer, digest: string): Promise<boolean> {
    const most = Math.min(MAX.filePartBytes, file.bytes - file.received);
    if (body.length !== most) throw badInput('body', body.length, `${most} bytes at offset ${file.received}`);
    const found = `sha-256=:${createHash('sha256').update(body).digest('base64')}:`;
    if (digest !== found)
      throw badInput('Content-Digest', digest, `${found}, the digest of the body received`);
    if (body.length === 0) return true;
    const stored = await whole(file, () => blobs.add(file, body));
    if (!(await files.advance(file, { bytes: body.length, ...stored }))) return false;
    file.upload = stored.upload;
    file.parts.push(stored.part);
    file.received += body.length;
    return true;
  }

  /** Gives up a file of which the store has lost something: announced again, it begins anew. */
  async function whole<T>(file: FileOnItsWay, action: () => Promise<T>): Promise<T> {
    try {
      return await action();
    } catch (error) {
      if (!(error instanceof PartsMissing)) throw error;
      await files.drop(file.id);
      throw notFound('file', String(file.id));
    }
  }
}

function checkFile({ path, bytes, sha256 }: RunFileInput, i: number): void {
  const fault = filePathFault(path, MAX.outputPathChars);
  if (fault) throw badInput(`files[${i}].path`, path, fault);
  if (!(Number.isSafeInteger(bytes) && bytes >= 0))
    throw badInput(`files[${i}].bytes`, bytes, 'a whole number from 0');
  if (!SHA256.test(sha256))
    throw badInput(`files[${i}].sha256`, sha256, '64 hexadecimal digits in lower case');
}
