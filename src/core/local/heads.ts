/** What most local policies begin with. */

import { queueOrderOf, type Workflows } from '../terms/workflows.js';
import type { SitePass } from './pass.js';
import { SortedWalk, type Walk } from './walk.js';

export const byArrival = ({ entry }: SitePass): Walk => new SortedWalk(entry.queue, 'ARRIVAL');
/** By arrival, or by the ranks of workflows. */
export const byWorkflows =
  (workflows: Workflows): ((pass: SitePass) => Walk) =>
  ({ entry }) =>
    new SortedWalk(entry.queue, queueOrderOf(workflows));
export const byPriority = ({ entry }: SitePass): Walk => new SortedWalk(entry.queue, 'PRIORITY');

/** Starts jobs from the head while they fit. The first that does not, -1 if there is none: with nothing else, nobody overtakes. */
export function startHeads(pass: SitePass, walk: Walk): number {
  while (!pass.full) {
    const slot = walk.next();
    if (slot === -1) return -1;
    if (pass.start(slot) === 'BLOCKED') return slot;
  }
  return -1;
}
