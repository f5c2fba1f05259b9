/**
 * Policies that promise: several queued jobs have a place in the availability profile, and a job starts when its place has
 * come.
 *
 * Conservative backfilling: a job gets the earliest hole when it comes. Promises are kept from cycle to cycle
 * (`Grid.keepPromises`). When runs have ended, each waiting job in turn is taken out and put into its earliest hole,
 * which is never later. A promise is made anew only where it cannot be kept: a run is overdue, or a machine is gone.
 *
 * Hybrid: promises are made afresh in each cycle, to the first N jobs that do not fit; with N = 1 this is EASY.
 */
import { ReasonCode } from '../reasons.js';
import { whyNeverFits } from '../resources/eligibility.js';
import { allocationsOf } from '../resources/placement.js';
import { type Holding, holdingOf, type Opening, Profile } from '../resources/profile.js';
import type { Requirement } from '../resources/requirements.js';
import { freeCopies, type LicenceState, type RunState } from '../resources/site-resources.js';
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
  byJob: ReadonlyMap<number, Promised>;
}

/** Conservative backfilling of the first `depth` jobs of the queue; those behind wait until they are among them. */
export function conservative(pass: SitePass, walk: Walk, depth: number): void {
  const { entry, grid, now } = pass;
  const profile = profileOf(pass);
  const before = entry.promises?.topology === grid.topology ? entry.promises.byJob : null;
  const slots: number[] = [];
  let slot = walk.next();
  for (; slot !== -1 && slots.length < depth; slot = walk.next()) {
    // Nobody waits behind a job that waits for a machine or a licence to come back.
    const requirement = entry.queue.requirements[slot] as Requirement;
    if (whyNeverFits(requirement, entry.resources.able(requirement.signature)) === null) slots.push(slot);
  }
  pass.goesOnBehindStarts = slot !== -1;
  const promised = new Array<Promised | null>(slots.length).fill(null);
  if (before !== null) {
    for (let i = 0; i < slots.length; i++) {
      const kept = stillGood(
        before.get(entry.queue.ids[slots[i] as number] as number),
        slots[i] as number,
        pass,
        profile,
      );
      if (kept !== null) profile.take(kept.holding, kept.at, kept.end);
      promised[i] = kept;
    }
  }
  if (pass.compress) {
    for (let i = 0; i < slots.length; i++) {
      const old = promised[i];
      if (!old || old.at <= now) continue;
      profile.give(old.holding, old.at, old.end);
      const better = promise(slots[i] as number, pass, profile, old.at, old.madeAt) ?? old;
      profile.take(better.holding, better.at, better.end);
      promised[i] = better;
    }
  }
  for (let i = 0; i < slots.length; i++) {
    if (promised[i]) continue;
    const made = promise(slots[i] as number, pass, profile, Infinity, now);
    if (made !== null) profile.take(made.holding, made.at, made.end);
    promised[i] = made;
  }
  keep(pass, slots, promised);
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
      pass.enter(slot, one.placement, one.end - one.at, one.pools, reason);
      continue;
    }
    byJob.set(entry.queue.ids[slot] as number, one);
    if (one.at > now && one.at < pass.wakeAt) pass.wakeAt = one.at;
    if (pass.reservation === null) note(pass, slot, one);
  }
  pass.promises = byJob.size === 0 ? null : { topology: grid.topology, byJob };
}

/** Reservations for the first `reservations` jobs that do not fit, made afresh; later ones start if they fit beside all. */
export function hybrid(pass: SitePass, walk: Walk, reservations: number): void {
  const { now } = pass;
  const profile = profileOf(pass);
  let made = 0;
  for (let slot = walk.next(); slot !== -1 && !pass.full; slot = walk.next()) {
    if (made >= reservations && pass.exhausted) return;
    const one = promise(slot, pass, profile, made < reservations ? Infinity : null, now);
    if (one === null) continue;
    if (one.at <= now && hasRoomNow(one.holding)) {
      const reason = pass.reservation === null ? ReasonCode.HEAD : ReasonCode.BACKFILLED_BESIDE_RESERVATION;
      pass.enter(slot, one.placement, one.end - one.at, one.pools, reason);
    } else {
      if (made++ >= reservations) continue;
      if (pass.reservation === null) note(pass, slot, one);
    }
    profile.take(one.holding, one.at, one.end);
  }
}

/** The promise of an earlier cycle, moved up to now if its time has passed; null when it can no longer be kept. */
function stillGood(
  promised: Promised | undefined,
  slot: number,
  { entry, now }: SitePass,
  profile: Profile,
): Promised | null {
  if (promised === undefined || promised.work !== entry.queue.works[slot]) return null;
  if (promised.requirement !== entry.queue.requirements[slot]) return null;
  const late = Math.max(0, now - promised.at);
  const moved = late === 0 ? promised : { ...promised, at: now, end: promised.end + late };
  return profile.fits(moved.holding, moved.at, moved.end) ? moved : null;
}

/** The earliest place of the job ahead of `before`; null: now or never. */
function promise(
  slot: number,
  { entry }: SitePass,
  profile: Profile,
  before: number | null,
  madeAt: number,
): Promised | null {
  const requirement = entry.queue.requirements[slot] as Requirement;
  const work = entry.queue.works[slot] as number;
  const able = entry.resources.able(requirement.signature);
  const found =
    before === null
      ? profile.openingNow(requirement, able, work)
      : profile.earliest(requirement, able, work, before);
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
function hasRoomNow({ machines, cpus, memoryMb, licences }: Holding): boolean {
  return (
    machines.every((state, i) => {
      return state.freeCpus >= (cpus[i] as number) && state.freeMemoryMb >= (memoryMb[i] as number);
    }) && licences.every((pool) => freeCopies(pool) >= 1)
  );
}

/** The plan shows the promise to the first that waits: other sites respect the grid-wide licences in it. */
function note(pass: SitePass, slot: number, { at, placement, pools, madeAt }: Promised): void {
  pass.reservation = {
    siteId: pass.entry.site.id,
    jobId: pass.entry.queue.ids[slot] as number,
    at,
    allocations: allocationsOf(placement),
    licenceIds: pools.map((pool) => pool.licence.id),
    madeAt,
  };
}

/** The profile of the live runs, here and where they hold copies that this site could use, and of other sites' claims. */
function profileOf({ entry, claims, now }: SitePass): Profile {
  const { resources, queue } = entry;
  const pools = new Set<LicenceState>();
  for (const run of resources.runs) for (const pool of run.licences) pools.add(pool);
  const slots = queue.window();
  for (let i = 0; i < slots.length; i++) {
    const { signature } = queue.requirements[slots[i] as number] as Requirement;
    if (signature.licences.length === 0) continue;
    for (const kind of resources.able(signature).pools) for (const pool of kind) pools.add(pool);
  }
  if (pools.size === 0) return new Profile(resources.machines, [], resources.runs, now);
  const elsewhere = new Set<RunState>();
  for (const { holders } of pools)
    for (const run of holders) if (run.run.siteId !== entry.site.id) elsewhere.add(run);
  const runs = [...resources.runs, ...[...elsewhere].map((run) => ({ ...run, machines: [] }))];
  runs.sort((a, b) => a.end - b.end || a.jobId - b.jobId);
  const profile = new Profile(resources.machines, [...pools], runs, now);
  for (const { at, end, licenceIds } of claims.others) {
    const licences = [...pools].filter((pool) => licenceIds.includes(pool.licence.id));
    if (licences.length > 0) profile.take({ machines: [], cpus: [], memoryMb: [], licences }, at, end);
  }
  return profile;
}
