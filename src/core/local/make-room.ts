/**
 * Preemption at a site (jobs.md, "Preemption"), after its policy has decided, whichever that is: jobs of a rank above 0 that do not start
 * are promised room, of runs of lower ranks where there is none (`preemptionFor`). The promise is a hold of the site from then on
 * (`Job.promised`): every policy plans around it, and the job starts before the policy is asked (`SitePass.startPromised`).
 *
 * Jobs of rank 0 have scavengers stopped for them, but do not go ahead of one another: the first ones are planned as if no scavenger ran, and
 * those that would start now get their room of that plan.
 *
 * Decisions where the rule leaves it open: the highest rank goes first, then the order of arrival. A job for which there is room that the
 * policy's order keeps from it is promised that room, for it may not be worse off than where others had to be stopped. Nothing is promised at
 * sites where nobody knows when runs end. A job that asks more of its machines than room for each task (`Requirement.spread`), whose tasks are
 * not all alike, or that waits for more than machines (see below), fits where it could be placed.
 *
 * Room is more than machines: amounts of pools, and one of the runs that the site may have at once. Who is stopped gives these back, too, and
 * the promise holds them. So runs that have nothing of the machines but copies of the licenses, or only count, may be stopped. Decision: a run
 * at another site that has copies of the same grid-wide license is not, because a job may preempt at its site.
 *
 * Room beside runs of the job's own user, which others do not have (joining.ts), is planned with nowhere, so it is no room here either. But
 * nobody is stopped for a job that will soon find such room by plan: that is a start like any other (`joinsAt`, rule 3). Decision: whether
 * somebody else takes it first is not asked, for then the site looks again; nor are runs of its user that have yet to begin, for which machines
 * they will keep nobody plans.
 *
 * Inside a reservation the same goes among its jobs: they stop one another, and nobody else, as the room outside is not theirs, nor theirs
 * that of others.
 */
import { type ClassRules, type ClassTable, NO_RANKS } from '../classes.js';
import type { Room } from '../grid/amounts.js';
import { pairsOf } from '../grid/amounts.js';
import type { Grid, ReservedPart, SiteEntry } from '../grid/grid.js';
import type { Requirement } from '../grid/requirements.js';
import {
  type EligibleMachines,
  giveTo,
  type Hold,
  type MachineState,
  type NamedAmounts,
  namedAmounts,
  type Placement,
  type PoolCopies,
  type PoolState,
  type RunState,
  type SiteResources,
  type TimedHold,
} from '../grid/site-resources.js';
import type { Job, Preemption, Reservation } from '../model.js';
import { leastCertain, leastIn } from '../resources/column.js';
import { whyNeverFits } from '../resources/eligibility.js';
import { OwnRuns, placeBeside, presently } from '../resources/joining.js';
import { copiesIn } from '../resources/licenses.js';
import { allocationsOf, amountsOf, holdOf, pickPools, place } from '../resources/placement.js';
import { Timeline } from '../resources/timeline.js';

import {
  type Amounts,
  idOf,
  lostWork,
  type PreemptibleRun,
  type PreemptionTimes,
  preemptionFor,
} from '../runs/preemption.js';

import { beneath, copiesBeneath, roomBeneath } from './beneath.js';
import type { SitePass } from './pass.js';

/** So many jobs of each kind are looked at in a pass. */
const LOOKED_AT_MOST = 8;
/** And so many places of the queue, to find those of rank 0. */
const PLACES_MOST = 1000;

/** Whether runs could be stopped for a job that waits at the site. */
export const mayMakeRoom = (grid: Grid, entry: SiteEntry): boolean =>
  entry.queue.preempting.size > 0 || scavenges(grid, entry);

/** Whether scavengers run there. */
const scavenges = (grid: Grid, { resources: { runs } }: SiteEntry): boolean =>
  grid.ranks !== NO_RANKS && runs.some(({ jobId }) => grid.arrival.classRank(grid.job(jobId) as Job) < 0);

export function makeRoom(pass: SitePass, classes: ClassTable): Preemption[] {
  const { grid, entry } = pass;
  if (entry.resources.shared || pass.handOvers !== null || pass.full) return [];
  const raised = candidates(pass);
  const plain = scavenges(grid, entry) ? firstOfRank0(pass) : [];
  if (raised.length + plain.length === 0) return [];
  const site = new Preemptible(pass, classes);
  return [
    ...raised.map((slot) => site.preemptionFor(slot)),
    ...plain.map((slot) => site.insteadOfScavengers(slot)),
  ].filter((one) => one !== null);
}

