/**
 * Santoso, van Albada, Nazief, Sloot: hierarchical job scheduling for clusters of workstations. Their Table 2: the mean time
 * from arrival to end under 17 policies and 5 loads, reproduced with the choices in hierarchical-clusters.md.
 */
import {
  DEFAULT_POLICY,
  type LocalPolicy,
  type Machine,
  type Policy,
  plainJob,
  type QueuesPolicy,
  RandomStream,
  type Site,
} from '../src/core/index.js';
import { runSimulation, type World } from '../src/simulator/engine.js';
import { hyperExponential } from '../src/simulator/random.js';
import type { SimJob } from '../src/simulator/workload.js';
import { commandOf, markdownTable, type Plot, plotLink, type Report } from './report.js';

const SITES = 4;
const MACHINES_PER_SITE = 4;
const TASKS_PER_MACHINE = 4;
const JOBS_PER_SITE = 6;
/** CPU time after which the tasks of a job wait for each other. */
const SECTION = 1;
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
/** Jobs of a run, for each that is measured: under a policy that is behind, many have come when the last of these has ended. */
const JOBS_PER_MEASURED = 1.5;
/** The paper's. */
export const PAPER_RUNS = 16;
/** Of these the first ones are the paper's 16: a few runs prove little, for the cells of one run share their jobs. */
export const RUNS = 160;
/** "Additional experiments over 40 000 jobs", at the highest load; and on how many of the runs. */
const LONG = { measured: 40_000, interArrival: 0.8, runs: 4 };
/** Mean times between arrivals from here on: loads at which policies hardly differ. */
const COMMON_FROM = 1.1;
/** The highest load, of which the figures are. */
const FIGURES_AT = 0.8;

export type QueuePolicy = 'FCFS' | 'SJF' | 'FF';

export interface HierarchyPolicy {
  global: QueuesPolicy['order'];
  local: QueuePolicy;
  /** Jobs that a site's queue holds at most; 0: a job leaves the root only to start. */
  queueMax: number;
}

/** A row of the paper's table: mean and error for each column. */
export interface PaperRow extends HierarchyPolicy {
  paper: readonly (readonly [mean: number, error: number])[];
}

