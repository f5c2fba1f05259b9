/** `switchyard experiment`: the tables of the papers, ours beside theirs. */
import type { Command } from 'commander';
import { queues, queuesReport } from '../../simulator/experiments/queues.js';
import { type Report, writeReport } from '../../simulator/experiments/report.js';
import { santoso, santosoReport } from '../../simulator/experiments/santoso.js';
import { twoLevel, twoLevelReport } from '../../simulator/experiments/two-level.js';
import { addCommand, print, printJson, wantsJson } from '../command.js';
import { parseNumber } from '../parse.js';
import { type Progress, progress } from '../progress.js';

type OnProgress = (done: number, all: number) => void;

/** By name: what it reproduces, and how. */
const experiments: Record<string, { about: string; run: (seed: number, onProgress: OnProgress) => Report }> =
  {
    santoso: {
      about: 'Santoso et al., Table 2: hierarchical scheduling of clusters, 17 policies at 5 loads',
      run: (seed, onProgress) => santosoReport(seed, santoso(seed, onProgress)),
    },
    queues: {
      about: 'M/M/1, M/M/2 and M/M/4 against theory',
      run: (seed, onProgress) => queuesReport(seed, queues(seed, onProgress)),
    },
    'two-level': {
      about:
        'Pasquali et al., section 5: the two-level scheduler in its three modes at several rates of arrival',
      run: (seed, onProgress) => twoLevelReport(seed, twoLevel(seed, onProgress)),
    },
  };

export function addExperiment(program: Command): void {
  const parent = program
    .command('experiment')
    .description('repeat an experiment of a paper and print ours beside theirs');
  for (const [name, { about, run }] of Object.entries(experiments)) {
    const command = addCommand(parent, name, about)
      .option('--seed <n>', 'seed of every draw', '1')
      .option('--out <folder>', `write ${name}.md, ${name}.json and the plots there`);
    command.action(async (flags: { seed: string; out?: string }) => {
      const seed = parseNumber('--seed', flags.seed, { min: 0, max: 0xffffffff, integer: true });
      let bar: Progress | undefined;
      const report = run(seed, (done, all) => {
        bar ??= progress(name, all);
        bar.update(done);
      });
      bar?.stop();
      if (flags.out !== undefined) await writeReport(flags.out, report);
      if (wantsJson(command)) return printJson(report.data);
      print(report.text.trimEnd());
    });
  }
}
