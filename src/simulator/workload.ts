/**
 * What is simulated: jobs as the core knows them, with what only a simulator knows of them (how long they really run).
 * Here a trace in the Standard Workload Format becomes such jobs, by the archive's usual rules of cleaning.
 */
import {
  type Clause,
  type Job,
  KILL_GRACE_S,
  type NeedTerm,
  NO_PREFERENCES,
  type OnUnmet,
} from '../core/index.js';
import type { SwfJob } from './swf.js';

/** What a job waits for; others by the ids of their jobs. */
export interface SimWait {
  needs: readonly Clause<NeedTerm>[];
  onUnmet: OnUnmet;
  /** Before then it is not there; its job's time of submission is when it may start. */
  since: number;
  /** What it reads of what others, which it needs, have written, at the sites where these ran. */
  reads?: readonly { job: number; sizeMb: number }[];
}

/** A job to simulate. */
export interface SimJob {
  /**
   * As it is submitted. Its id is its rank by time of submission, from 1: equal times keep the order they came in. It may be another object each
   * time: to change it, replace it.
   */
  job: Job;
  /** The id that the workload gave it; results use this one. */
  sourceId: number;
  /** Seconds that it really computes on a machine of power `job.benchmark`, > 0. */
  runS: number;
  /** Seconds after which it is killed; null: never. Moving its data, and `ioS`, do not count, nor does waiting for a CPU. */
  limitS: number | null;
  /** Seconds of input and output at its site, which no machine's power shortens, beside moving its data; 0 unless said. */
  ioS?: number;
  /**
   * On time-shared machines: its tasks wait for each other whenever they have computed for so many seconds (on power
   * `job.benchmark`); at the end only unless said.
   */
  sectionS?: number;
  /** Its runs keep what they have done every so many seconds; never unless said. */
  checkpointS?: number;
  /** The site in whose queue it is submitted; null: the root. */
  siteId: number | null;
  /** What it waits for before it is submitted; nothing unless said. */
  wait?: SimWait;
  /** It had begun when the simulation does: a site's own scheduler does not keep it waiting. */
  begun?: boolean;
  /** Its run ends badly, which matters to jobs that need it; unless said it ends well if it is not killed. */
  fails?: boolean;
  /** The line of the trace, where it is to be written again. */
  recorded?: Readonly<SwfJob>;
}

/**
 * A job of a trace: what traces tell their jobs apart by. The job is made of it whenever it is asked for, so that of a million
 * only those are there in full that wait or run.
 */
class TraceJob implements SimJob {
  declare ioS?: number;
  declare sectionS?: number;
  declare checkpointS?: number;
  declare wait?: SimWait;
  declare begun?: boolean;
  declare fails?: boolean;
  declare recorded?: Readonly<SwfJob>;
  /** What it has been replaced by; null: it is as the trace says. */
  private replaced: Job | null = null;

  constructor(
    public id: number,
    private readonly userId: number,
    readonly submittedAt: number,
    private readonly estimateS: number,
    private readonly tasks: number,
    private readonly cpusPerTask: number,
    private readonly memoryMbPerTask: number,
    readonly sourceId: number,
    readonly runS: number,
    readonly limitS: number | null,
    public siteId: number | null,
  ) {}

  get job(): Job {
    if (this.replaced !== null) return this.replaced;
    return {
      id: this.id,
      userId: this.userId,
      userClass: 'REGULAR',
      submittedAt: this.submittedAt,
      estimateS: this.estimateS,
      benchmark: 1,
      deadline: null,
      tasks: this.tasks,
      cpusPerTask: this.cpusPerTask,
      memoryMbPerTask: this.memoryMbPerTask,
      resourcesPerTask: null,
      devicesPerTask: null,
      parts: null,
      tasksPerMachine: null,
      exclusive: null,
      allAlike: null,
      sameSwitch: null,
      eligibleAt: null,
      licenses: NO_LICENSES,
      resources: null,
      os: null,
      architecture: null,
      machineConstraint: null,
      image: null,
      boost: 0,
      priority: null,
      runTimeLimitS: null,
      killGraceS: KILL_GRACE_S,
      application: '',
      project: null,
      groupId: 0,
      migratedAt: null,
      dispatchedAt: null,
      data: null,
      preferences: NO_PREFERENCES,
      schedulerId: null,
      treeMoves: 0,
      avoids: null,
      reservationId: null,
      class: null,
      preemptionClass: 0,
      restartable: true,
      promised: null,
      workflow: null,
    };
  }