/** Those that wait without a promise, the first ones. */
function candidates(pass: SitePass): number[] {
  const { queue } = pass.entry;
  const rankOf = (slot: number): number => queue.arrival.classRank(queue.jobs[slot] as Job);
  return [...queue.preempting]
    .filter(waiting(pass))
    .sort((a, b) => rankOf(b) - rankOf(a) || queue.compareBoosts(a, b) || queue.compareArrival(a, b))
    .slice(0, LOOKED_AT_MOST);
}

/** The first ones of rank 0, as they came. */
function firstOfRank0(pass: SitePass): number[] {
  const { queue } = pass.entry;
  const waits = waiting(pass);
  const found: number[] = [];
  const order = queue.inOrder('ARRIVAL');
  const end = Math.min(order.length, PLACES_MOST);
  for (let i = 0; i < end && found.length < LOOKED_AT_MOST; i++) {
    const slot = order.at(i);
    // Scavengers are behind all others.
    if (queue.yields(slot)) break;
    if (!queue.preempting.has(slot) && waits(slot)) found.push(slot);
  }
  return found;
}

/** Whether room could be made for the job in a slot, and is not. */
function waiting({ entry: { queue }, promised, starts }: SitePass): (slot: number) => boolean {
  const started = new Set(starts.map(({ jobId }) => jobId));
  return (slot) => {
    const job = queue.jobs[slot] as Job;
    return !promised?.has(slot) && !started.has(job.id);
  };
}

/** A run with the times of its class. */
type TimedRun = PreemptibleRun & { readonly times: Omit<PreemptionTimes, 'now'> };

/** What was decided: who is stopped, and what is held from when to when. */
interface Decided {
  readonly victims: readonly RunState[];
  readonly hold: Hold;
  readonly at: number;
  readonly end: number;
}

/** Room that a job could have. */
interface Wanted {
  readonly requirement: Requirement;
  readonly eligible: EligibleMachines;
  /** What is free for it once those that are being stopped have ended. */
  readonly room: Room;
  readonly work: number;
  readonly limit: number;
}

/** How many more runs the site may have, beside those in mind and one for each job that waits for its room. */
function runsLeft({ grid, entry, free, promised, kept, keptRuns, now }: SitePass): number {
  const { resources } = grid.siteEntry(entry.site.id);
  if (resources.maxRuns === Infinity) return Infinity;
  const begun = free.running - entry.resources.runs.length - keptRuns;
  const left = resources.maxRuns - resources.runs.length - begun - ((promised?.size ?? 0) - kept.length);
  if (entry.part === null) return left;
  return left - keptOutside(resources, now);
}

/** Of the runs that a site may have at once, those of jobs outside its reservations that wait for room made for them and do not come free. */
export function keptOutside({ holds, runs }: SiteResources, now: number): number {
  const waiting = holds.filter(({ jobId, to }) => jobId !== undefined && to > now).length;
  const stopping = runs.filter(({ run }) => run.stopsAt !== undefined).length;
  return Math.max(0, waiting - stopping);
}

/** The runs of a site as they may be stopped, and what is free behind the decisions of a pass. */
class Preemptible {
  /** What is free once those that are being stopped have ended, beside all that is held. */
  private readonly room: Room;
  /** The same of pools, where it was asked for. */
  private readonly copies = new Map<PoolState, number>();
  /** How many more runs the site may have then. */
  private runsLeft: number;
  /** Runs and holds, without what the policy has reserved: that is for jobs of lower classes, or for the job itself. */
  private readonly future: Timeline;
  private readonly runs = new Map<string, RunState>();
  /** As the rule sees them: many jobs of a pass ask for the same ones. */
  private readonly timed = new Map<string, TimedRun>();
  /** Those that are being stopped, or are to be by what was decided. */
  private readonly stopping: RunState[];
  /** When what was stopped before is gone. */
  private stoppedUntil: number;
  private readonly decisions: Decided[] = [];
  /** What jobs of rank 0 would do if no scavenger ran, and how many more runs the site could have; null: nobody has asked for it. */
  private plan: { readonly future: Timeline; runsLeft: number } | null = null;
  /** When scavengers that were stopped now would be gone. */
  private clearedAt: number;

