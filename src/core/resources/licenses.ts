/**
 * Copies of licenses, now and later. Runs hold them until their planned ends, holds of the grid until theirs. A reservation claims the
 * copies of its pools from its instant until its job's planned end; a start may take copies only if every claim that begins before the
 * start's planned end still finds its own.
 *
 * Grid-wide pools are claimed by reservations of all sites. Between two that want the same copy the older wins, ties by
 * site id; a job without a reservation of its own gives way to all.
 */
import type { Grid } from '../grid/grid.js';
import {
  amountIn,
  type EligibleMachines,
  type Hold,
  type PoolCopies,
  type PoolState,
  type PoolsOfKind,
} from '../grid/site-resources.js';
import type { PoolAmount, Reservation } from '../model.js';
import { type Column, columnOf, nextIn, shift } from './column.js';

/** Copies that are taken in mind. */
interface InMind {
  readonly from: number;
  readonly to: number;
  /** Below 0: they are given back. */
  readonly copies: number;
  /** They are held now, not only planned to be. */
  readonly present: boolean;
  readonly certain: boolean;
}

const NOTHING: readonly InMind[] = [];

/** What is taken in mind; of a pass over several sites they share one. */
export class PoolsInMind {
  /** Counts what was given back. */
  returns = 0;
  private inMind: Map<PoolState, InMind[]> | null = null;

  constructor(readonly now: number) {}

  /** Copies of a pool that nobody holds now: late runs still hold theirs. */
  free(pool: PoolState): number {
    let free = pool.license.copies - pool.inUse;
    for (const { present, copies } of this.of(pool)) if (present) free -= copies;
    for (const hold of pool.holds)
      if (hold.from <= this.now && this.now < hold.to) free -= copiesIn(hold, pool);
    return free;
  }

  /** `sign` below 0: they are given back. */
  take(licenses: readonly PoolCopies[], sign: 1 | -1, taken: Omit<InMind, 'copies'>): void {
    if (sign < 0) this.returns++;
    for (const { pool, copies } of licenses) {
      this.inMind ??= new Map();
      const one = { ...taken, copies: sign * copies };
      const known = this.inMind.get(pool);
      if (known === undefined) this.inMind.set(pool, [one]);
      else known.push(one);
    }
  }

  of(pool: PoolState): readonly InMind[] {
    return this.inMind?.get(pool) ?? NOTHING;
  }
}

/** The copies of a pool that a hold has. */
export const copiesIn = ({ licenses }: Pick<Hold, 'licenses'>, of: PoolState): number =>
  licenses.find(({ pool }) => pool === of)?.copies ?? 0;

/** Whether of each kind so many copies are free as are asked for. */
export const hasCopies = (
  { pools }: EligibleMachines,
  { copies }: { readonly copies: PoolsInMind },
): boolean => pools.length === 0 || pools.every((kind) => areThere(kind, (pool) => copies.free(pool)));

/** Whether the pools of a kind have so many copies together as are asked for. */
export const areThere = ({ of, copies }: PoolsOfKind, free: (pool: PoolState) => number): boolean =>
  of.reduce((sum, pool) => sum + Math.max(0, free(pool)), 0) >= copies;

/** A reservation's. */
export interface Claim {
  siteId: number;
  madeAt: number;
  at: number;
  end: number;
  pools: readonly PoolAmount[];
}

/** The copies of a pool from now on, with so many of those that are taken in mind. */
interface Known {
  readonly column: Column;
  inMind: number;
}

/** The copies as a site may take them. */
export class Claims {
  /** Of other sites' reservations, as the grid keeps them. */
  readonly others: readonly Claim[];
  private readonly known = new Map<PoolState, Known>();
  /** What they are known for. */
  private holder: Reservation | null = null;

  constructor(
    grid: Grid,
    siteId: number,
    private readonly copies: PoolsInMind,
  ) {
    const others: Claim[] = [];
    for (const { site, reservation } of grid.sites) {
      if (reservation === null || reservation.pools.length === 0) continue;
      if (site.id === siteId || site.state !== 'UP') continue;
      const claim = claimOf(grid, reservation, copies.now);
      if (claim !== null) others.push(claim);
    }
    this.others = others;
  }

  /**
   * Whether nothing begins to be held of the pool: what is free of it now stays so. Most are so at most times, which spares the site to
   * work out a column.
   */
  onlyGrows(pool: PoolState): boolean {
    if (this.others.length > 0 || pool.holds.length > 0) return false;
    return this.copies.of(pool).every(({ copies, present }) => copies > 0 && present);
  }

  /** The copies from now on, by planned ends, for a job that holds the reservation `holder` (or none). */
  column(pool: PoolState, holder: Reservation | null): Column {
    // Where nobody else claims any, they are the same for all.
    const asker = this.others.length === 0 ? null : holder;
    if (this.holder !== asker) {
      this.holder = asker;
      this.known.clear();
    }
    let known = this.known.get(pool);
    if (known === undefined) {
      known = { column: this.planned(pool, asker), inMind: 0 };
      this.known.set(pool, known);
    }
    const inMind = this.copies.of(pool);
    for (; known.inMind < inMind.length; known.inMind++) {
      const { from, to, copies, certain } = inMind[known.inMind] as InMind;
      shift(known.column, from, to, -copies, certain);
    }
    return known.column;
  }

  /** The same without what is taken in mind. */
  planned(pool: PoolState, holder: Reservation | null = null): Column {
    const { license, holders, holds } = pool;
    const column = columnOf(license.copies);
    for (const run of holders) shift(column, this.copies.now, run.end, -copiesIn(run, pool), false);
    for (const hold of holds) shift(column, hold.from, hold.to, -copiesIn(hold, pool), hold.certain);
    if (!pool.isPart)
      for (const claim of this.others)
        if (holder === null || isOlder(claim, holder))
          shift(column, claim.at, claim.end, -amountIn(claim, license.id), false);
    return column;
  }

  /** The first instant behind `time` at which copies of the pools may come free; Infinity: none. */
  nextChange(pools: readonly PoolsOfKind[], time: number, holder: Reservation | null): number {
    let next = Infinity;
    for (const { of } of pools)
      for (const pool of of) next = Math.min(next, nextIn(this.column(pool, holder), time));
    return next;
  }
}

/** Which of two comes first where both want the same copy. */
export const isOlder = (
  a: { madeAt: number; siteId: number },
  b: { madeAt: number; siteId: number },
): boolean => a.madeAt < b.madeAt || (a.madeAt === b.madeAt && a.siteId < b.siteId);

/** A claim lasts so long at least: times since 1970 are no finer than 0.2 µs, and what ends where it begins would bind nobody. */
const LEAST_S = 1e-3;

/** What a reservation claims; null for one whose job has left the queue. */
function claimOf(grid: Grid, reservation: Reservation, now: number): Claim | null {
  const job = grid.job(reservation.jobId);
  if (job === null) return null;
  const place = grid.placeOf(reservation.jobId);
  if (place?.at !== 'QUEUE' || place.siteId !== reservation.siteId) return null;
  const at = Math.max(now, reservation.at);
  const benchmark = grid.slowestOf(reservation.allocations);
  const { siteId, madeAt, pools } = reservation;
  return {
    siteId,
    madeAt,
    at,
    end: at + Math.max(LEAST_S, (job.estimateS * job.benchmark) / benchmark),
    pools,
  };
}
