/**
 * Santoso, van Albada, Nazief, Sloot: hierarchical job scheduling for clusters of workstations. Their Table 2: the mean time
 * from arrival to end under 17 policies and 5 loads, reproduced with the choices in hierarchical-clusters.md.
 */
import { RandomStream } from '../../core/index.js';
import { type GlobalPolicy, Hierarchy, type HierarchyPolicy, type QueuePolicy } from '../hierarchy.js';
import { hyperExponential } from '../random.js';
import { type TimeSharedJob, TimeSharedNodes, type TimeSharedShape } from '../time-shared.js';
import { markdownTable, type Plot, plotLink, type Report } from './report.js';

const SHAPE: TimeSharedShape = { sites: 4, nodesPerSite: 4, tasksPerNode: 4, jobsPerSite: 6, section: 1 };
/** By number of tasks: how likely, and mean and standard deviation of a task's CPU time. */
const CLASSES = [
  { probability: 0.7, mean: 4, deviation: 5 },
  { probability: 0.1, mean: 4, deviation: 5 },
  { probability: 0.1, mean: 8, deviation: 10 },
  { probability: 0.1, mean: 16, deviation: 18 },
];
/** Mean times between arrivals: the columns of the table. */
export const INTER_ARRIVALS = [0.8, 0.9, 1.1, 1.3, 1.5] as const;
/** Completed jobs that are left out at the beginning, and those that are measured. */
const WARM_UP = 200;
const MEASURED = 4000;
export const RUNS = 16;

/** A row of the paper's table: mean and error for each column. */
export interface PaperRow extends HierarchyPolicy {
  paper: readonly (readonly [mean: number, error: number])[];
}

/** The paper's Table 2. Errors at 1.1, 1.3, 1.5 are given for all rows as 0.2 to 0.3, 0.2, 0.1. */
export const TABLE_2: readonly PaperRow[] = (
  [
    ['S-SJF', 'FCFS', 0, [24.3, 0.5], [18.2, 0.6], 11.6],
    ['S-SJF', 'FCFS', 4, [36.9, 1.5], [22.3, 1.3], 12.0],
    ['S-SJF', 'FCFS', 8, [46.7, 2.3], [25.0, 1.7], 12.1],
    ['S-SJF', 'SJF', 4, [26.5, 0.8], [18.8, 0.7], 11.7],
    ['S-SJF', 'SJF', 8, [26.2, 0.7], [18.7, 0.7], 11.6],
    ['S-SJF', 'FF', 4, [34.3, 1.5], [20.8, 1.1], 11.7],
    ['S-SJF', 'FF', 8, [41.2, 2.5], [22.1, 1.4], 11.8],
    ['L-SJF', 'FCFS', 0, [53.7, 5.6], [22.2, 1.6], 11.6],
    ['L-SJF', 'FCFS', 4, [89.9, 10.0], [30.1, 3.2], 12.0],
    ['L-SJF', 'FCFS', 8, [90.2, 10.5], [29.1, 2.9], 12.1],
    ['L-SJF', 'SJF', 4, [31.6, 2.2], [18.9, 0.8], 11.7],
    ['L-SJF', 'SJF', 8, [26.2, 0.7], [18.7, 0.7], 11.6],
    ['L-SJF', 'FF', 4, [71.9, 8.9], [24.4, 2.2], 11.8],
    ['L-SJF', 'FF', 8, [60.7, 6.6], [22.7, 1.8], 11.8],
    ['FCFS', 'FCFS', 0, [100.6, 12.4], [28.8, 2.8], 11.9],
    ['SJF', 'FCFS', 0, [25.0, 0.5], [18.7, 0.7], 11.7],
    ['FF', 'FCFS', 0, [87.5, 11.4], [25.1, 2.3], 11.8],
  ] satisfies [GlobalPolicy, QueuePolicy, number, [number, number], [number, number], number][]
).map(([global, local, queueMax, at08, at09, at11]) => ({
  global,
  local,
  queueMax,
  paper: [at08, at09, [at11, 0.2], [9.1, 0.2], [7.9, 0.1]],
}));

