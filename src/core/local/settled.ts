/**
 * What the last cycle of a site has settled, where it went through the whole queue by the rule of EASY: the reservation
 * stands, and none of the jobs that it left can start. This holds while no run begins, ends or is due, and the queue
 * changes by jobs that come in behind all others only; the next cycle looks at those and at nothing else.
 *
 * It is the answer that looking at everything would give. The first that waits does not fit in the same room, and its
 * earliest start is where it was: what has been started since it was found takes nothing that it needs. Every other job
 * was tried with at least the room that is left, and to end before the reservation becomes harder as time goes by.
 */
import type { SiteEntry } from '../grid.js';
import type { Reservation } from '../model.js';

export class Settled {
  /** How many jobs, from the head of the queue, need no look. */
  jobs = 0;
  private reservation: Reservation | null = null;
  private resources = 0;
  private queue = 0;
  private from = 0;
  private until = 0;

  /** A cycle at `now` has left the site like this. Jobs with licenses depend on other sites too: nothing is settled. */
  note({ resources, queue, requests }: SiteEntry, reservation: Reservation | null, now: number): void {
    this.reservation = requests.size === 0 ? reservation : null;
    this.jobs = queue.length;
    this.resources = resources.changes;
    this.queue = queue.changes;
    this.from = now;
    this.until = resources.runs[0]?.end ?? Infinity;
  }

  /** Whether it holds, and the driver has kept the reservation. */
  holds({ resources, queue, reservation }: SiteEntry, now: number): boolean {
    return (
      this.reservation !== null &&
      this.reservation === reservation &&
      this.reservation === resources.leftBy &&
      this.resources === resources.changes &&
      this.queue === queue.changes &&
      this.from <= now &&
      now < this.until
    );
  }
}
