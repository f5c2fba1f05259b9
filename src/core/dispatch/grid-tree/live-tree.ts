/**
 * The tree of a grid: the state machines of src/core/grid-tree, which hold what the grid says that who holds, and talk until all is quiet.
 * Sites that are UP are its leaves.
 *
 * An index of the grid, so that a pass costs what has changed since the last one: it is told of the jobs that come to the root's and the
 * meta-queues or leave them. A pass moves jobs in mind only; the next one puts them back to where the grid has them then. When a
 * site, a machine, a license or a scheduler has changed, all is made anew.
 *
 * Decision: what the machines remember beside who holds what (who asked first, when) is forgotten before each pass, and no tie is decided
 * by what depends on how it all came about (numbers of ports). So plans depend on what is there, not on what has been, and a process
 * that was killed, or another one, decides alike. Discovery is passed over: all classes that have a job are told at once, and each is
 * matched with each kind of machine of a leaf.
 *
 * Decisions on the paper: of leaves that want work in one pass, those with the larger share of their CPUs free ask first (`asks`), and shares
 * are rounded down first (`shares`); what both are worth, and what waiting for an RFJM would cost, docs/experiments/grid-tree-live.md tells. A leaf asks for a job
 * (claims it) when it can start, or when fewer wait in the local queue than the limit; from then on the job is the local scheduler's. A site
 * that schedules itself asks as long as fewer of ours wait there than the limit: where others' jobs take every CPU that comes free, there
 * is no other way in. What is free there counts for the order of asking as much as others who wait leave of it (`shareOfPower`).
 * Order of service is by boost, then by arrival. Jobs that no site can take are not in the tree: they are nobody's share.
 */
import { SchedulerTree } from '../../data/tree.js';
import type { Grid, GridListener, SiteEntry } from '../../grid/grid.js';
import type { JobQueue } from '../../grid/queue.js';
import type { Requirement } from '../../grid/requirements.js';
import {
  type Address,
  type Block,
  DEFAULT_ROOT_RULES,
  type Effects,
  type Entry,
  LEAF_PORT,
  Leaf,
  type Message,
  type MoveReason,
  type Preference,
  Pump,
  Root,
  Scheduler,
} from '../../grid-tree/index.js';
import type { Job, Position, TreeStep } from '../../model.js';
import { ReasonCode } from '../../reasons.js';
import { type Eligibility, EligibleSites } from '../../resources/eligibility.js';
import type { Timeline } from '../../resources/timeline.js';
import { ROOT } from '../../scheduler.js';
import { StartsNow } from '../../terms/starts-now.js';
import { shareOfPower } from '../../terms/waiting-there.js';
import type { DispatchLook } from '../policy.js';
import { siteAddress, TreeKinds } from './kinds.js';
import type { Rules } from './rules.js';

/** Who grants the claims of leaves: the service itself. */
const OWNER = 'owner';

/** So many jobs may change their places between two passes; beyond, the tree is made anew. */
const TOUCHED_MAX = 100_000;

/** Steps of a job in one pass that are told at most: the last ones. */
const STEPS_TOLD = 32;

/** Classes go when their last job does, and that the tree knows without the root. */
const ROOT_RULES = { ...DEFAULT_ROOT_RULES, classKeptS: Infinity };

const AT_ROOT: Place = { siteId: null, schedulerId: null };

const schedulerAddress = (id: number): Address => `scheduler ${id}`;

const REASONS: Record<MoveReason, ReasonCode> = {
  UNASSIGNED: ReasonCode.BRANCH_SHARE,
  BUTTERFLY: ReasonCode.BUTTERFLY,
  LOAD_BALANCE: ReasonCode.LOAD_BALANCE,
  FALLBACK: ReasonCode.FALLBACK,
  DISPLACED: ReasonCode.DISPLACED,
  AHEAD: ReasonCode.AHEAD,
  REMOVED: ReasonCode.SCHEDULER_REMOVED,
};

/** Who has a job: a site, a scheduler, or the root. */
export interface Place {
  siteId: number | null;
  schedulerId: number | null;
}

