/** The pictures of one simulation or of several side by side, and the files that they are written to. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TopLevelSpec } from 'vega-lite';
import type { Gantt, PlotRecord, Usage } from '../simulator/record.js';
import { type Axis, type Chart, chartSvg, PALETTE, type Point, specificationSvg } from './chart.js';

export const PLOT_FORMATS = ['svg', 'html'] as const;
export type PlotFormat = (typeof PLOT_FORMATS)[number];

/** A simulation to draw. */
export interface Drawn {
  /** What the legend says: the policy. Different for each. */
  label: string;
  record: PlotRecord;
}

export interface Picture {
  /** Of the file, without its ending. */
  name: string;
  svg: string;
}

/**
 * Draws distribution of waits, utilization, queue (jobs, CPUs), with a line or a panel for each simulation, and a Gantt
 * chart for each. `subject`: what was simulated.
 */
export async function pictures(subject: string, drawn: readonly Drawn[]): Promise<Picture[]> {
  const charts: (Chart & { name: string })[] = [
    { name: 'wait', ...waitChart(subject, drawn) },
    {
      name: 'utilization',
      ...usageChart(subject, drawn, 'Utilization of the processors', (bin) => bin.utilizationPercent, {
        title: 'in use (%)',
        from: 0,
        to: 100,
      }),
    },
    {
      name: 'queued-jobs',
      ...usageChart(subject, drawn, 'Waiting jobs', (bin) => bin.queuedJobs, { title: 'jobs waiting' }),
    },
    {
      name: 'queued-cpus',
      ...usageChart(subject, drawn, 'CPUs that waiting jobs ask for', (bin) => bin.queuedCpus, {
        title: 'CPUs asked for',
      }),
    },
  ];
  const all: Picture[] = [];
  for (const { name, ...chart } of charts) all.push({ name, svg: await chartSvg(chart) });
  const lastS = Math.max(...drawn.map(({ record: { gantt } }) => (gantt.leftOut === 0 ? gantt.toS : 0)));
  for (const { label, record } of drawn) {
    // One that is whole has time to the end of the others, so that they can be compared.
    const gantt = record.gantt.leftOut === 0 ? { ...record.gantt, toS: lastS } : record.gantt;
    const title = drawn.length > 1 ? `Who runs where: ${label}` : 'Who runs where';
    all.push({
      name: drawn.length > 1 ? `gantt-${label}` : 'gantt',
      svg: await specificationSvg(ganttSpecification(title, subject, gantt)),
    });
  }
  return all;
}

/** Writes a file for each picture, or one page with all, into a folder that is made. Throws what writing throws. */
export function writePlots(
  folder: string,
  format: PlotFormat,
  subject: string,
  all: readonly Picture[],
): void {
  mkdirSync(folder, { recursive: true });
  const files =
    format === 'svg'
      ? all.map(({ name, svg }) => ({ path: join(folder, `${name}.svg`), text: svg }))
      : [{ path: join(folder, 'plots.html'), text: page(subject, all) }];
  for (const { path, text } of files) writeFileSync(path, text);
}

/** The pictures are in the page itself, so it needs no other file and no network. */
function page(subject: string, all: readonly Picture[]): string {
  const heading = subject.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return [
    '<!doctype html>',
    '<html lang="en">',
    `<head><meta charset="utf-8"><title>${heading}</title>`,
    '<style>body{font-family:Helvetica,Arial,sans-serif;margin:2em}h1{font-size:1.4em}svg{max-width:100%;height:auto;margin-bottom:2em}</style></head>',
    `<body><h1>${heading}</h1>`,
    ...all.map(({ svg }) => `<div>${svg.trimEnd()}</div>`),
    '</body></html>',
    '',
  ].join('\n');
}

const MINUTE_S = 60;
const HOUR_S = 3600;
const DAY_S = 86_400;

export const WAIT_TICKS = [
  { at: 1, label: '1 s' },
  { at: 10, label: '10 s' },
  { at: MINUTE_S, label: '1 min' },
  { at: 10 * MINUTE_S, label: '10 min' },
  { at: HOUR_S, label: '1 h' },
  { at: 10 * HOUR_S, label: '10 h' },
  { at: DAY_S, label: '1 d' },
  { at: 10 * DAY_S, label: '10 d' },
  { at: 100 * DAY_S, label: '100 d' },
  { at: 1000 * DAY_S, label: '1000 d' },
];

