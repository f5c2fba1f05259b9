/** The page of the DIANA experiment. */
import {
  BANDWIDTHS,
  BASELINES,
  type Cell,
  COUNTS,
  type DianaResult,
  GROWTH,
  JOBS,
  KINDS,
  type Kind,
  QUOTAS,
  RUNS,
  SCALE,
  SCHEDULERS,
  type Scheduler,
} from './diana.js';
import { STUDY, type StudyRow } from './diana-study.js';
import { type Contrast, contrast, isLess, type Times } from './grids.js';
import {
  type Claim,
  claimsTable,
  commandOf,
  markdownTable,
  type Plot,
  plotLink,
  plusMinus,
  type Report,
  verdictOf,
} from './report.js';
import { meanAndError } from './santoso.js';

type Measure = keyof Times;
type Experiment = Cell['experiment'];

const LABELS: Readonly<Record<Scheduler, string>> = {
  diana: 'DIANA',
  'diana-meta-sjf': 'DIANA, SJF meta-queues',
  'diana-sjf': 'DIANA, local SJF',
  'diana-kinds': 'DIANA, weights by kind',
  'diana-stay': 'DIANA without export',
  'diana-paper-rule': 'DIANA, export unless both are higher',
  'diana-origin': 'DIANA, site of submission first',
  sjf: 'one queue, SJF',
  'round-robin': 'round robin',
  'most-flops': 'most FLOPS',
};
const MEASURES: Readonly<Record<Measure, string>> = {
  queueS: 'queue',
  executionS: 'execution',
  turnaroundS: 'turnaround',
  makespanS: 'makespan',
};
/** What the jobs of an experiment are. */
const OF = { kinds: 'of three kinds', misjudged: 'misjudged' } as const;
/** Growth counts as nearly linear up to this power. */
const NEARLY_LINEAR = 1.1;

/** One scheduler's times against another's, on the same runs. */
export interface Comparison extends Contrast {
  experiment: Experiment;
  x: number;
  measure: Measure;
  ours: Scheduler;
  theirs: Scheduler;
}

/** With the comparisons for which it does not hold, and whether the paper makes it. */
export interface DianaClaim extends Claim {
  byPaper: boolean;
  broken: Comparison[];
}

/** Looks cells up. */
class Cells {
  constructor(private readonly cells: readonly Cell[]) {}

  at(experiment: Experiment, x: number, scheduler: Scheduler): Cell {
    const cell = this.cells.find(
      (c) => c.experiment === experiment && c.x === x && c.scheduler === scheduler,
    );
    if (cell === undefined) throw new Error(`no cell ${experiment} ${x} ${scheduler}`);
    return cell;
  }

  values(experiment: Experiment, x: number, scheduler: Scheduler, measure: Measure): number[] {
    return this.at(experiment, x, scheduler).runs.map((times) => times[measure]);
  }

  compare(
    experiment: Experiment,
    x: number,
    measure: Measure,
    ours: Scheduler,
    theirs: Scheduler,
  ): Comparison {
    const difference = contrast(
      this.values(experiment, x, ours, measure),
      this.values(experiment, x, theirs, measure),
    );
    return { experiment, x, measure, ours, theirs, ...difference };
  }

  /** How much a scheduler's makespan varies from run to run as sites and jobs grow: deviation over mean, on average. */
  variation(scheduler: Scheduler): number {
    const points = [
      ...SCALE.jobs.map((x) => this.values('jobs', x, scheduler, 'makespanS')),
      ...GROWTH.sites.map((x) => this.values('sites', x, scheduler, 'makespanS')),
    ];
    return meanAndError(
      points.map((values) => {
        const { mean, error } = meanAndError(values);
        return (error * Math.sqrt(values.length)) / mean;
      }),
    ).mean;
  }

