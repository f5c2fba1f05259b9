/** What jobs would occupy that start at once: in the mind of a pass over several sites, which share grid-wide licenses. */
import type { Grid, SiteEntry } from '../grid/grid.js';
import type { Requirement } from '../grid/requirements.js';
import type { RunState } from '../grid/site-resources.js';
import { Claims } from '../local/claims.js';
import type { Job } from '../model.js';
import { FreeResources, LicenseCopies, runInMind } from '../resources/free.js';
import { pickPools, placeNow } from '../resources/placement.js';

export class StartsNow {
  private readonly copies = new LicenseCopies();
  private readonly claims = new Map<SiteEntry, Claims>();

  constructor(
    private readonly grid: Grid,
    private readonly now: number,
  ) {}

  /** What is free at the site as the pass sees it. */
  freeAt({ resources }: SiteEntry): FreeResources {
    return new FreeResources(resources, this.copies);
  }

  /** What the job would occupy at the site from now on, null when it does not fit. */
  of(entry: SiteEntry, free: FreeResources, job: Job, requirement: Requirement): RunState | null {
    const eligible = entry.resources.eligible(requirement.signature);
    const placement = placeNow(requirement, eligible, free);
    if (placement === null) return null;
    const end = this.now + (job.estimateS * job.benchmark) / placement.benchmark;
    const pools = pickPools(eligible, (pool) => this.claimsOf(entry).allowsNow(pool, end, null));
    return pools && runInMind(requirement, placement, pools, job.id, end);
  }

  /** What others claim of grid-wide licenses. */
  claimsOf(entry: SiteEntry): Claims {
    let claims = this.claims.get(entry);
    if (claims === undefined) {
      claims = new Claims(this.grid, entry.site.id, this.now, this.copies);
      this.claims.set(entry, claims);
    }
    return claims;
  }
}
