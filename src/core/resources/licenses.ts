/**
 * Copies of licenses, now and later. Runs hold them until their planned ends, holds of the grid until theirs. A reservation claims a
 * copy of each of its pools from its instant until its job's planned end; a start may take a copy only if every claim that begins before
 * the start's planned end still finds one.
 *
 * Grid-wide pools are claimed by reservations of all sites. Between two that want the same copy the older wins, ties by
 * site id; a job without a reservation of its own gives way to all.
 */
import type { Grid } from '../grid/grid.js';
import type { EligibleMachines, LicenseState } from '../grid/site-resources.js';
import type { Reservation } from '../model.js';

/** A copy that is taken in mind. */
interface InMind {
  readonly from: number;
  readonly to: number;
  /** Below 0: it is given back. */
  readonly copies: 1 | -1;
  /** It is held now, not only planned to be. */
  readonly present: boolean;
  readonly certain: boolean;
}

const NOTHING: readonly InMind[] = [];

/** What is taken in mind; of a pass over several sites they share one. */
export class LicenseCopies {
  /** Counts what was taken and given back. */
  changes = 0;
  returns = 0;
  private inMind: Map<LicenseState, InMind[]> | null = null;

  constructor(readonly now: number) {}

  /** Copies of a pool that nobody holds now: late runs still hold theirs. */
  free(pool: LicenseState): number {
    let free = pool.license.copies - pool.holders.length;
    for (const { present, copies } of this.of(pool)) if (present) free -= copies;
    for (const { from, to } of pool.holds) if (from <= this.now && this.now < to) free--;
    return free;
  }

  /** Copies that are free at a time, by planned ends. */
  freeAt(pool: LicenseState, time: number): number {
    let free = pool.license.copies;
    for (const run of pool.holders) if (run.end > time) free--;
    for (const { from, to, copies } of this.of(pool)) if (from <= time && time < to) free -= copies;
    for (const { from, to } of pool.holds) if (from <= time && time < to) free--;
    return free;
  }

  /** Copies that are not held for certain at a time. */
  uncertainAt(pool: LicenseState, time: number): number {
    let free = pool.license.copies;
    for (const { from, to, copies, certain } of this.of(pool))
      if (certain && from <= time && time < to) free -= copies;
    for (const { from, to, certain } of pool.holds) if (certain && from <= time && time < to) free--;
    return free;
  }

  /** A copy of each. */
  take(pools: readonly LicenseState[], taken: InMind): void {
    this.changes++;
    if (taken.copies < 0) this.returns++;
    for (const pool of pools) {
      this.inMind ??= new Map();
      const known = this.inMind.get(pool);
      if (known === undefined) this.inMind.set(pool, [taken]);
      else known.push(taken);
    }
  }

  of(pool: LicenseState): readonly InMind[] {
    return this.inMind?.get(pool) ?? NOTHING;
  }
}

/** Whether each kind has a pool with a free copy. */
export const hasCopies = ({ pools }: EligibleMachines, of: { readonly copies: LicenseCopies }): boolean =>
  pools.length === 0 || pools.every((kind) => kind.some((pool) => of.copies.free(pool) > 0));

/** A reservation's. */
export interface Claim {
  siteId: number;
  madeAt: number;
  at: number;
  end: number;
  licenseIds: readonly number[];
}

/** An instant at which copies of a pool are taken, how many are left then, and how many are not held for certain. */
interface Edge {
  readonly at: number;
  readonly left: number;
  readonly uncertain: number;
}

/** The copies as a site may take them. */
export class Claims {
  /** Of other sites' reservations, as the grid keeps them. */
  readonly others: readonly Claim[];
  /** What holds for jobs without a reservation, as long as nobody takes a further copy. */
  private readonly known = new Map<LicenseState, readonly Edge[]>();
  private knownAt = -1;

  constructor(
    grid: Grid,
    siteId: number,
    private readonly copies: LicenseCopies,
  ) {
    const others: Claim[] = [];
    for (const { site, reservation } of grid.sites) {
      if (reservation === null || reservation.licenseIds.length === 0) continue;
      if (site.id === siteId || site.state !== 'UP') continue;
      const claim = claimOf(grid, reservation, copies.now);
      if (claim !== null) others.push(claim);
    }
    this.others = others;
  }

  /**
   * Whether a copy can be taken at `from` (by planned ends) and kept until `end`, and until `until` beside what is held for certain, by a
   * job that holds the reservation `holder` (or none).
   */
  allows(pool: LicenseState, from: number, end: number, until: number, holder: Reservation | null): boolean {
    const { copies } = this;
    // What is claimed now is an edge.
    const there = from <= copies.now && copies.free(pool) >= 1;
    if (!there && copies.freeAt(pool, from) - this.claimedAt(pool, from, holder) < 1) return false;
    for (const { at, left, uncertain } of this.edges(pool, holder)) {
      if (at >= from && (at < end ? left < 1 : at < until && uncertain < 1)) return false;
    }
    return true;
  }

  /** When copies of the pools may come free. */
  instants(pools: readonly (readonly LicenseState[])[]): number[] {
    const ends = this.others.map(({ end }) => end);
    for (const pool of pools.flat()) {
      for (const { end } of pool.holders) ends.push(end);
      for (const { to } of pool.holds) ends.push(to);
      for (const { from, to, copies } of this.copies.of(pool)) ends.push(copies > 0 ? to : from);
    }
    return ends.sort((a, b) => a - b);
  }

  /** The edges that a holder must respect. */
  private edges(pool: LicenseState, holder: Reservation | null): readonly Edge[] {
    if (holder !== null) return this.edgesOf(pool, holder);
    if (this.knownAt !== this.copies.changes) {
      this.knownAt = this.copies.changes;
      this.known.clear();
    }
    let found = this.known.get(pool);
    if (found === undefined) {
      found = this.edgesOf(pool, null);
      this.known.set(pool, found);
    }
    return found;
  }

  private edgesOf(pool: LicenseState, holder: Reservation | null): readonly Edge[] {
    const { copies } = this;
    const instants = this.binding(pool, holder).map(({ at }) => at);
    for (const { from, to, present, copies: taken } of copies.of(pool))
      if (taken < 0) instants.push(to);
      else if (!present) instants.push(from);
    for (const { from } of pool.holds) instants.push(from);
    return instants.map((at) => ({
      at,
      left: copies.freeAt(pool, at) - this.claimedAt(pool, at, holder),
      uncertain: copies.uncertainAt(pool, at),
    }));
  }

  private claimedAt(pool: LicenseState, time: number, holder: Reservation | null): number {
    return this.binding(pool, holder).filter(({ at, end }) => at <= time && time < end).length;
  }

  private binding(pool: LicenseState, holder: Reservation | null): readonly Claim[] {
    const { others } = this;
    if (others.length === 0) return others;
    const { id } = pool.license;
    return others.filter(
      (claim) => claim.licenseIds.includes(id) && (holder === null || isOlder(claim, holder)),
    );
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
  const { siteId, madeAt, licenseIds } = reservation;
  return {
    siteId,
    madeAt,
    at,
    end: at + Math.max(LEAST_S, (job.estimateS * job.benchmark) / benchmark),
    licenseIds,
  };
}
