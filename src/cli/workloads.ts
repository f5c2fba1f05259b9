/** What `switchyard simulate` and `compare` share: the options that say what is simulated, and the simulations that they mean. */
import { existsSync, mkdtempSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, extname, join } from 'node:path';
import type { Command } from 'commander';
import { DEFAULT_POLICY, type Policy, parsePolicy } from '../core/index.js';
import { ROOT } from '../core/scheduler.js';
import { type RunOptions, simulateAll } from '../simulator/compare.js';
import { eventOrders } from '../simulator/engine.js';
import { type Generate, models } from '../simulator/generate.js';
import { nameOf, piecesOf, STANDARD_INPUT, textOf } from '../simulator/input.js';
import { KeptRuns } from '../simulator/kept-runs.js';
import {
  acceptedNames,
  dispatchNames,
  namesDispatch,
  policyNamed,
  policyNames,
} from '../simulator/policies.js';
import { bundlePolicyModule, type PolicyModule, usePolicyModule } from '../simulator/policy-module.js';
import type { GanttWindow } from '../simulator/record.js';
import type { Resample } from '../simulator/resample.js';
import { type Recorded, type SimulateOptions, type Source, traceName } from '../simulator/simulate.js';
import type { Interval } from '../simulator/statistics.js';
import { TIDY_FORMATS, type TidyRun, writeTidy } from '../simulator/tidy.js';
import { MAX_ESTIMATE_S } from '../simulator/user-estimates.js';
import { readExecution, type Workflow } from '../simulator/workflow.js';
import { NotAccepted, parseDuration, parseNumber } from '../words/values.js';
import { collectWhole, readJson } from './command.js';
import { documentIn } from './commands/whatif.js';
import { CliError, ExitCode, usage } from './errors.js';
import { draw, type PlotFlags, plotOptions, plotsOf } from './plots.js';
import { type Progress, progress } from './progress.js';
import { combinations, optionsIn, type Varied, withPolicyFields } from './vary.js';
import { jobsOf, readWorkflow, tasksOf } from './workflow.js';

export interface WorkloadFlags extends PlotFlags {
  policyModule?: string[];
  trace?: string[];
  workflow?: string[];
  dependencies?: boolean;
  scavengers?: string;
  checkpoint?: string;
  resample?: string | true;
  generate?: string;
  maxEstimate?: string;
  jobs?: string;
  processors?: string;
  sites?: string;
  outages?: string;
  windows?: string;
  estimate: string;
  missingEstimate: string;
  overrun: string;
  eventOrder: string;
  load?: string;
  enter?: string;
  section?: string;
  seed: string;
  seeds?: string;
  tau: string;
  warmUp?: string;
  out?: string;
  swf?: string;
  events?: string;
  summary?: string;
  mtbf?: string;
  repair?: string;
  table?: string;
  resume?: string;
  vary?: string[];
}

/** What `--policy` takes. */
export const POLICY_HELP = `a local policy (${policyNames.join(', ')}); or a dispatch policy (${dispatchNames.join(', ')}), + and a local policy; or a JSON file as printed by \`policy --json\``;

const ESTIMATES = ['requested', 'actual', 'predicted', 'regression'] as const;
const SEEDS_MAX = 1000;
const RUNS_MAX = 10_000;
const GENERATED_MAX = 5_000_000;
const RESAMPLED_WEEKS_MAX = 5_200;
/** Of a workflow file. */
const WORKFLOW_BYTES = 16 * 1024 ** 2;

/** The options of a generated workload; `trace generate` has them too. */
export const jobsOption = ['--jobs <n>', 'how many jobs to generate', '10000'] as const;
export const maxEstimateOption = [
  '--max-estimate <duration>',
  'with lublin-tsafrir: the longest estimate that users may give (default: 48h)',
] as const;

