/** What an experiment leaves: a page for readers and the numbers for programs. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Chart, chartSvg } from '../src/plots/chart.js';

export interface Report {
  name: string;
  /** Markdown. */
  text: string;
  /** Plain values, for JSON. */
  data: unknown;
  /** One line that says how it came out; the last that the command prints. */
  verdict: string;
  /** Pictures that the page links to, drawn when they are written. */
  plots?: readonly Plot[];
}

/** A chart in a file beside the page. */
export interface Plot {
  /** Of the file, without `.svg`: the experiment's, or that and a word more. */
  name: string;
  chart: Chart;
}

/** The command that makes a page; the number of runs only where it is not the `usual` one. */
export function commandOf(name: string, seed: number, runs: number, usual: number): string {
  return `\`switchyard experiment ${name} --seed ${seed}${runs === usual ? '' : ` --runs ${runs}`}\``;
}

/** A plot in Markdown. */
export function plotLink({ name, chart }: Plot): string {
  return `![${chart.title}](${name}.svg)`;
}

/** A Markdown table. */
export function markdownTable(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(headings), line(headings.map(() => '---')), ...rows.map(line)].join('\n');
}

export const plusMinus = ({ mean, error }: { mean: number; error: number }, digits = 0): string =>
  `${mean.toFixed(digits)} ± ${error.toFixed(digits)}`;

/** What a paper leads one to expect, and of how many comparisons it holds. */
export interface Claim {
  claim: string;
  holds: number;
  of: number;
}

export const claimsTable = (claims: readonly Claim[]): string =>
  markdownTable(
    ['expectation', 'holds'],
    claims.map(({ claim, holds, of }) => [claim, `${holds} of ${of}`]),
  );

/** The last line of a page with claims. */
export function verdictOf(claims: readonly Claim[]): string {
  const sum = (part: 'holds' | 'of'): number => claims.reduce((all, claim) => all + claim[part], 0);
  return `${sum('holds')} of ${sum('of')} expectations hold`;
}

/** Writes the page, its numbers as JSON and its plots. Makes the folder; throws what writing throws. */
export async function writeReport(folder: string, { name, text, data, plots = [] }: Report): Promise<void> {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.md`), text);
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(data, null, 2)}\n`);
  for (const plot of plots) writeFileSync(join(folder, `${plot.name}.svg`), await chartSvg(plot.chart));
}
