/** A site's cycle: jobs of its queue start, or go back to the root when the site is not up. */
import {
  type Agenda,
  type Grid,
  imageOf,
  keepsPromises,
  localPolicyOf,
  mayMakeRoom,
  type Preemption,
  preemptionUnder,
  promisesFrom,
  queueLimitOf,
  type Reservation,
  ROOT,
  type SiteEntry,
  type SiteLook,
  type Start,
  sameToOthers,
  siteCycle,
} from '../core/index.js';
import type { KeptPromises, StartOutcome } from '../store/store.js';
import { applyApart, planApart, syncApart } from './apart.js';
import { type Cycle, type CycleTools, recordOutcome } from './cycle.js';
import type { GridMirror } from './ports.js';
import { countPreempted } from './preempted.js';
import { takeBack } from './returns.js';

/**
 * Runs until nothing more can start, or the bound on rounds. Throws what the store throws.
 *
 * @param agenda of this process
 */
export async function runSite(
  cycle: Cycle,
  tools: CycleTools,
  siteId: number,
  agenda: Agenda,
): Promise<void> {
  const { store, mirror, metrics, limits } = tools;
  let refused = 0;
  for (let round = 0; round < limits.maxRounds; round++) {
    // 1. Take in what was committed until now: first what the site has promised, if its policy promises, for the mirror must
    //    not be older than that; and what sites have reserved of the grid-wide licenses. (Without such licenses the
    //    reservations of two sites cannot touch each other, and nobody has to read them.)
    const kept = await takeIn(cycle, tools, siteId);
    const shared = mirror.grid.sharesLicenses;
    const reservations = shared ? await cycle.phase('reservations', () => store.reservations()) : [];
    if (mayPreempt(mirror, siteId)) await cycle.phase('checkpoints', () => mirror.syncCheckpoints(siteId));
    const { grid, policy } = mirror;
    const entry = grid.sites.find(({ site }) => site.id === siteId);
    if (entry === undefined) return;
    if (shared) setReservations(grid, reservations);

    // 2. Jobs that are not served here go back to the root: all if the site is not up, else those that only another can run now.
    const now = tools.now();
    const seen: Seen = { before: entry.reservation, returns: grid.returns };
    if ((await takeBack(cycle, tools, agenda.newReturnsFrom(grid, entry, limits.maxTakenBack))) > 0) {
      await tools.wake([ROOT]);
      continue;
    }
    if (entry.site.state !== 'UP') {
      if (shared) await wakeOthers(tools, agenda, entry, seen, [], 0);
      return;
    }

    // 3. Plan, with what is now in the mirror.
    const local = localPolicyOf(entry.site, policy.document);
    const known = kept?.promises ? promisesFrom(grid, siteId, local, kept.promises, now) : null;
    if (kept !== null) grid.keepMemory(siteId, known);
    const plan = await planApart(cycle, tools, () =>
      siteCycle(mirror.grid, siteId, {
        now,
        policy: policy.document,
        policyVersion: policy.version,
        maxStarts: limits.maxStarts,
        countWaiting: false,
      }),
    );
    grid.setReservation(siteId, plan.reservation);
    if (kept === null) grid.keepMemory(siteId, plan.memory);
    tools.wakeAt(siteId, plan.wakeAt);
    const nothingNew = kept === null || plan.memory === known;
    const { preemptions } = plan;
    if (
      plan.starts.length === 0 &&
      preemptions.length === 0 &&
      nothingNew &&
      sameToOthers(seen.before, plan.reservation)
    ) {
      await wakeOthers(tools, agenda, entry, seen, [], 0);
      return;
    }

    // 4. Apply. What the truth refuses stays in the queue.
    const promises = kept && { ...kept, promises: imageOf(plan.memory) };
    const context = cycle.context(policy.version, now);
    const apply = (starts: readonly Start[]) =>
      store.applyStarts(siteId, starts, plan.reservation, context, promises);
    const outcome = await cycle.phase('apply', () =>
      applyApart(tools, plan.starts, apply, both, plan.reservation?.jobId),
    );
    recordOutcome('start', metrics, plan.starts, outcome);
    cycle.add('started', outcome.accepted.length);
    cycle.add('refused', outcome.refused.length);
    refused = outcome.outdated ? 1 : outcome.refused.length;
    await wakeOthers(tools, agenda, entry, seen, plan.starts, outcome.accepted.length);
    // Behind the starts, which the site's promises may refuse: then all is planned anew.
    const made = outcome.outdated ? 0 : await preempt(cycle, tools, siteId, preemptions);
    if (made < preemptions.length) refused++;
    if (refused === 0 && !plan.truncated && made === 0) return;
  }
  if (refused > 0) tools.wakeLater([siteId], limits.refusedPauseMs);
  else await tools.wake([siteId]);
}

