/** The files of a run that the service keeps. */
import { Download } from 'lucide-react';
import { useState } from 'react';
import { fetchFile } from '../../api/client';
import { Button } from '../../ui/controls';
import { download } from '../../ui/download';
import { bytes } from '../../ui/format';
import { At, Card, Table } from '../../ui/show';
import { told } from '../../ui/toast';
import type { Job } from './job';

/** A page holds what it fetches in memory: what is larger is for the command line. */
const FETCHED_BYTES_MAX = 256 * 2 ** 20;

export function FilesCard({ job }: { job: Job }) {
  const [fetching, setFetching] = useState<string | null>(null);
  const save = async (path: string, task: number): Promise<void> => {
    setFetching(path);
    const address = `/jobs/${job.id}/files/${path.split('/').map(encodeURIComponent).join('/')}?task=${task}`;
    await told(fetchFile(address).then((content) => download(content, path.split('/').at(-1) ?? path)));
    setFetching(null);
  };
  return (
    <Card title="Files">
      <Table
        label="Files"
        rows={job.files}
        id={({ task, path }) => `${task}/${path}`}
        columns={[
          { key: 'path', header: 'Path', cell: ({ path }) => <code>{path}</code> },
          ...(job.tasks > 1
            ? [{ key: 'task', header: 'Task', cell: ({ task }: Job['files'][number]) => task }]
            : []),
          { key: 'size', header: 'Size', right: true, cell: (file) => bytes(file.bytes) },
          {
            key: 'until',
            header: 'Kept until',
            cell: ({ keptUntil, receivedBytes }) =>
              keptUntil === null ? (
                `${bytes(receivedBytes)} have come`
              ) : (
                <At at={keptUntil} seconds={false} />
              ),
          },
          {
            key: 'save',
            header: '',
            cell: ({ path, task, keptAt, bytes: size }) => (
              <Button
                variant="quiet"
                icon={<Download size={15} />}
                hint={
                  size > FETCHED_BYTES_MAX
                    ? `Too large for a page: switchyard job ${job.id} --fetch`
                    : 'Save as a file'
                }
                aria-label={`Save ${path}`}
                isDisabled={keptAt === null || size > FETCHED_BYTES_MAX || fetching !== null}
                onPress={() => save(path, task)}
              />
            ),
          },
        ]}
      />
    </Card>
  );
}
