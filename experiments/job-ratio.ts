/**
 * AL-Khateeb, Abdullah, Abdul Rashid: deciding by the type of a job (JBMS). The paper measures nothing: it shows how its batcher
 * makes Table 2 of Table 1, and claims that the job ratio shortens turnaround. The table comes out here as it is there; the
 * claim is measured, on jobs that compute, jobs that read, and both, against schedulers that know of no ratio.
 *
 * Decisions, where the paper is silent: five sites, as in its tables, of 4 to 8 nodes; a node has one CPU, those of a site have
 * the same power, 1 to 4; links have 10 to 1000 Mb/s, evenly in the logarithm. Ten applications, five of each type, are used
 * by five users, who declare nothing. A computing job computes 5 to 15 minutes and reads 100 MB; a reading one computes 30
 * to 90 s and reads 10 GB. Each application reads a dataset of its own, which lies at one or two sites and is read there at
 * 100 MB/s. All jobs come at once, or over time, at half the rate that the sites could serve if each job ran where its data
 * is. Sites run first come, first served.
 */
import { Batcher } from '../src/core/dispatch/job-ratio/batches.js';
import { type Dataset, jobData, type Policy, RandomStream, type RunTotals } from '../src/core/index.js';
import { runSimulation, type World } from '../src/simulator/engine.js';
import type { Sink } from '../src/simulator/sink.js';
import type { SimJob } from '../src/simulator/workload.js';
import {
  documentWith,
  gridOf,
  linksBetween,
  logUniform,
  MBIT,
  rootJob,
  type SiteShape,
  type Times,
  TimesSink,
} from './grids.js';
import { meanAndError } from './santoso.js';

type MeanAndError = ReturnType<typeof meanAndError>;

export const WORKLOADS = ['computing', 'reading', 'mixed'] as const;
export type WorkloadName = (typeof WORKLOADS)[number];
export const ARRIVALS = ['at once', 'over time'] as const;
export type Arrival = (typeof ARRIVALS)[number];

/**
 * `job-ratio` begins with a history, as the paper has it, which another stream of the same applications has taught; `cold` with none;
 * `half` learns nothing, so that every job's ratio is 1/2 : 1/2. `own-limit` and `own-half` are the same, warmed and with nothing learned, with the
 * limit of queues that the product has by default.
 */
export const SCHEDULERS = [
  'job-ratio',
  'cold',
  'half',
  'own-limit',
  'own-half',
  'round-robin',
  'random',
  'most-flops',
] as const;
export type Scheduler = (typeof SCHEDULERS)[number];
export const BASELINES = ['round-robin', 'random', 'most-flops'] as const;

/** Jobs in a site's queue at most, the paper's queue length. */
export const QUEUE_LIMIT = 10;
/** The default of the policy. */
export const OWN_QUEUE_LIMIT = ownQueueLimit();
/** Others that the mixed workload is tried with, all at once. */
export const QUEUE_LIMITS = [1, 3, 10, 30, 100] as const;

export const RUNS = 20;
export const JOBS = 600;
/** Parts of the stream that the shift of placements is told for. */
export const BLOCKS = 24;
const SITES = 5;
const APPLICATIONS_OF_A_TYPE = 5;
const USERS = 5;
/** Megabytes a second from the disk of the site. */
const DISK_MB_S = 100;
const LOAD = 0.5;
export const TYPES = ['computing', 'reading'] as const;
type Type = (typeof TYPES)[number];
const SHAPES = {
  computing: { leastS: 300, mostS: 900, sandboxMb: 100 },
  reading: { leastS: 30, mostS: 90, sandboxMb: 10_000 },
} as const;

/** The paper's Table 1: for each job the sites, best first. */
export const TABLE_1 = [
  [1, 5, 4, 2, 3],
  [3, 4, 5, 1, 2],
  [2, 1, 5, 4, 3],
  [5, 3, 1, 2, 4],
  [4, 1, 3, 2, 5],
  [2, 4, 1, 5, 3],
  [3, 1, 5, 4, 2],
  [1, 4, 3, 2, 5],
  [5, 4, 3, 1, 2],
  [2, 1, 4, 3, 5],
] as const;
/** Its Table 2: for each site, how many more jobs it can have, and those it gets. */
export const TABLE_2 = [
  { room: 2, batch: [1, 8] },
  { room: 1, batch: [3] },
  { room: 3, batch: [2, 7, 10] },
  { room: 2, batch: [5, 6] },
  { room: 2, batch: [4, 9] },
] as const;