/** The options that say what is simulated and what is written. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: options, a line or few each
export function workloadOptions(command: Command): Command {
  command
    .option(
      '--trace <file>',
      'trace in the Standard or the Grid Workload Format, gzipped or not; - for standard input; may be repeated',
      collectWhole,
    )
    .option(
      '--workflow <file>',
      'instead of a trace: a workflow file (see docs/workflows.md) or an execution in the JSON of WfCommons, submitted at once; may be repeated',
      collectWhole,
    )
    .option(
      '--dependencies',
      'jobs of a trace wait for their preceding job and the think time (fields 17, 18)',
    )
    .option(
      '--resample [weeks]',
      'draw the users of the trace again by the seed, each with the jobs of its weeks, for this long (default: as long as the trace)',
    )
    .option('--generate <model>', `a generated workload instead of a trace: ${models.join(' or ')}`)
    .option(jobsOption[0], `with --generate: ${jobsOption[1]} (default: ${jobsOption[2]})`)
    .option(...maxEstimateOption);
  machineOptions(command)
    .option(
      '--mtbf <duration>',
      'make each machine fail at random, with this mean time between a repair and the next failure; its runs are lost',
    )
    .option('--repair <duration>', 'with --mtbf: mean time of a repair (default: 4h)')
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
      'run times that the scheduler assumes: requested, actual, predicted from the last two runs of the user, or by regression over all runs',
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
      'for events at the same time: run one cycle after all (batch), or one after each: submissions first (per-event), or ends first (terminations-first)',
      'batch',
    )
    .option(
      '--policy-module <file>',
      'TypeScript or JavaScript module with your own policies, for use with --policy; may be repeated; see docs/simulator.md',
      collectWhole,
    )
    .option(
      '--scavengers <part>',
      'make this part of the jobs, such as 5%, scavengers, which are stopped for the others',
    )
    .option(
      '--checkpoint <duration>',
      'make runs save their progress at this interval, in case they are stopped or lost (default: never)',
    )
    .option('--load <part>', 'scale the times between submissions to this offered load, such as 0.8')
    .option('--seed <n>', 'random seed, of generated jobs and of the policy', '1')
    .option(
      '--seeds <from-to>',
      'repeat with each of these seeds, such as 1-10; means get confidence intervals',
    )
    .option('--tau <duration>', 'bound of the bounded slowdown: shorter jobs count as this long', '10s')
    .option(
      '--warm-up <part>',
      'warm-up, simulated but not counted: a part of the jobs such as 10%, or a duration such as 7d',
    )
    .option('--out <file>', "write one row per job, with the columns of Batsim's jobs.csv and the site")
    .option('--swf <file>', 'write the jobs in the Standard Workload Format, with the schedule filled in')
    .option('--events <file>', 'write starts and ends as JSON lines')
    .option('--summary <file>', 'write the summary as JSON, with figures by site, user and width')
    .option(
      '--table <file>',
      'write one table of all runs, one row per run and measure: CSV, or Parquet if the name ends in .parquet',
    )
    .option(
      '--resume <folder>',
      'store the result of each run in this folder, and skip runs that are already there, so an interrupted sweep continues',
    );
  return plotOptions(command);
}

/** The machines, and when they are not there. */
const machineOptions = (command: Command): Command =>
  command
    .option(
      '--processors <n>',
      'number of processors; wider jobs are skipped (default: MaxProcs of the trace)',
    )
    .option('--sites <file>', 'CSV or JSON file of sites and their machines; see docs/simulator.md')
    .option(
      '--outages <file>',
      'CSV file of outages: columns site, from and to, and optionally machine and runs (lost or finish)',
    )
    .option(
      '--windows <file>',
      'CSV file of maintenance windows, known in advance: columns site, from and to, and optionally machine, known and runs',
    );

/** Policies of a user's. */
export interface Modules {
  bundles: PolicyModule[];
  names: string[];
}

/** Simulations of one policy, with what is varied: for each trace and each seed. */
export interface PolicyRuns {
  policy: string;
  varied: Varied;
  runs: Recorded[];
}

