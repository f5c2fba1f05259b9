/**
 * The store on Postgres. Each operation is one transaction of a few set-based statements (src/store/sql), whatever the number of jobs.
 *
 * Every transaction takes its locks in one order: user, sites, jobs by id, machines by id, licenses by id, and last the
 * event lock, which the triggers take when jobs (or the directory) change. So the statement that changes jobs comes last:
 * whoever holds the event lock waits for nobody, and the others queue up behind it only to commit.
 */
import type { Dataset, Link, Move, Reservation, RunAverages, Start, UserClass } from '../core/model.js';
import { type EndCause, isTerminal, type JobState } from '../core/states.js';
import { listColumn, plainColumn, storable, textColumn, textListColumn } from './columns.js';
import type { Prisma, PrismaClient } from './generated/client.js';
import {
  type DataArrays,
  type DirectoryArray,
  directoryFromArray,
  type JobArray,
  jobFromArray,
  type PromisesArray,
  promisesFromArray,
  promisesToArray,
  type ReservationArray,
  type RunArray,
  reservationFromArray,
  runFromArray,
} from './images.js';
import { inTransaction } from './pool.js';
import {
  admitStart,
  type FreeResources,
  holderOf,
  type JobEnd,
  judgeReport,
  quotaFreesAt,
  type ReportedJob,
} from './rules.js';
import * as assignmentsSql from './sql/assignments.js';
import * as changesSql from './sql/changes.js';
import * as controlSql from './sql/control.js';
import * as gridSql from './sql/grid.js';
import * as movesSql from './sql/moves.js';
import * as presenceSql from './sql/presence.js';
import * as pruneSql from './sql/prune.js';
import * as reportsSql from './sql/reports.js';
import * as startsSql from './sql/starts.js';
import * as submitSql from './sql/submit.js';
import * as sweepSql from './sql/sweep.js';
import { read, readSql, write } from './statement.js';
import {
  type Applied,
  type Assignment,
  type AssignmentBatch,
  type Cursor,
  type GridChanges,
  type GridImage,
  type JobChange,
  type JobImage,
  type JobSelection,
  type KeptPromises,
  type NewJob,
  type OutputPiece,
  type PlanContext,
  PRESENCE_GAP_S,
  type Pruned,
  type ReportOutcome,
  type ReportResult,
  type Retention,
  type RunReport,
  type SelectionOutcome,
  type StartOutcome,
  type Store,
  type Submission,
  type SubmitResult,
  type SweepOutcome,
  type SweepRules,
  type TrafficCount,
} from './store.js';

export interface PostgresStoreOptions {
  /** Jobs that may be there without having ended; a submission beyond is refused. */
  liveJobsMax?: number;
}

type Transaction = Prisma.TransactionClient;

/** Jobs of a page when the grid is loaded: some 4 MB of JSON. */
const LOAD_PAGE = 20_000;
/** Jobs sent in one statement: more would keep this process from its other work for too long. */
const SUBMIT_PART = 10_000;
/** Events that one request for assignments looks through. */
const ASSIGNMENT_WINDOW = 10_000;
/** Margins kept: more than any policy's window (core/policy.ts, MAX_WINDOW). */
const MARGINS_KEPT = 10_000;
/** Records of run averages kept: applications × users × kinds of resource. All of them are in every mirror. */
const AVERAGES_KEPT = 100_000;
const LIVE_JOBS_MAX = 1_000_000;
/** A transaction that reads 100 000s of jobs, or writes 10 000, on a busy small machine. */
const LONG_MS = 120_000;

export class PostgresStore implements Store {
  private readonly liveJobsMax: number;

  constructor(
    private readonly prisma: PrismaClient,
    options: PostgresStoreOptions = {},
  ) {
    this.liveJobsMax = options.liveJobsMax ?? LIVE_JOBS_MAX;
  }

  // Out ---------------------------------------------------------------------------------------------------------------

  /** One snapshot (REPEATABLE READ): the cursor and everything else are of the same instant. */
  loadGrid(marginWindow: number): Promise<GridImage> {
    const load = async (tx: Transaction): Promise<GridImage> => {
      const [cursor, directory, margins, data] = await read<[Cursor, DirectoryArray, number[], DataArrays]>(
        tx,
        gridSql.loadDirectory,
        marginWindow,
      );
      const [datasets, links, quotas, averages, traffic] = data;
      const reservations = await read<ReservationArray[]>(tx, gridSql.loadReservations);
      const jobs: JobImage[] = [];
      for (;;) {
        const page = await read<[JobArray, JobState, number | null, RunArray | null][]>(
          tx,
          gridSql.loadJobs,
          jobs.at(-1)?.job.id ?? 0,
          LOAD_PAGE,
        );
        for (const [job, state, siteId, run] of page) {
          jobs.push({ job: jobFromArray(job), state, siteId, run: run && runFromArray(job[0], run) });
        }
        if (page.length < LOAD_PAGE) break;
      }
      return {
        cursor,
        ...directoryFromArray(directory),
        jobs,
        margins,
        reservations: reservations.map(reservationFromArray),
        datasets,
        links,
        quotas,
        averages,
        traffic,
      };
    };
    return inTransaction(this.prisma, load, { isolationLevel: 'RepeatableRead', timeoutMs: LONG_MS });
  }

