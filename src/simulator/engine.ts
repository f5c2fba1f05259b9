/**
 * The simulator's driver of the core: virtual time, and the same cycles that the live engine runs. It keeps a `Grid`, takes
 * events from a heap, feeds each to the grid, calls `dispatchCycle` and `siteCycle`, and applies their plans at once.
 *
 * At one instant, one of these orders (`eventOrder`):
 *   batch      everything that happens at the instant, then one cycle of each scheduler concerned. This is what the live
 *              service does, and the default.
 *   per-event  submissions in order, with cycles after each; then ends in the order in which the runs started, with
 *              cycles after each; then changes. A run that ends at its planned end is out of the way before the first
 *              of these cycles. This is what published results and pyss do.
 *   terminations-first  ends in the order in which the runs started, with cycles after each; then submissions in order, with
 *              cycles after each; then changes. This is what CQSim does.
 *
 * Whose cycles those are, and which jobs go back to the root when sites or machines go, the core's agenda says, as it does to the live
 * service. Under a policy whose answers change with time alone the root also looks every `timers.cycleS` while jobs wait in
 * meta-queues.
 *
 * A job that waits for others (`SimJob.wait`) is submitted when what it needs has happened, as the live service has it: until then no
 * scheduler knows it.
 *
 * A run of a job with data brings its inputs, reads, computes, writes, and returns its output. It holds its CPUs all that time, as live runs
 * do: their agents do not give machines to others meanwhile. Local schedulers plan with the estimate alone, live too.
 *
 * A site that schedules itself (`World.byObservedWaits`) is given jobs as live. Each begins there when it has waited for as long as was
 * observed of jobs of its shape, or later, when machines have room for it. What waits there for long is taken back as live.
 *
 * A run that is stopped for a job of a higher class, or for a hold, goes on to the end of the grace. What it has computed until its last checkpoint
 * (`SimJob.checkpointS`) its job need not compute again.
 */
import {
  Agenda,
  allocationsOf,
  applyMove,
  beginning,
  concernedBy,
  DataCatalog,
  type Dataset,
  type DispatchKind,
  dispatchCycle,
  dispatchKindOf,
  fieldsOf,
  Grid,
  type Held,
  handOverLimit,
  type Job,
  JobHistory,
  type License,
  type Link,
  limitAt,
  localPolicyOf,
  longestAt,
  type Machine,
  type Move,
  observedFor,
  type Policy,
  type PreemptedRun,
  type Preemption,
  queueLimitOf,
  type Return,
  ROOT,
  type Run,
  type RunTotals,
  ranksOf,
  recalls,
  recallsAfterS,
  rootHasJobs,
  type Scheduler,
  SchedulerTree,
  Shares,
  type Site,
  type SiteContext,
  type SiteEntry,
  type SiteImages,
  SitePasses,
  type Start,
  siteCycle,
  Traffic,
  type TreeScheduler,
  type WorldChange,
} from '../core/index.js';
import { Learning, transferS } from './data.js';
import { EventQueue } from './event-queue.js';
import { Waits } from './needs.js';
import { correctedS, type Predictor } from './prediction.js';
import { isFinal, type RunEnd, type Sink } from './sink.js';
import { HoldStops } from './stops.js';
import { TimeSharing } from './time-shared.js';
import type { SimJob } from './workload.js';

export const eventOrders = ['batch', 'per-event', 'terminations-first'] as const;
export type EventOrder = (typeof eventOrders)[number];

/** Something that changes in the world at a time. */
export interface Change {
  at: number;
  site?: Site;
  machine?: Machine;
  license?: License;
  dataset?: Dataset;
  link?: Link;
  /** All that there are between the root and sites from now on. */
  schedulers?: readonly TreeScheduler[];
  /** What is held at a site besides from now on, and what no more. */
  held?: {
    siteId: number;
    holds: readonly Held[];
    over: readonly number[];
    /** Of `holds`, the times of holds for which runs in their way are stopped. */
    preempting: readonly { holdId: number; held: Held }[];
  };
  /** With `machine`: its live runs are lost; their jobs go back to the queue they came from and start over. */
  losesRuns?: boolean;
}

/** The machines that jobs run on, and what schedulers know besides. */
export interface World {
  sites: readonly Site[];
  machines: readonly Machine[];
  licenses: readonly License[];
  changes: readonly Change[];
  /** Where data lies; none unless said. */
  datasets?: readonly Dataset[];
  /** Where images lie; nowhere unless said. They stay there: runs bring none to a site. */
  images?: readonly SiteImages[];
  /** The network between the sites; a link that is not here is the core's `UNKNOWN_LINK`. */
  links?: readonly Link[];
  /** What runs before the first have shown; none unless said. */
  totals?: readonly RunTotals[];
  /** Between the root and sites; none unless said. */
  schedulers?: readonly TreeScheduler[];
  /** Users' shares of the grid; 1 for a user who is not named. */
  quotas?: readonly (readonly [userId: number, share: number])[];
  /** Simulate sites that schedule themselves by what was observed there (`SiteLoad.waits`); unless said, they are refused. */
  byObservedWaits?: boolean;
}