/** Loads the policy modules; the names under which their policies run. */
export async function policyModules({ policyModule = [] }: WorkloadFlags): Promise<Modules> {
  const modules: Modules = { bundles: [], names: [] };
  for (const path of policyModule) {
    try {
      const bundle = await bundlePolicyModule(path);
      modules.names.push(...(await usePolicyModule(bundle)));
      modules.bundles.push(bundle);
    } catch (error) {
      throw new CliError(`--policy-module ${(error as Error).message}`, ExitCode.USAGE);
    }
  }
  return modules;
}

/**
 * Runs each policy on each workload, every file checked before. Where several simulations would write one file, what distinguishes
 * them comes into its name. Throws in one line what a person can do something about.
 */
export async function simulated(
  flags: WorkloadFlags,
  policies: readonly string[],
  { bundles }: Modules,
  groups: boolean,
): Promise<PolicyRuns[]> {
  const cells = policies.flatMap((policy) => combinations(flags.vary).map((varied) => ({ policy, varied })));
  const { planned, traces, perCell } = await plannedRuns(flags, cells, groups);
  const writes = [flags.out, flags.swf, flags.events, flags.summary].some((file) => file !== undefined);
  const labels = new Set(planned.map(({ label }) => label));
  if (writes && labels.size < planned.length)
    throw usage(
      '--trace',
      (flags.trace ?? []).join(' '),
      'files with different names if results are written',
    );
  const format = TIDY_FORMATS.find((ending) => flags.table?.endsWith(ending));
  if (flags.table !== undefined && format === undefined)
    throw usage('--table', flags.table, `a file that ends in ${TIDY_FORMATS.join(' or ')}`);
  const kept = keptIn(flags, bundles, writes);
  const plots = await plotsOf(flags, cells.map(cellName));
  const spooled = await spool(traces, planned.length);
  try {
    const runs = planned.map(({ label, ...options }) => ({
      ...options,
      trace: options.trace === STANDARD_INPUT && spooled !== null ? spooled.path : options.trace,
      ...filesOf(flags, label),
    }));
    const recorded = await withProgress(runs, bundles, plots?.window ?? null, kept);
    const results = cells.map(
      (cell, i): PolicyRuns => ({ ...cell, runs: recorded.slice(i * perCell, (i + 1) * perCell) }),
    );
    if (plots !== null)
      await draw(
        plots,
        results.map((one) => ({ label: cellName(one), ...one })),
      );
    if (flags.table !== undefined) await writeTidy(flags.table, results.flatMap(tidyRuns));
    return results;
  } catch (error) {
    throw failure(error);
  } finally {
    if (spooled !== null) await rm(spooled.folder, { recursive: true });
  }
}

const tidyRuns = ({ policy, varied, runs }: PolicyRuns): TidyRun[] =>
  runs.map(({ simulated }) => ({ policy, varied, simulated }));

/** `easy load=0.7`: what a policy is called, with what is varied. */
export const cellName = ({ policy, varied }: Pick<PolicyRuns, 'policy' | 'varied'>): string =>
  [policy, ...Object.entries(varied).map(([field, value]) => `${field}=${value}`)].join(' ');

interface Planned {
  planned: (RunOptions & { label: string })[];
  /** Of the first cell: all have the same files. */
  traces: Source[];
  perCell: number;
}

