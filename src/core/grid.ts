/**
 * The snapshot that the schedulers look at, kept up to date by the driver change by change: a live engine feeds it what
 * the store tells, a simulator what its events are. Cycles only read it; the driver applies what it accepts of their
 * plans through the methods below, each of which costs at most the logarithm of what is there (and a short move of
 * memory) and throws on a call that cannot be right.
 *
 * What a grid answers depends on its content only, never on the order in which the content came.
 */
import { DataCatalog } from './data/catalog.js';
import { JobHistory } from './data/history.js';
import { PriorityLoad } from './dispatch/load.js';
import { MetaQueue } from './dispatch/meta-queues.js';
import { Traffic } from './dispatch/traffic.js';
import type { Promises } from './local/conservative.js';
import { JobQueue } from './local/queue.js';
import { Settled } from './local/settled.js';
import type { Allocation, Job, License, Machine, Reservation, Run, Site } from './model.js';
import { MAX_PRIORITY, MAX_WINDOW } from './policy.js';
import { marginOf } from './priority/ms-priority.js';
import { QuotaLedger } from './priority/quota.js';
import { type Requirement, Requirements } from './resources/requirements.js';
import {
  type LicenseState,
  type MachineState,
  noteFree,
  occupy,
  type RunState,
  SiteResources,
  vacate,
} from './resources/site-resources.js';

/** One site: its machines, its queue, and what dispatch wants to know of the queue. */
export interface SiteEntry {
  site: Site;
  readonly resources: SiteResources;
  readonly queue: JobQueue;
  /** Jobs that wait before the local queue and can still go to another site (diana.md). */
  readonly meta: MetaQueue;
  /** How many jobs came and were served lately. */
  readonly traffic: Traffic;
  readonly load: PriorityLoad;
  /** Queued jobs that ask for each license kind. */
  readonly requests: Map<string, number>;
  /** What the last cycle reserved. */
  reservation: Reservation | null;
  /** What it promised, under a policy that does. */
  promises: Promises | null;
  /** What need not be looked at again. */
  readonly settled: Settled;
}

/** Where a job is: at the root (no site), in a site's meta-queue or local queue, or running there. */
interface JobEntry {
  job: Job;
  requirement: Requirement;
  site: SiteEntry | null;
  meta: boolean;
  slot: number;
  run: RunState | null;
}

export type JobPlace =
  | { at: 'ROOT' }
  | { at: 'META'; siteId: number }
  | { at: 'QUEUE'; siteId: number }
  | { at: 'RUNNING'; siteId: number; plannedEnd: number };

/** The priority that counts for Load, Ordering and MS order: with the operator's boost, inside the bounds. */
export function effectivePriority(job: Pick<Job, 'priority' | 'boost'>): number {
  return Math.max(0, Math.min(MAX_PRIORITY, (job.priority ?? 0) + job.boost));
}

export class Grid {
  /** In the stable site order: by id. Read only. */
  readonly sites: SiteEntry[] = [];
  /** Jobs held by the root. Read only. */
  readonly root = new JobQueue();
  /** Where data lies, and the network between the sites. */
  readonly data = new DataCatalog();
  /** What runs of applications have shown. */
  readonly history = new JobHistory();
  /** By user id: the share of the grid that a user is entitled to, relative to others'; without an entry 1. */
  readonly quotas = new Map<number, number>();
  /** Whose jobs of what size are in all meta-queues together. Read only. */
  readonly ledger = new QuotaLedger();
  /** Changes whenever a site, a machine or a license does. */
  topology = 0;
  private readonly siteById = new Map<number, SiteEntry>();
  /** The one that was asked for last: mostly it is asked for again. */
  private lastEntry: SiteEntry | null = null;
  private readonly machineById = new Map<number, MachineState>();
  private readonly licenseById = new Map<number, LicenseState>();
  private readonly poolsByKind = new Map<string, LicenseState[]>();
  private readonly jobById = new Map<number, JobEntry>();
  private readonly requirements = new Requirements();
  private margins: number[] = [];

  // ---- sites, machines, licenses ----

