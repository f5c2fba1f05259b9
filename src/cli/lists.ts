/** Lists: their columns described once, printed as a table, as CSV or as JSON, chosen, sorted, and again and again if asked for. */
import type { Command } from 'commander';
import { meant } from '../words/nearest.js';
import { parseDuration } from '../words/values.js';
import { interruption, note, print, printJson, wantsJson } from './command.js';
import { usage } from './errors.js';
import { csv, table } from './format.js';

/** What is shown of a row under each heading, in order. */
export type Columns<T> = Readonly<Record<string, (row: T) => unknown>>;

interface ListOptions {
  columns?: string;
  sort?: string;
  csv?: boolean;
  watch?: string | true;
}

const WATCH_S = 5;

/** `AGENT SEEN (UTC)` is asked for as `agent-seen`. */
const nameOf = (heading: string): string =>
  heading
    .replace(/ \(.*\)$/, '')
    .toLowerCase()
    .replaceAll(' ', '-');

/** Adds how a list may be asked for. */
export function addListOptions<T>(command: Command, columns: Columns<T>): Command {
  const names = Object.keys(columns).map(nameOf).join(', ');
  return command
    .option('--columns <names>', `which columns, in this order, separated by commas: ${names}`)
    .option('--sort <column>', 'sort by this column; -COLUMN: descending')
    .option('--csv', 'print comma-separated values')
    .option('-w, --watch [duration]', `refresh at this interval, until Ctrl-C (default: ${WATCH_S}s)`);
}

/** Rows as a table with all columns. */
export const tableOf = <T>(columns: Columns<T>, rows: readonly T[]): string =>
  table(Object.keys(columns), cellsOf(Object.values(columns), rows));

const cellsOf = <T>(columns: readonly ((row: T) => unknown)[], rows: readonly T[]): unknown[][] =>
  rows.map((row) => columns.map((value) => value(row)));

/**
 * Prints what `ask` answers as the command's options say; with `--watch` until Ctrl-C.
 *
 * @param after what to say beside the list, such as where its next page begins; gets the rows
 */
export async function showList<T>(
  command: Command,
  columns: Columns<T>,
  ask: () => Promise<readonly T[]>,
  after: (rows: readonly T[]) => void = () => {},
): Promise<void> {
  const options = command.opts<ListOptions>();
  const chosen = options.columns?.split(',').map((name) => found('--columns', columns, name));
  const headings = chosen ?? Object.keys(columns);
  const values = headings.map((heading) => columns[heading] as (row: T) => unknown);
  const everyS =
    options.watch === undefined
      ? null
      : options.watch === true
        ? WATCH_S
        : parseDuration('--watch', options.watch);
  const once = async (): Promise<void> => {
    const rows = sorted(columns, await ask(), options.sort);
    if (everyS !== null && process.stdout.isTTY) process.stdout.write('\x1b[H\x1b[2J');
    if (wantsJson(command)) printJson(rows);
    else if (options.csv) print(csv(headings.map(nameOf), cellsOf(values, rows)));
    else print(table(headings, cellsOf(values, rows), process.stdout.columns));
    after(rows);
  };
  await once();
  if (everyS === null) return;
  const stop = interruption();
  while (!(await passed(everyS, stop))) {
    if (!process.stdout.isTTY) note(new Date().toISOString());
    await once();
  }
}

/** Waits; true: was told to stop. */
const passed = (seconds: number, stop: AbortSignal): Promise<boolean> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => resolve(stop.aborted), seconds * 1000);
    stop.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve(true);
    });
  });

function found<T>(option: string, columns: Columns<T>, name: string): string {
  const headings = Object.keys(columns);
  const heading = headings.find((each) => nameOf(each) === name.trim().toLowerCase());
  if (heading === undefined) {
    const names = headings.map(nameOf);
    throw usage(option, name, `${names.join(', ')}${meant(name, names)}`);
  }
  return heading;
}

/** Numbers by their value, texts as people sort them; what there is not comes last. */
function sorted<T>(columns: Columns<T>, rows: readonly T[], by: string | undefined): readonly T[] {
  if (by === undefined) return rows;
  const descending = by.startsWith('-');
  const heading = found('--sort', columns, descending ? by.slice(1) : by);
  const value = columns[heading] as (row: T) => unknown;
  const order = (a: unknown, b: unknown): number =>
    typeof a === 'number' && typeof b === 'number'
      ? a - b
      : String(a).localeCompare(String(b), 'en', { numeric: true });
  return [...rows].sort((first, second) => {
    const [a, b] = [value(first) ?? null, value(second) ?? null];
    if (a === null || b === null) return (a === null ? 1 : 0) - (b === null ? 1 : 0);
    return descending ? order(b, a) : order(a, b);
  });
}
