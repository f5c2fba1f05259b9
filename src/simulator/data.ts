/** What a run's data costs in time, and what the runs of a simulation teach. */
import {
  averagesWith,
  type DataCatalog,
  type Job,
  type JobHistory,
  type ObservedRun,
  type RunAverages,
  resourceKinds,
} from '../core/index.js';

/**
 * Seconds of a run at the site that go into moving its data: the sandbox and the inputs before it computes, the output after,
 * one after the other, over the links as they are at its start. Runs do not share bandwidth.
 */
export function transferS(catalog: DataCatalog, job: Job, siteId: number): number {
  return catalog.sandboxS(job, siteId) + catalog.accessS(job, siteId) + catalog.returnS(job, siteId);
}

/** The history that a grid's schedulers see, kept up as the live service's is: a record changes with each completed run. */
export class Learning {
  private readonly records = new Map<string, RunAverages>();

  /** `before`: what was known when the simulation began. */
  constructor(
    private readonly history: JobHistory,
    private readonly referencePower: number,
    before: readonly RunAverages[],
  ) {
    for (const record of before) this.keep(record);
  }

  /** In the order in which they came. */
  get averages(): RunAverages[] {
    return [...this.records.values()];
  }

  /** A run of the job completed. One of no length teaches nothing. */
  completed(job: Job, run: ObservedRun): void {
    if (!(run.turnaroundS > 0)) return;
    const { application, userId } = job;
    const kinds = resourceKinds(job);
    const none = { application, userId, kinds, count: 0, turnaroundS: 0, executionS: 0, ioS: 0 };
    const record = this.records.get(keyOf(none)) ?? none;
    this.keep(averagesWith(record, run, this.referencePower));
  }

  private keep(record: RunAverages): void {
    this.records.set(keyOf(record), record);
    this.history.set(record);
  }
}

const keyOf = ({ application, userId, kinds }: RunAverages): string =>
  JSON.stringify([application, userId, kinds]);
