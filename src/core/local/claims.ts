/**
 * Reservations as they bear on licenses. A reservation claims a copy of each of its pools from its instant until its job's
 * planned end. A start may take a copy only if every claim that begins before the start's planned end still finds one.
 *
 * Grid-wide pools are claimed by reservations of all sites. Between two that want the same copy the older wins, ties by
 * site id; a job without a reservation of its own gives way to all.
 */
import type { Grid } from '../grid/grid.js';
import type { LicenseState } from '../grid/site-resources.js';
import type { Reservation } from '../model.js';
import type { LicenseCopies } from '../resources/free.js';
import type { Timeline } from '../resources/timeline.js';

export interface Claim {
  siteId: number;
  madeAt: number;
  at: number;
  end: number;
  licenseIds: readonly number[];
}

export class Claims {
  /** Of other sites' reservations, as the grid keeps them. */
  readonly others: readonly Claim[];
  private own: Claim | null = null;
  /** What holds for jobs without a reservation, as long as nobody takes a further copy. */
  private readonly known = new Map<LicenseState, readonly Claimed[]>();
  private knownAt = -1;

  constructor(
    grid: Grid,
    siteId: number,
    now: number,
    private readonly copies: LicenseCopies,
  ) {
    const others: Claim[] = [];
    for (const { site, reservation } of grid.sites) {
      if (reservation === null || reservation.licenseIds.length === 0) continue;
      if (site.id === siteId || site.state !== 'UP') continue;
      const claim = claimOf(grid, reservation, now);
      if (claim !== null) others.push(claim);
    }
    this.others = others;
  }

  /** This site's own reservation, which every later start of the cycle respects. */
  setOwn(claim: Claim): void {
    this.own = claim;
    this.known.clear();
  }

  /** Whether a copy can be taken now and kept until `end`, by a job that holds the reservation `holder` (or none). */
  allowsNow(pool: LicenseState, end: number, holder: Reservation | null): boolean {
    if (this.copies.free(pool) < 1) return false;
    for (const { claim, slack } of this.on(pool, holder)) if (claim.at < end && slack < 1) return false;
    return true;
  }

  /** Whether a copy can be taken at the instant that the timeline has come to, and kept until `end`. */
  allowsAt(pool: LicenseState, timeline: Timeline, end: number, holder: Reservation | null): boolean {
    const from = timeline.at;
    let free = timeline.copiesOf(pool);
    for (const { claim, slack } of this.on(pool, holder)) {
      if (claim.at <= from && from < claim.end) free--;
      else if (claim.at > from && claim.at < end && slack < 1) return false;
    }
    return free >= 1;
  }

  /** When claims end: instants at which a copy may come free. */
  ends(): number[] {
    return this.all()
      .map((claim) => claim.end)
      .sort((a, b) => a - b);
  }

  private all(): readonly Claim[] {
    return this.own === null ? this.others : [...this.others, this.own];
  }

  /** The claims on a pool that a holder must respect. */
  private on(pool: LicenseState, holder: Reservation | null): readonly Claimed[] {
    if (this.own === null && this.others.length === 0) return NONE;
    if (holder !== null) return this.claimed(pool, (claim) => isOlder(claim, holder));
    if (this.knownAt !== this.copies.takes) {
      this.knownAt = this.copies.takes;
      this.known.clear();
    }
    let found = this.known.get(pool);
    if (found === undefined) {
      found = this.claimed(pool, () => true);
      this.known.set(pool, found);
    }
    return found;
  }

  private claimed(pool: LicenseState, binds: (claim: Claim) => boolean): readonly Claimed[] {
    const claims = this.all().filter((claim) => claim.licenseIds.includes(pool.license.id) && binds(claim));
    return claims.map((claim) => ({
      claim,
      slack:
        this.copies.freeAt(pool, claim.at) -
        claims.filter((other) => other.at <= claim.at && claim.at < other.end).length,
    }));
  }
}

/** A claim on a pool, and how many copies are left at its instant. */
interface Claimed {
  claim: Claim;
  slack: number;
}

const NONE: readonly Claimed[] = [];

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
