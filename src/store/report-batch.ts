/** What a batch of reports of runs is answered, and what it changes: a pure function of what was read under the locks of its jobs. */
import type { Retried, RetryFacts } from './retries.js';
import {
  causeOfRun,
  type FinalEnd,
  isMeant,
  type JobEnd,
  type Judgment,
  judgeReport,
  overtaken,
  type ReportedJob,
  timesOfReports,
} from './rules.js';
import type { TakenStep } from './run-reports.js';
import type { LocalRun, ReportResult, RunOutput, RunReport } from './store.js';
import { ofTask, type RunTasks, type TaskReport } from './tasks.js';

/** `assignedAt`, `since`: when its latest run was assigned and, if it was, started, epoch seconds; null: nobody knows. */
export type LockedJob = ReportedJob & {
  userId: number;
  assignedAt: number | null;
  since: number | null;
  /** The reporting agent serves the machines of its latest run; where it is launched once, the first. */
  served: boolean;
  /** The site's own scheduler has the run. */
  atSite: boolean;
};

export interface RunChange {
  epoch: number;
  /** null: as it was. */
  startedAt: number | null;
  /** null: it has not. */
  ended: RunReport | null;
  /** The task whose failure decides; null: as it was. */
  failedTask: number | null;
  /** Its tasks that go on are to end. */
  ending: boolean;
  /** What was decided about it; null: there was nothing to decide. */
  retry: Retried | null;
  /** What the site says of it; null: as it was. */
  local: LocalRun | null;
}

/** To be started again: at the root, for a time later, or after its release. */
export type NextRun = Exclude<JobEnd, FinalEnd>;
export interface EndedJob<End extends JobEnd> {
  report: RunReport;
  end: End;
}

/** What is known behind the locks. `judgeBatch` brings jobs and tasks up to date with each report that it accepts. */
export interface BatchFacts {
  /** Who reports: a site, or null for the service itself; an agent, or null for whoever there is. */
  siteId: number | null;
  agentId: number | null;
  maxAttempts: number;
  /** Epoch seconds. */
  now: number;
  jobs: ReadonlyMap<number, LockedJob>;
  siteOf(report: RunReport): number | undefined;
  /** By job. */
  tasks: ReadonlyMap<number, RunTasks>;
  retryFacts(jobId: number, failedTask: number | null, begun: boolean): RetryFacts;
}

export interface BatchChanges {
  /** In the order of the reports. */
  readonly results: readonly ReportResult[];
  /** Schedulers that look again; null: the root. */
  readonly touched: ReadonlySet<number | null>;
  /** By job: what changes of its live run. */
  readonly runs: ReadonlyMap<number, RunChange>;
  readonly outputs: readonly RunOutput[];
  readonly steps: readonly TakenStep[];
  readonly tasks: readonly TaskReport[];
  /** Runs that have ended with the last of their tasks. */
  readonly endedByTasks: readonly RunReport[];
  readonly started: readonly RunReport[];
  /** Runs whose other tasks are told to end. */
  readonly ending: readonly RunReport[];
  readonly ended: readonly EndedJob<FinalEnd>[];
  readonly requeued: readonly EndedJob<NextRun>[];
  /** Launches that failed for the sake of a machine. */
  readonly failed: readonly RunReport[];
}

/** Judges the reports one after the other: each sees what those before it made of its job. */
export function judgeBatch(reports: readonly RunReport[], facts: BatchFacts): BatchChanges {
  const batch = new Batch(reports, facts);
  for (const report of reports) batch.results.push(batch.judge(report));
  return batch;
}

/** The changes of batches that have no job in common. */
export function allOf(batches: readonly BatchChanges[]): BatchChanges {
  const [one] = batches;
  if (one !== undefined && batches.length === 1) return one;
  const each = <T>(of: (batch: BatchChanges) => Iterable<T>): T[] =>
    batches.flatMap((batch) => [...of(batch)]);
  return {
    results: each(({ results }) => results),
    touched: new Set(each(({ touched }) => touched)),
    runs: new Map(each(({ runs }) => runs)),
    outputs: each(({ outputs }) => outputs),
    steps: each(({ steps }) => steps),
    tasks: each(({ tasks }) => tasks),
    endedByTasks: each(({ endedByTasks }) => endedByTasks),
    started: each(({ started }) => started),
    ending: each(({ ending }) => ending),
    ended: each(({ ended }) => ended),
    requeued: each(({ requeued }) => requeued),
    failed: each(({ failed }) => failed),
  };
}

class Batch implements BatchChanges {
  readonly results: ReportResult[] = [];
  readonly touched = new Set<number | null>();
  readonly runs = new Map<number, RunChange>();
  readonly outputs: RunOutput[] = [];
  readonly steps: TakenStep[] = [];
  readonly tasks: TaskReport[] = [];
  readonly endedByTasks: RunReport[] = [];
  readonly started: RunReport[] = [];
  readonly ending: RunReport[] = [];
  readonly ended: EndedJob<FinalEnd>[] = [];
  readonly requeued: EndedJob<NextRun>[] = [];
  readonly failed: RunReport[] = [];
  private readonly timeOf: ReturnType<typeof timesOfReports>;

