/**
 * The store on Postgres. Each operation is one transaction of a few set-based statements, whatever the number of jobs; they stand in
 * the parts, by what is done.
 *
 * Every transaction takes its locks in one order: user, sites, jobs by id, machines by id, licenses by id, and last the
 * event lock, which the triggers take when jobs (or the directory) change. So the statement that changes jobs comes last:
 * whoever holds the event lock waits for nobody, and the others queue up behind it only to commit.
 */
import type { Job, Move, Preemption, Reservation, Start } from '../core/model.js';
import { openCopies, openOffers } from './federation/index.js';
import type { Copies, Offers, Reach } from './federation.js';
import type { Database } from './pool.js';
import * as agents from './postgres/agents.js';
import { revise } from './postgres/changes.js';
import { checkpointsAt, noteCheckpoints } from './postgres/checkpoints.js';
import * as control from './postgres/control.js';
import * as followers from './postgres/followers.js';
import { gather } from './postgres/gathered.js';
import * as leases from './postgres/leases.js';
import * as moves from './postgres/moves.js';
import * as needs from './postgres/needs.js';
import { preempt } from './postgres/preempt.js';
import * as reports from './postgres/reports.js';
import { rerun } from './postgres/rerun.js';
import * as retention from './postgres/retention.js';
import * as snapshot from './postgres/snapshot.js';

import { sweep } from './postgres/sweep.js';
import type {
  AgentBeat,
  AgentRegistration,
  CheckpointReport,
  Cursor,
  FollowerTurn,
  JobChanges,
  JobSelection,
  KeptPromises,
  ListPlace,
  NeedsNews,
  OutputBounds,
  PlanContext,
  ReportedImage,
  ReportedLoad,
  Rerun,
  Retention,
  RunOutput,
  RunReport,
  SentSignal,
  Store,
  Submission,
  SweepRules,
} from './store.js';

export interface PostgresStoreOptions {
  /** Jobs that may be there without having ended; a submission beyond is refused. */
  liveJobsMax?: number;
  /** What of our data peers reach; left out: what is public. */
  reach?: Reach;
}

const LIVE_JOBS_MAX = 1_000_000;

export class PostgresStore implements Store {
  readonly offers: Offers;
  readonly copies: Copies;
  private readonly liveJobsMax: number;
  private readonly gathered: ReturnType<typeof gather>;

  constructor(
    private readonly database: Pick<Database, 'pool'>,
    { liveJobsMax = LIVE_JOBS_MAX, reach = { dataHosts: [], publicUrl: null } }: PostgresStoreOptions = {},
  ) {
    this.liveJobsMax = liveJobsMax;
    this.gathered = gather(database, liveJobsMax);
    const { pool } = database;
    this.offers = openOffers({
      pool,
      get dataHosts() {
        return reach.dataHosts;
      },
      get publicUrl() {
        return reach.publicUrl;
      },
    });
    this.copies = openCopies(database);
  }

  // Out ---------------------------------------------------------------------------------------------------------------

  loadGrid(marginWindow: number, keep?: (job: Job) => Job) {
    return snapshot.loadGrid(this.database, marginWindow, keep);
  }

  changesSince(cursor: Cursor, limit: number) {
    return snapshot.changesSince(this.database.pool, cursor, limit);
  }

  follow(turn: FollowerTurn) {
    return followers.follow(this.database.pool, turn);
  }

  reservations() {
    return snapshot.reservations(this.database.pool);
  }

  promises(siteId: number) {
    return snapshot.promises(this.database.pool, siteId);
  }

  assignments(
    siteId: number,
    after: Cursor | ListPlace | null,
    limit: number,
    bytesMax: number,
    agentId: number | null = null,
  ) {
    return agents.assignments(this.database.pool, siteId, after, limit, bytesMax, agentId);
  }

  // In ----------------------------------------------------------------------------------------------------------------

  submit(submission: Submission) {
    return this.gathered.submit(submission);
  }

