/**
 * Policies that promise: several queued jobs have a place in the availability profile, and a job starts when its place has
 * come.
 *
 * Conservative backfilling: a job gets the earliest hole when it comes. Promises are kept from cycle to cycle
 * (`Grid.keepPromises`, and outside of the process as `PromisesImage`). When room has come free that they did not count on
 * (a run has ended, a promised job has left), each waiting job in turn is taken out and put into its earliest hole, which
 * is never later. Where a run is late, the promises behind it move back by as much as they must and keep their order: in a
 * live service everything is late by milliseconds, and nobody is to lose his place for it. A promise is made anew only
 * where its place is gone: its job or one of its machines is not what it was. A cycle that finds nothing new leaves
 * everything as it was, so it does not matter how often one runs.
 *
 * Hybrid: promises are made afresh in each cycle, to the first N jobs that do not fit; with N = 1 this is EASY.
 */
import type { Grid, SiteEntry } from '../grid.js';
import type { Allocation, Job, Reservation } from '../model.js';
import type { LocalPolicy } from '../policy.js';
import { ReasonCode } from '../reasons.js';
import { whyNeverFits } from '../resources/eligibility.js';
import { allocationsOf, type Placement } from '../resources/placement.js';
import { type Holding, holdingOf, type Opening, Profile } from '../resources/profile.js';
import type { Requirement } from '../resources/requirements.js';
import {
  freeCopies,
  type LicenseState,
  type MachineState,
  type RunState,
} from '../resources/site-resources.js';
import { isOlder } from './claims.js';
import type { SitePass } from './pass.js';
import type { Walk } from './walk.js';

/** A place in the profile. */
interface Promised extends Opening {
  holding: Holding;
  /** Of the job when it was made: another estimate needs another place. */
  work: number;
  requirement: Requirement;
  madeAt: number;
}

/** What a site's scheduler has promised; made by a cycle, kept by the driver, read by the next cycle. */
export interface Promises {
  /** Of the grid: machines and pools may be other ones after a change. */
  topology: number;
  /** In the order of the queue. */
  byJob: ReadonlyMap<number, Promised>;
  room: Room;
  /** Some could not be restored: their jobs or machines have gone. */
  incomplete: boolean;
}

/** What was free behind the starts of the cycle that promised. When there is more, promises may move up. */
export interface Room {
  /** Live runs of the site. Only its own cycles make more of them. */
  runs: number;
  /** Free CPUs and memory of available machines. */
  cpus: number;
  memoryMb: number;
  /** Copies of each pool (by id) that a promised job could use, free and claimed by no other site. */
  copies: [licenseId: number, free: number][];
}

/** Promises as plain data, for a store. */
export interface PromisesImage {
  room: Room;
  /** In the order of the queue. */
  jobs: PromiseImage[];
}

export interface PromiseImage {
  jobId: number;
  /** Seconds, as all times. */
  at: number;
  allocations: Allocation[];
  licenseIds: number[];
  /** estimate·benchmark of the job. */
  work: number;
  madeAt: number;
}

/** Whether a site with this policy promises starts, which its driver has to keep from cycle to cycle. */
export const keepsPromises = (local: LocalPolicy): boolean => local.kind === 'conservative';

/**
 * Conservative backfilling of the first `depth` jobs of the queue, and of those that were promised a start when they were
 * among them; the others wait until they are.
 */