/** A job of the tree. */
export interface TreeJob {
  readonly job: Job;
  readonly requirement: Requirement;
  readonly entry: Entry;
  readonly eligibility: Eligibility;
  readonly from: Place;
  at: Place;
  /** It is the local scheduler's from now on. */
  claimed: boolean;
  /** How butterfly and load-balance have moved it in this pass. */
  balanced: number;
  steps: TreeStep[];
  /** The block that it came with last. */
  block: Block | null;
}

/** What a job finds at a site. */
export interface SiteTerms {
  /** How many of its preferences do not hold there. */
  unmet: number;
  /** From where it was submitted; 0: nobody knows. */
  distanceKm: number;
  /** Of the branch. */
  power: number;
  /** Jobs in the meta-queue. */
  waiting: number;
}

/** A leaf, and what is free there in the mind of the pass. */
interface Site {
  readonly entry: SiteEntry;
  readonly leaf: Leaf;
  readonly parent: Scheduler;
  readonly cpus: number;
  /** Of what is free there, what others who wait in its own scheduler leave to ours. */
  readonly share: number;
  free: Timeline;
  /** Jobs of the local queue that cannot start at once. */
  queued: number;
  /** The leaf's queue when it was looked through last in this pass. */
  looked: readonly Entry[] | null;
}

/** How many jobs have a class or a preference. */
interface Live<T> {
  readonly of: T;
  jobs: number;
}

export class LiveTree implements GridListener {
  readonly jobs = new Map<number, TreeJob>();
  private rules!: Rules;
  /** Jobs that no site can take, at the root or above sites. */
  readonly nowhere = new Map<number, Eligibility>();
  /** Those of `jobs` that are or were elsewhere in this pass. */
  readonly moved: TreeJob[] = [];
  /** How many of `jobs` are in meta-queues; the others are at the root or above sites. */
  inMeta = 0;
  /** By id; the root's is null. */
  readonly schedulers = new Map<number | null, Scheduler>();
  private root!: Root;
  private pump!: Pump;
  private readonly sites = new Map<number, Site>();
  private readonly places = new Map<Address, Place>();
  private readonly eligible: EligibleSites;
  private readonly kinds: TreeKinds;
  private readonly tree: SchedulerTree;
  private startsNow!: StartsNow;
  private readonly classes = new Map<string, Live<Entry['requirement']>>();
  private readonly preferences = new Map<string, Live<Preference>>();
  /** Keys of those that may have come or gone, and of those that the tree knows. */
  private readonly changed = new Set<string>();
  private readonly told = new Set<string>();
  /** Sites of which it is known where they are. */
  private readonly positions = new Map<number, Position>();
  /** Kinds that machines were asked about. */
  private licenses: readonly string[] = [];
  /** What it was made of; null: it is not there, or a pass did not come to its end. */
  private madeOf: string | null = null;
  /** Jobs that may be elsewhere than at the end of the last pass. */
  private readonly touched = new Set<number>();

  constructor(private readonly grid: Grid) {
    this.eligible = grid.index(EligibleSites);
    this.kinds = grid.index(TreeKinds);
    this.tree = grid.index(SchedulerTree);
  }

  placed(job: Job, _: Requirement, { level }: JobQueue): void {
    if (level !== 'LOCAL') this.touch(job);
  }

  left(job: Job, _: Requirement, { level }: JobQueue): void {
    if (level !== 'LOCAL') this.touch(job);
  }

  /** Begins a pass: everything is as the grid has it. `also`: a job as if it came to the root now. */
  begin({ now }: DispatchLook, rules: Rules, also: Job | null = null): void {
    const { grid } = this;
    const of = JSON.stringify([grid.topology, this.tree.version, rules]);
    const isMade = this.madeOf === of;
    this.madeOf = null;
    this.rules = rules;
    this.startsNow = new StartsNow(grid, now);
    if (!(isMade && this.follow(also))) this.make(also);
    for (const site of this.sites.values()) this.look(site);
    this.madeOf = of;
  }

