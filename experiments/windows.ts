/**
 * Maintenance windows: a month of KTH-SP2 with the machine closed for four hours each week, under every local policy, beside the same month
 * without; and the month with windows where some of the jobs are scavengers, which are stopped for others. The trace is not part of the repository: KTH-SP2.swf.gz of the Parallel Workloads Archive, in the folder where this is run.
 */
import { existsSync } from 'node:fs';
import type { Run } from '../src/core/index.js';
import { runSimulation } from '../src/simulator/engine.js';
import { policyNamed } from '../src/simulator/policies.js';
import { classify, load } from '../src/simulator/simulate.js';
import { MemorySink, ResultSink, type RunEnd } from '../src/simulator/sink.js';
import { type MaintenanceWindow, withWindows } from '../src/simulator/sites.js';
import type { SimJob } from '../src/simulator/workload.js';
import { markdownTable, type Report } from './report.js';

const TRACE = 'KTH-SP2.swf.gz';
const PROCESSORS = 100;
const DAY = 86_400;
/** The 28 days with the most work begin there. */
const FROM_DAY = 112;
const DAYS = 28;
const CLOSED_S = 4 * 3600;
const SCAVENGERS = 0.05;
export const POLICIES = [
  ...['fcfs', 'sjf', 'first-fit', 'easy', 'easy-sjbf', 'conservative', 'flexible', 'hybrid-4'],
] as const;
/** Those that plan ahead stop runs for others. */
export const STOPPING = ['easy', 'easy-sjbf', 'conservative', 'flexible', 'hybrid-4'] as const;

export interface ScavengersRow {
  policy: string;
  /** Runs of all that were there while the machine was closed, those that were stopped later too. */
  crossed: number;
  /** Mean waits of scavengers and of others, hours; and where nobody is stopped. A job waits until its last run begins. */
  waitH: number;
  othersWaitH: number;
  calmWaitH: number;
  calmOthersWaitH: number;
  stopped: number;
  lostCpuHours: number;
  /** Work of scavengers done within the month over all that there was room for outside the windows; and of others. */
  used: number;
  othersUsed: number;
}

export interface WindowsRow {
  policy: string;
  /** Runs that were there while the machine was closed. */
  crossed: number;
  /** Mean waits, hours: with windows, and without. */
  waitH: number;
  calmWaitH: number;
  /** Work done within the month over all that there was room for outside the windows, and over all. */
  used: number;
  calmUsed: number;
}

/** Tuesdays of a kind: day 2 of each week of the month, from the ninth hour. */
export const weekly = (weeks: number): MaintenanceWindow[] =>
  Array.from({ length: weeks }, (_, week) => {
    const fromS = (7 * week + 2) * DAY + 9 * 3600;
    return { siteId: 1, machine: null, fromS, toS: fromS + CLOSED_S };
  });

/** The month under each policy. */
export async function windows(
  trace: string = TRACE,
  onProgress: (done: number, all: number) => void = () => {},
  policies: readonly string[] = POLICIES,
): Promise<WindowsRow[]> {
  if (!existsSync(trace)) throw new Error(`${trace} is not here: get it from the Parallel Workloads Archive`);
  const { world, workload } = await load(trace, null, {
    ...{ processors: PROCESSORS, estimate: 'requested', missingEstimate: 'drop', overrun: 'kill' },
  });
  const jobs = monthOf(workload.jobs);
  const closed = weekly(DAYS / 7);
  return policies.map((name, i) => {
    const policy = policyNamed(name, 1);
    const [with_, without] = [withWindows(world, closed), world].map((one) => {
      const sink = new MemorySink(jobs.length);
      runSimulation(one, jobs, { policy, eventOrder: 'batch' }, [sink]);
      return sink;
    }) as [MemorySink, MemorySink];
    onProgress(i + 1, policies.length);
    const row = {
      ...{ policy: name, crossed: crossed(with_, closed) },
      ...{ waitH: meanWaitH(jobs, with_), calmWaitH: meanWaitH(jobs, without) },
    };
    const open = DAYS * DAY - closed.length * CLOSED_S;
    return { ...row, used: workOf(jobs, with_) / open, calmUsed: workOf(jobs, without) / (DAYS * DAY) };
  });
}

