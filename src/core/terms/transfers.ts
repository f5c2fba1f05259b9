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
  private readonly sources = new Map<number, readonly (LinksFrom | null)[]>();
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
    const sources = data.inputs.map((input) => this.sourcesOf(input));
    for (let i = 0; i < this.siteIds.length; i++) {
      let seconds = 0;
      for (let k = 0; k < sources.length; k++) {
        const from = sources[k]?.[i] ?? null;
        if (from !== null && !isAmong(sources, k, i, from)) seconds += from.seconds[i] as number;
      }
      this.queued[i] = seconds;
    }
    return this.queued;
  }

  /** The job, which waits, comes to the site of this position, or leaves it: in the pass only. */
  queue(job: JobLike, site: number, sign: 1 | -1): void {
    if (job.data === null || job.data.inputs.length === 0) return;
    const queues = this.linkQueues();
    for (const input of job.data.inputs) queues.add(input, site, sign);
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

  /** By position of a site, the links on which it is brought there; null: it is there, or nowhere. */
  private sourcesOf(input: JobInput): readonly (LinksFrom | null)[] {
    const queues = this.linkQueues();
    const found = () => this.siteIds.map((_, to) => queues.source(input, to));
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
function isAmong(
  sources: readonly (readonly (LinksFrom | null)[])[],
  count: number,
  i: number,
  from: LinksFrom,
): boolean {
  for (let k = 0; k < count; k++) if (sources[k]?.[i] === from) return true;
  return false;
}

/** What is queued on the links that begin at one site, by position of the site where they end. */
class LinksFrom {
  /** Until a link is through with it. */
  readonly seconds: Float64Array;
  private readonly waitingMb = new Map<number, ExactSum>();
  private readonly underWayS: Float64Array;

  constructor(private readonly links: readonly LinkQuality[]) {
    this.seconds = new Float64Array(links.length);
    this.underWayS = new Float64Array(links.length);
  }

  /** `sign`: −1 where it waits no more. */
  wait(to: number, megabytes: number, sign: 1 | -1): void {
    const waiting = kept(this.waitingMb, to, () => new ExactSum());
    if (sign === 1) waiting.add(megabytes);
    else waiting.remove(megabytes);
    this.count(to);
  }

  /** `seconds` from now on. */
  run(to: number, seconds: number): void {
    this.underWayS[to] = seconds;
    this.count(to);
  }

  private count(to: number): void {
    const { bandwidthMbPerS } = this.links[to] as LinkQuality;
    const megabytes = this.waitingMb.get(to)?.value ?? 0;
    this.seconds[to] = (this.underWayS[to] as number) + megabytes / bandwidthMbPerS;
  }
}

/** What is queued on the links as a pass goes on. */
class LinkQueues {
  /** By the site where they begin. */
  private readonly links = new Map<number, LinksFrom>();
  private readonly siteIds: readonly number[];

  constructor(
    grid: Grid,
    private readonly catalog: DataCatalog,
    now: number,
  ) {
    this.siteIds = grid.sites.map(({ site }) => site.id);
    const fetches = grid.index(Fetches);
    for (const [to, { site, queue, meta }] of grid.sites.entries()) {
      for (const waiting of [fetches.of(queue), fetches.of(meta)]) {
        for (const [siteId, { value }] of waiting?.places ?? []) this.add({ siteId, sizeMb: value }, to, 1);
        for (const [datasetId, jobs] of waiting?.datasets ?? []) this.add({ datasetId }, to, 1, jobs);
      }
      const ends = new Map<LinksFrom, number>();
      for (const { start, inputs } of fetches.at(site.id))
        for (const input of inputs) {
          const from = this.source(input, to);
          if (from === null) continue;
          const begin = Math.max(start, ends.get(from) ?? start);
          ends.set(from, begin + catalog.inputS(input, site.id));
        }
      for (const [from, end] of ends) from.run(to, Math.max(0, end - now));
    }
  }

  /** The links on which the input comes to the site of this position; null: it is there, or nowhere. */
  source(input: JobInput, to: number): LinksFrom | null {
    const siteId = this.siteIds[to] as number;
    const from = this.catalog.sourceOf(input, siteId);
    if (from === null || from === siteId) return null;
    const links = () => new LinksFrom(this.siteIds.map((id) => this.catalog.link(from, id)));
    return kept(this.links, from, links);
  }

  /** So many jobs that wait for the input come to the site of this position, or leave it. */
  add(input: JobInput, to: number, sign: 1 | -1, jobs = 1): void {
    this.source(input, to)?.wait(to, this.catalog.sizeMbOf(input) * jobs, sign);
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
