/** The page of the job-ratio experiment. */
import { type Contrast, contrast, isLess } from './grids.js';
import {
  ARRIVALS,
  type Arrival,
  BASELINES,
  type JobRatioResult,
  KNOWLEDGE,
  OWN_QUEUE_LIMIT,
  type Placements,
  QUEUE_LIMIT,
  RUNS,
  SCHEDULERS,
  type Scheduler,
  TABLE_1,
  TABLE_2,
  type TYPES,
  WORKLOADS,
  type WorkloadName,
} from './job-ratio.js';
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

type Measure = 'turnaroundS' | 'makespanS';
type Type = (typeof TYPES)[number];

const LABELS: Readonly<Record<Scheduler, string>> = {
  'job-ratio': 'job-ratio, warmed',
  cold: 'job-ratio, cold',
  half: 'job-ratio, 1/2 : 1/2',
  'own-limit': `job-ratio, warmed, queues of ${OWN_QUEUE_LIMIT}`,
  'own-half': `job-ratio, 1/2 : 1/2, queues of ${OWN_QUEUE_LIMIT}`,
  'round-robin': 'round robin',
  random: 'random',
  'most-flops': 'most FLOPS',
};
const SHIFTED: readonly { type: Type; of: keyof Placements; up: boolean; what: string }[] = [
  { type: 'computing', of: 'computation', up: true, what: 'computing jobs: share of computation thought' },
  { type: 'reading', of: 'computation', up: false, what: 'reading jobs: share of computation thought' },
  {
    type: 'computing',
    of: 'atMostPower',
    up: true,
    what: 'computing jobs that go to the site with the most power',
  },
  { type: 'reading', of: 'atData', up: true, what: 'reading jobs that go where their data is' },
];

/** One scheduler's times against another's, on the same runs. */
export interface Comparison extends Contrast {
  workload: WorkloadName;
  arrival: Arrival;
  against: Scheduler;
  measure: Measure;
}

/** job-ratio against the baselines and against itself without a ratio. Makespans are compared where all jobs come at once. */
export function comparisons(
  { cells }: JobRatioResult,
  ours: 'job-ratio' | 'cold' | 'own-limit' = 'job-ratio',
): Comparison[] {
  const runs = (workload: WorkloadName, arrival: Arrival, scheduler: Scheduler, measure: Measure): number[] =>
    cells
      .filter((c) => c.workload === workload && c.arrival === arrival && c.scheduler === scheduler)
      .flatMap((cell) => cell.runs.map((times) => times[measure]));
  return WORKLOADS.flatMap((workload) =>
    ARRIVALS.flatMap((arrival) =>
      (arrival === 'at once' ? (['turnaroundS', 'makespanS'] as const) : (['turnaroundS'] as const)).flatMap(
        (measure) =>
          [...BASELINES, ours === 'own-limit' ? ('own-half' as const) : ('half' as const)].map((against) => ({
            workload,
            arrival,
            against,
            measure,
            ...contrast(runs(workload, arrival, ours, measure), runs(workload, arrival, against, measure)),
          })),
      ),
    ),
  );
}

const count = (
  compared: readonly Comparison[],
  claim: string,
  of: (comparison: Comparison) => boolean,
): Claim => {
  const chosen = compared.filter(of);
  return { claim, holds: chosen.filter(isLess).length, of: chosen.length };
};
const isHalf = (scheduler: Scheduler): boolean => scheduler === 'half' || scheduler === 'own-half';
const shorterThanBaselines = ({ against, measure }: Comparison): boolean =>
  !isHalf(against) && measure === 'turnaroundS';
const shorterThanHalf = ({ against, measure }: Comparison): boolean =>
  isHalf(against) && measure === 'turnaroundS';

/** What the paper claims, and whether it holds: its tables, and that the ratio, from a history file, shortens turnaround. */
export function claims(result: JobRatioResult): Claim[] {
  const compared = comparisons(result);
  const tables = TABLE_2.filter(({ batch }, i) => String(batch) === String(result.batches[i])).length;
  return [
    { claim: 'Table 2 from Table 1, batch by batch', holds: tables, of: TABLE_2.length },
    count(compared, 'turnaround shorter than a baseline', shorterThanBaselines),
    count(compared, 'turnaround shorter than without the ratio', shorterThanHalf),
  ];
}

