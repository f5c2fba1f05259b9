/** What a trace contains: figures to look at before it is simulated. */
import { MAX_PROCESSORS } from './sites.js';
import { type Distribution, distribution } from './statistics.js';
import type { SwfJob } from './swf.js';
import { type TraceScan, wholeInHeader } from './trace.js';

export interface TraceInfo {
  header: Record<string, string>;
  jobs: number;
  malformedLines: number;
  users: number;
  /** Partitions that jobs name: sites in a trace of a grid. */
  partitions: number;
  /** Seconds from the first submission to the last. */
  spanS: number;
  /** Of jobs that ran: processors asked for, or else got. */
  processors: Distribution;
  /** Seconds, of jobs that ran. */
  run: Distribution;
  /** Seconds, of jobs that have one. */
  requestedTime: Distribution;
  /** Seconds between submissions. */
  interArrival: Distribution;
  withoutRequestedTime: number;
  /** Jobs that ran longer than they asked for. */
  overran: number;
  /** Work submitted over what the header's `MaxProcs` could do in the span; null without it. */
  load: number | null;
}

/** Values as they come; a quarter of what an array of numbers would take. */
class Values {
  private values = new Float64Array(1024);
  private length = 0;

  add(value: number): void {
    if (this.length === this.values.length) {
      const longer = new Float64Array(2 * this.length);
      longer.set(this.values);
      this.values = longer;
    }
    this.values[this.length++] = value;
  }

  get all(): Float64Array {
    return this.values.subarray(0, this.length);
  }
}

/** Looks through the jobs of a trace, one after the other. */
export class TraceSurvey {
  private readonly submits = new Values();
  private readonly widths = new Values();
  private readonly runs = new Values();
  private readonly requestedTimes = new Values();
  private readonly users = new Set<number>();
  private readonly partitions = new Set<number>();
  private work = 0;
  private overran = 0;

  take({ submit, run, user, partition, requestedTime, ...job }: Readonly<SwfJob>): void {
    this.submits.add(submit);
    if (user >= 0) this.users.add(user);
    if (partition >= 0) this.partitions.add(partition);
    if (requestedTime > 0) {
      this.requestedTimes.add(requestedTime);
      if (run > requestedTime) this.overran++;
    }
    if (!(run > 0)) return;
    this.runs.add(run);
    const width = job.requestedProcessors > 0 ? job.requestedProcessors : job.allocatedProcessors;
    if (!(width > 0)) return;
    this.widths.add(width);
    this.work += run * width;
  }

  info(scan: TraceScan): TraceInfo {
    const submits = this.submits.all.sort();
    const spanS = (submits[submits.length - 1] as number) - (submits[0] as number);
    const maxProcs = wholeInHeader(scan, 'MaxProcs', MAX_PROCESSORS);
    return {
      header: Object.fromEntries(scan.header),
      jobs: scan.jobCount,
      malformedLines: scan.malformedCount,
      users: this.users.size,
      partitions: this.partitions.size,
      spanS,
      processors: distribution(this.widths.all),
      run: distribution(this.runs.all),
      requestedTime: distribution(this.requestedTimes.all),
      interArrival: distribution(submits.subarray(1).map((submit, i) => submit - (submits[i] as number))),
      withoutRequestedTime: scan.jobCount - this.requestedTimes.all.length,
      overran: this.overran,
      load: maxProcs !== null && spanS > 0 ? this.work / (maxProcs * spanS) : null,
    };
  }
}