export interface EngineOptions {
  policy: Policy;
  eventOrder: EventOrder;
  /** Replaces each job's estimate when it is submitted, and runs that outlast it get a longer one; unless said, users are believed. */
  predictor?: Predictor;
  /** Enter runs in the history, for policies that look at it; true unless said. */
  learn?: boolean;
  /**
   * Moves in one plan of the root at most, after each of which the sites look before it does again; unless said it moves what it
   * can before they look.
   */
  movesAtOnce?: number;
  /** The root looks only when jobs come to it, not when room comes free; false unless said. */
  dispatchAtArrivalsOnly?: boolean;
  /** Ends the simulation when so many jobs have ended. */
  stopAfter?: number;
  /** Called now and then with the number of jobs that have ended. */
  onProgress?: (ended: number) => void;
}

export interface Outcome {
  ended: number;
  /** Jobs that still wait when nothing more will happen: nothing can run them. */
  waiting: number;
  /** Jobs that never ran because what they needed could not happen any more, or that ended when they were stopped for others. */
  cancelled: number;
  /** The jobs as they were submitted: those that waited, when they did not any more. */
  jobs: readonly SimJob[];
  /** Cycles of all schedulers. */
  cycles: number;
  /** What history holds at the end, for a policy that looks at it. */
  totals: RunTotals[];
}

/** Starts and moves in one plan at most; a longer one is applied in parts. */
const PLAN_MAX = 10_000;
const PROGRESS_EVERY = 4096;

/** Ranks of the kinds of event at one instant. */
interface Kinds {
  change: number;
  /** The end of a run that takes just as long as planned. */
  plannedEnd: number;
  /** A section of a task on a time-shared machine ends. */
  section: number;
  /** A run keeps what it has done. */
  checkpoint: number;
  /** The grace of a run that is stopped is over. */
  stopped: number;
  /** Runs may have to be stopped for what is held at a site. */
  hold: number;
  /**
   * The end of any other. With a negative payload, -1 - site: the turn, among the ends, of a planned end that was taken
   * out of the way.
   */
  end: number;
  submit: number;
  /** A predicted end passes; the run goes on, if no end comes at the same instant. */
  outlasted: number;
  /** A promise comes due. */
  wake: number;
  /** The root looks again. */
  tick: number;
  /** A site's own scheduler has kept the job waiting for long enough. */
  waited: number;
}

const KINDS: Record<EventOrder, Kinds> = {
  batch: {
    change: 0,
    plannedEnd: 1,
    end: 1,
    section: 2,
    checkpoint: 3,
    stopped: 4,
    hold: 5,
    submit: 6,
    outlasted: 7,
    wake: 8,
    tick: 9,
    waited: 10,
  },
  'terminations-first': {
    plannedEnd: 0,
    end: 0,
    section: 1,
    checkpoint: 2,
    stopped: 3,
    submit: 4,
    change: 5,
    hold: 6,
    outlasted: 7,
    wake: 8,
    tick: 9,
    waited: 10,
  },
  'per-event': {
    plannedEnd: 0,
    submit: 1,
    end: 2,
    section: 3,
    checkpoint: 4,
    stopped: 5,
    change: 6,
    hold: 7,
    outlasted: 8,
    wake: 9,
    tick: 10,
    waited: 11,
  },
};

/** Whether the site's own scheduler decides there. */
export const schedulesItself = (site: Site, policy: Policy): boolean =>
  handOverLimit(localPolicyOf(site, policy)) !== null;

function refuseOwnSchedulers(sites: readonly Site[], policy: Policy): void {
  const own = sites.find((site) => schedulesItself(site, policy));
  if (own !== undefined)
    throw new Error(
      `site ${own.name}: the local policy ${localPolicyOf(own, policy).kind} is not simulated: the site's own scheduler decides there`,
    );
}

/**
 * Runs the jobs (ordered by submission, ids from 1 in that order) through the world.
 *
 * @throws where a site is left to its own scheduler, and that is not simulated (`World.byObservedWaits`)
 */
export function runSimulation(
  world: World,
  jobs: readonly SimJob[],
  options: EngineOptions,
  sinks: readonly Sink[],
): Outcome {
  if (!world.byObservedWaits) refuseOwnSchedulers(world.sites, options.policy);
  return new Simulation(world, jobs, options, sinks).run();
}

/** What the engine notes of a site. */
interface SiteState {
  readonly id: number;
  readonly entry: SiteEntry;
  concerned: boolean;
  /** Runs have ended since its last cycle. */
  released: boolean;
  /** When it is to be woken next. */
  wakeAt: number;
  /** Of a site that schedules itself, the jobs that have waited there for long enough, in that order; null: it does not. */
  readonly own: { ready: number[] } | null;
}

