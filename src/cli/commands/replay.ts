/** `switchyard replay`: submits the jobs of a trace as they once came, at a speed factor. */
import { randomUUID } from 'node:crypto';
import { basename } from 'node:path';
import type { Command } from 'commander';
import { type Client, ServiceError, sleep, untilDone } from '../../client/index.js';
import { isTerminal, jobStates } from '../../core/states.js';
import { MAX } from '../../platform/limits.js';
import { readTrace, type Trace } from '../../simulator/trace.js';
import { cleanTrace, type Dropped, type SimJob } from '../../simulator/workload.js';
import { parseNumber, parseWord } from '../../words/values.js';
import { addCommand, findSite, interruption, note, print, printJson, wantsJson } from '../command.js';
import { connect } from '../connect.js';
import {
  JobCountDocument,
  type JobInput,
  type JobState,
  type MachineFieldsFragment,
  MachinesDocument,
} from '../documents.gql.js';
import { CliError, ExitCode } from '../errors.js';
import { count, duration } from '../format.js';
import { progress } from '../progress.js';
import { openSimulatedSite, type SimulatedMachine } from '../simulated-site.js';
import { submit } from './submit.js';

interface ReplayOptions {
  speed: string;
  site?: string;
  limit?: string;
  processors?: string;
  missingEstimate: string;
  simulate?: boolean;
  group?: string;
  wait: boolean;
}

/** The most jobs in one request: what came at one instant of a fast replay. */
const BATCH = 1000;
/** Jobs due within so long go into one request. */
const TICK_MS = 100;
const POLL_MS = 1000;
/** Of one submission while the service is away: half a minute at the least. */
const RETRIES = 18;

export function addReplay(program: Command): void {
  const command = addCommand(
    program,
    'replay <trace>',
    'submit the jobs of a trace (Standard Workload Format, gzipped or not) at their original times',
  )
    .option(
      '--speed <factor>',
      'how many times faster: submission times, run times and estimates are divided by it',
      '1',
    )
    .option('--site <site>', 'run them only on machines like those of this site')
    .option(
      '--simulate',
      'create the site if there is none, with --processors CPUs, and run a simulated agent for it here (ADMIN)',
    )
    .option(
      '--processors <n>',
      'number of processors; wider jobs are skipped (default: those of the site, or of the trace)',
    )
    .option('--limit <n>', 'submit only this many jobs, from the start of the trace')
    .option(
      '--missing-estimate <what>',
      'what to do with jobs without a requested time: drop them, or use their run time (run)',
      'drop',
    )
    .option('--group <name>', 'group name of the jobs (default: from the name of the trace)')
    .option('--no-wait', 'exit when all are submitted, without waiting for them to end');
  command.addHelpText(
    'after',
    '\nExample: switchyard replay KTH-SP2.swf.gz --speed 20000 --limit 5000 --site kth --simulate --processors 100',
  );
  command.action(async (path: string, options: ReplayOptions) => {
    const trace = await traceIn(path);
    const client = connect();
    const result = await replay(client, path, trace, options);
    if (wantsJson(command)) printJson(result);
    else print(describe(result));
    if (result.ended && result.ended.completed < result.submitted) process.exitCode = ExitCode.FAILED;
  });
}

async function traceIn(path: string): Promise<Trace> {
  let trace: Trace;
  try {
    trace = await readTrace(path);
  } catch (error) {
    throw new CliError((error as Error).message, ExitCode.USAGE);
  }
  if (trace.malformedCount > 0) {
    const [first] = trace.malformed;
    note(
      `${path}: ${count(trace.malformedCount, 'malformed line')} skipped, the first is line ${first!.line}: ${first!.why}`,
    );
  }
  return trace;
}

interface ReplayResult {
  group: string;
  submitted: number;
  dropped: Dropped;
  /** Ran longer than they had asked for, and are cut there: they were killed. */
  cut: number;
  ended: Ended | null;
  tookS: number;
}

interface Ended {
  completed: number;
  failed: number;
  cancelled: number;
  /** Submitted, and in none of these. */
  unaccounted: number;
}

