/**
 * A core `Grid` kept in step with Postgres: loaded once, then fed with what changed. One a process.
 *
 * The changes of a window are folded for each job, so they are not applied in the order in which they happened, but in one in
 * which every step is possible: what is new in the directory; runs that are over give back what they held; jobs go to
 * where they are at the cursor; what has left the directory goes last, when no job can name it any more.
 */
import { ranksOf } from '../core/classes.js';
import { DataCatalog } from '../core/data/catalog.js';
import { JobHistory } from '../core/data/history.js';
import { MAX_WINDOW, Margins } from '../core/data/margins.js';
import { Shares } from '../core/data/shares.js';
import { Traffic } from '../core/data/traffic.js';
import { SchedulerTree } from '../core/data/tree.js';
import { Grid } from '../core/grid/grid.js';
import { fieldsOf, LeanJobs } from '../core/lean-jobs.js';
import type { Held, Job, License, Machine, Reservation, Run, Site, TreeScheduler } from '../core/model.js';
import { turns } from '../platform/turns.js';
import type { Cursor, GridChanges, JobPosition, Policy, Store, TrafficCount } from './store.js';

export interface MirrorOptions {
  /** Events taken in at a time. */
  batch?: number;
  /** Read all sites' reservations at each sync too: for who explains. The engine sets those that it makes itself. */
  reservations?: boolean;
  /** After so many new totals all is loaded again: without those that the store has forgotten since. */
  newTotals?: number;
}

const BATCH = 20_000;
const NEW_AVERAGES = 100_000;

interface Directory {
  sites: readonly Site[];
  machines: readonly Machine[];
  licenses: readonly License[];
  schedulers: readonly TreeScheduler[];
  holds: readonly Held[];
}

interface Loaded {
  readonly grid: Grid;
  /** That have not ended and are not in the grid, because they are held; and those that the grid has otherwise. */
  readonly jobs: Map<number, Job>;
  readonly lean: LeanJobs;
  /** As the grid has them, by job. */
  readonly runs: Map<number, Run>;
  cursor: Cursor;
  policy: Policy;
  readonly totalsLoaded: number;
  /** As the grid has it. */
  readonly sites: Map<number, Site>;
  readonly machines: Map<number, Machine>;
  readonly licenses: Map<number, License>;
  readonly holds: Map<number, Held>;
  /** What has left this directory has yet to leave the grid. */
  shrunk: Directory | null;
}

export class Mirror {
  private state: Loaded | null = null;
  private running: Promise<void> | null = null;
  private following: Promise<void> | null = null;
  private stale = false;
  private leftOut = new Map<number, unknown>();
  private readonly batch: number;
  private readonly newTotals: number;

  constructor(
    private readonly store: Pick<Store, 'loadGrid' | 'changesSince' | 'reservations' | 'checkpointsAt'>,
    private readonly options: MirrorOptions = {},
  ) {
    this.batch = options.batch ?? BATCH;
    this.newTotals = options.newTotals ?? NEW_AVERAGES;
  }

  /** As of the last sync; another object after one that had to load everything again, so do not keep it across syncs. */
  get grid(): Grid {
    return this.loaded().grid;
  }

  /** In force as of the last sync. */
  get policy(): Policy {
    return this.loaded().policy;
  }

  /** Events up to this one are taken in. */
  get cursor(): Cursor {
    return this.loaded().cursor;
  }

  /**
   * Takes in everything that was committed before the call. Calls that come together share a round. Throws what the store
   * throws; the next call goes on from there.
   */
  sync(): Promise<void> {
    return turns.apart(() => this.inStep());
  }

  private inStep(): Promise<void> {
    if (this.running === null) {
      this.running = this.round().finally(() => {
        this.running = null;
      });
      return this.running;
    }
    // The round under way may have read before the caller's commit: one more follows it, for all who come meanwhile.
    this.following ??= this.running
      .catch(() => {})
      .then(() => {
        this.following = null;
        return this.inStep();
      });
    return this.following;
  }

  /** As `sync`, but everything is loaded again. */
  reload(): Promise<void> {
    this.stale = true;
    return this.sync();
  }

  /** Takes in when the runs of a site have last written their checkpoints, which no change tells. */
  async syncCheckpoints(siteId: number): Promise<void> {
    const found = await this.store.checkpointsAt(siteId);
    const { grid, runs } = this.loaded();
    for (const { jobId, epoch, at } of found) {
      const run = runs.get(jobId);
      if (run?.epoch !== epoch || run.checkpointAt === at) continue;
      runs.set(jobId, { ...run, checkpointAt: at });
      grid.checkpointRun(jobId, at);
    }
  }

  /** Jobs that the grid cannot hold, and why: those that were left out of it since the last call. */
  takeLeftOut(): ReadonlyMap<number, unknown> {
    const taken = this.leftOut;
    if (taken.size > 0) this.leftOut = new Map();
    return taken;
  }

  private loaded(): Loaded {
    if (this.state === null) throw new Error('the mirror is empty: call sync() first');
    return this.state;
  }