  async changesSince(cursor: Cursor, limit: number): Promise<GridChanges | 'too-old'> {
    type Entry = [
      number,
      JobState?,
      (number | null)?,
      (number | null)?,
      (number | null)?,
      (RunArray | null)?,
      (JobArray | null)?,
    ];
    type Answer = [
      Cursor,
      number,
      Entry[] | null,
      number[] | null,
      [number, UserClass, number][] | null,
      DirectoryArray | null,
      [number, number | null][] | null,
      RunAverages[] | null,
      TrafficCount[] | null,
    ];
    const answer = await read<Answer | null>(this.prisma, changesSql.changesSince, cursor, limit);
    if (answer === null) return 'too-old';
    const [next, events, jobs, margins, users, directory, data, averages, traffic] = answer;
    return {
      cursor: next,
      jobs: (jobs ?? []).map(
        ([id, state, siteId = null, priority = null, migratedAt = null, run, job]): JobChange => {
          if (state === undefined) return { id, position: null, job: null };
          const position = { state, siteId, priority, migratedAt, run: run ? runFromArray(id, run) : null };
          return { id, position, job: job ? { ...jobFromArray(job), priority } : null };
        },
      ),
      margins: margins ?? [],
      users: (users ?? []).map(([userId, userClass, share]) => ({ userId, userClass, share })),
      directory: directory && directoryFromArray(directory),
      ...(await this.changedData(data ?? [])),
      averages: averages ?? [],
      traffic: traffic ?? [],
      more: events >= limit,
    };
  }

  /** Datasets (an id and null) and links (two sites) as they are now. */
  private async changedData(
    changed: readonly [number, number | null][],
  ): Promise<Pick<GridChanges, 'datasets' | 'links'>> {
    if (changed.length === 0) return { datasets: [], links: [] };
    const links = changed.filter(([, to]) => to !== null);
    const answer = await read<[[number, Dataset | null][], [number, number, Link | null][]]>(
      this.prisma,
      changesSql.changedData,
      plainColumn(changed.filter(([, to]) => to === null).map(([id]) => id)),
      plainColumn(links.map(([from]) => from)),
      plainColumn(links.map(([, to]) => to)),
    );
    return {
      datasets: answer[0].map(([id, dataset]) => ({ id, dataset })),
      links: answer[1].map(([fromSiteId, toSiteId, link]) => ({ fromSiteId, toSiteId, link })),
    };
  }

  async reservations(): Promise<Reservation[]> {
    return (await read<ReservationArray[]>(this.prisma, gridSql.loadReservations)).map(reservationFromArray);
  }

  async promises(siteId: number): Promise<KeptPromises> {
    type Answer = [number, PromisesArray | null] | null;
    const [revision, body] = (await read<Answer>(this.prisma, startsSql.loadPromises, siteId)) ?? [0, null];
    return { revision, promises: body && promisesFromArray(body) };
  }

  // In: submissions and plans -----------------------------------------------------------------------------------------

