/**
 * What the schedulers look at: machines, licenses, queues and runs, kept up to date by the driver change by change. A live engine
 * feeds it what the store tells, a simulator what its events are. Cycles only read it; the driver applies what it accepts of their
 * plans through the methods below, each of which costs at most the logarithm of what is there (and a short move of memory) and throws
 * on a call that cannot be right.
 *
 * A job is held by exactly one scheduler of the tree, in its queue, or runs. What a policy wants to know besides it keeps in an index
 * of its own (`Grid.index`), which is told of every change.
 *
 * What a grid answers depends on its content only, never on the order in which the content came.
 */
import { inItsPlace, NO_RANKS } from '../classes.js';
import {
  type Allocation,
  cpusOf,
  effectivePriority,
  envelopeOf,
  type Held,
  type Job,
  type JobPart,
  type License,
  limitAt,
  type Machine,
  type Places,
  type PromisedRoom,
  type Reservation,
  type Run,
  type Site,
  type SiteLoad,
  switchesAfter,
} from '../model.js';
import { OwnRuns, presently, tasksBeside } from '../resources/joining.js';
import { hasRoom } from '../resources/placement.js';
import { eachTakes, NO_AMOUNTS, ResourceKinds, type TaskAmounts } from './amounts.js';
import { Arrival, JobQueue } from './queue.js';
import { type Requirement, Requirements, type Signature } from './requirements.js';
import {
  alikeIn,
  holdsIn,
  type MachineState,
  machineState,
  type Placement,
  type PoolCopies,
  type PoolState,
  type RunState,
  SiteResources,
  type TimedHold,
} from './site-resources.js';

/** Who is told of what happens in a grid, after it has happened. */
export interface GridListener {
  /** A scheduler holds the job from now on. */
  placed?(job: Job, requirement: Requirement, queue: JobQueue): void;
  /** It does no longer: the job goes elsewhere, runs, or is gone. */
  left?(job: Job, requirement: Requirement, queue: JobQueue): void;
  /** A run of the job has begun, or was live when the grid was loaded. */
  started?(job: Job, run: Run): void;
  /** It is over. */
  ended?(job: Job, run: Run): void;
  /** Sites have come or gone. */
  sitesChanged?(): void;
}

/**
 * What a site's local scheduler wants to find again in its next cycle. Its plan has it, the driver keeps it
 * (`Grid.keepMemory`); the grid tells it what happens at the site, and does not look into it.
 */
export abstract class SiteMemory {
  /** A job has come into the site's queue. */
  placed(_slot: number): void {}
  /** One has left it. */
  left(_slot: number): void {}
  /** A run is over. */
  ended(_run: RunState): void {}
  /** Another end is planned for a run. */
  replanned(): void {}
}

/** One site: its machines and its two schedulers' queues. */
export interface SiteEntry {
  site: Site;
  readonly resources: SiteResources;
  /** Of the local scheduler, which starts jobs. */
  readonly queue: JobQueue;
  /** Of the scheduler before it, from which jobs can still go to another site. */
  readonly meta: JobQueue;
  /** What the last cycle reserved. Other sites respect it where it takes grid-wide licenses. */
  reservation: Reservation | null;
  memory: SiteMemory | null;
  /** Runs that wait in the site's own scheduler. */
  handedOver: HandedOver;
  /** Its reservations, by id. */
  inside: readonly ReservedEntry[];
  /** null: it is the site itself. */
  readonly part: ReservedPart | null;
}

/**
 * A reservation as a small site of its own: the machines, or parts of them, that it holds, open in its times, and the jobs that name it. So
 * every local policy schedules inside as it does outside, and neither sees the other.
 */
export interface ReservedPart {
  readonly reservation: number;
  /** The next ones. */
  readonly times: readonly Pick<Held, 'from' | 'to'>[];
  /** When its machines cannot be used: between its times, and in windows. */
  readonly closed: readonly Held[];
  /** By id of the machine. */
  readonly machines: ReadonlyMap<number, MachineState>;
  /** The same machines as the site has them. */
  readonly beneath: ReadonlyMap<number, MachineState>;
  /** What it holds of pools, by their ids: its jobs have that of these kinds, and no more. */
  readonly pools: ReadonlyMap<number, PoolState>;
}

export type ReservedEntry = SiteEntry & { readonly part: ReservedPart };

/** Nothing is reserved yet. In one literal: objects made by spreading differ in shape, and every cycle looks at this one. */
const siteEntry = <P extends ReservedPart | null>(
  site: Site,
  resources: SiteResources,
  queue: JobQueue,
  meta: JobQueue,
  handedOver: HandedOver,
  part: P,
): SiteEntry & { readonly part: P } => ({
  site,
  resources,
  queue,
  meta,
  reservation: null,
  memory: null,
  handedOver,
  inside: NO_PARTS,
  part,
});

/** Jobs that a site's own scheduler has and has not started. */
export interface HandedOver {
  jobs: number;
  /** Σ estimate·benchmark; and each times the job's processors. */
  work: number;
  cpuWork: number;
}

/** Where a job waits. A million of them may: what the queue knows of them is not kept again. */
class WaitingJob {
  constructor(
    public queue: JobQueue,
    public slot: number,
    public site: SiteEntry | null,
  ) {}

  get job(): Job {
    return this.queue.jobs[this.slot] as Job;
  }

  get requirement(): Requirement {
    return this.queue.requirements[this.slot] as Requirement;
  }

  get run(): null {
    return null;
  }
}

interface LiveJob {
  job: Job;
  readonly requirement: Requirement;
  site: SiteEntry;
  readonly run: RunState;
  /** Seconds after which the run is stopped, as it was given at its start; Infinity: never. */
  readonly limit: number;
}

type JobEntry = WaitingJob | LiveJob;

export type JobPlace =
  | { at: 'ROOT' }
  | { at: 'META'; siteId: number }
  | { at: 'QUEUE'; siteId: number }
  | { at: 'RUNNING'; siteId: number; plannedEnd: number };

/** Makes an index of what is in the grid. It is given the grid once, and hears from then on what changes. */
export type IndexKind<T extends object> = new (grid: Grid) => T;

/** The highest number of tasks, and of CPUs of one, plus 1. */
const COUNT_END = 2 ** 24;
const WHOLE_END = 2 ** 31;

