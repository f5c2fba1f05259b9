/**
 * What the model of shards (shardModel.ts) takes from measurements in this repository. Each constant names the command; the machine is the
 * one of docs/performance.md, with two cores and other work on them.
 */

/** A transaction with so many jobs holds the event lock, beside the flush, for so long, seconds. */
export interface Held {
  firstS: number;
  furtherS: number;
}

export interface Costs {
  flushS: number;
  submit: Held;
  move: Held;
  start: Held;
  /** The mean of starts and ends. */
  report: Held;
  plan: {
    jobS: number;
    /** More for each site, or each shard, among which the job's is chosen. */
    jobAndChildS: number;
    /** Of a site's cycle, with few jobs in its queue. */
    siteS: number;
  };
  /** From a commit until the next scheduler looks. */
  wakeS: number;
  /** From a start until each of its two reports, on average. */
  runS: number;
  /** Of each database: each gathers for itself. */
  apiProcesses: number;
}

export const COSTS: Costs = {
  // npm run bench -- --only shards-lock, at 1 job with and without the flush, and at 1000 jobs.
  flushS: 0.0017,
  submit: { firstS: 0.00067, furtherS: 0.0000107 },
  move: { firstS: 0.00091, furtherS: 0.0000145 },
  start: { firstS: 0.00083, furtherS: 0.0000251 },
  report: { firstS: 0.00125, furtherS: 0.0000381 },
  // npm run bench -- --only shards-plan: CPU for each job above 50 and above 400 sites; of a site's cycle with 100 queued jobs.
  plan: { jobS: 0.0000115, jobAndChildS: 0.00000021, siteS: 0.00017 },
  // Not measured: they are assumptions.
  wakeS: 0.005,
  runS: 1,
  apiProcesses: 4,
};

/** What follows from the number of jobs alone. */
export const AGREED = {
  // npm run bench -- --only mirror-million: 241 MiB.
  mirrorBytes: 253,
  // npm run bench -- --only million-queued: 14.57 s until a million jobs are read again, and decided about.
  loadS: 14.57e-6,
  // npm run bench -- --only lives --profile DIR: CPU of a life.
  serveCpuS: 0.251e-3,
  postgresCpuS: 0.307e-3,
  // npm run bench -- --only shards-lock: without the terms of decisions.
  queuedBytes: 1_236,
  endedBytes: 2_720,
};
