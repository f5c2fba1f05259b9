/** Congestion of sites, what quotas make of the jobs in meta-queues, what is on its way: as the schedulers see it now. */
import {
  type CongestionStatus,
  congestion,
  type TransferStatus,
  transfers,
  userStandings,
} from '../../core/index.js';
import type { Budget } from '../admission/budget.js';
import type { Viewer } from '../auth.js';
import {
  type Connection,
  connection,
  decodeCursor,
  encodeCursor,
  type ForwardArguments,
  pageSize,
} from '../connections.js';
import type { QueryInputTransfersArgs } from '../generated/types.js';
import { localId } from '../ids.js';
import type { SiteCongestionModel, TransferModel, UserStandingModel } from '../models.js';
import { guarded, ownerOnly } from './access.js';
import type { ServiceParts } from './parts.js';

/** `nth`: of those of its job that end at the same time. */
type Placed = TransferStatus & { nth: number };

/** In the order in which they are: by end, then by job. */
function placed(underWay: readonly TransferStatus[]): Placed[] {
  let nth = 0;
  return underWay.map((one, i) => {
    const before = underWay[i - 1];
    nth = before?.to === one.to && before.jobId === one.jobId ? nth + 1 : 0;
    return { ...one, nth };
  });
}

const isBehind = (
  { to, jobId, nth }: Placed,
  [end, job, last]: readonly [number, number, number],
): boolean => (to !== end ? to > end : jobId !== job ? jobId > job : nth > last);

export function createSharesService({ mirror, queries, limits, shares, now }: ServiceParts) {
  return {
    ...guarded({
      async congestion(
        viewer: Viewer,
        { first, after }: ForwardArguments,
        budget: Budget,
      ): Promise<Connection<SiteCongestionModel>> {
        const size = pageSize('first', first, limits);
        const behind = after ? decodeCursor('after', after, 'congestion', ['text'])[0] : '';
        const at = now();
        const [known, { agentSilentS }] = await shares.explain({ viewer, budget }, async () => {
          await mirror.sync();
          const policy = mirror.policy.document;
          return [congestion(mirror.grid, { policy, now: at }), policy.timers] as const;
        });
        const byId = new Map(known.map((site) => [site.siteId, site]));
        const rows = (await queries.sitesByIds([...byId.keys()]))
          .filter(({ name }) => name > behind)
          .sort((a, b) => (a.name < b.name ? -1 : 1))
          .slice(0, size + 1)
          .map(({ id, name, agentSeenAt }) => {
            const site = byId.get(id) as CongestionStatus;
            const heard = agentSeenAt !== null && at - agentSeenAt <= agentSilentS;
            return { ...site, name, alive: site.up && heard, lastHeardAt: agentSeenAt };
          });
        return connection(rows, size, ({ name }) => encodeCursor('congestion', [name]), {
          continued: behind !== '',
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
      async inputTransfers(
        viewer: Viewer,
        { fromSiteId: from, toSiteId: to, first, after }: QueryInputTransfersArgs,
        budget: Budget,
      ): Promise<Connection<TransferModel>> {
        const size = pageSize('first', first, limits);
        const behind = after
          ? decodeCursor('after', after, 'transfer', ['time', 'bigNumber', 'number'])
          : null;
        const owner = ownerOnly(viewer);
        const [fromId, toId] = [
          from && localId('site', from, 'fromSiteId'),
          to && localId('site', to, 'toSiteId'),
        ];
        const rows = await shares.explain({ viewer, budget }, async () => {
          await mirror.sync();
          return placed(transfers(mirror.grid, now()))
            .filter((one) => behind === null || isBehind(one, behind))
            .filter(
              ({ jobId, fromSiteId, toSiteId }) =>
                (!fromId || fromSiteId === fromId) &&
                (!toId || toSiteId === toId) &&
                (owner === null || mirror.grid.job(jobId)?.userId === owner),
            )
            .slice(0, size + 1);
        });
        const cursorOf = ({ to, jobId, nth }: Placed) => encodeCursor('transfer', [to, jobId, nth]);
        return connection(rows, size, cursorOf, { continued: behind !== null });
      },
    }),

    /** How many groups of a standing are shown. */
    groupsShown: (first: number): number => pageSize('first', first, limits),
  };
}