class Simulation {
  private readonly grid: Grid;
  private readonly events = new EventQueue();
  private readonly kinds: Kinds;
  private readonly changes: readonly Change[];
  /** By job: its live run, and the sequence of the event that will end it. */
  private readonly runs: (Run | null)[];
  private readonly ending: Float64Array;
  private readonly epochs: Int32Array;
  private readonly sites = new Map<number, SiteState>();
  /** The one that was asked for last: mostly it is asked for again. */
  private lastSite: SiteState | null = null;
  /** Sites whose scheduler must look again, in the order in which they came to be concerned. */
  private readonly concerned: SiteState[] = [];
  /** How many of the array count: to cut it would give its memory back at every event. */
  private concernedCount = 0;
  private rootConcerned = false;
  /** One for all site cycles: there are millions. */
  private readonly context: SiteContext;
  private readonly agenda = new Agenda();
  /** Where data lies, and the network. */
  private readonly data: DataCatalog;
  /** Some job has data to move, or an image. */
  private movesData = false;
  /** When runs end on machines that are shared in time. */
  private readonly sharing: TimeSharing;
  private readonly prediction: Predictor | null;
  /** By job: how long the schedulers believe that it computes. */
  private readonly estimates: Float64Array;
  /** The job that is submitted next. */
  private next: Job | null = null;
  /** null: the policy does not look at history. */
  private readonly learning: Learning | null = null;
  /** By job, where there is learning: the seconds of its live run that are input and output. */
  private readonly ioS: Float64Array;
  /** Of the sites, as far as the root is concerned; null: it never waits for room in them. */
  private readonly queueLimit: number | null;
  private readonly dispatchKind: DispatchKind;
  /** By job whose run is stopped: the event at which its grace is over, and whether it is queued again. */
  private readonly stopping = new Map<number, { sequence: number; requeue: boolean }>();
  /** By job that keeps what it has done: what need not be computed again, and the event at which its live run keeps next. */
  private readonly keeping = new Map<number, { doneS: number; sequence: number }>();
  /** By job that a site's own scheduler has not begun: the event at which it has waited for long enough. */
  private readonly waitingThere = new Map<number, number>();
  /** Jobs that were taken back from such schedulers. */
  private readonly recalled = new Set<number>();
  private readonly holdsAny: boolean;
  /** Some site bounds the limits of its jobs. */
  private readonly sitesLimit: boolean;
  /** Runs that are to be stopped at a limit that is no trace's. */
  private readonly cut = new Set<number>();
  private readonly stops: HoldStops;
  private tickPending = false;
  /** Of the last event that was no tick. */
  private lastNews = 0;
  private now = 0;
  private ended = 0;
  private cancelled = 0;
  private cycles = 0;
  /** null: no job waits for anything. */
  private readonly waits: Waits | null;
  /** A list of its own where some wait: those are exchanged when they are submitted. */
  private readonly jobs: readonly SimJob[];

  constructor(
    world: World,
    jobs: readonly SimJob[],
    private readonly options: EngineOptions,
    private readonly sinks: readonly Sink[],
  ) {
    this.kinds = KINDS[options.eventOrder];
    this.grid = new Grid(options.policy.workflows, ranksOf(options.policy));
    this.waits = jobs.some(({ wait }) => wait !== undefined) ? new Waits(jobs) : null;
    this.jobs = this.waits === null ? jobs : [...jobs];
    this.sharing = new TimeSharing(this.events, this.kinds.section);
    this.context = {
      now: 0,
      policy: options.policy,
      policyVersion: 1,
      maxStarts: PLAN_MAX,
      countWaiting: false,
      explain: false,
      accept: this.accept,
      passes: new SitePasses(),
    };
    this.changes = [...world.changes].sort((a, b) => a.at - b.at);
    this.holdsAny = this.changes.some(({ held }) => held !== undefined);
    this.sitesLimit = [...world.sites, ...this.changes.flatMap(({ site }) => site ?? [])].some(
      (site) => longestAt(site) < Infinity,
    );
    this.stops = new HoldStops(this.grid, options.policy);
    this.runs = new Array(jobs.length).fill(null);
    this.ending = new Float64Array(jobs.length);
    this.epochs = new Int32Array(jobs.length);
    this.prediction = options.predictor ?? null;
    this.estimates = new Float64Array(jobs.length);
    this.grid.index(SchedulerTree).set(world.schedulers ?? []);
    for (const site of world.sites) this.setSite(site);
    for (const license of world.licenses) this.grid.setLicense(license);
    for (const machine of world.machines) this.setMachine(machine);
    this.data = this.grid.index(DataCatalog);
    for (const dataset of world.datasets ?? []) this.data.setDataset(dataset);
    for (const images of world.images ?? []) this.data.setImages(images);
    for (const link of world.links ?? []) this.data.setLink(link);
    for (const [userId, share] of world.quotas ?? []) this.grid.index(Shares).set(userId, share);
    const { dispatch, referencePower } = options.policy;
    this.queueLimit = options.dispatchAtArrivalsOnly ? null : queueLimitOf(options.policy);
    this.dispatchKind = dispatchKindOf(dispatch);
    const learns = this.dispatchKind.learns === true;
    if (learns) this.learning = new Learning(this.grid.index(JobHistory), referencePower, world.totals ?? []);
    this.ioS = new Float64Array(learns ? jobs.length : 0);
  }

