/**
 * What the catalog says, for all sites of a grid at once: what a place or a dataset has to do with each site is looked up
 * the first time that it comes up in a pass, not for each job. Answers are by position in the stable site order.
 *
 * Decisions on what is queued on a link (diana.md, "data transfer"): the inputs of the jobs that wait at its end, in either queue,
 * and what is left of those that run there, which have it one after the other since they began. Outputs come later.
 */

import { DataCatalog, imageFetchS, type LinkQuality, sendS } from '../data/catalog.js';
import { Fetches } from '../data/fetches.js';
import type { Grid } from '../grid/grid.js';
import type { DispatchExplanation, Job, JobInput, KnownImage } from '../model.js';
import { ExactSum } from '../structures/exact-sum.js';

type JobLike = Pick<Job, 'data' | 'image'>;
type Seconds = Float64Array;

export class Transfers {
  private readonly nothing: Seconds;
  private readonly sandbox: Seconds;
  private readonly access: Seconds;
  private readonly output: Seconds;
  private readonly queued: Seconds;
  private readonly from = new Map<number, LinkQuality[]>();
  private readonly to = new Map<number, LinkQuality[]>();
  private readonly byDataset = new Map<number, Seconds>();
  private readonly byImage = new Map<string, { known: KnownImage | null; seconds: Seconds }>();
  /** By dataset. */
  private readonly sources = new Map<number, readonly number[]>();
  private readonly catalog: DataCatalog;
  private readonly siteIds: readonly number[];
  /** Made when it is asked for. */
  private links: LinkQueues | null = null;

  constructor(
    private readonly grid: Grid,
    private readonly now: number,
  ) {
    const siteIds = grid.sites.map(({ site }) => site.id);
    this.catalog = grid.index(DataCatalog);
    this.siteIds = siteIds;
    this.nothing = new Float64Array(siteIds.length);
    this.sandbox = this.nothing.slice();
    this.access = this.nothing.slice();
    this.output = this.nothing.slice();
    this.queued = this.nothing.slice();
  }

  /** As `DataCatalog.sandboxS`; valid until it is asked for again. */
  sandboxS({ data }: JobLike): Seconds {
    if (data === null || data.originSiteId === null) return this.nothing;
    const links = this.linksFrom(data.originSiteId);
    for (let i = 0; i < links.length; i++) this.sandbox[i] = sendS(links[i] as LinkQuality, data.sandboxMb);
    return this.sandbox;
  }

