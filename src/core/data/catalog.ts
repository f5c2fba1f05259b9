/**
 * Where data lies and what the network between the sites is like: what moving a job's files costs.
 *
 * Sites without a known link are taken to have a poor one, so that an unmeasured way is used only where nothing else is. An image comes from its
 * registry, to which nobody measures the way: where it does not lie yet it costs as much everywhere.
 */
import type { Dataset, Job, JobInput, KnownImage, Link, SiteImages } from '../model.js';

/** What a way through the network is like. */
export type LinkQuality = Pick<Link, 'bandwidthMbPerS' | 'rttS' | 'loss'>;

/** Between two sites of which nothing is known. */
export const UNKNOWN_LINK: LinkQuality = { bandwidthMbPerS: 10, rttS: 0.1, loss: 0 };
/** Within a site nothing is moved. */
const LOCAL: LinkQuality = { bandwidthMbPerS: Infinity, rttS: 0, loss: 0 };

/** Seconds to send so much: round trip and transfer, longer by what is lost and sent again (diana.md, network cost). */
export const sendS = ({ rttS, bandwidthMbPerS, loss }: LinkQuality, sizeMb: number): number =>
  (rttS + sizeMb / bandwidthMbPerS) / (1 - loss);

export class DataCatalog {
  /** Changes whenever a dataset, a link or an image does: what was worked out before may no longer hold. */
  version = 0;
  private readonly datasets = new Map<number, Dataset>();
  private readonly links = new Map<number, Map<number, Link>>();
  /** By site, then by name: megabytes. */
  private readonly images = new Map<number, ReadonlyMap<string, number>>();

  /** Adds a dataset or replaces what is known of it. Throws on a size below 0. */
  setDataset(dataset: Dataset): void {
    if (!(dataset.sizeMb >= 0 && dataset.sizeMb < Infinity))
      throw new Error(`dataset.sizeMb is ${dataset.sizeMb}; accepted: a finite number from 0`);
    this.version++;
    this.datasets.set(dataset.id, dataset);
  }

  /** Jobs that still name it read nothing from then on. */
  removeDataset(datasetId: number): void {
    this.version++;
    this.datasets.delete(datasetId);
  }

  /** Replaces what is known of the images at a site. */
  setImages({ siteId, sizesMb }: SiteImages): void {
    this.version++;
    const images = new Map(Object.entries(sizesMb));
    if (images.size > 0) this.images.set(siteId, images);
    else this.images.delete(siteId);
  }

  /** Null: it lies nowhere, and nobody can say how large it is. */
  image(name: string): KnownImage | null {
    const siteIds: number[] = [];
    let sizeMb = 0;
    for (const [siteId, sizes] of this.images) {
      const here = sizes.get(name);
      if (here === undefined) continue;
      siteIds.push(siteId);
      sizeMb = Math.max(sizeMb, here);
    }
    return siteIds.length === 0 ? null : { sizeMb, siteIds: siteIds.sort((a, b) => a - b) };
  }

  /** Adds a link or replaces what is known of it. Throws on a bandwidth, time or loss that cannot be. */
  setLink(link: Link): void {
    const { bandwidthMbPerS, rttS, loss } = link;
    if (!(bandwidthMbPerS > 0))
      throw new Error(`link.bandwidthMbPerS is ${bandwidthMbPerS}; accepted: a number above 0`);
    if (!(rttS >= 0)) throw new Error(`link.rttS is ${rttS}; accepted: a number from 0`);
    if (!(loss >= 0 && loss < 1)) throw new Error(`link.loss is ${loss}; accepted: a number from 0, below 1`);
    this.version++;
    let from = this.links.get(link.fromSiteId);
    if (from === undefined) {
      from = new Map();
      this.links.set(link.fromSiteId, from);
    }
    from.set(link.toSiteId, link);
  }

  removeLink(fromSiteId: number, toSiteId: number): void {
    this.version++;
    this.links.get(fromSiteId)?.delete(toSiteId);
  }

  /** The way from one site to another; nothing in the way within one. */
  link(fromSiteId: number, toSiteId: number): LinkQuality {
    if (fromSiteId === toSiteId) return LOCAL;
    return this.links.get(fromSiteId)?.get(toSiteId) ?? UNKNOWN_LINK;
  }

  /** What is known of a dataset; null: it is not, or no longer, there. */
  dataset(datasetId: number): Dataset | null {
    return this.datasets.get(datasetId) ?? null;
  }

  /**
   * Seconds that it takes to bring the job's inputs and its image to the site: each input from its best replica, one after the other,
   * nothing for what is there (the data access cost of job-ratio.md, and the inputs' part of diana.md's data cost).
   */
  accessS({ data, image }: Pick<Job, 'data' | 'image'>, siteId: number): number {
    let seconds = image === null ? 0 : this.imageS(image, siteId);
    if (data !== null) for (const input of data.inputs) seconds += this.inputS(input, siteId);
    return seconds;
  }

  /** Seconds until the job's sandbox is at the site (the network cost of diana.md); 0 from nowhere in the grid. */
  sandboxS({ data }: Pick<Job, 'data'>, siteId: number): number {
    if (data === null || data.originSiteId === null) return 0;
    return sendS(this.link(data.originSiteId, siteId), data.sandboxMb);
  }

  /** Seconds that it takes to bring the job's output from the site to where it was submitted. */
  returnS({ data }: Pick<Job, 'data'>, siteId: number): number {
    if (data === null || data.originSiteId === null || data.outputMb === 0) return 0;
    return data.outputMb / this.link(siteId, data.originSiteId).bandwidthMbPerS;
  }

  /** Seconds that it takes to bring an image to the site; 0 for one that lies there, or of which nobody knows the size. */
  private imageS(name: string, siteId: number): number {
    return this.images.get(siteId)?.has(name) ? 0 : imageFetchS(this.image(name));
  }

  /** Seconds that it takes to bring one input to the site. */
  inputS(input: JobInput, siteId: number): number {
    const from = this.sourceOf(input, siteId);
    return from === null ? 0 : this.sizeMbOf(input) / this.link(from, siteId).bandwidthMbPerS;
  }

  /**
   * Where the site gets an input: the replica with the widest way, of equals the first; null: from nowhere. Without a replica nobody
   * can say from where: it costs the same everywhere.
   */
  sourceOf(input: JobInput, siteId: number): number | null {
    if ('siteId' in input) return input.siteId;
    let source: number | null = null;
    let best = 0;
    for (const from of this.datasets.get(input.datasetId)?.siteIds ?? []) {
      const { bandwidthMbPerS } = this.link(from, siteId);
      if (bandwidthMbPerS <= best) continue;
      best = bandwidthMbPerS;
      source = from;
    }
    return source;
  }

  /** 0 for a dataset that nobody knows. */
  sizeMbOf(input: JobInput): number {
    return 'siteId' in input ? input.sizeMb : (this.datasets.get(input.datasetId)?.sizeMb ?? 0);
  }
}

/** Seconds that it takes to fetch an image from its registry; 0 for one of which nobody knows the size. */
export const imageFetchS = (known: KnownImage | null): number =>
  (known?.sizeMb ?? 0) / UNKNOWN_LINK.bandwidthMbPerS;