/** What we compare beyond the paper. */
export function beyond(result: JobRatioResult): Claim[] {
  const cold = comparisons(result, 'cold');
  const own = comparisons(result, 'own-limit');
  return [
    count(
      comparisons(result),
      'makespan shorter than a baseline, all jobs at once',
      ({ against, measure }) => against !== 'half' && measure === 'makespanS',
    ),
    count(cold, 'cold: turnaround shorter than a baseline', shorterThanBaselines),
    count(cold, 'cold: turnaround shorter than without the ratio', shorterThanHalf),
    count(own, `queues of ${OWN_QUEUE_LIMIT}: turnaround shorter than a baseline`, shorterThanBaselines),
    count(own, `queues of ${OWN_QUEUE_LIMIT}: turnaround shorter than without the ratio`, shorterThanHalf),
    {
      claim: 'placements shift as history is learned',
      holds: shifts(result).filter(({ holds }) => holds).length,
      of: SHIFTED.length,
    },
  ];
}

interface ShiftRow {
  what: string;
  first: number;
  last: number;
  change: Contrast;
  holds: boolean;
}

/** The first block of the stream against the last quarter of it. */
function shifts({ change: { first: before, last: after } }: JobRatioResult): ShiftRow[] {
  return SHIFTED.map(({ type, of, up, what }) => {
    const first = before[type].map((placements) => placements[of]);
    const last = after[type].map((placements) => placements[of]);
    const change = contrast(last, first);
    return {
      what,
      first: meanAndError(first).mean,
      last: meanAndError(last).mean,
      change,
      holds: isLess(up ? { ...change, difference: -change.difference } : change),
    };
  });
}

const percent = (part: number): string => (100 * part).toFixed(0);

/** Everything as a page. */
export function jobRatioReport(result: JobRatioResult): Report {
  const { seed, runs, jobs, batches, cells, limits } = result;
  const made = claims(result);
  const verdict = verdictOf(made);
  const plots = [turnaroundPlot(result), shiftPlot(result)] as const;
  const broken = comparisons(result).filter((one) => !isLess(one));
  const text = [
    '# JBMS: scheduling by the job ratio',
    '',
    `${commandOf('job-ratio', seed, runs, RUNS)} made this page: ${runs} runs of ${jobs} jobs for each row, every scheduler on the same`,
    'grids and jobs; values are means over the runs ± the standard error, in seconds. One value counts as shorter than another',
    'if the mean of their differences, run by run, is more than two standard errors away from 0.',
    '',
    'The paper gives no measurements, only its two tables and the claim that the job ratio shortens turnaround. The grids and',
    'the jobs are ours; the head of `experiments/job-ratio.ts` says how they are drawn.',
    '',
    '## Tables 1 and 2',
    '',
    markdownTable(
      ['job', 'sites, best first'],
      TABLE_1.map((ranked, i) => [`J${i + 1}`, ranked.join(' ')]),
    ),
    '',
    markdownTable(
      ['site', 'room', 'batch in the paper', 'ours'],
      TABLE_2.map(({ room, batch }, i) => [
        String(i + 1),
        String(room),
        jobNames(batch),
        jobNames(batches[i] as number[]),
      ]),
    ),
    '',
    '## Turnaround',
    '',
    `Queues at sites hold ${QUEUE_LIMIT} jobs under job-ratio, or ${OWN_QUEUE_LIMIT} where stated: the default of the policy. "Warmed" starts with the history of`,
    'another stream of the same applications, as in the paper; "cold" with none, which is our addition; "1/2 : 1/2" does not learn: the',
    'ratio is the same for every job.',
    '',
    markdownTable(
      ['jobs', 'come', 'scheduler', 'in queues', 'execution', 'turnaround', 'makespan'],
      cells.map(({ workload, arrival, scheduler, runs: times }) => [
        workload,
        arrival,
        LABELS[scheduler],
        ...(['queueS', 'executionS', 'turnaroundS', 'makespanS'] as const).map((measure) =>
          plusMinus(meanAndError(times.map((one) => one[measure]))),
        ),
      ]),
    ),
    '',
    plotLink(plots[0]),
    '',
    ...(broken.length === 0
      ? []
      : [
          'Not shorter:',
          '',
          markdownTable(
            ['jobs', 'come', 'measure', 'against', 'job-ratio minus other'],
            broken.map(({ workload, arrival, measure, against, difference, error }) => [
              workload,
              arrival,
              measure === 'turnaroundS' ? 'turnaround' : 'makespan',
              LABELS[against],
              plusMinus({ mean: difference, error }),
            ]),
          ),
          '',
          ...unchanged(broken),
          ...costly(broken),
        ]),
    '## What history changes',
    '',
    'The mixed jobs over time. At first nothing is known of any application, and each job counts as half computation. "First" are',
    `the first ${result.shift.learning[0]?.to} of the ${jobs} jobs, "last" the last quarter of them.`,
    '',
    markdownTable(
      ['', 'first, %', 'last, %', 'change, %', 'as expected'],
      shifts(result).map(({ what, first, last, change, holds }) => [
        what,
        percent(first),
        percent(last),
        plusMinus({ mean: 100 * change.difference, error: 100 * change.error }),
        holds ? 'yes' : 'no',
      ]),
    ),
    '',
    plotLink(plots[1]),
    '',
    '## The limit of the queues',
    '',
    `The paper does not say how long its queues are. ${QUEUE_LIMIT} was chosen before these numbers were known: mixed jobs, all at once.`,
    '',
    markdownTable(
      ['limit', 'turnaround'],
      limits.map(({ queueLimit, turnaroundS }) => [String(queueLimit), plusMinus(meanAndError(turnaroundS))]),
    ),
    '',
    'A short queue is full whenever a job is placed, so the job goes to the one site that has just got room, wherever its',
    'data is; a long one leaves the choice to the ranks.',
    '',
    '## What the paper claims',
    '',
    claimsTable(made),
    '',
    '## What we compare beyond',
    '',
    claimsTable(beyond(result)),
    '',
    verdict,
    '',
  ].join('\n');
  return { name: 'job-ratio', text, data: result, verdict, plots };
}

