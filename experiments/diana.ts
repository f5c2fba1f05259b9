/**
 * Anjum et al., section 8: DIANA against a round-robin meta-scheduler and a greedy one that takes the most FLOPS, on five sites of
 * 4, 5, 5, 5 and 5 nodes: 1000 compute jobs, the same with shortest job first and with the multilevel queues, data-intensive
 * jobs as bandwidth grows, and time as sites and jobs grow.
 *
 * Decisions, where the paper is silent: the nodes of a site have the same power, 1 to 3; links have 10 to 1000 Mb/s, evenly in
 * the logarithm, round trips of 10 to 200 ms and lose up to 2 %. Jobs come all at once, in groups of 100 from one site each,
 * with a sandbox and an output of 1 MB; estimates are right; sites run first come, first served.
 *
 *   compute    one processor, 60 to 180 s on power 1; nodes have one processor
 *   queues     the paper's prime counters, which ask for 8, 17, 26 or 35 processors: five nodes of one have fewer, so nodes have 16
 *              here. Counting primes up to n by trial division takes about n^1.5/ln n steps, shared by the processors; the
 *              smallest takes 10 s on power 1. Five users, whose quotas differ
 *   data       10 GB from one of 20 datasets, each at one or two sites, and 300 to 600 s on power 1; all links alike
 *   scale      3 MFLOP and 1 MB, on nodes of 1 to 3 MFLOPS: more jobs on 20 sites, and more sites with 25 jobs each
 *   kinds      (beyond the paper) bulks of 25 jobs of one kind, computational (60 to 180 s on power 1), data intensive (10 GB, 5 to 15 s) or
 *              both (2 GB, 60 to 180 s), declared as such, come every 50 s on average, faster than they can be served; every other bulk
 *              says that it takes three times as long as it does, so that sites are done at other times than planned
 *   misjudged  (sections 6 and 7: loads that evolve otherwise than planned) bulks as those, all computational with 1 MB, of which every
 *              other one says that it takes thirty times as long as it does
 *
 * The weights of the costs and the rule of migration were chosen by `diana-study.ts`, on runs of seeds that nothing else uses.
 */
import {
  jobData,
  type Link,
  type LocalPolicy,
  type Move,
  type Policy,
  RandomStream,
  type Run,
} from '../src/core/index.js';
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
  type Times,
  TimesSink,
} from './grids.js';

/**
 * `diana-meta-sjf`: DIANA with the fewest processors first in its meta-queues (section 8.2). `diana-sjf`: with local queues that take all,
 * shortest first. `sjf`: one queue for the grid, shortest first.
 */
export const SCHEDULERS = [
  'diana',
  'diana-meta-sjf',
  'diana-sjf',
  'sjf',
  'round-robin',
  'most-flops',
] as const;
/**
 * `diana-kinds`: weights by kind of job, where the default has the same for all. `diana-stay`: no site is ever congested, and nothing is
 * exported. `diana-paper-rule`: the paper's own words for who may leave. `diana-origin`: the site of submission first (section 2).
 */
export const KINDS_SCHEDULERS = [
  'diana',
  'diana-kinds',
  'diana-stay',
  'diana-paper-rule',
  'diana-origin',
  'round-robin',
  'most-flops',
] as const;
const MISJUDGED_SCHEDULERS = [
  'diana',
  'diana-stay',
  'diana-paper-rule',
  'diana-origin',
  'round-robin',
] as const;
export type Scheduler = (typeof SCHEDULERS)[number] | (typeof KINDS_SCHEDULERS)[number];
export const BASELINES = ['round-robin', 'most-flops'] as const;
const BOTH: readonly Scheduler[] = ['diana', ...BASELINES];

export const RUNS = 15;
export const JOBS = 1000;
const GROUP = 100;
/** Jobs of the first experiment, all at once. */
export const COUNTS = [100, 250, 500, 1000] as const;
/** Mb/s of all links of the third. */
export const BANDWIDTHS = [10, 30, 100, 300, 1000] as const;
/** Of the fourth. */
export const SCALE = { sites: 20, jobs: [250, 500, 1000, 2000] } as const;
export const GROWTH = { jobsPerSite: 25, sites: [5, 10, 20, 40] } as const;