  set job(job: Job) {
    this.replaced = job;
  }

  again(submittedAt: number, id: number): TraceJob {
    const { userId, estimateS, tasks, cpusPerTask, memoryMbPerTask, runS, limitS, siteId } = this;
    const shape = [estimateS, tasks, cpusPerTask, memoryMbPerTask] as const;
    const other = new TraceJob(id, userId, submittedAt, ...shape, id, runS, limitS, siteId);
    if (this.sectionS !== undefined) other.sectionS = this.sectionS;
    if (this.recorded !== undefined) other.recorded = this.recorded;
    return other;
  }
}

/** The same job of a trace, submitted once more at another time and with another id; it waits for none. */
export const submittedAgain = (one: SimJob, submittedAt: number, id: number): SimJob =>
  one instanceof TraceJob
    ? one.again(submittedAt, id)
    : { ...one, job: { ...one.job, submittedAt, id }, sourceId: id };

/**
 * Where the estimate of a job comes from: what its user asked for, how long it really runs, or what earlier runs make likely (see
 * `predictorOf`): of the user the last two, or a regression over all.
 */
export type EstimateSource = 'requested' | 'actual' | 'predicted' | 'regression';

export interface CleaningOptions {
  /** Processors of a site: wider jobs are dropped. */
  processorsOf: (siteId: number) => number;
  estimate: EstimateSource;
  /** A job without a requested time is dropped, or its run time is taken. */
  missingEstimate: 'drop' | 'run';
  /** Kill at the requested time, or let jobs outrun it. */
  overrun: 'kill' | 'continue';
  /** The site of a job; null: it has none, and is dropped. All jobs are at site 1 unless said otherwise. */
  siteOf?: (job: SwfJob) => number | null;
  /** Jobs are submitted to the root, whatever their sites; false unless said. */
  atRoot?: boolean;
  /** A processor of a job is a task of its own; unless said they are one task, on one machine. */
  taskPerProcessor?: boolean;
  /** See `SimJob`. */
  sectionS?: number | null;
  /** Jobs need the memory that they requested; false unless said. */
  memory?: boolean;
  /** Jobs keep their lines of the trace; false unless said. */
  keepRecorded?: boolean;
  /** Jobs wait for the job before them, and for the time their user thinks (fields 17 and 18); false unless said. */
  dependencies?: boolean;
}

/** How many jobs were left out, and why. */
export interface Dropped {
  noSite: number;
  tooWide: number;
  noWidth: number;
  noRunTime: number;
  noEstimate: number;
  negativeSubmit: number;
}

export interface Workload {
  /** By time of submission. */
  jobs: SimJob[];
  dropped: Dropped;
  /** Jobs that are killed at their limit. */
  killed: number;
  /** Jobs that name one before them; null: that was not asked for. */
  dependencies: Dependencies | null;
}

export interface Dependencies {
  /** Jobs that wait for another. */
  jobs: number;
  /** Jobs that name one that is not before them in the workload: they come when the trace says. */
  unknown: number;
}

/** Cleans a trace; see {@link Cleaning}. */
export function cleanTrace(trace: readonly SwfJob[], options: CleaningOptions): Workload {
  const cleaning = new Cleaning(options);
  for (const job of trace) cleaning.take(job);
  return cleaning.workload();
}

export const nothingDropped = (): Dropped => ({
  noSite: 0,
  tooWide: 0,
  noWidth: 0,
  noRunTime: 0,
  noEstimate: 0,
  negativeSubmit: 0,
});

/**
 * Cleans a trace job by job, in this order: a job of no known site goes; one wider than the machine (its width is what it
 * asked for if positive, else what it got; one with neither goes too); one that did not run; one without an estimate;
 * one submitted before time 0. A processor of the trace is a CPU.
 */
export class Cleaning {
  private readonly jobs: TraceJob[] = [];
  private readonly dropped = nothingDropped();
  private killed = 0;
  private sorted = true;
  private readonly before = new Map<TraceJob, Pick<SwfJob, 'precedingJob' | 'thinkTime'>>();
  private lastSubmit = Number.NEGATIVE_INFINITY;