  run(): Outcome {
    const { events, options } = this;
    const { kinds } = this;
    const perEvent = options.eventOrder !== 'batch';
    // A run that ends as planned is out of the way before there are cycles.
    const silent = kinds.plannedEnd === kinds.end ? -1 : kinds.plannedEnd;
    const stopAfter = options.stopAfter ?? Infinity;
    this.expectSubmission(0);
    this.settleNeeds();
    this.changes.forEach((change, i) => {
      events.push(change.at, this.kinds.change, i);
    });
    while (this.ended < stopAfter && events.pop()) {
      this.now = events.time;
      this.take(events.kind, events.payload, events.sequence);
      const more = events.nextTime === this.now;
      if (!more || (perEvent && events.kind !== silent)) this.schedule();
    }
    const { ended, cancelled, cycles, jobs } = this;
    const waiting = jobs.length - ended - cancelled;
    return { ended, waiting, cancelled, jobs, cycles, totals: this.learning?.totals ?? [] };
  }

  /** Submissions come in order, one at a time. */
  private expectSubmission(index: number): void {
    this.next = this.jobs[index]?.job ?? null;
    if (this.next !== null) this.events.pushNext(this.next.submittedAt, this.kinds.submit, index);
  }

  private take(kind: number, payload: number, sequence: number): void {
    if (kind === this.kinds.submit) {
      if (payload < 0) this.release(-1 - payload);
      else {
        const job = this.next as Job;
        const one = this.jobs[payload] as SimJob;
        this.expectSubmission(payload + 1);
        // One that waited, or waits, comes by itself.
        if (one.wait === undefined) this.submit(one, job);
      }
    } else if (kind === this.kinds.end || kind === this.kinds.plannedEnd) {
      if (payload < 0) {
        const site = this.site(-1 - payload);
        site.released = true;
        this.concern(site);
      } else if (this.ending[payload] === sequence) this.end(payload);
    } else if (kind === this.kinds.section) {
      this.sharing.advance(payload, sequence, this.now, this.computed);
    } else if (kind === this.kinds.checkpoint) {
      if (this.keeping.get(payload)?.sequence === sequence) this.checkpoint(payload);
    } else if (kind === this.kinds.stopped) {
      if (this.stopping.get(payload)?.sequence === sequence) this.preempted(payload);
    } else if (kind === this.kinds.hold) {
      this.stopForHolds(payload);
    } else if (kind === this.kinds.outlasted) {
      this.correct(payload);
    } else if (kind === this.kinds.wake) {
      this.concern(this.site(payload));
    } else if (kind === this.kinds.waited) {
      if (this.waitingThere.get(payload) === sequence) this.waitedThere(payload);
    } else if (kind === this.kinds.tick) {
      this.tickPending = false;
      this.rootConcerned = true;
      return;
    } else this.change(this.changes[payload] as Change);
    this.lastNews = this.now;
  }

  /** `submitted`: its job, which is made anew where it is asked for. */
  private submit({ siteId, limitS }: SimJob, submitted: Job): void {
    const believed = this.believed(submitted);
    if (believed.data !== null || believed.image !== null) this.movesData = true;
    this.estimates[believed.id - 1] = believed.estimateS;
    // Nothing else asks for limits: without holds, and limits of sites, the jobs stay as they are.
    const job =
      (this.holdsAny || this.sitesLimit) && limitS !== null
        ? { ...believed, runTimeLimitS: limitS }
        : believed;
    if (siteId === null) {
      this.grid.placeAtRoot(job);
      this.rootConcerned = true;
    } else {
      this.grid.placeAtSite(job, siteId);
      this.concern(this.site(siteId));
    }
  }

  /** What has started or ended may be what jobs wait for. */
  private settleNeeds(): void {
    for (const change of this.waits?.settle() ?? []) {
      if (change.becomes === 'CANCELLED') this.cancelled++;
      else if (change.becomes === 'ELIGIBLE')
        this.events.push(Math.max(change.at, this.now), this.kinds.submit, -change.id);
    }
  }

  /** A job waits no longer. */
  private release(index: number): void {
    const submitted = this.waits?.submitted(this.jobs[index] as SimJob, this.now) ?? null;
    if (submitted === null) return;
    (this.jobs as SimJob[])[index] = submitted;
    this.submit(submitted, submitted.job);
  }

  /** The job with the estimate that the schedulers are to see. */
  private believed(job: Job): Job {
    if (this.prediction === null) return job;
    return { ...job, estimateS: this.prediction.estimate(job) };
  }

  private end(index: number): void {
    const one = this.jobs[index] as SimJob;
    const { limitS } = one;
    const left = this.leftS(index);
    this.prediction?.ended(one.job, Math.min(left, limitS ?? Infinity));
    const isKilled = this.cut.has(index) || (limitS !== null && left > limitS);
    this.finish(index, isKilled ? 'KILLED_AT_LIMIT' : 'COMPLETED');
    this.ended++;
    if (this.ended % PROGRESS_EVERY === 0) this.options.onProgress?.(this.ended);
  }

  /** What the job has still to compute, when its run begins. */
  private leftS(index: number): number {
    const { runS } = this.jobs[index] as SimJob;
    return this.keeping.size === 0 ? runS : runS - (this.keeping.get(index)?.doneS ?? 0);
  }

