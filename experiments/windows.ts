/**
 * Maintenance windows: a month of KTH-SP2 with the machine closed for four hours each week, under every local policy, beside the same month
 * without. The trace is not part of the repository: KTH-SP2.swf.gz of the Parallel Workloads Archive, in the folder where this is run.
 */
import { existsSync } from 'node:fs';
import { runSimulation } from '../src/simulator/engine.js';
import { policyNamed } from '../src/simulator/policies.js';
import { load } from '../src/simulator/simulate.js';
import { MemorySink } from '../src/simulator/sink.js';
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
export const POLICIES = [
  ...['fcfs', 'sjf', 'first-fit', 'easy', 'easy-sjbf', 'conservative', 'flexible', 'hybrid-4'],
] as const;

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
  jobs.reduce((sum, { job }, i) => sum + (starts[i] as number) - job.submittedAt, 0) / jobs.length / 3600;

/** Within the month, in seconds of the whole machine. */
const workOf = (jobs: readonly SimJob[], { starts, ends }: MemorySink): number =>
  jobs.reduce((sum, { job }, i) => {
    const seconds = Math.min(DAYS * DAY, ends[i] as number) - Math.min(DAYS * DAY, starts[i] as number);
    return sum + (seconds * job.tasks * job.cpusPerTask) / PROCESSORS;
  }, 0);

export function windowsReport(rows: readonly WindowsRow[]): Report {
  const percent = (share: number): string => `${(share * 100).toFixed(1)} %`;
  const all = rows.reduce((sum, row) => sum + row.crossed, 0);
  const verdict = `${all} runs cross a window, under ${rows.length} policies`;
  const text = `# Maintenance windows

\`switchyard experiment windows\`, in a folder with \`${TRACE}\` of the Parallel Workloads Archive: its days ${FROM_DAY} to ${FROM_DAY + DAYS}, on ${PROCESSORS}
processors, with and without a window of ${CLOSED_S / 3600} h each week. Jobs are planned with the time that their users asked for, and stopped at it. So a job that asks for more
than is left before a window waits until it is over.

Use is work done within the month over what there is room for outside the windows.

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

${verdict}.
`;
  return { name: 'windows', text, data: { rows }, verdict };
}
