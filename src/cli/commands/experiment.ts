/**
 * `switchyard experiment`: the tables of the papers, ours beside theirs. The experiments are not part of the product: they
 * are in the repository, beside it, and are built when they are asked for.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import { packagePath } from '../../platform/paths.js';
import { drawingLibraries } from '../../plots/chart.js';
import { parseNumber } from '../../words/values.js';
import { addCommand, show } from '../command.js';
import { CliError, usage } from '../errors.js';
import { table } from '../format.js';
import { type Progress, progress } from '../progress.js';

/** What experiments/index.ts offers. */
export interface Experiments {
  all: Readonly<Record<string, Experiment>>;
  /** Writes the page, its numbers as JSON and its plots into a folder. */
  write(folder: string, report: Report): Promise<void>;
}

interface Experiment {
  /** What it reproduces. */
  about: string;
  /** `runs`: how often everything is repeated with other draws; undefined: as often as the experiment says. */
  run(
    seed: number,
    onProgress: (done: number, all: number) => void,
    runs: number | undefined,
  ): Report | Promise<Report>;
}

interface Report {
  /** Markdown. */
  text: string;
  /** Plain values, for JSON. */
  data: unknown;
}

/** More would only take longer. */
const RUNS_MAX = 10_000;

export function addExperiment(program: Command): void {
  const command = addCommand(
    program,
    'experiment [name]',
    'repeat an experiment of a paper and print the results next to the published ones; without a name: list the experiments',
  )
    .option('--seed <n>', 'random seed', '1')
    .option('--runs <n>', 'number of runs with different random numbers (default: as on the published page)')
    .option('--out <folder>', 'also write the page, its numbers as JSON and its plots there');
  command.addHelpText(
    'after',
    '\nThe experiments are part of the repository: run this command in a checkout.',
  );
  command.action(async (name: string | undefined, flags: { seed: string; runs?: string; out?: string }) => {
    const seed = parseNumber('--seed', flags.seed, { min: 0, max: 0xffffffff, integer: true });
    const runs =
      flags.runs === undefined
        ? undefined
        : parseNumber('--runs', flags.runs, { min: 1, max: RUNS_MAX, integer: true });
    const { all, write } = await load();
    if (name === undefined) {
      const list = Object.entries(all).map(([name, { about }]) => ({ name, about }));
      return show(command, list, () =>
        table(
          ['NAME', 'WHAT IT REPEATS'],
          list.map(({ name, about }) => [name, about]),
        ),
      );
    }
    const experiment = Object.hasOwn(all, name) ? all[name] : undefined;
    if (experiment === undefined) throw usage('experiment', name, `one of ${Object.keys(all).join(', ')}`);
    // Not at the end of a long computation: whether its plots can be drawn.
    if (flags.out !== undefined) await drawingLibraries();
    let bar: Progress | undefined;
    const report = await experiment.run(
      seed,
      (done, all) => {
        bar ??= progress(name, all);
        bar.update(done);
      },
      runs,
    );
    bar?.stop();
    if (flags.out !== undefined) await write(flags.out, report);
    show(command, report.data, () => report.text.trimEnd());
  });
}

/** Builds the experiments where their sources are newer, and loads them. */
async function load(): Promise<Experiments> {
  // Of the packages for development, one that they need: others may be installed for other reasons.
  if (!existsSync(packagePath('experiments')) || !existsSync(packagePath('node_modules', 'vega'))) {
    throw new CliError(
      'the experiments are not part of an installed Switchyard: run `npm ci` and then this command in a checkout of its repository',
    );
  }
  // On standard error: standard output belongs to the result.
  const ran = (script: string, ...args: string[]): boolean =>
    spawnSync(process.execPath, [packagePath('scripts', script), ...args], { stdio: ['ignore', 2, 2] })
      .status === 0;
  // `npm start` installs no compiler.
  if (!ran('packages.mjs') || !ran('build.mjs', 'experiments'))
    throw new CliError('the experiments could not be built');
  const built = packagePath('dist-experiments', 'experiments', 'index.js');
  return ((await import(pathToFileURL(built).href)) as { default: Experiments }).default;
}