  submit(submission: Submission): Promise<SubmitResult> {
    const { userId, idempotencyKey, payloadHash, jobs, group = null, now } = submission;
    if (jobs.length === 0) throw new RangeError('submission.jobs is empty; accepted is at least one job');
    const store = async (tx: Transaction): Promise<SubmitResult> => {
      const quota = await read<[number | null, number | null] | null>(tx, submitSql.lockUser, userId);
      if (quota === null)
        throw new RangeError(`submission.userId is ${userId}; accepted is the id of a user`);
      const [limit, periodS] = quota;
      const [known, recent, live] = await read<
        [[string, number[], number | null] | null, [number, number][], number]
      >(tx, submitSql.findSubmissions, userId, idempotencyKey, now, periodS);
      if (known !== null) {
        const [hash, jobIds, groupId] = known;
        return hash === payloadHash
          ? { kind: 'accepted', jobIds, groupId, repeated: true }
          : { kind: 'key-reused' };
      }
      if (limit !== null && periodS !== null) {
        const used = recent.reduce((sum, [, count]) => sum + count, 0);
        if (used + jobs.length > limit) {
          const freesAt = quotaFreesAt(recent, jobs.length, limit, periodS);
          return { kind: 'quota', limit, periodS, used, asked: jobs.length, freesAt };
        }
      }
      if (live + jobs.length > this.liveJobsMax) return { kind: 'full', limit: this.liveJobsMax, live };
      const together = jobs.length > 1 || group !== null;
      let answer: [number, number[]];
      if (jobs.length <= SUBMIT_PART) {
        answer = await read(tx, submitSql.insertJobs, userId, now, together, ...jobColumns(jobs));
      } else {
        await write(tx, submitSql.makeStage);
        for (let i = 0; i < jobs.length; i += SUBMIT_PART)
          await write(tx, submitSql.stageJobs, i, ...jobColumns(jobs.slice(i, i + SUBMIT_PART)));
        answer = await read(tx, submitSql.insertStagedJobs, userId, now, together);
      }
      const [id, jobIds] = answer;
      const ids = plainColumn(jobIds);
      await write(tx, submitSql.insertSubmission, id, userId, idempotencyKey, payloadHash, ids, now);
      if (group !== null) {
        const template = group.template === null ? null : JSON.stringify(group.template);
        const range = [jobIds[0], jobIds.at(-1)];
        await write(tx, submitSql.insertGroup, id, userId, group.name, template, jobs.length, ...range, now);
      }
      return { kind: 'accepted', jobIds, groupId: together ? id : null, repeated: false };
    };
    return inTransaction(this.prisma, store, { timeoutMs: LONG_MS });
  }

  applyMoves(moves: readonly Move[], context: PlanContext): Promise<Applied> {
    const idsOf = (part: readonly Move[]) => plainColumn(part.map((move) => move.jobId));
    const targetsOf = (part: readonly Move[]) => plainColumn(part.map((move) => move.to));
    const decide = async (tx: Transaction, part: readonly Move[], toLocal: boolean): Promise<void> => {
      if (part.length === 0) return;
      await write(
        tx,
        movesSql.insertDispatchDecisions,
        context.now,
        context.policyVersion,
        context.cycle,
        idsOf(part),
        plainColumn(part.map((move) => move.from)),
        targetsOf(part),
        textColumn(part.map((move) => move.reason)),
        part.map((move) => JSON.stringify(move.explanation)).join('\n'),
        toLocal,
      );
    };
    const apply = async (tx: Transaction): Promise<Applied> => {
      const sites = [...new Set(moves.map((move) => move.to))];
      const [up, elsewhere] = await read<[number[], [number, JobState | null, number | null][]]>(
        tx,
        movesSql.lockMoves,
        plainColumn(sites),
        plainColumn(moves.map((move) => move.jobId)),
        plainColumn(moves.map((move) => move.from)),
      );
      const usable = new Set(up);
      const whyNot = new Map(elsewhere.map(([place, state, site]) => [place, whereabouts(state, site)]));
      const named = new Set<number>();
      const accepted: Move[] = [];
      const refused: Applied['refused'] = [];
      moves.forEach((move, place) => {
        const why =
          whyNot.get(place) ??
          (usable.has(move.to) ? null : `site ${move.to} is not up`) ??
          (move.queue === 'META' && move.from === move.to ? 'it is in that meta-queue' : null) ??
          (named.has(move.jobId) ? 'the plan names it twice' : null);
        if (why !== null) refused.push({ jobId: move.jobId, why });
        else {
          accepted.push(move);
          named.add(move.jobId);
        }
      });
      const local = accepted.filter((move) => move.queue === 'LOCAL');
      const meta = accepted.filter((move) => move.queue === 'META');
      for (const part of [local, meta]) await decide(tx, part, part === local);
      if (local.length > 0) {
        const priorities = plainColumn(local.map((move) => move.priority));
        await write(tx, movesSql.moveJobs, context.now, idsOf(local), targetsOf(local), priorities);
      }
      if (meta.length > 0)
        await write(tx, movesSql.moveJobsToMeta, context.now, idsOf(meta), targetsOf(meta));
      return { accepted: accepted.map((move) => move.jobId), refused };
    };
    if (moves.length === 0) return Promise.resolve({ accepted: [], refused: [] });
    return inTransaction(this.prisma, apply, { timeoutMs: LONG_MS });
  }

