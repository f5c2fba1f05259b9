/** The published pages are what the reports make of the published numbers, and the plots show these. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { DianaResult } from '../../experiments/diana.js';
import { dianaReport } from '../../experiments/diana-report.js';
import type { StudyRow } from '../../experiments/diana-study.js';
import { type Cell as GridTreeCell, gridTreeReport } from '../../experiments/grid-tree.js';
import { gridTreeLiveReport, type LiveResult } from '../../experiments/grid-tree-live.js';
import type { JobRatioResult } from '../../experiments/job-ratio.js';
import { jobRatioReport } from '../../experiments/job-ratio-report.js';
import { type QueueRow, queuesReport } from '../../experiments/queues.js';
import { type Report, writeReport } from '../../experiments/report.js';
import { type SantosoRow, santosoReport } from '../../experiments/santoso.js';
import {
  type AgingCell,
  type Cell,
  SITES,
  twoLevelReport,
  type UnitCell,
} from '../../experiments/two-level.js';
import { type ScavengersRow, type WindowsRow, windowsReport } from '../../experiments/windows.js';
import { packagePath } from '../../src/platform/paths.js';
import { box, marks } from '../plots/svg.js';

const published = (file: string): string => readFileSync(packagePath(`docs/experiments/${file}`), 'utf8');

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'experiments-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

/** Writes the report, compares it with what is published, and reads its plots. */
async function plotsOf(report: Report): Promise<Map<string, string>> {
  await writeReport(folder, report);
  const read = (file: string): string => readFileSync(join(folder, file), 'utf8');
  expect(read(`${report.name}.md`)).toBe(published(`${report.name}.md`));
  expect(JSON.parse(read(`${report.name}.json`))).toEqual(JSON.parse(published(`${report.name}.json`)));
  const linked = [...report.text.matchAll(/!\[.*\]\((.*)\.svg\)/g)].map(([, name]) => name as string);
  expect(linked).toEqual((report.plots ?? []).map(({ name }) => name));
  for (const name of linked) expect(read(`${name}.svg`) === published(`${name}.svg`), name).toBe(true);
  return new Map(linked.map((name) => [name, read(`${name}.svg`)]));
}

it('santoso: a mark and an error for every cell of the two highest loads, ours and theirs', async () => {
  const { seed, rows, runs } = JSON.parse(published('santoso.json')) as {
    seed: number;
    rows: SantosoRow[];
    runs: number;
  };
  const svg = (await plotsOf(santosoReport(seed, rows, runs))).get('santoso') as string;
  expect(marks(svg, 'symbol')).toHaveLength(2 * 2 * rows.length);
  expect(marks(svg, 'rule')).toHaveLength(2 * 2 * rows.length);
});

it('queues: columns in proportion to theory and to what was simulated', async () => {
  const { seed, rows } = JSON.parse(published('queues.json')) as { seed: number; rows: QueueRow[] };
  const svg = (await plotsOf(queuesReport(seed, rows))).get('queues') as string;
  const heights = marks(svg, 'rect').map((rect) => box(rect).height);
  const values = [...rows.map(({ theory }) => theory), ...rows.map(({ mean }) => mean)];
  expect(heights).toHaveLength(6);
  values.forEach((value, i) => {
    expect((heights[i] as number) / (heights[0] as number)).toBeCloseTo(value / (values[0] as number), 6);
  });
});

it('two-level: shares by rate in a panel a mode, the other figures as columns by site', async () => {
  const { seed, cells, agings, units } = JSON.parse(published('two-level.json')) as {
    seed: number;
    cells: Cell[];
    agings: AgingCell[];
    units: UnitCell[];
  };
  const plots = await plotsOf(twoLevelReport(seed, cells, agings, units));
  const share = plots.get('two-level-share') as string;
  expect(marks(share, 'line')).toHaveLength(3 * SITES.length);
  expect(marks(share, 'symbol')).toHaveLength(cells.length * SITES.length);
  const heights = marks(plots.get('two-level-missed') as string, 'rect').map((rect) => box(rect).height);
  const missed = cells
    .filter(({ interArrival }) => interArrival === 5)
    .flatMap(({ runs }) =>
      SITES.map((_, i) => runs.reduce((sum, run) => sum + (run.missed[i] as number), 0)),
    );
  expect(heights).toHaveLength(missed.length);
  missed.forEach((value, i) => {
    expect((heights[i] as number) / (heights[0] as number)).toBeCloseTo(value / (missed[0] as number), 6);
  });
});

it('grid-tree: as published', async () => {
  const { seed, runs, cells } = JSON.parse(published('grid-tree.json')) as {
    seed: number;
    runs: number;
    cells: GridTreeCell[];
  };
  expect((await plotsOf(gridTreeReport(seed, cells, runs))).size).toBe(4);
});

it('grid-tree-live: as published', async () => {
  const result = JSON.parse(published('grid-tree-live.json')) as LiveResult;
  expect((await plotsOf(gridTreeLiveReport(result))).size).toBe(0);
});

it('diana and job-ratio: as published', async () => {
  const { study, ...diana } = JSON.parse(published('diana.json')) as DianaResult & { study: StudyRow[] };
  expect((await plotsOf(dianaReport(diana, study))).size).toBe(5);
  const jobRatio = JSON.parse(published('job-ratio.json')) as JobRatioResult;
  expect((await plotsOf(jobRatioReport(jobRatio))).size).toBe(2);
});

it('windows: as published', async () => {
  const { rows, stopping } = JSON.parse(published('windows.json')) as {
    rows: WindowsRow[];
    stopping: ScavengersRow[];
  };
  await plotsOf(windowsReport(rows, stopping));
  const all = [...rows, ...stopping];
  expect(all.map(({ crossed }) => crossed)).toEqual(all.map(() => 0));
});
