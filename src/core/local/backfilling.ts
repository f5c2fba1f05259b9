/**
 * EASY backfilling in the walk's order (Flexible Backfilling of Pasquali et al. when that is a priority): heads start while
 * they fit; the first that does not gets a reservation; later ones start only if they cannot delay it.
 */
import { copyInto, type Room } from '../grid/amounts.js';
import { SiteMemory } from '../grid/grid.js';
import type { SortedSlots } from '../grid/queue.js';
import type { RunState } from '../grid/site-resources.js';
import type { Reservation, Start } from '../model.js';
import { startHeads } from './heads.js';
import type { SitePass } from './pass.js';
import { KeyedWalk, type Walk } from './walk.js';

/** In which order jobs behind the reservation are tried. */
export type BackfillOrder = 'ARRIVAL' | 'SHORTEST' | 'LONGEST' | 'NARROWEST' | 'WIDEST';

export function backfilling(pass: SitePass, walk: Walk, order: BackfillOrder = 'ARRIVAL'): void {
  const { memory } = pass.entry;
  let blocked = -1;
  if (memory instanceof BackfillMemory && memory.holds(pass, walk.sorted)) {
    pass.resume(memory.reservation, memory.beside);
    walk.skip(memory.jobs);
    if (memory.jobs === 0) blocked = pass.grid.slotOf(memory.reservation.jobId);
  } else {
    blocked = startHeads(pass, walk);
    if (blocked === -1 || !pass.canReserve) return;
    pass.reserve(blocked);
  }
  backfillBehind(pass, walk, order, blocked);
  if (!pass.full) pass.memory = BackfillMemory.by(pass, walk.sorted);
}

/** `blocked`: the job that has the reservation; -1: the walk goes on where another pass has looked. */
function backfillBehind(pass: SitePass, walk: Walk, order: BackfillOrder, blocked: number): void {
  if (pass.full || pass.exhausted) return;
  if (walk.sorted === null) keepPossible(pass, walk);
  const candidates =
    order === 'ARRIVAL'
      ? walk
      : order === 'SHORTEST' && walk.sorted !== null && blocked !== -1
        ? shortestBehind(pass, walk.sorted, blocked)
        : sorted(pass, walk, backfillKeys[order]);
  for (let slot = candidates.next(); slot !== -1; slot = candidates.next()) {
    if (pass.backfill(slot) && (pass.full || pass.exhausted)) return;
  }
}

const keepPossible = (pass: SitePass, walk: Walk): void => walk.keepOnly((slot) => pass.mightStart(slot));

/**
 * The jobs behind one, the shortest first. The queue keeps that order: of thousands that might start the few that do are found
 * without sorting all of them in every pass.
 */
function shortestBehind(pass: SitePass, order: SortedSlots, blocked: number): Pick<Walk, 'next'> {
  const shortest = pass.entry.queue.inOrder('SHORTEST');
  let position = 0;
  return {
    next() {
      while (position < shortest.length) {
        const slot = shortest.at(position++);
        if (pass.mightStart(slot) && order.compare(slot, blocked) > 0) return slot;
      }
      return -1;
    },
  };
}

/** What is left of a walk of jobs that might start now, by a key: if room is given back behind, the cycle runs again. */
function sorted(pass: SitePass, walk: Walk, key: (pass: SitePass, slot: number) => number): Walk {
  const { queue } = pass.entry;
  const slots: number[] = [];
  for (let slot = walk.next(); slot !== -1; slot = walk.next()) if (pass.mightStart(slot)) slots.push(slot);
  const keys = new Float64Array(slots.length === 0 ? 0 : queue.ids.length);
  for (const slot of slots) keys[slot] = key(pass, slot);
  return new KeyedWalk(queue, Int32Array.from(slots), keys);
}

/** Keys by which candidates for backfilling are tried, least first. A limit gives a job no other place: what it would start with is asked for (`Bounds`). */
const backfillKeys: Record<Exclude<BackfillOrder, 'ARRIVAL'>, (pass: SitePass, slot: number) => number> = {
  SHORTEST: ({ entry: { queue } }, slot) => queue.works[slot] as number,
  LONGEST: ({ entry: { queue } }, slot) => -(queue.works[slot] as number),
  NARROWEST: (pass, slot) => pass.cpus(slot),
  WIDEST: (pass, slot) => -pass.cpus(slot),
};

/**
 * What the last cycle of a site has looked at, where it went through the whole queue: the reservation stands, and none of the jobs
 * that it left can start. This holds while no run begins, ends or is due, and the queue changes by jobs that come in behind all others
 * only; the next cycle looks at those and at nothing else. If runs end that were to be over ahead of the reservation, this stands, and
 * the next cycle looks at all jobs beside it.
 *
 * It is the answer that looking at everything would give. The first that waits does not fit in the same room, and its earliest start
 * is where it was: what has been started since it was found takes nothing that it needs. Every other job was tried with at least the
 * room that is left, and to end before the reservation becomes harder as time goes by.
 */
export class BackfillMemory extends SiteMemory {
  /** How many jobs, from the head of the queue, need no look. */
  jobs = 0;
  private sorted: SortedSlots | null = null;
  private resourceChanges = 0;
  private queueChanges = 0;
  private from = 0;
  private until = 0;

  /** What is free at its instant beside it. */
  readonly beside: Room = [];

  private constructor(public reservation: Reservation) {
    super();
  }

  /**
   * A run was to be over ahead of the reservation. The reserved job does not fit even when all such runs are over, and so fits no sooner;
   * what is free at its instant is the same. But others may start now.
   */
  override ended({ end }: RunState): void {
    if (end >= this.reservation.at) return;
    this.resourceChanges++;
    this.jobs = 0;
  }

  /**
   * What the pass has come to, once its starts are carried out: each takes a run in and a job out. Null where it does not stand:
   * jobs with licenses depend on other sites too, and a driver that carries starts out later may be refused some.
   */
  static by(pass: SitePass, sorted: SortedSlots | null): BackfillMemory | null {
    const { entry, starts, reservation, free, now, carriesOut } = pass;
    const { resources, queue, memory } = entry;
    const { beside } = free;
    if (sorted === null || reservation === null || beside === null || queue.licensed > 0) return null;
    if (starts.length > 0 && !carriesOut) return null;
    // There is more to it than the room at one instant: who joins runs of its user needs no room that the reservation knows.
    if (resources.holds.length > 0 || free.returns > 0 || free.keeps || queue.keeping > 0) return null;
    // Nor does it say which devices are promised.
    if (free.promisesDevices) return null;
    const noted = carriesOut && memory instanceof BackfillMemory ? memory : new BackfillMemory(reservation);
    noted.reservation = reservation;
    copyInto(noted.beside, beside);
    noted.jobs = queue.length - starts.length;
    noted.sorted = sorted;
    noted.resourceChanges = resources.changes + starts.length;
    noted.queueChanges = sorted.changes + starts.length;
    noted.from = now;
    let until = resources.runs.length === 0 ? Infinity : (resources.runs[0] as RunState).end;
    for (let i = 0; i < starts.length; i++)
      until = Math.min(until, now + (starts[i] as Start).plannedDuration);
    noted.until = until;
    return noted;
  }

  /** Whether it still holds, in the same order, and the driver has kept the reservation. */
  holds({ entry, now }: SitePass, sorted: SortedSlots | null): boolean {
    return (
      sorted !== null &&
      this.sorted === sorted &&
      this.reservation === entry.reservation &&
      this.resourceChanges === entry.resources.changes &&
      this.queueChanges === sorted.changes &&
      this.from <= now &&
      now < this.until
    );
  }
}