  applyStarts(
    siteId: number,
    starts: readonly Start[],
    reservation: Reservation | null,
    context: PlanContext,
    promises: KeptPromises | null = null,
  ): Promise<StartOutcome> {
    const apply = async (tx: Transaction): Promise<StartOutcome> => {
      const [up, found] = await read<
        [boolean, [number, JobState, number | null, number, number, number, number, string[]][]]
      >(tx, startsSql.lockStarts, siteId, plainColumn(starts.map((start) => start.jobId)));
      const [machines, licenses, reserved, promised, runs] = await read<
        [
          [number, number, number, number | null][],
          [number, string, number][],
          ReservationArray | null,
          boolean,
          number | null,
        ]
      >(
        tx,
        startsSql.lockResources,
        siteId,
        plainColumn([...new Set(starts.flatMap((start) => start.allocations.map((a) => a.machineId)))]),
        plainColumn([...new Set(starts.flatMap((start) => start.licenseIds))]),
      );
      if (up && !(await this.keepPromises(tx, siteId, promises, promised))) {
        const why = 'the site has promised otherwise meanwhile';
        const refused = starts.map(({ jobId }) => ({ jobId, why }));
        return { accepted: [], epochs: [], refused, outdated: true };
      }
      const jobs = new Map(
        found.map(([id, state, at, epoch, tasks, cpusPerTask, memoryMbPerTask, kinds]) => [
          id,
          { state, siteId: at, epoch, tasks, cpusPerTask, memoryMbPerTask, licenses: kinds },
        ]),
      );
      const free: FreeResources = {
        machines: new Map(machines.map(([id, cpus, memoryMb, places]) => [id, { cpus, memoryMb, places }])),
        licenses: new Map(licenses.map(([id, kind, copies]) => [id, { kind, copies }])),
        runs,
      };
      const accepted: Start[] = [];
      const epochs: number[] = [];
      const refused: Applied['refused'] = [];
      for (const start of starts) {
        const job = jobs.get(start.jobId);
        const why = !up
          ? `site ${siteId} is not up`
          : start.siteId !== siteId
            ? `the start is one of site ${start.siteId}`
            : admitStart(start, job, free);
        if (why !== null || job === undefined) {
          refused.push({ jobId: start.jobId, why: why ?? 'there is no such job' });
          continue;
        }
        job.state = 'ASSIGNED';
        accepted.push(start);
        epochs.push(job.epoch + 1);
      }
      const ids = plainColumn(accepted.map((start) => start.jobId));
      if (accepted.length > 0) {
        const specs = accepted.map((start) => jobs.get(start.jobId)!);
        await write(
          tx,
          startsSql.insertRuns,
          siteId,
          context.now,
          context.policyVersion,
          context.cycle,
          ids,
          plainColumn(epochs),
          listColumn(accepted.map((start) => start.allocations.map((a) => a.machineId))),
          listColumn(accepted.map((start) => start.allocations.map((a) => a.tasks))),
          plainColumn(specs.map((job) => job.cpusPerTask)),
          plainColumn(specs.map((job) => job.memoryMbPerTask)),
          listColumn(accepted.map((start) => start.licenseIds)),
          plainColumn(accepted.map((start) => start.plannedDuration)),
          textColumn(accepted.map((start) => start.reason)),
          accepted.map((start) => JSON.stringify(start.explanation)).join('\n'),
        );
      }
      await this.keepReservation(tx, siteId, reservation, reserved && reservationFromArray(reserved));
      if (accepted.length > 0) await write(tx, startsSql.assignJobs, ids, plainColumn(epochs));
      return { accepted: accepted.map((start) => start.jobId), epochs, refused, outdated: false };
    };
    return inTransaction(this.prisma, apply);
  }

  /** False when they were not made on what the site has promised by now. */
  private async keepPromises(
    tx: Transaction,
    siteId: number,
    kept: KeptPromises | null,
    promised: boolean,
  ): Promise<boolean> {
    if (kept === null) {
      if (promised) await write(tx, startsSql.dropPromises, siteId);
      return true;
    }
    const body = kept.promises && JSON.stringify(promisesToArray(kept.promises));
    return (await write(tx, startsSql.keepPromises, siteId, kept.revision, body)) > 0;
  }

  /** Writes it only where it changed: most cycles leave it as it was. */
  private async keepReservation(
    tx: Transaction,
    siteId: number,
    reservation: Reservation | null,
    known: Reservation | null,
  ): Promise<void> {
    if (reservation === null) {
      if (known !== null) await write(tx, startsSql.dropReservation, siteId);
      return;
    }
    if (known !== null && sameReservation(reservation, known)) return;
    await write(
      tx,
      startsSql.putReservation,
      siteId,
      reservation.jobId,
      reservation.at,
      plainColumn(reservation.allocations.map((a) => a.machineId)),
      plainColumn(reservation.allocations.map((a) => a.tasks)),
      plainColumn(reservation.licenseIds),
      reservation.madeAt,
    );
  }

  takeBack(siteId: number, context: PlanContext, limit: number): Promise<number[]> {
    return inTransaction(this.prisma, async (tx) => {
      const [state, jobIds] = await read<['DRAINING' | 'DOWN' | null, number[]]>(
        tx,
        movesSql.lockTakeBack,
        siteId,
        limit,
      );
      if (state === null || jobIds.length === 0) return [];
      const ids = plainColumn(jobIds);
      const { now, policyVersion, cycle } = context;
      const reason = state === 'DRAINING' ? 'SITE_DRAINING' : 'SITE_DOWN';
      await write(tx, movesSql.insertTakeBackDecisions, now, policyVersion, cycle, ids, siteId, reason);
      await write(tx, movesSql.takeBackJobs, ids);
      return jobIds;
    });
  }