/** The month with windows where jobs drawn from it may be stopped for the others, under each policy that does. */
export async function scavengers(
  trace: string = TRACE,
  policies: readonly string[] = STOPPING,
): Promise<ScavengersRow[]> {
  const { world, workload } = await load(trace, null, {
    ...{ processors: PROCESSORS, estimate: 'requested', missingEstimate: 'drop', overrun: 'kill' },
  });
  const jobs = monthOf(workload.jobs);
  const closed = weekly(DAYS / 7);
  const open = DAYS * DAY - closed.length * CLOSED_S;
  return policies.map((name) => {
    const calm = policyNamed(name, 1);
    const policy = classify(jobs, { policy: calm, scavengers: SCAVENGERS });
    const [stopping, leaving] = [policy, calm].map((one) => {
      const sink = new CrossingSink(jobs.length, closed);
      runSimulation(withWindows(world, closed), jobs, { policy: one, eventOrder: 'batch' }, [sink]);
      return sink;
    }) as [CrossingSink, CrossingSink];
    const [some, others] = [0, 1].map((of) => jobs.filter(({ job }) => job.preemptionClass === of)) as [
      SimJob[],
      SimJob[],
    ];
    return {
      ...{ policy: name, crossed: stopping.crossed },
      ...{ waitH: meanWaitH(some, stopping), othersWaitH: meanWaitH(others, stopping) },
      ...{ calmWaitH: meanWaitH(some, leaving), calmOthersWaitH: meanWaitH(others, leaving) },
      ...{ stopped: stopping.preempted, lostCpuHours: stopping.lostCpuS / 3600 },
      ...{ used: workOf(some, stopping) / open, othersUsed: workOf(others, stopping) / open },
    };
  });
}

class CrossingSink extends ResultSink {
  crossed = 0;

  constructor(
    jobs: number,
    private readonly closed: readonly MaintenanceWindow[],
  ) {
    super(jobs);
  }

  override ended(job: SimJob, index: number, run: Run, at: number, how: RunEnd): void {
    super.ended(job, index, run, at, how);
    if (this.closed.some(({ fromS, toS }) => run.start < toS && at > fromS)) this.crossed++;
  }
}

/** The jobs of the month, from 0 on. */
function monthOf(jobs: readonly SimJob[]): SimJob[] {
  const first = (jobs[0] as SimJob).job.submittedAt + FROM_DAY * DAY;
  return jobs
    .filter(({ job }) => job.submittedAt >= first && job.submittedAt < first + DAYS * DAY)
    .map((one, i) => ({
      ...one,
      job: { ...one.job, id: i + 1, submittedAt: one.job.submittedAt - first },
    }));
}

export const crossed = ({ starts, ends }: MemorySink, closed: readonly MaintenanceWindow[]): number =>
  starts.filter((start, i) => closed.some(({ fromS, toS }) => start < toS && (ends[i] as number) > fromS))
    .length;

const meanWaitH = (jobs: readonly SimJob[], { starts }: MemorySink): number =>
  jobs.reduce((sum, { job }) => sum + (starts[job.id - 1] as number) - job.submittedAt, 0) /
  jobs.length /
  3600;

/** Within the month, in seconds of the whole machine. */
const workOf = (jobs: readonly SimJob[], { starts, ends }: MemorySink): number =>
  jobs.reduce((sum, { job }) => {
    const i = job.id - 1;
    const seconds = Math.min(DAYS * DAY, ends[i] as number) - Math.min(DAYS * DAY, starts[i] as number);
    return sum + (seconds * job.tasks * job.cpusPerTask) / PROCESSORS;
  }, 0);

export function windowsReport(rows: readonly WindowsRow[], stopping: readonly ScavengersRow[]): Report {
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
  const all = [...rows, ...stopping].reduce((sum, row) => sum + row.crossed, 0);
  const verdict = `${all} runs cross a window, under ${rows.length} policies`;
  const text = `# Maintenance windows

\`switchyard experiment windows\`, in a folder with \`${TRACE}\` of the Parallel Workloads Archive: days ${FROM_DAY} to ${FROM_DAY + DAYS}, on ${PROCESSORS}
processors, with and without a window of ${CLOSED_S / 3600} h each week. Jobs are planned with the time that their users requested, and stopped at it. So a job that requests more
time than is left before a window waits until after the window.

Use is the work done within the month divided by the capacity outside the windows.

${markdownTable(
  [
    'policy',
    'runs that cross a window',
    'mean wait, h',
    'without windows',
    'use of the open time',
    'without windows',
  ],
  rows.map(({ policy, crossed, waitH, calmWaitH, used, calmUsed }) => [
    ...[policy, String(crossed), waitH.toFixed(2), calmWaitH.toFixed(2), percent(used), percent(calmUsed)],
  ]),
)}

## Scavengers

The same month with windows; ${SCAVENGERS * 100} % of its jobs, drawn by seed 1, are scavengers (class 0), which are stopped for the others (class 1) by the defaults of
[preemption](../operations/preemption.md). A stopped job starts over, and its wait lasts until its last run begins. The columns in parentheses have the same jobs without preemption.

${markdownTable(
  [
    ...['policy', 'runs that cross a window', 'mean wait of scavengers, h', '(none stopped)', 'of others, h'],
    ...['(none stopped)', 'runs stopped', 'CPU-hours lost', 'use by scavengers', 'by others'],
  ],
  stopping.map((row) => [
    ...[row.policy, String(row.crossed), row.waitH.toFixed(2), `(${row.calmWaitH.toFixed(2)})`],
    ...[row.othersWaitH.toFixed(2), `(${row.calmOthersWaitH.toFixed(2)})`, String(row.stopped)],
    ...[row.lostCpuHours.toFixed(1), percent(row.used), percent(row.othersUsed)],
  ]),
)}

${verdict}.
`;
  return { name: 'windows', text, data: { rows, stopping }, verdict };
}
