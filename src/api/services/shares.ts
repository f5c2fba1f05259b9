/** Sites as one another's peers, and what quotas make of the jobs in their meta-queues: as the schedulers see it now. */
import type { Viewer } from '../auth.js';
import { pageSize } from '../connections.js';
import type { PeerModel, UserStandingModel } from '../models.js';
import { guarded } from './access.js';
import type { ServiceParts } from './parts.js';

/** Under policies that know no congestion, rates are over as much time as DIANA's by default. */
const WINDOW_S = 600;

export function createSharesService({ mirror, queries, limits, now }: ServiceParts) {
  return {
    ...guarded({
      async peers(_viewer: Viewer, first: number): Promise<PeerModel[]> {
        const sites = await queries.sites('', pageSize('first', first, limits));
        await mirror.sync();
        const { grid } = mirror;
        const { dispatch, timers } = mirror.policy.document;
        const at = now();
        return sites.flatMap(({ id, state, agentSeenAt }) => {
          const entry = grid.sites.find(({ site }) => site.id === id);
          if (!entry) return [];
          const rates = entry.traffic.rates(
            at,
            dispatch.kind === 'diana' ? dispatch.congestionWindowS : WINDOW_S,
          );
          return [
            {
              siteId: id,
              alive: state === 'UP' && agentSeenAt !== null && at - agentSeenAt <= timers.agentSilentS,
              lastHeardAt: agentSeenAt,
              queued: entry.queue.length,
              metaQueued: entry.meta.length,
              arrivalRate: rates.arrival,
              serviceRate: rates.service,
              congested: false,
              powerTotal: 0,
            },
          ];
        });
      },

      async userStandings(_viewer: Viewer, first: number): Promise<UserStandingModel[]> {
        pageSize('first', first, limits);
        return [];
      },
    }),

    /** How many groups of a standing are shown. */
    groupsShown: (first: number): number => pageSize('first', first, limits),
  };
}