/** The runs of all cells, each with what tells its files apart. */
async function plannedRuns(
  flags: WorkloadFlags,
  cells: readonly Pick<PolicyRuns, 'policy' | 'varied'>[],
  groups: boolean,
): Promise<Planned> {
  const seeds = seedsOf(flags);
  const planned: Planned['planned'] = [];
  let first: Source[] | null = null;
  for (const { policy, varied } of cells) {
    const given = { ...flags, ...optionsIn(varied) };
    const traces = await workloads(given);
    first ??= traces;
    if (traces.length * seeds.length * cells.length > RUNS_MAX)
      throw usage('--seeds', flags.seeds ?? flags.seed, `at most ${RUNS_MAX} simulations in total`);
    for (const trace of traces) {
      for (const seed of seeds) {
        const label = [
          ...(cells.length > 1 ? [cellName({ policy: basename(policy), varied }).replaceAll(' ', '-')] : []),
          ...(traces.length > 1 ? [traceName(trace).replace(/\.(swf|gwf|json|yaml|yml)?(\.gz)?$/i, '')] : []),
          ...(seeds.length > 1 ? [String(seed)] : []),
        ].join('-');
        const of = typeof trace === 'object' && 'seed' in trace ? { ...trace, seed } : trace;
        const options = withPolicyFields(await optionsOf(given, policy, of, seed), varied);
        planned.push({ ...options, groups, label });
      }
    }
  }
  const traces = first ?? [];
  return { planned, traces, perCell: traces.length * seeds.length };
}

/** What is not kept is what is written or drawn while a run goes on. */
function keptIn(
  { resume, plots, trace }: WorkloadFlags,
  bundles: readonly PolicyModule[],
  writes: boolean,
): KeptRuns | null {
  if (resume === undefined) return null;
  if (writes || plots !== undefined || trace?.includes(STANDARD_INPUT))
    throw usage(
      '--resume',
      resume,
      'no --out, --swf, --events, --summary, --plots or standard input with it: stored runs do not have what these need',
    );
  try {
    return new KeptRuns(resume, bundles);
  } catch (error) {
    throw usage('--resume', resume, `a folder that can be written (${(error as Error).message})`);
  }
}

/** Runs what is not kept, and shows how far all are. */
async function withProgress(
  runs: readonly RunOptions[],
  bundles: readonly PolicyModule[],
  window: GanttWindow | null,
  kept: KeptRuns | null,
): Promise<Recorded[]> {
  const recorded = runs.map((run): Recorded | null => {
    const simulated = kept?.read(run) ?? null;
    return simulated && { simulated, record: null };
  });
  const missing = runs.flatMap((run, index) => (recorded[index] === null ? [{ run, index }] : []));
  let bar: Progress | undefined;
  // Of one run its jobs are shown, of several how many have ended.
  const one = missing.length === 1;
  let ended = 0;
  try {
    if (!one) bar = progress('runs', missing.length);
    await simulateAll(
      missing.map(({ run }) => run),
      bundles,
      window,
      (done, jobs) => {
        if (!one) return;
        bar ??= progress('simulated', jobs);
        bar.update(done);
      },
      (at, result) => {
        const { run, index } = missing[at] as (typeof missing)[number];
        recorded[index] = result;
        kept?.keep(run, result.simulated);
        if (!one) bar?.update(++ended);
      },
    );
  } finally {
    bar?.stop();
  }
  return recorded as Recorded[];
}

/** The mean of a measure over runs, and its confidence interval, as text. */
export const plusMinus = ({ mean, half }: Interval, text: (value: number) => string): string =>
  half === null ? text(mean) : `${text(mean)} ± ${text(half)}`;

/** What a person can do something about is a line, not a stack. */
export function failure(error: unknown): Error {
  return error instanceof CliError || error instanceof NotAccepted
    ? error
    : new CliError(error instanceof Error ? error.message : String(error));
}

/** The model, how many of its jobs and their longest estimate, checked. */
export function generateOf(
  name: string,
  { jobs = jobsOption[2], maxEstimate }: { jobs?: string; maxEstimate?: string },
): Omit<Generate, 'seed'> {
  const model = word('--generate', name, models);
  if (maxEstimate !== undefined && model !== 'lublin-tsafrir')
    throw usage('--max-estimate', maxEstimate, 'only for jobs of the model lublin-tsafrir');
  return {
    model,
    jobs: parseNumber('--jobs', jobs, { min: 1, max: GENERATED_MAX, integer: true }),
    ...(maxEstimate === undefined ? {} : { maxEstimateS: maxEstimateOf(maxEstimate) }),
  };
}

