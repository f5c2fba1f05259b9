/** The experiments of the papers, by name: `switchyard experiment` finds and runs them. */
import type { Experiments } from '../src/cli/commands/experiment.js';
import { diana } from './diana.js';
import { dianaReport } from './diana-report.js';
import { dianaStudy } from './diana-study.js';
import { gridTree, gridTreeReport } from './grid-tree.js';
import { gridTreeLive, gridTreeLiveReport } from './grid-tree-live.js';
import { withThreads } from './grid-tree-threads.js';
import { jobRatio } from './job-ratio.js';
import { jobRatioReport } from './job-ratio-report.js';
import { queues, queuesReport } from './queues.js';
import { writeReport } from './report.js';
import { santoso, santosoReport } from './santoso.js';
import { agingStudy, twoLevel, twoLevelReport, unitStudy } from './two-level.js';
import { scavengers, windows, windowsReport } from './windows.js';

export default {
  all: {
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
      run: (seed, onProgress, runs) =>
        twoLevelReport(seed, twoLevel(seed, onProgress, runs), agingStudy(), unitStudy()),
    },
    'job-ratio': {
      about:
        'AL-Khateeb et al.: the job ratio against schedulers without it, on jobs that compute and that read',
      run: (seed, onProgress, runs) => jobRatioReport(jobRatio(seed, onProgress, runs)),
    },
    diana: {
      about: 'Anjum et al., section 8: DIANA against round robin and most FLOPS on five sites and more',
      run: (seed, onProgress, runs) => dianaReport(diana(seed, onProgress, runs), dianaStudy()),
    },
    'grid-tree': {
      about:
        'AlZoubi and Dandamudi, section 4: one grid tree, 4 and 16 of them against peers that flood requests',
      run: (seed, onProgress, runs) =>
        withThreads(async (simulate) =>
          gridTreeReport(seed, await gridTree(seed, onProgress, runs, undefined, simulate), runs),
        ),
    },
    'grid-tree-live': {
      about: 'what the live grid tree does otherwise than AlZoubi and Dandamudi, each beside the paper’s way',
      run: (seed, onProgress, runs) => gridTreeLiveReport(gridTreeLive(seed, onProgress, runs)),
    },
    windows: {
      about: 'maintenance windows: a month of KTH-SP2 closed for 4 h each week, under every local policy',
      run: async (_seed, onProgress) =>
        windowsReport(await windows(undefined, onProgress), await scavengers()),
    },
  },
  write: writeReport,
} satisfies Experiments;
