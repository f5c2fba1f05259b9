/**
 * A job's place in the availability profile of its site, and how places are found and taken: what policies that promise starts share.
 */

import { NO_AMOUNTS } from '../grid/amounts.js';
import type { SiteEntry } from '../grid/grid.js';
import type { Requirement } from '../grid/requirements.js';
import {
  amountIn,
  asksByName,
  type Hold,
  holdsIn,
  type Placement,
  type PoolState,
} from '../grid/site-resources.js';
import type { Reservation } from '../model.js';
import type { Opening } from '../resources/future.js';
import { isOlder } from '../resources/licenses.js';
import { allocationsOf, amountsOf, holdOf } from '../resources/placement.js';
import { type OwnPlace, Profile } from '../resources/profile.js';
import type { Timeline } from '../resources/timeline.js';
import type { SitePass } from './pass.js';

/** A place in the profile. */
export interface StartPromise extends Opening, OwnPlace {
  /** Of the job when it was made: another estimate or limit needs another place. */
  work: number;
  limit: number;
  requirement: Requirement;
  madeAt: number;
  /** The site's cycle in which it got its time. */
  cycle: number;
}

export const promisedIn = (
  opening: Opening,
  requirement: Requirement,
  work: number,
  limit: number,
  madeAt: number,
  cycle = 0,
): StartPromise => ({
  at: opening.at,
  end: opening.end,
  placement: opening.placement,
  pools: opening.pools,
  hold: holdOf(requirement, opening.placement, opening.pools),
  work,
  limit,
  requirement,
  madeAt,
  cycle,
});

/**
 * The promise as it is kept now: on the machines where the job gets its devices (`Timeline.placedNow`). The profile is without it. Copies of
 * licenses are as promised, for the machines are no slower. Null: it asks for devices by what they are, and enough of these are not free.
 */
export function keptNow(
  { free, entry, now }: Pick<SitePass, 'free' | 'entry' | 'now'>,
  promised: StartPromise,
  profile: Profile,
): StartPromise | null {
  const { requirement, work, limit, pools, madeAt, cycle } = promised;
  const eligible = entry.resources.eligible(requirement.signature);
  const placement = free.placedNow(requirement, eligible, work, limit, profile);
  if (placement === null) {
    if (!asksByName(requirement) && !profile.promisesTo(requirement)) return promised;
    // Parts may have been placed otherwise, when others had other devices.
    const end = now + work / promised.placement.benchmark;
    return profile.admits(promised.hold, now, end, now + limit, true) ? promised : null;
  }
  if (isSame(placement, promised.placement)) return promised;
  const opening = { at: now, end: now + work / placement.benchmark, placement, pools };
  return promisedIn(opening, requirement, work, limit, madeAt, cycle);
}

const isSame = (a: Placement, b: Placement): boolean =>
  a.machines.length === b.machines.length &&
  a.machines.every((state, i) => state === b.machines[i] && a.tasks[i] === b.tasks[i]);

/** Whether the room is there now: runs that are over by their estimate still hold theirs. */
export function hasRoomNow(free: Timeline, hold: Hold): boolean {
  return (
    holdsIn(hold, free.room) && hold.licenses.every(({ pool, copies }) => free.copies.free(pool) >= copies)
  );
}

/** The reservation that a plan shows for a promise: other sites respect the grid-wide licenses in it. */
export const reservationOf = (
  { entry, now }: Pick<SitePass, 'entry' | 'now'>,
  slot: number,
  { at, placement, pools, madeAt }: StartPromise,
): Reservation => ({
  siteId: entry.site.id,
  jobId: entry.queue.ids[slot] as number,
  at: Math.max(at, now),
  allocations: allocationsOf(placement),
  pools: amountsOf(pools),
  madeAt,
});

/**
 * The profile of the live runs, and of the copies that they, runs elsewhere and other sites' claims leave; places are found and taken in
 * it.
 */
export class Places {
  readonly profile: Profile;
  /** Claims of other sites that are younger than what this site has reserved, and so do not bind the job it is for. */
  private readonly younger: { hold: Hold; at: number; end: number }[] = [];
  private readonly reserved: Reservation | null;

  /** `keeps`: from cycle to cycle. `asks`: a job that is not in the queue. */
  constructor(at: SitePass | Timeline, keeps: boolean, asks?: Requirement) {
    const { entry, claims, now } = at;
    const [free, kept] = 'free' in at ? [at.free, at.kept] : [at, []];
    const { resources } = entry;
    this.reserved = entry.reservation;
    const pools = poolsOf(entry, asks);
    this.profile = Profile.of(resources, now);
    this.profile.lookBeside(free);
    if (this.profile.promised !== null) this.profile.promised.inAnyOrder = keeps;
    for (const pool of pools) this.profile.addPool(pool, claims.planned(pool));
    for (const { hold, run } of kept) {
      this.profile.give(hold, hold.from, hold.to, hold.certain);
      this.profile.take(run, now, run.end);
    }
    if (pools.length === 0 || this.reserved === null) return;
    for (const claim of claims.others) {
      const { at, end } = claim;
      const licenses = pools
        .map((pool) => ({ pool, copies: amountIn(claim, pool.license.id) }))
        .filter(({ copies }) => copies > 0);
      if (licenses.length === 0 || isOlder(claim, this.reserved)) continue;
      this.younger.push({ hold: { machines: [], tasks: [], each: NO_AMOUNTS, licenses }, at, end });
    }
  }

  /** What is found for the job in the profile as it is for this job. */
  find<T>(jobId: number, search: (profile: Profile) => T): T {
    const { profile } = this;
    const free = jobId === this.reserved?.jobId ? this.younger : [];
    for (const { hold, at, end } of free) profile.give(hold, at, end);
    const found = search(profile);
    for (const { hold, at, end } of free) profile.take(hold, at, end);
    return found;
  }
}

/** The pools that runs, queued jobs or `asks` have to do with. */
export function poolsOf({ resources, queue }: SiteEntry, asks?: Requirement): PoolState[] {
  const pools = new Set<PoolState>();
  const add = ({ signature }: Requirement): void => {
    if (signature.pools.length === 0) return;
    for (const { of } of resources.eligible(signature).pools) for (const pool of of) pools.add(pool);
  };
  if (asks !== undefined) add(asks);
  for (const run of resources.runs) for (const { pool } of run.licenses) pools.add(pool);
  if (queue.licensed > 0)
    for (const requirement of queue.requirements) if (requirement !== undefined) add(requirement);
  return [...pools];
}
