/**
 * Preemption at a site (jobs.md, "Preemption"), after its policy has decided, whichever that is: jobs of a rank above 0 that do not start
 * are promised room, of runs of lower ranks where there is none (`preemptionFor`). The promise is a hold of the site from then on
 * (`Job.promised`): every policy plans around it, and the job starts before the policy is asked (`SitePass.startPromised`).
 *
 * Jobs of rank 0 have scavengers stopped for them, but do not go ahead of one another: the first ones are planned as if no scavenger ran, and
 * those that would start now get their room of that plan.
 *
 * Decisions where the rule leaves it open: the highest rank goes first, then the order of arrival. A job for which there is room that the
 * policy's order keeps from it is promised that room, for it may not be worse off than where others had to be stopped. Jobs with licenses
 * are promised nothing, nor is anything at sites where nobody knows when runs end, or inside reservations. A job that asks more of its
 * machines than room for each task (`Requirement.spread`), or whose tasks are not all alike, fits where it could be placed. Room beside runs of
 * the job's own user, which others do not have (joining.ts), does not count: nothing is planned with it.
 */
import { type ClassRules, type ClassTable, NO_RANKS } from '../classes.js';
import type { Room } from '../grid/amounts.js';
import { pairsOf } from '../grid/amounts.js';
import type { Grid, SiteEntry } from '../grid/grid.js';
import type { Requirement } from '../grid/requirements.js';
import {
  type EligibleMachines,
  giveTo,
  type Hold,
  type MachineState,
  type NamedAmounts,
  namedAmounts,
  type RunState,
} from '../grid/site-resources.js';
import { asksPools, type Job, type Preemption } from '../model.js';
import { whyNeverFits } from '../resources/eligibility.js';
import type { Opening } from '../resources/future.js';
import { allocationsOf, holdOf, place } from '../resources/placement.js';
import { Timeline } from '../resources/timeline.js';