  /** With which power of x the measure grows: the slope of the logarithms, run by run. */
  growth(
    experiment: Experiment,
    xs: readonly number[],
    scheduler: Scheduler,
  ): { mean: number; error: number } {
    const byX = xs.map((x) => this.values(experiment, x, scheduler, 'makespanS'));
    return meanAndError(
      (byX[0] as number[]).map((_, run) =>
        slope(
          xs,
          byX.map((values) => values[run] as number),
        ),
      ),
    );
  }
}

function slope(xs: readonly number[], ys: readonly number[]): number {
  const [lx, ly] = [xs.map(Math.log), ys.map(Math.log)];
  const [mx, my] = [meanAndError(lx).mean, meanAndError(ly).mean];
  const cross = lx.reduce((sum, x, i) => sum + (x - mx) * ((ly[i] as number) - my), 0);
  return cross / lx.reduce((sum, x) => sum + (x - mx) ** 2, 0);
}

/** What the paper says of its figures and what we compare beyond, and whether it holds. */
export function claims({ cells }: DianaResult): DianaClaim[] {
  const table = new Cells(cells);
  const shorter = (claim: string, compared: Comparison[]) => {
    const broken = compared.filter((one) => !isLess(one));
    return { claim, holds: compared.length - broken.length, of: compared.length, broken };
  };
  const plain = (claim: string, holds: boolean) => ({ claim, holds: Number(holds), of: 1, broken: [] });
  const against = (
    theirs: Scheduler,
    experiment: Experiment,
    xs: readonly number[],
    measure: Measure,
    what: string,
    ours: Scheduler = 'diana',
  ) =>
    shorter(
      `${what}: shorter than ${LABELS[theirs]}`,
      xs.map((x) => table.compare(experiment, x, measure, ours, theirs)),
    );
  const mean = (x: number, scheduler: Scheduler): number =>
    meanAndError(table.values('data', x, scheduler, 'executionS')).mean;
  const gain = (x: number): number => mean(x, 'round-robin') / mean(x, 'diana');
  const [slowest, fastest] = [BANDWIDTHS[0], BANDWIDTHS.at(-1) as number];
  const byPaper = [
    against('round-robin', 'compute', COUNTS, 'executionS', 'figure 5: compute jobs, execution'),
    against('round-robin', 'compute', COUNTS, 'queueS', 'figure 6: compute jobs, time in queues'),
    against(
      'round-robin',
      'queues',
      [JOBS],
      'turnaroundS',
      'figure 7: with SJF meta-queues, turnaround',
      'diana-meta-sjf',
    ),
    against(
      'round-robin',
      'queues',
      [JOBS],
      'turnaroundS',
      'figure 7: with the multilevel queues, turnaround',
    ),
    against('round-robin', 'data', BANDWIDTHS, 'executionS', 'figure 8: data-intensive jobs, execution'),
    plain('figure 8: round robin loses more on slow links than on fast ones', gain(slowest) > gain(fastest)),
    ...BASELINES.map((theirs) =>
      against(theirs, 'jobs', SCALE.jobs, 'makespanS', 'figure 9: more jobs, makespan'),
    ),
    ...BASELINES.map((theirs) =>
      against(theirs, 'sites', GROWTH.sites, 'makespanS', 'figure 9: more sites, makespan'),
    ),
    plain(
      `figure 9: makespan grows with jobs at most as their power ${NEARLY_LINEAR}`,
      table.growth('jobs', SCALE.jobs, 'diana').mean <= NEARLY_LINEAR,
    ),
    plain(
      'figure 9: round robin grows more steeply with sites than most FLOPS',
      table.growth('sites', GROWTH.sites, 'round-robin').mean >
        table.growth('sites', GROWTH.sites, 'most-flops').mean,
    ),
    plain(
      'figure 9: most FLOPS varies most from run to run',
      (['diana', 'round-robin'] as const).every(
        (scheduler) => table.variation(scheduler) < table.variation('most-flops'),
      ),
    ),
    ...(['kinds', 'misjudged'] as const).flatMap((experiment) => [
      against(
        'diana-stay',
        experiment,
        [JOBS],
        'turnaroundS',
        `section 6: exports, jobs ${OF[experiment]}, turnaround`,
      ),
      against(
        'diana',
        experiment,
        [JOBS],
        'turnaroundS',
        `section 2: site of submission first, jobs ${OF[experiment]}, turnaround`,
        'diana-origin',
      ),
    ]),
    against('diana', 'kinds', [JOBS], 'turnaroundS', 'section 5: weights by kind, turnaround', 'diana-kinds'),
  ];
  const beyond = [
    against('most-flops', 'compute', COUNTS, 'executionS', 'compute jobs, execution'),
    against('most-flops', 'compute', COUNTS, 'queueS', 'compute jobs, time in queues'),
    against('most-flops', 'queues', [JOBS], 'turnaroundS', 'with SJF, turnaround', 'diana-sjf'),
    against('most-flops', 'queues', [JOBS], 'turnaroundS', 'with the multilevel queues, turnaround'),
    against('diana-sjf', 'queues', [JOBS], 'turnaroundS', 'with the multilevel queues, turnaround'),
    against('most-flops', 'data', BANDWIDTHS, 'executionS', 'data-intensive jobs, execution'),
    ...BASELINES.map((theirs) =>
      against(theirs, 'data', BANDWIDTHS, 'turnaroundS', 'data-intensive jobs, turnaround'),
    ),
    against('diana', 'queues', [JOBS], 'turnaroundS', 'with SJF meta-queues, turnaround', 'diana-meta-sjf'),
    ...(['diana-paper-rule', ...BASELINES] as const).map((theirs) =>
      against(theirs, 'kinds', [JOBS], 'turnaroundS', 'jobs of three kinds, turnaround'),
    ),
    ...(['diana-paper-rule', 'round-robin'] as const).map((theirs) =>
      against(
        theirs,
        'misjudged',
        [JOBS],
        'turnaroundS',
        'jobs that take longer or shorter than estimated, turnaround',
      ),
    ),
  ];
  return [
    ...byPaper.map((claim) => ({ ...claim, byPaper: true })),
    ...beyond.map((claim) => ({ ...claim, byPaper: false })),
  ];
}

