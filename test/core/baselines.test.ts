import { describe, expect, it } from 'vitest';
import { DEFAULT_POLICY, draw, type Policy, placement } from '../../src/core/index.js';
import { job } from './support/drive.js';
import { dispatch, gridOf } from './support/grids.js';

const policyOf = (kind: 'round-robin' | 'random' | 'most-flops'): Policy => ({
  ...DEFAULT_POLICY,
  seed: 5,
  dispatch: { kind },
});
/** Site 1 has the most CPUs, 2 the best machine, 3 the most power. */
const threeSites = () =>
  gridOf([
    { id: 1, siteId: 1, cpus: 12 },
    { id: 2, siteId: 2, cpus: 2, benchmark: 7 },
    { id: 3, siteId: 3, cpus: 4, benchmark: 3 },
    { id: 4, siteId: 3, cpus: 4, benchmark: 3, os: 'bsd' },
  ]);

describe('round robin', () => {
  it('takes the eligible sites in turn, by the ids of the jobs', () => {
    const grid = threeSites();
    for (const id of [1, 2, 3, 4]) grid.placeAtRoot(job({ id }));
    grid.placeAtRoot(job({ id: 5, cpusPerTask: 3 }));
    grid.placeAtRoot(job({ id: 6, cpusPerTask: 3 }));
    const { moves } = dispatch(grid, policyOf('round-robin'));
    expect(moves.map(({ jobId, to, queue, from }) => [jobId, to, queue, from])).toEqual([
      [1, 2, 'LOCAL', null],
      [2, 3, 'LOCAL', null],
      [3, 1, 'LOCAL', null],
      [4, 2, 'LOCAL', null],
      // Site 2 has no room for three CPUs: the turn goes between 1 and 3.
      [5, 3, 'LOCAL', null],
      [6, 1, 'LOCAL', null],
    ]);
    expect(moves[0]).toMatchObject({ reason: 'ROUND_ROBIN', explanation: { priorityTerms: { turn: 1 } } });
  });
});

describe('random', () => {
  it('draws by seed and job only, each site about equally often', () => {
    const grid = threeSites();
    for (let id = 1; id <= 3000; id++) grid.placeAtRoot(job({ id }));
    const { moves } = dispatch(grid, policyOf('random'), 0, 3000);
    for (const { jobId, to } of moves) expect(to).toBe(1 + Math.floor(draw(5, jobId) * 3));
    for (const site of [1, 2, 3]) {
      const count = moves.filter(({ to }) => to === site).length;
      expect(Math.abs(count - 1000)).toBeLessThan(100);
    }
    expect(moves[0]).toMatchObject({
      reason: 'RANDOM_SITE',
      explanation: { candidates: [1, 2, 3], priorityTerms: { draw: draw(5, 1) } },
    });
  });
});

describe('most FLOPS', () => {
  const sites = () =>
    gridOf([
      { id: 1, siteId: 1, cpus: 1, benchmark: 2 },
      { id: 2, siteId: 1, cpus: 1, benchmark: 1 },
      { id: 3, siteId: 2, cpus: 1, benchmark: 3, os: 'bsd' },
      { id: 4, siteId: 3, cpus: 8, benchmark: 9, available: false },
      { id: 5, siteId: 3, cpus: 8, benchmark: 1 },
    ]);

  it('takes the most powerful machine that is available and free, as the cycle has left it; without any the most powerful', () => {
    const grid = sites();
    for (const id of [1, 2, 3]) grid.placeAtRoot(job({ id, submittedAt: id }));
    grid.placeAtRoot(job({ id: 4, submittedAt: 4, os: 'bsd' }));
    const { moves } = dispatch(grid, policyOf('most-flops'));
    expect(moves.map(({ to, explanation: { terms } }) => [to, terms])).toEqual([
      [2, { free: [1, 1, 1], benchmark: [2, 3, 1] }],
      [1, { free: [1, 0, 1], benchmark: [2, 3, 1] }],
      [1, { free: [1, 0, 1], benchmark: [1, 3, 1] }],
      [2, { free: [0], benchmark: [3] }],
    ]);
    expect(moves[0]).toMatchObject({ reason: 'MOST_POWER', explanation: { highestFirst: true } });
    const placed = placement(grid, job({ id: 9 }), { now: 0, policy: policyOf('most-flops') });
    expect(placed.ranking.map(({ siteId, rank }) => [siteId, rank])).toEqual([
      [2, 1],
      [1, 2],
      [3, 3],
    ]);
  });

  it('a machine that runs something is not available', () => {
    const grid = sites();
    grid.placeAtSite(job({ id: 1 }), 2);
    const allocations = [{ machineId: 3, tasks: 1 }];
    grid.startRun({ jobId: 1, siteId: 2, epoch: 1, allocations, pools: [], start: 0, plannedEnd: 9 });
    grid.placeAtRoot(job({ id: 2 }));
    expect(dispatch(grid, policyOf('most-flops')).moves[0]?.to).toBe(1);
  });

  it('leaves ties to the site order', () => {
    const grid = gridOf([
      { id: 1, siteId: 2, cpus: 4, benchmark: 2 },
      { id: 2, siteId: 1, cpus: 2, benchmark: 2 },
    ]);
    grid.placeAtRoot(job({ id: 1 }));
    expect(dispatch(grid, policyOf('most-flops')).moves[0]?.to).toBe(1);
  });
});
