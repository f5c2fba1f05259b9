/** The rules of job-ratio.md. */
import { DataCatalog } from '../data/catalog.js';
import { averagesOf, JobHistory, noRuns, totalsWith } from '../data/history.js';
import { Batcher } from '../dispatch/job-ratio/batches.js';
import { jobData } from '../model.js';
import { inRankOrder, ranksOf, restsOf, sharesOf } from '../terms/site-rank.js';
import { anyJob, type Rules } from './rule.js';

export const jobRatioRules: Rules = {
  jr_history: ({ referencePower, runs }: HistoryInput) => {
    let totals = noRuns({ application: '', userId: 0, kinds: '' });
    for (const { turnaround, io, sitePower } of runs)
      totals = totalsWith(totals, { turnaroundS: turnaround, ioS: io, sitePower }, referencePower);
    const history = new JobHistory();
    if (totals.count > 0) history.set(totals);
    const { computation, dataIntensive } = history.ratioOf(anyJob);
    const { turnaroundS, executionS, ioS } = averagesOf({ ...totals, count: Math.max(1, totals.count) });
    return {
      count: totals.count,
      averageTurnaround: turnaroundS,
      averageExecution: executionS,
      averageIo: ioS,
      computation,
      dataIntensive,
    };
  },

  jr_rank: ({ computation, dataIntensive, sites }: RankInput) => {
    const dataAccessCost = sites.map(({ transfers }) => accessS(transfers));
    const ppr = sharesOf(sites.map(({ processPower }) => processPower));
    const dpr = restsOf(dataAccessCost);
    const qr = restsOf(sites.map(({ queued }) => queued));
    const rank = ranksOf({ computation, dataIntensive }, ppr, dpr, qr);
    return {
      sites: sites.map(({ id }, i) => ({
        id,
        ppr: ppr[i],
        dpr: dpr[i],
        qr: qr[i],
        dataAccessCost: dataAccessCost[i],
        rank: rank[i],
      })),
      order: [...inRankOrder(rank, [...sites.keys()])].map((i) => sites[i]?.id),
    };
  },

  jr_batches: ({ available, jobs }: BatchesInput) => {
    const sites = Object.keys(available);
    const batcher = new Batcher(sites.map((site) => available[site] as number));
    const batches: string[][] = sites.map(() => []);
    const unassigned: string[] = [];
    for (const { id, ranked } of jobs) {
      const site = batcher.siteFor(ranked.map((name) => sites.indexOf(name)));
      if (site === -1) unassigned.push(id);
      else {
        batcher.take(site);
        batches[site]?.push(id);
      }
    }
    return { batches: Object.fromEntries(sites.map((site, i) => [site, batches[i]])), unassigned };
  },
};

/** As of inputs that each lie at a place of their own, with a link of that bandwidth to the site. */
function accessS(transfers: RankInput['sites'][number]['transfers']): number {
  const catalog = new DataCatalog();
  const inputs = transfers.map(({ sizeMb, bandwidthMbPerS }, i) => {
    const link = { fromSiteId: i + 1, toSiteId: 0, bandwidthMbPerS: bandwidthMbPerS, rttS: 0, loss: 0 };
    catalog.setLink(link);
    return { sizeMb, siteId: i + 1 };
  });
  return catalog.accessS({ data: jobData({ inputs }), image: null }, 0);
}

interface HistoryInput {
  referencePower: number;
  runs: { turnaround: number; io: number; sitePower: number }[];
}

interface RankInput {
  computation: number;
  dataIntensive: number;
  sites: {
    id: string;
    processPower: number;
    queued: number;
    transfers: { sizeMb: number; bandwidthMbPerS: number }[];
  }[];
}

interface BatchesInput {
  available: Record<string, number>;
  jobs: { id: string; ranked: string[] }[];
}