/** Everything as a page. */
export function dianaReport(result: DianaResult, study: readonly StudyRow[]): Report {
  const { seed, runs } = result;
  const table = new Cells(result.cells);
  const made = claims(result);
  const verdict = verdictOf(made.filter(({ byPaper }) => byPaper));
  const broken = made.flatMap((claim) => claim.broken);
  const plots = [computePlot, queuesPlot, bandwidthPlot, jobsPlot, sitesPlot].map((plot) => plot(result));
  const [compute, queues, bandwidth, jobs, sites] = plots as [Plot, Plot, Plot, Plot, Plot];
  const rows = (experiment: Experiment, digits: number): string[][] =>
    result.cells
      .filter((cell) => cell.experiment === experiment)
      .map(({ x, scheduler, runs: times }) => [
        String(x),
        LABELS[scheduler],
        ...(Object.keys(MEASURES) as Measure[]).map((measure) =>
          plusMinus(meanAndError(times.map((one) => one[measure])), digits),
        ),
      ]);
  const kindsCells = result.cells.filter(({ experiment }) => experiment === 'kinds');
  const misjudgedCells = result.cells.filter(({ experiment }) => experiment === 'misjudged');
  const dataCells = result.cells.filter(({ experiment }) => experiment === 'data');
  const times = Object.values(MEASURES);
  const text = [
    '# DIANA: data intensive and network aware scheduling',
    '',
    `${commandOf('diana', seed, runs, RUNS)} made this page: ${runs} runs for each row, every scheduler on the same grids and jobs. Values are means`,
    'over the runs ± the standard error, in seconds: "queue" is the time from submission to start, in all queues; "execution" the time from start',
    'to end, including data transfers; "turnaround" the sum of both. One value counts as shorter than another if the',
    'mean of their differences, run by run, is more than two standard errors away from 0.',
    '',
    'The paper shows its results as figures without numbers in the text, so the comparison is with its statements about them. It gives',
    'neither the power of its nodes nor the properties of its networks; the head of `experiments/diana.ts` says what is',
    "drawn here. Limits, thresholds and penalties are the default policy's. Weights and the export rule were chosen as described below, on runs of",
    'another seed.',
    '',
    '## Compute jobs, all at once (figures 5 and 6)',
    '',
    markdownTable(['jobs', 'scheduler', ...times], rows('compute', 0)),
    '',
    plotLink(compute),
    '',
    '## With SJF and with the multilevel queues (figure 7)',
    '',
    `${JOBS} jobs of 8, 17, 26 and 35 processors, of five users with different quotas.`,
    '',
    markdownTable(
      ['scheduler', ...times],
      rows('queues', 0).map((row) => row.slice(1)),
    ),
    '',
    plotLink(queues),
    '',
    'Turnaround by the quota of the user; all users have the same number of jobs:',
    '',
    userTable(table),
    '',
    '## Data-intensive jobs as bandwidth grows (figure 8)',
    '',
    `${JOBS} jobs that read 10 GB each.`,
    '',
    markdownTable(
      ['Mb/s', 'scheduler', ...times, 'ran where their data is, %'],
      rows('data', 0).map((row, i) => [...row, plusMinus(percentages(dataCells[i] as Cell))]),
    ),
    '',
    plotLink(bandwidth),
    '',
    '## Time as jobs and sites grow (figure 9)',
    '',
    `Jobs on ${SCALE.sites} sites:`,
    '',
    markdownTable(['jobs', 'scheduler', ...times], rows('jobs', 1)),
    '',
    plotLink(jobs),
    '',
    `Sites, with ${GROWTH.jobsPerSite} jobs for each:`,
    '',
    markdownTable(['sites', 'scheduler', ...times], rows('sites', 1)),
    '',
    plotLink(sites),
    '',
    'The exponent of the growth of the makespan, and its variation between runs of one size:',
    '',
    markdownTable(
      ['scheduler', 'of the jobs', 'of the sites', 'deviation from run to run, %'],
      (['diana', ...BASELINES] as const).map((scheduler) => [
        LABELS[scheduler],
        plusMinus(table.growth('jobs', SCALE.jobs, scheduler), 2),
        plusMinus(table.growth('sites', GROWTH.sites, scheduler), 2),
        (100 * table.variation(scheduler)).toFixed(1),
      ]),
    ),
    '',
    '## The weights of the costs, and who may leave a congested site',
    '',
    ...studyLines(study),
    '## Three kinds of job, exports and transfers (sections 2, 5, 6 and 7)',
    '',
    `${JOBS} jobs in bulks, of three kinds, over time; the head of \`experiments/diana.ts\` says how. "Exported" are moves from the meta-queue`,
    'of a congested site to that of another, over the number of jobs.',
    '',
    markdownTable(
      ['scheduler', ...times, 'exported, %', ...Object.keys(KINDS)],
      rows('kinds', 0).map((row, i) => [...row.slice(1), ...exported(kindsCells[i] as Cell)]),
    ),
    '',
    `${JOBS} computational jobs in such bulks, where every other bulk has estimates thirty times too long: sites finish at other`,
    'times than planned, which is the purpose of exports.',
    '',
    markdownTable(
      ['scheduler', ...times, 'exported, %'],
      rows('misjudged', 0).map((row, i) => [
        ...row.slice(1),
        exported(misjudgedCells[i] as Cell)[0] as string,
      ]),
    ),
    '',
    '## What the paper claims',
    '',
    claimsTable(made.filter(({ byPaper }) => byPaper)),
    '',
    '## What we compare beyond',
    '',
    claimsTable(made.filter(({ byPaper }) => !byPaper)),
    '',
    ...(broken.length === 0
      ? []
      : [
          'Where it does not:',
          '',
          markdownTable(
            ['experiment', 'x', 'measure', 'scheduler', 'against', 'difference'],
            broken.map(({ experiment, x, measure, ours, theirs, difference, error }) => [
              experiment,
              String(x),
              MEASURES[measure],
              LABELS[ours],
              LABELS[theirs],
              plusMinus({ mean: difference, error }, 1),
            ]),
          ),
          '',
        ]),
    ...notes(table, broken),
    '',
    verdict,
    '',
  ].join('\n');
  return { name: 'diana', text, data: { ...result, study }, verdict, plots };
}

