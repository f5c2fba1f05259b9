/** `--write`: the last results of each benchmark, in docs/performance.json, and the table that docs/performance.md makes of them. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { HEAD, type Measured, notesOf, rowOf } from './measure.js';

const ROOT = new URL('../../', import.meta.url);
const PAGE = new URL('docs/performance.md', ROOT);
const FILE = new URL('docs/performance.json', ROOT);
const KEPT = 10;

interface KeptResult extends Pick<Measured, 'value' | 'baseline' | 'spread'> {
  commit: string;
  day: string;
  machine: string;
  /** Of the minute before it; null: not noted. */
  load: number | null;
}

/** By name of the benchmark; the latest result comes last. */
type Kept = Record<string, Pick<Measured, 'what' | 'unit' | 'aim' | 'note'> & { results: KeptResult[] }>;

/** Where a benchmark runs, when it begins: its own load is none of the machine's. */
export function circumstances(): Pick<KeptResult, 'commit' | 'day' | 'machine' | 'load'> {
  const commit = execFileSync('git', ['rev-parse', '--short=8', 'HEAD'], {
    cwd: fileURLToPath(ROOT),
    encoding: 'utf8',
  }).trim();
  const machine = `${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}, Node ${process.versions.node}`;
  const load = Math.round((loadavg()[0] as number) * 10) / 10;
  return { commit, day: new Date().toISOString().slice(0, 10), machine, load };
}

export function keep(results: readonly Measured[], at: ReturnType<typeof circumstances>): void {
  const kept = JSON.parse(readFileSync(FILE, 'utf8')) as Kept;
  for (const { name, what, unit, aim, note, value, baseline, spread } of results) {
    const before = kept[name]?.results ?? [];
    const all = [...before, { ...at, value, baseline, spread }].slice(-KEPT);
    kept[name] = { what, unit, aim, ...(note && { note }), results: all };
  }
  writeFileSync(FILE, `${JSON.stringify(kept, null, 1)}\n`);
  const marked = /(<!-- bench -->\n)[\s\S]*?(<!-- \/bench -->)/;
  const page = readFileSync(PAGE, 'utf8');
  writeFileSync(
    PAGE,
    page.replace(marked, (_, start, end) => `${start}${tableOf(kept)}${end}`),
  );
}

function tableOf(kept: Kept): string {
  const rows: string[] = [];
  const latest: Measured[] = [];
  for (const [name, { results, ...about }] of Object.entries(kept)) {
    const last = results.at(-1) as KeptResult;
    const { value, baseline, spread, commit, day, machine, load } = last;
    const result = { name, ...about, value, baseline, spread, ratio: value / baseline };
    latest.push(result);
    const there = results.filter((one) => one.machine === machine);
    const line = there.length > 1 ? lineOf(there.map((one) => one.value / one.baseline)) : '';
    const measured = `${commit}, ${day}, load ${load ?? 'not noted'}; ${machine}`;
    rows.push(`${rowOf(result)} ${measured} | ${line} |`);
  }
  const [names, rule] = HEAD.split('\n');
  const head = `${names} measured at | value / baseline, the last ${KEPT} there |\n${rule}---|---|`;
  return `${[head, ...rows].join('\n')}\n${notesOf(latest)}\n`;
}

const HEIGHTS = '▁▂▃▄▅▆▇█';

/** From 0 at the bottom to the largest at the top. */
function lineOf(values: readonly number[]): string {
  const most = Math.max(...values);
  return values.map((value) => HEIGHTS[Math.round((value / most) * (HEIGHTS.length - 1))]).join('');
}
