/** How the benchmarks measure: several rounds, ours and the baseline in turn, medians, so that a noisy machine hurts both. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** One line of the report, and one object of `--json`. */
export interface Result {
  name: string;
  /** Median over the rounds. */
  value: number;
  unit: 'jobs/s' | 's' | 'frames/s' | 'MB' | 'calls';
  /** Median of the baseline, same unit, same run. */
  baseline: number;
  /** value / baseline. */
  ratio: number;
  aim: Aim;
}

/** From DESIGN.md: of the value, in its unit, or of the ratio; null: none is set. */
export type Aim = { value: number } | { ratio: number } | null;

/** What the table says beside the numbers. */
export interface Measured extends Result {
  /** What was measured, and against what. */
  what: string;
  /** Smallest and largest value of the rounds. */
  spread: [number, number];
  /** Parts of the value or further comparisons, in words. */
  note?: string;
}

export interface Bench {
  names: readonly string[];
  run(only: (name: string) => boolean): Promise<Measured[]>;
}

/** A size, or the smallest at which the benchmark runs at all (`--smallest`). */
export const sized = (size: number, smallest: number): number =>
  process.env.BENCH_SMALLEST ? smallest : size;

export const seconds = async (work: () => unknown): Promise<number> => {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) / 1e9;
};

/** Of all threads of the process: what the collector does counts, and other work on the machine does not. */
export async function cpuSeconds(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

export const spreadOf = (values: readonly number[]): [number, number] => [
  Math.min(...values),
  Math.max(...values),
];

const MEGABYTE = 1024 * 1024;

/** Megabytes of what is made, while it is kept. */
export async function megabytesOf(make: () => unknown): Promise<number> {
  setFlagsFromString('--expose-gc');
  const collectGarbage: () => void = runInNewContext('gc');
  const living = (): number => {
    collectGarbage();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return (heapUsed + arrayBuffers) / MEGABYTE;
  };
  const before = living();
  const kept = [await make()];
  const after = living();
  // Until here it had to live.
  kept.length = 0;
  return after - before;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

/** Runs ours and the baseline in turn and folds the rounds into a result. Both give a value in `unit`. */
export async function sideBySide(
  about: Pick<Measured, 'name' | 'unit' | 'aim' | 'what' | 'note'>,
  rounds: number,
  ours: (round: number) => Promise<number> | number,
  baseline: (round: number) => Promise<number> | number,
): Promise<Measured> {
  const values: number[] = [];
  const baselines: number[] = [];
  for (let round = 0; round < sized(rounds, 1); round++) {
    baselines.push(await baseline(round));
    values.push(await ours(round));
  }
  const value = median(values);
  const base = median(baselines);
  return {
    ...about,
    value,
    baseline: base,
    ratio: value / base,
    spread: spreadOf(values),
  };
}

const figure = (value: number): string =>
  value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(2) : value.toPrecision(3);

export const isRate = ({ unit }: Pick<Result, 'unit'>): boolean => unit.endsWith('/s');

/** Whether the aim is met: rates from above, times and sizes from below. */
function aimOf(result: Result): string {
  const { aim } = result;
  if (aim === null) return '–';
  const [bound, reached, unit] =
    'ratio' in aim ? [aim.ratio, result.ratio, '× the baseline'] : [aim.value, result.value, result.unit];
  const met = isRate(result) ? reached >= bound : reached <= bound;
  return `${isRate(result) ? '≥' : '≤'} ${figure(bound)} ${unit} (${met ? 'met' : 'missed'})`;
}

export const HEAD = [
  '| name | what, against what | value | range | baseline | value / baseline | aim |',
  '|---|---|---|---|---|---|---|',
].join('\n');

export function rowOf(result: Measured): string {
  const { name, what, value, unit, spread, baseline, ratio } = result;
  const range = `${figure(spread[0])}–${figure(spread[1])} ${unit}`;
  return `| \`${name}\` | ${what} | ${figure(value)} ${unit} | ${range} | ${figure(baseline)} ${unit} | ${figure(ratio)} | ${aimOf(result)} |`;
}

export const notesOf = (results: readonly Measured[]): string =>
  results
    .filter((result) => result.note)
    .map((result) => `\n* \`${result.name}\`: ${result.note}`)
    .join('');