  /** Adds a site or replaces what is known of it. */
  setSite(site: Site): void {
    this.topology++;
    const known = this.siteById.get(site.id);
    const maxRuns = site.maxRunningJobs ?? Infinity;
    if (maxRuns !== Infinity) wholeNumber('site.maxRunningJobs', maxRuns, 1);
    if (known !== undefined) {
      known.site = site;
      known.resources.maxRuns = maxRuns;
      known.resources.changed();
      return;
    }
    const entry: SiteEntry = {
      site,
      resources: new SiteResources(site.id, (siteId, kind) => this.poolsFor(siteId, kind)),
      queue: new JobQueue(),
      meta: new MetaQueue(this.ledger),
      traffic: new Traffic(),
      load: new PriorityLoad(),
      requests: new Map(),
      reservation: null,
      promises: null,
      settled: new Settled(),
    };
    entry.resources.maxRuns = maxRuns;
    this.siteById.set(site.id, entry);
    this.sites.push(entry);
    this.sites.sort((a, b) => a.site.id - b.site.id);
  }

  /** Removes a site that has no machines, licenses, jobs. */
  removeSite(siteId: number): void {
    const entry = this.siteEntry(siteId);
    check(entry.resources.machines.length === 0, `site ${siteId} still has machines`);
    check(entry.queue.length + entry.meta.length === 0, `site ${siteId} still has queued jobs`);
    for (const { license } of this.licenseById.values()) {
      check(license.siteId !== siteId, `site ${siteId} still has license ${license.id}`);
    }
    this.topology++;
    this.siteById.delete(siteId);
    this.lastEntry = null;
    this.sites.splice(this.sites.indexOf(entry), 1);
  }

  /** Adds a machine or replaces what is known of it. One with live runs cannot change its site. */
  setMachine(machine: Machine): void {
    const { resources } = this.siteEntry(machine.siteId);
    wholeNumber('machine.cpus', machine.cpus, 1);
    wholeNumber('machine.memoryMb', machine.memoryMb, 0);
    positive('machine.benchmark', machine.benchmark);
    const maxTasks = machine.maxTasks ?? null;
    if (maxTasks !== null) wholeNumber('machine.maxTasks', maxTasks, 1);
    const known = this.machineById.get(machine.id);
    this.topology++;
    if (known !== undefined && known.machine.siteId === machine.siteId) {
      known.machine = machine;
      known.alone = null;
      known.maxTasks = maxTasks;
      noteFree(known);
      resources.changed();
      return;
    }
    if (known !== undefined) this.removeMachine(machine.id);
    const state: MachineState = {
      machine,
      maxTasks,
      runs: 0,
      usedCpus: 0,
      usedMemoryMb: 0,
      freeCpus: machine.cpus,
      freeMemoryMb: machine.memoryMb,
      futureCpus: 0,
      futureMemoryMb: 0,
      leftCpus: 0,
      leftMemoryMb: 0,
      alone: null,
    };
    this.machineById.set(machine.id, state);
    resources.machines.push(state);
    resources.changed();
  }

  /** Removes a machine that no live run is on. */
  removeMachine(machineId: number): void {
    const state = this.machineById.get(machineId);
    check(state !== undefined, `machine ${machineId} is not in the grid`);
    check(state.runs === 0, `machine ${machineId} has live runs`);
    this.topology++;
    this.machineById.delete(machineId);
    const { resources } = this.siteEntry(state.machine.siteId);
    resources.machines.splice(resources.machines.indexOf(state), 1);
    resources.changed();
  }

  /** Adds a license or replaces what is known of it. One that is held cannot change its kind or pool. */
  setLicense(license: License): void {
    wholeNumber('license.copies', license.copies, 0);
    if (license.siteId !== null) this.siteEntry(license.siteId);
    const known = this.licenseById.get(license.id);
    if (
      known !== undefined &&
      known.license.kind === license.kind &&
      known.license.siteId === license.siteId
    ) {
      known.license = license;
    } else {
      if (known !== undefined) this.removeLicense(license.id);
      const state: LicenseState = { license, holders: [], futureCopies: 0 };
      this.licenseById.set(license.id, state);
      const pools = this.poolsByKind.get(license.kind) ?? [];
      pools.push(state);
      pools.sort((a, b) => a.license.id - b.license.id);
      this.poolsByKind.set(license.kind, pools);
    }
    this.licensesChanged();
  }

  /** Removes a license that no live run holds. */
  removeLicense(licenseId: number): void {
    const state = this.licenseById.get(licenseId);
    check(state !== undefined, `license ${licenseId} is not in the grid`);
    check(state.holders.length === 0, `license ${licenseId} is held by live runs`);
    this.licenseById.delete(licenseId);
    const pools = this.poolsByKind.get(state.license.kind) ?? [];
    pools.splice(pools.indexOf(state), 1);
    if (pools.length === 0) this.poolsByKind.delete(state.license.kind);
    this.licensesChanged();
  }

