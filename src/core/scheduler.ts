/** Who holds jobs and decides about them: the root of the tree, or a site. */

/**
 * The root's name wherever schedulers are named: wake-ups, tasks, metrics, the command line. The queue that it keeps is what
 * people know as the global queue.
 */
export const ROOT = 'root';

/** The root, or the site of this id. */
export type Scheduler = typeof ROOT | number;

/** The scheduler that a site's id stands for, null for the root. */
export const schedulerOf = (siteId: number | null): Scheduler => siteId ?? ROOT;