  constructor(
    private readonly pass: SitePass,
    private readonly classes: ClassTable,
  ) {
    const { entry, free, now } = pass;
    const { resources } = entry;
    const stopping = resources.runs.filter(({ run }) => run.stopsAt !== undefined);
    this.stopping = stopping;
    this.stoppedUntil = Math.max(now, ...stopping.map(({ run }) => run.stopsAt as number));
    this.clearedAt = this.stoppedUntil;
    this.room = [...resources.free.room];
    this.future = this.timeline();
    for (const run of free.begun) {
      giveTo(this.room, run, -1);
      this.future.start(run);
    }
    // They cannot be stopped yet, as little as others that are young (`lookAgain`).
    if (free.begun.length > 0) pass.wakeAt = Math.min(pass.wakeAt, now + classes.leastExemptS);
    for (const run of stopping) giveTo(this.room, run, 1);
    if (entry.part !== null) this.keepToWhatIsThere(entry.part);
    this.runsLeft = runsLeft(pass) + stopping.length;
    for (const run of resources.runs)
      if (run.run.stopsAt === undefined && run.machines.length > 0) this.runs.set(idOf(run.jobId), run);
  }

  /** Runs and holds, but the room of those who have started in it by now: they have it as runs. The pass's own starts are not in it yet. */
  private timeline(): Timeline {
    const { grid, entry, free, now, kept } = this.pass;
    const timeline = new Timeline(grid, entry, now);
    for (const { hold } of kept) timeline.give(hold, hold.from, hold.to, hold.certain);
    for (const hold of entry.resources.holds) this.giveBehind(hold, timeline);
    for (const run of free.elsewhere) timeline.beginElsewhere(run);
    return timeline;
  }

  /** A promise is kept for longer than its job will run, where that is short (`PROMISED_AT_LEAST_S`): by plan others are there from its end on. */
  private giveBehind(hold: TimedHold, timeline: Timeline): void {
    const { grid, now, kept } = this.pass;
    if (hold.jobId === undefined || kept.some((one) => one.hold.jobId === hold.jobId)) return;
    const { estimateS, benchmark } = grid.job(hold.jobId) as Job;
    const slowest = Math.min(...hold.machines.map(({ machine }) => machine.benchmark));
    const end = Math.max(now, hold.from) + (estimateS * benchmark) / slowest;
    if (end < hold.to) timeline.give(hold, end, hold.to, hold.certain);
  }

  /** Of a job of rank 0: scavengers are stopped for it where it would start now if none ran. */
  insteadOfScavengers(slot: number): Preemption | null {
    const { pass } = this;
    this.plan ??= this.withoutScavengers();
    const { plan } = this;
    const requirement = pass.requirement(slot);
    const eligible = pass.eligible(requirement);
    if (whyNeverFits(requirement, eligible) !== null) return null;
    const opening = plan.future.earliestOpening(requirement, eligible, pass.work(slot), pass.limit(slot));
    if (opening === null) return null;
    const { at, end, placement, pools } = opening;
    plan.future.take(holdOf(requirement, placement, pools), at, end);
    if (at > this.clearedAt || --plan.runsLeft < 0) return null;
    // On no other machines: those before it in the plan may need them.
    const there = new Set(placement.machines);
    const isThere = (state: MachineState): boolean => there.has(state);
    return this.preemptionFor(slot, {
      ...eligible,
      machines: eligible.machines.filter(isThere),
      parts: eligible.parts?.map((machines) => machines.filter(isThere)) ?? null,
    });
  }

  private withoutScavengers(): NonNullable<typeof this.plan> {
    const { free, now } = this.pass;
    const future = this.timeline();
    let { runsLeft } = this;
    for (const run of free.begun) future.start(run);
    for (const { victims, hold, at, end } of this.decisions) {
      for (const victim of victims) future.give(victim, at, Math.max(at, victim.end));
      future.take(hold, at, end, true);
    }
    for (const run of this.runs.values()) {
      const { rank, graceS } = this.rulesOf(run.jobId);
      if (rank >= 0) continue;
      this.clearedAt = Math.max(this.clearedAt, now + graceS);
      future.give(run, now + graceS, Math.max(now + graceS, run.end));
      runsLeft++;
    }
    return { future, runsLeft };
  }