export class Grid {
  /** In the stable site order: by id. Read only. */
  readonly sites: SiteEntry[] = [];
  /** Jobs held by the root. */
  readonly root: JobQueue;
  /** Jobs held by the root that go to their reservations: policies do not decide on them. */
  readonly rootReserved: JobQueue;
  /** Changes whenever a site, a machine or a license does. */
  topology = 0;
  private readonly siteById = new Map<number, SiteEntry>();
  /** The one that was asked for last: mostly it is asked for again. */
  private lastEntry: SiteEntry | null = null;
  private readonly machineById = new Map<number, MachineState>();
  private readonly licenseById = new Map<number, PoolState>();
  private readonly poolsByKind = new Map<string, PoolState[]>();
  private readonly heldById = new Map<number, Held>();
  /** Licenses of the whole grid. */
  private shared = 0;
  /** How often copies of licenses have been given back, or may have. */
  returns = 0;
  /** Something is held. */
  holdsAny = false;
  private readonly jobById = new Map<number, JobEntry>();
  /** Jobs that name a reservation, by id. */
  private readonly naming = new Set<number>();
  /** Those that wait for room that they were promised. */
  private readonly promised = new Set<WaitingJob>();
  /** What is held is being placed: what changes meanwhile is placed with it. */
  private placing = false;
  /** Live runs that have a limit; and those of them that are late. */
  private limited = 0;
  private readonly late = new Set<LiveJob>();
  /** Those that wait, and take only machines on one switch until an instant. */
  private readonly preferring = new Set<WaitingJob>();
  private partById = new Map<number, ReservedEntry>();
  readonly kinds = new ResourceKinds();
  private readonly requirements = new Requirements(this.kinds);
  /** By signature, as things are now. */
  private readonly avoided = new Map<Signature, Places | null>();
  private readonly indices = new Map<IndexKind<object>, object>();
  private readonly listeners: GridListener[] = [];

  /** Who came first, in all its queues. */
  readonly arrival: Arrival;

  /**
   * What the policy in force says of the order in queues: under another one a grid is made anew.
   *
   * @param workflows how their jobs are ordered (`Policy.workflows`)
   * @param ranks of classes of jobs
   */
  constructor(
    readonly workflows: 'ARRIVAL' | 'RANK' = 'ARRIVAL',
    readonly ranks = NO_RANKS,
  ) {
    this.arrival = new Arrival(workflows === 'RANK', ranks);
    this.root = new JobQueue('ROOT', null, null, this.arrival);
    this.rootReserved = new JobQueue('ROOT', null, null, this.arrival);
  }

  // ---- indices ----

  /** The index of this kind, made when it is asked for the first time. */
  index<T extends object>(Kind: IndexKind<T>): T {
    let index = this.indices.get(Kind) as (T & GridListener) | undefined;
    if (index === undefined) {
      index = new Kind(this);
      this.indices.set(Kind, index);
      if (index.placed || index.left || index.started || index.ended || index.sitesChanged)
        this.listeners.push(index);
    }
    return index;
  }

  /** The same if somebody has asked for it before; else undefined. */
  knownIndex<T extends object>(Kind: IndexKind<T>): T | undefined {
    return this.indices.get(Kind) as T | undefined;
  }

  // ---- sites, machines, licenses ----

  /** Adds a site or replaces what is known of it. */
  setSite(site: Site): void {
    const maxRuns = site.maxRunningJobs ?? Infinity;
    if (maxRuns !== Infinity) wholeNumber('site.maxRunningJobs', maxRuns, 1);
    this.topologyChanged();
    const known = this.siteById.get(site.id);
    if (known !== undefined) {
      const busyElsewhere = (known.site.load ?? null) !== null || (site.load ?? null) !== null;
      known.site = site;
      known.resources.maxRuns = maxRuns;
      for (const { queue } of [known, ...known.inside]) queue.siteLimitS = limitAt(NO_LIMIT, site);
      known.resources.siteName = site.name;
      known.resources.setLoad(site.load ?? null);
      known.resources.changed();
      if (busyElsewhere || known.inside.length > 0) this.placeHolds();
      return;
    }
    const resources = new SiteResources(
      site.id,
      (siteId, kind) => this.poolsFor(siteId, kind),
      this.kinds.size,
      (signature) => this.avoidedBy(signature),
    );
    resources.maxRuns = maxRuns;
    resources.siteName = site.name;
    resources.setLoad(site.load ?? null);
    const meta = new JobQueue('META', site.id, this.root, this.arrival);
    const queue = new JobQueue('LOCAL', site.id, meta, this.arrival);
    queue.siteLimitS = limitAt(NO_LIMIT, site);
    const handedOver = { jobs: 0, work: 0, cpuWork: 0 };
    const entry = siteEntry(site, resources, queue, meta, handedOver, null);
    this.siteById.set(site.id, entry);
    this.sites.push(entry);
    this.sites.sort((a, b) => a.site.id - b.site.id);
    for (const listener of this.listeners) listener.sitesChanged?.();
    if (site.load || this.holdsAny) this.placeHolds();
  }

  /** Removes a site that has no machines, licenses, jobs. */
  removeSite(siteId: number): void {
    const entry = this.siteEntry(siteId);
    check(entry.resources.machines.length === 0, `site ${siteId} still has machines`);
    const queues = [entry.queue, entry.meta, ...entry.inside.map(({ queue }) => queue)];
    check(
      queues.every(({ length }) => length === 0),
      `site ${siteId} still has queued jobs`,
    );
    for (const { license } of this.licenseById.values()) {
      check(license.siteId !== siteId, `site ${siteId} still has license ${license.id}`);
    }
    this.topologyChanged();
    this.siteById.delete(siteId);
    this.lastEntry = null;
    this.sites.splice(this.sites.indexOf(entry), 1);
    for (const listener of this.listeners) listener.sitesChanged?.();
  }

  /** Adds a machine or replaces what is known of it. One with live runs cannot change its site. */
  setMachine(machine: Machine): void {
    const { resources } = this.siteEntry(machine.siteId);
    wholeNumber('machine.cpus', machine.cpus, 1);
    wholeNumber('machine.memoryMb', machine.memoryMb, 0);
    positive('machine.benchmark', machine.benchmark);
    const maxTasks = machine.maxTasks ?? null;
    if (maxTasks !== null) wholeNumber('machine.maxTasks', maxTasks, 1);
    for (const [name, amount] of Object.entries(machine.resources ?? {}))
      wholeNumber(`machine.resources.${name}`, amount, 0);
    const offered = this.kinds.offeredBy(machine);
    this.widen();
    const known = this.machineById.get(machine.id);
    if (known !== undefined && known.machine.siteId === machine.siteId) {
      this.topologyChanged();
      resources.replaceMachine(known, machine, offered, this.kinds.devicesOf(machine));
    } else {
      if (known !== undefined) this.removeMachine(machine.id);
      this.topologyChanged();
      const state = machineState(machine, offered, false, this.kinds.devicesOf(machine));
      this.machineById.set(machine.id, state);
      resources.addMachine(state);
    }
    this.placeHolds();
  }