/** What the core's batcher makes of Table 1: for each site the jobs that it gets. */
export function batchesOfTable1(): number[][] {
  const batcher = new Batcher(TABLE_2.map(({ room }) => room));
  const batches: number[][] = TABLE_2.map(() => []);
  TABLE_1.forEach((ranked, i) => {
    const site = batcher.siteFor(ranked.map((id) => id - 1));
    batcher.take(site);
    batches[site]?.push(i + 1);
  });
  return batches;
}

interface Application {
  name: string;
  type: Type;
  dataset: Dataset;
}

/** What a run is made of. */
export interface Setting {
  world: World;
  applications: Application[];
}

/** What a stream of its own, as long as those that are measured, has taught of a setting's applications. */
export function warmedHistory(seed: number, run: number, setting: Setting, count: number): RunTotals[] {
  const jobs = jobsOf(seed, run, setting, 'mixed', 'over time', count, 'before');
  const policy = documentOf('job-ratio', seed + run, QUEUE_LIMIT);
  return runSimulation(setting.world, jobs, { policy, eventOrder: 'batch' }, []).totals;
}

/** The grid, the data and the applications of a run: the same for every workload and scheduler. */
export function settingOf(seed: number, run: number): Setting {
  const random = new RandomStream(seed, `job-ratio-grid-${run}`);
  const shapes = Array.from(
    { length: SITES },
    (): SiteShape => ({ nodes: random.integer(4, 8), cpusPerNode: 1, power: random.uniform(1, 4) }),
  );
  const links = linksBetween(SITES, () => ({
    bandwidthMbPerS: MBIT * logUniform(random, 10, 1000),
    rttS: 0.05,
    loss: 0,
  }));
  const applications = TYPES.flatMap((type, t) =>
    Array.from({ length: APPLICATIONS_OF_A_TYPE }, (_, i): Application => {
      const siteIds = new Set([random.integer(1, SITES), random.integer(1, SITES)]);
      const dataset = {
        id: t * APPLICATIONS_OF_A_TYPE + i + 1,
        sizeMb: SHAPES[type].sandboxMb,
        siteIds: [...siteIds].sort((a, b) => a - b),
      };
      return { name: `${type}-${i + 1}`, type, dataset };
    }),
  );
  const datasets = applications.map(({ dataset }) => dataset);
  return { world: { ...gridOf(shapes), links, datasets }, applications };
}

/** The jobs of a run: the same for every scheduler. */
export function jobsOf(
  seed: number,
  run: number,
  { applications, world: { machines } }: Setting,
  workload: WorkloadName,
  arrival: Arrival,
  count: number,
  stream: string = workload,
): SimJob[] {
  const random = new RandomStream(seed, `job-ratio-jobs-${stream}-${run}`);
  const arrivals = new RandomStream(seed, `job-ratio-arrivals-${stream}-${run}`);
  const used = applications.filter(({ type }) => workload === 'mixed' || type === workload);
  const drawn = Array.from({ length: count }, () => {
    const { name, type, dataset } = used[random.integer(0, used.length - 1)] as Application;
    return {
      application: name,
      userId: random.integer(1, USERS),
      runS: random.uniform(SHAPES[type].leastS, SHAPES[type].mostS),
      ioS: dataset.sizeMb / DISK_MB_S,
      data: jobData({ inputs: [{ datasetId: dataset.id }] }),
    };
  });
  const meanPower = machines.reduce((sum, { benchmark }) => sum + benchmark / machines.length, 0);
  const meanS = drawn.reduce((sum, { runS, ioS }) => sum + (runS / meanPower + ioS) / count, 0);
  const interArrival = arrival === 'at once' ? 0 : meanS / (machines.length * LOAD);
  let submit = 0;
  return drawn.map((job, i) => {
    if (interArrival > 0) submit += arrivals.exponential(interArrival);
    return rootJob(i + 1, { ...job, submittedAt: submit });
  });
}

/** Of one workload, arrival and scheduler: the times of each run. */
export interface Cell {
  workload: WorkloadName;
  arrival: Arrival;
  scheduler: Scheduler;
  runs: Times[];
}

/** Of the mixed workload over time: where jobs went in one part of the stream. */
export interface Block {
  /** The first and the last job, by their place in the stream. */
  from: number;
  to: number;
  byType: Record<Type, Record<keyof Placements, MeanAndError>>;
}

