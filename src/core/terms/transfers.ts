/**
 * What the catalog says, for all sites of a grid at once: what a place or a dataset has to do with each site is looked up
 * the first time that it comes up in a pass, not for each job. Answers are by position in the stable site order.
 */

import { type DataCatalog, type LinkQuality, sendS } from '../data/catalog.js';
import type { Job } from '../model.js';

type JobLike = Pick<Job, 'data'>;
type Seconds = Float64Array;

export class Transfers {
  private readonly nothing: Seconds;
  private readonly sandbox: Seconds;
  private readonly access: Seconds;
  private readonly output: Seconds;
  private readonly from = new Map<number, LinkQuality[]>();
  private readonly to = new Map<number, LinkQuality[]>();
  private readonly byDataset = new Map<number, Seconds>();

  constructor(
    private readonly catalog: DataCatalog,
    private readonly siteIds: readonly number[],
  ) {
    this.nothing = new Float64Array(siteIds.length);
    this.sandbox = this.nothing.slice();
    this.access = this.nothing.slice();
    this.output = this.nothing.slice();
  }

  /** As `DataCatalog.sandboxS`; valid until it is asked for again. */
  sandboxS({ data }: JobLike): Seconds {
    if (data === null || data.originSiteId === null) return this.nothing;
    const links = this.linksFrom(data.originSiteId);
    for (let i = 0; i < links.length; i++) this.sandbox[i] = sendS(links[i] as LinkQuality, data.sandboxMb);
    return this.sandbox;
  }

  /** As `DataCatalog.accessS`; valid until it is asked for again. */
  accessS({ data }: JobLike): Seconds {
    if (data === null || data.inputs.length === 0) return this.nothing;
    this.access.fill(0);
    for (const input of data.inputs) {
      if ('siteId' in input) {
        const links = this.linksFrom(input.siteId);
        for (let i = 0; i < links.length; i++)
          (this.access[i] as number) += input.sizeMb / (links[i] as LinkQuality).bandwidthMbPerS;
      } else {
        const seconds = this.datasetS(input.datasetId);
        for (let i = 0; i < seconds.length; i++) (this.access[i] as number) += seconds[i] as number;
      }
    }
    return this.access;
  }

  /** As `DataCatalog.returnS`; valid until it is asked for again. */
  returnS({ data }: JobLike): Seconds {
    if (data === null || data.originSiteId === null || data.outputMb === 0) return this.nothing;
    const links = this.linksTo(data.originSiteId);
    for (let i = 0; i < links.length; i++)
      this.output[i] = data.outputMb / (links[i] as LinkQuality).bandwidthMbPerS;
    return this.output;
  }

  private linksFrom(siteId: number): LinkQuality[] {
    return kept(this.from, siteId, () => this.siteIds.map((id) => this.catalog.link(siteId, id)));
  }

  private linksTo(siteId: number): LinkQuality[] {
    return kept(this.to, siteId, () => this.siteIds.map((id) => this.catalog.link(id, siteId)));
  }

  private datasetS(datasetId: number): Seconds {
    return kept(this.byDataset, datasetId, () =>
      Float64Array.from(this.siteIds, (id) => this.catalog.inputS({ datasetId }, id)),
    );
  }
}

function kept<T>(known: Map<number, T>, key: number, make: () => T): T {
  let value = known.get(key);
  if (value === undefined) {
    value = make();
    known.set(key, value);
  }
  return value;
}
