/** Congestion of sites, what quotas make of the jobs in meta-queues, what is on its way: as the schedulers see it now. */
import { congestion, transfers, userStandings } from '../../core/index.js';
import type { Budget } from '../admission/budget.js';
import type { Viewer } from '../auth.js';
import { pageSize } from '../connections.js';
import type { QueryTransfersArgs } from '../generated/types.js';
import { localId } from '../ids.js';
import type { SiteCongestionModel, TransferModel, UserStandingModel } from '../models.js';
import { guarded, ownerOnly } from './access.js';
import type { ServiceParts } from './parts.js';

export function createSharesService({ mirror, queries, limits, shares, now }: ServiceParts) {
  return {
    ...guarded({
      async congestion(viewer: Viewer, first: number, budget: Budget): Promise<SiteCongestionModel[]> {
        const sites = await queries.sites('', pageSize('first', first, limits));
        const at = now();
        const [known, { agentSilentS }] = await shares.explain({ viewer, budget }, async () => {
          await mirror.sync();
          const policy = mirror.policy.document;
          return [congestion(mirror.grid, { policy, now: at }), policy.timers] as const;
        });
        const byId = new Map(known.map((site) => [site.siteId, site]));
        return sites.flatMap(({ id, agentSeenAt }) => {
          const site = byId.get(id);
          if (!site) return [];
          const heard = agentSeenAt !== null && at - agentSeenAt <= agentSilentS;
          return [{ ...site, alive: site.up && heard, lastHeardAt: agentSeenAt }];
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
        { fromSiteId: from, toSiteId: to, first }: QueryTransfersArgs,
        budget: Budget,
      ): Promise<TransferModel[]> {
        const size = pageSize('first', first, limits);
        const owner = ownerOnly(viewer);
        const [fromId, toId] = [
          from && localId('site', from, 'fromSiteId'),
          to && localId('site', to, 'toSiteId'),
        ];
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
