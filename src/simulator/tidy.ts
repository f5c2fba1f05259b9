/** One table of all runs, a row for each run and measure, as data frames like it. */
import { writeFileSync } from 'node:fs';
import { csvCell } from '../words/index.js';
import type { Simulated } from './simulate.js';

/** A run, with what was varied of it. */
export interface TidyRun {
  policy: string;
  varied: Readonly<Record<string, string>>;
  simulated: Simulated;
}

const PLAIN = ['jobs', 'utilization', 'makespan', 'throughputPerHour', 'meanQueued'] as const;
const COUNTS = ['killed', 'lost', 'waiting', 'cancelled'] as const;
const SPREAD = ['wait', 'turnaround', 'slowdown', 'boundedSlowdown', 'perProcessorSlowdown'] as const;

/** The measures of a run by name: `wait.mean`, `boundedSlowdown.p95`, `utilization`. */
export function measuresOf(run: Simulated): [metric: string, value: number][] {
  const of = (name: (typeof SPREAD)[number]): [string, number][] =>
    (['mean', 'median', 'p95', 'max'] as const).map((part) => [`${name}.${part}`, run[name][part]]);
  return [
    ...[...PLAIN, ...COUNTS].map((name): [string, number] => [name, run[name]]),
    ...SPREAD.flatMap(of),
    ['areaWeighted.wait', run.areaWeighted.wait],
    ['areaWeighted.turnaround', run.areaWeighted.turnaround],
  ];
}

interface Column {
  name: string;
  type: 'STRING' | 'DOUBLE';
  data: (string | number)[];
}

/** What is varied is a number where all its values are. */
function columnsOf(runs: readonly TidyRun[]): Column[] {
  const fields = Object.keys(runs[0]?.varied ?? {});
  const rows = runs.flatMap((run) =>
    measuresOf(run.simulated).map(([metric, value]) => ({ run, metric, value })),
  );
  const varied = fields.map((name): Column => {
    const data = rows.map(({ run }) => run.varied[name] as string);
    const numbers = data.every((one) => one.trim() !== '' && Number.isFinite(Number(one)));
    return numbers ? { name, type: 'DOUBLE', data: data.map(Number) } : { name, type: 'STRING', data };
  });
  return [
    { name: 'trace', type: 'STRING', data: rows.map(({ run }) => run.simulated.trace) },
    { name: 'policy', type: 'STRING', data: rows.map(({ run }) => run.policy) },
    ...varied,
    { name: 'seed', type: 'DOUBLE', data: rows.map(({ run }) => run.simulated.seed) },
    { name: 'metric', type: 'STRING', data: rows.map(({ metric }) => metric) },
    { name: 'value', type: 'DOUBLE', data: rows.map(({ value }) => value) },
  ];
}

/** Endings of files that `writeTidy` writes. */
export const TIDY_FORMATS = ['.csv', '.parquet'] as const;

/** Writes the table in the format that the ending of the path names. */
export async function writeTidy(path: string, runs: readonly TidyRun[]): Promise<void> {
  const columns = columnsOf(runs);
  if (path.endsWith('.parquet')) {
    // Only who wants such a file waits for what writes it.
    const { parquetWriteBuffer } = await import('hyparquet-writer');
    return writeFileSync(path, Buffer.from(parquetWriteBuffer({ columnData: columns })));
  }
  const count = columns[0]?.data.length ?? 0;
  const line = (cells: readonly (string | number)[]): string =>
    `${cells.map((cell) => csvCell(String(cell))).join(',')}\n`;
  const lines = Array.from({ length: count }, (_, i) =>
    line(columns.map(({ data }) => data[i] as string | number)),
  );
  writeFileSync(path, line(columns.map(({ name }) => name)) + lines.join(''));
}
