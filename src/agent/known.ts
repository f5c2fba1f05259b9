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

  /** Whether this run has been seen, or a later one of the job. */
  has(run: RunName): boolean {
    return namesOf(run).some((name) => (this.epochs.get(keyOf(name)) ?? 0) >= run.epoch);
  }

  /** @param live whether the run goes on here */
  standing(run: RunName, live: boolean): Standing {
    if (!this.has(run)) return 'new';
    const names = namesOf(run);
    const latest = names.some((name) => this.epochs.get(keyOf(name)) === run.epoch);
    const ending = names.some((name) => this.ending.has(runKey(name)));
    return latest && !live && !ending ? 'acknowledged' : 'past';
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

/** The job, or its task: a later run of it is another. With a token it is this run alone, for a restored service counts its runs anew. */
const keyOf = ({ jobId, token, task }: RunName): string =>
  runKey({ jobId, epoch: 0, ...(token !== undefined && { token }), ...(task !== undefined && { task }) });

/** By which a run may have been recorded: the release before knew no tokens. */
function namesOf(run: RunName): RunName[] {
  const { token, ...before } = run;
  return token === undefined ? [run] : [run, before];
}

/** Said of a run that stands as `acknowledged`: a service that was restored from a copy learns that it will not end. */
export const ENDED_BEFORE = 'this run ended earlier, but the service has no record of its end';
