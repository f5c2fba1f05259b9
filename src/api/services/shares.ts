/** Sites as one another's peers, what quotas make of the jobs in meta-queues, what is on its way: as the schedulers see it now. */
import { peers, transfers, userStandings } from '../../core/index.js';
import type { Budget } from '../admission/budget.js';
import type { Viewer } from '../auth.js';
import { pageSize } from '../connections.js';
import type { QueryTransfersArgs } from '../generated/types.js';
import { localId } from '../ids.js';
import type { PeerModel, TransferModel, UserStandingModel } from '../models.js';
import { guarded, ownerOnly } from './access.js';
import type { ServiceParts } from './parts.js';

export function createSharesService({ mirror, queries, limits, shares, now }: ServiceParts) {
  return {
    ...guarded({
      async peers(viewer: Viewer, first: number, budget: Budget): Promise<PeerModel[]> {
        const sites = await queries.sites('', pageSize('first', first, limits));
        const at = now();
        const [known, { agentSilentS }] = await shares.explain({ viewer, budget }, async () => {
          await mirror.sync();
          const policy = mirror.policy.document;
          return [peers(mirror.grid, { policy, now: at }), policy.timers] as const;
        });
        const byId = new Map(known.map((peer) => [peer.siteId, peer]));
        return sites.flatMap(({ id, agentSeenAt }) => {
          const peer = byId.get(id);
          if (!peer) return [];
          const heard = agentSeenAt !== null && at - agentSeenAt <= agentSilentS;
          return [{ ...peer, alive: peer.up && heard, lastHeardAt: agentSeenAt }];
        });
      },

      async userStandings(viewer: Viewer, first: number, budget: Budget): Promise<UserStandingModel[]> {
        const size = pageSize('first', first, limits);
        const owner = ownerOnly(viewer);
        const standings = await shares.explain({ viewer, budget }, async () => {
          await mirror.sync();
          return userStandings(mirror.grid, mirror.policy.document);
        });
        return standings
          .filter(({ userId }) => owner === null || userId === owner)
          .sort((a, b) => b.jobs - a.jobs || a.userId - b.userId)
          .slice(0, size);
      },

      /** A USER's: of their own jobs. */
      async transfers(
        viewer: Viewer,
        { from, to, first }: QueryTransfersArgs,
        budget: Budget,
      ): Promise<TransferModel[]> {
        const size = pageSize('first', first, limits);
        const owner = ownerOnly(viewer);
        const [fromId, toId] = [from && localId('site', from, 'from'), to && localId('site', to, 'to')];
        return shares.explain({ viewer, budget }, async () => {
          await mirror.sync();
          return transfers(mirror.grid, now())
            .filter(
              ({ jobId, fromSiteId, toSiteId }) =>
                (!fromId || fromSiteId === fromId) &&
                (!toId || toSiteId === toId) &&
                (owner === null || mirror.grid.job(jobId)?.userId === owner),
            )
            .slice(0, size);
        });
      },
    }),

    /** How many groups of a standing are shown. */
    groupsShown: (first: number): number => pageSize('first', first, limits),
  };
}