const SITES = 5;
export const QUOTAS = [1900, 1700, 1000, 500, 200];
/** The paper's kinds of job: processors, and the number up to which primes are counted. */
const PRIMES = [
  { processors: 8, upTo: 19_999 },
  { processors: 17, upTo: 99_999 },
  { processors: 26, upTo: 444_444 },
  { processors: 35, upTo: 555_555 },
];
const SHORTEST_S = 10;

/** Weights (network, computation, data) of computational jobs, of data-intensive ones and of both. */
export function weightsOf(
  computational: readonly number[],
  dataIntensive: readonly number[] = computational,
  both: readonly number[] = computational,
): object {
  const named = ([network, computation, data]: readonly number[]) => ({ network, computation, data });
  return { computational: named(computational), dataIntensive: named(dataIntensive), both: named(both) };
}
/** Section 5's order by kind, as the specification gives it. */
export const SPECIFIED = weightsOf([1, 1, 0.25], [1, 0.25, 1], [1, 1, 1]);

const DOCUMENTS: Readonly<Record<Scheduler, Policy>> = {
  diana: documentWith({ kind: 'diana' }, { kind: 'fcfs' }),
  'diana-meta-sjf': documentWith({ kind: 'diana', metaOrder: 'SJF' }, { kind: 'fcfs' }),
  'diana-sjf': documentWith({ kind: 'diana', queueLimit: 1_000_000 }, sjf()),
  'diana-kinds': documentWith({ kind: 'diana', weights: SPECIFIED }, { kind: 'fcfs' }),
  // (arrival − service)/arrival is never above 1.
  'diana-stay': documentWith({ kind: 'diana', congestionThreshold: 1 }, { kind: 'fcfs' }),
  'diana-paper-rule': documentWith(
    { kind: 'diana', migration: { rule: 'NOT_BOTH_HIGHER' } },
    { kind: 'fcfs' },
  ),
  'diana-origin': documentWith({ kind: 'diana', placement: 'ORIGIN_FIRST' }, { kind: 'fcfs' }),
  sjf: documentWith({ kind: 'queues', order: 'SJF', queueLimit: 0, ageBoundS: null }, { kind: 'fcfs' }),
  'round-robin': documentWith({ kind: 'round-robin' }, { kind: 'fcfs' }),
  'most-flops': documentWith({ kind: 'most-flops' }, { kind: 'fcfs' }),
};
function sjf(): LocalPolicy {
  return { kind: 'sjf', ageBoundS: null };
}

/** One scheduler at one point of one experiment: the times of each run. */
export interface Cell {
  experiment: 'compute' | 'queues' | 'data' | 'jobs' | 'sites' | 'kinds' | 'misjudged';
  /** Jobs, bandwidth in Mb/s, or sites. */
  x: number;
  scheduler: Scheduler;
  runs: Times[];
  /** Of jobs that read a dataset: the part that ran where it is, for each run. */
  atData: number[];
  /** Of jobs of several kinds: moves from one meta-queue to another, by kind, for each run. */
  exports: Record<Kind, number>[];
  /** Of jobs of several users: the mean turnaround of each user's jobs, for each run. */
  byUserS: number[][];
}

export interface DianaResult {
  seed: number;
  runs: number;
  cells: Cell[];
}

/** Kinds of job, by what they declare to be the share of computation. */
export const KINDS = {
  computational: { share: 1, leastS: 60, mostS: 180, inputMb: 1 },
  dataIntensive: { share: 0.1, leastS: 5, mostS: 15, inputMb: 10_000 },
  both: { share: 0.5, leastS: 60, mostS: 180, inputMb: 2000 },
} as const;
export type Kind = keyof typeof KINDS;

export interface Workload {
  world: World;
  jobs: SimJob[];
}

interface Point {
  experiment: Cell['experiment'];
  x: number;
  schedulers: readonly Scheduler[];
  draw: (run: number) => Workload;
}