/** The paper's Table 2. At 1.3 and 1.5 all rows are alike. */
export const TABLE_2: readonly PaperRow[] = (
  [
    ['S-SJF', 'FCFS', 0, [24.3, 0.5], [18.2, 0.6], [11.6, 0.2]],
    ['S-SJF', 'FCFS', 4, [36.9, 1.5], [22.3, 1.3], [12.0, 0.3]],
    ['S-SJF', 'FCFS', 8, [46.7, 2.3], [25.0, 1.7], [12.1, 0.3]],
    ['S-SJF', 'SJF', 4, [26.5, 0.8], [18.8, 0.7], [11.7, 0.2]],
    ['S-SJF', 'SJF', 8, [26.2, 0.7], [18.7, 0.7], [11.6, 0.2]],
    ['S-SJF', 'FF', 4, [34.3, 1.5], [20.8, 1.1], [11.7, 0.2]],
    ['S-SJF', 'FF', 8, [41.2, 2.5], [22.1, 1.4], [11.8, 0.2]],
    ['L-SJF', 'FCFS', 0, [53.7, 5.6], [22.2, 1.6], [11.6, 0.2]],
    ['L-SJF', 'FCFS', 4, [89.9, 10.0], [30.1, 3.2], [12.0, 0.3]],
    ['L-SJF', 'FCFS', 8, [90.2, 10.5], [29.1, 2.9], [12.1, 0.3]],
    ['L-SJF', 'SJF', 4, [31.6, 2.2], [18.9, 0.8], [11.7, 0.2]],
    ['L-SJF', 'SJF', 8, [26.2, 0.7], [18.7, 0.7], [11.6, 0.2]],
    ['L-SJF', 'FF', 4, [71.9, 8.9], [24.4, 2.2], [11.8, 0.2]],
    ['L-SJF', 'FF', 8, [60.7, 6.6], [22.7, 1.8], [11.8, 0.2]],
    ['FCFS', 'FCFS', 0, [100.6, 12.4], [28.8, 2.8], [11.9, 0.3]],
    ['SJF', 'FCFS', 0, [25.0, 0.5], [18.7, 0.7], [11.7, 0.2]],
    ['FF', 'FCFS', 0, [87.5, 11.4], [25.1, 2.3], [11.8, 0.3]],
  ] satisfies [QueuesPolicy['order'], QueuePolicy, number, ...[number, number][]][]
).map(([global, local, queueMax, at08, at09, at11]) => ({
  global,
  local,
  queueMax,
  paper: [at08, at09, at11, [9.1, 0.2], [7.9, 0.1]],
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

/** Of jobs of one number of tasks, means over the runs. */
export interface TypeFigures {
  turnaround: number;
  /** Standard deviation of the turnarounds in a run. */
  deviation: number;
  /** Mean of turnaround over CPU time of a task. */
  slowdown: number;
}

/** Figures 4 to 8, at the highest load. */
export interface PolicyFigures {
  /** By number of tasks, from 1. */
  types: TypeFigures[];
  /** CPU time of the jobs measured over what the machines have, and the turnaround of all jobs. */
  utilization: number;
  turnaround: number;
  /** The same over 40 000 jobs. */
  long: { utilization: number; turnaround: number; error: number };
}

export interface SantosoRow extends HierarchyPolicy {
  /** Of as many runs as the paper's, and of all. */
  cells: Cell[];
  allCells: Cell[];
  figures: PolicyFigures;
}

/** The whole table. `onProgress` is told how many of the runs are done. */
export function santoso(
  seed: number,
  onProgress: (done: number, all: number) => void = () => {},
  runs = RUNS,
  rows: readonly PaperRow[] = TABLE_2,
  long: { measured: number; interArrival: number; runs: number } = LONG,
): SantosoRow[] {
  const longRuns = Math.min(runs, long.runs);
  const all = rows.length * (INTER_ARRIVALS.length * runs + longRuns);
  let done = 0;
  const means = rows.map(() => INTER_ARRIVALS.map((): number[] => []));
  const figures = rows.map((): RunFigures[] => []);
  const longer = rows.map((): RunFigures[] => []);
  for (let run = 0; run < runs; run++) {
    INTER_ARRIVALS.forEach((interArrival, i) => {
      const jobs = santosoJobs(seed, run, interArrival);
      rows.forEach((row, r) => {
        const measured = runFigures(row, jobs);
        means[r]?.[i]?.push(measured.turnaround);
        if (interArrival === FIGURES_AT) figures[r]?.push(measured);
        onProgress(++done, all);
      });
    });
  }
  for (let run = 0; run < longRuns; run++) {
    const jobs = santosoJobs(seed, run, long.interArrival, long.measured);
    rows.forEach((row, r) => {
      longer[r]?.push(runFigures(row, jobs, long.measured));
      onProgress(++done, all);
    });
  }
  const cellsOf = (r: number, paper: PaperRow['paper'], count: number): Cell[] =>
    INTER_ARRIVALS.map((interArrival, i) => {
      const [theirs, paperError] = paper[i] as readonly [number, number];
      const { mean, error } = meanAndError((means[r]?.[i] ?? []).slice(0, count));
      const distance = Math.abs(mean - theirs) / Math.hypot(error, paperError);
      return { interArrival, mean, error, paper: theirs, paperError, distance };
    });
  return rows.map(({ paper, ...policy }, r) => ({
    ...policy,
    cells: cellsOf(r, paper, PAPER_RUNS),
    allCells: cellsOf(r, paper, runs),
    figures: policyFigures(figures[r] as RunFigures[], longer[r] as RunFigures[]),
  }));
}

function policyFigures(runs: readonly RunFigures[], long: readonly RunFigures[]): PolicyFigures {
  const mean = (of: (run: RunFigures) => number): number => meanAndError(runs.map(of)).mean;
  const { mean: turnaround, error } = meanAndError(long.map((run) => run.turnaround));
  return {
    types: CLASSES.map((_, i) => ({
      turnaround: mean(({ types }) => (types[i] as TypeFigures).turnaround),
      deviation: mean(({ types }) => (types[i] as TypeFigures).deviation),
      slowdown: mean(({ types }) => (types[i] as TypeFigures).slowdown),
    })),
    utilization: mean((run) => run.utilization),
    turnaround: mean((run) => run.turnaround),
    long: { utilization: meanAndError(long.map((run) => run.utilization)).mean, turnaround, error },
  };
}

/** Cells within two combined standard errors of the paper, of how many. */
export function matching(
  rows: readonly SantosoRow[],
  of: 'cells' | 'allCells' = 'cells',
): { within: number; cells: number } {
  const cells = rows.flatMap((row) => row[of]);
  return { within: cells.filter(({ distance }) => distance <= 2).length, cells: cells.length };
}

/** One run under one policy. */
type RunFigures = Pick<PolicyFigures, 'types' | 'utilization' | 'turnaround'>;

/** Mean time from arrival to end of the 201st to 4200th job to end. */
export const meanResponse = (policy: HierarchyPolicy, jobs: readonly SimJob[]): number =>
  runFigures(policy, jobs).turnaround;

/** The same, by number of tasks, and how busy the machines were meanwhile. */
function runFigures(policy: HierarchyPolicy, jobs: readonly SimJob[], measured = MEASURED): RunFigures {
  const types = CLASSES.map(() => ({ jobs: 0, sum: 0, squares: 0, slowdowns: 0 }));
  let count = 0;
  let sum = 0;
  let work = 0;
  let from = 0;
  let until = 0;
  const ended = ({ job, runS }: SimJob, _index: number, _run: unknown, at: number): void => {
    if (++count === WARM_UP) from = at;
    if (count <= WARM_UP) return;
    const turnaround = at - job.submittedAt;
    const type = types[job.tasks - 1] as (typeof types)[number];
    type.jobs++;
    type.sum += turnaround;
    type.squares += turnaround ** 2;
    type.slowdowns += turnaround / runS;
    sum += turnaround;
    work += runS * job.tasks;
    until = at;
  };
  const options = {
    policy: policyDocument(policy),
    eventOrder: 'batch',
    // "The local scheduler acts after each dispatch"; without local queues the global one acts at arrivals only.
    movesAtOnce: 1,
    dispatchAtArrivalsOnly: policy.queueMax === 0,
    stopAfter: WARM_UP + measured,
  } as const;
  runSimulation(santosoWorld, jobs, options, [{ ended }]);
  if (count < WARM_UP + measured)
    throw new Error(`only ${count} of ${jobs.length} jobs ended: more are needed`);
  return {
    types: types.map((type) => {
      const turnaround = type.sum / type.jobs;
      const deviation = Math.sqrt(Math.max(0, type.squares / type.jobs - turnaround ** 2));
      return { turnaround, deviation, slowdown: type.slowdowns / type.jobs };
    }),
    utilization: work / (SITES * MACHINES_PER_SITE * (until - from)),
    turnaround: sum / measured,
  };
}

const locals: Readonly<Record<QueuePolicy, LocalPolicy>> = {
  FCFS: { kind: 'fcfs' },
  SJF: { kind: 'sjf', ageBoundS: null },
  FF: { kind: 'first-fit', ageBoundS: null },
};

const policyDocument = ({ global, local, queueMax }: HierarchyPolicy): Policy => ({
  ...DEFAULT_POLICY,
  dispatch: { kind: 'queues', order: global, queueLimit: queueMax, ageBoundS: null },
  local: locals[local],
});

/** Four sites of four time-shared machines. */
const santosoWorld: World = {
  sites: Array.from({ length: SITES }, (_, i): Site => {
    return {
      id: i + 1,
      name: `site-${i + 1}`,
      state: 'UP',
      localPolicy: null,
      maxRunningJobs: JOBS_PER_SITE,
    };
  }),
  machines: Array.from({ length: SITES * MACHINES_PER_SITE }, (_, i): Machine => {
    const siteId = 1 + Math.floor(i / MACHINES_PER_SITE);
    const plain = { memoryMb: 0, benchmark: 1, os: '', architecture: '', licenseIds: [], available: true };
    return { ...plain, id: i + 1, siteId, cpus: 1, maxTasks: TASKS_PER_MACHINE };
  }),
  licenses: [],
  changes: [],
};

/** The same jobs for every policy and load of a run; only the times between them are scaled. */
export function santosoJobs(seed: number, run: number, interArrival: number, measured = MEASURED): SimJob[] {
  const arrivals = new RandomStream(seed, `santoso-arrivals-${run}`);
  const sizes = new RandomStream(seed, `santoso-tasks-${run}`);
  const work = new RandomStream(seed, `santoso-cpu-${run}`);
  let submit = 0;
  return Array.from({ length: Math.ceil(JOBS_PER_MEASURED * measured) }, (_, i) => {
    submit += arrivals.exponential(interArrival);
    let tasks = 1;
    for (let left = sizes.next(); tasks < CLASSES.length; tasks++) {
      left -= (CLASSES[tasks - 1] as (typeof CLASSES)[number]).probability;
      if (left < 0) break;
    }
    const { mean, deviation } = CLASSES[tasks - 1] as (typeof CLASSES)[number];
    // A draw of exactly 0 has probability 2^-32, and no job.
    const runS = hyperExponential(work, mean, deviation) || Number.MIN_VALUE;
    return {
      job: plainJob({
        id: i + 1,
        submittedAt: submit,
        estimateS: runS,
        tasks,
      }),
      sourceId: i + 1,
      runS,
      limitS: null,
      sectionS: SECTION,
      siteId: null,
    };
  });
}

/** Of independent runs. */
export function meanAndError(values: readonly number[]): { mean: number; error: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, error: values.length < 2 ? 0 : Math.sqrt(squares / (values.length - 1) / values.length) };
}

/** The table, ours beside theirs, and the figures. */
export function santosoReport(seed: number, rows: readonly SantosoRow[], runs = RUNS): Report {
  const paperRuns = Math.min(runs, PAPER_RUNS);
  const { within, cells } = matching(rows);
  const all = matching(rows, 'allCells');
  const more = runs > paperRuns;
  const verdict = more
    ? `${within} of ${cells} cells within two standard errors by ${paperRuns} runs, ${all.within} by ${runs}`
    : `${within} of ${cells} cells within two standard errors`;
  const apart = (of: 'cells' | 'allCells'): string[] =>
    rows.flatMap((row) =>
      row[of]
        .filter(({ distance }) => distance > 2)
        .map(
          ({ interArrival, mean, error, paper, paperError, distance }) =>
            `* ${nameOf(row)} at ${interArrival}: ${mean.toFixed(1)} ± ${error.toFixed(1)}, the paper ${paper} ± ${paperError}: ` +
            `${distance.toFixed(1)} standard errors apart`,
        ),
    );
  const table = (of: 'cells' | 'allCells'): string =>
    markdownTable(
      ['global', 'local', 'Q', ...INTER_ARRIVALS.map(String)],
      rows.map((row) => [
        row.global,
        row.queueMax === 0 ? '–' : row.local,
        String(row.queueMax),
        ...row[of].map(
          ({ mean, error, paper, paperError }) =>
            `${mean.toFixed(1)} ± ${error.toFixed(1)} (${paper.toFixed(1)} ± ${paperError.toFixed(1)})`,
        ),
      ]),
    );
  const byType = (of: (figures: TypeFigures) => number): string =>
    markdownTable(
      ['policy', ...CLASSES.map((_, i) => `${i + 1} ${i === 0 ? 'task' : 'tasks'}`)],
      rows.map((row) => [nameOf(row), ...row.figures.types.map((type) => of(type).toFixed(1))]),
    );
  const section = (title: string, of: 'cells' | 'allCells'): string[] => {
    const far = apart(of);
    return [title, '', table(of), '', ...(far.length > 0 ? ['Further apart:', '', ...far, ''] : [])];
  };
  const plot = santosoPlot(rows, paperRuns);
  const text = [
    '# Santoso et al., Table 2: mean time from arrival to end',
    '',
    `${commandOf('santoso', seed, runs, RUNS)} made this page. Each run of a cell measures ${MEASURED} jobs after ${WARM_UP} that are left out; all`,
    'policies of a run have the same jobs. The error is the standard deviation of the runs divided by the square root of their number.',
    "The paper's value is in parentheses; the columns are mean times between arrivals.",
    '',
    "The schedulers are the service's own: dispatch policy `queues` and local policies `fcfs`, `sjf`, `first-fit` without age",
    'bounds, on time-shared machines. A local queue is served in order of arrival at the site.',
    '',
    'Two values agree if they differ by no more than twice the square root of the sum of their squared errors. Cells of one run share their',
    'jobs, so in a few runs all of them may be too high, or too low, together.',
    '',
    ...section(`## ${paperRuns} runs${more ? ', as in the paper' : ''}`, 'cells'),
    plotLink(plot),
    '',
    ...(more ? section(`## ${runs} runs, including the first ${paperRuns}`, 'allCells') : []),
    ...offsets(rows, more ? runs : paperRuns),
    `## By type of job, mean time between arrivals ${FIGURES_AT} (figures 4 to 8)`,
    '',
    'Turnaround:',
    '',
    byType(({ turnaround }) => turnaround),
    '',
    'Standard deviation of the turnaround in a run:',
    '',
    byType(({ deviation }) => deviation),
    '',
    'Slowdown, turnaround over CPU time of a task:',
    '',
    byType(({ slowdown }) => slowdown),
    '',
    `## Utilization, and ${LONG.measured} jobs, mean time between arrivals ${FIGURES_AT}`,
    '',
    `${LONG.measured} jobs are measured in ${Math.min(runs, LONG.runs)} runs.`,
    '',
    markdownTable(
      [
        'policy',
        `utilization, ${MEASURED} jobs, %`,
        `${LONG.measured} jobs, %`,
        `turnaround, ${MEASURED} jobs`,
        `${LONG.measured} jobs`,
      ],
      rows.map((row) => {
        const { utilization, turnaround, long } = row.figures;
        return [
          nameOf(row),
          (100 * utilization).toFixed(1),
          (100 * long.utilization).toFixed(1),
          turnaround.toFixed(1),
          `${long.turnaround.toFixed(1)} ± ${long.error.toFixed(1)}`,
        ];
      }),
    ),
    '',
    'According to the paper, at this load no equilibrium is reached after 4000 jobs, nothing grows without bound, and FF has the',
    'best utilization, closely followed by FCFS. The offered load is 0.97.',
    '',
    verdict,
    '',
  ].join('\n');
  return {
    name: 'santoso',
    text,
    data: { seed, runs, rows, within, cells, withinAll: all.within },
    verdict,
    plots: [plot],
  };
}

/** By how much all policies together differ from the paper's where they hardly differ from one another. */
function offsets(rows: readonly SantosoRow[], runs: number): string[] {
  const columns = INTER_ARRIVALS.map((interArrival, i) => {
    const differences = rows.map(({ allCells }) => {
      const { mean, paper } = allCells[i] as Cell;
      return mean - paper;
    });
    const mean = (of: (row: SantosoRow) => number): number => meanAndError(rows.map(of)).mean;
    const ofFew = mean(({ cells }) => (cells[i] as Cell).error);
    const paper = mean(({ allCells }) => (allCells[i] as Cell).paper);
    return { interArrival, differences, ofFew, paper };
  }).filter(({ interArrival }) => interArrival >= COMMON_FROM);
  const apart = rows.flatMap(({ allCells }) =>
    allCells.filter(({ interArrival, distance }) => interArrival >= COMMON_FROM && distance > 2),
  );
  return [
    `## An offset common to all policies at ${columns.map(({ interArrival }) => interArrival).join(', ')}`,
    '',
    markdownTable(
      ['', ...columns.map(({ interArrival }) => String(interArrival))],
      [
        [
          `our ${runs} runs minus the paper, mean of the policies`,
          ...columns.map(({ differences }) => meanAndError(differences).mean.toFixed(2)),
        ],
        [
          'least and largest of them',
          ...columns.map(
            ({ differences }) =>
              `${Math.min(...differences).toFixed(2)} to ${Math.max(...differences).toFixed(2)}`,
          ),
        ],
        [
          'in parts of the mean, %',
          ...columns.map(({ differences, paper }) =>
            ((100 * meanAndError(differences).mean) / paper).toFixed(1),
          ),
        ],
        [`error of ${PAPER_RUNS} runs, ours`, ...columns.map(({ ofFew }) => ofFew.toFixed(2))],
      ],
    ),
    '',
    'At these loads few jobs wait, so all policies start nearly all jobs at once, and the cells of a column measure the same quantity on',
    'the same jobs. The columns also share their jobs, at other times of arrival. A common offset is therefore one',
    `difference between the ${PAPER_RUNS} draws of the paper and ours, about as large as expected for ${PAPER_RUNS} runs.`,
    '',
    'It is counted once for each cell: it makes',
    `${apart.length} of the ${rows.length * columns.length} cells here count as apart, and says nothing about the policies. It can also be a small difference of the model that is the`,
    'same for all of them; these numbers cannot distinguish the two.',
    '',
  ];
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
