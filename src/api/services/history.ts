/** What was used, over time and by whom. */
import { MAX } from '../../platform/limits.js';
import type { LicenseUseRow, LoadRow, UsageRow } from '../../store/history.js';
import type { Viewer } from '../auth.js';
import { text, within } from '../check.js';
import { pageSize } from '../connections.js';
import { badInput } from '../errors.js';
import type {
  QueryLicenseHistoryArgs,
  QueryLoadHistoryArgs,
  QueryUsageArgs,
} from '../generated/resolvers-types.js';
import { localId } from '../ids.js';
import { guarded, ownerOnly } from './access.js';
import type { ServiceParts } from './parts.js';

const DAY_S = 86_400;

export function createHistoryService({ queries, limits, now }: ServiceParts) {
  function span(from: Date, to: Date | null | undefined): { from: number; to: number } {
    const end = to ? to.getTime() / 1000 : now();
    const start = from.getTime() / 1000;
    if (!(start < end)) throw badInput('from', from, to ? 'a time before `to`' : 'a time in the past');
    if (end - start > MAX.historyDays * DAY_S)
      throw badInput('from', from, `up to ${MAX.historyDays} days before \`to\``);
    return { from: start, to: end };
  }
  const window = ({ from, to, points }: Pick<QueryLoadHistoryArgs, 'from' | 'to' | 'points'>) => ({
    ...span(from, to),
    points: within('points', points, 1, MAX.historyPoints),
  });

  return guarded({
    async loadHistory(_viewer: Viewer, { site, ...given }: QueryLoadHistoryArgs): Promise<LoadRow[]> {
      const siteId = site === null || site === undefined ? null : localId('site', site, 'site');
      return queries.loadHistory(window(given), siteId);
    },

    async licenseHistory(
      _viewer: Viewer,
      { kind, ...given }: QueryLicenseHistoryArgs,
    ): Promise<LicenseUseRow[]> {
      return queries.licenseHistory(window(given), text('kind', kind, MAX.nameChars, 1));
    },

    /** Users see their own share only. */
    async usage(viewer: Viewer, { by, from, to, first }: QueryUsageArgs): Promise<UsageRow[]> {
      const limit = pageSize('first', first, limits);
      return queries.usage(span(from, to), { by, owner: ownerOnly(viewer), now: now(), limit });
    },
  });
}