/** Everything. `onProgress` is told how many of the simulations are done. */
export function diana(
  seed: number,
  onProgress: (done: number, all: number) => void = () => {},
  runs = RUNS,
  shrink = 1,
): DianaResult {
  const points = pointsOf(seed, shrink);
  const all = points.reduce((sum, { schedulers }) => sum + schedulers.length * runs, 0);
  let done = 0;
  const cells = points.flatMap(({ experiment, x, schedulers, draw }) => {
    const workloads = Array.from({ length: runs }, (_, run) => draw(run));
    return schedulers.map((scheduler) => {
      const cell: Cell = { experiment, x, scheduler, runs: [], atData: [], exports: [], byUserS: [] };
      workloads.forEach(({ world, jobs }, run) => {
        const times = new TimesSink(jobs);
        const places = new PlacesSink(world, jobs.length);
        const users = new UsersSink();
        const exports = new ExportsSink(jobs);
        const policy = { ...DOCUMENTS[scheduler], seed: seed + run };
        runSimulation(world, jobs, { policy, eventOrder: 'batch' }, [times, places, users, exports]);
        cell.runs.push(times.times());
        if (experiment === 'data') cell.atData.push(places.atData);
        if (experiment === 'kinds' || experiment === 'misjudged') cell.exports.push(exports.byKind);
        if (experiment === 'queues') cell.byUserS.push(users.turnaroundS);
        onProgress(++done, all);
      });
      return cell;
    });
  });
  return { seed, runs, cells };
}

/** Counts the jobs that run where the dataset is that they read. */
class PlacesSink implements Sink {
  private count = 0;
  private readonly replicas: Map<number, readonly number[]>;

  constructor(
    { datasets = [] }: World,
    private readonly jobs: number,
  ) {
    this.replicas = new Map(datasets.map(({ id, siteIds }) => [id, siteIds]));
  }

  started({ job }: SimJob, _index: number, { siteId }: Run): void {
    const [input] = job.data?.inputs ?? [];
    if (input === undefined || 'siteId' in input) return;
    if (this.replicas.get(input.datasetId)?.includes(siteId)) this.count++;
  }

  get atData(): number {
    return this.count / this.jobs;
  }
}

/** Counts what congested sites export. */
class ExportsSink implements Sink {
  readonly byKind: Record<Kind, number> = { computational: 0, dataIntensive: 0, both: 0 };

  constructor(private readonly jobs: readonly SimJob[]) {}

  moved({ jobId, reason }: Move): void {
    if (reason !== 'EXPORTED') return;
    const share = (this.jobs[jobId - 1] as SimJob).job.data?.computationShare;
    for (const [kind, of] of Object.entries(KINDS)) if (of.share === share) this.byKind[kind as Kind]++;
  }
}

/** `shrink`: jobs are divided by it. */
function pointsOf(seed: number, shrink: number): Point[] {
  const few = (jobs: number): number => Math.ceil(jobs / shrink);
  return [
    ...COUNTS.map(
      (x): Point => ({
        experiment: 'compute',
        x,
        schedulers: BOTH,
        draw: (run) => computeWorkload(seed, run, few(x)),
      }),
    ),
    {
      experiment: 'queues',
      x: JOBS,
      schedulers: SCHEDULERS,
      draw: (run) => primeWorkload(seed, run, few(JOBS)),
    },
    ...BANDWIDTHS.map(
      (x): Point => ({
        experiment: 'data',
        x,
        schedulers: BOTH,
        draw: (run) => dataWorkload(seed, run, few(JOBS), x),
      }),
    ),
    ...SCALE.jobs.map(
      (x): Point => ({
        experiment: 'jobs',
        x,
        schedulers: BOTH,
        draw: (run) => scaleWorkload(seed, run, SCALE.sites, few(x)),
      }),
    ),
    ...GROWTH.sites.map(
      (x): Point => ({
        experiment: 'sites',
        x,
        schedulers: BOTH,
        draw: (run) => scaleWorkload(seed, run, x, few(GROWTH.jobsPerSite * x)),
      }),
    ),
    {
      experiment: 'kinds',
      x: JOBS,
      schedulers: KINDS_SCHEDULERS,
      draw: (run) => kindsWorkload(seed, run, few(JOBS)),
    },
    {
      experiment: 'misjudged',
      x: JOBS,
      schedulers: MISJUDGED_SCHEDULERS,
      draw: (run) => kindsWorkload(seed, run, few(JOBS), ['computational'], 30),
    },
  ];
}

