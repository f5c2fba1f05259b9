/** Sites as one another's peers, and what quotas make of the jobs in their meta-queues: as the schedulers see it now. */
import { peers, userStandings } from '../../core/index.js';
import type { Viewer } from '../auth.js';
import { pageSize } from '../connections.js';
import type { PeerModel, UserStandingModel } from '../models.js';
import { guarded, ownerOnly } from './access.js';
import type { ServiceParts } from './parts.js';

export function createSharesService({ mirror, queries, limits, now }: ServiceParts) {
  return {
    ...guarded({
      async peers(_viewer: Viewer, first: number): Promise<PeerModel[]> {
        const sites = await queries.sites('', pageSize('first', first, limits));
        await mirror.sync();
        const policy = mirror.policy.document;
        const at = now();
        const known = new Map(peers(mirror.grid, { policy, now: at }).map((peer) => [peer.siteId, peer]));
        return sites.flatMap(({ id, agentSeenAt }) => {
          const peer = known.get(id);
          if (!peer) return [];
          const heard = agentSeenAt !== null && at - agentSeenAt <= policy.timers.agentSilentS;
          return [{ ...peer, alive: peer.up && heard, lastHeardAt: agentSeenAt }];
        });
      },

      async userStandings(viewer: Viewer, first: number): Promise<UserStandingModel[]> {
        const size = pageSize('first', first, limits);
        const owner = ownerOnly(viewer);
        await mirror.sync();
        return userStandings(mirror.grid, mirror.policy.document)
          .filter(({ userId }) => owner === null || userId === owner)
          .sort((a, b) => b.jobs - a.jobs || a.userId - b.userId)
          .slice(0, size);
      },
    }),

    /** How many groups of a standing are shown. */
    groupsShown: (first: number): number => pageSize('first', first, limits),
  };
}