async function replay(
  client: Client,
  path: string,
  trace: Trace,
  options: ReplayOptions,
): Promise<ReplayResult> {
  const speed = parseNumber('--speed', options.speed, { min: 1e-6, max: 1e9 });
  const limit =
    options.limit === undefined ? Infinity : parseNumber('--limit', options.limit, { min: 1, integer: true });
  const asked =
    options.processors === undefined
      ? null
      : parseNumber('--processors', options.processors, { min: 1, integer: true });
  const missing = parseWord('--missing-estimate', options.missingEstimate, ['DROP', 'RUN']);
  const name = basename(path)
    .replace(/\.gz$/, '')
    .replace(/\.swf$/, '')
    .replace(/[^\w.-]/g, '-');
  const group = options.group ?? `replay-${name}-${randomUUID().slice(0, 8)}`;
  const inHeader = Number(trace.header.get('MaxProcs') ?? trace.header.get('MaxNodes')) || null;

  const site = options.site ?? (options.simulate ? name : null);
  const simulated = options.simulate
    ? await openSimulatedSite(client, site!, () => [machineOf(site!, asked ?? inHeader)], { speed: 1 })
    : null;
  try {
    const place = site === null ? null : await placeOf(client, site);
    const processors = asked ?? place?.cpus ?? inHeader ?? noProcessors();
    const cleaned = cleanTrace(trace.jobs, {
      processorsOf: () => processors,
      estimate: 'requested',
      missingEstimate: missing === 'RUN' ? 'run' : 'drop',
      overrun: 'kill',
    });
    const jobs = cleaned.jobs.slice(0, limit);
    if (jobs.length === 0) throw new CliError(`${path}: no jobs left to replay`);

    const signal = interruption();
    const beganMs = Date.now();
    const toInput = (job: SimJob): JobInput => ({
      ...inputOf(job, name, speed),
      groupName: group,
      ...place?.platform,
    });
    const submitted = await submitInTime(client, jobs, speed, toInput, signal);
    const ended =
      options.wait && !signal.aborted ? await waitForEnds(client, group, submitted, signal) : null;
    if (signal.aborted) {
      throw new CliError(
        `interrupted after ${count(submitted, 'job')}; cancel them with: switchyard cancel --group ${group}`,
      );
    }
    const cut = jobs.filter((job) => job.limitS !== null && job.runS > job.limitS).length;
    return { group, submitted, dropped: cleaned.dropped, cut, ended, tookS: (Date.now() - beganMs) / 1000 };
  } finally {
    await simulated?.close();
  }
}

/** What is submitted for a job of a trace: as it was then, all times divided by the speed. */
function inputOf({ job, sourceId, runS, limitS }: SimJob, trace: string, speed: number): JobInput {
  const seconds = Math.min(runS, limitS ?? Infinity) / speed;
  return {
    name: `${trace} ${sourceId}`,
    application: trace,
    // What a process agent runs; a simulated one goes by simulatedRunS.
    command: 'sleep',
    arguments: [seconds.toFixed(3)],
    tasks: job.cpusPerTask,
    estimateS: Math.max(MAX.leastSeconds, job.estimateS / speed),
    simulatedRunS: seconds,
  };
}

function noProcessors(): never {
  throw new CliError('the trace does not state its number of processors; use --processors', ExitCode.USAGE);
}

/** One machine with all processors of the trace, of a platform that no other site has. */
function machineOf(site: string, cpus: number | null): SimulatedMachine {
  return {
    name: 'machine',
    cpus: cpus ?? noProcessors(),
    memoryMb: 0,
    benchmark: 100,
    os: 'simulated',
    architecture: site,
  };
}

/** The CPUs of a site, and the platform that jobs ask for to come to it: that of its machines. */
async function placeOf(
  client: Client,
  nameOrId: string,
): Promise<{ cpus: number; platform: { os: string; architecture: string } }> {
  const site = await findSite(client, nameOrId);
  const machines = await client.all(MachinesDocument, 'machines', { site: null });
  const [first, ...others] = machines.filter((machine) => machine.site.id === site.id);
  if (!first) throw new CliError(`site ${site.name} has no machines`, ExitCode.FAILED);
  const same = (machine: MachineFieldsFragment): boolean =>
    machine.os === first.os && machine.architecture === first.architecture;
  if (!others.every(same))
    throw new CliError(
      `the machines of site ${site.name} differ in operating system or architecture; omit --site`,
    );
  const elsewhere = machines.find((machine) => machine.site.id !== site.id && same(machine));
  if (elsewhere)
    note(
      `site ${elsewhere.site.name} also has ${first.os}/${first.architecture} machines, so jobs may also run there`,
    );
  return {
    cpus: [first, ...others].reduce((sum, machine) => sum + machine.cpus, 0),
    platform: { os: first.os, architecture: first.architecture },
  };
}

