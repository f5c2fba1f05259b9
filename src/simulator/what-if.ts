/**
 * What would have been: a recorded window of jobs under two policies, from the same workload on the same machines, and the
 * difference. Both are simulated, also the one that was in force: what really happened contains machines that were away
 * and people who cancelled, and the difference would blame the policy for them. Where what is simulated of it is far from what happened,
 * nothing is compared.
 *
 * What the own scheduler of a site would do is unknown: jobs wait there as was observed lately, and the result says so.
 */
import { Worker } from 'node:worker_threads';
import {
  cpusOf,
  DataCatalog,
  type Policy,
  type SimulatedWaits,
  simulatedWaits,
  type UserClass,
} from '../core/index.js';
import { MAX } from '../platform/limits.js';
import { TIMES_KNOWN, WAITS_SEEN_S } from '../store/constants.js';
import { jobFromArray } from '../store/images.js';
import type { RecordedJob, SimulationTask } from '../store/simulations.js';
import { transferS } from './data.js';
import { type Change, runSimulation, schedulesItself, type World } from './engine.js';
import { holdsInTurn, type KnownHold } from './holds.js';
import { spanOf, type Usage, usageOf } from './record.js';
import { isFinal, type Sink } from './sink.js';
import { BOUND_S, distribution } from './statistics.js';
import { parseTrace } from './trace.js';
import { cleanTrace, inOrder, type SimJob } from './workload.js';

/** Of some of the jobs under one policy; of a difference: candidate minus baseline. */
export interface Figures {
  /** Jobs that ended. */
  ended: number;
  /** Jobs that no machines could run. */
  neverStarted: number;
  /** Seconds from submission to start. */
  waitMeanS: number;
  waitP95S: number;
  /** max(1, turnaround / max(run time, τ)), τ = 10 s (Feitelson et al.). */
  slowdownMean: number;
  slowdownP95: number;
  /** Jobs that ended after their deadline, or never. */
  deadlineMisses: number;
  /** CPU-seconds used over those there were from the first submission to the last end: at a site its own, else all. */
  utilization: number;
}

export interface Comparison {
  baseline: Figures;
  candidate: Figures;
  difference: Figures;
}

export interface WhatIfResult {
  /** In the window, or in the trace without those left out. */
  jobs: number;
  /** Of a trace: too wide for any site, or never run. Of a window: ended without having run. */
  leftOut: number;
  /** Null: of a trace. */
  happened: Distance | null;
  all: Comparison;
  userClasses: ({ userClass: UserClass } & Comparison)[];
  /** By where the jobs ran under each policy: not the same jobs on both sides. */
  sites: ({ siteId: number; name: string; ownScheduler: OwnScheduler | null } & Comparison)[];
  history: History;
}

/** How a site was simulated that schedules itself, under one of the policies at least. */
export interface OwnScheduler extends SimulatedWaits {
  /** When its load was last reported; null: never. */
  at: string | null;
  /** Its agent was silent. */
  stale: boolean;
}

/** How far the simulation of the policy in force is from what happened. */
export interface Distance {
  /** Jobs that ran. */
  jobs: number;
  waitMeanS: number;
  simulatedWaitMeanS: number;
  acceptedS: number;
}

/** Means that are closer tell the same. */
const ACCEPTED_S = 60;
const ACCEPTED_SHARE = 0.5;

/** Queue and use over time under both policies, in the same bins. */
export interface History {
  /** When the first job was submitted; null: the jobs are those of a trace. */
  from: string | null;
  /** From then to the last end under either policy. */
  lengthS: number;
  /** Width of a bin; the last one may be narrower. */
  binS: number;
  baseline: Bin[];
  candidate: Bin[];
}

/** Means over a bin of time. */
export interface Bin {
  /** Where it begins, in seconds from the first submission. */
  atS: number;
  queuedJobs: number;
  /** CPUs that the queued jobs ask for. */
  queuedCpus: number;
  /** Of all CPUs, from 0 to 1. */
  utilization: number;
}

/** A picture of usual width has a few pixels for each, and a result stays some kilobytes. */
const BINS_MAX = 120;

/** What the thread says: how far it is (0..1), or how it ended. */
export type WhatIfMessage =
  | { kind: 'progress'; progress: number }
  | { kind: 'done'; result: WhatIfResult }
  | { kind: 'failed'; message: string };

