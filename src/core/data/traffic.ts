/**
 * Arrivals and services at sites over a sliding window (diana.md, "Congestion and migration"), counted in intervals of fixed
 * boundaries: what is counted depends on the times only, not on how the driver came by them.
 */
import type { Grid, GridListener } from '../grid/grid.js';

export const INTERVAL_S = 5;
/** Intervals kept: the widest window that a policy may ask for, one hour. */
const KEPT = 720;

/** Of all sites, as drivers tell it; of one that nobody has told of, none. */
export class Traffic implements GridListener {
  private readonly bySite = new Map<number, SiteTraffic>();

  constructor(private readonly grid: Pick<Grid, 'sites'>) {}

  sitesChanged(): void {
    const there = new Set(this.grid.sites.map(({ site }) => site.id));
    for (const siteId of this.bySite.keys()) if (!there.has(siteId)) this.bySite.delete(siteId);
  }

  of(siteId: number): SiteTraffic {
    let traffic = this.bySite.get(siteId);
    if (traffic === undefined) {
      traffic = new SiteTraffic();
      this.bySite.set(siteId, traffic);
    }
    return traffic;
  }
}

export class SiteTraffic {
  /** By interval number modulo KEPT. */
  private readonly arrivals = new Float64Array(KEPT);
  private readonly services = new Float64Array(KEPT);
  /** The latest interval that anything was counted in. */
  private latest = -Infinity;

  /** So many jobs came to the site's queues at the time. */
  arrived(at: number, jobs = 1): void {
    this.count(this.arrivals, at, jobs);
  }

  /** So many of its runs ended at the time. */
  served(at: number, jobs = 1): void {
    this.count(this.services, at, jobs);
  }

  /** Jobs a second over the window that ends now. */
  rates(now: number, windowS: number): { arrival: number; service: number } {
    const last = Math.floor(now / INTERVAL_S);
    const intervals = Math.min(KEPT, Math.ceil(windowS / INTERVAL_S));
    let arrivals = 0;
    let services = 0;
    for (let interval = last; interval > last - intervals; interval--) {
      if (interval > this.latest || interval <= this.latest - KEPT) continue;
      arrivals += this.arrivals[place(interval)] as number;
      services += this.services[place(interval)] as number;
    }
    const seconds = intervals * INTERVAL_S;
    return { arrival: arrivals / seconds, service: services / seconds };
  }

  private count(counts: Float64Array, at: number, jobs: number): void {
    const interval = Math.floor(at / INTERVAL_S);
    if (interval <= this.latest - KEPT) return;
    if (interval > this.latest) {
      // What lies between is empty, and takes the place of what is too old.
      for (let next = Math.max(this.latest + 1, interval - KEPT + 1); next <= interval; next++) {
        this.arrivals[place(next)] = 0;
        this.services[place(next)] = 0;
      }
      this.latest = interval;
    }
    counts[place(interval)] = (counts[place(interval)] as number) + jobs;
  }
}

/** Intervals before the origin of time are negative. */
const place = (interval: number): number => ((interval % KEPT) + KEPT) % KEPT;
