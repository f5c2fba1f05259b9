/** The grid tree's experiments, in small. */
import { describe, expect, it } from 'vitest';
import { gridTree, gridTreeClaims, gridTreeReport } from '../../experiments/grid-tree.js';
import {
  gridTreeLive,
  gridTreeLiveReport,
  LOADS,
  RAW_WAITS,
  WAYS,
} from '../../experiments/grid-tree-live.js';
import { DEADLINES, SYSTEMS, simulateModel } from '../../experiments/grid-tree-model.js';
import { IN_FULL } from '../support/seed.js';

describe('the model', () => {
  const small = {
    jobs: 60,
    inputMb: 1000,
    rate: 3600,
    rescheduling: true,
    changes: false,
    deadline: 'JOB',
  } as const;

  it('runs every job of every system once, and again the same with the same seed', () => {
    for (const system of SYSTEMS) {
      const outcome = simulateModel({ ...small, system }, 1, 0);
      expect(outcome).toEqual(simulateModel({ ...small, system }, 1, 0));
      expect(outcome.near.reduce((sum, share) => sum + share)).toBeCloseTo(1, 9);
      // At least the input and five times as much output over a cable, and no job is alone in the grid for days.
      expect(outcome.aetS).toBeGreaterThan((6 * 1000) / 100);
      expect(outcome.trtS).toBeGreaterThan(outcome.aetS);
    }
  });

  it('ends with servers that change, and without rescheduling', () => {
    for (const system of SYSTEMS)
      expect(simulateModel({ ...small, system, changes: true }, 2, 0).trtS).toBeGreaterThan(0);
    expect(simulateModel({ ...small, system: 'tree', rescheduling: false }, 2, 0).trtS).toBeGreaterThan(0);
  });
});

it.runIf(IN_FULL)('the experiments give a page with all cells, plots and expectations', async () => {
  const cells = await gridTree(1, () => {}, 1, { jobs: [20, 40], middle: 20 });
  expect(new Set(cells.map(({ experiment }) => experiment))).toEqual(new Set([1, 2, 3, 4]));
  const report = gridTreeReport(1, cells, 1);
  expect(report.plots).toHaveLength(4);
  for (const deadline of DEADLINES) {
    for (const { holds, of } of gridTreeClaims(cells, deadline)) {
      expect(of).toBeGreaterThan(0);
      expect(holds).toBeLessThanOrEqual(of);
    }
  }
  // Peers under either deadline, side by side; what is asked of trees does not depend on it.
  expect(
    cells.filter(({ setting }) => setting.deadline === 'SERVER').map(({ setting }) => setting.system),
  ).toEqual(
    cells.filter(({ setting }) => setting.system === 'P2P' && setting.deadline === 'JOB').map(() => 'P2P'),
  );
  expect(report.text.trimEnd().endsWith(report.verdict)).toBe(true);
});

it('ways other than the paper’s are simulated beside it, the same again with the same seed', () => {
  const result = gridTreeLive(3, () => {}, 2, 60);
  expect(result).toEqual(gridTreeLive(3, () => {}, 2, 60));
  expect(result.live).toHaveLength(LOADS.length * WAYS.length);
  expect(result.raw).toHaveLength(RAW_WAITS.length);
  expect(gridTreeLiveReport(result).text).toContain(`--seed 3 --runs 2`);
});