/** Why a difference may be 0 in every run. */
function unchanged(broken: readonly Comparison[]): string[] {
  const same = broken.some((one) => one.against === 'half' && one.difference === 0 && one.error === 0);
  if (!same) return [];
  return [
    'A difference of 0 ± 0 means that the ratio decided nothing: when all jobs come at once, every queue is filled before the first',
    'run has ended and the history has begun, and from then on a job goes to the one site that has room, whatever the ranks.',
    '',
  ];
}

/** Why the ratio can cost jobs that compute a little. */
function costly(broken: readonly Comparison[]): string[] {
  const slower = broken.filter(
    ({ workload, against, difference, error }) =>
      workload === 'computing' && against === 'half' && difference > 2 * error,
  );
  if (slower.length === 0) return [];
  return [
    'The rank can delay computing jobs a little: with a ratio near 1 : 0 it is little more than PPR + QR. Both lie between 0 and 1 whatever',
    'the load, so a powerful site with a somewhat longer queue still ranks first, and data transfers do not count',
    'although they take time. At 1/2 : 1/2 the queue has more weight relative to power, and data has some. This is how the paper defines it.',
    '',
  ];
}

const jobNames = (jobs: readonly number[]): string => jobs.map((job) => `J${job}`).join(' ');

function turnaroundPlot({ cells, runs }: JobRatioResult): Plot {
  return {
    name: 'job-ratio-turnaround',
    chart: {
      title: 'Mean turnaround',
      subtitle: [`Mean and standard error of ${runs} runs.`],
      kind: 'point',
      x: { title: 'jobs' },
      y: { title: 'mean time from submission to end (s)', scale: 'log' },
      series: ARRIVALS.flatMap((arrival) =>
        SCHEDULERS.map((scheduler) => ({
          name: LABELS[scheduler],
          panel: arrival,
          points: cells
            .filter((cell) => cell.arrival === arrival && cell.scheduler === scheduler)
            .map(({ workload, runs: times }) => {
              const { mean, error } = meanAndError(times.map(({ turnaroundS }) => turnaroundS));
              return { x: workload, y: mean, error };
            }),
        })),
      ),
      width: 360,
    },
  };
}

function shiftPlot({ shift }: JobRatioResult): Plot {
  return {
    name: 'job-ratio-shift',
    chart: {
      title: 'Placements as history is learned',
      subtitle: ['Mixed jobs over time; each point is the mean of a part of the stream.'],
      kind: 'line',
      x: { title: 'jobs submitted before' },
      y: { title: '%' },
      series: SHIFTED.flatMap(({ type, of, what }) =>
        KNOWLEDGE.map((knowledge) => ({
          name: `history: ${knowledge}`,
          panel: what,
          points: shift[knowledge].map(({ from, byType }) => {
            const { mean, error } = byType[type][of];
            return { x: from - 1, y: 100 * mean, error: 100 * error };
          }),
        })),
      ),
      width: 420,
      height: 220,
    },
  };
}