/** How the defaults were chosen. */
function studyLines(study: readonly StudyRow[]): string[] {
  const runs = study[0]?.kindsS.length ?? 0;
  const table = (seed: number): string =>
    markdownTable(
      [
        'weights',
        'who may leave',
        'three kinds: turnaround',
        "figure 9: makespan over round robin's",
        'shorter at',
      ],
      study
        .filter((row) => row.seed === seed)
        .map(({ weights, rule, kindsS, growth }) => [
          weights,
          RULES[rule],
          plusMinus(meanAndError(kindsS)),
          plusMinus(meanAndError(growth.flat()), 2),
          `${
            growth.filter((ratios) =>
              isLess(
                contrast(
                  ratios,
                  ratios.map(() => 1),
                ),
              ),
            ).length
          } of ${growth.length}`,
        ]),
    );
  return [
    `Two workloads: turnaround of ${JOBS} jobs of three kinds (next section), and makespan at the points of figure 9 as a fraction of round robin's, with the number of points`,
    `where it is shorter by more than two standard errors; ${runs} runs each. Weights are those of network, computation and data, for computational jobs,`,
    'data-intensive jobs and both, or the same for all. For the choice, runs of a seed that is not used elsewhere:',
    '',
    table(STUDY.seed),
    '',
    'To confirm, runs of another one:',
    '',
    table(STUDY.confirmingSeed),
    '',
    ...STUDY_FINDINGS,
    '',
  ];
}