  /** Until all is quiet: what has to go elsewhere goes, who wants work asks, gets some, and claims what can start. */
  run(): void {
    const { madeOf } = this;
    this.madeOf = null;
    for (const scheduler of this.schedulers.values()) scheduler.giveAhead();
    for (const address of this.places.keys()) this.pump.touch(address);
    this.pump.run();
    for (let delivered = -1; delivered !== this.pump.delivered; ) {
      delivered = this.pump.delivered;
      const asking = [...this.sites.values()].map((site) => {
        this.claim(site);
        return { site, free: freeShare(site) * site.share };
      });
      const isFreestFirst = this.rules.asks === 'FREEST_FIRST';
      asking.sort(
        (a, b) => (isFreestFirst ? b.free - a.free : 0) || a.site.entry.site.id - b.site.entry.site.id,
      );
      for (const { site, free } of asking) {
        const { resources } = site.entry;
        const isWayIn = resources.ownScheduler && site.queued < this.rules.queueLimit;
        site.leaf.wants = isWayIn || (free > 0 && !site.free.full);
        this.pump.touch(site.leaf.id);
      }
      this.pump.run();
    }
    this.madeOf = madeOf;
  }

  /** What a job finds at a site; null: the machines there cannot run it. */
  termsAt(siteId: number, { entry }: TreeJob): SiteTerms | null {
    const site = this.sites.get(siteId);
    const branch = site?.parent.channels.find(site.leaf.id, LEAF_PORT);
    if (site === undefined || !branch?.fits(entry.requirement.key)) return null;
    const { conditions, distanceKm } = branch.gain(entry);
    return {
      unmet: entry.preferences.length - conditions,
      distanceKm: distanceKm === Infinity ? 0 : distanceKm,
      power: branch.power,
      waiting: site.entry.meta.length,
    };
  }

  /** Jobs of one group are the same for all that is decided but order. */
  groupOf({ entry }: TreeJob): string {
    return entry.group;
  }

  /** Of what its machines must have. */
  classOf({ entry }: TreeJob): string {
    return entry.requirement.key;
  }

  /** Who is behind an address. */
  placeAt(address: Address): Place {
    return this.places.get(address) as Place;
  }

  // Keeping it.

  private touch({ id }: Job): void {
    if (this.madeOf === null) return;
    this.touched.add(id);
    if (this.touched.size > TOUCHED_MAX) this.forget();
  }

  private forget(): void {
    this.madeOf = null;
    this.moved.length = 0;
    this.inMeta = 0;
    for (const each of [this.jobs, this.nowhere, this.schedulers, this.sites, this.places]) each.clear();
    for (const each of [this.classes, this.preferences, this.positions]) each.clear();
    for (const each of [this.changed, this.told, this.touched]) each.clear();
  }

  /** All of it anew. */
  private make(also: Job | null): void {
    const { grid } = this;
    this.forget();
    for (const { site } of grid.sites) if (site.position) this.positions.set(site.id, site.position);
    for (const queue of [
      grid.root,
      ...grid.sites.filter(({ site }) => site.state === 'UP').map(({ meta }) => meta),
    ]) {
      for (const slot of queue.slots())
        this.take(queue.jobs[slot] as Job, queue.requirements[slot] as Requirement, queue.siteId);
    }
    if (also !== null) this.takeAlso(also);

    this.pump = new Pump();
    this.root = new Root(ROOT, this.effectsOf(ROOT), this.rules, ROOT_RULES);
    this.schedulers.set(null, this.root);
    this.places.set(ROOT, AT_ROOT);
    this.pump.add(ROOT, this.root);
    this.pump.add(OWNER, { receive: (from, message) => this.grant(from, message) });
    for (const { id } of this.tree.all) this.addScheduler(id);
    this.licenses = this.licensesAsked();
    this.learn();
    for (const entry of grid.sites) if (entry.site.state === 'UP') this.addLeaf(entry);
    this.pump.run();
    for (const one of this.jobs.values()) this.restore(one);
  }