  /** A job has computed all that it has to, on time-shared machines. */
  private readonly computed = (index: number): void => {
    const run = this.runs[index] as Run;
    const io = this.movingS(this.jobs[index] as SimJob, run);
    if (io === 0) this.end(index);
    else this.ending[index] = this.events.push(this.now + io, this.kinds.end, index);
  };

  private finish(index: number, how: RunEnd): void {
    const job = this.jobs[index] as SimJob;
    const run = this.runs[index] as Run;
    if (how === 'COMPLETED' && this.learning !== null && this.options.learn !== false)
      this.learn(job, index, run);
    const isOver = isFinal(how);
    if (isOver && this.dispatchKind.congestion !== undefined)
      this.grid.index(Traffic).of(run.siteId).served(this.now);
    this.grid.endRun(index + 1);
    this.runs[index] = null;
    this.ending[index] = -1;
    if (this.stopping.size > 0) this.stopping.delete(index);
    if (this.cut.size > 0) this.cut.delete(index);
    if (!isOver) this.keep(index, run);
    else if (this.keeping.size > 0) this.keeping.delete(index);
    const site = this.site(run.siteId);
    this.concern(site);
    if (how === 'LOST') this.sharing.stop(index, this.now);
    if (this.kinds.plannedEnd === this.kinds.end || this.events.kind !== this.kinds.plannedEnd)
      site.released = true;
    for (let i = 0; i < this.sinks.length; i++) this.sinks[i]?.ended?.(job, index, run, this.now, how);
    if (this.waits === null || !isOver) return;
    this.waits.ended(index + 1, this.now, how === 'COMPLETED' && job.fails !== true);
    this.settleNeeds();
  }

  private learn({ job }: SimJob, index: number, { start, allocations }: Run): void {
    const turnaroundS = this.now - start;
    // Of its rounding the difference of two times may fall short of what was added.
    const ioS = Math.min(turnaroundS, this.ioS[index] as number);
    this.learning?.completed(job, { turnaroundS, ioS, sitePower: this.grid.slowestOf(allocations) });
  }

  private change({ site, machine, license, dataset, link, schedulers, held, losesRuns }: Change): void {
    if (schedulers !== undefined) {
      this.grid.index(SchedulerTree).set(schedulers);
      this.concernedBy({ of: 'TREE' });
    }
    if (site !== undefined) {
      this.setSite(site);
      this.concernedBy({ of: 'SITE', siteId: site.id });
    }
    if (license !== undefined) {
      this.grid.setLicense(license);
      this.concernedBy({ of: 'LICENSE', siteId: license.siteId });
    }
    if (held !== undefined) {
      if (held.over.length > 0) this.grid.removeHeld(...held.over);
      if (held.holds.length > 0) this.grid.setHeld(...held.holds);
      if (this.stops.change(held.siteId, held.preempting, held.over)) this.expectStops(held.siteId);
      this.concernedBy({ of: 'MACHINE', siteId: held.siteId });
    }
    if (dataset !== undefined) this.data.setDataset(dataset);
    if (link !== undefined) this.data.setLink(link);
    if (dataset !== undefined || link !== undefined) this.concernedBy({ of: 'DATA' });
    if (machine !== undefined) {
      this.setMachine(machine);
      if (losesRuns) this.loseRuns(machine.id);
      if (this.stops.concerns(machine.siteId)) this.expectStops(machine.siteId);
      this.concernedBy({ of: 'MACHINE', siteId: machine.siteId });
    }
  }

  private concernedBy(change: WorldChange): void {
    const schedulers = concernedBy(change);
    this.wake(schedulers === 'ALL' ? [ROOT, ...this.sites.keys()] : schedulers);
  }

  private loseRuns(machineId: number): void {
    this.runs.forEach((run, index) => {
      if (!run?.allocations.some((allocation) => allocation.machineId === machineId)) return;
      this.finish(index, 'LOST');
      this.again(index);
    });
  }

  /** A job goes back to the queue it came from and starts over. */
  private again(index: number): void {
    const one = this.jobs[index] as SimJob;
    this.submit(one, one.job);
  }

  /** Runs are told to stop for a job, which is promised the room. */
  private preempt({ jobId, siteId, victims, room }: Preemption): void {
    for (const victim of victims) this.stop(victim);
    this.grid.placeAtSite({ ...fieldsOf(this.grid.job(jobId) as Job), promised: room }, siteId);
  }

  private stop({ jobId, graceS, requeue }: Pick<PreemptedRun, 'jobId' | 'graceS' | 'requeue'>): void {
    const at = this.now + graceS;
    const sequence = this.events.push(at, this.kinds.stopped, jobId - 1);
    this.stopping.set(jobId - 1, { sequence, requeue });
    this.grid.stopRun(jobId, at);
  }

  /** Runs are told to stop for what is held at the site. */
  private stopForHolds(siteId: number): void {
    const { stopped, again } = this.stops.look(siteId, this.now);
    for (const run of stopped) this.stop(run);
    if (stopped.length > 0) this.concern(this.site(siteId));
    if (again !== Infinity) this.events.push(again, this.kinds.hold, siteId);
  }

