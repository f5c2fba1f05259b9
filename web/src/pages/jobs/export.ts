/** The jobs of a filter as a CSV file, page after page. */
import { ask } from '../../api/client';
import { type JobFilter, type JobOrder, JobsPageDocument } from '../../parts/job-rows.gql';
import { csvLine } from '../../ui/csv';
import { download } from '../../ui/download';
import type { JobColumn } from './columns';
import type { Row } from './job-list';

const EXPORT_PAGE = 1_000;
export const EXPORT_MAX = 100_000;

export async function exportJobs(
  filter: JobFilter,
  orderBy: JobOrder,
  columns: readonly JobColumn[],
  signal: AbortSignal,
  onProgress: (rows: number) => void,
): Promise<number> {
  const parts: string[] = [csvLine(columns.map(({ header }) => header))];
  let rows = 0;
  let after: string | null = null;
  do {
    const page: { jobs: { nodes: Row[]; pageInfo: { hasNextPage: boolean; endCursor: string | null } } } =
      await ask(JobsPageDocument, { filter, orderBy, first: EXPORT_PAGE, after }, signal);
    for (const row of page.jobs.nodes) parts.push(csvLine(columns.map(({ plain }) => plain(row))));
    rows += page.jobs.nodes.length;
    onProgress(rows);
    after = page.jobs.pageInfo.hasNextPage ? page.jobs.pageInfo.endCursor : null;
  } while (after !== null && rows < EXPORT_MAX);
  download(new Blob(parts, { type: 'text/csv;charset=utf-8' }), 'jobs.csv');
  return rows;
}