  private async round(): Promise<void> {
    if (this.state === null || this.stale || this.isOvergrown(this.state)) return this.load();
    for (let more = true; more; ) {
      const changes = await this.store.changesSince(this.state.cursor, this.batch);
      if (changes === 'too-old') return this.load();
      try {
        apply(this.state, changes);
      } catch (error) {
        // Only a part of them is in: the next sync loads the truth again.
        this.state = null;
        throw error;
      }
      const { grid, policy } = this.state;
      if (!isOrderedBy(grid, policy.document)) return this.load();
      more = changes.more;
    }
    if (this.options.reservations) setReservations(this.state, await this.store.reservations());
  }

  /** Changes tell of totals that are there, not of those that the store forgets. */
  private isOvergrown({ grid, totalsLoaded }: Loaded): boolean {
    return grid.index(JobHistory).size > totalsLoaded + this.newTotals;
  }

  private async load(): Promise<void> {
    this.stale = false;
    const lean = new LeanJobs();
    const image = await this.store.loadGrid(MAX_WINDOW, (job) => lean.of(job));
    const { policy, cursor } = image;
    const state: Loaded = {
      grid: new Grid(policy.document.workflows, ranksOf(policy.document)),
      jobs: new Map(),
      lean,
      runs: new Map(),
      cursor,
      policy,
      totalsLoaded: image.totals.length,
      sites: new Map(),
      machines: new Map(),
      licenses: new Map(),
      holds: new Map(),
      shrunk: null,
    };
    extend(state, image);
    for (const { job, state: jobState, siteId, run } of image.jobs) {
      try {
        place(state.grid, job, { state: jobState, siteId, run });
        keepJob(state, job);
        if (run !== null) state.runs.set(job.id, run);
      } catch (error) {
        this.leftOut.set(job.id, error);
      }
    }
    const { grid } = state;
    const data = grid.index(DataCatalog);
    const shares = grid.index(Shares);
    const history = grid.index(JobHistory);
    grid.index(Margins).add(image.margins);
    for (const dataset of image.datasets) data.setDataset(dataset);
    for (const link of image.links) data.setLink(link);
    for (const images of image.images) data.setImages(images);
    for (const { userId, share } of image.quotas) shares.set(userId, share);
    for (const record of image.totals) history.set(record);
    countTraffic(grid, image.traffic);
    setReservations(state, image.reservations);
    this.state = state;
  }
}

/** Whether its queues are in the order of this policy. */
function isOrderedBy({ workflows, ranks }: Grid, policy: Policy['document']): boolean {
  const now = ranksOf(policy);
  return (
    (policy.workflows ?? 'ARRIVAL') === workflows &&
    (now === ranks || JSON.stringify(now) === JSON.stringify(ranks))
  );
}

function apply(state: Loaded, changes: GridChanges): void {
  const { grid, jobs, lean, runs } = state;
  if (changes.directory !== null) {
    state.policy = changes.directory.policy;
    extend(state, changes.directory);
    state.shrunk = changes.directory;
  }
  for (const { id, position } of changes.jobs) {
    const run = runs.get(id);
    if (run === undefined && position === null) grid.endedUnseen();
    if (run === undefined || sameRun(run, position?.run ?? null)) continue;
    // The grid forgets it with its run.
    const job = grid.job(id);
    if (job !== null && !jobs.has(id)) jobs.set(id, job);
    grid.endRun(id);
    runs.delete(id);
  }
  for (const { id, position, job: told } of changes.jobs) {
    if (position === null) {
      if (grid.placeOf(id) !== null) grid.removeJob(id);
      jobs.delete(id);
      continue;
    }
    const described = told ?? jobs.get(id) ?? grid.job(id);
    if (described === null) throw new Error(`job ${id} has a change, but was never loaded`);
    const { priority, migratedAt, dispatchedAt, schedulerId, treeMoves } = position;
    const same =
      described.priority === priority &&
      described.migratedAt === migratedAt &&
      described.dispatchedAt === dispatchedAt &&
      described.schedulerId === schedulerId &&
      described.treeMoves === treeMoves;
    const job = lean.of(
      same
        ? described
        : { ...fieldsOf(described), priority, migratedAt, dispatchedAt, schedulerId, treeMoves },
    );
    if (runs.has(id)) {
      if (!same || told !== null) grid.redescribe(job);
      keepJob(state, job);
      continue;
    }
    place(grid, job, position);
    keepJob(state, job);
    if (position.run !== null) runs.set(id, position.run);
  }
  for (const { userId, userClass, share } of changes.users) {
    reclassify(state, userId, userClass);
    grid.index(Shares).set(userId, share);
  }
  const data = grid.index(DataCatalog);
  for (const { id, dataset } of changes.datasets) {
    if (dataset === null) data.removeDataset(id);
    else data.setDataset(dataset);
  }
  for (const { fromSiteId, toSiteId, link } of changes.links) {
    if (link === null) data.removeLink(fromSiteId, toSiteId);
    else data.setLink(link);
  }
  for (const images of changes.images) data.setImages(images);
  for (const record of changes.totals) grid.index(JobHistory).set(record);
  countTraffic(grid, changes.traffic);
  // In the store's order: how the grid is brought there says nothing of it.
  grid.index(Margins).add(changes.margins);
  if (state.shrunk !== null && !changes.more) {
    shrink(state, state.shrunk);
    state.shrunk = null;
  }
  state.cursor = changes.cursor;
}

