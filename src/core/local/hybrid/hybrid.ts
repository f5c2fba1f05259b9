/**
 * Backfilling beside reservations for the first so many jobs that do not fit, made afresh in each cycle; with one this is EASY.
 */
import { z } from 'zod';
import { ReasonCode } from '../../reasons.js';
import { byArrival, startHeads } from '../heads.js';
import type { SitePass } from '../pass.js';
import { localKind } from '../policy.js';
import { hasRoomNow, keptNow, Places, promisedIn, reservationOf } from '../promises.js';
import type { Walk } from '../walk.js';

export const hybrid = localKind({
  schema: z.strictObject({
    kind: z.literal('hybrid'),
    reservations: z.int().min(1).max(1000).meta({
      title: 'Reservations',
      description: 'Number of reservations, for the first jobs that do not fit. 1 is EASY.',
      unit: 'jobs',
    }),
  }),
  label: 'Hybrid backfilling',
  about: 'Like EASY, with reservations for several jobs that do not fit.',
  initial: { kind: 'hybrid', reservations: 4 },
  scheduler: ({ reservations }) => ({
    walk: byArrival,
    decide(pass, walk) {
      if (pass.canReserve) reserveAndStart(pass, walk, reservations);
      else startHeads(pass, walk);
    },
  }),
});

function reserveAndStart(pass: SitePass, walk: Walk, reservations: number): void {
  const { entry, now } = pass;
  const places = new Places(pass, false);
  let made = 0;
  for (let slot = walk.next(); slot !== -1 && !pass.full; slot = walk.next()) {
    if (made >= reservations && pass.exhausted) return;
    const jobId = entry.queue.ids[slot] as number;
    const requirement = pass.requirement(slot);
    const eligible = pass.eligible(requirement);
    const work = pass.work(slot);
    const limit = pass.limit(slot);
    const opening = places.find(jobId, (profile) =>
      made < reservations
        ? profile.earliestOpening(requirement, eligible, work, limit)
        : profile.openingNow(requirement, eligible, work, limit),
    );
    // What was reserved for it keeps its age.
    const madeAt = entry.reservation?.jobId === jobId ? entry.reservation.madeAt : now;
    const promised = opening && promisedIn(opening, requirement, work, limit, madeAt);
    const isReady = promised !== null && promised.at <= now && hasRoomNow(pass.free, promised.hold);
    const kept = isReady ? keptNow(pass, promised, places.profile) : null;
    const joining = kept === null ? pass.joiningNow(slot, places.profile) : null;
    const starting = joining === null ? kept : promisedIn(joining, requirement, work, limit, madeAt);
    const one = starting ?? promised;
    if (one === null) continue;
    if (starting !== null) {
      const reason = pass.reservation === null ? ReasonCode.HEAD : ReasonCode.BACKFILLED_BESIDE_RESERVATION;
      pass.enter(slot, one.placement, one.end - one.at, one.pools, reason);
    } else {
      if (made++ >= reservations) continue;
      if (pass.reservation === null) pass.reservation = reservationOf(pass, slot, one);
      else pass.further.push({ slot, opening: one });
    }
    places.profile.take(one.hold, one.at, one.end);
    if (starting !== null) places.profile.begun(one.hold, one.at);
  }
}
