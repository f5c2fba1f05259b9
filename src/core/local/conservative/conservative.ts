/**
 * Conservative backfilling: every job of the queue, as far as `depth`, is promised a start, the earliest opening when it comes, and
 * starts when that has come.
 *
 * Promises are kept from cycle to cycle (`Promises`, and outside of the process as `PromisesImage`). When room has come free that they
 * did not count on (a run has ended, a promised job has left), each waiting job in turn is put into its earliest opening, which is
 * never later. Where a run is late, the promises behind it move back by as much as they must and keep their order: in a live service
 * everything is late by milliseconds, and nobody is to lose their place for it. A promise is made anew only where its place is gone: its
 * job or one of its machines is not what it was. A cycle that finds nothing new leaves everything as it was, so it does not matter how
 * often one runs.
 *
 * Scavengers are promised nothing: they start where they fit beside the promises, or are looked at anew in the next cycle.
 */
import { z } from 'zod';
import type { Grid } from '../../grid/grid.js';
import type { MachineState } from '../../grid/site-resources.js';
import { type Job, limitAt } from '../../model.js';
import { hash } from '../../random.js';
import { ReasonCode } from '../../reasons.js';
import { whyNeverFits } from '../../resources/eligibility.js';
import type { Opening } from '../../resources/future.js';
import { holdOf } from '../../resources/placement.js';
import type { Timeline } from '../../resources/timeline.js';
import { byArrival, startHeads } from '../heads.js';
import type { SitePass } from '../pass.js';
import { localKind } from '../policy.js';
import {
  hasRoomNow,
  keptNow,
  Places,
  poolsOf,
  promisedIn,
  reservationOf,
  type StartPromise,
} from '../promises.js';
import type { Walk } from '../walk.js';
import { Promises, type Room } from './memory.js';

export const conservative = localKind({
  schema: z.strictObject({
    kind: z.literal('conservative'),
    depth: z.int().min(1).max(100_000).default(1000).meta({
      title: 'Promises',
      description: 'Maximum number of queued jobs with a promised start.',
      unit: 'jobs',
    }),
  }),
  label: 'Conservative backfilling',
  about: 'Like EASY, with a promised start for every job.',
  scheduler: ({ depth }) => ({
    walk: byArrival,
    decide(pass, walk) {
      if (pass.canReserve) promiseAndStart(pass, walk, depth);
      else startHeads(pass, walk);
    },
  }),
  restore: (grid, siteId, image) => Promises.from(grid, grid.siteEntry(siteId), image),
  startOf: promisedStart,
});

function promiseAndStart(pass: SitePass, walk: Walk, depth: number): void {
  const { entry, now } = pass;
  const before = Promises.of(pass.grid, entry);
  const roomKept = pass.kept.length > 0;
  const goesOn =
    before !== null &&
    !roomKept &&
    pass.carriesOut &&
    before.isInStep(now) &&
    entry.queue.length <= depth &&
    entry.queue.yielding === 0;
  const held = heldIn(pass);
  const heldOtherwise = before !== null && (before.room.held ?? 0) !== held;
  const compress = heldOtherwise || roomKept || (pass.compress ?? cameFree(pass, before, goesOn));
  let promises: Promises;
  let unpromised: readonly number[];
  if (goesOn) {
    promises = before;
    promises.cycle++;
    promises.places?.profile.lookBeside(pass.free);
    unpromised = before.catchUp(now);
  } else {
    const slots = lookedAt(pass, walk, depth, before);
    if (before !== null && !compress && nothingNew(pass, before, slots)) {
      conclude(pass, before);
      return;
    }
    promises = new Promises(pass.grid, entry);
    promises.places = new Places(pass, true);
    promises.cycle = (before?.cycle ?? 0) + 1;
    takeInOrder(pass, promises, before, slots);
    unpromised = slots;
  }
  const places = promises.places as Places;
  if (compress) moveUp(pass, promises, places);
  for (const slot of unpromised) {
    if (promises.get(slot) !== undefined) continue;
    const requirement = pass.requirement(slot);
    const work = pass.work(slot);
    const limit = pass.limit(slot);
    const eligible = pass.eligible(requirement);
    // Nobody waits behind a job that waits for a machine or a license to come back.
    if (whyNeverFits(requirement, eligible) !== null) continue;
    const opening = places.find(entry.queue.ids[slot] as number, (profile) =>
      profile.earliestOpening(requirement, eligible, work, limit),
    );
    if (opening === null || (opening.at > now && entry.queue.yields(slot))) continue;
    const made = promisedIn(opening, requirement, work, limit, now, promises.cycle);
    places.profile.take(made.hold, made.at, made.end);
    promises.set(slot, made);
  }
  startDue(pass, promises, places);
  if (joinOwn(pass, promises, places)) {
    moveUp(pass, promises, places);
    startDue(pass, promises, places);
  }
  noteRoom(pass, promises, held);
  promises.keep(now, pass.carriesOut ? places : null, pass.starts.length, pass.goesOnBehindStarts);
  conclude(pass, promises);
}