  /** Removes a machine that no live run is on. */
  removeMachine(machineId: number): void {
    const state = this.machineById.get(machineId);
    check(state !== undefined, `machine ${machineId} is not in the grid`);
    const { resources, inside } = this.siteEntry(state.machine.siteId);
    const reserved = inside.some(({ part, resources: { free } }) => {
      const own = part.machines.get(machineId);
      return own !== undefined && free.tasks[own.position] !== 0;
    });
    check(resources.free.tasks[state.position] === 0 && !reserved, `machine ${machineId} has live runs`);
    this.topologyChanged();
    this.machineById.delete(machineId);
    resources.removeMachine(state);
    this.placeHolds();
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
      const state: PoolState = {
        ...{ license, holders: [], inUse: 0, returnedAt: ++this.returns, holds: [], isPart: false },
      };
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
    const parts = [...this.partById.values()].map(({ part }) => part.pools.get(licenseId));
    check(
      [state, ...parts].every((one) => one === undefined || one.holders.length === 0),
      `license ${licenseId} is held by live runs`,
    );
    this.licenseById.delete(licenseId);
    const pools = this.poolsByKind.get(state.license.kind) ?? [];
    pools.splice(pools.indexOf(state), 1);
    if (pools.length === 0) this.poolsByKind.delete(state.license.kind);
    this.licensesChanged();
  }

  /** What is avoided depends on what there is at other sites. */
  private topologyChanged(): void {
    this.topology++;
    if (this.requirements.avoiding === 0) return;
    this.avoided.clear();
    for (const { resources, inside } of this.sites) {
      resources.changed();
      for (const part of inside) part.resources.changed();
    }
  }

  /** Where jobs of the signature are not to be: where runs of theirs failed, as long as there is room elsewhere. */
  private avoidedBy(signature: Signature): Places | null {
    const { avoids } = signature;
    if (avoids === null) return null;
    let places = this.avoided.get(signature);
    if (places === undefined) {
      const isEnough = (without: Places): boolean =>
        this.sites.some(
          ({ site, resources }) =>
            site.state === 'UP' && hasRoom(avoids, resources.findWithout(signature, without)),
        );
      places = [avoids.failed, avoids.last].find(isEnough) ?? null;
      this.avoided.set(signature, places);
    }
    return places;
  }

  // ---- holds ----

  /** Something is held from now on, or in another way. What is held of machines and licenses that are not in the grid counts once they are. */
  setHeld(...holds: readonly Held[]): void {
    for (const held of holds) {
      if (!(held.from < held.to))
        fail(`held.to is ${held.to}; accepted: a time after held.from, ${held.from}`);
      for (const { amounts } of held.machines)
        for (const [name, amount] of Object.entries(amounts ?? {}))
          wholeNumber(`held.machines.amounts.${name}`, amount, 0);
      this.heldById.set(held.id, held);
    }
    this.placeHolds();
  }

  /** It is held no more. */
  removeHeld(...ids: readonly number[]): void {
    for (const id of ids) check(this.heldById.delete(id), `nothing is held in the grid as ${id}`);
    this.placeHolds();
  }

  /** Whether anything may be held of pools beside runs and what policies reserve. */
  get holdsPools(): boolean {
    return this.heldById.size > 0 || this.promised.size > 0;
  }

  /** What is held, by id. */
  get held(): ReadonlyMap<number, Held> {
    return this.heldById;
  }

  /** Of all that is held, what it takes of machines and pools as they are now. */
  private placeHolds(): void {
    const { sites, heldById } = this;
    const loaded = sites.filter(({ site }) => site.load);
    const some = heldById.size > 0 || loaded.length > 0 || this.promised.size > 0;
    if ((!some && !this.holdsAny) || this.placing) return;
    this.placing = true;
    this.holdsAny = some;
    this.topologyChanged();
    for (const { resources } of sites) {
      resources.holds = [];
      resources.busyCpus = 0;
    }
    for (const pool of this.licenseById.values()) pool.holds = [];
    const byId = [...heldById.values()].sort((a, b) => a.id - b.id);
    for (const held of byId) {
      const { from, to, ends, pools } = held;
      const certain = ends === 'LIMIT';
      for (const { resources, machines, each } of this.heldAlike(held))
        resources.holds.push({
          machines,
          tasks: machines.map(() => 1),
          each,
          licenses: [],
          from,
          to,
          certain,
        });
      for (const { id, amount } of pools) {
        const pool = this.licenseById.get(id);
        if (pool === undefined) continue;
        const licenses = [{ pool, copies: amount }];
        pool.holds.push({ machines: [], tasks: [], each: NO_AMOUNTS, licenses, from, to, certain });
      }
    }
    for (const { site, resources } of loaded) this.placeLoad(site.load as SiteLoad, resources);
    this.widen();
    this.placeReserved(byId);
    for (const entry of [...this.promised].sort((a, b) => a.job.id - b.job.id)) this.placePromised(entry);
    for (const { resources } of sites) resources.changed();
    this.placing = false;
  }

  /** The room that was made for a waiting job, as long as its machines are there. */
  private placePromised({ job, requirement, site }: WaitingJob): void {
    const { at, allocations, pools = [] } = job.promised as PromisedRoom;
    const { resources, part } = site as SiteEntry;
    const known = part === null ? this.machineById : part.machines;
    const machines: MachineState[] = [];
    for (const { machineId } of allocations) {
      const state = known.get(machineId);
      if (!state?.machine.available) return;
      machines.push(state);
    }
    const copies = pools.flatMap(({ id, amount }) => {
      const pool = this.poolBehind(id, site);
      return pool === undefined ? [] : [{ pool, copies: amount }];
    });
    const length = (job.estimateS * job.benchmark) / this.slowestOf(allocations);
    // No run may be late into it, for others were stopped for it.
    const time = { from: at, to: at + Math.max(length, PROMISED_AT_LEAST_S), certain: true };
    const tasks = allocations.map((one) => one.tasks);
    const hold = { machines, tasks, each: requirement, licenses: [] };
    insertPromised(resources.holds, { ...hold, ...time, jobId: job.id, copies });
    if (part !== null) resources.changed();
    for (const one of copies)
      insertPromised(one.pool.holds, {
        ...{ machines: [], tasks: [], each: NO_AMOUNTS, licenses: [one], jobId: job.id },
        ...time,
      });
  }

