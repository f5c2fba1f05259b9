/** `--plots` of `switchyard simulate` and `compare`: what is drawn, checked before the simulation, and the drawing after it. */
import { mkdirSync } from 'node:fs';
import type { Command } from 'commander';
import { drawingLibraries, MAX_SERIES } from '../plots/chart.js';
import { PLOT_FORMATS, type PlotFormat, pictures, writePlots } from '../plots/pictures.js';
import { type Repeated, spreadPictures } from '../plots/spread.js';
import type { GanttWindow, PlotRecord } from '../simulator/record.js';
import type { Recorded } from '../simulator/simulate.js';
import { parseDuration } from '../words/values.js';
import { usage } from './errors.js';
import { count } from './format.js';

export interface PlotFlags {
  plots?: string;
  plotFormat: string;
  ganttFrom?: string;
  ganttTo?: string;
}

export function plotOptions(command: Command): Command {
  return command
    .option(
      '--plots <folder>',
      'write plots of waiting times, utilization and queue and a Gantt chart to this folder; for several seeds or traces, bands and box plots',
    )
    .option('--plot-format <format>', `one file per plot, or one page: ${PLOT_FORMATS.join(' or ')}`, 'svg')
    .option(
      '--gantt-from <time>',
      'start of the Gantt chart, in trace time, such as 0, 36h or 20d (default: the job in the middle)',
    )
    .option('--gantt-to <time>', 'end of the Gantt chart (default: a day after its start)');
}

export interface PlotRequest {
  folder: string;
  format: PlotFormat;
  window: GanttWindow;
}

/**
 * What the options ask to draw of these policies; null: nothing. Makes the folder and loads what draws, so that a long
 * simulation does not fail at its end. Throws a usage error that names the option.
 */
export async function plotsOf(
  { plots, plotFormat, ganttFrom, ganttTo }: PlotFlags,
  policies: readonly string[],
): Promise<PlotRequest | null> {
  const format = PLOT_FORMATS.find((one) => one === plotFormat);
  if (format === undefined) throw usage('--plot-format', plotFormat, PLOT_FORMATS.join(', '));
  const fromS = traceTime('--gantt-from', ganttFrom);
  const toS = traceTime('--gantt-to', ganttTo);
  if (plots === undefined) {
    if (ganttFrom !== undefined) throw usage('--gantt-from', ganttFrom, 'only together with --plots');
    if (ganttTo !== undefined) throw usage('--gantt-to', ganttTo, 'only together with --plots');
    return null;
  }
  if (fromS !== null && toS !== null && toS <= fromS)
    throw usage('--gantt-to', String(ganttTo), `later than --gantt-from, which is ${ganttFrom}`);
  const twice = policies.find((policy, i) => policies.indexOf(policy) !== i);
  if (twice !== undefined) throw usage('--policy', twice, 'each policy once with --plots');
  if (policies.length > MAX_SERIES)
    throw usage('--policy', policies.join(','), `at most ${MAX_SERIES} policies with --plots`);
  await drawingLibraries();
  try {
    mkdirSync(plots, { recursive: true });
  } catch (error) {
    throw usage('--plots', plots, `a folder that can be written (${(error as Error).message})`);
  }
  return { folder: plots, format, window: { fromS, toS } };
}

function traceTime(field: string, value: string | undefined): number | null {
  if (value === undefined) return null;
  return value === '0' ? 0 : parseDuration(field, value);
}

/** Draws what was recorded of each policy: over time of single runs, and how they spread where there are several. */
export async function draw({ folder, format }: PlotRequest, drawn: readonly Repeated[]): Promise<void> {
  const results = drawn.flatMap(({ runs }) => runs);
  const [first] = results as [Recorded];
  const { processors, sites } = first.simulated;
  const traces = [...new Set(results.map(({ simulated }) => simulated.trace))];
  const jobs = new Set(results.map(({ simulated }) => simulated.jobs));
  const several = results.length > drawn.length;
  const subject = [
    `${jobs.size === 1 ? count(first.simulated.jobs, 'job') : 'jobs'} of ${traces.join(', ')} on ${count(processors, 'processor')} at ${count(sites, 'site')}`,
    ...(several ? [`${results.length / drawn.length} runs each`] : []),
    ...(drawn.length === 1 ? [`policy ${drawn[0]?.label}`] : []),
  ].join(', ');
  const repeated = several || drawn.some(({ varied }) => Object.keys(varied).length > 0);
  writePlots(folder, format, subject, [
    ...(several
      ? []
      : await pictures(
          subject,
          drawn.map(({ label, runs: [run] }) => ({ label, record: run?.record as PlotRecord })),
        )),
    ...(repeated ? await spreadPictures(subject, drawn) : []),
  ]);
}