/** Heap of the thread, MB: beyond it the thread ends with an error, and the process goes on. */
const HEAP_MB = 2_048;

/**
 * Runs a what-if in a thread of its own, so that whoever runs in this one is not disturbed. Throws what goes wrong, and what
 * `signal` was aborted with.
 */
export function whatIfInThread(
  task: SimulationTask,
  { onProgress, signal }: { onProgress: (progress: number) => void; signal: AbortSignal },
): Promise<WhatIfResult> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const worker = new Worker(new URL('./what-if-thread.js', import.meta.url), {
      workerData: task,
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
    });
    const stop = (): void => {
      reject(signal.reason);
      void worker.terminate();
    };
    signal.addEventListener('abort', stop, { once: true });
    worker.on('message', (message: WhatIfMessage) => {
      if (message.kind === 'progress') onProgress(message.progress);
      else if (message.kind === 'done') resolve(message.result);
      else reject(new Error(message.message));
    });
    worker.on('error', reject);
    worker.on('exit', (code) => {
      signal.removeEventListener('abort', stop);
      reject(new Error(`the simulation's thread ended with code ${code}`));
    });
  });
}

/** Simulates the window under both policies. `onProgress` is told 0..1 now and then. */
export function whatIf(
  task: SimulationTask,
  onProgress: (progress: number) => void = () => {},
): WhatIfResult {
  const { jobs, leftOut, waitedS, counted } =
    task.trace === null ? workloadOf(task) : workloadOfTrace(task.trace, task.machines);
  const { sites, machines, licenses, schedulers, datasets, links, images, totals } = task;
  // The users of a trace are others.
  const quotas = task.trace === null ? task.quotas.map(({ userId, share }) => [userId, share] as const) : [];
  const there = { sites, machines, licenses, schedulers, datasets, links, images };
  const world: World = { ...there, quotas, totals, changes: holdsOf(task), byObservedWaits: true };
  const half = (policy: Policy, done: number): Fates =>
    simulate(world, jobs, policy, (ended) => onProgress((done + ended / jobs.length) / 2));
  const inForce = half(task.baseline, 0);
  const happened = waitedS && distance(jobs, inForce, waitedS, counted);
  if (happened !== null && !task.acceptDistance) refuseFar(happened);
  const sides = [inForce, half(task.candidate, 1)] as const;
  const compare = (chosen: (fates: Fates, index: number) => boolean, cpus: number): Comparison => {
    const [baseline, candidate] = sides.map((fates) =>
      figures(jobs, fates, (of, i) => counted(i) && chosen(of, i), cpus),
    ) as [Figures, Figures];
    return { baseline, candidate, difference: minus(candidate, baseline) };
  };
  const cpusOf = (siteId?: number): number =>
    task.machines.reduce(
      (sum, machine) => (siteId === undefined || machine.siteId === siteId ? sum + machine.cpus : sum),
      0,
    );
  const classes = (['GOLD', 'SILVER', 'REGULAR'] as const).filter((userClass) =>
    jobs.some(({ job }) => job.userClass === userClass),
  );
  return {
    jobs: jobs.filter((_, i) => counted(i)).length,
    leftOut,
    happened,
    all: compare(() => true, cpusOf()),
    userClasses: classes.map((userClass) => ({
      userClass,
      ...compare((_, i) => (jobs[i] as SimJob).job.userClass === userClass, cpusOf()),
    })),
    sites: task.sites.map(({ id, name }) => ({
      siteId: id,
      name,
      ownScheduler: ownSchedulerOf(task, id),
      ...compare((fates, i) => fates.siteIds[i] === id, cpusOf(id)),
    })),
    history: historyOf(jobs, sides, cpusOf(), task.trace !== null),
  };
}

function ownSchedulerOf(task: SimulationTask, siteId: number): OwnScheduler | null {
  const { baseline, candidate, reported } = task;
  const site = task.sites.find(({ id }) => id === siteId);
  if (site === undefined || !(schedulesItself(site, baseline) || schedulesItself(site, candidate)))
    return null;
  const { at = null, ageS = null, silentS = null } = reported.find((one) => one.siteId === siteId) ?? {};
  const stale = silentS === null || silentS > baseline.timers.agentSilentS;
  return {
    ...simulatedWaits(site, { seenS: WAITS_SEEN_S, ageS, isStale: stale }),
    at: at === null ? null : new Date(at * 1000).toISOString(),
    stale,
  };
}