export function conservative(pass: SitePass, walk: Walk, depth: number): void {
  const { entry, grid, now } = pass;
  const before = entry.promises && asOfNow(grid, entry, entry.promises);
  const { slots, left } = lookedAt(pass, walk, depth, before);
  const cameFree =
    before !== null && (left || before.incomplete || moreRoom(before.room, roomOf(pass, before.byJob)));
  const compress = pass.compress ?? cameFree;
  if (before !== null && !compress && nothingNew(pass, before, slots)) {
    leave(pass, before, slots);
    return;
  }
  const places = new Places(pass);
  const { profile } = places;
  const ids = slots.map((slot) => entry.queue.ids[slot] as number);
  const promised = ids.map((id) => before?.byJob.get(id) ?? null);
  for (let i = 0; i < slots.length; i++) {
    if (!stillMeant(promised[i], entry, slots[i] as number)) promised[i] = null;
  }
  takeInOrder(ids, promised, places, now);
  if (compress) {
    for (let i = 0; i < slots.length; i++) {
      const old = promised[i];
      if (!old || old.at <= now) continue;
      profile.give(old.holding, old.at, old.end);
      const better = promise(slots[i] as number, pass, places, old.at, old.madeAt) ?? old;
      profile.take(better.holding, better.at, better.end);
      promised[i] = better;
    }
  }
  for (let i = 0; i < slots.length; i++) {
    if (promised[i]) continue;
    const made = promise(slots[i] as number, pass, places, Infinity, now);
    if (made !== null) profile.take(made.holding, made.at, made.end);
    promised[i] = made;
  }
  keep(pass, slots, promised);
}

/**
 * When a job of the site's queue, or one that would join it now, starts by the promises that the site has made; null: its
 * policy has made none, or the available machines cannot run the job.
 */
export function promisedStart(view: View, job: Job): Opening | null {
  const { grid, entry, now } = view;
  if (entry.promises === null) return null;
  const { byJob } = asOfNow(grid, entry, entry.promises);
  const requirement = grid.requirementOf(job);
  const places = new Places(view, requirement);
  const ids = [...byJob.keys()];
  const promised: (Promised | null)[] = [...byJob.values()];
  takeInOrder(ids, promised, places, now);
  const own = promised[ids.indexOf(job.id)];
  const able = entry.resources.able(requirement.signature);
  return own ?? places.profile.earliest(requirement, able, job.estimateS * job.benchmark);
}

type View = Pick<SitePass, 'grid' | 'entry' | 'claims' | 'now'>;

/** The promises as plain data. */
export const imageOf = ({ byJob, room }: Promises): PromisesImage => ({
  room,
  jobs: [...byJob].map(([jobId, { at, placement, pools, work, madeAt }]) => ({
    jobId,
    at,
    allocations: allocationsOf(placement),
    licenseIds: pools.map((pool) => pool.license.id),
    work,
    madeAt,
  })),
});

/** The promises of a site, of the grid as it is now. Left out is what is no more: the job in the queue, its machines. */
export function promisesFrom(grid: Grid, siteId: number, { room, jobs }: PromisesImage): Promises {
  const entry = grid.siteEntry(siteId);
  const machines = new Map(entry.resources.machines.map((state) => [state.machine.id, state]));
  const byJob = new Map<number, Promised>();
  for (const image of jobs) {
    const promised = promisedFrom(grid, entry, machines, image);
    if (promised !== null) byJob.set(image.jobId, promised);
  }
  return { topology: grid.topology, byJob, room, incomplete: byJob.size < jobs.length };
}

function promisedFrom(
  grid: Grid,
  entry: SiteEntry,
  machineById: ReadonlyMap<number, MachineState>,
  { jobId, at, allocations, licenseIds, work, madeAt }: PromiseImage,
): Promised | null {
  const job = grid.job(jobId);
  const place = grid.placeOf(jobId);
  if (job === null || place?.at !== 'QUEUE' || place.siteId !== entry.site.id) return null;
  const requirement = grid.requirementOf(job);
  const able = entry.resources.able(requirement.signature);
  const placement: Placement = { machines: [], tasks: [], benchmark: Infinity, allocations: null };
  for (const { machineId, tasks } of allocations) {
    const state = machineById.get(machineId);
    if (state === undefined || !able.machines.includes(state)) return null;
    placement.machines.push(state);
    placement.tasks.push(tasks);
    placement.benchmark = Math.min(placement.benchmark, state.machine.benchmark);
  }
  const pools: LicenseState[] = [];
  for (const kind of able.pools) {
    const pool = kind.find(({ license }) => licenseIds.includes(license.id));
    if (pool === undefined) return null;
    pools.push(pool);
  }
  if (placement.tasks.reduce((sum, tasks) => sum + tasks, 0) !== requirement.tasks) return null;
  const holding = holdingOf(requirement, placement, pools);
  return { at, end: at + work / placement.benchmark, placement, pools, holding, work, requirement, madeAt };
}