export interface Cell {
  interArrival: number;
  mean: number;
  /** Standard deviation of the runs' means over the root of their number. */
  error: number;
  paper: number;
  paperError: number;
  /** The difference in combined standard errors. */
  distance: number;
}

export interface SantosoRow extends HierarchyPolicy {
  cells: Cell[];
}

/** The whole table. `onProgress` is told how many of the runs are done. */
export function santoso(
  seed: number,
  onProgress: (done: number, all: number) => void = () => {},
  runs = RUNS,
  rows: readonly PaperRow[] = TABLE_2,
): SantosoRow[] {
  const all = rows.length * INTER_ARRIVALS.length * runs;
  let done = 0;
  return rows.map(({ paper, ...policy }) => ({
    ...policy,
    cells: INTER_ARRIVALS.map((interArrival, i) => {
      const means: number[] = [];
      for (let run = 0; run < runs; run++) {
        means.push(meanResponse(policy, interArrival, seed, run));
        onProgress(++done, all);
      }
      const [theirs, paperError] = paper[i] as readonly [number, number];
      const { mean, error } = meanAndError(means);
      const distance = Math.abs(mean - theirs) / Math.hypot(error, paperError);
      return { interArrival, mean, error, paper: theirs, paperError, distance };
    }),
  }));
}

/** Cells within two combined standard errors of the paper, of how many. */
export function matching(rows: readonly SantosoRow[]): { within: number; cells: number } {
  const cells = rows.flatMap((row) => row.cells);
  return { within: cells.filter(({ distance }) => distance <= 2).length, cells: cells.length };
}

/** Mean time from arrival to end of the 201st to 4200th job to end. */
export function meanResponse(
  policy: HierarchyPolicy,
  interArrival: number,
  seed: number,
  run: number,
): number {
  const nodes = new TimeSharedNodes(SHAPE);
  const hierarchy = new Hierarchy(nodes, SHAPE, policy);
  const jobs = new JobStream(seed, run, interArrival);
  const ended: { job: TimeSharedJob; site: number }[] = [];
  let arriving = jobs.next();
  let count = 0;
  let sum = 0;
  for (;;) {
    const node = nodes.next();
    const now = nodes.endAt(node);
    if (arriving.arrival <= now) {
      hierarchy.arrived(arriving, arriving.arrival);
      arriving = jobs.next();
      continue;
    }
    nodes.advance(node, ended);
    for (const { job, site } of ended) {
      if (++count > WARM_UP) sum += now - job.arrival;
      if (count === WARM_UP + MEASURED) return sum / MEASURED;
      hierarchy.ended(site, now);
    }
    ended.length = 0;
  }
}

/** The same jobs for every policy and load of a run; only the times between them are scaled. */
class JobStream {
  private readonly arrivals: RandomStream;
  private readonly sizes: RandomStream;
  private readonly work: RandomStream;
  private count = 0;
  private now = 0;

  constructor(
    seed: number,
    run: number,
    private readonly interArrival: number,
  ) {
    this.arrivals = new RandomStream(seed, `santoso-arrivals-${run}`);
    this.sizes = new RandomStream(seed, `santoso-tasks-${run}`);
    this.work = new RandomStream(seed, `santoso-cpu-${run}`);
  }

  next(): TimeSharedJob {
    this.now += this.arrivals.exponential(this.interArrival);
    let tasks = 1;
    for (let left = this.sizes.next(); tasks < CLASSES.length; tasks++) {
      left -= (CLASSES[tasks - 1] as (typeof CLASSES)[number]).probability;
      if (left < 0) break;
    }
    const { mean, deviation } = CLASSES[tasks - 1] as (typeof CLASSES)[number];
    return { id: this.count++, arrival: this.now, tasks, cpu: hyperExponential(this.work, mean, deviation) };
  }
}