/** Waits of seconds and of days in one picture need a logarithmic axis; what waits less than a second is at its beginning. */
function waitChart(subject: string, drawn: readonly Drawn[]): Chart {
  const longest = Math.max(10, ...drawn.map(({ record }) => record.waits.at(-1)?.waitS ?? 0));
  return {
    title: 'Wait of the jobs that ended',
    subtitle: [subject],
    kind: 'step',
    x: {
      title: 'wait (logarithmic; less than 1 s is at the left end)',
      scale: 'log',
      from: 1,
      to: longest,
      ticks: WAIT_TICKS,
    },
    y: { title: 'jobs that waited at most this long (%)', from: 0, to: 100 },
    series: drawn.map(({ label, record: { waits } }) => {
      const later = waits.filter(({ waitS }) => waitS > 1);
      const atOnce = waits.findLast(({ waitS }) => waitS <= 1)?.percent ?? 0;
      const points = later.map(({ waitS, percent }) => ({ x: waitS, y: percent }));
      return {
        name: label,
        points: waits.length === 0 ? [] : [{ x: 1, y: atOnce }, ...points, { x: longest, y: 100 }],
      };
    }),
    width: 720,
  };
}

/** Lines that jump often cannot be told apart on top of each other: each simulation has a panel of its own. */
function usageChart(
  subject: string,
  drawn: readonly Drawn[],
  title: string,
  of: (bin: Usage['bins'][number]) => number,
  y: Axis,
): Chart {
  const fromS = Math.min(...drawn.map(({ record }) => record.usage.fromS));
  const toS = Math.max(...drawn.map(({ record }) => record.usage.toS));
  const unit = unitOf(fromS, toS);
  const ends = toS > fromS ? { from: fromS / unit.seconds, to: toS / unit.seconds } : {};
  const widths = [...new Set(drawn.map(({ record }) => record.usage.binS))].map(inWords);
  return {
    title,
    subtitle: [subject, `Means over ${widths.join(' or ')}.`],
    kind: 'step',
    x: { title: `time of the trace (${unit.name})`, ...ends },
    y,
    series: drawn.map(({ label, record: { usage } }) => ({
      name: label,
      panel: label,
      points: steps(usage, of).map(({ x, y }) => ({ x: x / unit.seconds, y })),
    })),
    width: 900,
    height: drawn.length > 1 ? 150 : 260,
    columns: 1,
  };
}

function steps(
  { fromS, toS, binS, bins }: Usage,
  of: (bin: Usage['bins'][number]) => number,
): (Point & { x: number })[] {
  const points = bins.map((bin, i) => ({ x: fromS + i * binS, y: of(bin) }));
  const last = points.at(-1);
  return last === undefined ? [] : [...points, { x: toS, y: last.y }];
}

const UNITS = [
  { name: 's', seconds: 1 },
  { name: 'min', seconds: MINUTE_S },
  { name: 'h', seconds: HOUR_S },
  { name: 'd', seconds: DAY_S },
] as const;

/** The largest unit of which a span has several. */
const unitOf = (fromS: number, toS: number): (typeof UNITS)[number] =>
  UNITS.findLast(({ seconds }) => toS - fromS >= 4 * seconds) ?? UNITS[0];

/** `90 s`, `2 h`, `14 d`: in the largest unit of which it is a whole number. */
function inWords(seconds: number): string {
  const unit = UNITS.findLast((one) => seconds >= one.seconds && seconds % one.seconds === 0) ?? UNITS[0];
  return `${Number((seconds / unit.seconds).toFixed(1))} ${unit.name}`;
}

