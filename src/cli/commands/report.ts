/** `switchyard report`: what a job used of what it asked for, and what to ask for next time, as Slurm's `seff`. */
import type { Command } from 'commander';
import { isTerminal } from '../../core/states.js';
import { parseId } from '../../words/index.js';
import { addCommand, show } from '../command.js';
import { connect } from '../connect.js';
import { ReportDocument, type ReportQuery } from '../documents.gql.js';
import { CliError } from '../errors.js';
import { noSuchJob } from '../follow.js';
import { count, duration, table } from '../format.js';

type Job = NonNullable<ReportQuery['job']>;

/** One kind of thing: amounts in its unit; null: not measured, not asked for, or nothing to say. */
export interface Used {
  what: 'time' | 'CPUs' | 'memory';
  used: number | null;
  asked: number | null;
  next: number | null;
}

/** What is asked for beyond what was used: runs of one program differ. */
const SPARE = 1.25;
const MEMORY_STEP_MB = 100;
const TIME_STEP_S = 60;

const upTo = (step: number, value: number): number => Math.max(step, Math.ceil(value / step) * step);

/**
 * Of the latest run. Time is compared with the estimate, on the slowest machine of the run; CPUs with the mean over the run, memory with the
 * peak of the task that took the most. What the run was ended for is to be asked for twofold, as nobody knows how much it would have taken.
 */
export function usedBy(job: Job): Used[] {
  const run = job.runs.at(-1);
  if (!run?.startedAt || !run.endedAt) return [];
  const wallS = (Date.parse(run.endedAt) - Date.parse(run.startedAt)) / 1000;
  const powers = run.allocations.map(({ machine }) => machine.benchmark);
  const power = powers.length > 0 ? Math.min(...powers) : job.benchmark;
  const { cpus } = job;
  const meanCpus = run.cpuS === null || wallS <= 0 ? null : run.cpuS / wallS;
  const peakMb = run.peakMemoryMb === null ? null : run.peakMemoryMb;
  const tooLong = run.cause === 'RUN_TIME_LIMIT';
  const tooMuch = run.cause === 'MEMORY_LIMIT';
  const timeS = (wallS * power) / job.benchmark;
  return [
    {
      what: 'time',
      used: wallS,
      asked: (job.estimateS * job.benchmark) / power,
      next: upTo(TIME_STEP_S, tooLong ? 2 * timeS : SPARE * timeS),
    },
    {
      what: 'CPUs',
      used: meanCpus,
      asked: cpus,
      next: meanCpus === null ? null : Math.min(cpus, Math.max(job.tasks, Math.ceil(meanCpus))),
    },
    {
      what: 'memory',
      used: peakMb,
      asked: job.memoryMbPerTask > 0 ? job.memoryMbPerTask : null,
      next:
        peakMb === null
          ? null
          : upTo(MEMORY_STEP_MB, tooMuch ? 2 * Math.max(peakMb, job.memoryMbPerTask) : SPARE * peakMb),
    },
  ];
}

const HOW: Readonly<Record<Used['what'], (next: number, job: Job) => string>> = {
  time: (next) => `--estimate ${duration(next)}`,
  CPUs: (next, { tasks }) => `--cpus ${Math.ceil(next / tasks)}`,
  memory: (next) => `--memory-mb ${next}`,
};
const UNITS: Readonly<Record<Used['what'], (value: number) => string>> = {
  time: duration,
  CPUs: (value) => String(Number(value.toFixed(2))),
  memory: (value) => `${Math.round(value)} MB`,
};

export function addReport(program: Command): void {
  const report = addCommand(
    program,
    'report <id>',
    'compare the resources that a job requested and used, and suggest values for next time',
  );
  report.action(async (id: string) => {
    const jobId = parseId('job', id);
    const { job } = await connect().request(ReportDocument, { id: jobId });
    if (!job) throw noSuchJob(jobId);
    const used = usedBy(job);
    if (used.length === 0)
      throw new CliError(
        isTerminal(job.state)
          ? `${jobId} was not run: ${job.state}${job.cause ? ` (${job.cause})` : ''}`
          : `${jobId} is ${job.state}: there is a report when it has ended`,
      );
    show(report, { id: jobId, state: job.state, cause: job.cause, used }, () => reportOf(jobId, job, used));
  });
}

function reportOf(id: string, job: Job, all: readonly Used[]): string {
  const rows = all.map(({ what, used, asked, next }) => [
    what,
    used === null ? 'not measured' : UNITS[what](used),
    asked === null ? '-' : UNITS[what](asked),
    used === null || !asked ? '-' : `${Math.round((100 * used) / asked)} %`,
    next === null ? '-' : HOW[what](next, job),
  ]);
  const runs = count(job.runs.length, 'run');
  return [
    `${id} is ${job.state}${job.cause ? ` (${job.cause})` : ''} after ${runs}, with ${count(job.tasks, 'task')}`,
    table(['WHAT', 'USED', 'ASKED', 'SHARE', 'NEXT TIME'], rows),
  ].join('\n');
}