function maxEstimateOf(value: string): number {
  const whole = Math.round(parseDuration('--max-estimate', value));
  if (whole < MAX_ESTIMATE_S.least || whole > MAX_ESTIMATE_S.most)
    throw usage('--max-estimate', value, 'a duration from 2h to 365d');
  return whole;
}

export const parseSeed = (value: string): number =>
  parseNumber('--seed', value, { min: 0, max: 0xffffffff, integer: true });

export const parseProcessors = (value: string): number =>
  parseNumber('--processors', value, { min: 1, max: 1e7, integer: true });

async function workloads({ trace, workflow, generate, jobs, maxEstimate }: WorkloadFlags): Promise<Source[]> {
  if (workflow !== undefined) {
    const other = trace?.join(' ') ?? generate;
    if (other !== undefined)
      throw usage('--workflow', workflow.join(' '), 'not together with --trace or --generate');
    return Promise.all(workflow.map(workflowIn));
  }
  if (generate === undefined) {
    if (jobs !== undefined) throw usage('--jobs', jobs, 'only together with --generate');
    if (maxEstimate !== undefined)
      throw usage('--max-estimate', maxEstimate, 'only together with --generate');
    if (trace === undefined)
      throw new CliError('--trace, --workflow or --generate is missing', ExitCode.USAGE);
    if (trace.filter((path) => path === STANDARD_INPUT).length > 1)
      throw usage('--trace', STANDARD_INPUT, 'standard input only once');
    return trace;
  }
  if (trace !== undefined) throw usage('--trace', trace.join(' '), 'not together with --generate');
  return [{ ...generateOf(generate, { jobs, maxEstimate }), seed: 0 }];
}

/** A file of ours, or an execution of WfCommons. */
async function workflowIn(path: string): Promise<Workflow> {
  try {
    if (/\.json(\.gz)?$/i.test(path)) return await readExecution(path);
    const text = await textOf(path, WORKFLOW_BYTES);
    const { jobs } = jobsOf(await readWorkflow(path, text, { given: {}, client: null }));
    return { workflow: path, tasks: tasksOf(jobs) };
  } catch (error) {
    throw failure(error);
  }
}

function seedsOf({ seed, seeds }: WorkloadFlags): number[] {
  if (seeds === undefined) return [parseSeed(seed)];
  const [, from, to] = /^(\d{1,9})-(\d{1,9})$/.exec(seeds) ?? [];
  const count = Number(to) - Number(from) + 1;
  if (!(count >= 1 && count <= SEEDS_MAX))
    throw usage('--seeds', seeds, `FROM-TO, at most ${SEEDS_MAX} seeds, such as 1-10`);
  return Array.from({ length: count }, (_, i) => Number(from) + i);
}

type Files = Pick<SimulateOptions, 'out' | 'swf' | 'events' | 'summary'>;

function filesOf({ out, swf, events, summary }: WorkloadFlags, label: string): Files {
  const own = (path: string | undefined): string | null => {
    if (path === undefined || label === '') return path ?? null;
    const extension = extname(path);
    return `${path.slice(0, path.length - extension.length)}-${label}${extension}`;
  };
  return { out: own(out), swf: own(swf), events: own(events), summary: own(summary) };
}

/** Standard input can be read once: for several simulations it is written into a file. */
async function spool(
  traces: readonly Source[],
  runs: number,
): Promise<{ folder: string; path: string } | null> {
  if (runs === 1 || !traces.includes(STANDARD_INPUT)) return null;
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-'));
  const path = join(folder, nameOf(STANDARD_INPUT));
  try {
    await writeFile(path, piecesOf(STANDARD_INPUT));
  } catch (error) {
    await rm(folder, { recursive: true });
    throw failure(error);
  }
  return { folder, path };
}