import {
  type Amounts,
  idOf,
  lostWork,
  type PreemptibleRun,
  type PreemptionTimes,
  preemptionFor,
} from '../runs/preemption.js';

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
  if (!pass.canReserve || pass.handOvers !== null || entry.part !== null || pass.full) return [];
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
function waiting({ grid, entry: { queue }, promised, starts }: SitePass): (slot: number) => boolean {
  const started = new Set(starts.map(({ jobId }) => grid.slotOf(jobId)));
  return (slot) => {
    const job = queue.jobs[slot] as Job;
    return !promised?.has(slot) && !started.has(slot) && !asksPools(job) && job.reservationId === null;
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

/** The runs of a site as they may be stopped, and what is free behind the decisions of a pass. */
class Preemptible {
  /** What is free once those that are being stopped have ended, beside all that is held. */
  private readonly room: Room;
  /** Runs and holds, without what the policy has reserved: that is for jobs of lower classes, or for the job itself. */
  private readonly future: Timeline;
  private readonly runs = new Map<string, RunState>();
  /** Those that are being stopped, or are to be by what was decided. */
  private readonly stopping: RunState[];
  /** When what was stopped before is gone. */
  private stoppedUntil: number;
  private readonly decisions: Decided[] = [];
  /** What jobs of rank 0 would do if no scavenger ran; null: nobody has asked for it. */
  private plan: Timeline | null = null;
  /** When scavengers that were stopped now would be gone. */
  private clearedAt: number;

  constructor(
    private readonly pass: SitePass,
    private readonly classes: ClassTable,
  ) {
    const { grid, entry, free, now } = pass;
    const { resources } = entry;
    const stopping = resources.runs.filter(({ run }) => run.stopsAt !== undefined);
    this.stopping = stopping;
    this.stoppedUntil = Math.max(now, ...stopping.map(({ run }) => run.stopsAt as number));
    this.clearedAt = this.stoppedUntil;
    this.room = [...resources.free.room];
    this.future = new Timeline(grid, entry, now);
    for (const run of free.begun) {
      giveTo(this.room, run, -1);
      this.future.start(run);
    }
    // They cannot be stopped yet, as little as others that are young (`lookAgain`).
    if (free.begun.length > 0) pass.wakeAt = Math.min(pass.wakeAt, now + classes.leastExemptS);
    for (const run of stopping) giveTo(this.room, run, 1);
    for (const run of resources.runs)
      if (run.run.stopsAt === undefined && run.machines.length > 0) this.runs.set(idOf(run.jobId), run);
  }

  /** Of a job of rank 0: scavengers are stopped for it where it would start now if none ran. */
  insteadOfScavengers(slot: number): Preemption | null {
    const { pass } = this;
    this.plan ??= this.withoutScavengers();
    const requirement = pass.requirement(slot);
    const eligible = pass.eligible(requirement);
    if (whyNeverFits(requirement, eligible) !== null) return null;
    const opening = this.plan.earliestOpening(requirement, eligible, pass.work(slot), pass.limit(slot));
    if (opening === null) return null;
    const { at, end, placement, pools } = opening;
    this.plan.take(holdOf(requirement, placement, pools), at, end);
    if (at > this.clearedAt) return null;
    // On no other machines: those before it in the plan may need them.
    const there = new Set(placement.machines);
    const isThere = (state: MachineState): boolean => there.has(state);
    return this.preemptionFor(slot, {
      ...eligible,
      machines: eligible.machines.filter(isThere),
      parts: eligible.parts?.map((machines) => machines.filter(isThere)) ?? null,
    });
  }

  private withoutScavengers(): Timeline {
    const { grid, entry, free, now } = this.pass;
    const plan = new Timeline(grid, entry, now);
    for (const run of free.begun) plan.start(run);
    for (const { victims, hold, at, end } of this.decisions) {
      for (const victim of victims) plan.give(victim, at, Math.max(at, victim.end));
      plan.take(hold, at, end, true);
    }
    for (const run of this.runs.values()) {
      const { rank, graceS } = this.rulesOf(run.jobId);
      if (rank >= 0) continue;
      this.clearedAt = Math.max(this.clearedAt, now + graceS);
      plan.give(run, now + graceS, Math.max(now + graceS, run.end));
    }
    return plan;
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
    const work = pass.work(slot);
    const opening = this.future.earliestOpening(requirement, eligible, work, pass.limit(slot));
    const runs = this.runsOn(eligible);
    const longest = runs.length === 0 ? times.graceS : Math.max(...runs.map((run) => run.times.graceS));
    const goneAt = Math.max(now + longest, this.stoppedUntil);
    const room = this.roomFor(eligible, work, pass.limit(slot), goneAt);
    const perTask = this.named(pairsOf(requirement.task));
    const found = preemptionFor(
      {
        class: rank,
        // Where runs are late nobody knows.
        startsAt: opening !== null && opening.at > now ? opening.at : null,
        tasks: requirement.tasks,
        perTask,
      },
      eligible.machines.map((state) => ({
        id: idOf(state.machine.id),
        free: this.freeOn(state, room, perTask),
      })),
      runs,
      { now, graceS: times.graceS, exemptS: times.exemptS },
      requirement.spread === null && requirement.parts === null
        ? null
        : (gone) => this.fitsWithout(gone, requirement, eligible, room),
    );
    this.lookAgain(found.exempt);
    // Nobody is stopped for little. If it does not start then, runs are late, and nobody knows any more when it would.
    if (found.because === 'NO_GAIN') pass.wakeAt = Math.min(pass.wakeAt, (opening as Opening).at);
    if (found.startsAt === null || (onlyOn !== null && found.victims.length === 0)) return null;
    const victims = found.victims.map((id) => this.runs.get(id) as RunState);
    for (const victim of victims) giveTo(room, victim, 1);
    const whenGone = place(requirement, eligible, room);
    for (const run of [...victims, ...this.stopping]) giveTo(room, run, -1);
    const atOnce = place(requirement, eligible, room);
    const placement = atOnce ?? whenGone;
    if (placement === null) return null;
    const later = victims.length === 0 ? goneAt : Math.max(found.startsAt, this.stoppedUntil);
    const at = atOnce === null ? later : now;
    const hold = { ...placement, each: requirement, licenses: [] };
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
      room: { siteId: entry.site.id, at, allocations: allocationsOf(placement) },
    };
  }

  /** Whether the job could be placed in the room when these runs are gone; the room is as before. */
  private fitsWithout(
    gone: readonly string[],
    requirement: Requirement,
    eligible: EligibleMachines,
    room: Room,
  ): boolean {
    for (const id of gone) giveTo(room, this.runs.get(id) as RunState, 1);
    const fits = place(requirement, eligible, room) !== null;
    for (const id of gone) giveTo(room, this.runs.get(id) as RunState, -1);
    return fits;
  }

  /** For the jobs that are looked at behind this one. */
  private decided(one: Decided): void {
    const { victims, hold, at, end } = one;
    this.decisions.push(one);
    for (const { jobId } of victims)
      this.stoppedUntil = Math.max(this.stoppedUntil, this.pass.now + this.rulesOf(jobId).graceS);
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
    for (const hold of this.pass.entry.resources.holds) {
      const until = goneAt + (hold.certain ? limit : work / slowest);
      if (hold.to > this.pass.now && hold.from < until) giveTo(room, hold, -1);
    }
    return room;
  }

  /** Those that have something of the machines. */
  private runsOn({ machines }: EligibleMachines): TimedRun[] {
    const wanted = new Set(machines);
    const found: TimedRun[] = [];
    for (const [id, held] of this.runs) {
      const { jobId, run } = held;
      if (!held.machines.some((state) => wanted.has(state))) continue;
      const { restartable, runTimeLimitS } = this.jobOf(jobId);
      const { rank, graceS, exemptS } = this.rulesOf(jobId);
      const taken = namedAmounts(held, this.pass.grid.kinds);
      found.push({
        ...{ id, class: rank, times: { graceS, exemptS }, startedAt: run.start },
        // A scavenger that may not start again ends.
        restartable: restartable || rank < 0,
        checkpointAt: run.checkpointAt ?? null,
        limitEndsAt: runTimeLimitS === null ? null : run.start + runTimeLimitS,
        holds: held.machines.map(({ machine }, i) => ({
          machine: idOf(machine.id),
          amounts: (taken[i] as NamedAmounts).amounts,
        })),
      });
    }
    return found;
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