  /** Filled in and of one shape, whatever the caller's has: it is looked at for each job. */
  private readonly options: Required<CleaningOptions>;

  constructor(given: CleaningOptions) {
    const { processorsOf, estimate, missingEstimate, overrun, siteOf = atSiteOne } = given;
    const { atRoot = false, taskPerProcessor = false, sectionS = null } = given;
    const { memory = false, keepRecorded = false, dependencies = false } = given;
    this.options = {
      processorsOf,
      estimate,
      missingEstimate,
      overrun,
      siteOf,
      atRoot,
      taskPerProcessor,
      sectionS,
      memory,
      keepRecorded,
      dependencies,
    };
  }

  take(swf: Readonly<SwfJob>): void {
    const { options, dropped } = this;
    const { run, submit, requestedTime } = swf;
    const cpus = swf.requestedProcessors > 0 ? swf.requestedProcessors : swf.allocatedProcessors;
    const limit = requestedTime > 0 ? requestedTime : options.missingEstimate === 'run' ? run : -1;
    const siteId = options.siteOf(swf);
    if (siteId === null) dropped.noSite++;
    else if (cpus > options.processorsOf(siteId)) dropped.tooWide++;
    else if (!(cpus >= 1)) dropped.noWidth++;
    else if (!(run > 0)) dropped.noRunTime++;
    else if (!(limit > 0)) dropped.noEstimate++;
    else if (submit < 0) dropped.negativeSubmit++;
    else {
      if (submit < this.lastSubmit) this.sorted = false;
      this.lastSubmit = submit;
      const kill = options.overrun === 'kill';
      if (kill && run > limit) this.killed++;
      const actual = kill ? Math.min(run, limit) : run;
      const one = new TraceJob(
        this.jobs.length + 1,
        swf.user,
        submit,
        options.estimate === 'actual' ? actual : limit,
        options.taskPerProcessor ? cpus : 1,
        options.taskPerProcessor ? 1 : cpus,
        options.memory ? memoryMb(swf, options.taskPerProcessor ? 1 : cpus) : 0,
        swf.id,
        run,
        kill ? limit : null,
        options.atRoot ? null : siteId,
      );
      this.jobs.push(one);
      const { precedingJob, thinkTime } = swf;
      if (options.dependencies && precedingJob > 0) this.before.set(one, { precedingJob, thinkTime });
      if (options.sectionS) one.sectionS = options.sectionS;
      if (options.keepRecorded) one.recorded = { ...swf };
    }
  }

  workload(): Workload {
    const { jobs, dropped, killed } = this;
    if (!this.sorted) {
      jobs.sort((a, b) => a.submittedAt - b.submittedAt);
      for (const [i, one] of jobs.entries()) one.id = i + 1;
    }
    return { jobs, dropped, killed, dependencies: this.options.dependencies ? this.depend(jobs) : null };
  }

  /** A job whose user waited for another comes when that has ended and the user has thought, however long it took before. */
  private depend(jobs: readonly TraceJob[]): Dependencies {
    const ids = new Map(jobs.map(({ sourceId, id }) => [sourceId, id]));
    const found = { jobs: 0, unknown: 0 };
    for (const [one, { precedingJob, thinkTime }] of this.before) {
      const id = ids.get(precedingJob);
      // Only those before it: so there are no circles.
      if (id === undefined || id >= one.id) {
        found.unknown++;
        continue;
      }
      found.jobs++;
      const term = { members: [id], condition: 'ANY', minDelayS: Math.max(0, thinkTime) } as const;
      one.wait = { needs: [{ expression: 'ALL', of: [term] }], onUnmet: 'RUN', since: 0 };
    }
    return found;
  }
}

/** Requested, of so many processors, in whole MB; 0 where the trace does not say. */
const memoryMb = ({ requestedMemoryKb }: SwfJob, processors: number): number =>
  requestedMemoryKb > 0 ? Math.ceil((requestedMemoryKb * processors) / 1024) : 0;

const NO_LICENSES: readonly string[] = [];
const atSiteOne = (): number => 1;

/** Sorts jobs by time of submission, equal times as they are, and numbers them. */
export function inOrder(jobs: SimJob[]): SimJob[] {
  jobs.sort((a, b) => a.job.submittedAt - b.job.submittedAt);
  for (let i = 0; i < jobs.length; i++) (jobs[i] as SimJob).job.id = i + 1;
  return jobs;
}