/**
 * The holds of the window, as schedulers knew of them then. None is known before the window begins: what ran then had begun whatever was
 * held. So nothing is stopped for a time that had begun by then: whoever was in its way had been stopped already.
 */
function holdsOf({ holds, from }: Pick<SimulationTask, 'holds' | 'from'>): Change[] {
  const begin = from ?? Number.NEGATIVE_INFINITY;
  const byHold = new Map<number, KnownHold[]>();
  for (const { holdId, siteId, held, madeAt, endedAt, preempts } of holds) {
    const known: KnownHold = {
      ...{ siteId, held, knownFrom: Math.max(begin, madeAt), knownUntil: endedAt ?? Infinity },
      ...(preempts && held.from > begin && { stopsFor: holdId }),
    };
    const times = byHold.get(holdId);
    if (times === undefined) byHold.set(holdId, [known]);
    else times.push(known);
  }
  return [...byHold.values()].flatMap((times) => holdsInTurn(times, TIMES_KNOWN));
}

function historyOf(
  jobs: readonly SimJob[],
  sides: readonly [Fates, Fates],
  cpus: number,
  isTrace: boolean,
): History {
  const fromS = jobs[0]?.job.submittedAt ?? 0;
  const toS = Math.max(...sides.map((fates) => spanOf(jobs, fates)[1]));
  const [baseline, candidate] = sides.map((fates) =>
    usageOf(
      jobs,
      fates,
      cpus,
      ({ job }, i) => {
        const aloneS = fates.aloneS[i] as number;
        const heldS = (fates.ends[i] as number) - (fates.starts[i] as number);
        return (cpusOf(job) * (Number.isNaN(aloneS) ? heldS : aloneS)) / heldS;
      },
      [fromS, toS],
      BINS_MAX,
    ),
  ) as [Usage, Usage];
  const bins = ({ bins, binS }: Usage): Bin[] =>
    bins.map(({ queuedJobs, queuedCpus, utilizationPercent }, i) => ({
      atS: i * binS,
      queuedJobs: toThousandths(queuedJobs),
      queuedCpus: toThousandths(queuedCpus),
      utilization: toThousandths(utilizationPercent / 100),
    }));
  return {
    from: isTrace ? null : new Date(fromS * 1000).toISOString(),
    lengthS: toS - fromS,
    binS: baseline.binS,
    baseline: bins(baseline),
    candidate: bins(candidate),
  };
}

const toThousandths = (value: number): number => Math.round(value * 1000) / 1000;

/** What schedulers write into a job, before any has. */
const UNTOUCHED = {
  ...{ priority: null, migratedAt: null, dispatchedAt: null },
  ...{ schedulerId: null, treeMoves: 0, avoids: null },
};

/** What a run takes at the least: one that took no time would never come about. */
const LEAST_RUN_S = 0.001;

/** What is simulated. */
interface Workload {
  jobs: SimJob[];
  leftOut: number;
  /** By job: how long it waited, NaN if it has not run; null: nobody knows. */
  waitedS: Float64Array | null;
  /** Whether the job is of the window, or one that was there when it began. */
  counted(index: number): boolean;
}

/**
 * The pages' jobs, by submission. They begin at the root, whatever became of them; those that were there when the window began come as it
 * does, what ran then first and for the rest of its time. Jobs that ended without having run are left out: they kept nobody waiting.
 *
 * A job computes for as long as its last run did, on the machine of its estimate: so many seconds where so many were planned.
 * Decision: of a run with data, what moving that takes over today's links is not computing; the simulation adds what it takes
 * where the job goes. One that has not run yet takes its estimate, or its limit if that is less.
 */