  /** Takes in what has changed; false: it cannot, and has to be made anew. */
  private follow(also: Job | null): boolean {
    const { grid, touched, moved } = this;
    for (const node of [...this.schedulers.values(), ...[...this.sites.values()].map(({ leaf }) => leaf)])
      node.beginAnew();
    // A dry run may be of a job that the one before was of: it is restored once.
    const ids = new Set(touched);
    touched.clear();
    const back = moved.filter(({ job }) => !ids.has(job.id));
    moved.length = 0;
    for (const id of ids) this.drop(id);
    for (const one of back) {
      this.takeOut(one.job.id);
      this.beginAnew(one);
    }
    for (const id of ids) {
      const at = grid.placeOf(id);
      const job = grid.job(id) as Job;
      if (at?.at === 'ROOT') this.take(job, grid.requirementOf(job), null);
      else if (at?.at === 'META' && grid.siteEntry(at.siteId).site.state === 'UP')
        this.take(job, grid.requirementOf(job), at.siteId);
    }
    if (also !== null && this.takeAlso(also)) ids.add(also.id);
    const { licenses } = this;
    if (this.licensesAsked().some((kind) => !licenses.includes(kind))) return false;
    this.learn();
    this.pump.run();
    const leafOf = (key: number) => this.leafOf((this.jobs.get(key) as TreeJob).from);
    for (const scheduler of this.schedulers.values()) scheduler.resettle(leafOf);
    for (const id of ids) {
      const one = this.jobs.get(id);
      if (one !== undefined) this.restore(one);
    }
    for (const one of back) this.restore(one);
    return true;
  }

  private takeAlso(job: Job): boolean {
    if (this.jobs.has(job.id)) return false;
    this.take(job, this.grid.requirementOf(job), null);
    // The grid does not have it.
    this.touched.add(job.id);
    return true;
  }

  private take(job: Job, requirement: Requirement, siteId: number | null): void {
    const eligibility = this.eligible.of(requirement, job);
    if (siteId === null && eligibility.waiting !== null) {
      this.nowhere.set(job.id, eligibility);
      return;
    }
    const known = siteId === null ? this.tree.find(job.schedulerId) : null;
    const from: Place = { siteId, schedulerId: known?.id ?? null };
    const entry = this.entryOf(job, requirement);
    const untouched = { steps: [], claimed: false, balanced: 0, block: null };
    const one: TreeJob = { job, requirement, entry, eligibility, from, at: from, ...untouched };
    this.jobs.set(job.id, one);
    if (siteId !== null) this.inMeta++;
    this.beginAnew(one);
    this.count(this.classes, entry.requirement, 1);
    for (const preference of entry.preferences) this.count(this.preferences, preference, 1);
  }

  /** It is where the grid has it. */
  private beginAnew(one: TreeJob): void {
    const { job, from } = one;
    one.at = from;
    one.claimed = false;
    one.balanced = 0;
    one.block = null;
    one.steps = [];
    if (from.siteId === null && from.schedulerId !== job.schedulerId)
      this.step(one, { reason: ReasonCode.SCHEDULER_REMOVED });
  }

  /** For the record. */
  private step(one: TreeJob, step: TreeStep): void {
    if (one.steps.length === 0) this.moved.push(one);
    one.steps.push(step);
  }

  /** It is not in the tree any more. */
  private drop(id: number): void {
    this.nowhere.delete(id);
    const one = this.jobs.get(id);
    if (one === undefined) return;
    this.jobs.delete(id);
    if (one.from.siteId !== null) this.inMeta--;
    this.count(this.classes, one.entry.requirement, -1);
    for (const preference of one.entry.preferences) this.count(this.preferences, preference, -1);
    this.takeOut(id);
  }

  /** No scheduler has it any more. */
  private takeOut(id: number): void {
    for (let scheduler: Scheduler | undefined = this.root; scheduler !== undefined; ) {
      const below = scheduler.unrestore(id);
      if (below === null) return;
      const { siteId, schedulerId } = this.placeAt(below);
      if (siteId !== null) this.sites.get(siteId)?.leaf.unrestore(id);
      scheduler = siteId === null ? this.schedulers.get(schedulerId) : undefined;
    }
  }

