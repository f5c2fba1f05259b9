/** The margins of the last jobs with a deadline that the root has given to a local queue (two-level.md, "Deadline"). */
import type { Job } from '../model.js';

/** How many are kept: the widest window that a policy may ask for. */
export const MAX_WINDOW = 1000;

/** Seconds by which the job can start late and still meet its deadline; null when it has none. */
export function marginOf(job: Pick<Job, 'submittedAt' | 'estimateS' | 'deadline'>): number | null {
  return job.deadline === null ? null : job.deadline - job.estimateS - job.submittedAt;
}

export class Margins {
  private margins: number[] = [];

  /** Oldest first. */
  last(count: number): number[] {
    return this.margins.slice(-count);
  }

  /** The next ones, oldest first. */
  add(margins: readonly number[]): void {
    for (const margin of margins) this.margins.push(margin);
    if (this.margins.length >= 2 * MAX_WINDOW) this.margins = this.last(MAX_WINDOW);
  }
}
