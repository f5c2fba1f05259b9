/** How many jobs' latest runs are remembered. */
const MAX_JOBS = 100_000;

/**
 * The latest run of each job that came to the agent, so that a late repetition of an assignment starts nothing. Bounded:
 * what is that old is not repeated any more, because the service sends only live runs.
 */
export class KnownRuns {
  private readonly epochs = new Map<string, number>();

  /** Whether this run, or a later one of the job, has been seen. */
  has(jobId: string, epoch: number): boolean {
    return (this.epochs.get(jobId) ?? 0) >= epoch;
  }

  add(jobId: string, epoch: number): void {
    const latest = Math.max(epoch, this.epochs.get(jobId) ?? 0);
    this.epochs.delete(jobId); // To the end of the map: the oldest goes first.
    this.epochs.set(jobId, latest);
    if (this.epochs.size > MAX_JOBS) this.epochs.delete(this.epochs.keys().next().value!);
  }
}
