/** One simulation from its files to its figures: what `switchyard simulate` does. */
import { writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import {
  cpusOf,
  draw,
  type Policy,
  parsePolicy,
  preemptionUnder,
  ROOT,
  SCAVENGER_RANK,
} from '../core/index.js';
import { type EventOrder, runSimulation, type World } from './engine.js';
import { BatsimCsv, JsonLines, writeSwf } from './files.js';
import { type Generate, generatedJobs } from './generate.js';
import { nameOf, STANDARD_INPUT } from './input.js';
import { scaleLoad } from './load.js';
import { type EstimateError, EstimateErrors, Measured, predictorOf } from './prediction.js';
import { GanttSink, type GanttWindow, type PlotRecord, plotRecord } from './record.js';
import { type Resample, resampled } from './resample.js';
import { ResultSink, type Sink } from './sink.js';
import {
  awayIn,
  countedWorld,
  type Failures,
  failuresOf,
  hasMemory,
  isCounted,
  MAX_PROCESSORS,
  readOutages,
  readSites,
  readWindows,
  type SiteShape,
  widestAt,
  withOutages,
  withWindows,
} from './sites.js';
import { type Figures, Statistics, type Summary } from './statistics.js';
import type { SwfJob } from './swf.js';
import { type MalformedLine, scanTrace, type Trace, type TraceScan, wholeInHeader } from './trace.js';
import { criticalPathS, jobsOf, placeInWorkflow, type Workflow } from './workflow.js';
import {
  Cleaning,
  type Dependencies,
  type Dropped,
  type EstimateSource,
  nothingDropped,
  type SimJob,
  type Workload,
} from './workload.js';

export interface SimulateOptions {
  /** Path of a trace (see `scanTrace`), or what to generate or to take instead. */
  trace: Source;
  /** Of the machine; null: what the header of the trace says (`MaxProcs`). Not with `sites`. */
  processors: number | null;
  policy: Policy;
  estimate: EstimateSource;
  missingEstimate: 'drop' | 'run';
  overrun: 'kill' | 'continue';
  eventOrder: EventOrder;
  /** Stretch the times between submissions until the work submitted is this part of what the machines can do; null: not. */
  load: number | null;
  /** Draws the users of a trace again (see `resampled`); null: not. */
  resample?: Resample | null;
  /** A file of sites (see `readSites`). */
  sites: string | null;
  /** A file of outages (see `readOutages`). */
  outages?: string | null;
  /** Machines fail at random; null: not. */
  failures?: Failures | null;
  /** A file of maintenance windows (see `readWindows`). */
  windows?: string | null;
  /** Where jobs are submitted: to the site that their partition names, or to the root, whose policy then chooses. */
  enter?: 'partition' | typeof ROOT;
  /** On time-shared machines: CPU-seconds after which the tasks of a job wait for each other; null: at the end only. */
  sectionS?: number | null;
  /** τ of the bounded slowdown; 10 s unless said. */
  tauS?: number;
  /** What is simulated and does not count: a part of the jobs, or the first seconds. */
  warmUp?: { part: number } | { s: number } | null;
  /** Whether the figures by site, user and width are wanted. */
  groups?: boolean;
  /**
   * So large a part of the jobs, drawn by the policy's seed, is of the policy's first scavenger class; if it has none, has rank 0, and the
   * others rank 1; null: all have 0. Where the policy says nothing of preemption, its defaults apply.
   */
  scavengers?: number | null;
  /** Runs keep what they have done every so many seconds; null: never. */
  checkpointS?: number | null;
  /** Whether jobs of a trace wait for the job before them; false unless said (see `CleaningOptions`). */
  dependencies?: boolean;
  /** Where to write a row for each job in Batsim's columns. */
  out: string | null;
  /** Where to write the jobs in the Standard Workload Format with the schedule filled in. */
  swf?: string | null;
  /** Where to write starts and ends as JSON lines. */
  events: string | null;
  /** Where to write the summary as JSON, with figures by site, user and width. */
  summary: string | null;
  /** Told the number of jobs once it is known, then how many have ended. */
  onProgress?: (ended: number, jobs: number) => void;
}

export type Source = string | Generate | Workflow;

export interface Simulated extends Summary {
  /** The file's name, or the model's. */
  trace: string;
  seed: number;
  processors: number;
  sites: number;
  eventOrder: EventOrder;
  /** The root's policy; null: jobs were submitted to the sites. */
  dispatch: Policy['dispatch'] | null;
  local: Policy['local'];
  estimate: EstimateSource;
  /** Of the estimates that jobs had when they were submitted. */
  estimateError: EstimateError;
  tauS: number;
  /** Jobs that did not count. */
  warmUpJobs: number;
  /** Jobs that were killed at their requested time. */
  killed: number;
  /** Runs that were lost in outages; their jobs started over. */
  lost: number;
  /** Runs that were stopped for jobs of higher classes. */
  preempted: number;
  /** CPU-hours of lost and stopped runs that had to be computed again. */
  lostCpuHours: number;
  /** Jobs that no machines could run. */
  waiting: number;
  /** Jobs that never ran because what they needed could not happen any more, or that ended when they were stopped for others. */
  cancelled: number;
  /** Of the trace, where jobs wait for those before them. */
  dependencies?: Dependencies;
  /** Of a workflow: the seconds that it takes however many machines there are (see `criticalPathS`). */
  criticalPath?: number;
  dropped: Dropped;
  /** Lines of the trace that are no jobs: how many, and the first of them. */
  malformed: { count: number; first: MalformedLine[] };
  /** By where the jobs ran; utilization is of that site. Only where asked for, as the next two. */
  bySite?: (Figures & { site: number; name: string })[];
  /** The users with the most jobs, at most `USERS_MAX`. */
  byUser?: (Figures & { user: number | string })[];
  /** By processors, in classes from one power of two to the next: `from`..`to`. */
  byWidth?: (Figures & { from: number; to: number })[];
  /** By rank, where there are several: −1 of scavenger classes. */
  byClass?: (Figures & { class: number })[];
}

/** A simulation and what its pictures need; `record` is null where none were asked for. */
export interface Recorded {
  simulated: Simulated;
  record: PlotRecord | null;
}

const USERS_MAX = 1000;

const isKilled = ({ runS, limitS }: SimJob): boolean => limitS !== null && runS > limitS;

/**
 * Runs a workload, and keeps what its pictures need if there is a window for the Gantt chart. Throws what reading and writing the
 * files throws, and on options that do not go together.
 */
export async function simulateAndRecord(
  options: SimulateOptions,
  window: GanttWindow | null,
): Promise<Recorded> {
  const sites = options.sites === null ? null : await readSites(options.sites);
  const { scan, world: calm, workload } = await load(options.trace, sites, options);
  const outages = options.outages ? await readOutages(options.outages) : [];
  const processors = calm.machines.reduce((sum, { cpus }) => sum + cpus, 0);
  const drawn = options.resample ? resampled(workload.jobs, options.resample) : workload.jobs;
  const jobs = options.load === null ? drawn : scaleLoad(drawn, processors, options.load);
  const policy = classify(jobs, options);
  const { trace } = options;
  if (options.failures) outages.push(...failuresOf(calm, jobs, options.failures, options.policy.seed));
  const known = options.windows ? withWindows(calm, await readWindows(options.windows)) : calm;
  const world = outages.length > 0 ? withOutages(known, outages) : known;
  const timeShared = world.machines.some(({ maxTasks }) => maxTasks);
  const results = new ResultSink(jobs.length);
  const sinks: Sink[] = [results];
  const gantt = window === null ? null : new GanttSink(world, window, jobs);
  if (gantt !== null) sinks.push(gantt);
  const name = traceName(options.trace);
  const { eventOrder } = options;
  const inner = predictorOf(options.estimate);
  const predictor = inner === null ? undefined : new Measured(inner, jobs);
  const files: (BatsimCsv | JsonLines)[] = [];
  let outcome: ReturnType<typeof runSimulation>;
  try {
    if (options.out !== null) files.push(new BatsimCsv(options.out, name, world));
    if (options.events !== null) files.push(new JsonLines(options.events));
    sinks.push(...files);
    options.onProgress?.(0, jobs.length);
    const onProgress = (ended: number) => options.onProgress?.(ended, jobs.length);
    outcome = runSimulation(world, jobs, { policy, eventOrder, predictor, onProgress }, sinks);
  } finally {
    for (const file of files) file.close();
  }
  const { tauS = 10 } = options;
  const warmUpJobs = warmUpOf(jobs, options.warmUp ?? null);
  const statistics = new Statistics(outcome.jobs, results, {
    ...{ timeShared, tauS, warmUpJobs },
    away: awayIn(world),
  });
  const simulated: Simulated = {
    trace: name,
    seed: options.resample?.seed ?? (typeof trace === 'object' && 'seed' in trace ? trace.seed : policy.seed),
    processors,
    sites: world.sites.length,
    eventOrder,
    dispatch: options.enter === ROOT ? policy.dispatch : null,
    local: policy.local,
    estimate: options.estimate,
    estimateError: (predictor?.errors ?? errorsOf(jobs)).summary,
    tauS,
    warmUpJobs,
    ...statistics.all(processors),
    killed: options.resample ? jobs.filter(isKilled).length : workload.killed,
    lost: results.lost,
    preempted: results.preempted,
    lostCpuHours: results.lostCpuS / 3600,
    waiting: outcome.waiting,
    cancelled: outcome.cancelled,
    ...(workload.dependencies !== null && { dependencies: workload.dependencies }),
    ...(typeof trace === 'object' && 'tasks' in trace && { criticalPath: criticalPathS(trace.tasks) }),
    dropped: workload.dropped,
    malformed: { count: scan?.malformedCount ?? 0, first: scan?.malformed ?? [] },
    ...(options.groups || options.summary !== null
      ? groupsOf(statistics, world, jobs, results, processors, scan)
      : {}),
  };
  if (options.summary !== null) writeFileSync(options.summary, `${JSON.stringify(simulated, null, 2)}\n`);
  if (options.swf) {
    const header = { Version: 2.2, Note: `${name}, simulated`, MaxJobs: jobs.length, MaxProcs: processors };
    writeSwf(options.swf, header, outcome.jobs, results);
  }
  return {
    simulated,
    record: gantt === null ? null : plotRecord(outcome.jobs, results, processors, gantt, timeShared),
  };
}

/** Gives the jobs their classes and checkpoints. Returns the policy under which they run. */
export function classify(
  jobs: readonly SimJob[],
  {
    policy,
    scavengers = null,
    checkpointS = null,
  }: Pick<SimulateOptions, 'policy' | 'scavengers' | 'checkpointS'>,
): Policy {
  // Of the policy, if it has such a class.
  const [named] = Object.entries(policy.classes ?? {}).find(([, { scavenger }]) => scavenger) ?? [];
  for (const one of jobs) {
    if (checkpointS !== null) one.checkpointS = checkpointS;
    if (scavengers === null) continue;
    const isScavenger = draw(policy.seed, one.job.id) < scavengers;
    if (named === undefined) one.job = { ...one.job, preemptionClass: isScavenger ? 0 : 1 };
    else if (isScavenger) one.job = { ...one.job, class: named };
  }
  if (scavengers === null || preemptionUnder(policy) !== null) return policy;
  return parsePolicy({ ...policy, preemption: {} });
}

/** What results call the workload. */
export function traceName(trace: Source): string {
  if (typeof trace === 'string') return trace === STANDARD_INPUT ? nameOf(trace) : basename(trace);
  return 'tasks' in trace ? basename(trace.workflow) : `${trace.model}-${trace.jobs}`;
}

function warmUpOf(jobs: readonly SimJob[], warmUp: SimulateOptions['warmUp']): number {
  if (!warmUp) return 0;
  if ('part' in warmUp) return Math.floor(warmUp.part * jobs.length);
  const until = (jobs[0]?.job.submittedAt ?? 0) + warmUp.s;
  const first = jobs.findIndex(({ job }) => job.submittedAt >= until);
  return first < 0 ? jobs.length : first;
}

function errorsOf(jobs: readonly SimJob[]): EstimateErrors {
  const errors = new EstimateErrors();
  for (const { job, runS, limitS } of jobs) errors.add(job.estimateS, Math.min(runS, limitS ?? Infinity));
  return errors;
}

function groupsOf(
  statistics: Statistics,
  world: World,
  jobs: readonly SimJob[],
  results: ResultSink,
  processors: number,
  scan: TraceScan | null,
): Pick<Simulated, 'bySite' | 'byUser' | 'byWidth' | 'byClass'> {
  const cpusAt = new Map<number, number>();
  for (const { siteId, cpus } of world.machines) cpusAt.set(siteId, (cpusAt.get(siteId) ?? 0) + cpus);
  const names = new Map(world.sites.map(({ id, name }) => [id, name]));
  const all = (): number => processors;
  const classOf = (index: number): number => {
    return Math.ceil(Math.log2(cpusOf((jobs[index] as SimJob).job)));
  };
  const rankOf = (index: number): number => {
    const { class: named, preemptionClass } = (jobs[index] as SimJob).job;
    return named === null ? preemptionClass : SCAVENGER_RANK;
  };
  const classes = statistics.by(rankOf, all);
  const users = statistics.by((index) => (jobs[index] as SimJob).job.userId, all);
  return {
    bySite: statistics
      .by(
        (index) => results.siteIds[index] as number,
        (site) => cpusAt.get(site) as number,
        true,
      )
      .map(([site, figures]) => ({ site, name: names.get(site) as string, ...figures })),
    byUser: users
      .sort(([a, one], [b, other]) => other.jobs - one.jobs || a - b)
      .slice(0, USERS_MAX)
      .map(([user, figures]) => ({ user: scan?.userNames.get(user) ?? user, ...figures })),
    byWidth: statistics.by(classOf, all).map(([power, figures]) => ({
      from: power === 0 ? 1 : 2 ** (power - 1) + 1,
      to: 2 ** power,
      ...figures,
    })),
    ...(classes.length > 1 && {
      byClass: classes.map(([of, figures]) => ({ class: of, ...figures })),
    }),
  };
}

type Cleaned = Pick<
  SimulateOptions,
  'processors' | 'estimate' | 'missingEstimate' | 'overrun' | 'enter' | 'sectionS' | 'swf' | 'dependencies'
>;
type Sites = readonly SiteShape[];

/** Reads a trace, or generates one; its machines and its cleaned jobs. Throws when no job is left. */
export async function load(
  trace: Source,
  sites: Sites | null,
  options: Cleaned,
): Promise<{ scan: TraceScan | null; world: World; workload: Workload }> {
  if (typeof trace !== 'string') return made(trace, sites, options);
  let preparation: Preparation | null = null as Preparation | null;
  const scan = await scanTrace(trace, (job, known) => {
    preparation ??= new Preparation(known, sites, options);
    preparation.cleaning.take(job);
  });
  const { world, cleaning } = preparation as Preparation;
  const workload = cleaning.workload();
  if (workload.jobs.length === 0) {
    const why = Object.entries(workload.dropped).filter(([, jobs]) => jobs > 0);
    throw new Error(
      `${scan.name}: none of its ${scan.jobCount} jobs remains: ${why.map(([reason, jobs]) => `${jobs} ${reason}`).join(', ')}`,
    );
  }
  return { scan, world, workload };
}

/** The machines and the cleaned jobs of a trace that has been read. */
export function prepare(
  trace: Trace,
  sites: Sites | null,
  options: Cleaned,
): { world: World; workload: Workload } {
  const { world, cleaning } = new Preparation(trace, sites, options);
  for (const job of trace.jobs) cleaning.take(job);
  return { world, workload: cleaning.workload() };
}

/** Jobs that name no site. */
function made(
  trace: Generate | Workflow,
  sites: Sites | null,
  { processors, enter }: Cleaned,
): { scan: null; world: World; workload: Workload } {
  const atRoot = enter === ROOT;
  if (sites === null && processors === null)
    throw new Error('processors: required for a generated workload or a workflow');
  if (sites !== null && sites.length > 1 && !atRoot)
    throw new Error('sites: these jobs do not name a site; submit them to the root, or define only one site');
  const shapes = sites ?? [{ id: 1, name: 'machine', processors: processors as number }];
  const widest = Math.max(...shapes.map(widestAt));
  const tasksOfCpus = !isCounted(shapes);
  const siteId = atRoot ? null : (shapes[0] as SiteShape).id;
  const world = countedWorld(shapes);
  const all = { dropped: nothingDropped(), killed: 0, dependencies: null };
  if ('tasks' in trace) {
    const wide = trace.tasks.find(({ cpus }) => cpus > widest);
    if (wide !== undefined)
      throw new Error(
        `${traceName(trace)}: a task has ${wide.cpus} CPUs; accepted: up to ${widest}, the widest site`,
      );
    const jobs = jobsOf(trace.tasks, { siteId, memory: sites !== null && hasMemory(sites), tasksOfCpus });
    placeInWorkflow(jobs, trace.tasks, world);
    return { scan: null, world, workload: { jobs, ...all } };
  }
  const jobs = generatedJobs(trace, atRoot ? widest : widestAt(shapes[0] as SiteShape));
  for (const one of jobs) {
    one.siteId = siteId;
    if (tasksOfCpus) one.job = { ...one.job, tasks: one.job.cpusPerTask, cpusPerTask: 1 };
  }
  return { scan: null, world, workload: { jobs, ...all } };
}

/** What the header, the file of sites and the options say of the machines, and the cleaning for these. */
class Preparation {
  readonly world: World;
  readonly cleaning: Cleaning;

  constructor(scan: TraceScan, sites: Sites | null, { swf, ...options }: Cleaned) {
    const atRoot = options.enter === ROOT;
    const keepRecorded = Boolean(swf);
    if (sites === null) {
      const processors = options.processors ?? wholeInHeader(scan, 'MaxProcs', MAX_PROCESSORS);
      if (processors === null)
        throw new Error(`${scan.name}: the header has no MaxProcs; specify the number of processors`);
      this.world = countedWorld([{ id: 1, name: 'machine', processors }]);
      this.cleaning = new Cleaning({ ...options, atRoot, keepRecorded, processorsOf: () => processors });
      return;
    }
    if (options.processors !== null) throw new Error('processors: not accepted together with sites');
    this.world = countedWorld(sites);
    const byId = new Map(sites.map((site) => [site.id, site]));
    const byName = new Map(sites.map((site) => [site.name, site.id]));
    const widest = sites.reduce((most, site) => Math.max(most, widestAt(site)), 0);
    const widths = new Map(sites.map((site) => [site.id, widestAt(site)]));
    const siteOf = ({ partition }: SwfJob): number | null => {
      const name = scan.siteNames.get(partition);
      const id = name === undefined ? partition : (byName.get(name) ?? Number(name));
      return byId.has(id) ? id : null;
    };
    this.cleaning = new Cleaning({
      ...options,
      atRoot,
      keepRecorded,
      memory: hasMemory(sites),
      taskPerProcessor: !isCounted(sites),
      ...(atRoot
        ? { processorsOf: () => widest }
        : { siteOf, processorsOf: (siteId: number) => widths.get(siteId) as number }),
    });
  }
}
