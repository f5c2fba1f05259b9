/** What was used, over time and by whom. */
import { MAX } from '../../platform/limits.js';
import { turns } from '../../platform/turns.js';
import type { InUseRow, LoadRow, LostWorkRow, UsageRow } from '../../store/history.js';
import type { Budget } from '../admission/budget.js';
import { accountOf } from '../admission/shares.js';
import { inTurn } from '../admission/turns.js';
import type { Viewer } from '../auth.js';
import { text, within } from '../check.js';
import { pageSize } from '../connections.js';
import { badInput } from '../errors.js';
import type {
  QueryLicenseHistoryArgs,
  QueryLoadHistoryArgs,
  QueryLostWorkArgs,
  QueryResourceHistoryArgs,
  QueryUsageArgs,
} from '../generated/types.js';
import { localId } from '../ids.js';
import { guarded, ownerOnly } from './access.js';
import type { ServiceParts } from './parts.js';

const DAY_S = 86_400;

/** Null: the whole grid. */
const siteGiven = (site: string | null | undefined): number | null =>
  site == null ? null : localId('site', site, 'siteId');

/** For whom something is read, and until when. */
type Asker = { viewer: Viewer; budget: Budget };

export function createHistoryService({ queries, limits, now }: ServiceParts) {
  function span(from: Date, to: Date | null | undefined): { from: number; to: number } {
    const end = to ? to.getTime() / 1000 : now();
    const start = from.getTime() / 1000;
    if (!(start < end)) throw badInput('from', from, to ? 'a time before `to`' : 'a time in the past');
    if (end - start > MAX.historyDays * DAY_S)
      throw badInput('from', from, `up to ${MAX.historyDays} days before \`to\``);
    return { from: start, to: end };
  }

  // A long window reads a large part of its tables: one at a time, so that these never take all connections to the database, and users in
  // turn. What waits goes with its request.
  const oneAtATime = inTurn();
  const read = <T>({ viewer, budget }: Asker, work: () => Promise<T>): Promise<T> => {
    const account = accountOf(viewer);
    return oneAtATime(account.name, budget.signal, async () => {
      await turns.turn(account);
      return work();
    });
  };

  const window = ({ from, to, points }: Pick<QueryLoadHistoryArgs, 'from' | 'to' | 'points'>) => ({
    ...span(from, to),
    points: within('points', points, 1, MAX.historyPoints),
  });

  return guarded({
    async loadHistory(
      viewer: Viewer,
      { siteId: site, ...given }: QueryLoadHistoryArgs,
      budget: Budget,
    ): Promise<LoadRow[]> {
      const siteId = siteGiven(site);
      const asked = window(given);
      return read({ viewer, budget }, () => queries.loadHistory(asked, siteId));
    },

    async licenseHistory(
      viewer: Viewer,
      { kind, ...given }: QueryLicenseHistoryArgs,
      budget: Budget,
    ): Promise<InUseRow[]> {
      const asked = window(given);
      const name = text('kind', kind, MAX.nameChars, 1);
      return read({ viewer, budget }, () => queries.licenseHistory(asked, name));
    },

    async resourceHistory(
      viewer: Viewer,
      { kind, siteId: site, ...given }: QueryResourceHistoryArgs,
      budget: Budget,
    ): Promise<InUseRow[]> {
      const siteId = siteGiven(site);
      const asked = window(given);
      const name = text('kind', kind, MAX.nameChars, 1);
      return read({ viewer, budget }, () => queries.resourceHistory(asked, name, siteId));
    },

    /** Users see their own share only. */
    async usage(
      viewer: Viewer,
      { by, from, to, first }: QueryUsageArgs,
      budget: Budget,
    ): Promise<UsageRow[]> {
      const limit = pageSize('first', first, limits);
      const asked = span(from, to);
      return read({ viewer, budget }, () =>
        queries.usage(asked, { by, owner: ownerOnly(viewer), now: now(), limit }),
      );
    },

    /** Users see what their own jobs lost. */
    async lostWork(viewer: Viewer, { from, to }: QueryLostWorkArgs, budget: Budget): Promise<LostWorkRow[]> {
      const asked = span(from, to);
      return read({ viewer, budget }, () => queries.lostWork(asked, ownerOnly(viewer)));
    },
  });
}