  /** As soon as all that happens now has. */
  private expectStops(siteId: number): void {
    this.events.push(this.now, this.kinds.hold, siteId);
  }

  /** A run that was stopped is over. */
  private preempted(index: number): void {
    const requeue = this.stopping.get(index)?.requeue;
    this.finish(index, 'PREEMPTED');
    if (requeue) {
      this.again(index);
      return;
    }
    this.cancelled++;
    this.waits?.ended(index + 1, this.now, false);
    this.settleNeeds();
  }

  /** A run keeps what it has done, and will again. */
  private checkpoint(index: number): void {
    this.runs[index] = { ...(this.runs[index] as Run), checkpointAt: this.now };
    this.grid.checkpointRun(index + 1, this.now);
    const { siteId } = this.runs[index] as Run;
    if (this.stops.concerns(siteId)) this.expectStops(siteId);
    this.expectCheckpoint(index);
  }

  private expectCheckpoint(index: number): void {
    const { checkpointS } = this.jobs[index] as SimJob;
    if (checkpointS === undefined) return;
    const sequence = this.events.push(this.now + checkpointS, this.kinds.checkpoint, index);
    this.keeping.set(index, { doneS: this.keeping.get(index)?.doneS ?? 0, sequence });
  }

  /** Of a run that is over before its job is: what it has computed until its last checkpoint is done, behind moving data. */
  private keep(index: number, run: Run): void {
    const kept = this.keeping.get(index);
    if (kept === undefined) return;
    kept.sequence = -1;
    const { start, plannedEnd, checkpointAt = start } = run;
    const job = this.jobs[index] as SimJob;
    const scale = (plannedEnd - start) / (this.estimates[index] as number);
    const computedS = (checkpointAt - start - this.movingS(job, run)) / scale;
    kept.doneS += Math.min(Math.max(0, computedS), this.leftS(index));
  }

  /** Jobs go back to the root; whether there were any. */
  private takeBack(returns: readonly Return[]): boolean {
    if (returns.length === 0) return false;
    for (const { jobIds } of returns) {
      for (const jobId of jobIds)
        this.grid.placeAtRoot({ ...fieldsOf(this.grid.job(jobId) as Job), priority: null, promised: null });
    }
    this.rootConcerned = true;
    return true;
  }

  private setSite(site: Site): void {
    this.grid.setSite(site);
    if (this.sites.has(site.id)) return;
    const entry = this.grid.siteEntry(site.id);
    this.sites.set(site.id, {
      id: site.id,
      entry,
      concerned: false,
      released: false,
      wakeAt: Infinity,
      own: schedulesItself(site, this.options.policy) ? { ready: [] } : null,
    });
  }

  private setMachine(machine: Machine): void {
    this.grid.setMachine(machine);
    this.sharing.setMachine(machine, this.now);
  }

  private site(siteId: number): SiteState {
    if (this.lastSite?.id === siteId) return this.lastSite;
    const site = this.sites.get(siteId);
    if (site === undefined) throw new Error(`site ${siteId} is not in the world`);
    this.lastSite = site;
    return site;
  }

  private concern(site: SiteState): void {
    if (site.concerned) return;
    site.concerned = true;
    this.concerned[this.concernedCount++] = site;
  }

  private wake(schedulers: readonly Scheduler[]): void {
    for (let i = 0; i < schedulers.length; i++) {
      const scheduler = schedulers[i] as Scheduler;
      if (scheduler === ROOT) this.rootConcerned = true;
      else this.concern(this.site(scheduler));
    }
  }

  private schedule(): void {
    this.settleSchedulers();
    // Where nothing is left to move there may be room for what sites' own schedulers keep waiting.
    if (this.waitingThere.size > 0 && this.recall()) this.settleSchedulers();
    this.expectTick();
  }

  /** Cycles until nobody is concerned any more: a start makes room in a queue for the root to fill. */
  private settleSchedulers(): void {
    do {
      if (this.rootConcerned) this.dispatch();
      for (let i = 0; i < this.concernedCount; i++) {
        const site = this.concerned[i] as SiteState;
        site.concerned = false;
        this.lookAt(site);
      }
      this.concernedCount = 0;
    } while (this.rootConcerned && rootHasJobs(this.grid));
    this.rootConcerned = false;
  }

  /**
   * Time alone may change what the policy answers. When nothing else has happened for as long as that lasts, it changes nothing
   * any more: what waits then waits for good, and the simulation may end.
   */
  private expectTick(): void {
    const { events, now, dispatchKind } = this;
    if (dispatchKind.restlessS === undefined || this.tickPending) return;
    const { dispatch, timers } = this.options.policy;
    const restlessS = dispatchKind.restlessS(dispatch) + timers.cycleS;
    const quiet = events.length === 0 && now - this.lastNews > restlessS;
    if (quiet || !this.grid.sites.some(({ meta }) => meta.length > 0)) return;
    this.tickPending = true;
    events.push(now + timers.cycleS, this.kinds.tick, 0);
  }

