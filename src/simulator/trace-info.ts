/** What a trace contains: figures to look at before it is simulated. */
import { type Distribution, distribution } from './statistics.js';
import type { SwfTrace } from './swf.js';

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

/** Looks through a trace. */
export function traceInfo({ header, jobs, malformedCount }: SwfTrace): TraceInfo {
  const ran = jobs.filter(({ run }) => run > 0);
  const widths = ran.map((job) =>
    job.requestedProcessors > 0 ? job.requestedProcessors : job.allocatedProcessors,
  );
  const submits = Float64Array.from(jobs, ({ submit }) => submit).sort();
  const spanS = submits.length === 0 ? 0 : (submits[submits.length - 1] as number) - (submits[0] as number);
  const maxProcs = Number(header.get('MaxProcs'));
  const work = ran.reduce((sum, { run }, i) => sum + run * Math.max(0, widths[i] as number), 0);
  return {
    header: Object.fromEntries(header),
    jobs: jobs.length,
    malformedLines: malformedCount,
    users: new Set(jobs.map(({ user }) => user).filter((user) => user >= 0)).size,
    partitions: new Set(jobs.map(({ partition }) => partition).filter((partition) => partition >= 0)).size,
    spanS,
    processors: distribution(Float64Array.from(widths.filter((width) => width > 0))),
    run: distribution(Float64Array.from(ran, ({ run }) => run)),
    requestedTime: distribution(
      Float64Array.from(
        jobs.filter(({ requestedTime }) => requestedTime > 0),
        ({ requestedTime }) => requestedTime,
      ),
    ),
    interArrival: distribution(submits.slice(1).map((submit, i) => submit - (submits[i] as number))),
    withoutRequestedTime: jobs.filter(({ requestedTime }) => !(requestedTime > 0)).length,
    overran: jobs.filter(({ run, requestedTime }) => requestedTime > 0 && run > requestedTime).length,
    load: maxProcs > 0 && spanS > 0 ? work / (maxProcs * spanS) : null,
  };
}