const asOfNow = (grid: Grid, entry: SiteEntry, promises: Promises): Promises =>
  promises.topology === grid.topology ? promises : promisesFrom(grid, entry.site.id, imageOf(promises));

/** The jobs that have a promise or are to get one, in order of the queue. `left`: a promised job is not there any more. */
function lookedAt(
  pass: SitePass,
  walk: Walk,
  depth: number,
  before: Promises | null,
): { slots: number[]; left: boolean } {
  const { queue, resources } = pass.entry;
  const slots: number[] = [];
  let unseen = before?.byJob.size ?? 0;
  let passedOver = false;
  let slot = walk.next();
  for (; slot !== -1 && (slots.length < depth || unseen > 0); slot = walk.next()) {
    if (before?.byJob.has(queue.ids[slot] as number)) unseen--;
    else if (slots.length >= depth) {
      passedOver = true;
      continue;
    }
    // Nobody waits behind a job that waits for a machine or a license to come back.
    const requirement = queue.requirements[slot] as Requirement;
    if (whyNeverFits(requirement, resources.able(requirement.signature)) === null) slots.push(slot);
  }
  pass.goesOnBehindStarts = passedOver || slot !== -1;
  return { slots, left: unseen > 0 };
}

/** No job to promise to, and none whose time has come. */
function nothingNew({ entry, now }: SitePass, { byJob }: Promises, slots: readonly number[]): boolean {
  if (slots.length !== byJob.size) return false;
  for (const slot of slots) {
    const promised = byJob.get(entry.queue.ids[slot] as number);
    if (!stillMeant(promised, entry, slot)) return false;
    if (promised.at <= now && hasRoomNow(promised.holding)) return false;
  }
  return true;
}

/** Whether the promise is one to the job as it is now. */
function stillMeant(
  promised: Promised | null | undefined,
  { queue }: SiteEntry,
  slot: number,
): promised is Promised {
  return promised?.work === queue.works[slot] && promised?.requirement === queue.requirements[slot];
}

/** Nothing starts, and everything stays promised. */
function leave(pass: SitePass, before: Promises, slots: readonly number[]): void {
  const promised = slots.map((slot) => before.byJob.get(pass.entry.queue.ids[slot] as number) as Promised);
  for (const { at } of promised) if (at > pass.now && at < pass.wakeAt) pass.wakeAt = at;
  if (slots.length > 0) note(pass, slots[0] as number, promised[0] as Promised);
  pass.promises = before;
}

/**
 * Takes the places of the promises, in the order of their times and then of the queue. One whose time has passed, or whose
 * room is taken by a run that is late, moves back to where its room is free. Null becomes what finds no room at all.
 */
function takeInOrder(
  jobIds: readonly number[],
  promised: (Promised | null)[],
  places: Places,
  now: number,
): void {
  const order: number[] = [];
  for (let i = 0; i < promised.length; i++) if (promised[i]) order.push(i);
  order.sort((a, b) => (promised[a] as Promised).at - (promised[b] as Promised).at || a - b);
  for (const i of order) {
    const old = promised[i] as Promised;
    const length = old.work / old.placement.benchmark;
    const at = places.find(jobIds[i] as number, (profile) =>
      profile.earliestFor(old.holding, Math.max(now, old.at), length),
    );
    promised[i] = at === null ? null : at === old.at ? old : { ...old, at, end: at + length };
    if (at !== null) places.profile.take(old.holding, at, at + length);
  }
}

