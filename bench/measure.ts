/** How the benchmarks measure: several rounds, ours and the baseline in turn, medians, so that a noisy machine hurts both. */

/** One line of the report, and one object of `--json`. */
export interface Result {
  name: string;
  /** Median over the rounds. */
  value: number;
  unit: 'jobs/s' | 's' | 'frames/s' | 'MB';
  /** Median of the baseline, same unit, same run. */
  baseline: number;
  /** value / baseline. */
  ratio: number;
  /** From DESIGN.md, same unit; null: none is set. */
  aim: number | null;
}

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

export const seconds = async (work: () => unknown): Promise<number> => {
  const start = process.hrtime.bigint();
  await work();
  return Number(process.hrtime.bigint() - start) / 1e9;
};

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
  for (let round = 0; round < rounds; round++) {
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
    spread: [Math.min(...values), Math.max(...values)],
  };
}

const figure = (value: number): string =>
  value >= 100 ? value.toFixed(0) : value >= 1 ? value.toFixed(2) : value.toPrecision(3);

/** Whether the aim is met: rates from above, times from below. */
export const met = (result: Result): boolean | null =>
  result.aim === null ? null : isRate(result) ? result.value >= result.aim : result.value <= result.aim;

const isRate = ({ unit }: Result): boolean => unit.endsWith('/s');

export function table(results: readonly Measured[]): string {
  const rows = results.map((result) => {
    const verdict = met(result);
    const aim =
      result.aim === null
        ? '–'
        : `${isRate(result) ? '≥' : '≤'} ${figure(result.aim)} ${verdict ? '(met)' : '(missed)'}`;
    const range = `${figure(result.spread[0])}–${figure(result.spread[1])}`;
    return `| \`${result.name}\` | ${result.what} | ${figure(result.value)} ${result.unit} | ${range} | ${figure(result.baseline)} ${result.unit} | ${figure(result.ratio)} | ${aim} |`;
  });
  const notes = results
    .filter((result) => result.note)
    .map((result) => `* \`${result.name}\`: ${result.note}`);
  return [
    '| name | what, against what | value | range | baseline | ratio | aim |',
    '|---|---|---|---|---|---|---|',
    ...rows,
    ...(notes.length ? ['', ...notes] : []),
  ].join('\n');
}