  constructor(
    reports: readonly RunReport[],
    private readonly facts: BatchFacts,
  ) {
    this.timeOf = timesOfReports(reports, facts.now);
  }

  judge(told: RunReport): ReportResult {
    const { jobs, siteId } = this.facts;
    const job = jobs.get(told.jobId);
    const site = this.facts.siteOf(told);
    if (job === undefined || site === undefined || (siteId !== null && site !== siteId)) return 'unknown-run';
    if (told.epoch === job.epoch && !isMeant(told.token, job.assignedAt)) return 'unknown-run';
    if (ofTask(told)) return this.judgeTask(told, job);
    if (!job.served) return 'unknown-run';
    const judgment = this.judgeRun(told, job);
    if (judgment.result === 'accepted') {
      const { since } = job;
      const report = { ...told, at: this.timeOf(told, since) };
      this.take(report, job, judgment);
      this.keepOutputs(report);
      this.steps.push(...takenSteps(told, report.at, since));
    }
    return judgment.result;
  }

  private judgeTask(told: TaskReport, job: LockedJob): ReportResult {
    const late = overtaken(job, told);
    if (late !== null) return late;
    const of = this.facts.tasks.get(told.jobId);
    if (!of?.serves(told.task, this.facts.agentId)) return 'unknown-run';
    const since = of.since(told.task);
    const report = { ...told, at: this.timeOf(told, since) };
    const { result, cause, ends, run } = of.judge(report, told.task, job.state === 'CANCELLING');
    if (result !== 'accepted') return result;
    this.tasks.push({ ...report, cause });
    this.keepOutputs(report);
    this.steps.push(...takenSteps(told, report.at, since));
    job.begun = of.of.begun;
    if (cause !== null) this.changeOf(told).failedTask = of.of.failure?.task ?? null;
    if (ends) {
      this.changeOf(told).ending = true;
      this.ending.push(told);
    }
    if (run === null) return result;
    if (run.phase === 'ENDED') this.endedByTasks.push(run);
    const judgment = this.judgeRun(run, job);
    if (judgment.result === 'accepted') this.take(run, job, judgment);
    return result;
  }

  private judgeRun(report: RunReport, job: LockedJob): Judgment {
    const { maxAttempts, retryFacts } = this.facts;
    const { jobId } = report;
    return judgeReport(job, report, maxAttempts, () =>
      retryFacts(jobId, this.runs.get(jobId)?.failedTask ?? null, job.begun === true),
    );
  }

  /** `report.at`: as it is taken. */
  private take(report: RunReport, job: LockedJob, { started, end }: Judgment): void {
    const site = this.facts.siteOf(report) as number;
    const change = this.changeOf(report);
    job.since = report.at;
    if (report.local) change.local = withNews(change.local, report.local);
    if (started) {
      change.startedAt = report.at;
      job.started = true;
      if (job.state === 'ASSIGNED') job.state = 'RUNNING';
      this.started.push(report);
      // There is room for another to wait with the site's own scheduler.
      if (job.atSite) this.touched.add(site);
    }
    if (end === null) return;
    change.ended = { ...report, cause: causeOfRun(job, end, report.cause) };
    change.retry = end.retry;
    job.state = end.state;
    this.touched.add(site);
    if (report.cause === 'MACHINE_FAILED') this.failed.push(report);
    if (report.cause === 'MACHINE_FAILED' || end.cause === null) this.touched.add(null);
    if (end.cause === null) this.requeued.push({ report, end });
    else {
      job.cause = end.cause;
      this.ended.push({ report, end });
    }
  }

  private keepOutputs({ jobId, epoch, task, outputs = [] }: RunReport): void {
    for (const piece of outputs) this.outputs.push({ jobId, epoch, task: task ?? 0, ...piece });
  }

  private changeOf({ jobId, epoch }: RunReport): RunChange {
    let change = this.runs.get(jobId);
    if (change === undefined) {
      const nothing = { startedAt: null, ended: null, failedTask: null, ending: false, retry: null };
      change = { epoch, ...nothing, local: null };
      this.runs.set(jobId, change);
    }
    return change;
  }
}

/**
 * The steps of a run or task that has ended, as long before its end as they are told to be, and within it.
 *
 * @param at when it ended, as it is taken
 * @param since when it began; null: nobody knows
 */
export function takenSteps(
  { jobId, epoch, task, at: toldAt, steps = [] }: RunReport,
  at: number,
  since: number | null,
): TakenStep[] {
  const taken = (told: number, from: number): number => Math.max(from, Math.min(told + at - toldAt, at));
  return steps.map((step) => {
    const startedAt = taken(step.startedAt, Math.min(since ?? -Infinity, at));
    const endedAt = step.endedAt === null ? null : taken(step.endedAt, startedAt);
    return { ...step, jobId, epoch, task: task ?? 0, startedAt, endedAt };
  });
}

/** What a later report leaves out stays as the earlier said. */
const withNews = (known: LocalRun | null, news: LocalRun): LocalRun => ({
  id: news.id ?? known?.id ?? null,
  state: news.state ?? known?.state ?? null,
  nodes: news.nodes ?? known?.nodes ?? null,
  imageDigest: news.imageDigest ?? known?.imageDigest ?? null,
  directory: news.directory ?? known?.directory ?? null,
});