/** The jobs that have a promise or are to get one, in order of the queue. */
function lookedAt(pass: SitePass, walk: Walk, depth: number, before: Promises | null): number[] {
  const slots: number[] = [];
  let unseen = before?.count ?? 0;
  let passedOver = false;
  let slot = walk.next();
  for (; slot !== -1 && (slots.length < depth || unseen > 0); slot = walk.next()) {
    if (before?.get(slot) !== undefined) unseen--;
    else if (slots.length >= depth) {
      passedOver = true;
      continue;
    }
    const requirement = pass.requirement(slot);
    if (whyNeverFits(requirement, pass.eligible(requirement)) === null) slots.push(slot);
  }
  pass.goesOnBehindStarts = passedOver || slot !== -1;
  return slots;
}

/** No job to promise to, none whose time has come, and none promised a copy that another site may have taken or claimed since. */
function nothingNew({ now, free }: SitePass, before: Promises, slots: readonly number[]): boolean {
  if (slots.length !== before.count) return false;
  return slots.every((slot) => {
    const promised = before.get(slot);
    if (promised?.pools.some(({ pool }) => pool.license.siteId === null)) return false;
    return promised !== undefined && (promised.at > now || !hasRoomNow(free, promised.hold));
  });
}

/**
 * Takes the places of the promises, in the order of their times and then of the queue. One whose time has passed, or whose
 * room is taken by a run that is late, moves back to where its room is free. One that finds no room at all is no more.
 */
function takeInOrder(
  { entry, now }: Pick<Timeline, 'entry' | 'now'>,
  promises: Promises,
  before: Promises | null,
  slots: readonly number[],
): void {
  if (before === null) return;
  const places = promises.places as Places;
  const promised = slots.filter((slot) => before.get(slot) !== undefined && !entry.queue.yields(slot));
  // Sorting is stable: at one time, in the order of the queue.
  promised.sort((a, b) => (before.get(a) as StartPromise).at - (before.get(b) as StartPromise).at);
  for (const slot of promised) {
    const old = before.get(slot) as StartPromise;
    const length = old.work / old.placement.benchmark;
    const at = places.find(entry.queue.ids[slot] as number, (profile) =>
      profile.earliestFor(old.hold, Math.max(now, old.at), length, old.limit),
    );
    if (at === null) continue;
    places.profile.take(old.hold, at, at + length);
    promises.set(slot, at === old.at ? old : { ...old, at, end: at + length, cycle: promises.cycle });
  }
}

/**
 * Starts jobs now, ahead of what they are promised, beside runs of their users that keep others away (`Timeline.joiningNow`), where nobody
 * loses a promised place by it. Whether any did: their own places are free then.
 */
function joinOwn(pass: SitePass, promises: Promises, { profile }: Places): boolean {
  const { entry, free, now } = pass;
  const { queue } = entry;
  if (queue.keeping === 0 && !free.keeps) return false;
  const before = pass.starts.length;
  for (const slot of [...queue.inOrder('ARRIVAL').window()]) {
    const promised = promises.get(slot);
    if (promised === undefined || pass.full) continue;
    const joining = profile.without(promised, () => pass.joiningNow(slot, profile));
    if (joining === null) continue;
    const reason = slot === promises.first ? ReasonCode.HEAD : ReasonCode.BACKFILLED_BESIDE_RESERVATION;
    const { placement, pools, end } = joining;
    pass.enter(slot, placement, end - now, pools, reason);
    promises.drop(slot);
    profile.give(promised.hold, promised.at, promised.end);
    const hold = holdOf(promised.requirement, placement, pools);
    profile.take(hold, now, end);
    profile.begun(hold, now);
  }
  return pass.starts.length > before;
}

