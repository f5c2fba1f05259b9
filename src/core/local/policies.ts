/**
 * The local policies: each is an order of the queue and a rule for what may start out of turn.
 *
 * Where it is not known when runs end (time-shared machines, a limit of runs) nothing can be reserved. There, policies that
 * start jobs out of turn only beside a reservation start none out of turn: the first that does not fit stops all behind it.
 *
 * To add one: a member of `localPolicySchema` in ../policy.ts and an entry in `localPolicies`.
 */
import { type BackfillOrder, type LocalPolicy, orderMode, type Policy } from '../policy.js';
import { conservative, hybrid } from './conservative.js';
import { KeyedWalk } from './keyed-walk.js';
import type { SitePass } from './pass.js';
import type { JobQueue } from './queue.js';
import { OwnPriorityWalk, SortedWalk, type Walk } from './walk.js';

export interface LocalScheduler {
  /** The order in which jobs are tried. */
  walk(pass: SitePass): Walk;
  /** Decides the starts and the reservation, into the pass. */
  decide(pass: SitePass, walk: Walk): void;
}

/** The scheduler for a local policy under a policy document: its mode says by what a flexible site orders. */
export function localScheduler(local: LocalPolicy, policy: Policy): LocalScheduler {
  if (last?.local !== local || last.policy !== policy) {
    last = { local, policy, scheduler: makeScheduler(local, policy) };
  }
  return last.scheduler;
}

/** Made once for cycles in a row under the same policy, as most are; what it is made of does not change. */
let last: { local: LocalPolicy; policy: Policy; scheduler: LocalScheduler } | null = null;

function makeScheduler(local: LocalPolicy, policy: Policy): LocalScheduler {
  switch (local.kind) {
    case 'fcfs':
      return { walk: arrival, decide: headsOnly };
    case 'easy':
      return {
        walk: arrival,
        decide: (pass, walk) => backfilling(pass, walk, local.backfill),
      };
    case 'sjf':
      return {
        walk: ({ entry, now }) =>
          new KeyedWalk(entry.queue, shortestFirst(entry.queue, now, local.ageBoundS)),
        decide: headsOnly,
      };
    case 'first-fit':
      return {
        walk: arrival,
        decide: (pass, walk) => firstFit(pass, walk, local.ageBoundS),
      };
    case 'conservative':
      return {
        walk: arrival,
        decide: (pass, walk) =>
          pass.canReserve ? conservative(pass, walk, local.depth) : headsOnly(pass, walk),
      };
    case 'hybrid':
      return {
        walk: arrival,
        decide: (pass, walk) =>
          pass.canReserve ? hybrid(pass, walk, local.reservations) : headsOnly(pass, walk),
      };
    case 'flexible': {
      const mode = orderMode(policy);
      if (mode === 'NONE') return { walk: arrival, decide: backfilling };
      if (mode === 'MS') return { walk: byPriority, decide: backfilling };
      return {
        walk: (pass) => ownPriorityWalk(pass, local.weights),
        decide: backfilling,
      };
    }
  }
}

const arrival = ({ entry }: SitePass): Walk => new SortedWalk(entry.queue, 'ARRIVAL');
const byPriority = ({ entry }: SitePass): Walk => new SortedWalk(entry.queue, 'PRIORITY');

function ownPriorityWalk({ entry, now }: SitePass, weights: OwnWeights): Walk {
  return new OwnPriorityWalk(entry.queue, {
    now,
    weights,
    bestBenchmark: entry.resources.bestBenchmark,
    requests: entry.requests,
    copiesOf: (kind) => entry.resources.copiesOf(kind),
  });
}
type OwnWeights = Extract<LocalPolicy, { kind: 'flexible' }>['weights'];

/** First come, first served: the first that does not fit stops everyone behind it. */
function headsOnly(pass: SitePass, walk: Walk): void {
  startHeads(pass, walk);
}

/**
 * EASY backfilling in the walk's order (Flexible Backfilling of Pasquali et al. when that is a priority): heads start while
 * they fit; the first that does not gets a reservation; later ones start only if they cannot delay it.
 */
function backfilling(pass: SitePass, walk: Walk, order: BackfillOrder = 'ARRIVAL'): void {
  if (!pass.resume(walk)) {
    const blocked = startHeads(pass, walk);
    if (blocked === -1 || !pass.canReserve) return;
    pass.reserve(blocked);
  }
  backfillBehind(pass, walk, order);
  pass.settles = !pass.full;
}

function backfillBehind(pass: SitePass, walk: Walk, order: BackfillOrder): void {
  if (pass.full || pass.exhausted) return;
  walk.keepOnly((slot) => pass.mightStart(slot));
  const candidates =
    order === 'ARRIVAL' ? walk : new KeyedWalk(pass.entry.queue, backfillKeys[order](pass), walk);
  for (let slot = candidates.next(); slot !== -1; slot = candidates.next()) {
    if (pass.backfill(slot) && (pass.full || pass.exhausted)) return;
  }
}

/** Keys by which candidates for backfilling are tried, least first. */
const backfillKeys: Record<
  Exclude<BackfillOrder, 'ARRIVAL'>,
  (pass: SitePass) => (slot: number) => number
> = {
  SHORTEST: (pass) => (slot) => pass.work(slot),
  LONGEST: (pass) => (slot) => -pass.work(slot),
  NARROWEST: (pass) => (slot) => pass.cpus(slot),
  WIDEST: (pass) => (slot) => -pass.cpus(slot),
};

/** Shortest estimate first; before them, by arrival, those that have waited too long. */
function shortestFirst(queue: JobQueue, now: number, ageBoundS: number | null): (slot: number) => number {
  return (slot) => (isAged(queue, slot, now, ageBoundS) ? -1 : (queue.works[slot] as number));
}

const isAged = (queue: JobQueue, slot: number, now: number, ageBoundS: number | null): boolean =>
  ageBoundS !== null && now - (queue.submits[slot] as number) > ageBoundS;

/**
 * First Fit: in order of arrival, everything starts that fits. The first job that does not and has waited too long gets a
 * reservation, and the rule of EASY holds behind it.
 */
function firstFit(pass: SitePass, walk: Walk, ageBoundS: number | null): void {
  const { queue } = pass.entry;
  for (let slot = walk.next(); slot !== -1 && !pass.full; slot = walk.next()) {
    const aged = pass.reservation === null && isAged(queue, slot, pass.now, ageBoundS);
    if (aged) {
      if (pass.start(slot) !== 'BLOCKED') continue;
      if (!pass.canReserve) return;
      pass.reserve(slot);
    } else pass.backfill(slot);
    if (pass.exhausted && ageBoundS === null) return;
  }
}

/** Starts jobs from the head while they fit. The first that does not, -1 if there is none. */
function startHeads(pass: SitePass, walk: Walk): number {
  while (!pass.full) {
    const slot = walk.next();
    if (slot === -1) return -1;
    if (pass.start(slot) === 'BLOCKED') return slot;
  }
  return -1;
}
