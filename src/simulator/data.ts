/** What a run's data costs in time, and what the runs of a simulation teach. */
import {
  type DataCatalog,
  type Job,
  type JobHistory,
  noRuns,
  type ObservedRun,
  type RunTotals,
  resourceKinds,
  totalsWith,
} from '../core/index.js';

/**
 * Seconds of a run at the site that go into moving its data: the sandbox, the inputs and the image before it computes, the output after,
 * one after the other, over the links as they are at its start. Runs do not share bandwidth.
 */
export function transferS(catalog: DataCatalog, job: Job, siteId: number): number {
  return catalog.sandboxS(job, siteId) + catalog.accessS(job, siteId) + catalog.returnS(job, siteId);
}

/** The history that a grid's schedulers see, kept up as the live service's is: a record changes with each completed run. */
export class Learning {
  private readonly records = new Map<string, RunTotals>();

  /** `before`: what was known when the simulation began. */
  constructor(
    private readonly history: JobHistory,
    private readonly referencePower: number,
    before: readonly RunTotals[],
  ) {
    for (const record of before) this.keep(record);
  }

  /** In the order in which they came. */
  get totals(): RunTotals[] {
    return [...this.records.values()];
  }

  /** A run of the job completed. One of no length teaches nothing. */
  completed(job: Job, run: ObservedRun): void {
    if (!(run.turnaroundS > 0)) return;
    const { application, userId } = job;
    const kinds = resourceKinds(job);
    const none = noRuns({ application, userId, kinds });
    const record = this.records.get(keyOf(none)) ?? none;
    this.keep(totalsWith(record, run, this.referencePower));
  }

  private keep(record: RunTotals): void {
    this.records.set(keyOf(record), record);
    this.history.set(record);
  }
}

const keyOf = ({ application, userId, kinds }: RunTotals): string =>
  JSON.stringify([application, userId, kinds]);
