/** What running jobs fetch from other sites, as schedulers reckon with it (diana.md, "data transfer"): for those who ask. */
import { DataCatalog } from '../data/catalog.js';
import type { Grid } from '../grid/grid.js';
import type { JobInput } from '../model.js';

/** One input of a running job that is on its way to the job's site. */
export interface TransferStatus {
  jobId: number;
  input: JobInput;
  fromSiteId: number;
  toSiteId: number;
  sizeMb: number;
  /** Epoch seconds. Jobs at one site have what they fetch from another one after the other, since they began. */
  from: number;
  to: number;
}

/** Those that have not ended by `now`, next end first. */
export function transfers(grid: Grid, now: number): TransferStatus[] {
  const catalog = grid.index(DataCatalog);
  const underWay: TransferStatus[] = [];
  for (const { site, resources } of grid.sites) {
    /** By the site that they come from: when the last one has come. */
    const ends = new Map<number, number>();
    const runs = resources.runs.toSorted((a, b) => a.run.start - b.run.start || a.jobId - b.jobId);
    for (const { jobId, run } of runs) {
      for (const input of grid.job(jobId)?.data?.inputs ?? []) {
        const fromSiteId = catalog.sourceOf(input, site.id);
        if (fromSiteId === null || fromSiteId === site.id) continue;
        const from = Math.max(run.start, ends.get(fromSiteId) ?? run.start);
        const to = from + catalog.inputS(input, site.id);
        ends.set(fromSiteId, to);
        if (to > now)
          underWay.push({
            jobId,
            input,
            fromSiteId,
            toSiteId: site.id,
            sizeMb: catalog.sizeMbOf(input),
            from,
            to,
          });
      }
    }
  }
  return underWay.sort((a, b) => a.to - b.to || a.jobId - b.jobId);
}
