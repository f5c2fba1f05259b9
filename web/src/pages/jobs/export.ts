/** The jobs of a filter as a CSV file, page after page. */
import { ask } from '../../api/client';
import type { JobColumn } from './columns';
import type { Row } from './job-list';
import { type JobFilter, type JobOrder, JobsPageDocument } from './row.gql';

const EXPORT_PAGE = 1_000;
export const EXPORT_MAX = 100_000;

/** A field of RFC 4180. What a spreadsheet would take for a formula is kept from being one. */
function field(value: string | number | null): string {
  const text = value === null ? '' : String(value);
  const safe = typeof value === 'string' && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export const csvLine = (values: readonly (string | number | null)[]): string =>
  `${values.map(field).join(',')}\r\n`;

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

export function download(content: Blob, name: string): void {
  const url = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