/** Starts what has come, and notes the rest. */
function keep(pass: SitePass, slots: readonly number[], promised: readonly (Promised | null)[]): void {
  const { entry, grid, now } = pass;
  const byJob = new Map<number, Promised>();
  for (let i = 0; i < slots.length; i++) {
    const slot = slots[i] as number;
    const one = promised[i];
    if (!one) continue;
    if (one.at <= now && !pass.full && hasRoomNow(one.holding)) {
      const reason = pass.reservation === null ? ReasonCode.HEAD : ReasonCode.BACKFILLED_BESIDE_RESERVATION;
      pass.enter(slot, one.placement, one.work / one.placement.benchmark, one.pools, reason);
      continue;
    }
    byJob.set(entry.queue.ids[slot] as number, one);
    if (one.at > now && one.at < pass.wakeAt) pass.wakeAt = one.at;
    if (pass.reservation === null) note(pass, slot, one);
  }
  pass.promises =
    byJob.size === 0
      ? null
      : { topology: grid.topology, byJob, room: roomOf(pass, byJob), incomplete: false };
}

function roomOf(view: View, byJob: ReadonlyMap<number, Promised>): Room {
  const { resources } = view.entry;
  let cpus = 0;
  let memoryMb = 0;
  for (const { machine, freeCpus, freeMemoryMb } of resources.machines) {
    if (!machine.available) continue;
    cpus += freeCpus;
    memoryMb += freeMemoryMb;
  }
  const copies = new Map<number, number>();
  for (const { requirement } of byJob.values()) {
    if (requirement.signature.licenses.length === 0) continue;
    for (const kind of resources.able(requirement.signature).pools)
      for (const pool of kind) copies.set(pool.license.id, freeCopies(pool));
  }
  if (copies.size > 0) {
    for (const id of view.claims.others.flatMap(({ licenseIds }) => licenseIds)) {
      const free = copies.get(id);
      if (free !== undefined) copies.set(id, free - 1);
    }
  }
  return { runs: resources.runs.length, cpus, memoryMb, copies: [...copies] };
}

function moreRoom(before: Room, now: Room): boolean {
  if (now.runs < before.runs || now.cpus > before.cpus || now.memoryMb > before.memoryMb) return true;
  const copies = new Map(before.copies);
  return now.copies.some(([licenseId, free]) => free > (copies.get(licenseId) ?? 0));
}

/** Reservations for the first `reservations` jobs that do not fit, made afresh; later ones start if they fit beside all. */
export function hybrid(pass: SitePass, walk: Walk, reservations: number): void {
  const { entry, now } = pass;
  const places = new Places(pass);
  let made = 0;
  for (let slot = walk.next(); slot !== -1 && !pass.full; slot = walk.next()) {
    if (made >= reservations && pass.exhausted) return;
    // What was reserved for it keeps its age.
    const held = entry.reservation?.jobId === entry.queue.ids[slot] ? entry.reservation : null;
    const one = promise(slot, pass, places, made < reservations ? Infinity : null, held?.madeAt ?? now);
    if (one === null) continue;
    if (one.at <= now && hasRoomNow(one.holding)) {
      const reason = pass.reservation === null ? ReasonCode.HEAD : ReasonCode.BACKFILLED_BESIDE_RESERVATION;
      pass.enter(slot, one.placement, one.end - one.at, one.pools, reason);
    } else {
      if (made++ >= reservations) continue;
      if (pass.reservation === null) note(pass, slot, one);
    }
    places.profile.take(one.holding, one.at, one.end);
  }
}

/** The earliest place of the job ahead of `before`; null: now or never. */
function promise(
  slot: number,
  { entry }: SitePass,
  places: Places,
  before: number | null,
  madeAt: number,
): Promised | null {
  const requirement = entry.queue.requirements[slot] as Requirement;
  const work = entry.queue.works[slot] as number;
  const able = entry.resources.able(requirement.signature);
  const found = places.find(entry.queue.ids[slot] as number, (profile) =>
    before === null
      ? profile.openingNow(requirement, able, work)
      : profile.earliest(requirement, able, work, before),
  );
  if (found === null) return null;
  return {
    ...found,
    holding: holdingOf(requirement, found.placement, found.pools),
    work,
    requirement,
    madeAt,
  };
}