  private count<T extends { key: string }>(live: Map<string, Live<T>>, of: T, by: number): void {
    const { key } = of;
    const known = live.get(key) ?? { of, jobs: 0 };
    if (known.jobs === 0) live.set(key, known);
    known.jobs += by;
    if (known.jobs === 0) live.delete(key);
    if (known.jobs === 0 || (by > 0 && known.jobs === 1)) this.changed.add(key);
  }

  private entryOf(job: Job, requirement: Requirement): Entry {
    const longerThanS = this.kinds.boundBelow(job.runTimeLimitS);
    const ofClass = this.kinds.classOf(requirement, longerThanS);
    const preferences = this.kinds.preferencesOf(job.preferences);
    const originId = job.data?.originSiteId ?? null;
    const origin = originId === null ? null : (this.positions.get(originId) ?? null);
    const { arrival } = this.grid;
    // In one literal: V8 has no form in common for objects made of several, and each comparison would look its fields up.
    return {
      id: String(job.id),
      key: job.id,
      owner: OWNER,
      requirement: ofClass,
      preferences,
      origin,
      group: groupOf(requirement, longerThanS, preferences, origin === null ? null : originId),
      // Never -0, which makes every comparison one of fractions.
      rank: 0 - job.boost,
      sequence: arrival.since(job),
      turn: arrival.turn(job),
      moves: job.treeMoves,
    };
  }

  private addScheduler(id: number): Scheduler {
    const known = this.schedulers.get(id);
    if (known !== undefined) return known;
    const address = schedulerAddress(id);
    const made = new Scheduler(address, this.effectsOf(address), this.rules);
    this.schedulers.set(id, made);
    this.places.set(address, { siteId: null, schedulerId: id });
    this.pump.add(address, made);
    const above = this.tree.pathTo(id).at(-2)?.id ?? null;
    const parent = above === null ? this.root : this.addScheduler(above);
    made.setParent(parent.id);
    parent.attach(address);
    return made;
  }

  /** Tells the tree of classes and preferences that have come or gone. */
  private learn(): void {
    const classes: Entry['requirement'][] = [];
    const preferences: Preference[] = [];
    const gone: string[] = [];
    for (const key of this.changed) {
      const asked = this.classes.get(key);
      const liked = this.preferences.get(key);
      if ((asked ?? liked) === undefined) {
        if (this.told.delete(key)) gone.push(key);
      } else if (!this.told.has(key)) {
        this.told.add(key);
        if (asked !== undefined) classes.push(asked.of);
        if (liked !== undefined) preferences.push(liked.of);
      }
    }
    this.changed.clear();
    if (classes.length + preferences.length + gone.length > 0) this.root.learn(classes, preferences, gone);
  }

  /** Kinds of licenses that a class or a preference asks for, sorted. */
  private licensesAsked(): string[] {
    const asked = new Set<string>();
    for (const { of } of this.classes.values()) for (const kind of of.licenses) asked.add(kind);
    for (const { of } of this.preferences.values())
      for (const kind of of.requirement?.licenses ?? []) asked.add(kind);
    return [...asked].sort();
  }

  private addLeaf(entry: SiteEntry): void {
    const { site, resources } = entry;
    const address = siteAddress(site.id);
    const leaf = new Leaf(address, this.effectsOf(address), site.position ?? null);
    for (const { kind, count } of this.kinds.machinesOf(entry, this.licenses, this.rules.power))
      leaf.setMachines(kind, count);
    const parent = this.schedulers.get(this.tree.find(site.schedulerId ?? null)?.id ?? null) as Scheduler;
    leaf.setParent(parent.id);
    this.places.set(address, { siteId: site.id, schedulerId: null });
    this.pump.add(address, leaf);
    parent.attach(address);
    const free = this.startsNow.freeAt(entry);
    const cpus = resources.machines.reduce((sum, { machine }) => sum + machine.cpus, 0);
    const share = shareOfPower(entry);
    this.sites.set(site.id, { entry, leaf, parent, cpus, share, free, queued: 0, looked: null });
  }