  /** @param onlyOn of a job of rank 0: the machines on which it may have its room, where somebody has to be stopped for it */
  preemptionFor(slot: number, onlyOn: EligibleMachines | null = null): Preemption | null {
    const { pass, classes } = this;
    const { entry, now } = pass;
    const job = entry.queue.jobs[slot] as Job;
    const { rank, ...times } = classes.of(job);
    const requirement = pass.requirement(slot);
    const eligible = onlyOn ?? pass.eligible(requirement);
    if (whyNeverFits(requirement, eligible) !== null) return null;
    const [work, limit] = [pass.work(slot), pass.limit(slot)];
    const opening = this.future.earliestOpening(requirement, eligible, work, limit, this.heldBy(job));
    const opensAt = Math.min(opening?.at ?? Infinity, this.joinsAt(job, requirement, eligible));
    // Without one of the runs that the site may have at once it does not start, whatever is free.
    const planned = opensAt === Infinity ? null : Math.max(opensAt, this.mayRunFrom());
    const runs = this.runsOn(eligible);
    const longest = runs.length === 0 ? times.graceS : Math.max(...runs.map((run) => run.times.graceS));
    const goneAt = Math.max(now + longest, this.stoppedUntil);
    const room = this.roomFor(eligible, work, limit, goneAt);
    const wanted: Wanted = { requirement, eligible, room, work, limit };
    const perTask = this.named(pairsOf(requirement.task));
    // Amounts alone say nothing of which device is free, nor of where parts and neighbors go.
    const isPlain = requirement.spread === null && requirement.parts === null && requirement.devices === null;
    const onlyMachines = eligible.pools.length === 0 && this.runsLeft === Infinity;
    const found = preemptionFor(
      {
        class: rank,
        // Where runs are late nobody knows.
        startsAt: planned !== null && planned > now ? planned : null,
        tasks: requirement.tasks,
        perTask,
      },
      eligible.machines.map((state) => ({
        id: idOf(state.machine.id),
        free: this.freeOn(state, room, perTask),
      })),
      runs,
      { now, graceS: times.graceS, exemptS: times.exemptS },
      isPlain && onlyMachines
        ? null
        : (gone) =>
            this.placed(
              wanted,
              goneAt,
              gone.map((id) => this.runs.get(id) as RunState),
            ) !== null,
    );
    this.lookAgain(found.exempt);
    // Nobody is stopped for little. If it does not start then, runs are late, and nobody knows any more when it would.
    if (found.because === 'NO_GAIN') pass.wakeAt = Math.min(pass.wakeAt, planned as number);
    if (found.startsAt === null || (onlyOn !== null && found.victims.length === 0)) return null;
    const victims = found.victims.map((id) => this.runs.get(id) as RunState);
    const atOnce = this.placed(wanted, now, [], this.stopping);
    const placed = atOnce ?? this.placed(wanted, goneAt, victims);
    if (placed === null) return null;
    const { placement, pools } = placed;
    const later = victims.length === 0 ? goneAt : Math.max(found.startsAt, this.stoppedUntil);
    const at = atOnce === null ? later : now;
    const hold = holdOf(requirement, placement, pools);
    this.decided({ victims, hold, at, end: at + work / placement.benchmark });
    const lost = new Map(runs.map((run) => [run.id, lostWork(run, now)]));
    return {
      ...{ jobId: job.id, siteId: entry.site.id, class: job.class, preemptionClass: job.preemptionClass },
      victims: victims.map(({ jobId, run: { epoch } }) => {
        const { graceS, requeue } = this.rulesOf(jobId);
        return {
          ...{ jobId, epoch, lostWork: lost.get(idOf(jobId)) as number, graceS },
          requeue: requeue && this.jobOf(jobId).restartable,
        };
      }),
      room: {
        siteId: entry.site.id,
        ...(entry.part !== null && { reservationId: entry.part.reservation }),
        ...{ at, allocations: allocationsOf(placement) },
        ...(pools.length > 0 && { pools: amountsOf(pools) }),
      },
    };
  }

  /**
   * Where the job could be from `at` on, with these runs gone and `still` there, of those that are being stopped; null: nowhere. The room is as
   * before.
   */
  private placed(
    { requirement, eligible, room, work, limit }: Wanted,
    at: number,
    gone: readonly RunState[],
    still: readonly RunState[] = [],
  ): { placement: Placement; pools: PoolCopies[] } | null {
    if (this.runsLeft + gone.length - still.length < 1) return null;
    for (const run of gone) giveTo(room, run, 1);
    for (const run of still) giveTo(room, run, -1);
    const placement = place(requirement, eligible, room);
    for (const run of gone) giveTo(room, run, -1);
    for (const run of still) giveTo(room, run, 1);
    if (placement === null) return null;
    const end = at + work / placement.benchmark;
    const pools = pickPools(eligible, (pool) => this.copiesOf(pool, at, end, at + limit, gone, still));
    return pools && { placement, pools };
  }

