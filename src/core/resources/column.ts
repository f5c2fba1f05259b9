/**
 * How much of one thing is free at every later instant, and how much is not held for certain: of a kind of resource on a machine, or of
 * the copies of a license.
 */
import { Availability } from '../structures/availability.js';

/** What is free where nothing was taken; null: that is so at every instant. */
export interface Column {
  free: number;
  later: Availability | null;
  uncertain: Availability | null;
}

export const columnOf = (free: number): Column => ({ free, later: null, uncertain: null });

/** So much more (below 0: less) is free from `from` until `to`. */
export function shift(of: Column, from: number, to: number, amount: number, certain: boolean): void {
  if (amount === 0) return;
  of.later ??= new Availability(of.free);
  of.later.add(from, to, amount);
  if (!certain) return;
  of.uncertain ??= new Availability(of.free);
  of.uncertain.add(from, to, amount);
}

/** The least that is free from `from` until `to`, and until `until` beside what is held for certain. */
export function leastIn({ free, later, uncertain }: Column, from: number, to: number, until: number): number {
  const least = later === null ? free : later.least(from, to);
  return uncertain === null || until <= to ? least : Math.min(least, uncertain.least(from, until));
}

/** The least that is not held for certain from `from` until `until`; Infinity: nothing is. */
export const leastCertain = ({ uncertain }: Column, from: number, until: number): number =>
  uncertain === null ? Infinity : uncertain.least(from, until);

/** The first instant behind `time` at which something may change; Infinity: none. */
export const nextIn = ({ later, uncertain }: Column, time: number): number =>
  Math.min(later?.nextChange(time) ?? Infinity, uncertain?.nextChange(time) ?? Infinity);

/** The earliest instant from which so much is free for `length`, and for `limit` beside what is held for certain. */
export function earliestIn(
  { free, later, uncertain }: Column,
  amount: number,
  length: number,
  limit: number,
  from: number,
  before = Infinity,
  until = Infinity,
): number {
  if (later === null) return free >= amount ? from : Infinity;
  let at = later.earliest(amount, length, from, before, until);
  while (uncertain !== null && at < before) {
    const certainly = uncertain.earliest(amount, limit, at, before);
    if (certainly === at) return at;
    at = certainly < before ? later.earliest(amount, length, certainly, before, until) : Infinity;
  }
  return at;
}