  returnJobs(
    siteId: number,
    jobIds: readonly number[],
    reason: string,
    context: PlanContext,
  ): Promise<number[]> {
    if (jobIds.length === 0) return Promise.resolve([]);
    return inTransaction(this.prisma, async (tx) => {
      const found = await read<number[]>(tx, movesSql.lockReturn, siteId, plainColumn(jobIds));
      if (found.length === 0) return [];
      const ids = plainColumn(found);
      const { now, policyVersion, cycle } = context;
      await write(tx, movesSql.insertTakeBackDecisions, now, policyVersion, cycle, ids, siteId, reason);
      await write(tx, movesSql.takeBackJobs, ids);
      return found;
    });
  }

  // In: agents --------------------------------------------------------------------------------------------------------

  reportRuns(siteId: number, reports: readonly RunReport[], maxAttempts: number): Promise<ReportOutcome> {
    if (reports.length === 0) return Promise.resolve({ results: [], touched: [] });
    return inTransaction(this.prisma, (tx) => this.applyReports(tx, siteId, reports, maxAttempts));
  }

  /** `siteId` null: the service itself reports, for any site. */
  private async applyReports(
    tx: Transaction,
    siteId: number | null,
    reports: readonly RunReport[],
    maxAttempts: number,
  ): Promise<ReportOutcome> {
    const [jobRows, runRows] = await read<
      [
        [number, JobState, number, EndCause | null, boolean, EndCause | null, boolean][],
        [jobId: number, epoch: number, siteId: number][],
      ]
    >(
      tx,
      reportsSql.lockReports,
      plainColumn([...new Set(reports.map((report) => report.jobId))]),
      plainColumn(reports.map((report) => report.jobId)),
      plainColumn(reports.map((report) => report.epoch)),
    );
    const jobs = new Map(
      jobRows.map(([id, state, epoch, cause, restartable, stopCause, hasStarted]) => {
        const job: ReportedJob = { state, epoch, cause, restartable, stopCause, started: hasStarted };
        return [id, job];
      }),
    );
    const siteOfRun = new Map(runRows.map(([jobId, epoch, site]) => [`${jobId}/${epoch}`, site]));

    const results: ReportResult[] = [];
    const touched = new Set<number | null>();
    /** By job: what changes of its live run. */
    const runs = new Map<number, { epoch: number; startedAt: number | null; ended: RunReport | null }>();
    const outputs: { report: RunReport; stream: 'STDOUT' | 'STDERR'; piece: OutputPiece }[] = [];
    const started: RunReport[] = [];
    const ended: { report: RunReport; end: Exclude<JobEnd, { state: 'QUEUED' }> }[] = [];
    const requeued: RunReport[] = [];

    for (const report of reports) {
      const job = jobs.get(report.jobId);
      const site = siteOfRun.get(`${report.jobId}/${report.epoch}`);
      if (job === undefined || site === undefined || (siteId !== null && site !== siteId)) {
        results.push('unknown-run');
        continue;
      }
      const judgment = judgeReport(job, report, maxAttempts);
      results.push(judgment.result);
      if (judgment.result !== 'accepted') continue;
      const run = runs.get(report.jobId) ?? { epoch: report.epoch, startedAt: null, ended: null };
      runs.set(report.jobId, run);
      if (judgment.started) {
        run.startedAt = report.at;
        job.started = true;
        if (job.state === 'ASSIGNED') job.state = 'RUNNING';
        started.push(report);
      }
      if (report.stdout) outputs.push({ report, stream: 'STDOUT', piece: report.stdout });
      if (report.stderr) outputs.push({ report, stream: 'STDERR', piece: report.stderr });
      const { end } = judgment;
      if (end === null) continue;
      run.ended = report;
      job.state = end.state;
      touched.add(site);
      if (end.state === 'QUEUED') {
        touched.add(null);
        requeued.push(report);
      } else {
        job.cause = end.cause;
        ended.push({ report, end });
      }
    }

    if (runs.size > 0) {
      const changes = [...runs];
      await write(
        tx,
        reportsSql.updateRuns,
        plainColumn(changes.map(([jobId]) => jobId)),
        plainColumn(changes.map(([, run]) => run.epoch)),
        plainColumn(changes.map(([, run]) => run.startedAt)),
        plainColumn(changes.map(([, run]) => run.ended?.at ?? null)),
        plainColumn(changes.map(([, run]) => run.ended?.exitCode ?? null)),
        textColumn(changes.map(([, run]) => run.ended?.signal ?? null)),
        plainColumn(changes.map(([, run]) => run.ended?.cause ?? null)),
        textColumn(changes.map(([, run]) => run.ended?.message ?? null)),
        plainColumn(changes.map(([, run]) => run.ended?.cpuS ?? null)),
        plainColumn(changes.map(([, run]) => run.ended?.ioWaitS ?? null)),
      );
    }
    if (outputs.length > 0) {
      await write(
        tx,
        reportsSql.upsertOutputs,
        plainColumn(outputs.map(({ report }) => report.jobId)),
        plainColumn(outputs.map(({ report }) => report.epoch)),
        plainColumn(outputs.map(({ stream }) => stream)),
        textColumn(outputs.map(({ piece }) => piece.body)),
        plainColumn(outputs.map(({ piece }) => piece.bytes)),
        plainColumn(outputs.map(({ piece }) => piece.truncated)),
      );
    }
    if (started.length > 0) {
      const ids = plainColumn(started.map((report) => report.jobId));
      await write(tx, reportsSql.startJobs, ids, plainColumn(started.map((report) => report.at)));
    }
    if (ended.length > 0) {
      await write(
        tx,
        reportsSql.endJobs,
        plainColumn(ended.map(({ report }) => report.jobId)),
        plainColumn(ended.map(({ end }) => end.state)),
        plainColumn(ended.map(({ end }) => end.cause)),
        plainColumn(ended.map(({ report }) => report.at)),
        plainColumn(ended.map(({ report }) => report.exitCode)),
        textColumn(ended.map(({ report }) => report.message)),
      );
    }
    if (requeued.length > 0) {
      const ids = plainColumn(requeued.map((report) => report.jobId));
      await write(tx, reportsSql.requeueJobs, ids, textColumn(requeued.map((report) => report.message)));
    }
    return { results, touched: [...touched] };
  }