  /** Copies of the pool that the job could have from `at` until `end`, and until `until` beside what is held for certain. */
  private copiesOf(
    pool: PoolState,
    at: number,
    end: number,
    until: number,
    gone: readonly RunState[],
    still: readonly RunState[],
  ): number {
    const { claims } = this.future;
    const column = claims.column(pool, null);
    // By plan those that go would hold theirs until their ends.
    const going = gone.filter((run) => run.end > at && copiesIn(run, pool) > 0).sort((a, b) => a.end - b.end);
    let given = going.reduce((sum, run) => sum + copiesIn(run, pool), 0);
    let least = leastCertain(column, at, until);
    let from = at;
    for (const run of going) {
      const to = Math.min(end, run.end);
      if (to > from) least = Math.min(least, leastIn(column, from, to, to) + given);
      from = Math.max(from, to);
      given -= copiesIn(run, pool);
    }
    if (from < end) least = Math.min(least, leastIn(column, from, end, end));
    const sum = (runs: readonly RunState[]): number =>
      runs.reduce((all, run) => all + copiesIn(run, pool), 0);
    return Math.min(least, this.copiesLeft(pool) + sum(gone) - sum(still));
  }

  /** Copies that nobody will have any more once those that are being stopped have ended: late runs still have theirs. */
  private copiesLeft(pool: PoolState): number {
    let left = this.copies.get(pool);
    if (left === undefined) {
      left = this.future.copies.free(pool);
      // Runs that began before the reservation may still have some of what it holds.
      if (pool.isPart) left = Math.min(left, copiesBeneath(this.pass.grid).get(pool.license.id) as number);
      for (const run of this.stopping) left += copiesIn(run, pool);
      for (const { victims, hold, at } of this.decisions) {
        // What was decided from now on the future has counted.
        if (at > this.pass.now) left -= copiesIn(hold, pool);
        else for (const victim of victims) left -= copiesIn(victim, pool);
      }
      this.copies.set(pool, left);
    }
    return left;
  }

  /** When the site may have one run more, by plan; Infinity: nobody knows. */
  private mayRunFrom(): number {
    const { grid, now, entry, free } = this.pass;
    const lacking = 1 - (this.runsLeft - this.stopping.length);
    if (lacking <= 0) return now;
    const { resources, inside } = grid.siteEntry(entry.site.id);
    const runs = [resources, ...inside.map((part) => part.resources)].flatMap((at) => at.runs);
    const ends = [...runs, ...free.begun].map(({ end }) => end).sort((a, b) => a - b);
    return Math.max(now, ends[lacking - 1] ?? Infinity);
  }

  /** When the job finds room by plan beside runs of its user, behind now; Infinity: never. */
  private joinsAt({ userId }: Job, requirement: Requirement, eligible: EligibleMachines): number {
    const { now, grid, entry, free } = this.pass;
    if (!this.future.mayJoin(requirement, userId)) return Infinity;
    const own = [...entry.resources.runs, ...free.begun].filter(
      ({ jobId }) => grid.job(jobId)?.userId === userId,
    );
    const ends = [...new Set(own.map(({ end }) => end))].filter((end) => end > now).sort((a, b) => a - b);
    for (const at of ends) {
      const going = new OwnRuns(own.filter(({ end }) => end > at));
      const room = this.future.freeAt(at);
      if (placeBeside(going, requirement, eligible, presently(room), null) !== null) return at;
    }
    return Infinity;
  }

  /** What the policy has reserved for the job. */
  private heldBy({ id }: Job): Reservation | null {
    const { reservation } = this.pass;
    return reservation?.jobId === id ? reservation : null;
  }

  /** Inside a reservation: runs that began before it may still be on its machines. */
  private keepToWhatIsThere(part: ReservedPart): void {
    const { grid, entry } = this.pass;
    const { resources, inside } = grid.siteEntry(entry.site.id);
    const there = roomBeneath(resources, inside);
    for (const run of this.stopping) giveTo(there, beneath(part, run), 1);
    for (const run of this.pass.free.begun) giveTo(there, beneath(part, run), -1);
    for (const [id, { offset }] of part.machines) {
      const from = (part.beneath.get(id) as MachineState).offset;
      for (let kind = 0; kind < resources.kinds; kind++)
        this.room[offset + kind] = Math.min(this.room[offset + kind] as number, there[from + kind] as number);
    }
  }

