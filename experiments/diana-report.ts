/** The page of the DIANA experiment. */
import {
  BANDWIDTHS,
  BASELINES,
  type Cell,
  COUNTS,
  type DianaResult,
  GROWTH,
  JOBS,
  QUOTAS,
  RUNS,
  SCALE,
  SCHEDULERS,
  type Scheduler,
} from './diana.js';
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
  'diana-sjf': 'DIANA, local SJF',
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

/** With the comparisons for which it does not hold. */
export interface DianaClaim extends Claim {
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

/** What the paper says of its figures, and whether it holds. */
export function claims({ cells }: DianaResult): DianaClaim[] {
  const table = new Cells(cells);
  const shorter = (claim: string, compared: Comparison[]): DianaClaim => {
    const broken = compared.filter((one) => !isLess(one));
    return { claim, holds: compared.length - broken.length, of: compared.length, broken };
  };
  const plain = (claim: string, holds: boolean): DianaClaim => ({
    claim,
    holds: Number(holds),
    of: 1,
    broken: [],
  });
  const perBaseline = (
    experiment: Experiment,
    xs: readonly number[],
    measure: Measure,
    what: string,
    ours: Scheduler = 'diana',
  ): DianaClaim[] =>
    BASELINES.map((theirs) =>
      shorter(
        `${what}: shorter than ${LABELS[theirs]}`,
        xs.map((x) => table.compare(experiment, x, measure, ours, theirs)),
      ),
    );
  return [
    ...perBaseline('compute', COUNTS, 'queueS', 'compute jobs, time in queues'),
    ...perBaseline('compute', COUNTS, 'executionS', 'compute jobs, execution'),
    ...perBaseline('queues', [JOBS], 'turnaroundS', 'with SJF, turnaround', 'diana-sjf'),
    ...perBaseline('queues', [JOBS], 'turnaroundS', 'with the multilevel queues, turnaround'),
    shorter('the multilevel queues: turnaround shorter than with SJF', [
      table.compare('queues', JOBS, 'turnaroundS', 'diana', 'diana-sjf'),
    ]),
    ...perBaseline('data', BANDWIDTHS, 'executionS', 'data-intensive jobs, execution'),
    ...perBaseline('data', BANDWIDTHS, 'turnaroundS', 'data-intensive jobs, turnaround'),
    ...perBaseline('jobs', SCALE.jobs, 'makespanS', 'more jobs, makespan'),
    ...perBaseline('sites', GROWTH.sites, 'makespanS', 'more sites, makespan'),
    plain(
      `makespan grows with jobs at most as their power ${NEARLY_LINEAR}`,
      table.growth('jobs', SCALE.jobs, 'diana').mean <= NEARLY_LINEAR,
    ),
    plain(
      'round robin grows more steeply with sites than most FLOPS',
      table.growth('sites', GROWTH.sites, 'round-robin').mean >
        table.growth('sites', GROWTH.sites, 'most-flops').mean,
    ),
  ];
}

/** Everything as a page. */
export function dianaReport(result: DianaResult): Report {
  const { seed, runs } = result;
  const table = new Cells(result.cells);
  const made = claims(result);
  const verdict = verdictOf(made);
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
  const dataCells = result.cells.filter(({ experiment }) => experiment === 'data');
  const times = Object.values(MEASURES);
  const text = [
    '# DIANA: data intensive and network aware scheduling',
    '',
    `${commandOf('diana', seed, runs, RUNS)} made this page: ${runs} runs for each row, every scheduler on the same grids and jobs. Values are means`,
    'over the runs ± the standard error, in seconds: "queue" from submission to start, in whatever queues; "execution" from there',
    'to the end, with bringing and returning data; "turnaround" is both. One value is taken for shorter than another where the',
    'mean of their differences, run by run, is more than two standard errors away from 0.',
    '',
    'The paper shows its results as figures without numbers in the text, so what is compared is what it says of them. It tells',
    'neither how strong its nodes are nor what its networks do; the head of `experiments/diana.ts` says what is',
    "drawn here. Limits, thresholds and penalties are the default policy's; none was changed after looking.",
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
    'Turnaround by the quota of the user, who have as many jobs each:',
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
    'The power with which the makespan grows:',
    '',
    markdownTable(
      ['scheduler', 'of the jobs', 'of the sites'],
      (['diana', ...BASELINES] as const).map((scheduler) => [
        LABELS[scheduler],
        plusMinus(table.growth('jobs', SCALE.jobs, scheduler), 2),
        plusMinus(table.growth('sites', GROWTH.sites, scheduler), 2),
      ]),
    ),
    '',
    '## What the paper leads one to expect',
    '',
    claimsTable(made),
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
  return { name: 'diana', text, data: result, verdict, plots };
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
      '* Execution against most FLOPS: that one runs everything at the site with the most power, whose nodes are mostly the fastest.',
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
      '* The multilevel queues against SJF: shortest first is the order with the least mean. The multilevel queues serve users by their quotas, and',
      `  only inside one user the jobs of few processors first: with the quotas ${QUOTAS[0]} and ${QUOTAS[last]} jobs take ${of('diana', 0)} and ${of('diana', last)} s, with local SJF`,
      `  ${of('diana-sjf', 0)} and ${of('diana-sjf', last)} s.`,
    );
  }
  if (isBroken({ experiment: 'sites', x: GROWTH.sites[0], theirs: 'round-robin' })) {
    lines.push(
      `* Makespan at ${GROWTH.sites[0]} sites: a node runs five or six of the ${GROWTH.sites[0] * GROWTH.jobsPerSite} jobs, and the last of all decides. DIANA is ahead on average, by less than two`,
      '  standard errors.',
    );
  }
  const steepness = (scheduler: Scheduler): number => table.growth('sites', GROWTH.sites, scheduler).mean;
  if (steepness('round-robin') <= steepness('most-flops')) {
    lines.push(
      '* The steepest is most FLOPS, not round robin: as in diana.md it looks at power alone, so that one site gets all jobs, however many there are.',
      "  The paper's takes the most powerful machine that is available. Round robin grows like DIANA because all sites have about as many nodes;",
      '  it is later, because its makespan is that of the slowest site.',
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
      `* DIANA's makespan is longest at ${at} Mb/s, not at ${BANDWIDTHS[0]}. That comes from few runs; the longest took ${(runs[worst] as Times).makespanS.toFixed(0)} s, with ${away.toFixed(1)} % of its jobs away from`,
      '  their data. The cost of waiting, as in diana.md, counts what the jobs ahead compute, not what they bring: a strong site with few',
      '  datasets goes on looking cheap while its nodes are full of transfers. At lower bandwidth hardly a job is worth moving, at higher',
      '  ones transfers are short.',
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