const GANTT_WIDTH = 900;
/** Up to so many processors, idle ones are shown too: more would be lower than a pixel. */
const MAX_WITH_IDLE = 480;
const MAX_HEIGHT = 960;
const ROW_HEIGHT = 16;
/** Lower than this, a rectangle or a site has no room for a line of text. */
const TEXT_HEIGHT = 10;
/** Lower than this, nothing would be left of a rectangle with a border. */
const BORDER_HEIGHT = 3;
/** Pixels of a figure of a job's number. */
const FIGURE_WIDTH = 7;
/** Black rectangles would hide their labels. */
const BAR_COLORS = PALETTE.filter((color) => color !== '#000000');

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one document of vega-lite
function ganttSpecification(title: string, subject: string, gantt: Gantt): TopLevelSpec {
  const { fromS, toS, bars, leftOut } = gantt;
  const unit = unitOf(fromS, toS);
  const { sites, rows, cut } = ganttRows(gantt);
  const height =
    rows <= MAX_WITH_IDLE
      ? Math.min(MAX_WITH_IDLE, Math.max(120, ROW_HEIGHT * rows))
      : Math.min(MAX_HEIGHT, rows);
  const rowHeight = height / rows;
  const rectangles = bars.map(({ site, job, first, last, startS, endS }) => {
    const width = ((endS - startS) * GANTT_WIDTH) / (toS - fromS);
    const row = (sites[site] as Rows).row + first;
    const count = last + 1 - first;
    const text = count * rowHeight >= TEXT_HEIGHT && width >= FIGURE_WIDTH * String(job).length;
    return {
      x: startS / unit.seconds,
      x2: endS / unit.seconds,
      y: row,
      y2: row + count,
      color: BAR_COLORS[job % BAR_COLORS.length],
      label: text ? String(job) : '',
    };
  });
  const named = sites.filter(({ rows }) => rows * rowHeight >= TEXT_HEIGHT);
  const y = { field: 'y', type: 'quantitative' };
  const text = { type: 'text', fontSize: 10, baseline: 'middle' };
  const siteLayers = [
    {
      data: { values: named.flatMap(({ row, rows }) => [{ y: row }, { y: row + rows }]) },
      mark: { type: 'rule', color: '#999999', strokeWidth: 0.5 },
      encoding: { y },
    },
    {
      data: { values: named.map(({ name, row, rows }) => ({ y: row + rows / 2, label: name })) },
      mark: { ...text, align: 'left' },
      encoding: { x: { value: GANTT_WIDTH + 6 }, y, text: { field: 'label' } },
    },
  ];
  const several = sites.length > 1;
  return {
    title: {
      text: title,
      subtitle: [
        subject,
        `A rectangle is a job on its processors, from second ${Math.round(fromS)} to ${Math.round(toS)} of the trace. Colors only tell neighbors apart.`,
        ...(cut ? ['Of each site, processors above the highest that a job has here are not shown.'] : []),
        ...(bars.length === 0 ? ['No job ran in this window.'] : []),
        ...(leftOut > 0
          ? [`Cut after ${bars.length} rectangles: ${leftOut} jobs more ran in the requested window.`]
          : []),
      ],
    },
    width: GANTT_WIDTH,
    height,
    layer: [
      {
        data: { values: rectangles },
        mark: {
          type: 'rect',
          opacity: 0.75,
          ...(rowHeight >= BORDER_HEIGHT ? { stroke: '#ffffff', strokeWidth: 0.4 } : {}),
        },
        encoding: {
          x: {
            field: 'x',
            type: 'quantitative',
            title: `time of the trace (${unit.name})`,
            scale: { domain: [fromS / unit.seconds, toS / unit.seconds], nice: false, zero: false },
          },
          x2: { field: 'x2' },
          y: {
            ...y,
            title: several ? 'processors, site by site' : 'processor',
            scale: { domain: [0, rows], nice: false },
            axis: { tickMinStep: 1, format: 'd', grid: false, labels: !several, ticks: !several },
          },
          y2: { field: 'y2' },
          color: { field: 'color', type: 'nominal', scale: null, legend: null },
        },
      },
      {
        data: {
          values: rectangles
            .filter(({ label }) => label !== '')
            .map(({ x, x2, y, y2, label }) => ({ x: (x + x2) / 2, y: (y + y2) / 2, label })),
        },
        mark: { ...text, align: 'center' },
        encoding: { x: { field: 'x', type: 'quantitative' }, y, text: { field: 'label' } },
      },
      ...(several ? siteLayers : []),
    ],
  } as TopLevelSpec;
}

/** Where a site is drawn: a row for each processor. */
interface Rows {
  name: string;
  row: number;
  rows: number;
}

/** The sites on top of each other; `cut`: without the processors above the highest in use. */
function ganttRows({ sites, bars }: Gantt): { sites: Rows[]; rows: number; cut: boolean } {
  const cut = sites.reduce((sum, { processors }) => sum + processors, 0) > MAX_WITH_IDLE;
  const used = sites.map(() => 0);
  for (const { site, last } of bars) used[site] = Math.max(used[site] as number, last + 1);
  let row = 0;
  const placed = sites.map(({ name, processors }, i) => {
    const rows = cut ? (used[i] as number) : processors;
    const before = row;
    row += rows;
    return { name, row: before, rows };
  });
  return { sites: placed, rows: Math.max(1, row), cut };
}