export function workloadOf({
  pages,
  datasets,
  links,
  images,
  machines,
  from,
}: Pick<SimulationTask, 'pages' | 'datasets' | 'links' | 'images' | 'machines' | 'from'>): Workload {
  const catalog = new DataCatalog();
  for (const dataset of datasets) catalog.setDataset(dataset);
  for (const link of links) catalog.setLink(link);
  for (const each of images) catalog.setImages(each);
  const best = new Map<number, number>();
  for (const { siteId, benchmark } of machines) best.set(siteId, Math.max(benchmark, best.get(siteId) ?? 0));
  const begin = from ?? Number.NEGATIVE_INFINITY;
  const jobs: SimJob[] = [];
  const waited = new Map<SimJob, number>();
  let leftOut = 0;
  for (const page of pages) {
    for (const [array, run] of JSON.parse(page) as RecordedJob[]) {
      const job = { ...jobFromArray(array), ...UNTOUCHED };
      const { submittedAt } = job;
      if (run === 'NEVER') {
        if (submittedAt >= begin) leftOut++;
        continue;
      }
      let runS = Math.min(job.estimateS, job.runTimeLimitS ?? Infinity);
      let begun = false;
      if (run !== null) {
        const [seconds, plannedS, siteId, waitedS, limitS] = run;
        const moving = transferS(catalog, job, siteId);
        const ran = submittedAt < begin ? Math.max(0, begin - submittedAt - waitedS) : 0;
        // No more was planned than the limit lets it do on the most powerful machine there.
        const most = ((limitS ?? Infinity) * (best.get(siteId) ?? job.benchmark)) / job.benchmark;
        runS = (Math.max(LEAST_RUN_S, seconds - moving - ran) * Math.min(job.estimateS, most)) / plannedS;
        begun = ran > 0;
        if (submittedAt < begin) job.submittedAt = ran > 0 ? begin - LEAST_RUN_S : begin;
        if (ran > 0 && limitS !== null) job.runTimeLimitS = Math.max(LEAST_RUN_S, limitS - ran);
      } else if (submittedAt < begin) job.submittedAt = begin;
      const simulated: SimJob = { job, sourceId: job.id, runS, limitS: null, siteId: null };
      if (begun) simulated.begun = true;
      if (submittedAt >= begin) waited.set(simulated, run === null ? Number.NaN : run[3]);
      jobs.push(simulated);
    }
  }
  inOrder(jobs);
  return {
    jobs,
    leftOut,
    waitedS: Float64Array.from(jobs, (one) => waited.get(one) ?? Number.NaN),
    counted: (i) => waited.has(jobs[i] as SimJob),
  };
}

function distance(
  jobs: readonly SimJob[],
  { starts }: Fates,
  waitedS: Float64Array,
  counted: (index: number) => boolean,
): Distance {
  const simulated: number[] = [];
  const happened: number[] = [];
  jobs.forEach(({ job }, i) => {
    if (!counted(i) || Number.isNaN(waitedS[i]) || Number.isNaN(starts[i])) return;
    simulated.push((starts[i] as number) - job.submittedAt);
    happened.push(waitedS[i] as number);
  });
  const waitMeanS = distribution(Float64Array.from(happened)).mean;
  const simulatedWaitMeanS = distribution(Float64Array.from(simulated)).mean;
  const acceptedS = Math.max(ACCEPTED_S, ACCEPTED_SHARE * Math.max(waitMeanS, simulatedWaitMeanS));
  return { jobs: happened.length, waitMeanS, simulatedWaitMeanS, acceptedS };
}

function refuseFar({ waitMeanS, simulatedWaitMeanS, acceptedS }: Distance): void {
  if (Math.abs(simulatedWaitMeanS - waitMeanS) <= acceptedS) return;
  const [is, was, bound] = [simulatedWaitMeanS, waitMeanS, acceptedS].map(
    (value) => `${Math.round(value)} s`,
  );
  throw new Error(
    `under the current policy, jobs wait ${is} on average in the simulation, but actually waited ${was}; accepted: a difference of up to ${bound}. ` +
      'Factors outside the simulation (outages, machines added or removed, policy changes) had too much influence for a ' +
      'comparison. Choose another window, or compare anyway (acceptDistance, --accept-distance)',
  );
}

/**
 * The jobs of a trace, submitted to the root. Nothing says how fast its machines were: they are taken to be as fast as these are in the
 * mean, so that a job runs here about as long as it did there.
 */
