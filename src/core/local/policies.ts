/**
 * The local policies: each is an order of the queue and a rule for what may start out of turn.
 *
 * To add one: a member of `localPolicySchema` in ../policy.ts and an entry in `localPolicies`.
 */
import type { LocalPolicy, Policy } from '../policy.js';
import type { SitePass } from './pass.js';
import { OwnPriorityWalk, SortedWalk, type Walk } from './walk.js';

export interface LocalScheduler {
  /** The order in which jobs are tried. */
  walk(pass: SitePass): Walk;
  /** Decides the starts and the reservation, into the pass. */
  decide(pass: SitePass, walk: Walk): void;
}

/** The scheduler for a local policy under a policy document: its mode says by what a flexible site orders. */
export function localScheduler(local: LocalPolicy, policy: Policy): LocalScheduler {
  switch (local.kind) {
    case 'fcfs':
      return { walk: arrival, decide: headsOnly };
    case 'easy':
      return { walk: arrival, decide: backfilling };
    case 'flexible': {
      const { mode } = policy.dispatch;
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
function backfilling(pass: SitePass, walk: Walk): void {
  const blocked = startHeads(pass, walk);
  if (blocked === -1) return;
  pass.reserve(blocked);
  if (pass.full || pass.exhausted) return;
  walk.keepOnly((slot) => pass.mightStart(slot));
  for (let slot = walk.next(); slot !== -1; slot = walk.next()) {
    if (pass.backfill(slot) && (pass.full || pass.exhausted)) return;
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
