/**
 * Where a job begins that a site's own scheduler lets begin now: for simulations, which know how long jobs of ours lately waited there, and
 * nothing of what that scheduler would do.
 */
import type { Grid, SiteEntry } from '../../grid/grid.js';
import type { Placement } from '../../grid/site-resources.js';
import { type Job, limitAt } from '../../model.js';
import { place } from '../../resources/placement.js';
import { Timeline } from '../../resources/timeline.js';

/** Machines that nobody can name. */
const UNNAMED: Omit<Placement, 'benchmark'> = { machines: [], tasks: [], allocations: [] };

/**
 * On machines with room beside our runs and others' load, as that was last reported; null: there are none. The pools that the job asks of
 * are its own since it was handed over.
 *
 * Decision: where no run of ours has machines at the site, it begins whatever others have. What was observed is how long they take to make
 * room; else a job would wait forever at a site that was full when it was last heard of.
 */
export function beginning(grid: Grid, entry: SiteEntry, job: Job, now: number): Placement | null {
  const { resources } = entry;
  const requirement = grid.requirementOf(job);
  const eligible = { ...resources.eligible(requirement.signature), pools: [] };
  const limit = resources.holds.length === 0 ? Infinity : limitAt(job, entry.site);
  const work = resources.plannedWork(job.estimateS * job.benchmark, limit);
  const opening = new Timeline(grid, entry, now).openingNow(requirement, eligible, work, limit);
  if (opening !== null) return opening.placement;
  const isClosed = resources.holds.some(({ from, to, certain }) => certain && from <= now && now < to);
  if (isClosed || resources.runs.some(({ machines }) => machines.length > 0)) return null;
  return (
    place(requirement, eligible, resources.free.room) ?? { ...UNNAMED, benchmark: resources.bestBenchmark }
  );
}
