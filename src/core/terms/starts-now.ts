/** What jobs would occupy that start at once: in the mind of a pass over several sites, which share grid-wide licenses. */
import type { Grid, SiteEntry } from '../grid/grid.js';
import type { Requirement } from '../grid/requirements.js';
import type { RunState } from '../grid/site-resources.js';
import { type Job, limitAt } from '../model.js';
import { PoolsInMind } from '../resources/licenses.js';
import { runInMind, Timeline } from '../resources/timeline.js';

export class StartsNow {
  private readonly copies: PoolsInMind;

  constructor(
    private readonly grid: Grid,
    private readonly now: number,
  ) {
    this.copies = new PoolsInMind(now);
  }

  /** What is free at the site as the pass sees it. */
  freeAt(entry: SiteEntry): Timeline {
    return new Timeline(this.grid, entry, this.now, this.copies);
  }

  /** What the job would occupy at the site from now on, null when it does not fit. */
  of(free: Timeline, job: Job, requirement: Requirement): RunState | null {
    const eligible = free.site.eligible(requirement.signature);
    const limit = limitAt(job, free.entry.site);
    const work = free.site.plannedWork(job.estimateS * job.benchmark, limit);
    const opening = free.openingNow(requirement, eligible, work, limit);
    return opening && runInMind(requirement, opening.placement, opening.pools, job.id, opening.end);
  }
}
