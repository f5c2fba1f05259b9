/** Copies of datasets that lie at sites only: agents hand them over, and who was granted a job that reads them fetches them. */
import type { Readable } from 'node:stream';
import { MAX } from '../../platform/limits.js';
import type { FileRow } from '../../store/files.js';
import type { Viewer } from '../auth.js';
import { text, within } from '../check.js';
import { ApiError, badInput, notFound } from '../errors.js';
import type { ExportProgress, MutationExportDatasetArgs, WantedExport } from '../generated/types.js';
import { globalId, localId } from '../ids.js';
import { guarded, ownSite } from './access.js';
import { SHA256 } from './files.js';
import type { ServiceParts } from './parts.js';

const SECRET = /^[0-9a-f]{64}$/;

export function createExportsService({ exports, queries, fileStore, limits, now }: ServiceParts) {
  return {
    ...guarded({
      async wantedExports(viewer: Viewer, site: string): Promise<WantedExport[]> {
        const siteId = localId('site', site, 'site');
        ownSite(viewer, siteId);
        const wanted = await exports.wantedExports(siteId, now());
        return wanted.map(({ datasetId, ...one }) => ({ ...one, dataset: globalId('dataset', datasetId) }));
      },

      async exportDataset(viewer: Viewer, args: MutationExportDatasetArgs): Promise<ExportProgress | null> {
        const from = {
          siteId: localId('site', args.site, 'site'),
          agentId: localId('agent', args.agent, 'agent'),
        };
        ownSite(viewer, from.siteId);
        const datasetId = localId('dataset', args.dataset, 'dataset');
        const failed = async (why: string): Promise<null> => {
          await exports.exportFailed(from, datasetId, why, now());
          return null;
        };
        if (args.problem != null) return failed(text('problem', args.problem, MAX.reasonChars, 1));
        const file = await contentOf(args, datasetId);
        const announced = await exports.announceExport(from, datasetId, file, limits.userFileBytes);
        if (announced.kind === 'done') return { id: String(announced.id), receivedBytes: announced.received };
        if (announced.kind === 'unknown')
          throw new ApiError('NOT_FOUND', 'the service does not need a copy of this dataset from the agent');
        const { used, max } = announced;
        const accepted =
          max === 'userBytes'
            ? `up to ${limits.userFileBytes} bytes of the files of the user whose job reads it (LIMIT_USER_FILE_BYTES)`
            : `up to ${MAX.peerFileBytes} bytes of copies of datasets`;
        const why = `bytes: ${used} in total; accepted: ${accepted}`;
        await failed(why);
        throw new ApiError('LIMIT_EXCEEDED', why);
      },
    }),

    /** Whose copy may be fetched with this secret; null: there is none. */
    userOf: async (secret: string): Promise<number | null> =>
      SECRET.test(secret) ? ((await exports.userOfExport(secret))?.userId ?? null) : null,

    /** A copy for download. Throws NOT_FOUND for one that is not all there. */
    async find(
      dataset: string,
      secret: string,
    ): Promise<{ file: FileRow; read(from: number, to: number): Promise<Readable> }> {
      const file = /^[1-9]\d{0,8}$/.test(dataset) ? await exports.exported(Number(dataset), secret) : null;
      if (file === null) throw notFound('export', dataset);
      return { file, read: (from, to) => fileStore.blobs.read(file.id, from, to) };
    },
  };

  async function contentOf(
    { bytes, sha256 }: MutationExportDatasetArgs,
    datasetId: number,
  ): Promise<{ bytes: number; sha256: string }> {
    const [dataset] = await queries.datasetsByIds([datasetId]);
    if (dataset === undefined) throw notFound('dataset', globalId('dataset', datasetId));
    const said = dataset.sizeMb * 1e6;
    const size = within('bytes', bytes ?? Number.NaN, 0, MAX.sizeMb * 1e6);
    if (!Number.isSafeInteger(size) || Math.abs(size - said) > said / 100 + 1e6)
      throw badInput('bytes', bytes, `a whole number, within 1 % and 1 MB of ${said}`);
    if (!SHA256.test(sha256 ?? '') || (dataset.sha256 !== null && dataset.sha256 !== sha256))
      throw badInput('sha256', sha256, dataset.sha256 ?? '64 hexadecimal digits in lower case');
    return { bytes: size, sha256: sha256 as string };
  }
}