/** Adds up turnarounds by user; ids from 1. */
class UsersSink implements Sink {
  private readonly jobs: number[] = [];
  private readonly sumS: number[] = [];

  ended({ job: { userId, submittedAt: submit } }: SimJob, _index: number, _run: Run, at: number): void {
    this.jobs[userId - 1] = (this.jobs[userId - 1] ?? 0) + 1;
    this.sumS[userId - 1] = (this.sumS[userId - 1] ?? 0) + at - submit;
  }

  get turnaroundS(): number[] {
    return this.sumS.map((sum, i) => sum / (this.jobs[i] as number));
  }
}

/** The first site has four nodes, the others five. */
function sitesOf(random: RandomStream, sites: number, cpusPerNode: number): World {
  return gridOf(
    Array.from({ length: sites }, (_, i) => ({
      nodes: i === 0 ? 4 : 5,
      cpusPerNode,
      power: random.uniform(1, 3),
    })),
  );
}

const anyLink = (random: RandomStream) => (): Omit<Link, 'fromSiteId' | 'toSiteId'> => ({
  bandwidthMbPerS: MBIT * logUniform(random, 10, 1000),
  rttS: random.uniform(0.01, 0.2),
  loss: random.uniform(0, 0.02),
});

/** Where each group of jobs is submitted. */
function origins(random: RandomStream, jobs: number, sites: number): (index: number) => number {
  const drawn = Array.from({ length: Math.ceil(jobs / GROUP) }, () => random.integer(1, sites));
  return (index) => drawn[Math.floor(index / GROUP)] as number;
}
const groupOf = (index: number): number => Math.floor(index / GROUP) + 1;

export function computeWorkload(seed: number, run: number, count: number): Workload {
  const grid = new RandomStream(seed, `diana-grid-${run}`);
  const draws = new RandomStream(seed, `diana-compute-${run}`);
  const from = origins(new RandomStream(seed, `diana-origins-${run}`), count, SITES);
  const world = { ...sitesOf(grid, SITES, 1), links: linksBetween(SITES, anyLink(grid)) };
  const jobs = Array.from({ length: count }, (_, i) =>
    rootJob(i + 1, {
      runS: draws.uniform(60, 180),
      groupId: groupOf(i),
      data: jobData({ originSiteId: from(i), sandboxMb: 1, outputMb: 1 }),
    }),
  );
  return { world, jobs };
}

/** Seconds on power 1. */
export function primeS({ processors, upTo }: (typeof PRIMES)[number]): number {
  const steps = (kind: (typeof PRIMES)[number]): number =>
    kind.upTo ** 1.5 / Math.log(kind.upTo) / kind.processors;
  return (SHORTEST_S * steps({ processors, upTo })) / steps(PRIMES[0] as (typeof PRIMES)[number]);
}

export function primeWorkload(seed: number, run: number, count: number): Workload {
  const grid = new RandomStream(seed, `diana-grid-${run}`);
  const draws = new RandomStream(seed, `diana-primes-${run}`);
  const from = origins(new RandomStream(seed, `diana-origins-${run}`), count, SITES);
  const world = {
    ...sitesOf(grid, SITES, 16),
    links: linksBetween(SITES, anyLink(grid)),
    quotas: QUOTAS.map((share, i) => [i + 1, share] as const),
  };
  const jobs = Array.from({ length: count }, (_, i) => {
    const kind = PRIMES[draws.integer(0, PRIMES.length - 1)] as (typeof PRIMES)[number];
    return rootJob(i + 1, {
      runS: primeS(kind),
      tasks: kind.processors,
      // Whose jobs come first changes from run to run.
      userId: ((groupOf(i) + run) % QUOTAS.length) + 1,
      groupId: groupOf(i),
      data: jobData({ originSiteId: from(i), sandboxMb: 1, outputMb: 1 }),
    });
  });
  return { world, jobs };
}

