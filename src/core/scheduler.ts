/** Who holds jobs and decides about them: the root of the tree, or a site. */

/** The root's name wherever schedulers are named: wake-ups, tasks, metrics, the command line. */
export const ROOT = 'root';
/** The queue that the root keeps, as people know it. */
export const GLOBAL_QUEUE = 'global queue';

/** The root, whose cycle serves the meta-queues, too, or the local scheduler of the site of this id. */
export type Scheduler = typeof ROOT | number;

/** The scheduler that a site's id stands for, null for the root. */
export const schedulerOf = (siteId: number | null): Scheduler => siteId ?? ROOT;