  /** As `DataCatalog.accessS`; valid until it is asked for again. */
  accessS({ data, image }: JobLike): Seconds {
    const there = image === null ? this.nothing : this.image(image).seconds;
    if (data === null || data.inputs.length === 0) return there;
    this.access.set(there);
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

  /**
   * Seconds until the links that bring the job's inputs are through with what is queued on them, each link once; valid until it is
   * asked for again.
   */
  queuedS({ data }: JobLike): Seconds {
    if (data === null || data.inputs.length === 0) return this.nothing;
    const queues = this.linkQueues();
    if (queues.empty) return this.nothing;
    const sources = data.inputs.map((input) => this.sourcesOf(input));
    for (let i = 0; i < this.siteIds.length; i++) {
      const to = this.siteIds[i] as number;
      let seconds = 0;
      for (let k = 0; k < sources.length; k++) {
        const from = sources[k]?.[i] as number;
        if (from === to || isAmong(sources, k, i, from)) continue;
        seconds += queues.secondsOf(from, to);
      }
      this.queued[i] = seconds;
    }
    return this.queued;
  }

  /** The job, which waits, comes to the site of this position, or leaves it: in the pass only. */
  queue(job: JobLike, site: number, sign: 1 | -1): void {
    if (job.data === null || job.data.inputs.length === 0) return;
    this.linkQueues().count(job, this.siteIds[site] as number, sign);
  }

  /** What an explanation says of the job's image. */
  imageOf({ image }: JobLike): Pick<DispatchExplanation, 'image'> {
    return image === null ? {} : { image: this.image(image).known };
  }

  private linkQueues(): LinkQueues {
    this.links ??= new LinkQueues(this.grid, this.catalog, this.now);
    return this.links;
  }

  private linksFrom(siteId: number): LinkQuality[] {
    return kept(this.from, siteId, () => this.siteIds.map((id) => this.catalog.link(siteId, id)));
  }

  private linksTo(siteId: number): LinkQuality[] {
    return kept(this.to, siteId, () => this.siteIds.map((id) => this.catalog.link(id, siteId)));
  }

  /** By position of a site, from where it is brought there; the site itself, where it is there or nowhere. */
  private sourcesOf(input: JobInput): readonly number[] {
    const found = () => this.siteIds.map((to) => this.catalog.sourceOf(input, to) ?? to);
    return 'siteId' in input ? found() : kept(this.sources, input.datasetId, found);
  }

  /** Looked for at all sites once. */
  private image(name: string): { known: KnownImage | null; seconds: Seconds } {
    return kept(this.byImage, name, () => {
      const known = this.catalog.image(name);
      const [there, fetchS] = [new Set(known?.siteIds), imageFetchS(known)];
      return { known, seconds: Float64Array.from(this.siteIds, (id) => (there.has(id) ? 0 : fetchS)) };
    });
  }

  private datasetS(datasetId: number): Seconds {
    return kept(this.byDataset, datasetId, () =>
      Float64Array.from(this.siteIds, (id) => this.catalog.inputS({ datasetId }, id)),
    );
  }
}

/** Whether one of the first `count` has the same source for the site at `i`: each link counts once. */
function isAmong(sources: readonly (readonly number[])[], count: number, i: number, from: number): boolean {
  for (let k = 0; k < count; k++) if (sources[k]?.[i] === from) return true;
  return false;
}

/** What is queued on the links as a pass goes on. */
class LinkQueues {
  /** By the site where the link ends, then by the one where it begins. */
  private readonly waitingMb = new Map<number, Map<number, ExactSum>>();
  private readonly underWayS = new Map<number, Map<number, number>>();

  constructor(
    grid: Grid,
    private readonly catalog: DataCatalog,
    now: number,
  ) {
    const fetches = grid.index(Fetches);
    for (const { site, queue, meta } of grid.sites) {
      for (const waiting of [fetches.of(queue), fetches.of(meta)]) {
        for (const [siteId, { value }] of waiting?.places ?? [])
          this.add({ siteId, sizeMb: value }, site.id, 1);
        for (const [datasetId, jobs] of waiting?.datasets ?? []) this.add({ datasetId }, site.id, 1, jobs);
      }
      for (const { start, inputs } of fetches.at(site.id))
        for (const input of inputs) this.run(input, site.id, start);
      for (const [from, end] of this.underWayS.get(site.id) ?? [])
        this.underWayS.get(site.id)?.set(from, Math.max(0, end - now));
    }
  }

  get empty(): boolean {
    return this.waitingMb.size + this.underWayS.size === 0;
  }

  secondsOf(from: number, to: number): number {
    const megabytes = this.waitingMb.get(to)?.get(from)?.value ?? 0;
    const underWayS = this.underWayS.get(to)?.get(from) ?? 0;
    return underWayS + megabytes / this.catalog.link(from, to).bandwidthMbPerS;
  }

  count({ data }: JobLike, to: number, sign: 1 | -1): void {
    for (const input of data?.inputs ?? []) this.add(input, to, sign);
  }

  private add(input: JobInput, to: number, sign: 1 | -1, times = 1): void {
    const from = this.catalog.sourceOf(input, to);
    if (from === null || from === to) return;
    const links = kept(this.waitingMb, to, () => new Map<number, ExactSum>());
    const sum = kept(links, from, () => new ExactSum());
    const megabytes = this.catalog.sizeMbOf(input) * times;
    if (sign === 1) sum.add(megabytes);
    else sum.remove(megabytes);
  }

  private run(input: JobInput, to: number, start: number): void {
    const from = this.catalog.sourceOf(input, to);
    if (from === null || from === to) return;
    const ends = kept(this.underWayS, to, () => new Map<number, number>());
    ends.set(from, Math.max(start, ends.get(from) ?? start) + this.catalog.inputS(input, to));
  }
}

function kept<K, T>(known: Map<K, T>, key: K, make: () => T): T {
  let value = known.get(key);
  if (value === undefined) {
    value = make();
    known.set(key, value);
  }
  return value;
}
