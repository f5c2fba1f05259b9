/**
 * What trees that are peers decide about a request (grid-tree.md, "Hybrid"), whatever carries it: `Root` and `Owner` of the experiment and of
 * simulated faults, and services that are peers (src/store/federation). Which of what waits is offered to a peer the database works out for all of it
 * at once; a test plays the same histories with both.
 */
import type { Address } from './messages.js';

/** When requests go to peers. */
export type Forward = 'ALWAYS' | 'WHEN_NEEDED' | 'WHEN_CHEAPER' | 'NEVER';

/** Whether a request may go to a peer, by where it has been: not back, nor where it was, nor when it has no hops left. */
export function mayGo(
  request: { hops: number; visited: readonly Address[]; from: Address | null },
  to: Address,
): boolean {
  return request.hops > 1 && request.from !== to && !request.visited.includes(to);
}

/** To all neighbors that it may go to, sorted, with what is left of its hops. */
export function forwardTo(given: {
  self: Address;
  origin: Address;
  hops: number;
  neighbors: readonly Address[];
  visited: readonly Address[];
}): { hops: number; to: Address[] } {
  const { self, origin, hops, neighbors } = given;
  const been = { hops, from: null, visited: [...given.visited, self, origin] };
  return { hops: Math.max(0, hops - 1), to: neighbors.filter((peer) => mayGo(been, peer)).sort() };
}

/** Under DIANA: what waits at a service before another job, and what there is to run it. */
export interface QueueLoad {
  /** Jobs. */
  ahead: number;
  /** Their seconds on a CPU of benchmark 1, over all their CPUs. */
  work: number;
  /** CPUs times benchmark. */
  power: number;
  /** Mean of a CPU. */
  benchmark: number;
}

/** What a request asks of a service. */
export interface Need {
  /** Some machines of ours can run it. */
  fitsHome: boolean;
  waitedS: number;
  /** Those before it here, and seconds from one that leaves the queue to the next. */
  ahead: number;
  betweenS: number;
  /** Seconds on a CPU of benchmark 1; here and at the peer what it would find. null: the peer has not told of it lately. */
  work: number;
  here: QueueLoad;
  there: QueueLoad | null;
}

/** DIANA's cost without data: work ahead by power, and the job's own by benchmark, seconds. */
export const costS = ({ work, power, benchmark }: QueueLoad, ofJob: number): number =>
  power > 0 && benchmark > 0 ? work / power + ofJob / benchmark : Infinity;

/** DIANA's comparison of a job here with a peer: fewer jobs ahead of it there, and less cost. */
export const isCheaper = (there: QueueLoad, here: QueueLoad, ofJob: number): boolean =>
  there.ahead < here.ahead && costS(there, ofJob) < costS(here, ofJob);

/** Whether a request that may go to a peer does. What no machine here can ever run is needed there in any case. */
export function isForwarded(forward: Forward, neededAfterS: number, need: Need): boolean {
  if (forward === 'ALWAYS' || forward === 'NEVER') return forward === 'ALWAYS';
  if (!need.fitsHome) return true;
  if (forward === 'WHEN_CHEAPER') return need.there !== null && isCheaper(need.there, need.here, need.work);
  return need.waitedS + need.ahead * need.betweenS > neededAfterS;
}

/** Whether a peer's request is taken in. `isKnown`: it has come before, by whichever way. */
export const isTaken = (one: { isolated: boolean; room: number; isKnown: boolean }): boolean =>
  !one.isolated && one.room > 0 && !one.isKnown;

/**
 * What an owner answers to a claim. One for a run that goes on, and is the claimant's, is granted again: the first answer may have been
 * lost.
 */
export const isGranted = (claim: {
  /** It waits, and who claims it may have it. */
  isOpen: boolean;
  /** It was granted to who claims it, and is not over. */
  isTheirs: boolean;
}): boolean => claim.isOpen || claim.isTheirs;
