/** A site's cycle: jobs of its queue start, or go back to the root when the site is not up. */
import { type Grid, queueLimitOf, type Reservation, type SiteEntry, siteCycle } from '../core/index.js';
import { type Cycle, type CycleTools, recordOutcome } from './cycle.js';

/**
 * Who holds copies of each grid-wide licence, as this process saw it last; by licence id. A change of it is what other
 * sites have to be woken for. One a process.
 */
export type SharedLicenceHolders = Map<number, string>;

/** Runs until nothing more can start, or the bound on rounds. Throws what the store throws. */
export async function runSite(
  cycle: Cycle,
  tools: CycleTools,
  siteId: number,
  holders: SharedLicenceHolders,
): Promise<void> {
  const { store, mirror, metrics, limits } = tools;
  let refused = 0;
  for (let round = 0; round < limits.maxRounds; round++) {
    // 1. Take in what was committed until now, and what sites have reserved of the grid-wide licences. (Without such
    //    licences the reservations of two sites cannot touch each other, and nobody has to read them.)
    await cycle.phase('sync', () => mirror.sync());
    const shared = mirror.grid.sharedLicences().length > 0;
    const reservations = shared ? await cycle.phase('reservations', () => store.reservations()) : [];
    const { grid, policy } = mirror;
    const entry = grid.sites.find(({ site }) => site.id === siteId);
    if (entry === undefined) return;
    if (shared) setReservations(grid, reservations);

    // 2. A site that is not up keeps nothing waiting: another may run it.
    const now = tools.now();
    if (entry.site.state !== 'UP') {
      if (entry.queue.length === 0) return;
      const context = cycle.context(policy.version, now);
      const taken = await cycle.phase('take-back', () =>
        store.takeBack(siteId, context, limits.maxTakenBack),
      );
      cycle.add('takenBack', taken.length);
      if (taken.length > 0) await tools.wake(['root']);
      if (taken.length < limits.maxTakenBack) return;
      continue;
    }

    // 3. Plan, with what is now in the mirror.
    const before = entry.reservation;
    const plan = cycle.plan(() =>
      siteCycle(grid, siteId, {
        now,
        policy: policy.document,
        policyVersion: policy.version,
        maxStarts: limits.maxStarts,
        countWaiting: false,
      }),
    );
    grid.setReservation(siteId, plan.reservation);
    const others = shared ? whoMayUseLicences(grid, entry, before, holders) : [];
    if (others.length > 0) await tools.wake(others);
    // A reservation that only moved in time need not be kept: nobody decides by another site's instant alone.
    if (plan.starts.length === 0 && sameClaim(before, plan.reservation)) {
      await wakeRoot(tools, entry, 0);
      return;
    }

    // 4. Apply. What the truth refuses stays in the queue.
    const outcome = await cycle.phase('apply', () =>
      store.applyStarts(siteId, plan.starts, plan.reservation, cycle.context(policy.version, now)),
    );
    recordOutcome('start', metrics, plan.starts, outcome);
    cycle.add('started', outcome.accepted.length);
    cycle.add('refused', outcome.refused.length);
    refused = outcome.refused.length;
    await wakeRoot(tools, entry, outcome.accepted.length);
    if (refused === 0 && !plan.truncated) return;
  }
  if (refused > 0) tools.wakeLater([siteId], limits.refusedPauseMs);
  else await tools.wake([siteId]);
}

/**
 * The site has acted, and the root, if it holds jobs back, may now have some for it: there is room in its queue. A root that
 * has none wakes nobody, so this ends.
 */
async function wakeRoot(tools: CycleTools, entry: SiteEntry, started: number): Promise<void> {
  const { grid, policy } = tools.mirror;
  const limit = queueLimitOf(policy.document);
  if (limit === null || grid.root.length + entry.meta.length === 0) return;
  if (started > 0 || entry.queue.length < Math.max(1, limit)) await tools.wake(['root']);
}

function setReservations(grid: Grid, reservations: readonly Reservation[]): void {
  const bySite = new Map(reservations.map((reservation) => [reservation.siteId, reservation]));
  for (const { site } of grid.sites) grid.setReservation(site.id, bySite.get(site.id) ?? null);
}

/** Two reservations keep the same from others. Their instant moves with every cycle and is no news. */
function sameClaim(a: Reservation | null, b: Reservation | null): boolean {
  return a?.jobId === b?.jobId && a?.licenceIds.join() === b?.licenceIds.join();
}

/**
 * The other sites that ask for a grid-wide licence of which a copy may have come free for them: its holders changed and a
 * copy is free, or this site's reservation claims others than before. It takes a change to wake somebody, never a state
 * alone, so that sites do not wake each other in a circle; a change that falls between two processes is the slow timer's.
 */
function whoMayUseLicences(
  grid: Grid,
  entry: SiteEntry,
  before: Reservation | null,
  holders: SharedLicenceHolders,
): number[] {
  const kinds: string[] = [];
  const claimMoved = !sameClaim(before, entry.reservation);
  for (const { licence, holders: runs } of grid.sharedLicences()) {
    const seen = runs.map(({ jobId, run }) => `${jobId}.${run.epoch}`).join();
    const changed = holders.get(licence.id) !== seen;
    holders.set(licence.id, seen);
    const released = claimMoved && before?.licenceIds.includes(licence.id) === true;
    if (runs.length < licence.copies && (changed || released)) kinds.push(licence.kind);
  }
  return grid.sites
    .filter((other) => other !== entry && kinds.some((kind) => other.requests.has(kind)))
    .map(({ site }) => site.id);
}