/** Runs may be stopped for others: then it matters which of them would lose least. */
const mayPreempt = ({ grid, policy }: GridMirror, siteId: number): boolean =>
  preemptionUnder(policy.document) !== null &&
  grid.sites.some(
    (entry) => entry.site.id === siteId && [entry, ...entry.inside].some((one) => mayMakeRoom(grid, one)),
  );

const both = (a: StartOutcome, b: StartOutcome): StartOutcome => ({
  accepted: [...a.accepted, ...b.accepted],
  epochs: [...a.epochs, ...b.epochs],
  refused: [...a.refused, ...b.refused],
  outdated: a.outdated || b.outdated,
});

/** Has runs stopped for jobs of higher ranks. Answers with how many of these have their room promised. */
async function preempt(
  cycle: Cycle,
  { store, mirror, now, metrics }: CycleTools,
  siteId: number,
  preemptions: readonly Preemption[],
): Promise<number> {
  if (preemptions.length === 0) return 0;
  const context = cycle.context(mirror.policy.version, now());
  // Before they have ended, and the mirror forgets them.
  const classOf = (jobId: number): string | null => mirror.grid.job(jobId)?.class ?? null;
  const victims = new Map(
    preemptions.map((one) => [
      one.jobId,
      one.victims.map(({ jobId, lostWork }) => ({ class: classOf(jobId), lostWork })),
    ]),
  );
  const made = await cycle.phase('preempt', () => store.preempt(siteId, preemptions, context));
  cycle.add('preempted', made.length);
  const stopped = made.flatMap((jobId) => victims.get(jobId) ?? []);
  countPreempted(metrics, mirror.policy.document, 'job', stopped);
  return made.length;
}

/** What was there before the site planned. */
type Seen = Pick<SiteLook, 'before' | 'returns'>;

/** A root that has none for the site wakes nobody, so this ends. */
async function wakeOthers(
  { mirror, wake }: CycleTools,
  agenda: Agenda,
  entry: SiteEntry,
  seen: Seen,
  starts: readonly Start[],
  started: number,
): Promise<void> {
  const { grid, policy } = mirror;
  const queueLimit = queueLimitOf(policy.document);
  const look = { ...seen, entry, starts, started, queueLimit, policy: policy.document };
  const others = agenda.afterSite(grid, look);
  if (others.length > 0) await wake(others);
}

/** Brings the mirror up to date; under a policy that promises, answers with what the site has promised by then. */
async function takeIn(cycle: Cycle, tools: CycleTools, siteId: number): Promise<KeptPromises | null> {
  const { store, mirror } = tools;
  const sync = () => cycle.phase('sync', () => syncApart(tools));
  await sync();
  if (!promises(mirror, siteId)) return null;
  const kept = await cycle.phase('promises', () => store.promises(siteId));
  await sync();
  // The policy may have changed in between.
  return promises(mirror, siteId) ? kept : null;
}

function promises({ grid, policy }: GridMirror, siteId: number): boolean {
  const entry = grid.sites.find(({ site }) => site.id === siteId);
  return entry !== undefined && keepsPromises(localPolicyOf(entry.site, policy.document));
}

function setReservations(grid: Grid, reservations: readonly Reservation[]): void {
  const bySite = new Map(reservations.map((reservation) => [reservation.siteId, reservation]));
  for (const { site } of grid.sites) grid.setReservation(site.id, bySite.get(site.id) ?? null);
}