const RULES: Readonly<Record<StudyRow['rule'], string>> = {
  stay: 'nobody',
  BOTH_LOWER: 'both lower',
};

/** Why the defaults are what they are. */
const STUDY_FINDINGS: readonly string[] = [
  'The default, 1, 1, 4 for all kinds, has the shortest turnaround for jobs of three kinds among the weights that, with exports, beat round robin at most points of',
  'figure 9 on the first runs. On the other runs the points do not distinguish weights of 2, 4 and 8; 4 again lies between the others in both measures.',
  '',
  'The first row is section 5’s order as given in the specification. It increases turnaround: a job that transfers data occupies a processor meanwhile,',
  'which also delays the jobs behind it. With a weight of 8, data counts more than the short run times of figure 9’s jobs, and sites fill unevenly.',
  'Weights by kind bring no gain.',
  '',
  'Exports worsen figure 9 more than weights do. Part of that was a defect: the cost of a group at a peer was the mean of its jobs’ costs, as if each',
  'arrived alone, so groups went to slow sites; now earlier jobs of a group count as ahead of later ones.',
  '',
  'The rest remains: if all jobs arrive at once, every site counts as congested, and if estimates are about right, no job gains by leaving. So on these two workloads no exports are best',
  '(`congestionThreshold` 1). Exports stay on by default because they help if jobs take longer or shorter than estimated (see below).',
];

/** Exports in percent of the jobs, all and of each kind. */
function exported({ exports }: Cell): string[] {
  const kinds = Object.keys(KINDS) as Kind[];
  const part = (of: (run: Record<Kind, number>) => number): string =>
    plusMinus(meanAndError(exports.map((run) => (100 * of(run)) / JOBS)), 1);
  return [
    part((run) => kinds.reduce((sum, kind) => sum + run[kind], 0)),
    ...kinds.map((kind) => part((run) => run[kind])),
  ];
}