  /** How many kinds of license exist, `|L|` in the paper. */
  get licenseKinds(): number {
    return this.poolsByKind.size;
  }

  /** The pools of the whole grid, by id: sites share their copies. */
  sharedLicenses(): readonly LicenseState[] {
    return [...this.licenseById.values()]
      .filter(({ license }) => license.siteId === null)
      .sort((a, b) => a.license.id - b.license.id);
  }

  // ---- jobs ----

  /** The root holds the job from now on: a new one, one taken back from a site, or one changed by an operator. */
  placeAtRoot(job: Job): void {
    checkJob(job);
    const known = this.jobById.get(job.id);
    if (known !== undefined) {
      check(known.run === null, `job ${job.id} has a live run`);
      this.leaveQueue(known);
    }
    const entry = this.enter(job, null);
    entry.slot = this.root.add(job, entry.requirement, 0);
  }

  /** The job is in the site's meta-queue from now on: from the root, or exported by another site. */
  placeAtMeta(job: Job, siteId: number): void {
    const site = this.siteEntry(siteId);
    checkJob(job);
    const known = this.jobById.get(job.id);
    if (known !== undefined) {
      check(known.run === null, `job ${job.id} has a live run`);
      this.leaveQueue(known);
    }
    const entry = this.enter(job, site);
    entry.meta = true;
    site.meta.add(entry);
  }

  /**
   * The job is in the site's queue from now on. From the root this is a dispatch: its margin enters the window. A job
   * that is in the queue already is changed (its boost, its user's class).
   */
  placeAtSite(job: Job, siteId: number): void {
    const site = this.siteEntry(siteId);
    checkJob(job);
    const known = this.jobById.get(job.id);
    if (known !== undefined) {
      check(known.run === null, `job ${job.id} has a live run`);
      const margin = known.site === null || known.meta ? marginOf(job) : null;
      if (margin !== null) this.pushMargin(margin);
      this.leaveQueue(known);
    }
    const entry = this.enter(job, site);
    const priority = effectivePriority(job);
    entry.slot = site.queue.add(job, entry.requirement, priority);
    site.load.add(priority, job.estimateS * job.benchmark);
    for (const kind of job.licenses) site.requests.set(kind, (site.requests.get(kind) ?? 0) + 1);
  }

  /** A job queued at the site has taken machines and licenses. Throws where they are not free. */
  startRun(run: Run): void {
    const entry = this.jobById.get(run.jobId);
    if (entry === undefined) fail(`job ${run.jobId} is not in the grid`);
    if (entry.run !== null) fail(`job ${run.jobId} has a live run`);
    if (entry.site?.site.id !== run.siteId || entry.meta)
      fail(`job ${run.jobId} is not in the queue of site ${run.siteId}`);
    if (entry.site.resources.full) fail(`site ${run.siteId} runs as many jobs as it may`);
    const state = this.runState(run, entry.requirement);
    for (let i = 0; i < state.machines.length; i++) {
      const machine = state.machines[i] as MachineState;
      const free =
        machine.freeCpus >= (state.cpus[i] as number) &&
        machine.freeMemoryMb >= (state.memoryMb[i] as number);
      if (!free) fail(`machine ${machine.machine.id} has no room for job ${run.jobId}`);
    }
    for (const pool of state.licenses) {
      check(
        pool.holders.length < pool.license.copies,
        `license ${pool.license.id} has no free copy for job ${run.jobId}`,
      );
    }
    this.leaveQueue(entry);
    this.begin(entry, entry.site, state);
  }

  /** A start that a cycle has entered in the site's resources becomes a run: what `siteCycle` does for `accept`. */
  adoptRun(run: Run, state: RunState): void {
    const entry = this.jobById.get(run.jobId);
    if (entry === undefined) fail(`job ${run.jobId} is not in the grid`);
    this.leaveQueue(entry);
    state.run = run;
    entry.run = state;
  }

  /**
   * A run that is live already, when a snapshot is loaded: the job is in no queue, and what it holds is held even if the
   * machine or the pool has shrunk below it since.
   */
  restoreRun(run: Run, job: Job): void {
    checkJob(job);
    check(!this.jobById.has(job.id), `job ${job.id} is in the grid already`);
    check(run.jobId === job.id, `run.jobId is ${run.jobId}; accepted is the job's id ${job.id}`);
    const site = this.siteEntry(run.siteId);
    const entry = this.enter(job, site);
    this.begin(entry, site, this.runState(run, entry.requirement));
  }