  /** Makes the reservations, and puts the jobs that name them where they now belong: into theirs, or among all others where it is gone. */
  private placeReserved(byId: readonly Held[]): void {
    const times = new Map<number, Held[]>();
    for (const held of byId) {
      if (held.reservation == null) continue;
      const { id, siteId } = held.reservation;
      if (this.siteById.has(siteId)) times.set(id, [...(times.get(id) ?? []), held]);
    }
    if (times.size === 0 && this.partById.size === 0) return;
    for (const { run, site } of this.namingEntries()) if (run !== null) site.resources.removeRun(run);
    const before = this.partById;
    this.partById = new Map();
    for (const site of this.sites) site.inside = NO_PARTS;
    for (const [id, helds] of [...times].sort(([a], [b]) => a - b)) {
      const { siteId } = (helds[0] as Held).reservation as { siteId: number };
      const site = this.siteEntry(siteId);
      const windows = byId.filter(({ by, ends }) => by === 'WINDOW' && ends === 'LIMIT');
      const part = this.reservedEntry(id, site, helds, windows, before.get(id)?.queue ?? null);
      this.partById.set(id, part);
      site.inside = [...site.inside, part];
    }
    for (const entry of this.namingEntries()) this.settle(entry);
    for (const site of this.sites) countInside(site);
  }

  private namingEntries(): JobEntry[] {
    return Array.from(this.naming, (id) => this.jobById.get(id) as JobEntry);
  }

  private reservedEntry(
    id: number,
    { site, meta, handedOver, resources: { deviceHolds } }: SiteEntry,
    helds: readonly Held[],
    windows: readonly Held[],
    known: JobQueue | null,
  ): ReservedEntry {
    const machines = new Map<number, MachineState>();
    const beneath = new Map<number, MachineState>();
    const pools = new Map<number, PoolState>();
    for (const { id: poolId, amount } of (helds[0] as Held).pools) {
      const pool = this.licenseById.get(poolId);
      if (pool === undefined) continue;
      const license = { ...pool.license, copies: amount };
      pools.set(poolId, { license, holders: [], inUse: 0, returnedAt: 0, holds: [], isPart: true });
    }
    const resources: SiteResources = new SiteResources(
      site.id,
      (siteId, kind) => {
        const own = [...pools.values()].filter(({ license }) => license.kind === kind);
        return own.length > 0 ? own : this.poolsFor(siteId, kind);
      },
      this.kinds.size,
      (signature) => avoidedIn(resources, signature),
    );
    resources.siteName = site.name;
    resources.deviceHolds = deviceHolds;
    for (const { machineId, amounts } of (helds[0] as Held).machines) {
      const state = this.machineById.get(machineId);
      if (state === undefined || state.machine.siteId !== site.id) continue;
      const own = reservedMachine(state.machine, amounts);
      const devices = this.kinds.devicesOf(own);
      const reserved = machineState(own, this.kinds.offeredBy(own), amounts !== null, devices);
      beneath.set(machineId, state);
      machines.set(machineId, reserved);
      resources.addMachine(reserved);
    }
    const closed = closedTimes(helds, windows, site.id, [...machines.keys()]);
    for (const held of closed) {
      const { from, to } = held;
      for (const { machines: alike, each } of this.heldAlike(held, machines))
        resources.holds.push({
          ...{ machines: alike, tasks: alike.map(() => 1), each, licenses: [] },
          ...{ from, to, certain: true },
        });
    }
    resources.changed();
    const queue = known ?? new JobQueue('LOCAL', site.id, meta, this.arrival);
    queue.siteLimitS = limitAt(NO_LIMIT, site);
    const part = { reservation: id, times: helds, closed, machines, beneath, pools };
    return siteEntry(site, resources, queue, meta, handedOver, part);
  }

  /** Puts a job that names a reservation where it now belongs. */
  private settle(entry: JobEntry): void {
    const { job } = entry;
    if (entry.run !== null) {
      const { run, site } = entry;
      const home = this.homeOfRun(job, run.run, this.siteEntry(site.site.id));
      run.machines = this.machinesOf(run.run, home);
      run.licenses = this.copiesOf(run.run, home);
      entry.site = home;
      home.resources.addRun(run);
      return;
    }
    const { site } = entry;
    if (site === null) {
      const queue = this.rootOf(job);
      if (queue !== entry.queue) this.hold(job, queue, null);
    } else if (entry.queue !== site.meta) {
      const home = this.homeOf(job, this.siteEntry(site.site.id));
      if (home.queue === entry.queue) entry.site = home;
      else this.hold(job, home.queue, home);
    }
  }

  /** Where the job waits at the site: in its reservation, as long as there is one. */
  private homeOf({ reservationId }: Job, site: SiteEntry): SiteEntry {
    if (reservationId === null) return site;
    const part = this.partById.get(reservationId);
    return part !== undefined && part.site.id === site.site.id ? part : site;
  }

  /** Where its run is: what began at another time, or is not on machines of the reservation, takes room beside it. */
  private homeOfRun(job: Job, { allocations, start }: Run, site: SiteEntry): SiteEntry {
    const home = this.homeOf(job, site);
    if (home.part === null) return site;
    const { times, machines } = home.part;
    const isInside =
      times.some(({ from, to }) => from <= start && start < to) &&
      allocations.every(({ machineId }) => machines.has(machineId));
    return isInside ? home : site;
  }

  private rootOf({ reservationId }: Job): JobQueue {
    return reservationId !== null && this.partById.has(reservationId) ? this.rootReserved : this.root;
  }

  /** The site of the job's reservation, as long as there is one; null: it may go anywhere. */
  reservedSite({ reservationId }: Job): ReservedEntry | null {
    return reservationId === null ? null : (this.partById.get(reservationId) ?? null);
  }

  /** What is held of machines of which the same is held, at one site: one hold, whatever their number. */
  private heldAlike(
    { machines, siteId }: Held,
    byId: ReadonlyMap<number, MachineState> = this.machineById,
  ): Iterable<{
    resources: SiteResources;
    machines: MachineState[];
    each: TaskAmounts;
  }> {
    const alike = new Map<
      string,
      { resources: SiteResources; machines: MachineState[]; each: TaskAmounts }
    >();
    const add = (state: MachineState, of: Readonly<Record<string, number>> | readonly number[]): void => {
      const task = this.kinds.amounts(of);
      const key = `${state.machine.siteId}/${task.join()}`;
      const known = alike.get(key);
      if (known !== undefined) {
        known.machines.push(state);
        return;
      }
      const { resources } = this.siteEntry(state.machine.siteId);
      alike.set(key, { resources, machines: [state], each: eachTakes(task) });
    };
    const whole = siteId == null ? undefined : this.siteById.get(siteId);
    for (const state of whole?.resources.machines ?? []) add(state, state.offered);
    for (const { machineId, amounts } of machines) {
      const state = byId.get(machineId);
      if (state !== undefined) add(state, amounts ?? state.offered);
    }
    return alike.values();
  }