  /** What is free at a site behind its local queue. */
  private look(site: Site): void {
    const { queue } = site.entry;
    site.free = this.startsNow.freeAt(site.entry);
    site.queued = site.entry.handedOver.jobs;
    site.looked = null;
    for (const slot of queue.inOrder('ARRIVAL').window())
      if (!this.starts(site, queue.jobs[slot] as Job, queue.requirements[slot] as Requirement)) site.queued++;
  }

  private leafOf({ siteId }: Place): Address | null {
    return siteId === null ? null : (this.sites.get(siteId) as Site).leaf.id;
  }

  private restore({ entry, from }: TreeJob): void {
    const site = from.siteId === null ? null : (this.sites.get(from.siteId) as Site);
    site?.leaf.restore(entry);
    const leaf = this.leafOf(from);
    let below = leaf;
    let scheduler = site?.parent ?? (this.schedulers.get(from.schedulerId) as Scheduler);
    for (;;) {
      scheduler.restore(entry, below, leaf);
      if (scheduler.parent === null) return;
      below = scheduler.id;
      scheduler = this.schedulers.get(this.placeAt(scheduler.parent).schedulerId) as Scheduler;
    }
  }

  // Letting it go.

  private effectsOf(address: Address): Effects {
    return {
      send: (to, message) => this.pump.send(address, to, message),
      moved: (entry, _, to, reason, block) => {
        const one = this.jobs.get(entry.key) as TreeJob;
        const place = this.placeAt(to);
        one.at = place;
        one.block = block ?? null;
        // Of taking back and giving, the second counts.
        if (block !== undefined && (reason === 'BUTTERFLY' || reason === 'LOAD_BALANCE')) one.balanced++;
        this.step(one, stepTo(place, REASONS[reason]));
        if (one.steps.length > STEPS_TOLD) one.steps.shift();
      },
      started: ({ id }) => {
        const one = this.jobs.get(Number(id)) as TreeJob;
        one.claimed = true;
        this.step(one, stepTo(one.at, ReasonCode.CLAIMED));
      },
    };
  }

  private grant(leaf: Address, message: Message): void {
    if (message.kind === 'CLAIM') this.pump.send(OWNER, leaf, { kind: 'GRANTED', id: message.id });
  }

  /** What can start goes to the local queue, and as many others as may wait there. */
  private claim(site: Site): void {
    const { queueLimit } = this.rules;
    const { queue } = site.leaf;
    // Nothing has come since, and nothing has come free.
    if (site.looked === queue) return;
    site.looked = queue;
    for (const { key } of queue) {
      if (site.free.full && site.queued >= queueLimit) return;
      const { job, requirement } = this.jobs.get(key) as TreeJob;
      if (!this.starts(site, job, requirement)) {
        if (site.queued >= queueLimit) continue;
        site.queued++;
      }
      site.leaf.claim(key);
    }
  }

  /** Whether the job can start at once; then it does, in mind. */
  private starts(site: Site, job: Job, requirement: Requirement): boolean {
    const { free } = site;
    if (free.full || free.hasRefused(requirement)) return false;
    const start = this.startsNow.of(free, job, requirement);
    if (start !== null) free.start(start);
    else if (free.dependsOnClass(requirement)) free.refuse(requirement);
    return start !== null;
  }
}

/** Share of its CPUs that are free. */
function freeShare({ free, cpus }: Site): number {
  let unused = 0;
  for (const machine of free.site.machines) unused += Math.max(0, free.cpusOn(machine));
  return unused / Math.max(1, cpus);
}

function stepTo({ siteId, schedulerId }: Place, reason: ReasonCode): TreeStep {
  if (siteId !== null) return { siteId, reason };
  return schedulerId === null ? { reason } : { schedulerId, reason };
}

/** Jobs of one group are the same for all that is decided but order. */
function groupOf(
  { index }: Requirement,
  longerThanS: number | null,
  preferences: readonly Preference[],
  originId: number | null,
): string {
  if (preferences.length === 0 && longerThanS === null)
    return originId === null ? `${index}` : `${index}@${originId}`;
  return JSON.stringify([index, longerThanS, originId, preferences.map(({ key }) => key).sort()]);
}