const DATASETS = 20;
const DATASET_MB = 10_000;

export function dataWorkload(seed: number, run: number, count: number, bandwidthMbits: number): Workload {
  const grid = new RandomStream(seed, `diana-grid-${run}`);
  const draws = new RandomStream(seed, `diana-data-${run}`);
  const from = origins(new RandomStream(seed, `diana-origins-${run}`), count, SITES);
  const link = { bandwidthMbPerS: MBIT * bandwidthMbits, rttS: 0.1, loss: 0.01 };
  const world = {
    ...sitesOf(grid, SITES, 1),
    links: linksBetween(SITES, () => link),
    datasets: Array.from({ length: DATASETS }, (_, i) => {
      const siteIds = new Set([grid.integer(1, SITES), grid.integer(1, SITES)]);
      return { id: i + 1, sizeMb: DATASET_MB, siteIds: [...siteIds].sort((a, b) => a - b) };
    }),
  };
  const jobs = Array.from({ length: count }, (_, i) =>
    rootJob(i + 1, {
      runS: draws.uniform(300, 600),
      groupId: groupOf(i),
      data: jobData({
        originSiteId: from(i),
        sandboxMb: 1,
        outputMb: 1,
        inputs: [{ datasetId: draws.integer(1, DATASETS) }],
      }),
    }),
  );
  return { world, jobs };
}

const BULK = 25;
const BULK_EVERY_S = 50;

/** `told`: how many times its length every other bulk says that it takes. */
export function kindsWorkload(
  seed: number,
  run: number,
  count: number,
  names: readonly Kind[] = Object.keys(KINDS) as Kind[],
  told = 3,
): Workload {
  const grid = new RandomStream(seed, `diana-grid-${run}`);
  const draws = new RandomStream(seed, `diana-kinds-${run}`);
  const world = {
    ...sitesOf(grid, SITES, 1),
    links: linksBetween(SITES, anyLink(grid)),
    quotas: QUOTAS.map((share, i) => [i + 1, share] as const),
  };
  let submit = 0;
  const bulks = Array.from({ length: Math.ceil(count / BULK) }, (_, i) => {
    submit += draws.exponential(BULK_EVERY_S);
    const kind = KINDS[names[draws.integer(0, names.length - 1)] as Kind];
    const [from, reads] = [draws.integer(1, SITES), draws.integer(1, SITES)];
    return {
      submit,
      kind,
      from,
      reads,
      userId: draws.integer(1, QUOTAS.length),
      told: i % 2 === 0 ? 1 : told,
    };
  });
  const jobs = Array.from({ length: count }, (_, i) => {
    const group = Math.floor(i / BULK);
    const {
      submit: submittedAt,
      kind,
      from,
      reads,
      userId,
      told: timesLength,
    } = bulks[group] as (typeof bulks)[number];
    const runS = draws.uniform(kind.leastS, kind.mostS);
    return rootJob(i + 1, {
      runS,
      estimateS: timesLength * runS,
      submittedAt,
      userId,
      groupId: group + 1,
      data: jobData({
        originSiteId: from,
        sandboxMb: 1,
        outputMb: 1,
        inputs: [{ siteId: reads, sizeMb: kind.inputMb }],
        computationShare: kind.share,
      }),
    });
  });
  return { world, jobs };
}

export function scaleWorkload(seed: number, run: number, sites: number, count: number): Workload {
  const grid = new RandomStream(seed, `diana-scale-${run}`);
  const from = origins(new RandomStream(seed, `diana-origins-${run}`), count, sites);
  const world = { ...sitesOf(grid, sites, 1), links: linksBetween(sites, anyLink(grid)) };
  const jobs = Array.from({ length: count }, (_, i) =>
    rootJob(i + 1, {
      runS: 3,
      groupId: groupOf(i),
      data: jobData({ originSiteId: from(i), inputs: [{ sizeMb: 1, siteId: from(i) }] }),
    }),
  );
  return { world, jobs };
}
