/** Hands copies of the site's datasets to the service, for peers' sites that cannot get at them otherwise. */
import { constants } from 'node:fs';
import { type Client, ServiceError } from '../../client/index.js';
import { MAX } from '../../platform/limits.js';
import { ExportDatasetDocument, WantedExportsDocument, type WantedExportsQuery } from '../documents.gql.js';
import { type DataRoots, dataPath } from '../staging/roots.js';
import { HandOver, type KnownAgent } from './handover.js';
import { type OpenedFile, open } from './share.js';

type Wanted = WantedExportsQuery['wantedExports'][number];

export interface ExporterOptions {
  client: Pick<Client, 'request' | 'put'>;
  /** Which files of the host may be data. */
  roots: DataRoots;
}

export class DataExporter {
  private readonly handing: HandOver<Wanted>;

  constructor(private readonly options: ExporterOptions) {
    const { client } = options;
    this.handing = new HandOver<Wanted>(
      client,
      ({ location }) => this.open(location),
      async (us, { dataset }, [file], signal) => {
        const { bytes, sha256 } = file!;
        const given = { site: us.site, agent: us.agent(), dataset, bytes, sha256 };
        const { exportDataset } = await client.request(ExportDatasetDocument, given, signal);
        // It is null only for what has a problem.
        return [exportDataset!];
      },
    );
  }

  /**
   * Hands over what the service wants now, one after the other.
   *
   * @returns what could not be handed over, and why
   */
  async serve(us: KnownAgent, signal: AbortSignal): Promise<{ name: string; problem: string }[]> {
    const { client } = this.options;
    const { wantedExports } = await client.request(WantedExportsDocument, { site: us.site }, signal);
    const failed: { name: string; problem: string }[] = [];
    for (const wanted of wantedExports) {
      try {
        await this.handing.handOver(us, wanted, [wanted.name], signal);
      } catch (error) {
        signal.throwIfAborted();
        const problem = (error as Error).message.slice(0, MAX.reasonChars);
        failed.push({ name: wanted.name, problem });
        // What it has refused itself it knows of.
        if (error instanceof ServiceError && error.code === 'NOT_FOUND') continue;
        const given = { site: us.site, agent: us.agent(), dataset: wanted.dataset, problem };
        await client.request(ExportDatasetDocument, given, signal);
      }
    }
    return failed;
  }

  /** Links have been followed: one that has come meanwhile leads somewhere else. */
  private async open(location: string): Promise<OpenedFile> {
    const path = await dataPath(location, this.options.roots);
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    if ((await file.stat()).isFile()) return file;
    await file.close();
    throw new Error('it is not a file: only files are copied, not directories');
  }
}