  /** What the jobs of a site that schedules itself have taken of its machines: nobody knows until when. */
  private placeLoad({ busy }: SiteLoad, resources: SiteResources): void {
    for (const { machineId, cpus, memoryMb } of busy) {
      const state = this.machineById.get(machineId);
      if (state === undefined || state.machine.siteId !== resources.siteId) continue;
      const each = eachTakes(this.kinds.amounts({ cpus, memoryMb }));
      const hold = { machines: [state], tasks: [1], each, licenses: [] };
      resources.holds.push({ ...hold, from: -Infinity, to: Infinity, certain: false });
      if (state.machine.available) resources.busyCpus += Math.min(cpus, state.machine.cpus);
    }
  }

  /** How many kinds of license exist, `|L|` in the paper. */
  get licenseKinds(): number {
    return this.poolsByKind.size;
  }

  /** Whether there are licenses of which sites share the copies. */
  get sharesLicenses(): boolean {
    return this.shared > 0;
  }

  /** All pools, by id. */
  pools(): readonly PoolState[] {
    return [...this.licenseById.values()].sort((a, b) => a.license.id - b.license.id);
  }

  /** By kind of pool how much of it jobs wait for: those that are held, or wait for others, are not in the grid. */
  poolsWaitedFor(): ReadonlyMap<string, number> {
    const asked = this.requirements.poolsAsked();
    for (const { license, inUse } of this.licenseById.values())
      asked.set(license.kind, Math.max(0, (asked.get(license.kind) ?? 0) - inUse));
    return asked;
  }

  /** The pools of the whole grid, by id: sites share their copies. */
  sharedLicenses(): readonly PoolState[] {
    return [...this.licenseById.values()]
      .filter(({ license }) => license.siteId === null)
      .sort((a, b) => a.license.id - b.license.id);
  }

  // ---- jobs ----

  /** The root holds the job from now on: a new one, one taken back from a site, or one changed by an operator. */
  placeAtRoot(job: Job): void {
    this.hold(job, this.rootOf(job), null);
  }

  /** The job is in the queue before a site's local one from now on: from the root, or from another site's. */
  placeAtMeta(job: Job, siteId: number): void {
    const site = this.siteEntry(siteId);
    this.hold(job, site.meta, site);
  }

  /** The job is in the site's local queue from now on; one that is there already is changed (its boost, its user's class). */
  placeAtSite(job: Job, siteId: number): void {
    const site = this.homeOf(job, this.siteEntry(siteId));
    this.hold(job, site.queue, site);
  }

  private hold(given: Job, queue: JobQueue, site: SiteEntry | null): void {
    const job = inItsPlace(given, this.ranks);
    checkJob(job);
    const priority = effectivePriority(job);
    let entry = this.jobById.get(job.id);
    let requirement: Requirement;
    if (entry === undefined) {
      requirement = this.enter(job);
      entry = new WaitingJob(queue, queue.add(job, requirement, priority), site);
      this.jobById.set(job.id, entry);
    } else {
      if (entry.run !== null) fail(`job ${job.id} has a live run`);
      const before = entry.requirement;
      this.leaveQueue(entry);
      requirement = this.enter(job);
      this.requirements.leave(before);
      entry.queue = queue;
      entry.slot = queue.add(job, requirement, priority);
      entry.site = site;
    }
    this.note(job);
    if (mayPrefer(job) && switchesAfter(job, this.requirements.now) < Infinity) this.preferring.add(entry);
    if (job.promised !== null && site !== null && queue === site.queue && isThere(job.promised, site))
      this.promise(entry, true);
    if (site !== null && queue === site.queue) site.memory?.placed(entry.slot);
    if (this.isApart(entry)) return;
    for (let i = 0; i < this.listeners.length; i++) this.listeners[i]?.placed?.(job, requirement, queue);
  }

  /** A job queued at the site has taken machines and licenses. Throws where they are not free. */
  startRun(run: Run): void {
    const entry = this.jobById.get(run.jobId);
    if (entry === undefined) fail(`job ${run.jobId} is not in the grid`);
    const { site } = entry;
    if (entry.run !== null) fail(`job ${run.jobId} has a live run`);
    if (site?.site.id !== run.siteId || entry.queue !== site.queue)
      fail(`job ${run.jobId} is not in the queue of site ${run.siteId}`);
    const { free, runs, maxRuns } = site.resources;
    if (runs.length >= maxRuns) fail(`site ${run.siteId} runs as many jobs as it may`);
    const state = this.runState(run, entry.requirement, site);
    if (!holdsIn(state, free.room)) {
      const isOwn = ({ jobId }: RunState): boolean => this.job(jobId)?.userId === entry.job.userId;
      const own = new OwnRuns(runs.filter(isOwn));
      state.machines.forEach((on, i) => {
        // Whoever has several parts joins nobody.
        const joins = entry.requirement.parts === null;
        const beside = joins ? tasksBeside(own, entry.requirement, on, presently(free.room)) : 0;
        if (beside < (state.tasks[i] as number))
          fail(`machine ${on.machine.id} has no room for job ${run.jobId}`);
      });
    }
    for (const { pool, copies } of state.licenses) {
      check(
        pool.inUse + copies <= pool.license.copies,
        `license ${pool.license.id} has too few free copies for job ${run.jobId}`,
      );
    }
    this.start(entry, site, state);
  }

  /** The same without checking, of a start that a cycle has just found: what `siteCycle` does for `accept`. */
  adoptRun(run: Run, state: RunState): void {
    const entry = this.jobById.get(run.jobId);
    if (!entry?.site || entry.run !== null) fail(`job ${run.jobId} is not in the queue of a site`);
    state.run = run;
    this.start(entry, entry.site, state);
  }

  /**
   * A run that is live already, when a snapshot is loaded: the job is in no queue, and what it holds is held even if the
   * machine or the pool has shrunk below it since.
   */
  restoreRun(run: Run, job: Job): void {
    checkJob(job);
    check(!this.jobById.has(job.id), `job ${job.id} is in the grid already`);
    const site = this.homeOfRun(job, run, this.siteEntry(run.siteId));
    this.restore(job, site, (requirement) => this.runState(run, requirement, site));
  }

  private restore(job: Job, site: SiteEntry, stateOf: (requirement: Requirement) => RunState): void {
    const requirement = this.enter(job);
    const run = stateOf(requirement);
    this.note(job);
    this.begin(job, requirement, site, run);
  }

