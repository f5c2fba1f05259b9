/** Files that the service keeps of the latest run, and those on their way. */

import { useEffect, useState } from 'react';
import { fetchFile } from '../../api/client';
import { useData } from '../../api/data';
import { Button } from '../../ui/controls';
import { download } from '../../ui/download';
import { bytes, percent, TERMINAL } from '../../ui/format';
import { Download } from '../../ui/icons';
import { At, Card, Empty, Loaded, Skeleton, Table } from '../../ui/show';
import { told } from '../../ui/toast';
import { useAskAfterEnd } from './after-end';
import { JobFilesDocument, type JobFilesQuery } from './job.gql';
import type { Job } from './shown';

type File = NonNullable<JobFilesQuery['job']>['files'][number];

const ASK_MS = 3_000;

/** A page holds what it fetches in memory: what is larger is for the command line. */
const FETCHED_BYTES_MAX = 256 * 2 ** 20;

/** A link cannot carry the key: the browser fetches the file, and then saves it. */
async function save(job: string, { path, epoch, task }: File): Promise<void> {
  const names = path.split('/').map(encodeURIComponent).join('/');
  const content = await fetchFile(`/jobs/${job}/files/${names}?epoch=${epoch}&task=${task}`);
  download(content, path.slice(path.lastIndexOf('/') + 1));
}

export function FilesCard({ job }: { job: Job }) {
  const ended = TERMINAL.has(job.state);
  const afterEnd = useAskAfterEnd(ended);
  const files = useData(JobFilesDocument, { id: job.id }, ended ? afterEnd : { everyMs: ASK_MS });
  const [busy, setBusy] = useState(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: asked again when the job has moved on
  useEffect(() => files.refresh(), [job.state]);
  return (
    <Card title="Files" about={[...job.outputs, ...job.uploads].map(({ path }) => path).join(', ')} flush>
      <Loaded from={files} skeleton={<Skeleton lines={2} />}>
        {({ job: shown }) => (
          <Table
            label="Files"
            rows={shown?.files ?? []}
            id={({ task, path }) => `${task} ${path}`}
            empty={<Empty title="No files of this run are kept" />}
            columns={[
              { key: 'path', header: 'File', cell: ({ path }) => <code>{path}</code> },
              ...(job.tasks > 1
                ? [{ key: 'task', header: 'Task', right: true, cell: ({ task }: File) => task }]
                : []),
              { key: 'size', header: 'Size', right: true, cell: (file) => bytes(file.bytes) },
              {
                key: 'kept',
                header: 'Kept until',
                right: true,
                minor: true,
                cell: ({ keptUntil, receivedBytes, bytes: all }) =>
                  keptUntil ? (
                    <At at={keptUntil} seconds={false} />
                  ) : (
                    <span className="muted">{percent(all > 0 ? receivedBytes / all : 0)} here</span>
                  ),
              },
              {
                key: 'save',
                header: <span className="hidden-visually">Download</span>,
                right: true,
                cell: (file) => (
                  <Button
                    variant="quiet"
                    icon={<Download size={15} />}
                    hint={
                      file.bytes > FETCHED_BYTES_MAX
                        ? `Too large for a page: switchyard job ${job.id} --fetch`
                        : `Download ${file.path}`
                    }
                    isDisabled={file.keptAt === null || file.bytes > FETCHED_BYTES_MAX || busy}
                    onPress={() => {
                      setBusy(true);
                      void told(save(job.id, file)).then(() => setBusy(false));
                    }}
                  />
                ),
              },
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}
