/**
 * Preemption at a site (jobs.md, "Preemption"), after its policy has decided, whichever that is: jobs of a class above 0 that do not start
 * are promised room, of runs of lower classes where there is none (`preemptionFor`). The promise is a hold of the site from then on
 * (`Job.promised`): every policy plans around it, and the job starts before the policy is asked (`SitePass.startPromised`).
 *
 * Decisions where the rule leaves it open: the highest class goes first, then the order of arrival. A job for which there is room that the
 * policy's order keeps from it is promised that room, for it may not be worse off than where others had to be stopped. Jobs with licenses
 * are promised nothing, nor is anything at sites where nobody knows when runs end, or inside reservations. A job that asks more of its
 * machines than room for each task (`Requirement.spread`), or whose tasks are not all alike, fits where it could be placed.
 */
import type { Room, TaskAmounts } from '../grid/amounts.js';
import { pairsOf } from '../grid/amounts.js';
import type { Requirement } from '../grid/requirements.js';
import {
  alikeIn,
  type EligibleMachines,
  giveTo,
  type Hold,
  type MachineState,
  type RunState,
  takenOn,
  timesTaken,
} from '../grid/site-resources.js';
import type { Job, Preemption } from '../model.js';
import type { PreemptionRules } from '../policy.js';
import { whyNeverFits } from '../resources/eligibility.js';
import type { Opening } from '../resources/future.js';
import { allocationsOf, place } from '../resources/placement.js';
import { Timeline } from '../resources/timeline.js';
import { type Amounts, idOf, lostWork, type PreemptibleRun, preemptionFor } from '../runs/preemption.js';
import type { SitePass } from './pass.js';

/** So many jobs are looked at in a pass. */
const LOOKED_AT_MOST = 8;

export function makeRoom(pass: SitePass, rules: PreemptionRules): Preemption[] {
  const { entry } = pass;
  if (!pass.canReserve || pass.handOvers !== null || entry.part !== null || pass.full) return NONE;
  const slots = candidates(pass);
  if (slots.length === 0) return NONE;
  const site = new Preemptible(pass, rules);
  const decided: Preemption[] = [];
  for (const slot of slots) {
    const one = site.preemptionFor(slot);
    if (one !== null) decided.push(one);
  }
  return decided;
}

const NONE: Preemption[] = [];

