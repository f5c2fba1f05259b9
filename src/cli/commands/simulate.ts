/** `switchyard simulate` and `trace`: the schedulers over recorded workloads, without a service. */
import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { DEFAULT_POLICY, type Policy, parsePolicy } from '../../core/index.js';
import { ROOT } from '../../core/scheduler.js';
import { type RunOptions, simulateAll } from '../../simulator/compare.js';
import { fetchTrace } from '../../simulator/fetch.js';
import { dispatchNames, namesDispatch, policyNamed, policyNames } from '../../simulator/policies.js';
import type { Recorded, Simulated } from '../../simulator/simulate.js';
import type { Distribution } from '../../simulator/statistics.js';
import { readSwf } from '../../simulator/swf.js';
import { traceInfo } from '../../simulator/trace-info.js';
import { addCommand, note, print, printJson, readJson, wantsJson } from '../command.js';
import { CliError, ExitCode, usage } from '../errors.js';
import { count, duration, short, table } from '../format.js';
import { parseDuration, parseNumber } from '../parse.js';
import { draw, type PlotFlags, plotOptions, plotsOf } from '../plots.js';
import { type Progress, progress } from '../progress.js';
import { documentIn } from './whatif.js';

export interface WorkloadFlags extends PlotFlags {
  trace: string;
  processors?: string;
  sites?: string;
  estimate: string;
  missingEstimate: string;
  overrun: string;
  eventOrder: string;
  load?: string;
  enter?: string;
  section?: string;
  seed: string;
}

interface SimulateFlags extends WorkloadFlags {
  policy: string;
  out?: string;
  events?: string;
  summary?: string;
}

/** What `--policy` takes. */
export const POLICY_HELP = `of the sites: ${policyNames.join(', ')}; of the root too: one of ${dispatchNames.join(', ')}, a + and one of the sites; or a JSON file, as \`policy --json\` shows`;

export function addSimulate(program: Command): void {
  const command = workloadOptions(
    addCommand(program, 'simulate', 'simulate a scheduling policy on a trace, without a service'),
  )
    .option('--policy <name>', POLICY_HELP, 'easy')
    .option('--out <file>', "write one row per job, with the columns of Batsim's jobs.csv")
    .option('--events <file>', 'write starts and ends as JSON lines')
    .option('--summary <file>', 'write the summary as JSON');
  command.addHelpText(
    'after',
    '\nExample: switchyard simulate --trace KTH-SP2.swf.gz --processors 100 --policy easy --out jobs.csv --summary kth.json',
  );
  command.action(async (flags: SimulateFlags) => {
    const result = await run(flags);
    if (wantsJson(command)) return printJson(result);
    print(describe(result));
  });
  addTrace(program);
}

/** The options that say what is simulated; `compare` has them too. */
export function workloadOptions(command: Command): Command {
  command
    .requiredOption('--trace <file>', 'trace in the Standard Workload Format, gzipped or not')
    .option(
      '--processors <n>',
      'number of processors; wider jobs are left out (default: MaxProcs of the trace)',
    )
    .option(
      '--sites <file>',
      'CSV file with the columns site and capacity, and optionally name, machines, maxTasks (tasks per machine, time-shared) and maxRunningJobs',
    )
    .option(
      '--enter <where>',
      'where to submit jobs: to the site with the number of their partition (partition), or to the global queue (root) (default: root if the policy has a dispatch policy)',
    )
    .option(
      '--section <duration>',
      'on time-shared machines: CPU time after which the tasks of a job wait for each other (default: only at the end)',
    )
    .option(
      '--estimate <what>',
      'run times that the scheduler assumes: requested, actual, or predicted from the last runs of the user',
      'requested',
    )
    .option(
      '--missing-estimate <what>',
      'what to do with jobs without a requested time: drop them, or use their run time (run)',
      'drop',
    )
    .option('--overrun <what>', 'what happens to a job at its requested time: kill or continue', 'kill')
    .option(
      '--event-order <order>',
      'for events at the same time: run one cycle after all (batch), or one after each (per-event)',
      'batch',
    )
    .option('--load <part>', 'scale the times between submissions to this offered load, such as 0.8')
    .option('--seed <n>', 'random seed', '1');
  return plotOptions(command);
}

/** The options of a simulation without files, checked. */
export async function workloadOf(flags: WorkloadFlags, name: string): Promise<RunOptions> {
  const seed = parseNumber('--seed', flags.seed, { min: 0, max: 0xffffffff, integer: true });
  if (flags.sites !== undefined && flags.processors !== undefined) {
    throw usage('--processors', flags.processors, 'nothing together with --sites, which has the processors');
  }
  const { policy, ofRoot } = await policyOf(name, seed);
  const enter = flags.enter ?? (ofRoot ? ROOT : 'partition');
  return {
    trace: flags.trace,
    processors:
      flags.processors === undefined
        ? null
        : parseNumber('--processors', flags.processors, { min: 1, max: 1e7, integer: true }),
    policy,
    estimate: word('--estimate', flags.estimate, ['requested', 'actual', 'predicted'] as const),
    missingEstimate: word('--missing-estimate', flags.missingEstimate, ['drop', 'run'] as const),
    overrun: word('--overrun', flags.overrun, ['kill', 'continue'] as const),
    eventOrder: word('--event-order', flags.eventOrder, ['batch', 'per-event'] as const),
    load: flags.load === undefined ? null : parseNumber('--load', flags.load, { min: 0.01, max: 100 }),
    sites: flags.sites ?? null,
    enter: word('--enter', enter, ['partition', ROOT] as const),
    sectionS: flags.section === undefined ? null : parseDuration('--section', flags.section),
    out: null,
    events: null,
    summary: null,
  };
}