/** Of the jobs of one type in one part of the stream; parts of 1, NaN where there are no such jobs. */
export interface Placements {
  /** What was thought to be computation in their time, on average. */
  computation: number;
  /** Of the jobs: those that went where their data is. */
  atData: number;
  /** Of the jobs: those that went to the site with the most power. */
  atMostPower: number;
}

/** While history is learned: the first block and the last quarter of the stream, run by run. */
export type Change = Record<'first' | 'last', Record<Type, Placements[]>>;

/** Turnarounds, run by run, at a limit of the queues. */
export interface LimitRow {
  queueLimit: number;
  turnaroundS: number[];
}

export interface JobRatioResult {
  seed: number;
  runs: number;
  jobs: number;
  batches: number[][];
  cells: Cell[];
  limits: LimitRow[];
  /** Where the history is empty at first; where it begins with what the same stream has taught before; where nothing is learned. */
  shift: Record<Knowledge, Block[]>;
  change: Change;
}

export const KNOWLEDGE = ['learning', 'learned before', 'none'] as const;
export type Knowledge = (typeof KNOWLEDGE)[number];

/** The whole experiment. `onProgress` is told how many of the runs are done. */
export function jobRatio(
  seed: number,
  onProgress: (done: number, all: number) => void = () => {},
  runs = RUNS,
  jobs = JOBS,
): JobRatioResult {
  const perRun = WORKLOADS.length * ARRIVALS.length * SCHEDULERS.length + QUEUE_LIMITS.length + 1;
  const settings = Array.from({ length: runs }, (_, run) => settingOf(seed, run));
  const histories = settings.map((setting, run) => warmedHistory(seed, run, setting, jobs));
  let done = 0;
  const eachRun = <T>(simulate: (setting: Setting, run: number) => T): T[] =>
    settings.map((setting, run) => {
      const result = simulate(setting, run);
      onProgress(++done, perRun * runs);
      return result;
    });
  const cells = WORKLOADS.flatMap((workload) =>
    ARRIVALS.flatMap((arrival) =>
      SCHEDULERS.map((scheduler) => ({
        workload,
        arrival,
        scheduler,
        runs: eachRun((setting, run) =>
          simulate(
            setting,
            jobsOf(seed, run, setting, workload, arrival, jobs),
            scheduler,
            seed + run,
            isWarmed(scheduler) ? histories[run] : [],
            isOwn(scheduler) ? OWN_QUEUE_LIMIT : QUEUE_LIMIT,
          ),
        ),
      })),
    ),
  );
  const limits = QUEUE_LIMITS.map((queueLimit) => ({
    queueLimit,
    turnaroundS: eachRun((setting, run) => {
      const stream = jobsOf(seed, run, setting, 'mixed', 'at once', jobs);
      return simulate(setting, stream, 'job-ratio', seed + run, histories[run], queueLimit).turnaroundS;
    }),
  }));
  const shifts = eachRun((setting, run) =>
    shiftOf(setting, jobsOf(seed, run, setting, 'mixed', 'over time', jobs)),
  );
  const shift = Object.fromEntries(
    KNOWLEDGE.map((knowledge) => [
      knowledge,
      blocksOf(
        shifts.map((one) => one[knowledge]),
        jobs,
      ),
    ]),
  ) as JobRatioResult['shift'];
  const change = changeOf(shifts.map(({ learning }) => learning));
  return { seed, runs, jobs, batches: batchesOfTable1(), cells, limits, shift, change };
}

const isWarmed = (scheduler: Scheduler): boolean => scheduler === 'job-ratio' || scheduler === 'own-limit';
const isOwn = (scheduler: Scheduler): boolean => scheduler === 'own-limit' || scheduler === 'own-half';
const isHalf = (scheduler: Scheduler): boolean => scheduler === 'half' || scheduler === 'own-half';

function ownQueueLimit(): number {
  const { dispatch } = documentWith({ kind: 'job-ratio' }, { kind: 'fcfs' });
  return dispatch.kind === 'job-ratio' ? dispatch.queueLimit : Number.NaN;
}

function documentOf(scheduler: Scheduler, seed: number, queueLimit: number): Policy {
  const isBaseline = (BASELINES as readonly Scheduler[]).includes(scheduler);
  const kind = isBaseline ? scheduler : 'job-ratio';
  const limit = kind === 'job-ratio' ? { queueLimit } : {};
  return { ...documentWith({ kind, ...limit }, { kind: 'fcfs' }), seed };
}