/** Submits each job when its time has come, those of one tick together, and gives how many. */
async function submitInTime(
  client: Client,
  jobs: readonly SimJob[],
  speed: number,
  toInput: (job: SimJob) => JobInput,
  signal: AbortSignal,
): Promise<number> {
  const origin = jobs[0]!.job.submittedAt;
  const beganMs = Date.now();
  const dueMs = (job: SimJob): number => beganMs + ((job.job.submittedAt - origin) / speed) * 1000;
  const bar = progress('submitted', jobs.length);
  let next = 0;
  try {
    while (next < jobs.length && !signal.aborted) {
      const nowMs = Date.now();
      const waitMs = dueMs(jobs[next]!) - nowMs;
      if (waitMs > 0) {
        await sleep(Math.max(waitMs, TICK_MS), signal);
        continue;
      }
      let end = next + 1;
      while (end < jobs.length && end - next < BATCH && dueMs(jobs[end]!) <= nowMs) end++;
      if (!(await submitSurely(client, jobs.slice(next, end).map(toInput), signal))) break;
      next = end;
      bar.update(next);
    }
  } finally {
    bar.stop();
  }
  return next;
}

/**
 * Submits through interruptions of the service: the idempotency key makes a repeated request harmless. False: `signal` was
 * aborted before it was certain.
 */
async function submitSurely(client: Client, jobs: JobInput[], signal: AbortSignal): Promise<boolean> {
  const key = `replay-${randomUUID()}`;
  const submitted = await untilDone(
    () => submit(client, jobs, key),
    signal,
    (error, failures) => {
      if (failures > RETRIES || !(error instanceof ServiceError && error.mayPass)) throw error;
    },
  );
  return submitted !== undefined;
}

/** Waits until no job of the group is left and counts how they ended. */
async function waitForEnds(
  client: Client,
  group: string,
  submitted: number,
  signal: AbortSignal,
): Promise<Ended> {
  const countOf = async (states: readonly JobState[]): Promise<number> =>
    (await client.request(JobCountDocument, { filter: { groupName: group, states } })).jobCount;
  const live = jobStates.filter((state) => !isTerminal(state));
  const bar = progress('ended', submitted);
  try {
    for (let left = await countOf(live); left > 0 && !signal.aborted; left = await countOf(live)) {
      bar.update(submitted - left);
      await sleep(POLL_MS, signal);
    }
  } finally {
    bar.stop();
  }
  const completed = await countOf(['COMPLETED']);
  const failed = await countOf(['FAILED']);
  const cancelled = await countOf(['CANCELLED']);
  return { completed, failed, cancelled, unaccounted: submitted - completed - failed - cancelled };
}

const DROPPED: Readonly<Record<keyof Dropped, string>> = {
  tooWide: 'wider than the number of processors',
  noWidth: 'of unknown width',
  noRunTime: 'without run time',
  noEstimate: 'without requested time',
  negativeSubmit: 'submitted before the beginning',
  noSite: 'without a site',
};

function describe({ group, submitted, dropped, cut, ended, tookS }: ReplayResult): string {
  const reasons = Object.entries(dropped).filter(([, number]) => number > 0);
  const lines = [`${count(submitted, 'job')} submitted in group ${group}, in ${duration(tookS)}`];
  if (reasons.length > 0) {
    lines.push(
      `skipped jobs of the trace: ${reasons.map(([reason, number]) => `${number} ${DROPPED[reason as keyof Dropped]}`).join(', ')}`,
    );
  }
  if (cut > 0) lines.push(`${cut} cut at their requested time`);
  if (ended) {
    lines.push(
      `${ended.completed} completed, ${ended.failed} failed, ${ended.cancelled} canceled, ${ended.unaccounted} unaccounted for`,
    );
  }
  return lines.join('\n');
}
