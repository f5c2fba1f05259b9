/** A site's cycle: jobs of its queue start, or go back to the root when the site is not up. */
import {
  type Grid,
  imageOf,
  keepsPromises,
  promisesFrom,
  queueLimitOf,
  type Reservation,
  rootHasMoreFor,
  type SharedLicenseHolders,
  type SiteEntry,
  type SitePlan,
  sameToOthers,
  siteCycle,
  sitesToWake,
} from '../core/index.js';
import type { KeptPromises } from '../store/store.js';
import { applyApart } from './apart.js';
import { type Cycle, type CycleTools, recordOutcome } from './cycle.js';
import type { GridMirror } from './ports.js';

/**
 * Runs until nothing more can start, or the bound on rounds. Throws what the store throws.
 *
 * @param holders of this process: what its cycles have seen of the grid-wide licenses
 */
export async function runSite(
  cycle: Cycle,
  tools: CycleTools,
  siteId: number,
  holders: SharedLicenseHolders,
): Promise<void> {
  const { store, mirror, metrics, limits } = tools;
  let refused = 0;
  for (let round = 0; round < limits.maxRounds; round++) {
    // 1. Take in what was committed until now: first what the site has promised, if its policy promises, for the mirror must
    //    not be older than that; and what sites have reserved of the grid-wide licenses. (Without such licenses the
    //    reservations of two sites cannot touch each other, and nobody has to read them.)
    const kept = await takeIn(cycle, tools, siteId);
    const shared = mirror.grid.sharedLicenses().length > 0;
    const reservations = shared ? await cycle.phase('reservations', () => store.reservations()) : [];
    const { grid, policy } = mirror;
    const entry = grid.sites.find(({ site }) => site.id === siteId);
    if (entry === undefined) return;
    if (shared) setReservations(grid, reservations);

    // 2. A site that is not up keeps nothing waiting: another may run it.
    const now = tools.now();
    const before = entry.reservation;
    if (entry.site.state !== 'UP') {
      if (shared) await wakeOthers(tools, siteId, before, null, holders);
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
    grid.keepPromises(siteId, kept?.promises ? promisesFrom(grid, siteId, kept.promises) : null);
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
    tools.wakeAt(siteId, plan.wakeAt);
    if (shared) await wakeOthers(tools, siteId, before, plan, holders);
    const nothingNew = plan.promises === entry.promises && sameToOthers(before, plan.reservation);
    if (plan.starts.length === 0 && nothingNew) {
      await wakeRoot(tools, entry, 0);
      return;
    }

    // 4. Apply. What the truth refuses stays in the queue.
    const promises = kept && { ...kept, promises: plan.promises && imageOf(plan.promises) };
    const outcome = await cycle.phase('apply', () =>
      applyApart(
        tools,
        plan.starts,
        (starts) =>
          store.applyStarts(siteId, starts, plan.reservation, cycle.context(policy.version, now), promises),
        (a, b) => ({
          accepted: [...a.accepted, ...b.accepted],
          epochs: [...a.epochs, ...b.epochs],
          refused: [...a.refused, ...b.refused],
          outdated: a.outdated || b.outdated,
        }),
        plan.reservation?.jobId,
      ),
    );
    recordOutcome('start', metrics, plan.starts, outcome);
    cycle.add('started', outcome.accepted.length);
    cycle.add('refused', outcome.refused.length);
    refused = outcome.outdated ? 1 : outcome.refused.length;
    await wakeRoot(tools, entry, outcome.accepted.length);
    if (refused === 0 && !plan.truncated) return;
  }
  if (refused > 0) tools.wakeLater([siteId], limits.refusedPauseMs);
  else await tools.wake([siteId]);
}

/** A root that has none for the site wakes nobody, so this ends. */
async function wakeRoot(tools: CycleTools, entry: SiteEntry, started: number): Promise<void> {
  const { grid, policy } = tools.mirror;
  if (rootHasMoreFor(grid, entry, queueLimitOf(policy.document), started)) await tools.wake(['root']);
}

/** Brings the mirror up to date; under a policy that promises, answers with what the site has promised by then. */
async function takeIn(cycle: Cycle, tools: CycleTools, siteId: number): Promise<KeptPromises | null> {
  const { store, mirror } = tools;
  const sync = () => cycle.phase('sync', () => mirror.sync());
  await sync();
  if (!promises(mirror, siteId)) return null;
  const kept = await cycle.phase('promises', () => store.promises(siteId));
  await sync();
  // The policy may have changed in between.
  return promises(mirror, siteId) ? kept : null;
}

function promises({ grid, policy }: GridMirror, siteId: number): boolean {
  const entry = grid.sites.find(({ site }) => site.id === siteId);
  return entry !== undefined && keepsPromises(entry.site.localPolicy ?? policy.document.local);
}

function setReservations(grid: Grid, reservations: readonly Reservation[]): void {
  const bySite = new Map(reservations.map((reservation) => [reservation.siteId, reservation]));
  for (const { site } of grid.sites) grid.setReservation(site.id, bySite.get(site.id) ?? null);
}

/** Wakes the sites for which a copy of a grid-wide license may have come free. */
async function wakeOthers(
  { mirror, wake }: CycleTools,
  siteId: number,
  before: Reservation | null,
  plan: SitePlan | null,
  holders: SharedLicenseHolders,
): Promise<void> {
  const others = sitesToWake(mirror.grid, siteId, before, plan?.starts ?? [], holders);
  if (others.length > 0) await wake(others);
}