  /** For the jobs that are looked at behind this one. */
  private decided(one: Decided): void {
    const { victims, hold, at, end } = one;
    this.decisions.push(one);
    for (const { jobId } of victims)
      this.stoppedUntil = Math.max(this.stoppedUntil, this.pass.now + this.rulesOf(jobId).graceS);
    this.copies.clear();
    this.runsLeft += victims.length - 1;
    for (const victim of victims) {
      giveTo(this.room, victim, 1);
      this.future.give(victim, at, Math.max(at, victim.end));
      this.runs.delete(idOf(victim.jobId));
      this.stopping.push(victim);
    }
    giveTo(this.room, hold, -1);
    this.future.take(hold, at, end, true);
  }

  /** What is free for a job of so much work, now or when others are gone for it: beside all that is held while it may run. */
  private roomFor({ machines }: EligibleMachines, work: number, limit: number, goneAt: number): Room {
    const room = [...this.room];
    const slowest = Math.min(...machines.map(({ machine }) => machine.benchmark));
    const { entry, kept } = this.pass;
    for (const hold of entry.resources.holds) {
      if (hold.jobId !== undefined && kept.some((one) => one.hold.jobId === hold.jobId)) continue;
      const until = goneAt + (hold.certain ? limit : work / slowest);
      if (hold.to > this.pass.now && hold.from < until) giveTo(room, hold, -1);
    }
    return room;
  }

  /** Those that have something of the machines or pools; all, where the site may have no further run. */
  private runsOn({ machines, pools }: EligibleMachines): TimedRun[] {
    const wanted = new Set(machines);
    const licenses = new Set(pools.flatMap(({ of }) => of));
    const found: TimedRun[] = [];
    for (const [id, held] of this.runs) {
      const isInTheWay =
        this.runsLeft < 1 ||
        held.machines.some((state) => wanted.has(state)) ||
        held.licenses.some(({ pool }) => licenses.has(pool));
      if (!isInTheWay) continue;
      let timed = this.timed.get(id);
      if (timed === undefined) {
        timed = this.asTimed(id, held);
        this.timed.set(id, timed);
      }
      found.push(timed);
    }
    return found;
  }

  private asTimed(id: string, held: RunState): TimedRun {
    const { jobId, run } = held;
    const limit = this.pass.grid.limitOf(jobId);
    const { rank, graceS, exemptS } = this.rulesOf(jobId);
    const taken = namedAmounts(held, this.pass.grid.kinds);
    return {
      ...{ id, class: rank, times: { graceS, exemptS }, startedAt: run.start },
      // A scavenger that may not start again ends.
      restartable: this.jobOf(jobId).restartable || rank < 0,
      checkpointAt: run.checkpointAt ?? null,
      limitEndsAt: limit === Infinity ? null : run.start + limit,
      holds: held.machines.map(({ machine }, i) => ({
        machine: idOf(machine.id),
        amounts: (taken[i] as NamedAmounts).amounts,
      })),
    };
  }

  /** Runs that are too young now will not be for long. */
  private lookAgain(exempt: readonly { id: string; why: string }[]): void {
    for (const { id, why } of exempt) {
      if (why !== 'RUNS_SHORT') continue;
      const { start } = (this.runs.get(id) as RunState).run;
      this.pass.wakeAt = Math.min(
        this.pass.wakeAt,
        start + this.rulesOf((this.runs.get(id) as RunState).jobId).exemptS,
      );
    }
  }

  private freeOn({ offset }: MachineState, room: Room, asked: Amounts): Amounts {
    const { kinds } = this.pass.grid;
    return Object.fromEntries(
      Object.keys(asked).map((name) => [name, room[offset + kinds.index(name)] as number]),
    );
  }

  private named(amounts: readonly (readonly [kind: number, amount: number])[]): Amounts {
    const { kinds } = this.pass.grid;
    return Object.fromEntries(amounts.map(([kind, amount]) => [kinds.name(kind), amount]));
  }

  private rulesOf(jobId: number): ClassRules {
    return this.classes.of(this.jobOf(jobId));
  }

  private jobOf(jobId: number): Job {
    return this.pass.grid.job(jobId) as Job;
  }
}