/** Those that wait without a promise, the first ones. */
function candidates({ grid, entry: { queue }, promised, starts }: SitePass): number[] {
  const started = new Set(starts.map(({ jobId }) => grid.slotOf(jobId)));
  return [...queue.preempting]
    .filter((slot) => {
      const { licenses, reservationId } = queue.jobs[slot] as Job;
      return !promised?.has(slot) && !started.has(slot) && licenses.length === 0 && reservationId === null;
    })
    .sort(
      (a, b) =>
        (queue.jobs[b] as Job).preemptionClass - (queue.jobs[a] as Job).preemptionClass ||
        queue.compareBoosts(a, b) ||
        queue.compareArrival(a, b),
    )
    .slice(0, LOOKED_AT_MOST);
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
  /** When what is stopped now, or was before, is gone. */
  private readonly goneAt: number;

  constructor(
    private readonly pass: SitePass,
    private readonly rules: PreemptionRules,
  ) {
    const { grid, entry, free, now } = pass;
    const { resources } = entry;
    const stopping = resources.runs.filter(({ run }) => run.stopsAt !== undefined);
    this.stopping = stopping;
    this.goneAt = Math.max(now + rules.graceS, ...stopping.map(({ run }) => run.stopsAt as number));
    this.room = [...resources.free.room];
    this.future = new Timeline(grid, entry, now);
    for (const run of free.begun) {
      giveTo(this.room, run, -1);
      this.future.start(run);
    }
    // They cannot be stopped yet, as little as others that are young (`lookAgain`).
    if (free.begun.length > 0) pass.wakeAt = Math.min(pass.wakeAt, now + rules.exemptS);
    for (const run of stopping) giveTo(this.room, run, 1);
    for (const run of resources.runs)
      if (run.run.stopsAt === undefined && run.machines.length > 0) this.runs.set(idOf(run.jobId), run);
  }

  preemptionFor(slot: number): Preemption | null {
    const { pass, rules, goneAt } = this;
    const { entry, now } = pass;
    const job = entry.queue.jobs[slot] as Job;
    const requirement = pass.requirement(slot);
    const eligible = pass.eligible(requirement);
    if (whyNeverFits(requirement, eligible) !== null) return null;
    const work = pass.work(slot);
    const opening = this.future.earliestOpening(requirement, eligible, work, pass.limit(slot));
    const room = this.roomFor(eligible, work, pass.limit(slot));
    const runs = this.runsOn(eligible);
    const perTask = this.named(pairsOf(requirement.task));
    const found = preemptionFor(
      {
        class: job.preemptionClass,
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
      { now, ...rules },
      requirement.spread === null && requirement.parts === null
        ? null
        : (gone) => this.fitsWithout(gone, requirement, eligible, room),
    );
    this.lookAgain(found.exempt);
    // Nobody is stopped for little. If it does not start then, runs are late, and nobody knows any more when it would.
    if (found.because === 'NO_GAIN') pass.wakeAt = Math.min(pass.wakeAt, (opening as Opening).at);
    if (found.startsAt === null) return null;
    const victims = found.victims.map((id) => this.runs.get(id) as RunState);
    for (const victim of victims) giveTo(room, victim, 1);
    const later = place(requirement, eligible, room);
    for (const run of [...victims, ...this.stopping]) giveTo(room, run, -1);
    const atOnce = place(requirement, eligible, room);
    const placement = atOnce ?? later;
    if (placement === null) return null;
    const at = atOnce === null ? goneAt : now;
    this.decided(victims, { ...placement, each: requirement, licenses: [] }, at, work / placement.benchmark);
    const lost = new Map(runs.map((run) => [run.id, lostWork(run, now)]));
    return {
      ...{ jobId: job.id, siteId: entry.site.id, preemptionClass: job.preemptionClass, graceS: rules.graceS },
      victims: victims.map(({ jobId, run: { epoch } }) => ({
        ...{ jobId, epoch, lostWork: lost.get(idOf(jobId)) as number },
        requeue: this.jobOf(jobId).preemptionClass >= rules.cancelBelow,
      })),
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
  private decided(victims: readonly RunState[], hold: Hold, at: number, length: number): void {
    for (const victim of victims) {
      giveTo(this.room, victim, 1);
      this.future.give(victim, at, Math.max(at, victim.end));
      this.runs.delete(idOf(victim.jobId));
      this.stopping.push(victim);
    }
    giveTo(this.room, hold, -1);
    this.future.take(hold, at, at + length, true);
  }

  /** What is free for a job of so much work, now or when others are gone for it: beside all that is held while it may run. */
  private roomFor({ machines }: EligibleMachines, work: number, limit: number): Room {
    const room = [...this.room];
    const slowest = Math.min(...machines.map(({ machine }) => machine.benchmark));
    for (const hold of this.pass.entry.resources.holds) {
      const until = this.goneAt + (hold.certain ? limit : work / slowest);
      if (hold.to > this.pass.now && hold.from < until) giveTo(room, hold, -1);
    }
    return room;
  }

  /** Those that have something of the machines. */
  private runsOn({ machines }: EligibleMachines): PreemptibleRun[] {
    const wanted = new Set(machines);
    const found: PreemptibleRun[] = [];
    for (const [id, held] of this.runs) {
      const { jobId, run } = held;
      if (!held.machines.some((state) => wanted.has(state))) continue;
      const { preemptionClass, restartable, runTimeLimitS } = this.jobOf(jobId);
      const amountsOn = (state: MachineState, each: TaskAmounts, times: number) =>
        this.named(pairsOf(takenOn(each, state)).map(([kind, amount]) => [kind, amount * times]));
      found.push({
        ...{ id, class: preemptionClass, restartable, startedAt: run.start },
        checkpointAt: run.checkpointAt ?? null,
        limitEndsAt: runTimeLimitS === null ? null : run.start + runTimeLimitS,
        holds: alikeIn(held).flatMap(({ machines: on, tasks, each }) =>
          on.map((state, i) => ({
            machine: idOf(state.machine.id),
            amounts: amountsOn(state, each, timesTaken(each, tasks[i] as number)),
          })),
        ),
      });
    }
    return found;
  }

  /** Runs that are too young now will not be for long. */
  private lookAgain(exempt: readonly { id: string; why: string }[]): void {
    for (const { id, why } of exempt) {
      if (why !== 'RUNS_SHORT') continue;
      const { start } = (this.runs.get(id) as RunState).run;
      this.pass.wakeAt = Math.min(this.pass.wakeAt, start + this.rules.exemptS);
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

  private jobOf(jobId: number): Job {
    return this.pass.grid.job(jobId) as Job;
  }
}