/** Puts a job without a run in the grid where it now is. */
function place(grid: Grid, job: Job, position: Pick<JobPosition, 'state' | 'siteId' | 'run'>): void {
  const { state, siteId, run } = position;
  if (run !== null) {
    // Restored, not started: the room for it was checked by the store, and a machine may have shrunk since.
    if (grid.placeOf(job.id) !== null) grid.removeJob(job.id);
    grid.restoreRun(run, job);
  } else if (state === 'QUEUED' && siteId !== null) grid.placeAtMeta(job, siteId);
  else if (state === 'QUEUED') grid.placeAtRoot(job);
  else if (state === 'DISPATCHED' && siteId !== null) grid.placeAtSite(job, siteId);
  else if (state === 'HELD' || state === 'BLOCKED') {
    if (grid.placeOf(job.id) !== null) grid.removeJob(job.id);
  } else throw new Error(`job ${job.id} is ${state} at site ${siteId} without a run`);
}

/** A job that is in its place is found in the grid, unless the grid has made another one of it (`inItsPlace`). */
function keepJob({ grid, jobs }: Loaded, job: Job): void {
  if (grid.job(job.id) === job) jobs.delete(job.id);
  else jobs.set(job.id, job);
}

const sameRun = (a: Run, b: Run | null): boolean =>
  b !== null && a.epoch === b.epoch && a.start === b.start && a.waits === b.waits && a.stopsAt === b.stopsAt;

function reclassify(state: Loaded, userId: number, userClass: Job['userClass']): void {
  const { grid, jobs, lean } = state;
  const own = new Map<number, Job>();
  for (const list of [grid.jobs(), jobs.values()])
    for (const job of list) if (job.userId === userId) own.set(job.id, job);
  for (const before of own.values()) {
    if (before.userClass === userClass) continue;
    const job = lean.of({ ...fieldsOf(before), userClass });
    const at = grid.placeOf(job.id);
    if (at?.at === 'ROOT') grid.placeAtRoot(job);
    else if (at?.at === 'META') grid.placeAtMeta(job, at.siteId);
    else if (at?.at === 'QUEUE') grid.placeAtSite(job, at.siteId);
    keepJob(state, job);
  }
}

/** Sites that have left meanwhile came and went before anybody here knew of them. */
function countTraffic(grid: Grid, counts: readonly TrafficCount[]): void {
  const traffic = grid.index(Traffic);
  const sites = new Set(grid.sites.map(({ site }) => site.id));
  for (const { siteId, at, arrivals, services } of counts) {
    if (!sites.has(siteId)) continue;
    if (arrivals > 0) traffic.of(siteId).arrived(at, arrivals);
    if (services > 0) traffic.of(siteId).served(at, services);
  }
}

/** Takes in what is new or different. What is as it was is left alone: a change costs the grid what it has worked out. */
function extend(state: Loaded, directory: Directory): void {
  const { grid } = state;
  const news = <T extends { id: number }>(
    known: Map<number, T>,
    list: readonly T[],
    put: (item: T) => unknown,
  ) => {
    for (const item of list) {
      const before = known.get(item.id);
      if (before !== undefined && JSON.stringify(before) === JSON.stringify(item)) continue;
      put(item);
      known.set(item.id, item);
    }
  };
  grid.index(SchedulerTree).set(directory.schedulers);
  news(state.sites, directory.sites, (site) => grid.setSite(site));
  news(state.licenses, directory.licenses, (license) => grid.setLicense(license));
  news(state.machines, directory.machines, (machine) => grid.setMachine(machine));
  // At once, for each change of them costs as much as all.
  const holds: Held[] = [];
  news(state.holds, directory.holds, (held) => holds.push(held));
  if (holds.length > 0) grid.setHeld(...holds);
}

function shrink(state: Loaded, directory: Directory): void {
  const { grid } = state;
  const gone = <T extends { id: number }>(
    known: Map<number, T>,
    list: readonly T[],
    remove: (id: number) => unknown,
  ) => {
    if (known.size === list.length) return;
    const left = new Set(list.map((item) => item.id));
    for (const id of [...known.keys()]) {
      if (left.has(id)) continue;
      remove(id);
      known.delete(id);
    }
  };
  const over: number[] = [];
  gone(state.holds, directory.holds, (id) => over.push(id));
  if (over.length > 0) grid.removeHeld(...over);
  gone(state.machines, directory.machines, (id) => grid.removeMachine(id));
  gone(state.licenses, directory.licenses, (id) => grid.removeLicense(id));
  gone(state.sites, directory.sites, (id) => grid.removeSite(id));
}

function setReservations(state: Loaded, reservations: readonly Reservation[]): void {
  const bySite = new Map(reservations.map((reservation) => [reservation.siteId, reservation]));
  for (const { site } of state.grid.sites) state.grid.setReservation(site.id, bySite.get(site.id) ?? null);
}