async function run(flags: SimulateFlags): Promise<Simulated> {
  const workload = await workloadOf(flags, flags.policy);
  const plots = await plotsOf(flags, [flags.policy]);
  let bar: Progress | undefined;
  try {
    const { out = null, events = null, summary = null } = flags;
    const options = { ...workload, out, events, summary };
    const [recorded] = (await simulateAll([options], plots?.window ?? null, (ended, jobs) => {
      bar ??= progress('simulated', jobs);
      bar.update(ended);
    })) as [Recorded];
    if (plots !== null) await draw(plots, [flags.policy], [recorded]);
    return recorded.simulated;
  } catch (error) {
    throw failure(error);
  } finally {
    bar?.stop();
  }
}

/** What a person can do something about is a line, not a stack. */
export function failure(error: unknown): CliError {
  return error instanceof CliError
    ? error
    : new CliError(error instanceof Error ? error.message : String(error));
}

/** The policy of a name or of a file, and whether it says how the root dispatches. */
async function policyOf(name: string, seed: number): Promise<{ policy: Policy; ofRoot: boolean }> {
  try {
    return { policy: policyNamed(name, seed), ofRoot: namesDispatch(name) };
  } catch {
    if (existsSync(name)) return { policy: await policyIn(name, seed), ofRoot: true };
    const accepted = `${policyNames.join(', ')}, with one of ${dispatchNames.join(', ')} and a + before it, or a file`;
    throw usage('--policy', name, accepted);
  }
}

/** What the file leaves out is as in the default policy. */
async function policyIn(path: string, seed: number): Promise<Policy> {
  const document = documentIn(await readJson('--policy', path));
  if (typeof document !== 'object' || document === null)
    throw usage('--policy', path, 'a file with a policy document, or a part of one');
  try {
    return parsePolicy({ ...DEFAULT_POLICY, seed, ...document });
  } catch (error) {
    throw new CliError(`--policy ${path}: ${(error as Error).message}`, ExitCode.USAGE);
  }
}

function word<T extends string>(field: string, value: string, words: readonly T[]): T {
  const found = words.find((one) => one === value);
  if (found === undefined) throw usage(field, value, words.join(', '));
  return found;
}

const MEASURES = ['wait', 'turnaround', 'slowdown', 'boundedSlowdown'] as const;

function describe(result: Simulated): string {
  const { dropped, malformed } = result;
  const rows = MEASURES.map((name) => [
    name,
    ...cells(result[name], name.toLowerCase().includes('slowdown')),
  ]);
  const left = Object.entries(dropped).filter(([, jobs]) => jobs > 0);
  return [
    `${count(result.jobs, 'job')} of ${result.trace} on ${count(result.processors, 'processor')} at ${count(result.sites, 'site')}, policy ${result.dispatch === null ? '' : `${result.dispatch.kind}+`}${result.local.kind}`,
    `makespan ${duration(result.makespan)}, utilization ${(100 * result.utilization).toFixed(2)} %`,
    table(['', 'mean', 'median', 'p95', 'max'], rows),
    ...(result.killed > 0 ? [`${count(result.killed, 'job')} killed at the requested time`] : []),
    ...(result.waiting > 0 ? [`${count(result.waiting, 'job')} that nothing could run`] : []),
    ...(left.length > 0 ? [`left out: ${left.map(([why, jobs]) => `${jobs} ${why}`).join(', ')}`] : []),
    ...(malformed.count > 0
      ? [
          `${count(malformed.count, 'malformed line')}, the first is line ${malformed.first[0]?.line}: ${malformed.first[0]?.why}`,
        ]
      : []),
  ].join('\n');
}

function cells({ mean, median, p95, max }: Distribution, plain: boolean): string[] {
  return [mean, median, p95, max].map((value) => (plain ? short(value) : duration(value)));
}

function addTrace(program: Command): void {
  const trace = program.command('trace').description('show what a trace contains, or download one');
  const info = addCommand(trace, 'info <file>', 'show what a trace in the Standard Workload Format contains');
  info.action(async (file: string) => {
    const read = await readSwf(file).catch((error: unknown) => {
      throw failure(error);
    });
    const found = traceInfo(read);
    for (const { line, why } of read.malformed.slice(0, 10)) note(`line ${line}: ${why}`);
    if (wantsJson(info)) return printJson(found);
    const { header, processors, run, requestedTime, interArrival, load, ...numbers } = found;
    for (const [key, value] of Object.entries(header)) print(`${key}: ${value.replaceAll('\n', '\n    ')}`);
    print('');
    for (const [name, value] of Object.entries(numbers)) print(`${name}: ${value}`);
    print(`load: ${load === null ? '-' : load.toFixed(4)}`);
    print('');
    print(
      table(
        ['', 'mean', 'median', 'p95', 'max'],
        [
          ['processors', ...cells(processors, true)],
          ['run', ...cells(run, false)],
          ['requestedTime', ...cells(requestedTime, false)],
          ['interArrival', ...cells(interArrival, false)],
        ],
      ),
    );
  });
  const fetch = addCommand(
    trace,
    'fetch <name>',
    'download a trace from the Parallel Workloads Archive (needs internet access)',
  ).option('--dir <folder>', 'folder to put it in', '.');
  fetch.action(async (name: string, { dir }: { dir: string }) => {
    const path = await fetchTrace(name, dir).catch((error: unknown) => {
      throw failure(error);
    });
    if (wantsJson(fetch)) printJson({ path });
    else print(path);
  });
}