  async assignments(siteId: number, after: Cursor | null, limit: number): Promise<AssignmentBatch> {
    type Answer = [Cursor, Assignment[]];
    if (after !== null) {
      const news = await read<Answer | null>(
        this.prisma,
        assignmentsSql.newAssignments,
        siteId,
        after,
        ASSIGNMENT_WINDOW,
        limit,
      );
      if (news !== null) return { cursor: news[0], complete: false, assignments: news[1] };
    }
    const [cursor, assignments] = await read<Answer>(this.prisma, assignmentsSql.allAssignments, siteId);
    return { cursor, complete: true, assignments };
  }

  heartbeat(siteId: number, machineIds: readonly number[], now: number): Promise<number[]> {
    return inTransaction(this.prisma, async (tx) => {
      await write(tx, presenceSql.seeAgent, siteId, now);
      if (machineIds.length === 0) return [];
      const back = await read<number[]>(tx, presenceSql.seeMachines, siteId, plainColumn(machineIds), now);
      if (back.length > 0) await write(tx, presenceSql.setSilent, plainColumn(back), false);
      return back;
    });
  }

  // In: people --------------------------------------------------------------------------------------------------------

  cancel(
    selection: JobSelection,
    now: number,
    cause: 'CANCELLED_BY_USER' | 'CANCELLED_BY_OPERATOR' = 'CANCELLED_BY_USER',
  ): Promise<SelectionOutcome> {
    const possible = (state: JobState) => !isTerminal(state) && state !== 'CANCELLING';
    return this.act(selection, possible, (tx, ids) => write(tx, controlSql.cancelJobs, ids, cause, now));
  }

  hold(selection: JobSelection): Promise<SelectionOutcome> {
    const possible = (state: JobState) => state === 'QUEUED' || state === 'DISPATCHED';
    return this.act(selection, possible, (tx, ids) => write(tx, controlSql.holdJobs, ids));
  }

  release(selection: JobSelection): Promise<SelectionOutcome> {
    const possible = (state: JobState) => state === 'HELD';
    return this.act(selection, possible, (tx, ids) => write(tx, controlSql.releaseJobs, ids), true);
  }

  reprioritize(selection: JobSelection, boost: number): Promise<SelectionOutcome> {
    const possible = (state: JobState) => !isTerminal(state);
    return this.act(selection, possible, (tx, ids) => write(tx, controlSql.boostJobs, ids, boost));
  }