const percentages = ({ atData }: Cell): { mean: number; error: number } =>
  meanAndError(atData.map((part) => 100 * part));

/** Whom the order of the queues serves. */
function userTable(table: Cells): string {
  return markdownTable(
    ['quota', ...SCHEDULERS.map((scheduler) => LABELS[scheduler])],
    QUOTAS.map((quota, user) => [
      String(quota),
      ...SCHEDULERS.map((scheduler) => {
        const { byUserS } = table.at('queues', JOBS, scheduler);
        return plusMinus(meanAndError(byUserS.map((means) => means[user] as number)), 0);
      }),
    ]),
  );
}

/** What the numbers say of why an expectation does not hold, and of what looks odd. */
function notes(table: Cells, broken: readonly Comparison[]): string[] {
  const isBroken = (of: Partial<Comparison>): boolean =>
    broken.some((one) => Object.entries(of).every(([key, value]) => one[key as keyof Comparison] === value));
  const mean = (experiment: Experiment, x: number, scheduler: Scheduler, measure: Measure): number =>
    meanAndError(table.values(experiment, x, scheduler, measure)).mean;
  const lines: string[] = [];
  if (isBroken({ experiment: 'compute', measure: 'executionS', theirs: 'most-flops' })) {
    const more = (measure: Measure): string =>
      Math.abs(
        mean('compute', JOBS, 'most-flops', measure) - mean('compute', JOBS, 'diana', measure),
      ).toFixed(0);
    lines.push(
      '* Execution against most FLOPS: with all machines busy, most FLOPS sends all jobs to the site with the fastest nodes.',
      `  ${JOBS} compute jobs execute in ${more('executionS')} s less there, and wait ${more('queueS')} s longer.`,
    );
  }
  if (isBroken({ experiment: 'queues', theirs: 'diana-sjf' })) {
    const of = (scheduler: Scheduler, user: number): string =>
      meanAndError(
        table.at('queues', JOBS, scheduler).byUserS.map((means) => means[user] as number),
      ).mean.toFixed(0);
    const last = QUOTAS.length - 1;
    lines.push(
      '* The multilevel queues against SJF: shortest first is the order with the shortest mean. The multilevel queues serve users by their quotas, and',
      `  prefer jobs of few processors only within one user: with the quotas ${QUOTAS[0]} and ${QUOTAS[last]} jobs take ${of('diana', 0)} and ${of('diana', last)} s, with local SJF`,
      `  ${of('diana-sjf', 0)} and ${of('diana-sjf', last)} s.`,
    );
  }
  if (
    isBroken({ experiment: 'sites', theirs: 'round-robin' }) ||
    isBroken({ experiment: 'jobs', theirs: 'round-robin' })
  ) {
    lines.push(
      '* Makespan against round robin as jobs and sites grow: all jobs arrive at once, so every site counts as congested, and groups leave for peers',
      '  that pass the rule. The makespan is the end of the last job, which depends on one group at a slow site and varies much from run to run.',
    );
  }
  const steepness = (scheduler: Scheduler): number => table.growth('sites', GROWTH.sites, scheduler).mean;
  if (steepness('round-robin') <= steepness('most-flops')) {
    lines.push(
      '* The steepest is most FLOPS, not round robin: once no machine is free it keeps choosing the most powerful one, so one site gets',
      '  all remaining jobs. Round robin grows like DIANA because all sites have about the same number of nodes; it is slower, because its makespan is that',
      '  of the slowest site.',
    );
  }
  const at = BANDWIDTHS.reduce((worst, x) =>
    mean('data', x, 'diana', 'makespanS') > mean('data', worst, 'diana', 'makespanS') ? x : worst,
  );
  if (at !== BANDWIDTHS[0]) {
    const { runs, atData } = table.at('data', at, 'diana');
    const worst = runs.reduce((i, { makespanS }, j) => (makespanS > (runs[i] as Times).makespanS ? j : i), 0);
    const away = 100 * (1 - (atData[worst] as number));
    lines.push(
      `* DIANA's makespan is longest at ${at} Mb/s, not at ${BANDWIDTHS[0]}. The reason is a few runs; the longest took ${(runs[worst] as Times).makespanS.toFixed(0)} s, with ${away.toFixed(1)} % of its jobs away from`,
      '  their data. Transfers that are queued on a link count in the cost of data; they do not slow one another in the simulation.',
    );
  }
  return lines;
}