  applyMoves(plan: readonly Move[], context: PlanContext) {
    return moves.applyMoves(this.database, plan, context);
  }

  applyStarts(
    siteId: number,
    starts: readonly Start[],
    reservation: Reservation | null,
    context: PlanContext,
    promises: KeptPromises | null = null,
  ) {
    return this.gathered.start({ siteId, starts, reservation, promises, context });
  }

  takeBack(siteId: number, context: PlanContext, limit: number) {
    return moves.takeBack(this.database, siteId, context, limit);
  }

  preempt(siteId: number, preemptions: readonly Preemption[], context: PlanContext) {
    return preempt(this.database, siteId, preemptions, context);
  }

  recallRuns(siteId: number, jobIds: readonly number[], reason: string, context: PlanContext) {
    return moves.recallRuns(this.database, siteId, jobIds, reason, context);
  }

  returnJobs(siteId: number, jobIds: readonly number[], reason: string, context: PlanContext) {
    return moves.returnJobs(this.database, siteId, jobIds, reason, context);
  }

  reportOutput(
    siteId: number,
    pieces: readonly RunOutput[],
    bounds: OutputBounds,
    agentId: number | null = null,
  ) {
    return reports.reportOutput(this.database, siteId, pieces, bounds, agentId);
  }

  reportRuns(
    siteId: number,
    batch: readonly RunReport[],
    maxAttempts: number,
    agentId: number | null = null,
    userBytes?: number,
  ) {
    return this.gathered.report({ siteId, reports: batch, maxAttempts, agentId, userBytes });
  }

  registerAgent(registration: AgentRegistration, now: number, maxAttempts: number) {
    return leases.registerAgent(this.database, registration, now, maxAttempts);
  }

  reportLoad(siteId: number, agentId: number, load: ReportedLoad, now: number) {
    return agents.reportLoad(this.database.pool, siteId, agentId, load, now);
  }

  reportImages(siteId: number, agentId: number, images: readonly ReportedImage[]) {
    return agents.reportImages(this.database, siteId, agentId, images);
  }

  heartbeat(beats: readonly AgentBeat[], now: number) {
    return leases.heartbeat(this.database, beats, now);
  }

  noteCheckpoints(siteId: number, agentId: number, checkpoints: readonly CheckpointReport[]) {
    return noteCheckpoints(this.database, siteId, agentId, checkpoints);
  }

  checkpointsAt(siteId: number) {
    return checkpointsAt(this.database.pool, siteId);
  }

  cancel(selection: JobSelection, now: number, cause: 'CANCELLED_BY_USER' | 'CANCELLED_BY_OPERATOR') {
    return control.cancel(this.database, selection, now, cause);
  }

  signal(selection: JobSelection, sent: Omit<SentSignal, 'number'>) {
    return control.signal(this.database, selection, sent);
  }

  requeue(selection: JobSelection) {
    return control.requeue(this.database, selection);
  }

  hold(selection: JobSelection) {
    return control.hold(this.database, selection);
  }

  setAside(jobIds: readonly number[], message: string) {
    return control.setAside(this.database, jobIds, message);
  }

  release(selection: JobSelection) {
    return control.release(this.database, selection);
  }

  settleNeeds(about: NeedsNews, now: number) {
    return needs.settleNeeds(this.database, about, now);
  }

  waitsOf(jobIds: readonly number[]) {
    return needs.waitsOf(this.database.pool, jobIds);
  }

  reprioritize(selection: JobSelection, boost: number) {
    return control.boost(this.database, selection, boost);
  }

  revise(selection: JobSelection, changes: JobChanges) {
    return revise(this.database, selection, changes);
  }

  rerun(request: Rerun) {
    return rerun(this.database, request, this.liveJobsMax);
  }

  sweep(rules: SweepRules) {
    return sweep(this.database, rules);
  }

  processSeen(id: string, kind: 'api' | 'worker', now: number) {
    return agents.processSeen(this.database.pool, id, kind, now);
  }

  prune(limits: Retention) {
    return retention.prune(this.database.pool, limits);
  }
}
