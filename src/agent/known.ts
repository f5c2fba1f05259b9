import { type RunName, runKey } from './runner.js';

/** How many jobs' latest runs are remembered, and tasks' of jobs that have several. */
const MAX_JOBS = 100_000;

/** What an assignment is to the agent that gets it. */
export type Standing =
  /** Never seen: it may be started. */
  | 'new'
  /** An earlier run of the job, or one whose end is on its way to the service. */
  | 'past'
  /** The service has acknowledged its end and speaks of it as live. */
  | 'acknowledged';

/**
 * The latest run of each job that came to the agent, so that no run is started twice. Bounded: what is that old is not
 * repeated any more, because the service sends only live runs.
 */
export class KnownRuns {
  private readonly epochs = new Map<string, number>();
  /** Runs whose end has not been acknowledged. */
  private readonly ending = new Set<string>();

  /** Whether this run, or a later one of the job, has been seen. */
  has(run: RunName): boolean {
    return (this.epochs.get(keyOf(run)) ?? 0) >= run.epoch;
  }

  /** @param live whether the run goes on here */
  standing(run: RunName, live: boolean): Standing {
    if (!this.has(run)) return 'new';
    const latest = this.epochs.get(keyOf(run)) === run.epoch;
    return latest && !live && !this.ending.has(runKey(run)) ? 'acknowledged' : 'past';
  }

  add(run: RunName): void {
    const key = keyOf(run);
    const latest = Math.max(run.epoch, this.epochs.get(key) ?? 0);
    this.epochs.delete(key); // To the end of the map: the oldest goes first.
    this.epochs.set(key, latest);
    if (this.epochs.size > MAX_JOBS) this.epochs.delete(this.epochs.keys().next().value!);
  }

  /** The run's end is reported from now on. */
  reported(run: RunName): void {
    this.ending.add(runKey(run));
  }

  /** The service has the run's end. */
  acknowledged(run: RunName): void {
    this.ending.delete(runKey(run));
  }
}

/** The job, or its task: a later run of it is another. */
const keyOf = ({ jobId, task }: RunName): string => (task === undefined ? jobId : `${jobId}.${task}`);

/** Said of a run that stands as `acknowledged`: a service that was restored from a copy learns that it will not end. */
export const ENDED_BEFORE = 'this run ended earlier, but the service has no record of its end';