type Points = { x: number; y: number; error: number }[];

function pointsOf(
  cells: readonly Cell[],
  experiment: Experiment,
  scheduler: Scheduler,
  measure: Measure,
): Points {
  return cells
    .filter((cell) => cell.experiment === experiment && cell.scheduler === scheduler)
    .map(({ x, runs }) => {
      const { mean, error } = meanAndError(runs.map((times) => times[measure]));
      return { x, y: mean, error };
    });
}

const subtitleOf = ({ runs }: DianaResult): string[] => [`Mean and standard error of ${runs} runs.`];
const THREE = ['diana', ...BASELINES] as const;

const computePlot = (result: DianaResult): Plot =>
  panelsPlot(result, 'compute', ['executionS', 'queueS'], {
    name: 'diana-compute',
    title: 'Compute jobs, all at once',
    x: { title: 'jobs' },
  });
const bandwidthPlot = (result: DianaResult): Plot =>
  panelsPlot(result, 'data', ['executionS', 'turnaroundS'], {
    name: 'diana-bandwidth',
    title: 'Jobs that read 10 GB',
    x: { title: 'bandwidth (Mb/s)', scale: 'log' },
  });

/** A panel for each measure, a line for each scheduler. */
function panelsPlot(
  result: DianaResult,
  experiment: Experiment,
  measures: readonly Measure[],
  { name, title, x }: { name: string } & Pick<Plot['chart'], 'title' | 'x'>,
): Plot {
  return {
    name,
    chart: {
      title,
      subtitle: subtitleOf(result),
      kind: 'line',
      x,
      y: { title: 'mean time of a job (s)', scale: 'log' },
      series: measures.flatMap((measure) =>
        THREE.map((scheduler) => ({
          name: LABELS[scheduler],
          panel: MEASURES[measure],
          points: pointsOf(result.cells, experiment, scheduler, measure),
        })),
      ),
      width: 360,
    },
  };
}

function queuesPlot(result: DianaResult): Plot {
  return {
    name: 'diana-queues',
    chart: {
      title: 'With SJF and with the multilevel queues',
      subtitle: subtitleOf(result),
      kind: 'point',
      x: { title: 'time' },
      y: { title: 'mean (s)', scale: 'log' },
      series: SCHEDULERS.map((scheduler) => ({
        name: LABELS[scheduler],
        points: (Object.keys(MEASURES) as Measure[]).flatMap((measure) =>
          pointsOf(result.cells, 'queues', scheduler, measure).map(({ y, error }) => ({
            x: MEASURES[measure],
            y,
            error,
          })),
        ),
      })),
    },
  };
}

const jobsPlot = (result: DianaResult): Plot =>
  growthPlot(result, 'jobs', `jobs on ${SCALE.sites} sites`, 'More jobs');
const sitesPlot = (result: DianaResult): Plot =>
  growthPlot(result, 'sites', `sites, with ${GROWTH.jobsPerSite} jobs for each`, 'More sites');

function growthPlot(result: DianaResult, experiment: 'jobs' | 'sites', x: string, title: string): Plot {
  return {
    name: `diana-${experiment}`,
    chart: {
      title,
      subtitle: subtitleOf(result),
      kind: 'line',
      x: { title: x, scale: 'log' },
      y: { title: 'makespan (s)', scale: 'log' },
      series: THREE.map((scheduler) => ({
        name: LABELS[scheduler],
        points: pointsOf(result.cells, experiment, scheduler, 'makespanS'),
      })),
    },
  };
}