  /** Locks what is selected and changes those of it whose state allows it. */
  private act(
    selection: JobSelection,
    possible: (state: JobState) => boolean,
    change: (tx: Transaction, ids: string) => Promise<unknown>,
    lockSites = false,
  ): Promise<SelectionOutcome> {
    const { ids, filter, ownedBy, limit } = selection;
    if (ids !== undefined && ids.length > limit) {
      return Promise.resolve({ changed: [], unchanged: [], tooMany: true, touched: [] });
    }
    return inTransaction(
      this.prisma,
      async (tx): Promise<SelectionOutcome> => {
        if (lockSites) await tx.$queryRawUnsafe(controlSql.shareSites);
        const found =
          ids !== undefined
            ? await read<[number, JobState, number | null][]>(
                tx,
                controlSql.lockByIds,
                plainColumn(ids),
                ownedBy,
              )
            : await readSql<[number, JobState, number | null][]>(
                tx,
                controlSql.lockByFilter(filter ?? {}, ownedBy, limit + 1),
              );
        if (found.length > limit) return { changed: [], unchanged: [], tooMany: true, touched: [] };
        const changed = found.filter(([, state]) => possible(state));
        if (changed.length > 0) await change(tx, plainColumn(changed.map(([id]) => id)));
        const known = new Map(found.map(([id, state]) => [id, state]));
        return {
          changed: changed.map(([id]) => id),
          unchanged: [...new Set(ids ?? known.keys())]
            .map((jobId) => ({ jobId, state: known.get(jobId) ?? null }))
            .filter(({ state }) => state === null || !possible(state)),
          tooMany: false,
          touched: [...new Set(changed.map(([, state, siteId]) => holderOf(state, siteId)))],
        };
      },
      { timeoutMs: LONG_MS },
    );
  }

  // Time --------------------------------------------------------------------------------------------------------------

  async sweep(rules: SweepRules): Promise<SweepOutcome> {
    const { now, limit, maxAttempts } = rules;
    const touched = new Set<number | null>();
    let silentMachines = 0;
    let lostRuns = 0;
    const present = await read<number | null>(this.prisma, sweepSql.presentSince, now, PRESENCE_GAP_S);
    if (present !== null) {
      const silent = await inTransaction(this.prisma, async (tx) => {
        const found = await read<[number, number][]>(
          tx,
          sweepSql.lockSilent,
          now,
          present,
          rules.silentAfterS,
          limit,
        );
        if (found.length > 0)
          await write(tx, presenceSql.setSilent, plainColumn(found.map(([id]) => id)), true);
        return found;
      });
      silentMachines = silent.length;
      for (const [, siteId] of silent) touched.add(siteId).add(null);

      const lost = await read<[number, number, number, string][]>(
        this.prisma,
        sweepSql.findLost,
        now,
        present,
        rules.lostAfterS,
        limit,
      );
      lostRuns = await this.endRuns(
        lost.map(([jobId, epoch, , name]) =>
          serviceReport(
            jobId,
            epoch,
            now,
            'LOST',
            `machine ${name} has been silent for ${rules.lostAfterS} s`,
          ),
        ),
        maxAttempts,
        touched,
      );
    }
    const over = await read<[number, number, number, number][]>(
      this.prisma,
      sweepSql.findOverLimit,
      now,
      rules.runTimeGraceS,
      limit,
    );
    const overLimit = await this.endRuns(
      over.map(([jobId, epoch, , limitS]) =>
        serviceReport(jobId, epoch, now, 'RUN_TIME_LIMIT', `it ran longer than its limit of ${limitS} s`),
      ),
      maxAttempts,
      touched,
    );
    const deadlinesMissed = await this.missDeadlines(rules, touched);
    return { silentMachines, lostRuns, deadlinesMissed, overLimit, touched: [...touched] };
  }

  /** Ends runs as the service finds them; those that ended meanwhile by themselves are left alone. */
  private async endRuns(
    reports: readonly RunReport[],
    maxAttempts: number,
    touched: Set<number | null>,
  ): Promise<number> {
    if (reports.length === 0) return 0;
    const outcome = await inTransaction(this.prisma, (tx) =>
      this.applyReports(tx, null, reports, maxAttempts),
    );
    for (const scheduler of outcome.touched) touched.add(scheduler);
    return outcome.results.filter((result) => result === 'accepted').length;
  }

  private missDeadlines(rules: SweepRules, touched: Set<number | null>): Promise<number> {
    return inTransaction(this.prisma, async (tx) => {
      const found = await read<[number, JobState, number | null][]>(
        tx,
        sweepSql.lockDeadlines,
        rules.now,
        rules.limit,
      );
      const cancelled =
        rules.onDeadlinePassed === 'CANCEL' ? found.filter(([, state]) => state !== 'CANCELLING') : [];
      const recorded = found.filter((job) => !cancelled.includes(job));
      if (cancelled.length > 0) {
        const ids = plainColumn(cancelled.map(([id]) => id));
        await write(tx, controlSql.cancelJobs, ids, 'DEADLINE_PASSED', rules.now);
        for (const [, state, siteId] of cancelled) touched.add(holderOf(state, siteId));
      }
      if (recorded.length > 0) await write(tx, sweepSql.markMissed, plainColumn(recorded.map(([id]) => id)));
      return found.length;
    });
  }