  /** A live run is planned to end at another time, for whatever its driver has learned; the rest of it stays. */
  replanRun(jobId: number, plannedEnd: number): void {
    const entry = this.jobById.get(jobId);
    if (!entry?.run || entry.site === null) fail(`job ${jobId} has no live run`);
    const { run, site } = entry;
    site.resources.removeRun(run);
    run.end = plannedEnd;
    run.run = { ...run.run, plannedEnd };
    site.resources.addRun(run);
  }

  /** The run is over; its job is no longer in the grid (put it at the root again if it restarts). */
  endRun(jobId: number): void {
    const entry = this.jobById.get(jobId);
    if (!entry?.run || entry.site === null) fail(`job ${jobId} has no live run`);
    vacate(entry.run);
    entry.site.resources.removeRun(entry.run);
    this.forget(entry);
  }

  /** A queued job leaves the grid: held, cancelled, expired. */
  removeJob(jobId: number): void {
    const entry = this.jobById.get(jobId);
    check(entry !== undefined, `job ${jobId} is not in the grid`);
    check(entry.run === null, `job ${jobId} has a live run`);
    this.leaveQueue(entry);
    this.forget(entry);
  }

  /** Keeps what a cycle of the site reserved; null: nothing. Other sites respect it where it takes grid-wide licenses. */
  setReservation(siteId: number, reservation: Reservation | null): void {
    if (reservation !== null && reservation.siteId !== siteId)
      fail(`the reservation is not one of site ${siteId}`);
    this.siteEntry(siteId).reservation = reservation;
  }

  /** Keeps what a cycle of the site promised, for its next cycle; without them it promises anew. */
  keepPromises(siteId: number, promises: Promises | null): void {
    this.siteEntry(siteId).promises = promises;
  }

  // ---- the window of margins ----

  /** Replaces the margins of the last dispatched jobs with a deadline, oldest first. */
  seedMargins(margins: readonly number[]): void {
    this.margins = margins.slice(-MAX_WINDOW);
  }

  /** The margins of the last `count` dispatched jobs that had a deadline, oldest first. */
  lastMargins(count: number): number[] {
    return this.margins.slice(-count);
  }

  // ---- questions ----

  /** Where the job is; null when it is not in the grid. */
  placeOf(jobId: number): JobPlace | null {
    const entry = this.jobById.get(jobId);
    if (entry === undefined) return null;
    if (entry.site === null) return { at: 'ROOT' };
    const siteId = entry.site.site.id;
    return entry.run === null
      ? { at: entry.meta ? 'META' : 'QUEUE', siteId }
      : { at: 'RUNNING', siteId, plannedEnd: entry.run.end };
  }

  /** The job as it was last given; null when it is not in the grid. */
  job(jobId: number): Job | null {
    return this.jobById.get(jobId)?.job ?? null;
  }

  /** Throws when there is no such site. */
  siteEntry(siteId: number): SiteEntry {
    if (this.lastEntry?.site.id === siteId) return this.lastEntry;
    const entry = this.siteById.get(siteId);
    if (entry === undefined) fail(`site ${siteId} is not in the grid`);
    this.lastEntry = entry;
    return entry;
  }

  /** The class of a job, which need not be in the grid. */
  requirementOf(job: Job): Requirement {
    const known = this.jobById.get(job.id);
    if (known !== undefined && known.job === job) return known.requirement;
    const requirement = this.requirements.enter(job);
    this.requirements.leave(requirement);
    return requirement;
  }

  /** Power of the slowest machine of the allocations that is still in the grid; 1 when none is. */
  slowestOf(allocations: readonly Allocation[]): number {
    let slowest = Infinity;
    for (const { machineId } of allocations) {
      slowest = Math.min(slowest, this.machineById.get(machineId)?.machine.benchmark ?? Infinity);
    }
    return slowest === Infinity ? 1 : slowest;
  }

  // ---- inside ----

  private enter(job: Job, site: SiteEntry | null): JobEntry {
    const known = this.jobById.get(job.id);
    const requirement = this.requirements.enter(job);
    if (known === undefined) {
      const entry: JobEntry = { job, requirement, site, meta: false, slot: -1, run: null };
      this.jobById.set(job.id, entry);
      return entry;
    }
    this.requirements.leave(known.requirement);
    known.job = job;
    known.requirement = requirement;
    known.site = site;
    known.meta = false;
    return known;
  }