/** Runs that are over by their estimate still hold their room. */
function hasRoomNow({ machines, cpus, memoryMb, licenses }: Holding): boolean {
  return (
    machines.every((state, i) => {
      return state.freeCpus >= (cpus[i] as number) && state.freeMemoryMb >= (memoryMb[i] as number);
    }) && licenses.every((pool) => freeCopies(pool) >= 1)
  );
}

/** The plan shows the promise to the first that waits: other sites respect the grid-wide licenses in it. */
function note(pass: SitePass, slot: number, { at, placement, pools, madeAt }: Promised): void {
  pass.reservation = {
    siteId: pass.entry.site.id,
    jobId: pass.entry.queue.ids[slot] as number,
    at: Math.max(at, pass.now),
    allocations: allocationsOf(placement),
    licenseIds: pools.map((pool) => pool.license.id),
    madeAt,
  };
}

/**
 * The profile of the live runs, here and where they hold copies that this site could use, and of other sites' claims; places
 * are found and taken in it.
 */
class Places {
  readonly profile: Profile;
  /** Claims of other sites that are younger than what this site has reserved, and so do not bind the job it is for. */
  private readonly younger: { holding: Holding; at: number; end: number }[] = [];
  private readonly reserved: Reservation | null;

  /** `asks`: a job that is not in the queue. */
  constructor({ entry, claims, now }: View, asks?: Requirement) {
    const { resources, site } = entry;
    this.reserved = entry.reservation;
    const pools = poolsOf(entry, asks);
    const elsewhere = new Set<RunState>();
    for (const { holders } of pools)
      for (const run of holders) if (run.run.siteId !== site.id) elsewhere.add(run);
    if (elsewhere.size === 0) this.profile = new Profile(resources.machines, pools, resources.runs, now);
    else {
      const runs = [...resources.runs, ...[...elsewhere].map((run) => ({ ...run, machines: [] }))];
      runs.sort((a, b) => a.end - b.end || a.jobId - b.jobId);
      this.profile = new Profile(resources.machines, pools, runs, now);
    }
    if (pools.length === 0) return;
    for (const claim of claims.others) {
      const licenses = pools.filter((pool) => claim.licenseIds.includes(pool.license.id));
      if (licenses.length === 0) continue;
      const { at, end } = claim;
      const holding = { machines: [], cpus: [], memoryMb: [], licenses };
      this.profile.take(holding, at, end);
      if (this.reserved !== null && !isOlder(claim, this.reserved)) this.younger.push({ holding, at, end });
    }
  }

  /** What is found for the job in the profile as it is for this job. */
  find<T>(jobId: number, search: (profile: Profile) => T): T {
    const { profile } = this;
    const free = jobId === this.reserved?.jobId ? this.younger : [];
    for (const { holding, at, end } of free) profile.give(holding, at, end);
    const found = search(profile);
    for (const { holding, at, end } of free) profile.take(holding, at, end);
    return found;
  }
}

/** The pools that runs, queued jobs or `asks` have to do with. */
function poolsOf({ resources, queue }: SiteEntry, asks?: Requirement): LicenseState[] {
  const pools = new Set<LicenseState>();
  const add = ({ signature }: Requirement): void => {
    if (signature.licenses.length === 0) return;
    for (const kind of resources.able(signature).pools) for (const pool of kind) pools.add(pool);
  };
  if (asks !== undefined) add(asks);
  for (const run of resources.runs) for (const pool of run.licenses) pools.add(pool);
  const slots = queue.window();
  for (let i = 0; i < slots.length; i++) add(queue.requirements[slots[i] as number] as Requirement);
  return [...pools];
}