function workloadOfTrace(text: string, machines: SimulationTask['machines']): Workload {
  const widths = new Map<number, number>();
  let cpus = 0;
  let power = 0;
  for (const machine of machines) {
    widths.set(machine.siteId, (widths.get(machine.siteId) ?? 0) + machine.cpus);
    cpus += machine.cpus;
    power += machine.cpus * machine.benchmark;
  }
  const widest = Math.max(0, ...widths.values());
  const trace = parseTrace(text, 'trace');
  if (trace.jobCount > MAX.simulatedJobs)
    throw new Error(`more than ${MAX.simulatedJobs} jobs are in the trace`);
  const { jobs } = cleanTrace(trace.jobs, {
    processorsOf: () => widest,
    estimate: 'requested',
    missingEstimate: 'run',
    overrun: 'kill',
    atRoot: true,
    taskPerProcessor: true,
  });
  if (jobs.length === 0) throw new Error('no job of the trace can run on these machines');
  for (const one of jobs) one.job = { ...one.job, benchmark: power / cpus };
  return { jobs, leftOut: trace.jobCount - jobs.length, waitedS: null, counted: () => true };
}

/** By job: where it ran, and when; 0 and NaN for one that never did. */
interface Fates {
  siteIds: Int32Array;
  starts: Float64Array;
  ends: Float64Array;
  /** How long it would have run alone, where machines are shared in time; elsewhere NaN. */
  aloneS: Float64Array;
}

function simulate(
  world: World,
  jobs: readonly SimJob[],
  policy: Policy,
  onProgress: (ended: number) => void,
): Fates {
  const fates: Fates = {
    siteIds: new Int32Array(jobs.length),
    starts: new Float64Array(jobs.length).fill(Number.NaN),
    ends: new Float64Array(jobs.length).fill(Number.NaN),
    aloneS: new Float64Array(jobs.length).fill(Number.NaN),
  };
  const shared = new Set(world.machines.filter(({ maxTasks }) => maxTasks).map(({ siteId }) => siteId));
  const sink: Sink = {
    started({ job, runS }, index, run) {
      fates.siteIds[index] = run.siteId;
      fates.starts[index] = run.start;
      if (shared.has(run.siteId)) fates.aloneS[index] = ((run.plannedEnd - run.start) * runS) / job.estimateS;
    },
    ended(_job, index, _run, at, how) {
      fates.ends[index] = isFinal(how) ? at : Number.NaN;
    },
  };
  // The runs of the window are in the totals: to learn them again would count them twice.
  runSimulation(world, jobs, { policy, eventOrder: 'batch', learn: false, onProgress }, [sink]);
  return fates;
}

function figures(
  jobs: readonly SimJob[],
  fates: Fates,
  chosen: (fates: Fates, index: number) => boolean,
  cpus: number,
): Figures {
  const waits: number[] = [];
  const slowdowns: number[] = [];
  let usedS = 0;
  let neverStarted = 0;
  let deadlineMisses = 0;
  let last = Number.NEGATIVE_INFINITY;
  jobs.forEach(({ job }, i) => {
    const start = fates.starts[i] as number;
    const end = fates.ends[i] as number;
    // The whole simulation's time, not only that of the chosen jobs.
    if (end > last) last = end;
    if (!chosen(fates, i)) return;
    if (job.deadline !== null && !(end <= job.deadline)) deadlineMisses++;
    if (Number.isNaN(end)) {
      neverStarted++;
      return;
    }
    const aloneS = fates.aloneS[i] as number;
    const runS = Number.isNaN(aloneS) ? end - start : aloneS;
    waits.push(start - job.submittedAt);
    slowdowns.push(Math.max(1, (end - job.submittedAt) / Math.max(runS, BOUND_S)));
    usedS += runS * cpusOf(job);
  });
  const spanS = last - (jobs[0]?.job.submittedAt ?? 0);
  const wait = distribution(Float64Array.from(waits));
  const slowdown = distribution(Float64Array.from(slowdowns));
  return {
    ended: waits.length,
    neverStarted,
    waitMeanS: wait.mean,
    waitP95S: wait.p95,
    slowdownMean: slowdown.mean,
    slowdownP95: slowdown.p95,
    deadlineMisses,
    utilization: spanS > 0 && cpus > 0 ? usedS / (cpus * spanS) : 0,
  };
}

function minus(a: Figures, b: Figures): Figures {
  const names = Object.keys(a) as (keyof Figures)[];
  const result = { ...a };
  for (const name of names) result[name] = a[name] - b[name];
  return result;
}
