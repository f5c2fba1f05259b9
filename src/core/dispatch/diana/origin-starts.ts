/**
 * Whether a new job would start at once where it was submitted (Anjum et al., section 2: a meta-scheduler asks its peers when the
 * resources that a job needs are not available at its own site). Jobs that a pass has placed there take what they will occupy.
 */
import type { Grid, SiteEntry } from '../../grid/grid.js';
import type { Requirement } from '../../grid/requirements.js';
import type { Job } from '../../model.js';
import type { Timeline } from '../../resources/timeline.js';
import { StartsNow } from '../../terms/starts-now.js';
import type { SiteQueues } from './pass-queues.js';

export class OriginStarts {
  private readonly startsNow: StartsNow;
  /** By position of the site: what is free there; null where jobs wait already. */
  private readonly free = new Map<number, Timeline | null>();

  constructor(
    private readonly grid: Grid,
    now: number,
  ) {
    this.startsNow = new StartsNow(grid, now);
  }

  /** `site`: its position. */
  allows(job: Job, requirement: Requirement, site: number, queues: readonly SiteQueues[]): boolean {
    const free = this.freeAt(site, queues[site] as SiteQueues);
    return free !== null && this.startsNow.of(free, job, requirement) !== null;
  }

  /** The job goes there. One that has to wait makes others wait, too. */
  placed(job: Job, requirement: Requirement, site: number, queues: SiteQueues): void {
    const free = this.freeAt(site, queues);
    if (free === null) return;
    const start = this.startsNow.of(free, job, requirement);
    if (start === null) this.free.set(site, null);
    else free.start(start);
  }

  private freeAt(site: number, queues: SiteQueues): Timeline | null {
    let free = this.free.get(site);
    if (free === undefined) {
      free = queues.local + queues.meta === 0 ? this.startsNow.freeAt(this.entry(site)) : null;
      this.free.set(site, free);
    }
    return free;
  }

  private entry(site: number): SiteEntry {
    return this.grid.sites[site] as SiteEntry;
  }
}
