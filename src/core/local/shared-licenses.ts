/**
 * Grid-wide licenses tie sites together: what one gives back, another may be waiting for. It takes a change to wake somebody,
 * never a state alone, so that sites do not wake each other in a circle.
 */
import type { Grid } from '../grid.js';
import type { Reservation, Start } from '../model.js';

/** The jobs that hold copies of each grid-wide license (by id), as a driver saw them last. */
export type SharedLicenseHolders = Map<number, ReadonlySet<number>>;

/**
 * The other sites that ask for a grid-wide license of which a copy may have come free for them: a holder has gone and a copy is
 * free, or this site's reservation, which was `before`, no longer claims it. Notes in `holders` what it has seen. `starts`:
 * of the site, decided but not in the grid yet.
 */
export function sitesToWake(
  grid: Grid,
  siteId: number,
  before: Reservation | null,
  starts: readonly Start[],
  holders: SharedLicenseHolders,
): number[] {
  const entry = grid.siteEntry(siteId);
  const kinds: string[] = [];
  for (const { license, holders: runs } of grid.sharedLicenses()) {
    const taking = starts.filter(({ licenseIds }) => licenseIds.includes(license.id));
    const held = new Set([...runs, ...taking].map(({ jobId }) => jobId));
    const seen = holders.get(license.id);
    holders.set(license.id, held);
    const left = seen === undefined || [...seen].some((jobId) => !held.has(jobId));
    const released =
      !sameClaim(before, entry.reservation) && before?.licenseIds.includes(license.id) === true;
    if (held.size < license.copies && (left || released)) kinds.push(license.kind);
  }
  return grid.sites
    .filter((other) => other !== entry && kinds.some((kind) => other.requests.has(kind)))
    .map(({ site }) => site.id);
}

/** Whether two reservations are for the same job and keep the same licenses from others, now or later. */
function sameClaim(a: Reservation | null, b: Reservation | null): boolean {
  return a?.jobId === b?.jobId && a?.licenseIds.join() === b?.licenseIds.join();
}

/** Whether other sites can take no notice of the change: without licenses, it is nothing to them when a reservation moves. */
export function sameToOthers(a: Reservation | null, b: Reservation | null): boolean {
  return sameClaim(a, b) && (a === null || a.licenseIds.length === 0 || a.at === b?.at);
}