  private forget(entry: JobEntry): void {
    this.requirements.leave(entry.requirement);
    this.jobById.delete(entry.job.id);
  }

  private leaveQueue(entry: JobEntry): void {
    const { job, site, slot } = entry;
    if (site === null) {
      this.root.remove(slot);
      return;
    }
    if (entry.meta) {
      site.meta.remove(entry);
      return;
    }
    site.load.remove(site.queue.priorities[slot] as number, site.queue.works[slot] as number);
    site.queue.remove(slot);
    for (const kind of job.licenses) {
      const requests = (site.requests.get(kind) ?? 0) - 1;
      if (requests > 0) site.requests.set(kind, requests);
      else site.requests.delete(kind);
    }
  }

  private begin(entry: JobEntry, site: SiteEntry, state: RunState): void {
    entry.run = state;
    occupy(state);
    site.resources.addRun(state);
  }

  private runState(run: Run, requirement: Requirement): RunState {
    // Arrays of their final size: one that grows from nothing takes room for 17, and a simulation makes millions.
    const { length } = run.allocations;
    const cpus: number[] = new Array(length);
    const memoryMb: number[] = new Array(length);
    const state: RunState = {
      run,
      jobId: run.jobId,
      end: run.plannedEnd,
      machines: new Array(length),
      cpus,
      memoryMb,
      licenses: run.licenseIds.length === 0 ? NO_POOLS : new Array(run.licenseIds.length),
    };
    for (let i = 0; i < length; i++) {
      const { machineId, tasks } = run.allocations[i] as Allocation;
      const machine = this.machineById.get(machineId);
      if (machine === undefined) fail(`machine ${machineId} is not in the grid`);
      if (machine.machine.siteId !== run.siteId) fail(`machine ${machineId} is not at site ${run.siteId}`);
      if (length > 1 && state.machines.includes(machine))
        fail(`machine ${machineId} is named twice by the run of job ${run.jobId}`);
      state.machines[i] = machine;
      cpus[i] = tasks * requirement.cpusPerTask;
      memoryMb[i] = tasks * requirement.memoryMbPerTask;
    }
    for (let i = 0; i < run.licenseIds.length; i++) {
      const licenseId = run.licenseIds[i] as number;
      const pool = this.licenseById.get(licenseId);
      check(pool !== undefined, `license ${licenseId} is not in the grid`);
      const { siteId } = pool.license;
      check(
        siteId === null || siteId === run.siteId,
        `license ${licenseId} is not usable at site ${run.siteId}`,
      );
      state.licenses[i] = pool;
    }
    return state;
  }

  private pushMargin(margin: number): void {
    this.margins.push(margin);
    if (this.margins.length >= 2 * MAX_WINDOW) this.margins.splice(0, this.margins.length - MAX_WINDOW);
  }

  /** The pools that serve a kind at a site, in order of use. */
  private poolsFor(siteId: number, kind: string): LicenseState[] {
    const pools = this.poolsByKind.get(kind) ?? [];
    return [
      ...pools.filter((pool) => pool.license.siteId === siteId),
      ...pools.filter((pool) => pool.license.siteId === null),
    ];
  }

  private licensesChanged(): void {
    this.topology++;
    for (const { resources } of this.sites) resources.changed();
  }
}

const NO_POOLS: LicenseState[] = [];

/** In the paths that every job takes: `check` would make its message each time. */
function fail(message: string): never {
  throw new Error(message);
}

function check(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message);
}

function checkJob(job: Job): void {
  positive('job.estimate', job.estimateS);
  positive('job.benchmark', job.benchmark);
  wholeNumber('job.tasks', job.tasks, 1);
  wholeNumber('job.cpusPerTask', job.cpusPerTask, 1);
  wholeNumber('job.memoryMbPerTask', job.memoryMbPerTask, 0);
  if (!Number.isFinite(job.submittedAt))
    throw new Error(`job.submit is ${job.submittedAt}; accepted is a finite number`);
}

function positive(field: string, value: number): void {
  if (!(value > 0 && value < Infinity))
    throw new Error(`${field} is ${value}; accepted is a finite number above 0`);
}

function wholeNumber(field: string, value: number, least: number): void {
  if (!(Number.isInteger(value) && value >= least && value < 2 ** 31)) {
    throw new Error(`${field} is ${value}; accepted is a whole number from ${least} to 2147483647`);
  }
}