/** Of independent runs. */
export function meanAndError(values: readonly number[]): { mean: number; error: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, error: values.length < 2 ? 0 : Math.sqrt(squares / (values.length - 1) / values.length) };
}

/** The table, ours beside theirs. */
export function santosoReport(seed: number, rows: readonly SantosoRow[], runs = RUNS): Report {
  const { within, cells } = matching(rows);
  const verdict = `${within} of ${cells} cells within two standard errors`;
  const apart = rows.flatMap((row) =>
    row.cells
      .filter(({ distance }) => distance > 2)
      .map(
        ({ interArrival, mean, error, paper, paperError, distance }) =>
          `* ${nameOf(row)} at ${interArrival}: ${mean.toFixed(1)} ± ${error.toFixed(1)}, the paper ${paper} ± ${paperError}: ` +
          `${distance.toFixed(1)} standard errors apart`,
      ),
  );
  const plot = santosoPlot(rows, runs);
  const text = [
    '# Santoso et al., Table 2: mean time from arrival to end',
    '',
    `\`switchyard experiment santoso --seed ${seed}\` made this page: ${runs} runs of ${MEASURED} measured jobs for each cell, after`,
    `${WARM_UP} that are left out; the same jobs for every policy of a run. The error is the standard deviation of the runs over`,
    "the root of their number. In parentheses the paper's value; the columns are mean times between arrivals.",
    '',
    markdownTable(
      ['global', 'local', 'Q', ...INTER_ARRIVALS.map(String)],
      rows.map((row) => [
        row.global,
        row.queueMax === 0 ? '–' : row.local,
        String(row.queueMax),
        ...row.cells.map(
          ({ mean, error, paper, paperError }) =>
            `${mean.toFixed(1)} ± ${error.toFixed(1)} (${paper.toFixed(1)} ± ${paperError.toFixed(1)})`,
        ),
      ]),
    ),
    '',
    plotLink(plot),
    '',
    'Two values agree when they differ by no more than twice the root of the sum of their squared errors. The paper gives',
    'the errors at 1.1, 1.3 and 1.5 for all rows together; the smallest are used: 0.2, 0.2 and 0.1.',
    '',
    ...(apart.length > 0 ? ['Further apart:', '', ...apart, ''] : []),
    verdict,
    '',
  ].join('\n');
  return { name: 'santoso', text, data: { seed, runs, rows, within, cells }, verdict, plots: [plot] };
}

/** The columns of the table at which the policies differ: the two highest loads. */
function santosoPlot(rows: readonly SantosoRow[], runs: number): Plot {
  const label = ({ global, local, queueMax }: HierarchyPolicy): string =>
    queueMax === 0 ? global : `${global} ${local} ${queueMax}`;
  const series = INTER_ARRIVALS.slice(0, 2).flatMap((interArrival, i) => {
    const panel = `mean time between arrivals ${interArrival}`;
    const cells = rows.map((row) => ({ x: label(row), ...(row.cells[i] as Cell) }));
    return [
      { name: 'simulated', panel, points: cells.map(({ x, mean, error }) => ({ x, y: mean, error })) },
      {
        name: 'paper',
        panel,
        points: cells.map(({ x, paper, paperError }) => ({ x, y: paper, error: paperError })),
      },
    ];
  });
  return {
    name: 'santoso',
    chart: {
      title: 'Santoso et al., Table 2: mean time from arrival to end',
      subtitle: [`Mean and standard error of ${runs} runs, beside the values that the paper gives.`],
      kind: 'point',
      x: { title: 'global policy, local policy and length of its queues' },
      y: { title: 'mean time (units of CPU time)', scale: 'log' },
      series,
      width: 900,
      height: 260,
      columns: 1,
    },
  };
}

const nameOf = ({ global, local, queueMax }: HierarchyPolicy): string =>
  queueMax === 0 ? global : `${global} with ${local} queues of ${queueMax}`;