  /** A run that waited with the site's own scheduler begins there. It keeps what it holds of pools. */
  beginRun(run: Run, { machines, tasks }: Pick<Placement, 'machines' | 'tasks'>): void {
    const entry = this.jobById.get(run.jobId);
    if (!entry?.run) fail(`job ${run.jobId} has no live run`);
    const { job, site, run: before } = entry;
    const { jobId, licenses } = before;
    this.endRun(jobId);
    const end = run.plannedEnd;
    this.restore(job, site, (each) => ({ run, jobId, end, machines, tasks, each, licenses }));
  }

  /** Another end is planned for a live run: what was believed of it was wrong. */
  replanRun(jobId: number, plannedEnd: number): void {
    const entry = this.jobById.get(jobId);
    if (!entry?.run) fail(`job ${jobId} has no live run`);
    const { run, site } = entry;
    this.late.delete(entry);
    run.run = { ...run.run, plannedEnd };
    site.resources.replan(run, plannedEnd);
    site.memory?.replanned();
  }

  /** A live run was asked to stop. */
  stopRun(jobId: number, stopsAt: number): void {
    const entry = this.jobById.get(jobId);
    if (!entry?.run) fail(`job ${jobId} has no live run`);
    entry.run.run = { ...entry.run.run, stopsAt };
    this.replanRun(jobId, Math.min(entry.run.end, stopsAt));
  }

  /** A live run has kept what it has done. */
  checkpointRun(jobId: number, checkpointAt: number): void {
    const entry = this.jobById.get(jobId);
    if (!entry?.run) fail(`job ${jobId} has no live run`);
    entry.run.run = { ...entry.run.run, checkpointAt };
  }

  /** A job with a live run is not what it was. The run keeps its limit. */
  redescribe(job: Job): void {
    const entry = this.jobById.get(job.id);
    if (!entry?.run) fail(`job ${job.id} has no live run`);
    this.late.delete(entry);
    entry.job = job;
  }

  /** The run is over; its job is no longer in the grid (put it at the root again if it restarts). */
  endRun(jobId: number): void {
    const entry = this.jobById.get(jobId);
    if (!entry?.run) fail(`job ${jobId} has no live run`);
    const { run, site } = entry;
    site.resources.removeRun(run);
    for (const { pool } of run.licenses) pool.returnedAt = ++this.returns;
    if (entry.limit < Infinity) this.limited--;
    if (this.late.size > 0) this.late.delete(entry);
    if (site.part !== null) countInside(this.siteEntry(site.site.id));
    if (run.run.waits) countHandedOver(site, entry.job, -1);
    this.forget(entry.job, entry.requirement);
    site.memory?.ended(run);
    for (let i = 0; i < this.listeners.length; i++) this.listeners[i]?.ended?.(entry.job, run.run);
  }

  /** A job has ended of which no run was seen here: there may have been one. */
  endedUnseen(): void {
    if (this.shared > 0) for (const pool of this.sharedLicenses()) pool.returnedAt = ++this.returns;
  }

  /** A queued job leaves the grid: held, cancelled, expired. */
  removeJob(jobId: number): void {
    const entry = this.jobById.get(jobId);
    check(entry !== undefined, `job ${jobId} is not in the grid`);
    check(entry.run === null, `job ${jobId} has a live run`);
    const { job, requirement } = entry;
    this.leaveQueue(entry);
    this.forget(job, requirement);
  }

  /**
   * Time has passed: jobs that have waited for machines on one switch as long as they would take any from now on, and runs that are late are
   * planned to end at their limits. Cycles and explanations begin with it.
   */
  advance(now: number): void {
    const before = this.requirements.now;
    if (now <= before) return;
    this.requirements.now = now;
    if (this.limited > 0) this.replanLate(now);
    if (this.preferring.size === 0) return;
    const over = [...this.preferring].filter(({ job }) => switchesAfter(job, before) <= now);
    for (const { job, queue, site } of over.sort((a, b) => a.job.id - b.job.id)) this.hold(job, queue, site);
  }

  /**
   * Plans other ends for runs that are late: their limits; past these, when they will have been killed. (resources.md, "Holds in the future".)
   * What is not late for long counts as ending now, and so does a run without a limit: see docs/ARCHITECTURE.md, "The core".
   */
  private replanLate(now: number): void {
    for (const site of this.sites)
      for (const one of [site, ...site.inside]) {
        const { runs } = one.resources;
        for (let i = 0; i < runs.length && (runs[i] as RunState).end + LATE_S <= now; i++) {
          const { jobId, run } = runs[i] as RunState;
          const entry = this.jobById.get(jobId) as LiveJob;
          if (entry.limit < Infinity && !run.waits && run.stopsAt === undefined) this.late.add(entry);
        }
      }
    for (const { job, run, site, limit } of this.late) {
      const limitEnd = run.run.start + limit;
      const end = limitEnd > now ? limitEnd : now + job.killGraceS;
      if (end === run.end) continue;
      site.resources.replan(run, end);
      site.memory?.replanned();
    }
  }

  /** As `advance` was told it last. */
  get now(): number {
    return this.requirements.now;
  }

  /** Some job waits for machines on one switch, and at some time no more. */
  get prefersSwitches(): boolean {
    return this.preferring.size > 0;
  }

  /** When the first job that waits there takes machines on any switches, too; Infinity: none will. */
  switchesFrom(site: SiteEntry): number {
    let first = Infinity;
    for (const entry of this.preferring)
      if (entry.site === site) first = Math.min(first, switchesAfter(entry.job, this.requirements.now));
    return first;
  }

  /** Keeps what a cycle of the site reserved; null: nothing. */
  setReservation(siteId: number, reservation: Reservation | null): void {
    if (reservation !== null && reservation.siteId !== siteId)
      fail(`the reservation is not one of site ${siteId}`);
    this.siteEntry(siteId).reservation = reservation;
  }

  /** Keeps what a cycle of the site wants to find again; without it the next begins afresh. */
  keepMemory(siteId: number, memory: SiteMemory | null): void {
    this.siteEntry(siteId).memory = memory;
  }

  // ---- questions ----

  /** Where the job is; null when it is not in the grid. */
  placeOf(jobId: number): JobPlace | null {
    const entry = this.jobById.get(jobId);
    if (entry === undefined) return null;
    if (entry.site === null) return { at: 'ROOT' };
    const siteId = entry.site.site.id;
    if (entry.run !== null) return { at: 'RUNNING', siteId, plannedEnd: entry.run.end };
    return { at: entry.queue === entry.site.meta ? 'META' : 'QUEUE', siteId };
  }

  /** The site that has the job, or its reservation there; null: none has. */
  entryOf(jobId: number): SiteEntry | null {
    return this.jobById.get(jobId)?.site ?? null;
  }

