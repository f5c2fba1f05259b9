/**
 * The tree of a grid: the state machines of src/core/grid-tree, made as the grid says who holds what, and let talk until all is quiet. Sites
 * that are UP are its leaves.
 *
 * Made anew for each pass. Decision: what the machines keep beside who holds what (who asked first, the numbers of ports) depends on how
 * it came about, and plans depend on what is there, not on what has been; so a process that was killed, or another one, decides alike.
 * Discovery is passed over: all classes that have a job are told at once, and each is matched with each kind of machine of a leaf.
 *
 * Decisions on the paper: of leaves that want work, those with the larger share of their CPUs free ask first. A leaf asks for a job
 * (claims it) when it can start, or when fewer wait in the local queue than the limit; from then on the job is the local scheduler's.
 * Order of service is by boost, then by arrival. Jobs that no site can take are not in the tree: they are nobody's share.
 */
import { SchedulerTree } from '../../data/tree.js';
import type { SiteEntry } from '../../grid/grid.js';
import type { JobQueue } from '../../grid/queue.js';
import type { Requirement } from '../../grid/requirements.js';
import {
  type Address,
  type Block,
  DEFAULT_ROOT_RULES,
  type Effects,
  type Entry,
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
import type { FreeResources } from '../../resources/free.js';
import { ROOT } from '../../scheduler.js';
import { StartsNow } from '../../terms/starts-now.js';
import type { DispatchLook } from '../policy.js';
import { siteAddress, TreeKinds } from './kinds.js';
import type { Rules } from './rules.js';

/** Who grants the claims of leaves: the service itself. */
const OWNER = 'owner';

/** Steps of a job in one pass that are told at most: the last ones. */
const STEPS_TOLD = 32;

/** Nothing is forgotten in a pass. */
const ROOT_RULES = { ...DEFAULT_ROOT_RULES, classKeptS: Infinity };

const AT_ROOT: Place = { siteId: null, schedulerId: null };

const schedulerAddress = (id: number): Address => `scheduler ${id}`;

const REASONS: Record<MoveReason, ReasonCode> = {
  UNASSIGNED: ReasonCode.BRANCH_SHARE,
  BUTTERFLY: ReasonCode.BUTTERFLY,
  LOAD_BALANCE: ReasonCode.LOAD_BALANCE,
  FALLBACK: ReasonCode.FALLBACK,
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

/** A leaf, and what is free there in mind. */
interface Site {
  readonly entry: SiteEntry;
  readonly leaf: Leaf;
  readonly parent: Scheduler;
  readonly free: FreeResources;
  readonly cpus: number;
  /** Jobs of the local queue that cannot start at once. */
  queued: number;
  /** Classes that do not fit any more. */
  readonly refused: Set<Requirement>;
}

export class LiveTree {
  /** In order of service at each place. */
  readonly jobs = new Map<number, TreeJob>();
  /** Jobs that no site can take, at the root or above sites. */
  readonly nowhere: { job: Job; eligibility: Eligibility }[] = [];
  /** By id; the root's is null. */
  readonly schedulers = new Map<number | null, Scheduler>();
  private readonly root: Root;
  private readonly pump = new Pump();
  private readonly sites = new Map<number, Site>();
  private readonly places = new Map<Address, Place>([[ROOT, AT_ROOT]]);
  private readonly eligible: EligibleSites;
  private readonly kinds: TreeKinds;
  private readonly startsNow: StartsNow;
  private readonly tree: SchedulerTree;
  private readonly entries = new Map<number, Entry>();
  /** Sites of which it is known where they are. */
  private readonly positions = new Map<number, Position>();

  /** `also`: a job as if it came to the root now. */
  constructor(
    { grid, now }: DispatchLook,
    private readonly rules: Rules,
    also: Job | null = null,
  ) {
    this.eligible = grid.index(EligibleSites);
    this.kinds = grid.index(TreeKinds);
    this.tree = grid.index(SchedulerTree);
    this.startsNow = new StartsNow(grid, now);
    for (const { site } of grid.sites) if (site.position) this.positions.set(site.id, site.position);
    this.takeIn(grid.root);
    for (const { site, meta } of grid.sites) if (site.state === 'UP') this.takeIn(meta);
    if (also !== null && !this.jobs.has(also.id)) this.take(also, grid.requirementOf(also), null);

    this.root = new Root(ROOT, this.effectsOf(ROOT), rules, ROOT_RULES);
    this.schedulers.set(null, this.root);
    this.pump.add(ROOT, this.root);
    this.pump.add(OWNER, { receive: (from, message) => this.grant(from, message) });
    for (const { id } of this.tree.all) this.addScheduler(id);
    const licenses = this.discover();
    for (const entry of grid.sites) if (entry.site.state === 'UP') this.addLeaf(entry, licenses);
    this.pump.run();
    for (const one of this.jobs.values()) this.restore(one);
  }

  /** Until all is quiet: what has to go elsewhere goes, who wants work asks, gets some, and claims what can start. */
  run(): void {
    for (const scheduler of this.schedulers.values()) scheduler.giveAhead();
    for (const address of this.places.keys()) this.pump.touch(address);
    this.pump.run();
    for (let delivered = -1; delivered !== this.pump.delivered; ) {
      delivered = this.pump.delivered;
      const asking = [...this.sites.values()].map((site) => {
        this.claim(site);
        return { site, free: freeShare(site) };
      });
      asking.sort((a, b) => b.free - a.free || a.site.entry.site.id - b.site.entry.site.id);
      for (const { site, free } of asking) {
        site.leaf.wants = free > 0 && !site.free.full;
        this.pump.touch(site.leaf.id);
      }
      this.pump.run();
    }
  }

  /**
   * What a job finds at a site: how many of its preferences do not hold there, how far it is from where the job was submitted (0: nobody
   * knows), and the power of the branch; null: the machines there cannot run it.
   */
  gainAt(
    siteId: number,
    { job, requirement }: TreeJob,
  ): Record<'unmet' | 'distanceKm' | 'power', number> | null {
    const site = this.sites.get(siteId);
    const { key } = this.kinds.classOf(requirement);
    const branch = site?.parent.channels.of(site.leaf.id).find((each) => each.fits(key));
    if (branch === undefined) return null;
    const entry = this.entries.get(job.id) as Entry;
    const { conditions, distanceKm } = branch.gain(entry);
    const unmet = entry.preferences.length - conditions;
    return { unmet, distanceKm: distanceKm === Infinity ? 0 : distanceKm, power: branch.power };
  }

  /** Jobs of one group are the same for all that is decided but order. */
  groupOf({ job }: TreeJob): string {
    return (this.entries.get(job.id) as Entry).group;
  }

  /** Of what its machines must have. */
  classOf({ requirement }: TreeJob): string {
    return this.kinds.classOf(requirement).key;
  }

  /** Who is behind an address. */
  placeAt(address: Address): Place {
    return this.places.get(address) as Place;
  }

  // Making it.

  private takeIn(queue: JobQueue): void {
    for (const slot of queue.inOrder('ARRIVAL').window())
      this.take(queue.jobs[slot] as Job, queue.requirements[slot] as Requirement, queue.siteId);
  }

  private take(job: Job, requirement: Requirement, siteId: number | null): void {
    const eligibility = this.eligible.of(requirement);
    if (siteId === null && eligibility.waiting !== null) {
      this.nowhere.push({ job, eligibility });
      return;
    }
    const known = siteId === null ? this.tree.find(job.schedulerId) : null;
    const from: Place = { siteId, schedulerId: known?.id ?? null };
    const steps: TreeStep[] = [];
    if (siteId === null && from.schedulerId !== job.schedulerId)
      steps.push({ reason: ReasonCode.SCHEDULER_REMOVED });
    const untouched = { claimed: false, balanced: 0, block: null };
    this.jobs.set(job.id, { job, requirement, eligibility, from, at: from, steps, ...untouched });
    this.entries.set(job.id, this.entryOf(job, requirement));
  }

  private entryOf(job: Job, requirement: Requirement): Entry {
    const ofClass = this.kinds.classOf(requirement);
    const preferences = this.kinds.preferencesOf(job.preferences);
    const originId = job.data?.originSiteId ?? null;
    const origin = originId === null ? null : (this.positions.get(originId) ?? null);
    return {
      ...{ id: String(job.id), key: job.id, owner: OWNER, requirement: ofClass, preferences, origin },
      group: groupOf(requirement, preferences, origin === null ? null : originId),
      ...{ rank: -job.boost, sequence: job.submittedAt, moves: job.treeMoves },
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

  /** All classes and preferences that a job has. Answers with the kinds of licenses that they ask for. */
  private discover(): string[] {
    const classes = new Map<string, Entry['requirement']>();
    const preferences = new Map<string, Preference>();
    for (const entry of this.entries.values()) {
      classes.set(entry.requirement.key, entry.requirement);
      for (const one of entry.preferences) preferences.set(one.key, one);
    }
    this.root.learn([...classes.values()], [...preferences.values()]);
    const licenses = [
      ...classes.values(),
      ...[...preferences.values()].map(({ requirement }) => requirement),
    ];
    return [...new Set(licenses.flatMap((one) => one?.licenses ?? []))].sort();
  }

  private addLeaf(entry: SiteEntry, licenses: readonly string[]): void {
    const { site, queue, resources } = entry;
    const address = siteAddress(site.id);
    const leaf = new Leaf(address, this.effectsOf(address), site.position ?? null);
    for (const { kind, count } of this.kinds.machinesOf(entry, licenses, this.rules.power))
      leaf.setMachines(kind, count);
    const parent = this.schedulers.get(this.tree.find(site.schedulerId ?? null)?.id ?? null) as Scheduler;
    leaf.setParent(parent.id);
    this.places.set(address, { siteId: site.id, schedulerId: null });
    this.pump.add(address, leaf);
    parent.attach(address);
    const free = this.startsNow.freeAt(entry);
    const cpus = resources.machines.reduce((sum, { machine }) => sum + machine.cpus, 0);
    const made: Site = { entry, leaf, parent, free, cpus, queued: 0, refused: new Set() };
    this.sites.set(site.id, made);
    for (const slot of queue.inOrder('ARRIVAL').window())
      if (!this.starts(made, queue.jobs[slot] as Job, queue.requirements[slot] as Requirement)) made.queued++;
  }

  private restore({ job, from }: TreeJob): void {
    const entry = this.entries.get(job.id) as Entry;
    const site = from.siteId === null ? null : (this.sites.get(from.siteId) as Site);
    site?.leaf.restore(entry);
    let below: Address | null = site?.leaf.id ?? null;
    let scheduler = site?.parent ?? (this.schedulers.get(from.schedulerId) as Scheduler);
    for (;;) {
      scheduler.restore(entry, below);
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
        one.steps.push(stepTo(place, REASONS[reason]));
        if (one.steps.length > STEPS_TOLD) one.steps.shift();
      },
      started: ({ id }) => {
        const one = this.jobs.get(Number(id)) as TreeJob;
        one.claimed = true;
        one.steps.push(stepTo(one.at, ReasonCode.CLAIMED));
      },
    };
  }

  private grant(leaf: Address, message: Message): void {
    if (message.kind === 'CLAIM') this.pump.send(OWNER, leaf, { kind: 'GRANTED', id: message.id });
  }

  /** What can start goes to the local queue, and as many others as may wait there. */
  private claim(site: Site): void {
    const { queueLimit } = this.rules;
    for (const { key } of [...site.leaf.queue]) {
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
    const { entry, free, refused } = site;
    if (free.full || refused.has(requirement)) return false;
    const start = this.startsNow.of(entry, free, job, requirement);
    if (start !== null) free.take(start);
    // Whether a license can be kept until the end depends on the job, too.
    else if (requirement.signature.licenses.length === 0) refused.add(requirement);
    return start !== null;
  }
}

/** Share of its CPUs that are free. */
function freeShare({ free, cpus }: Site): number {
  let unused = 0;
  for (const each of free.cpus) unused += Math.max(0, each);
  return unused / Math.max(1, cpus);
}

function stepTo({ siteId, schedulerId }: Place, reason: ReasonCode): TreeStep {
  if (siteId !== null) return { siteId, reason };
  return schedulerId === null ? { reason } : { schedulerId, reason };
}

/** Jobs of one group are the same for all that is decided but order. */
function groupOf(
  { index }: Requirement,
  preferences: readonly Preference[],
  originId: number | null,
): string {
  if (preferences.length === 0) return originId === null ? `${index}` : `${index}@${originId}`;
  return JSON.stringify([index, originId, preferences.map(({ key }) => key).sort()]);
}