/** The options of a simulation without its files, checked. */
async function optionsOf(
  flags: WorkloadFlags,
  name: string,
  trace: Source,
  seed: number,
): Promise<RunOptions> {
  if (flags.sites !== undefined && flags.processors !== undefined) {
    throw usage('--processors', flags.processors, 'not together with --sites, which defines the processors');
  }
  if (typeof trace !== 'string' && flags.sites === undefined && flags.processors === undefined)
    throw 'tasks' in trace
      ? usage('--workflow', trace.workflow, 'only together with --processors or --sites')
      : usage('--generate', trace.model, 'only together with --processors or --sites');
  if (typeof trace !== 'string' && flags.dependencies)
    throw usage('--dependencies', 'true', 'only together with --trace');
  const { policy, ofRoot } = await policyOf(name, seed);
  const enter = flags.enter ?? (ofRoot ? ROOT : 'partition');
  return {
    trace,
    processors: flags.processors === undefined ? null : parseProcessors(flags.processors),
    policy,
    estimate: word('--estimate', flags.estimate, ESTIMATES),
    missingEstimate: word('--missing-estimate', flags.missingEstimate, ['drop', 'run'] as const),
    overrun: word('--overrun', flags.overrun, ['kill', 'continue'] as const),
    eventOrder: word('--event-order', flags.eventOrder, eventOrders),
    resample: resampleOf(flags, trace, seed),
    load: flags.load === undefined ? null : parseNumber('--load', flags.load, { min: 0.01, max: 100 }),
    sites: flags.sites ?? null,
    dependencies: flags.dependencies ?? false,
    outages: flags.outages ?? null,
    scavengers: flags.scavengers === undefined ? null : partOf('--scavengers', flags.scavengers),
    checkpointS: flags.checkpoint === undefined ? null : parseDuration('--checkpoint', flags.checkpoint),
    failures: failuresOf(flags),
    windows: flags.windows ?? null,
    enter: word('--enter', enter, ['partition', ROOT] as const),
    sectionS: flags.section === undefined ? null : parseDuration('--section', flags.section),
    tauS: parseDuration('--tau', flags.tau),
    warmUp: warmUpOf(flags.warmUp),
    out: null,
    events: null,
    summary: null,
  };
}

function resampleOf({ resample, dependencies }: WorkloadFlags, trace: Source, seed: number): Resample | null {
  if (resample === undefined) return null;
  const given = resample === true ? '' : resample;
  if (typeof trace !== 'string' || dependencies)
    throw usage('--resample', given, 'only together with --trace, and not with --dependencies');
  const weeks = resample === true ? null : resample;
  return {
    seed,
    weeks:
      weeks === null
        ? null
        : parseNumber('--resample', weeks, { min: 1, max: RESAMPLED_WEEKS_MAX, integer: true }),
  };
}

function failuresOf({ mtbf, repair }: WorkloadFlags): NonNullable<SimulateOptions['failures']> | null {
  if (mtbf !== undefined)
    return {
      betweenS: parseDuration('--mtbf', mtbf),
      repairS: parseDuration('--repair', repair ?? '4h'),
    };
  if (repair !== undefined) throw usage('--repair', repair, 'only together with --mtbf');
  return null;
}

function warmUpOf(value: string | undefined): NonNullable<SimulateOptions['warmUp']> | null {
  if (value === undefined) return null;
  if (!value.endsWith('%')) return { s: parseDuration('--warm-up', value) };
  return { part: partOf('--warm-up', value) };
}

/** A percentage below 100 as a part of 1. */
function partOf(field: string, value: string): number {
  const percent = Number(/^(\d+(?:\.\d+)?)%$/.exec(value)?.[1]);
  if (!(percent < 100)) throw usage(field, value, 'a percentage below 100, such as 5%');
  return percent / 100;
}

/** The policy of a name or of a file, and whether it says how the root dispatches. */
async function policyOf(name: string, seed: number): Promise<{ policy: Policy; ofRoot: boolean }> {
  try {
    return { policy: policyNamed(name, seed), ofRoot: namesDispatch(name) };
  } catch {
    if (existsSync(name)) return { policy: await policyIn(name, seed), ofRoot: true };
    throw usage('--policy', name, `${acceptedNames()}; or a file`);
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