  /** All jobs, in no particular order. */
  *jobs(): Generator<Job> {
    for (const { job } of this.jobById.values()) yield job;
  }

  /** The job as it was last given; null when it is not in the grid. */
  job(jobId: number): Job | null {
    return this.jobById.get(jobId)?.job ?? null;
  }

  /**
   * Seconds after which the job's run is stopped: of a live one as it was given at its start, of a waiting one at the site where it waits.
   * Infinity: never, or the job is not in the grid.
   */
  limitOf(jobId: number): number {
    const entry = this.jobById.get(jobId);
    if (entry === undefined) return Infinity;
    return entry.run === null ? limitAt(entry.job, entry.site?.site ?? null) : entry.limit;
  }

  /** Where the job is in the queue that holds it; -1 when none does. */
  slotOf(jobId: number): number {
    const entry = this.jobById.get(jobId);
    return entry === undefined || entry.run !== null ? -1 : entry.slot;
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
    const requirement = this.enter(job);
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

  private enter(job: Job): Requirement {
    const requirement = this.requirements.enter(job);
    if (job.resourcesPerTask !== null || job.devicesPerTask !== null || job.parts !== null) this.widen();
    return requirement;
  }

  private forget({ id, reservationId }: Job, requirement: Requirement): void {
    this.requirements.leave(requirement);
    this.jobById.delete(id);
    if (reservationId !== null) this.naming.delete(id);
  }

  /** It waits for room that it was promised, or does so no more. All else that is held stays as it is, reservations among it. */
  private promise(entry: WaitingJob, waits: boolean): void {
    if (waits) this.promised.add(entry);
    else this.promised.delete(entry);
    if (this.placing) return;
    const { job, site } = entry;
    const { resources } = site as SiteEntry;
    const without = (holds: readonly TimedHold[]) => holds.filter(({ jobId }) => jobId !== job.id);
    resources.holds = without(resources.holds);
    for (const { id } of job.promised?.pools ?? []) {
      const pool = this.poolBehind(id, site);
      if (pool !== undefined) pool.holds = without(pool.holds);
    }
    if (waits) this.placePromised(entry);
    this.holdsAny = this.holdsPools || this.sites.some((one) => one.site.load);
    resources.changed();
    this.topologyChanged();
  }

  /** For who is at the site, or in its reservation. */
  private poolBehind(id: number, site: SiteEntry | null): PoolState | undefined {
    return site?.part?.pools.get(id) ?? this.licenseById.get(id);
  }

  /** Its entry has to get another place then, or to be forgotten: it knows the job by the one that it had. */
  private leaveQueue(entry: WaitingJob): void {
    const { job, requirement, queue, site, slot } = entry;
    const apart = this.isApart(entry);
    if (this.promised.has(entry)) this.promise(entry, false);
    if (mayPrefer(job)) this.preferring.delete(entry);
    queue.remove(slot);
    if (site !== null && queue === site.queue) site.memory?.left(slot);
    if (apart) return;
    for (let i = 0; i < this.listeners.length; i++) this.listeners[i]?.left?.(job, requirement, queue);
  }

  private note({ id, reservationId }: Job): void {
    if (reservationId !== null) this.naming.add(id);
    else if (this.naming.size > 0) this.naming.delete(id);
  }

  /** It waits for its reservation, or inside: nobody else has to know. */
  private isApart({ queue, site }: WaitingJob): boolean {
    return queue === this.rootReserved || (site !== null && site.part !== null);
  }

  private start(entry: WaitingJob, site: SiteEntry, run: RunState): void {
    const { job, requirement } = entry;
    this.leaveQueue(entry);
    this.begin(job, requirement, site, run);
  }

  private begin(job: Job, requirement: Requirement, site: SiteEntry, run: RunState): void {
    const { limitS, waits } = run.run;
    const limit = limitS === undefined ? limitAt(job, site.site) : (limitS ?? Infinity);
    this.jobById.set(job.id, { job, requirement, site, run, limit });
    if (limit < Infinity) this.limited++;
    site.resources.addRun(run);
    if (site.part !== null) countInside(this.siteEntry(site.site.id));
    if (waits) countHandedOver(site, job, 1);
    for (let i = 0; i < this.listeners.length; i++) this.listeners[i]?.started?.(job, run.run);
  }

  /** Of the site, or of one of its reservations. */
  private machinesOf(run: Run, { part }: SiteEntry): MachineState[] {
    return run.allocations.map(({ machineId }) => {
      const state = this.machineById.get(machineId);
      if (state === undefined) fail(`machine ${machineId} is not in the grid`);
      if (state.machine.siteId !== run.siteId) fail(`machine ${machineId} is not at site ${run.siteId}`);
      if (part === null) return state;
      const own = part.machines.get(machineId);
      if (own === undefined) fail(`machine ${machineId} is not in reservation ${part.reservation}`);
      return own;
    });
  }

  /** Of its pools: those of the grid, or what is reserved of them. */
  private copiesOf(run: Run, site: SiteEntry): PoolCopies[] {
    return run.pools.map(({ id, amount }) => {
      const pool = this.poolBehind(id, site);
      check(pool !== undefined, `license ${id} is not in the grid`);
      const { siteId } = pool.license;
      check(siteId === null || siteId === run.siteId, `license ${id} is not usable at site ${run.siteId}`);
      return { pool, copies: amount };
    });
  }

  private runState(run: Run, requirement: Requirement, site: SiteEntry): RunState {
    const machines = this.machinesOf(run, site);
    const tasks = run.allocations.map((allocation) => allocation.tasks);
    for (const { machines: alike } of alikeIn({ machines, tasks, each: requirement })) {
      const twice = alike.find((state, i) => alike.indexOf(state) < i);
      if (twice) fail(`machine ${twice.machine.id} is named twice by the run of job ${run.jobId}`);
    }
    const licenses = this.copiesOf(run, site);
    return {
      run,
      jobId: run.jobId,
      end: run.plannedEnd,
      machines,
      tasks,
      each: requirement,
      licenses,
    };
  }

  /** The pool with this id; null: there is none. */
  pool(id: number): PoolState | null {
    return this.licenseById.get(id) ?? null;
  }

  /** All pools of a kind, by id. */
  licensePools(kind: string): readonly PoolState[] {
    return this.poolsByKind.get(kind) ?? [];
  }

  /** The pools that serve a kind at a site, in order of use. */
  private poolsFor(siteId: number, kind: string): PoolState[] {
    const pools = this.poolsByKind.get(kind) ?? [];
    return [
      ...pools.filter((pool) => pool.license.siteId === siteId),
      ...pools.filter((pool) => pool.license.siteId === null),
    ];
  }

  /** A kind of resource may be new: every site has a column for it. */
  private widen(): void {
    const [first] = this.sites;
    if (first === undefined || first.resources.kinds === this.kinds.size) return;
    this.topologyChanged();
    for (const { resources, inside } of this.sites) {
      resources.widen(this.kinds.size);
      for (const part of inside) part.resources.widen(this.kinds.size);
    }
  }

  private licensesChanged(): void {
    this.topologyChanged();
    this.placeHolds();
    this.shared = this.sharedLicenses().length;
    for (const { resources } of this.sites) resources.changed();
  }
}

const NO_PARTS: readonly ReservedEntry[] = [];

/** A run is late by less while the report of its end is on its way. */
const LATE_S = 60;

/** Behind all that is held otherwise, by job: in whatever order promises came. */
function insertPromised(holds: TimedHold[], hold: TimedHold): void {
  let at = holds.length;
  while (at > 0 && ((holds[at - 1] as TimedHold).jobId ?? -1) > (hold.jobId as number)) at--;
  holds.splice(at, 0, hold);
}

/** Whether the room is one of the site, or of this reservation there. */
const isThere = ({ siteId, reservationId }: PromisedRoom, { site, part }: SiteEntry): boolean =>
  siteId === site.id && reservationId === part?.reservation;

/** Of a job without a limit of its own. */
const NO_LIMIT = { runTimeLimitS: null };

/** Promised room is kept for so long at least, as agents may report late that others have ended; then the promise is no more. */
const PROMISED_AT_LEAST_S = 60;

/** Runs inside reservations are among those that the site may have at once. */
function countInside({ site, resources, inside }: SiteEntry): void {
  if (site.maxRunningJobs == null) return;
  const runs = inside.reduce((sum, part) => sum + part.resources.runs.length, 0);
  resources.maxRuns = Math.max(0, site.maxRunningJobs - runs);
}

/** What is reserved of the machine, as a machine; amounts null: all of it. */
function reservedMachine(machine: Machine, amounts: Held['machines'][number]['amounts']): Machine {
  if (amounts === null) return machine;
  const { cpus = 0, memoryMb = 0, ...resources } = amounts;
  return { ...machine, cpus, memoryMb, resources };
}

/** When the machines of a reservation cannot be used: before, between and behind its times, and in windows. */
function closedTimes(
  helds: readonly Held[],
  windows: readonly Held[],
  site: number,
  machineIds: readonly number[],
): Held[] {
  const whole = (ids: readonly number[]) => ids.map((machineId) => ({ machineId, amounts: null }));
  const gaps: { from: number; to: number }[] = [];
  let open = -Infinity;
  for (const { from, to } of [...helds].sort((a, b) => a.from - b.from)) {
    if (from > open) gaps.push({ from: open, to: from });
    open = Math.max(open, to);
  }
  if (open < Infinity) gaps.push({ from: open, to: Infinity });
  const times = [
    ...gaps.map((gap) => ({ ...gap, machines: whole(machineIds) })),
    ...windows.flatMap(({ from, to, machines, siteId }) => {
      const ids = new Set(machines.map(({ machineId }) => machineId));
      const there = machineIds.filter((id) => siteId === site || ids.has(id));
      return there.length === 0 ? [] : [{ from, to, machines: whole(there) }];
    }),
  ];
  return times.map((time, i) => ({
    ...{ id: -1 - i, by: 'WINDOW', ends: 'LIMIT', pools: [] },
    ...time,
  }));
}

/** What jobs of the signature avoid inside a reservation: where runs of theirs failed, as long as there is room in it without. */
function avoidedIn(resources: SiteResources, signature: Signature): Places | null {
  const { avoids } = signature;
  if (avoids === null) return null;
  const fits = (without: Places): boolean => hasRoom(avoids, resources.findWithout(signature, without));
  return [avoids.failed, avoids.last].find(fits) ?? null;
}

function countHandedOver({ handedOver }: SiteEntry, job: Job, sign: 1 | -1): void {
  const work = job.estimateS * job.benchmark;
  handedOver.jobs += sign;
  // Sums of what came and went would not come back to 0.
  handedOver.work = handedOver.jobs === 0 ? 0 : handedOver.work + sign * work;
  handedOver.cpuWork = handedOver.jobs === 0 ? 0 : handedOver.cpuWork + sign * work * cpusOf(job);
}

/** In the paths that every job takes: `check` would make its message each time. */
function fail(message: string): never {
  throw new Error(message);
}

function check(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(message);
}

/** It may take machines on one switch only for a time. */
const mayPrefer = ({ sameSwitch, parts }: Job): boolean => sameSwitch !== null || parts !== null;

function checkJob(job: Job): void {
  positive('job.estimateS', job.estimateS);
  positive('job.benchmark', job.benchmark);
  checkTasks(job);
  if (job.parts !== null) {
    job.parts.forEach(checkTasks);
    const { tasks, cpusPerTask } = envelopeOf(job.parts);
    wholeNumber('job.tasks', job.tasks, tasks, tasks + 1);
    wholeNumber('job.cpusPerTask', job.cpusPerTask, cpusPerTask, cpusPerTask + 1);
  }
  if (!Number.isFinite(job.submittedAt))
    throw new Error(`job.submittedAt is ${job.submittedAt}; accepted: a finite number`);
}

function checkTasks(job: JobPart): void {
  wholeNumber('job.tasks', job.tasks, 1, COUNT_END);
  wholeNumber('job.cpusPerTask', job.cpusPerTask, 1, COUNT_END);
  wholeNumber('job.memoryMbPerTask', job.memoryMbPerTask, 0);
  if (job.tasksPerMachine !== null) {
    const { min, max } = job.tasksPerMachine;
    wholeNumber('job.tasksPerMachine.min', min, 1, job.tasks + 1);
    if (max !== null) wholeNumber('job.tasksPerMachine.max', max, min, COUNT_END);
  }
  if (job.resourcesPerTask !== null)
    for (const [name, amount] of Object.entries(job.resourcesPerTask))
      wholeNumber(`job.resourcesPerTask.${name}`, amount, 0);
}

function positive(field: string, value: number): void {
  if (!(value > 0 && value < Infinity))
    throw new Error(`${field} is ${value}; accepted: a finite number above 0`);
}

function wholeNumber(field: string, value: number, least: number, end = WHOLE_END): void {
  if (!(Number.isInteger(value) && value >= least && value < end)) {
    throw new Error(`${field} is ${value}; accepted: a whole number from ${least} to ${end - 1}`);
  }
}