/** Each promise in turn gets the earliest opening that those of the others leave. */
function moveUp(pass: SitePass, promises: Promises, places: Places): void {
  const { entry, now } = pass;
  const { profile } = places;
  // Runs that end as planned make no room that was not counted on.
  if (!profile.hasOpened && entry.queue.licensed === 0) return;
  profile.beginRound();
  const order = entry.queue.inOrder('ARRIVAL');
  for (let i = 0; i < order.length; i++) {
    const slot = order.at(i);
    const old = promises.get(slot);
    if (old === undefined || old.at <= now) continue;
    const { requirement, work, limit } = old;
    const eligible = pass.eligible(requirement);
    let better: Opening | null = null;
    if (eligible.pools.length > 0) {
      const jobId = entry.queue.ids[slot] as number;
      better = places.find(jobId, () => profile.earlier(requirement, eligible, work, limit, old));
    } else if (profile.mayHaveOpened(eligible, work, old))
      better = profile.earlier(requirement, eligible, work, limit, old);
    if (better === null) continue;
    const moved = promisedIn(better, requirement, work, limit, old.madeAt, promises.cycle);
    profile.move(old, moved);
    promises.set(slot, moved);
  }
  profile.endRound();
}

/**
 * Starts what has come, in the order of the queue. A driver that takes events one by one wants the order in which the starts got
 * their times: what has long been due now comes before what has just moved up, and its run ends before the other's where both
 * end at one instant.
 */
function startDue(pass: SitePass, promises: Promises, { profile }: Places): void {
  const { now, free, entry } = pass;
  if (promises.next > now) return;
  const due = promises.dueAt(now);
  if (pass.compress !== undefined) {
    const cycleOf = (slot: number): number => (promises.get(slot) as StartPromise).cycle;
    due.sort((a, b) => cycleOf(a) - cycleOf(b));
  }
  // Who would take devices that are promised to another whose start has come, too, goes behind it.
  for (let behind: number[] = due, some = true; some; ) {
    const slots = behind;
    behind = [];
    some = false;
    for (const slot of slots) {
      if (pass.full) return;
      const promised = promises.get(slot) as StartPromise;
      const { requirement, work } = promised;
      if (!hasRoomNow(free, promised.hold)) continue;
      let kept = promised;
      if (entry.resources.looksAtDevices(requirement)) {
        const now = profile.without(promised, () => keptNow(pass, promised, profile));
        if (now === null) {
          behind.push(slot);
          continue;
        }
        kept = now;
        if (kept !== promised) profile.move(promised, kept);
      }
      const { placement, pools } = kept;
      const reason = slot === promises.first ? ReasonCode.HEAD : ReasonCode.BACKFILLED_BESIDE_RESERVATION;
      pass.enter(slot, placement, work / placement.benchmark, pools, reason);
      profile.begun(kept.hold, kept.at);
      promises.drop(slot);
      some = behind.length > 0;
    }
  }
}

/** Notes in the pass when the next promise comes due, and the one to the first that waits. */
function conclude(pass: SitePass, promises: Promises): void {
  if (promises.count > 0 || pass.carriesOut) pass.memory = promises;
  if (promises.count === 0) return;
  const { first } = promises;
  pass.reservation = reservationOf(pass, first, promises.get(first) as StartPromise);
  pass.wakeAt = promises.nextAfter(pass.now);
}

/** Notes what is free behind the starts of the cycle. */
function noteRoom(pass: SitePass, promises: Promises, held: number): void {
  const { room } = promises;
  room.runs = pass.free.running;
  room.held = held;
  amountsInto(room.amounts, pass);
  room.copies = pass.entry.queue.licensed === 0 ? NO_COPIES : copiesFor(pass, promises);
}