function simulate(
  { world }: Setting,
  jobs: readonly SimJob[],
  scheduler: Scheduler,
  seed: number,
  totals: readonly RunTotals[] = [],
  queueLimit = QUEUE_LIMIT,
): Times {
  const times = new TimesSink(jobs);
  const policy = documentOf(scheduler, seed, queueLimit);
  const options = { policy, eventOrder: 'batch', learn: !isHalf(scheduler) } as const;
  runSimulation({ ...world, totals }, jobs, options, [times]);
  return times.times();
}

/** By type, then by block. */
type Shift = Record<Type, Placements[]>;

/** The stream three times: as it comes, with what it has taught, and without learning. */
function shiftOf(setting: Setting, jobs: readonly SimJob[]): Record<Knowledge, Shift> {
  const learning = placementsOf(setting, jobs, true);
  const { shift: before } = placementsOf(setting, jobs, true, learning.totals);
  const { shift: none } = placementsOf(setting, jobs, false);
  return { learning: learning.shift, 'learned before': before, none };
}

function placementsOf(
  { world, applications }: Setting,
  jobs: readonly SimJob[],
  learn: boolean,
  totals: readonly RunTotals[] = [],
): { shift: Shift; totals: RunTotals[] } {
  const byName = new Map(applications.map((application) => [application.name, application]));
  const strongest = siteOfMostPower(world);
  const sums = byType(() =>
    Array.from({ length: BLOCKS }, () => ({ jobs: 0, computation: 0, atData: 0, atMostPower: 0 })),
  );
  const moves: Sink = {
    moved({ jobId, to, explanation }) {
      const { application } = (jobs[jobId - 1] as SimJob).job;
      const { type, dataset } = byName.get(application) as Application;
      const sum = sums[type][blockOf(jobId - 1, jobs.length)] as (typeof sums)[Type][number];
      sum.jobs++;
      sum.computation += explanation.priorityTerms?.computation as number;
      if (dataset.siteIds.includes(to as number)) sum.atData++;
      if (to === strongest) sum.atMostPower++;
    },
  };
  const policy = documentOf('job-ratio', 1, QUEUE_LIMIT);
  const outcome = runSimulation({ ...world, totals }, jobs, { policy, eventOrder: 'batch', learn }, [moves]);
  const shift = byType((type) =>
    sums[type].map((sum) => placements((of) => (sum.jobs === 0 ? Number.NaN : sum[of] / sum.jobs))),
  );
  return { shift, totals: outcome.totals };
}

const blockOf = (index: number, jobs: number): number => Math.floor((index * BLOCKS) / jobs);

function blocksOf(shifts: readonly Shift[], jobs: number): Block[] {
  return Array.from({ length: BLOCKS }, (_, block) => ({
    from: Math.ceil((block * jobs) / BLOCKS) + 1,
    to: Math.ceil(((block + 1) * jobs) / BLOCKS),
    byType: byType((type) => {
      const inRuns = shifts.map((shift) => shift[type][block] as Placements);
      return placements((of) => meanAndError(known(inRuns, of)));
    }),
  }));
}

function changeOf(shifts: readonly Shift[]): Change {
  const over = (from: number, to?: number): Record<Type, Placements[]> =>
    byType((type) =>
      shifts.map((shift) => {
        const blocks = shift[type].slice(from, to);
        return placements((of) => meanAndError(known(blocks, of)).mean);
      }),
    );
  return { first: over(0, 1), last: over(-BLOCKS / 4) };
}

/** Without those of no jobs. */
const known = (all: readonly Placements[], of: keyof Placements): number[] =>
  all.map((one) => one[of]).filter((value) => !Number.isNaN(value));

const byType = <T>(of: (type: Type) => T): Record<Type, T> => ({
  computing: of('computing'),
  reading: of('reading'),
});

const placements = <T>(each: (of: keyof Placements) => T): Record<keyof Placements, T> => ({
  computation: each('computation'),
  atData: each('atData'),
  atMostPower: each('atMostPower'),
});

function siteOfMostPower({ machines }: World): number {
  const powers = new Map<number, number>();
  for (const { siteId, cpus, benchmark } of machines)
    powers.set(siteId, (powers.get(siteId) ?? 0) + cpus * benchmark);
  return [...powers].reduce((most, one) => (one[1] > most[1] ? one : most))[0];
}
