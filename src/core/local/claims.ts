/**
 * Reservations as they bear on licenses. A reservation claims a copy of each of its pools from its instant until its job's
 * planned end. A start may take a copy only if every claim that begins before the start's planned end still finds one.
 *
 * Grid-wide pools are claimed by reservations of all sites. Between two that want the same copy the older wins, ties by
 * site id; a job without a reservation of its own gives way to all.
 */
import type { Grid } from '../grid.js';
import type { Reservation } from '../model.js';
import { freeCopies, type LicenseState } from '../resources/site-resources.js';
import { copiesFreeAt } from '../resources/timeline.js';

export interface Claim {
  siteId: number;
  madeAt: number;
  at: number;
  end: number;
  licenseIds: readonly number[];
}

export class Claims {
  private readonly foreign: Claim[] = [];
  private own: Claim | null = null;
  private readonly byPool = new Map<LicenseState, { claim: Claim; slack: number }[]>();

  /** The claims of other sites' reservations, as the grid keeps them. */
  constructor(grid: Grid, siteId: number, now: number) {
    for (const { site, reservation } of grid.sites) {
      if (reservation === null || reservation.licenseIds.length === 0) continue;
      if (site.id === siteId || site.state !== 'UP') continue;
      const claim = claimOf(grid, reservation, now);
      if (claim !== null) this.foreign.push(claim);
    }
  }

  /** The claims of other sites. */
  get others(): readonly Claim[] {
    return this.foreign;
  }

  /** This site's own reservation, which every later start of the cycle respects. */
  setOwn(claim: Claim): void {
    this.own = claim;
    this.byPool.clear();
  }

  /** A start has taken a copy. */
  touched(pool: LicenseState): void {
    this.byPool.delete(pool);
  }

  /** Whether a copy can be taken now and kept until `end`, by a job that holds the reservation `holder` (or none). */
  allowsNow(pool: LicenseState, end: number, holder: Reservation | null): boolean {
    if (freeCopies(pool) < 1) return false;
    for (const { claim, slack } of this.on(pool, holder)) if (claim.at < end && slack < 1) return false;
    return true;
  }

  /** Whether a copy can be taken at `from`, where the timeline has come to, and kept until `end`. */
  allowsAt(pool: LicenseState, from: number, end: number, holder: Reservation | null): boolean {
    let free = pool.futureCopies;
    for (const { claim, slack } of this.on(pool, holder)) {
      if (claim.at <= from && from < claim.end) free--;
      else if (claim.at > from && claim.at < end && slack < 1) return false;
    }
    return free >= 1;
  }

  /** When claims end: instants at which a copy may come free. */
  ends(): number[] {
    const claims = this.own === null ? this.foreign : [...this.foreign, this.own];
    return claims.map((claim) => claim.end).sort((a, b) => a - b);
  }

  /** The claims on a pool that a holder must respect, with the copies that each leaves at its instant. */
  private on(pool: LicenseState, holder: Reservation | null): readonly { claim: Claim; slack: number }[] {
    if (this.foreign.length === 0 && this.own === null) return NONE;
    const known = holder === null ? this.byPool.get(pool) : undefined;
    if (known !== undefined) return known;
    const claims = this.own === null ? this.foreign : [...this.foreign, this.own];
    const respected = claims.filter(
      (claim) => claim.licenseIds.includes(pool.license.id) && (holder === null || isOlder(claim, holder)),
    );
    const found = respected.map((claim) => ({
      claim,
      slack:
        copiesFreeAt(pool, claim.at) -
        respected.filter((other) => other.at <= claim.at && claim.at < other.end).length,
    }));
    if (holder === null) this.byPool.set(pool, found);
    return found;
  }
}

const NONE: readonly { claim: Claim; slack: number }[] = [];

/** Which of two comes first where both want the same copy. */
export const isOlder = (
  a: { madeAt: number; siteId: number },
  b: { madeAt: number; siteId: number },
): boolean => a.madeAt < b.madeAt || (a.madeAt === b.madeAt && a.siteId < b.siteId);

/** What a reservation claims; null for one whose job has left the queue. */
export function claimOf(grid: Grid, reservation: Reservation, now: number): Claim | null {
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
    end: at + (job.estimateS * job.benchmark) / benchmark,
    licenseIds,
  };
}