/** What is free on available machines in all, by kind. */
function amountsInto(amounts: number[], { entry, free }: SitePass): void {
  const { machines, kinds } = entry.resources;
  for (let kind = 0; kind < kinds; kind++) {
    let sum = 0;
    for (let i = 0; i < machines.length; i++) {
      const { machine, offset } = machines[i] as MachineState;
      if (machine.available) sum += free.room[offset + kind] as number;
    }
    amounts[kind] = sum;
  }
}

const NO_COPIES: Room['copies'] = [];

/** The copies that promised jobs could use, free and claimed by no other site. */
function copiesFor({ entry, free, claims }: SitePass, promises: Promises): Room['copies'] {
  const { resources, queue } = entry;
  const copies = new Map<number, number>();
  for (const slot of queue.inOrder('ARRIVAL').window()) {
    const promised = promises.get(slot);
    if (promised === undefined || promised.requirement.signature.pools.length === 0) continue;
    for (const { of } of resources.eligible(promised.requirement.signature).pools)
      for (const pool of of) copies.set(pool.license.id, free.copies.free(pool));
  }
  for (const { id, amount } of claims.others.flatMap(({ pools }) => pools)) {
    const left = copies.get(id);
    if (left !== undefined) copies.set(id, left - amount);
  }
  return [...copies];
}

/** A hash, the same in each process; 0: nothing is held. */
function heldIn({ entry }: SitePass): number {
  if (entry.resources.holds.length === 0 && entry.queue.licensed === 0) return 0;
  let key = 0;
  const add = (...values: readonly number[]): void => {
    for (const value of values) key = hash(key, Math.round(value * 1000));
  };
  const pools = entry.queue.licensed === 0 ? [] : poolsOf(entry);
  for (const { holds } of [entry.resources, ...pools]) {
    for (const { from, to, certain, machines, tasks, each, licenses } of holds) {
      add(from, to, certain ? 1 : 0, sumOf(each.task));
      for (let i = 0; i < machines.length; i++)
        add((machines[i] as MachineState).machine.id, tasks[i] as number);
      for (const { pool, copies } of licenses) add(pool.license.id, copies);
    }
  }
  return key;
}

const sumOf = (amounts: readonly number[]): number => amounts.reduce((sum, amount) => sum + (amount ?? 0), 0);

/** Whether room has come free that the promises did not count on. `goesOn`: nothing has changed but what they were told of. */
function cameFree(pass: SitePass, before: Promises | null, goesOn: boolean): boolean {
  if (before === null) return false;
  const { room } = before;
  if (before.someLeft || before.incomplete || pass.free.running < room.runs) return true;
  const { resources, queue } = pass.entry;
  // No run has ended, and nothing else gives room back.
  if (goesOn && resources.holds.length === 0) return false;
  const amounts: number[] = [];
  amountsInto(amounts, pass);
  if (amounts.some((amount, kind) => amount > (room.amounts[kind] ?? 0))) return true;
  if (queue.licensed === 0) return false;
  const copies = new Map(room.copies);
  return copiesFor(pass, before).some(([licenseId, free]) => free > (copies.get(licenseId) ?? 0));
}

/**
 * When a job of the site's queue, or one that would join it now, starts by the promises that the site has made; null: its
 * policy has made none, others wait that have none either, or the available machines cannot run the job.
 */
function promisedStart(grid: Grid, view: Timeline, job: Job): Opening | null {
  const { entry } = view;
  const before = Promises.of(grid, entry);
  if (before === null) return null;
  const requirement = grid.requirementOf(job);
  const promises = new Promises(grid, entry);
  promises.places = new Places(view, true, requirement);
  takeInOrder(view, promises, before, [...entry.queue.inOrder('ARRIVAL').window()]);
  const place = grid.placeOf(job.id);
  const here = place?.at === 'QUEUE' && place.siteId === entry.site.id;
  const own = here ? promises.get(grid.slotOf(job.id)) : undefined;
  if (own === undefined && promises.count < entry.queue.length) return null;
  const eligible = entry.resources.eligible(requirement.signature);
  const limit = limitAt(job, entry.site);
  const work = view.site.plannedWork(job.estimateS * job.benchmark, limit);
  return own ?? promises.places.profile.earliestOpening(requirement, eligible, work, limit);
}