  async processSeen(id: string, kind: 'api' | 'worker', now: number): Promise<void> {
    await write(this.prisma, presenceSql.seeProcess, id, kind, now, PRESENCE_GAP_S);
  }

  async prune(retention: Retention): Promise<Pruned> {
    const { eventsBefore, jobsEndedBefore, processesBefore, limit } = retention;
    const events = await read<number>(this.prisma, pruneSql.pruneEvents, eventsBefore, limit);
    const jobs = await read<number>(this.prisma, pruneSql.pruneJobs, jobsEndedBefore, limit);
    const submissions = await write(this.prisma, pruneSql.pruneSubmissions, jobsEndedBefore, limit);
    const points = await read<number>(this.prisma, pruneSql.pruneRatios, jobsEndedBefore, limit);
    const groups = await write(this.prisma, pruneSql.pruneGroups, jobsEndedBefore, limit);
    await write(this.prisma, pruneSql.pruneProcesses, processesBefore);
    await write(this.prisma, pruneSql.pruneMargins, MARGINS_KEPT);
    await write(this.prisma, pruneSql.pruneAverages, AVERAGES_KEPT);
    await write(this.prisma, pruneSql.pruneTraffic);
    return { events, jobs, more: Math.max(events, jobs, submissions, points, groups) >= limit };
  }
}

// -----------------------------------------------------------------------------------------------------------------------

/** In the order of the columns of sql/submit.ts. */
function jobColumns(jobs: readonly NewJob[]): (string | null)[] {
  return [
    textColumn(jobs.map((job) => job.name)),
    textColumn(jobs.map((job) => job.application)),
    textColumn(jobs.map((job) => job.groupName)),
    plainColumn(jobs.map((job) => job.arrayIndex)),
    textColumn(jobs.map((job) => job.command)),
    textListColumn(jobs.map((job) => job.arguments)),
    textColumn(jobs.map((job) => JSON.stringify(job.environment))),
    textColumn(jobs.map((job) => job.workingDirectory)),
    plainColumn(jobs.map((job) => job.tasks)),
    plainColumn(jobs.map((job) => job.cpusPerTask)),
    plainColumn(jobs.map((job) => job.memoryMbPerTask)),
    textListColumn(jobs.map((job) => [...job.licenses].sort())),
    textColumn(jobs.map((job) => job.os)),
    textColumn(jobs.map((job) => job.architecture)),
    plainColumn(jobs.map((job) => job.estimateS)),
    plainColumn(jobs.map((job) => job.benchmark)),
    plainColumn(jobs.map((job) => job.runTimeLimitS)),
    plainColumn(jobs.map((job) => job.deadline)),
    plainColumn(jobs.map((job) => job.sandboxMb)),
    plainColumn(jobs.map((job) => job.outputMb)),
    plainColumn(jobs.map((job) => job.restartable)),
    plainColumn(jobs.map((job) => job.simulatedRunS)),
    plainColumn(jobs.map((job) => job.boost)),
    plainColumn(jobs.map((job) => job.held)),
    unlessNull(
      jobs.map((job) => (job.inputs.length === 0 ? null : JSON.stringify(job.inputs))),
      textColumn,
    ),
    unlessNull(
      jobs.map((job) => job.originSiteId),
      plainColumn,
    ),
    unlessNull(
      jobs.map((job) => job.computationShare),
      plainColumn,
    ),
    unlessNull(
      jobs.map((job) => job.simulatedIoS),
      plainColumn,
    ),
  ];
}

/** Most submissions have nothing in these columns. */
const unlessNull = <T>(values: (T | null)[], column: (values: (T | null)[]) => string): string | null =>
  values.every((value) => value === null) ? null : column(values);

function whereabouts(state: JobState | null, siteId: number | null): string {
  if (state === null) return 'there is no such job';
  return `the job is ${state}${siteId === null ? '' : ` at site ${siteId}`}`;
}

/** To the millisecond, which is what is stored. */
function sameReservation(a: Reservation, b: Reservation): boolean {
  const key = (r: Reservation) =>
    JSON.stringify([
      r.jobId,
      Math.round(r.at * 1000),
      Math.round(r.madeAt * 1000),
      r.allocations,
      r.licenseIds,
    ]);
  return key(a) === key(b);
}

function serviceReport(
  jobId: number,
  epoch: number,
  at: number,
  cause: EndCause,
  message: string,
): RunReport {
  return {
    jobId,
    epoch,
    phase: 'ENDED',
    at,
    exitCode: null,
    signal: null,
    cause,
    message: storable(message),
    cpuS: null,
    ioWaitS: null,
    stdout: null,
    stderr: null,
  };
}
