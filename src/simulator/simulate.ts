/** One simulation of a trace from its files to its figures: what `switchyard simulate` does. */
import { writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { type Policy, ROOT } from '../core/index.js';
import { type EventOrder, runSimulation, type World } from './engine.js';
import { BatsimCsv, JsonLines } from './files.js';
import { scaleLoad } from './load.js';
import { GanttSink, type GanttWindow, type PlotRecord, plotRecord } from './record.js';
import { MemorySink, type Sink } from './sink.js';
import { countedWorld, readSites, type SiteShape, widestAt } from './sites.js';
import { type Summary, summarize } from './statistics.js';
import { type SwfScan, type SwfTrace, scanSwf } from './swf.js';
import { Cleaning, type Dropped, type EstimateSource, type Workload } from './workload.js';

export interface SimulateOptions {
  /** Path of a trace in the Standard Workload Format, gzipped or not. */
  trace: string;
  /** Of the machine; null: what the header of the trace says (`MaxProcs`). Not with `sites`. */
  processors: number | null;
  policy: Policy;
  estimate: EstimateSource;
  missingEstimate: 'drop' | 'run';
  overrun: 'kill' | 'continue';
  eventOrder: EventOrder;
  /** Stretch the times between submissions until the work submitted is this part of what the machines can do; null: not. */
  load: number | null;
  /** A file of sites (see `readSites`). */
  sites: string | null;
  /** Where jobs are submitted: to the site that their partition names, or to the root, whose policy then chooses. */
  enter?: 'partition' | typeof ROOT;
  /** On time-shared machines: CPU-seconds after which the tasks of a job wait for each other; null: at the end only. */
  sectionS?: number | null;
  /** Where to write a row for each job in Batsim's columns. */
  out: string | null;
  /** Where to write starts and ends as JSON lines. */
  events: string | null;
  /** Where to write the summary as JSON. */
  summary: string | null;
  /** Told the number of jobs once it is known, then how many have ended. */
  onProgress?: (ended: number, jobs: number) => void;
}

export interface Simulated extends Summary {
  trace: string;
  processors: number;
  sites: number;
  eventOrder: EventOrder;
  /** The root's policy; null: jobs were submitted to the sites. */
  dispatch: Policy['dispatch'] | null;
  local: Policy['local'];
  estimate: EstimateSource;
  /** Jobs that were killed at their requested time. */
  killed: number;
  /** Jobs that nothing could run. */
  waiting: number;
  dropped: Dropped;
  /** Lines of the trace that are no jobs: how many, and the first of them. */
  malformed: { count: number; first: SwfTrace['malformed'] };
}

/** A simulation and what its pictures need; `record` is null where none were asked for. */
export interface Recorded {
  simulated: Simulated;
  record: PlotRecord | null;
}

/**
 * Runs a trace, and keeps what its pictures need if there is a window for the Gantt chart. Throws what reading and writing the
 * files throws, and on options that do not go together.
 */
export async function simulateAndRecord(
  options: SimulateOptions,
  window: GanttWindow | null,
): Promise<Recorded> {
  const sites = options.sites === null ? null : await readSites(options.sites);
  const { scan, world, workload } = await load(options.trace, sites, options);
  const processors = world.machines.reduce((sum, { cpus }) => sum + cpus, 0);
  const timeShared = world.machines.some(({ maxTasks }) => maxTasks);
  const jobs = options.load === null ? workload.jobs : scaleLoad(workload.jobs, processors, options.load);
  const times = new MemorySink(jobs.length);
  const sinks: Sink[] = [times];
  const gantt = window === null ? null : new GanttSink(world, window, jobs);
  if (gantt !== null) sinks.push(gantt);
  const files: (BatsimCsv | JsonLines)[] = [];
  let outcome: ReturnType<typeof runSimulation>;
  try {
    if (options.out !== null) files.push(new BatsimCsv(options.out, basename(options.trace), world));
    if (options.events !== null) files.push(new JsonLines(options.events));
    sinks.push(...files);
    options.onProgress?.(0, jobs.length);
    const { policy, eventOrder } = options;
    const onProgress = (ended: number) => options.onProgress?.(ended, jobs.length);
    outcome = runSimulation(
      world,
      jobs,
      { policy, eventOrder, predict: options.estimate === 'predicted', onProgress },
      sinks,
    );
  } finally {
    for (const file of files) file.close();
  }
  const simulated: Simulated = {
    trace: basename(options.trace),
    processors,
    sites: world.sites.length,
    eventOrder: options.eventOrder,
    dispatch: options.enter === ROOT ? options.policy.dispatch : null,
    local: options.policy.local,
    estimate: options.estimate,
    ...summarize(jobs, times, processors, timeShared),
    killed: workload.killed,
    waiting: outcome.waiting,
    dropped: workload.dropped,
    malformed: { count: scan.malformedCount, first: scan.malformed },
  };
  if (options.summary !== null) writeFileSync(options.summary, `${JSON.stringify(simulated, null, 2)}\n`);
  return {
    simulated,
    record: gantt === null ? null : plotRecord(jobs, times, processors, gantt, timeShared),
  };
}

type Cleaned = Pick<
  SimulateOptions,
  'processors' | 'estimate' | 'missingEstimate' | 'overrun' | 'enter' | 'sectionS'
>;
type Sites = readonly SiteShape[];

/** Reads a trace; its machines and its cleaned jobs. */
export async function load(
  path: string,
  sites: Sites | null,
  options: Cleaned,
): Promise<{ scan: SwfScan; world: World; workload: Workload }> {
  let preparation: Preparation | null = null as Preparation | null;
  const scan = await scanSwf(path, (job, header) => {
    preparation ??= new Preparation(header, sites, options);
    preparation.cleaning.take(job);
  });
  const { world, cleaning } = preparation ?? new Preparation(scan.header, sites, options);
  return { scan, world, workload: cleaning.workload() };
}

/** The machines and the cleaned jobs of a trace that has been read. */
export function prepare(
  trace: SwfTrace,
  sites: Sites | null,
  options: Cleaned,
): { world: World; workload: Workload } {
  const { world, cleaning } = new Preparation(trace.header, sites, options);
  for (const job of trace.jobs) cleaning.take(job);
  return { world, workload: cleaning.workload() };
}

/** What the header, the file of sites and the options say of the machines, and the cleaning for these. */
class Preparation {
  readonly world: World;
  readonly cleaning: Cleaning;

  constructor(header: SwfScan['header'], sites: Sites | null, options: Cleaned) {
    const atRoot = options.enter === ROOT;
    if (sites === null) {
      const processors = options.processors ?? Number(header.get('MaxProcs'));
      if (!(Number.isInteger(processors) && processors >= 1)) {
        throw new Error(
          'processors: the header of the trace does not say MaxProcs; accepted is a whole number from 1',
        );
      }
      this.world = countedWorld([{ id: 1, name: 'machine', processors }]);
      this.cleaning = new Cleaning({ ...options, atRoot, processorsOf: () => processors });
      return;
    }
    if (options.processors !== null) throw new Error('processors: not accepted together with sites');
    this.world = countedWorld(sites);
    const byId = new Map(sites.map((site) => [site.id, site]));
    const widest = Math.max(...sites.map(widestAt));
    const widestOf = (siteId: number): number => widestAt(byId.get(siteId) as SiteShape);
    this.cleaning = new Cleaning({
      ...options,
      atRoot,
      taskPerProcessor: sites.some(({ machines = 1, maxTasks = null }) => machines > 1 || maxTasks !== null),
      ...(atRoot
        ? { processorsOf: () => widest }
        : {
            siteOf: ({ partition }) => (byId.has(partition) ? partition : null),
            processorsOf: widestOf,
          }),
    });
  }
}
