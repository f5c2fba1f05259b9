/** `switchyard experiment`: the tables of the papers, ours beside theirs. */
import type { Command } from 'commander';
import { diana } from '../../simulator/experiments/diana.js';
import { dianaReport } from '../../simulator/experiments/diana-report.js';
import { jobRatio } from '../../simulator/experiments/job-ratio.js';
import { jobRatioReport } from '../../simulator/experiments/job-ratio-report.js';
import { queues, queuesReport } from '../../simulator/experiments/queues.js';
import { type Report, writeReport } from '../../simulator/experiments/report.js';
import { santoso, santosoReport } from '../../simulator/experiments/santoso.js';
import { twoLevel, twoLevelReport } from '../../simulator/experiments/two-level.js';
import { addCommand, print, printJson, wantsJson } from '../command.js';
import { parseNumber } from '../parse.js';
import { type Progress, progress } from '../progress.js';

type OnProgress = (done: number, all: number) => void;

interface Experiment {
  /** What it reproduces. */
  about: string;
  /** `runs`: how often everything is repeated with other draws; undefined: as often as the experiment says. */
  run: (seed: number, onProgress: OnProgress, runs: number | undefined) => Report;
}

const experiments: Record<string, Experiment> = {
  santoso: {
    about: 'Santoso et al., Table 2: hierarchical scheduling of clusters, 17 policies at 5 loads',
    run: (seed, onProgress, runs) => santosoReport(seed, santoso(seed, onProgress, runs), runs),
  },
  queues: {
    about: 'M/M/1, M/M/2 and M/M/4 against theory',
    run: (seed, onProgress, runs) => queuesReport(seed, queues(seed, onProgress, runs), runs),
  },
  'two-level': {
    about:
      'Pasquali et al., section 5: the two-level scheduler in its three modes at several rates of arrival',
    run: (seed, onProgress, runs) => twoLevelReport(seed, twoLevel(seed, onProgress, runs)),
  },
  'job-ratio': {
    about:
      'AL-Khateeb et al.: the job ratio against schedulers without it, on jobs that compute and that read',
    run: (seed, onProgress, runs) => jobRatioReport(jobRatio(seed, onProgress, runs)),
  },
  diana: {
    about: 'Anjum et al., section 8: DIANA against round robin and most FLOPS on five sites and more',
    run: (seed, onProgress, runs) => dianaReport(diana(seed, onProgress, runs)),
  },
};

/** More would only take longer. */
const RUNS_MAX = 10_000;

export function addExperiment(program: Command): void {
  const parent = program
    .command('experiment')
    .description('repeat an experiment of a paper and print ours beside theirs');
  for (const [name, { about, run }] of Object.entries(experiments)) {
    const command = addCommand(parent, name, about)
      .option('--seed <n>', 'seed of every draw', '1')
      .option('--runs <n>', 'repeat everything so often with other draws')
      .option('--out <folder>', `write ${name}.md, ${name}.json and the plots there`);
    command.action(async (flags: { seed: string; runs?: string; out?: string }) => {
      const seed = parseNumber('--seed', flags.seed, { min: 0, max: 0xffffffff, integer: true });
      const runs =
        flags.runs === undefined
          ? undefined
          : parseNumber('--runs', flags.runs, { min: 1, max: RUNS_MAX, integer: true });
      let bar: Progress | undefined;
      const onProgress = (done: number, all: number): void => {
        bar ??= progress(name, all);
        bar.update(done);
      };
      const report = run(seed, onProgress, runs);
      bar?.stop();
      if (flags.out !== undefined) await writeReport(flags.out, report);
      if (wantsJson(command)) return printJson(report.data);
      print(report.text.trimEnd());
    });
  }
}
