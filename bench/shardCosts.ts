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
    cycleS: number;
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
  // npm run bench -- --only shards-lock, commit 0: the lock of one job with and without the flush, and of 1000.
  flushS: 0.0004,
  submit: { firstS: 0.00057, furtherS: 0.00001 },
  move: { firstS: 0.00074, furtherS: 0.00001 },
  start: { firstS: 0.00068, furtherS: 0.00001 },
  report: { firstS: 0.001, furtherS: 0.000025 },
  plan: { cycleS: 0.0005, jobS: 0.000009, jobAndChildS: 0.000000125, siteS: 0.00025 },
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
  queuedBytes: 1500,
  endedBytes: 4000,
};
