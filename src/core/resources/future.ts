/**
 * What will be free at a site, and when: the one question that schedulers ask. What is held there (by runs, promises, reservations,
 * windows, load that is not ours) is taken of what there is, from an instant until another. Runs are held until their planned ends; ones that
 * are late count as ending now, or at their limits (`Grid.advance`).
 *
 * Two kinds answer alike. A `Timeline` walks from one planned end to the next: quickest for those who look for one start in a cycle. A
 * `Profile` keeps a tree of openings: quickest for those who promise many.
 *
 * The rule of resources.md, "Holds in the future": a job with limit L may start at t if what it asks for is free during its planned
 * duration, and free of what ends by certain edges alone until t + L. So a limit keeps a run out of a window, and no wrong estimate lets it in.
 */
import type { Room } from '../grid/amounts.js';
import type { Requirement } from '../grid/requirements.js';
import type { EligibleMachines, Hold, Placement, PoolCopies } from '../grid/site-resources.js';

export interface Opening {
  at: number;
  /** When the job ends by its estimate if it starts then. */
  end: number;
  placement: Placement;
  pools: PoolCopies[];
}

/** `work` is a job's planned duration on power 1, `limit` the seconds after which its run is stopped: unless given, never. */
export interface Future {
  /** The job's opening now; null: it does not fit, or not for so long. */
  openingNow(
    requirement: Requirement,
    eligible: EligibleMachines,
    work: number,
    limit?: number,
  ): Opening | null;
  /**
   * The earliest instant, from now on, from which the job finds its room for so long; null: none. One task goes on the first machine in
   * order of placement that has the room then; several go on machine after machine.
   */
  earliestOpening(
    requirement: Requirement,
    eligible: EligibleMachines,
    work: number,
    limit?: number,
  ): Opening | null;
  /** Takes what is held from `from` until `to`; `certain`: these are edges, not expectations. */
  take(hold: Hold, from: number, to: number, certain?: boolean): void;
  /** Gives it back, or a part of its time. */
  give(hold: Hold, from: number, to: number, certain?: boolean): void;
  /** What is free at the instant, from now on; below 0 where more is taken than there is. */
  freeAt(time: number): Room;
}