  private dispatch(): void {
    this.rootConcerned = false;
    const { grid, now } = this;
    this.takeBack(this.agenda.returnsToRoot(grid, this.options.policy, Infinity));
    this.rootConcerned = false;
    if (!rootHasJobs(grid)) return;
    for (;;) {
      this.cycles++;
      const plan = dispatchCycle(grid, {
        now,
        policy: this.options.policy,
        policyVersion: 1,
        maxMoves: this.options.movesAtOnce ?? PLAN_MAX,
      });
      for (let i = 0; i < plan.moves.length; i++) this.move(plan.moves[i] as Move);
      if (!plan.truncated) return;
      if (this.options.movesAtOnce === undefined) continue;
      this.rootConcerned = true;
      return;
    }
  }

  private move(move: Move): void {
    applyMove(this.grid, move, this.now);
    if (move.queue === 'LOCAL') this.concern(this.site(move.to));
    for (let i = 0; i < this.sinks.length; i++) this.sinks[i]?.moved?.(move, this.now);
  }

  private lookAt(site: SiteState): void {
    const { grid, queueLimit } = this;
    const { entry } = site;
    const before = entry.reservation;
    this.takeBack(this.agenda.newReturnsFrom(grid, entry, Infinity));
    if (site.own !== null) this.beginThere(site, site.own);
    const { returns } = grid;
    this.startJobs(site);
    if (queueLimit !== null || grid.sharesLicenses) {
      const { policy } = this.options;
      const look = { entry, before, returns, starts: [], started: 0, queueLimit, policy };
      this.wake(this.agenda.afterSite(grid, look));
    }
  }

  private startJobs(site: SiteState): void {
    const { grid, now, context } = this;
    const { id, entry } = site;
    const perEvent = this.options.eventOrder === 'per-event';
    if (entry.queue.length === 0 && entry.reservation === null && entry.inside.length === 0) return;
    for (;;) {
      this.cycles++;
      context.now = now;
      // A run that was taken out of the way is noticed when its turn comes.
      if (perEvent) context.compress = site.released;
      site.released = false;
      const plan = siteCycle(grid, id, context);
      for (let i = 0; i < this.sinks.length; i++) this.sinks[i]?.planned?.(plan, now);
      for (let i = 0; i < plan.starts.length; i++)
        if (site.own === null) this.begin(plan.starts[i] as Start, entry.resources.shared);
        else this.handOver(plan.starts[i] as Start, site);
      grid.setReservation(id, plan.reservation);
      grid.keepMemory(id, plan.memory);
      for (let i = 0; i < plan.preemptions.length; i++) this.preempt(plan.preemptions[i] as Preemption);
      if (plan.wakeAt !== Infinity && plan.wakeAt !== site.wakeAt) {
        site.wakeAt = plan.wakeAt;
        this.events.push(plan.wakeAt, this.kinds.wake, id);
      }
      if (!plan.truncated && plan.preemptions.length === 0) return;
    }
  }

  private readonly accept = ({ jobId, siteId, allocations, pools, plannedDuration }: Start): Run => {
    const epoch = (this.epochs[jobId - 1] as number) + 1;
    this.epochs[jobId - 1] = epoch;
    const { now } = this;
    const run: Run = {
      jobId,
      siteId,
      epoch,
      allocations,
      pools,
      start: now,
      plannedEnd: now + plannedDuration,
    };
    if (this.site(siteId).own !== null) run.waits = true;
    this.runs[jobId - 1] = run;
    return run;
  };

  /** The site's own scheduler has the job, and keeps it waiting. */
  private handOver({ jobId, siteId }: Start, { entry: { site } }: SiteState): void {
    const index = jobId - 1;
    const { begun } = this.jobs[index] as SimJob;
    const observed = begun || !site.load ? null : observedFor(site, this.grid.job(jobId) as Job);
    const { events, kinds, now } = this;
    this.waitingThere.set(index, events.push(now + (observed?.waitS ?? 0), kinds.waited, index));
    const afterS = recallsAfterS(localPolicyOf(site, this.options.policy));
    if (afterS !== null) events.push(now + afterS, kinds.wake, siteId);
  }

  private waitedThere(index: number): void {
    const site = this.site((this.runs[index] as Run).siteId);
    site.own?.ready.push(index);
    this.concern(site);
  }

  /** What has waited there for long enough begins, as far as there is room: what fits goes ahead of what does not. */
  private beginThere({ entry }: SiteState, own: { ready: number[] }): void {
    if (own.ready.length === 0) return;
    const { grid, now } = this;
    const refused = new Set<unknown>();
    own.ready = own.ready.filter((index) => {
      const job = grid.job(index + 1) as Job;
      const requirement = grid.requirementOf(job);
      const placement = refused.has(requirement) ? null : beginning(grid, entry, job, now);
      if (placement === null) {
        // Beside what is held later, one as large may fit that is shorter.
        if (!this.holdsAny) refused.add(requirement);
        return true;
      }
      // As in `begin`.
      const limit = (this.jobs[index] as SimJob).limitS === null ? limitAt(job, entry.site) : Infinity;
      const work = entry.resources.plannedWork(job.estimateS * job.benchmark, limit);
      const plannedDuration = work / placement.benchmark;
      const { jobId, siteId, epoch, pools } = this.runs[index] as Run;
      const allocations = allocationsOf(placement);
      const run = { jobId, siteId, epoch, allocations, pools, start: now, plannedEnd: now + plannedDuration };
      grid.beginRun(run, placement);
      this.runs[index] = run;
      this.waitingThere.delete(index);
      this.begin({ jobId, plannedDuration }, false);
      return false;
    });
  }

