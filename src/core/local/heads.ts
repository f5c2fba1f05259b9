/** What most local policies begin with. */

import type { SitePass } from './pass.js';
import { SortedWalk, type Walk } from './walk.js';

export const byArrival = ({ entry }: SitePass): Walk => new SortedWalk(entry.queue, 'ARRIVAL');
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