  /**
   * What sites' own schedulers keep waiting while others can start it goes back to the root; whether there was any. Each job once: a policy
   * that sends it to the same site all the same would have it wait there without end.
   */
  private recall(): boolean {
    const { grid, now } = this;
    let any = false;
    for (const { siteId, jobIds } of recalls(grid, this.options.policy, now, Infinity)) {
      const site = this.site(siteId);
      for (const jobId of jobIds) {
        if (this.recalled.has(jobId)) continue;
        this.recalled.add(jobId);
        const job = grid.job(jobId) as Job;
        const index = jobId - 1;
        this.waitingThere.delete(index);
        this.runs[index] = null;
        if (site.own !== null) site.own.ready = site.own.ready.filter((one) => one !== index);
        grid.endRun(jobId);
        grid.placeAtRoot({ ...fieldsOf(job), priority: null, promised: null });
        any = true;
      }
      this.concern(site);
    }
    this.rootConcerned ||= any;
    return any;
  }

  /** `shared`: on time-shared machines. */
  private begin({ jobId, plannedDuration }: Pick<Start, 'jobId' | 'plannedDuration'>, shared: boolean): void {
    const index = jobId - 1;
    const job = this.jobs[index] as SimJob;
    const run = this.runs[index] as Run;
    const { limitS } = job;
    const left = this.leftS(index);
    let seconds = limitS !== null && left > limitS ? limitS : left;
    // A trace tells how long each job computes within its limit, wherever that is.
    const limit = limitS === null ? this.grid.limitOf(jobId) : Infinity;
    // The machines are faster or slower than the estimate's by the same factor for the whole of the run.
    const planned = this.plannedS(index, run.siteId, limit);
    let computing = seconds === planned ? plannedDuration : (seconds * plannedDuration) / planned;
    if (computing > limit) {
      seconds *= limit / computing;
      computing = limit;
      this.cut.add(index);
    }
    const io = this.movingS(job, run);
    if (this.learning !== null) this.ioS[index] = io;
    const duration = computing + io;
    const { events, kinds } = this;
    if (shared) this.share(index, seconds, run);
    else if (duration === plannedDuration && kinds.plannedEnd !== kinds.end) {
      this.ending[index] = events.push(this.now + duration, kinds.plannedEnd, index);
      events.push(this.now + duration, kinds.end, -1 - run.siteId);
    } else this.ending[index] = events.push(this.now + duration, kinds.end, index);
    if (this.prediction !== null && duration > plannedDuration) {
      events.push(run.plannedEnd, kinds.outlasted, index);
    }
    this.expectCheckpoint(index);
    for (let i = 0; i < this.sinks.length; i++) this.sinks[i]?.started?.(job, index, run);
    if (this.waits === null) return;
    this.waits.started(jobId, run.siteId, this.now);
    this.settleNeeds();
  }

  /** What was planned of the estimate: no more than the limit lets the job do there. */
  private plannedS(index: number, siteId: number, limit: number): number {
    const estimate = this.estimates[index] as number;
    if (limit === Infinity) return estimate;
    const { benchmark } = (this.jobs[index] as SimJob).job;
    return this.site(siteId).entry.resources.plannedWork(estimate * benchmark, limit) / benchmark;
  }

  /** Seconds of the run that are input and output. */
  private movingS(one: SimJob, { siteId }: Run): number {
    const moving = this.movesData ? transferS(this.data, one.job, siteId) : 0;
    return one.ioS === undefined ? moving : moving + one.ioS;
  }

  private share(index: number, seconds: number, run: Run): void {
    const { job, sectionS } = this.jobs[index] as SimJob;
    const section = sectionS === undefined ? Infinity : sectionS * job.benchmark;
    this.sharing.start(index, run, job, seconds * job.benchmark, section, this.now);
  }

  /** A run goes on beyond its predicted end: it gets a later one, up to what the job asked for. */
  private correct(index: number): void {
    const { job } = this.jobs[index] as SimJob;
    const run = this.runs[index] as Run | null;
    if (this.prediction === null || run === null || run.plannedEnd !== this.now) return;
    // It will be over soon.
    if (this.stopping.has(index)) return;
    const estimate = this.estimates[index] as number;
    // What a second of the estimate takes on the machine that the run got.
    const scale = (run.plannedEnd - run.start) / estimate;
    const corrected = correctedS(estimate, job.estimateS);
    if (corrected === null) return;
    this.estimates[index] = corrected;
    const plannedEnd = run.start + corrected * scale;
    this.runs[index] = { ...run, plannedEnd };
    this.grid.replanRun(job.id, plannedEnd);
    this.events.push(plannedEnd, this.kinds.outlasted, index);
    this.concern(this.site(run.siteId));
  }
}
